"""The letters of a system, and the step from one key to the next.

True only here: arithmetic on letters and keys, nothing is executed.  A *key* is how the
engine names a state: the bitmask of the active steps, or, for ordered systems, the
tuple of active steps in order of activation.  `State` (always a tuple) is the public
form; `state_of` turns one into the other.

How letters are numbered is told in `protocol.py`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from harness.engine.protocol import State, System, Word
from harness.errors import TooLarge, UnknownLetter

Key: TypeAlias = int | State
"""A bitmask of active steps, or the active steps in order of activation."""

# A trace stores one letter a byte, and the look letter must fit in too.
MOST_LETTERS = 255


@dataclass(frozen=True, slots=True)
class Alphabet:
    """`steps` toggles, then `uses` uses, then one look."""

    steps: int
    uses: int

    @property
    def actions(self) -> int:
        """How many letters do something: toggles and uses."""
        return self.steps + self.uses

    @property
    def look(self) -> int:
        """The letter that observes."""
        return self.steps + self.uses

    def check(self, word: Word) -> None:
        """Raise `UnknownLetter` when the word has a letter from elsewhere."""
        for letter in word:
            if not 0 <= letter <= self.look:
                raise UnknownLetter(word=word, letter=letter, letters=self.look + 1)


def alphabet_of(system: System) -> Alphabet:
    """The system's alphabet; raises `TooLarge` above 255 letters."""
    alphabet = Alphabet(system.steps, system.uses)
    if alphabet.look >= MOST_LETTERS:
        raise TooLarge(
            what="the alphabet (steps, uses and the look)",
            size=alphabet.look + 1,
            limit=MOST_LETTERS,
        )
    return alphabet


def state_of(key: Key) -> State:
    """The public form of a key."""
    if isinstance(key, tuple):
        return key
    return tuple(i for i in range(key.bit_length()) if key >> i & 1)


def key_of(state: Iterable[int], *, ordered: bool) -> Key:
    """The key of a state; the inverse of `state_of` for the given kind of key."""
    if ordered:
        return tuple(state)
    mask = 0
    for step in state:
        mask |= 1 << step
    return mask


def active(key: Key, step: int) -> bool:
    """Whether the step is active at the key."""
    return step in key if isinstance(key, tuple) else bool(key >> step & 1)


def toggled(key: Key, step: int) -> Key:
    """The key after the step was toggled with success."""
    if not isinstance(key, tuple):
        return key ^ (1 << step)
    if step in key:
        return tuple(other for other in key if other != step)
    return (*key, step)
