"""Systems, as the engine asks them; how histories are written, and ids to replay them.

The engine sees numbers.  A system has `steps` steps that can be done and, mostly,
undone, and `uses` uses that must not change what is registered; what they mean is the
adapter's business.

How operations are numbered, for n steps and m uses: `0 .. n-1` toggle a step (do it
when it is not active, else undo it; a step that cannot be undone is done again, where
its relations allow that), `n .. n+m-1` perform a use, `n+m` looks (observes), and
`n+m+1` collects garbage.  When you change the numbers, change `VERSION`.

A *key* is how the engine names the active steps: a bitmask, or, where order counts, a
tuple.  What is observed must be a function of the key.  `State` (always a tuple) is the
public form; `state_of` turns one into the other.  Which orders count is an `Ordering`:
none, all, or those of some pairs.  For pairs, the key is the least arrangement in which
each of them stands in its own order, so that two histories have one key exactly if no
pair tells them apart.

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

A *replay id* is a failing history in at most 24 characters that a person can type.  It
depends on the scenario's digest, the size of the operations and the history, and on
nothing else; every platform and version of Python makes and reads the same one.  The
form is `2tttt-bbbbbc`, in lower-case base 32 without i, l, o, u (Crockford's; these are
read as 1, 1 and 0 when typed):
- `2`: the version of this form and of the operations;
- `tttt`: 20 bits of the scenario's digest, so that the command finds the scenario;
- `-`: the body is the history itself, as a number in bijective base n_operations;
- `c`: a check on all of it and on n_operations: a scenario that gained a step since is
  told, not misread.

A history that does not fit in 17 characters (85 bits: 28 operations over 8) gets a
digest as its body, told by `.` in place of `-`.  Such an id cannot be read back by
itself: explore the scenario again with the same strategy and take the violation whose
history encodes to it (`fits`).  After shrinking this is the exception.
"""

import gc
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Literal, NamedTuple, Protocol, TypeAlias

from everyorder.harness.base.errors import BadStrategy, CannotReplay

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
    """A registry under exploration; see the rules above.  Derive from `SystemBase`."""

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
    def isolated(self) -> bool:
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


class SystemBase:
    """What most systems have in common; a system overrides what it knows better."""

    relations = Relations()
    settled = True
    isolated = False

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


Key: TypeAlias = int | State
"""A bitmask of active steps, or the active steps as far as their order counts."""

# A trace stores one operation a byte, and the last two numbers must fit in too.
MOST_OPERATIONS = 255


@dataclass(frozen=True, slots=True)
class Operations:
    """`steps` toggles, then `uses` uses, then the look, then collecting garbage."""

    steps: int
    uses: int
    relations: Relations = field(default_factory=Relations)

    @property
    def actions(self) -> int:
        """How many operations belong to the scenario: toggles and uses."""
        return self.steps + self.uses

    @property
    def look(self) -> int:
        """The operation that observes."""
        return self.steps + self.uses

    @property
    def collect(self) -> int:
        """The operation that collects garbage."""
        return self.steps + self.uses + 1

    @property
    def reversible(self) -> bool:
        """Whether every step can be undone."""
        return not self.relations.lasting

    def history_to(self, active: Iterable[int]) -> History:
        """A history after which these steps are active, in that order where it can be.

        What a step comes after is done before it, and undone at the end if it is none
        of them.
        """
        targets = tuple(active)
        done: dict[int, None] = {}
        begun: set[int] = set()

        def add(step: int) -> None:
            if step in begun:
                return
            begun.add(step)
            for relation in (self.relations.requires, self.relations.after):
                for needed in sorted(relation.get(step, ())):
                    add(needed)
            done[step] = None

        for step in targets:
            add(step)
        helpers = (step for step in reversed(done) if step not in targets)
        return (*done, *helpers)

    def check(self, history: History) -> None:
        """Raise `CannotReplay` when the history has one from elsewhere."""
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
    """Which orders of activation may show: of these pairs, or of all (None)."""

    pairs: frozenset[tuple[int, int]] | None = frozenset()

    @property
    def counts(self) -> bool:
        """Whether any order may show; keys are tuples then."""
        return self.pairs is None or bool(self.pairs)

    @property
    def total(self) -> bool:
        """Whether every order may show."""
        return self.pairs is None

    @property
    def root(self) -> Key:
        """The key of nothing active."""
        return () if self.counts else 0

    def key(self, active: Iterable[int]) -> Key:
        """The key of steps that became active in this order."""
        if not self.counts:
            mask = 0
            for step in active:
                mask |= 1 << step
            return mask
        if self.pairs is None:
            return tuple(active)
        return _least(tuple(active), self.pairs)

    def toggled(self, key: Key, step: int) -> Key:
        """The key after the step was toggled with success."""
        if not isinstance(key, tuple):
            return key ^ (1 << step)
        if step in key:
            return self.key(other for other in key if other != step)
        return self.key((*key, step))


UNORDERED = Ordering()
EVERY_ORDER = Ordering(None)


def operations_of(system: System) -> Operations:
    """The system's operations; raises `BadStrategy` above 255 of them."""
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
    """Which orders may show: all if the scenario says so, else those of its pairs."""
    return EVERY_ORDER if order_dependent else Ordering(system.relations.pairs)


def state_of(key: Key) -> State:
    """The public form of a key."""
    if isinstance(key, tuple):
        return key
    return tuple(i for i in range(key.bit_length()) if key >> i & 1)


def is_active(key: Key, step: int) -> bool:
    """Whether the step is active at the key."""
    return step in key if isinstance(key, tuple) else bool(key >> step & 1)


@lru_cache(maxsize=65_536)
def _least(arrangement: State, pairs: frozenset[tuple[int, int]]) -> State:
    """The least arrangement that has each of the pairs in the same order."""
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


VERSION = "2"

# Crockford's base 32: no two digits look alike.
DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"

LONGEST = 24

# 24 less version, tag, mark and check.
BODY = 17

# A prime below 32, so that every check is a digit, and every single slip is noticed but
# for the two digits that are alike modulo 31: 0 and z.
CHECK = 31

# Digits of a digest body: 80 bits, no collision among a billion histories.
DIGEST = 16

_TYPED = str.maketrans("ilo", "110")


@dataclass(frozen=True, slots=True)
class ReplayId:
    """A replay id, read: the scenario's tag, and the history or its digest."""

    tag: str
    history: History | None
    digest: str | None


def scenario_tag(scenario_digest: str) -> str:
    """The four characters that stand for a scenario."""
    number = int.from_bytes(blake2b(scenario_digest.encode(), digest_size=5).digest())
    return _digits(number % 32**4, 4)


def encode(scenario_digest: str, n_operations: int, history: History) -> str:
    """The id of a history over that many operations; raises `CannotReplay`."""
    number = 0
    for operation in history:
        if not 0 <= operation < n_operations:
            raise CannotReplay(
                code="UnknownOperation",
                history=history,
                operation=operation,
                operations=n_operations,
            )
        if number < 32**BODY:
            number = number * n_operations + operation + 1
    head = VERSION + scenario_tag(scenario_digest)
    if number < 32**BODY:
        text = f"{head}-{_digits(number, 1)}"
    else:
        hashed = blake2b(bytes(history), digest_size=DIGEST * 5 // 8).digest()
        text = f"{head}.{_digits(int.from_bytes(hashed), DIGEST)}"
    return text + _check(text, n_operations)


def fits(text: str, scenario_digest: str, n_operations: int, history: History) -> bool:
    """Whether the id stands for the history; the way back for long histories."""
    return encode(scenario_digest, n_operations, history) == text.lower().translate(
        _TYPED
    )


def tag_of(text: str) -> str:
    """The scenario's tag in an id; raises `CannotReplay` when it is not one."""
    return _parts(text)[0]


def decode(text: str, n_operations: int) -> ReplayId:
    """Read an id over an operations of n_operations; raises `CannotReplay`."""
    tag, mark, body, clean = _parts(text)
    if _check(clean[:-1], n_operations) != clean[-1]:
        raise CannotReplay(
            code="BadReplayId",
            text=text,
            reason=(
                f"the check does not hold for {n_operations} operations; either it is "
                "mistyped, or the scenario's steps or uses were changed"
            ),
        )
    if mark == ".":
        return ReplayId(tag, None, body)
    number = 0
    for digit in body:
        number = number * 32 + DIGITS.index(digit)
    operations: list[int] = []
    while number:
        number, operation = divmod(number - 1, n_operations)
        operations.append(operation)
    return ReplayId(tag, tuple(reversed(operations)), None)


def _parts(text: str) -> tuple[str, str, str, str]:
    """Tag, mark, body, and the whole id in its normal form."""
    clean = text.strip().lower().translate(_TYPED)
    if not 8 <= len(clean) <= LONGEST or clean[5] not in "-.":
        raise CannotReplay(
            code="BadReplayId",
            text=text,
            reason="it is not of the form 2tttt-bbbbc",
        )
    if clean[0] != VERSION:
        raise CannotReplay(
            code="BadReplayId",
            text=text,
            reason=f"it is of version {clean[0]}, this is {VERSION}",
        )
    stray = set(clean[1:5] + clean[6:]) - set(DIGITS)
    if stray:
        raise CannotReplay(
            code="BadReplayId", text=text, reason=f"it holds {min(stray)!r}"
        )
    return clean[1:5], clean[5], clean[6:-1], clean


def _digits(number: int, least: int) -> str:
    text = ""
    while number:
        number, digit = divmod(number, 32)
        text = DIGITS[digit] + text
    return text.rjust(least, "0")


def _check(text: str, n_operations: int) -> str:
    total = n_operations
    for place, character in enumerate(text):
        # Weights repeat after 24 places at the earliest: 31 is prime and above 24.
        total += (place + 1) * (DIGITS.find(character) + 2)
    return DIGITS[total % CHECK]
