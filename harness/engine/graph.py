"""`graph`: the proof for all histories, on complete states.

True only here: the fingerprint is compared, before and after the look, at every
arrival.  By theorem T1 (`theory.py`) one visit of every edge then settles every finite
history of any length.

How it works: for systems keyed by set it is `walk:0` with the comparison switched on,
uses included as loops.  For ordered systems the states are arrangements, whose digraph
has no Eulerian circuit; there it is `arrangements` with the comparison switched on.

That the fingerprint is complete cannot be shown, but it can be refuted: two states of
one fingerprint that look or answer differently make the proof void.
"""

from collections.abc import Hashable

from harness.engine import arrangements, walk
from harness.engine.alphabet import Key, state_of
from harness.engine.session import Session
from harness.errors import BadFingerprint, NoFingerprint


def size(steps: int, uses: int, *, ordered: bool) -> int:
    """Letters of the run when no step fails."""
    if ordered:
        return arrangements.size(steps, uses)
    return walk.size(steps, uses, 0)


def run(session: Session) -> None:
    """Take every edge once.

    Raises `NoFingerprint` where there is none to compare, `BadFingerprint` where what
    there is cannot be complete.
    """
    runner = session.runner
    runner.reset()
    if not runner.printed:
        raise NoFingerprint(strategy="graph")
    runner.proving = True
    try:
        if session.ordered:
            arrangements.run(session)
        else:
            walk.run(session, 0)
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
        uses = range(session.alphabet.uses)
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
    """The fingerprint; raises `BadFingerprint` where it could change in our hands."""
    try:
        hash(found)
    except TypeError:
        kind = type(found).__name__
        raise BadFingerprint(reason=f"this {kind} is not hashable") from None
    return found
