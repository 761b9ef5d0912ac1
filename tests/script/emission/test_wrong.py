"""Wrong programs: what is said of each, whole, is in its file."""

import pytest

from tests.script.emission.wrong_programs import (
    WRONG,
    document,
    programs,
    said,
    stored,
)

PROGRAMS = programs()


@pytest.mark.spec("script 6.9", "names, attributes, branches, results, overloads")
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_said_is_in_the_file(name: str) -> None:
    """Only errors of programs come out, with the words that the file has."""
    assert document(PROGRAMS[name]) == stored(name).read_text()


def test_each_program_is_wrong() -> None:
    """None compiles; there are many, and no file without a program."""
    assert [name for name in PROGRAMS if said(PROGRAMS[name]) == "nothing\n"] == []
    assert len(PROGRAMS) >= 150
    assert {each.stem for each in WRONG.glob("*.txt")} == set(PROGRAMS)
