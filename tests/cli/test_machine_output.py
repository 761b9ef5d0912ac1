"""Results for other programs: JSON of each command, JUnit XML, annotations."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from everyorder.harness.base.errors import FileError
from everyorder.harness.cli import command as exits
from everyorder.harness.cli.judgement import Judgement
from everyorder.harness.cli.machine_output import (
    annotation_lines,
    prepare_junit,
    write_junit,
)
from tests.cli.conftest import Project
from tests.coded import code


def data(project: Project, *arguments: str) -> tuple[int, dict[str, object]]:
    """The exit code and the JSON of a command, which prints nothing else."""
    result = project.run(*arguments, "--json")
    return result.exit_code, json.loads(result.stdout)


def test_run(faulty: Project) -> None:
    exit_code, value = data(faulty, "run")
    assert exit_code == exits.FAILED
    scenarios = value["scenarios"]
    assert isinstance(scenarios, list)
    verdicts = {each["scenario"]: each["verdict"] for each in scenarios}
    assert verdicts["scenarios/test_sound/sound"] == "proven"
    assert verdicts["scenarios/test_faulty/order"] == "order"


def test_gate(faulty: Project) -> None:
    faulty.run("review", "--accept", "all")
    exit_code, value = data(faulty, "gate", "sound", "test_faulty/law")
    assert exit_code == exits.LAW
    assert (value["exit_code"], value["meaning"]) == (exits.LAW, "a law is broken")
    scenarios = value["scenarios"]
    assert isinstance(scenarios, list)
    assert [(each["scenario"], each["exit_code"]) for each in scenarios] == [
        ("scenarios/test_sound/sound", exits.OK),
        ("scenarios/test_faulty/law", exits.LAW),
    ]


def test_review(project: Project) -> None:
    exit_code, value = data(project, "review")
    assert exit_code == exits.FAILED
    left = value["left"]
    assert isinstance(left, list)
    [change] = left
    assert sorted(change["scenarios"]) == [
        "scenarios/test_sound/newest",
        "scenarios/test_sound/sound",
    ]
    assert not (project.root / "expect").exists()
    exit_code, value = data(project, "review", "--accept", change["id"])
    assert (exit_code, value["left"]) == (exits.OK, [])
    assert set(value["files"].values()) == {"written"}  # type: ignore[attr-defined]
    assert data(project, "review") == (
        exits.OK,
        {"accepted": [], "left": [], "not_to_be_accepted": [], "files": {}},
    )


def test_replay_and_show(faulty: Project) -> None:
    exit_code, value = data(faulty, "replay", "2cmkb-9r", "order")
    assert exit_code == exits.FAILED
    assert value["scenario"] == "scenarios/test_faulty/order"
    operations = value["operations"]
    assert isinstance(operations, list)
    assert [each["operation"] for each in operations] == [
        'step_2 = add("b")',
        'step_1 = add("a")',
    ]
    assert operations[0]["changes"] == {"state": ["+b"]}
    assert value["wrong"]
    exit_code, value = data(faulty, "show", "test_sound/newest", "--state", "2,1")
    assert (exit_code, value["observed"]) == (exits.OK, {"state": "b\na\n"})


def test_imports(project: Project) -> None:
    exit_code, value = data(project, "imports", "json", "decimal")
    assert (exit_code, value["verdict"]) == (exits.OK, "holds")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_fail_fast(faulty: Project, jobs: str) -> None:
    arguments = ("tests/scenarios/test_faulty.py", "sound", "newest", "--jobs", jobs)
    result = faulty.run("run", *arguments, "--fail-fast")
    assert result.exit_code == exits.FAILED
    assert "--fail-fast left " in result.output
    assert "test_sound" not in result.output or jobs == "2"
    everything = faulty.run("run", *arguments, "--keep-going")
    assert "--fail-fast left" not in everything.output
    assert "newest" in everything.output
    # A part of the scenarios does not show which files are stale.
    faulty.write("expect/scenarios/test_gone/a.txt", "")
    assert "test_gone" not in faulty.run("gate", "--fail-fast").output


def test_files_of_a_gate(faulty: Project) -> None:
    faulty.run(
        *("gate", "sound", "test_faulty/law"),
        *("--junit", "out/junit.xml", "--report", "out/page"),
    )
    suite = ET.parse(faulty.root / "out/junit.xml").getroot()[0]  # ours
    assert suite.attrib == {
        "name": "everyorder",
        "tests": "2",
        "failures": "2",
        "errors": "0",
        "skipped": "0",
    }
    names = [(case.get("classname"), case.get("name")) for case in suite]
    assert names == [
        ("scenarios.test_sound", "sound"),
        ("scenarios.test_faulty", "law"),
    ]
    failure = suite[1][0]
    assert (failure.get("message"), failure.get("type")) == ("a law is broken", "10")
    assert (faulty.root / "out/page/index.html").is_file()


def test_texts_that_xml_cannot_hold(tmp_path: Path) -> None:
    skipped = Judgement("a/c", exits.OK, "later", skipped=True)
    failed = Judgement("a/b\0", exits.LAW, "\x1b[31m \ud800 <&>")
    write_junit(tmp_path / "j.xml", [failed, skipped])
    case, other = ET.parse(tmp_path / "j.xml").getroot()[0]  # ours
    assert (case.get("name"), case[0].text) == ("b\\x00", "\\x1b[31m \\ud800 <&>")
    assert other[0].get("message") == "later"
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "j.xml", tmp_path):
        with pytest.raises(FileError, check=code("CannotWriteReport")):
            prepare_junit(place)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "j.xml"]


def test_annotations(faulty: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("gate", "test_faulty/law")
    assert "::error" not in faulty.run(*arguments).output
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    [line] = [
        line
        for line in faulty.run(*arguments).output.splitlines()
        if line.startswith("::error")
    ]
    assert line.startswith(
        "::error file=tests/scenarios/test_faulty.py,line=17,"
        "title=scenarios/test_faulty/law%3A a law is broken::"
    )
    assert "%0A" in line
    assert annotation_lines(
        [Judgement("a", exits.STALE, "50%\r\n::x")], [], faulty.root
    ) == ["::error title=a%3A an expectation is stale::50%25%0D%0A::x"]


PRINTS = """
print("hello import")
from everyorder.harness.scenario import step


def test_it(explore):
    print("hello test")
    explore(step("a", add), create=list, observe=repr)


def add(registry):
    registry.append("a")
    return registry.pop
"""


@pytest.mark.parametrize("options", [(), ("--in-process",)])
def test_json_alone_is_printed(project: Project, options: tuple[str, ...]) -> None:
    project.write("tests/test_prints.py", PRINTS)
    project.write("conftest.py", "print('hello conftest')\n")
    for command in ("run", "gate"):
        _, value = data(project, command, "tests/test_prints.py", *options)
        assert value["scenarios"]
    assert data(project, "list", "tests/test_prints.py")[1]["scenarios"]
    assert data(project, "show", "test_prints/test_it")[1]["observed"]


MORE = """
from everyorder.harness.scenario import step


def test_it(explore):
    explore(step("a", list.append), name="more", create=list, observe=repr)
"""


def test_annotations_of_tests_and_modules(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("tests/test_more.py", MORE)
    project.write("tests/test_broken.py", "\n1 / 0\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.root.parent))
    output = project.run("gate", "tests/test_more.py", "tests/test_broken.py").output
    lines = [line for line in output.splitlines() if line.startswith("::error")]
    places = sorted(line.partition(",title")[0] for line in lines)
    name = project.root.name
    assert places == [
        f"::error file={name}/tests/test_broken.py,line=2",
        f"::error file={name}/tests/test_more.py,line=6",
    ]
