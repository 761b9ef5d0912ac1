"""`graph`: the proof for all histories, on complete states.

True only here: the fingerprint is compared, before and after the look, at every
arrival.  By theorem T1 (`theory.py`) one visit of every edge then settles every finite
history of any length.

How it works: for systems keyed by set it is `walk:0` with the comparison switched on,
uses included as loops.  For ordered systems the states are arrangements, whose digraph
has no Eulerian circuit; there it is `arrangements` with the comparison switched on.
"""

from harness.engine import arrangements, walk
from harness.engine.session import Session
from harness.errors import NoFingerprint


def size(steps: int, uses: int, *, ordered: bool) -> int:
    """Letters of the run when no step fails."""
    if ordered:
        return arrangements.size(steps, uses)
    return walk.size(steps, uses, 0)


def run(session: Session) -> None:
    """Take every edge once; raises `NoFingerprint` where there is none to compare."""
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
