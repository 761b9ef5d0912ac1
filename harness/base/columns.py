"""Texts in the columns of a terminal: widths, wrapped lines, cut texts.

A character may take two columns (CJK, emoji) or none (combining accents), so the length
of a text is not its width.

Rules:
- sentences break at blanks only, so that names, options and paths stay whole, those
  that no line can hold included; only words of wide characters, which are not separated
  by blanks, are broken where the line ends;
- lines of evidence (values, diffs) are folded: at a blank in their second half, or else
  where the line ends.
"""

import re
from collections.abc import Iterable

from rich.cells import cell_len

# The usual width of terminals, logs and mails.
WIDTH = 80


def columns(text: str) -> int:
    """Return the number of columns of a line."""
    return cell_len(text)


def padded(text: str, width: int) -> str:
    """Return a line with blanks after it, up to a number of columns."""
    return text + " " * (width - columns(text))


def cut(text: str, width: int) -> str:
    """Return a line of at most `width` columns; dots replace what is left out."""
    if columns(text) <= width:
        return text
    return f"{_split(text, width - 3)[0]}..."


def wrap_words(
    text: str, width: int = WIDTH, head: str = "", indent: str = ""
) -> list[str]:
    """Return a sentence as lines of at most `width` columns; a blank one has none.

    `head` precedes the first line, `indent` the others.
    """
    lines: list[str] = []
    line, gap = head, ""
    is_empty = True
    for part in re.split(r"(\s+)", text.strip()):
        if part.isspace():
            gap = " " * len(part)
            continue
        if not is_empty and columns(line + gap + part) > width:
            lines.append(line)
            line, is_empty = indent, True
        word = part if is_empty else gap + part
        while columns(line + word) > width and columns(word) > len(word):
            fitting, word = _split(word, max(width - columns(line), 2))
            lines.append(line + fitting)
            line = indent
        line += word
        is_empty = is_empty and not word
    if not is_empty:
        lines.append(line)
    return lines


def wrap_lines(text: str, width: int = WIDTH, head: str = "", indent: str = "") -> str:
    """Return a text of several lines with each of them wrapped.

    `head` precedes the first line; `indent` the lines that continue one.
    """
    lines: list[str] = []
    for line in text.split("\n"):
        margin = head if not lines else line[: len(line) - len(line.lstrip())]
        lines += wrap_words(line, width, margin, indent) or [margin.rstrip()]
    return "\n".join(lines)


def fold_lines(lines: Iterable[str], width: int = WIDTH) -> list[str]:
    """Return lines of evidence, of which those that are too wide take several.

    A continuation is indented as its line, and by two blanks more.
    """
    folded: list[str] = []
    for line in lines:
        indent = line[: len(line) - len(line.lstrip(" "))] + "  "
        while columns(line) > width > 2 * len(indent):
            head, line = _split(line, width)
            blank = head.rfind(" ", len(head) // 2)
            if blank > 0:
                head, line = head[:blank], head[blank + 1 :] + line
            folded.append(head.rstrip())
            line = indent + line.lstrip(" ")
        folded.append(line)
    return folded


def _split(text: str, width: int) -> tuple[str, str]:
    """Return the longest beginning that fits into a number of columns, and the rest."""
    end = min(width, len(text))
    while columns(text[:end]) > width:
        end -= 1
    # A character of width 0 belongs to the one before it.
    while end < len(text) and columns(text[: end + 1]) == columns(text[:end]):
        end += 1
    return text[:end], text[end:]
