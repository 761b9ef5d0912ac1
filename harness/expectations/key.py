"""What a section of an expect file is about: a state, or a step that fails there.

True only here: names and order of keys.  Steps are numbered from 1 in texts, as people
count them, and from 0 in values, as the engine does.

    {}  {1 3}  {1 3} + 2 fails         states told apart by their active steps
    {}  {3}  3 then 1  3 then 1 + 2 fails     and by the order of activation
    {1 3} + 3 fails                    the undo of a step that is active was refused

Rules: keys are ordered by size, then by steps; the failing steps of a state follow it.
"""

import re
from dataclasses import dataclass

from harness.engine.protocol import State

_SET = re.compile(r"\{((?:\d+(?: \d+)*)?)\}(?: \+ (\d+) fails)?", re.ASCII)
_ORDER = re.compile(r"(\d+(?: then \d+)+)(?: \+ (\d+) fails)?", re.ASCII)

# No scenario has steps of more digits, and int() refuses texts of thousands of them.
_MOST_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Key:
    """A state, and the step that fails there, if it is that transition."""

    state: State
    fails: int | None = None

    @property
    def rank(self) -> tuple[int, State, int]:
        """What keys are sorted by."""
        return len(self.state), self.state, -1 if self.fails is None else self.fails

    def text(self, *, ordered: bool) -> str:
        """The key as it stands between the signs of a heading."""
        numbers = [str(step + 1) for step in self.state]
        if ordered and len(numbers) > 1:
            name = " then ".join(numbers)
        else:
            name = "{" + " ".join(numbers) + "}"
        return name if self.fails is None else f"{name} + {self.fails + 1} fails"

    def is_corner(self, steps: int) -> bool:
        """Whether nothing, one, two or all of the steps are active."""
        return len(self.state) <= 2 or self.state == tuple(range(steps))


def key_of(text: str, *, ordered: bool) -> Key | None:
    """The key written so, or None where no key is written so."""
    match = _SET.fullmatch(text)
    numbers = match[1].split() if match else []
    if match is None or (ordered and len(numbers) > 1):
        match = _ORDER.fullmatch(text) if ordered else None
        if match is None:
            return None
        numbers = match[1].split(" then ")
    failing = [] if match[2] is None else [match[2]]
    if any(len(number) > _MOST_DIGITS for number in numbers + failing):
        return None
    state = tuple(int(number) - 1 for number in numbers)
    key = Key(state, int(failing[0]) - 1 if failing else None)
    sound = len(set(state)) == len(state) and (ordered or sorted(state) == list(state))
    return key if sound and key.text(ordered=ordered) == text else None
