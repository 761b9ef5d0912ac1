"""Groups of steps that have nothing to do with each other, explored apart."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import pytest

from everyorder.harness import Scenario, steps, use
from everyorder.harness import explore as explore_scenario
from everyorder.harness.base.errors import BadScenario
from everyorder.harness.engine import (
    Budget,
    Exploration,
    Relations,
    StateForm,
    Symmetry,
    SystemBase,
    choose,
    explore,
    plan,
    replay,
)
from tests.coded import code
from tests.engine.related import digest
from tests.engine.toys import Toy


class Tables(SystemBase):
    """Steps put their number into the table of their group; uses ask for tables."""

    settled = False

    def __init__(self, steps: int, width: int, uses: int = 2) -> None:
        self.steps, self.width, self.uses = steps, width, uses
        self.reset()

    def reset(self) -> None:
        self.active: list[int] = []
        # What portraits tell, by place.
        self.places: dict[str, object] = {}

    def table(self, step: int) -> str:
        return f"registry.tables[{step // self.width}]"

    def do(self, step: int) -> object:
        self.active.append(step)
        self.write(step)
        return step

    def undo(self, step: int, handle: object) -> None:
        assert handle == step
        self.active.remove(step)
        self.write(step)

    def write(self, step: int) -> None:
        place = self.table(step)
        there = sorted(each for each in self.active if self.table(each) == place)
        self.places[place] = there
        if not there:
            del self.places[place]

    def use(self, use: int) -> Hashable:
        return str(self.places.get(self.table(use * self.width)))

    def observe(self) -> Hashable:
        return tuple(sorted(self.active)), str(self.places.get("registry.flaw"))

    def state(self, handles: Sequence[object]) -> Hashable:
        now = digest(repr((sorted(self.places.items()), list(handles))))
        return StateForm(now, now, objects=100)

    def portrait(self, handles: Sequence[object]) -> object:
        return {place: str(value) for place, value in self.places.items()}

    def paths(self, one: object, other: object) -> tuple[str, ...]:
        assert isinstance(one, dict)
        assert isinstance(other, dict)
        return tuple(
            f"{place}: {one.get(place)} / {other.get(place)}"
            for place in sorted({*one, *other})
            if one.get(place) != other.get(place)
        )


class Caching(Tables):
    """Answers are cached; a change of its table forgets one, mostly."""

    def forgets(self, step: int) -> bool:
        return True

    def use(self, use: int) -> Hashable:
        cache = f"registry.cache[{use}]"
        return self.places.setdefault(cache, super().use(use))

    def write(self, step: int) -> None:
        if self.forgets(step):
            for use in range(self.uses):
                self.places.pop(f"registry.cache[{use}]", None)
        super().write(step)


class Stale(Caching):
    """Removing step 2 while the three others of its group are active forgets not."""

    def forgets(self, step: int) -> bool:
        return step != 2 or not {0, 1, 3} <= set(self.active) or 2 in self.active


class Meeting(Tables):
    """Step 9 is another one if it comes while 1 is active: by what it writes."""

    def do(self, step: int) -> object:
        if step == 9 and 1 in self.active:
            self.places["registry.flaw"] = True
        return super().do(step)


class Agreeing(Tables):
    """The same from both sides, so that no order shows it."""

    def write(self, step: int) -> None:
        super().write(step)
        self.places.pop("registry.pair", None)
        if {1, 9} <= set(self.active):
            self.places["registry.pair"] = True


class Reading(Tables):
    """Step 8 reads the tables of others: a fault of three steps, if 5 is not there."""

    def do(self, step: int) -> object:
        if step == 8 and {0, 4} <= set(self.active) and 5 not in self.active:
            self.places["registry.flaw"] = True
        return super().do(step)


class Numbered(Tables):
    """Every change is counted."""

    def write(self, step: int) -> None:
        super().write(step)
        number = self.places.get("registry._number", 0)
        assert isinstance(number, int)
        self.places["registry._number"] = number + 1


class Falling(Tables):
    """Steps 1 and 9 exclude each other, and say which one was first."""

    def do(self, step: int) -> object:
        if {step, *self.active} >= {1, 9}:
            raise ValueError(min(self.active))
        return super().do(step)


class Recording(Tables):
    """Steps 1 and 9 leave a note that they are not undone by: a state of their own."""

    def write(self, step: int) -> None:
        super().write(step)
        if step in (1, 9):
            notes = self.places.get("registry.notes", 0)
            assert isinstance(notes, int)
            self.places["registry.notes"] = notes ^ 1


def kinds(found: Exploration) -> list[str]:
    return [violation.kind for violation in found.violations]


def apart(found: Exploration) -> list[str]:
    """The groups in words."""
    start = "groups: these are independent: "
    return [
        line.removeprefix(start) for line in found.assumptions if line.startswith(start)
    ]


@pytest.mark.parametrize("steps", [20, 30])
@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", [Tables, Caching])
def test_twenty_and_thirty_steps(
    kind: Callable[..., Tables], width: int, steps: int
) -> None:
    found = explore(kind(steps, width), "groups")
    assert (kinds(found), found.complete, found.holds) == ([], True, True)
    # Never a proof: what a step reads does not show.
    assert found.proven is False
    assert found.executed.transitions < 250_000
    assert found.executed.transitions > plan(steps, 2, "groups").size / 8
    assert found.guarantee == plan(steps, 2, "groups").guarantee
    whole = [range(at, min(at + width, steps)) for at in range(0, steps, width)]
    several = [" ".join(str(each + 1) for each in group) for group in whole]
    words = "; ".join(f"steps {each}" for each in several if " " in each)
    alone = sum(" " not in each for each in several)
    if alone == steps:
        words = f"{steps} steps, each by itself"
    elif alone:
        words += f"; {alone} others, each by itself"
    assert apart(found) == [words]
    # Every set of each group, with no other step active and with all of them.
    states = set(found.states)
    for group in whole:
        rest = set(range(steps)) - set(group)
        for bits in range(1 << len(group)):
            some = {step for at, step in enumerate(group) if bits >> at & 1}
            assert tuple(sorted(some)) in states
            assert tuple(sorted(some | rest)) in states


def test_a_stale_cache_within_a_group() -> None:
    found = explore(Stale(20, 4), "stale+groups")
    assert found.strategy == "stale+groups"
    (violation,) = found.violations
    assert violation.kind == "use"
    assert violation.shortest is not None
    # Four steps, a use, one of them undone, and the use again.
    assert set(violation.shortest) == {0, 1, 2, 3, 20}
    assert len(violation.shortest) == 7
    assert explore(Stale(20, 4), "stale").holds


def test_a_fault_between_two_groups() -> None:
    found = explore(Meeting(20, 4), "groups")
    (violation,) = found.violations
    # What was told first, when nobody had played the other order, has the flaw.
    assert (violation.kind, violation.shortest) == ("order", (9, 1))
    assert violation.paths == ("registry.flaw: True / None",)


def test_what_two_steps_do_together_joins_their_groups() -> None:
    found = explore(Agreeing(20, 4), "groups")
    assert (kinds(found), found.proven) == ([], False)
    assert apart(found) == [
        "steps 1 2 3 4 9 10 11 12; steps 5 6 7 8; steps 13 14 15 16; steps 17 18 19 20"
    ]


def test_what_one_step_refuses_the_other_joins_their_groups() -> None:
    found = explore(Falling(12, 2), "groups")
    assert kinds(found) == []
    assert apart(found) == [
        "steps 1 2 9 10; steps 3 4; steps 5 6; steps 7 8; steps 11 12"
    ]


def test_a_place_that_two_steps_write_joins_their_groups() -> None:
    found = explore(Recording(12, 2), "groups")
    assert kinds(found) == []
    assert apart(found) == [
        "steps 1 2 9 10; steps 3 4; steps 5 6; steps 7 8; steps 11 12"
    ]


def test_a_read_that_no_write_shows_is_never_proven_away() -> None:
    broken = Reading(20, 4)
    looks = [
        replay(broken, history).actions[-1].value for history in ((0, 4, 8), (8, 0, 4))
    ]
    assert looks[0] != looks[1]
    found = explore(broken, "groups")
    assert (kinds(found), found.complete, found.proven) == ([], True, False)
    (bound,) = (line for line in found.assumptions if "reads do not show" in line)
    assert bound == (
        "groups: effects between groups show in their writes, between two steps, or "
        "with all others active; reads do not show, so this is not a proof"
    )
    # Nor by what is played beside it, which finds the fault if it has three steps.
    assert kinds(explore(broken, "groups+histories:3")) == ["order"]


def test_what_all_steps_write_makes_one_group() -> None:
    found = explore(Numbered(20, 4), "stale+groups")
    assert (found.strategy, kinds(found)) == ("stale", [])
    assert found.skipped[-1] == (
        "groups: all steps are one group: all steps touch registry._number"
    )
    assert found.guarantee == plan(20, 2, "stale").guarantee
    alone = explore(Numbered(20, 4), "groups")
    assert alone.guarantee.startswith("groups: nothing beyond the histories")
    assert alone.open_strategies == ("groups",)
    assert apart(alone) == []


@pytest.mark.parametrize(
    "relations",
    [
        Relations(requires={8: frozenset({3})}),
        Relations(requires={8: frozenset({3})}, refusable=frozenset({0})),
        Relations(after={3: frozenset({8})}),
        Relations(pairs=frozenset({(3, 8)})),
    ],
)
def test_relations_join(relations: Relations) -> None:
    tables = Tables(12, 3)
    tables.relations = relations
    assert apart(explore(tables, "groups")) == [
        "steps 1 2 3; steps 4 5 6 7 8 9; steps 10 11 12"
    ]


def test_relations_may_join_all() -> None:
    tables = Tables(4, 1)
    tables.relations = Relations(requires={each: frozenset({0}) for each in (1, 2, 3)})
    assert explore(tables, "groups").skipped[-1] == (
        "groups: all steps are one group: their relations join them"
    )


def test_an_order_that_may_show_makes_one_group() -> None:
    class Ordered(Tables):
        def observe(self) -> Hashable:
            return tuple(self.active)

    found = explore(Ordered(4, 1), "groups", order_dependent=True)
    assert found.skipped[-1] == (
        "groups: all steps are one group: the order of all of them may show"
    )


def test_steps_that_stay() -> None:
    tables = Tables(12, 3)
    tables.relations = Relations(lasting=frozenset(range(12)))
    found = explore(tables, "groups")
    assert (kinds(found), found.complete) == ([], True)
    assert apart(found) == ["steps 1 2 3; steps 4 5 6; steps 7 8 9; steps 10 11 12"]


def test_a_group_that_does_not_close_is_told_and_claims_nothing() -> None:
    class Growing(Tables):
        def write(self, step: int) -> None:
            super().write(step)
            if self.table(step) == "registry.tables[1]":
                number = self.places.get("registry.tables[1].number", 0)
                assert isinstance(number, int)
                self.places["registry.tables[1].number"] = number + 1

    found = explore(Growing(8, 2), "groups")
    assert (kinds(found), apart(found)) == ([], [])
    assert found.guarantee.startswith("groups: nothing beyond the histories")
    told = [text for text in found.skipped if text.startswith("groups, ")]
    assert [text.partition(":")[0] for text in told] == [
        "groups, steps 3 4 with no other active",
        "groups, steps 3 4 with all others active",
    ]
    assert 'ignore=["registry.tables[1].number"]' in told[0]


def test_systems_that_it_is_not_for() -> None:
    with pytest.raises(BadScenario, check=code("NoFingerprint")):
        explore(Silent(3, 1), "groups")
    found = explore(Toy(3, printed=True), "groups")
    assert found.skipped == (
        "groups: only for systems with several states for one set of active steps; "
        "here each set has one, which walks compare",
    )
    assert not found.proven


class Silent(Tables):
    """Shows no state."""

    def state(self, handles: Sequence[object]) -> Hashable:
        return None


class Speechless(Tables):
    """Shows its state and no paths."""

    def portrait(self, handles: Sequence[object]) -> object:
        return None


def test_a_system_without_portraits() -> None:
    found = explore(Speechless(6, 2), "groups")
    assert found.skipped[-1] == (
        "groups: all steps are one group: the system does not show their writes"
    )


def test_states_that_are_too_large_to_compare_so_often() -> None:
    class Large(Tables):
        def state(self, handles: Sequence[object]) -> Hashable:
            form = super().state(handles)
            assert isinstance(form, StateForm)
            return form._replace(objects=1_000)

    budget = Budget(steps=100_000)
    found = explore(Large(30, 3), "stale+groups", budget=budget)
    assert found.strategy == "stale"
    assert found.skipped[-1] == (
        "groups: comparing 435 pairs of steps, at states of 1,000 objects, takes "
        "104,400 steps of the budget (--steps raises it)"
    )


def test_where_auto_takes_it() -> None:
    def chosen(steps: int, **more: Any) -> list[str]:
        options = {"printed": True, "settled": False, "ordered": False} | more
        parts, _ = choose(steps, 2, budget=Budget(steps=250_000), **options)
        return [part.name for part in parts]

    for number in (20, 30):
        assert "parts" in chosen(number)
        assert "parts" not in chosen(number, printed=False)
        assert "parts" not in chosen(number, settled=True)
    # There the proof closes.
    assert "parts" not in chosen(8)


@pytest.mark.slow
def test_auto_explores_groups() -> None:
    found = explore(Stale(20, 4))
    assert kinds(found) == ["use"]
    sound = explore(Caching(20, 4))
    assert (kinds(sound), sound.complete, sound.proven) == ([], True, False)
    assert "groups" in sound.strategy.split("+")
    assert sound.executed.transitions < 250_000
    assert "groups: every group of steps that write nothing in common" in (
        sound.guarantee
    )


class Shelves:
    """Things on shelves, and how many there were."""

    def __init__(self) -> None:
        self.shelves: dict[int, list[int]] = {number: [] for number in range(10)}
        self.found: dict[int, int] = {}
        self.version = 0

    def put(self, thing: int) -> Callable[[], None]:
        shelf = self.shelves[thing // 2]
        shelf.append(thing)
        self.found.clear()

        def take() -> None:
            shelf.remove(thing)
            self.found.clear()

        return take

    def put_and_count(self, thing: int) -> Callable[[], None]:
        self.version += 1
        return self.put(thing)

    def most(self) -> int:
        if 0 not in self.found:
            self.found[0] = max(map(len, self.shelves.values()))
        return self.found[0]

    def text(self) -> str:
        return str([sorted(shelf) for shelf in self.shelves.values()])


def shelved(put: Callable[[Any, int], object]) -> Scenario:
    return Scenario(
        *steps("put", range(20), put),
        uses=[use("most", Shelves.most)],
        create=Shelves,
        observe=Shelves.text,
    )


@pytest.mark.slow
def test_a_registry_of_python_objects() -> None:
    report = explore_scenario(shelved(Shelves.put), "groups")
    found = report.exploration
    assert report.verdict == "holds"
    assert apart(found) == ["; ".join(f"steps {at} {at + 1}" for at in range(1, 20, 2))]
    one = explore_scenario(shelved(Shelves.put_and_count), "groups").exploration
    assert one.skipped[-1] == (
        "groups: all steps are one group: all steps touch registry.version"
    )


def test_symmetric_steps_within_a_group() -> None:
    whole = explore(Caching(20, 4), "groups")
    tables = Caching(20, 4)
    tables.relations = Relations(
        symmetric=(Symmetry("put", {step: (str(step),) for step in range(4)}),)
    )
    found = explore(tables, "groups")
    assert (kinds(found), found.complete) == ([], True)
    assert apart(found) == apart(whole)
    # Which of the four are active does not count, beside all others.
    rest = tuple(range(4, 20))
    for members, met in (((0, 1), True), ((1, 3), False), ((0, 1, 3), False)):
        assert (*members, *rest) in whole.states
        assert ((*members, *rest) in found.states) == met
    (caveat,) = found.caveats
    assert caveat.text.startswith("put(0), ..., put(3) are interchangeable")
