"""`kA:k`: complete up to k hidden letters, for systems that show only observations.

True only here: a guarantee without a fingerprint.  If every state of the system is
reached by a canonical word followed by at most k letters, and different active sets
look different, then a system that passes is equivalent to "the state is the active
set": the suite is the canonical words, times all words of at most k + 1 letters, times
the separating looks (here one look, at the end).  This is k-A-completeness (Vaandrager
and Melse, "New fault domains for conformance testing of finite state machines", CONCUR
2025), with the lattice of sets as the specification.

What the run adds to the guarantee: states that look alike are not told apart, and the
exploration says how many there are.
"""

from itertools import product

from harness.engine.canonical import spread
from harness.engine.session import Session


def size(steps: int, uses: int, hidden: int) -> int:
    """Letters of the suite when no step fails (canonical words: n/2 on average)."""
    letters = steps + uses
    doubled = sum(
        int(letters**length) * (steps + 2 * length) for length in range(1, hidden + 2)
    )
    return (doubled << steps) // 2


def measured(session: Session, hidden: int) -> int:
    """Letters of the suite, once the canonical words are known."""
    letters = session.alphabet.actions
    return sum(
        int(letters**length) * (len(word) + length)
        for word in session.ledger.canonical.values()
        for length in range(1, hidden + 2)
    )


def run(session: Session, hidden: int) -> None:
    """Play the suite for `hidden` letters."""
    spread(session)
    alphabet = range(session.alphabet.actions)
    for word in tuple(session.ledger.canonical.values()):
        for length in range(1, hidden + 2):
            for suffix in product(alphabet, repeat=length):
                session.word(word + suffix)
    states, looks = len(session.ledger.seen), len(set(session.ledger.seen.values()))
    if looks < states:
        session.skipped.append(
            f"kA:{hidden}: {states} states show {looks} observations; states that "
            "look alike are not told apart"
        )
