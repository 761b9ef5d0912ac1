"""Observations as titled texts, and the first difference of two.

Our own systems return (title, text) pairs; others return what they like (a string, a
named tuple, any hashable value), and everything below reads them through `sections`.

Rules:
- only `readable_lines` cuts, where texts are printed: what no person would read to its
  end, and never the place where two lines begin to differ;
- a law is shown by its own words where it has some (`str`), else by its value.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from itertools import takewhile
from pprint import pformat
from typing import TypeAlias

Section: TypeAlias = tuple[str, str]

# Lines that surround a difference; enough to see the operator's or the table's head.
CONTEXT = 2

# A longer diff does not explain more; the rest is in the replay, and in report.json.
MOST_LINES = 40

# Five lines of a terminal: of a longer line so much is shown.
MOST_CHARACTERS = 400

# Values that are not text are laid out for a terminal of 80 columns.
WIDTH = 76


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first section that differs, and its unified diff, headers left out."""

    title: str
    lines: tuple[str, ...]


def sections(value: Hashable) -> tuple[Section, ...]:
    """The value as (title, text) pairs; the title is empty where there is none."""
    if isinstance(value, tuple) and len(value) == 2 and value[0] == "raised":
        # What an exception inside of a use told of itself.
        return sections(value[1])
    if _is_pairs(value):
        return value  # type: ignore[return-value]  # checked on the line above
    names = getattr(value, "_fields", None)
    if isinstance(value, tuple) and isinstance(names, tuple):
        return tuple(
            (str(name), _text(part)) for name, part in zip(names, value, strict=True)
        )
    return (("", _text(value)),)


def whole_text(value: Hashable) -> str:
    """The value as one text, each title before its text."""
    return "\n".join(_titled(sections(value)))


def _titled(pairs: Iterable[Section]) -> list[str]:
    return [f"{title}: {text}" if title else text for title, text in pairs]


def divergence(expected: Hashable, found: Hashable) -> Divergence | None:
    """The first section in which two observations differ; None where texts agree."""
    before, after = sections(expected), sections(found)
    if before == after and expected != found:
        # A text and a value that reads like it are told apart by their quotes.
        before, after = sections(_quoted(expected)), sections(_quoted(found))
    if not {title for title, _ in before} & {title for title, _ in after}:
        # An answer on one side and an error on the other have no text in common.
        return Divergence("", (*_marked("-", before), *_marked("+", after)))
    titles = [title for title, _ in before]
    titles += [title for title, _ in after if title not in titles]
    old, new = dict(before), dict(after)
    for title in titles:
        was, now = old.get(title, ""), new.get(title, "")
        if was != now:
            return Divergence(title, difference(was, now))
    return None


def _quoted(value: Hashable) -> Hashable:
    return repr(value) if isinstance(value, str) else value


def _marked(sign: str, texts: tuple[Section, ...]) -> list[str]:
    """Every line of the texts, all of them on one side."""
    return [
        f"{sign}{line}" for text in _titled(texts) for line in text.splitlines() or [""]
    ]


def difference(was: str, now: str) -> tuple[str, ...]:
    """The unified diff of two texts, file headers left out."""
    lines = unified_diff(
        was.splitlines(), now.splitlines(), lineterm="", n=CONTEXT, fromfile="a"
    )
    return tuple(lines)[2:]


def readable_lines(lines: Sequence[str], most: int = MOST_LINES) -> list[str]:
    """The first lines, of a diff or another text, each of a length that can be read.

    Of a very long one that part is shown where it begins to differ from the line that
    stands for it on the other side, or its beginning.  What is left out is counted.
    """
    shown = list(lines[:most])
    places = _places(shown)
    shown = [_cut_line(line, places.get(at, 0)) for at, line in enumerate(shown)]
    rest = len(lines) - len(shown)
    return [*shown, f"... and {rest:,} more lines"] if rest else shown


def _places(lines: Sequence[str]) -> dict[int, int]:
    """The column at which long lines of a diff begin to differ, by their number."""
    places: dict[int, int] = {}
    removed: list[int] = []
    for at, line in enumerate(lines):
        if line.startswith("+") and removed:
            other = removed.pop(0)
            if max(len(line), len(lines[other])) > MOST_CHARACTERS:
                # The first of all is the sign.
                same = takewhile(
                    lambda two: two[0] == two[1],
                    zip(line[1:], lines[other][1:], strict=False),
                )
                places[at] = places[other] = 1 + sum(1 for _ in same)
        elif line.startswith("-"):
            if at and not lines[at - 1].startswith("-"):
                removed = []
            removed.append(at)
        else:
            removed = []
    return places


def _cut_line(line: str, place: int) -> str:
    """The part of a line around a place of it; all of it where it is not long."""
    if len(line) <= MOST_CHARACTERS:
        return line
    begin = min(place - MOST_CHARACTERS // 2, len(line) - MOST_CHARACTERS)
    if begin <= 1:
        begin, head = 0, ""
    else:
        head = f"{line[0]}({begin - 1:,} characters) ..."
    rest = len(line) - begin - MOST_CHARACTERS
    tail = f"... and {rest:,} more characters" if rest else ""
    return head + line[begin : begin + MOST_CHARACTERS] + tail


def law_text(law: Hashable) -> str:
    """One broken law as text."""
    if _is_pairs(law):
        pairs: tuple[Section, ...] = law  # type: ignore[assignment]  # as checked
        return "\n".join(f"{name}: {text}" for name, text in pairs)
    if isinstance(law, tuple) and all(isinstance(part, str) for part in law):
        return ": ".join(law)
    return str(law)


def _is_pairs(value: object) -> bool:
    return (
        isinstance(value, tuple)
        and bool(value)
        and all(
            isinstance(part, tuple)
            and len(part) == 2
            and isinstance(part[0], str)
            and isinstance(part[1], str)
            for part in value
        )
    )


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, tuple) and _has_own_text(value):
        return str(value)
    parts = value if isinstance(value, tuple) else ()
    if parts and all(_has_own_text(part) for part in parts):
        return "".join(f"{part}\n" for part in parts)
    return pformat(value, width=WIDTH)


def _has_own_text(value: object) -> bool:
    """Whether the value's class says how it reads, and is not text itself."""
    known = (object.__str__, tuple.__str__, str.__str__)
    return type(value).__str__ not in known
