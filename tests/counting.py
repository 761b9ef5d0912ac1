"""What something costs, in calls: the same on any machine, however busy it is."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

_CALLS = frozenset({"call", "c_call"})


def calls_of(run: Callable[[], object]) -> int:
    """How many functions of Python and of C are called while it runs."""
    count, before = 0, sys.getprofile()

    def counts(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        count += event in _CALLS

    sys.setprofile(counts)
    try:
        run()
    finally:
        sys.setprofile(before)
    # The last one ends the count.
    return count - 1
