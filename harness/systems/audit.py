"""The audit: C functions that operations call, and changes outside of their state.

The calls are listed during the first performances of each operation, and during its
first at each state; the untracked state is compared at a few states; `state_reader`
says when.  During a warm-up nothing
is listed: the first performances of a process import modules and fill memos, and later
ones do not, so that remarks would depend on what ran before in the process.  What the
warm-up changed is returned at its end.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ParamSpec, TypeAlias, TypeVar

from everyorder.harness.engine import progress
from everyorder.harness.engine.protocol import Caveat, StateForm
from everyorder.harness.state.c_call_audit import CallAudit, pause_call_audit
from everyorder.harness.state.executed_code import ExecutedCode
from everyorder.harness.state.scope import IgnorePatterns
from everyorder.harness.state.untracked_writes import (
    Boundary,
    Extent,
    Snapshot,
    caveats,
)

T = TypeVar("T")
P = ParamSpec("P")

Roots: TypeAlias = Mapping[str, object]
# Its kind, its number, and the number of active steps.
Operation: TypeAlias = tuple[str, int, int]

# Performances that are listed at any state: a cache is cold the first time and warm the
# second.  An operation is also listed the first time at each state, or one operation
# later (a check): only a rare state may make it call something.
LISTED, _NEAR = 2, 1

# States 4, 16, 64, ...: a check takes as long as a thousand operations, and untracked
# registrations mostly stay until they are found.
FIRST_LOOK = 4
EVERY = 4


class Audit:
    """Watches the operations of one system, across its resets.

    `extent` returns the limits of the followed state for some roots.  Changes at
    `ignored` paths are assumptions instead.
    """

    def __init__(
        self, extent: Callable[[Roots], Extent], ignored: Sequence[str] = ()
    ) -> None:
        self._ignored = IgnorePatterns(tuple(ignored)) if ignored else None
        # Ignored paths at which something changed.
        self._left_out: dict[str, None] = {}
        self.performances: dict[Operation, int] = {}
        # True during a warm-up, whose performances and changes are stored apart.
        self.rehearsing = False
        self.rehearsed: dict[Operation, int] = {}
        self._filled: dict[str, None] = {}
        # True if the untracked state is checked.
        self.checks_outside = True
        # True if operations are listed at states that differ in the order of dicts.
        self.orders = False
        # The last state that was read, with the operations since then; how many they
        # are; and from which such places each operation was listed.
        self._place, self._apart = 0, 0
        self._taken: set[int] = set()
        self._calls = CallAudit()
        # None if the globals of all code are read.
        self.executed: ExecutedCode | None = None
        self._listed = False
        # Not in a cycle with this object: a snapshot is large, and must be freed with
        # it.
        self._roots = roots = dict[str, object]()
        self._boundary = Boundary(lambda: extent(roots))
        self._before: Snapshot | None = None
        self._states = 0
        self._next = FIRST_LOOK
        self._outside: dict[str, None] = {}

    def call(
        self,
        operation: Operation,
        function: Callable[P, T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Call a function that performs an operation, and list its first calls."""
        if self.rehearsing:
            self.rehearsed[operation] = self.rehearsed.get(operation, 0) + 1
            if self.executed is not None and times(self.rehearsed, operation) > 1:
                self.executed.begin()
            return function(*args, **kwargs)
        performed = self.performances.get(operation, 0)
        way = hash((operation, self._place))
        is_old = self._apart > _NEAR or way in self._taken
        self._place, self._apart = way, self._apart + 1
        if performed >= LISTED and is_old:
            return function(*args, **kwargs)
        self._taken.add(way)
        self.performances[operation] = performed + 1
        self._listed = True
        if self.executed is not None:
            self.executed.begin()
        with self._calls:
            return function(*args, **kwargs)

    def record_executed(self, executed: ExecutedCode) -> None:
        """Record the code that operations execute, from their calls on."""
        self.executed = self._calls.executed = executed

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record the code that runs in this context, as that of an operation."""
        if self.executed is not None:
            self.executed.begin()
        try:
            yield
        finally:
            self.end_operation()

    def end_operation(self) -> None:
        """Stop recording the code of an operation."""
        if self.executed is not None:
            self.executed.end()

    def take_new_code(self) -> bool:
        """Return True once after a function ran that did not run since the warm-up."""
        return self._calls.take_new_code()

    def arrive(self, form: StateForm) -> StateForm:
        """Record the state in which the next operation is performed; return it."""
        self.end_operation()
        self._place, self._apart = hash(form.exact if self.orders else form.blind), 0
        return form

    def forget_places(self) -> None:
        """List operations anew at each state: forms of before say nothing of it."""
        self._taken.clear()

    def begin(self, roots: Roots) -> None:
        """Take the snapshot of the untracked state, unless there is one."""
        self.end_operation()
        self._place, self._apart = 0, 0
        if self.checks_outside and self._before is None:
            self._before = self._snapshot(roots)

    def forget(self) -> None:
        """Drop the snapshot until the next fresh registry."""
        self._before = None

    def check_if_due(self, roots: Roots) -> None:
        """Count a state, and check the untracked state at some of them."""
        if self.rehearsing:
            return
        self._states += 1
        if self._states == self._next:
            self._next *= EVERY
            self.check(roots)

    @contextmanager
    def pause(self, roots: Roots) -> Iterator[None]:
        """Attribute untracked changes in this context to the harness."""
        with pause_call_audit():
            self.check(roots)
            yield
            if self._before is not None:
                self._before = self._snapshot(roots)

    def caveats(self) -> Sequence[Caveat]:
        """Return the limits found by the calls and the checks so far."""
        called = self._calls.caveats() if self._listed else ()
        ignored = [Caveat("assumed", f"{each} is ignored") for each in self._left_out]
        return (*called, *ignored, *caveats(tuple(self._outside)))

    def _snapshot(self, roots: Roots) -> Snapshot:
        with self._of(roots):
            return self._boundary.snapshot()

    @contextmanager
    def _of(self, roots: Roots) -> Iterator[None]:
        """Set the roots of the boundary in this context; nothing is stored.

        Scanning is slow; do not count it towards the hang timeout.
        """
        beats = progress.current()
        if beats is not None:
            beats.rest()
        self._roots.update(roots)
        try:
            yield
        finally:
            self._roots.clear()

    def check(self, roots: Roots) -> None:
        """Record the untracked changes since the last check."""
        if self._before is None:
            return
        with self._of(roots):
            # A change is reported once, because comparing it costs time.
            changed, self._before = self._boundary.compare(self._before)
        changes = self._filled if self.rehearsing else self._outside
        for path in changed:
            ignored = self._ignored and self._ignored.covering(path)
            if ignored:
                self._left_out[ignored] = None
            else:
                changes[path] = None

    @property
    def outside(self) -> tuple[str, ...]:
        """Return the untracked changes after the warm-up."""
        return tuple(self._outside)

    def begin_rehearsal(self) -> None:
        """Begin a warm-up; earlier changes count as changes of this one.

        After it everything is audited again: a memo does not change then.
        """
        self.rehearsing = True
        self.performances.clear()
        self._taken.clear()
        self._calls.forget_code()
        self._states, self._next = 0, FIRST_LOOK
        self._filled.update(self._outside)
        self._outside.clear()

    def changes_so_far(self, roots: Roots) -> tuple[str, ...]:
        """Return the untracked changes of a warm-up."""
        self.check(roots)
        return tuple(self._filled)

    def end_rehearsal(self, followed: Iterable[str]) -> tuple[str, ...]:
        """End a warm-up; return its untracked changes, without those below a path."""
        self.rehearsing = False
        below = tuple(f"{path}." for path in followed)
        return tuple(each for each in self._filled if not each.startswith(below))


def times(performances: Mapping[Operation, int], operation: Sequence[str | int]) -> int:
    """Return how often an operation was performed, with any number of active steps."""
    kind_and_number = tuple(operation[:2])
    return sum(n for key, n in performances.items() if key[:2] == kind_and_number)
