"""Overriding: a second kernel for a key that has one is allowed, and warned of.

True only here: the warning.  It comes before anything is registered, since it may be an
error; refusing to override is a check (see `checks.check_no_override`).  It points to
the line of whoever registers, however many functions of the runtime lie between.
"""

import sys
import warnings
from types import FrameType

from runtime.dispatch.dispatcher import Dispatcher
from runtime.dispatch.token import Implementation
from runtime.keys import DispatchKey


class KernelOverridden(UserWarning):
    """A kernel was registered where the operator already had one for that key."""


def warn_of_overrides(
    dispatcher: Dispatcher, tokens: tuple[Implementation, ...]
) -> None:
    """Warn whoever called the function of the runtime that registers.

    Meta kernels are overridden silently.  What lost libraries left is no kernel.
    """
    if dispatcher.dropped:
        dispatcher.drain()
    entry = dispatcher.state.entry(tokens[0].operator)
    for token in tokens:
        held = entry.implementations.get(token.key) if entry else None
        if held is not None and token.key is not DispatchKey.Meta:
            warnings.warn(
                f"{token.operator} gets another kernel for {token.key.name}:\n"
                f"  until now: {held[0].debug}\n  from now:  {token.debug}",
                KernelOverridden,
                stacklevel=_outside(),
            )


def _outside() -> int:
    """How far above whoever asks the first frame is that is not of the runtime."""
    runtime = __name__.partition(".")[0]
    level = 1
    frame: FrameType | None = sys._getframe(1)
    # A thread, or what runs at exit, may be nothing but the runtime.
    while frame is not None and _package(frame) == runtime:
        level, frame = level + 1, frame.f_back
    return level


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]
