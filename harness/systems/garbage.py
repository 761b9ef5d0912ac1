"""The garbage of a registry: collected on purpose, at known moments.

Objects that exist when an exploration begins are frozen, because scanning them takes
longer than most operations, and copies them in a forked process.  A step may make
garbage of them, which weak references still show.  So all is scanned at the end of a
history that first performed an operation; if that finds garbage, the exploration
restarts, and each later collection scans everything.
"""

import gc
from collections.abc import Hashable, Mapping

from everyorder.harness.state.encoders import thaws

# An operation may make garbage of older objects only the second time, when it replaces
# the result of the first.
PERFORMANCES = 2


class GarbageCollector:
    """Collects garbage for one system, across its resets.

    `thorough` means that each collection scans everything; `checks` counts the full
    scans after performances of each operation; `matters` is set if garbage is collected
    on purpose.
    """

    def __init__(self) -> None:
        self.thorough = False
        self.checks: dict[Hashable, int] = {}
        # True if frozen objects contain no garbage; it is collected first if it
        # matters.
        self._clean = False
        self.matters = False
        self._touched = False
        self._played: set[Hashable] = set()
        self._collected: set[Hashable] = set()
        self._thawed = False
        self._thaws = thaws()
        # True if garbage affects the state; None until a state was read.
        self._visible: bool | None = None

    def state(self, *, weak: bool, whole: bool) -> None:
        """Record that a state has `weak` references, or no opaque parts (`whole`)."""
        if weak or not whole:
            self._visible = True
        elif self._visible is None:
            self._visible = False

    def begin(self) -> None:
        """Begin with a fresh registry; freeze objects again if they were frozen."""
        self._touched = False
        self._played.clear()
        self._collected.clear()
        freezes = self._thawed or self._thaws != thaws()
        if not gc.isenabled():
            # A disabled collector means that no garbage of the last system may reach
            # the next one.  Collecting the youngest generation is enough if garbage is
            # not visible; but what is frozen as garbage is found as that of older
            # objects.
            gc.collect(0 if self._visible is False and not freezes else 2)
        if freezes:
            self._thawed, self._thaws = False, thaws()
            gc.freeze()

    @property
    def must_clean(self) -> bool:
        """Return True if frozen objects may contain garbage that affects the state.

        It is collected before the first operation on a registry.
        """
        needed = self.matters and not self._clean and not self._touched
        # Counting scans all frozen objects.
        return needed and bool(gc.get_freeze_count())

    def clean(self) -> None:
        """Collect the garbage of earlier systems and of the program."""
        self._thaw()
        gc.collect()
        self._clean = True

    def note(self, operation: Hashable) -> None:
        """Record that an operation was performed on the registry."""
        self._touched = True
        if self.checks.get(operation, 0) < PERFORMANCES:
            self._played.add(operation)

    def collect(self) -> None:
        """Collect garbage."""
        self._collected |= self._played
        if self.thorough:
            self._thaw()
        gc.collect()

    def check(self) -> bool:
        """Return True if there is older garbage that no collection so far has found.

        It is called at the end of a history: from then on the collections scan all
        present objects until the next registry.
        """
        if not self._collected or self.thorough or not self._clean:
            return False
        for operation in self._collected:
            self.checks[operation] = self.checks.get(operation, 0) + 1
        self._collected.clear()
        gc.collect()
        self._thaw()
        self.thorough = bool(gc.collect())
        return self.thorough

    def learn(self, checks: Mapping[Hashable, int], *, thorough: bool) -> None:
        """Start from another collector's results, in a process without garbage."""
        self._clean = True
        self.checks.update(checks)
        self.thorough = thorough

    def _thaw(self) -> None:
        gc.unfreeze()
        self._thawed = True
