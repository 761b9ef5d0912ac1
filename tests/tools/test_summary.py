"""The summary of the legs: sums, failed tests by name, and legs without a result."""

from pathlib import Path

import pytest

from tests.tools import summary as module
from tests.tools.summary import summary

GOOD = """\
<testsuites><testsuite tests="3" skipped="1" time="61.6">
<testcase file="tests/a/test_b.py" name="test_one" />
<testcase file="tests/a/test_b.py" name="test_two[1]" />
<testcase file="tests/a/test_b.py" name="test_three"><skipped /></testcase>
</testsuite></testsuites>
"""
BAD = """\
<testsuites><testsuite tests="2" skipped="0" time="2.0">
<testcase file="tests/c.py" name="test_x"><failure>why</failure></testcase>
<testcase file="tests/c.py" name="test_x"><error>its end</error></testcase>
<testcase file="tests/c.py" name="test_y" />
</testsuite></testsuites>
"""


SKIPPED = """\
<testsuites><testsuite tests="1" skipped="1" time="1.0">
<testcase file="tests/d.py" name="test_z"><skipped /></testcase>
</testsuite></testsuites>
"""
NONE = '<testsuites><testsuite tests="0" skipped="0" time="0.1" /></testsuites>'


def write(folder: Path, **legs: str) -> None:
    for name, text in legs.items():
        (folder / f"{name}.xml").write_text(text, encoding="utf-8")


def test_all_passed(tmp_path: Path) -> None:
    write(tmp_path, one=GOOD, two=GOOD)
    lines, is_good = summary(tmp_path, ["one", "two"])
    assert is_good
    assert lines == ["tests: 4 passed, 2 skipped; 2 runs, the longest 1:02"]


def test_a_test_that_fails_twice_is_one(tmp_path: Path) -> None:
    write(tmp_path, one=GOOD, two=BAD)
    lines, is_good = summary(tmp_path, ["one", "two"])
    assert not is_good
    assert lines == [
        "FAILED tests/c.py::test_x",
        "tests: 3 passed, 1 failed, 1 skipped; 2 runs, the longest 1:02",
    ]


@pytest.mark.parametrize("text", [None, "<testsuites><testsuite tests="])
def test_a_leg_without_a_result_has_crashed(tmp_path: Path, text: str | None) -> None:
    write(tmp_path, one=GOOD, **({} if text is None else {"two": text}))
    lines, is_good = summary(tmp_path, ["one", "two"])
    assert not is_good
    assert lines == [
        "CRASHED two: it wrote no result; see its output above",
        "tests: 2 passed, 1 crashed, 1 skipped; 2 runs, the longest 1:02",
    ]


@pytest.mark.parametrize(("text", "skipped"), [(SKIPPED, 2), (NONE, 1)])
def test_a_leg_that_runs_no_test_fails(tmp_path: Path, text: str, skipped: int) -> None:
    write(tmp_path, one=GOOD, two=text)
    lines, is_good = summary(tmp_path, ["one", "two"])
    assert not is_good
    assert lines == [
        "EMPTY two: none of its tests ran; see LEG_two, Makefile",
        f"tests: 2 passed, 1 empty, {skipped} skipped; 2 runs, the longest 1:02",
    ]


def test_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, one=GOOD, two=BAD)
    for legs, code in ((["one"], 0), (["one", "two"], 1)):
        monkeypatch.setattr("sys.argv", ["summary", str(tmp_path), *legs])
        with pytest.raises(SystemExit) as ended:
            module.main()
        assert ended.value.code == code
        assert f"; {len(legs)} run" in capsys.readouterr().out
