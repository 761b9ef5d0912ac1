"""Operators as programs call them, on 1,000 float32 elements, beside torch's.

True only here: through the dispatcher and the Autograd key, no gradient asked for, the
result made by the call.  `python -m tests.bench.operators` prints each.
"""

from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from everyorder.runtime import ops
from tests.bench.case import places, values
from tests.bench.compare import Pace, Trial, compare, torch
from tests.bench.kernels import limited
from tests.bench.row import Row

PACE = Pace(slice=1e-3, rounds=11)
ROWS, LINE = 10, 100

# What to call: given our operators and our tensors, or torch and torch's.
Functional = Callable[[Any, dict[str, Any]], object]

OPERATORS: dict[str, Functional] = {
    "add": lambda m, t: m.add(t["a"], t["b"]),
    "mul": lambda m, t: m.mul(t["a"], t["b"]),
    "relu": lambda m, t: m.relu(t["a"]),
    "exp": lambda m, t: m.exp(t["a"]),
    "tanh": lambda m, t: m.tanh(t["a"]),
    "where": lambda m, t: m.where(t["mask"], t["a"], t["b"]),
    "sum": lambda m, t: m.sum(t["a"]),
    "sum, axis 1": lambda m, t: m.sum(t["a"], (1,)),
    "mean": lambda m, t: m.mean(t["a"]),
    "cumsum": lambda m, t: m.cumsum(t["a"], 0),
    "softmax": lambda m, t: m.softmax(t["a"], 1),
    "index_select": lambda m, t: m.index_select(t["a"], 0, t["rows"]),
    "gather": lambda m, t: m.gather(t["a"], 1, t["each"]),
    "cat": lambda m, t: m.cat([t["a"], t["b"]], 1),
    "sort": lambda m, t: m.sort(t["a"], 1),
    "matmul": lambda m, t: m.matmul(t["a"], t["turned"]),
    "transpose": lambda m, t: m.transpose(t["a"], 0, 1),
    "reshape": lambda m, t: m.reshape(t["a"], (LINE, ROWS)),
}


def trial(functional: Functional) -> Trial:
    """One operator on both sides."""
    made = {
        "a": values(ROWS, LINE, dtype="float32"),
        "b": values(ROWS, LINE, dtype="float32"),
        "turned": values(LINE, ROWS, dtype="float32"),
        "rows": places(ROWS, below=ROWS),
        "each": places(ROWS, LINE, below=LINE),
    }
    ours = {name: each.o for name, each in made.items()}
    theirs = {name: each.t for name, each in made.items()}
    ours["mask"] = ours["a"] > 0
    theirs["mask"] = theirs["a"] > 0
    core = ops.core
    return Trial(
        lambda: functional(core, ours), None, lambda: functional(torch, theirs)
    )


MEDIAN, WORST = 1.1, 2


def ratios() -> Iterator[tuple[float, str, float]]:
    """Over torch, the operator, our microseconds."""
    with limited(1):
        for name, functional in OPERATORS.items():
            figures = compare(trial(functional), PACE)
            assert figures.over_torch is not None, "torch is there"
            yield figures.over_torch, name, figures.seconds["ours"] * 1e6


def beside() -> Row:
    """All of them in one row."""
    found = list(ratios())
    faster = sum(ratio < 1 for ratio, *_ in found)
    worst, name, _ = max(found)
    middle = median(ratio for ratio, *_ in found)
    return Row(
        f"{len(found)} operators on 1,000 elements over torch's",
        f"median {middle:.2f}, {faster} faster; worst {worst:.2f} ({name})",
        f"median ≤ {MEDIAN}, worst ≤ {WORST}",
        middle <= MEDIAN and worst <= WORST,
        why="checks and plans are Python, and views note their base for autograd",
    )


if __name__ == "__main__":
    for over_torch, operator, took in ratios():
        print(f"{operator:14} {took:7.2f} µs {over_torch:5.2f}")
