"""Operations, keys and states."""

from itertools import permutations

import pytest

from harness.engine import Operations, operations_of
from harness.engine.protocol import (
    EVERY_ORDER,
    UNORDERED,
    Ordering,
    is_active,
    state_of,
)
from harness.errors import BadStrategy, CannotReplay
from tests.coded import code
from tests.engine.toys import Toy


def test_operations_are_toggles_then_uses_then_the_look() -> None:
    operations = operations_of(Toy(3, 2))
    assert operations == Operations(3, 2)
    assert (operations.actions, operations.look) == (5, 5)


def test_too_many_operations_are_refused() -> None:
    assert operations_of(Toy(252)).collect == 253
    with pytest.raises(BadStrategy, check=code("TooLarge")) as caught:
        operations_of(Toy(200, 54))
    assert str(caught.value) == (
        "the number of operations (steps, uses, the look, collecting garbage) comes to "
        "256, above the limit of 255. Choose a smaller parameter or another strategy, "
        "or 'auto' with a budget."
    )


def test_a_foreign_operation_is_named() -> None:
    Operations(2, 1).check((0, 1, 2, 3, 4))
    with pytest.raises(CannotReplay, check=code("UnknownOperation")) as caught:
        Operations(2, 1).check((0, 5))
    assert str(caught.value) == (
        "operation 5 of the history [0, 5] is none of 0..4; was the scenario changed "
        "since?"
    )


@pytest.mark.parametrize("state", [(), (0,), (0, 2), (1, 2, 5)])
def test_keys_and_states_are_inverse(state: tuple[int, ...]) -> None:
    assert state_of(UNORDERED.key(state)) == state
    backwards = state[::-1]
    assert state_of(EVERY_ORDER.key(backwards)) == backwards


def test_toggling() -> None:
    assert UNORDERED.toggled(0b101, 1) == 0b111
    assert UNORDERED.toggled(0b101, 2) == 0b001
    assert EVERY_ORDER.toggled((2, 0), 1) == (2, 0, 1)
    assert EVERY_ORDER.toggled((2, 0, 1), 0) == (2, 1)
    assert [is_active(0b101, i) for i in range(3)] == [True, False, True]
    assert [is_active((2, 0), i) for i in range(3)] == [True, False, True]


def test_pairs_tell_two_orders_apart_and_nothing_else() -> None:
    ordering = Ordering(frozenset({(0, 2)}))
    keys: dict[object, set[bool]] = {}
    for arrangement in permutations(range(4)):
        before = arrangement.index(0) < arrangement.index(2)
        keys.setdefault(ordering.key(arrangement), set()).add(before)
    assert keys == {(0, 1, 2, 3): {True}, (1, 2, 0, 3): {False}}
    key = ordering.root
    for step, expected in ((2, (2,)), (1, (1, 2)), (0, (1, 2, 0)), (2, (0, 1))):
        key = ordering.toggled(key, step)
        assert key == expected
