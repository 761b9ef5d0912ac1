"""`with`, and `close`."""

import pytest

from runtime.dispatch.registration import Closing


class Counted(Closing):
    closed = 0

    def close(self) -> None:
        self.closed += 1


def test_a_block_ends_what_it_is_of() -> None:
    with Counted() as made:
        assert made.closed == 0
    assert made.closed == 1


def test_an_exception_goes_on() -> None:
    made = Counted()
    with pytest.raises(KeyError), made:
        raise KeyError
    assert made.closed == 1


def test_how_it_ends_has_to_be_said() -> None:
    with pytest.raises(NotImplementedError, match="Closing does not say how it ends"):
        Closing().close()
