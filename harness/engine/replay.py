"""Plays one word on a fresh system and tells what happened at each letter.

True only here: nothing is compared with a reference of other words; a replay is the
raw material from which the determinism check, the shrinker and a person judge.

Rules: a look is played where the word has one, and one more at the end, always.  With
`watch` there is a look after every letter; that may hide a fault of the cold kind.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from harness.engine.alphabet import Alphabet, alphabet_of, state_of
from harness.engine.ledger import Ledger
from harness.engine.protocol import State, System, Word
from harness.engine.result import Kind
from harness.engine.runner import Broken, Runner

Deed: TypeAlias = Literal["add", "remove", "failing", "use", "look"]


@dataclass(frozen=True, slots=True)
class Action:
    """One letter played: what it did, the state after it, and what came back.

    `value` holds a failing step's fields, a use's answer or a look's observation; it
    is None for adds and removes.  `fingerprint` is the state's, where there is one.
    """

    letter: int
    deed: Deed
    state: State
    value: Hashable
    fingerprint: Hashable | None


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong within the word alone, after `position` letters.

    It is `hidden` if expected and found are fingerprints.
    """

    kind: Kind
    state: State
    expected: Hashable
    found: Hashable
    position: int
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Replay:
    """What happened; `actions` ends with the final look unless an undo raised.

    `fresh` is the fingerprint of the fresh system, where there is one.
    """

    word: Word
    actions: tuple[Action, ...]
    faults: tuple[Fault, ...]
    fresh: Hashable | None = None

    @property
    def unlooked(self) -> Hashable | None:
        """The fingerprint after the word, before the final look."""
        if not self.word:
            return self.fresh
        return self.actions[-2].fingerprint if len(self.actions) > 1 else None

    @property
    def state(self) -> State:
        """The state at the end."""
        return self.actions[-1].state if self.actions else ()


def replay(
    system: System,
    word: Sequence[int],
    *,
    order_dependent: bool = False,
    watch: bool = False,
) -> Replay:
    """Play the word from a fresh system; raises `UnknownLetter` for a foreign word."""
    alphabet = alphabet_of(system)
    word = tuple(word)
    alphabet.check(word)
    faults: list[Fault] = []

    def report(kind: Kind, expected: Hashable, found: Hashable, hidden: bool) -> None:
        at, state = len(runner.trace), state_of(runner.key)
        faults.append(Fault(kind, state, expected, found, at, hidden))

    runner = Runner(system, alphabet, Ledger(), report, ordered=order_dependent)
    played: list[int] = []
    for letter in word:
        played += (letter, alphabet.look) if watch else (letter,)
    if not watch or not word:
        played.append(alphabet.look)
    runner.reset()
    fresh = system.fingerprint() if runner.printed else None
    actions: list[Action] = []
    try:
        for letter in played:
            before = runner.mask
            value = runner.play(letter)
            actions.append(
                Action(
                    letter,
                    _deed(alphabet, letter, before, runner.mask),
                    state_of(runner.key),
                    value,
                    system.fingerprint() if runner.printed else None,
                )
            )
    except Broken:
        pass
    runner.drop()
    return Replay(word, tuple(actions), tuple(faults), fresh)


def _deed(alphabet: Alphabet, letter: int, before: int, after: int) -> Deed:
    if letter == alphabet.look:
        return "look"
    if letter >= alphabet.steps:
        return "use"
    if before == after:
        return "failing"
    return "remove" if before >> letter & 1 else "add"
