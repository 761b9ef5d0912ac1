"""Legs: each file is in one, each runs a test, and what coverage leaves out."""

import os
import re
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

import pytest

from tests.legs import (
    UNWATCHED,
    is_coverage,
    starting_unwatched,
    unwatched,
    unwatching,
)

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("beginning", UNWATCHED)
def test_the_tests_are_there(beginning: str) -> None:
    path, _, name = beginning.partition("::")
    if path.endswith("/"):
        assert [*(ROOT / path).glob("test_*.py")]
    else:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert f"def {name.partition('[')[0]}" in text


def of_leg(line: str) -> set[Path]:
    """The files of tests that a command of the Makefile runs."""
    words = line.partition("-m pytest ")[2].split()
    ignored = [ROOT / word.partition("=")[2] for word in words if "--ignore" in word]
    named = [ROOT / word for word in words if word.startswith("tests")]
    return {
        file
        for path in named
        for file in ([path] if path.is_file() else path.rglob("test_*.py"))
        if not any(file.is_relative_to(each) for each in ignored)
    }


EXPLANATION = (
    "no test was run at tests/a tests/b: tests marked slow need LONG=1, nightly ones "
    "`make test-whole`, those of torch `make torch`; `make test-long` runs slow tests "
    "only\n"
)

# What a `make` that runs these tests passes to its commands.
INHERITED = ("LONG", "MAKEFLAGS", "SHARE", "TESTS")


def commands(*words: str) -> list[str]:
    """Return the commands that `make` would run."""
    environment = {
        name: value for name, value in os.environ.items() if name not in INHERITED
    }
    listing = subprocess.run(
        ["make", "-n", "--no-print-directory", "RUN=-m pytest", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return listing.stdout.replace("\\\n", " ").splitlines()


def test_each_file_is_in_one_leg() -> None:
    lines = commands("test-legs", "SHARE=", "LONG=1")
    legs = [of_leg(line) for line in lines if "-m pytest" in line]
    assert len(legs) > 10
    times = Counter(file for leg in legs for file in leg)
    assert {*times} == {*(ROOT / "tests").rglob("test_*.py")}
    assert [file for file, many in times.items() if many > 1] == []


@pytest.mark.parametrize(
    ("target", "is_long"),
    [(["test"], False), (["test", "LONG=1"], True), (["test-long"], True)],
)
def test_the_leg_of_long_tests_is_run_with_long_tests_only(
    target: list[str], is_long: bool
) -> None:
    """The summary awaits the results of exactly the legs that are run."""
    (line,) = (line for line in commands(*target) if "tests.tools.summary" in line)
    inner, _, rest = line.partition(";")
    # A variable of the command line reaches the inner `make` through MAKEFLAGS.
    words = [word for word in (*inner.split(), *target) if word.startswith("LONG=")]
    written = {
        Path(word.partition("=")[2]).stem
        for command in commands("test-legs", "SHARE=", *words)
        for word in command.split()
        if word.startswith("--junitxml=")
    }
    legs = rest.partition("build/legs ")[2].partition(" &&")[0].split()
    assert {*legs} == written
    assert ("followed" in legs) is is_long


def test_every_file_that_the_makefile_names_is_there() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    for name in re.findall(r"[\w/]+\.py\b", text):
        of_scenario = ROOT / "tests/scenario_api" / f"test_{name}"
        assert (ROOT / name).exists() or of_scenario.exists(), name


@pytest.mark.parametrize(
    ("share", "path"),
    [
        ("--thin", "tests/cli/test_imports.py::test_three_modules_that_it_takes"),
        ("--both", "tests/scenarios/test_verdicts_followed.py"),
    ],
)
def test_a_run_without_a_test_is_an_error(share: str, path: str) -> None:
    """`make` ends with an error where a leg does; these tests are long ones."""
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", share, path],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, ran.stdout + ran.stderr
    assert "deselected" in ran.stdout


@pytest.mark.parametrize("code", [*pytest.ExitCode])
@pytest.mark.parametrize("target", ["test", "test-long"])
def test_a_run_without_a_test_says_what_to_do(target: str, code: int) -> None:
    """In place of pytest a program runs that ends with the code."""
    python = f"BIN={Path(sys.executable).parent}"
    ending = f"RUN=-Sc 'raise SystemExit({int(code)})'"
    command = commands(target, "TESTS=tests/a tests/b", python, ending)[-1]
    ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    is_empty = code == pytest.ExitCode.NO_TESTS_COLLECTED
    assert (ran.returncode, ran.stdout) == (code, EXPLANATION if is_empty else "")


class Tracer:
    """Looks on, as coverage does."""

    __module__ = "coverage"

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """Of no line is it told."""


def test_coverage_alone_is_sent_away_for_a_while() -> None:
    before = sys.gettrace()
    seen: list[object] = []
    tracer = Tracer()

    def look(frame: FrameType, event: str, argument: object) -> None:
        """As a debugger does."""

    def call(number: int) -> int:
        seen.append(sys.gettrace())
        return number + 1

    try:
        sys.settrace(tracer)
        assert unwatching(call)(1) == 2
        seen.append(sys.gettrace())
        with pytest.raises(ZeroDivisionError), unwatched():
            seen.append(1 // 0)
        seen.append(sys.gettrace())
        sys.settrace(look)
        with unwatched():
            seen.append(sys.gettrace())
    finally:
        sys.settrace(before)
    assert seen == [None, tracer, tracer, look]
    assert is_coverage(tracer)
    assert not is_coverage(look)
    assert not is_coverage(None)


def test_coverage_hears_of_nothing_that_is_started_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COVERAGE_PROCESS_CONFIG", "all")
    seen: list[object] = []

    class Collector:
        """Waits for new threads, as coverage does."""

        def begin(self, frame: FrameType, event: str, argument: object) -> None:
            """A thread begins."""
            seen.append(event)
            sys.settrace(None)

    Collector.begin.__module__ = "coverage.collector"
    collector = Collector()

    def start() -> None:
        for work in (threading.Thread(target=str), threading.Thread(target=int)):
            work.start()
            work.join()
        seen.append("COVERAGE_PROCESS_CONFIG" in os.environ)

    before = threading.gettrace()
    threading.settrace(collector.begin)
    try:
        start()
        with starting_unwatched():
            start()
        start()
    finally:
        threading.settrace(before)
    assert seen == ["call", "call", True, False, "call", "call", True]
