"""`kA:k`: complete up to k hidden operations, for systems that show only observations.

True only here: a guarantee without a fingerprint.  If every state of the system is
reached by a canonical history followed by at most k operations, and different active
sets look different, then a system that passes is equivalent to "the state is the active
set": the suite is the canonical histories, times all histories of at most k + 1
operations, times the separating looks (here one look, at the end).  This is
k-A-completeness (Vaandrager and Melse, "New fault domains for conformance testing of
finite state machines", CONCUR 2025), with the lattice of sets as the specification.

What the run adds to the guarantee: states that look alike are not told apart, and the
exploration says how many there are.
"""

from itertools import product

from harness.engine.canonical import spread
from harness.engine.session import Session


def size(steps: int, uses: int, hidden: int) -> int:
    """Operations of the suite when no step fails; canonical histories are n/2 long."""
    operations = steps + uses
    doubled = sum(
        int(operations**length) * (steps + 2 * length)
        for length in range(1, hidden + 2)
    )
    return (doubled << steps) // 2


def measured(session: Session, hidden: int) -> int:
    """Operations of the suite, once the canonical histories are known."""
    operations = session.operations.actions
    return sum(
        int(operations**length) * (len(history) + length)
        for history in session.ledger.canonical.values()
        for length in range(1, hidden + 2)
    )


def run(session: Session, hidden: int) -> None:
    """Play the suite for `hidden` operations."""
    spread(session)
    operations = range(session.operations.actions)
    for history in tuple(session.ledger.canonical.values()):
        for length in range(1, hidden + 2):
            for suffix in product(operations, repeat=length):
                session.history(history + suffix)
    states, looks = len(session.ledger.seen), len(set(session.ledger.seen.values()))
    if looks < states:
        session.skipped.append(
            f"kA:{hidden}: {states} states show {looks} observations; states that "
            "look alike are not told apart"
        )
