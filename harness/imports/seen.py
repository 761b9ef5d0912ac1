"""What is seen after imports in one order, and how two of these differ.

True only here: what is compared: what each import raised, what each use answered, and
the state of the packages, path by path.

Rules:
- the order of dicts is not compared, nor that of a class's subclasses: both follow the
  order in which code runs, by the language; a use that reads one of them shows it;
- a global that one order has and another has not is a difference, whoever reads it.
"""

import marshal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from harness.heap import Portrait, differences

# What a side says that has nothing to say.
SILENT = "nothing"

# Paths that are told of one pair of orders; nobody reads more.
MOST_PATHS = 500

SUBCLASSES = ".__subclasses__()["


@dataclass(frozen=True, slots=True)
class Raised:
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
class Told:
    """What a use answered; `kind` is the type of its error, if it raised."""

    text: str
    digest: bytes = b""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is seen when all modules of an order are imported.

    `blind` and `exact` name the state of the packages, the first whatever the order of
    dicts; `state` is that state, where the whole was asked for.
    """

    raised: tuple[Raised, ...]
    answers: tuple[Told, ...]
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


def unpacked(packed: bytes) -> Seen:
    """What was packed."""
    values: Any = marshal.loads(packed)  # noqa: S302  # of a child of ours
    raised, answers, *others, state = values
    seen = Seen(
        tuple(Raised(*each) for each in raised),
        tuple(Told(*each) for each in answers),
        *others,
    )
    return seen if state is None else replace(seen, state=Portrait(*state))


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that two orders disagree on; of the state, its title is a path."""

    title: str
    was: str
    now: str
    of_state: bool = False


def compare(first: Seen, second: Seen, uses: tuple[str, ...]) -> tuple[Difference, ...]:
    """Everything that differs: errors, answers, then paths of the state.

    Paths are told only where both have their state.
    """
    return tuple(_compared(first, second, uses))


def reordered(first: Seen, second: Seen) -> tuple[str, ...]:
    """Paths of dicts whose order differs, of states that otherwise are equal."""
    if first.blind != second.blind or first.state is None or second.state is None:
        return ()
    lines = differences(first.state, second.state, MOST_PATHS)
    return tuple(_path(line)[0].removeprefix("order of ") for line in lines)


def _compared(first: Seen, second: Seen, uses: tuple[str, ...]) -> Iterator[Difference]:
    errors = [{each.module: each for each in seen.raised} for seen in (first, second)]
    for module in sorted({*errors[0], *errors[1]}):
        was, now = (each.get(module) for each in errors)
        if was != now:
            yield Difference(
                f"import {module} raises",
                SILENT if was is None else was.sentence,
                SILENT if now is None else now.sentence,
            )
    for use, before, after in zip(uses, first.answers, second.answers, strict=True):
        if before != after:
            yield Difference(f"{use} answers", before.text, after.text)
    if first.blind != second.blind and first.state and second.state:
        yield from _paths(first.state, second.state)


def _paths(first: Portrait, second: Portrait) -> Iterator[Difference]:
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
            yield Difference(path, was, now, of_state=True)
    for owner, (before, after) in subclasses.items():
        if sorted(before) != sorted(after):
            title = f"{owner}.__subclasses__()"
            yield Difference(title, ", ".join(before), ", ".join(after), of_state=True)


def _globals(first: Portrait, second: Portrait) -> Iterator[Difference]:
    """Globals that only one has, of modules that both have."""
    one, other = first.records(), second.records()
    modules = {name for name, _ in one.roots} & {name for name, _ in other.roots}
    for label in sorted(one.globals.keys() ^ other.globals.keys()):
        if label.rpartition(".")[0] in modules:
            was = one.text(one.globals[label]) if label in one.globals else "<absent>"
            now = other.text(other.globals[label]) if label in other.globals else ""
            yield Difference(label, was, now or "<absent>", of_state=True)


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
