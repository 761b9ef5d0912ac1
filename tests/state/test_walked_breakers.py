"""Breakers whose place is not read are falsely proven, and refuted by a random walk.

The walk after closure shares no assumption about where state hides: nothing of these
registries is named to it but their operations.
"""

import pytest

from everyorder.harness.state.untracked_writes import Boundary
from tests.state import breakers
from tests.state.breakers import verdict_of
from tests.state.breakers_in_modules import PLACES

PASSED = ("proven", "holds")
# Misses that open a breaker: few enough to be drawn in a row among 2,000 operations,
# and too many for the histories of the search.
MISSES = 3
# They are drawn in a row some three times while the name is registered: never in one
# walk of twenty.
ESCAPED = 20


@pytest.fixture
def _blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what tells that something changed outside of the followed state."""
    monkeypatch.setattr(
        Boundary, "compare", lambda _, snapshot, *__, **___: ((), snapshot)
    )
    monkeypatch.setattr(breakers, "LIMIT", MISSES)


@pytest.mark.usefixtures("_blind")
@pytest.mark.parametrize(
    ("names", "least"),
    [
        pytest.param([*PLACES][::7], 11, marks=pytest.mark.slow, id="some"),
        pytest.param([*PLACES], 80, marks=pytest.mark.nightly, id="all"),
    ],
)
def test_a_random_walk_refutes_false_proofs(names: list[str], least: int) -> None:
    """2,000 operations refuted 11 of 11 false proofs."""
    false = [name for name in names if verdict_of(PLACES[name], faulty=True).plain]
    walked = {
        name: verdict_of(PLACES[name], faulty=True, walks=True).word for name in false
    }
    refuted = [name for name, word in walked.items() if word not in PASSED]
    print(f"{len(refuted)} of {len(false)} false proofs are refuted by a random walk")
    assert len(false) >= least
    assert len(false) - len(refuted) <= len(false) // ESCAPED
