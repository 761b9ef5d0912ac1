"""What a scenario's own functions raised, answered and observed, as values to compare.

An `Exception` is an outcome, and so are those that are none by descent but mean the
same: `pytest.fail`, a cancelled task, what other frameworks raise.  `pytest.skip` skips
the scenario (`ScenarioSkipped`).  Whoever wants to end the process or the session
(`KeyboardInterrupt`, `SystemExit`, `pytest.exit`) is let through.

An answer is kept and compared with later ones, so it is written down at once in its
canonical form, by exact types: a list that the registry still holds would change with
it and be equal to itself for ever, and `True` would be equal to `1`.

Rules:
- an outcome is a name and a text; addresses in it are left out, because they differ
  from run to run;
- nothing here keeps an exception: its frames hold registries and handles;
- what has not run yet is no answer (a generator, a coroutine): it is refused;
- what is observed is text: it goes into expect files and reports as it is.
"""

import re
import sys
from collections.abc import (
    AsyncIterator,
    Callable,
    Hashable,
    ItemsView,
    Iterator,
    KeysView,
    ValuesView,
)
from inspect import isawaitable
from typing import Any, ClassVar, ParamSpec, TypeVar
from unittest import SkipTest

from everyorder.harness.base.errors import HarnessError, NotAScenario, Words
from everyorder.harness.scenario.mistakes import kind_of
from everyorder.harness.scenario.step import UseStep
from everyorder.harness.state import canonical

T = TypeVar("T")
P = ParamSpec("P")

# Their texts tell where the machine gave up, not what the registry did.
_MACHINE_ERRORS = (RecursionError, MemoryError)
# Whoever raises these wants to end the process, or what runs.
_ENDING = (KeyboardInterrupt, SystemExit, GeneratorExit)
_ADDRESS = re.compile(r"\bat 0x[0-9A-Fa-f]+")


class ScenarioSkipped(HarnessError, SkipTest):
    """A step, a use or another function of a scenario skipped it.

    Test runners skip the test out of which it comes.
    """

    reason: str

    words: ClassVar[Words] = {"ScenarioSkipped": "{reason}"}


class ErrorOutcome(Exception):
    """An outcome by its name and its text, in place of a `kind` that was raised."""

    def __init__(
        self, name: str, text: str, kind: type[BaseException] = BaseException
    ) -> None:
        super().__init__(name, text)
        self.name = name
        self.text = text
        self.kind = kind


def call_with_outcomes(
    function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a function whose exceptions are outcomes; they are `Exception` then.

    Raises:
        ScenarioSkipped: it skipped the scenario.
    """
    told: Exception
    try:
        return function(*args, **kwargs)
    except _ENDING:
        raise
    except BaseException as error:
        reason = skip_reason(error)
        if reason is not None:
            told = ScenarioSkipped(reason=reason)
        elif isinstance(error, Exception) or _is(error, "Exit"):
            raise
        else:
            told = ErrorOutcome(*name_and_text(error), type(error))
    # Raised here: the error is no context of what stands for it.
    raise told


def call_without_skips(
    may_skip: Callable[[], bool],
    function: Callable[P, T],
    *args: P.args,
    **kw: P.kwargs,
) -> T:
    """The same, where skipping is an outcome like others unless it `may_skip`.

    What is skipped is not for the history to decide: who skips the scenario does so
    when it is first asked.

    Raises:
        ScenarioSkipped: it skipped the scenario, and may.
    """
    told: ErrorOutcome
    try:
        return call_with_outcomes(function, *args, **kw)
    except ScenarioSkipped as skipped:
        if may_skip():
            raise
        told = ErrorOutcome("Skipped", skipped.reason)
    # Raised here: what skipped it is no context.
    raise told


def skip_reason(error: BaseException) -> str | None:
    """Why the scenario is skipped, if this says that it is; else None."""
    if isinstance(error, ScenarioSkipped):
        return error.reason
    if isinstance(error, SkipTest) or _is(error, "Skipped"):
        return _text(error)
    return None


def name_and_text(error: BaseException) -> tuple[str, str]:
    """The name of an error's class and its text, without addresses."""
    if isinstance(error, ErrorOutcome):
        return error.name, error.text
    if type(error) in _MACHINE_ERRORS:
        return type(error).__name__, ""
    return type(error).__name__, _ADDRESS.sub("at 0x...", _text(error))


def _text(error: BaseException) -> str:
    """What an error says of itself, or what it raised when it was asked."""
    try:
        return str.__str__(str(error))
    except _ENDING:
        raise
    except BaseException as broken:
        if _is(broken, "Exit"):
            raise
        return f"<no text: {type(broken).__name__}>"


def is_one_of(error: Exception, kinds: tuple[type[BaseException], ...]) -> bool:
    """Whether it is, or stands for, an error of one of these classes."""
    kind = error.kind if isinstance(error, ErrorOutcome) else type(error)
    return issubclass(kind, kinds)


def is_failed_check(error: BaseException) -> bool:
    """Whether an `assert` or a `pytest.fail` said it: something does not hold."""
    if isinstance(error, ErrorOutcome):
        return error.name == "Failed"
    return isinstance(error, AssertionError)


def _is(error: BaseException, name: str) -> bool:
    """Whether it is that outcome of pytest, which need not be imported."""
    outcomes = sys.modules.get("_pytest.outcomes")
    kind = getattr(outcomes, name, None)
    return kind is not None and isinstance(error, kind)


# What to write in place of what `observe` must not return.
_REPLACEMENTS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (type(None), "text; does it lack a return?"),
    ((bytes, bytearray), "text: repr(...), or .decode() if it is one"),
    (dict, "text: '\\n'.join(f'{key}: {value}' for key, value in ...items())"),
    ((list, tuple, set, frozenset), "text: '\\n'.join(map(str, ...))"),
    (Iterator, "text: '\\n'.join(map(str, ...))"),
)


def check_answer(use: UseStep, answer: Any, registry: object = None) -> Hashable:
    """The answer of a use as a value; text stays the text it is.

    What is in the registry, where the answer leads back to it, is no part of that.

    Raises:
        NotAScenario: it has not run yet, so that it cannot be compared.
    """
    if type(answer) is str:
        return answer
    if isinstance(answer, (KeysView, ValuesView, ItemsView)):
        answer = list(answer)
    if isinstance(answer, (Iterator, AsyncIterator)) or isawaitable(answer):
        raise NotAScenario(
            found=f"{kind_of(answer)}, returned by the use {use.text!r}",
            wanted="what it gives: list(...), or the result that is awaited",
        )
    return canonical(answer, unordered=use.unordered, registry=registry)


def check_observation(seen: Any, *, unordered: bool) -> str:
    """What was observed; lines are sorted if their order does not count.

    Raises:
        NotAScenario: it is no text.
    """
    if isinstance(seen, str):
        # Not by its class, which may say otherwise of equality, or of itself.
        text = str.__str__(seen)
        return "\n".join(sorted(text.splitlines())) if unordered else text
    instead = "text: str(...)"
    for kinds, words in _REPLACEMENTS:
        if isinstance(seen, kinds):
            instead = words
            break
    raise NotAScenario(found=f"{kind_of(seen)}, returned by observe", wanted=instead)


def check_laws(told: Any) -> tuple[str, ...]:
    """What a check reported, one text for each broken law.

    Raises:
        NotAScenario: it is no list of texts.
    """
    if not told:
        return ()
    if isinstance(told, str):
        return (str.__str__(told),)
    try:
        return tuple(
            str.__str__(each if isinstance(each, str) else str(each)) for each in told
        )
    except TypeError:
        raise NotAScenario(
            found=f"{type(told).__name__}, returned by check",
            wanted="a list of texts, one for each broken law, or an empty one",
        ) from None
