"""Closing: what is ended by `close`, and by leaving its `with` block.

True only here: that both are the same, whatever the block ended with.
"""

from types import TracebackType
from typing import Self


class Closing:
    """The base of what owns something until it is closed."""

    __slots__ = ()

    def close(self) -> None:
        """End it; the second time nothing happens."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it ends")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
