"""All specimens, kind by kind."""

from collections.abc import Iterator

from tests.zoo.realistic import (
    async_hooks,
    circuit_breaker,
    class_decorators,
    codec_registry,
    container,
    context_variables,
    event_bus,
    feature_flags,
    job_scheduler,
    memoised,
    middleware,
    multidispatch,
    plugin_manager,
    router,
    signals,
)
from tests.zoo.realistic.specimen import Specimen

KINDS = (
    event_bus,
    plugin_manager,
    multidispatch,
    middleware,
    router,
    container,
    codec_registry,
    signals,
    job_scheduler,
    feature_flags,
    memoised,
    class_decorators,
    context_variables,
    async_hooks,
    circuit_breaker,
)

# Specimens whose state grows with each connection, until a signal is sent or for ever.
# The graph follows the growth before other strategies play short histories, which takes
# minutes: the long leg explores these by the explicit strategies.
GROWING = {
    "signals/BoundMethodSignal": "a dead reference of each connection stays for ever",
    "signals/DroppedSignal": "a dead reference of each connection stays until a send",
}
# Wrong verdicts of today, each with its cause; the run fails when one is right.
KNOWN = {
    "context variables/CopiedContextSettings": "a registry that holds a context which "
    "an operation copied is called nondeterministic, in one of six replays",
    "context variables/WrongContextSettings": "the same, and it is faulty otherwise",
}


def all_specimens() -> Iterator[Specimen]:
    """Yield the specimens of every kind."""
    for kind in KINDS:
        yield from kind.specimens()
