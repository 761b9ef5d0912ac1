"""The benches of kernels measure the same computation on all sides, and say so."""

import numpy as np
import pytest

from tests.bench.case import Case
from tests.bench.compare import Figures, Operand, Pace, Trial, compare, differences
from tests.bench.kernels import CASES, DTYPES, Measured, rows_of, summary, table
from tests.bench.row import NO_TORCH, Row


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_sides_compute_the_same(case: Case, dtype: str) -> None:
    trial = case.build(case.sizes[0][1], dtype)
    assert differences(trial, case.relative) == []


def test_a_side_that_computes_something_else_is_named() -> None:
    to = Operand(np.zeros(3))
    trial = Trial(
        lambda: to.n.fill(1), lambda: to.n.fill(2), lambda: to.n.fill(1), (to,)
    )
    assert differences(trial, 1e-6) == ["numpy"]


def test_sides_run_in_turn_and_an_absent_one_has_no_ratio() -> None:
    ran: list[str] = []
    trial = Trial(lambda: ran.append("ours"), None, lambda: ran.append("torch"))
    figures = compare(trial, Pace(slice=1e-12, rounds=2))
    assert ran == [*["ours"] * 3, *["torch"] * 3, "ours", "torch", "ours", "torch"]
    assert sorted(figures.seconds) == ["ours", "torch"]
    assert figures.over_numpy is None
    assert figures.over_torch is not None


def made(name: str, size: str, over_numpy: float | None, over_torch: float) -> Measured:
    case = Case(
        name, lambda count, dtype: Trial(int, None, None), always=name == "chain"
    )
    figures = Figures({"ours": 2e-6, "torch": 5e-3}, over_numpy, over_torch)
    return Measured(case, size, "float32", 2, figures)


def test_rows_count_what_meets_its_target_and_name_the_worst() -> None:
    measured = [
        made("exp", "1e3", 1.1, 1.0),
        made("exp", "1e5", 1.2, 1.5),
        made("chain", "1e5", None, 1.01),
        made("chain", "1e3", None, 0.5),
    ]
    assert [(row.figure, row.target, row.met) for row in rows_of(measured)] == [
        (
            "1 of 2 figures; worst 1.20 (exp 1e5 float32 on 2)",
            "≤ 1.1, 93% of them",
            False,
        ),
        ("1 of 2 figures; worst 1.00 (exp 1e3 float32 on 2)", "< 1", False),
        ("0 of 1 figures; worst 1.01 (chain 1e5 float32 on 2)", "< 1", False),
        ("1 of 1 figures; worst 1.50 (exp 1e5 float32 on 2)", "≤ 1.5", True),
    ]


def test_without_torch_a_row_says_what_is_missing() -> None:
    assert summary("kernels", [], 1.5, "") == Row(
        "kernels", "-", "≤ 1.5", None, NO_TORCH
    )


def test_the_table_marks_what_misses() -> None:
    lines = table([made("exp", "1e5", 1.2, 1.5), made("chain", "1e5", None, 1.0)])
    assert lines.splitlines()[-2:] == [
        "| exp | 1e5 | float32 | 2 | 2.00 | - | 5000 | **1.20** | 1.50 | ≤ 1.5 |",
        "| chain | 1e5 | float32 | 2 | 2.00 | - | 5000 | - | **1.00** | < 1 |",
    ]
