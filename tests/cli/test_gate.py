import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from everyorder.harness.cli import command as exits
from tests.cli.conftest import SOUND, Project, unwrapped

MORE = """
from everyorder.harness.scenario import Scenario, step


def put(name, **given):
    def do(registry):
        registry[name] = name
        return lambda: registry.pop(name)

    return step(f"put({name!r})", do, **given)


def shown(registry):
    return "".join(f"{name}\\n" for name in sorted(registry))


first = put("a")
plain = Scenario(put("a"), put("b"), create=dict, observe=shown)
related = Scenario(
    first, put("b", requires=[first]), create=dict, observe=shown
)
"""


def files(root: Path) -> dict[str, bytes]:
    found = {}
    for path in sorted(root.rglob("*")):
        found[path.relative_to(root).as_posix()] = (
            path.read_bytes() if path.is_file() else b""
        )
    return found


PROVEN = """\
proven: for histories of any length, in one thread and one process; -v shows
  what that assumes
2 further assumptions of 1 scenario; -v shows them
"""


def test_as_expected(accepted: Project) -> None:
    result = accepted.run("gate")
    assert result.output == f"{PROVEN}gate: 2 scenarios, 2 as expected; exit code 0\n"
    assert result.exit_code == exits.OK


COVERED = """\
guarantee: sca:2: every 2 steps were added, and removed, in every order of those
  2 (plain, related)
skipped: sca:2: of 2 orders of 2 steps, 1 of adding and 1 of removing did not
  occur: a step fails, cannot be undone, has to precede another or excludes it
  (related)
gate: 2 scenarios, 2 as expected; exit code 0
"""


def test_what_stands_beside_the_verdicts(accepted: Project) -> None:
    """Guarantees that are no proof, assumptions, and what was skipped, once each."""
    accepted.scenarios("more", MORE)
    accepted.run("review", "more", "--accept", "all")
    result = accepted.run("gate", "-v", "test_more", "--strategy", "sca:2")
    assert result.output == COVERED
    result = accepted.run("gate", "test_more", "--strategy", "sca:2")
    assert result.output == (
        "1 omitted part of 1 scenario; -v shows it\n"
        "gate: 2 scenarios, 2 as expected; exit code 0\n"
    )
    assert result.exit_code == exits.OK


@pytest.fixture
def read_only(accepted: Project) -> Iterator[Project]:
    folders = [p for p in accepted.root.rglob("*") if p.is_dir()]
    for folder in (accepted.root, *folders):
        folder.chmod(0o555)
    yield accepted
    for folder in (accepted.root, *folders):
        folder.chmod(0o755)


def test_a_read_only_tree(read_only: Project) -> None:
    assert read_only.run("gate", "sound").exit_code == exits.OK


def test_missing(project: Project) -> None:
    result = project.run("gate")
    assert result.exit_code == exits.MISSING
    head = "[13] an expectation is missing: scenarios/test_sound/sound\n"
    assert head in result.output
    assert "everyorder review --accept scenarios/test_sound/sound" in result.output
    assert result.output.endswith(
        "gate: 2 scenarios, 0 as expected; exit code 13\n"
        "  13  an expectation is missing: 2\n"
    )


def test_changed(accepted: Project) -> None:
    accepted.scenarios("sound", SOUND.replace('f"{name}\\n" for', 'f"[{name}]\\n" for'))
    result = accepted.run("gate", "sound")
    assert result.exit_code == exits.CHANGED
    assert "[12] an expectation differs, or its file is damaged" in result.output
    assert "    -  a\n    +  [a]\n" in result.output.replace("    -    a", "    -  a")


def test_stale_entries(accepted: Project) -> None:
    path = accepted.root / "expect" / "scenarios" / "test_sound" / "sound.txt"
    text = path.read_text()
    accepted.scenarios("sound", SOUND.replace('    add("b"),\n    uses', "    uses"))
    assert accepted.run("gate", "sound").exit_code == exits.STALE
    assert path.read_text() == text


@pytest.mark.slow
def test_stale_files(accepted: Project) -> None:
    accepted.scenarios("sound", SOUND.replace("newest = ", "renamed = "))
    result = accepted.run("gate")
    assert result.exit_code == exits.MISSING
    assert (
        "[14] an expectation is stale: scenarios/test_sound/newest\n"
        "expect/scenarios/test_sound/newest.txt does not belong to any scenario; "
        "delete it:\n"
        "    everyorder review --accept scenarios/test_sound/newest\n"
    ) in result.output
    (accepted.root / "expect/scenarios/test_sound/sound.txt").unlink()
    accepted.scenarios("sound", SOUND.partition("newest = ")[0])
    accepted.run("review", "--accept", "new")
    assert accepted.run("gate").exit_code == exits.STALE
    assert accepted.run("gate", "tests/scenarios").exit_code == exits.OK


def test_a_damaged_file(accepted: Project) -> None:
    path = accepted.root / "expect" / "scenarios" / "test_sound" / "sound.txt"
    path.write_text("nonsense\n")
    result = accepted.run("gate", "sound")
    assert result.exit_code == exits.CHANGED
    assert "expect/scenarios/test_sound/sound.txt:1: " in result.output
    command = "everyorder review --accept scenarios/test_sound/sound"
    assert f"in its place:\n    {command}\n" in result.output
    assert "--everyorder-update" not in result.output


def test_a_file_that_cannot_be_read(accepted: Project) -> None:
    path = accepted.root / "expect" / "scenarios" / "test_sound" / "sound.txt"
    path.unlink()
    path.mkdir()
    result = accepted.run("gate")
    assert result.exit_code == exits.CHANGED
    assert (
        "expect/scenarios/test_sound/sound.txt exists but cannot be read: Is a "
        "directory."
    ) in result.output
    assert "gate: 2 scenarios, 1 as expected; exit code 12\n" in result.output


def test_two_scenarios_of_one_name(accepted: Project) -> None:
    accepted.scenarios("sound", f"{SOUND}\ntwin = newest.named('newest')\n")
    result = accepted.run("gate")
    assert result.exit_code == exits.NOT_LOADED
    assert "[17] a scenario could not be loaded: scenarios/test_sound/newest\n" in (
        result.output
    )
    said = unwrapped(result)
    assert "twin is called scenarios/test_sound/newest like newest" in said


@pytest.mark.parametrize(
    ("scenario", "code"),
    [
        ("law", exits.LAW),
        ("order", exits.ORDER),
        ("random", exits.RANDOM),
        ("crash", exits.NOT_EXPLORED),
    ],
)
def test_each_fault_has_its_code(faulty: Project, scenario: str, code: int) -> None:
    result = faulty.run("gate", f"test_faulty/{scenario}")
    assert result.exit_code == code
    first = f"[{code}] {exits.GATE[code]}: scenarios/test_faulty/{scenario}\n"
    assert result.output.startswith(first)


UNSOUND = """
from everyorder.harness.scenario import Scenario, step, use
from tests.scenarios.test_sound import add, shown

KEPT = []


def keep(name):
    def do(registry):
        KEPT.append(name)
        return lambda: None

    return step(f"keep({name!r})", do)


typo = Scenario(
    add("a"), step("typo", lambda r: r.apend("b")), create=list, observe=shown
)
asked = Scenario(
    add("a"), uses=[use("typo", lambda r: r.cuont("a"))], create=list, observe=shown
)
idle = Scenario(add("a"), create=list, observe=lambda r: "the same")
kept = Scenario(
    keep("a"), keep("b"), create=list, observe=lambda r: " ".join(sorted(KEPT))
)
"""

# What each of them was called, and what is said of it now.
NEITHER = [
    ("typo", exits.VACUOUS, "`typo` always raises: AttributeError: 'list' object has"),
    ("asked", exits.VACUOUS, "`typo` always raises: AttributeError: 'list' object has"),
    ("idle", exits.VACUOUS, "what is observed shows the same whatever is active"),
    ("kept", exits.NOT_FRESH, "`create` does not make a fresh registry: a later"),
]


@pytest.mark.parametrize(("scenario", "code", "told"), NEITHER)
def test_what_neither_holds_nor_depends_on_order_has_its_code(
    accepted: Project, scenario: str, code: int, told: str
) -> None:
    """Typing errors held, and a registry that is not fresh depended on order."""
    accepted.scenarios("unsound", UNSOUND)
    result = accepted.run("gate", f"test_unsound/{scenario}")
    assert result.exit_code == code
    assert told in unwrapped(result)
    assert result.output.startswith(
        f"[{code}] {exits.GATE[code]}: scenarios/test_unsound/{scenario}\n"
    )
    assert "order: " not in result.output


HIDING = """
from everyorder.harness.scenario import Scenario, step
from tests.scenarios.test_sound import add

UNDONE = []


def made():
    UNDONE.clear()
    return []


def forget(registry):
    registry.append("b")

    def undo():
        registry.remove("b")
        UNDONE.append("b")

    return undo


hiding = Scenario(
    add("a"),
    step("forget", forget),
    create=made,
    observe=lambda r: f"{sorted(r)} {bool(UNDONE)}",
    fingerprint=tuple,
)
"""


def test_hidden_state_has_a_code_of_its_own(accepted: Project) -> None:
    accepted.scenarios("hides", HIDING)
    result = accepted.run("gate", "hiding")
    assert result.exit_code == exits.HIDDEN
    assert "UNDONE[0]: <absent> / 'b'" in result.output
    assert "order: " not in result.output


def test_cut_short(accepted: Project) -> None:
    result = accepted.run("gate", "--strategy", "walk:2", "--steps", "10", "sound")
    assert result.exit_code == exits.CUT_SHORT


def test_not_loaded(accepted: Project) -> None:
    accepted.scenarios("broken", "def half(:\n")
    result = accepted.run("gate")
    assert result.exit_code == exits.NOT_LOADED
    assert (
        "[17] a scenario could not be loaded: scenarios/test_broken.py\n"
        "tests/scenarios/test_broken.py:1: SyntaxError: invalid syntax\n"
    ) in result.output


def test_several_faults_exit_by_the_lowest_and_nothing_is_written(
    faulty: Project,
) -> None:
    before = files(faulty.root)
    result = faulty.run("gate")
    assert result.exit_code == exits.LAW
    assert files(faulty.root) == before
    assert result.output.endswith(
        "gate: 7 scenarios, 0 as expected; exit code 10\n"
        "  10  a law is broken: 1\n"
        "  11  something depends on order or history, or a pin pins nothing: 1\n"
        "  13  an expectation is missing: 3\n"
        "  15  a scenario is not deterministic: 1\n"
        "  18  a scenario could not be explored: 1\n"
    )


def test_a_strategy_chosen_by_hand_is_no_difference(accepted: Project) -> None:
    assert accepted.run("gate", "--strategy", "walk:0", "sound").exit_code == 0


def test_the_help_has_every_code(project: Project) -> None:
    text = project.run("gate", "--help").output
    for code, sentence in exits.GATE.items():
        assert f"\n    {code:>2}  {sentence}\n" in text
    assert os.getcwd() == str(project.root)


MISTYPED = """
from everyorder.harness.scenario import Scenario, define, impl

mistyped = Scenario(
    define("a::f(Tensor x) -> Tensor"), impl("a::f", lambda x: x, "CPUU")
)
"""


def test_steps_that_never_succeed_are_told(accepted: Project) -> None:
    """They may be what was meant, and may be a slip; the code stays 0."""
    accepted.scenarios("mistyped", MISTYPED)
    accepted.run("review", "mistyped", "--accept", "all")
    result = accepted.run("gate")
    told, _, counts = result.output.partition("\n\n")
    assert told.startswith(
        "steps that fail whatever is active, so only their failure is shown:\n"
    )
    assert "mistyped step 2: UnknownKey CPUU" in told
    assert counts == f"{PROVEN}gate: 3 scenarios, 3 as expected; exit code 0\n"
    assert result.exit_code == exits.OK


DIES = """
import os, time
from everyorder.harness.scenario import Scenario, step
from tests.scenarios.test_sound import add, shown

leaves = Scenario(
    add("a"), step("leave", lambda r: os._exit(0)), create=list, observe=shown
)
sleeps = Scenario(
    add("a"), step("sleep", lambda r: time.sleep(99)), create=list, observe=shown
)
"""


def test_a_step_that_ends_the_process_does_not_pass(accepted: Project) -> None:
    accepted.scenarios("dies", DIES)
    result = accepted.run("gate", "--operation-timeout", "1")
    assert result.exit_code == exits.CRASHED
    assert (
        "[22] a process died of a scenario: scenarios/test_dies/leaves\n"
        "tests/scenarios/test_dies.py: the process that explored it ended (exit code 0)"
        "\nin\n    step_2 = leave\n"
    ) in result.output
    assert (
        "[23] an operation or a scenario was not over in time: "
        "scenarios/test_dies/sleeps\n"
        "tests/scenarios/test_dies.py:10: an operation was not over after 1 s\n"
    ) in result.output
    assert result.output.endswith(
        "gate: 4 scenarios, 2 as expected; exit code 22\n"
        "  22  a process died of a scenario: 1\n"
        "  23  an operation or a scenario was not over in time: 1\n"
    )


def test_a_budget_does_not_wait_for_a_step_that_hangs(accepted: Project) -> None:
    """It is asked between two operations, so it never fired inside of one."""
    accepted.scenarios("dies", DIES)
    result = accepted.run(
        "gate", "sleeps", "--budget", "3", "--operation-timeout", "0.5"
    )
    assert result.exit_code == exits.HUNG
    assert "an operation was not over after 0.5 s\nin\n    step_2 = sleep\n" in (
        result.output
    )
    assert 'test_dies.py", line 10 in <lambda>' in result.output


def test_a_module_that_ends_the_process_does_not_pass(accepted: Project) -> None:
    accepted.scenarios("ends", "import os\nos._exit(0)\n")
    result = accepted.run("gate")
    assert result.exit_code == exits.CRASHED
    assert "[22] a process died of a scenario: scenarios/test_ends.py" in result.output


def test_in_this_process(accepted: Project) -> None:
    accepted.scenarios(
        "here",
        "import os\n"
        "from everyorder.harness.scenario import Scenario\n"
        "from tests.scenarios.test_sound import add, shown\n"
        "def told(r):\n    print(os.getpid())\n    return shown(r)\n"
        "here = Scenario(add('a'), create=list, observe=told)\n",
    )
    here = f"{os.getpid()}\n"
    assert here in accepted.run("gate", "here", "--in-process").output
    assert here not in accepted.run("gate", "here").output
