"""Programs: each of a list does what Python does."""

import re
from pathlib import Path

import pytest

from tests.script.emission.both import NAMES, Both

TEXT = (Path(__file__).parent / "programs.txt").read_text()
PROGRAMS: dict[str, tuple[str, list[str]]] = {}
for each in re.split(r"^### ", TEXT, flags=re.M)[1:]:
    title, _, rest = each.partition("\n")
    lines = rest.split("\n")
    source = "\n".join(line for line in lines if not line.startswith(">>> "))
    calls = [line[4:] for line in lines if line.startswith(">>> ")]
    PROGRAMS[title] = source, calls


@pytest.mark.parametrize("title", PROGRAMS)
def test_does_what_python_does(title: str) -> None:
    """Value, output, arguments afterwards and exception are Python's."""
    source, calls = PROGRAMS[title]
    both = Both(source)
    for written in calls:
        name, _, given = written.partition("(")
        inside = f"({given[:-1]},)" if given != ")" else "()"
        arguments = eval(inside, dict(NAMES))
        python, script = both.outcomes(name, *arguments)
        assert script == python, written
