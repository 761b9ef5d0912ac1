"""`expect=` of a scenario: a text that is rewritten in place, or nothing at all."""

import subprocess
import sys

import pytest

from tests.pytest_plugin.project import INI, PAIR, Project, joined

INLINE = """
pair = Scenario(
    *steps("a", "b"),
    create=dict,
    observe=shown,
    expect=\"\"\"
        \"\"\",
)
def test_one(explore):
    explore(*steps("x"), create=dict, observe=shown, expect='')  # stays
"""

WRITTEN = """
pair = Scenario(
    *steps("a", "b"),
    create=dict,
    observe=shown,
    expect=\"\"\"
        == {} ==
        state: nothing

        == {1} ==
        state:
          a

        == {2} ==
        state:
          b

        == {1 2} ==
        state:
          a
          b
        \"\"\",
)
def test_one(explore):
    explore(*steps("x"), create=dict, observe=shown, expect='''
    == {} ==
    state: nothing

    == {1} ==
    state:
      x
    ''')  # stays
"""


def source(project: Project, name: str = "test_a.py") -> str:
    text = (project.path / "tests" / name).read_text()
    return text.partition("from toy import *\n\n")[2]


def test_a_text_is_rewritten_in_place(project: Project) -> None:
    project.module("test_a.py", INLINE)
    result = project.run()
    assert result.ret == 1
    assert (
        "test_a/pair, by its argument expect=: nothing is expected yet (4 entries)"
    ) in result.outlines
    assert source(project) == INLINE
    assert project.run("--everyorder-update").ret == 0
    assert source(project) == WRITTEN
    assert project.files() == {}
    assert project.run(apart=True).ret == 0
    project.module("test_a.py", WRITTEN.replace("          b\n", "          c\n", 1))
    assert project.run(apart=True).ret == 1
    assert project.run("--everyorder-update=test_a/pair", apart=True).ret == 0
    assert source(project) == WRITTEN


def test_several_workers_rewrite_one_file_once(project: Project) -> None:
    pytest.importorskip("xdist")
    names = "cdefgh"
    scenarios = [
        f"{name} = Scenario(*steps({name!r}), create=dict, observe=shown, expect='')\n"
        for name in names
    ]
    project.module("test_a.py", *scenarios, INLINE)
    result = project.run("-n2", "--everyorder-update")
    assert result.ret == 0
    assert "8 accepted; 1 source file rewritten" in result.stdout.str()
    text = source(project)
    assert text.endswith(WRITTEN)
    assert text.count("== {1} ==\n") == text.count("state:\n") - 2 == 8
    assert project.run(apart=True).ret == 0


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("TEXT", "has an expression, not a text literal"),
        ("f'{1 - 1}'[1:]", "has an expression, not a text literal"),
    ],
)
def test_an_argument_that_is_not_a_literal_fails_its_test_only(
    project: Project, argument: str, reason: str
) -> None:
    project.module(
        "test_a.py",
        "TEXT = ''\n",
        f"bad = Scenario(*steps('a'), create=dict, observe=shown, expect={argument})\n",
        PAIR,
    )
    before = source(project)
    result = project.run("--everyorder-update")
    assert result.ret == 1
    text = joined(result)
    assert "tests/test_a.py: expect= of test_a/bad cannot be rewritten" in text
    assert reason in text
    assert source(project) == before
    assert list(project.files()) == ["test_a/pair.txt"]


def test_a_text_in_a_loop_that_two_tests_share(project: Project) -> None:
    project.module(
        "test_a.py",
        "import pytest\n",
        "@pytest.mark.parametrize('name', 'ab')\n",
        "def test_one(explore, name):\n",
        "    explore(*steps(name), create=dict, observe=shown, expect='')\n",
    )
    before = source(project)
    result = project.run("--everyorder-update")
    assert result.ret == 1
    assert (
        "not written: tests/test_a.py: expect= of test_a/test_one[b] cannot be "
        "rewritten: test_a/test_one[a] has the same argument, and another text."
    ) in result.stdout.str()
    assert source(project) == before


def test_compared_with_nothing(project: Project) -> None:
    project.module("test_a.py", PAIR)
    assert project.run("--everyorder-update").ret == 0
    free = PAIR.replace("observe=shown", "observe=shown, expect=False")
    project.module("test_a.py", free)
    result = project.run()
    assert result.ret == 1
    line = "everyorder: 1 scenario, 4 states, 16 transitions: 1 compared with nothing"
    assert f"{line} (expect=False)" in result.outlines
    stale = "stale: expect/test_a/pair.txt does not belong to any scenario"
    assert stale in result.outlines
    assert project.run("--everyorder-update").ret == 0
    assert project.files() == {}
    assert project.run().ret == 0


TEXTS = """
from everyorder.harness import normaliser

@normaliser(version=3)
def shout(text):
    return text.upper()
"""


def test_the_normalisers_of_a_project_are_those_of_pytest_and_of_the_command(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.module("test_a.py", PAIR)
    project.write("texts.py", TEXTS)
    project.write("pytest.ini", f"{INI}everyorder_normalisers = texts:shout\n")
    assert project.run("--everyorder-update").ret == 0
    text = project.files()["test_a/pair.txt"]
    assert "normalisers:\n  1  shout, version 3\n" in text
    assert "state:\n  A\n  B\n" in text
    gate = subprocess.run(
        [sys.executable, "-m", "everyorder", "gate"],
        cwd=project.path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert gate.stdout.endswith("gate: 1 scenario, 1 as expected; exit code 0\n")
    project.write("pytest.ini", f"{INI}everyorder_normalisers = texts:whisper\n")
    result = project.run()
    assert result.ret == 1
    assert (
        "a scenario cannot use everyorder_normalisers = texts:whisper (AttributeError: "
    ) in joined(result)


def test_other_values_are_refused(project: Project) -> None:
    project.module(
        "test_a.py", PAIR.replace("observe=shown", "observe=shown, expect=1")
    )
    text = joined(project.run())
    assert "1 as expect=; expected a text, False (compared with nothing)" in text
