"""Ctrl-C and SIGTERM: when they are heard, and that nothing is left behind.

True only here: who answers a signal.  While a command runs, both raise
KeyboardInterrupt, as Python has it for Ctrl-C.  While children explore, that could come
between the start of a child and the note of it, in a callback that may not raise, or
half-way through a file; so it is deferred there, and raised where somebody asks.

Rules:
- a second signal is not deferred: whoever sends it does not want to wait;
- signals that are ignored stay so (a shell ignores Ctrl-C for what runs in the
  background), and nothing is changed outside of the main thread, where Python does not
  run handlers;
- every handler is put back.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeAlias

Handler: TypeAlias = Callable[[int, FrameType | None], Any]

_SIGNALS: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def answered() -> Iterator[None]:
    """Let both signals raise KeyboardInterrupt."""
    with _handled(signal.default_int_handler):
        yield


@contextmanager
def deferred() -> Iterator[Callable[[], None]]:
    """Let the first signal wait; what is given raises KeyboardInterrupt if one does.

    So does the end of the context.
    """
    waiting = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal waiting
        if waiting:
            signal.default_int_handler(number, frame)
        waiting = True

    def check() -> None:
        nonlocal waiting
        if waiting:
            waiting = False
            raise KeyboardInterrupt

    with _handled(note):
        yield check
        check()


@contextmanager
def _handled(handler: Handler) -> Iterator[None]:
    before: dict[int, Any] = {}
    try:
        for number in _SIGNALS:
            known = signal.getsignal(number)
            # None is a handler that was not installed by Python: not ours to replace.
            if known not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, handler)
    except ValueError:  # not in the main thread
        pass
    try:
        yield
    finally:
        for number, known in before.items():
            signal.signal(number, known)
