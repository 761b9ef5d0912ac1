"""What a thread carries: copied to the thread that runs a forked task.

True only here: which state of a thread belongs to the program that it runs.  The keys
that are included and excluded, whether it records, inference, autocast, the modes that
dispatch to Python, the run that collects warnings, and the variables of its context.

Rules:
- a task runs as if the thread that forked it ran it at the moment of the fork;
- the thread that runs it has its own state back afterwards, whatever happened;
- inference holds as long as what was carried does: the thread that forked may leave it.

How it works: each part is a `threading.local`, whose `__dict__` is one object for each
thread; a thread remembers those of all parts, so that a copy of its state is a copy of
a few small dictionaries, and a task that runs where it was forked finds it there.
"""

import threading
from contextvars import copy_context
from typing import Any

from runtime.autograd.autocast import STATE as AUTOCAST
from runtime.autograd.modes import GRAD
from runtime.keys import LOCAL
from runtime.script.running.warned import RUN
from runtime.tensors.handled import STATE as HANDLING
from runtime.tensors.handled import Presence
from runtime.tensors.keys_of import INFERRING, inference

Dicts = list[dict[str, Any]]


class _Mine(threading.local):
    """The dictionaries of one thread; `own` is what of them is no other thread's."""

    def __init__(self) -> None:
        parts = (LOCAL, GRAD, AUTOCAST, HANDLING, inference, RUN)
        self.dicts: Dicts = [each.__dict__ for each in parts]
        self.own = HANDLING.thread


_MINE = _Mine()
# The places among them of modes, and of inference.
_MODES, _INFERENCE = 3, 4


class Carried:
    """The state of the thread that makes it."""

    __slots__ = ("_dicts", "_presence", "context", "copies")

    def __init__(self) -> None:
        self._dicts = dicts = _MINE.dicts
        self.copies: Dicts = [each.copy() for each in dicts]
        active = dicts[_INFERENCE].get("active")
        self._presence = Presence(INFERRING) if active else None
        # What areas above keep for a thread, in variables of its context.
        self.context = copy_context()

    def is_here(self) -> bool:
        """Whether the state of this thread is this very one, in the same thread."""
        dicts = _MINE.dicts
        return dicts is self._dicts and dicts == self.copies

    def carry(self) -> None:
        """Let this thread have the state."""
        for mine, copy in zip(_MINE.dicts, self.copies, strict=True):
            if mine != copy:
                for name in [*mine]:
                    if name not in copy:
                        del mine[name]
                mine.update(copy)
        _MINE.dicts[_MODES]["thread"] = _MINE.own
