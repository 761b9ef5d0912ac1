"""The interface of systems to the engine; histories as numbers.

The engine sees numbers.  A system has `steps` steps that can be done and, mostly,
undone, and `uses` uses that must not change the registrations; only the adapter knows
their meaning.

How operations are numbered, for n steps and m uses: `0 .. n-1` toggle a step (do it
when it is not active, else undo it; a step that cannot be undone is done again, if its
relations allow that), `n .. n+m-1` perform a use, `n+m` looks (observes), and `n+m+1`
collects garbage.  When you change the numbers, change `VERSION` of
`replay_id.py`.

A *key* is the engine's name for the active steps: a bitmask, or, if order counts, a
tuple.  Observations must be a function of the key.  `State` (always a tuple) is the
public form; `state_of` converts a key into it.  An `Ordering` holds the orders that
count: none, all, or those of some pairs.  For pairs, the key is the least arrangement
in which each pair has its actual order, so that two histories have one key exactly if
they agree on all pairs.

Rules for an adapter:
- `reset` makes a fresh system; the engine has dropped every handle before the call;
- `do` returns the undo handle and stores no other reference to it, because the handle
  is part of the state and belongs to the engine alone;
- `do` may raise: a failing step is a transition like any other, and must leave no
  trace; so may `undo` of a step that the system's relations call refusable;
- `use` may warm caches, and change nothing else; an exception inside it is an answer
  like any other: return its fields;
- an operation that ends steps (`Relations.ends`) ends all of them if it succeeds, and
  none if it raises; so a use that ends steps lets its exception pass, as a step does;
- `laws`, `state` and `portrait` read and change nothing; `observe` may warm caches (it
  may call), which is why the engine counts a look as an operation;
- every returned value is hashable, compared by `==`, and immutable: it never changes
  later, and holds no address, time or id.
"""

import gc
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol, TypeAlias

from everyorder.harness.base.errors import BadStrategy, CannotReplay
from everyorder.harness.engine.independence import Follower

State: TypeAlias = tuple[int, ...]
"""The active steps: ascending, or in order of activation as far as that counts."""

History: TypeAlias = tuple[int, ...]
"""Operations in the order in which they were played, from a fresh system."""


class StateForm(NamedTuple):
    """A complete state as a value: equal forms mean equal states.

    `exact` covers everything; `blind` covers everything but the order of dicts, so it
    is a function of `exact`.  `weak` means that a weak reference or a finalizer is
    reachable, so that collecting garbage may change the state.  `objects` is the number
    of objects that had to be described, which is the cost of the form: it is lower
    where a part was described before, and is not compared.  `variant` covers properties
    that are not part of a state, such as the order of sets, but might be read:
    comparing histories that differ in it is preferred.
    """

    blind: bytes
    exact: bytes
    weak: bool = False
    objects: int = 0
    variant: bytes = b""

    def __eq__(self, other: object) -> bool:
        """Return True if both are forms of equal states."""
        return isinstance(other, StateForm) and self._compared == other._compared

    def __ne__(self, other: object) -> bool:
        """Return True unless both are forms of equal states."""
        return not self == other

    def __hash__(self) -> int:
        """Return a hash that equal forms share."""
        return hash(self._compared)

    @property
    def _compared(self) -> tuple[bytes, bytes, bool, bytes]:
        return self.blind, self.exact, self.weak, self.variant


@dataclass(frozen=True, slots=True)
class Caveat:
    """A limit of the proof by the states of a system.

    `assumed`: an assumption ("the order of sets is not read"); a proof remains valid,
    and names it.  `opaque`: state that cannot be read.  `outside`: state that changed
    outside of the tracked roots.  With `opaque` or `outside` there is no proof.
    """

    kind: Literal["assumed", "opaque", "outside"]
    text: str


class ErrorOrigin(NamedTuple):
    """The line that raised an error; `slip` if a typing error is the likely reason.

    `text` is the source line, "" if it was not read.
    """

    file: str
    line: int
    slip: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True)
class Symmetry:
    """Steps that are declared to differ only in their parameter.

    `members` maps each step to the texts that may represent its parameter in
    observations; every member has the same number of texts.
    """

    name: str
    members: Mapping[int, tuple[str, ...]]

    def text(self, step: int) -> str:
        """Return a member as it is written: `add('json')`."""
        return f"{self.name}({self.members[step][0]})"


@dataclass(frozen=True, slots=True)
class Relations:
    """The places where operations make sense, and the orders that are meant to count.

    `lasting` steps cannot be undone; those in `again` may be done while they are
    active.  A step can be done only while all steps that it `requires` are active, and
    none of these can be undone meanwhile; a step that it comes `after` must be active
    when it is done, and may be undone then; none that it `excludes` may be active, and
    each of these excludes it.  The undo of a `refusable` step may raise;
    then the step stays active.  The order in which the two steps of each of `pairs`
    became active may be observable; all other orders may not.  The operations in
    `declared` are meant to change nothing, never to vary, or always to raise.  Steps of
    a class of `symmetric` are interchangeable.

    When an operation (a step that is done, or a use) succeeds, the steps that it `ends`
    are not active any longer, and their undo handles are dropped.  It cannot be played
    while a step that it does not end requires one of these.
    """

    lasting: frozenset[int] = frozenset()
    again: frozenset[int] = frozenset()
    requires: Mapping[int, frozenset[int]] = field(default_factory=dict)
    after: Mapping[int, frozenset[int]] = field(default_factory=dict)
    excludes: Mapping[int, frozenset[int]] = field(default_factory=dict)
    refusable: frozenset[int] = frozenset()
    pairs: frozenset[tuple[int, int]] = frozenset()
    declared: frozenset[int] = frozenset()
    symmetric: tuple[Symmetry, ...] = ()
    ends: Mapping[int, frozenset[int]] = field(default_factory=dict)

    @property
    def combined(self) -> bool:
        """Return True if not every set of steps can be active."""
        return bool(self.requires or self.after or self.excludes)


class System(Protocol):
    """A registry under exploration; see the rules above.  Derive from `SystemBase`."""

    @property
    def steps(self) -> int:
        """Return the number of steps."""

    @property
    def uses(self) -> int:
        """Return the number of uses."""

    @property
    def relations(self) -> Relations:
        """Return the relations between the steps."""

    @property
    def settled(self) -> bool:
        """Return True if each set of active steps must have one state.

        Else states may differ (a cache is filled or not), and only observations,
        answers and errors must depend on the active steps alone.
        """

    @property
    def isolated(self) -> bool:
        """Return True if each fresh system runs in its own process."""

    def reset(self) -> None:
        """Create a fresh system with no active step; earlier handles become void."""

    def do(self, step: int) -> object:
        """Do a step and return its undo handle; raises if the step fails."""

    def undo(self, step: int, handle: object) -> None:
        """Undo a step that was done; raises only if it is refusable."""

    def drop(self, handles: list[object]) -> None:
        """Replace every undo handle by None; no step is undone.

        The errors of finalizers that this runs are not reported.
        """

    def release(self, handles: list[object], active: int) -> None:
        """Replace the handles of steps that an operation ended by None.

        `active` steps are left.  As for `drop`, no step is undone.
        """

    def use(self, use: int) -> Hashable:
        """Perform a use and return its answer; raises only if it ends steps."""

    def observe(self) -> Hashable:
        """Return the observation, which must depend on the active steps only."""

    def collect(self) -> None:
        """Collect garbage."""

    def laws(self) -> Sequence[Hashable]:
        """Return the laws that the last action broke; empty when all hold."""

    def failure(self, error: Exception) -> Hashable:
        """Return the fields of an error, for comparison and for expect files."""

    def origin(self, fields: Hashable) -> ErrorOrigin | None:
        """Return where the last error with these fields was raised, if known."""

    def state(self, handles: Sequence[object]) -> Hashable | None:
        """Return the complete state, or None if it is unavailable.

        `handles` are the undo handles by step, None for an inactive step: they are part
        of the state.  A `StateForm`, or any hashable value if the system is settled.
        """

    def portrait(self, handles: Sequence[object]) -> object | None:
        """Return the state in a form that `paths` can compare, or None."""

    def scope(self) -> object | None:
        """Return what a portrait covers now; None if no other one is compared."""

    def portrait_within(self, handles: Sequence[object], scope: object) -> object:
        """Return a portrait of what one covered at another time."""

    def paths(self, one: object, other: object) -> tuple[str, ...]:
        """Return where two portraits differ: `registry._cache['a']: <absent> / 1`."""

    def caveats(self) -> Sequence[Caveat]:
        """Return the limits of a proof by the states seen so far."""

    def rehearse(self, *, begins: bool) -> Sequence[str]:
        """Begin the warm-up, or end it and return what it changed outside.

        In between the system records no caveat.
        """

    def set_aside(self, one: object, other: object) -> bool:
        """Leave values that are new each time out, if nothing else differs.

        The portraits are of one history, played on two fresh systems.  True if more is
        left out after the next reset.
        """

    def cold(self) -> "System | None":
        """Return the system in processes without any performance, one for each reset.

        None if there are no such processes.
        """

    def audit_orders(self) -> None:
        """Audit operations at states that differ in the order of dicts, from now on."""

    def audit_walk(self) -> None:
        """Audit the operations of a random walk that begins now."""

    def followed(self, *, recording: bool) -> "tuple[System, Follower] | None":
        """Return the same system again, with a follower of its accesses, if possible.

        Without `recording` only its instructions are followed.
        """


class SystemBase:
    """Defaults for most systems; a system overrides what differs."""

    relations = Relations()
    settled = True
    isolated = False

    def drop(self, handles: list[object]) -> None:
        """Replace every undo handle by None."""
        for step in range(len(handles)):
            handles[step] = None

    def release(self, handles: list[object], active: int) -> None:
        """Replace the handles of ended steps by None."""
        self.drop(handles)

    def collect(self) -> None:
        """Collect garbage."""
        gc.collect()

    def laws(self) -> Sequence[Hashable]:
        """Return no laws."""
        return ()

    def failure(self, error: Exception) -> Hashable:
        """Return the class name of an error and its text."""
        return (type(error).__name__, str(error))

    def origin(self, fields: Hashable) -> ErrorOrigin | None:
        """Return None: lines are unknown."""
        return None

    def state(self, handles: Sequence[object]) -> Hashable | None:
        """Return None: there is no complete state."""
        return None

    def portrait(self, handles: Sequence[object]) -> object | None:
        """Return None: there is no portrait."""
        return None

    def scope(self) -> object | None:
        """Return None: fresh systems are not compared by portraits."""
        return None

    def portrait_within(self, handles: Sequence[object], scope: object) -> object:
        """Return what a portrait covers now: it is the same at all times."""
        return self.portrait(handles)

    def paths(self, one: object, other: object) -> tuple[str, ...]:
        """Return no paths."""
        return ()

    def audit_orders(self) -> None:
        """Do nothing: there is no audit."""

    def audit_walk(self) -> None:
        """Do nothing: there is no audit."""

    def caveats(self) -> Sequence[Caveat]:
        """Return no caveats."""
        return ()

    def rehearse(self, *, begins: bool) -> Sequence[str]:
        """Return no changes."""
        return ()

    def set_aside(self, one: object, other: object) -> bool:
        """Return False: nothing is left out."""
        return False

    def cold(self) -> System | None:
        """Return None: there is only this process."""
        return None

    def followed(self, *, recording: bool) -> tuple[System, Follower] | None:
        """Return None: accesses do not show."""
        return None


Key: TypeAlias = int | State
"""A bitmask of active steps, or the active steps as far as their order counts."""

# A trace stores one operation in a byte, including the look and collecting garbage.
MOST_OPERATIONS = 255


@dataclass(frozen=True, slots=True)
class Operations:
    """`steps` toggles, then `uses` uses, then the look, then collecting garbage."""

    steps: int
    uses: int
    relations: Relations = field(default_factory=Relations)

    @property
    def actions(self) -> int:
        """Return the number of operations of the scenario: toggles and uses."""
        return self.steps + self.uses

    @property
    def look(self) -> int:
        """Return the operation that observes."""
        return self.steps + self.uses

    @property
    def collect(self) -> int:
        """Return the operation that collects garbage."""
        return self.steps + self.uses + 1

    @property
    def reversible(self) -> bool:
        """Return True if every step can be undone."""
        return not self.relations.lasting

    @property
    def balanced(self) -> bool:
        """Return True if operations lead to each set as often as away from it.

        That is so if all of them are undone in the same way: by the step itself.
        """
        return self.reversible and not self.relations.ends

    @property
    def combined(self) -> bool:
        """Return True if not every set of steps can be active."""
        relations = self.relations
        return relations.combined or any(each < self.steps for each in relations.ends)

    @property
    def questions(self) -> tuple[int, ...]:
        """Return the uses that end no steps."""
        ends = self.relations.ends
        return tuple(n for n in range(self.steps, self.actions) if n not in ends)

    @property
    def changes(self) -> tuple[int, ...]:
        """Return the operations that change the active steps."""
        ends = self.relations.ends
        ending = (n for n in range(self.steps, self.actions) if n in ends)
        return (*range(self.steps), *ending)

    def after(self, key: Key, operation: int, ordering: "Ordering") -> Key:
        """Return the key after an operation that succeeded at a key."""
        relations = self.relations
        active = operation < self.steps and is_active(key, operation)
        if active and operation not in relations.again:
            lasting = operation in relations.lasting
            return key if lasting else ordering.toggled(key, operation)
        key = ordering.without(key, relations.ends.get(operation, ()))
        if active or operation >= self.steps:
            return key
        return ordering.toggled(key, operation)

    def history_to(self, active: Iterable[int]) -> History:
        """Return a history that makes these steps active, in that order if possible.

        A step that others come after is done before them, and is undone at the end if
        it is not in `active`; one that another ends is done after that.
        """
        targets = tuple(active)
        done: dict[int, None] = {}
        begun: set[int] = set()
        ends = self.relations.ends

        def add(step: int) -> None:
            if step in begun:
                return
            begun.add(step)
            for relation in (self.relations.requires, self.relations.after):
                for needed in sorted(relation.get(step, ())):
                    add(needed)
            for other in targets:
                needed_there = self.relations.after.get(other, ())
                if step in ends.get(other, ()) and step not in needed_there:
                    add(other)
            done[step] = None

        for step in targets:
            add(step)
        history = list(done)
        if not ends:
            helpers = (step for step in reversed(done) if step not in targets)
            return (*history, *helpers)
        left = UNORDERED.root
        for step in history:
            left = self.after(left, step, UNORDERED)
        # A step that was needed by the one that ended it is done again.
        for step in (*targets, *reversed(done)):
            if is_active(left, step) != (step in targets):
                left = self.after(left, step, UNORDERED)
                history.append(step)
        return tuple(history)

    def check(self, history: History) -> None:
        """Raise `CannotReplay` if the history has an unknown operation."""
        for operation in history:
            if not 0 <= operation <= self.collect:
                raise CannotReplay(
                    code="UnknownOperation",
                    history=history,
                    operation=operation,
                    operations=self.collect + 1,
                )


@dataclass(frozen=True, slots=True)
class Ordering:
    """The observable orders of activation: of these pairs, or all (None)."""

    pairs: frozenset[tuple[int, int]] | None = frozenset()

    @property
    def counts(self) -> bool:
        """Return True if any order may be observable; keys are tuples then."""
        return self.pairs is None or bool(self.pairs)

    @property
    def total(self) -> bool:
        """Return True if every order may be observable."""
        return self.pairs is None

    @property
    def root(self) -> Key:
        """Return the key of the state without active steps."""
        return () if self.counts else 0

    def key(self, active: Iterable[int]) -> Key:
        """Return the key of steps that became active in this order."""
        if not self.counts:
            mask = 0
            for step in active:
                mask |= 1 << step
            return mask
        if self.pairs is None:
            return tuple(active)
        return _least(tuple(active), self.pairs)

    def toggled(self, key: Key, step: int) -> Key:
        """Return the key after the step was toggled with success."""
        if not isinstance(key, tuple):
            return key ^ (1 << step)
        if step in key:
            return self.key(other for other in key if other != step)
        return self.key((*key, step))

    def without(self, key: Key, steps: Collection[int]) -> Key:
        """Return the key after these steps were ended."""
        if not isinstance(key, tuple):
            for step in steps:
                key &= ~(1 << step)
            return key
        return self.key(step for step in key if step not in steps) if steps else key


UNORDERED = Ordering()
EVERY_ORDER = Ordering(None)


def operations_of(system: System) -> Operations:
    """Return the system's operations.

    Raises:
        BadStrategy: the system has more than 255 operations.
    """
    operations = Operations(system.steps, system.uses, system.relations)
    if operations.collect >= MOST_OPERATIONS:
        raise BadStrategy(
            code="TooLarge",
            what="the number of operations (steps, uses, the look, collecting garbage)",
            size=operations.collect + 1,
            limit=MOST_OPERATIONS,
        )
    return operations


def ordering_of(system: System, *, order_dependent: bool) -> Ordering:
    """Return the orders that may be observable: all if declared, else of its pairs."""
    return EVERY_ORDER if order_dependent else Ordering(system.relations.pairs)


def state_of(key: Key) -> State:
    """Return the public form of a key."""
    if isinstance(key, tuple):
        return key
    return tuple(i for i in range(key.bit_length()) if key >> i & 1)


def is_active(key: Key, step: int) -> bool:
    """Return True if the step is active at the key."""
    return step in key if isinstance(key, tuple) else bool(key >> step & 1)


@lru_cache(maxsize=65_536)
def _least(arrangement: State, pairs: frozenset[tuple[int, int]]) -> State:
    """Return the least arrangement that has each of the pairs in the same order."""
    place = {step: at for at, step in enumerate(arrangement)}
    behind: dict[int, set[int]] = {step: set() for step in arrangement}
    for one, other in pairs:
        if one in place and other in place:
            first, second = sorted((one, other), key=place.__getitem__)
            behind[second].add(first)
    left = sorted(arrangement)
    least: list[int] = []
    while left:
        chosen = next(step for step in left if not behind[step].difference(least))
        left.remove(chosen)
        least.append(chosen)
    return tuple(least)
