"""The check before all others: does the same word give the same results twice?

True only here: two runs are compared, not a run with a reference.  Without this every
other verdict is void: a counter, an address or an id in an observation would pass for
a dependence on order.

How it works: two words, each played twice on a fresh system: the steps added upwards
and removed upwards, and both downwards; at each state every use is performed and a look
is taken.  Everything that came back is compared, failures and fingerprints included.
"""

from harness.engine.alphabet import Alphabet, key_of
from harness.engine.protocol import Word
from harness.engine.replay import Action, replay
from harness.engine.session import Finding, Session


def rehearsal(alphabet: Alphabet) -> tuple[Word, Word]:
    """The words that are played twice."""
    every = (*range(alphabet.steps, alphabet.actions), alphabet.look)
    upwards = tuple(range(alphabet.steps))
    words = [
        every + tuple(letter for step in (*steps, *steps) for letter in (step, *every))
        for steps in (upwards, upwards[::-1])
    ]
    return words[0], words[1]


def check(session: Session) -> bool:
    """Whether all words agree with themselves; a finding is added when one does not."""
    for word in rehearsal(session.alphabet):
        one, two = (
            replay(session.system, word, order_dependent=session.ordered).actions
            for _ in range(2)
        )
        if one == two:
            continue
        for at, (left, right) in enumerate(zip(one, two, strict=False)):
            if left != right:
                session.findings.append(_finding(session, word[: at + 1], left, right))
                return False
        session.findings.append(_finding(session, word, one[-1], two[-1]))
        return False
    return True


def _finding(session: Session, word: Word, left: Action, right: Action) -> Finding:
    expected, found = left.value, right.value
    hidden = expected == found
    if hidden:
        expected, found = left.fingerprint, right.fingerprint
        if word[-1] == session.alphabet.look:
            # It is not the look that differs; one is implied at the end.
            word = word[:-1]
    key = key_of(right.state, ordered=session.ordered)
    return Finding("nondeterminism", key, expected, found, word, hidden)
