"""`full`: every order of adding times every order of removing; the oracle.

True only here: it does what the known exhaustive test of operator registrations does
(PyTorch's dispatcher tests, "commute"), so that the other strategies can be measured
against it: for each permutation of the steps and each permutation again, add in the
first order and remove in the second, looking after every operation and comparing by
set. A step that raises ends the adding there; the error is recorded, and what was built
is removed.  All rounds run on one system, one after the other, without a reset, unless
something could not be removed: then the next round has a fresh one.

It takes 2n(n!)^2 operations, and it never adds after it removed within a round.
"""

from itertools import permutations
from math import factorial

from harness.engine.session import Session


def size(steps: int) -> int:
    """Operations of the run when no step fails."""
    return 2 * steps * factorial(steps) ** 2


def run(session: Session) -> None:
    """Play every round."""
    runner, transition = session.runner, session.transition
    runner.reset()
    runner.look()
    steps = range(session.operations.steps)
    # Never all at once: there are 479,001,600 orders of twelve steps.
    for adding in permutations(steps):
        for removing in permutations(steps):
            if runner.mask:
                runner.reset()
                runner.look()
            for step in adding:
                transition(step)
                if not runner.mask >> step & 1:
                    break
            for step in removing:
                if runner.mask >> step & 1:
                    transition(step)
