"""What the engine needs to know about a system, and how it speaks about histories.

True only here: the engine sees numbers.  A system has `steps` steps that can be done
and, mostly, undone, and `uses` uses that must not change what is registered; what they
mean is the adapter's business.

Rules for an adapter:
- `reset` makes a fresh system; the engine has dropped every handle before it calls it;
- `do` returns the undo handle and keeps no reference of its own to it, because the
  handle is part of the state and belongs to the engine alone;
- `do` may raise: a failing step is a transition like any other, and it must leave no
  trace; so may `undo` of a step that the system's relations call refusable;
- `use` may warm caches, and only that; an exception inside it is an answer like any
  other: return its fields;
- `laws`, `state` and `portrait` look and change nothing; `observe` may warm caches (it
  may call), which is why the engine counts a look as an operation;
- everything returned is hashable, compared by `==`, and a value: it never changes
  later, and holds no address, time or id.

How operations are numbered, for n steps and m uses: `0 .. n-1` toggle a step (do it
when it is not active, else undo it; a step that cannot be undone is done again, where
its relations allow that), `n .. n+m-1` perform a use, `n+m` looks (observes), and
`n+m+1` collects garbage.

When you change the numbers, change `replay_id.py`: the version in an id names them.
"""

import gc
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeAlias

State: TypeAlias = tuple[int, ...]
"""The active steps: ascending, or in order of activation as far as that counts."""

History: TypeAlias = tuple[int, ...]
"""Operations in the order in which they were played, from a fresh system."""


class StateForm(NamedTuple):
    """A complete state as a value: equal forms, equal states.

    `exact` tells everything; `blind` tells everything but the order of dicts, so it is
    a function of `exact`.  `weak` says that a weak reference or a finalizer is in
    reach, so that collecting garbage may change the state.  `objects` is the number of
    objects that the state consists of.  `variant` tells what is no part of a state,
    the order of sets for one, and yet might be read: histories that differ in it are
    the better ones to compare.
    """

    blind: bytes
    exact: bytes
    weak: bool = False
    objects: int = 0
    variant: bytes = b""


@dataclass(frozen=True, slots=True)
class Caveat:
    """What a system knows to stand between its states and a proof.

    `assumed` is taken for granted ("the order of sets is not read"): a proof stands,
    and names it.  `opaque` is state that nobody can see, `outside` is state that
    changed beyond what was followed: with either nothing is proven.
    """

    kind: Literal["assumed", "opaque", "outside"]
    text: str


@dataclass(frozen=True, slots=True)
class Symmetry:
    """Steps that are told to differ in nothing but their parameter.

    `members` are the steps, each with the texts by which its parameter may stand in
    what is seen, as many for each.
    """

    name: str
    members: Mapping[int, tuple[str, ...]]

    def text(self, step: int) -> str:
        """A member as it is written: `add('json')`."""
        return f"{self.name}({self.members[step][0]})"


@dataclass(frozen=True, slots=True)
class Relations:
    """Which operations make sense where, and which orders are meant to count.

    `lasting` steps cannot be undone; those in `again` may be done while they are
    active.  A step can be done only while all that it `requires` is active, and none
    of these can be undone meanwhile; what it comes `after` must be active when it is
    done, and may go then.  The undo of a `refusable` step may raise, and
    then it stays active.  For each of `pairs` the order in which the two became active
    may show; all other orders may not.  The operations in `declared` are meant to
    change nothing, never to vary, or always to raise.  Steps of a class of `symmetric`
    can stand for each other.
    """

    lasting: frozenset[int] = frozenset()
    again: frozenset[int] = frozenset()
    requires: Mapping[int, frozenset[int]] = field(default_factory=dict)
    after: Mapping[int, frozenset[int]] = field(default_factory=dict)
    refusable: frozenset[int] = frozenset()
    pairs: frozenset[tuple[int, int]] = frozenset()
    declared: frozenset[int] = frozenset()
    symmetric: tuple[Symmetry, ...] = ()


class System(Protocol):
    """A registry under exploration; see the module's rules.  Derive from `Base`."""

    @property
    def steps(self) -> int:
        """How many steps there are."""
        ...

    @property
    def uses(self) -> int:
        """How many uses there are."""
        ...

    @property
    def relations(self) -> Relations:
        """What the steps have to do with each other."""
        ...

    @property
    def settled(self) -> bool:
        """Whether each set of active steps must have one state, whatever the history.

        Else states may differ (a cache is filled or not), and only what is observed,
        answered and raised must depend on the active steps alone.
        """
        ...

    @property
    def apart(self) -> bool:
        """Whether each fresh system has a process of its own."""
        ...

    def reset(self) -> None:
        """Make a fresh system, nothing active; handles of before are void."""
        ...

    def do(self, step: int) -> object:
        """Do a step and return its undo handle; raises where the step fails."""
        ...

    def undo(self, step: int, handle: object) -> None:
        """Undo a step that was done; raises only where it is refusable."""
        ...

    def use(self, use: int) -> Hashable:
        """Perform a use and return its answer."""
        ...

    def observe(self) -> Hashable:
        """Return what must depend on the active steps only."""
        ...

    def collect(self) -> None:
        """Collect garbage."""
        ...

    def laws(self) -> Sequence[Hashable]:
        """Return the laws that the last action broke; empty when all hold."""
        ...

    def failure(self, error: Exception) -> Hashable:
        """Return an error's fields, as they are compared and expected."""
        ...

    def state(self, handles: Sequence[object]) -> Hashable | None:
        """Return the complete state, or None when there is none to be had.

        `handles` are the undo handles by step, None where a step is not active: they
        are part of the state.  A `StateForm`, or any value if the system is settled.
        """
        ...

    def portrait(self, handles: Sequence[object]) -> object | None:
        """Return the state in a form that `paths` can compare, or None."""
        ...

    def paths(self, one: object, other: object) -> tuple[str, ...]:
        """Return where two portraits differ: `registry._cache['a']: <absent> / 1`."""
        ...

    def caveats(self) -> Sequence[Caveat]:
        """Return what stands between the states seen so far and a proof."""
        ...


class Base:
    """What most systems have in common; a system overrides what it knows better."""

    relations = Relations()
    settled = True
    apart = False

    def collect(self) -> None:
        """Collect garbage."""
        gc.collect()

    def laws(self) -> Sequence[Hashable]:
        """No laws."""
        return ()

    def failure(self, error: Exception) -> Hashable:
        """The class of an error and its text."""
        return (type(error).__name__, str(error))

    def state(self, handles: Sequence[object]) -> Hashable | None:
        """No complete state."""
        return None

    def portrait(self, handles: Sequence[object]) -> object | None:
        """No portrait."""
        return None

    def paths(self, one: object, other: object) -> tuple[str, ...]:
        """Nothing to compare."""
        return ()

    def caveats(self) -> Sequence[Caveat]:
        """Nothing stands between."""
        return ()
