"""`arrangements`: every operation after every order of adding.

True only here: the states are ordered arrangements of distinct steps, whatever the
system's observations are keyed by.  Right for registries where the order of what is
active may matter ("the newest wins"); it never plays a longer history than needed.

How it works: breadth-first over arrangements; each gets the first history that leads to
it, and every operation is played at the end of that history on a fresh system.  Where
steps fail, only what can be reached is expanded; an arrangement that is reached only by
removing something is reached that way.
"""

from harness.engine.operations import EVERY_ORDER, UNORDERED, Key, state_of
from harness.engine.protocol import History
from harness.engine.session import Session


def size(steps: int, uses: int) -> int:
    """Operations of all histories when no step fails: (arrangement + 1) * A, summed."""
    total, many = 0, 1
    for length in range(steps + 1):
        total += many * (length + 1)
        many *= steps - length
    return total * (steps + uses)


def run(session: Session) -> None:
    """Play every operation from every arrangement that counts as one."""
    runner = session.runner
    session.history(())
    queue: list[tuple[Key, History]] = [((), ())]
    known: set[Key] = {()}
    for arrangement, history in queue:
        mask = UNORDERED.key(state_of(arrangement))
        for operation in range(session.operations.actions):
            session.history((*history, operation))
            if runner.mask == mask:
                continue
            target = EVERY_ORDER.toggled(arrangement, operation)
            if target not in known:
                known.add(target)
                queue.append((target, (*history, operation)))
    session.reached = True
