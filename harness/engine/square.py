"""The failing square: which two letters do not commute, and from where.

True only here: by theorem T2 (`theory.py`) a system that depends on the order has a
square of the cube of sets that does not close.  Four edges explain more than the word.

How it works: along the shortest word, each pair of neighbouring steps is exchanged, and
each step is done and undone; the first place where the looks then differ is the
square.  The look is taken right after the two letters, or, where the difference stays
hidden until later letters, after the rest of the word.  Faults that need a use or a
failing step between may have no square over this word; then there is none to show.
"""

from collections.abc import Iterator

from harness.engine.alphabet import Alphabet
from harness.engine.judge import STATEFUL, Exhausted, Judge
from harness.engine.protocol import Word
from harness.engine.result import Kind, Square


def find_square(
    judge: Judge, word: Word, kind: Kind, alphabet: Alphabet
) -> Square | None:
    """The first square along the word that does not close, if there is one."""
    if kind not in STATEFUL:
        return None
    try:
        for rest in (False, True):
            for at, one, other in _pairs(word, alphabet, rest=rest):
                left, right = judge.replay(one), judge.replay(other)
                if not left.actions or not right.actions:
                    continue
                if judge.differs(left.actions[-1], right.actions[-1]):
                    state = left.actions[at - 1].state if at else ()
                    return Square(state, word[at], word[at + 1])
    except Exhausted:
        pass
    return None


def _pairs(
    word: Word, alphabet: Alphabet, *, rest: bool
) -> Iterator[tuple[int, Word, Word]]:
    """Places of two neighbouring steps, with the two words to compare."""
    for at in range(len(word) - 1):
        first, second = word[at], word[at + 1]
        if first >= alphabet.steps or second >= alphabet.steps:
            continue
        before = word[:at]
        after = word[at + 2 :] if rest else ()
        other = () if first == second else (second, first)
        yield at, (*before, first, second, *after), (*before, *other, *after)
