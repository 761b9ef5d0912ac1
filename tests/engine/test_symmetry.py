"""Steps that are told to be exchangeable: checked, used, and no more than assumed."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from random import Random
from typing import Any

import pytest

from everyorder.harness import Scenario, step, steps, use
from everyorder.harness import explore as explore_scenario
from everyorder.harness.base.errors import BadScenario, NotAScenario
from everyorder.harness.engine import Exploration, Relations, State, Symmetry, explore
from tests.coded import code
from tests.engine.test_states import (
    ByIndex,
    Caching,
    Counting,
    FirstWins,
    Popping,
    Registry,
    Stale,
)


def told(*classes: State, name: str = "add", **more: Any) -> Relations:
    """Relations that tell these classes of steps, of the number as parameter."""
    return Relations(
        symmetric=tuple(
            Symmetry(name, {step: (str(step),) * 2 for step in members})
            for members in classes
        ),
        **more,
    )


def symmetric(registry: Registry, *classes: State, **more: Any) -> Registry:
    """The registry, with uses that speak of no step."""
    registry.relations = told(*classes, **more)
    return registry


class Asked(Caching):
    """A use tells how many there are, from a cache."""

    def use(self, use: int) -> Hashable:
        if use not in self.cache:
            self.cache[use] = "x" * len(self.items)
        return self.cache[use]


class AskedStale(Stale):
    """The same with a cache that removals do not forget."""

    use = Asked.use


class PoppingOne(Popping):
    """The same, with a look that nobody takes for a step."""

    def observe(self) -> Hashable:
        return "x" * len(self.items)


class Favoured(Registry):
    """Step 2 is told apart by what a look shows."""

    def observe(self) -> Hashable:
        return super().observe(), "first" if 2 in self.items else ""


class FavouredBeside(Registry):
    """Step 2 is told apart only beside step 0."""

    def observe(self) -> Hashable:
        return super().observe(), "both" if {0, 2} <= set(self.items) else ""


class FavouredAgain(Registry):
    """Undoing step 2 for the first time leaves something."""

    def undo(self, step: int, handle: object) -> None:
        super().undo(step, handle)
        if step == 2:
            self.cache[0] = "seen"

    def observe(self) -> Hashable:
        return super().observe(), str(self.cache)


class FavouredAlone(Registry):
    """Step 1 refuses to come fifth: no history of the check is so long."""

    def do(self, step: int) -> object:
        if step == 1 and len(self.items) == 4:
            raise ValueError("full")
        return super().do(step)


class Drawn(Registry):
    """Rules drawn by a seed that know places and numbers of items, but no item.

    A mark changes by how many items there are, and by which one in order goes: a
    fault of many steps, mostly, that no history of the check shows.
    """

    def __init__(self, seed: int, *, told_order: bool) -> None:
        draw = Random(seed)
        chance = draw.choice([0.1, 0.3, 0.6])
        self.told_order = told_order
        self.rules = {
            (deed, number, place, mark): draw.randrange(3)
            for deed in ("do", "undo", "use")
            for number in range(3, 5)
            for place in range(4)
            for mark in range(3)
            if draw.random() < chance
        }
        self.shown = [draw.choice("xy") for _ in range(3)]
        super().__init__(4, 1)

    def reset(self) -> None:
        super().reset()
        self.mark = 0

    def change(self, deed: str, place: int) -> None:
        now = (deed, len(self.items), place, self.mark)
        self.mark = self.rules.get(now, self.mark)

    def do(self, step: int) -> object:
        self.change("do", 0)
        return super().do(step)

    def undo(self, step: int, handle: object) -> None:
        self.change("undo", self.items.index(step))
        super().undo(step, handle)

    def use(self, use: int) -> Hashable:
        self.change("use", 0)
        return self.shown[self.mark]

    def observe(self) -> Hashable:
        return super().observe(), self.shown[self.mark]

    def now(self) -> tuple[object, ...]:
        return self.mark, tuple(self.items)

    def blind(self) -> tuple[object, ...]:
        return self.now() if self.told_order else (self.mark, sorted(self.items))


def kinds(found: Exploration) -> list[str]:
    return [violation.kind for violation in found.violations]


def states(found: Exploration) -> int:
    assert found.closure is not None
    return found.closure.states


@pytest.mark.parametrize(
    ("steps", "classes", "expected"),
    [
        (10, [tuple(range(10))], 11),
        (11, [tuple(range(6)), tuple(range(6, 11))], 7 * 6),
        (10, [tuple(range(0, 10, 2))], 6 * 32),
        (9, [(3, 7), (1, 8)], 3 * 3 * 32),
    ],
)
def test_sets_become_numbers(
    steps: int, classes: Sequence[State], expected: int
) -> None:
    found = explore(symmetric(Registry(steps), *classes), "graph")
    assert (found.proven, kinds(found)) == (True, [])
    assert states(found) == expected
    # Nobody compared what follows from the other orders of a set.
    assert found.closure is not None
    assert found.closure.unread == ("now",)
    caveats = [each.text for each in found.caveats]
    assert [each.kind for each in found.caveats] == ["assumed"] * len(classes)
    for members, text in zip(classes, caveats, strict=True):
        first, last = f"add({members[0]})", f"add({members[-1]})"
        names = f"{first}, {last}" if len(members) == 2 else f"{first}, ..., {last}"
        start = f"{names} are interchangeable, as declared; this was checked by "
        assert text.startswith(start)
        number = text.removeprefix(start).removesuffix(" histories")
        assert int(number.replace(",", "")) > 100


def test_caches_are_explored_with_them() -> None:
    found = explore(symmetric(Asked(10, 2), tuple(range(10))), "graph")
    assert (found.proven, kinds(found)) == (True, [])
    assert states(found) == 11 * 4


def test_nothing_is_assumed_where_nothing_is_told() -> None:
    found = explore(Registry(4), "graph")
    assert found.caveats == ()
    assert states(found) == 65
    # Told, but not used: each history is played as it is.
    unused = explore(symmetric(Registry(4), (0, 1, 2, 3)), "histories:2")
    assert (kinds(unused), unused.caveats) == ([], ())
    with pytest.raises(BadScenario, check=code("NotSymmetric")):
        explore(symmetric(Favoured(4), (0, 1, 2, 3)), "histories:2")


@pytest.mark.parametrize("steps", [3, 4])
@pytest.mark.parametrize("ops", [0, 1])
@pytest.mark.parametrize(
    "kind",
    [Registry, Asked, AskedStale, ByIndex, Counting, FirstWins, PoppingOne],
)
def test_what_is_found_is_found_as_well(
    kind: Callable[[int, int], Registry], ops: int, steps: int
) -> None:
    whole = kind(steps, ops)
    if kind not in (Asked, AskedStale):
        # Its uses ask for one of the steps each.
        whole.uses = 0
    plain = explore(whole, "graph")
    found = explore(symmetric(whole, tuple(range(steps))), "graph")
    assert kinds(found) == kinds(plain)
    assert found.proven == plain.proven
    if found.violations:
        assert found.violations[0].shortest is not None
        assert plain.violations[0].shortest is not None
        assert len(found.violations[0].shortest) == len(plain.violations[0].shortest)


@pytest.mark.parametrize("told_order", [True, False])
def test_drawn_registries(told_order: bool) -> None:
    verdicts = set()
    for seed in range(10):
        plain = explore(Drawn(seed, told_order=told_order), "graph")
        claimed = symmetric(Drawn(seed, told_order=told_order), tuple(range(4)))
        found = explore(claimed, "graph")
        assert bool(kinds(found)) == bool(kinds(plain)), seed
        assert found.proven == plain.proven, seed
        verdicts.add(found.proven)
    assert verdicts == {True, False}


@pytest.mark.parametrize("kind", [AskedStale, ByIndex])
def test_faults_of_many_steps(kind: Callable[[int, int], Registry]) -> None:
    registry = symmetric(kind(12, 1), tuple(range(12)))
    if kind is ByIndex:
        registry.uses = 0
    (violation,) = explore(registry, "graph").violations
    assert violation.shortest is not None
    assert len(violation.shortest) == 4


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (
            Favoured,
            "add(0), observe() gives int 0; add(2), observe() gives int 2 / first",
        ),
        (
            FavouredBeside,
            "add(0), add(2), observe() gives int 0 / int 2 / both; add(1), add(2), "
            "observe() gives int 1 / int 2",
        ),
    ],
)
def test_a_claim_that_is_refuted(kind: Callable[[int], Registry], reason: str) -> None:
    with pytest.raises(BadScenario, check=code("NotSymmetric")) as caught:
        explore(symmetric(kind(4), (0, 1, 2, 3)), "graph")
    error = caught.value
    assert error.one == "add(0)"
    text = str(error)
    assert text.startswith(
        f"add(0) and {error.other} are declared symmetric, but are not: "
    )
    assert error.reason == reason


def test_a_parameter_that_is_seen_as_something_else() -> None:
    # One thing, and the thing of number one.
    with pytest.raises(BadScenario, check=code("NotSymmetric")) as caught:
        explore(symmetric(Popping(4), (0, 1, 2, 3)), "graph")
    assert caught.value.reason == (
        "1 occurs without add(1), so its meaning is ambiguous (add(0), "
        "observe() gives int 1)"
    )


def test_a_fault_is_more_than_a_claim() -> None:
    # What an undo leaves is an order dependence, whoever is like whom.
    found = explore(symmetric(FavouredAgain(4), (0, 1, 2, 3)), "graph")
    assert kinds(found) == ["order"]


def test_what_no_history_of_the_check_shows_is_assumed() -> None:
    registry = FavouredAlone(6)
    assert kinds(explore(registry, "graph")) == []
    found = explore(symmetric(registry, tuple(range(6))), "graph")
    # A proof of nothing but what stands beside it.
    assert found.proven
    (assumed,) = found.caveats
    assert assumed.kind == "assumed"
    assert assumed.text.startswith("add(0), ..., add(5) can stand for each other")


@pytest.mark.parametrize(
    "relations",
    [
        {"requires": {1: frozenset({3})}},
        {"after": {3: frozenset({0})}},
        {"lasting": frozenset({2})},
        {"refusable": frozenset({0, 1})},
        {"declared": frozenset({0})},
        {"pairs": frozenset({(0, 3)})},
    ],
)
def test_relations_that_tell_them_apart(relations: Mapping[str, Any]) -> None:
    with pytest.raises(BadScenario, check=code("NotSymmetric")) as caught:
        explore(symmetric(Registry(4), (0, 1, 2), **relations), "graph")
    assert caught.value.reason == "their relations to other steps differ"


def test_relations_that_do_not() -> None:
    alike = {
        "requires": {step: frozenset({3}) for step in range(3)},
        "declared": frozenset({0, 1, 2}),
    }
    found = explore(symmetric(Registry(4), (0, 1, 2), **alike), "graph")
    assert found.proven


class Bag:
    """Things by name; what it holds most of is asked for."""

    def __init__(self) -> None:
        self.things: dict[str, int] = {}
        self.most: int | None = None

    def put(self, thing: str) -> Callable[[], None]:
        self.things[thing] = 1
        self.most = None

        def take() -> None:
            del self.things[thing]
            self.most = None

        return take

    def count(self) -> int:
        if self.most is None:
            self.most = len(self.things)
        return self.most

    def text(self) -> str:
        return "\n".join(f"{name}: {self.things[name]}" for name in sorted(self.things))


def bags(*named: str, put: Callable[[Any, str], object] = Bag.put) -> Scenario:
    return Scenario(
        *steps("put", named, put, symmetric=True),
        step("seal", lambda bag: bag.put("the seal")),
        uses=[use("count", Bag.count)],
        create=Bag,
        observe=Bag.text,
    )


@pytest.mark.slow
def test_a_registry_of_python_objects() -> None:
    report = explore_scenario(bags(*"abcdefgh"), "graph")
    assert report.verdict == "proven"
    # With the seal and without, the answer known or not.
    assert states(report.exploration) == 9 * 2 * 2
    order, claim = report.assumes
    assert "things is never read" in order
    assert claim.startswith("put('a'), ..., put('h') can stand for each other, as told")


def test_a_registry_with_a_favourite() -> None:
    def put(bag: Bag, thing: str) -> Callable[[], None]:
        take = bag.put(thing)
        if thing == "c":
            bag.things[thing] = 2
        return take

    with pytest.raises(BadScenario, check=code("NotSymmetric")) as caught:
        explore_scenario(bags(*"abcd", put=put), "graph")
    assert str(caught.value) == (
        "put('a') and put('c') are declared symmetric, but are not: put('a'), "
        "observe() gives state / a: 1; put('c'), observe() gives state / c: 2. Remove "
        "symmetric=True, or make them equivalent; a use that asks for only one of them "
        "also distinguishes them, and so does a value that is read as something else."
    )


@pytest.mark.parametrize("named", [("a", "a b"), ("", "b"), ("a", "b", "b-a")])
def test_parameters_that_nobody_can_tell_apart(named: Sequence[str]) -> None:
    with pytest.raises(NotAScenario) as caught:
        bags(*named)
    assert "with symmetric=True, whose parameter occurs in that of another step" in str(
        caught.value
    )


def test_parameters_as_they_are_written() -> None:
    made = steps("put", ["a", 1, Bag], Bag.put, symmetric=True)
    assert [each.parameter_texts for each in made] == [
        ("'a'", "a"),
        ("1", "1"),
        ("Bag",) * 2,
    ]
    assert [each.symmetry for each in made] == ["put"] * 3
