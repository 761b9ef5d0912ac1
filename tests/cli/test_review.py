"""Stale files, changes as decisions, and the command that accepts them."""

import os
import pty
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from everyorder.harness.cli import command as exits
from everyorder.harness.cli.changes import (
    ChangedScenario,
    Passage,
    ReviewChange,
    changes,
    documents,
)
from everyorder.harness.cli.judgement import Judgement, stale_files
from everyorder.harness.cli.review import decide
from everyorder.harness.expectations import Document, Key, Store, compare, document_of
from everyorder.harness.report.verdict import Report
from tests import collecting
from tests.cli.conftest import SOUND, Project, fresh_modules, unwrapped
from tests.report.samples import PROVEN

TESTS = """

def test_function(explore): ...


class TestClass:
    def test_method(self, explore): ...


def test_plain(): ...
"""


def expect(project: Project, *names: str) -> None:
    for name in names:
        project.write(f"expect/{name}.txt", "")


def stale(project: Project) -> tuple[str, ...]:
    with fresh_modules(project.root):
        return stale_files(Store(project.root), collecting.listing())


def test_what_no_scenario_stands_behind(project: Project) -> None:
    expect(
        project,
        "scenarios/test_sound/sound",
        "scenarios/test_sound/gone",
        "scenarios/test_gone/sound",
    )
    assert stale(project) == ("scenarios/test_gone/sound", "scenarios/test_sound/gone")


def test_what_a_test_may_explore_is_spared(project: Project) -> None:
    project.scenarios("sound", SOUND + TESTS)
    expect(
        project,
        "scenarios/test_sound/test_function",
        "scenarios/test_sound/test_function-2",
        "scenarios/test_sound/test_function[a]",
        "scenarios/test_sound/TestClass/test_method",
        "scenarios/test_sound/test_functional",
        "scenarios/test_sound/test_plain/by_getfixturevalue",
        "scenarios/test_sound/test_gone",
    )
    assert stale(project) == (
        "scenarios/test_sound/test_function[a]",
        "scenarios/test_sound/test_functional",
        "scenarios/test_sound/test_gone",
    )


def test_scenarios_of_modules_that_were_not_collected_are_spared(
    project: Project,
) -> None:
    project.write("tests/other/test_far.py", "far = made = 1\n")
    project.write("pytest.ini", "[pytest]\ntestpaths = tests/scenarios\n")
    expect(
        project,
        "other/test_far/far",
        "other/test_far/named",
        "other/test_gone/far",
        "scenarios/test_sound/count",
        "scenarios/test_sound/made",
    )
    assert stale(project) == (
        "other/test_gone/far",
        "scenarios/test_sound/count",
        "scenarios/test_sound/made",
    )


def test_what_cannot_be_known_is_spared(project: Project) -> None:
    project.scenarios("broken", "import nothing_like_this\n")
    project.scenarios(
        "skips", "import pytest\npytest.skip('no', allow_module_level=True)"
    )
    project.write("tests/test_half.py", "def half(:")
    expect(
        project,
        "scenarios/test_broken/some",
        "scenarios/test_skips/some",
        "test_half/some",
    )
    assert stale(project) == ()


OLD = document_of(PROVEN)
FIRST, SECOND = (), (0,)


def changed(name: str, *states: tuple[int, ...]) -> Report:
    seen = dict(PROVEN.exploration.states)
    for state in states:
        seen[state] = (("state", "another\n"),)
    exploration = replace(PROVEN.exploration, states=seen)
    return replace(PROVEN, scenario=name, exploration=exploration)


def judged(report: Report, expected: Document | None) -> Judgement:
    if expected is not None:
        expected = replace(expected, scenario=report.scenario)
    return Judgement(report.scenario, exits.OK, "", compare(expected, report))


def test_nothing_to_decide() -> None:
    assert changes([judged(PROVEN, OLD), Judgement("s/a", exits.OK)], ()) == []


def test_equal_differences_are_one_decision() -> None:
    found = changes(
        [
            judged(changed("s/a", FIRST, SECOND), OLD),
            judged(changed("s/b", FIRST), OLD),
        ],
        (),
    )
    assert [
        (change.verdict, [(part.scenario, part.keys) for part in change.parts])
        for change in found
    ] == [
        ("changed", [("s/a", (Key(FIRST),)), ("s/b", (Key(FIRST),))]),
        ("changed", [("s/a", (Key(SECOND),))]),
    ]
    assert found[0].headline() == "changed: 2 entries of s/a, s/b"
    assert found[1].headline() == "changed: 1 entry of s/a"
    assert not found[0].only_new
    [passage] = found[0].passages
    assert "+  another" in "\n".join(passage.lines).replace("+    ", "+  ")


def test_accepting_one_of_two_decisions() -> None:
    report = changed("s/a", FIRST, SECOND)
    first, second = changes([judged(report, OLD)], ())
    new = dict(document_of(report).entries)
    old = dict(OLD.entries)
    [(name, document)] = documents([first]).items()
    assert name == "s/a"
    assert document is not None
    taken = dict(document.entries)
    assert taken[Key(FIRST)] == new[Key(FIRST)]
    assert taken[Key(SECOND)] == old[Key(SECOND)]
    assert documents([first, second]) == {"s/a": document_of(report)}


def test_new_scenarios_are_one_decision() -> None:
    reports = [replace(PROVEN, scenario=f"s/{name}") for name in "abcde"]
    [change] = changes([judged(report, None) for report in reports], ())
    assert change.headline() == "new, 5 scenarios: s/a, s/b, s/c and 2 more"
    assert change.only_new
    assert documents([change]) == {
        report.scenario: document_of(report) for report in reports
    }


def test_a_damaged_file_is_a_decision_of_its_own() -> None:
    report = replace(PROVEN, scenario="s/a")
    damage = "expect/s/a.txt:1: a merge conflict is not resolved"
    found = Judgement("s/a", exits.CHANGED, "", compare(None, report), damage)
    new = judged(replace(PROVEN, scenario="s/b"), None)
    change, other = changes([found, new], ())
    assert change.headline() == "damaged file: s/a"
    assert change.passages[0].lines[:2] == (damage, "+steps:")
    assert not change.only_new
    assert other.headline() == "new, 1 scenario: s/b"
    assert documents([change]) == {"s/a": document_of(report)}


def test_a_part_of_a_change() -> None:
    reports = [replace(PROVEN, scenario=f"s/{name}") for name in "abc"]
    [change] = changes([judged(report, None) for report in reports], ())
    assert change.restricted_to(("s/b", "s/x")).scenarios == ("s/b",)
    assert documents([change.restricted_to(("s/b",))]) == {
        "s/b": document_of(reports[1])
    }
    assert change.restricted_to(()).parts == ()


def test_another_scenario_is_taken_as_a_whole() -> None:
    report = replace(PROVEN, scenario="s/a", steps=("x", *PROVEN.steps[1:]))
    [change] = changes([judged(report, OLD)], ())
    assert change.verdict == "another scenario"
    assert change.passages[0].lines[0] == "steps:"
    assert change.passages[0].lines[1:3] == (
        '-define("demo::add(Tensor x, Tensor y) -> Tensor")',
        "+x",
    )
    assert documents([change]) == {"s/a": document_of(report)}


def test_a_header_alone_is_a_decision() -> None:
    report = replace(PROVEN, scenario="s/a", uses=(*PROVEN.uses, "one_more()"))
    [change] = changes([judged(report, OLD)], ())
    assert change.headline() == "changed header: s/a"
    assert documents([change]) == {"s/a": document_of(report)}


def test_stale_files_are_one_decision() -> None:
    [change] = changes([], ("s/a", "s/b"))
    assert change == ReviewChange(
        "stale, no scenario",
        (ChangedScenario("s/a", None, None), ChangedScenario("s/b", None, None)),
    )
    assert documents([change]) == {"s/a": None, "s/b": None}


QUESTIONS = """\
not a terminal, so nothing is asked; 1 change to decide on:

[1/1] new, 2 scenarios: scenarios/test_sound/sound, scenarios/test_sound/newest
    @@ scenarios/test_sound/sound
    +steps:
    +  1  add("a")
    +  2  add("b")
    +uses:
    +  1  count()
    +entries: 4 states, 0 failing transitions
    +
    +== {} ==
"""

ANSWERS = """\

answer by one of these, or several --accept:
  everyorder review --accept all       every change
  everyorder review --accept new       what no expect file has yet
  everyorder review --accept ID        the change with this id, as above
  everyorder review --accept SCENARIO  what belongs to a path or pattern
"""

ACCEPTED = """\
written: expect/scenarios/test_sound/newest.txt
written: expect/scenarios/test_sound/sound.txt
1 change accepted, 0 left; 2 files written
"""

SHOUTING = SOUND.replace(
    'f"{name}\\n" for name in sorted', 'f"{name}!\\n" for name in sorted'
)


def expected(project: Project) -> list[str]:
    folder = project.root / "expect"
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(path.relative_to(folder).as_posix() for path in files)


def test_without_a_terminal_it_prints_what_it_would_ask_and_how_to_answer(
    project: Project,
) -> None:
    result = project.run("review")
    assert result.exit_code == exits.FAILED
    assert result.output.startswith(QUESTIONS)
    assert result.output.endswith(ANSWERS)
    assert "    ... and " in result.output
    assert "more lines" not in project.run("review", "--full").output
    assert expected(project) == []


def id_in(text: str) -> str:
    [digits] = re.findall(r"--accept ([0-9a-f]{8})\n", text)
    assert isinstance(digits, str)
    return digits


def test_the_id_of_a_change_accepts_exactly_what_was_shown(accepted: Project) -> None:
    files = sorted((accepted.root / "expect").rglob("*.txt"))
    file = files[1]
    file.unlink()
    printed = id_in(accepted.run("review").output)
    accepted.scenarios("sound", SHOUTING)
    result = accepted.run("review", "--accept", printed)
    assert result.exit_code == exits.REFUSED
    assert unwrapped(result) == (
        f"Error: --accept {printed}: no change has this id now. An id belongs to the "
        "whole content of a change; `everyorder review` prints those of today."
    )
    assert not file.exists()
    accepted.scenarios("sound", SOUND)
    result = accepted.run("review", "--accept", printed)
    assert result.exit_code == exits.OK
    assert file.exists()


def listing(name: str, separator: str) -> Report:
    """Return a report whose two observations list names with this separator."""
    states = {
        (): (("state", f"{name}{separator} b\n"),),
        (0,): (("state", f"x{separator} {name}\n"),),
    }
    exploration = replace(PROVEN.exploration, states=states, failures={})
    return replace(PROVEN, scenario=f"s/{name}", exploration=exploration)


def test_one_changed_separator_is_one_decision() -> None:
    names = ["c", "d", "e", "f"]
    new = {f"s/{name}": document_of(listing(name, ";")) for name in names}
    judgements = [
        judged(listing(name, ";"), document_of(listing(name, ","))) for name in names
    ]
    [change] = changes(judgements, ())
    assert change.headline() == "changed: 8 entries of s/c, s/d, s/e and 1 more"
    assert change.edits == ((",", ";"),)
    assert change.text_lines() == [
        "everywhere the same: ',' replaced by ';'",
        "@@ s/c {}",
        " state:",
        "-  c, b",
        "+  c; b",
        "... and 7 other diffs with only these replacements",
    ]
    whole = change.text_lines(whole=True)
    assert [line for line in whole if line.startswith("+")] == [
        f"+  {text}" for name in names for text in (f"{name}; b", f"x; {name}")
    ]
    assert documents([change]) == new
    assert documents([change.restricted_to(["s/d"])]) == {"s/d": new["s/d"]}


def test_saved_observations_are_decided_on_without_exploring(
    accepted: Project,
) -> None:
    file = accepted.root / "expect" / "scenarios" / "test_sound" / "sound.txt"
    before = file.read_text()
    accepted.scenarios("sound", SHOUTING)
    result = accepted.run("review", "--save")
    assert result.exit_code == exits.FAILED
    assert result.output.startswith(
        "saved: expect/scenarios/test_sound/sound.new\n1 change to decide on:\n"
    )
    assert "everyorder review --saved --accept all " in result.output
    assert file.read_text() == before
    saved = file.with_suffix(".new")
    # Neither is taken for the other.
    assert accepted.run("gate").exit_code == exits.CHANGED
    text = saved.read_text()
    assert text.startswith("everyorder observations, not accepted yet, format 3\n")
    file.write_text(text)
    assert (
        "these are observations that `review --save` wrote; accept them with "
        "`everyorder review --saved`, not by renaming the file"
    ) in accepted.run("gate").output
    file.write_text(before)
    accepted.write("tests/scenarios/test_sound.py", "raise RuntimeError('not again')")
    result = accepted.run("review", "--saved", "--accept", "sound")
    assert result.exit_code == exits.OK
    assert result.output == (
        "written: expect/scenarios/test_sound/sound.txt\n"
        "1 change accepted, 0 left; 1 file written\n"
    )
    assert not saved.exists()
    accepted.scenarios("sound", SHOUTING)
    assert accepted.run("gate").exit_code == exits.OK


def test_another_normaliser_is_one_decision(accepted: Project) -> None:
    changed = SOUND.replace(
        "    create=list,\n",
        "    create=list,\n    normalisers=[Normaliser('mask', 2, str.upper)],\n",
    )
    accepted.scenarios("sound", f"from everyorder.harness import Normaliser\n{changed}")
    result = accepted.run("review")
    assert (
        "\n[1/1] other normalisers: scenarios/test_sound/sound, scenarios/test_sound/"
        "newest\n"
    ) in result.output
    assert (
        "    the normalisers have changed, from none to mask, version 2\n"
    ) in result.output
    assert accepted.run("review", "--accept", "all").exit_code == exits.OK
    file = accepted.root / "expect" / "scenarios" / "test_sound" / "sound.txt"
    assert "\nnormalisers:\n  1  mask, version 2\nentries: " in file.read_text()


FREE = """
free = Scenario(add("a"), create=list, observe=shown, expect=False)
inline = Scenario(
    add("a"),
    create=list,
    observe=shown,
    expect="",
)
"""


def test_expectations_in_the_source_and_none_at_all(project: Project) -> None:
    path = project.scenarios("sound", SOUND.partition("sound = ")[0] + FREE)
    result = project.run("review", "--accept", "new")
    assert result.output == (
        "written: tests/scenarios/test_sound.py\n"
        "1 change accepted, 0 left; 1 file written\n"
    )
    assert path.read_text().endswith(
        'expect="""\n    == {} ==\n    state: \\\\e\n\n    == {1} ==\n'
        '    state:\n      a\n    """,\n)\n'
    )
    gate = project.run("gate")
    assert gate.exit_code == exits.OK
    assert gate.output.endswith(
        "gate: 2 scenarios, 1 as expected, 1 compared with nothing (expect=False); "
        "exit code 0\n"
    )
    path.write_text(path.read_text().replace("      a\n", "      b\n"))
    gate = project.run("gate")
    assert gate.exit_code == exits.CHANGED
    assert (
        "scenarios/test_sound/inline, by its argument expect=: not as expected: 1 "
        "changed\n  of 2 entries, first {1}\n"
    ) in gate.output
    assert (
        "\naccept it:\n    everyorder review --accept scenarios/test_sound/inline\n"
    ) in gate.output
    # A file that was used before `expect=` is stale.
    for name in ("free", "inline"):
        project.write(f"expect/scenarios/test_sound/{name}.txt", "")
    result = project.run("review", "--accept", "all")
    assert result.exit_code == exits.OK
    assert result.output == (
        "deleted: expect/scenarios/test_sound/free.txt\n"
        "deleted: expect/scenarios/test_sound/inline.txt\n"
        "written: tests/scenarios/test_sound.py\n"
        "2 changes accepted, 0 left; 1 file written, 2 deleted\n"
    )
    assert project.run("gate").exit_code == exits.OK


SHARED = """

def made(name):
    return Scenario(
        add(name), create=list, observe=shown, expect=\'\'\'
            == {} ==
            state: \\\\e

            == {1} ==
            state:
              a
            \'\'\',
    )


good = made("a")
bad = made("b")
"""


def test_an_argument_that_others_share_is_not_rewritten(project: Project) -> None:
    """The other scenario then differed from what was accepted."""
    path = project.scenarios("sound", SOUND.partition("sound = ")[0] + SHARED)
    before = path.read_text()
    gate = project.run("gate")
    assert "gate: 2 scenarios, 1 as expected; " in gate.output
    result = project.run("review", "--accept", "bad")
    assert result.exit_code == exits.REFUSED
    assert "scenarios/test_sound/good has the same argument, and is not" in " ".join(
        result.output.split()
    )
    assert path.read_text() == before


def test_saved_observations_that_are_as_expected_are_deleted(accepted: Project) -> None:
    accepted.scenarios("sound", SHOUTING)
    accepted.run("review", "--save")
    accepted.scenarios("sound", SOUND)
    result = accepted.run("review", "--save")
    assert result.output == (
        "deleted: expect/scenarios/test_sound/sound.new\n"
        "nothing to review: 2 scenarios as expected\n"
    )
    assert result.exit_code == exits.OK


@pytest.mark.parametrize(
    "arguments",
    [("--saved", "sound"), ("--saved", "--save"), ("--save", "--accept=all")],
)
def test_options_that_exclude_each_other(
    project: Project, arguments: tuple[str, ...]
) -> None:
    assert project.run("review", *arguments).exit_code == exits.REFUSED


def test_accepting_all(project: Project) -> None:
    result = project.run("review", "--accept", "all")
    assert (result.output, result.exit_code) == (ACCEPTED, exits.OK)
    result = project.run("review")
    text = "nothing to review: 2 scenarios as expected\n"
    assert (result.output, result.exit_code) == (text, exits.OK)


def test_new_does_not_accept_changes(project: Project) -> None:
    project.run("review", "--accept", "scenarios/test_sound/sound", "sound")
    project.scenarios("sound", SHOUTING)
    result = project.run("review", "--accept", "new")
    assert result.exit_code == exits.FAILED
    assert result.output.endswith("1 change accepted, 1 left; 1 file written\n")
    assert project.run("gate", "sound").exit_code == exits.CHANGED
    assert project.run("gate", "newest").exit_code == exits.OK


def test_a_pattern_of_scenarios(accepted: Project) -> None:
    accepted.scenarios("sound", SHOUTING)
    result = accepted.run("review", "--accept", "scenarios/*/sound")
    assert result.exit_code == exits.OK
    assert accepted.run("gate").exit_code == exits.OK


def test_stale_files_are_given_up(accepted: Project) -> None:
    accepted.scenarios("sound", SOUND.partition("newest = ")[0])
    text = accepted.run("review").output
    assert "[1/1] stale, no scenario: scenarios/test_sound/newest\n" in text
    assert "--accept new" not in text
    result = accepted.run("review", "--accept", "scenarios/test_sound/newest")
    assert result.output == (
        "deleted: expect/scenarios/test_sound/newest.txt\n"
        "1 change accepted, 0 left; 0 files written, 1 deleted\n"
    )
    assert expected(accepted) == ["scenarios/test_sound/sound.txt"]


def test_what_fails_is_never_offered(faulty: Project) -> None:
    faulty.scenarios("broken", "import nothing_like_this\n")
    result = faulty.run("review", "--accept", "all")
    assert result.exit_code == exits.FAILED
    assert result.output.startswith(
        "not to be accepted: scenarios/test_faulty/order fails; see everyorder run\n"
        "not to be accepted: scenarios/test_faulty/law fails; see everyorder run\n"
        "not to be accepted: scenarios/test_faulty/random fails; see everyorder run\n"
        "not to be accepted: scenarios/test_faulty/crash fails; see everyorder run\n"
        "not to be accepted: tests/scenarios/test_broken.py:1: ModuleNotFoundError: "
    )
    assert expected(faulty) == [
        "scenarios/test_faulty/failing.txt",
        "scenarios/test_sound/newest.txt",
        "scenarios/test_sound/sound.txt",
    ]


@pytest.mark.parametrize("accept", ["all", "sound", "scenarios/test_sound/sound"])
def test_a_damaged_file_can_be_replaced(accepted: Project, accept: str) -> None:
    path = accepted.root / "expect" / "scenarios" / "test_sound" / "sound.txt"
    before = path.read_text()
    path.write_text("nonsense")
    assert accepted.run("review", "--accept", accept).exit_code == exits.OK
    assert path.read_text() == before


def test_a_file_of_an_older_format_can_be_replaced(accepted: Project) -> None:
    path = accepted.root / "expect" / "scenarios" / "test_sound" / "sound.txt"
    before = path.read_text()
    path.write_text(before.replace("file, format 3\n", "file, format 1\n"))
    assert (
        "\nexpect/scenarios/test_sound/sound.txt:1: this is not format 3; the line "
        "reads 'everyorder expect file, format 1'. Write what is observed now in its "
        "place:\n    everyorder review --accept scenarios/test_sound/sound\n"
    ) in accepted.run("gate", "sound").output
    assert accepted.run("review", "--accept", "sound").exit_code == exits.OK
    assert path.read_text() == before


def as_format_2(text: str) -> str:
    """Return the text of a file of format 3 in format 2."""
    found = re.search(r"\nentries: (\d+ states), (.*)\n", text)
    assert found is not None
    old = f"\nstrategy: graph\nexplored: {found[1]}, 8 transitions, {found[2]}\n"
    text = text.replace(found[0], old, 1)
    return text.replace("file, format 3\n", "file, format 2\n", 1)


def test_files_of_format_2_are_read_and_rewritten_by_one_decision(
    accepted: Project,
) -> None:
    files = sorted((accepted.root / "expect").rglob("*.txt"))
    before = [path.read_text() for path in files]
    for path, text in zip(files, before, strict=True):
        path.write_text(as_format_2(text))
    result = accepted.run("gate")
    assert result.exit_code == exits.OK
    assert (
        "\n2 expect files have an older format, which is still read; everyorder review "
        "--accept all rewrites it\n"
    ) in "\n" + result.output
    result = accepted.run("review", "--accept", "all")
    assert result.output.endswith("1 change accepted, 0 left; 2 files written\n")
    assert [path.read_text() for path in files] == before
    assert "older format" not in accepted.run("gate").output


def test_another_strategy_touches_no_file(accepted: Project) -> None:
    for strategy in ("walk:2", "full", "graph+walk:0"):
        assert accepted.run("gate", "--strategy", strategy).exit_code == exits.OK


@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"<<<<<<< HEAD\n",
        b"everyorder expect file, format 1\n",
        b"everyorder expect file, format 4\n",
        "CRLF",
        "BOM",
    ],
)
def test_a_damaged_file_is_not_new(accepted: Project, data: bytes | str) -> None:
    path = accepted.root / "expect" / "scenarios" / "test_sound" / "sound.txt"
    if data == "CRLF":
        data = path.read_bytes().replace(b"\n", b"\r\n")
    elif data == "BOM":
        data = b"\xef\xbb\xbf" + path.read_bytes()
    assert isinstance(data, bytes)
    path.write_bytes(data)
    text = accepted.run("review", "sound").output
    assert "[1/1] damaged file: scenarios/test_sound/sound\n" in text
    assert "--accept new" not in text
    result = accepted.run("review", "sound", "--accept", "new")
    assert result.output == "0 changes accepted, 1 left; 0 files written\n"
    assert result.exit_code == exits.FAILED
    assert path.read_bytes() == data


def test_a_folder_in_the_place_of_a_file_is_not_replaced(project: Project) -> None:
    file = "expect/scenarios/test_sound/sound.txt"
    (project.root / file).mkdir(parents=True)
    result = project.run("review", "--accept", "all", "sound")
    assert result.exit_code == exits.FAILED
    assert result.output == (
        f"not to be accepted: {file} exists but cannot be read: Is a directory. Make "
        "it a readable file, or remove it.\n"
        "nothing to review: 0 scenarios as expected\n"
    )


def test_what_cannot_be_written_is_one_message(project: Project) -> None:
    project.write("expect", "in the way")
    result = project.run("review", "--accept", "all")
    assert result.exit_code == exits.REFUSED
    assert unwrapped(result) == (
        "Error: expect/scenarios/test_sound/newest.txt cannot be written: Not a "
        "directory; no expect file was written. Remove the cause, and accept again."
    )


INTERRUPTED = (
    "an accept was interrupted: 1 of 2 files written, each of them whole; not written: "
    "expect/scenarios/test_sound/sound.txt. Accept again, or restore the files from "
    "version control.\n"
)


def test_an_accept_that_is_interrupted_or_killed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace
    record = project.root / ".everyorder" / "accept.json"

    def interrupting(source: Path, target: Path) -> None:
        if target.name == "sound.txt":
            project.write("record", record.read_text())
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupting)
        result = project.run("review", "--accept", "all")
    assert result.exit_code == exits.INTERRUPTED
    assert result.output == (
        "interrupted; 1 of 2 files written: expect/scenarios/test_sound/newest.txt. "
        "Accept again to write the rest, or restore the files from version control.\n"
    )
    # A process that was killed leaves its record.
    record.write_text((project.root / "record").read_text())
    assert INTERRUPTED in project.run("gate").output
    result = project.run("review", "--accept", "all")
    assert result.output.startswith(INTERRUPTED)
    assert result.exit_code == exits.OK
    assert "interrupted" not in project.run("gate").output


def test_one_of_several_new_scenarios(project: Project) -> None:
    result = project.run("review", "--accept", "newest")
    assert (result.output, result.exit_code) == (
        "written: expect/scenarios/test_sound/newest.txt\n"
        "1 change accepted, 1 left; 1 file written\n",
        exits.FAILED,
    )
    assert expected(project) == ["scenarios/test_sound/newest.txt"]


@pytest.mark.parametrize(
    ("wanted", "advice"),
    [
        ("nwe", "did you mean new or scenarios/test_sound/newest?"),
        ("newst", "did you mean new or scenarios/test_sound/newest?"),
        ("x/*", "`everyorder review` lists what can be accepted."),
    ],
)
def test_a_name_of_nothing_is_refused(
    project: Project, wanted: str, advice: str
) -> None:
    result = project.run("review", "--accept", "sound", "--accept", wanted)
    assert result.exit_code == exits.REFUSED
    start = f"Error: --accept {wanted}: no scenario has this path, name or pattern; "
    printed = unwrapped(result)
    assert printed.startswith(start)
    assert printed.endswith(advice)
    assert expected(project) == []


def test_what_is_as_expected_is_no_wrong_name(project: Project) -> None:
    project.run("review", "--accept", "sound")
    result = project.run("review", "--accept", "sound")
    assert result.output == "0 changes accepted, 1 left; 0 files written\n"


def test_never_under_continuous_integration(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    result = project.run("review", "--accept", "all")
    assert result.exit_code == exits.REFUSED
    assert "never written while CI='true' is set" in result.output
    assert expected(project) == []


def at_terminal(root: Path, keys: list[str]) -> tuple[str, int]:
    """Run `review` on a terminal of its own and answer each question by a key."""
    ours, theirs = pty.openpty()
    path = os.pathsep.join(each for each in sys.path if each)
    environment = {k: v for k, v in os.environ.items() if k != "CI"}
    environment |= {"PYTHONPATH": path, "TERM": "dumb", "COLUMNS": "80"}
    child = subprocess.Popen(
        [sys.executable, "-m", "everyorder", "review"],
        cwd=root,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    waiting = list(keys)
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the child has ended
            break
        shown += part
        if waiting and shown.endswith(b"q quit: "):
            os.write(ours, f"{waiting.pop(0)}\n".encode())
    os.close(ours)
    return shown.decode().replace("\r\n", "\n"), child.wait()


def test_answers(project: Project) -> None:
    parts = (ChangedScenario("s/a", None, None),)
    long = tuple(f"+{number}" for number in range(60))
    offered = [
        ReviewChange(f"change {i}", parts, (Passage("", long[: 20 * i]),))
        for i in range(4)
    ]
    from click.testing import CliRunner

    for keys, taken, seen in (
        ("a\ns\na\nq\n", [0, 2], 4),
        ("s\nA\n", [1, 2, 3], 2),
        ("x\na\na\na\na\n", [0, 1, 2, 3], 4),
        ("v\nq\n", [], 1),
        ("s\ns\ns\nv\nq\n", [], 4),
    ):
        with CliRunner().isolation(input=keys) as (out, *_):
            assert decide(offered) == [offered[index] for index in taken]
            shown = out.getvalue().decode()
        assert shown.startswith("\n[1/4] change 0: s/a\n")
        assert shown.count("/4] change ") == seen
        # Only the last change is longer than an example.
        assert shown.count("    ... and 20 more lines\n") == (seen == 4)
        assert ("    +59\n" in shown) == ("s\nv" in keys)
        assert ("x" in keys) == ("is not one of" in shown)


def test_questions_at_a_terminal(accepted: Project) -> None:
    accepted.scenarios("sound", SHOUTING)
    accepted.scenarios("new", SOUND)
    shown, code = at_terminal(accepted.root, ["s", "a", "q"])
    assert code == exits.FAILED
    assert "[1/2] new, 2 scenarios: scenarios/test_new/sound" in shown
    assert "[2/2] changed: 3 entries of scenarios/test_sound/sound\n" in shown
    assert "everywhere the same: '!' added" in shown
    choices = "a accept, s skip, v view all of it, A accept all that follow, q quit"
    assert f"  {choices}: a\n" in shown
    assert shown.endswith("1 change accepted, 1 left; 1 file written\n")
    shown, code = at_terminal(accepted.root, ["A"])
    assert code == exits.OK
    assert shown.endswith("1 change accepted, 0 left; 2 files written\n")
    assert accepted.run("gate").exit_code == exits.OK
