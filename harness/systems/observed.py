"""A registry of which only the observations are compared, and not the state.

An exploration takes a twentieth of the time, and finds the dependences that an answer,
a look or an error shows within the played histories.  It proves nothing about longer
ones, and it does not notice what a registry leaves in the process.
"""

from collections.abc import Sequence

from everyorder.harness.engine.protocol import Caveat
from everyorder.harness.scenario.scenario import Scenario
from everyorder.harness.systems.registry import RegistrySystem


class ObservedSystem(RegistrySystem):
    """A registry without its state."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self._complete.audit.checks_outside = False

    def state(self, handles: Sequence[object]) -> None:
        """Return None: no state is compared."""

    def portrait(self, handles: Sequence[object]) -> None:
        """Return None."""

    def scope(self) -> None:
        """Return None."""

    def rehearse(self, *, begins: bool) -> Sequence[str]:
        """Return (): changes outside of the registry are not looked for."""
        return ()

    def caveats(self) -> Sequence[Caveat]:
        """Return (): nothing is proven."""
        return ()

    def _check_after(self, kind: str, number: int) -> None:
        """Check nothing: the untracked state is not compared."""
