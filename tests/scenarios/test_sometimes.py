"""The catalogue is not vacuous: it sees everything that laws are there to judge.

A law can hold because nothing happened.  Each "sometimes" law names something that an
exploration ought to meet (a missing slot, a fallthrough, a guarded autograd key, ...);
over all scenarios together every one of them must be met.
"""

from collections.abc import Hashable, Sequence
from contextlib import closing

import pytest

from everyorder.harness.engine import explore
from everyorder.harness.scenario import Scenario
from everyorder.harness.systems.dispatcher import DispatcherSystem
from everyorder.invariants import SOMETIMES, never_seen, sightings
from tests.scenarios import of_files


def catalogue() -> list[Scenario]:
    """Loaded in a function, because loading imports this module, too."""
    found = of_files.catalogue().values()
    return [each for each in found if each.create is None and len(each.steps) <= 4]


class Watched(DispatcherSystem):
    """Notes what every state shows."""

    def __init__(self, scenario: Scenario, seen: set[str]) -> None:
        super().__init__(scenario, view="upstream", laws=False)
        self._seen = seen

    def laws(self) -> Sequence[Hashable]:
        self._seen |= sightings(self.dispatcher.state)
        return ()


def see(scenarios: Sequence[Scenario]) -> set[str]:
    seen: set[str] = set()
    for scenario in scenarios:
        if scenario.operators:
            with closing(Watched(scenario, seen)) as system:
                explore(
                    system,
                    "walk:0",
                    order_dependent=scenario.order_dependent is not None,
                )
    return seen


def test_everything_is_seen_somewhere() -> None:
    assert never_seen(see(catalogue())) == []


@pytest.mark.parametrize("name", [each.name for each in SOMETIMES])
def test_an_empty_catalogue_would_be_told(name: str) -> None:
    assert [violation.law for violation in never_seen((), [name])] == [name]
