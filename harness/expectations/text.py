"""The text of an expect file: written, and read.

    everyorder expect file, format 1
    scenario: scenarios/test_composites/two_kernels
    steps:
      1  impl("demo::add", cpu_add, "CPU")
    uses:                                          absent where there are none
      1  call("demo::add", "cpu")
    pinned: the newest kernel wins                 absent where nothing is
    strategy: graph
    guarantee:                                     one line a strategy
      1  graph: ...
    explored: 2 states, 2 transitions, 0 failing transitions

    == {} ==
    state: nothing

    == {1} ==
    same as {}

Rules:
- one document has exactly one text, and `parse` accepts no other: it renders again what
  it has read, so that nothing can be lost;
- a body that an earlier section has in full is a reference to the first such section;
- an empty line stands before each heading and nowhere else;
- somebody may have edited, merged or cut off what is read: whatever is wrong becomes
  one `DamagedExpectFile` with the line; nothing is skipped or repaired, and counts are
  compared with the header, which finds a file that was cut off.

When the layout changes, raise `FORMAT` and teach `parse` to say what to do.
"""

import re
from itertools import zip_longest
from typing import NoReturn

from harness.errors import DamagedExpectFile
from harness.expectations.document import (
    Body,
    Digest,
    Document,
    Entry,
    Key,
    body_of,
    escape,
    key_of,
    lines_of,
    unescape,
)

FORMAT = 1
TITLE = "everyorder expect file, format "
SAME = "same as "

# Header fields that are lists of numbered lines; the others are one line each.
NUMBERED = ("steps", "uses", "guarantee")
# Fields that are left out where there is nothing to say.
OPTIONAL = ("uses", "pinned")


def render(document: Document) -> str:
    """The text of the expect file, with a newline at its end."""
    lines = [f"{TITLE}{FORMAT}"]
    for name, values in document.header().items():
        if name in NUMBERED:
            lines += [f"{name}:"] if values or name not in OPTIONAL else []
            width = len(str(len(values)))
            lines += [
                f"  {number:>{width}}  {escape(value)}"
                for number, value in enumerate(values, 1)
            ]
        else:
            lines += [f"{name}: {escape(value)}" for value in values]
    ordered = document.ordered
    seen: dict[Body, Key] = {}
    for key, body in document.entries:
        lines += ("", f"== {key.text(ordered=ordered)} ==")
        first = key if isinstance(body, Digest) else seen.setdefault(body, key)
        if first is key:
            lines += lines_of(body)
        else:
            lines.append(SAME + first.text(ordered=ordered))
    return "\n".join(lines) + "\n"


_MARKS = ("<<<<<<< ", "=======", ">>>>>>> ", "||||||| ")
_HEADING = re.compile(r"== (.+) ==")
_SIZE = re.compile(
    r"\d+ states?, (\d{1,18}) transitions?, \d+ failing transitions?", re.ASCII
)
_FIELDS = ("scenario", "steps", "uses", "pinned", "strategy", "guarantee", "explored")


def parse(text: str, source: str = "expect file") -> Document:
    """The document that renders as `text`.

    Raises:
        DamagedExpectFile: `text` is not what any document renders as; `source` names
            the file in the error.
    """
    return _Parser(text, source).document()


class _Parser:
    """A cursor over the lines."""

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source
        self.lines = text.split("\n")
        self.at = 0

    def document(self) -> Document:
        self._check_form()
        self._title()
        header = {name: self._field(name) for name in _FIELDS}
        size = header["explored"][0]
        transitions = _SIZE.fullmatch(size)
        if transitions is None:
            self._fail(
                "here belongs 'N states, N transitions, N failing transitions'", -1
            )
        document = Document(
            scenario=header["scenario"][0],
            steps=header["steps"],
            uses=header["uses"],
            pinned=header["pinned"][0] if header["pinned"] else None,
            strategy=header["strategy"][0],
            guarantee=header["guarantee"],
            transitions=int(transitions[1]),
            entries=(),
        )
        counted = self.at - 1
        entries = self._entries(document.ordered, len(document.steps))
        document = Document(
            **{name: getattr(document, name) for name in _GIVEN}, entries=entries
        )
        if document.size != size:
            self.at = counted
            self._fail(f"the file holds {document.size}; it may have been cut off")
        self._check_layout(document)
        return document

    def _check_form(self) -> None:
        for index, line in enumerate(self.lines):
            self.at = index
            if line.startswith(_MARKS):
                self._fail("a merge conflict is not resolved")
            if line.endswith("\r"):
                self._fail(
                    "lines end in a carriage return; keep line ends as they are "
                    "('expect/** -text' in .gitattributes)"
                )
        if self.lines[-1]:
            self._fail("the file does not end in a newline; it may have been cut off")
        self.lines.pop()
        self.at = 0

    def _title(self) -> None:
        line = self._next(f"here belongs '{TITLE}{FORMAT}'")
        if line == f"{TITLE}{FORMAT}":
            return
        if line.startswith(TITLE):
            self._fail(f"only format {FORMAT} is known; was it written later?", -1)
        self._fail(f"here belongs '{TITLE}{FORMAT}'", -1)

    def _field(self, name: str) -> tuple[str, ...]:
        start = f"{name}:" if name in NUMBERED else f"{name}: "
        present = self.at < len(self.lines) and self.lines[self.at].startswith(start)
        if not present and name in OPTIONAL:
            return ()
        line = self._next(f"here belongs '{start}'")
        if not present or (name in NUMBERED and line != start):
            self._fail(f"here belongs '{start}'", -1)
        if name not in NUMBERED:
            return (self._unescaped(line.removeprefix(start)),)
        values: list[str] = []
        while self.at < len(self.lines) and self.lines[self.at].startswith("  "):
            number, _, value = self._next("").strip(" ").partition("  ")
            if number != str(len(values) + 1):
                self._fail(f"here belongs number {len(values) + 1}", -1)
            values.append(self._unescaped(value))
        return tuple(values)

    def _entries(self, ordered: bool, steps: int) -> tuple[Entry, ...]:
        entries: list[Entry] = []
        known: dict[Key, Body] = {}
        last: Key | None = None
        while self.at < len(self.lines):
            if self._next("an empty line belongs before a heading"):
                self._fail("an empty line belongs before a heading", -1)
            last = self._heading(ordered, steps, last)
            known[last] = self._body(known, ordered)
            entries.append((last, known[last]))
        return tuple(entries)

    def _heading(self, ordered: bool, steps: int, last: Key | None) -> Key:
        reason = "here belongs a heading, '== {1 2} ==' or '== {1} + 2 fails =='"
        if ordered:
            reason = reason.replace("{1 2}", "1 then 2")
        match = _HEADING.fullmatch(self._next(reason))
        key = key_of(match[1], ordered=ordered) if match else None
        if key is None:
            self._fail(reason, -1)
        operations = key.state if key.fails is None else (*key.state, key.fails)
        if not all(0 <= operation < steps for operation in operations):
            self._fail(f"the steps are numbered from 1 to {steps}", -1)
        if last is not None and key.rank <= last.rank:
            self._fail(
                f"sections are sorted, and {last.text(ordered=ordered)} is before", -1
            )
        return key

    def _body(self, known: dict[Key, Body], ordered: bool) -> Body:
        start = self.at
        while self.at < len(self.lines) and self.lines[self.at]:
            self.at += 1
        lines = self.lines[start : self.at]
        if len(lines) == 1 and lines[0].startswith(SAME) and ":" not in lines[0]:
            key = key_of(lines[0].removeprefix(SAME), ordered=ordered)
            body = None if key is None else known.get(key)
            if body is None or isinstance(body, Digest):
                self._fail("no section before this one has a body of that name", -1)
            return body
        try:
            return body_of(lines)
        except ValueError as error:
            reason, index = error.args
            self.at = start + index
            self._fail(reason)

    def _check_layout(self, document: Document) -> None:
        written = render(document)
        if written == self.text:
            return
        pairs = zip_longest(written.split("\n"), self.text.split("\n"), fillvalue="")
        self.at = next(at for at, (line, found) in enumerate(pairs) if line != found)
        right = written.split("\n")[self.at :]
        self._fail(f"this is written {right[0]!r}" if right else "nothing belongs here")

    def _next(self, wanted: str) -> str:
        if self.at >= len(self.lines):
            self._fail(f"the file ends, but {wanted}")
        self.at += 1
        return self.lines[self.at - 1]

    def _unescaped(self, written: str) -> str:
        try:
            return unescape(written)
        except ValueError as error:
            self._fail(str(error), -1)

    def _fail(self, reason: str, back: int = 0) -> NoReturn:
        at = self.at + back
        found = self.lines[at] if at < len(self.lines) else ""
        raise DamagedExpectFile(
            source=self.source, line=at + 1, reason=reason, found=found
        )


_GIVEN = ("scenario", "steps", "uses", "pinned", "strategy", "guarantee", "transitions")
