import json

import pytest

from harness.cli import exit_code
from tests.cli.conftest import FAULTY, Project

TABLE = """\
scenario   n sets edges strategy      guarantee  verdict time
─────────────────────────────────────────────────────────────
test_sound
  sound    2    4    48 graph +walk:1 any length proven  0 ms
─────────────────────────────────────────────────────────────
1 scenario      4    48                          1 ok    0 ms

1 scenario: 1 proven; 4 states, 48 edges
"""

TYPO = """
from harness.scenario import Scenario, define, impl

typo = Scenario(
    define("demo::foo(Tensor x) -> Tensor"), impl("demo::foo", len, "CPUU")
)
"""

ORDER = """\
scenarios/test_faulty/order: depends on more than the set of active steps
order: the observation depends on more than the active set
at {1 2}, after 2 letters; no shorter order of these steps shows it:
    step_2 = add("b")
    step_1 = add("a")
square: from {}, 2 then 1 differs from 1 then 2
first divergence in 'state' (- expected, + found):
    @@ -1,2 +1,2 @@
    +b
     a
    -b
replay id: 1cmkb-78
    everyorder replay 1cmkb-78 scenarios/test_faulty/order

  steps
    1  add("a")
    2  add("b")
  strategy  walk:1
"""


def test_the_whole_output_of_what_passes(project: Project) -> None:
    arguments = ("run", "sound", "--strategy", "graph+walk:1")
    assert project.text(*arguments) == TABLE
    assert project.run(*arguments).exit_code == exit_code.OK


def test_a_failing_scenario_is_explained(faulty: Project) -> None:
    arguments = ("run", "order", "--strategy", "walk:1")
    assert ORDER in faulty.text(*arguments)
    assert faulty.run(*arguments).exit_code == exit_code.FAILED


def test_everything_has_its_row(faulty: Project) -> None:
    faulty.scenarios("broken", "import nothing_like_this\n")
    faulty.scenarios(
        "skips", "import pytest\npytest.skip('no', allow_module_level=True)"
    )
    text = faulty.text("run")
    rows = [line.split() for line in text.partition("\n\n")[0].splitlines()]
    verdicts = {row[0]: row[-3] for row in rows if row[-1:] == ["ms"]}
    assert verdicts == {
        "order": "ORDER",
        "law": "LAW",
        "random": "RANDOM",
        "failing": "holds",
        "sound": "proven",
        "newest": "pinned",
        "8": "ok",
    }
    assert ["crash", "FAILED"] in rows
    assert ["test_broken.py", "FAILED"] in rows
    assert text.startswith("skipped: tests/scenarios/test_skips.py: no\n")
    assert (
        "\ntests/scenarios/test_broken.py:1: ModuleNotFoundError: "
        "No module named 'nothing_like_this'\n"
    ) in text
    assert "/test_faulty.py:30: ZeroDivisionError: division by zero\n" in text
    assert text.splitlines()[-1].startswith(
        "8 scenarios: 1 not deterministic, 1 with a broken law, 1 dependent on order, "
        "1 pinned, 1 holding, 1 proven, 2 not explored; "
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
    assert result.exit_code == exit_code.REFUSED
    # Nothing was explored for it.
    assert result.output == (
        "Error: no report can be written to taken/here: Not a directory\n"
    )
    project.write("half/index.html/in.the.way", "")
    result = project.run("run", "sound", "--report", "half")
    assert result.exit_code == exit_code.REFUSED
    assert result.output.endswith(
        "Error: no report can be written to half: Is a directory\n"
    )


def test_steps_that_never_succeed_are_told(faulty: Project) -> None:
    faulty.scenarios("typo", TYPO)
    result = faulty.run("run", "test_typo", "failing")
    assert result.exit_code == exit_code.OK
    assert (
        "\nsteps that fail at every set, so nothing is shown but that:\n"
        "  scenarios/test_typo/typo step 2: UnknownKey CPUU\n"
        "  scenarios/test_faulty/failing step 2: ValueError this name is taken\n"
    ) in result.output
    assert "fail at every set" not in faulty.text("run", "sound")


def test_a_budget_cuts_short(project: Project) -> None:
    text = project.text("run", "sound", "--strategy", "walk:2", "--steps", "50")
    assert (
        "sound: cut short: the budget was spent before everything\nwas executed" in text
    )
    assert "  skipped   the budget of 50 steps is spent: 50 of 108 steps exec" in text


def test_steps_bound_what_auto_chooses(project: Project) -> None:
    rows = project.text("run", "sound", "--steps", "120").splitlines()
    assert rows[3].split()[4:6] == ["graph", "+walk:1"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--strategy", "best"),
            "Error: no strategy is called 'best'; there are auto, graph, walk:N, "
            "words:N, arrangements, kA:N, sca:N, full. Join several by '+', as in "
            "'graph+walk:2'.\n",
        ),
        (
            ("sond",),
            "Error: there is no file, folder or scenario 'sond'; did you mean "
            "scenarios/test_sound/sound?\n",
        ),
        (
            ("tests/scenarios/test_none.py",),
            "Error: there is no file, folder or scenario "
            "'tests/scenarios/test_none.py'; without a path, scenarios are looked for "
            "in tests/scenarios, or else tests.\n",
        ),
        (
            ("empty",),
            "Error: there are no scenarios in empty. A scenario is a module-level "
            "`Scenario` of a file called test_*.py.\n",
        ),
        (
            ("skips",),
            "Error: there are no scenarios in skips; skipped: skips/test_a.py (no). A "
            "scenario is a module-level `Scenario` of a file called test_*.py.\n",
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
    assert (result.output, result.exit_code) == (message, exit_code.REFUSED)


def test_torch_takes_no_paths(project: Project) -> None:
    result = project.run("run", "--system", "torch", "sound")
    assert result.exit_code == exit_code.REFUSED
    assert result.output.endswith(
        "--system torch has a scenario of its own; no PATHS\n"
    )


STOPS = """
from harness.scenario import Scenario, step


def stop(registry):
    raise KeyboardInterrupt


stops = Scenario(step("stop()", stop), create=list, observe=repr)
"""


def test_an_interrupt_tells_what_is_finished(project: Project) -> None:
    project.scenarios("stops", STOPS)
    arguments = ("run", "test_sound", "stops", "--report", "build/report")
    result = project.run(*arguments, "--jobs", "1")
    assert result.exit_code == exit_code.INTERRUPTED
    assert "2 scenarios: 1 pinned, 1 proven; " in result.output
    assert result.output.endswith("\ninterrupted: 2 of 3 scenarios explored\n")
    assert not (project.root / "build/report/index.html").exists()
    result = project.run("run", "stops")
    assert result.exit_code == exit_code.INTERRUPTED
    assert result.output == "interrupted: 0 of 1 scenario explored\n"


def test_an_interrupt_of_another_command(project: Project) -> None:
    project.scenarios("stops", STOPS)
    for command in ("gate", "review"):
        result = project.run(command)
        assert result.exit_code == exit_code.INTERRUPTED
        assert result.output.strip() == "interrupted"


def test_processes_explore_alike_and_survive_a_crash(project: Project) -> None:
    project.scenarios("faulty", FAULTY)
    project.scenarios(
        "dies",
        "import os\nfrom harness.scenario import Scenario, step\n"
        "dies = Scenario(step('a', lambda r: r.pop), create=list, "
        "observe=lambda r: os._exit(7))\n",
    )
    one = project.text("run", "--jobs", "1", "test_sound")
    project_rows = project.text("run", "--jobs", "2")
    for line in one.splitlines()[2:5]:
        assert line.split()[:4] in [
            row.split()[:4] for row in project_rows.splitlines()
        ]
    assert (
        "scenarios/test_dies/dies: the process that explored it ended (exit code 7)\n"
    ) in project_rows
    assert "\n8 scenarios: " in project_rows
