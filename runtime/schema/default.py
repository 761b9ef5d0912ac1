"""Default values: how a stored default prints, and when two defaults are the same.

True only here: the text of a default.  It parses back to the same default, which is
why text is always quoted and why a device stands bare.
"""

from collections.abc import Hashable
from typing import Any

# Escapes of the quoted form; every other control character is written in octal.
_ESCAPES = {
    "\\": "\\\\",
    '"': '\\"',
    "'": "\\'",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def default_identity(value: Any) -> Hashable:
    """What two defaults have in common exactly when they are the same default.

    The kind of a value counts: 1, 1.0 and True are three defaults.  A tensor, which a
    program may have, is the same as itself only.
    """
    if isinstance(value, tuple):
        return tuple(map(default_identity, value))
    name = value.__class__.__name__
    return (name, id(value)) if hasattr(value, "key_bits") else (name, value)


def default_text(value: Any) -> str:
    """The default as the schema language writes it."""
    if value is None or value is True or value is False:
        return str(value)
    if isinstance(value, str):
        return f'"{"".join(map(_escaped, value))}"'
    if isinstance(value, float):
        return _real_text(value)
    if isinstance(value, complex):
        imaginary = _real_text(value.imag)
        sign = "" if imaginary.startswith("-") else "+"
        return f"{_real_text(value.real)}{sign}{imaginary}j"
    if isinstance(value, tuple):
        return f"[{', '.join(map(default_text, value))}]"
    return f"<{type(value).__name__}>" if hasattr(value, "key_bits") else str(value)


def _real_text(value: float) -> str:
    """Seventeen significant digits, which are enough for every double.

    A whole number within 64 bits stands in full, closed by a point.
    """
    if value.is_integer() and abs(value) < 2.0**63 and (value or value.hex()[0] != "-"):
        return f"{int(value)}."
    text = f"{value:.17g}"
    return text if set(text) & set(".en") else f"{text}."


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    return char if char >= " " and char != "\x7f" else f"\\{ord(char):03o}"
