"""Paths that a user declares to be no state: `registry._next_id`, `*.hits`.

How it works: the last piece of each pattern is compared with every label that is
written, which is cheap; only where it fits the path is worked out, from what has been
written so far, and compared as a whole.
"""

import re
from collections.abc import Iterable
from typing import Any

from harness.heap.records import Records
from harness.heap.scope import matcher

_LAST_PIECE = re.compile(r"(\[[^\[\]]*\]|[^.\[\]]*)$")


class Ignored:
    """The ignored paths of a scope, for one walk."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self.patterns = patterns
        whole = matcher(patterns)
        last = matcher(
            {_LAST_PIECE.search(each).group() for each in patterns}  # type: ignore[union-attr]  # it may be empty, but it is there
        )
        if whole is None or last is None:
            raise AssertionError("made only where there are patterns")
        self._whole = whole
        self._last = last
        self._records: Records | None = None

    def concerns(self, keys: Iterable[Any]) -> bool:
        """Whether one of these attributes or keys may be the end of a pattern."""
        return any(type(key) is str and self.ends(key) for key in keys)

    def ends(self, label: str) -> bool:
        """Whether a label, or a key in brackets, fits the end of a pattern."""
        fits = self._last.fullmatch
        return bool(fits(label) or fits(f"[{label!r}]"))

    def path(self, text: str) -> bool:
        """Whether a whole path is ignored."""
        return bool(self._whole.fullmatch(text))

    def matches(self, tokens: list[Any], number: int, label: str) -> bool:
        """Whether something in the object of a number is ignored."""
        if self._records is None:
            self._records = Records(tokens)
        self._records.read()
        return self.path(join(self._records.path(number), label))


def join(path: str, label: str) -> str:
    """A path, and what is below it."""
    return path + (label if label.startswith("[") else f".{label}")
