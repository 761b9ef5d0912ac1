"""The dispatcher as a system: what is observed, what is a failure, what is complete."""

from typing import Any

import pytest

from everyorder.harness import explore
from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.scenario import (
    Scenario,
    call,
    define,
    fallback,
    impl,
    library,
    listen,
    look_up,
    reserve,
    step,
    use,
)
from everyorder.harness.systems.dispatcher import DispatcherSystem, condensed_table
from everyorder.harness.systems.outcomes import ErrorOutcome, ScenarioSkipped
from everyorder.runtime.dispatch import Dispatcher, Library, fallthrough
from everyorder.runtime.dispatch.kernel_lookup import OperatorRef
from everyorder.runtime.dispatch.state import dump_table, table_reading
from everyorder.runtime.keys import SLOTS
from tests.scenarios.kernels import broken, composed, no_cpu, on_cpu, typed_two
from tests.scenarios.of_files import catalogue

NUMBER = {key.name: number for number, key in enumerate(SLOTS)}


def lines_of(table: str) -> dict[int, str]:
    pairs = (line.split(": ", 1) for line in table.splitlines())
    return {NUMBER[name]: held for name, held in pairs}


def empty_table() -> dict[int, str]:
    library = Library("a", "FRAGMENT", dispatcher=(target := Dispatcher()))
    library.reserve("b")
    return lines_of(target.dump_table("a::b"))


def rebuilt(text: str) -> str:
    """The whole table, from its condensed form and the empty table."""
    table: dict[int, str] = empty_table()
    for line in text.splitlines():
        span, held = line.split(": ", 1)
        first, _, last = span.partition(" .. ")
        last, _, count = last.rstrip(")").partition(" (")
        covered = range(NUMBER[first], NUMBER[last or first] + 1)
        assert len(covered) == int(count or 1)
        for number in covered:
            if held == "missing":
                del table[number]
            else:
                table[number] = held
    return "".join(f"{SLOTS[n].name}: {held}\n" for n, held in sorted(table.items()))


CATALOGUE = {
    path: each
    for path, each in catalogue().items()
    if each.create is None and len(each.steps) <= 5
}


@pytest.mark.parametrize("path", CATALOGUE)
def test_nothing_is_lost(path: str) -> None:
    system = DispatcherSystem(CATALOGUE[path])
    system.reset()
    held = []
    for number in range(system.steps):
        try:
            held.append(system.do(number))
        except Exception:  # a step of a scenario of refusals
            continue
        for entry in system.dispatcher.snapshot().entries():
            # Dumps know of no operator with rules alone.
            if entry.total:
                assert rebuilt(
                    condensed_table(table_reading(entry.table))
                ) == dump_table(entry)
    for handle in held:
        handle.close()
    system.close()


def test_an_empty_table_is_no_line() -> None:
    target = Dispatcher()
    library = Library("a", "FRAGMENT", dispatcher=target)
    library.reserve("b")
    (entry,) = target.snapshot().entries()
    assert condensed_table(table_reading(entry.table)) == ""


def test_runs_are_one_line_and_emptied_slots_are_missing() -> None:
    target = Dispatcher()
    library = Library("a", "FRAGMENT", dispatcher=target, origin="here")
    library.impl("b", composed)
    library.impl("b", on_cpu, "NestedTensorCPU")
    (entry,) = target.snapshot().entries()
    # AutogradNestedTensor is guarded and falls back, as it does in the empty table.
    assert condensed_table(table_reading(entry.table)) == (
        "Undefined .. SparseCsrMeta (70): composed (here) [math kernel]\n"
        "NestedTensorCPU: on_cpu (here) [kernel]\n"
        "NestedTensorCUDA .. NestedTensorMeta (15): composed (here) [math kernel]\n"
        "AutogradOther .. AutogradMeta (17): composed (here) [math kernel]\n"
    )


def test_a_slot_that_the_empty_table_has_can_be_missing() -> None:
    target = Dispatcher(builtin_fallbacks=False)
    library = Library("a", "FRAGMENT", dispatcher=target, origin="here")
    library.reserve("b")
    (entry,) = target.snapshot().entries()
    shown = condensed_table(table_reading(entry.table)).splitlines()
    assert "BackendSelect: missing" in shown
    assert {line.partition(": ")[2] for line in shown} == {"missing"}
    assert rebuilt("\n".join(shown)) == ""


def test_fallthroughs_say_so() -> None:
    target = Dispatcher()
    library = Library("a", "FRAGMENT", dispatcher=target, origin="here")
    library.impl("b", fallthrough, "CUDA")
    (entry,) = target.snapshot().entries()
    assert (
        condensed_table(table_reading(entry.table))
        == "CUDA: fallthrough here [kernel]\n"
    )


FLIP = define("a::flip(Tensor x) -> Tensor")
CPU = impl("a::flip", on_cpu, "CPU")


def started(scenario: Scenario, **options: Any) -> DispatcherSystem:
    system = DispatcherSystem(scenario, **options)
    system.reset()
    return system


def test_sizes() -> None:
    system = DispatcherSystem(Scenario(FLIP, CPU, uses=[call("a::flip")]))
    assert (system.steps, system.uses) == (2, 1)


def test_an_observation() -> None:
    system = started(Scenario(FLIP, CPU, probes=["cpu", "meta"]))
    assert system.observe() == (
        ("state", ""),
        ("table", ""),
        ("calls", "cpu: OperatorGone\nmeta: OperatorGone\n"),
    )
    held = [system.do(0), system.do(1)]
    assert system.observe() == (
        (
            "state",
            "name: a::flip\nschema: a::flip(Tensor x) -> Tensor\ndebug: step 1\n"
            "alias analysis kind: FROM_SCHEMA\n"
            "CPU: on_cpu (step 2) :: (none) [ boxed ]\n",
        ),
        ("table", "CPU: on_cpu (step 2) [kernel]\n"),
        ("calls", "cpu: on_cpu (step 2)\nmeta: MissingKernel: no kernel\n"),
    )
    assert len(held) == 2


def test_several_operators_and_holders() -> None:
    turn = define("a::turn(Tensor x) -> Tensor", debug="there")
    system = started(Scenario(turn, library("a"), listen(), given=[FLIP], probes=[]))
    held = [system.do(n) for n in range(3)]
    assert system.observe() == (
        (
            "state of a::flip",
            "name: a::flip\nschema: a::flip(Tensor x) -> Tensor\ndebug: given 1\n"
            "alias analysis kind: FROM_SCHEMA\n",
        ),
        ("table of a::flip", ""),
        (
            "state of a::turn",
            "name: a::turn\nschema: a::turn(Tensor x) -> Tensor\ndebug: there\n"
            "alias analysis kind: FROM_SCHEMA\n",
        ),
        ("table of a::turn", ""),
        (
            "holders",
            "namespace a: step 2\n"
            "listener step 3 knows a::flip(Tensor x) -> Tensor, "
            "a::turn(Tensor x) -> Tensor\n",
        ),
    )
    assert len(held) == 3


def test_calls_name_the_operator_where_there_are_several() -> None:
    scenario = Scenario(FLIP, CPU, uses=[look_up("a::turn")], probes=["cpu"])
    system = started(scenario)
    held = [system.do(0), system.do(1)]
    assert dict(system.observe())["calls"] == (
        "a::flip cpu: on_cpu (step 2)\na::turn cpu: OperatorGone\n"
    )
    assert len(held) == 2


def test_a_foreign_listener_is_unknown() -> None:
    class Deaf:
        def on_operator_registered(self, *_: object) -> None:
            return

        on_operator_deregistered = on_operator_registered

    system = started(Scenario(FLIP, probes=[]))
    system.dispatcher.add_listener(Deaf())
    assert dict(system.observe())["holders"] == "listener Deaf knows unknown\n"


def test_the_view_of_upstream_is_the_whole_dump() -> None:
    system = started(Scenario(FLIP, impl("a::flip", composed)), view="upstream")
    assert system.observe() == (("state", ""), ("table", ""))
    held = [system.do(0), system.do(1)]
    dispatcher = system.dispatcher
    assert system.observe() == (
        ("state", dispatcher.dump_state("a::flip")),
        ("table", dispatcher.dump_table("a::flip")),
    )
    assert "SparseCUDA: composed (step 2) [math kernel]\n" in system.observe()[1][1]
    assert len(held) == 2


def test_a_reset_forgets_everything() -> None:
    system = started(Scenario(FLIP, CPU, given=[fallback(no_cpu, "CPU")]))
    first = (system.state(), system.observe())
    held = [system.do(0), system.do(1)]
    assert (system.state(), system.observe()) != first
    system.reset()
    assert (system.state(), system.observe()) == first
    assert len(held) == 2


def test_what_is_given_stays() -> None:
    system = started(Scenario(CPU, given=[FLIP, impl("a::flip", composed)]))
    handle = system.do(0)
    system.undo(0, handle)
    assert system.laws() == []
    state = dict(system.observe())["state"]
    assert state == (
        "name: a::flip\nschema: a::flip(Tensor x) -> Tensor\ndebug: given 1\n"
        "alias analysis kind: FROM_SCHEMA\n"
        "CompositeImplicitAutograd[alias]: composed (given 2) :: (none) [ boxed ]\n"
    )


def test_failures_are_fields_as_text() -> None:
    system = started(Scenario(FLIP, impl("a::flip", typed_two, "CPU")))
    handle = system.do(0)
    before = system.state()
    with pytest.raises(Exception, match="does not fit") as caught:
        system.do(1)
    assert system.failure(caught.value) == (
        ("error", "SchemaMismatch"),
        ("operator", "a::flip"),
        ("schema", "a::flip(Tensor x) -> Tensor"),
        ("definition", "step 1"),
        ("inferred", "(Tensor _0, Tensor _1) -> Tensor _0"),
        ("kernel", "typed_two (step 2)"),
        ("key", "CPU"),
        ("difference", "the numbers of arguments differ: 1 and 2"),
    )
    assert system.state() == before
    # A traceback keeps the frames in which the kernel was refused.
    del caught
    assert system.laws() == []
    system.undo(0, handle)


def test_failures_of_others_are_type_and_text() -> None:
    system = started(Scenario(FLIP))
    assert system.failure(ZeroDivisionError("by zero")) == (
        ("error", "ZeroDivisionError"),
        ("text", "by zero"),
    )


def test_a_long_table_is_no_part_of_a_failure() -> None:
    system = started(Scenario(FLIP))
    handle = system.do(0)
    found = system.dispatcher.find_op("a::flip")
    assert found is not None
    with pytest.raises(Exception, match="a::flip") as caught:
        found.call(None)
    fields = dict(system.failure(caught.value))
    assert fields["error"] == "MissingKernel"
    assert "table" not in fields
    system.undo(0, handle)


def test_uses_answer_and_an_exception_is_an_answer() -> None:
    scenario = Scenario(
        FLIP,
        impl("a::flip", broken, "CPU"),
        uses=[
            call("a::flip"),
            use("registrations_for(...)", lambda d: d.registrations_for("CPUU")),
        ],
    )
    system = started(scenario)
    held = [system.do(0), system.do(1)]
    assert system.use(0) == "broken (step 2) > raises ArithmeticError"
    found = system.use(1)
    assert isinstance(found, tuple)
    assert found[0] == ("error", "UnknownKey")
    assert system.laws() == []
    assert len(held) == 2


def test_laws_see_what_a_use_changes() -> None:
    library_of = define("a::turn(Tensor x) -> Tensor")

    def register(dispatcher: Any) -> str:
        perform = library_of.prepare(dispatcher, "a use")
        held.extend((perform, perform()))
        return "done"

    held: list[object] = []
    scenario = Scenario(FLIP, uses=[use("register", register)])
    system = started(scenario)
    assert system.laws() == []
    assert system.use(0) == "done"
    assert [broken.law for broken in system.laws()] == ["a_use_changes_nothing"]  # type: ignore[attr-defined]  # violations
    unchecked = started(scenario, laws=False)
    unchecked.use(0)
    assert unchecked.laws() == ()


def test_the_fingerprint_knows_what_listeners_know() -> None:
    system = started(Scenario(FLIP, listen()))
    alone = system.state()
    handle = system.do(1)
    listening = system.state()
    known = system.dispatcher.snapshot().subscriptions[0].listener
    known.names.append("a rumour")  # type: ignore[attr-defined]  # the scenario's listener keeps names
    assert len({alone, listening, system.state()}) == 3
    system.undo(1, handle)
    assert system.state() == alone


def test_a_law_of_calls_is_told_at_every_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the first of several replays would take it away from the others."""
    right = OperatorRef.call

    def under_the_lock(callee: Any, /, *args: Any, **named: Any) -> Any:
        with callee.dispatcher._lock:
            return right(callee, *args, **named)

    monkeypatch.setattr(OperatorRef, "call", under_the_lock)
    found = explore(Scenario(FLIP, CPU, probes=["cpu"])).exploration
    (violation,) = found.violations
    assert [each.law for each in violation.found] == ["kernels_run_without_the_lock"]  # type: ignore[attr-defined]  # violations of laws
    assert (violation.shortest, violation.proven_shortest) == ((0, 1), True)


def test_what_is_given_is_cold_in_every_run() -> None:
    """What a call leaves on an entry must not reach the next fresh dispatcher."""

    def warm(target: Any) -> str:
        return str("caller" in target.state.find("a", "a::flip").memo)

    system = DispatcherSystem(
        Scenario(
            reserve("a::flop"),
            given=[FLIP, CPU],
            uses=[use("warm", warm)],
            operators=["a::flip"],
            probes=["cpu"],
        )
    )
    for _ in range(2):
        system.reset()
        assert system.use(0) == "False"
        assert system.observe()[-1] == ("calls", "cpu: on_cpu (given 2)\n")


def test_a_uses_answer_has_run() -> None:
    asked = use("listed", lambda _: map(str, [1]))
    with pytest.raises(NotAScenario, match="map, returned by the use 'listed'"):
        started(Scenario(FLIP, uses=[asked])).use(0)


def says(*words: str) -> Any:
    """A function that goes through some words, and does what the next one says."""
    said = iter(words)

    def do(_: object) -> Any:
        word = next(said)
        if word == "skip":
            pytest.skip("no device here")
        if word == "fail":
            pytest.fail("not here")
        return word

    return do


def test_pytest_fail_in_a_use_is_an_answer() -> None:
    system = started(Scenario(FLIP, uses=[use("ask", says("fail"))]))
    assert system.use(0) == (("error", "Failed"), ("text", "not here"))


def test_pytest_skip_skips_the_scenario() -> None:
    system = started(Scenario(FLIP, uses=[use("ask", says("fail", "skip"))]))
    system.use(0)
    with pytest.raises(ScenarioSkipped, match="no device here"):
        system.use(0)


def test_a_skip_that_depends_on_history_is_an_outcome() -> None:
    system = started(Scenario(FLIP, uses=[use("ask", says("yes", "skip"))]))
    assert system.use(0) == "yes"
    assert system.use(0) == (("error", "Skipped"), ("text", "no device here"))


def test_a_step_may_fail_or_skip() -> None:
    words = says("skip", "fail", "fine", "skip")
    system = started(Scenario(FLIP, step("ask", lambda to: str(words(to)).upper)))
    with pytest.raises(ScenarioSkipped):
        system.do(1)
    for told in (("Failed", "not here"), None, ("Skipped", "no device here")):
        if told is None:
            system.do(1)
            continue
        with pytest.raises(ErrorOutcome) as caught:
            system.do(1)
        assert (caught.value.name, caught.value.text) == told
