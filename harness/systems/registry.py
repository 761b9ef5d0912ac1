"""A user's registry as a system.

The registry need not know this package.  The scenario defines how a fresh registry is
created, and which observations must depend on the active steps only; its steps return
their undo.  All checks of the engine follow from that.

Rules:
- `harness.systems.state_reader` decides which objects are state, and reports what
  cannot be read;
- exceptions are outcomes (`harness.systems.outcomes`), those of `observe` as well: a
  look that fails after one history alone is a fault of that history;
- all functions of the scenario run in the context and on the loop of their system.

Steps and uses of the dispatcher are refused unless `create` makes a dispatcher: on
other registries they fail at every set, which shows nothing.
"""

import sys
from collections.abc import Callable, Hashable, Iterator, Sequence, Set
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from inspect import isawaitable, iscoroutine
from typing import Any, Protocol

from everyorder.harness.base.errors import (
    ExplorationRestart,
    HarnessError,
    NotAScenario,
)
from everyorder.harness.engine.independence import Follower
from everyorder.harness.engine.protocol import (
    Caveat,
    ErrorOrigin,
    StateForm,
    System,
    SystemBase,
)
from everyorder.harness.scenario.execution import (
    Closable,
    ScenarioLoop,
    as_current_loop,
)
from everyorder.harness.scenario.mistakes import check_created, name_of
from everyorder.harness.scenario.scenario import Scenario
from everyorder.harness.scenario.step import Perform, Step, UseStep
from everyorder.harness.state import Portrait, differences
from everyorder.harness.systems.accesses import AccessFollower
from everyorder.harness.systems.origins import ErrorOrigins
from everyorder.harness.systems.outcomes import (
    Fields,
    call_without_skips,
    check_answer,
    check_laws,
    check_observation,
    error_fields,
    is_failed_check,
    is_one_of,
    name_and_text,
)
from everyorder.harness.systems.state_reader import (
    LearnedState,
    PortraitScope,
    StateReader,
    argument_count,
)


class ScenarioSystem(SystemBase):
    """Base class of the systems of scenarios."""

    settled = False

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.steps = len(scenario.steps)
        self.uses = len(scenario.uses)
        self.relations = scenario.relations
        self.limits: dict[Caveat, None] = {}
        # Each function that the scenario may call.
        self.origins = ErrorOrigins(functions_of(scenario))

    def retract(self, operations: Set[int]) -> None:
        """Withdraw the declarations of these operations: they raised another error."""
        declared = self.relations.declared - operations
        self.relations = replace(self.relations, declared=declared)

    def failure(self, error: Exception) -> Fields:
        """Return the type of an error, its text, and the data that it carries."""
        fields = error_fields(error, self.note_limit)
        self.origins.note(fields, error)
        return fields

    def note_limit(self, caveat: Caveat) -> None:
        """Record a limit of a proof: something of an outcome is not compared."""
        self.limits[caveat] = None

    def origin(self, fields: Hashable) -> ErrorOrigin | None:
        """Return where the last error with these fields was raised."""
        return self.origins.get(fields)

    def paths(self, one: object, other: object) -> tuple[str, ...]:
        """Return where two portraits differ, in words of the scenario."""
        assert isinstance(one, Portrait), "it is compared with its like"
        assert isinstance(other, Portrait), "it is compared with its like"
        return differences(one, other)


def functions_of(scenario: Scenario) -> Iterator[Callable[..., Any] | None]:
    """Yield each function of a scenario."""
    yield from (scenario.create, scenario.observe, scenario.check, scenario.reset)
    for step in (*scenario.given, *scenario.steps):
        yield from step.functions
    for use in scenario.uses:
        yield use.perform


class ColdProcesses(Protocol):
    """The same scenario in processes where no operation was performed."""

    def prepare(self) -> None:
        """Fork the process from which they are forked, unless there is one."""
        ...

    def system(self, memory: LearnedState) -> System:
        """Return a system that has a new one of these processes at each reset."""
        ...

    def close(self) -> None:
        """End all of them."""
        ...


class RegistrySystem(ScenarioSystem):
    """A scenario with `create`, in the form that the engine explores.

    `cold` are processes for the comparison of first performances with later ones; a
    `follower` follows the accesses of the operations.
    """

    def __init__(
        self,
        scenario: Scenario,
        cold: ColdProcesses | None = None,
        follower: AccessFollower | None = None,
    ) -> None:
        assert scenario.create is not None, "the dispatcher has another system"
        super().__init__(scenario)
        self._cold = cold
        self._follower = follower
        self._followed: list[RegistrySystem] = []
        self._create = scenario.create
        self._performs: list[Perform] = []
        self._setup: list[Perform] = []
        self._setup_handles: list[Closable] = []
        self._target: Any = None
        self._loop = ScenarioLoop()
        self._started = False
        self._complete = StateReader(scenario)
        self._active = 0
        # Laws that a look broke.
        self._broken: list[str] = []
        # The text of an operation that only a dispatcher supports, if there is one.
        operations: tuple[Step | UseStep, ...] = (
            *scenario.given,
            *scenario.steps,
            *scenario.uses,
        )
        texts = (each.text for each in operations if each.owner == "dispatcher")
        self._foreign = next(texts, None)

    def reset(self) -> None:
        """Create a fresh registry, and repeat the setup on it.

        Raises:
            ExplorationRestart: an operation on the last registry requires it.
        """
        self.check_garbage()
        self._end()
        # Finalizers of the last system run in its own context.
        with _unraisable_errors_ignored():
            self._loop.call(self._complete.collector.begin)
        self._clean()
        self._loop = ScenarioLoop(self._complete.pause_audit)
        self._active = 0
        self._started = True
        recording = self._complete.audit.recording
        with recording():
            self._target = check_created(self._call(self._create))
        if self._follower is not None:
            self._target = self._follower.adopt(self._target)
        if self._foreign is not None and not _is_dispatcher(self._target):
            raise NotAScenario(
                found=f"{self._foreign} with create={name_of(self._create)}, which "
                f"makes {type(self._target).__name__}",
                wanted="steps and uses of that registry, as step() and use() make "
                "them, or no create",
            )
        with recording(), as_current_loop(self._loop):
            self._setup = [
                setup.prepare(self._target, f"given {number}")
                for number, setup in enumerate(self.scenario.given, 1)
            ]
            self._setup_handles = [perform() for perform in self._setup]
            self._performs = [
                step.prepare(self._target, f"step {number}")
                for number, step in enumerate(self.scenario.steps, 1)
            ]
        self._complete.begin(self._target, self._loop, self._performs, self._setup)

    def close(self) -> None:
        """End the setup, the loop, and the registry's leftovers in the process."""
        self._end()
        self._complete.forget()
        if self._cold is not None:
            self._cold.close()
        while self._followed:
            self._followed.pop().close()

    def rehearse(self, *, begins: bool) -> Sequence[str]:
        """Begin the warm-up, or end it and return what it changed outside."""
        if begins and self._cold is not None:
            self._cold.prepare()
        return self._complete.rehearse(begins=begins)

    def set_aside(self, one: object, other: object) -> bool:
        """Leave values out of the state that differ in these, and are new each time."""
        if not isinstance(one, Portrait) or not isinstance(other, Portrait):
            return False
        return self._complete.set_aside(one, other)

    def cold(self) -> System | None:
        """Return the system in processes without any performance, or None."""
        return None if self._cold is None else self._cold.system(self.memory())

    def followed(self, *, recording: bool) -> tuple[System, Follower] | None:
        """Return the same system again, with a follower of its accesses."""
        if self.scenario.fingerprint is not None:
            return None
        follower = AccessFollower(self.steps, self.uses, recording=recording)
        system = RegistrySystem(self.scenario, follower=follower)
        system.remember(self.memory())
        system._complete.share(self._complete)
        self._followed.append(system)
        return system, follower

    def _end(self) -> None:
        self._broken.clear()
        recording = self._complete.audit.recording
        while self._setup_handles:
            # The steps after it may still be active, and make it fail.
            with suppress(Exception), recording():
                self._end_handle(self._setup_handles.pop())
        self._complete.end()
        if self._follower is not None:
            self._follower.release()
        self._loop.close()
        last_loop = self._loop
        leftovers = [self._target, *self._performs, *self._setup]
        target, self._target = self._target, None
        self._performs.clear()
        self._setup.clear()
        reset = self.scenario.reset
        if reset is not None and self._started:
            self._started = False
            self._loop = ScenarioLoop()
            with recording():
                self._call(reset, *(target,)[: argument_count(reset, 0)])
            self._loop.close()
        del target
        with _unraisable_errors_ignored(), recording():
            last_loop.call(leftovers.clear)

    def failure(self, error: Exception) -> Fields:
        """Return the type of an error, its text, and the data that it carries."""
        with self._complete.audit.recording():
            return super().failure(error)

    def do(self, step: int) -> Closable:
        """Perform a step."""
        perform = self._performs[step]
        try:
            handle: Closable = self._perform(("do", step), perform)
            self._complete.follow(handle)
            self._check_after("do", step)
            self._active += 1
            return handle
        except HarnessError:
            raise
        except Exception as error:
            self._check_after("do", step)
            self._expect(step, self.scenario.steps[step].raises, error)
            raise

    def undo(self, step: int, handle: Any) -> None:
        """Undo a step."""
        try:
            self._perform(("undo", step), self._end_handle, handle)
        except Exception:
            self._check_after("undo", step)
            raise
        self._check_after("undo", step)
        self._active -= 1

    def drop(self, handles: list[object]) -> None:
        """Replace every undo handle by None, in the context of the system.

        An abandoned generator runs its `finally`, which may set a context variable or
        fail: nothing of that is an operation.
        """
        with _unraisable_errors_ignored(), self._complete.audit.recording():
            self._loop.call(super().drop, handles)

    def release(self, handles: list[object], active: int) -> None:
        """Replace the handles of ended steps by None.

        An abandoned generator runs its `finally` here, which is a part of the operation
        that ended its step.
        """
        self._active = active
        with _unraisable_errors_ignored():
            self._perform(("release", 0), self._loop.call, super().drop, handles)
        self._check_after("release", 0)

    def use(self, use: int) -> Hashable:
        """Perform a use; an exception is an answer, unless the use ends steps."""
        use_step, complete = self.scenario.uses[use], self._complete
        try:
            asking = ("use", use), self._call, use_step.perform
            answer = self._perform(*asking, self._target)
            result: Hashable = check_answer(
                use_step, answer, self._target, complete.names, self.note_limit
            )
        except HarnessError:
            raise
        except Exception as error:
            if self.steps + use in self.relations.ends:
                self._check_after("use", use)
                raise
            self._expect(self.steps + use, use_step.raises, error)
            result = self.failure(error)
        # An exception that ends the process is not an answer, and ends the checks.
        self._check_after("use", use)
        return result

    def observe(self) -> Hashable:
        """Return the observation as one titled text; () if the scenario has none."""
        observe = self.scenario.observe
        if observe is None:
            return ()
        try:
            observation = self._perform(
                ("observe", 0), self._call, observe, self._target
            )
            text = check_observation(observation, unordered=self.scenario.unordered)
        except HarnessError:
            raise
        except Exception as error:
            if is_failed_check(error):
                self._broken.append(f"observe: {name_and_text(error)[1]}")
                self.origins.note(self._broken[-1], error)
            observed = self.failure(error)
        else:
            observed = (("state", text),)
        self._check_after("observe", 0)
        return observed

    def laws(self) -> Sequence[Hashable]:
        """Return the report of the scenario's check, and the laws that a look broke."""
        broken, self._broken = self._broken, []
        check = self.scenario.check
        if check is None:
            return broken
        try:
            call = ("check", 0), self._call, check
            reported = check_laws(self._perform(*call, self._target))
        except HarnessError:
            raise
        except Exception as error:
            name, text = name_and_text(error)
            reported = (text if is_failed_check(error) and text else f"{name}: {text}",)
            self.origins.note(reported[0], error)
        self._check_after("check", 0)
        return (*broken, *reported)

    def _perform(
        self, operation: tuple[str, int], function: Callable[..., Any], *args: Any
    ) -> Any:
        """Call a function that performs an operation.

        Its calls are audited for each number of active steps: without active steps most
        code of a registry is not reached.

        Raises:
            ScenarioSkipped: at the first performance.  Later it is an outcome, as
                the history must not decide about skipping.
        """
        complete = self._complete
        complete.collector.note(operation)
        watched = (*operation, min(self._active, self.steps))
        follower = self._follower
        try:
            with follower.operation(*operation) if follower else nullcontext():
                return call_without_skips(
                    lambda: not complete.is_repeated(operation),
                    *(complete.audit.call, watched, function, *args),
                )
        finally:
            complete.note_loop()

    def _check_after(self, kind: str, number: int) -> None:
        """Check the untracked state after first performances of an operation."""
        self._complete.check_after((kind, number), min(self._active, self.steps))

    def _clean(self) -> None:
        """Collect older garbage, whose finalizers do not belong to this system."""
        if self._complete.collector.must_clean:
            with self._complete.pause_audit():
                self._complete.collector.clean()

    def collect(self) -> None:
        """Collect garbage in the context of the system, which owns the finalizers."""
        self._complete.collector.matters = True
        self._clean()
        collect = self._complete.collector.collect
        self._perform(("collect", 0), self._loop.call, collect)

    def check_garbage(self) -> None:
        """Check whether operations made garbage that no collection has found.

        Raises:
            ExplorationRestart: an operation did.
        """
        if self._loop.call(self._complete.collector.check):
            raise ExplorationRestart(code="OlderGarbage")

    def state(self, handles: Sequence[object]) -> StateForm | None:
        """Return the complete state: by the scenario's fingerprint, or by objects."""
        tells = self.scenario.fingerprint
        if tells is None:
            form = self._complete.form(handles)
            if self._follower is not None:
                self._follower.note_state(self._complete, handles)
            return form
        arguments: tuple[Any, ...] = (self._target,)
        if argument_count(tells) == 2:
            arguments += (self._complete.undo_handles(handles),)
        fingerprint = self._call(tells, *arguments)
        return (
            None
            if fingerprint is None
            else self._complete.fingerprint_form(fingerprint)
        )

    def portrait(self, handles: Sequence[object]) -> object | None:
        """Return the state in a form that `paths` can compare."""
        return self._complete.portrait(handles)

    def scope(self) -> object | None:
        """Return what a portrait covers now; None with a fingerprint, which decides."""
        return None if self.scenario.fingerprint else self._complete.scope()

    def portrait_within(self, handles: Sequence[object], scope: object) -> object:
        """Return the state within a scope of before."""
        assert isinstance(scope, PortraitScope), "it is one of this system"
        return self._complete.portrait_within(handles, scope)

    def note_limit(self, caveat: Caveat) -> None:
        """Record a limit of a proof, until the end of the exploration."""
        self._complete.note(caveat)

    def caveats(self) -> Sequence[Caveat]:
        """Return the limits of a proof by the states seen so far.

        Raises:
            ExplorationRestart: an operation requires it.
        """
        self.check_garbage()
        self._complete.check_executed()
        return self._complete.caveats()

    def audit_orders(self) -> None:
        """Audit operations at states that differ in the order of dicts."""
        self._complete.audit.orders = True

    def check_outside(self, handles: Sequence[object]) -> None:
        """Check the untracked state a last time, for `caveats`."""
        self._complete.check_outside(handles)

    def memory(self) -> LearnedState:
        """Return the learned state of this system."""
        declared = self.scenario.relations.declared
        return self._complete.memory(declared - self.relations.declared)

    def remember(self, memory: LearnedState) -> None:
        """Start from another system's learned state; call it before the first reset."""
        self._complete.remember(memory)
        self.retract(memory.undeclared)

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the scenario; return its result, awaited if necessary."""
        result = self._loop.call(function, *arguments)
        return self._loop.wait(result) if iscoroutine(result) else result

    def _end_handle(self, handle: Closable) -> None:
        result = self._loop.call(handle.close)
        if isawaitable(result):
            self._loop.wait(result)

    def _expect(
        self, operation: int, raises: tuple[type[BaseException], ...], error: Exception
    ) -> None:
        """Withdraw the declaration of an operation that raised another error."""
        if raises and not is_one_of(error, raises):
            self.retract({operation})


@contextmanager
def _unraisable_errors_ignored() -> Iterator[None]:
    """Context: errors that Python can only print, as those of finalizers, are not."""
    hook = sys.unraisablehook
    sys.unraisablehook = _ignore
    try:
        yield
    finally:
        sys.unraisablehook = hook


def _ignore(error: object) -> None:
    """Drop an error."""


def _is_dispatcher(target: Any) -> bool:
    """Return True if the target is a dispatcher, or a stand-in for one."""
    # Imported here: only steps of a dispatcher need it, and have loaded it.
    from everyorder.runtime.dispatch.dispatcher import Dispatcher

    return isinstance(target, Dispatcher) or hasattr(target, "keyring")
