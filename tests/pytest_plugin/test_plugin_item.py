"""Which variables become items, and where an editor finds them."""

from tests.pytest_plugin.project import FIRST, PAIR, Project


def test_items(project: Project) -> None:
    project.module(
        "test_b.py",
        PAIR,
        "alias = pair\n",
        "_hidden = Scenario(*steps('a'), create=dict, observe=shown)\n",
        "_private = Scenario(*steps('a'), create=dict, observe=shown)\n",
        "public = _private\n",
        "test_named: Scenario = Scenario(\n"
        "    *steps('a'), create=dict, observe=shown, name='other')\n",
        "é = Scenario(*steps('a'), create=dict, observe=shown)\n",
        "def test_plain():\n    pass\n",
    )
    project.module("test_a.py", FIRST)
    result = project.run("--collect-only", "-q")
    assert result.outlines[:6] == [
        "tests/test_a.py::first",
        "tests/test_b.py::pair",
        "tests/test_b.py::public",
        "tests/test_b.py::test_named",
        "tests/test_b.py::\\xe9",
        "tests/test_b.py::test_plain",
    ]
    project.run("--everyorder-update")
    assert list(project.files()) == [
        "test_a/first.txt",
        "test_b/other.txt",
        "test_b/pair.txt",
        "test_b/public.txt",
        "test_b/é.txt",
    ]


def test_location(project: Project) -> None:
    project.module("test_a.py", "x = y = 1\n", PAIR, "[z] = [1]\n")
    items, _ = project.pytester.inline_genitems("-p", "everyorder")
    assert [item.location for item in items] == [("tests/test_a.py", 4, "pair")]


def test_marks_of_the_module_hold(project: Project) -> None:
    project.module(
        "test_a.py", "import pytest\npytestmark = pytest.mark.skip('not now')\n", PAIR
    )
    project.run().assert_outcomes(skipped=1)
