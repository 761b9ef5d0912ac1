"""Undo handles that are alive after they were dropped, by reference counts.

A surviving handle is not a leak if only frames hold it: a registry that stores an
exception also stores the frames of its traceback, including frames of the harness.
"""

import gc
import sys
from functools import partial
from types import FrameType, MethodType
from typing import Any
from weakref import ref

# Objects that a call creates for its arguments, in addition to frames.
_OF_CALLS = (tuple, MethodType, partial)
# The list below, the variable of its loop, and the argument of `getrefcount`.
_OWN_REFERENCES = 3


def outlives(watch: "ref[Any]") -> bool:
    """Return True if a handle has holders other than frames of a stored traceback.

    The caller collects garbage before.
    """
    objects = [watch()]
    if objects[0] is None:
        return False
    visited = {id(objects[0])}
    for each in objects:
        if sys.getrefcount(each) - _OWN_REFERENCES > _accounted(each, objects, visited):
            return True
    return False


def _accounted(target: Any, calls: list[Any], visited: set[int]) -> int:
    """Return the number of references by frames and calls; extend `calls`."""
    count = 0
    for holder in gc.get_referrers(target):
        called = type(holder) in _OF_CALLS
        own = type(holder) is FrameType and holder.f_code in _OWN
        if (called or type(holder) is FrameType) and not own:
            count += sum(each is target for each in gc.get_referents(holder))
            if called and id(holder) not in visited:
                visited.add(id(holder))
                calls.append(holder)
    return count


# The frames of this check; they are only visible to tracing code.
_OWN = frozenset({outlives.__code__, _accounted.__code__})
