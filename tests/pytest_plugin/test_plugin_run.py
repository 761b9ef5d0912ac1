"""What makes a test of a scenario pass or fail, and what it carries with it."""

import re
from xml.etree import ElementTree

import pytest

from everyorder.harness.expectations import read_all
from tests.pytest_plugin.project import BROKEN, FIRST, INI, PAIR, Project, joined

RANDOM = """
import time
odd = Scenario(*steps("a"), create=dict, observe=lambda r: str(time.perf_counter_ns()))
"""
UNFAIR = """
law = Scenario(*steps("a"), create=dict, observe=shown, check=lambda r: list(r))
"""


def test_damaged_file(project: Project) -> None:
    project.module("test_a.py", PAIR)
    project.run("--everyorder-update")
    whole = project.files()
    project.write("expect/test_a/pair.txt", "<<<<<<< mine\n")
    result = project.run()
    assert result.ret == 1
    assert (
        "tests/test_a.py:4: expect/test_a/pair.txt:1: a merge conflict is not "
        "resolved; the "
        "line reads '<<<<<<< mine'. Restore the file from version control, or accept "
        "what is observed now with --everyorder-update=all, which rewrites it."
    ) in joined(result)
    assert project.run("--everyorder-update=*").ret == 1
    assert project.run("--everyorder-update=all").ret == 0
    assert project.files() == whole


def test_a_file_of_an_older_format(project: Project) -> None:
    project.module("test_a.py", PAIR)
    project.run("--everyorder-update")
    whole = project.files()
    ((name, text),) = whole.items()
    project.write(
        f"expect/{name}", text.replace("file, format 3\n", "file, format 1\n")
    )
    result = project.run()
    assert result.ret == 1
    assert (
        "tests/test_a.py:4: expect/test_a/pair.txt:1: this is not format 3; the line "
        "reads "
        "'everyorder expect file, format 1'. Rewrite it with --everyorder-update=all, "
        "and review the difference in version control."
    ) in joined(result)
    assert project.run("--everyorder-update=all").ret == 0
    assert project.files() == whole


def test_a_file_of_format_2_is_read(project: Project) -> None:
    project.module("test_a.py", PAIR)
    project.run("--everyorder-update")
    whole = project.files()
    ((name, text),) = whole.items()
    counts = "strategy: graph\nexplored: 4 states, 9 transitions, 0 failing"
    old = text.replace("file, format 3\n", "file, format 2\n")
    old = old.replace("entries: 4 states, 0 failing", counts)
    project.write(f"expect/{name}", old)
    result = project.run()
    assert result.ret == 0
    assert (
        "1 expect file has an older format, which is still read; "
        "--everyorder-update=all rewrites it"
    ) in result.outlines
    assert project.files() == {name: old}
    assert project.run("--everyorder-update=all").ret == 0
    assert project.files() == whole
    assert "older format" not in project.run().stdout.str()


@pytest.mark.slow
def test_a_strategy_of_a_flag_or_of_the_ini_file_changes_nothing(
    project: Project,
) -> None:
    project.module("test_a.py", PAIR, FIRST)
    project.run("--everyorder-update")
    for arguments in (
        ("--everyorder-strategy=walk:0",),
        ("--everyorder-strategy=full+histories:2",),
        ("--everyorder-budget=60",),
    ):
        assert project.run(*arguments).ret == 0
    project.write("pytest.ini", INI.replace("walk:1", "walk:0"))
    assert project.run("tests").ret == 0


def test_cut_short(project: Project) -> None:
    project.module("test_a.py", PAIR)
    result = project.run("--everyorder-budget=1e-9")
    assert result.ret == 1
    text = result.stdout.str()
    assert "\ntest_a/pair: cut short: the budget was spent before everything" in text
    assert "\n  strategy  walk:1\n" in text
    skipped = "\n  skipped   the budget of 1e-09 seconds is spent (--budget raises it)"
    assert f"{skipped}: 0 of 16\n" in text
    assert "\n  executed  1 state, 0 of 16 transitions; " in text
    assert all(len(line) <= 80 for line in failure(result))
    assert "\neveryorder: 1 scenario, " in text
    assert ": 1 cut short\n" in text


def failure(result: pytest.RunResult) -> list[str]:
    """The lines of the only failure."""
    text = result.stdout.str().partition("= FAILURES =")[2]
    return text.partition("everyorder: ")[0].splitlines()[1:]


IDLE = """
from everyorder.harness.scenario import step

idle = Scenario(
    *steps("a"),
    step("nothing()", lambda registry: lambda: None),
    create=dict,
    observe=lambda registry: "always the same",
)
"""


def test_what_is_vacuous_says_why(project: Project) -> None:
    project.module("test_a.py", IDLE)
    result = project.run()
    assert failure(result)[1:] == [
        "test_a/idle: something in the scenario could not have shown any fault",
        "- put('a') changes nothing that is looked at or asked; if that is meant, "
        "declare",
        "  constant=True",
        "- nothing() changes nothing that is looked at or asked; if that is meant,",
        "  declare constant=True",
        "- what is observed shows the same whatever is active; if that is meant, "
        "declare",
        "  constant=True",
        "    pytest tests/test_a.py::idle",
    ]
    text = project.run("--junitxml=out.xml").stdout.str()
    assert "guarantee" not in text
    tree = ElementTree.parse(project.path / "out.xml")
    reasons = [
        each.attrib["value"]
        for each in tree.iter("property")
        if each.attrib["name"] == "vacuous"
    ]
    assert [reason.split()[0] for reason in reasons] == [
        "put('a')",
        "nothing()",
        "what",
    ]


def test_other_verdicts(project: Project) -> None:
    project.module("test_a.py", RANDOM, UNFAIR, BROKEN)
    result = project.run()
    text = result.stdout.str()
    assert "test_a/odd: the same operations, played again, gave another" in text
    assert "test_a/law: a law is broken after `put(" in text
    assert "1 order-dependent, 1 breaking a law, 1 flaky" in text


@pytest.mark.slow
def test_junit_properties(project: Project) -> None:
    project.module("test_a.py", PAIR, BROKEN)
    for arguments in ((), ("-n2",)):
        project.run("--junitxml=out.xml", *arguments)
        tree = ElementTree.parse(project.path / "out.xml")
        properties = {
            case.attrib["name"]: {
                each.attrib["name"]: each.attrib["value"]
                for each in case.iter("property")
            }
            for case in tree.iter("testcase")
        }
        pair, broken = properties["pair"], properties["broken"]
        guarantee = pair.pop("guarantee")
        assert guarantee.startswith("walk:1: every operation was taken from every")
        assert pair == {
            "scenario": "test_a/pair",
            "verdict": "holds",
            "strategy": "walk:1",
            "states": "4",
            "transitions": "16",
            "assumes": "walk:1: only these of a history matter: the active steps and "
            "its last 1 operation",
        }
        assert broken["verdict"] == "order"
        assert broken["replay id"] == "28n00-9c"


def test_a_question_that_cannot_be_asked(project: Project) -> None:
    project.module(
        "test_a.py",
        "def test_it(explore):\n"
        "    explore(*steps('a'), create=dict, observe=shown, strategy='best')\n",
    )
    result = project.run()
    assert (
        "tests/test_a.py:4: no strategy is called 'best'; there are auto, graph, walk:N"
    ) in joined(result)


RAISING = """
from functools import partial


def divided(registry):
    return 1 / 0


def chained(registry):
    try:
        divided(registry)
    except ZeroDivisionError:
        raise ValueError("outer")


zero = Scenario(*steps("a"), create=partial(divided, {}), observe=shown)
made = Scenario(*steps("a"), create=lambda: {}["x"], observe=shown)
chain = Scenario(*steps("a"), create=partial(chained, {}), observe=shown)
left = Scenario(*steps("a"), create=lambda: exit(3), observe=shown)
bare = Scenario(*steps("a"), create=partial(len, 3), observe=shown)


def test_it(explore):
    explore(*steps("a"), create=partial(divided, {}), observe=shown)


def test_wrong(explore):
    explore(*steps("a"))
"""


def test_what_a_scenario_raises_is_shown_without_the_harness(project: Project) -> None:
    project.module("test_a.py", RAISING)
    result = project.run()
    assert result.ret == 1
    text = result.stdout.str()
    told, _, _ = text.partition("= short test summary info =")
    split = re.split(r"^_+ (\w+) _+$", told, flags=re.MULTILINE)
    parts = dict(zip(split[1::2], split[2::2], strict=True))
    names = {"zero", "made", "chain", "left", "bare", "test_it", "test_wrong"}
    assert set(parts) == names
    for name in ("zero", "made", "chain", "left", "test_it", "test_wrong"):
        assert "harness/" not in parts[name], name
        assert "_pytest" not in parts[name], name
        assert parts[name].count("test_a.py:") <= 3, name
    lines = [line for line in parts["zero"].splitlines() if line.strip(" ^")]
    assert lines == [
        "registry = {}",
        "    def divided(registry):",
        ">       return 1 / 0",
        "E       ZeroDivisionError: division by zero",
        "tests/test_a.py:9: ZeroDivisionError",
    ]
    assert "E   KeyError: 'x'" in parts["made"]
    assert "During handling of the above exception" in parts["chain"]
    assert "E           ValueError: outer" in parts["chain"]
    assert "SystemExit: 3" in parts["left"]
    assert "explore(*steps(" in parts["test_it"]
    assert "ZeroDivisionError: division by zero" in parts["test_it"]
    assert "without create;\n  expected" in parts["test_wrong"]
    assert "everyorder/harness" not in parts["test_wrong"]
    assert "--full-trace shows all frames" in parts["bare"]
    assert parts["bare"].count("Error") == 2


def test_the_whole_traceback_can_be_had(project: Project) -> None:
    project.module("test_a.py", RAISING)
    text = project.run("--full-trace", "tests/test_a.py::zero").stdout.str()
    assert "harness/engine/explorer.py:" in text
    assert "harness/systems/registry.py:" in text


def test_a_refusal_is_told_once(project: Project) -> None:
    project.module(
        "test_a.py",
        "listed = Scenario(*steps('a'), create=dict, observe=list)\n",
        PAIR,
    )
    project.write("expect/test_a/pair.txt", "<<<<<<< mine\n")
    text = joined(project.run())
    assert "During handling" not in text
    assert text.count("returned by observe; expected text") == 1
    assert text.count("a merge conflict is not resolved") == 1


@pytest.mark.usefixtures("last")
def test_a_step_that_is_never_done_is_noted(project: Project) -> None:
    project.module(
        "test_a.py",
        "from everyorder.harness.scenario import define, impl\n"
        "typo = Scenario(\n"
        "    define('a::f(Tensor x) -> Tensor'), impl('a::f', shown, 'CPUU')\n"
        ")\n",
    )
    notes: list[list[str]] = []

    class Noting:
        def pytest_sessionfinish(self, session: pytest.Session) -> None:
            plugin = session.config.pluginmanager.get_plugin("everyorder-run")
            assert plugin is not None
            records = read_all(plugin.folder).records
            notes.extend(r["silent"] for r in records if r["kind"] == "result")

    arguments = ("-p", "everyorder", "-p", "no:cacheprovider")
    project.pytester.inline_run(*arguments, plugins=[Noting()])
    ((note,),) = notes
    assert note.startswith("test_a/typo step 2: UnknownKey")
