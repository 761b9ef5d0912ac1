"""What operations do where no state shows it: calls, changes outside, older garbage.

C functions are listed during the first performances of each operation.  What lies
outside of the followed state is compared right after its very first and its first
beside one active step, and at a few states, ever further apart.  Both are far too dear
for every operation: what one does, it mostly does the first time.

What an exploration found in its process is frozen, because looking through all of it
takes longer than most operations, and copies it in a forked process.  A step may make
garbage of it all the same, which weak references would still show.  So everything is
looked through where a history ends that first performed an operation; if that finds
something, each collection does from then on, and the exploration begins again.

Rule: what was seen is kept as caveats and counts; nothing of the system is.
"""

import gc
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ParamSpec, TypeAlias, TypeVar

from harness.engine import pulse
from harness.engine.protocol import Caveat
from harness.heap.boundary import Boundary, Extent, Snapshot, caveats
from harness.heap.calls import CallAudit, unaudited
from harness.heap.kinds import thaws

# An operation that makes garbage of older objects may do so the second time only, when
# what the first one left is replaced.
PERFORMANCES = 2


class Collector:
    """Collects garbage for one system, whatever it is reset to.

    `thorough` says whether each collection looks through everything, and `seen` after
    how many performances of each operation that was done once; `matters` is set where
    garbage is collected on purpose.
    """

    def __init__(self) -> None:
        self.thorough = False
        self.seen: dict[Hashable, int] = {}
        # Whether what was left alone has no garbage; that is seen to if it matters.
        self._clean = False
        self.matters = False
        self._touched = False
        self._played: set[Hashable] = set()
        self._collected: set[Hashable] = set()
        self._thawed = False
        self._thaws = thaws()
        # Whether garbage can be seen; not known until a state was read.
        self._visible: bool | None = None

    def state(self, *, weak: bool, whole: bool) -> None:
        """A state was read: `weak` references reach things, and nothing is hidden."""
        if weak or not whole:
            self._visible = True
        elif self._visible is None:
            self._visible = False

    def begin(self) -> None:
        """A fresh registry: what is there now is left alone, if anything was."""
        self._touched = False
        self._played.clear()
        self._collected.clear()
        if not gc.isenabled():
            # Whoever switched it off wants nothing of the last system in the next one.
            # What came after the last collection is enough where nobody sees the rest.
            gc.collect(0 if self._visible is False else 2)
        if self._thawed or self._thaws != thaws():
            self._thawed, self._thaws = False, thaws()
            gc.freeze()

    @property
    def unclean(self) -> bool:
        """Whether garbage of others may be among what is left alone, and matters.

        It is collected while nothing has been done to a registry.
        """
        asked = self.matters and not self._clean and not self._touched
        # Counting looks at all of it.
        return asked and bool(gc.get_freeze_count())

    def clean(self) -> None:
        """Collect what others left."""
        self._thaw()
        gc.collect()
        self._clean = True

    def performed(self, operation: Hashable) -> None:
        """An operation was performed on the registry."""
        self._touched = True
        if self.seen.get(operation, 0) < PERFORMANCES:
            self._played.add(operation)

    def collect(self) -> None:
        """Collect garbage."""
        self._collected |= self._played
        if self.thorough:
            self._thaw()
        gc.collect()

    def check(self) -> bool:
        """Whether older garbage is there that no collection so far has found.

        It is asked at the end of a history: what is there now is looked through as well
        by all collections until the next registry.
        """
        if not self._collected or self.thorough or not self._clean:
            return False
        for operation in self._collected:
            self.seen[operation] = self.seen.get(operation, 0) + 1
        self._collected.clear()
        gc.collect()
        self._thaw()
        self.thorough = bool(gc.collect())
        return self.thorough

    def learn(self, seen: Mapping[Hashable, int], *, thorough: bool) -> None:
        """Go on from what another one learnt, in a process that left no garbage."""
        self._clean = True
        self.seen.update(seen)
        self.thorough = thorough

    def _thaw(self) -> None:
        gc.unfreeze()
        self._thawed = True


T = TypeVar("T")
P = ParamSpec("P")

Roots: TypeAlias = Mapping[str, object]

# A cache is cold the first time and warm the second.
LISTED = 2

# States 4, 16, 64, ...: a look takes as long as a thousand operations, and what is
# registered outside mostly stays there until it is seen.
FIRST_LOOK = 4
EVERY = 4


class Audit:
    """Watches the operations of one system, whatever it is reset to.

    `extent` says of some roots what belongs to the followed state.
    """

    def __init__(self, extent: Callable[[Roots], Extent]) -> None:
        self.performed: dict[Hashable, int] = {}
        # Whether what lies outside is looked at.
        self.looks = True
        self._calls = CallAudit()
        self._listed = False
        # Not in a circle with this object: a snapshot is large, and to go with it.
        self._roots = roots = dict[str, object]()
        self._boundary = Boundary(lambda: extent(roots))
        self._before: Snapshot | None = None
        self._states = 0
        self._next = FIRST_LOOK
        self._outside: dict[str, None] = {}

    def watched(
        self,
        operation: Hashable,
        function: Callable[P, T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Call a function that performs an operation; its first calls are listed."""
        performed = self.performed.get(operation, 0)
        if performed >= LISTED:
            return function(*args, **kwargs)
        self.performed[operation] = performed + 1
        self._listed = True
        with self._calls:
            return function(*args, **kwargs)

    def begin(self, roots: Roots) -> None:
        """From here on nothing outside of the followed state is to change."""
        if self.looks and self._before is None:
            self._before = self._snapshot(roots)

    def forget(self) -> None:
        """Let go of what was seen outside, until the next fresh registry."""
        self._before = None

    def at_state(self, roots: Roots) -> None:
        """Look at what lies outside, if it is time for it."""
        self._states += 1
        if self._states == self._next:
            self._next *= EVERY
            self.look(roots)

    @contextmanager
    def unwatched(self, roots: Roots) -> Iterator[None]:
        """Context: what changes outside is the harness's own doing."""
        with unaudited():
            self.look(roots)
            yield
            if self._before is not None:
                self._before = self._snapshot(roots)

    def caveats(self) -> Sequence[Caveat]:
        """What was seen, so far."""
        called = self._calls.caveats() if self._listed else ()
        return (*called, *caveats(tuple(self._outside)))

    def _snapshot(self, roots: Roots) -> Snapshot:
        with self._of(roots):
            return self._boundary.snapshot()

    @contextmanager
    def _of(self, roots: Roots) -> Iterator[None]:
        """Context: what the boundary is about; nothing of it is kept.

        What is looked at takes its time, and is no operation that stands still.
        """
        beats = pulse.current()
        if beats is not None:
            beats.rest()
        self._roots.update(roots)
        try:
            yield
        finally:
            self._roots.clear()

    def look(self, roots: Roots) -> None:
        """Look at what lies outside, whether it is time for it or not.

        At the end, and after a first time.
        """
        if self._before is None:
            return
        with self._of(roots):
            # Told it is from then on, and dear where something changed.
            changed, self._before = self._boundary.since(self._before)
        self._outside.update(dict.fromkeys(changed))
