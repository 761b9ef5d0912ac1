"""Registries that forget several registrations at once: what is proven and refuted."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from everyorder import explore
from everyorder.harness.scenario import Scenario, steps, use
from tests.scenario_api.ending_cases import ALL, CASES, Case
from tests.scenario_api.ending_registries import Table
from tests.scenario_api.test_ends import clearing, names


def truth_of(of: Case, twin: str) -> int | None:
    return of.truth(of.right if twin == "right" else of.faulty[twin], 6)


TWINS = [(name, twin) for name, of in CASES.items() for twin in ("right", *of.faulty)]


def test_the_table_knows_its_truth() -> None:
    assert len(CASES) >= 12
    for name, twin in TWINS:
        assert (truth_of(CASES[name], twin) is None) == (twin == "right"), (name, twin)


def some_now(each: tuple[str, str], of: int) -> Any:
    """A row of the table: `make test` explores one of so many, `test-long` a third."""
    place = TWINS.index(each)
    often = pytest.mark.slow if place % 3 == 0 else pytest.mark.nightly
    return pytest.param(*each, marks=[often] if place % of else [])


@pytest.mark.parametrize(("name", "twin"), [some_now(each, 6) for each in TWINS])
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
        ("walk:1", TWINS[::9]),
        ("histories:3", TWINS[1::9]),
        *(
            pytest.param(each, TWINS[::11], marks=pytest.mark.slow)
            for each in STRATEGIES
        ),
        *(pytest.param(each, TWINS, marks=pytest.mark.nightly) for each in STRATEGIES),
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
    # Some strategies refute few of them.
    assert rows != TWINS or len(refuted) >= len(TWINS) // 4


@pytest.mark.parametrize(
    "strategy",
    [
        *("graph", "walk:0"),
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in ("histories:4", "arrangements")
        ),
    ],
)
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
    options = names(Table, *"abc", symmetric=True)
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


class Cells:
    """Names that share nothing; each can be closed by a use of its own."""

    def __init__(self) -> None:
        self.a = self.b = self.c = 0

    def set(self, name: str) -> Callable[[], None]:
        setattr(self, name, 1)
        return lambda: setattr(self, name, 0)

    def close(self, name: str) -> None:
        setattr(self, name, 0)

    def get(self, name: str) -> int:
        return int(getattr(self, name))


class ClosesAnother(Cells):
    def close(self, name: str) -> None:
        super().close(name)
        if name == "a" and self.c:
            self.b = 0


@pytest.mark.parametrize("create", [Cells, ClosesAnother])
def test_groups_are_explored_with_what_ends_their_steps(create: type[Cells]) -> None:
    def asked(name: str) -> list[Any]:
        close = use(f"close {name}", lambda r: r.close(name), ends=f"set('{name}')")
        return [use(f"get {name}", lambda r: r.get(name)), close]

    of = Scenario(
        *steps("set", "abc", lambda r, n: r.set(n)),
        uses=[each for name in "abc" for each in asked(name)],
        create=create,
    )
    report = explore(of, "groups")
    if create is Cells:
        assert report.verdict == "holds"
        assert report.exploration.assumptions[-1] == (
            "groups: these are independent: 3 steps, each by itself"
        )
    else:
        (violation, *_) = report.exploration.violations
        assert sorted(violation.shown[:2]) == [1, 2]
        assert report.violation_lines(violation)[2:] == ("close a", "get b")


def test_an_answer_of_what_ends_steps_that_varies_is_named_so() -> None:
    class Told(Table):
        """What `clear` answers depends on whether it cleared something before."""

        before = "nothing"

        def clear(self) -> Any:
            answer = self.before if self.values else "empty"
            self.before = "something" if self.values else self.before
            super().clear()
            return answer

    report = explore(clearing(Told), "histories:4")
    (violation, *_) = report.exploration.violations
    assert violation.kind == "use"
    assert (violation.expected, violation.found) == ("nothing", "something")
    assert violation.shown == (0, 2, 0, 2)
