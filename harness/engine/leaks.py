"""Whether an undo handle outlives its registration.

True only here: who may still hold a handle that was closed.  A registry that keeps an
exception keeps the frames it came through, the harness's own among them, and with them
what these were called with; that is no handle that somebody forgot.
"""

import gc
from functools import partial
from types import FrameType, MethodType
from typing import Any
from weakref import ref

# What a call makes of its arguments, besides frames.
_OF_CALLS = (tuple, MethodType, partial)


def outlives(watch: "ref[Any]") -> bool:
    """Whether anything but the frames of a kept traceback holds a handle.

    Garbage is to be collected before.
    """
    found = watch()
    if found is None:
        return False
    # Not the list either, which holds what is looked at.
    held, seen = [found], {id(found)}
    for each in held:
        for holder in gc.get_referrers(each):
            if holder is held or id(holder) in seen or type(holder) is FrameType:
                continue
            if type(holder) not in _OF_CALLS:
                return True
            seen.add(id(holder))
            held.append(holder)
    return False
