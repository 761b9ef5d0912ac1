r"""The content of an expect file as data, and the notation of its parts.

Read this to change expectations, or the notation of a key or text; the layout of the
whole file is in `file_format.py`.

A *document* is a header (the meaning of the numbers, the count of entries) and entries:
a *body* for every *key*, which is a state, or a step that fails there. Steps are
counted from 1 in texts, for people, and from 0 in values, as in the engine.

    {}  {1 3}  {1 3} + 2 fails         states distinguished by their active steps
    {}  {3}  3 then 1  3 then 1 + 2 fails     and by the order of activation
    {1 3} + 3 fails                    the undo of a step that is active was refused

A body is titled texts, or their digest; every observation is converted to titled texts.

    title: text                one line, if the text has no newline
    title:                     else a block, each line indented by two spaces
      first line
    digest 0123...             32 hexadecimal digits

In a file, neighbours in a block whose texts are equal are one row, and a part that an
earlier section has in full is a reference to that section:

    calls:
      cpu | cuda: one kernel   for the lines "cpu: one kernel" and "cuda: one kernel"
    state same as {1}

A line is never empty inside a section, never ends in white space and does not contain a
character that an editor, a diff or a terminal displays as another one. All other
printable characters, of any language, are written as they are.

    \\          a backslash               \n   a newline (in one-line texts)
    \xNN \uNNNN \UNNNNNNNN   a character   \e   nothing (an empty text or line)
    \ at the end of the last line of a block   the text ends without a newline

Rules:
- `escape` and `unescape` are inverse, and so are `block` and `unblock`;
- a title begins a line, so its colons are escaped, and every character that could make
  it look like a heading or a line of a block;
- a `|` in a name is escaped where it could be read as the separator of names;
- digests are computed from the lines of the body, and diffs show them, not the rows and
  references of the file: a diff names exactly the names that differ;
- entries are in the order of their keys, each key once: by size, then by steps, the
  failing steps of a state after it;
- above `MOST_IN_FULL` states only the corners (the empty state, single steps, pairs,
  all steps) are stored in full, the others as digests;
- the content does not depend on time, place, the number of processes, or on how the
  scenario was explored: another engine or strategy that observes the same writes the
  same file.

When you add a field to the header, add it to `render`, `parse` and `compare`.
"""

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import TypeAlias

from everyorder.harness.engine.protocol import State
from everyorder.harness.report.verdict import Report
from everyorder.harness.state import ValueSnapshot

EMPTY = "\\e"

# Controls except tab; line and paragraph separators; zero-width and bidirectional marks
# (a diff that lies: Boucher and Anderson, "Trojan Source", 2021); the byte order mark;
# surrogates, which UTF-8 cannot encode; and white space where an editor may strip it.
_SPECIAL = re.compile(
    "[\\\\\x00-\x08\x0a-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff"
    "\ud800-\udfff]|\\s\\Z"
)
_ESCAPED = re.compile(
    r"\\(?:(\\|n|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})|(.?))", re.DOTALL
)
_NAMED = {"\\": "\\", "n": "\n"}


def escape(text: str) -> str:
    """Return a text as part of one line; never empty, never ending in white space."""
    return _SPECIAL.sub(_escaped, text) if text else EMPTY


def unescape(written: str) -> str:
    """Return the text that `escape` wrote.

    Raises:
        ValueError: an unknown escape.
    """
    if "\\" not in written:
        return written
    return "" if written == EMPTY else _ESCAPED.sub(_decoded, written)


def block(text: str) -> list[str]:
    """Return a text of at least one newline as its lines."""
    lines = text.split("\n")
    if not lines[-1]:
        return [escape(line) for line in lines[:-1]]
    return [*(escape(line) for line in lines[:-1]), escape(lines[-1]) + "\\"]


def unblock(lines: Sequence[str]) -> str:
    """Return the text that `block` wrote.

    Raises:
        ValueError: an unknown escape.
    """
    last = lines[-1]
    if (len(last) - len(last.rstrip("\\"))) % 2:
        return "\n".join(map(unescape, [*lines[:-1], last[:-1]]))
    return "\n".join(map(unescape, lines)) + "\n"


def hexadecimal(character: str) -> str:
    """Return a character by its number, in the shortest of the three forms."""
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    if character in "\\\n":
        return "\\\\" if character == "\\" else "\\n"
    return hexadecimal(character)


def _decoded(match: re.Match[str]) -> str:
    escape_code, unknown = match.groups()
    if escape_code is None:
        raise ValueError(f"'\\{unknown}' is not an escape of an expect file")
    return _NAMED.get(escape_code) or chr(int(escape_code[1:], 16))


_SET = re.compile(r"\{((?:\d+(?: \d+)*)?)\}(?: \+ (\d+) fails)?", re.ASCII)
_ORDER = re.compile(r"(\d+(?: then \d+)+)(?: \+ (\d+) fails)?", re.ASCII)

# Scenarios never have a million steps, and `int` refuses texts of very many digits.
_MOST_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Key:
    """A state, or the transition of a step that fails there."""

    state: State
    fails: int | None = None

    @property
    def rank(self) -> tuple[int, State, int]:
        """Return the sort key of the key."""
        return len(self.state), self.state, -1 if self.fails is None else self.fails

    def text(self, *, ordered: bool) -> str:
        """Return the key as it is written in a heading."""
        numbers = [str(step + 1) for step in self.state]
        if ordered and len(numbers) > 1:
            name = " then ".join(numbers)
        else:
            name = "{" + " ".join(numbers) + "}"
        return name if self.fails is None else f"{name} + {self.fails + 1} fails"

    def is_corner(self, steps: int) -> bool:
        """Return True if none, one, two or all of the steps are active."""
        return len(self.state) <= 2 or self.state == tuple(range(steps))


def key_of(text: str, *, ordered: bool) -> Key | None:
    """Return the key with this text, or None if the text is not a key."""
    match = _SET.fullmatch(text)
    numbers = match[1].split() if match else []
    if match is None or (ordered and len(numbers) > 1):
        match = _ORDER.fullmatch(text) if ordered else None
        if match is None:
            return None
        numbers = match[1].split(" then ")
    failing = [] if match[2] is None else [match[2]]
    if any(len(number) > _MOST_DIGITS for number in numbers + failing):
        return None
    state = tuple(int(number) - 1 for number in numbers)
    key = Key(state, int(failing[0]) - 1 if failing else None)
    sound = len(set(state)) == len(state) and (ordered or sorted(state) == list(state))
    return key if sound and key.text(ordered=ordered) == text else None


Pair: TypeAlias = tuple[str, str]
Pairs: TypeAlias = tuple[Pair, ...]

INDENT = "  "
DIGEST = "digest "
SAME = "same as "

# A line of a block with a name, which does not begin or end with a colon, so that the
# first `: ` of a row ends its last name: the name and the text.
_ROW = re.compile(INDENT + r"([^\s:].*?)(?<!:)(: .+)")
# Separates the names of a row; a `|` in a name is escaped if it looks like it.
NAMES = " | "
_AMBIGUOUS = re.compile(r"(?<![^ ])\|(?![^ ])")
_ESCAPED_PIPE = r"\\x7c"
# The line of a digest, also of a malformed one.
_DIGEST = re.compile(rf"{DIGEST}(?!.*{SAME})[^:]*")

# The names of a row end within these columns, so that the text is seen; more names
# continue in a second row.
MOST_COLUMNS = 88

# A shorter part is easier to read where it is than at another section.
LEAST_REFERRED = 4

# 128 bits: two of 2^20 bodies collide with a probability below 2e-27.
DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class Digest:
    """The digest of a body, in hexadecimal digits."""

    digits: str


Body: TypeAlias = Pairs | Digest


def pairs_of(observation: Hashable) -> Pairs:
    """Return an observation as titled texts.

    Pairs have the texts of their values, all other values the title "observation".
    """
    if isinstance(observation, tuple) and all(map(_is_pair, observation)):
        return tuple((title, str(value)) for title, value in observation)
    text = observation if isinstance(observation, str) else repr(observation)
    return (("observation", text),)


def digest_of(body: Body) -> Digest:
    """Return the digest of a body; a digest is returned as it is."""
    if isinstance(body, Digest):
        return body
    text = "\n".join(lines_of(body))
    return Digest(blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest())


def same(one: Body, other: Body) -> bool:
    """Return True if two bodies agree; a digest is compared with the other's digest."""
    if isinstance(one, Digest) is isinstance(other, Digest):
        return one == other
    return digest_of(one) == digest_of(other)


def lines_of(body: Body) -> list[str]:
    """Return the lines of a body."""
    if isinstance(body, Digest):
        return [DIGEST + body.digits]
    lines: list[str] = []
    for title, text in body:
        if "\n" in text:
            lines.append(f"{_head(title)}:")
            lines += [INDENT + line for line in block(text)]
        else:
            lines.append(f"{_head(title)}: {escape(text)}")
    return lines


def written_lines(
    body: Pairs, section: str, earlier: dict[Pair, list[str]]
) -> list[str]:
    """Return the lines of a section's body in a file.

    `earlier` has the lines of parts that equal one of an earlier section, and gets
    those of the parts of this one.
    """
    new = {pair: _rows(lines_of((pair,))) for pair in body if pair not in earlier}
    lines = [line for pair in body for line in earlier.get(pair) or new[pair]]
    references = references_to(body, section) if new else {}
    for pair, rows in new.items():
        is_long = len(rows) >= LEAST_REFERRED and pair in references
        earlier[pair] = [references[pair]] if is_long else rows
    return lines


def references_to(body: Pairs, section: str) -> dict[Pair, str]:
    """Return the line that refers to each part of a section, by part.

    A line names a title, so only the first part with each title has one.
    """
    parts = {title: (title, text) for title, text in reversed(body)}
    return {part: f"{_head(title)} {SAME}{section}" for title, part in parts.items()}


def _rows(lines: Iterable[str]) -> list[str]:
    """Return the lines with neighbours in a block that have equal texts as one row."""
    rows: list[str] = []
    last = ""
    for line in lines:
        match = _ROW.fullmatch(line)
        if match is None:
            rows.append(line)
            last = ""
            continue
        name, text = match.groups()
        if "|" in name:
            name = _AMBIGUOUS.sub(_ESCAPED_PIPE, name)
        names = rows[-1].removesuffix(text) + NAMES + name if text == last else ""
        if names and len(names) <= MOST_COLUMNS:
            rows[-1] = names + text
        else:
            rows.append(INDENT + name + text)
        last = text
    return rows


def _unjoined(row: str) -> list[str]:
    """Return the lines that `_rows` joined to this row."""
    match = _ROW.fullmatch(row) if NAMES in row else None
    if match is None:
        return [row]
    return [INDENT + name + match[2] for name in match[1].split(NAMES)]


def body_of(lines: Sequence[str], parts: Mapping[str, Pair]) -> Body:
    """Return the body that `written_lines` wrote; `parts` has those of references.

    Raises:
        ValueError: the lines are malformed; the arguments are the reason and the index
            of the line.
    """
    if len(lines) == 1 and _DIGEST.fullmatch(lines[0]):
        digits = lines[0].removeprefix(DIGEST)
        if len(digits) != 2 * DIGEST_BYTES or digits.strip("0123456789abcdef"):
            raise ValueError(f"a digest has {2 * DIGEST_BYTES} hexadecimal digits", 0)
        return Digest(digits)
    pairs: list[tuple[str, str]] = []
    at = 0
    while at < len(lines):
        if lines[at] in parts:
            pairs.append(parts[lines[at]])
            at += 1
            continue
        title, colon, rest = lines[at].partition(":")
        end = at + 1
        while end < len(lines) and lines[end].startswith(INDENT):
            end += 1
        try:
            if not colon and SAME in title:
                raise ValueError("no section before this one has this body or part")
            if not colon or title[:1].isspace() or (rest and rest[0] != " "):
                raise ValueError("expected 'title:' or 'title: text'")
            if rest and end > at + 1:
                at, end = at + 1, end
                raise ValueError("a text on the line of its title has no further lines")
            if not rest and end == at + 1:
                raise ValueError("the text under this title is missing")
            text = (
                unescape(rest[1:])
                if rest
                else unblock(
                    [
                        line.removeprefix(INDENT)
                        for row in lines[at + 1 : end]
                        for line in _unjoined(row)
                    ]
                )
            )
            pairs.append((unescape(title), text))
        except ValueError as error:
            raise ValueError(str(error), at) from None
        at = end
    return tuple(pairs)


def _is_pair(part: object) -> bool:
    return (
        isinstance(part, tuple)
        and len(part) == 2
        and isinstance(part[0], str)
        and isinstance(part[1], (str, ValueSnapshot))
    )


# The beginnings of lines by which a version control system marks a conflict.
MARKS = ("<<<<<<< ", "=======", ">>>>>>> ", "||||||| ")


# The titles of a file are few, and each occurs in many sections.
@lru_cache(maxsize=256)
def _head(title: str) -> str:
    written = escape(title).replace(":", hexadecimal(":"))
    # A reference writes a space behind the title, which makes `<<<<<<<` a mark.
    is_mark = f"{written} ".startswith(MARKS)
    if written[0].isspace() or written[0] == "=" or is_mark:
        return hexadecimal(written[0]) + written[1:]
    return written


# Eight steps: a person can still read their 256 states of some ten lines each.
MOST_IN_FULL = 256

Entry: TypeAlias = tuple[Key, Body]

# The format of the files that are written; `file_format` reads the one before, too.
FORMAT = 3


@dataclass(frozen=True, slots=True)
class Document:
    """The expectations of one scenario; `format` is that of the file it was read from.

    Two documents are equal if they expect the same, whatever their formats.
    """

    scenario: str
    steps: tuple[str, ...]
    uses: tuple[str, ...]
    pinned: str | None
    entries: tuple[Entry, ...]
    # The functions that the texts went through, with their versions.
    normalisers: tuple[str, ...] = ()
    format: int = field(default=FORMAT, compare=False)

    @property
    def is_old(self) -> bool:
        """Return True if its file has an older format and should be rewritten."""
        return self.format != FORMAT

    @property
    def ordered(self) -> bool:
        """Return True if states are distinguished by the order of activation."""
        return self.pinned is not None

    @property
    def states(self) -> int:
        """Return the number of states."""
        return sum(key.fails is None for key, _ in self.entries)

    @property
    def failing(self) -> int:
        """Return the number of failing transitions."""
        return len(self.entries) - self.states

    @property
    def size(self) -> str:
        """Return the number of entries of each kind, as one line."""
        return (
            f"{counted(self.states, 'state')}, "
            f"{counted(self.failing, 'failing transition')}"
        )

    def header(self) -> dict[str, tuple[str, ...]]:
        """Return the header without the counts, field by field, as texts."""
        return {
            "scenario": (self.scenario,),
            "steps": self.steps,
            "uses": self.uses,
            "pinned": () if self.pinned is None else (self.pinned,),
            "normalisers": self.normalisers,
        }


def document_of(report: Report) -> Document:
    """Return the document of a report."""
    full = len(report.exploration.states) <= MOST_IN_FULL
    entries = [
        (key, body if full or key.is_corner(len(report.steps)) else digest_of(body))
        for key, body in _bodies(report)
    ]
    return Document(
        scenario=report.scenario,
        steps=report.steps,
        uses=report.uses,
        pinned=report.pinned,
        normalisers=report.normalisers,
        entries=tuple(sorted(entries, key=lambda entry: entry[0].rank)),
    )


def _bodies(report: Report) -> Iterator[Entry]:
    for state, observation in report.exploration.states.items():
        yield Key(state), pairs_of(observation)
    exploration = report.exploration
    # A step fails at a state in which it is not active; if it is, its undo was refused.
    for refused in (exploration.failures, exploration.refusals):
        for (state, step), failure in refused.items():
            yield Key(state, step), pairs_of(failure)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
