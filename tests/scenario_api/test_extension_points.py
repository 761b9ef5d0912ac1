"""Exploring registries finds what a registry of another kind would do wrong."""

from collections.abc import Mapping
from typing import Any

from everyorder.harness import Scenario, explore, step
from tests.scenarios.registry_alone import Registry, sequence


class ByTime(Registry):  # type: ignore[misc]  # a class that is loaded by its file
    """A planted fault: rows in the order of registration, as a list has them."""

    __slots__ = ()

    def _published(
        self, before: Any, registered: Mapping[str, Any], changed: Any
    ) -> Any:
        rows = super()._published(before, registered, changed)
        in_order = {key: rows[key] for key in registered}
        rows.clear()
        rows.update(in_order)
        return rows


def scenario(kind: Any) -> Scenario:
    return Scenario(
        step("register(modules)", lambda registry: registry.register("modules", 1)),
        step("register(classes)", lambda registry: registry.register("classes", 3)),
        create=lambda: kind("classes", order=sequence("modules", "classes")),
        observe=lambda registry: "\n".join(registry.rows),
    )


def test_rows_in_the_order_of_registration_are_refuted() -> None:
    assert explore(scenario(Registry)).verdict == "proven"
    assert explore(scenario(ByTime)).verdict == "order"
