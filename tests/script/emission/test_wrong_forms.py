"""Wrong programs of classes and special forms: all that is said of each."""

import pytest

from tests.script.emission.wrong_forms import GOLDEN, complaint


@pytest.mark.spec("futures 10", "D18 `len` of an await is refused")
@pytest.mark.spec("script 6.9", "names, attributes, branches, results, overloads")
@pytest.mark.parametrize("title", GOLDEN.cases)
def test_what_is_said_of_a_wrong_program(title: str) -> None:
    words = complaint(GOLDEN.cases[title].input)
    assert words
    GOLDEN.check(title, f"{words}\n")


def test_there_are_enough() -> None:
    assert len(GOLDEN.cases) >= 80


def test_another_text_is_found() -> None:
    case = GOLDEN.cases["fork: no function"]
    words = complaint(case.input.replace("3", '"a"'))
    assert f"{words}\n" != case.output
    assert complaint("def f():\n    return 3\n") == ""
