"""Scenarios that are no items because of where they are: told in the summary."""

import pytest

from tests.pytest_plugin.project import PAIR, Project

HELD = """
def made():
    return Scenario(*steps("a"), create=dict, observe=shown)


class TestK:
    inner = made()


_private = made()
table = {"x": [made()]}


def test_x():
    pass
"""

LINE = (
    "everyorder: not collected: tests.test_k.TestK.inner, tests.test_k._private, "
    "tests.test_k.table['x'][0]; give each a public name at module level"
)


def told(result: pytest.RunResult) -> list[str]:
    """The lines of the plugin, with the lines that continue them."""
    text = result.stdout.str().replace("\n  tests.", " tests.").replace("\n  ", " ")
    return [line for line in text.splitlines() if line.startswith("everyorder: ")]


@pytest.mark.parametrize("arguments", [(), ("-n2",), ("--collect-only",)])
def test_a_module_without_others(project: Project, arguments: tuple[str, ...]) -> None:
    project.module("test_k.py", HELD)
    result = project.run(*arguments)
    assert result.ret == 0
    assert told(result) == [LINE]


def test_a_flag_for_what_is_explored_is_not_held_against_it(project: Project) -> None:
    """To tell of them begins no run: nothing is explored, accepted or missed."""
    head, _, _ = HELD.partition("class TestK")
    project.module("test_k.py", head, "table = [made()]\ndef test_x():\n    pass\n")
    result = project.run("--everyorder-update=test_k/table")
    assert result.ret == 0
    assert told(result) == [
        "everyorder: not collected: tests.test_k.table[0]; give it a public name at "
        "module level"
    ]
    assert project.files() == {}


@pytest.mark.parametrize("arguments", [(), ("-n2",)])
def test_beside_scenarios(project: Project, arguments: tuple[str, ...]) -> None:
    project.module("test_k.py", PAIR, HELD)
    project.run("--everyorder-update")
    result = project.run(*arguments)
    assert result.ret == 0
    assert told(result) == [
        "everyorder: 1 scenario, 4 states, 16 transitions: 1 as expected",
        LINE,
    ]
    assert list(project.files()) == ["test_k/pair.txt"]


def test_a_module_that_holds_none(project: Project) -> None:
    project.write(
        "tests/test_b.py", "table = [1, {'a': ()}]\ndef test_b():\n    pass\n"
    )
    project.module(
        "test_a.py",
        "__kept = Scenario(*steps('a'), create=dict, observe=shown)\n",
        "def test_a():\n    pass\n",
    )
    assert told(project.run()) == []
