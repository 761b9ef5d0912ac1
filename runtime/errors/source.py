"""Source texts, and how errors display a place in one.

This module holds the one renderer of source lines with a marker under them, and the one
rule of counting columns.

Rules:
- a span is a half-open range of characters of the text; Python's syntax trees count
  bytes of UTF-8 instead, which `Source.span` converts into characters;
- displayed lines and columns count from 1, columns in characters;
- an excerpt is aligned in a terminal: wide characters fill two columns, combining
  ones none, tabs are repeated in the marker, and unprintable characters are blanks.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Protocol
from unicodedata import category, east_asian_width

Span = tuple[int, int]

# How many lines are shown before and after a marked one; source: upstream.
CONTEXT = 2
# Follows the last marker.
HERE = " <--- HERE"


class SyntaxNode(Protocol):
    """The position of a node of Python's syntax tree."""

    lineno: int
    col_offset: int
    end_lineno: int | None
    end_col_offset: int | None


@dataclass(frozen=True)
class Source:
    """A text, the file that contains it, and the line of the file where it begins.

    Lines end with a line feed, as Python reads them.
    """

    text: str
    file: str = ""
    line: int = 1

    @cached_property
    def _starts(self) -> list[int]:
        """Return the offset of each line, and of the end of the text."""
        lines = self.text.split("\n")
        return [0, *accumulate(len(each) + 1 for each in lines)]

    def span(self, node: SyntaxNode) -> Span:
        """Return the characters of a node of the tree parsed from the file or the text.

        A position outside of the text, which some nodes in f-strings have, is moved
        into it.
        """
        start = self._offset(node.lineno, node.col_offset)
        end_line, end_column = node.end_lineno, node.end_col_offset
        if end_line is None or end_column is None:
            return start, start
        return start, max(start, self._offset(end_line, end_column))

    def _offset(self, lineno: int, column: int) -> int:
        starts = self._starts
        index = min(max(lineno - self.line, 0), len(starts) - 2)
        line = self.text[starts[index] : starts[index + 1] - 1]
        if not line.isascii():
            prefix = line.encode("utf-8", "surrogatepass")[:column]
            column = len(prefix.decode("utf-8", "ignore"))
        return starts[index] + min(column, len(line))

    def place(self, offset: int) -> tuple[int, int]:
        """Return the line in the file and the column of a character, both from 1."""
        from bisect import bisect_right

        index = bisect_right(self._starts, min(offset, len(self.text))) - 1
        return self.line + index, offset - self._starts[index] + 1

    def offset(self, line: int, column: int) -> int:
        """Return the character at a line and a column, clamped to the text."""
        starts = self._starts
        index = min(max(line - self.line, 0), len(starts) - 2)
        return min(starts[index] + max(column - 1, 0), starts[index + 1] - 1)

    def excerpt(self, span: Span) -> str:
        """Return file, line and column, and the lines of the span with markers."""
        start, end = span
        line, column = self.place(start)
        rows = self.text.split("\n")
        first = line - self.line
        last = max(first, self.place(end - 1)[0] - self.line)
        pieces: list[tuple[str, str]] = []
        for row, at in zip(rows[first : last + 1], self._starts[first:], strict=False):
            begin, stop = max(start - at, 0), min(end - at, len(row))
            # Blanks around the marked text are not marked.
            begin = max(begin, len(row) - len(row.lstrip())) if pieces else begin
            stop = max(begin, min(stop, len(row.rstrip())))
            pieces.append((printable(row), underline(row, begin, stop)))
        marked = [place for place, (_, marker) in enumerate(pieces) if marker.strip()]
        if not marked:
            pieces[0] = pieces[0][0], underline(rows[first], column - 1, column - 1, 1)
            marked = [0]
        drawn = [f"  {self.file or '<text>'}:{line}:{column}"]
        drawn += map(printable, rows[max(0, first - CONTEXT) : first])
        for place, (text, marker) in enumerate(pieces):
            drawn.append(text)
            if place in marked:
                drawn.append(f"{marker}{HERE}" if place == marked[-1] else marker)
        drawn += map(printable, rows[last + 1 : last + 1 + CONTEXT])
        return "\n".join(drawn)


# Functions that are being compiled because of a call, innermost first: the name, and
# the place of the call.
Since = tuple[tuple[str, Source, Span], ...]


def with_calls(text: str, since: Since) -> str:
    """Return the text of an error, and the calls that led to compiling the function."""
    lines = [text]
    for name, source, span in since:
        lines.append(f"`{name}` is being compiled since it was called from here:")
        lines.append(source.excerpt(span))
    return "\n".join(lines)


def printable(line: str) -> str:
    """Return the line as a terminal shows it: unprintable characters become blanks."""
    if line.isprintable():
        return line
    return "".join(each if each.isprintable() or each == "\t" else " " for each in line)


def underline(line: str, start: int, stop: int, least: int = 0) -> str:
    """Return a row that marks the characters `start` to `stop` of the printed line.

    At least `least` columns are marked.
    """
    text = printable(line)
    return _row(text[:start], " ") + (_row(text[start:stop], "~") or "~" * least)


def _row(text: str, mark: str) -> str:
    """Return one mark for each column of the characters; keep tabs."""
    return "".join(each if each == "\t" else mark * _columns(each) for each in text)


def _columns(character: str) -> int:
    """Return the number of terminal columns of a printed character."""
    if character.isascii():
        return 1
    if category(character) in ("Mn", "Me"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1
