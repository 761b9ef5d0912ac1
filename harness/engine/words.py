"""`words:k`: every word of at most k letters, each on a fresh system.

True only here: nobody looks before the end of a word.  That is what finds caches which
go stale: a look after every letter warms all histories alike, and then they agree.

How it works: shorter words come first, so the first word that reaches a state is its
reference when the cold looks were not taken, and the first word that fails is a
shortest one.
"""

from itertools import product

from harness.engine.session import Session


def size(steps: int, uses: int, longest: int) -> int:
    """Letters of all words."""
    letters = steps + uses
    return sum(length * letters**length for length in range(1, longest + 1))


def run(session: Session, longest: int) -> None:
    """Play all words of at most `longest` letters."""
    alphabet = range(session.alphabet.actions)
    for length in range(longest + 1):
        for word in product(alphabet, repeat=length):
            session.word(word)
