"""Compare tensors in tests, as `torch.testing` does."""

from everyorder.runtime.testing.comparison import (
    TOLERANCES,
    NotAlike,
    NotClose,
    assert_close,
)

__all__ = ["TOLERANCES", "NotAlike", "NotClose", "assert_close"]
