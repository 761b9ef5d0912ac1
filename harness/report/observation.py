"""Observations as titled texts, and the first difference of two.

The systems of this package return (title, text) pairs; other systems return any
hashable value (a string, a named tuple), and everything below reads them through
`sections`.

Rules:
- only `readable_lines` cuts text, when it is printed: it cuts unreadably long lines,
  never the place where two lines begin to differ;
- a law is shown by its `str`, if its class defines one, else by its value.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from itertools import takewhile
from pprint import pformat
from typing import TypeAlias

Section: TypeAlias = tuple[str, str]

# Context lines of a diff; enough to show the head of the operator or table.
CONTEXT = 2

# A longer diff does not explain more; the rest is in the replay, and in report.json.
MOST_LINES = 40

# Five lines of a terminal: longer lines are cut to this length.
MOST_CHARACTERS = 400

# Values that are not text are formatted for a terminal of 80 columns.
WIDTH = 76


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first section that differs, and its unified diff without headers."""

    title: str
    lines: tuple[str, ...]


def sections(value: Hashable) -> tuple[Section, ...]:
    """Return the value as (title, text) pairs; the default title is empty."""
    if isinstance(value, tuple) and len(value) == 2 and value[0] == "raised":
        # The second part holds the fields of the exception that a use raised.
        return sections(value[1])
    if _is_pairs(value):
        pairs: Iterable[tuple[str, object]] = value  # type: ignore[assignment]
        return tuple((title, _text(part)) for title, part in pairs)
    names = getattr(value, "_fields", None)
    if isinstance(value, tuple) and isinstance(names, tuple):
        return tuple(
            (str(name), _text(part)) for name, part in zip(names, value, strict=True)
        )
    return (("", _text(value)),)


def visible(text: str) -> str:
    """Return a text without characters that a terminal obeys or does not show.

    Control and bidirectional characters, and halves of surrogate pairs, are written as
    escapes; line breaks stay.
    """
    if text.replace("\n", "").isprintable():
        return text
    return "".join(
        each
        if each == "\n" or each.isprintable()
        else each.encode("unicode_escape", "surrogatepass").decode("ascii")
        for each in text
    )


def error_fields(value: Hashable) -> Hashable:
    """Return the fields of the error that a use or a look reports, else the value."""
    if isinstance(value, tuple) and len(value) == 2 and value[0] == "raised":
        fields: Hashable = value[1]
        return fields
    return value


def error_text(fields: Hashable) -> str:
    """Return an error as Python prints it: `ValueError: no such name`."""
    return ": ".join(
        " ".join(text.split()) for _, text in sections(fields)[:2] if text.strip()
    )


def whole_text(value: Hashable) -> str:
    """Return the value as one text, each title before its text."""
    return "\n".join(_titled(sections(value)))


def _titled(pairs: Iterable[Section]) -> list[str]:
    return [f"{title}: {text}" if title else text for title, text in pairs]


def divergence(expected: Hashable, actual: Hashable) -> Divergence | None:
    """Return the first section in which two observations differ, or None."""
    before, after = sections(expected), sections(actual)
    if before == after and expected != actual:
        # Quotes distinguish a text from a value with the same `str`.
        before, after = sections(_quoted(expected)), sections(_quoted(actual))
    if not {title for title, _ in before} & {title for title, _ in after}:
        # An answer on one side and an error on the other do not share any section.
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
    """Return every line of the texts, all of them on one side."""
    return [
        f"{sign}{line}" for text in _titled(texts) for line in text.splitlines() or [""]
    ]


def difference(was: str, now: str) -> tuple[str, ...]:
    """Return the unified diff of two texts without file headers."""
    lines = unified_diff(
        was.splitlines(), now.splitlines(), lineterm="", n=CONTEXT, fromfile="a"
    )
    return tuple(lines)[2:]


def readable_lines(lines: Sequence[str], most: int = MOST_LINES) -> list[str]:
    """Return the first lines of a diff or another text, each cut to a readable length.

    Of a very long line, the part is returned where it begins to differ from its
    counterpart on the other side, or else its beginning. The omitted lines and
    characters are counted.
    """
    excerpt = list(lines[:most])
    places = _places(excerpt)
    excerpt = [_cut_line(line, places.get(at, 0)) for at, line in enumerate(excerpt)]
    rest = len(lines) - len(excerpt)
    return [*excerpt, f"... and {rest:,} more lines"] if rest else excerpt


def _places(lines: Sequence[str]) -> dict[int, int]:
    """Return the column at which long lines of a diff begin to differ, by line."""
    places: dict[int, int] = {}
    removed: list[int] = []
    for at, line in enumerate(lines):
        if line.startswith("+") and removed:
            other = removed.pop(0)
            if max(len(line), len(lines[other])) > MOST_CHARACTERS:
                # The first character is the sign.
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
    """Return the part of a line around a column; a short line is returned whole."""
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
    """Return one broken law as text."""
    if _is_pairs(law):
        return whole_text(law)
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
            and (isinstance(part[1], str) or _has_own_text(part[1]))
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
    """Return True if the value's class defines a `str` and the value is not a text."""
    inherited = (object.__str__, tuple.__str__, str.__str__)
    return type(value).__str__ not in inherited
