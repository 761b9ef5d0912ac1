"""Whether an undo handle outlives its registration.

True only here: who may still hold a handle that was closed.  A registry that keeps an
exception keeps the frames it came through, the harness's own among them, and with them
what these were called with; that is no handle that somebody forgot.

How it works: references are counted.  Looking for who holds them finds no containers
that the collector was told to leave alone, so what no frame accounts for is held.
"""

import gc
import sys
from functools import partial
from types import FrameType, MethodType
from typing import Any
from weakref import ref

# What a call makes of its arguments, besides frames.
_OF_CALLS = (tuple, MethodType, partial)
# The list below, the variable of its loop, and the argument of `getrefcount`.
_OURS = 3


def outlives(watch: "ref[Any]") -> bool:
    """Whether anything but the frames of a kept traceback holds a handle.

    Garbage is to be collected before.
    """
    held = [watch()]
    if held[0] is None:
        return False
    seen = {id(held[0])}
    for each in held:
        if sys.getrefcount(each) - _OURS > _accounted(each, held, seen):
            return True
    return False


def _accounted(held: Any, calls: list[Any], seen: set[int]) -> int:
    """How many references frames and calls hold; the calls are looked at next."""
    count = 0
    for holder in gc.get_referrers(held):
        called = type(holder) in _OF_CALLS
        own = type(holder) is FrameType and holder.f_code in _OWN
        if (called or type(holder) is FrameType) and not own:
            count += sum(each is held for each in gc.get_referents(holder))
            if called and id(holder) not in seen:
                seen.add(id(holder))
                calls.append(holder)
    return count


# Frames that are looking; they show only to somebody who traces them.
_OWN = frozenset({outlives.__code__, _accounted.__code__})
