"""What suspended code holds: generators, coroutines, and the frames of tracebacks.

True only here: nothing is left behind.  Until Python 3.12 `f_locals` makes a copy of
the variables that stays with the frame; it is emptied again, or given back what a
call of `locals()` had put there before.

How it works: the traverse function gives all that a frame refers to, in the order of
its variables and its stack, but leaves out what is not set.  Which variables are set is
asked of `f_locals`; where the stack stands follows from the instruction.
"""

import gc
import types
from typing import Any

from harness.heap.known import Parts

_PREFIXES: dict[type, str] = {
    types.GeneratorType: "gi",
    types.CoroutineType: "cr",
    types.AsyncGeneratorType: "ag",
}
SUSPENDED: tuple[type, ...] = tuple(_PREFIXES)


def read_suspended(o: Any) -> Parts:
    """A generator or coroutine of any kind, by instruction and referents."""
    prefix = _PREFIXES[type(o)]
    parts: Parts = [
        ("name", o.__name__),
        ("qualname", o.__qualname__),
        ("code", getattr(o, f"{prefix}_code")),
        ("running", getattr(o, f"{prefix}_running")),
    ]
    frame = getattr(o, f"{prefix}_frame")
    if frame is None:
        parts.append(("finished", True))
    return parts + _variables(o, frame)


def read_frame(frame: types.FrameType) -> Parts:
    """A frame that ended, or still runs, by instruction and referents."""
    return [("code", frame.f_code), *_variables(frame, frame)]


def _variables(holder: Any, frame: types.FrameType | None) -> Parts:
    """What a frame refers to, labelled by variable where that is certain."""
    if frame is None:
        return [("referent", each) for each in gc.get_referents(holder)]
    code = frame.f_code
    before = {
        id(each): each.copy() for each in gc.get_referents(holder) if type(each) is dict
    }
    local: Any = frame.f_locals
    candidates = dict.fromkeys(code.co_varnames + code.co_cellvars + code.co_freevars)
    bound = [name for name in candidates if name in local]
    # A module or a class body has its own dict there, which is not a copy.
    optimized = code.co_flags & 1  # inspect.CO_OPTIMIZED
    copied = optimized and type(local) is dict
    held = gc.get_referents(holder)
    if copied:
        saved = before.get(id(local), {})
        local.clear()
        local.update(saved)
    # Who called is no variable, and where that stands by now is nobody's business.
    for extra in (frame.f_back, frame, local if copied else None):
        for place, each in enumerate(held):
            if each is extra and extra is not None:
                del held[place]
                break
    parts: Parts = [("at", frame.f_lasti), ("bound", tuple(bound))]
    # The referents begin with function, code and names; variables are told by place.
    parts += [("referent", each) for each in held]
    return parts
