"""`ends=`: an operation that ends others, explored like any step."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from everyorder import explore
from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.engine import Budget, replay
from everyorder.harness.engine.protocol import Relations
from everyorder.harness.exploration.explore_scenario import (
    closing,
    empty_report,
    system_of,
)
from everyorder.harness.processes.fork import CAN_FORK
from everyorder.harness.scenario import Scenario, Step, step, steps, use
from everyorder.harness.systems.registry import RegistrySystem
from tests.scenario_api.ending_cases import ALL, CASES
from tests.scenario_api.ending_registries import Table
from tests.scenario_api.test_step import Shelf, made

TABLE = made("table")


def scenario(*of: Step, uses: Any = (), **options: Any) -> Scenario:
    options.setdefault("create", Shelf)
    return Scenario(*of, uses=uses, observe=lambda _: "", **options)


# How it is written.


def test_what_an_operation_ends_is_named_by_object_text_or_all() -> None:
    clear = use("clear", len, ends="all")
    close = use("close", len, ends=[TABLE, "chair"])
    row = made("row", ends="all")
    found = scenario(TABLE, made("chair"), row, uses=[clear, use("size", len), close])
    assert found.relations == Relations(
        ends={
            2: frozenset({0, 1}),
            3: frozenset({0, 1, 2}),
            5: frozenset({0, 1}),
        }
    )


def test_each_of_several_steps_ends_all_others() -> None:
    choose = steps("choose", "abc", Shelf.put, ends="all")
    assert scenario(*choose).relations.ends == {
        0: frozenset({1, 2}),
        1: frozenset({0, 2}),
        2: frozenset({0, 1}),
    }
    named = steps("put", ["x", "y"], Shelf.put, ends=TABLE)
    assert scenario(TABLE, *named).relations.ends == {
        1: frozenset({0}),
        2: frozenset({0}),
    }


def test_all_are_those_that_may_be_active_and_not_what_is_given() -> None:
    only = scenario(made("row", ends="all"), given=[TABLE])
    assert only.relations == Relations()
    light = made("light")
    dark = made("dark", excludes=light, ends="all")
    assert scenario(light, dark, TABLE).relations.ends == {1: frozenset({2})}


def test_a_list_names_a_step_of_the_text_all() -> None:
    found = scenario(TABLE, made("all"), uses=[use("clear", len, ends=["all"])])
    assert found.relations.ends == {2: frozenset({1})}


def test_the_digest_depends_on_what_is_ended() -> None:
    """A replay id is played on a scenario of the same meaning only."""

    def digest(ends: Any, of_step: Any = ()) -> str:
        clear = use("clear", len, ends=ends)
        return scenario(TABLE, made("row", ends=of_step), uses=[clear]).digest

    assert digest(()) == scenario(TABLE, made("row"), uses=[use("clear", len)]).digest
    texts: list[Any] = [(), "all", "table", "row", ["table", "row"]]
    assert len({digest(each) for each in texts}) == len(texts)
    assert len({digest((), each) for each in ((), "all", "table")}) == 3


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: scenario(TABLE, uses=[use("clear", len, ends="tabel")]),
            "'tabel' in ends= of 'clear', which is not a step of the scenario; "
            "expected one of the steps, such as table",
        ),
        (
            lambda: scenario(TABLE, uses=[use("clear", len, ends=["clear"])]),
            "'clear' in ends= of 'clear', which is not a step of the scenario; "
            "expected one of the steps, such as table",
        ),
        (
            lambda: scenario(made("row", ends="row")),
            "'row', which ends itself; expected ends= of other steps; 'all' means all "
            "others",
        ),
        (
            lambda: scenario(TABLE, made("row", requires=TABLE, ends=TABLE)),
            "'row', which ends 'table' and requires it; expected ends= of steps that "
            "it does not require",
        ),
        (
            lambda: scenario(TABLE, made("row", requires=TABLE, ends="all")),
            "'row', which ends 'table' and requires it; expected ends= of steps that "
            "it does not require",
        ),
        (
            lambda: scenario(
                TABLE,
                made("row", requires=TABLE),
                made("chair", after="row", ends="table"),
            ),
            "'chair', which can never be done: it ends 'table', which 'row' requires; "
            "expected ends= of both",
        ),
        (
            lambda: scenario(TABLE, made("row", excludes=TABLE, ends=[TABLE])),
            "'row', which excludes 'table' and ends it; expected one of the two: what "
            "it excludes is not active when it is done",
        ),
        (
            lambda: scenario(
                made("row"), given=[TABLE], uses=[use("clear", len, ends=TABLE)]
            ),
            "'table' in ends= of 'clear', which is in given= and always active; "
            "expected steps of the scenario, which can be ended",
        ),
        (
            lambda: scenario(made("all"), uses=[use("clear", len, ends="all")]),
            "ends= of 'clear': 'all', which is also the text of a step; expected "
            "another text for that step, or ends=['all'] for it alone",
        ),
        (
            lambda: use("clear", len, ends="all", raises=LookupError),
            "use('clear', ...) with ends= and raises=; expected one of the two: what "
            "ends steps succeeds, and changes something",
        ),
        (
            lambda: step("clear", len, ends="all", constant=True),
            "step('clear', ...) with ends= and constant=True; expected one of the two: "
            "what ends steps succeeds, and changes something",
        ),
        (
            lambda: use("clear", len, ends=3),  # type: ignore[arg-type]  # refused
            "3 as ends= of use('clear', ...); expected a step, its text, or several of "
            "these",
        ),
    ],
)
def test_what_cannot_be_ended(make: Callable[[], object], text: str) -> None:
    with pytest.raises(NotAScenario) as caught:
        make()
    assert str(caught.value) == f"a scenario cannot use {text}."


def test_a_dispatcher_has_no_operation_that_ends_others() -> None:
    from everyorder.harness.scenario import define

    with pytest.raises(NotAScenario) as caught:
        Scenario(
            define("test::foo(Tensor x) -> Tensor"), uses=[use("x", len, ends="all")]
        )
    assert "ends= of 'x' without create" in str(caught.value)


# What it means.


def played(of: Scenario, *history: int, order_dependent: bool = False) -> list[Any]:
    """Return the kind of each operation, with the active steps after it."""
    with closing(system_of(of)) as system:
        record = replay(system, history, order_dependent=order_dependent)
    assert record.faults == ()
    return [(each.kind, each.state) for each in record.actions[:-1]]


class Noting(Table):
    """It notes which undos were called."""

    undone: list[str] = []  # noqa: RUF012  # of all registries of a test

    def add(self, name: str) -> Callable[[], None]:
        undo = super().add(name)

        def noted() -> None:
            self.undone.append(name)
            undo()

        return noted


def names(create: type[Table], *texts: str, **options: Any) -> list[Step]:
    return steps("add", texts or ("a", "b"), lambda r, n: r.add(n), **options)


def clearing(create: type[Table], **options: Any) -> Scenario:
    options.setdefault("steps", names(create))
    return Scenario(
        *options.pop("steps"),
        uses=[use("clear", create.clear, ends=options.pop("ends", ALL))],
        create=create,
        observe=create.shown,
        name="clearing",
        **options,
    )


def test_an_ended_step_is_not_active_and_its_undo_is_not_called() -> None:
    Noting.undone.clear()
    assert played(clearing(Noting), 0, 1, 2, 0, 0) == [
        ("add", (0,)),
        ("add", (0, 1)),
        ("end", ()),
        ("add", (0,)),
        ("remove", ()),
    ]
    assert Noting.undone == ["a"]


def test_what_ends_nothing_is_a_use_like_others() -> None:
    assert played(clearing(Table), 2) == [("use", ())]


def test_a_step_ends_others_and_its_undo_does_not_bring_them_back() -> None:
    of = CASES["one of several"]
    assert played(of.scenario(of.right), 0, 1, 1, 2, 0) == [
        ("add", (0,)),
        ("add", (1,)),
        ("remove", ()),
        ("add", (2,)),
        ("add", (0,)),
    ]


def test_an_operation_that_raises_ends_nothing() -> None:
    of = CASES["a lock"]
    assert played(of.scenario(of.right), 0, 2, 3, 2, 3) == [
        ("add", (0,)),
        ("add", (0, 2)),
        ("use", (0, 2)),
        ("remove", (0,)),
        ("end", ()),
    ]


class Full(Table):
    """Of a step that replaces others, refused when it is full."""

    def replace(self, name: str) -> Callable[[], None]:
        if len(self.values) > 1:
            raise OverflowError(name)
        self.values.clear()
        return self.add(name)


def test_a_step_that_raises_ends_nothing() -> None:
    of = Scenario(
        *names(Full),
        step("replace", lambda r: r.replace("c"), ends=ALL),
        create=Full,
        observe=Full.shown,
    )
    assert played(of, 0, 1, 2, 1, 2) == [
        ("add", (0,)),
        ("add", (0, 1)),
        ("failing", (0, 1)),
        ("remove", (0,)),
        ("add", (2,)),
    ]
    assert explore(of, "graph").verdict == "proven"


def test_a_step_that_lasts_can_be_done_again_after_it_was_ended() -> None:
    of = CASES["what lasts"]
    assert played(of.scenario(of.right), 0, 0, 2, 0) == [
        ("add", (0,)),
        ("skipped", (0,)),
        ("end", ()),
        ("add", (0,)),
    ]


def test_what_an_active_step_requires_is_not_ended_alone() -> None:
    """It is not played there, as the undo of the required step is not."""
    base, other = names(Table)
    leaf = step("leaf", lambda r: r.add("leaf"), requires=base)
    of = clearing(Table, steps=[base, other, leaf], ends=base)
    assert played(of, 0, 2, 3, 2, 3)[2:] == [
        ("skipped", (0, 2)),
        ("remove", (0,)),
        ("end", ()),
    ]
    both = clearing(Table, steps=[base, other, leaf], ends=[base, leaf])
    assert played(both, 0, 1, 2, 3)[-1] == ("end", (1,))


def test_what_is_left_keeps_its_order() -> None:
    of = clearing(Table, steps=names(Table, "a", "b", "c"), ends="add('b')")
    history = (2, 1, 0, 3, 1)
    assert [state for _, state in played(of, *history, order_dependent=True)] == [
        (2,),
        (2, 1),
        (2, 1, 0),
        (2, 0),
        (2, 0, 1),
    ]


class Handled(Table):
    """Its handles are objects, which it may keep."""

    def __init__(self) -> None:
        super().__init__()
        self.handles: list[Any] = []

    def add(self, name: str) -> Any:
        undo = super().add(name)

        class Entry:
            def close(self) -> None:
                undo()

        entry = Entry()
        self.hold(entry)
        return entry

    def hold(self, entry: Any) -> None:
        """Keep nothing."""


class Holds(Handled):
    """It keeps the handles of active steps."""

    def hold(self, entry: Any) -> None:
        self.handles.append(entry)
        close = entry.close

        def closing() -> None:
            self.handles.remove(entry)
            close()

        entry.close = closing

    def clear(self) -> None:
        super().clear()
        self.handles.clear()


class HoldsEnded(Holds):
    """It keeps them for good if they were cleared."""

    def clear(self) -> None:
        self.values.clear()


@pytest.mark.parametrize("strategy", ["histories:3", "walk:0"])
@pytest.mark.parametrize(
    ("create", "kinds"), [(Handled, set()), (Holds, set()), (HoldsEnded, {"leak"})]
)
def test_the_handle_of_an_ended_step_must_be_freed(
    create: type[Table], kinds: set[str], strategy: str
) -> None:
    found = explore(clearing(create), strategy).exploration.violations
    assert {each.kind for each in found} == kinds
    for each in found:
        # The step was done, and all were cleared.
        assert each.shown[-1] == 2


@pytest.mark.skipif(not CAN_FORK, reason="processes cannot be forked")
@pytest.mark.parametrize(("create", "kinds"), [(Holds, set()), (HoldsEnded, {"leak"})])
def test_a_handle_in_another_process_must_be_freed(
    create: type[Table], kinds: set[str]
) -> None:
    of = clearing(create, isolation="fork")
    found = explore(of, "histories:2").exploration.violations
    assert {each.kind for each in found} == kinds


@pytest.mark.skipif(not CAN_FORK, reason="processes cannot be forked")
def test_another_process_is_told_what_was_ended() -> None:
    of = CASES["a lock"]
    isolated = of.scenario(of.right, isolation="fork")
    budget = Budget(steps=8_000)
    assert explore(isolated, "graph", budget=budget).verdict == "proven"
    faulty = of.scenario(of.faulty["half is cleared"], isolation="fork")
    (violation, *_) = explore(faulty, "histories:3").exploration.violations
    assert len(violation.shown) == 3


def test_an_abandoned_generator_ends_in_the_operation_that_ended_its_step() -> None:
    """Its `finally` runs when the handle is dropped, and may remove what is new."""

    def add(table: Table) -> Iterator[None]:
        undo = table.add("a")
        try:
            yield
        finally:
            undo()

    of = clearing(Table, steps=[step("add a", add), *names(Table, "b")])
    # It raises as the name is gone, which only Python's hook would see.
    assert explore(of, "graph").verdict == "proven"

    class Sticky(Table):
        def clear(self) -> None:
            self.values = {"b": "new"} if "a" in self.values else {}

        def remove(self, name: str) -> None:
            self.values.clear()

    sticky = clearing(Sticky, steps=[step("add a", add)])
    assert explore(sticky, "graph").verdict == "proven"


def test_the_lines_of_a_history_show_what_was_ended() -> None:
    report = empty_report(clearing(Table))
    assert report.lines((0, 1, 2, 0, 0)) == (
        "step_1 = add('a')",
        "step_2 = add('b')",
        "clear",
        "step_1 = add('a')",
        "step_1.close()",
    )


def test_operations_are_audited_for_the_number_of_steps_that_are_left() -> None:
    """A rare call with nothing active is listed, also after a clear."""
    system = RegistrySystem(clearing(Table))
    with closing(system):
        replay(system, (0, 1, 2, 0))
        performances = system._complete.audit.performances
    assert ("do", 0, 0) in performances
    assert ("release", 0, 0) in performances
    assert performances["do", 0, 0] == 2
