"""What something costs, in calls: the same on any machine, however busy it is.

Processes that tests start are watched by coverage where the tests are; of one that runs
nothing which others do not, `unmeasured` is the environment, without that.
"""

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

_CALLS = frozenset({"call", "c_call"})


def unmeasured() -> dict[str, str]:
    """The environment of a process that coverage does not watch: half the time."""
    return {k: v for k, v in os.environ.items() if "COVERAGE_PROCESS" not in k}


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
