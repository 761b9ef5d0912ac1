"""Operations, keys and states; replay ids, short and the same everywhere."""

from itertools import permutations, product

import pytest

from everyorder.harness.base.errors import BadStrategy, CannotReplay
from everyorder.harness.engine import (
    Operations,
    ReplayId,
    StateForm,
    decode,
    encode,
    fits,
    operations_of,
    scenario_tag,
    tag_of,
)
from everyorder.harness.engine.protocol import (
    EVERY_ORDER,
    UNORDERED,
    Ordering,
    is_active,
    state_of,
)
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
        "the number of operations (steps, uses, the look, collecting garbage): 256 "
        "exceeds the limit of 255. Choose a smaller parameter or another strategy, or "
        "'auto' with a budget."
    )


def test_a_foreign_operation_is_named() -> None:
    Operations(2, 1).check((0, 1, 2, 3, 4))
    with pytest.raises(CannotReplay, check=code("UnknownOperation")) as caught:
        Operations(2, 1).check((0, 5))
    assert str(caught.value) == (
        "operation 5 of the history [0, 5] is out of range 0..4; was the scenario "
        "changed since?"
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


def test_ids_are_pinned_for_ever() -> None:
    assert scenario_tag("tests/scenarios/test_def.py::test_def") == "7fbx"
    assert encode("tests/scenarios/test_def.py::test_def", 7, (1, 0, 6)) == "27fbx-3g7"


@pytest.mark.parametrize("operations", [1, 2, 5, 9])
def test_every_short_history_comes_back(operations: int) -> None:
    seen = set()
    for length in range(5):
        for history in product(range(operations), repeat=length):
            text = encode("some", operations, history)
            assert decode(text, operations) == ReplayId(
                scenario_tag("some"), history, None
            )
            assert tag_of(text) == scenario_tag("some")
            assert len(text) <= 24
            seen.add(text)
    assert len(seen) == sum(operations**length for length in range(5))


def test_the_longest_history_that_fits() -> None:
    history = (0,) * 24 + (7,) * 4
    text = encode("some", 8, history)
    assert len(text) <= 24
    assert text[5] == "-"
    assert decode(text, 8).history == history


def test_a_long_history_gets_a_digest() -> None:
    history = tuple(i % 8 for i in range(1000))
    text = encode("some", 8, history)
    assert len(text) == 23
    read = decode(text, 8)
    assert (read.tag, read.history) == (scenario_tag("some"), None)
    assert read.digest == text[6:-1]
    assert fits(text, "some", 8, history)
    assert not fits(text, "some", 8, history[:-1])


def test_typing_is_forgiving() -> None:
    text = encode("some", 6, (1, 2, 3, 4, 5, 0, 1))
    assert decode(f" {text.upper()} ", 6) == decode(text, 6)
    assert decode(text.replace("1", "l").replace("0", "o"), 6) == decode(text, 6)


def test_every_single_slip_is_noticed() -> None:
    text = encode("some", 6, (1, 2, 3))
    for place in range(len(text)):
        for other in "0123456789abcdefghjkmnpqrstvwxyz":
            if other != text[place]:
                slipped = text[:place] + other + text[place + 1 :]
                with pytest.raises(CannotReplay, check=code("BadReplayId")):
                    decode(slipped, 6)


def test_another_operations_is_noticed() -> None:
    text = encode("some", 6, (1, 2, 3))
    with pytest.raises(CannotReplay, check=code("BadReplayId")) as caught:
        decode(text, 7)
    assert str(caught.value) == (
        f"replay id {text!r}: the check does not hold for 7 operations; either it is "
        "mistyped, or the scenario's steps or uses were changed"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is not of the form 2tttt-bbbbc"),
        ("1abcd+0000", "it is not of the form 2tttt-bbbbc"),
        ("1abcd-" + "0" * 20, "it is not of the form 2tttt-bbbbc"),
        ("1abcd-0000", "it is of version 1, this is 2"),
        ("2abcd-0u00", "it holds 'u'"),
    ],
)
def test_what_is_no_id(text: str, reason: str) -> None:
    with pytest.raises(CannotReplay, check=code("BadReplayId")) as caught:
        decode(text, 6)
    assert caught.value.fields() == {"text": text, "reason": reason}


def test_a_foreign_operation() -> None:
    with pytest.raises(CannotReplay, check=code("UnknownOperation")):
        encode("some", 3, (0, 3))


def test_the_cost_of_a_form_is_not_compared() -> None:
    """It is lower the second time: a fault that is replayed was called flaky."""
    form = StateForm(b"blind", b"exact", objects=200)
    again = form._replace(objects=3)
    assert (form == again, form != again) == (True, False)
    assert hash(form) == hash(again)
    others = [
        form._replace(blind=b""),
        form._replace(exact=b""),
        form._replace(weak=True),
        form._replace(variant=b"1"),
    ]
    assert [(form == each, form != each) for each in others] == [(False, True)] * 4
    assert form != tuple(form)
