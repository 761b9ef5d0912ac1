"""Answers of a library, with names in the place of its errors."""

from collections.abc import Callable, Iterable
from typing import Any


def answers(
    error: type[Exception], function: Callable[[Any], Any], values: Iterable[Any]
) -> tuple[str, ...]:
    """Return the answer for each value as text, or the name of the error raised."""
    texts = []
    for value in values:
        try:
            texts.append(str(function(value)))
        except error as raised:
            texts.append(type(raised).__name__)
    return tuple(texts)
