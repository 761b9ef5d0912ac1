"""The dispatcher as a system: its observations, and the times when laws are checked.

At every step these are observed: the dumped state, the live table and the rules of each
operator, the knowledge of listeners, effects outside of the state (modes, contexts,
classes with handlers), and real calls with tensors of several backends
(`Scenario.probes`), with the kernels and handlers that ran.  After every action these
laws are checked: those of the state and of the step, and those about the thread and
about memory (`Leftovers`), which also hold for every single call.  Only texts and laws
of a value are cached, by that value; every transition uses public calls.

The fingerprint covers the state and all effects outside of it; the reason why it is
complete is in `runtime.dispatch.state` and `harness.scenario.effects`.

A table is shown condensed: it names every slot whose content differs from the same slot
of an operator with no kernels under the built-in fallbacks, `missing` slots included;
neighbours with the same content are one line, `FIRST .. LAST (count)`.  The form loses
no information: the empty table is always the same.

`view="upstream"` observes the same as upstream's own harness: `dump_state` and
`dump_table`, whole, of one operator.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from types import FunctionType
from typing import Any, Literal
from weakref import ref

from everyorder.harness.engine.protocol import Caveat
from everyorder.harness.scenario.effects import (
    PROBES,
    Effects,
    Row,
    is_per_system,
    reading_text,
)
from everyorder.harness.scenario.recorder import LabelRecorder, Leftovers, Moment
from everyorder.harness.scenario.registrations import KnowingListener
from everyorder.harness.scenario.scenario import Scenario
from everyorder.harness.scenario.step import Closable, Perform
from everyorder.harness.scenario.uses import (
    answer_per_system,
    answers,
    answers_and_calls,
)
from everyorder.harness.state.global_names import GlobalNames
from everyorder.harness.systems.outcomes import (
    Fields,
    ScenarioSkipped,
    call_without_skips,
    check_answer,
    error_fields,
)
from everyorder.harness.systems.registry import ScenarioSystem, functions_of
from everyorder.invariants import Change, Run, check, check_run, check_step
from everyorder.invariants.run import Lockable
from everyorder.runtime.dispatch.dispatch_table import REMEMBERED, recipe_of
from everyorder.runtime.dispatch.dispatcher import BUILTIN, Dispatcher
from everyorder.runtime.dispatch.handle import OperatorHandle
from everyorder.runtime.dispatch.registration_record import (
    RegistrationRecord,
    namespace_of,
)
from everyorder.runtime.dispatch.state import (
    DispatcherState,
    OperatorEntry,
    OperatorMap,
    TableReading,
    contents,
    dump_state,
    dump_table,
    fingerprint,
    table_reading,
)
from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.keys import SLOTS
from everyorder.runtime.schema.parser import parse_name


@lru_cache(maxsize=REMEMBERED)
def condensed_table(reading: TableReading) -> str:
    """Return the lines of a table (`dispatch.state.table_reading`), condensed."""
    slots = contents(reading)
    empty = contents((recipe_of(()), (), BUILTIN.fallbacks.texts))
    lines: list[str] = []
    number = 0
    while number < len(SLOTS):
        last = number
        if slots[number] != empty[number]:
            while (
                last + 1 < len(SLOTS)
                and slots[last + 1] == slots[number]
                and empty[last + 1] != slots[number]
            ):
                last += 1
            span = SLOTS[number].name
            if last > number:
                span += f" .. {SLOTS[last].name} ({last - number + 1})"
            lines.append(f"{span}: {slots[number] or 'missing'}\n")
        number = last + 1
    return "".join(lines)


Observation = tuple[tuple[str, str], ...]


class RecordingDispatcher(Dispatcher):
    """A dispatcher that records runs of its kernels, and effects outside of it."""

    __slots__ = ("effects", "recorder")

    def __init__(self, recorder: LabelRecorder | None = None) -> None:
        super().__init__(warns_of_overrides=False)
        self.recorder = recorder or LabelRecorder()
        self.effects = Effects(self.recorder)

    @property
    def lock(self) -> Lockable:
        """Return the writers' lock, for the law that kernels run without it."""
        return self._lock


class DispatcherSystem(ScenarioSystem):
    """A scenario of registrations, in the form that the engine explores."""

    settled = True

    def __init__(
        self,
        scenario: Scenario,
        *,
        view: Literal["everything", "upstream"] = "everything",
        laws: bool = True,
    ) -> None:
        super().__init__(scenario)
        # Operations that ended once without skipping: a later skip is an outcome.
        self._performed: set[tuple[str, int]] = set()
        self._names = [parse_name(name) for name in scenario.operators]
        probes = tuple(PROBES) if scenario.probes is None else scenario.probes
        self._probes = tuple(kind for kind in probes if not is_per_system(kind))
        self._system_probes = tuple(kind for kind in probes if is_per_system(kind))
        self._handles: list[OperatorHandle] = []
        self._places = [(namespace_of(name), str(name)) for name in self._names]
        self._titles = _titles(scenario)
        self._upstream = view == "upstream"
        self._checks = laws
        self._global_names = GlobalNames()
        self._global_names.read(
            each.__globals__
            for each in functions_of(scenario)
            if type(each) is FunctionType
        )
        self._performs: list[Perform] = []
        self._setup: list[Perform] = []
        self._setup_handles: list[Closable] = []
        self._recorder = LabelRecorder(watching=laws)
        self._leftovers = Leftovers(self._recorder)
        # The state of the thread while no step is active.
        self._thread: Moment | None = None
        # The steps with effects outside of the state; such effects of the setup are
        # repeated for each fresh dispatcher.
        steps = enumerate(scenario.steps)
        self._effect_steps = frozenset(
            number for number, step in steps if step.has_effects
        )
        self._repeats_setup = any(step.has_effects for step in scenario.given)
        self._affects = self._repeats_setup or bool(self._effect_steps)
        self._base: DispatcherState | None = None
        self.dispatcher = RecordingDispatcher(self._recorder)
        self._lock = self.dispatcher.lock
        self._before: DispatcherState = self.dispatcher.state
        self._lawful: DispatcherState | None = None
        self._change: Change | None = None
        # The step that was done or undone last, if that was the last action.
        self._stepped: int | None = None
        # The live registrations of each active step, and those of the last change.
        self._open: dict[int, tuple[RegistrationRecord, ...]] = {}
        self._tokens: tuple[RegistrationRecord, ...] | None = None
        # Broken laws of calls, reported after the look that found them.
        self._start = self._before
        self._broken: list[Hashable] = []
        self._again: list[Hashable] = []
        # The fingerprint of a state, which is read before and after a look.
        self._printed: tuple[DispatcherState | None, Hashable] = (None, None)
        self._looked = False
        self._read: set[Hashable] = set()

    def reset(self) -> None:
        """Create a fresh dispatcher with the scenario's setup; end other effects."""
        self.close()
        if self._thread is None or not self._thread.is_of_this_thread():
            self._thread = Moment()
        if self._checks:
            self._leftovers.end_system(("the dispatcher", ref(self.dispatcher)))
        self.dispatcher = dispatcher = RecordingDispatcher(self._recorder)
        self._lock = dispatcher.lock
        self._recorder.is_locked = self._lock.locked
        if self._repeats_setup:
            self._apply_setup(dispatcher)
        else:
            if self._base is None or self._base.subscriptions:
                self._base = self._apply_setup(RecordingDispatcher(self._recorder))
            dispatcher.state = self._cold(self._base)
        self._handles = [OperatorHandle(dispatcher, name) for name in self._names]
        self._performs = [
            step.prepare(dispatcher, f"step {number}")
            for number, step in enumerate(self.scenario.steps, 1)
        ]
        self._note(None)
        self._start = dispatcher.state
        self._open.clear()
        self._leftovers.begin_system(given=self._repeats_setup)

    def close(self) -> None:
        """End the effects outside of the state, as a reset does."""
        self.dispatcher.effects.end_all()
        if self._thread is not None and self._thread.is_of_this_thread():
            self._thread.restore()

    def _apply_setup(self, giver: RecordingDispatcher) -> DispatcherState:
        """Return the state that every fresh dispatcher starts from.

        It is a value, so it is computed once, but see `_cold`; a listener of the setup
        receives events, so it is created for each dispatcher.
        """
        # A library ends with its last reference, so the setup must be kept alive.
        self._setup = [
            setup.prepare(giver, f"given {number}")
            for number, setup in enumerate(self.scenario.given, 1)
        ]
        self._setup_handles = [perform() for perform in self._setup]
        return giver.state

    def _cold(self, base: DispatcherState) -> DispatcherState:
        """Return the setup's state, without what earlier runs cached for calls."""
        if not self._setup:
            return base
        namespaces = {**base.namespaces}
        for namespace, text in self._places:
            entry = base.find(namespace, text)
            if entry is not None:
                operators = OperatorMap(namespaces[namespace])
                operators[text] = entry._replace(memo={})
                namespaces[namespace] = operators
        return base._replace(namespaces=namespaces)

    def do(self, step: int) -> Closable:
        """Register by the step's own library."""
        self._before, self._change = self.dispatcher.state, "fail"
        self._tokens, self._stepped = None, step
        try:
            handle: Closable = self._call(("do", step), self._performs[step])
        except BaseException:
            self._leftovers.note_refusal()
            raise
        self._change = "add"
        if self._checks:
            if self._recorder.objects:
                self._leftovers.note_done(step)
            tokens = getattr(handle, "tokens", None)
            if tokens is not None:
                self._open[step] = self._tokens = tokens
        return handle

    def undo(self, step: int, handle: Any) -> None:
        """Close the registration; under laws twice, which must be the same as once."""
        self._before, self._change = self.dispatcher.state, "remove"
        self._stepped = step
        self._tokens = self._open.pop(step, None)
        handle.close()
        if self._checks:
            after = self.dispatcher.state
            handle.close()
            if self.dispatcher.state is not after:
                now = self.dispatcher.state
                self._again += check_step(after, now, "again", ())
            self._leftovers.note_undone(step)

    def use(self, use: int) -> Hashable:
        """Perform a use, a call or a look-up, and return its answer."""
        self._note("use")
        use_step = self.scenario.uses[use]
        try:
            answer = self._call(("use", use), use_step.perform, self.dispatcher)
        except ScenarioSkipped:
            raise
        except Exception as error:
            return self.failure(error)
        if type(answer) is str:
            return answer
        names, note = self._global_names, self.note_limit
        return check_answer(use_step, answer, None, names, note)

    def caveats(self) -> Sequence[Caveat]:
        """Return what of the outcomes is not compared."""
        return tuple(self.limits)

    def _call(
        self, operation: tuple[str, int], function: Callable[..., Any], *args: Any
    ) -> Any:
        """Call a function that performs an operation; its exceptions are outcomes.

        Raises:
            ScenarioSkipped: it skipped the scenario at its first performance.
        """
        performed = self._performed
        result = call_without_skips(lambda: operation not in performed, function, *args)
        performed.add(operation)
        return result

    def observe(self) -> Observation:
        """Return the observation as titled texts; see the module."""
        state = self.dispatcher.state
        self._looked = True
        if self._upstream:
            entry = state.find(*self._places[0])
            if entry is None:
                return (("state", ""), ("table", ""))
            return (("state", dump_state(entry)), ("table", dump_table(entry)))
        texts, rules = [], ""
        for place in self._places:
            entry = state.find(*place)
            texts.append("" if entry is None else dump_state(entry))
            # As dumps do, which do not show an operator with rules alone.
            dumped = None if entry is None or not entry.total else entry
            texts.append(
                "" if dumped is None else condensed_table(table_reading(dumped.table))
            )
            if entry is not None and entry.rules:
                rules += _rules(entry)
        effects = reading_text(self._outside_effects()) if self._affects else ""
        titled = list(zip(self._titles, texts, strict=False))
        if rules:
            titled.append(("rules", rules))
        if (self._probes or self._system_probes) and self._handles:
            titled.append(("calls", self._call_all(state, (*texts, rules, effects))))
        if self.scenario.observe is not None:
            titled.append(("observed", self.scenario.observe(self.dispatcher)))
        if state.subscriptions or state.claims:
            titled.append(("holders", _holders(state)))
        if effects:
            titled.append(("beside", effects))
        return tuple(titled)

    def _call_all(self, state: DispatcherState, texts: tuple[str, ...]) -> str:
        """Return the answers of all operators to all kinds of tensors.

        The laws of a run are checked around the calls at the first look at a state;
        later looks must have the same answers, which the engine checks.
        """
        dispatcher = self.dispatcher
        several = len(self._handles) > 1
        lines = []
        judged = not self._checks or self._is_judged(texts)
        for handle in self._handles:
            prefix = f"{handle.name} " if several else ""
            if judged:
                # The state of the thread is known, and reading it again is expensive.
                results = answers(
                    dispatcher, handle, self._probes, self._recorder.moment
                )
            else:
                results, calls = answers_and_calls(dispatcher, handle, self._probes)
                tokens = tuple(t for records in self._open.values() for t in records)
                broken = check_run(Run(self._start, state, tokens, calls))
                if broken:
                    # Report them at every look, also when a history is replayed.
                    self._read.discard(texts)
                    self._broken += broken
            for kind in self._system_probes:
                results.append((kind, answer_per_system(dispatcher, handle, kind)))
            lines += [f"{prefix}{kind}: {answer}\n" for kind, answer in results]
        return "".join(lines)

    def _is_judged(self, texts: tuple[str, ...]) -> bool:
        """Return True if calls were checked at a state with the same texts."""
        if texts in self._read:
            return True
        if len(self._read) >= REMEMBERED:
            self._read.clear()
        self._read.add(texts)
        return False

    def laws(self) -> Sequence[Hashable]:
        """Return the laws that the last action, or the last look, broke."""
        if not self._checks:
            return ()
        left, recorder = self._leftovers, self._recorder
        if self._looked:
            violations, self._broken, self._looked = self._broken, [], False
            # Calls were checked one by one; `observe` may have any effect.
            if self.scenario.observe is None and not recorder.disturbed:
                return violations
            return violations + left.thread_violations(
                "look", self._lock, modes_may_change=False
            )
        state = self.dispatcher.state
        broken: list[Hashable] = [*check(state, self._lawful)]
        if not broken:
            self._lawful = state
        if self._change is not None:
            broken += check_step(self._before, state, self._change, self._tokens)
        if self._again:
            broken, self._again = [*broken, *self._again], []
        # Keep no moment in a local variable: it holds the modes of its time.
        if recorder.moment.live != recorder.moment.copies or recorder.disturbed:
            broken += left.thread_violations(
                self._change or "reset",
                self._lock,
                modes_may_change=self._stepped in self._effect_steps,
            )
        if left.garbage and not broken:
            self._forget()
            broken += left.memory_violations()
        return broken

    def remaining_leaks(self) -> Sequence[Hashable]:
        """Return broken laws about memory of undone steps that were not checked yet.

        To be called when the exploration is over; see `recorder.Leftovers`.
        """
        self._forget()
        return self._leftovers.final_violations()

    def collect_always(self) -> None:
        """Let `laws` report every leak from now on; see `recorder.Leftovers`."""
        self._leftovers.hurry()

    def _forget(self) -> None:
        """Drop the cached states and records: they keep kernels alive."""
        self._before, self._tokens = self.dispatcher.state, None
        self._printed = (None, None)

    def failure(self, error: Exception) -> Fields:
        """Return the fields of an error as text, class first, without long tables."""
        fields = self._error_fields(error)
        self.origins.note(fields, error)
        return fields

    def _error_fields(self, error: Exception) -> Fields:
        if not isinstance(error, EveryorderError):
            return error_fields(error, self.note_limit)
        named = (("error", error.code),)
        fields = error.fields().items()
        return named + tuple(
            (field, str(value)) for field, value in fields if field != "table"
        )

    def state(self, handles: Sequence[object] = ()) -> Hashable:
        """Return the whole state, with listeners' knowledge and outside effects."""
        state = self.dispatcher.state
        effects = self._outside_effects() if self._affects else ()
        if state.subscriptions or effects:
            return (fingerprint(state), _holders(state), effects)
        if self._printed[0] is not state:
            self._printed = (state, fingerprint(state))
        return self._printed[1]

    def _outside_effects(self) -> tuple[Row, ...]:
        """Return effects of steps outside of the state; the thread has its own law."""
        return self.dispatcher.effects.reading(self.dispatcher)

    def _note(self, change: Change | None) -> None:
        self._before = self.dispatcher.state
        self._change = change
        self._tokens = self._stepped = None


def _titles(scenario: Scenario) -> list[str]:
    if len(scenario.operators) == 1:
        return ["state", "table"]
    return [
        f"{what} of {name}"
        for name in scenario.operators
        for what in ("state", "table")
    ]


def _rules(entry: OperatorEntry) -> str:
    """Return the rules of an operator, which dumps do not show, with their classes."""
    return "".join(
        f"{entry.name}, {rule.cls.__name__}: {rule.debug}\n" for rule in entry.rules
    )


def _holders(state: DispatcherState) -> str:
    """Return the holders of namespaces and the knowledge of listeners, in order."""
    lines = [f"namespace {claim.namespace}: {claim.debug}" for claim in state.claims]
    for subscription in state.subscriptions:
        listener = subscription.listener
        knowledge = (
            listener.shown() if isinstance(listener, KnowingListener) else "unknown"
        )
        lines.append(f"listener {subscription.debug} knows {knowledge}")
    return "\n".join(lines) + "\n"
