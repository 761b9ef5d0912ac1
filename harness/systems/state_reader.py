"""The complete state of a registry, and what stands between it and a proof.

`StateReader` decides what belongs to the state.  The registry, what the scenario gave
to undo each active step, tasks of the event loop, the scenario's own functions with
their closures, and what `watch=` names are its roots; `harness.state` reads everything
that they reach within the scope.  Names of the roots are words of the scenario: paths
that differ begin with them.

Three things happen where no state shows them:

- `Audit` lists C functions during the first performances of each operation;
- it compares what lies outside of the followed state right after the very first
  performance of an operation and its first beside one active step, and at a few states,
  ever further apart.  Both are far too dear for every operation, and what an operation
  does, it mostly does the first time;
- `GarbageCollector` finds garbage of older objects.  What is in the process when an
  exploration begins is frozen, because looking through all of it takes longer than most
  operations, and copies it in a forked process.  A step may make garbage of it all the
  same, which weak references would still show.  So everything is looked through where a
  history ends that first performed an operation; if that finds something, each
  collection does so from then on, and the exploration begins again.

Rules:
- undo handles come with each call and are not kept;
- followed are the packages of the registry, the steps, the uses and the undo handles,
  never those of the harness or of pytest;
- what was found outside, opaque or assumed stays as a caveat until the end, and what
  was performed as a count; nothing of the system is kept.
"""

import gc
import sys
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractContextManager,
    _AsyncGeneratorContextManager,
    _GeneratorContextManager,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import ModuleType
from typing import Any, ParamSpec, TypeAlias, TypeVar

from everyorder.harness.base.errors import ExplorationRestart
from everyorder.harness.engine import progress
from everyorder.harness.engine.protocol import Caveat, StateForm
from everyorder.harness.scenario.execution import (
    Lasting,
    ScenarioLoop,
    UndoHandle,
    initialize_asyncio,
)
from everyorder.harness.scenario.mistakes import count_required, name_of
from everyorder.harness.scenario.scenario import Scenario
from everyorder.harness.scenario.step import Perform
from everyorder.harness.state import Heap, Portrait, scope_of
from everyorder.harness.state.c_call_audit import (
    CallAudit,
    caveats_of,
    merge_caveats,
    pause_call_audit,
)
from everyorder.harness.state.encoders import thaws
from everyorder.harness.state.untracked_writes import (
    Boundary,
    Extent,
    Snapshot,
    caveats,
)

# An operation that makes garbage of older objects may do so the second time only, when
# what the first one left is replaced.
PERFORMANCES = 2


class GarbageCollector:
    """Collects garbage for one system, whatever it is reset to.

    `thorough` says whether each collection looks through everything, and `checks` after
    how many performances of each operation that was done once; `matters` is set where
    garbage is collected on purpose.
    """

    def __init__(self) -> None:
        self.thorough = False
        self.checks: dict[Hashable, int] = {}
        # Whether what is frozen has no garbage; it is collected first if it matters.
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
        """Begin with a fresh registry; what is there now is frozen again if it was."""
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
    def must_clean(self) -> bool:
        """Whether garbage of others may be among what is frozen, and matters.

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

    def note(self, operation: Hashable) -> None:
        """Note that an operation was performed on the registry."""
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
        """Whether older garbage is there that no collection so far has found.

        It is asked at the end of a history: what is there now is looked through as well
        by all collections until the next registry.
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
        """Go on from what another one learnt, in a process that left no garbage."""
        self._clean = True
        self.checks.update(checks)
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
        self.performances: dict[Hashable, int] = {}
        # Whether what lies outside is looked at.
        self.checks_outside = True
        self._calls = CallAudit()
        self._listed = False
        # Not in a circle with this object: a snapshot is large, and to go with it.
        self._roots = roots = dict[str, object]()
        self._boundary = Boundary(lambda: extent(roots))
        self._before: Snapshot | None = None
        self._states = 0
        self._next = FIRST_LOOK
        self._outside: dict[str, None] = {}

    def call(
        self,
        operation: Hashable,
        function: Callable[P, T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Call a function that performs an operation, and list its first calls."""
        performed = self.performances.get(operation, 0)
        if performed >= LISTED:
            return function(*args, **kwargs)
        self.performances[operation] = performed + 1
        self._listed = True
        with self._calls:
            return function(*args, **kwargs)

    def begin(self, roots: Roots) -> None:
        """Compare what lies outside of the followed state with what is there now."""
        if self.checks_outside and self._before is None:
            self._before = self._snapshot(roots)

    def forget(self) -> None:
        """Keep nothing of what lies outside, until the next fresh registry."""
        self._before = None

    def check_if_due(self, roots: Roots) -> None:
        """Count a state, and check what lies outside at some of them."""
        self._states += 1
        if self._states == self._next:
            self._next *= EVERY
            self.check(roots)

    @contextmanager
    def pause(self, roots: Roots) -> Iterator[None]:
        """Context: what changes outside is the harness's own doing."""
        with pause_call_audit():
            self.check(roots)
            yield
            if self._before is not None:
                self._before = self._snapshot(roots)

    def caveats(self) -> Sequence[Caveat]:
        """What the calls and the checks up to now leave open."""
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
        beats = progress.current()
        if beats is not None:
            beats.rest()
        self._roots.update(roots)
        try:
            yield
        finally:
            self._roots.clear()

    def check(self, roots: Roots) -> None:
        """Note what has changed outside since it was last checked."""
        if self._before is None:
            return
        with self._of(roots):
            # A change is reported once, and costs time where it is found.
            changed, self._before = self._boundary.compare(self._before)
        self._outside.update(dict.fromkeys(changed))


# Packages of the harness and of pytest are no part of any registry; undo handles from
# the standard library say nothing about where the state of theirs is.
_NEVER_FOLLOWED = frozenset({"_pytest", "everyorder", "everyorder.harness", "pytest"})
_NO_HOME = _NEVER_FOLLOWED | sys.stdlib_module_names


@dataclass(frozen=True, slots=True)
class LearnedState:
    """What a system learnt that the next one, in another process, need not learn.

    `performances` counts how often operations were audited; `packages` are followed;
    `undeclared` are operations that raised what was not declared; `checks_outside` says
    whether what lies outside of the state is checked; `garbage_checks` and `thorough`
    are those of its collector.
    """

    performances: Mapping[Hashable, int] = field(default_factory=dict)
    packages: frozenset[str] = frozenset()
    undeclared: frozenset[int] = frozenset()
    caveats: tuple[Caveat, ...] = ()
    checks_outside: bool = True
    garbage_checks: Mapping[Hashable, int] = field(default_factory=dict)
    thorough: bool = False


class StateReader:
    """Reads the states of one scenario's registries."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._target: object = None
        self._loop = ScenarioLoop()
        self._fixed: dict[str, object] = {}
        self._watch_roots: dict[str, object] | None = None
        self._packages: frozenset[str] = frozenset()
        self._heap: Heap | None = None
        # Whether abstract classes were asked to forget what they answered before.
        self._cold = False
        # Types of undo handles whose packages are followed.
        self._followed: set[type] = set()
        self._seen: dict[Caveat, None] = {}
        self.collector = GarbageCollector()
        # Not in a circle: what the audit keeps is large, and goes with this object.
        me = weakref.ref(self)
        self.audit = Audit(lambda roots: _alive(me).heap.extent(roots))

    @property
    def heap(self) -> Heap:
        """What reads objects; a system is reset before it is looked at."""
        assert self._heap is not None, "a system is reset before it is looked at"
        return self._heap

    def begin(
        self,
        target: object,
        loop: ScenarioLoop,
        performs: Sequence[Perform],
        given: Sequence[Perform],
    ) -> None:
        """Read a fresh registry from here on, whose steps were prepared."""
        self._target = target
        self._loop = loop
        scenario = self._scenario
        if self._watch_roots is None:
            self._watch_roots = {
                name: import_module(each) if isinstance(each, str) else each
                for name, each in scenario.watch
            }
        self._fixed = self._fixed_roots(performs, given) | self._watch_roots
        self._fixed["class of the registry"] = type(target)
        if self._heap is None:
            found = scope_of([target, *self._fixed.values()], scenario.ignore)
            self._packages |= found.packages - _NEVER_FOLLOWED
            self._heap = Heap(replace(found, packages=self._packages))
            self._begin_cold()
        initialize_asyncio()
        loop.call(self.audit.begin, self._all_roots(()))
        self.note_loop()

    def end(self) -> None:
        """Let go of the registry."""
        self._target = None
        self._fixed = {}
        if self._heap is not None:
            self._heap.forget()
            if self._scenario.isolation is None:
                self._heap.empty_caches()

    def _begin_cold(self) -> None:
        """Have the first registry find abstract classes as the next ones will.

        Raises:
            ExplorationRestart: they remembered answers, and the registry was made with
                these.
        """
        if self._scenario.isolation is None and not self._cold:
            self._cold = True
            self._loop.call(self.heap.form, self._all_roots(()))
            if self.heap.empty_caches():
                raise ExplorationRestart(code="CachesWarm")

    def forget(self) -> None:
        """Keep nothing of what lies outside, which is large, but the caveats."""
        self.audit.forget()

    def follow(self, handle: object) -> None:
        """Have the package of an undo handle followed, too.

        Raises:
            ExplorationRestart: it was not until now.
        """
        if type(handle) in self._followed:
            return
        found = scope_of([_resource_of(handle)]).packages - self._packages - _NO_HOME
        if found:
            self._packages |= found
            self._heap = None
            raise ExplorationRestart(code="ScopeGrown", packages=tuple(sorted(found)))
        if not isinstance(handle, UndoHandle):
            self._followed.add(type(handle))

    def form(self, handles: Sequence[object]) -> StateForm:
        """The state as a value, read from the objects."""
        passing = self._fresh_roots(handles)
        self._loop.call(self.audit.check_if_due, passing | self._fixed)
        form = self._loop.call(self.heap.form, passing, self._fixed)
        self.collector.state(weak=form.weak, whole=self.heap.is_complete)
        return form

    def fingerprint_form(self, told: object) -> StateForm:
        """The state as a value, as the scenario's fingerprint told it."""
        return self._loop.call(self.heap.form, {"fingerprint": told})

    def check_outside(self, handles: Sequence[object]) -> None:
        """Check what lies outside of the state, whenever that was done before."""
        if self._heap is None:  # more is followed after the next reset
            return
        self._loop.call(self.audit.check, self._all_roots(handles))

    def check_after(self, operation: tuple[str, int], active: int) -> None:
        """Check what lies outside, right after a first performance of an operation.

        That is its very first, and its first beside one active step: a use may take
        back what a step did outside, and beside others an operation does little more.
        """
        if self._heap is None or self.audit.performances.get((*operation, active)) != 1:
            return
        if active == 1 or not self.is_repeated(operation):
            self._loop.call(self.audit.check, self._all_roots(()))

    def portrait(self, handles: Sequence[object]) -> Portrait:
        """The state as it is, to be compared with others."""
        return self._loop.call(self.heap.portrait, self._all_roots(handles))

    def undo_handles(self, handles: Sequence[object]) -> dict[str, object]:
        """What the scenario gave to undo each active step, by the step's text."""
        return {
            step.text: _resource_of(handle)
            for step, handle in zip(self._scenario.steps, handles, strict=False)
            if handle is not None and not isinstance(handle, Lasting)
        }

    def is_repeated(self, operation: tuple[str, int]) -> bool:
        """Whether an operation that is performed now was so before, on any registry."""
        performed = self.audit.performances.items()
        times = [
            n for of, n in performed if isinstance(of, tuple) and of[:2] == operation
        ]
        return sum(times) > 1

    def pause_audit(self) -> AbstractContextManager[None]:
        """Context: the harness itself imports something, or collects garbage."""
        if self._heap is None:  # nothing is watched yet
            return nullcontext()
        return self.audit.pause(self._all_roots(()))

    def caveats(self) -> tuple[Caveat, ...]:
        """What stands between the states seen so far and a proof."""
        scenario = self._scenario
        told = [
            Caveat("assumed", f"the order of what {use.text} answers does not count")
            for use in scenario.uses
            if use.unordered
        ]
        if scenario.unordered:
            told.append(Caveat("assumed", "the order of observed lines does not count"))
        if scenario.fingerprint is not None:
            told.append(Caveat("assumed", "fingerprint= tells the whole state"))
            if argument_count(scenario.fingerprint) == 1:
                text = "the undo handles hold no state of their own"
                told.append(Caveat("assumed", text))
        elif self._heap is not None:
            told += self._heap.caveats()
        # Whatever is told by a fingerprint: C code may call what the registry holds.
        called = self._heap.impure_functions if self._heap is not None else ()
        found = (*told, *self.audit.caveats(), *self._seen, *caveats_of(called))
        return merge_caveats(found)

    def note_loop(self) -> None:
        """Note what the event loop goes on with after an operation.

        Not at the end: what is dropped there is what the harness drops.
        """
        loop = self._loop
        for each in loop.pending:
            text = f"a task that is pending when an operation ends ({name_of(each)})"
            self._seen[Caveat("opaque", text)] = None
        if loop.scheduled:
            text = "callbacks that the event loop has yet to call"
            self._seen[Caveat("opaque", text)] = None
        for failure in loop.failures:
            self._seen[Caveat("outside", failure)] = None

    def memory(self, undeclared: Iterable[int]) -> LearnedState:
        """What was learnt, with the operations that raised something undeclared."""
        return LearnedState(
            performances=dict(self.audit.performances),
            packages=self._packages,
            undeclared=frozenset(undeclared),
            caveats=self.caveats(),
            checks_outside=self.audit.checks_outside,
            garbage_checks=dict(self.collector.checks),
            thorough=self.collector.thorough,
        )

    def remember(self, memory: LearnedState) -> None:
        """Go on from what another one learnt."""
        self.audit.performances.update(memory.performances)
        self.audit.checks_outside = memory.checks_outside
        self.collector.learn(memory.garbage_checks, thorough=memory.thorough)
        self._packages |= memory.packages
        self._seen.update(dict.fromkeys(memory.caveats))

    def _fixed_roots(
        self, performs: Sequence[Perform], given: Sequence[Perform]
    ) -> dict[str, object]:
        """The scenario's own functions: what they hold is state."""
        scenario = self._scenario
        roots: dict[str, object] = {}
        for kind, steps, prepared in (
            ("step", scenario.steps, performs),
            ("given", scenario.given, given),
        ):
            for step, perform in zip(steps, prepared, strict=True):
                # Of a step made by hand nothing is known but what performs it.
                own = step.functions or (perform,)
                for part, function in zip(("", ", undo="), own, strict=False):
                    roots[f"{kind} {step.text}{part}"] = function
        roots |= {f"use {use.text}": use.perform for use in scenario.uses}
        if scenario.observe is not None:
            roots["observe"] = scenario.observe
        if scenario.check is not None:
            roots["check"] = scenario.check
        return roots

    def _all_roots(self, handles: Sequence[object]) -> dict[str, object]:
        """Everything that is state, by the names that paths begin with."""
        return self._fresh_roots(handles) | self._fixed

    def _fresh_roots(self, handles: Sequence[object]) -> dict[str, object]:
        """What is state and another one on each fresh system."""
        roots: dict[str, object] = {"registry": self._target}
        for text, held in self.undo_handles(handles).items():
            roots[f"undo of {text}"] = held
        for number, coroutine in enumerate(self._loop.pending, 1):
            roots[f"pending task {number}"] = coroutine
        changed = self._loop.changed
        if changed is not None:
            roots["event loop"] = changed
        return roots


def _alive(reference: "weakref.ref[StateReader]") -> StateReader:
    complete = reference()
    assert complete is not None, "its audit is part of it"
    return complete


def argument_count(function: Callable[..., Any], least: int = 1) -> int:
    """How many arguments a function is given, `least` at least and two at most.

    Where Python cannot tell, a builtin type gets one, and a bound method none.
    """
    count = count_required(function, 2)
    if count is None:
        owner = getattr(function, "__self__", None)
        count = 1 if owner is None or isinstance(owner, ModuleType) else 0
    return max(count, least)


def _resource_of(handle: Any) -> Any:
    """What the scenario gave: of the context manager of a generator, the generator."""
    resource = handle.resource if isinstance(handle, UndoHandle) else handle
    # Not by isinstance: an abstract class remembers whom it was asked about.
    made = (_GeneratorContextManager, _AsyncGeneratorContextManager)
    if any(each is one for each in type(resource).__mro__ for one in made):
        return resource.gen
    return resource
