"""Modules that cannot be compiled: the whole texts, which are in `refused.txt`."""

import pytest

from everyorder.runtime.errors import EveryorderError
from tests.script.modules.refused import complaint, said, stored


@pytest.mark.spec("script 0.7", "literals as indices of modules")
@pytest.mark.spec("script 6.6", "other indices, out of range")
@pytest.mark.parametrize("title", stored())
def test_what_is_said(title: str) -> None:
    program, text = stored()[title]
    error = complaint(program)
    assert isinstance(error, EveryorderError)
    assert said(error) == text


def test_there_are_enough() -> None:
    assert len(stored()) >= 40
