"""The audit of one system: what its operations do where no state shows it.

True only here: when it is looked.  C functions are listed during the first performances
of each operation.  What lies outside of the followed state is compared right after its
very first and its first beside one active step, and at a few states, ever further
apart.  Both are far too dear for every operation: what one does, it mostly does the
first time.

Rule: what was seen is kept as caveats and counts; nothing of the system is.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ParamSpec, TypeAlias, TypeVar

from harness.engine import pulse
from harness.engine.protocol import Caveat
from harness.heap.boundary import Boundary, Extent, Snapshot, caveats
from harness.heap.calls import CallAudit, unheard

T = TypeVar("T")
P = ParamSpec("P")

Roots: TypeAlias = Mapping[str, object]

# A cache is cold the first time and warm the second.
PERFORMANCES = 2

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
        if performed >= PERFORMANCES:
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

    def look(self, roots: Roots) -> None:
        """Look whether it is time for it or not: at the end, or after a first time."""
        self._look(roots)

    def at_state(self, roots: Roots) -> None:
        """Look at what lies outside, if it is time for it."""
        self._states += 1
        if self._states == self._next:
            self._next *= EVERY
            self._look(roots)

    @contextmanager
    def unwatched(self, roots: Roots) -> Iterator[None]:
        """Context: what changes outside is the harness's own doing."""
        with unheard():
            self._look(roots)
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

    def _look(self, roots: Roots) -> None:
        if self._before is None:
            return
        with self._of(roots):
            # Told it is from then on, and dear where something changed.
            changed, self._before = self._boundary.since(self._before)
        self._outside.update(dict.fromkeys(changed))
