"""Outcomes: what a call returned or raised, beside another call's, and in words.

True only here: when two values that are no tensors count as the same outcome.
"""

from typing import Any

from runtime.schema.values import BY_VALUE, same


def told(error: Exception) -> str:
    """What an error says up to the first empty line, on one line."""
    return " ".join(str(error).partition("\n\n")[0].split())


def equal(one: Any, other: Any) -> bool:
    """Whether two results that are no tensors are equal; objects are by their type."""
    if isinstance(one, float) and isinstance(other, float) and one != one:
        return other != other
    if type(one) in BY_VALUE or type(other) in BY_VALUE:
        return same(one, other)
    return type(one) is type(other)
