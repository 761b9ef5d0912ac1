"""The canonical words: the shortest way to each state, and the first, cold look there.

True only here: a state's reference is what is seen at the end of its canonical word,
played on a fresh system on which nobody looked before.  Everything that is seen later,
warm or by other ways, is compared with it.

The algorithm is breadth-first search over words: from each known state in order of
discovery, letters ascending, every toggle whose target is not known yet is tried from
a fresh system.  So each state gets the word that is first by length, then by letters,
among the extensions of canonical words; failing steps are met (and recorded) on the
way, and the reachable sets are known exactly when it ends.  With `answers` each use is
also performed once, first of all, at the end of each canonical word: a use whose answer
is cached at its first call is unmasked only by a call that had no call before it.

Above `MOST_WORDS` only the corners are visited, and the session says so.
"""

from harness.engine.alphabet import Key, toggled
from harness.engine.protocol import Word
from harness.engine.session import Session

# 2^13 fresh words of six adds are five seconds at 100 microseconds a step; a `walk:1`
# on 12 steps is ten times as long.
MOST_WORDS = 8192


def count_arrangements(steps: int) -> int:
    """How many ordered arrangements of distinct steps there are, () included."""
    total = term = 1
    for left in range(steps, 0, -1):
        term *= left
        total += term
    return total


def look_cold(session: Session) -> None:
    """Take the cold look at every state, or at the corners where there are too many."""
    steps, uses = session.alphabet.steps, session.alphabet.uses
    states = count_arrangements(steps) if session.ordered else 1 << steps
    if states * (1 + uses) > MOST_WORDS:
        _corners(session)
        session.skipped.append(
            f"cold looks: of {states:,} states only the corners (none, singles, "
            "pairs, all) were also looked at cold"
        )
    else:
        spread(session)


def spread(session: Session) -> None:
    """Find the canonical word of every reachable state, and look there cold."""
    if session.mapped:
        return
    canonical = session.ledger.canonical
    root: Key = () if session.ordered else 0
    _visit(session, ())
    queue = [root]
    for key in queue:
        word = canonical[key]
        session.meter.check_time()
        queue.extend(
            session.runner.key
            for step in range(session.alphabet.steps)
            if toggled(key, step) not in canonical and _visit(session, (*word, step))
        )
        _answers(session, word)
    session.mapped = session.reached = True


def _corners(session: Session) -> None:
    steps = session.alphabet.steps
    words: list[Word] = [(), *((i,) for i in range(steps))]
    words += [(i, j) for i in range(steps) for j in range(i + 1, steps)]
    words.append(tuple(range(steps)))
    for word in words:
        session.meter.check_time()
        if _visit(session, word):
            _answers(session, word)


def _visit(session: Session, word: Word) -> bool:
    """Look at the end of the word; whether that is a state not seen before."""
    session.rehearse(word)
    canonical = session.ledger.canonical
    if session.runner.key in canonical:
        return False
    canonical[session.runner.key] = word
    return True


def _answers(session: Session, word: Word) -> None:
    for use in range(session.alphabet.steps, session.alphabet.actions):
        session.rehearse((*word, use))
