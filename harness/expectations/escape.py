r"""Text as lines of an expect file, and back, without loss.

True only here: the escapes.  A line of an expect file is never empty inside a section,
never ends in white space and holds no character that an editor, a diff or a terminal
shows as something else.  Everything printable, of any language, stands for itself.

    \\          a backslash               \n   a newline (in one-line texts)
    \xNN \uNNNN \UNNNNNNNN   a character   \e   nothing (an empty text or line)
    \ at the end of the last line of a block   the text ends without a newline

Rules: `escape` and `unescape` are inverse, and so are `block` and `unblock`.
"""

import re
from collections.abc import Sequence

EMPTY = "\\e"

# Controls but tab; line and paragraph separators; zero-width and bidirectional marks
# (a diff that lies: Boucher and Anderson, "Trojan Source", 2021); the byte order mark;
# surrogates, which UTF-8 cannot hold; and white space where an editor may strip it.
_SPECIAL = re.compile(
    "[\\\\\x00-\x08\x0a-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff"
    "\ud800-\udfff]|\\s\\Z"
)
_ESCAPED = re.compile(
    r"\\(?:(\\|n|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})|(.?))", re.DOTALL
)
_NAMED = {"\\": "\\", "n": "\n"}


def escape(text: str) -> str:
    """Any text as part of one line; never empty, never ending in white space."""
    return _SPECIAL.sub(_escaped, text) if text else EMPTY


def unescape(written: str) -> str:
    """The text that `escape` wrote so; raises ValueError at an unknown escape."""
    if "\\" not in written:
        return written
    return "" if written == EMPTY else _ESCAPED.sub(_meant, written)


def block(text: str) -> list[str]:
    """A text of at least one newline as its lines."""
    lines = text.split("\n")
    if not lines[-1]:
        return [escape(line) for line in lines[:-1]]
    return [*(escape(line) for line in lines[:-1]), escape(lines[-1]) + "\\"]


def unblock(lines: Sequence[str]) -> str:
    """The text that `block` wrote so; raises ValueError at an unknown escape."""
    last = lines[-1]
    if (len(last) - len(last.rstrip("\\"))) % 2:
        return "\n".join(map(unescape, [*lines[:-1], last[:-1]]))
    return "\n".join(map(unescape, lines)) + "\n"


def hexadecimal(character: str) -> str:
    """A character by its number, in the shortest of the three forms."""
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    if character in "\\\n":
        return "\\\\" if character == "\\" else "\\n"
    return hexadecimal(character)


def _meant(match: re.Match[str]) -> str:
    known, unknown = match.groups()
    if known is None:
        raise ValueError(f"'\\{unknown}' is no escape of an expect file")
    return _NAMED.get(known) or chr(int(known[1:], 16))
