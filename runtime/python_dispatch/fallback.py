"""The fallbacks at PythonTLSSnapshot and Python: where a call leaves for Python.

True only here: their registration, what a thread was in when the outermost call left,
and the end of recursion without end.

Rules:
- every key above Python is excluded while a handler runs: autograd is done with the
  call; Python itself is not, and a handler that calls the operator on its own tensors
  is asked again;
- an exception of a handler goes on as it is, and the thread is as before; one alone is
  told in other words: that of a recursion which goes through handlers.
"""

from collections.abc import Callable
from typing import Any

from runtime.dispatch.kernel import linked
from runtime.dispatch.library import Library
from runtime.dispatch.registration import Registration
from runtime.errors.python_dispatch import EndlessDispatch
from runtime.generated import block, is_generated, numbered, template
from runtime.keys import LOCAL
from runtime.python_dispatch.handling import Handling
from runtime.python_dispatch.results import handler_name
from runtime.python_dispatch.short import HANDLING, short_way
from runtime.schema.tags import NUMBERS_AS_TENSORS
from runtime.tensors.keys import STATE

# So many handlers inside of one another are a handler without end: Python allows for
# a thousand frames, and one handler takes four at least.
ENDLESS = 32
# And so many times the usual distance between two of them may lie behind the last one;
# what goes on for longer is a recursion of its own.
FARTHEST = 4

# The code that asks handlers, beside that of the short ways.
_FRAMES = (Handling._asked.__code__,)


def snapshotting(below: Any, keyset: Any) -> Callable[..., Any]:
    """At PythonTLSSnapshot: remember what the thread was in when the call began."""
    count = -1 if below.schema.is_vararg else len(below.schema.arguments)
    made: Callable[..., Any] = _snapshot(count)(below.run, below.operator)
    return made


def handling(below: Any, keyset: Any) -> Callable[..., Any]:
    """At Python: ask the modes and the classes; the short way where there is one.

    It knows of no rules: an operator that has some goes the general way.
    """
    numbers = NUMBERS_AS_TENSORS in below.tags
    general = Handling(below.schema, below.operator, below.rules, numbers)
    if below.rules:
        return general.handle
    return short_way(below.schema, general) or general.handle


# What dumps show.
SNAPSHOT = linked(snapshotting, "python_snapshot")
HANDLE = linked(handling, "python_dispatch")


def install_fallbacks(library: Library) -> tuple[Registration, ...]:
    """Register dispatch to Python, in a library of the namespace `_`."""
    return (
        library.fallback(SNAPSHOT, "PythonTLSSnapshot"),
        library.fallback(HANDLE, "Python"),
    )


def _check_endless(error: RecursionError, operator: Callable[[], Any]) -> None:
    """Whether a recursion went through something else than handlers.

    Raises `EndlessDispatch` from here: an exception that lies in a frame of its own
    traceback would keep alive what was called with.
    """
    if isinstance(error, EndlessDispatch):
        return
    depth, frames, after, last, trace = 0, 0, 0, None, error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        frames, after = frames + 1, after + 1
        if frame.f_code in _FRAMES or is_generated(frame.f_code, HANDLING):
            # Both call it so.  The code that it runs is named after where it was
            # written, which may be neither the class nor the mode that was asked.
            last = frame.f_locals.get("handler", last)
            depth, after = depth + 1, 0
        trace = trace.tb_next
    if depth >= ENDLESS and last is not None and after * depth <= FARTHEST * frames:
        raise EndlessDispatch(
            handler=handler_name(last), operator=str(operator()), depth=depth
        ) from error


@template(
    "snapshot",
    "run, operator",
    LOCAL=LOCAL,
    STATE=STATE,
    check_endless=_check_endless,
)
def _snapshot(count: int) -> list[str]:
    """The kernel for so many arguments; -1 for any number."""
    given = numbered(count) if count >= 0 else "*rest"
    body = [
        "mine = STATE.__dict__",
        'if mine["snapshot"] is not None:',
        f"    return run({given})",
        'mine["snapshot"] = LOCAL.view',
        "try:",
        f"    return run({given})",
        "except RecursionError as error:",
        "    check_endless(error, operator)",
        "    raise",
        "finally:",
        '    mine["snapshot"] = None',
    ]
    return block(f"def snapshot({given}):", body)
