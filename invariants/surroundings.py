"""What surrounds a call: the thread's keys, the trace's nesting, the writer's lock.

True only here: the one place where something is looked at that is no value.  Callers
sample it before, inside and after a call; the laws of a run compare the samples.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol


class ThreadKeys(Protocol):
    """The thread's included and excluded keys."""

    @property
    def included(self) -> int:
        """Bits that every call gets."""

    @property
    def excluded(self) -> int:
        """Bits that no call keeps."""

    @property
    def switched_in(self) -> Hashable:
        """What was switched on in the included set."""

    @property
    def switched_out(self) -> Hashable:
        """What was switched on in the excluded set."""


class Nesting(Protocol):
    """How deep the traced calls of this thread are nested."""

    @property
    def level(self) -> int:
        """0 outside of all calls."""


class Lockable(Protocol):
    """A lock that can be asked."""

    def locked(self) -> bool:
        """Whether anybody holds it."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """One sample; only `locked` may differ between before and inside a call."""

    included: int
    excluded: int
    switched_in: Hashable
    switched_out: Hashable
    nesting: int
    locked: bool


def surroundings(keys: ThreadKeys, nesting: Nesting, lock: Lockable) -> Surroundings:
    """Sample now, on this thread."""
    return Surroundings(
        keys.included,
        keys.excluded,
        keys.switched_in,
        keys.switched_out,
        nesting.level,
        lock.locked(),
    )
