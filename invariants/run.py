"""The records of runs, and the laws of steps and runs.

A run is where it started and ended, what was called, and what surrounded the calls:
whoever drives a dispatcher writes it down.  A sample of the surroundings (keys, modes
and context of the thread, nesting, the lock) is the one place where something is looked
at that is no value; callers take it before, inside and after a call, and the laws
compare the samples.

Of a step two states are compared.  What it leaves alone must be the very same object
before and after; that is how a registration is shown not to touch its neighbours, at no
cost.  Of a run the laws look at what no single state shows: the thread, the lock, the
memory, and which kernel a call ran.

Rules: a sample keeps nothing alive; modes and contexts are told apart by identity and
shown by name.  A run holds no handle and no kernel, except through states and tokens
that are live anyway; of what ought to die it holds weak references.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from weakref import ReferenceType

from everyorder.invariants.law import Finding, law
from everyorder.invariants.live import (
    StepSubject,
    describe,
    describe_all,
    differences,
    entry_reading,
    live_tokens,
    part_text,
    reading,
)
from everyorder.invariants.second_table import (
    AMBIGUOUS,
    Expected,
    second_masks,
    second_table,
    slot_reached,
)
from everyorder.runtime.dispatch.registration_record import RegistrationRecord
from everyorder.runtime.dispatch.state import DispatcherState, OperatorEntry


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
        """The keys that were switched on in the included set."""

    @property
    def switched_out(self) -> Hashable:
        """The keys that were switched on in the excluded set."""


class Nesting(Protocol):
    """The depth of nested traced calls of this thread."""

    @property
    def level(self) -> int:
        """0 outside of all calls."""


class Dispatching(Protocol):
    """The thread's state of dispatch to Python."""

    @property
    def stack(self) -> Sequence[Any]:
        """The modes that were entered, outermost first, each as `mode`."""

    @property
    def snapshot(self) -> Any:
        """The keys that the outermost call found; None outside of all calls."""

    @property
    def context(self) -> Any:
        """The interpreter, which has a `name`."""


class Lockable(Protocol):
    """A lock that can be asked."""

    def locked(self) -> bool:
        """Whether anybody holds it."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A mode or a context: which one it is, and what it is called."""

    name: str
    identity: int = field(repr=False)

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Surroundings:
    """One sample; before and inside of a call that no handler sees, only `locked` and
    the nesting may differ, and after it nothing.
    """

    included: int
    excluded: int
    switched_in: Hashable
    switched_out: Hashable
    nesting: int
    locked: bool
    modes: tuple[Identity, ...] = ()
    snapshot: tuple[int, int] | None = None
    context: Identity | None = None


def surroundings(
    keys: ThreadKeys,
    nesting: Nesting,
    lock: Lockable,
    dispatching: Dispatching | None = None,
) -> Surroundings:
    """Sample now, on this thread; without `dispatching`, keys and nesting only."""
    values = (
        keys.included,
        keys.excluded,
        keys.switched_in,
        keys.switched_out,
        nesting.level,
        lock.locked(),
    )
    if dispatching is None:
        return Surroundings(*values)
    taken, context = dispatching.snapshot, dispatching.context
    stack = dispatching.stack
    return Surroundings(
        *values,
        tuple([_named(entered.mode) for entered in stack]) if stack else (),
        None if taken is None else (taken.included, taken.excluded),
        None if context is None else Identity(context.name, id(context)),
    )


def _named(mode: Any) -> Identity:
    return Identity(type(mode).__name__, id(mode))


@dataclass(frozen=True, slots=True)
class Call:
    """One call: the published state, the key bits of its arguments, what it ran.

    `inside` are samples taken by kernels; `ran` is the description of the registration
    whose kernel ran first, None where none did (the call raised before).
    """

    operator: str
    state: DispatcherState
    arguments: int
    before: Surroundings
    after: Surroundings
    inside: tuple[Surroundings, ...] = ()
    ran: str | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation besides a call, by its name: a registration, a removal, a look."""

    what: str
    before: Surroundings
    after: Surroundings


@dataclass(frozen=True, slots=True)
class Run:
    """One run, finished; `held` are the tokens whose handles are still open.

    `released` names what must be dead by now: kernels, handles, modes, classes and
    contexts.  The caller collects garbage first, if what it drove may have cycles.
    """

    start: DispatcherState
    end: DispatcherState
    held: tuple[RegistrationRecord, ...] = ()
    calls: tuple[Call, ...] = ()
    released: tuple[tuple[str, ReferenceType[Any]], ...] = ()
    operations: tuple[Operation, ...] = ()


@law("step", "fail")
def a_failed_step_changes_nothing(step: StepSubject) -> list[Finding]:
    """A registration that is refused leaves every part of the state as it was."""
    return _unchanged(step)


@law("step", "use")
def a_use_changes_nothing(step: StepSubject) -> list[Finding]:
    """A call or a look-up leaves every part of the state as it was."""
    return _unchanged(step)


@law("step", "again")
def closing_twice_changes_nothing(step: StepSubject) -> list[Finding]:
    """Closing what is closed leaves every part of the state as it was."""
    return _unchanged(step)


@law("step", "add")
def an_add_adds_exactly_its_tokens(step: StepSubject) -> list[Finding]:
    """A registration makes its own tokens live, and no other token comes or goes."""
    return _exactly(step.tokens, ("came", step.added), ("ended", step.removed))


@law("step", "remove")
def a_removal_removes_exactly_its_tokens(step: StepSubject) -> list[Finding]:
    """A removal ends its own tokens, and no other token comes or goes."""
    return _exactly(step.tokens, ("ended", step.removed), ("came", step.added))


@law("step", "add")
def the_newest_kernel_comes_first(step: StepSubject) -> list[Finding]:
    """A new kernel stands before all kernels that its key already had."""
    found = []
    for operator, part, before, after in step.rows:
        if operator and part not in ("definitions", "reservations", "rules"):
            fresh = [token for token in after if token not in before]
            wanted = [*fresh, *(token for token in after if token in before)]
            if wanted != list(after):
                found.append(
                    (f"{operator} at {part}", describe_all(wanted), describe_all(after))
                )
    return found


@law("step", "add", "remove")
def survivors_keep_their_order(step: StepSubject) -> list[Finding]:
    """What stays registered stays in the order in which it stood."""
    found = []
    for operator, part, before, after in step.rows:
        wanted = [token for token in before if token in after]
        kept = [token for token in after if token in before]
        if wanted != kept and part != "reservations":
            where = f"{operator}, {part}" if operator else f"the {part}"
            found.append((where, describe_all(wanted), describe_all(kept)))
    return found


@law("step", "add", "remove")
def bystanders_are_left_alone(step: StepSubject) -> list[Finding]:
    """An operator that a step does not name is the same, save for fallbacks."""
    found: list[Finding] = []
    settled = step.before.fallbacks is step.after.fallbacks
    for text, old, new in step.quiet:
        if settled:
            found.append((text, "the entry of before", "another entry"))
            continue
        before, after = entry_reading(old), entry_reading(new)
        found += [
            (f"{text}, {part}", "as before", "changed")
            for part in before
            if part not in ("table", "masks") and before[part] != after[part]
        ]
    return found


def _unchanged(step: StepSubject) -> list[Finding]:
    before, after = reading(step.before), reading(step.after)
    return [
        (part, part_text(old, "as before"), part_text(new, "changed"))
        for part, old, new in differences(before, after)
    ]


def _exactly(
    tokens: tuple[RegistrationRecord, ...] | None,
    own: tuple[str, list[RegistrationRecord]],
    other: tuple[str, list[RegistrationRecord]],
) -> list[Finding]:
    found = []
    if other[1]:
        found.append((f"tokens that {other[0]}", "nothing", describe_all(other[1])))
    if tokens is not None and set(own[1]) != set(tokens):
        found.append(
            (f"tokens that {own[0]}", describe_all(tokens), describe_all(own[1]))
        )
    return found


@law("run")
def teardown_leaves_nothing(run: Run) -> list[Finding]:
    """When every handle is closed, the state reads as it did at the start."""
    if run.held:
        return []
    return [
        (part, part_text(old, "as at the start"), part_text(new, "changed"))
        for part, old, new in differences(reading(run.start), reading(run.end))
    ]


@law("run")
def open_handles_own_what_is_live(run: Run) -> list[Finding]:
    """What is live is what was live at the start and what open handles own."""
    wanted = Counter([*live_tokens(run.start, run.end), *run.held])
    found = Counter(live_tokens(run.end, run.start))
    lost, left = wanted - found, found - wanted
    findings = []
    if lost:
        findings.append(("what is live", describe_all(list(lost)), "not live"))
    if left:
        findings.append(
            ("what is live", "no handle, not live", describe_all(list(left)))
        )
    return findings


@law("run", "memory")
def released_objects_are_dead(run: Run) -> list[Finding]:
    """Nothing keeps alive what a step made once the step is undone."""
    return [
        (name, "dead", "alive") for name, watch in run.released if watch() is not None
    ]


def changed(what: str, before: Surroundings, after: Surroundings) -> list[Finding]:
    """The differences of two samples, as findings about `what` is between them."""
    return [
        (f"{what}, {field}", f"{old}", f"{new}")
        for field in Surroundings.__slots__
        if (old := getattr(before, field)) != (new := getattr(after, field))
    ]


@law("run", "thread")
def calls_restore_their_thread(run: Run) -> list[Finding]:
    """After a call, raised or returned, thread and lock are as they were before it."""
    return [
        finding
        for call in run.calls
        for finding in changed(f"a call of {call.operator}", call.before, call.after)
    ]


@law("run", "thread")
def operations_leave_the_thread_alone(run: Run) -> list[Finding]:
    """A registration, its removal, a refusal or a look leaves its thread as it was."""
    return [
        finding
        for deed in run.operations
        for finding in changed(deed.what, deed.before, deed.after)
    ]


@law("run", "thread")
def kernels_run_without_the_lock(run: Run) -> list[Finding]:
    """While a kernel or a handler runs, the writer's lock is free."""
    return [
        (f"a kernel of {call.operator}", "the lock is free", "the lock is held")
        for call in run.calls
        if any(sample.locked for sample in call.inside)
    ]


@law("run")
def calls_run_what_the_state_says(run: Run) -> list[Finding]:
    """A call runs the kernel that the published state gives to its arguments."""
    found: list[Finding] = []
    # Many calls of one entry are usual; its table is computed once.
    tables: dict[int, tuple[tuple[Expected, ...], tuple[int, ...]]] = {}
    for call in run.calls:
        entry = _entry(call.state, call.operator)
        where = f"a call of {call.operator}"
        if entry is None or not entry.definitions:
            if call.ran is not None:
                found.append((where, "nothing to call", call.ran))
            continue
        if id(entry) not in tables:
            table = second_table(entry.implementations, call.state.fallbacks.tokens)
            tables[id(entry)] = table, second_masks(table)
        wanted = _slot(call, *tables[id(entry)])
        # What falls through is passed by; reached as the last of all, it cannot run.
        token = None if wanted.falls_through else wanted.token
        expected = None if token is None else token.debug
        if wanted.provenance != AMBIGUOUS and call.ran != expected:
            told = "nothing" if token is None else describe(token)
            found.append((f"{where} at {wanted.key}", told, call.ran or "nothing"))
    return found


def _slot(call: Call, table: tuple[Expected, ...], masks: tuple[int, ...]) -> Expected:
    reached = slot_reached(
        call.arguments,
        call.before.included,
        call.before.excluded,
        masks,
    )
    return next(slot for slot in table if slot.key == reached)


def _entry(state: DispatcherState, text: str) -> OperatorEntry | None:
    for operators in state.namespaces.values():
        if text in operators:
            return operators[text]
    return None
