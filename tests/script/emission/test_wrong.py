"""Wrong programs: the error of each, whole, is its golden text."""

import pytest

from tests.script.emission.wrong_programs import GOLDEN, said


@pytest.mark.spec("script 6.9", "names, attributes, branches, results, overloads")
@pytest.mark.parametrize("name", GOLDEN.cases)
def test_what_is_said_is_in_the_file(name: str) -> None:
    """Only errors of programs come out, with the words that the file has."""
    words = said(GOLDEN.cases[name].input)
    assert words != "nothing\n"
    GOLDEN.check(name, words)


def test_there_are_enough() -> None:
    assert len(GOLDEN.cases) >= 150
