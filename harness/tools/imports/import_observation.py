"""Observations after imports in one order, and the differences of two observations.

An observation is made when all modules of an order are imported: the errors of imports,
the answers of uses, and the state of the packages, path by path. `observe` runs in the
process that imported them, and this file is not imported before they are.

Rules:
- the packages are those of the imported modules, those to watch, and every other one
  that the imports loaded, except the standard library;
- the state is read before any use is evaluated, because a use may change it;
- addresses never show: the state is a canonical form (`harness.state`), and addresses
  in texts of errors are replaced;
- the order of dicts is not compared, nor that of a class's subclasses: the language
  defines that both follow the order in which code runs; a use that reads one shows it;
- a global that one order has and another has not is a difference, even if it is unread.
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

# Text of a side without an error.
SILENT = "nothing"

# Limit on the reported paths of one pair of orders.
MOST_PATHS = 500

SUBCLASSES = ".__subclasses__()["


@dataclass(frozen=True, slots=True)
class ImportFailure:
    """An import that raised: the requested module, and the one whose code raised."""

    module: str
    kind: str
    text: str
    where: str

    @property
    def missing(self) -> bool:
        """Return True if the requested module itself cannot be found."""
        parts = self.module.split(".")
        names = [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
        return self.kind == "ModuleNotFoundError" and any(
            self.text.startswith(f"No module named {name!r}") for name in names
        )

    @property
    def sentence(self) -> str:
        """Return the error as Python prints it, and its module."""
        sentence_start = f"{self.kind}: {self.text}".removesuffix(": ")
        return (
            sentence_start
            if self.where in ("", self.module)
            else f"{sentence_start} (in {self.where})"
        )


@dataclass(frozen=True, slots=True)
class UseAnswer:
    """The answer of a use; `kind` is the type of its error, if it raised."""

    text: str
    digest: bytes = b""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """Errors, answers and state after all imports of an order.

    `blind` and `exact` are digests of the state of the packages, the first independent
    of the order of dicts; `state` is that state, if the whole was requested.
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
        """Return a key that is equal for equal observations."""
        return self.raised, self.answers, self.blind

    def packed(self) -> bytes:
        """Return the fields as marshalled values.

        Pickled classes could clash with those of a user's package.
        """
        state = self.state
        return marshal.dumps(
            (
                tuple((e.module, e.kind, e.text, e.where) for e in self.raised),
                tuple((e.text, e.digest, e.kind) for e in self.answers),
                *(self.blind, self.exact, self.packages),
                *(self.loaded, self.opaque),
                None if state is None else (state.tokens, state.orders, state.variants),
            )
        )


def unpack(packed: bytes) -> Observation:
    """Return the observation of packed bytes."""
    values: Any = marshal.loads(packed)  # noqa: S302  # from our own child
    raised, answers, *others, state = values
    observation = Observation(
        tuple(ImportFailure(*each) for each in raised),
        tuple(UseAnswer(*each) for each in answers),
        *others,
    )
    return (
        observation if state is None else replace(observation, state=Portrait(*state))
    )


@dataclass(frozen=True, slots=True)
class OrderDifference:
    """A difference between two orders; for the state, its title is a path."""

    title: str
    was: str
    now: str
    of_state: bool = False


def compare(
    first: Observation, second: Observation, uses: tuple[str, ...]
) -> tuple[OrderDifference, ...]:
    """Return every difference: errors, answers, then paths of the state.

    Paths are compared only if both have their state.
    """
    return tuple(_compared(first, second, uses))


def reordered_dicts(first: Observation, second: Observation) -> tuple[str, ...]:
    """Return the paths of dicts that differ in order, if all else is equal."""
    if first.blind != second.blind or first.state is None or second.state is None:
        return ()
    lines = differences(first.state, second.state, MOST_PATHS)
    return tuple(_path(line)[0].removeprefix("order of ") for line in lines)


def _compared(
    first: Observation, second: Observation, uses: tuple[str, ...]
) -> Iterator[OrderDifference]:
    errors = [
        {each.module: each for each in observation.raised}
        for observation in (first, second)
    ]
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
    """Yield globals that only one state has, of modules that both have."""
    one, other = first.records(), second.records()
    modules = {name for name, _ in one.roots} & {name for name, _ in other.roots}
    for label in sorted(one.globals.keys() ^ other.globals.keys()):
        if label.rpartition(".")[0] in modules:
            was = one.text(one.globals[label]) if label in one.globals else "<absent>"
            now = other.text(other.globals[label]) if label in other.globals else ""
            yield OrderDifference(label, was, now or "<absent>", of_state=True)


def _path(line: str) -> tuple[str, str]:
    """Return the path at the beginning of a line of `differences`, and the rest.

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


# Paths that are not compared, with reasons. The form itself omits `__spec__`,
# `__loader__`, `__cached__`, `__file__`, `__doc__` and `__builtins__`, which belong to
# the import system. The order of `sys.modules` does not belong to any package.
LEFT_OUT: Mapping[str, str] = {
    "*.__warningregistry__": "which warnings were shown already",
    "*.__path__": "folders, which the import system works out again",
    "*._getitem.<cached>.cached": "what of `typing` was subscripted before",
}

# Tools that an environment may import at any time.
_NEVER = frozenset(
    {"__main__", "__mp_main__", "_distutils_hack", "_virtualenv", "coverage"}
)

# Types whose values the form encodes by name, or by value.
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
    """Return a packed `Observation` of everything that the request asks for.

    `start` are the names of the modules before the imports, `modules` are the modules
    after them, and `names` are the bound names; uses may name the other packages as
    well.
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
    observation = Observation(
        raised=tuple(_failure(*each) for each in raised),
        answers=tuple(_use_answer(use, dict(names), scope) for use in request["uses"]),
        blind=form.blind,
        exact=form.exact,
        packages=tuple(sorted(packages)),
        loaded=frozenset(name for name in request["watch"] if name in modules),
        opaque=opaque,
        state=state,
    )
    return observation.packed()


def _packages(
    request: Mapping[str, Any], start: frozenset[str], modules: Mapping[str, Any]
) -> set[str]:
    """Return the top-level names of all observed modules."""
    requested = {
        name.partition(".")[0] for name in (*request["modules"], *request["watch"])
    }
    brought = {name.partition(".")[0] for name in modules.keys() - start}
    brought = {name for name in brought if not name.startswith("_sysconfigdata")}
    return requested | (brought - sys.stdlib_module_names - _NEVER)


def _borrowed(roots: Mapping[str, ModuleType], modules: Mapping[str, Any]) -> list[str]:
    """Return globals that are objects of the standard library, as `os.environ`.

    Their state belongs to that module, and is compared if the module is watched.
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
    """Return True for an instance with a state, of a class of Python itself."""
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
