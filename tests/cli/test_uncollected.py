"""Lines of variables, and scenarios elsewhere: told by place, never explored."""

from pathlib import Path

import pytest

from everyorder.harness.base.columns import wrap_lines
from everyorder.harness.cli import command as exits
from everyorder.harness.exploration.uncollected import (
    UncollectedScenarios,
    assigned_lines,
)
from tests.cli.conftest import Project, fresh_modules, plain
from tests.collecting import listing


def test_the_line_of_a_variable(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("a = 1\nb = a, c = 2, 3\na = 4\nd: int = 5\n")
    assert assigned_lines(file) == {"a": 3, "b": 2, "c": 2, "d": 4}
    file.write_text("a = (\n")
    assert assigned_lines(file) == {}
    assert assigned_lines(tmp_path / "none.py") == {}


HEAD = """
from tests.scenarios.test_sound import Scenario, add, shown


def made():
    return Scenario(add("a"), create=list, observe=shown)


"""

HELD = """
class TestK:
    inner = made()

    class Deeper:
        inmost = made()


_private = made()
TABLE = {"a": [made(), made()], 2: (made(),), made: made()}
PAIR = (made(), [[[made()]]])
"""

PLACES = (
    "TestK.inner",
    "TestK.Deeper.inmost",
    "_private",
    "TABLE['a'][0]",
    "TABLE['a'][1]",
    "TABLE[2][0]",
    "TABLE[...]",
    "PAIR[0]",
    "PAIR[1][0][0][0]",
)

LINE = wrap_lines(
    "not collected: "
    + ", ".join(f"tests.scenarios.test_held.{place}" for place in PLACES)
    + "; give each a public name at module level",
    indent="  ",
)


def found(project: Project, text: str) -> tuple[str, ...]:
    """The places that are told of a module of this text."""
    file = project.scenarios("held", HEAD + text)
    with fresh_modules(project.root):
        uncollected = listing(str(file)).uncollected
    return tuple(place for each in uncollected for place in each.places)


def test_places(project: Project) -> None:
    project.scenarios("held", HEAD + HELD)
    with fresh_modules(project.root):
        found = listing()
    assert found.uncollected == (
        UncollectedScenarios("tests/scenarios/test_held.py", PLACES),
    )
    assert len(found.tasks) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "public = made()\n_alias = public\nTABLE = {'a': [public]}\n",
        "__kept = made()\n",
        "class K:\n    __kept = made()\n    _K__too = made()\n",
        "TABLE = [[[[[made()]]]]]\n",
        "def function():\n    return made()\nfunction.inner = made()\n",
        "TABLE = []\nTABLE.append(TABLE)\n",
        "from tests.scenarios.test_sound import sound as _sound\n",
        "from tests.scenarios.test_sound import *\n",
    ],
)
def test_what_is_collected_or_left_alone(project: Project, text: str) -> None:
    assert found(project, text) == ()


def test_what_another_module_holds_is_told_there(project: Project) -> None:
    project.write("apart.py", HEAD + HELD + "__all__ = ['_private', 'TABLE']\n")
    text = (
        "from apart import PAIR, TestK\nfrom apart import *\nclass Own(TestK): own = "
    )
    assert found(project, text + "made()\n_own = [made()]\n") == ("Own.own", "_own[0]")


def test_no_code_of_the_module_is_run(project: Project) -> None:
    text = """
class Trap(type):
    def __getattribute__(cls, name):
        raise AssertionError(name)


class Trapped(metaclass=Trap):
    inner = made()


class Listed(list):
    def __iter__(self):
        raise AssertionError

    __class__ = property(__iter__)


class Key(str):
    def __repr__(self):
        raise AssertionError


listed = Listed([made()])
TABLE = {Key("key"): made(), "k" * 50: made()}
"""
    assert found(project, text) == ("Trapped.inner", "TABLE[...]", "TABLE[...]")


def test_the_nearest_place_is_told_once(project: Project) -> None:
    text = "deep = [[[made()]]]\nnear = deep[0][0]\n_both = [near[0], made()]\n"
    assert found(project, text) == ("near[0]", "_both[1]")


def test_many_places_are_counted() -> None:
    many = UncollectedScenarios(
        "test_a.py", tuple(f"T[{index}]" for index in range(20))
    )
    told = ", ".join(f"test_a.T[{index}]" for index in range(12))
    assert " ".join(many.render().split()) == (
        f"not collected: {told} and 8 more; give each a public name at module level"
    )
    assert UncollectedScenarios("tests/test_a.py", ("_a",)).render() == (
        "not collected: tests.test_a._a; give it a public name at module level"
    )


@pytest.mark.parametrize("arguments", [(), ("--in-process",)], ids=["child", "here"])
def test_run(project: Project, arguments: tuple[str, ...]) -> None:
    before = project.text("run", *arguments)
    project.scenarios("held", HEAD + HELD)
    result = project.run("run", *arguments)
    assert (plain(result), result.exit_code) == (f"{LINE}\n{before}", exits.OK)


@pytest.mark.slow
def test_gate(accepted: Project) -> None:
    before = accepted.text("gate")
    accepted.scenarios("held", HEAD + HELD)
    result = accepted.run("gate")
    assert (plain(result), result.exit_code) == (f"{LINE}\n{before}", exits.OK)


@pytest.mark.parametrize("command", ["run", "gate"])
def test_a_module_that_has_no_others(project: Project, command: str) -> None:
    project.scenarios("held", HEAD + HELD)
    result = project.run(command, "tests/scenarios/test_held.py")
    assert result.exit_code == exits.REFUSED
    assert result.output == (
        f"{LINE}\nError: there are no scenarios in tests/scenarios/test_held.py. A "
        "scenario is a\n  module-level `Scenario` of a test file, or is explored by a "
        "test with the\n  fixture `explore`.\n"
    )
