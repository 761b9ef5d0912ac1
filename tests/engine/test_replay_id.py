"""Replay ids: short, typed by hand, the same everywhere."""

from itertools import product

import pytest

from harness.engine import ReplayId, decode, encode, fits, scenario_tag, tag_of
from harness.errors import BadReplayId, UnknownLetter


def test_ids_are_pinned_for_ever() -> None:
    assert scenario_tag("tests/scenarios/test_def.py::test_def") == "7fbx"
    assert encode("tests/scenarios/test_def.py::test_def", 7, (1, 0, 6)) == "17fbx-3g6"


@pytest.mark.parametrize("letters", [1, 2, 5, 9])
def test_every_short_word_comes_back(letters: int) -> None:
    seen = set()
    for length in range(5):
        for word in product(range(letters), repeat=length):
            text = encode("some", letters, word)
            assert decode(text, letters) == ReplayId(scenario_tag("some"), word, None)
            assert tag_of(text) == scenario_tag("some")
            assert len(text) <= 24
            seen.add(text)
    assert len(seen) == sum(letters**length for length in range(5))


def test_the_longest_word_that_fits() -> None:
    word = (0,) * 24 + (7,) * 4
    text = encode("some", 8, word)
    assert len(text) <= 24
    assert text[5] == "-"
    assert decode(text, 8).word == word


def test_a_long_word_gets_a_digest() -> None:
    word = tuple(i % 8 for i in range(1000))
    text = encode("some", 8, word)
    assert len(text) == 23
    read = decode(text, 8)
    assert (read.tag, read.word) == (scenario_tag("some"), None)
    assert read.digest == text[6:-1]
    assert fits(text, "some", 8, word)
    assert not fits(text, "some", 8, word[:-1])


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
                with pytest.raises(BadReplayId):
                    decode(slipped, 6)


def test_another_alphabet_is_noticed() -> None:
    text = encode("some", 6, (1, 2, 3))
    with pytest.raises(BadReplayId) as caught:
        decode(text, 7)
    assert str(caught.value) == (
        f"replay id {text!r}: the check does not hold for 7 letters; either it is "
        "mistyped, or the scenario's steps or uses were changed"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is not of the form 1tttt-bbbbc"),
        ("1abcd+0000", "it is not of the form 1tttt-bbbbc"),
        ("1abcd-" + "0" * 20, "it is not of the form 1tttt-bbbbc"),
        ("2abcd-0000", "it is of version 2, this is 1"),
        ("1abcd-0u00", "it holds 'u'"),
    ],
)
def test_what_is_no_id(text: str, reason: str) -> None:
    with pytest.raises(BadReplayId) as caught:
        decode(text, 6)
    assert caught.value.fields() == {"text": text, "reason": reason}


def test_a_foreign_letter() -> None:
    with pytest.raises(UnknownLetter):
        encode("some", 3, (0, 3))
