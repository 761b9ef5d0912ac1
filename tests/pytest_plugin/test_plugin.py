"""Whole runs: what is printed, what is written, and how they end."""

import pytest

from tests.pytest_plugin.project import (
    BROKEN,
    FIRST,
    FIXTURE,
    INI,
    LAST,
    PAIR,
    Project,
    whole,
)

MISSING = """\
============================= test session starts ==============================
PLATFORM
ROOTDIR
configfile: pytest.ini
testpaths: tests
collected 2 items

tests/test_a.py FF                                                       [100%]

=================================== FAILURES ===================================
_____________________________________ pair _____________________________________
expect/test_a/pair.txt: nothing is expected yet (4 entries)
accept it:
    pytest tests/test_a.py::pair --everyorder-update
__________________________________ test_three __________________________________
expect/test_a/test_three.txt: nothing is expected yet (8 entries)
accept it:
    pytest tests/test_a.py::test_three --everyorder-update
everyorder: 2 scenarios, 12 states, 88 transitions: 2 missing
=========================== short test summary info ============================
FAILED tests/test_a.py::pair - Failed: expect/test_a/pair.txt: nothing is exp...
FAILED tests/test_a.py::test_three - Failed: expect/test_a/test_three.txt: no...
= 2 failed in TIME =
"""

ACCEPTED = """\
============================= test session starts ==============================
PLATFORM
ROOTDIR
configfile: pytest.ini
testpaths: tests
collected 4 items

tests/test_a.py ....                                                     [100%]

everyorder: 4 scenarios, 20 states, 116 transitions: 4 accepted; 4 expect files written
= 4 passed in TIME =
"""

CHANGED = """\
============================= test session starts ==============================
PLATFORM
ROOTDIR
configfile: pytest.ini
testpaths: tests
collected 1 item

tests/test_a.py F                                                        [100%]

=================================== FAILURES ===================================
_____________________________________ pair _____________________________________
expect/test_a/pair.txt: not as expected: 2 changed of 4 entries, first {2}
  header, steps:
     put('a')
    -put('b')
    +put('c')
  changed: {2}
     state:
    -  b
    +  c
  changed: {1 2}
     state:
       a
    -  b
    +  c
accept it:
    pytest tests/test_a.py::pair --everyorder-update
everyorder: 1 scenario, 4 states, 16 transitions: 1 changed
=========================== short test summary info ============================
FAILED tests/test_a.py::pair - Failed: expect/test_a/pair.txt: not as expecte...
= 1 failed in TIME =
"""

BROKEN_OUTPUT = """\
============================= test session starts ==============================
PLATFORM
ROOTDIR
configfile: pytest.ini
testpaths: tests
collected 1 item

tests/test_a.py F                                                        [100%]

=================================== FAILURES ===================================
____________________________________ broken ____________________________________
test_a/broken: what is observed depends on the order: `put('b')` then `put('a')`
gives 'a', the other way round 'b'.
    one way             another way
    step_1 = put('a')   step_2 = put('b')
    step_2 = put('b')   step_1 = put('a')
    => 'b'              => 'a'
no shorter history of these operations shows it
variables that differ (one way / another way):
    order of registry: 'a', 'b' / 'b', 'a'
replay it:
    everyorder replay 28n00-9c test_a/broken
    pytest tests/test_a.py::broken
everyorder: 1 scenario, 4 states, 16 transitions: 1 order-dependent
=========================== short test summary info ============================
FAILED tests/test_a.py::broken - Failed: test_a/broken: what is observed depe...
= 1 failed in TIME =
"""

STALE = """\
============================= test session starts ==============================
PLATFORM
ROOTDIR
configfile: pytest.ini
testpaths: tests
collected 1 item

tests/test_a.py .                                                        [100%]

stale: expect/test_a/test_three.txt does not belong to any scenario
  delete them: pytest --everyorder-update=all
everyorder: 1 scenario, 4 states, 16 transitions: 1 as expected
= 1 passed in TIME =
"""


def test_nothing_is_expected_yet(project: Project) -> None:
    project.module("test_a.py", PAIR, FIXTURE)
    assert project.output() == MISSING
    assert project.files() == {}


def test_accept(project: Project) -> None:
    project.module("test_a.py", PAIR, LAST, FIRST, FIXTURE)
    assert project.output("--everyorder-update") == ACCEPTED
    assert list(project.files()) == [
        "test_a/first.txt",
        "test_a/last.txt",
        "test_a/pair.txt",
        "test_a/test_three.txt",
    ]
    again = project.run("-q")
    assert again.ret == 0
    assert again.outlines[1:2] == [
        "everyorder: 4 scenarios, 20 states, 116 transitions: 4 as expected"
    ]


def test_changed(project: Project) -> None:
    project.module("test_a.py", PAIR)
    project.run("--everyorder-update")
    before = project.files()
    project.module("test_a.py", PAIR.replace('"b"', '"c"'))
    assert project.output() == CHANGED
    assert project.files() == before


def test_broken(project: Project) -> None:
    project.module("test_a.py", BROKEN)
    assert project.output() == BROKEN_OUTPUT
    assert project.run("--everyorder-update").ret == 1
    assert project.files() == {}


def test_stale_file(project: Project) -> None:
    project.module("test_a.py", PAIR, FIXTURE)
    project.run("--everyorder-update")
    project.module("test_a.py", PAIR)
    result = project.run()
    assert (whole(result), result.ret) == (STALE, 1)
    accepted = project.run("-q", "--everyorder-update")
    assert accepted.ret == 0
    assert accepted.outlines[1] == (
        "everyorder: 1 scenario, 4 states, 16 transitions: 1 as expected; "
        "1 expect file deleted"
    )
    assert list(project.files()) == ["test_a/pair.txt"]


def test_no_scenario_and_nothing_is_said(project: Project) -> None:
    project.module("test_a.py", "def test_plain():\n    pass\n")
    result = project.run("-q")
    assert result.ret == 0
    assert "everyorder" not in result.stdout.str()
    assert not (project.path / ".everyorder").exists()


def test_without_the_plugin_scenarios_are_nothing(project: Project) -> None:
    project.module("test_a.py", PAIR, "def test_plain():\n    pass\n")
    project.write("pytest.ini", INI.replace("everyorder_strategy = walk:1\n", ""))
    result = project.pytester.runpytest_subprocess(
        "-p", "no:everyorder", "-p", "no:cacheprovider", "-q"
    )
    assert result.ret == 0
    result.assert_outcomes(passed=1)


@pytest.mark.slow
def test_in_a_process_of_its_own_all_warnings_are_errors(project: Project) -> None:
    project.module("test_a.py", PAIR, LAST, FIRST, FIXTURE)
    result = project.run("-W", "error", "--everyorder-update", apart=True)
    assert result.ret == 0
    assert result.stderr.str() == ""
    result = project.run(
        "-W", "error", "-p", "no:xdist", "-p", "no:terminal", apart=True
    )
    assert (result.ret, result.stdout.str(), result.stderr.str()) == (0, "", "")


MISTYPED = """
from everyorder.harness import Scenario, define, impl

mistyped = Scenario(
    define("a::f(Tensor x) -> Tensor"), impl("a::f", lambda x: x, "CPUU")
)
"""


@pytest.mark.usefixtures("last")
def test_steps_that_never_succeed_are_counted(project: Project) -> None:
    project.module("test_a.py", MISTYPED)
    project.run("--everyorder-update")
    result = project.run()
    assert result.ret == 0
    assert (
        "1 step fails whatever is active; `everyorder run` says which, and how"
        in result.outlines
    )
