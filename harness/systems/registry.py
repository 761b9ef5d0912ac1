"""Anybody's registry as a system.

True only here: what is asked of a registry that knows nothing of this package: how a
fresh one is made, what of it must depend on the active steps only, and steps that
return what undoes them.  Everything the engine checks follows from that.

Steps and uses of the dispatcher are refused unless `create` makes one: elsewhere they
fail at every set, of which nothing follows.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from harness.errors import NotAScenario
from harness.scenario.scenario import Scenario
from harness.scenario.step import Closable, Perform, Step, UseStep
from harness.systems.answer import checked_answer
from runtime.dispatch.dispatcher import Dispatcher


class RegistrySystem:
    """A scenario with `create` and `observe`, as the engine sees it."""

    def __init__(self, scenario: Scenario) -> None:
        assert scenario.create is not None, "the dispatcher has a system of its own"
        assert scenario.observe is not None, "a scenario with create has observe"
        self.scenario = scenario
        self.steps = len(scenario.steps)
        self.uses = len(scenario.uses)
        self._create = scenario.create
        self._observe = scenario.observe
        self._performs: list[Perform] = []
        self._given: list[Perform] = []
        self._held: list[Closable] = []
        self._target: object = None
        # What only a dispatcher can be asked for, if there is such a thing.
        letters: tuple[Step | UseStep, ...] = (
            *scenario.given,
            *scenario.steps,
            *scenario.uses,
        )
        texts = (each.text for each in letters if each.owner == "dispatcher")
        self._foreign = next(texts, None)

    def reset(self) -> None:
        """Make a fresh registry; what was given is made again in it."""
        while self._held:
            self._held.pop().close()
        self._target = self._create()
        if self._foreign is not None and not _dispatches(self._target):
            raise NotAScenario(
                found=f"{self._foreign} with create={_named(self._create)}, which "
                f"makes {type(self._target).__name__}",
                wanted="steps and uses of that registry, as step() and use() make "
                "them, or no create",
            )
        self._given = [
            given.prepare(self._target, f"given {number}")
            for number, given in enumerate(self.scenario.given, 1)
        ]
        self._held = [perform() for perform in self._given]
        self._performs = [
            step.prepare(self._target, f"step {number}")
            for number, step in enumerate(self.scenario.steps, 1)
        ]

    def do(self, step: int) -> Closable:
        """Perform a step."""
        return self._performs[step]()

    def undo(self, step: int, handle: Any) -> None:
        """Undo a step."""
        handle.close()

    def use(self, use: int) -> Hashable:
        """Perform a use; an exception is an answer."""
        asked = self.scenario.uses[use]
        try:
            answer = asked.perform(self._target)
        except Exception as error:
            return self.failure(error)
        return answer if type(answer) is str else checked_answer(asked, answer)

    def observe(self) -> Hashable:
        """What the scenario observes, as one titled text."""
        seen = self._observe(self._target)
        if not isinstance(seen, str):
            raise NotAScenario(
                found=f"{type(seen).__name__}, returned by observe", wanted="text"
            )
        return (("state", seen),)

    def laws(self) -> Sequence[Hashable]:
        """What the scenario's own check reports."""
        check = self.scenario.check
        told: Any = None if check is None else check(self._target)
        if not told:
            return ()
        if isinstance(told, str):
            return (told,)
        if not isinstance(told, Iterable):
            raise NotAScenario(
                found=f"{type(told).__name__}, returned by check",
                wanted="a list of texts, one for each broken law, or an empty one",
            )
        return tuple(told)

    def failure(self, error: Exception) -> Hashable:
        """The type of an error and its text."""
        return (("error", type(error).__name__), ("text", str(error)))

    def fingerprint(self) -> Hashable | None:
        """The complete state, if the scenario can tell it."""
        complete = self.scenario.fingerprint
        return None if complete is None else complete(self._target)


def _dispatches(target: Any) -> bool:
    """Whether it is a dispatcher, or stands for one."""
    return isinstance(target, Dispatcher) or hasattr(target, "keyring")


def _named(create: object) -> str:
    return getattr(create, "__name__", type(create).__name__)
