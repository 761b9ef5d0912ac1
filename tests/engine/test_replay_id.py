"""Replay ids: short, typed by hand, the same everywhere."""

from itertools import product

import pytest

from harness.engine import ReplayId, decode, encode, fits, scenario_tag, tag_of
from harness.errors import CannotReplay
from tests.coded import code


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
