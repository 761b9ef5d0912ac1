"""What steps do beside a dispatcher's state, and how it is undone and told of."""

from typing import Any

import pytest

from everyorder.harness import explore
from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.scenario import (
    ProbeMode,
    ProbeSubclass,
    Scenario,
    Step,
    call,
    context,
    custom,
    define,
    handler,
    impl,
    in_main,
    install_fallbacks,
    mode,
    register_autograd,
    register_fake,
    register_kernel,
    rule,
    together,
    use,
)
from everyorder.harness.scenario.effects import probe_tensor, reading_text
from everyorder.harness.scenario.recorder import LabelRecorder
from everyorder.harness.systems.dispatcher import DispatcherSystem
from everyorder.invariants import Violation
from everyorder.runtime.errors import (
    Conflict,
    ContextError,
    LookupFailed,
    ModeStackError,
)
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.torch_dispatch import current_modes, leave
from tests.coded import code
from tests.scenarios.handlers import Fake, Outer, Proxy, declines, fails, ruled
from tests.scenarios.kernels import better_on_cpu, on_cpu

RANK = define("graph::rank(Tensor x) -> Tensor")
CPU = impl("graph::rank", on_cpu, "CPU")


@pytest.fixture
def systems() -> Any:
    """Makes systems that are closed at the end."""
    made: list[DispatcherSystem] = []

    def start(*steps: Step, **options: Any) -> DispatcherSystem:
        system = DispatcherSystem(Scenario(*steps, **options))
        made.append(system)
        system.reset()
        return system

    yield start
    for system in made:
        system.close()


def beside(system: DispatcherSystem) -> str:
    """What a system says stands beside its state."""
    return reading_text(system.dispatcher.effects.reading(system.dispatcher))


def test_texts() -> None:
    def adding(made: Any) -> None:
        """Nothing."""

    steps = [
        mode(Outer),
        handler("Tagged"),
        handler("Tagged", declines, context="plugin"),
        rule("graph::rank", ProbeSubclass, ruled),
        install_fallbacks(),
        in_main(CPU),
        context("plugin"),
        context("plugin", CPU),
        custom("a::b", on_cpu, schema="(Tensor x) -> Tensor", adding=adding),
        register_kernel("a::b", "cpu", on_cpu),
        register_fake("a::b", on_cpu),
        register_autograd("a::b", on_cpu),
    ]
    assert [each.text for each in steps] == [
        "mode(Outer)",
        'handler("Tagged")',
        'handler("Tagged", declines, context="plugin")',
        'rule("graph::rank", ProbeSubclass, ruled)',
        "install_fallbacks()",
        'in_main(impl("graph::rank", on_cpu, "CPU"))',
        'context("plugin")',
        'context("plugin", impl("graph::rank", on_cpu, "CPU"))',
        "custom(\"a::b\", on_cpu, mutates_args=(), schema='(Tensor x) -> Tensor', "
        "adding=adding)",
        "register_kernel(\"a::b\", 'cpu', on_cpu)",
        'register_fake("a::b", on_cpu)',
        'register_autograd("a::b", on_cpu)',
    ]
    assert [each.has_effects for each in steps] == [
        *[True] * 3,
        *[False] * 2,
        *[True] * 4,
        *[False] * 3,
    ]
    assert together(RANK, mode(Outer)).has_effects


def test_modes_are_entered_and_taken_out_wherever_they_stand(systems: Any) -> None:
    system = systems(mode(Outer), mode(Fake), mode(ProbeMode), given=[RANK])
    before = LOCAL.view
    outer, fake, last = (system.do(step) for step in range(3))
    assert [type(each) for each in current_modes()] == [Fake, Outer, ProbeMode]
    assert beside(system) == (
        "mode Fake (step 2)\nmode Outer (step 1)\nmode ProbeMode (step 3)\n"
        "included also Python, PythonTLSSnapshot\n"
    )
    system.undo(0, outer)
    assert [type(each) for each in current_modes()] == [Fake, ProbeMode]
    system.undo(1, fake)
    system.undo(2, last)
    assert current_modes() == ()
    assert LOCAL.view is before
    assert beside(system) == ""
    del outer, fake, last
    assert system.laws() == []


def test_a_taken_place_is_refused_and_leaves_nothing(systems: Any) -> None:
    system = systems(mode(Proxy), mode(Proxy), given=[RANK])
    held = system.do(0)
    before = system.state()
    with pytest.raises(ModeStackError, check=code("ModeSlotTaken")):
        system.do(1)
    assert (system.state(), system.laws()) == (before, [])
    system.undo(0, held)


def test_a_reset_and_the_end_leave_no_mode(systems: Any) -> None:
    system = systems(mode(Outer), given=[RANK, mode(Fake)])
    system.do(0)
    assert [type(each) for each in current_modes()] == [Fake, Outer]
    system.reset()
    assert [type(each) for each in current_modes()] == [Fake]
    system.close()
    assert current_modes() == ()
    # Once more changes nothing.
    system.close()
    assert current_modes() == ()


def test_exploring_leaves_the_thread_as_it_was() -> None:
    with Outer() as around:
        view = LOCAL.view
        report = explore(Scenario(mode(Fake), given=[RANK, mode(Proxy)]), "walk:0")
        assert report.verdict == "holds"
        assert current_modes() == (around,)
        assert LOCAL.view is view


def test_a_mode_that_cannot_be_ended_does_not_stop_the_reset(systems: Any) -> None:
    system = systems(mode(Outer), given=[RANK])
    handle = system.do(0)
    current_modes()[0].__exit__()
    system.reset()
    handle.close()
    assert current_modes() == ()


def test_calls_of_classes_with_handlers(systems: Any) -> None:
    system = systems(
        handler("Tagged"),
        handler("Failing", fails),
        given=[RANK, CPU, install_fallbacks()],
        probes=("cpu", "handler:Tagged", "handler:Failing", "subclass"),
    )
    python = "python_snapshot (given 3) > python_dispatch (given 3)"
    held = [system.do(0), system.do(1)]
    assert dict(system.observe())["calls"] == (
        "cpu: on_cpu (given 2)\n"
        f"handler:Tagged: {python} > Tagged (step 1) > on_cpu (given 2)\n"
        f"handler:Failing: {python} > Failing (step 2) > raises ArithmeticError\n"
        f"subclass: {python} > subclass > on_cpu (given 2)\n"
    )
    assert beside(system) == (
        "handler Failing, Failing (step 2)\nhandler Tagged, Tagged (step 1)\n"
    )
    system.undo(0, held.pop(0))
    said = dict(system.observe())["calls"].splitlines()
    assert said[1] == "handler:Tagged: no handler:Tagged"
    system.undo(1, held.pop())
    # Classes are cycles, so that this takes the collector.
    assert system.laws() == []


def test_lists_of_tensors_are_unwrapped(systems: Any) -> None:
    system = systems(
        define("graph::join(Tensor[] parts, Tensor? x) -> ()"),
        impl("graph::join", lambda *arguments: None, "CPU", debug="joins"),
        install_fallbacks(),
        probes=("subclass",),
    )
    held = [system.do(step) for step in range(3)]
    assert dict(system.observe())["calls"] == (
        "subclass: python_snapshot (step 3) > python_dispatch (step 3) > subclass "
        "> joins\n"
    )
    assert len(held) == 3


def test_a_second_class_of_a_name_is_no_scenario(systems: Any) -> None:
    system = systems(handler("Tagged"), handler("Tagged"), given=[RANK])
    system.do(0)
    with pytest.raises(NotAScenario, match="a second handler called 'Tagged'"):
        system.do(1)


def test_rules_are_registrations(systems: Any) -> None:
    system = systems(
        rule("graph::rank", ProbeSubclass, ruled),
        rule("graph::rank", ProbeSubclass, ruled),
        given=[RANK, CPU, install_fallbacks()],
        probes=("subclass",),
    )
    handle = system.do(0)
    assert (beside(system), handle.closed) == ("", False)
    assert dict(system.observe())["rules"] == (
        "graph::rank, ProbeSubclass: ruled (step 1)\n"
    )
    assert dict(system.observe())["calls"] == (
        "subclass: python_snapshot (given 3) > python_dispatch (given 3) > "
        "ruled (step 1) > on_cpu (given 2)\n"
    )
    with pytest.raises(Conflict, check=code("RuleTaken")) as caught:
        system.do(1)
    del caught
    assert system.laws() == []
    system.undo(0, handle)
    assert "rules" not in dict(system.observe())
    with pytest.raises(NotAScenario, match="operator 'rank' without a namespace"):
        rule("rank", ProbeSubclass, ruled)


def test_a_context_brings_its_copies(systems: Any) -> None:
    copy = impl("graph::rank", better_on_cpu, "CPU", debug="theirs")
    system = systems(
        in_main(CPU),
        context("plugin", copy),
        handler("Theirs", context="plugin"),
        given=[RANK],
        probes=("cpu", "context:plugin"),
    )
    assert context("plugin", copy).kernels == ("plugin: CPU of graph::rank: theirs",)
    with pytest.raises(ContextError, check=code("NotVerified")):
        system.do(1)
    with pytest.raises(LookupError, match="there is no context 'plugin' now"):
        system.do(2)
    main, plugin = system.do(0), system.do(1)
    alone = system.state()
    theirs = system.do(2)
    assert beside(system) == (
        "handler Theirs, Theirs (step 3), of plugin\ncontext plugin, open\n"
    )
    assert dict(system.observe())["calls"] == (
        "cpu: on_cpu (step 1)\ncontext:plugin: theirs\n"
    )
    made = system.dispatcher.effects.contexts["plugin"]
    system.undo(1, plugin)
    assert beside(system) == (
        "handler Theirs, Theirs (step 3), of plugin, which is closed\n"
    )
    assert not made.alive
    with pytest.raises(ContextError, check=code("ContextClosed")):
        made.check_open("anything")
    system.undo(2, theirs)
    system.undo(0, main)
    assert (beside(system), system.state() == alone) == ("", False)


def test_custom_operators_and_what_is_added(systems: Any) -> None:
    schema = "(Tensor x) -> Tensor"

    def refused(made: Any) -> None:
        raise ArithmeticError("not today")

    system = systems(
        custom("graph::rank", on_cpu, schema=schema),
        custom("graph::walk", on_cpu, schema=schema, adding=refused),
        register_fake("graph::rank", on_cpu),
        register_autograd("graph::none", on_cpu),
        probes=(),
    )
    made = system.do(0)
    state = dict(system.observe())["state of graph::rank"]
    assert "debug: registered at step 1:1\n" in state
    assert "CompositeExplicitAutograd[alias]: on_cpu (registered at step 1:1)" in state
    with pytest.raises(ArithmeticError):
        system.do(1)
    assert dict(system.observe())["state of graph::walk"] == ""
    with pytest.raises(LookupFailed, check=code("SchemaNotFound")):
        system.do(3)
    system.undo(0, made)
    assert dict(system.observe())["state of graph::rank"] == ""
    del made
    assert system.laws() == []


def test_a_leaking_use_is_told_by_the_law(systems: Any) -> None:
    def enter(dispatcher: Any) -> str:
        Outer().__enter__()
        return "entered"

    report = explore(Scenario(RANK, uses=[use("enter", enter)]), "walk:0")
    violation = report.exploration.violations[0]
    assert isinstance(violation.found, tuple)
    assert {each.law for each in violation.found if isinstance(each, Violation)} == {
        "operations_leave_the_thread_alone"
    }
    assert current_modes() == ()


def test_a_look_that_leaks_is_told_too() -> None:
    def observe(dispatcher: Any) -> str:
        Outer().__enter__()
        return "seen"

    report = explore(Scenario(RANK, observe=observe, probes=()), "walk:0")
    violation = report.exploration.violations[0]
    assert isinstance(violation.found, tuple)
    assert str(violation.found[-1]) == (
        "operations_leave_the_thread_alone at look, modes: expected (), found (Outer,)"
    )
    assert current_modes() == ()


def test_what_handlers_include_goes_with_them() -> None:
    def includes(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        LOCAL.included |= 1 << 40
        return func(*[each.inner for each in args])

    report = explore(
        Scenario(
            handler("Including", includes),
            given=[RANK, impl("graph::rank", _including, "CPU"), install_fallbacks()],
            probes=("handler:Including",),
        )
    )
    assert report.verdict == "proven"


def _including(x, *rest):  # type: ignore[no-untyped-def]  # an untyped kernel
    LOCAL.included |= 1 << 41
    return x


def test_a_kernel_that_leaks_is_told_call_by_call() -> None:
    scenario = Scenario(RANK, impl("graph::rank", _including, "CPU"), probes=("cpu",))
    (violation,) = explore(scenario, "walk:0", stop_after=1).exploration.violations
    assert isinstance(violation.found, tuple)
    assert "calls_restore_their_thread" in {each.law for each in violation.found}
    used = Scenario(
        RANK,
        impl("graph::rank", _including, "CPU"),
        probes=(),
        uses=[call("graph::rank")],
    )
    (violation,) = explore(used, "walk:0", stop_after=1).exploration.violations
    assert isinstance(violation.found, tuple)
    assert "calls_restore_their_thread" in {each.law for each in violation.found}


def test_probes_say_what_they_are() -> None:
    plain = probe_tensor("cpu")
    made = ProbeSubclass("subclass", LabelRecorder())
    assert (repr(plain), repr(made)) == (
        "ProbeTensor('cpu')",
        "ProbeSubclass(ProbeTensor('cpu'))",
    )


def test_leaving_what_is_not_entered_is_refused() -> None:
    with pytest.raises(ModeStackError, check=code("EmptyModeStack")):
        leave(Fake())
    with Outer() as entered:
        with pytest.raises(ModeStackError):
            leave(Fake())
        assert current_modes() == (entered,)
