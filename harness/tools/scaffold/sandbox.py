"""Evaluation of source text on fresh registries, each time in a separate process.

No trial can harm the next one. Each is a forked child with a time limit, in an empty
folder, without input; on a platform without fork, trials share one process, whose whole
time the parent process limits.

A trial without enough time is never mistaken for one that failed: it raises.

A trial's names are those of the printed file: its imports and definitions, `registry`,
and `result`.
"""

import os
import re
import signal
import time
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    ValuesView,
)
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from types import CoroutineType
from typing import Any, TypeVar

from everyorder.harness.base.errors import TrialEnded
from everyorder.harness.processes.fork import CAN_FORK, end_with_parent, fork, kill
from everyorder.harness.processes.messages import PipeEnd
from everyorder.harness.state import FollowedScope, Heap, canonical
from everyorder.harness.tools.scaffold.draft import RETURNED, StepDraft
from everyorder.harness.tools.scaffold.target import (
    KINDS,
    SLOTS,
    THING,
    Arguments,
    TrialArgument,
)

T = TypeVar("T")

# A registry answers at once; a longer call waits for something.
TRIAL_SECONDS = 0.5

# Creating a registry may import modules first.
CREATION_SECONDS = 1.0

# Time of a trial relative to creating a registry and reading its state: at most five
# times each, and both take twice as long on a busy machine.
TIME_FACTOR = 10

# Time for one repetition of a trial that exceeded its time; then it is said to hang.
RETRY_SECONDS = 4.0
HANG_TEXT = f"did not return in {RETRY_SECONDS:g} s"

# Limit on the trials of a subject that hangs: other arguments seldom change that.
MOST_HANGS = 2

# Limit on the members of a listed look-up: a longer one may never end, and uses memory
# until it is killed. Some tables begin with a thousand.
MOST_MEMBERS = 2_000

# The module name of definitions.
MODULE_NAME = "__everyorder_written__"


@dataclass(slots=True)
class Sandbox:
    """Evaluates texts on fresh registries.

    `packages` have the state of the registry; `create` is the text that creates one,
    with `create_arguments` in it; nothing is tried after `until`, and `is_cut` is set
    if that prevented a trial. A trial has `seconds`, and `RETRY_SECONDS` if these are
    not enough; `hangs` counts the trials that did not return, by their subject.
    """

    target: str
    packages: frozenset[str]
    imports: tuple[str, ...]
    until: float
    create: str = ""
    create_arguments: Arguments = ()
    seconds: float = CREATION_SECONDS
    hangs: Counter[str] = field(default_factory=Counter)
    is_cut: bool = False

    def is_given_up(self, subject: str) -> bool:
        """Return True if a subject is no longer tried, because its trials hung."""
        return self.hangs[subject] >= MOST_HANGS

    def run(self, subject: str, trial: Callable[[], T]) -> T | None:
        """Return the result of a trial of the subject; None if it raised, died or hung.

        Raises:
            TrialEnded: there is no time for it.
        """
        if time.monotonic() > self.until:
            raise self._timeout()
        if self.is_given_up(subject):
            return None
        if not CAN_FORK:
            with suppress(BaseException):
                return trial()
            return None
        try:
            return _run_in_child(trial, self.seconds)
        except TimeoutError:
            pass
        if not self.hangs[subject]:
            began = time.monotonic()
            if began + self.seconds > self.until:
                raise self._timeout()
            seconds = max(RETRY_SECONDS, 2 * self.seconds)
            with suppress(TimeoutError):
                result = _run_in_child(trial, min(seconds, self.until - began))
                # Other trials of this subject take as long.
                self.seconds = max(self.seconds, 2 * (time.monotonic() - began))
                return result
        self.hangs[subject] += 1
        return None

    def _timeout(self) -> TrialEnded:
        self.is_cut = True
        return TrialEnded(target=self.target, reason="time was up")

    def measure(self) -> None:
        """Set the time of each trial according to the size of the registry."""
        self.seconds = TIME_FACTOR * CREATION_SECONDS
        took = self.run("its state", self._state_seconds)
        self.seconds = (
            max(TRIAL_SECONDS, TIME_FACTOR * took)
            if took is not None
            else TRIAL_SECONDS
        )

    def _state_seconds(self) -> float:
        began = time.monotonic()
        self.state(self.names())
        return time.monotonic() - began

    def names(self, arguments: Arguments = (), *, create: str = "") -> dict[str, Any]:
        """Return the names of the printed file, with a fresh registry among them.

        `arguments` are those whose definitions are needed.
        """
        names: dict[str, Any] = {"__name__": MODULE_NAME}
        arguments = (*self.create_arguments, *arguments)
        for module in (
            *self.imports,
            *(name for each in arguments for name in each.imports),
        ):
            names[module.partition(".")[0]] = __import__(module)
        for text in definitions(arguments):
            exec(text, names)  # noqa: S102  # the text to print
        names["registry"] = evaluate(create or self.create, names)
        return names

    def state(self, names: dict[str, Any]) -> bytes:
        """Return a digest of the registry's state."""
        roots = {"registry": names["registry"]}
        return Heap(FollowedScope(self.packages)).form(roots).exact


def evaluate(text: str, names: dict[str, Any]) -> Any:
    """Return the value of a text; for a coroutine, its result."""
    value = eval(text, names)  # noqa: S307  # the text to print
    return _await(value, names) if isinstance(value, CoroutineType) else value


def _await(value: Coroutine[Any, Any, Any], names: dict[str, Any]) -> Any:
    import asyncio  # few registries need it

    loop = names.get("__loop__") or asyncio.new_event_loop()
    names["__loop__"] = loop
    return loop.run_until_complete(value)


def definitions(arguments: Iterable[TrialArgument]) -> list[str]:
    """Return the definitions that arguments need in all slots, each once."""
    arguments = tuple(arguments)
    texts = [each.definition(slot) for each in arguments for slot in range(SLOTS + 1)]
    if any(each.kind == "object" for each in arguments):
        texts.insert(0, THING)
    unique = dict.fromkeys(filter(None, texts))
    return sorted(unique, key=_place)


def _place(text: str) -> tuple[int, int]:
    """Return a sort key: classes, functions, then objects, each in order."""
    word, name = text.split(maxsplit=1)
    name = name.partition("(")[0].removesuffix(":\n    pass\n")
    counted = [*KINDS["class"], *KINDS["function"]]
    place = counted.index(name) if name in counted else -1
    return ({"class": 0, "def": 1}.get(word, 2), place)


def perform_step(step: StepDraft, names: dict[str, Any]) -> Callable[[], Any]:
    """Do a step and return the function that undoes it."""
    result = evaluate(step.do, names)
    undo = step.undo
    if undo is None:
        return lambda: None
    if undo != RETURNED:
        return lambda: evaluate(undo, {**names, "result": result})
    if callable(getattr(result, "close", None)):
        return result.close  # type: ignore[no-any-return]  # it can be called
    if hasattr(result, "__enter__"):
        result.__enter__()
        return lambda: result.__exit__(None, None, None)
    return result  # type: ignore[no-any-return]  # it can be called, or raises


@dataclass(frozen=True, slots=True)
class LookUpAnswer:
    """The canonical answer of a look-up; its members, if only their order may differ.

    `error` is the type of a raised error; `passes` is True for an iterator, which a
    scenario cannot compare: its items are listed instead.
    """

    text: str
    members: tuple[str, ...] | None = None
    plain: bool = False
    error: str = ""
    passes: bool = False


_LISTED = re.compile(r"list\((.*)\)", re.DOTALL)


def answer(text: str, names: dict[str, Any]) -> LookUpAnswer:
    """Return the answer of a look-up; a `TypeError` if a `list(...)` does not end."""
    listed = _LISTED.fullmatch(text)
    try:
        value = eval(listed[1] if listed else text, names)  # noqa: S307  # the text to print
        if listed:
            value = [*islice(value, MOST_MEMBERS + 1)]
            if len(value) > MOST_MEMBERS:
                raise TypeError(f"{text} does not end")
        if isinstance(value, CoroutineType):
            value = _await(value, names)
            return LookUpAnswer(canonical_text(value), _members(value))
        if isinstance(value, AsyncIterator):
            raise TypeError(type(value).__name__)
        if isinstance(value, Iterator):
            return LookUpAnswer("", passes=True)
        return LookUpAnswer(canonical_text(value), _members(value), _plain(value))
    except Exception as error:
        return LookUpAnswer(
            f"{type(error).__name__}: {error}", error=type(error).__name__
        )


def canonical_text(value: Any) -> str:
    """Return a value as canonical text."""
    return repr(canonical(value))


def _members(value: Any) -> tuple[str, ...] | None:
    if isinstance(value, Mapping | ItemsView):
        value = [*value.items()] if isinstance(value, Mapping) else [*value]
    if isinstance(value, Sequence | KeysView | ValuesView) and not isinstance(
        value, str
    ):
        return tuple(sorted(map(canonical_text, value)))
    return None


def _plain(value: Any) -> bool:
    """Return True if `str` shows all of a value, or of each of its members."""
    plain = (str, int, float, type(None))
    several = (list, tuple, set, frozenset, KeysView)
    return isinstance(value, plain) or (
        isinstance(value, several) and all(isinstance(each, plain) for each in value)
    )


def _run_in_child(trial: Callable[[], T], seconds: float) -> T | None:
    """Return the result of a trial in a child; None if it raised or died.

    Raises:
        TimeoutError: the trial exceeded its time.
    """
    reader, writer = os.pipe()
    parent = os.getpid()

    def run() -> None:
        end_with_parent(parent)
        os.setsid()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        with suppress(BaseException):  # the end of the pipe reports it
            PipeEnd(-1, writer).send(trial())

    child = fork(run)
    os.close(writer)
    channel = PipeEnd(reader, -1)
    try:
        result: T = channel.receive(2 * seconds)  # if the trial blocks the signal
        return result
    except EOFError:
        pass
    finally:
        channel.close()
        code = kill(child)
    if code == -signal.SIGALRM:
        raise TimeoutError
    return None
