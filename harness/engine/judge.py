"""Says whether a word fails, by replaying it and comparing its end.

True only here: the verdict on a word depends on the word alone, not on what was played
before in the exploration.  The reference is the canonical word of the state where the
word ends (`canonical.py`; ascending adds where there is none), replayed once and
remembered.  Only the end of a word is judged: what goes wrong earlier fails a prefix.

Rules: the judge stops by letters played, so that what it finds is the same on every
machine; the limit in seconds is only a guard against systems that are very slow.
Faults of one family (see `STATEFUL`) stand for each other, because which of their names
fits is known only when the word is short.
"""

from collections.abc import Mapping
from dataclasses import replace
from time import monotonic
from typing import Final

from harness.engine.alphabet import Key, key_of
from harness.engine.protocol import State, System, Word
from harness.engine.replay import Action, Fault, Replay, replay
from harness.engine.result import Kind

# Kinds that say: what is seen depends on more than the active set.
STATEFUL: Final = frozenset[Kind]({"order", "cold", "use", "wedged"})

# Letters for shrinking one violation: two seconds at 30 microseconds a letter.
MOST_LETTERS = 60_000


# A guard for systems of a millisecond a letter: nobody waits longer for a short word.
MOST_SECONDS = 20.0


class Exhausted(Exception):
    """The judge has played all the letters that it may."""


class Judge:
    """Replays words against canonical references, within an allowance of letters."""

    def __init__(
        self,
        system: System,
        canonical: Mapping[Key, Word],
        *,
        ordered: bool,
        proving: bool,
        letters: int = MOST_LETTERS,
    ) -> None:
        self._system = system
        self._canonical = canonical
        self._ordered = ordered
        self._proving = proving
        self._references: dict[Word, Replay] = {}
        self.left = letters
        self._ends = monotonic() + MOST_SECONDS

    def extend(self, length: int) -> None:
        """Allow the replay of one more word and of its references."""
        self.left = max(self.left, 0) + 4 * length + 16
        self._ends = max(self._ends, monotonic() + 1.0)

    def way(self, state: State) -> Word:
        """The canonical word of a state, or its steps one by one."""
        key = key_of(state, ordered=self._ordered)
        return self._canonical.get(key, state)

    def replay(self, word: Word) -> Replay:
        """Replay a word; raises `Exhausted` when the allowance is used up."""
        if self.left < len(word) or monotonic() > self._ends:
            raise Exhausted
        self.left -= len(word) + 1
        return replay(self._system, word, order_dependent=self._ordered)

    def fault(self, word: Word, kind: Kind) -> Fault | None:
        """What is wrong at the end of the word, of the family of `kind`."""
        return self.inspect(word, self.replay(word), kind)

    def inspect(self, word: Word, played: Replay, kind: Kind) -> Fault | None:
        """The same for a word that was replayed already."""
        family = STATEFUL if kind in STATEFUL else frozenset({kind})
        for fault in played.faults:
            if fault.kind in family:
                return _renamed(fault, played)
        if len(played.actions) > len(word):
            contradiction = self._contradiction(word, played, family)
            if contradiction is not None:
                return _renamed(contradiction, played)
        return None

    def differs(self, seen: Action, other: Action) -> bool:
        """Whether two looks at the same state show two things."""
        if seen.state != other.state:
            return False
        return seen.value != other.value or (
            self._proving and seen.fingerprint != other.fingerprint
        )

    def _contradiction(
        self, word: Word, played: Replay, family: frozenset[Kind]
    ) -> Fault | None:
        at = len(word)
        final = played.actions[at]
        if word:
            before = played.actions[at - 2].state if at > 1 else ()
            last = played.actions[at - 1]
            other = self._reference((*self.way(before), word[-1]), at=-2)
            if last.deed == "use" and "use" in family and other.deed == "use":
                if other.state == before and other.value != last.value:
                    return Fault("use", last.state, other.value, last.value, at)
            elif "error" in family and "failing" in (last.deed, other.deed):
                same_place = self._reference(self.way(before), at=-1).state == before
                if same_place and (other.deed, other.value) != (last.deed, last.value):
                    return Fault("error", before, other.value, last.value, at)
        if "order" in family:
            other = self._reference(self.way(final.state), at=-1)
            # What can be seen says more than a fingerprint, so it comes first.
            if final.state == other.state and final.value != other.value:
                return Fault("order", final.state, other.value, final.value, at)
            hidden = self._hidden(played, final, other)
            if hidden is not None:
                return hidden
            if self.differs(other, final):
                expected, found = other.fingerprint, final.fingerprint
                return Fault("order", final.state, expected, found, at, True)
        return None

    def _hidden(self, played: Replay, final: Action, other: Action) -> Fault | None:
        """A difference of complete states that the final look takes away, or makes."""
        if not self._proving or final.state != other.state:
            return None
        at, state = len(played.word), final.state
        expected = self._references[self.way(state)].unlooked
        if played.unlooked != expected:
            return Fault("order", state, expected, played.unlooked, at, True)
        if final.fingerprint != expected:
            return Fault("cold", state, expected, final.fingerprint, at + 1, True)
        return None

    def _reference(self, word: Word, at: int) -> Action:
        """An action of a reference word, which is replayed once."""
        known = self._references.get(word)
        if known is None:
            known = self._references[word] = self.replay(word)
        actions = known.actions
        return actions[at] if len(actions) > len(word) else actions[-1]


def _renamed(fault: Fault, played: Replay) -> Fault:
    """The fault under the name that fits what the word needs to show it."""
    if fault.kind not in STATEFUL or fault.position > len(played.word):
        return fault
    deeds = [action.deed for action in played.actions[: len(played.word)]]
    kind: Kind = "order"
    for deed, name in _NAMES.items():
        if deed in deeds:
            kind = name
            break
    return replace(fault, kind=kind)


# In a word from which nothing can be taken away every letter is to blame; the rarest
# deed among its letters names the fault.
_NAMES: Final[Mapping[str, Kind]] = {"failing": "wedged", "use": "use", "look": "cold"}
