"""Wrong programs of classes and special forms: all that is said of each."""

import pytest

from tests.script.emission.wrong_forms import FILE, complaint, document, stored

STORED = stored()


@pytest.mark.spec("futures 10", "D18 `len` of an await is refused")
@pytest.mark.spec("script 6.9", "names, attributes, branches, results, overloads")
@pytest.mark.parametrize("title", STORED)
def test_what_is_said_of_a_wrong_program(title: str) -> None:
    program, words = STORED[title]
    assert words
    assert complaint(program) == words


def test_the_file_is_as_it_is_written() -> None:
    assert FILE.read_text(encoding="utf-8") == document(STORED)
    assert len(STORED) >= 80


def test_another_text_is_found() -> None:
    program, words = STORED["fork: no function"]
    assert complaint(program.replace("3", '"a"')) != words
    assert complaint("def f():\n    return 3\n") == ""
