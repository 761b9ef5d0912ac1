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


def all_specimens() -> Iterator[Specimen]:
    """Yield the specimens of every kind."""
    for kind in KINDS:
        yield from kind.specimens()
