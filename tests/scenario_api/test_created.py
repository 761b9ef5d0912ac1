"""Dispatchers that a scenario creates, and what stands for one."""

from typing import Any

import pytest

from everyorder.harness.base.errors import ExplorationRestart, NotAScenario
from everyorder.harness.exploration.explore_scenario import explore
from everyorder.harness.scenario import (
    Scenario,
    call,
    define,
    look_up,
    reserve,
    step,
    together,
)
from everyorder.harness.systems.registry import RegistrySystem
from everyorder.runtime.dispatch.dispatcher import Dispatcher
from everyorder.runtime.dispatch.state import fingerprint
from everyorder.runtime.schema.parser import parse_name
from tests.coded import code

SCHEMA = "a::b(Tensor x) -> Tensor"


def nothing_to_undo() -> None: ...


def test_a_dispatcher_may_be_created() -> None:
    def names(dispatcher: Dispatcher) -> str:
        return str(dispatcher.snapshot().entry(parse_name("a::b")) is not None)

    made = Scenario(
        define(SCHEMA),
        create=Dispatcher,
        observe=names,
        # The runtime remembers readings of values for the whole process.
        fingerprint=lambda dispatcher: fingerprint(dispatcher.snapshot()),
    )
    assert explore(made).exploration.states == {
        (): (("state", "False"),),
        (0,): (("state", "True"),),
    }


class Proxy:
    """Stands for a dispatcher."""

    def __init__(self) -> None:
        self.real = Dispatcher()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def test_what_stands_for_a_dispatcher_is_one() -> None:
    made = Scenario(
        define("a::b(Tensor x) -> Tensor"),
        create=Proxy,
        observe=lambda proxy: str(proxy.op_names()),
    )
    system = RegistrySystem(made)
    system.reset()
    # Its handles come from a package of which neither it nor its steps are.
    with pytest.raises(ExplorationRestart, check=code("ScopeGrown")) as caught:
        system.do(0)
    assert caught.value.packages == ("everyorder.runtime",)
    system.reset()
    handle = system.do(0)
    assert system.observe() == (("state", "('a::b',)"),)
    system.undo(0, handle)
    assert system.observe() == (("state", "()"),)


def test_steps_by_hand_where_a_use_names_the_dispatcher() -> None:
    noted = step("note", lambda dispatcher: nothing_to_undo, constant=True)
    for options in ({"uses": [look_up("a::b")]}, {"operators": ["a::b"]}):
        report = explore(Scenario(noted, **options), "walk:1")
        assert not report.exploration.violations


BEE = step("put bee", lambda to: to.add("bee"), undo=lambda to: to.remove("bee"))


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (Scenario(define(SCHEMA), create=set, observe=repr), f'define("{SCHEMA}")'),
        (
            Scenario(BEE, given=[reserve("a::b")], create=set, observe=repr),
            'reserve("a::b")',
        ),
        (
            Scenario(BEE, uses=[call("a::b")], create=set, observe=repr),
            'call("a::b", "cpu")',
        ),
        (
            Scenario(together(reserve("a::b")), create=set, observe=repr),
            'together(reserve("a::b"))',
        ),
    ],
)
def test_what_only_a_dispatcher_can_do(made: Scenario, text: str) -> None:
    with pytest.raises(NotAScenario) as caught:
        RegistrySystem(made).reset()
    assert str(caught.value) == (
        f"a scenario cannot use {text} with create=set, which makes set; expected "
        "steps and uses of that registry, as step() and use() make them, or no create."
    )


def test_assertions_say_what_is_missing() -> None:
    with pytest.raises(AssertionError, match="has another system"):
        RegistrySystem(Scenario(reserve("a::b")))
