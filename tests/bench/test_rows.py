"""The rows about proofs: which there are, and that their seconds are of one machine."""

import ast
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from everyorder.harness import Scenario
from tests.bench import libraries, proofs, realistic, row
from tests.bench.__main__ import ROWS
from tests.bench.libraries import LARGE
from tests.bench.row import FIXED_WORK, Row, beside_fixed_work, limited
from tests.libraries.__main__ import Measured
from tests.libraries.table import LibraryScenario

HERE = Path(__file__).parent
SECONDS = re.compile(r"[≤<] ?[\d.,]+ ?(s|ms|µs|ns|seconds)\b")
WORK = "the fixed work takes"
WHERE = f"where {WORK} {FIXED_WORK:g} s"


@pytest.fixture(autouse=True)
def _slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a machine on which the fixed work takes twice as long."""
    monkeypatch.setattr(row, "fixed_work", lambda: 2 * FIXED_WORK)


def met(rows: list[Row]) -> dict[str, bool | None]:
    return {each.what: each.met for each in rows}


def test_seconds_are_a_multiple_of_the_fixed_work() -> None:
    result, slow = beside_fixed_work(lambda: "result")
    assert (result, slow) == ("result", 2)
    assert limited("a proof", 1.9, 1, slow) == Row(
        "a proof", "1.90 s; the fixed work 0.20 s", f"≤ 1 s {WHERE}", True
    )
    assert not limited("a proof", 2.1, 1, slow).met


def texts_of(source: str) -> list[str]:
    """Return the texts of a program, with 0 in place of each value."""
    texts = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
        if isinstance(node, ast.JoinedStr):
            parts = (getattr(part, "value", None) for part in node.values)
            texts.append("".join(p if isinstance(p, str) else "0" for p in parts))
    return texts


def absolute(source: str) -> list[str]:
    """Return the targets of a program that are seconds of no machine."""
    texts = texts_of(source)
    return [each for each in texts if SECONDS.search(each) and WORK not in each]


def test_no_target_is_in_seconds_alone() -> None:
    files = [each for each in HERE.glob("*.py") if not each.name.startswith("test_")]
    assert len(files) > 20
    texts = [each.read_text(encoding="utf-8") for each in files]
    assert [target for text in texts for target in absolute(text)] == []
    program = """Row("what", "2 s", "≤ 3 s"), Row("what", "2 s", f"≤ {most:g} ms")"""
    assert absolute(program) == ["≤ 3 s", "≤ 0 ms"]


def test_the_rows_about_proofs_are_printed() -> None:
    names = {each.__name__ for each in ROWS}
    assert names >= {
        "a_proof",
        "beside_hypothesis",
        "faults_beside_hypothesis",
        "libraries",
        "many_steps",
        "realistic",
    }


def test_registries_of_many_steps_have_their_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[tuple[int, int]] = []

    def prove(clean: Scenario) -> None:
        sizes.append((len(clean.steps), len(clean.uses)))

    def took(run: Any) -> float:
        run()
        return 8.0

    monkeypatch.setattr(proofs, "prove", prove)
    monkeypatch.setattr(proofs, "processor_seconds", took)
    rows = [*proofs.many_steps()]
    assert sizes == [(8, 3), (10, 3), (12, 3), (8, 3), (10, 3), (20, 3), (6, 3)]
    plain = "a plain dict of words, {} steps and three look-ups, proven"
    seconds = {each.what: each.target for each in rows}
    assert [seconds[plain.format(steps)] for steps in (8, 10, 12)] == [
        f"≤ {most} s {WHERE}" for most in (3, 15, 60)
    ]
    assert [met(rows)[plain.format(steps)] for steps in (8, 10, 12)] == [
        *(False, True, True)
    ]


def test_realistic_registries_have_a_median_and_a_percentile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = iter([3.0] * 12 + [1.5] * 100)
    monkeypatch.setattr(realistic, "_seconds_of", lambda _: next(times))
    median, percentile = realistic.realistic()
    assert median.figure == "1.50 s; the fixed work 0.20 s"
    assert (median.target, median.met) == (f"≤ 1 s {WHERE}", True)
    assert percentile.figure == "3.00 s; the fixed work 0.20 s"
    assert (percentile.target, percentile.met) == (f"≤ 10 s {WHERE}", True)


@pytest.mark.parametrize("every", [1, 3])
def test_faults_beside_hypothesis_say_time_and_found(
    every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches: list[str] = []

    def is_found(specimen: Any) -> bool:
        searches.append(specimen.name)
        return len(searches) % every == 0

    monkeypatch.setattr(realistic, "_seconds_of", lambda _: 0.25)
    monkeypatch.setattr(realistic, "_is_found", is_found)
    (found,) = realistic.faults_beside_hypothesis()
    count = len(searches)
    assert count > 9
    assert found.figure.startswith(f"{count} in 0.25 s, Hypothesis {count // every} in")
    assert found.met


def test_each_large_library_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LibraryScenario, "is_installed", False)
    rows = [*libraries.libraries()]
    assert len(rows) == len(LARGE)
    assert {(each.figure, each.met) for each in rows} == {("not measured", None)}


@pytest.mark.parametrize(
    ("first", "seconds", "remarks", "is_met"),
    [(4, 40, 5, True), (4.1, 40, 5, False), (4, 41, 5, False), (4, 40, 6, False)],
)
def test_a_library_is_fast_and_of_few_remarks(
    first: float,
    seconds: float,
    remarks: int,
    is_met: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured = Measured("structlog_context", first, seconds, "holds", 100, remarks)
    told = subprocess.CompletedProcess([], 0, json.dumps(measured), "")
    monkeypatch.setattr(LibraryScenario, "is_installed", True)
    monkeypatch.setattr(libraries, "_version", lambda _: "1.2")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: told)
    rows = [*libraries.libraries()]
    assert {each.met for each in rows} == {is_met}
    assert {each.target for each in rows} == {
        f"first operation ≤ 2 s, verdict ≤ 20 s, 5 remarks, {WHERE}"
    }
