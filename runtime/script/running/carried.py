"""What a thread carries: copied to the thread that runs a forked task.

True only here: which state of a thread belongs to the program that it runs.  The keys
that are included and excluded, whether it records, inference, autocast, the modes that
dispatch to Python, and the run that collects warnings.

Rules:
- a task runs as if the thread that forked it ran it at the moment of the fork;
- the thread that runs it has its own state back afterwards, whatever happened;
- inference holds as long as what was carried does: the thread that forked may leave it.
"""

from typing import Any

from runtime.autograd.autocast import STATE as AUTOCAST
from runtime.autograd.modes import GRAD
from runtime.keys import LOCAL
from runtime.script.running.warned import RUN
from runtime.tensors.handled import STATE as HANDLING
from runtime.tensors.handled import Presence
from runtime.tensors.keys_of import INFERRING, inference

# The last one is None, or what keeps inference present.
Carried = tuple[Any, ...]


def carried() -> Carried:
    """The state of this thread."""
    active = inference.active
    return (
        LOCAL.view,
        LOCAL.switched_in,
        LOCAL.switched_out,
        GRAD.enabled,
        GRAD.follows,
        AUTOCAST.depth,
        AUTOCAST.caches,
        AUTOCAST.dtypes,
        HANDLING.stack,
        HANDLING.snapshot,
        HANDLING.context,
        RUN.run,
        active,
        Presence(INFERRING) if active else None,
    )


def carry(state: Carried) -> None:
    """Let this thread have a state."""
    (
        LOCAL.view,
        LOCAL.switched_in,
        LOCAL.switched_out,
        GRAD.enabled,
        GRAD.follows,
        AUTOCAST.depth,
        AUTOCAST.caches,
        AUTOCAST.dtypes,
        HANDLING.stack,
        HANDLING.snapshot,
        HANDLING.context,
        RUN.run,
        inference.active,
        _,
    ) = state
