"""The complete state of a registry, and the limits of its proofs.

`StateReader` decides what belongs to the state.  Its roots are the registry, the undo
resource of each active step, tasks of the event loop, the scenario's own functions with
their closures, and the objects named by `watch=`; `harness.state` reads everything that
they reach within the scope.  The roots are named in words of the scenario: paths that
differ begin with them.

Three effects show in no state:

- `Audit` lists C functions during the first performances of operations, at each state;
- it compares the untracked state right after first performances and after functions
  that run for the first time (`check_after`), and at a few states, at growing
  distances: most effects of an operation occur the first time;
- `GarbageCollector` finds garbage of older objects (`garbage.py`).

Rules:
- undo handles are passed to each call and are not stored;
- the packages of the registry, the steps, the uses and the undo handles are followed,
  never those of the harness or of pytest;
- untracked changes, opaque objects and assumptions stay as caveats until the end, and
  performances as counts; no object of the system is stored.
"""

import sys
import weakref
from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import (
    AbstractContextManager,
    _AsyncGeneratorContextManager,
    _GeneratorContextManager,
    nullcontext,
)
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from everyorder.harness.base.errors import ExplorationRestart, NotAScenario
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
from everyorder.harness.state import (
    FollowedScope,
    Heap,
    Portrait,
    scope_of,
    unique_paths,
)
from everyorder.harness.state.c_call_audit import caveats_of, merge_caveats
from everyorder.harness.state.executed_code import ExecutedCode
from everyorder.harness.state.fixed_part import ChangedParts
from everyorder.harness.state.global_names import GlobalNames
from everyorder.harness.state.scope import package_of, weak_containers
from everyorder.harness.state.unique_values import unique_caveats
from everyorder.harness.state.untracked_writes import Extent
from everyorder.harness.systems.audit import Audit, Operation, Roots, times
from everyorder.harness.systems.garbage import GarbageCollector
from everyorder.harness.systems.repeated_warnings import PrintedWarning

# Packages of the harness and of pytest do not belong to any registry; undo handles of
# the standard library do not show the package of the state.
_NEVER_FOLLOWED = frozenset(
    {"_pytest", "everyorder", "everyorder.coded_error", "everyorder.harness", "pytest"}
)
_NO_HOME = _NEVER_FOLLOWED | sys.stdlib_module_names


@dataclass(frozen=True, slots=True)
class LearnedState:
    """The knowledge of a system, for the next one in another process.

    `performances` counts how often operations were audited, `orders` if the order of
    dicts tells states apart; `packages` are followed; `undeclared` are operations that
    raised an undeclared error; `checks_outside` means that the untracked state is
    checked; `garbage_checks` and `thorough` are those of its collector; `unique` are
    paths of values that are new each time, with their kinds; `full` are functions whose
    caches were full; `warned` are warnings that were printed.
    """

    performances: Mapping[Operation, int] = field(default_factory=dict)
    packages: frozenset[str] = frozenset()
    undeclared: frozenset[int] = frozenset()
    caveats: tuple[Caveat, ...] = ()
    checks_outside: bool = True
    garbage_checks: Mapping[Hashable, int] = field(default_factory=dict)
    thorough: bool = False
    unique: Mapping[str, str] = field(default_factory=dict)
    full: frozenset[str] = frozenset()
    orders: bool = False
    warned: frozenset[PrintedWarning] = frozenset()


@dataclass(frozen=True, slots=True)
class PortraitScope:
    """What a portrait covers: what is followed, from the roots of these names."""

    followed: FollowedScope
    roots: frozenset[str]


# Objects of a state from which on what no executed code reads is left out of it.
LARGE = 5_000

# Performances of a warm-up after which changes of the fixed part are looked for.
LEARNED = 1


class StateReader:
    """Reads the states of one scenario's registries."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._target: object = None
        self._loop = ScenarioLoop()
        self._fixed: dict[str, object] = {}
        self._watch_roots: dict[str, object] | None = None
        self._packages: frozenset[str] = frozenset()
        # Weak containers of other packages that track objects of the registry.
        self._tracking: dict[str, object] = {}
        # Paths of values that are new each time, and their kinds.
        self._unique: dict[str, str] = {}
        # Functions whose caches may drop an entry: then their order is state.
        self._full: frozenset[str] = frozenset()
        self._heap: Heap | None = None
        # The code whose globals are read; None if those of all code are.
        self._executed: ExecutedCode | None = None
        self._changed = ChangedParts()
        # True if the cached answers of abstract classes were emptied once.
        self._cold = False
        # Types of undo handles whose packages are followed.
        self._followed: set[type] = set()
        self._seen: dict[Caveat, None] = {}
        self.names = GlobalNames()
        self.collector = GarbageCollector()
        # Not in a cycle: the audit is large, and must be freed with this object.
        me = weakref.ref(self)
        self.audit = Audit(lambda roots: _alive(me)._extent(roots), scenario.ignore)

    @property
    def heap(self) -> Heap:
        """Return the reader of objects; a system is reset before it is read."""
        assert self._heap is not None, "a system is reset before it is looked at"
        return self._heap

    def begin(
        self,
        target: object,
        loop: ScenarioLoop,
        performs: Sequence[Perform],
        setup: Sequence[Perform],
    ) -> None:
        """Read a fresh registry from now on, whose steps were prepared."""
        self._target = target
        self._loop = loop
        scenario = self._scenario
        if self._watch_roots is None:
            self._watch_roots = {
                name: _watched(each) if isinstance(each, str) else each
                for name, each in scenario.watch
            }
        self._fixed = self._fixed_roots(performs, setup) | self._watch_roots
        self._fixed |= self._tracking
        self._fixed["class of the registry"] = type(target)
        if self._heap is None:
            scope = scope_of([target, *self._fixed.values()], scenario.ignore)
            self._packages |= scope.packages - _NEVER_FOLLOWED
            scope = replace(
                scope,
                packages=self._packages,
                unique=frozenset(self._unique.values()),
                full=self._full,
            )
            self.names.read(_spaces(self._packages, self._fixed.values()))
            self._heap = self._new_heap(scope)
            self._begin_cold()
            self._heap = self._heap or self._new_heap(scope)
        initialize_asyncio()
        loop.call(self.audit.begin, self._all_roots(()))
        self.note_loop()

    def end(self) -> None:
        """Drop the registry."""
        self.audit.end_operation()
        self._target = None
        self._fixed = {}
        if self._heap is not None and self._scenario.isolation is None:
            self._heap.empty_caches()

    def _new_heap(self, scope: FollowedScope) -> Heap:
        if self._executed is not None:
            self._executed.renew(late=not self.audit.rehearsing)
            self.audit.forget_places()
        # A system in its own process shares no objects with the others.
        fixed = self._scenario.isolation is None
        return Heap(scope, fixed=fixed, changed=self._changed, executed=self._executed)

    def _begin_cold(self) -> None:
        """Empty caches of abstract classes for the first registry, as for later ones.

        If its state is large, or has opaque objects, only what executed code reads is
        read from now on.

        Raises:
            ExplorationRestart: there were cached answers, and the registry was
                made with them.
        """
        if self._scenario.isolation is None and not self._cold:
            self._cold = True
            heap = self.heap
            form = self._loop.call(heap.form, self._all_roots(()))
            large = form.objects > LARGE or not heap.is_complete
            # Without a warm-up forms of other processes are compared, which execute
            # other code.
            if large and self.audit.rehearsing and self._scenario.fingerprint is None:
                self._executed = ExecutedCode()
                self.audit.record_executed(self._executed)
                self._heap = None
            if heap.empty_caches():
                raise ExplorationRestart(code="CachesWarm")

    def share(self, other: "StateReader") -> None:
        """Know what another reader of this process found to have changed."""
        self._changed = other._changed

    def forget(self) -> None:
        """Drop the snapshot of the untracked state, which is large; keep caveats."""
        self.audit.forget()
        if self._heap is not None:
            self._heap.forget()

    def _extent(self, roots: Roots) -> Extent:
        passing = {k: v for k, v in roots.items() if k not in self._fixed}
        return self.heap.extent(passing, self._fixed)

    def follow(self, handle: object) -> None:
        """Follow the package of an undo handle, too.

        Raises:
            ExplorationRestart: it was not followed until now.
        """
        if type(handle) in self._followed:
            return
        packages = scope_of([_resource_of(handle)]).packages - self._packages - _NO_HOME
        if packages:
            self._packages |= packages
            self._heap = None
            raise ExplorationRestart(
                code="ScopeGrown", packages=tuple(sorted(packages))
            )
        if not isinstance(handle, UndoHandle):
            self._followed.add(type(handle))

    def form(self, handles: Sequence[object]) -> StateForm:
        """Return the state as a value, read from the objects.

        Raises:
            ExplorationRestart: a cache is full that never was, an object of the fixed
                part changed, or code ran that did not run before.
        """
        self.check_executed()
        passing = self._fresh_roots(handles)
        self._loop.call(self.audit.check_if_due, passing | self._fixed)
        self._track(self.audit.outside)
        self.heap.learning = self.audit.rehearsing
        form = self.audit.arrive(self._loop.call(self.heap.form, passing, self._fixed))
        self._note_full_caches()
        self.collector.state(weak=form.weak, whole=self.heap.is_complete)
        return form

    def fingerprint_form(self, fingerprint: object) -> StateForm:
        """Return the state as a value, from the scenario's fingerprint."""
        form = self._loop.call(self.heap.form, {"fingerprint": fingerprint})
        self._note_full_caches()
        return self.audit.arrive(form)

    def _note_full_caches(self) -> None:
        """Read the order of caches that may drop an entry.

        Raises:
            ExplorationRestart: it was not read until now.
        """
        full = self.heap.full_caches - self._full
        if full:
            self._full |= full
            self._heap = None
            raise ExplorationRestart(code="CacheFull", packages=tuple(sorted(full)))

    def check_outside(self, handles: Sequence[object]) -> None:
        """Check the untracked state, whenever that was done before."""
        if self._heap is None:  # more is followed after the next reset
            return
        self._loop.call(self.audit.check, self._all_roots(handles))

    def check_after(self, operation: tuple[str, int], active: int) -> None:
        """Check the untracked state right after a first performance of an operation.

        That is its first after the warm-up, and its first with one active step; for a
        use, the look or the laws the first with any number of active steps; and one
        that runs a function which did not run before.  An operation may undo untracked
        effects of the one before it.  A memo is filled by the warm-up and stays as it
        is; a counter or a flag that is kept elsewhere changes again.
        """
        self.audit.end_operation()
        performances = self.audit.performances
        rehearsed = self.audit.rehearsed.get((*operation, active), 0)
        if self._heap is not None and self.audit.rehearsing and rehearsed <= LEARNED:
            self._loop.call(self._heap.note_changes, self._fixed)
        self.check_executed()
        if self._heap is None:
            return
        first = performances.get((*operation, active)) == 1 and (
            active == 1 or operation[0] == "use" or times(performances, operation) == 1
        )
        if self.audit.take_new_code() or first:
            self._loop.call(self.audit.check, self._all_roots(()))
            self._track(self.audit.outside)

    def portrait(self, handles: Sequence[object]) -> Portrait:
        """Return the state as it is, for comparison with others."""
        return self._loop.call(self.heap.portrait, self._all_roots(handles))

    def scope(self) -> "PortraitScope":
        """Return what a portrait covers now."""
        return PortraitScope(self.heap.scope, frozenset(self._all_roots(())))

    def portrait_within(
        self, handles: Sequence[object], scope: "PortraitScope"
    ) -> Portrait:
        """Return the state as a portrait at another time would cover it."""
        every = self._all_roots(handles).items()
        roots = {name: root for name, root in every if name in scope.roots}
        return self._loop.call(Heap(scope.followed).portrait, roots)

    def portrait_of(self, value: object) -> Portrait:
        """Return what one value reaches."""
        return self._loop.call(self.heap.portrait, {"value": value})

    def undo_handles(self, handles: Sequence[object]) -> dict[str, object]:
        """Return the undo resource of each active step, by the step's text."""
        return {
            step.text: _resource_of(handle)
            for step, handle in zip(self._scenario.steps, handles, strict=False)
            if handle is not None and not isinstance(handle, Lasting)
        }

    def is_repeated(self, operation: tuple[str, int]) -> bool:
        """Return True if the current operation was performed before on any registry."""
        tables = self.audit.performances, self.audit.rehearsed
        return sum(times(table, operation) for table in tables) > 1

    def rehearse(self, *, begins: bool) -> tuple[str, ...]:
        """Begin a warm-up, or end it and return the untracked changes.

        Raises:
            ExplorationRestart: weak containers changed, which are state from now on, or
                code ran whose globals no form contains.
        """
        if begins:
            self.audit.begin_rehearsal()
            return ()
        self.audit.end_operation()
        self._restart_if_outdated()
        assert self._heap is not None, "systems were reset during the warm-up"
        self._heap.settle()
        roots = self._all_roots(())
        self._track(self._loop.call(self.audit.changes_so_far, roots))
        return self.audit.end_rehearsal(self._tracking)

    def _track(self, changes: tuple[str, ...]) -> None:
        """Follow the weak containers among untracked changes.

        Raises:
            ExplorationRestart: one of them was not followed until now.
        """
        tracking = weak_containers(changes)
        if tracking.keys() - self._tracking.keys():
            self._tracking |= tracking
            self._heap = None
            names = tuple(sorted(tracking))
            raise ExplorationRestart(code="WeaklyTracked", packages=names)

    def check_executed(self) -> None:
        """Read the globals of code that ran after forms had left them out.

        Raises:
            ExplorationRestart: there was some, after the warm-up.
        """
        self.audit.end_operation()
        if not self.audit.rehearsing:
            self._restart_if_outdated()

    def _restart_if_outdated(self) -> None:
        if self._executed is not None and self._executed.is_outdated:
            self._heap = None
            raise ExplorationRestart(code="CodeRan")

    def set_aside(self, one: Portrait, other: Portrait) -> bool:
        """Leave values out of the state that are new each time.

        The portraits are of one history on two fresh systems.  True if more is left out
        from the next reset on.
        """
        paths = unique_paths(one, other)
        if not paths.keys() - self._unique.keys():
            return False
        self._unique.update(paths)
        self._heap = None
        return True

    def pause_audit(self) -> AbstractContextManager[None]:
        """Pause the audit in this context: the harness imports, or collects garbage."""
        if self._heap is None:  # nothing is tracked yet
            return nullcontext()
        return self.audit.pause(self._all_roots(()))

    def caveats(self) -> tuple[Caveat, ...]:
        """Return the limits of a proof by the states seen so far."""
        scenario = self._scenario
        caveats = [
            Caveat("assumed", f"the order of what {use.text} answers does not count")
            for use in scenario.uses
            if use.unordered
        ]
        if scenario.unordered:
            caveats.append(
                Caveat("assumed", "the order of observed lines does not count")
            )
        if scenario.fingerprint is not None:
            caveats.append(Caveat("assumed", "fingerprint= returns the whole state"))
            if argument_count(scenario.fingerprint) == 1:
                text = "the undo handles have no state"
                caveats.append(Caveat("assumed", text))
        elif self._heap is not None:
            caveats += self._heap.caveats()
        # With a fingerprint as well: C code may call functions that the registry holds.
        caveats += unique_caveats(self._unique)
        called = self._heap.impure_functions if self._heap is not None else ()
        every = (*caveats, *self.audit.caveats(), *self._seen, *caveats_of(called))
        return merge_caveats(every)

    def note(self, caveat: Caveat) -> None:
        """Record a limit of a proof: something of an outcome is not compared."""
        self._seen[caveat] = None

    def note_loop(self) -> None:
        """Record the pending work of the event loop after an operation.

        Not at the end: work that is dropped there is dropped by the harness.
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
        """Return the learned state, with the operations of undeclared errors."""
        return LearnedState(
            performances=dict(self.audit.performances),
            packages=self._packages,
            undeclared=frozenset(undeclared),
            caveats=self.caveats(),
            checks_outside=self.audit.checks_outside,
            garbage_checks=dict(self.collector.checks),
            thorough=self.collector.thorough,
            unique=self._unique.copy(),
            full=self._full,
            orders=self.audit.orders,
        )

    def remember(self, memory: LearnedState) -> None:
        """Start from another reader's learned state."""
        self.audit.performances.update(memory.performances)
        self.audit.checks_outside = memory.checks_outside
        self.audit.orders = memory.orders
        self.collector.learn(memory.garbage_checks, thorough=memory.thorough)
        self._packages |= memory.packages
        self._unique.update(memory.unique)
        self._full |= memory.full
        self._seen.update(dict.fromkeys(memory.caveats))

    def _fixed_roots(
        self, performs: Sequence[Perform], setup: Sequence[Perform]
    ) -> dict[str, object]:
        """Return the scenario's own functions, whose closures are state."""
        scenario = self._scenario
        roots: dict[str, object] = {}
        for kind, steps, prepared in (
            ("step", scenario.steps, performs),
            ("given", scenario.given, setup),
        ):
            for step, perform in zip(steps, prepared, strict=True):
                # A step without known functions is represented by its performer.
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
        """Return all roots of the state, by the names that paths begin with."""
        return self._fresh_roots(handles) | self._fixed

    def _fresh_roots(self, handles: Sequence[object]) -> dict[str, object]:
        """Return the roots that differ on each fresh system."""
        roots: dict[str, object] = {"registry": self._target}
        for text, resource in self.undo_handles(handles).items():
            roots[f"undo of {text}"] = resource
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
    """Return how many arguments to pass, at least `least` and at most two.

    If Python does not know, a builtin type is called with one, and a bound method with
    none.
    """
    count = count_required(function, 2)
    if count is None:
        owner = getattr(function, "__self__", None)
        count = 1 if owner is None or isinstance(owner, ModuleType) else 0
    return max(count, least)


def _watched(name: str) -> ModuleType:
    """Return a module that `Scenario.watch` names.

    Raises:
        NotAScenario: there is no module of that name.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module itself imports what is missing
    raise NotAScenario(
        found=f"{name!r} in watch=: there is no module of this name",
        wanted="the name of a module that can be imported, or an object",
    )


def _resource_of(handle: Any) -> Any:
    """Return the resource of an undo handle; for a generator's, the generator."""
    resource = handle.resource if isinstance(handle, UndoHandle) else handle
    # Not by isinstance: an abstract class caches its answers.
    managers = (_GeneratorContextManager, _AsyncGeneratorContextManager)
    if any(each is one for each in type(resource).__mro__ for one in managers):
        return resource.gen
    return resource


def _spaces(
    packages: Iterable[str], functions: Iterable[object]
) -> Iterator[dict[str, Any]]:
    """Yield the namespaces of the followed modules, those of functions first."""
    for function in functions:
        if type(function) is FunctionType:
            yield function.__globals__
    followed = frozenset(packages)
    modules = {name: each for name, each in sys.modules.items() if type(name) is str}
    for name in sorted(modules):
        if type(modules[name]) is ModuleType and package_of(name) in followed:
            yield vars(modules[name])
