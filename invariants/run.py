"""The records of runs, and the laws of steps and runs.

A run is its start and end, the calls, and the surroundings of the calls: the driver of
a dispatcher records it.  Samples of the surroundings (keys, modes and context of the
thread, nesting, the lock) are the only place where the laws read something that is not
a value; callers take one before, inside and after a call, and the laws compare the
samples.

The laws of a step compare two states.  Everything that it does not change must be the
very same object before and after; this shows, at no cost, that a registration does not
touch other operators.  The laws of a run check what no single state shows: the thread,
the lock, the memory, and which kernel a call ran.

Rules: a sample keeps nothing alive; modes and contexts are compared by identity and
shown by name.  A run does not refer to handles or kernels, except through states and
tokens that are live anyway; of objects that must die it holds weak references.
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
        """Return the bits that every call gets."""

    @property
    def excluded(self) -> int:
        """Return the bits that every call loses."""

    @property
    def switched_in(self) -> Hashable:
        """Return the keys that were switched on in the included set."""

    @property
    def switched_out(self) -> Hashable:
        """Return the keys that were switched on in the excluded set."""


class Nesting(Protocol):
    """The depth of nested traced calls of this thread."""

    @property
    def level(self) -> int:
        """Return the depth; 0 outside of all calls."""


class Dispatching(Protocol):
    """The thread's state of dispatch to Python."""

    @property
    def stack(self) -> Sequence[Any]:
        """Return the modes that were entered, outermost first, each as `mode`."""

    @property
    def snapshot(self) -> Any:
        """Return the keys at the outermost call; None outside of all calls."""

    @property
    def context(self) -> Any:
        """Return the interpreter, which has a `name`."""


class Lockable(Protocol):
    """A lock whose state can be read."""

    def locked(self) -> bool:
        """Return True if any thread holds it."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity and the name of a mode or a context."""

    name: str
    identity: int = field(repr=False)

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Surroundings:
    """One sample of the state of a thread.

    Between before and inside of a call without handlers, only `locked` and the nesting
    may differ; between before and after it, nothing.
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
    """Return a sample of this thread; without `dispatching`, keys and nesting only."""
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
    snapshot, context = dispatching.snapshot, dispatching.context
    stack = dispatching.stack
    return Surroundings(
        *values,
        tuple([_named(entered.mode) for entered in stack]) if stack else (),
        None if snapshot is None else (snapshot.included, snapshot.excluded),
        None if context is None else Identity(context.name, id(context)),
    )


def _named(mode: Any) -> Identity:
    return Identity(type(mode).__name__, id(mode))


@dataclass(frozen=True, slots=True)
class Call:
    """One call: the published state, key bits of its arguments, the kernel that ran.

    `inside` are samples taken by kernels; `ran` is the description of the registration
    whose kernel ran first, None if none did (the call raised before); a call is
    `refused` if its arguments do not fit the schema.
    """

    operator: str
    state: DispatcherState
    arguments: int
    before: Surroundings
    after: Surroundings
    inside: tuple[Surroundings, ...] = ()
    ran: str | None = None
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation other than a call, by name: a registration, a removal, a look-up."""

    what: str
    before: Surroundings
    after: Surroundings


@dataclass(frozen=True, slots=True)
class Run:
    """One run, finished; `held` are the tokens whose handles are still open.

    `released` names objects that must be dead by now: kernels, handles, modes, classes
    and contexts.  The caller collects garbage first, if the driven objects may have
    cycles.
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
    """Closing a closed registration leaves every part of the state as it was."""
    return _unchanged(step)


@law("step", "add")
def an_add_adds_exactly_its_tokens(step: StepSubject) -> list[Finding]:
    """A registration makes exactly its own tokens live, and ends none."""
    return _exactly(step.tokens, ("came", step.added), ("ended", step.removed))


@law("step", "remove")
def a_removal_removes_exactly_its_tokens(step: StepSubject) -> list[Finding]:
    """A removal ends exactly its own tokens, and makes none live."""
    return _exactly(step.tokens, ("ended", step.removed), ("came", step.added))


@law("step", "add")
def the_newest_kernel_comes_first(step: StepSubject) -> list[Finding]:
    """A new kernel precedes all kernels that its key already had."""
    findings = []
    for operator, part, before, after in step.rows:
        if operator and part not in ("definitions", "reservations", "rules"):
            fresh = [token for token in after if token not in before]
            ordered = [*fresh, *(token for token in after if token in before)]
            if ordered != list(after):
                findings.append(
                    (
                        f"{operator} at {part}",
                        describe_all(ordered),
                        describe_all(after),
                    )
                )
    return findings


@law("step", "add", "remove")
def survivors_keep_their_order(step: StepSubject) -> list[Finding]:
    """Tokens that stay registered keep their order."""
    findings = []
    for operator, part, before, after in step.rows:
        old_order = [token for token in before if token in after]
        new_order = [token for token in after if token in before]
        if old_order != new_order and part != "reservations":
            where = f"{operator}, {part}" if operator else f"the {part}"
            findings.append((where, describe_all(old_order), describe_all(new_order)))
    return findings


@law("step", "add", "remove")
def bystanders_are_left_alone(step: StepSubject) -> list[Finding]:
    """An operator that a step does not name is the same, except for fallbacks."""
    findings: list[Finding] = []
    settled = step.before.fallbacks is step.after.fallbacks
    for text, old, new in step.quiet:
        if settled:
            findings.append((text, "the entry of before", "another entry"))
            continue
        before, after = entry_reading(old), entry_reading(new)
        findings += [
            (f"{text}, {part}", "as before", "changed")
            for part in before
            if part not in ("table", "masks") and before[part] != after[part]
        ]
    return findings


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
    findings = []
    if other[1]:
        findings.append((f"tokens that {other[0]}", "nothing", describe_all(other[1])))
    if tokens is not None and set(own[1]) != set(tokens):
        findings.append(
            (f"tokens that {own[0]}", describe_all(tokens), describe_all(own[1]))
        )
    return findings


@law("run")
def teardown_leaves_nothing(run: Run) -> list[Finding]:
    """When every handle is closed, the state has the same content as at the start."""
    if run.held:
        return []
    return [
        (part, part_text(old, "as at the start"), part_text(new, "changed"))
        for part, old, new in differences(reading(run.start), reading(run.end))
    ]


@law("run")
def open_handles_own_what_is_live(run: Run) -> list[Finding]:
    """The live tokens are those of the start and those that open handles own."""
    expected = Counter([*live_tokens(run.start, run.end), *run.held])
    live = Counter(live_tokens(run.end, run.start))
    lost, left = expected - live, live - expected
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
    """Objects that a step created are dead once the step is undone."""
    return [
        (name, "dead", "alive") for name, watch in run.released if watch() is not None
    ]


def changed(what: str, before: Surroundings, after: Surroundings) -> list[Finding]:
    """Return the differences of two samples as findings at `what`."""
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
    """A registration, removal, refusal or look-up leaves its thread as it was."""
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
    findings: list[Finding] = []
    # Many calls of one entry are usual; its table is computed once.
    tables: dict[int, tuple[tuple[Expected, ...], tuple[int, ...]]] = {}
    for call in run.calls:
        entry = _entry(call.state, call.operator)
        where = f"a call of {call.operator}"
        if entry is None or not entry.definitions or call.refused:
            if call.ran is not None:
                findings.append((where, "nothing to call", call.ran))
            continue
        if id(entry) not in tables:
            table = second_table(entry.implementations, call.state.fallbacks.tokens)
            tables[id(entry)] = table, second_masks(table)
        slot = _slot(call, *tables[id(entry)])
        # A fallthrough is skipped; if it is the last slot of all, it cannot run.
        token = None if slot.falls_through else slot.token
        expected = None if token is None else token.debug
        if slot.provenance != AMBIGUOUS and call.ran != expected:
            text = "nothing" if token is None else describe(token)
            findings.append((f"{where} at {slot.key}", text, call.ran or "nothing"))
    return findings


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
