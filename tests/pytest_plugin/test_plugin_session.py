"""Both ends of a run: options, and workers, crashes, stale files, and who may write."""

import os
from itertools import product
from pathlib import Path

import pytest

from everyorder.harness.exploration.paths import is_below, path_of, source_and_name
from everyorder.harness.pytest_plugin.session import Options
from tests.pytest_plugin.project import FIRST, FIXTURE, INI, LAST, PAIR, Project


@pytest.mark.parametrize(
    ("node", "path"),
    [
        ("tests/a/test_m.py::test_f", "a/test_m/test_f"),
        ("tests/a/test_m.py", "a/test_m"),
        ("tests/a", "a"),
        ("other/test_m.py::TestC::test_f", "other/test_m/TestC/test_f"),
        ("test_m.py::test_f[x/y::z-1]", "test_m/test_f[x%2Fy%3A%3Az-1]"),
        ("test_m.py::test_f[a?b*]", "test_m/test_f[a%3Fb%2A]"),
        ("test_m.py::test_é", "test_m/test_%C3%A9"),
        ("", ""),
    ],
)
def test_path(node: str, path: str) -> None:
    assert path_of(node) == path


def test_a_long_name_is_cut_and_told_apart() -> None:
    one, two = (path_of(f"test_m.py::test_f[{'x' * 500}{end}]") for end in "12")
    assert one != two
    assert len(one) == len(two) < 160


def test_source_and_name() -> None:
    assert source_and_name("tests/test_m.py::TestC::test_f[1]") == (
        "tests/test_m.py",
        "TestC/test_f[1]",
    )


def test_below() -> None:
    assert is_below("a/test_f", "a/test_f")
    assert is_below("a/test_f/name", "a/test_f")
    assert is_below("a/test_f-2", "a/test_f")
    assert not is_below("a/test_f-x", "a/test_f")
    assert not is_below("a/test_fun", "a/test_f")
    assert not is_below("a", "a/test_f")


@pytest.mark.parametrize(
    ("update", "only_new", "accepted"),
    [
        ("none", True, False),
        ("all", False, True),
        ("new", True, True),
        ("new", False, False),
        ("a/test_m/pair", False, True),
        ("a/*", False, True),
        ("tests/a/test_m.py::pair", False, True),
        ("b/*", True, False),
        ("pair", True, False),
    ],
)
def test_accepts(update: str, only_new: bool, accepted: bool) -> None:
    node = "tests/a/test_m.py::pair"
    options = Options(update=update)
    assert options.accepts("a/test_m/pair", node, only_new=only_new) is accepted


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ("--everyorder-update", "tests/test_a.py"),
            "--everyorder-update took 'tests/test_a.py' for its value; write "
            "'--everyorder-update=all tests/test_a.py'.",
        ),
        (
            ("--everyorder-update", "--everyorder-strategy=full"),
            "--everyorder-update writes down every state that is reached, so it does "
            "not go with --everyorder-strategy or --everyorder-budget, which may reach "
            "fewer; put a lasting choice into the ini file (everyorder_strategy, "
            "everyorder_budget).",
        ),
        (
            ("-o", "everyorder_update=yes"),
            "everyorder_update in the ini file is none, new or all, not 'yes'.",
        ),
        (
            ("-o", "everyorder_budget=soon"),
            "everyorder_budget in the ini file is a number of seconds above 0, not "
            "'soon'.",
        ),
        (
            ("-o", "everyorder_budget=0"),
            "everyorder_budget in the ini file is a number of seconds above 0, not "
            "'0'.",
        ),
        (
            ("--everyorder-strategy=run:2",),
            "no strategy is called 'run:2'; there are ",
        ),
    ],
)
def test_refusals(project: Project, arguments: tuple[str, ...], text: str) -> None:
    project.module("test_a.py", PAIR)
    result = project.run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert " ".join(result.stderr.str().split()).startswith(f"ERROR: {text.strip()}")
    assert max(map(len, result.errlines)) <= 80


@pytest.mark.parametrize("budget", ["0", "-1", "nan", "soon"])
def test_a_budget_that_is_no_time(project: Project, budget: str) -> None:
    result = project.run(f"--everyorder-budget={budget}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"--everyorder-budget: '{budget}' is not a number above 0" in (
        result.stderr.str()
    )


def test_the_ini_file_accepts_too_but_not_under_ci(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("pytest.ini", INI + "everyorder_update = new\n")
    project.module("test_a.py", PAIR)
    monkeypatch.setenv("CI", "1")
    assert project.run().ret == 1
    assert project.files() == {}
    monkeypatch.delenv("CI")
    assert project.run().ret == 0
    assert list(project.files()) == ["test_a/pair.txt"]


@pytest.mark.slow
def test_new_adds_and_replaces_nothing(project: Project) -> None:
    project.module("test_a.py", PAIR, LAST)
    project.run("--everyorder-update")
    before = project.files()
    project.module("test_a.py", PAIR.replace('"a", "b"', '"a", "b", "c"'), FIRST)
    grown = project.run("--everyorder-update=new")
    assert "2 accepted; 2 expect files written" in grown.stdout.str()
    assert (
        "stale: expect/test_a/last.txt does not belong to any scenario"
        in grown.outlines
    )
    after = project.files()
    assert list(after) == ["test_a/first.txt", "test_a/last.txt", "test_a/pair.txt"]
    assert after["test_a/last.txt"] == before["test_a/last.txt"]
    project.module("test_a.py", PAIR.replace('"a", "b"', '"x", "b", "c"'), FIRST)
    project.run("--everyorder-update=new")
    assert project.files() == after


@pytest.mark.slow
def test_one_scenario(project: Project) -> None:
    project.module("test_a.py", PAIR, LAST, FIRST)
    result = project.run("--everyorder-update=test_a/pair")
    result.assert_outcomes(passed=1, failed=2)
    project.run("--everyorder-update=tests/test_a.py::last")
    result = project.run("--everyorder-update=pair", "-k", "pair")
    assert result.ret == 1
    wrong = "--everyorder-update=pair: no such scenario was explored"
    assert wrong in result.outlines
    assert list(project.files()) == ["test_a/last.txt", "test_a/pair.txt"]


@pytest.mark.slow
def test_strategy_and_budget_of_the_ini_file(project: Project) -> None:
    chosen = "everyorder_strategy = walk:0\neveryorder_budget = 60\n"
    project.write("pytest.ini", INI.replace("everyorder_strategy = walk:1\n", chosen))
    project.module("test_a.py", PAIR)
    result = project.run("--everyorder-update", "-v")
    assert result.ret == 0
    assert "\nguarantee: walk:0: " in result.stdout.str()
    assert project.run().ret == 0
    assert project.run("--everyorder-strategy=walk:1").ret == 0


MANY = [
    f'many_{i} = Scenario(*steps("a", "b{i}"), create=dict, observe=shown)\n'
    for i in range(4)
]

# Asks the interpreter to tell of every write below the project, by whatever function.
AUDIT = """
import os
import sys

ROOT = os.path.dirname(os.path.abspath(__file__))
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
EVENTS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link")


def audit(event, arguments):
    if event == "open":
        path, _, flags = arguments
        found = isinstance(flags, int) and flags & WRITES
    else:
        # Names below an open folder are not of this one: rmtree removes by such.
        path, found = (arguments or [None])[0], event in EVENTS
        found = found and arguments[-1] == -1
    if found and isinstance(path, (str, os.PathLike)):
        place = os.path.abspath(path)
        # Pytester itself keeps the folders of temporary files below the project.
        if place.startswith(ROOT) and "/runpytest-" not in place:
            os.write(2, f"WROTE {event} {path}\\n".encode())


sys.addaudithook(audit)
"""


def summary(result: pytest.RunResult) -> str:
    (line,) = (line for line in result.outlines if line.startswith("everyorder: "))
    return line.removeprefix("everyorder: ")


@pytest.mark.slow
def test_workers_write_what_one_process_writes(project: Project) -> None:
    project.module("test_a.py", PAIR, LAST, *MANY[:2])
    project.module("test_b.py", FIRST, FIXTURE)
    one = project.run("--everyorder-update")
    assert one.ret == 0
    files = project.files()
    assert len(files) == 6
    for file in (project.path / "expect").rglob("*.txt"):
        file.unlink()
    two = project.run("-n2", "--everyorder-update")
    assert two.ret == 0
    assert project.files() == files
    assert summary(two) == summary(one)
    again = project.run("-n2")
    assert again.ret == 0
    assert summary(again) == "6 scenarios, 28 states, 148 transitions: 6 as expected"


NEEDY = """
from everyorder.harness.scenario import step


def late(registry):
    registry["b"] = "b"
    return lambda: registry.pop("b")


needy = Scenario(
    *steps("a"),
    step("late()", late, requires="put('a')"),
    create=dict,
    observe=shown,
    fingerprint=lambda registry: tuple(registry),
)
"""

ASSUMED = """\
proven: for histories of any length, in one thread and one process, if nothing
  tells equal states apart (ids, `is` between equal values, orders of sets,
  hashes that changed, clocks, caches of the standard library)
* assumes: fingerprint= returns the whole state (needy)
* assumes: the undo handles have no state (needy)
"""

COVERED = """\
guarantee: sca:2: every 2 steps were added, and removed, in every order of those
  2 (needy, pair, last)
skipped: sca:2: of 2 orders of 2 steps, 1 of adding and 1 of removing did not
  occur: a step fails, cannot be undone, has to precede another or excludes it
  (needy)
"""


@pytest.mark.slow
def test_what_stands_beside_the_verdicts(project: Project) -> None:
    """Guarantee, assumptions and what was skipped, wherever it was explored."""
    project.module("test_a.py", PAIR, NEEDY)
    project.module("test_b.py", LAST)
    project.run("--everyorder-update")
    for workers in (("-v",), ("-v", "-n2")):
        result = project.run("--everyorder-strategy=graph", *workers)
        assert beside(result) == ASSUMED.splitlines()
        result = project.run("--everyorder-strategy=sca:2", *workers)
        assert beside(result) == COVERED.splitlines()
    assert beside(project.run("--everyorder-strategy=graph")) == [
        "proven: for histories of any length, in one thread and one process; -v shows",
        "  what that assumes",
        "2 further assumptions of 1 scenario; -v shows them",
    ]


def beside(result: pytest.RunResult) -> list[str]:
    """The lines between the counts and what pytest says in the end."""
    lines = result.outlines
    (at,) = (at for at, line in enumerate(lines) if line.startswith("everyorder: "))
    return [line for line in lines[at + 1 :] if not line.startswith("=")]


@pytest.mark.slow
def test_a_killed_worker_loses_nothing_that_was_finished(project: Project) -> None:
    # One worker at a time: two scenarios, its end, and two by the one after it.
    kill = "import os\ndef test_kill():\n    os._exit(9)\n"
    project.module("test_a.py", *MANY[:2], kill, *MANY[2:])
    result = project.run("-n1", "--everyorder-update")
    result.assert_outcomes(passed=4, failed=1)
    assert "worker 'gw0' crashed while running" in result.stdout.str()
    assert list(project.files()) == [f"test_a/many_{i}.txt" for i in range(4)]
    assert summary(result).endswith("4 accepted; 4 expect files written")
    assert project.run("--deselect=tests/test_a.py::test_kill").ret == 0


@pytest.mark.slow
def test_a_run_that_accepts_nothing_writes_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.module("test_a.py", PAIR, *MANY[:2])
    project.run("--everyorder-update=*/pair")
    project.write("conftest.py", AUDIT)
    monkeypatch.setenv("CI", "true")
    for arguments in ([], ["-n2"]):
        result = project.run(*arguments, apart=True)
        assert "WROTE" not in result.stderr.str()
        assert summary(result).endswith(": 1 as expected, 2 missing")


def test_the_audit_of_writes_sees_them(project: Project) -> None:
    project.module("test_a.py", PAIR)
    project.write("conftest.py", AUDIT)
    result = project.run("--everyorder-update", apart=True)
    for event in ("open", "os.rename", "os.mkdir"):
        assert f"WROTE {event} " in result.stderr.str()


def test_continuous_integration_does_not_accept(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.module("test_a.py", PAIR)
    monkeypatch.setenv("CI", "1")
    result = project.run("--everyorder-update", apart=True)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.stderr.str() == (
        "ERROR: --everyorder-update: expect files are never written while CI='1' is "
        "set.\n  Accept the change on a developer's machine and commit the files, or "
        "set CI=0\n  if this is one.\n"
    )
    assert project.files() == {}


SELECTIONS = (
    ("-k", "pair"),
    ("-m", "not skip"),
    ("tests/test_a.py",),
    ("tests/test_a.py::pair", "tests/test_b.py"),
    ("--deselect", "tests/test_b.py::first"),
    ("--ignore", "tests/test_b.py"),
    ("--ignore-glob", "*_b.py"),
    ("--collect-only",),
)


@pytest.mark.slow
def test_a_selection_calls_nothing_stale(project: Project) -> None:
    project.module("test_a.py", PAIR)
    project.module("test_b.py", FIRST, LAST)
    project.run("--everyorder-update")
    project.module("test_b.py", FIRST)
    assert "stale: " in project.run().stdout.str()
    for arguments, more in product(SELECTIONS, ((), ("--everyorder-update",))):
        result = project.run(*arguments, *more)
        assert result.ret == 0, arguments
        assert "stale: " not in result.stdout.str(), arguments
        assert len(project.files()) == 3, arguments


@pytest.mark.slow
def test_paths_that_cover_everything_are_no_selection(project: Project) -> None:
    project.module("test_a.py", PAIR, LAST)
    project.run("--everyorder-update")
    project.module("test_a.py", PAIR)
    stale = "stale: expect/test_a/last.txt does not belong to any scenario"
    paths = (("tests",), (".",), ("tests", "toy.py"))
    for arguments, more in product(paths, ((), ("-n1",))):
        result = project.run(*arguments, *more)
        assert stale in result.outlines, arguments
        assert result.ret == 1, arguments


def test_what_did_not_run_is_not_stale(project: Project) -> None:
    named = (
        "def test_named(explore):\n"
        "    assert not ENDS\n"
        "    explore(*steps('x'), create=dict, observe=shown, name='one')\n"
        "    explore(*steps('y'), create=dict, observe=shown)\n"
    )
    project.module("test_a.py", "ENDS = False\n", PAIR, named)
    project.module("test_b.py", LAST)
    assert project.run("--everyorder-update").ret == 0
    assert list(project.files()) == [
        "test_a/pair.txt",
        "test_a/test_named/one.txt",
        "test_a/test_named-2.txt",
        "test_b/last.txt",
    ]
    project.module("test_a.py", "ENDS = True\n", PAIR, named)
    project.module("test_b.py", "import pytest\npytest.skip('x', allow_module_level=1)")
    result = project.run()
    result.assert_outcomes(passed=1, failed=1, skipped=1)
    assert "stale: " not in result.stdout.str()
    assert summary(result) == "1 scenario, 4 states, 16 transitions: 1 as expected"


def test_a_broken_module_calls_nothing_stale(project: Project) -> None:
    project.module("test_a.py", PAIR)
    project.module("test_b.py", LAST)
    project.run("--everyorder-update")
    project.module("test_b.py", "1 / 0\n")
    for more in ((), ("--continue-on-collection-errors",)):
        result = project.run("--everyorder-update", *more)
        assert result.ret != 0
        assert "stale: " not in result.stdout.str()
    assert len(project.files()) == 2


def test_stopping_early_calls_nothing_stale(project: Project) -> None:
    project.module("test_a.py", PAIR, LAST)
    project.run("--everyorder-update")
    project.module("test_a.py", "def test_no():\n    assert 0\n", PAIR)
    assert "stale: " not in project.run("-x").stdout.str()
    assert "stale: " in project.run().stdout.str()


def test_two_tests_of_one_scenario(project: Project) -> None:
    project.module(
        "test_a.py",
        'one = Scenario(*steps("a"), create=dict, observe=shown, name="same")\n',
        'two = Scenario(*steps("b"), create=dict, observe=shown, name="same")\n',
    )
    for arguments in ((), ("-n2",)):
        result = project.run("--everyorder-update", *arguments)
        assert result.ret == 1
        result.assert_outcomes(passed=2)
        assert (
            "tests/test_a.py::one and tests/test_a.py::two both explore test_a/same; "
            "give one another name"
        ) in result.outlines
        assert project.files() == {}


def test_what_cannot_be_written_fails_the_run(project: Project) -> None:
    project.module("test_a.py", PAIR)
    project.write("expect", "in the way")
    result = project.run("--everyorder-update")
    result.assert_outcomes(passed=1)
    assert result.ret == 1
    assert (
        "not written: expect/test_a/pair.txt cannot be written: Not a directory; no "
        "expect file was written. Remove the cause, and accept again."
    ) in result.outlines
    assert summary(result) == "1 scenario, 4 states, 16 transitions: 1 not written"


def test_what_was_written_before_a_failure_counts(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.module("test_a.py", PAIR, LAST)
    project.run("--everyorder-update")
    project.module("test_b.py", PAIR)
    project.module("test_a.py", PAIR.replace('"b"', '"c"'))
    replace = os.replace

    def full(source: Path, target: Path) -> None:
        if target.parent.name == "test_b":
            raise OSError("disk full")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    result = project.run("--everyorder-update")
    assert result.ret == 1
    assert summary(result).endswith(
        "1 accepted, 1 not written; 1 expect file written; 1 expect file deleted"
    )
    assert (
        "not written: expect/test_b/pair.txt cannot be written: disk full; 2 of 3 "
        "files written: expect/test_a/last.txt, expect/test_a/pair.txt. Remove the "
        "cause, and accept again."
    ) in result.outlines
    assert list(project.files()) == ["test_a/pair.txt"]


@pytest.mark.slow
def test_without_testpaths_the_root_is_everything(project: Project) -> None:
    project.write("pytest.ini", INI.replace("testpaths = tests\n", ""))
    project.module("test_a.py", PAIR, LAST)
    project.run("--everyorder-update")
    project.module("test_a.py", PAIR)
    stale = "stale: expect/test_a/last.txt does not belong to any scenario"
    assert stale in project.run().outlines
    assert stale in project.run(".").outlines
    assert stale not in project.run("tests").outlines


def test_what_another_plugin_deselects_is_not_stale(project: Project) -> None:
    project.module("test_a.py", PAIR, LAST)
    project.run("--everyorder-update")
    project.write(
        "conftest.py",
        "def pytest_collection_modifyitems(config, items):\n"
        "    config.hook.pytest_deselected(items=[items.pop()])\n",
    )
    result = project.run()
    result.assert_outcomes(passed=1, deselected=1)
    assert result.ret == 0
