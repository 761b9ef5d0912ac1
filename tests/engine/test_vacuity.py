"""What could not have shown a fault is told, and only that."""

from collections.abc import Hashable

import pytest

from everyorder.harness.engine import Relations, Vacuity, explore
from tests.engine.related import Holding, Related
from tests.engine.toys import Exclusive, Layered, Ordered, Refused, Toy

ALWAYS = "whatever is active"
PERFORMED = "wherever it was performed"
STRATEGIES = ("auto", "graph", "walk:1", "histories:3", "arrangements")
SLIPS = (AttributeError, NameError, TypeError, UnboundLocalError)


def vacuous(toy: Toy, strategy: str = "walk:1") -> list[tuple[int, str]]:
    found = explore(toy, strategy)
    assert found.holds
    return [(each.operation, each.reason) for each in found.vacuous]


class Unlike(Toy):
    """A toy of which some operations do not do what toys do."""

    def __init__(
        self,
        steps: int = 2,
        uses: int = 1,
        *,
        seen: bool = True,
        raises: dict[int, type[Exception] | tuple[type[Exception], ...]] | None = None,
        declared: tuple[int, ...] = (),
    ) -> None:
        self.seen = seen
        self.raises = raises or {}
        self.relations = Relations(declared=frozenset(declared))
        super().__init__(steps, uses, printed=True)

    def fails(self, operation: int) -> None:
        error = self.raises.get(operation)
        if isinstance(error, tuple):
            error = error[len(self.order) % len(error)]
        if error is not None:
            raise error("of it")

    def do(self, step: int) -> object:
        self.fails(step)
        return super().do(step)

    def use(self, use: int) -> Hashable:
        self.fails(self.steps + use)
        return super().use(use)

    def observe(self) -> Hashable:
        return super().observe() if self.seen else "the same"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_sound_scenario_has_nothing_vacuous(strategy: str) -> None:
    for toy in (Unlike(3, 2), Exclusive(3, 1), Layered(3, 1)):
        toy.printed = True
        assert vacuous(toy, strategy) == []


@pytest.mark.parametrize("slip", SLIPS)
def test_a_typing_error_in_a_step(slip: type[Exception]) -> None:
    assert vacuous(Unlike(raises={1: slip})) == [
        (1, f"raises {slip.__name__} {ALWAYS}")
    ]
    assert vacuous(Unlike(raises={1: slip}, declared=(1,))) == []


@pytest.mark.parametrize("slip", SLIPS)
def test_a_typing_error_in_a_use(slip: type[Exception]) -> None:
    assert vacuous(Unlike(raises={2: slip})) == [
        (2, f"raises {slip.__name__} {ALWAYS}")
    ]
    assert vacuous(Unlike(raises={2: slip}, declared=(2,))) == []


def test_several_typing_errors_of_one_operation() -> None:
    both = (TypeError, AttributeError)
    told = f"raises AttributeError and TypeError {ALWAYS}"
    assert vacuous(Unlike(raises={1: both})) == [(1, told)]
    assert vacuous(Unlike(raises={2: both})) == [(2, told)]


def test_other_errors_are_refusals_and_answers() -> None:
    class Subclass(TypeError):
        pass

    for error in (ValueError, LookupError, Subclass, (TypeError, ValueError)):
        assert vacuous(Unlike(raises={1: error})) == []
    # An error that is always the same is an answer that never varies.
    for error in (ValueError, Subclass):
        told = [(2, f"answers the same {ALWAYS}")]
        assert vacuous(Unlike(raises={2: error})) == told
        assert vacuous(Unlike(raises={2: error}, declared=(2,))) == []
    assert vacuous(Unlike(raises={2: (TypeError, ValueError)})) == []


@pytest.mark.parametrize("error", [ImportError, LookupError, Refused])
def test_of_a_registry_whatever_is_always_raised_shows_nothing(
    error: type[Exception],
) -> None:
    """A settled system refuses by rules of its own; of others nobody knows."""
    toy = Unlike(raises={1: error})
    toy.settled = False
    assert vacuous(toy) == [(1, f"raises {error.__name__} {ALWAYS}")]
    toy.relations = Relations(declared=frozenset({1}))
    assert vacuous(toy) == []


def test_of_a_sample_not_more_is_said_than_was_seen() -> None:
    class Deaf(Unlike):
        def use(self, use: int) -> Hashable:
            return use == 1 or super().use(use)

    told = f"answers the same {PERFORMED}"
    assert vacuous(Deaf(12, 2), "sca:2") == [(13, told)]


def test_where_no_step_can_be_done_nothing_was_shown() -> None:
    errors: dict[int, type[Exception] | tuple[type[Exception], ...]]
    errors = {0: ValueError, 1: Refused}
    assert vacuous(Unlike(raises=errors)) == [
        (0, f"raises ValueError {ALWAYS}"),
        (1, f"raises Refused {ALWAYS}"),
    ]
    assert vacuous(Unlike(raises=errors, declared=(0, 1))) == []
    assert vacuous(Unlike(raises={0: ValueError})) == []


def test_a_typing_error_at_some_sets_is_none() -> None:
    class Sometimes(Unlike):
        def fails(self, operation: int) -> None:
            if len(self.order) == 1:
                super().fails(operation)

    assert vacuous(Sometimes(raises={1: TypeError})) == []
    assert vacuous(Sometimes(raises={2: TypeError})) == []


def test_answers_that_read_like_an_error_are_none() -> None:
    class Telling(Unlike):
        def use(self, use: int) -> Hashable:
            return ("NameError", len(self.order))

    assert vacuous(Telling()) == []


class Silent(Unlike):
    """Step 1 does nothing that shows."""

    def observe(self) -> Hashable:
        return tuple(sorted(set(self.order) - {1}))

    def use(self, use: int) -> Hashable:
        return 0 in self.order


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_step_that_changes_nothing(strategy: str) -> None:
    told = [(1, "changes nothing that is looked at or asked")]
    assert vacuous(Silent(3, 1), strategy) == told
    assert vacuous(Silent(3, 1, declared=(1,)), strategy) == []


def test_a_step_that_changes_what_is_answered() -> None:
    class Answering(Silent):
        def use(self, use: int) -> Hashable:
            return self.order == [1]

    assert vacuous(Answering(3, 1)) == []


def test_a_step_that_changes_what_others_raise() -> None:
    class Blocking(Silent):
        def refuses(self, step: int) -> str:
            return "blocked" if step == 2 and 1 in self.order else ""

    class Enabling(Silent):
        def refuses(self, step: int) -> str:
            return "not enabled" if step == 2 and 1 not in self.order else ""

    class Explaining(Silent):
        def refuses(self, step: int) -> str:
            return f"{1 in self.order}" if step == 2 else ""

    for toy in (Blocking(3, 1), Enabling(3, 1), Explaining(3, 1)):
        assert vacuous(toy, "histories:3") == []


def test_a_step_that_changes_which_undos_are_refused() -> None:
    class Quiet(Holding):
        def observe(self) -> Hashable:
            return tuple(sorted(set(self.order) - {1}))

    assert vacuous(Quiet(Relations(refusable=frozenset({0})), 2)) == []


def test_a_step_that_shows_only_when_it_is_done_again() -> None:
    class Once(Related):
        def observe(self) -> Hashable:
            return tuple(sorted(set(self.order) - {1}))

        def refuses(self, step: int) -> str:
            return "there" if step in self.order else ""

    stays = Relations(lasting=frozenset({1}), again=frozenset({1}))
    assert vacuous(Once(stays, 2), "histories:3") == []
    stays = Relations(lasting=frozenset({1}))
    told = [(1, "changes nothing that is looked at or asked")]
    assert vacuous(Once(stays, 2), "histories:3") == told


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_use_that_always_answers_the_same(strategy: str) -> None:
    class Deaf(Unlike):
        def use(self, use: int) -> Hashable:
            return use == 1 or super().use(use)

    assert vacuous(Deaf(2, 2), strategy) == [(3, f"answers the same {ALWAYS}")]
    assert vacuous(Deaf(2, 2, declared=(3,)), strategy) == []


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_look_that_always_shows_the_same(strategy: str) -> None:
    class Asked(Unlike):
        def use(self, use: int) -> Hashable:
            return tuple(sorted(self.order))

    toy = Asked(2, 1, seen=False)
    assert vacuous(toy, strategy) == [(3, f"shows the same {ALWAYS}")]
    assert vacuous(Asked(2, 1, seen=False, declared=(3,)), strategy) == []


def test_a_look_that_raises_everywhere() -> None:
    class Broken(Unlike):
        def use(self, use: int) -> Hashable:
            return tuple(sorted(self.order))

        def observe(self) -> Hashable:
            return (("error", "AttributeError"), ("text", str(len(self.order))))

    assert vacuous(Broken()) == [(3, f"raises AttributeError {ALWAYS}")]


def test_all_of_it_at_once() -> None:
    class Nothing(Unlike):
        def use(self, use: int) -> Hashable:
            return None

    assert explore(Nothing(2, 1, seen=False), "walk:1").vacuous == (
        Vacuity(0, "changes nothing that is looked at or asked"),
        Vacuity(1, "changes nothing that is looked at or asked"),
        Vacuity(2, f"answers the same {ALWAYS}"),
        Vacuity(3, f"shows the same {ALWAYS}"),
    )


def test_what_failed_or_was_cut_short_is_not_called_vacuous() -> None:
    class Faulty(Ordered):
        def use(self, use: int) -> Hashable:
            return None

    found = explore(Faulty((1, 0), 2), "walk:1")
    assert found.violations
    assert found.vacuous == ()


def test_what_is_declared_may_be_taken_back() -> None:
    class Retracting(Unlike):
        """Something else is raised than was declared."""

        def fails(self, operation: int) -> None:
            if operation == 1:
                self.relations = Relations()
            super().fails(operation)

    assert vacuous(Retracting(raises={1: TypeError}, declared=(1,))) == [
        (1, f"raises TypeError {ALWAYS}")
    ]
