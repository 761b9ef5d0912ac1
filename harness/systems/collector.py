"""Collecting garbage where most of what lives was there before.

True only here: what an exploration found in its process is frozen, because looking
through all of it takes longer than most operations, and copies it in a forked process.
A step may make garbage of it all the same, which weak references would still show.  So
everything is looked through where a history ends that first performed an operation; if
that finds something, each collection does from then on, and the exploration begins
again.
"""

import gc
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from harness.errors import HarnessError
from harness.heap.proxies import thaws

# An operation that makes garbage of older objects may do so the second time only, when
# what the first one left is replaced.
PERFORMANCES = 2


class BeginAgain(HarnessError):
    """What is known of the states so far cannot be compared with those to come.

    Whoever explores begins again with the same system, which has learnt from it.
    """


@dataclass(eq=False, kw_only=True)
class OlderGarbage(BeginAgain):
    """An operation made garbage of what was there before the exploration."""

    def render(self) -> str:
        """What was found."""
        return (
            "something became garbage that was there before the first registry: "
            "the exploration has to begin again"
        )


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
