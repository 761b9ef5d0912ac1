"""Each scenario in a child: what dies with it, and what comes back from there."""

import os
import pkgutil
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from everyorder.harness.processes.fork import CAN_FORK
from tests.pytest_plugin.project import BROKEN, PAIR, Project

pytestmark = pytest.mark.skipif(not CAN_FORK, reason="this system cannot fork")

HEAD = """
import logging, os, random, signal, subprocess, sys, time, warnings


def scenario(deed, **given):
    def do(registry):
        registry["b"] = "b"
        if len(registry) > 1:
            deed()
        return lambda: registry.pop("b")

    given = {"create": dict, "observe": shown, **given}
    return Scenario(put("a"), step("deed()", do), **given)


def plain():
    pass


before = scenario(plain)
"""

TAIL = "\nafter = scenario(plain)\n\n\ndef test_after():\n    pass\n"

LEFT = HEAD + "left = scenario(lambda: os._exit(0))\n" + TAIL

TOLD = """\
______________________________________ left ______________________________________
test_a/left: crashed
tests/test_a.py: the process that explored it ended (exit code 0)
in
    step_2 = deed()
after
    create()
"""


def failures(result: pytest.RunResult) -> list[str]:
    """The names of the tests that failed, by the summary."""
    lines = [line for line in result.outlines if line.startswith("FAILED ")]
    return [line.split()[1].rpartition("::")[2] for line in lines]


def test_a_step_that_ends_the_process_fails_its_test_and_no_other(
    project: Project,
) -> None:
    project.module("test_a.py", LEFT)
    for arguments in (("--everyorder-update",), ("-n2",)):
        result = project.run(*arguments)
        assert result.ret == 1
        assert failures(result) == ["left"]
        result.assert_outcomes(passed=3, failed=1)
        text = result.stdout.str()
        assert "\n".join(TOLD.splitlines()[1:]) in text
        assert "    pytest tests/test_a.py::left --everyorder-in-process" in text
        assert "1 crashed" in text
        assert "worker" not in text.replace("2 workers", "")


def test_in_a_test_function(project: Project) -> None:
    project.module(
        "test_a.py",
        HEAD,
        "def test_left(explore):\n"
        "    explore(scenario(lambda: os._exit(0)), check=False)\n"
        "def test_held(explore):\n"
        "    assert explore(scenario(plain), check=False).verdict == 'holds'\n",
    )
    result = project.run("-k", "test_left or test_held")
    assert failures(result) == ["test_left"]
    result.assert_outcomes(passed=1, failed=1, deselected=1)
    assert "test_a/test_left: crashed" in result.outlines


# What a step does, by the name of its scenario, and what is told of it.
ENDS = {
    "leaves": ("sys.exit", "SystemExit"),
    "killed": ("lambda: os.kill(os.getpid(), 9)", f"signal 9, {signal.strsignal(9)}"),
    "ended": ("lambda: os.kill(os.getpid(), 15)", f"signal 15, {signal.strsignal(15)}"),
    "faults": (
        "lambda: os.kill(os.getpid(), 11)",
        f"signal 11, {signal.strsignal(11)}",
    ),
    "replaced": ("lambda: os.execv('/bin/true', ['true'])", "exit code 0"),
    "closes": ("lambda: os.closerange(3, 64) or os._exit(4)", "exit code 4"),
    "debugs": ("breakpoint", "breakpoint() was called in a child process"),
}


@pytest.mark.slow
def test_other_ends(project: Project) -> None:
    odd = [f"{name} = scenario({deed})\n" for name, (deed, _) in ENDS.items()]
    project.module("test_a.py", HEAD, *odd, TAIL)
    result = project.run("--everyorder-update")
    assert failures(result) == list(ENDS)
    result.assert_outcomes(passed=3, failed=len(ENDS))
    text = result.stdout.str().partition("= short test summary info =")[0]
    split = re.split(r"^_+ (\w+) _+$", text, flags=re.MULTILINE)
    parts = dict(zip(split[1::2], split[2::2], strict=True))
    for name, (_, told) in ENDS.items():
        assert told in " ".join(parts[name].split())


@pytest.mark.slow
def test_a_step_that_hangs(project: Project) -> None:
    project.module(
        "test_a.py",
        HEAD,
        "def sleep():\n    time.sleep(1000)\n\n\nhung = scenario(sleep)\n",
        TAIL,
    )
    ini = project.path / "pytest.ini"
    ini.write_text(ini.read_text() + "everyorder_operation_timeout = 0.8\n")
    assert "not over after 0.8 s" in project.run("--everyorder-update").stdout.str()
    result = project.run("--everyorder-operation-timeout=1")
    assert failures(result) == ["hung"]
    text = result.stdout.str()
    assert "tests/test_a.py:25: an operation was not over after 1 s\n" in text
    assert 'File "tests/test_a.py", line 25 in sleep\n' in text
    assert ": 2 as expected, 1 hung\n" in text


def test_a_scenario_that_goes_on_and_on(project: Project) -> None:
    project.module("test_a.py", HEAD, "slow = scenario(lambda: time.sleep(0.5))\n")
    result = project.run("--everyorder-timeout=1", "-k", "slow")
    assert "it was not over after 1 s" in result.stdout.str()
    assert failures(result) == ["slow"]


def slow(usual: Callable[..., Any], slept: Path) -> Callable[..., Any]:
    """The same, the first time twice as late as an operation may be."""

    def slept_first(*arguments: Any, **named: Any) -> Any:
        if not slept.exists():
            slept.touch()
            time.sleep(1.2)
        return usual(*arguments, **named)

    return slept_first


# What the engine does between operations, for a scenario that holds or does not.
OWN_WORK = {
    PAIR: (
        "everyorder.harness.engine.explorer.choose",
        "everyorder.harness.engine.strategy.Strategy.measure",
        "everyorder.harness.engine.explorer.vacuities",
    ),
    BROKEN: (
        "everyorder.harness.engine.explorer.refutations",
        "everyorder.harness.engine.refutation.shrink",
        "everyorder.harness.engine.refutation.find_square",
        "everyorder.harness.engine.oracle._with_precise_kind",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("scenario", OWN_WORK, ids=["holds", "does not"])
def test_the_work_of_the_engine_is_no_operation_that_hangs(
    project: Project, monkeypatch: pytest.MonkeyPatch, scenario: str
) -> None:
    for name in OWN_WORK[scenario]:
        place, _, function = name.rpartition(".")
        owner = pkgutil.resolve_name(place)
        usual = getattr(owner, function)
        monkeypatch.setattr(owner, function, slow(usual, project.path / name))
    project.module("test_a.py", scenario)
    result = project.run(
        "--everyorder-strategy=auto", "--everyorder-operation-timeout=0.6"
    )
    verdict = "missing" if scenario == PAIR else "order-dependent"
    (told,) = (line for line in result.outlines if line.startswith("everyorder: "))
    assert told.endswith(f": 1 {verdict}")
    for name in OWN_WORK[scenario]:
        (project.path / name).unlink()  # each was slow
    again = project.run("--everyorder-strategy=auto", "--everyorder-timeout=0.6")
    assert "it was not over after 0.6 s" in again.stdout.str()


@pytest.mark.parametrize(
    ("name", "value"),
    [("everyorder_operation_timeout", "soon"), ("everyorder_timeout", "-1")],
)
def test_limits_that_are_no_time(project: Project, name: str, value: str) -> None:
    project.module("test_a.py", PAIR)
    ini = project.path / "pytest.ini"
    ini.write_text(f"{ini.read_text()}{name} = {value}\n")
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert " ".join(result.stderr.str().split()) == (
        f"ERROR: {name} in the ini file is a number of seconds, not {value!r}."
    )


def test_a_flag_that_is_no_time(project: Project) -> None:
    for flag in ("--everyorder-timeout", "--everyorder-operation-timeout"):
        result = project.run(f"{flag}=nan")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert f"{flag}: 'nan' is not a number of seconds" in result.stderr.str()


PROCESS = """
def where(registry):
    print("explored in", os.getpid())
    return shown(registry)


here = scenario(plain, observe=where)
"""


def test_in_this_process(project: Project) -> None:
    project.module("test_a.py", HEAD, PROCESS)
    told = f"explored in {os.getpid()}\n"
    arguments = ("-rA", "-k", "here")
    assert told not in project.run(*arguments).stdout.str()
    assert told in project.run(*arguments, "--everyorder-in-process").stdout.str()
    ini = project.path / "pytest.ini"
    ini.write_text(f"{ini.read_text()}everyorder_in_process = true\n")
    assert told in project.run(*arguments).stdout.str()


@pytest.mark.parametrize(("flag", "same"), [("--pdb", 1), ("--trace", 1), ("-q", 2)])
def test_a_debugger_has_the_scenario_in_its_process(
    project: Project, flag: str, same: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is printed waits in the stream, which is no state.
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    project.module(
        "test_a.py",
        HEAD,
        "def make():\n    print('PROCESS', os.getpid())\n    return {}\n"
        "def test_it(explore):\n"
        "    print('PROCESS', os.getpid())\n"
        "    explore(scenario(plain, create=make), check=False)\n",
    )
    result = project.pytester.run(
        *(sys.executable, "-m", "pytest", "-p", "everyorder", "-k", "test_it"),
        *("--capture=no", flag),
        stdin=b"c\n",
    )
    assert result.ret == 0
    processes = re.findall(r"PROCESS (\d+)", result.stdout.str())
    assert len(processes) > 2
    assert len(set(processes)) == same


TALKS = """
def talk():
    print("said")
    print("complained", file=sys.stderr)
    subprocess.run(["/bin/sh", "-c", "echo below"], check=True)
    warnings.warn("old-fashioned", PendingDeprecationWarning)
    logging.getLogger("toy").warning("logged %s", "so")


talks = scenario(talk)


def test_captured(explore, capsys, caplog, recwarn):
    explore(scenario(talk), check=False)
    out, err = capsys.readouterr()
    assert "said" in out
    assert "below" in out
    assert "complained" in err
    assert ("toy", logging.WARNING, "logged so") in caplog.record_tuples
    assert [str(each.message) for each in recwarn] == ["old-fashioned"]
    assert recwarn[0].category is PendingDeprecationWarning
    assert recwarn[0].filename == __file__
"""


@pytest.mark.parametrize("capture", ["fd", "sys", "tee-sys"])
def test_what_it_says_is_captured(project: Project, capture: str) -> None:
    project.module("test_a.py", HEAD, TALKS)
    arguments = ("-W", "always", f"--capture={capture}", "-k", "talks or captured")
    result = project.run(*arguments)
    result.assert_outcomes(passed=1, failed=1, deselected=1, warnings=1)
    text = result.stdout.str().partition("= FAILURES =")[2]
    out = text.partition("Captured stdout call")[2].partition("Captured")[0]
    err = text.partition("Captured stderr call")[2].partition("Captured")[0]
    log = text.partition("Captured log call")[2].partition("= ")[0]
    assert "said\n" in out
    assert "below\n" in out
    assert "complained\n" in err
    assert "WARNING  toy:test_a.py:30 logged so\n" in log
    assert "PendingDeprecationWarning: old-fashioned" in text


def test_without_capture_it_says_it_at_once(project: Project) -> None:
    project.module("test_a.py", HEAD, TALKS)
    result = project.run("-s", "-W", "ignore", "-k", "talks", apart=True)
    assert "said" in result.outlines
    assert "below" in result.outlines
    assert "complained" in result.stderr.str()


def test_a_warning_that_is_an_error_fails_there(project: Project) -> None:
    project.module("test_a.py", HEAD, TALKS)
    result = project.run("-k", "talks")
    text = result.stdout.str()
    result.assert_outcomes(failed=1, deselected=2)
    # It is an error of the step, as it is in one process.
    assert "warnings summary" not in text
    assert " raises, and leaves something behind." in text


def test_what_it_raises_can_be_caught(project: Project) -> None:
    project.module(
        "test_a.py",
        HEAD,
        "import pytest\n"
        "class Local(LookupError):\n"
        "    def __init__(self, one, two):\n"
        "        super().__init__(f'{one} {two}')\n"
        "def missing():\n    raise Local(1, 2)\n"
        "def stops():\n    raise KeyboardInterrupt\n"
        "def skips():\n    pytest.skip('not here')\n"
        "def test_caught(explore):\n"
        "    with pytest.raises(Local, match='1 2'):\n"
        "        explore(scenario(plain, create=missing))\n"
        "def test_skipped(explore):\n"
        "    explore(scenario(plain, create=skips))\n"
        "def test_stopped(explore):\n"
        "    explore(scenario(plain, create=stops))\n"
        "def test_never():\n    pass\n",
    )
    # In a process of its own: pytester would raise the interrupt again.
    names = "caught or skipped or stopped or never"
    result = project.run("-k", names, apart=True)
    result.assert_outcomes(passed=1, skipped=1, deselected=1)
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_it_draws_what_would_be_drawn_here(project: Project) -> None:
    project.module(
        "test_a.py",
        HEAD,
        "def draws():\n    print('drawn', random.random())\n    return {}\n"
        "def test_drawn(explore, capsys):\n"
        "    random.seed(5)\n"
        "    explore(scenario(plain, create=draws), check=False)\n"
        "    first = capsys.readouterr().out.splitlines()[0]\n"
        "    assert first == f'drawn {random.Random(5).random()}'\n"
        "    assert random.random() == random.Random(5).random()\n",
    )
    project.run("-k", "test_drawn").assert_outcomes(passed=1, deselected=1)


def test_properties_of_one_that_died(project: Project) -> None:
    project.module("test_a.py", LEFT)
    project.run("--junitxml=out.xml")
    tree = ElementTree.parse(project.path / "out.xml")
    (case,) = (each for each in tree.iter("testcase") if each.get("name") == "left")
    assert {each.get("name"): each.get("value") for each in case.iter("property")} == {
        "scenario": "test_a/left",
        "verdict": "crashed",
        "operation": "step_2 = deed()",
    }


@pytest.mark.parametrize("setting", ["", "patch = _exit\n"])
def test_coverage_is_that_of_children_too(project: Project, setting: str) -> None:
    project.write("tests/test_a.py", COVERED)
    project.write(
        ".coveragerc", f"[run]\nparallel = true\ninclude = tests/*\n{setting}"
    )
    run, command = project.pytester.run, (sys.executable, "-m", "coverage")
    run(*command, "run", "-m", "pytest", "-p", "everyorder", "-k", "ran")
    run(*command, "combine", "-q")
    report = run(*command, "report", "-m")
    (line,) = (each for each in report.outlines if "test_a.py" in each)
    assert line.split()[-1] == "9"


COVERED = """\
from everyorder import Scenario, step
from toy import shown

def put(registry):
    registry["a"] = "a"
    return lambda: registry.pop("a")

def other(registry):
    raise ValueError

ran = Scenario(step("put", put), create=dict, observe=shown)
not_asked_for = Scenario(step("other", other), create=dict, observe=shown)
"""
