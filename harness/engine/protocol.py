"""What the engine needs to know about a system, and how it speaks about words.

True only here: the engine sees numbers.  A system has `steps` steps that can be done
and undone, and `uses` uses that must not change what is registered; what they mean is
the adapter's business.

Rules for an adapter:
- `reset` makes a fresh system; the engine has dropped every handle before it calls it;
- `do` returns the undo handle and keeps no reference of its own to it, because the
  engine checks that a handle dies when it is dropped;
- `do` may raise: a failing step is an edge like any other, and it must leave no trace;
- `use` may warm caches, and only that; an exception inside it is an answer like any
  other: return its fields;
- `laws` and `fingerprint` look at a value and warm nothing; `observe` may warm caches
  (it may call), which is why the engine counts a look as a letter of its words;
- everything returned is hashable and compared by `==`, free of addresses, times, ids.

How letters are numbered, for n steps and m uses: `0 .. n-1` toggle a step (do it when
it is not active, else undo it), `n .. n+m-1` perform a use, `n+m` looks (observes).

When you change the alphabet, change `replay_id.py`: the version in an id names it.
"""

from collections.abc import Hashable, Sequence
from typing import Protocol, TypeAlias

State: TypeAlias = tuple[int, ...]
"""The active steps: ascending, or in order of activation for ordered systems."""

Word: TypeAlias = tuple[int, ...]
"""Letters in the order in which they were played, from a fresh system."""


class System(Protocol):
    """A registry under exploration; see the module's rules."""

    @property
    def steps(self) -> int:
        """How many steps can be done and undone."""
        ...

    @property
    def uses(self) -> int:
        """How many uses there are."""
        ...

    def reset(self) -> None:
        """Make a fresh system, nothing active; handles of before are void."""
        ...

    def do(self, step: int) -> object:
        """Do a step and return its undo handle; raises where the step fails."""
        ...

    def undo(self, step: int, handle: object) -> None:
        """Undo a step that was done; it must never raise."""
        ...

    def use(self, use: int) -> Hashable:
        """Perform a use and return its answer."""
        ...

    def observe(self) -> Hashable:
        """Return what must depend on the active set only."""
        ...

    def laws(self) -> Sequence[Hashable]:
        """Return the laws that the last action broke; empty when all hold."""
        ...

    def failure(self, error: Exception) -> Hashable:
        """Return an error's fields, as they are compared and expected."""
        ...

    def fingerprint(self) -> Hashable | None:
        """Return the complete state as a value, or None when there is none."""
        ...
