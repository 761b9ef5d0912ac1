"""The dispatcher as a system.

True only here: what is observed of a dispatcher, and when laws are checked.

At every step: the dumped state and the live table of each operator, what listeners
know, and real calls with tensors of several backends (`Scenario.probes`), of which the
kernels that ran are noted.  After every action: the laws of the state and of the step.
Only texts and laws of a value are remembered, by that value; every edge goes through
`Library` and `Registration`.

`view="upstream"` observes what upstream's own harness observes: `dump_state` and
`dump_table`, whole, of one operator.
"""

from collections.abc import Hashable, Sequence
from typing import Any, Literal

from harness.scenario.recorder import Recorder
from harness.scenario.registrations import Known
from harness.scenario.scenario import Scenario
from harness.scenario.step import Closable, Perform
from harness.scenario.uses import PROBES, answers
from harness.systems.condensed import condensed
from invariants import check, check_step
from invariants.step import Change
from runtime.dispatch.dispatcher import Dispatcher
from runtime.dispatch.dump import dump_state, dump_table, table_reading
from runtime.dispatch.fingerprint import fingerprint
from runtime.dispatch.handle import OperatorHandle
from runtime.dispatch.reading import namespace_of
from runtime.dispatch.state import DispatcherState
from runtime.errors.base import EveryorderError
from runtime.schema.parser import parse_name

Observation = tuple[tuple[str, str], ...]


class RecordingDispatcher(Dispatcher):
    """A dispatcher whose recorded kernels note that they ran."""

    __slots__ = ("recorder",)

    def __init__(self) -> None:
        super().__init__(warns_of_overrides=False)
        self.recorder = Recorder()


class DispatcherSystem:
    """A scenario of registrations, as the engine sees it."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        view: Literal["everything", "upstream"] = "everything",
        laws: bool = True,
    ) -> None:
        self.scenario = scenario
        self.steps = len(scenario.steps)
        self.uses = len(scenario.uses)
        self._names = [parse_name(name) for name in scenario.operators]
        probes = tuple(PROBES) if scenario.probes is None else scenario.probes
        self._probes = probes
        self._handles: list[OperatorHandle] = []
        self._places = [(namespace_of(name), str(name)) for name in self._names]
        self._titles = _titles(scenario)
        self._upstream = view == "upstream"
        self._checks = laws
        self._performs: list[Perform] = []
        self._given: list[Perform] = []
        self._held: list[Closable] = []
        self.dispatcher = RecordingDispatcher()
        self._before: DispatcherState = self.dispatcher.state
        self._lawful: DispatcherState | None = None
        self._change: Change | None = None

    def reset(self) -> None:
        """A fresh dispatcher; what the scenario gives is registered in it."""
        self.dispatcher = dispatcher = RecordingDispatcher()
        self._handles = [OperatorHandle(dispatcher, name) for name in self._names]
        # A step's library ends with the step, so what is given keeps its own.
        self._given = [
            given.prepare(dispatcher, f"given {number}")
            for number, given in enumerate(self.scenario.given, 1)
        ]
        self._held = [perform() for perform in self._given]
        self._performs = [
            step.prepare(dispatcher, f"step {number}")
            for number, step in enumerate(self.scenario.steps, 1)
        ]
        self._note(None)

    def do(self, step: int) -> Closable:
        """Register, through the step's own library."""
        self._before, self._change = self.dispatcher.state, "fail"
        handle = self._performs[step]()
        self._change = "add"
        return handle

    def undo(self, step: int, handle: Any) -> None:
        """Close the registration."""
        self._before, self._change = self.dispatcher.state, "remove"
        handle.close()

    def use(self, use: int) -> Hashable:
        """A call or a look-up."""
        self._note("use")
        try:
            return self.scenario.uses[use].perform(self.dispatcher)
        except Exception as error:
            return self.failure(error)

    def observe(self) -> Observation:
        """Titled texts; see the module."""
        state = self.dispatcher.state
        if self._upstream:
            entry = state.find(*self._places[0])
            if entry is None:
                return (("state", ""), ("table", ""))
            return (("state", dump_state(entry)), ("table", dump_table(entry)))
        texts = []
        for place in self._places:
            entry = state.find(*place)
            texts.append("" if entry is None else dump_state(entry))
            texts.append("" if entry is None else condensed(table_reading(entry)))
        shown = list(zip(self._titles, texts, strict=False))
        if self._probes and self._handles:
            shown.append(("calls", self._call_all()))
        if state.subscriptions or state.claims:
            shown.append(("holders", _holders(state)))
        return tuple(shown)

    def _call_all(self) -> str:
        dispatcher = self.dispatcher
        several = len(self._handles) > 1
        lines = []
        for handle in self._handles:
            shown = f"{handle.name} " if several else ""
            lines += [
                f"{shown}{kind}: {found}\n"
                for kind, found in answers(dispatcher, handle, self._probes)
            ]
        return "".join(lines)

    def laws(self) -> Sequence[Hashable]:
        """The laws that the last action broke."""
        if not self._checks:
            return ()
        state = self.dispatcher.state
        broken: list[Hashable] = [*check(state, self._lawful)]
        if not broken:
            self._lawful = state
        if self._change is not None:
            broken += check_step(self._before, state, self._change)
        return broken

    def failure(self, error: Exception) -> Hashable:
        """The fields of an error as text, its class first; long tables left out."""
        named = (("error", type(error).__name__),)
        if isinstance(error, EveryorderError):
            fields = error.fields().items()
            return named + tuple(
                (field, str(value)) for field, value in fields if field != "table"
            )
        return (*named, ("text", str(error)))

    def fingerprint(self) -> Hashable:
        """The whole state, listeners' knowledge included."""
        state = self.dispatcher.state
        if not state.subscriptions:
            return fingerprint(state)
        return (fingerprint(state), _holders(state))

    def _note(self, change: Change | None) -> None:
        self._before = self.dispatcher.state
        self._change = change


def _titles(scenario: Scenario) -> list[str]:
    if len(scenario.operators) == 1:
        return ["state", "table"]
    return [
        f"{what} of {name}"
        for name in scenario.operators
        for what in ("state", "table")
    ]


def _holders(state: DispatcherState) -> str:
    """Who holds a namespace, and who listens and knows what, in order."""
    lines = [f"namespace {claim.namespace}: {claim.debug}" for claim in state.claims]
    for held in state.subscriptions:
        listener = held.listener
        known = listener.shown() if isinstance(listener, Known) else "unknown"
        lines.append(f"listener {held.debug} knows {known}")
    return "\n".join(lines) + "\n"
