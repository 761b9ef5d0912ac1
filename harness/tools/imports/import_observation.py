"""Observations after imports in one order, and how two of them differ.

An observation is made when all modules of an order are imported: the errors of imports,
the answers of uses, and the state of the packages, path by path.  `observe` runs in the
process that imported them, and nothing of this file is imported before they are.

Rules:
- the packages are those of the modules that were asked for, those that are to be
  watched, and every other one that the imports brought in, unless it is Python's;
- the state is taken before any use is evaluated, because a use may change it;
- addresses never show: the state is a canonical form (`harness.state`), and texts of
  errors have theirs blotted out;
- the order of dicts is not compared, nor that of a class's subclasses: both follow the
  order in which code runs, by the language; a use that reads one of them shows it;
- a global that one order has and another has not is a difference, whoever reads it.
"""

import marshal
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from everyorder.harness.state import (
    FollowedScope,
    Heap,
    Portrait,
    ValueSnapshot,
    canonical,
    differences,
)

# What a side says that has nothing to say.
SILENT = "nothing"

# Paths that are told of one pair of orders; nobody reads more.
MOST_PATHS = 500

SUBCLASSES = ".__subclasses__()["


@dataclass(frozen=True, slots=True)
class ImportFailure:
    """An import that raised: the module asked for, and the one whose code it was."""

    module: str
    kind: str
    text: str
    where: str

    @property
    def missing(self) -> bool:
        """Whether the very module that was asked for is not to be found."""
        parts = self.module.split(".")
        names = [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
        return self.kind == "ModuleNotFoundError" and any(
            self.text.startswith(f"No module named {name!r}") for name in names
        )

    @property
    def sentence(self) -> str:
        """The error as Python prints it, and where it comes from."""
        said = f"{self.kind}: {self.text}".removesuffix(": ")
        return said if self.where in ("", self.module) else f"{said} (in {self.where})"


@dataclass(frozen=True, slots=True)
class UseAnswer:
    """The answer of a use; `kind` is the type of its error, if it raised."""

    text: str
    digest: bytes = b""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """Errors, answers and state after all imports of an order.

    `blind` and `exact` name the state of the packages, the first whatever the order of
    dicts; `state` is that state, where the whole was asked for.
    """

    raised: tuple[ImportFailure, ...]
    answers: tuple[UseAnswer, ...]
    blind: bytes
    exact: bytes
    packages: tuple[str, ...]
    loaded: frozenset[str]
    opaque: tuple[str, ...]
    state: Portrait | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """Equal where nothing differs."""
        return self.raised, self.answers, self.blind

    def packed(self) -> bytes:
        """All of it as values; a class might be found under another package's name."""
        state = self.state
        return marshal.dumps(
            (
                tuple((e.module, e.kind, e.text, e.where) for e in self.raised),
                tuple((e.text, e.digest, e.kind) for e in self.answers),
                *(self.blind, self.exact, self.packages),
                *(self.loaded, self.opaque),
                None if state is None else (state.tokens, state.orders),
            )
        )


def unpack(packed: bytes) -> Observation:
    """The observation of packed bytes."""
    values: Any = marshal.loads(packed)  # noqa: S302  # of a child of ours
    raised, answers, *others, state = values
    seen = Observation(
        tuple(ImportFailure(*each) for each in raised),
        tuple(UseAnswer(*each) for each in answers),
        *others,
    )
    return seen if state is None else replace(seen, state=Portrait(*state))


@dataclass(frozen=True, slots=True)
class OrderDifference:
    """One thing that two orders disagree on; of the state, its title is a path."""

    title: str
    was: str
    now: str
    of_state: bool = False


def compare(
    first: Observation, second: Observation, uses: tuple[str, ...]
) -> tuple[OrderDifference, ...]:
    """Everything that differs: errors, answers, then paths of the state.

    Paths are told only where both have their state.
    """
    return tuple(_compared(first, second, uses))


def reordered_dicts(first: Observation, second: Observation) -> tuple[str, ...]:
    """Paths of dicts whose order differs, of states that otherwise are equal."""
    if first.blind != second.blind or first.state is None or second.state is None:
        return ()
    lines = differences(first.state, second.state, MOST_PATHS)
    return tuple(_path(line)[0].removeprefix("order of ") for line in lines)


def _compared(
    first: Observation, second: Observation, uses: tuple[str, ...]
) -> Iterator[OrderDifference]:
    errors = [{each.module: each for each in seen.raised} for seen in (first, second)]
    for module in sorted({*errors[0], *errors[1]}):
        was, now = (each.get(module) for each in errors)
        if was != now:
            yield OrderDifference(
                f"import {module} raises",
                SILENT if was is None else was.sentence,
                SILENT if now is None else now.sentence,
            )
    for use, before, after in zip(uses, first.answers, second.answers, strict=True):
        if before != after:
            yield OrderDifference(f"{use} answers", before.text, after.text)
    if first.blind != second.blind and first.state and second.state:
        yield from _paths(first.state, second.state)


def _paths(first: Portrait, second: Portrait) -> Iterator[OrderDifference]:
    yield from _globals(first, second)
    subclasses: dict[str, tuple[list[str], list[str]]] = {}
    for line in differences(first, second, MOST_PATHS):
        path, rest = _path(line)
        was, _, now = rest.partition(" / ")
        if path.startswith("order of "):
            continue
        owner, listed, _ = path.partition(SUBCLASSES)
        if listed:
            both = subclasses.setdefault(owner, ([], []))
            both[0].append(was)
            both[1].append(now)
        else:
            yield OrderDifference(path, was, now, of_state=True)
    for owner, (before, after) in subclasses.items():
        if sorted(before) != sorted(after):
            title = f"{owner}.__subclasses__()"
            yield OrderDifference(
                title, ", ".join(before), ", ".join(after), of_state=True
            )


def _globals(first: Portrait, second: Portrait) -> Iterator[OrderDifference]:
    """Globals that only one has, of modules that both have."""
    one, other = first.records(), second.records()
    modules = {name for name, _ in one.roots} & {name for name, _ in other.roots}
    for label in sorted(one.globals.keys() ^ other.globals.keys()):
        if label.rpartition(".")[0] in modules:
            was = one.text(one.globals[label]) if label in one.globals else "<absent>"
            now = other.text(other.globals[label]) if label in other.globals else ""
            yield OrderDifference(label, was, now or "<absent>", of_state=True)


def _path(line: str) -> tuple[str, str]:
    """The path that a line of `differences` begins with, and what follows it.

    A colon between brackets or quotation marks belongs to a key.
    """
    depth, quote = 0, ""
    for place, character in enumerate(line):
        if quote:
            quote = "" if character == quote and line[place - 1] != "\\" else quote
        elif character in "'\"":
            quote = character
        elif character in "[{<":
            depth += 1
        elif character in "]}>":
            depth -= 1
        elif character == ":" and not depth and line[place + 1 : place + 2] == " ":
            return line[:place], line[place + 2 :]
    return line, ""


# Paths that are not compared; the form leaves out `__spec__`, `__loader__`,
# `__cached__`, `__file__`, `__doc__` and `__builtins__` by itself, as the import
# system's.  The order of `sys.modules` is of no package.
LEFT_OUT: Mapping[str, str] = {
    "*.__warningregistry__": "which warnings were shown already",
    "*.__path__": "folders, which the import system works out again",
    "*._getitem.<cached>.cached": "what of `typing` was subscripted before",
}

# Tools that an environment may import at any time.
_NEVER = frozenset(
    {"__main__", "__mp_main__", "_distutils_hack", "_virtualenv", "coverage"}
)

# What the form tells by name, or by value.
_STATELESS = (
    *(type, ModuleType, FunctionType, BuiltinFunctionType),
    *(int, float, str, bytes, tuple, type(None)),
)

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}")


def observe(
    request: Mapping[str, Any],
    start: frozenset[str],
    modules: Mapping[str, Any],
    names: dict[str, Any],
    raised: tuple[tuple[str, str, str, str], ...],
) -> bytes:
    """A `Observation` of all that the request asks for, packed.

    `start` names what was there before, `modules` is what is there after the imports,
    and `names` are what they bound; uses may name the other packages as well.
    """
    packages = _packages(request, start, modules)
    roots = {
        name: module
        for name, module in sorted(modules.items())
        if name.partition(".")[0] in packages and isinstance(module, ModuleType)
    }
    left_out = (*LEFT_OUT, *_borrowed(roots, modules))
    scope = FollowedScope(frozenset(packages), left_out)
    heap = Heap(scope)
    form = heap.form(roots)
    state = heap.portrait(roots) if request["whole"] else None
    opaque = tuple(each.text for each in heap.caveats() if each.kind == "opaque")
    for name in packages & modules.keys() - names.keys():
        names[name] = modules[name]
    seen = Observation(
        raised=tuple(_failure(*each) for each in raised),
        answers=tuple(_use_answer(use, dict(names), scope) for use in request["uses"]),
        blind=form.blind,
        exact=form.exact,
        packages=tuple(sorted(packages)),
        loaded=frozenset(name for name in request["watch"] if name in modules),
        opaque=opaque,
        state=state,
    )
    return seen.packed()


def _packages(
    request: Mapping[str, Any], start: frozenset[str], modules: Mapping[str, Any]
) -> set[str]:
    """The top-level names of all that is looked at."""
    asked = {
        name.partition(".")[0] for name in (*request["modules"], *request["watch"])
    }
    brought = {name.partition(".")[0] for name in modules.keys() - start}
    brought = {name for name in brought if not name.startswith("_sysconfigdata")}
    return asked | (brought - sys.stdlib_module_names - _NEVER)


def _borrowed(roots: Mapping[str, ModuleType], modules: Mapping[str, Any]) -> list[str]:
    """Globals that are objects of the standard library: `from os import environ`.

    Their state is that module's, which is compared where it is watched.
    """
    owned = {
        id(value)
        for name, module in modules.items()
        if name not in roots and name.partition(".")[0] in sys.stdlib_module_names
        for value in getattr(module, "__dict__", {}).values()
        if _is_of_python(value)
    }
    return [
        f"{module}.{name}"
        for module, values in roots.items()
        for name, value in vars(values).items()
        if id(value) in owned and _is_of_python(value)
    ]


def _is_of_python(value: object) -> bool:
    """Whether it is an instance with a state, of a class of Python's own."""
    kind = type(value)
    if isinstance(value, _STATELESS):
        return False
    return kind.__module__.partition(".")[0] in sys.stdlib_module_names | {"builtins"}


def _failure(module: str, kind: str, text: str, where: str) -> ImportFailure:
    return ImportFailure(module, kind, _ADDRESS.sub("0x...", text), where)


def _use_answer(use: str, names: dict[str, Any], scope: FollowedScope) -> UseAnswer:
    try:
        answer = eval(use, names)  # noqa: S307  # asked for
    except BaseException as error:
        kind = type(error).__name__
        text = _ADDRESS.sub("0x...", f"{kind}: {error}".removesuffix(": "))
        return UseAnswer(text, kind=kind)
    value = canonical(answer, scope=scope)
    if isinstance(value, ValueSnapshot):
        return UseAnswer(_ADDRESS.sub("0x...", value.text), value.digest)
    return UseAnswer(repr(value))
