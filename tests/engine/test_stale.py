"""Short histories unmask caches, at any number of steps."""

from collections.abc import Callable, Hashable
from itertools import permutations

import pytest

from everyorder.harness.engine import (
    History,
    Operations,
    Relations,
    explore,
    operations_of,
    plan,
    replay,
)
from everyorder.harness.engine.histories import stale_histories, stale_size
from tests.engine.related import Related
from tests.engine.toys import Toy

# Whether the cache is forgotten by (what, step, what is active before, in order).
Forgets = Callable[[str, int, tuple[int, ...]], bool]


class Cache(Related):
    """A use remembers what it answered, until the cache is forgotten."""

    def __init__(
        self,
        forgets: Forgets,
        steps: int = 3,
        uses: int = 1,
        *,
        printed: bool = False,
        settled: bool = True,
    ) -> None:
        self.forgets = forgets
        super().__init__(Relations(), steps, uses, printed=printed, settled=settled)

    def clear(self) -> None:
        super().clear()
        self.cache: dict[int, Hashable] = {}

    def do(self, step: int) -> object:
        if self.forgets("do", step, tuple(self.order)):
            self.cache.clear()
        return super().do(step)

    def undo(self, step: int, handle: object) -> None:
        if self.forgets("undo", step, tuple(self.order)):
            self.cache.clear()
        super().undo(step, handle)

    def use(self, use: int) -> Hashable:
        return self.cache.setdefault(use, tuple(sorted(self.order)))

    def concrete(self) -> Hashable:
        return super().concrete(), tuple(sorted(self.cache.items()))


class Concealed(Cache):
    """The same, where the state does not show the cache."""

    def concrete(self) -> Hashable:
        return tuple(sorted(self.order))


def always(what: str, step: int, beside: tuple[int, ...]) -> bool:
    return True


def never(what: str, step: int, beside: tuple[int, ...]) -> bool:
    return False


def but(what: str, step: int, beside: tuple[int, ...]) -> Forgets:
    """A cache that is not forgotten by one change, beside exactly these steps."""
    return lambda *change: (
        change[:2] != (what, step) or {*change[2]} - {step} != {*beside}
    )


# The last change of each shape, for t = 1 and s = 2: what, step, what is active before.
USE = 3
SHAPES: dict[History, tuple[str, int, tuple[int, ...]]] = {
    (USE, 2, USE): ("do", 2, ()),
    (2, USE, 2, USE): ("undo", 2, (2,)),
    (1, USE, 2, USE): ("do", 2, (1,)),
    (1, 2, USE, 2, USE): ("undo", 2, (1, 2)),
    (1, 2, USE, 1, USE): ("undo", 1, (1, 2)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_unmasks_a_cache_that_no_other_does(shape: History) -> None:
    def forgets(*change: object) -> bool:
        return change != SHAPES[shape]

    cache = Cache(forgets)
    unmasking = [
        history
        for history in stale_histories(Operations(3, 1))
        if replay(cache, history).actions[-2].value
        != replay(Cache(always), history).actions[-2].value
    ]
    assert unmasking == [shape]
    found = explore(cache, "stale")
    (violation,) = found.violations
    assert (violation.kind, violation.proven_shortest) == ("use", True)
    assert violation.shortest == shape


@pytest.mark.parametrize("beside", [(), (0,), (1,)])
@pytest.mark.parametrize("what", ["do", "undo"])
def test_every_change_of_one_step_beside_at_most_one_is_tried(
    what: str, beside: tuple[int, ...]
) -> None:
    for steps in (3, 6):
        for step in range(2, steps):
            for printed, settled in ((False, True), (True, False)):
                cache = Cache(
                    *(but(what, step, beside), steps),
                    printed=printed,
                    settled=settled,
                )
                (violation,) = explore(cache, "stale").violations
                assert violation.kind == "use"
                assert step in violation.history


def test_a_cache_that_is_stale_only_beside_another_step() -> None:
    for one, other in permutations(range(4), 2):
        for what in ("do", "undo"):
            cache = Cache(but(what, one, (other,)), 4)
            (violation,) = explore(cache, "stale").violations
            assert (violation.kind, violation.proven_shortest) == ("use", True)
            assert {one, other, 4} == set(violation.shortest or ())


def test_a_cache_that_is_stale_only_beside_two_is_beyond_it() -> None:
    # The guarantee ends at one other step, and says so.
    cache = Cache(but("do", 2, (0, 1)))
    found = explore(cache, "stale")
    assert found.holds
    assert found.guarantee == (
        "stale: no use (the look is one) answers differently after a change of one "
        "step, with nothing or one other step active"
    )
    assert explore(cache, "histories:5").violations


def test_a_cache_that_is_forgotten_holds() -> None:
    for settled in (True, False):
        found = explore(Cache(always, settled=settled), "stale")
        assert found.holds
        assert found.complete


def test_the_look_is_a_use() -> None:
    class Looked(Cache):
        def observe(self) -> Hashable:
            return super().observe(), self.use(0)

    found = explore(Looked(but("do", 2, (1,)), uses=0), "stale")
    (violation,) = found.violations
    assert (violation.kind, violation.shortest) == ("cold", (1, 3, 2))


@pytest.mark.parametrize("uses", [0, 1, 3])
@pytest.mark.parametrize("steps", [1, 2, 3, 7])
def test_the_size_is_that_of_its_histories(steps: int, uses: int) -> None:
    operations = operations_of(Toy(steps, uses))
    every = list(stale_histories(operations))
    assert stale_size(steps, uses) == sum(map(len, every))
    assert len(every) == len(set(every))
    assert plan(steps, uses, "stale").size == stale_size(steps, uses)
    found = explore(Toy(steps, uses), "stale")
    assert found.executed.transitions == stale_size(steps, uses)


@pytest.mark.parametrize("steps", [15, 16, 20, 30])
@pytest.mark.parametrize("kind", ["opaque", "settled", "form"])
def test_auto_finds_a_cache_that_is_never_forgotten(steps: int, kind: str) -> None:
    printed, settled = kind != "opaque", kind != "form"
    for uses in (1, 3):
        kind_of_cache = Concealed if settled else Cache
        cache = kind_of_cache(never, steps, uses, printed=printed, settled=settled)
        found = explore(cache)
        (violation,) = found.violations
        assert violation.kind == "use"
        assert violation.shortest is not None
        assert len(violation.shortest) == 3
        assert violation.proven_shortest


@pytest.mark.parametrize("steps", [15, 16, 20, 30])
def test_auto_finds_a_cache_that_one_pair_of_steps_leaves_stale(steps: int) -> None:
    cache = Cache(but("do", steps - 1, (steps // 2,)), steps)
    found = explore(cache)
    (violation,) = found.violations
    assert (violation.kind, violation.proven_shortest) == ("use", True)
    use = steps
    assert violation.shortest == (steps // 2, use, steps - 1, use)
