"""`graph`: the proof for all histories, on complete states.

True only here: which of two searches a system gets.  One whose states may differ while
the same steps are active (caches, logs, handles) is explored state by state
(`states.py`, theorem T0).  A *settled* one must have one state for each set of active
steps, which is compared, before and after the look, at every arrival; by theorem T1
one visit of every transition then settles every finite history of any length.

How it works for settled systems: `walk:0` with the comparison switched on, uses
included as loops; up to `DOUBLED` steps it is walked once more from the far end of the
first round, so that every transition is taken from a second history.  Where order
counts the states are arrangements, whose digraph has no Eulerian circuit; there it is
`arrangements` with the comparison switched on.

That a settled system's state is complete cannot be shown, but it can be refuted: two
equal ones that look or answer differently make the proof void.
"""

from collections.abc import Hashable

from harness.engine import arrangements, states, walk
from harness.engine.operations import Key, state_of
from harness.engine.session import Session
from harness.errors import BadFingerprint, NoFingerprint

# Steps up to which every transition is taken from two histories: 2,048 at 8 steps.
DOUBLED = 8


def size(steps: int, uses: int, *, ordered: bool) -> int:
    """Operations of the run of a settled system when no step fails."""
    if ordered:
        return arrangements.size(steps, uses)
    return walk.size(steps, uses, 0) * (2 if steps <= DOUBLED else 1)


def run(session: Session) -> None:
    """Take every operation at every state.

    Raises `NoFingerprint` where there is no state to compare, `BadFingerprint` where
    what there is cannot be complete.
    """
    if not session.system.settled:
        states.run(session)
        return
    runner = session.runner
    runner.reset()
    if not runner.printed:
        raise NoFingerprint(strategy="graph")
    runner.proving = True
    try:
        if session.ordered or not session.operations.reversible:
            arrangements.run(session)
        else:
            walk.run(session, 0)
            if session.operations.steps <= DOUBLED:
                walk.run(session, 0, again=True)
    finally:
        runner.proving = False
    _refute(session)


def _refute(session: Session) -> None:
    """Look for states that a complete fingerprint would tell apart."""
    ledger = session.ledger
    met: dict[Hashable, Key] = {}
    for key, found in ledger.prints.items():
        if found is None:
            raise NoFingerprint(strategy="graph")
        other = met.setdefault(checked(found), key)
        looks = [ledger.seen.get(each) for each in (other, key)]
        uses = range(session.operations.uses)
        answers = [
            [ledger.answers.get((each, use)) for use in uses] for each in (other, key)
        ]
        if looks[0] != looks[1] or answers[0] != answers[1]:
            what = "look" if looks[0] != looks[1] else "answer"
            one, two = (list(state_of(each)) for each in (other, key))
            raise BadFingerprint(
                reason=f"it is the same with {one} and with {two} active (steps "
                f"counted from 0), which {what} differently"
            )
    if len(ledger.prints) > 1 and len(met) == 1:
        session.skipped.append(
            f"graph: all {len(ledger.prints)} states have one fingerprint; nothing "
            "that a step does shows in it"
        )


def checked(found: Hashable) -> Hashable:
    """The state; raises `BadFingerprint` where it could change in our hands."""
    try:
        hash(found)
    except TypeError:
        kind = type(found).__name__
        raise BadFingerprint(reason=f"this {kind} is not hashable") from None
    return found
