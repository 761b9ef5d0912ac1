"""Everyday mistakes: what a user sees, whole, is in the golden files.

`cases.py` has the form of the cases, and runs them.
"""

import re

import pytest

from everyorder.harness.base.columns import WIDTH, columns
from tests.mistakes.cases import GOLDEN, commands_of, output, outputs

# The longest output of one command: a failure with its histories, in pytest's frame.
MOST_LINES = 24

# An output that says what to do has one of these, by who prints it: a refusal, a
# failure, a command, and last Python, pytest and click, which are not ours.
_ADVICE = re.compile(
    r"expected|give it|mend it|declare|names instead|reset="
    r"|replay it|accept it"
    r"|did you mean|--help|write\s|there are auto|has to be|a number|A\s+scenario is"
    r"|everything that pytest collects|of the form|cannot be parsed|to explore"
    r"|Error: |plugin for|uses no argument|not found|unrecognized"
)
# A line of the user's file, or the test or scenario in it.
_PLACE = re.compile(
    r"\w+\.py(:\d+|::\w+)|test_shop\.py|test_shop/\w+|pyproject|ini file"
)
# Commands that are refused before a file is read.
_WITHOUT_FILE = (
    "a wrong path",
    "a wrong option",
    "a wrong command",
    "a value of update",
)
# Frames of the harness or of pytest, and tracebacks.
_INTERNAL = re.compile(r"harness/|site-packages|Traceback|\.pyenv|<frozen")
# Names that nobody types.
_CLASSES = re.compile(r"everyorder\.harness|NotAScenario|BadScenario|UseStep|NoneType,")


@pytest.mark.parametrize(
    "stem", sorted({case.file.stem for case in GOLDEN.cases.values()})
)
def test_what_is_printed_is_in_the_file(stem: str) -> None:
    for name, text in outputs(stem).items():
        GOLDEN.check(name, text)


@pytest.mark.parametrize(
    "name", ["use= for uses=", "step is wrong in a test", "observe returns a list"]
)
def test_commands_as_typed_print_the_same(name: str) -> None:
    GOLDEN.check(name, output(GOLDEN.cases[name], as_typed=True))


def printed(name: str) -> list[str]:
    """The output of each command of a case."""
    text = GOLDEN.cases[name].output or ""
    return [f"$ {each}" for each in text.removeprefix("$ ").split("\n$ ")]


@pytest.mark.parametrize("name", GOLDEN.cases)
def test_it_is_short_and_fits_the_terminal(name: str) -> None:
    for text in printed(name):
        lines = text.splitlines()
        assert [line for line in lines if columns(line) > WIDTH] == []
        assert len(lines) <= MOST_LINES or lines[0] == "$ everyorder"


@pytest.mark.parametrize("name", GOLDEN.cases)
def test_it_shows_nothing_internal(name: str) -> None:
    for text in printed(name):
        assert _INTERNAL.findall(text) == []
        assert _CLASSES.findall(text) == []


@pytest.mark.parametrize("name", GOLDEN.cases)
def test_it_names_the_file_and_says_what_to_do(name: str) -> None:
    for text in printed(name):
        if "no tests ran" in text or " proven;" in text:
            continue  # it is no mistake for this command
        assert _ADVICE.search(text)
        is_here = "this folder" in text or name in _WITHOUT_FILE or "replay id" in text
        assert is_here or _PLACE.search(text)


def test_there_are_enough_and_each_command_is_typed() -> None:
    commands = {
        each.split()[0] for case in GOLDEN.cases.values() for each in commands_of(case)
    }
    assert commands == {"everyorder", "pytest"}
    assert len(GOLDEN.cases) >= 90
