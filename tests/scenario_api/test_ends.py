"""`ends=`: an operation that ends others, explored like any step."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

from everyorder import explore
from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.engine import replay
from everyorder.harness.engine.protocol import Relations
from everyorder.harness.exploration.explore_scenario import closing, system_of
from everyorder.harness.processes.fork import CAN_FORK
from everyorder.harness.scenario import Scenario, Step, step, steps, use
from tests.scenario_api.ending_cases import ALL, CASES, Case
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
            "ends of use('clear', ...)=3; expected a step, its text, or several of "
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
    assert explore(of).verdict == "proven"


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
    assert explore(isolated, "graph").verdict == "proven"
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
    assert explore(of).verdict == "proven"

    class Sticky(Table):
        def clear(self) -> None:
            self.values = {"b": "new"} if "a" in self.values else {}

        def remove(self, name: str) -> None:
            self.values.clear()

    assert explore(clearing(Sticky, steps=[step("add a", add)])).verdict == "proven"


# What is explored.


def truth_of(of: Case, twin: str) -> int | None:
    return of.truth(of.right if twin == "right" else of.faulty[twin], 6)


TWINS = [(name, twin) for name, of in CASES.items() for twin in ("right", *of.faulty)]


def test_the_table_knows_its_truth() -> None:
    assert len(CASES) >= 12
    for name, twin in TWINS:
        assert (truth_of(CASES[name], twin) is None) == (twin == "right"), (name, twin)


def some_now(each: tuple[str, str], of: int) -> Any:
    """A row of the table; `make test` explores one of so many."""
    slow = TWINS.index(each) % of != 0
    return pytest.param(*each, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize(("name", "twin"), [some_now(each, 3) for each in TWINS])
def test_each_registry_is_proven_or_refuted_by_a_shortest_history(
    name: str, twin: str
) -> None:
    of = CASES[name]
    create = of.right if twin == "right" else of.faulty[twin]
    report = explore(of.scenario(create))
    shortest = truth_of(of, twin)
    if shortest is None:
        assert report.verdict == "proven"
        assert (
            "graph: undo handles of steps that an operation ended are dropped, and "
            "never closed" in report.exploration.assumptions
        )
        return
    assert report.exploration.violations
    for violation in report.exploration.violations:
        assert violation.confirmed
        assert violation.proven_shortest
        assert len(violation.shown) >= shortest
        lines = of.lines()
        texts = tuple(lines[line] for line in report.violation_lines(violation))
        assert contradicts(of, create, texts)
    assert len(report.exploration.violations[0].shown) == shortest


def contradicts(of: Case, create: Any, history: tuple[str, ...]) -> bool:
    """Whether the end of a history differs from that of another as short as it."""
    results = [*of.played(create, history)]
    ends = dict(results[-2 if of.observe else -1 :])
    return any(
        ends.get(place, result) != result
        for length in range(len(history) + 1)
        for other in product((*of.steps, *of.uses), repeat=length)
        for place, result in of.played(create, other)
    )


STRATEGIES = (
    *("graph", "walk:0", "walk:1", "stale", "histories:3", "arrangements", "kA:1"),
    *("sca:2", "random:1", "groups", "full"),
)


@pytest.mark.parametrize(
    ("strategy", "rows"),
    [
        ("walk:1", TWINS[::4]),
        ("histories:3", TWINS[1::4]),
        *(pytest.param(each, TWINS, marks=pytest.mark.slow) for each in STRATEGIES),
    ],
)
def test_no_strategy_is_wrong(strategy: str, rows: list[tuple[str, str]]) -> None:
    refuted = set()
    for name, twin in rows:
        of = CASES[name]
        create = of.right if twin == "right" else of.faulty[twin]
        report = explore(of.scenario(create), strategy)
        found = bool(report.exploration.violations)
        assert not (twin == "right" and found), name
        assert not (twin != "right" and report.verdict == "proven"), (name, twin)
        if strategy == "graph" and twin == "right":
            assert report.verdict == "proven", name
        if strategy == "histories:3":
            shortest = truth_of(of, twin)
            assert found == (shortest is not None and shortest <= 3), (name, twin)
        if found:
            refuted.add((name, twin))
    assert len(refuted) >= len(rows) // 4


@pytest.mark.parametrize("strategy", ["graph", "walk:0", "histories:4", "arrangements"])
def test_any_order_may_show_where_it_is_declared(strategy: str) -> None:
    class Newest(Table):
        def shown(self) -> str:
            return " ".join(self.values)

    class Reversed(Newest):
        """After it was cleared, it shows the oldest first."""

        cleared = False

        def clear(self) -> None:
            self.cleared = self.cleared or "a" in self.values
            super().clear()

        def shown(self) -> str:
            values = [*self.values]
            return " ".join(values[::-1] if self.cleared else values)

    def of(create: type[Table]) -> Scenario:
        return clearing(create, order_dependent="the newest comes last")

    assert explore(of(Newest), strategy).passed
    found = explore(of(Reversed), strategy).exploration.violations
    if strategy != "arrangements":  # it plays nothing after the operation
        assert {each.kind for each in found} == {"order"}
    if strategy == "graph":
        assert found[0].shown in [(0, 2, 0, 1), (0, 2, 1, 0)]
        assert explore(clearing(Newest, ordered=[("add('a')", "add('b')")])).passed


def test_a_use_that_ends_steps_and_changes_nothing_is_vacuous() -> None:
    class Deaf(Table):
        def shown(self) -> str:
            return ""

    report = explore(clearing(Deaf))
    assert report.verdict == "vacuous"
    assert (2, "changes nothing that is looked at or asked") in {
        (each.operation, each.reason) for each in report.exploration.vacuous
    }


def test_a_typing_error_in_it_is_called_a_typo() -> None:
    of = Scenario(
        *names(Table),
        uses=[use("clear", lambda table: table.claer(), ends=ALL)],
        create=Table,
        observe=Table.shown,
    )
    assert explore(of).verdict == "typo"


def test_symmetric_steps_are_ended_alike() -> None:
    options = names(Table, *"abcd", symmetric=True)
    report = explore(clearing(Table, steps=options))
    assert report.verdict == "proven"
    assert any("interchangeable" in each for each in report.assumes)
    one = Scenario(
        *options,
        uses=[use("drop a", lambda r: r.values.pop("a", None), ends="add('a')")],
        create=Table,
        observe=Table.shown,
    )
    with pytest.raises(Exception, match="their relations to other steps differ"):
        explore(one)


def test_rows_of_steps_leave_out_what_ends_them() -> None:
    report = explore(clearing(Table), "sca:2")
    assert report.exploration.skipped == (
        "sca:2: a use that ends steps cannot be a part of its rows",
    )


def test_steps_that_are_ended_together_are_one_group() -> None:
    report = explore(clearing(Table, steps=names(Table, *"abc")), "groups")
    assert report.exploration.skipped == (
        "groups: all steps are one group: their relations join them",
    )
