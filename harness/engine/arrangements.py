"""`arrangements`: every letter after every order of adding.

True only here: the states are ordered arrangements of distinct steps, whatever the
system's observations are keyed by.  Right for registries where the order of what is
active may matter ("the newest wins"); it never plays a longer history than needed.

How it works: breadth-first over arrangements; each gets the first word that leads to
it, and every letter is played at the end of that word on a fresh system.  Where steps
fail, only what can be reached is expanded; an arrangement that is reached only by
removing something is reached that way.
"""

from harness.engine.alphabet import toggled
from harness.engine.protocol import State, Word
from harness.engine.session import Session


def size(steps: int, uses: int) -> int:
    """Letters of all words when no step fails: (arrangement + 1) * A, summed."""
    total, many = 0, 1
    for length in range(steps + 1):
        total += many * (length + 1)
        many *= steps - length
    return total * (steps + uses)


def run(session: Session) -> None:
    """Play every letter from every arrangement."""
    runner, steps = session.runner, session.alphabet.steps
    session.word(())
    queue: list[tuple[State, Word]] = [((), ())]
    known: set[State] = {()}
    for arrangement, word in queue:
        for letter in range(session.alphabet.actions):
            session.word((*word, letter))
            if letter >= steps or (runner.mask >> letter & 1) == (
                letter in arrangement
            ):
                continue
            target = toggled(arrangement, letter)
            assert isinstance(target, tuple), "a tuple toggles to a tuple"
            if target not in known:
                known.add(target)
                queue.append((target, (*word, letter)))
    session.reached = True
