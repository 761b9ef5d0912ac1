"""The class for extension points of the runtime, explored as that of other people.

Each scenario has a fresh registry; its steps return the handles that undo them.  What
is observed is the mapping that readers see, with the order in which they iterate it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from everyorder.harness.scenario import Scenario, step, use
from everyorder.runtime.errors.registration import AlreadyRegistered
from tests.scenarios.registry_alone import Registry, sequence


def _rows(registry: Any) -> str:
    return "\n".join(f"{key}: {value}" for key, value in registry.rows.items())


def _add(rows: dict[str, int], registry: Any) -> Any:
    try:
        return registry.register_all(rows)
    except AlreadyRegistered as error:
        # Its text names files and lines, which are no part of the claim.
        raise LookupError(f"{error.key} is taken") from None


def _adds(**rows: int) -> Callable[[Any], Any]:
    return partial(_add, rows)


IN_SEQUENCE = sequence("modules", "exceptions", "classes")

# Rows are iterated in the declared order, whenever they were registered.
declared_order = Scenario(
    step("register(modules)", _adds(modules=1)),
    step("register(exceptions)", _adds(exceptions=2)),
    step("register(classes)", _adds(classes=3)),
    # Refused while `classes` is registered, and the other way round.
    step("register(classes) again", _adds(classes=3)),
    uses=[use("first", lambda registry: next(iter(registry.rows), None))],
    create=partial(Registry, "classes", order=IN_SEQUENCE),
    observe=_rows,
)

# Several rows at once, or none of them if one of the keys is taken.
registered_together = Scenario(
    step("register_all(modules, exceptions)", _adds(modules=1, exceptions=2)),
    step("register_all(exceptions, classes)", _adds(exceptions=2, classes=3)),
    step("register(modules)", _adds(modules=1)),
    create=partial(Registry, "classes", order=IN_SEQUENCE),
    observe=_rows,
)

# Equal values under one key: the row stays until both handles are closed.
shared_rows = Scenario(
    step("register(int)", _adds(int=1)),
    step("register(int) again", _adds(int=1)),
    step("register(int) as another", _adds(int=2)),
    step("register(str)", _adds(str=3)),
    create=partial(Registry, "annotations", order=str, shared=True),
    observe=_rows,
)
