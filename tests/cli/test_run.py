import json
import re

import pytest

from everyorder.harness.cli import command as exits
from everyorder.harness.cli.runner import MOST_PRINTED
from tests.cli.conftest import Project, plain, unwrapped

BRIEF = """\
scenarios/test_sound/sound: holds: no difference within what was explored (0 ms)
1 scenario: 1 holding; 4 states, 36 transitions
"""
TABLE = """\
scenario   n states transitions strategy guarantee verdict time
───────────────────────────────────────────────────────────────
test_sound
  sound    2      4          36 walk:1   last 1    holds   0 ms
───────────────────────────────────────────────────────────────
1 scenario        4          36                    1 ok    0 ms

guarantee: walk:1: every operation was taken from every reachable state after
  every history of the last 1 operation, in one run (sound)
1 scenario: 1 holding; 4 states, 36 transitions
"""

TYPO = """
from everyorder.harness.scenario import Scenario, define, impl

typo = Scenario(
    define("demo::foo(Tensor x) -> Tensor"),
    impl("demo::foo", len, "CPUU"),
    impl("demo::foo", len, "CPU"),
)
"""

ORDER = """\
scenarios/test_faulty/order: what is observed depends on the order of `add("b")`
and `add("a")`.
    one way             another way
    step_1 = add("a")   step_2 = add("b")
    step_2 = add("b")   step_1 = add("a")
no shorter history of these operations shows it
difference in 'state' (- one way, + another way):
    @@ -1,2 +1,2 @@
    +b
     a
    -b
variables that differ (one way / another way):
    registry[0]: 'a' / 'b'
    registry[1]: 'b' / 'a'
replay it:
    everyorder replay 2cmkb-9r scenarios/test_faulty/order

1 scenario: 1 dependent on order; 4 states, 16 transitions
"""


def test_the_whole_output_of_what_passes(project: Project) -> None:
    result = project.run("run", "sound", "--strategy", "walk:1")
    assert (plain(result), result.exit_code) == (BRIEF, exits.OK)
    result = project.run("run", "-v", "sound", "--strategy", "walk:1")
    assert (plain(result), result.exit_code) == (TABLE, exits.OK)


def test_a_failing_scenario_is_explained(faulty: Project) -> None:
    result = faulty.run("run", "order", "--strategy", "walk:1")
    assert plain(result) == ORDER
    assert result.exit_code == exits.FAILED


def test_everything_has_its_row(faulty: Project) -> None:
    faulty.scenarios("broken", "import nothing_like_this\n")
    faulty.scenarios(
        "skips", "import pytest\npytest.skip('no', allow_module_level=True)"
    )
    text = faulty.text("run", "--strategy", "walk:1")
    rows = [line.split() for line in text.partition("\n\n")[0].splitlines()]
    verdicts = {row[0]: row[-3] for row in rows if row[-1:] == ["ms"]}
    assert verdicts == {
        "order": "ORDER",
        "law": "LAW",
        "random": "FLAKY",
        "failing": "holds",
        "sound": "holds",
        "newest": "pinned",
        "8": "ok",
    }
    assert ["crash", "FAILED"] in rows
    assert ["test_broken.py", "FAILED"] in rows
    assert text.startswith("skipped: tests/scenarios/test_skips.py: no\n")
    assert (
        "\ntests/scenarios/test_broken.py:1: ModuleNotFoundError: No module named\n"
        "  'nothing_like_this'\n"
    ) in text
    assert "/test_faulty.py:29: ZeroDivisionError: division by zero\n" in text
    assert " ".join(text.split()).endswith(
        " 8 scenarios: 1 flaky, 1 with a broken law, 1 dependent on order, 1 pinned, "
        "2 holding, 2 not explored; 19 states, 92 transitions"
    )


def test_a_report_is_written(project: Project) -> None:
    text = project.text("run", "--report", "build/report")
    assert text.endswith("\nreport: build/report/index.html\n")
    folder = project.root / "build" / "report"
    assert "scenarios/test_sound/newest" in (folder / "index.html").read_text()
    found = json.loads((folder / "report.json").read_text())
    assert [each["verdict"] for each in found["scenarios"]] == ["proven", "pinned"]


def test_a_report_that_cannot_be_written(project: Project) -> None:
    project.write("taken", "")
    result = project.run("run", "--report", "taken/here")
    assert result.exit_code == exits.REFUSED
    # Nothing was explored for it.
    assert result.output == (
        "Error: no report can be written to taken/here: Not a directory\n"
    )
    project.write("half/index.html/in.the.way", "")
    result = project.run("run", "sound", "--report", "half")
    assert result.exit_code == exits.REFUSED
    assert result.output.endswith(
        "Error: no report can be written to half: Is a directory\n"
    )


def test_steps_that_never_succeed_are_told(faulty: Project) -> None:
    faulty.scenarios("typo", TYPO)
    result = faulty.run("run", "test_typo", "failing")
    assert result.exit_code == exits.OK
    assert (
        "\nsteps that fail whatever is active, so only their failure is shown:\n"
        "  scenarios/test_typo/typo step 2: UnknownKey CPUU\n"
        "  scenarios/test_faulty/failing step 2: ValueError this name is taken\n"
    ) in result.output


def test_a_budget_cuts_short(project: Project) -> None:
    text = project.text("run", "sound", "--strategy", "walk:2", "--steps", "50")
    assert (
        "sound: cut short: the budget was spent before everything\nwas executed" in text
    )
    assert (
        "  skipped   the budget of 50 steps is spent (--steps raises it): 50 of 108"
        in text
    )


def test_steps_bound_what_auto_chooses(project: Project) -> None:
    text = project.text("run", "-v", "sound", "--steps", "120")
    assert "histories:3 would take 102 operations, the budget allows 120" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--strategy", "best"),
            "Error: no strategy is called 'best'; there are auto, graph, walk:N, "
            "stale, histories:N, groups, parts, arrangements, kA:N, sca:N, random:N, "
            "full. Join several by '+', as in 'graph+walk:2'.\n",
        ),
        (
            ("sond",),
            "Error: there is no Python file, folder or scenario 'sond'; did you mean "
            "scenarios/test_sound/sound?\n",
        ),
        (
            ("tests/scenarios/test_none.py",),
            "Error: there is no Python file, folder or scenario "
            "'tests/scenarios/test_none.py'; without a path, everything that pytest "
            "collects is searched.\n",
        ),
        (
            ("empty",),
            "Error: there are no scenarios in empty. A scenario is a module-level "
            "`Scenario` of a test file, or is explored by a test with the fixture "
            "`explore`.\n",
        ),
        (
            ("skips",),
            "Error: there are no scenarios in skips; skipped: skips/test_a.py (no). A "
            "scenario is a module-level `Scenario` of a test file, or is explored by "
            "a test with the fixture `explore`.\n",
        ),
    ],
)
def test_mistakes_are_one_message(
    project: Project, arguments: tuple[str, ...], message: str
) -> None:
    (project.root / "empty").mkdir()
    project.write(
        "skips/test_a.py", "import pytest\npytest.skip('no', allow_module_level=True)"
    )
    result = project.run("run", *arguments)
    assert max(map(len, result.output.splitlines())) <= 80
    assert unwrapped(result) == message.strip()
    assert result.exit_code == exits.REFUSED


def test_torch_takes_no_paths(project: Project) -> None:
    result = project.run("run", "--system", "torch", "sound")
    assert result.exit_code == exits.REFUSED
    assert result.output.endswith(
        "--system torch explores a fixed scenario; omit PATHS\n"
    )


STOPS = """
from everyorder.harness.scenario import Scenario, step


def stop(registry):
    raise KeyboardInterrupt


stops = Scenario(step("stop()", stop), create=list, observe=repr)
"""


def test_an_interrupt_tells_what_is_finished(project: Project) -> None:
    project.scenarios("stops", STOPS)
    arguments = ("run", "test_sound", "stops", "--in-process", "--strategy", "walk:1")
    result = project.run(*arguments, "--report", "build/report")
    assert result.exit_code == exits.INTERRUPTED
    assert "2 scenarios: 1 pinned, 1 holding; " in result.output
    assert result.output.endswith("\ninterrupted: 2 of 3 scenarios explored\n")
    assert not (project.root / "build/report/index.html").exists()
    result = project.run("run", "stops", "--in-process")
    assert result.exit_code == exits.INTERRUPTED
    assert result.output == "interrupted: 0 of 1 scenario explored\n"


def test_a_step_that_interrupts_fails_in_its_own_process(project: Project) -> None:
    project.scenarios("stops", STOPS)
    result = project.run("run", "stops")
    assert result.exit_code == exits.FAILED
    assert (
        "scenarios/test_stops/stops: not explored\n"
        "tests/scenarios/test_stops.py:6: KeyboardInterrupt\n"
    ) in result.output


DIES = """
import os, time
from everyorder.harness.scenario import Scenario, step
from tests.scenarios.test_sound import add, shown


def leave(registry):
    if registry:
        os._exit(0)
    return registry.clear


def sleep(registry):
    time.sleep(1000)


def scenario(second):
    return Scenario(add("a"), step("second", second), create=list, observe=shown)


leaves = scenario(leave)
sleeps = scenario(sleep)
"""

TOLD = """\
scenarios/test_dies/leaves: crashed
tests/scenarios/test_dies.py: the process that explored it ended (exit code 0)
in
    step_2 = second
after
    create()
    observe()
    step_1 = add("a")
    observe()

scenarios/test_dies/sleeps: hung
tests/scenarios/test_dies.py:14: an operation was not over after 1 s
in
    step_2 = second
after
    create()
stack, innermost call first:
    File "tests/scenarios/test_dies.py", line 14 in sleep
"""


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_who_dies_is_told_and_the_others_go_on(project: Project, jobs: str) -> None:
    project.scenarios("dies", DIES)
    text = project.text(
        "run",
        *("--operation-timeout", "1", "--strategy", "walk:1", "--jobs", jobs),
        *("--report", "report"),
    )
    assert TOLD in text
    rows = [line.split() for line in text.partition("\n\n")[0].splitlines()]
    assert ["leaves", "CRASHED"] in rows
    assert ["sleeps", "HUNG"] in rows
    assert "\n4 scenarios: 1 pinned, 1 holding, 1 crashed, 1 hung; 9 states, 5" in text
    data = json.loads((project.root / "report/report.json").read_text())
    assert [
        (each["scenario"], each["verdict"], each["operation"])
        for each in data["unexplored"]
    ] == [
        ("scenarios/test_dies/leaves", "crashed", "step_2 = second"),
        ("scenarios/test_dies/sleeps", "hung", "step_2 = second"),
    ]
    page = (project.root / "report/index.html").read_text()
    assert "&#34;tests/scenarios/test_dies.py&#34;, line 14 in sleep" in page
    assert 'unexplored">hung</span> scenarios/test_dies/sleeps' in page


def test_a_module_that_ends_the_process_is_told(project: Project) -> None:
    project.scenarios("ends", "import os\nos._exit(0)\n")
    result = project.run("run", "--strategy", "walk:1")
    assert result.exit_code == exits.FAILED
    assert (
        "\nscenarios/test_ends.py: crashed\n"
        "tests/scenarios/test_ends.py: the process that imported it ended "
        "(exit code 0)\nin\n    import tests/scenarios/test_ends.py\n"
    ) in result.output
    assert "\n3 scenarios: 1 pinned, 1 holding, 1 crashed; " in result.output


def test_the_first_lines_that_steps_print_are_printed(project: Project) -> None:
    project.scenarios(
        "talks",
        "import os\n"
        "from everyorder.harness.scenario import Scenario\n"
        "from tests.scenarios.test_sound import add, shown\n"
        "def loud(r):\n    os.system('echo loud')\n    return shown(r)\n"
        "talks = Scenario(add('a'), create=list, observe=loud)\n",
    )
    output = project.run("run", "talks").output
    assert output.startswith("loud\n" * MOST_PRINTED)
    match = re.search(
        r"^\.\.\. ([\d,]+) more lines printed by scenarios/test_talks/talks; "
        r"--in-process prints all$",
        output,
        re.MULTILINE,
    )
    assert match is not None
    assert output.count("loud\n") == MOST_PRINTED
    assert int(match[1].replace(",", "")) > 100


SURROGATES = r"""
from everyorder.harness.scenario import Scenario, step, use


def add(name):
    def do(registry):
        registry.append(name)
        return lambda: registry.remove(name)

    return do


half = Scenario(
    step("add \ud800\t\n", add("\ud800")),
    step("add b", add("b")),
    create=list,
    observe="".join,
)
"""


def test_half_of_a_surrogate_pair_is_written_as_its_escape(project: Project) -> None:
    """The whole run ended at it, and no report was written."""
    project.scenarios("half", SURROGATES)
    result = project.run("run", "half", "--strategy", "walk:1", "--report", "report")
    assert result.exit_code == exits.FAILED, result.output
    assert (
        "scenarios/test_half/half: what is observed depends on the order: `add b` "
        "then\n`add \\ud800\\t\\n` gives 'b\\ud800', the other way round '\\ud800b'.\n"
    ) in result.output
    found = json.loads((project.root / "report" / "report.json").read_text("utf-8"))
    (violation,) = found["scenarios"][0]["violations"]
    assert violation["difference"][2:4] == ["    -\ud800b", "    +b\ud800"]
    assert "\\ud800b" in (project.root / "report" / "index.html").read_text("utf-8")
    for arguments in (
        ("gate", "half"),
        ("replay", violation["replay_id"], "half"),
        ("show", "half", "--state", "1,2"),
    ):
        told = project.run(*arguments)
        assert isinstance(told.exception, SystemExit | None), told.exception
        assert "\\ud800" in told.output
