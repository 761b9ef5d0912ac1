"""Modules that cannot be compiled: the whole texts, which are in `refused/`."""

import pytest

from everyorder.runtime.errors import EveryorderError
from tests.script.modules.refused import GOLDEN, complaint, said


@pytest.mark.spec("script 0.7", "literals as indices of modules")
@pytest.mark.spec("script 6.6", "other indices, out of range")
@pytest.mark.parametrize("title", GOLDEN.cases)
def test_what_is_said(title: str) -> None:
    error = complaint(GOLDEN.cases[title].input)
    assert isinstance(error, EveryorderError)
    GOLDEN.check(title, said(error))


def test_there_are_enough() -> None:
    assert len(GOLDEN.cases) >= 40
