"""The complete state of a registry, and what stands between it and a proof.

True only here: what belongs to the state.  The registry, what the scenario gave to undo
each active step, tasks of the event loop, the scenario's own functions with their
closures, and what `watch=` names are its roots; everything that they reach within the
scope is read by `harness.heap`.  Names of the roots are words of the scenario: paths
that differ begin with them.

Rules:
- undo handles come with each call and are not kept;
- followed are the packages of the registry, the steps, the uses and the undo handles,
  never those of the harness or of pytest;
- whatever was seen to be outside, opaque or assumed is kept as a caveat for good.
"""

import sys
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import (
    AbstractContextManager,
    _AsyncGeneratorContextManager,
    _GeneratorContextManager,
    nullcontext,
)
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import ModuleType
from typing import Any

from harness.engine.protocol import Caveat, StateForm
from harness.errors import ExplorationRestart
from harness.heap import Heap, Portrait, scope_of
from harness.heap.calls import caveats_of, merge_caveats
from harness.scenario.execution import Handle, Lasting, Loop, initialize_asyncio
from harness.scenario.mistakes import count_required, name_of
from harness.scenario.scenario import Scenario
from harness.scenario.step import Perform
from harness.systems.audit import Audit, Collector

# Packages of the harness and of pytest are no part of any registry; undo handles from
# the standard library say nothing about where the state of theirs is.
_NEVER_FOLLOWED = frozenset({"_pytest", "everyorder", "harness", "pytest"})
_NO_HOME = _NEVER_FOLLOWED | sys.stdlib_module_names


@dataclass(frozen=True, slots=True)
class Memory:
    """What a system learnt that the next one, in another process, need not learn.

    `performed` counts how often operations were watched; `packages` are followed;
    `surprised` are operations that raised what was not declared; `looks` says whether
    what lies outside of the state is looked at; `collected` and `thorough` are what the
    collector of garbage knows.
    """

    performed: Mapping[Hashable, int] = field(default_factory=dict)
    packages: frozenset[str] = frozenset()
    surprised: frozenset[int] = frozenset()
    caveats: tuple[Caveat, ...] = ()
    looks: bool = True
    collected: Mapping[Hashable, int] = field(default_factory=dict)
    thorough: bool = False


class Complete:
    """Reads the states of one scenario's registries."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._target: object = None
        self._loop = Loop()
        self._fixed: dict[str, object] = {}
        self._watched: dict[str, object] | None = None
        self._packages: frozenset[str] = frozenset()
        self._heap: Heap | None = None
        # Whether abstract classes were asked to forget what they answered before.
        self._cold = False
        # Types of undo handles whose packages are followed.
        self._followed: set[type] = set()
        self._seen: dict[Caveat, None] = {}
        self.collector = Collector()
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
        loop: Loop,
        performs: Sequence[Perform],
        given: Sequence[Perform],
    ) -> None:
        """Read a fresh registry from here on, whose steps were prepared."""
        self._target = target
        self._loop = loop
        scenario = self._scenario
        if self._watched is None:
            self._watched = {
                name: import_module(each) if isinstance(each, str) else each
                for name, each in scenario.watch
            }
        self._fixed = self._roots(performs, given) | self._watched
        self._fixed["class of the registry"] = type(target)
        if self._heap is None:
            found = scope_of([target, *self._fixed.values()], scenario.ignore)
            self._packages |= found.packages - _NEVER_FOLLOWED
            self._heap = Heap(replace(found, packages=self._packages))
            self._begin_cold()
        initialize_asyncio()
        loop.call(self.audit.begin, self._rooted(()))
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
            self._loop.call(self.heap.form, self._rooted(()))
            if self.heap.empty_caches():
                raise ExplorationRestart(code="CachesWarm")

    def forget(self) -> None:
        """Let go of what lies outside, which is large; what was seen of it is kept."""
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
        if not isinstance(handle, Handle):
            self._followed.add(type(handle))

    def form(self, handles: Sequence[object]) -> StateForm:
        """The state as a value, read from the objects."""
        passing = self._passing(handles)
        self._loop.call(self.audit.at_state, passing | self._fixed)
        form = self._loop.call(self.heap.form, passing, self._fixed)
        self.collector.state(weak=form.weak, whole=self.heap.whole)
        return form

    def form_of(self, told: object) -> StateForm:
        """The state as a value, as the scenario's fingerprint told it."""
        return self._loop.call(self.heap.form, {"fingerprint": told})

    def look(self, handles: Sequence[object]) -> None:
        """Look at what lies outside of the state, whenever it was done before."""
        if self._heap is None:  # more is followed after the next reset
            return
        self._loop.call(self.audit.look, self._rooted(handles))

    def look_after(self, operation: tuple[str, int], active: int) -> None:
        """Look at what lies outside, right after a first performance of an operation.

        That is its very first, and its first beside one active step: a use may take
        back what a step did outside, and beside others an operation does little more.
        """
        if self._heap is None or self.audit.performed.get((*operation, active)) != 1:
            return
        if active == 1 or not self.performed_before(operation):
            self._loop.call(self.audit.look, self._rooted(()))

    def portrait(self, handles: Sequence[object]) -> Portrait:
        """The state as it is, to be compared with others."""
        return self._loop.call(self.heap.portrait, self._rooted(handles))

    def undos(self, handles: Sequence[object]) -> dict[str, object]:
        """What the scenario gave to undo each active step, by the step's text."""
        return {
            step.text: _resource_of(handle)
            for step, handle in zip(self._scenario.steps, handles, strict=False)
            if handle is not None and not isinstance(handle, Lasting)
        }

    def performed_before(self, operation: tuple[str, int]) -> bool:
        """Whether an operation that is performed now was so before, on any registry."""
        performed = self.audit.performed.items()
        times = [
            n for of, n in performed if isinstance(of, tuple) and of[:2] == operation
        ]
        return sum(times) > 1

    def unwatched(self) -> AbstractContextManager[None]:
        """Context: the harness itself imports something, or collects garbage."""
        if self._heap is None:  # nothing is watched yet
            return nullcontext()
        return self.audit.unwatched(self._rooted(()))

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
            if places(scenario.fingerprint) == 1:
                text = "the undo handles hold no state of their own"
                told.append(Caveat("assumed", text))
        elif self._heap is not None:
            told += self._heap.caveats()
        # Whatever is told by a fingerprint: C code may call what the registry holds.
        called = self._heap.called if self._heap is not None else ()
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

    def memory(self, surprised: Iterable[int]) -> Memory:
        """What was learnt, with the operations that raised something undeclared."""
        return Memory(
            performed=dict(self.audit.performed),
            packages=self._packages,
            surprised=frozenset(surprised),
            caveats=self.caveats(),
            looks=self.audit.looks,
            collected=dict(self.collector.seen),
            thorough=self.collector.thorough,
        )

    def remember(self, memory: Memory) -> None:
        """Go on from what another one learnt."""
        self.audit.performed.update(memory.performed)
        self.audit.looks = memory.looks
        self.collector.learn(memory.collected, thorough=memory.thorough)
        self._packages |= memory.packages
        self._seen.update(dict.fromkeys(memory.caveats))

    def _roots(
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

    def _rooted(self, handles: Sequence[object]) -> dict[str, object]:
        """Everything that is state, by the names that paths begin with."""
        return self._passing(handles) | self._fixed

    def _passing(self, handles: Sequence[object]) -> dict[str, object]:
        """What is state and another one on each fresh system."""
        roots: dict[str, object] = {"registry": self._target}
        for text, held in self.undos(handles).items():
            roots[f"undo of {text}"] = held
        for number, coroutine in enumerate(self._loop.pending, 1):
            roots[f"pending task {number}"] = coroutine
        changed = self._loop.changed
        if changed is not None:
            roots["event loop"] = changed
        return roots


def _alive(reference: "weakref.ref[Complete]") -> Complete:
    complete = reference()
    assert complete is not None, "its audit is part of it"
    return complete


def places(function: Callable[..., Any], least: int = 1) -> int:
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
    resource = handle.resource if isinstance(handle, Handle) else handle
    # Not by isinstance: an abstract class remembers whom it was asked about.
    made = (_GeneratorContextManager, _AsyncGeneratorContextManager)
    if any(each is one for each in type(resource).__mro__ for one in made):
        return resource.gen
    return resource
