"""The commands and pytest agree: fixtures, marks and tests mean the same to both."""

import json
import re
import subprocess
import sys

import pytest

from everyorder.harness.cli import command as exits
from everyorder.harness.exploration.paths import is_below
from tests.cli.conftest import Project, unwrapped

HEAD = """
import pytest
from everyorder.harness import Scenario, step


def add(name):
    def do(registry):
        registry.append(name)
        return lambda: registry.remove(name)

    return step(f"add({name!r})", do)


def in_order(registry):
    return "".join(registry)


def sorted_names(registry):
    return "".join(sorted(registry))


right = {"create": list, "observe": sorted_names}
wrong = {"create": list, "observe": in_order}
steps = [add("a"), add("b")]
"""

# A module's text -> what both say of each item: passed, failed, skipped or xfailed.
CASES = {
    "module level": ("fine = Scenario(*steps, **right)\n", {"fine": "passed"}),
    "module level, wrong": ("bad = Scenario(*steps, **wrong)\n", {"bad": "failed"}),
    "fixture": (
        "def test_it(explore):\n    explore(*steps, **right)\n",
        {"test_it": "passed"},
    ),
    "fixture, wrong": (
        "def test_it(explore):\n    explore(*steps, **wrong)\n",
        {"test_it": "failed"},
    ),
    "parametrize": (
        "@pytest.mark.parametrize('given', [right, wrong], ids=['r', 'w'])\n"
        "def test_it(explore, given):\n    explore(*steps, **given)\n",
        {"test_it[r]": "passed", "test_it[w]": "failed"},
    ),
    "a second scenario": (
        "def test_it(explore):\n"
        "    explore(*steps, **right)\n    explore(*steps, name='two', **wrong)\n",
        {"test_it": "failed"},
    ),
    "a failure that the test expects": (
        "def test_it(explore):\n"
        "    with pytest.raises(pytest.fail.Exception):\n"
        "        explore(*steps, **wrong)\n",
        {"test_it": "passed"},
    ),
    "unchecked": (
        "def test_it(explore):\n"
        "    assert not explore(*steps, check=False, **wrong).passed\n",
        {"test_it": "passed"},
    ),
    "an assertion of the test": (
        "def test_it(explore):\n    assert explore(*steps, **right).verdict == 'law'\n",
        {"test_it": "failed"},
    ),
    "xfail": (
        "@pytest.mark.xfail(reason='not yet')\n"
        "def test_it(explore):\n    explore(*steps, **wrong)\n",
        {"test_it": "xfailed"},
    ),
    "xfail that passes": (
        "@pytest.mark.xfail\ndef test_it(explore):\n    explore(*steps, **right)\n",
        {"test_it": "passed"},
    ),
    "strict xfail that passes": (
        "@pytest.mark.xfail(strict=True)\n"
        "def test_it(explore):\n    explore(*steps, **right)\n",
        {"test_it": "failed"},
    ),
    "skip": (
        "@pytest.mark.skip(reason='not here')\n"
        "def test_it(explore):\n    explore(*steps, **wrong)\n",
        {"test_it": "skipped"},
    ),
    "skipif of a module": (
        "pytestmark = pytest.mark.skipif(True, reason='not here')\n"
        "bad = Scenario(*steps, **wrong)\n",
        {"bad": "skipped"},
    ),
    "xfail of a module": (
        "pytestmark = pytest.mark.xfail(reason='not yet')\n"
        "bad = Scenario(*steps, **wrong)\n",
        {"bad": "xfailed"},
    ),
    "a fixture fails": (
        "@pytest.fixture\ndef broken():\n    raise ValueError('no server')\n"
        "def test_it(explore, broken):\n    explore(*steps, **right)\n",
        {"test_it": "failed"},
    ),
    "a fixture's end fails": (
        "@pytest.fixture\ndef broken():\n    yield\n    raise ValueError('open')\n"
        "def test_it(explore, broken):\n    explore(*steps, **right)\n",
        {"test_it": "failed"},
    ),
    "autouse": (
        "@pytest.fixture(autouse=True)\n"
        "def chosen(monkeypatch):\n    monkeypatch.setenv('OBSERVED', 'sorted')\n"
        "def observe(registry):\n"
        "    import os\n"
        "    return in_order(sorted(registry) if 'OBSERVED' in os.environ "
        "else registry)\n"
        "fine = Scenario(*steps, create=list, observe=observe)\n",
        {"fine": "passed"},
    ),
    "create asks for fixtures": (
        "@pytest.fixture\ndef kind():\n    return list\n"
        "def create(kind, tmp_path):\n    assert tmp_path.is_dir()\n    return kind()\n"
        "fine = Scenario(*steps, create=create, observe=sorted_names)\n"
        "def test_it(explore):\n"
        "    explore(*steps, create=create, observe=sorted_names)\n",
        {"fine": "passed", "test_it": "passed"},
    ),
    "create asks for a fixture that is none": (
        "bad = Scenario(*steps, create=lambda kynd: [], observe=sorted_names)\n",
        {"bad": "failed"},
    ),
}

# Everything has an expect file, so that only the cases decide.
ACCEPT = ("-q", "--everyorder-update=all")


def run_pytest(project: Project, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(
        command, cwd=project.root, capture_output=True, text=True, check=False
    )


def said_by_pytest(project: Project) -> dict[str, str]:
    """What pytest says of each item, by node ids without their folder."""
    words = {"PASSED": "passed", "XPASS": "passed", "FAILED": "failed"}
    words |= {"ERROR": "failed", "SKIPPED": "skipped", "XFAIL": "xfailed"}
    found: dict[str, str] = {}
    output = run_pytest(project, "-rA", "-v").stdout
    for line in output.splitlines():
        match = re.match(r"tests/(test_case\S*\.py::\S+) (\w+)", line)
        if match and found.get(match[1]) != "failed":
            found[match[1]] = words[match[2]]
    return found


def said_by_gate(project: Project, *options: str) -> dict[str, str]:
    """What the gate says of each item, by the same ids."""
    listed = json.loads(project.run("list", "--json").stdout)["scenarios"]
    judged = json.loads(project.run("gate", "--json", *options).stdout)["scenarios"]
    found: dict[str, str] = {}
    for task in listed:
        word = "passed"
        for each in judged:
            name = each["scenario"]
            if name != task["node"] and not is_below(name, task["scenario"]):
                continue
            if each["exit_code"] != exits.OK:
                word = "failed"
            elif each["skipped"]:
                word = "skipped"
                if each["text"].startswith("expected to fail"):
                    word = "xfailed"
        found[task["node"].removeprefix("tests/")] = word
    return found


@pytest.mark.parametrize(
    "where", ["child", pytest.param("here", marks=pytest.mark.slow)]
)
def test_gate_says_what_pytest_says(project: Project, where: str) -> None:
    (project.root / "tests/scenarios/test_sound.py").unlink()
    expected: dict[str, str] = {}
    for number, (text, words) in enumerate(CASES.values()):
        name = f"test_case_{number:02}.py"
        project.write(f"tests/{name}", HEAD + text)
        expected |= {f"{name}::{item}": word for item, word in words.items()}
    run_pytest(project, *ACCEPT)
    assert said_by_pytest(project) == expected
    options = ("--in-process",) if where == "here" else ()
    assert said_by_gate(project, *options) == expected


@pytest.mark.parametrize("case", ["parametrize", "module level, wrong"])
def test_one_item_is_chosen_by_its_node_id(project: Project, case: str) -> None:
    text, words = CASES[case]
    project.write("tests/test_case.py", HEAD + text)
    run_pytest(project, *ACCEPT)
    for item, word in words.items():
        result = project.run("gate", f"tests/test_case.py::{item}")
        assert (result.exit_code != exits.OK) == (word == "failed"), result.output


def test_a_changed_expectation_fails_both(project: Project) -> None:
    """Also one that a test expects to differ, as an expected failure."""
    (project.root / "tests/scenarios/test_sound.py").unlink()
    text = "def test_it(explore):\n    explore(*steps, **right)\n"
    project.write("tests/test_case.py", HEAD + text)
    run_pytest(project, *ACCEPT)
    file = project.root / "expect/test_case/test_it.txt"
    file.write_text(file.read_text().replace("ab", "ba"))
    assert said_by_pytest(project) == {"test_case.py::test_it": "failed"}
    result = project.run("gate")
    assert result.exit_code == exits.CHANGED
    assert "test_case/test_it" in result.output
    project.write(
        "tests/test_case.py", f"{HEAD}@pytest.mark.xfail(strict=True)\n{text}"
    )
    assert said_by_pytest(project) == {"test_case.py::test_it": "xfailed"}
    assert project.run("gate").exit_code == exits.OK


def test_two_tests_of_one_scenario(project: Project) -> None:
    text = "def test_it(explore):\n" + "    explore(*steps, **right)\n" * 2
    again = "one = Scenario(*steps, name='test_it-2', **right)\n"
    project.write("tests/test_case.py", HEAD + text + again)
    tested = run_pytest(project, "tests/test_case.py", *ACCEPT)
    both = "both explore"
    assert both in tested.stdout
    result = project.run("gate", "tests/test_case.py")
    assert "tests/test_case.py::test_it and tests/test_case.py::one" in result.output
    assert both in unwrapped(result)


def test_fixtures_are_set_up_for_replay_and_show(project: Project) -> None:
    text, _ = CASES["create asks for fixtures"]
    bad = "bad = Scenario(*steps, create=create, observe=in_order)\n"
    test = (
        "def test_bad(explore):\n    explore(*steps, create=create, observe=in_order)\n"
    )
    project.write("tests/test_case.py", HEAD + text + bad + test)
    for name in ("bad", "test_bad"):
        output = project.run("run", f"test_case/{name}").output
        match = re.search(rf"everyorder (replay \S+ test_case/{name})\b", output)
        assert match is not None, output
        replayed = project.run(*match[1].split())
        assert replayed.exit_code == exits.FAILED
        assert f"test_case/{name}: 2 operations" in replayed.output
        shown = project.run("show", f"test_case/{name}", "--state", "2,1")
        assert shown.exit_code == exits.OK
        assert "\nba\n" in shown.output


def test_a_fixture_that_is_none_is_named(project: Project) -> None:
    text, _ = CASES["create asks for a fixture that is none"]
    project.write("tests/test_case.py", HEAD + text)
    output = " ".join(project.run("run", "tests/test_case.py").output.split())
    assert (
        "tests/test_case.py:25: a scenario cannot use create(kynd): there is no "
        "fixture 'kynd'; expected a function without parameters, or with fixtures of "
        "pytest."
    ) in output


def test_create_with_fixtures_needs_pytest(project: Project) -> None:
    from everyorder.harness import Scenario, explore, step
    from everyorder.harness.base.errors import NotAScenario

    scenario = Scenario(
        step("add", lambda r: r.pop), create=lambda tmp_path: [], observe=repr
    )
    assert scenario.fixtures == ("tmp_path",)
    with pytest.raises(NotAScenario, match="asks for fixtures"):
        explore(scenario)


def test_addopts_that_would_run_elsewhere_or_write(project: Project) -> None:
    """`-n`, `--cov` and `--lf` of a project change nothing and write nothing."""
    project.write(
        "pytest.ini",
        "[pytest]\npythonpath = .\nlog_file = log.txt\n"
        "addopts = -n 2 --lf -ra --color=yes --junitxml=out.xml --basetemp=tmp\n",
    )
    project.run("review", "--accept", "all")
    before = sorted(project.root.rglob("*"))
    result = project.run("gate", "tests")
    assert (result.exit_code, "2 as expected" in result.output) == (exits.OK, True)
    assert sorted(project.root.rglob("*")) == before


GREEN_AND_RED = {
    # A test that explores and then fails, with an entry that fewer histories miss.
    "stale by a flag": (
        "def test_it(explore):\n    explore(*steps, **right)\n    assert False\n",
        ("--strategy", "histories:1"),
        ("--everyorder-strategy=histories:1",),
        "",
    ),
    "stale by addopts": (
        "def test_it(explore):\n    explore(*steps, **right)\n",
        (),
        (),
        "addopts = --everyorder-strategy=histories:1\n",
    ),
    "a limit of the ini file": (
        "import os, time\n"
        "def add_slowly(r):\n"
        "    time.sleep(float(os.environ.get('SECONDS', '0')))\n"
        "    r.append('s')\n"
        "    return r.pop\n"
        "slow = step('slow', add_slowly)\n"
        "def test_it(explore):\n    explore(slow, **right)\n",
        (),
        (),
        "everyorder_operation_timeout = 0.3\neveryorder_strategy = histories:1\n",
    ),
}


@pytest.mark.parametrize("case", GREEN_AND_RED)
def test_flags_and_settings_mean_the_same(
    project: Project, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, flags, of_pytest, ini = GREEN_AND_RED[case]
    (project.root / "tests/scenarios/test_sound.py").unlink()
    project.write("tests/test_case.py", HEAD + text.replace("assert False", ""))
    run_pytest(project, *ACCEPT)
    project.write("tests/test_case.py", HEAD + text)
    project.write("pytest.ini", f"[pytest]\n{ini}")
    monkeypatch.setenv("SECONDS", "1")
    tested = run_pytest(project, "tests", *of_pytest)
    gated = project.run("gate", "tests", *flags)
    assert tested.returncode in (0, 1), tested.stdout
    assert (gated.exit_code == exits.OK) == (tested.returncode == 0), gated.output


def test_files_of_a_test_that_ended_early_are_not_stale(project: Project) -> None:
    (project.root / "tests/scenarios/test_sound.py").unlink()
    text = "def test_it(explore):\n    explore(*steps, **right)\n"
    project.write("tests/test_case.py", HEAD + text + "    explore(*steps, **right)\n")
    run_pytest(project, *ACCEPT)
    (project.root / "expect/test_case/test_it.txt").unlink()
    result = project.run("gate")
    assert result.exit_code == exits.MISSING
    assert "stale" not in result.output


def test_session_fixtures_are_set_up_once(project: Project) -> None:
    project.write(
        "tests/test_case.py",
        HEAD + "@pytest.fixture(scope='session', autouse=True)\n"
        "def server(request):\n"
        "    file = request.config.rootpath / 'starts'\n"
        "    file.open('a').write('x')\n"
        "one = Scenario(*steps, **right)\n"
        "def test_it(explore):\n    explore(*steps, **right)\n"
        "two = Scenario(*steps, **right)\n",
    )
    for options in ((), ("--in-process",)):
        project.run("run", "tests/test_case.py", "--jobs", "1", *options)
        starts = project.root / "starts"
        assert starts.read_text() == "x"
        starts.unlink()


def test_options_of_another_conftest(project: Project) -> None:
    """A later child collected one file, without the conftest of another folder."""
    project.write(
        "tests/conftest.py",
        "def pytest_addoption(parser):\n    parser.addoption('--mine')\n",
    )
    text = HEAD + "one = Scenario(*steps, **right)\ntwo = Scenario(*steps, **right)\n"
    project.write("more/test_case.py", text)
    project.write(
        "pytest.ini", "[pytest]\naddopts = --mine=1\ntestpaths = tests more\n"
    )
    (project.root / "tests/scenarios/test_sound.py").unlink()
    result = project.run("run", "--jobs", "2")
    assert result.exit_code == exits.OK, result.output


def test_files_that_pytest_takes_for_doctests(project: Project) -> None:
    """An expect file is called test_*.txt, as doctests are."""
    project.write("pytest.ini", "[pytest]\naddopts = --doctest-modules\n")
    project.write("test_notes.txt", ">>> 1 + 1\n2\n")
    (project.root / "tests/scenarios/test_sound.py").unlink()
    text = "def test_it(explore):\n    explore(*steps, **right)\n"
    project.write("tests/test_case.py", HEAD + text)
    assert project.run("review", "--accept", "all").exit_code == exits.OK
    result = project.run("gate")
    assert result.exit_code == exits.OK, result.output
    tested = run_pytest(project, "-v", ".")
    assert "test_it.txt" not in tested.stdout


def test_a_broken_module_under_fail_fast_of_pytest(project: Project) -> None:
    project.write("tests/test_broken.py", "import nothing_like_this\n")
    project.write("pytest.ini", "[pytest]\naddopts = -x\npythonpath = .\n")
    result = project.run("gate", "tests")
    assert result.exit_code == exits.MISSING
    assert "nothing_like_this" in result.output


def test_an_error_beside_a_failed_exploration_is_reported(project: Project) -> None:
    text, _ = CASES["a fixture's end fails"]
    project.write("tests/test_case.py", HEAD + text.replace("right", "wrong"))
    output = project.run("gate", "tests/test_case.py").output
    assert "teardown of the test: ValueError: open" in output
    assert "[11] something depends on order" in output
