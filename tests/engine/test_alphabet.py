"""Letters, keys and states."""

import pytest

from harness.engine import Alphabet, alphabet_of
from harness.engine.alphabet import active, key_of, state_of, toggled
from harness.errors import TooLarge, UnknownLetter
from tests.engine.toys import Toy


def test_letters_are_toggles_then_uses_then_the_look() -> None:
    alphabet = alphabet_of(Toy(3, 2))
    assert alphabet == Alphabet(3, 2)
    assert (alphabet.actions, alphabet.look) == (5, 5)


def test_too_many_letters_are_refused() -> None:
    assert alphabet_of(Toy(254)).look == 254
    with pytest.raises(TooLarge) as caught:
        alphabet_of(Toy(200, 55))
    assert str(caught.value) == (
        "the alphabet (steps, uses and the look) comes to 256, above the limit of 255. "
        "Choose a smaller parameter or another strategy, or 'auto' with a budget."
    )


def test_a_foreign_letter_is_named() -> None:
    Alphabet(2, 1).check((0, 1, 2, 3))
    with pytest.raises(UnknownLetter) as caught:
        Alphabet(2, 1).check((0, 4))
    assert str(caught.value) == (
        "letter 4 of the word [0, 4] is not in the alphabet 0..3; was the scenario "
        "changed since?"
    )


@pytest.mark.parametrize("state", [(), (0,), (0, 2), (1, 2, 5)])
def test_keys_and_states_are_inverse(state: tuple[int, ...]) -> None:
    assert state_of(key_of(state, ordered=False)) == state
    backwards = state[::-1]
    assert state_of(key_of(backwards, ordered=True)) == backwards


def test_toggling() -> None:
    assert toggled(0b101, 1) == 0b111
    assert toggled(0b101, 2) == 0b001
    assert toggled((2, 0), 1) == (2, 0, 1)
    assert toggled((2, 0, 1), 0) == (2, 1)
    assert [active(0b101, i) for i in range(3)] == [True, False, True]
    assert [active((2, 0), i) for i in range(3)] == [True, False, True]
