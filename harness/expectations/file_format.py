"""The text of an expect file: `render` writes it, `parse` reads it.

    everyorder expect file, format 3
    scenario: scenarios/test_composites/two_kernels
    steps:
      1  impl("demo::add", cpu_add, "CPU")
    uses:                                          absent if there are none
      1  call("demo::add", "cpu")
    pinned: the newest kernel wins                 absent if nothing is pinned
    normalisers:                                   absent if there are none
      1  mask_ids, version 2
    entries: 2 states, 0 failing transitions

    == {} ==
    state: nothing

    == {1} ==
    same as {}

Rules:
- a document has exactly one text, and `parse` accepts no other: it renders the parsed
  document again and compares, so that no content can be lost;
- a body that an earlier section has in full is a reference to the first such section,
  and so is a part of at least `LEAST_REFERRED` lines, `state same as {1}`;
- an empty line precedes each heading, and occurs nowhere else;
- every fault of a file, which may have been edited, merged or cut off, is a
  `DamagedExpectFile` with the line; nothing is skipped or repaired, and counts are
  compared with the header, which detects a truncated file.

Format 2 had two lines in place of `entries`, which changed with the engine: `strategy:
graph` and `explored: 2 states, 2 transitions, 0 failing transitions`. It is still read,
as strictly; `Document.is_old` then asks the caller to have the file rewritten. A file
of format 1 is refused, by a sentence that says how to rewrite it.

When the layout changes, increment `FORMAT`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import NoReturn, TypeAlias

from everyorder.harness.base.errors import DamagedExpectFile
from everyorder.harness.expectations.document import (
    FORMAT,
    MARKS,
    SAME,
    Body,
    Digest,
    Document,
    Entry,
    Key,
    Pair,
    body_of,
    counted,
    escape,
    key_of,
    lines_of,
    references_to,
    unescape,
    written_lines,
)

TITLE = "everyorder expect file, format "
# The title of observations that wait for a decision.
SAVED_TITLE = "everyorder observations, not accepted yet, format "
# The older formats: those that are read, and those that are not.
READ = 2
REFUSED = (1,)

# Header fields that are lists of numbered lines; the others are one line each.
NUMBERED = ("steps", "uses", "normalisers")
# Fields that are omitted if they are empty.
OPTIONAL = ("uses", "pinned", "normalisers")


def render(document: Document, *, saved: bool = False) -> str:
    """Return the text of the expect file, with a newline at its end.

    With `saved`, that of observations which nobody has accepted.
    """
    title = SAVED_TITLE if saved else TITLE
    return _text(document, f"{title}{FORMAT}", (f"entries: {document.size}",))


def _text(document: Document, title: str, counts: Sequence[str]) -> str:
    """Return the text with this title, and these lines at the end of the header."""
    lines = [title, *_header(document), *counts, *sections(document)]
    return "\n".join(lines) + "\n"


def _header(document: Document) -> Iterator[str]:
    for name, values in document.header().items():
        if name not in NUMBERED:
            yield from (f"{name}: {escape(value)}" for value in values)
        elif values or name not in OPTIONAL:
            yield f"{name}:"
            width = len(str(len(values)))
            for number, value in enumerate(values, 1):
                yield f"  {number:>{width}}  {escape(value)}"


def sections(document: Document) -> Iterator[str]:
    """Yield the lines of all entries, each section after an empty line."""
    ordered = document.ordered
    earlier: dict[Body, str] = {}
    parts: dict[Pair, list[str]] = {}
    for key, body in document.entries:
        name = key.text(ordered=ordered)
        yield ""
        yield f"== {name} =="
        if isinstance(body, Digest):
            yield from lines_of(body)
        elif body in earlier:
            yield SAME + earlier[body]
        else:
            yield from written_lines(body, name, parts)
            earlier[body] = name


_HEADING = re.compile(r"== (.+) ==")
_SIZE = re.compile(r"\d+ states?, \d+ failing transitions?", re.ASCII)
_EXPLORED = re.compile(
    r"\d+ states?, (\d{1,18}) transitions?, \d+ failing transitions?", re.ASCII
)
# The fields before the counts.
FIELDS = ("scenario", "steps", "uses", "pinned", "normalisers")
Counts: TypeAlias = Callable[[Document], tuple[str, ...]]


def parse(text: str, source: str = "expect file", *, saved: bool = False) -> Document:
    """Return the document that renders as `text`.

    `source` is the file name for the error.

    Raises:
        DamagedExpectFile: no document renders as `text`.
    """
    return _LineCursor(text, source, SAVED_TITLE if saved else TITLE).document()


def parse_sections(
    text: str, source: str, *, ordered: bool, steps: int
) -> tuple[Entry, ...]:
    """Return the entries of a text that has the sections of a file, without a header.

    Raises:
        DamagedExpectFile: no document renders as `text`; line 2 is its first line.
    """
    return _LineCursor(f"\n{text}", source, TITLE).sections(ordered, steps)


class _LineCursor:
    """A cursor over the lines."""

    def __init__(self, text: str, source: str, title: str) -> None:
        self.title = title
        self.text = text
        self.source = source
        self.lines = text.split("\n")
        self.at = 0

    def document(self) -> Document:
        self._check_form()
        version = self._title()
        header = {name: self._field(name) for name in FIELDS}
        pinned = header["pinned"][0] if header["pinned"] else None
        counts = self._counts() if version == FORMAT else self._old_counts()
        last_of_header = self.at - 1
        document = Document(
            scenario=header["scenario"][0],
            steps=header["steps"],
            uses=header["uses"],
            pinned=pinned,
            normalisers=header["normalisers"],
            entries=self._entries(pinned is not None, len(header["steps"])),
            format=version,
        )
        lines = counts(document)
        if lines[-1] != self.lines[last_of_header]:
            self.at = last_of_header
            count = lines[-1].partition(": ")[2]
            self._fail(f"the file holds {count}; it may have been cut off")
        self._check_layout(_text(document, f"{self.title}{version}", lines))
        return document

    def sections(self, ordered: bool, steps: int) -> tuple[Entry, ...]:
        self._check_form()
        entries = self._entries(ordered, steps)
        pinned = "" if ordered else None
        document = Document("", ("",) * steps, (), pinned, entries)
        self._check_layout("\n".join(sections(document)) + "\n")
        return entries

    def _counts(self) -> Counts:
        """Return the last lines of the header as a function of the document."""
        if _SIZE.fullmatch(self._field("entries")[0]) is None:
            self._fail("expected 'N states, N failing transitions'", -1)
        return lambda document: (f"entries: {document.size}",)

    def _old_counts(self) -> Counts:
        strategy = f"strategy: {escape(self._field('strategy')[0])}"
        match = _EXPLORED.fullmatch(self._field("explored")[0])
        if match is None:
            form = "'N states, N transitions, N failing transitions'"
            self._fail(f"expected {form}", -1)
        played = counted(int(match[1]), "transition")
        return lambda document: (
            strategy,
            f"explored: {document.size.replace(', ', f', {played}, ', 1)}",
        )

    def _check_form(self) -> None:
        for index, line in enumerate(self.lines):
            self.at = index
            if line.startswith(MARKS):
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

    def _title(self) -> int:
        """Return the format of the file."""
        line = self._next(f"expected '{self.title}{FORMAT}'")
        versions = {f"{self.title}{version}": version for version in (FORMAT, READ)}
        if line not in versions:
            self._refuse_title(line)
        return versions[line]

    def _refuse_title(self, line: str) -> NoReturn:
        if line.startswith(SAVED_TITLE):
            self._fail(
                "these are observations that `review --save` wrote; accept them with "
                "`everyorder review --saved`, not by renaming the file",
                -1,
            )
        if line in [f"{TITLE}{version}" for version in REFUSED]:
            raise DamagedExpectFile(
                code="OldExpectFile",
                source=self.source,
                line=1,
                reason=f"this is not format {FORMAT}",
                found=line,
            )
        if line.startswith(self.title):
            self._fail(f"only format {FORMAT} is known; was it written later?", -1)
        self._fail(f"expected '{self.title}{FORMAT}'", -1)

    def _field(self, name: str) -> tuple[str, ...]:
        start = f"{name}:" if name in NUMBERED else f"{name}: "
        present = self.at < len(self.lines) and self.lines[self.at].startswith(start)
        if not present and name in OPTIONAL:
            return ()
        line = self._next(f"expected '{start}'")
        if not present or (name in NUMBERED and line != start):
            self._fail(f"expected '{start}'", -1)
        if name not in NUMBERED:
            return (self._unescaped(line.removeprefix(start)),)
        values: list[str] = []
        while self.at < len(self.lines) and self.lines[self.at].startswith("  "):
            number, _, value = self._next("").strip(" ").partition("  ")
            if number != str(len(values) + 1):
                self._fail(f"expected number {len(values) + 1}", -1)
            values.append(self._unescaped(value))
        return tuple(values)

    def _entries(self, ordered: bool, steps: int) -> tuple[Entry, ...]:
        entries: list[Entry] = []
        # The bodies and parts of earlier sections, by the line that refers to each.
        bodies: dict[str, Body] = {}
        parts: dict[str, Pair] = {}
        last: Key | None = None
        while self.at < len(self.lines):
            if self._next("expected an empty line before a heading"):
                self._fail("expected an empty line before a heading", -1)
            last = self._heading(ordered, steps, last)
            body = self._body(bodies, parts)
            entries.append((last, body))
            if not isinstance(body, Digest):
                name = last.text(ordered=ordered)
                bodies[SAME + name] = body
                references = references_to(body, name)
                parts.update((line, part) for part, line in references.items())
        return tuple(entries)

    def _heading(self, ordered: bool, steps: int, last: Key | None) -> Key:
        reason = "expected a heading, '== {1 2} ==' or '== {1} + 2 fails =='"
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

    def _body(self, bodies: dict[str, Body], parts: dict[str, Pair]) -> Body:
        start = self.at
        while self.at < len(self.lines) and self.lines[self.at]:
            self.at += 1
        lines = self.lines[start : self.at]
        if len(lines) == 1 and lines[0] in bodies:
            return bodies[lines[0]]
        try:
            return body_of(lines, parts)
        except ValueError as error:
            reason, index = error.args
            self.at = start + index
            self._fail(reason)

    def _check_layout(self, written: str) -> None:
        if written == self.text:
            return
        pairs = zip_longest(written.split("\n"), self.text.split("\n"), fillvalue="")
        self.at = next(at for at, (old, new) in enumerate(pairs) if old != new)
        right = written.split("\n")[self.at :]
        self._fail(f"expected {right[0]!r}" if right else "unexpected line")

    def _next(self, expectation: str) -> str:
        if self.at >= len(self.lines):
            self._fail(f"the file ends; {expectation}")
        self.at += 1
        return self.lines[self.at - 1]

    def _unescaped(self, written: str) -> str:
        try:
            return unescape(written)
        except ValueError as error:
            self._fail(str(error), -1)

    def _fail(self, reason: str, back: int = 0) -> NoReturn:
        at = self.at + back
        line = self.lines[at] if at < len(self.lines) else ""
        raise DamagedExpectFile(
            source=self.source, line=at + 1, reason=reason, found=line
        )
