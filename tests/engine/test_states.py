"""Exploring complete states: registries whose whole state is one value.

Each is a small machine in Python: `now` is everything there is, undo handles excepted,
which are values as well.
"""

from collections.abc import Hashable, Sequence
from hashlib import blake2b
from itertools import count

import pytest

from everyorder.harness.engine import Exploration, StateForm, SystemBase, explore
from tests.engine.toys import Toy


def digest(value: object) -> bytes:
    return blake2b(repr(value).encode(), digest_size=16).digest()


class Registry(SystemBase):
    """Items in a list; a handle is what the step's undo takes out."""

    settled = False

    def __init__(self, steps: int = 3, uses: int = 0) -> None:
        self.steps = steps
        self.uses = uses
        self.reset()

    def reset(self) -> None:
        self.items: list[int] = []
        self.cache: dict[int, object] = {}

    def do(self, step: int) -> object:
        self.items.append(step)
        return [step]

    def undo(self, step: int, handle: object) -> None:
        assert isinstance(handle, list)
        self.items.remove(handle[0])

    def use(self, use: int) -> Hashable:
        return use in self.items

    def observe(self) -> Hashable:
        return tuple(sorted(self.items))

    def now(self) -> tuple[object, ...]:
        return sorted(self.cache.items()), tuple(self.items)

    def blind(self) -> tuple[object, ...]:
        return sorted(self.cache.items()), tuple(sorted(self.items))

    def state(self, handles: Sequence[object]) -> Hashable:
        shown = [tuple(h) if isinstance(h, list) else h for h in handles]
        return StateForm(
            digest((self.blind(), shown)), digest((self.now(), shown)), False, 10
        )

    def portrait(self, handles: Sequence[object]) -> object:
        return self.now(), [list(h) if isinstance(h, list) else h for h in handles]

    def paths(self, one: object, other: object) -> tuple[str, ...]:
        return () if one == other else (f"now: {one} / {other}",)


class Caching(Registry):
    """A use fills a cache that every registration forgets: right."""

    def use(self, use: int) -> Hashable:
        if use not in self.cache:
            self.cache[use] = use in self.items
        return self.cache[use]

    def do(self, step: int) -> object:
        self.cache.clear()
        return super().do(step)

    def undo(self, step: int, handle: object) -> None:
        self.cache.clear()
        super().undo(step, handle)


class Stale(Caching):
    """The cache is not forgotten on removal."""

    def undo(self, step: int, handle: object) -> None:
        Registry.undo(self, step, handle)


class ByIndex(Registry):
    """The undo takes out what stands at the index of its day: the fault of handles."""

    def do(self, step: int) -> object:
        self.items.append(step)
        return [len(self.items) - 1]

    def undo(self, step: int, handle: object) -> None:
        assert isinstance(handle, list)
        self.items[handle[0] : handle[0] + 1] = []


class Counting(Registry):
    """A number of registrations that nobody asks for."""

    def reset(self) -> None:
        super().reset()
        self.number = 0

    def do(self, step: int) -> object:
        self.number += 1
        return super().do(step)

    def now(self) -> tuple[object, ...]:
        return (*super().now(), self.number)

    def blind(self) -> tuple[object, ...]:
        return (*super().blind(), self.number)


class Hiding(Registry):
    """From the third removal on it shows more, and its state does not tell."""

    def reset(self) -> None:
        super().reset()
        self.removed = 0

    def undo(self, step: int, handle: object) -> None:
        self.removed += 1
        super().undo(step, handle)

    def observe(self) -> Hashable:
        return super().observe(), self.removed > 2


class FirstWins(Registry):
    """What a look shows is the order, which the blind form does not see."""

    def observe(self) -> Hashable:
        return tuple(self.items)


class Popping(Registry):
    """An undo takes out the newest, whoever it is of; equal states but for order."""

    def undo(self, step: int, handle: object) -> None:
        self.items.pop()

    def observe(self) -> Hashable:
        return len(self.items)


class Unfresh(Registry):
    """What counts the registrations of a process is never made anew."""

    made = count()

    def __init__(self) -> None:
        self.number = 0
        super().__init__()

    def do(self, step: int) -> object:
        self.number = next(self.made)
        return super().do(step)

    def now(self) -> tuple[object, ...]:
        return (*super().now(), self.number)


def kinds(found: Exploration) -> list[str]:
    return [violation.kind for violation in found.violations]


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_a_sound_registry_is_proven(steps: int) -> None:
    found = explore(Registry(steps, 1), "graph")
    assert (found.proven, kinds(found), found.complete) == (True, [], True)
    closure = found.closure
    assert closure is not None
    # Every order of every set, as far as orders are explored; all ops at each.
    arrangements = {1: 2, 2: 5, 3: 16, 4: 65}[steps]
    assert closure.states == arrangements
    assert closure.transitions == arrangements * (steps + 2)
    assert (closure.histories, closure.closed, closure.unread) == (4, True, ())


def test_the_order_of_dicts_is_assumed_where_telling_it_is_dear() -> None:
    found = explore(Registry(6, 1), "graph")
    assert found.proven
    assert found.closure is not None
    assert found.closure.states == 64
    assert found.closure.unread == ("now",)
    assert "graph: the order of now is never read" in found.assumptions


def test_caches_may_fill_and_empty() -> None:
    found = explore(Caching(3, 2), "graph")
    assert (found.proven, kinds(found)) == (True, [])
    assert found.closure is not None
    assert found.closure.states == 16 * 4


def test_a_stale_cache() -> None:
    found = explore(Stale(3, 1), "graph")
    (violation,) = found.violations
    assert (violation.kind, violation.shortest) == ("use", (0, 3, 0, 3))
    assert violation.proven_shortest
    assert violation.replayed == 20
    assert violation.paths == (
        "now: (([], ()), [None, None, None]) / (([(0, True)], ()), [None, None, None])",
    )


def test_what_is_refuted_is_not_searched_for_the_order_of_dicts() -> None:
    sound, stale = (
        explore(kind(3, 1), "graph", stop_after=8) for kind in (Caching, Stale)
    )
    assert sound.closure is not None
    assert sound.closure.unread == ()
    assert stale.closure is not None
    assert (stale.closure.closed, kinds(stale)[0]) == (True, "use")
    # Its orders are apart in the exact search only.
    assert stale.closure.states < sound.closure.states
    assert stale.closure.unread == ("now",)


def test_a_fault_in_the_handle() -> None:
    found = explore(ByIndex(3), "graph")
    (violation,) = found.violations
    assert violation.kind == "order"
    assert violation.shortest is not None
    assert len(violation.shortest) == 4
    assert violation.proven_shortest


def test_a_state_that_grows_is_named() -> None:
    found = explore(Counting(2), "graph+walk:1")
    assert (found.proven, kinds(found), found.complete) == (False, [], True)
    assert found.guarantee.startswith("walk:1: ")
    (told,) = found.skipped
    assert told.startswith("graph: the states did not close: ")
    assert "; two of them differ in: now: " in told


def test_hidden_state_is_a_verdict_of_its_own() -> None:
    (violation,) = explore(Hiding(3), "graph").violations
    assert violation.kind == "hidden"
    # The look after each of the two tells them apart.
    assert (violation.shortest, violation.other) == ((1, 2, 0, 0, 1, 2), ())
    assert (violation.expected, violation.found) == (((), False), ((), True))


def test_a_look_at_the_order_is_an_order_dependence() -> None:
    (violation,) = explore(FirstWins(3), "graph").violations
    assert (violation.kind, violation.shortest) == ("order", (2, 0))


def test_order_that_decides_the_next_state_is_told_apart() -> None:
    found = explore(Popping(3), "graph")
    assert (found.proven, kinds(found)) == (True, [])
    assert found.closure is not None
    assert found.closure.order_read


class Leaving(Toy):
    """What is active in this order when the system is let go of leaves something."""

    settled = False

    def __init__(self, steps: int, where: tuple[int, ...]) -> None:
        self.where = where
        self.left = False
        super().__init__(steps, printed=True)

    def reset(self) -> None:
        self.left = self.left or tuple(self.order) == self.where
        super().reset()

    def state(self, handles: Sequence[object] = ()) -> Hashable | None:
        exact, blind = ((each, self.left) for each in (self.order, sorted(self.order)))
        return StateForm(digest(exact), digest(blind), objects=10)


@pytest.mark.parametrize("where", [(0, 1), (2, 0), (1, 0, 2), (2, 1, 0)])
def test_a_registry_that_is_not_fresh_after_a_state(where: tuple[int, ...]) -> None:
    """It was proven: systems were let go of after other states only."""
    found = explore(Leaving(3, where))
    assert (kinds(found), found.proven) == (["not fresh"], False)


def test_states_after_which_nobody_looked_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("everyorder.harness.engine.reference.MOST_RECHECKED", 5)
    found = explore(Leaving(3, (9,)))
    assert found.proven
    assert [each.text for each in found.caveats] == [
        "create makes a fresh system after 11 states, as it is after 5"
    ]


def test_a_registry_that_is_not_fresh() -> None:
    (violation,) = explore(Unfresh(), "graph").violations
    assert (violation.kind, violation.history) == ("not fresh", ())
    (path,) = violation.paths
    assert path.startswith("now: ")


def test_an_undo_that_raises_names_its_handle() -> None:
    class Strict(ByIndex):
        def undo(self, step: int, handle: object) -> None:
            assert isinstance(handle, list)
            self.items.pop(handle[0])

    (violation,) = explore(Strict(2), "graph").violations
    assert (violation.kind, violation.shortest) == ("undo", (0, 1, 0, 1))
    (path,) = violation.paths
    assert path.endswith("([], (1,)), [None, [0]]) / (([], (1,)), [None, [1]])")
