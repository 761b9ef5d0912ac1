"""Source texts, and how a place in one is shown.

True only here: the one drawing of source lines with a marker under them, and the
counting of columns.

Rules:
- a span is a half-open range of characters of the text; Python's syntax trees count
  bytes of UTF-8 instead, which `Source.span` turns into characters;
- lines and columns that people read count from 1, columns in characters;
- what is drawn is aligned in a terminal: wide characters take two columns, combining
  ones none, tabs are repeated in the marker, and what cannot be printed is a blank.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Protocol
from unicodedata import category, east_asian_width

Span = tuple[int, int]

# How many lines are shown before and after a marked one; source: upstream.
CONTEXT = 2
# What stands behind the marker.
HERE = " <--- HERE"


class SyntaxNode(Protocol):
    """What a node of Python's syntax tree says of its place."""

    lineno: int
    col_offset: int
    end_lineno: int | None
    end_col_offset: int | None


@dataclass(frozen=True)
class Source:
    """A text, the file that it is from, and the line of the file where it begins.

    Lines end with a line feed, as Python reads them.
    """

    text: str
    file: str = ""
    line: int = 1

    @cached_property
    def _starts(self) -> list[int]:
        """Where each line begins, and where the text ends."""
        lines = self.text.split("\n")
        return [0, *accumulate(len(each) + 1 for each in lines)]

    def span(self, node: SyntaxNode) -> Span:
        """The characters of a node of the tree that was made of the file, or of text.

        A node that says it is elsewhere, as some in f-strings do, is moved to the text.
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
        """The line in the file and the column of a character."""
        from bisect import bisect_right

        index = bisect_right(self._starts, min(offset, len(self.text))) - 1
        return self.line + index, offset - self._starts[index] + 1

    def offset(self, line: int, column: int) -> int:
        """The character at a place that `place` gives; within the text at any rate."""
        starts = self._starts
        index = min(max(line - self.line, 0), len(starts) - 2)
        return min(starts[index] + max(column - 1, 0), starts[index + 1] - 1)

    def excerpt(self, span: Span) -> str:
        """File, line and column; the lines of the span with a marker under each."""
        start, end = span
        line, column = self.place(start)
        rows = self.text.split("\n")
        first = line - self.line
        last = max(first, self.place(end - 1)[0] - self.line)
        pieces: list[tuple[str, str]] = []
        for row, at in zip(rows[first : last + 1], self._starts[first:], strict=False):
            begin, stop = max(start - at, 0), min(end - at, len(row))
            # Blanks around what is marked are not.
            begin = max(begin, len(row) - len(row.lstrip())) if pieces else begin
            stop = max(begin, min(stop, len(row.rstrip())))
            pieces.append((printable(row), underline(row, begin, stop)))
        marked = [place for place, (_, marker) in enumerate(pieces) if marker.strip()]
        if not marked:
            pieces[0] = pieces[0][0], underline(rows[first], column - 1, column - 1, 1)
            marked = [0]
        drawn = [f"  {self.file or '<text>'}:{line}:{column}"]
        drawn += map(printable, rows[max(0, first - CONTEXT) : first])
        for place, (shown, marker) in enumerate(pieces):
            drawn.append(shown)
            if place in marked:
                drawn.append(f"{marker}{HERE}" if place == marked[-1] else marker)
        drawn += map(printable, rows[last + 1 : last + 1 + CONTEXT])
        return "\n".join(drawn)


# What is compiled because of calls, innermost first: its name, and where it is called.
Since = tuple[tuple[str, Source, Span], ...]


def with_calls(text: str, since: Since) -> str:
    """The text of an error, and the calls because of which something is compiled."""
    lines = [text]
    for name, source, span in since:
        lines.append(f"`{name}` is being compiled since it was called from here:")
        lines.append(source.excerpt(span))
    return "\n".join(lines)


def printable(line: str) -> str:
    """The line as a terminal shows it: what cannot be printed is a blank."""
    if line.isprintable():
        return line
    return "".join(each if each.isprintable() or each == "\t" else " " for each in line)


def underline(line: str, start: int, stop: int, least: int = 0) -> str:
    """A row that marks the characters from `start` to `stop` of the printed line.

    At least so many columns are marked.
    """
    shown = printable(line)
    return _row(shown[:start], " ") + (_row(shown[start:stop], "~") or "~" * least)


def _row(shown: str, mark: str) -> str:
    """As many marks as the characters take columns; a tab stays."""
    return "".join(each if each == "\t" else mark * _columns(each) for each in shown)


def _columns(character: str) -> int:
    """The columns that a printed character takes in a terminal."""
    if character.isascii():
        return 1
    if category(character) in ("Mn", "Me"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1
