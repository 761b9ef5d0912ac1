"""`random:k`: k thousand operations drawn at random, what is left of a budget.

True only here: no guarantee beyond what was played.  Random walks are strong against
long histories that no plan lists; the walk starts anew every `STRETCH` operations,
because some faults need a system on which little happened before.

The operations come from a linear congruential generator, so that they are the same on
every platform.
"""

from harness.engine.covering import INCREMENT, MULTIPLIER
from harness.engine.session import Session

# Operations between two fresh systems: enough to meet most pairs of a dozen steps.
STRETCH = 200


def size(thousands: int) -> int:
    """Operations of the walk."""
    return 1_000 * thousands


def run(session: Session, thousands: int) -> None:
    """Walk at random."""
    actions, runner = session.operations.actions, session.runner
    seed = 1
    for number in range(size(thousands)):
        if number % STRETCH == 0:
            runner.reset()
            runner.look()
        seed = (seed * MULTIPLIER + INCREMENT) % 2**64
        session.transition((seed >> 33) % actions)
