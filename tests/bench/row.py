"""One row of the table, and how a figure is taken.

These machines are noisy: where two things are compared they are run in turn, A B A B,
and the figure is the median of the ratios of neighbours.

Some are three times slower than others: a target in seconds is a multiple of a *fixed
work* of plain Python, which is measured beside the row, and its seconds are those of
the machine on which the fixed work takes `FIXED_WORK`.
"""

import functools
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import TypeVar

T = TypeVar("T")

# Seconds of the fixed work on the machine whose seconds the targets name.
FIXED_WORK = 0.1

# The note of a row that compares with what is not there.
NO_TORCH = "torch is not installed; `make torch`, then again"


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured, the figure, the target, and whether it is met."""

    what: str
    figure: str
    target: str
    met: bool | None
    note: str = ""
    # What is missing and why, shown where the target is missed.
    why: str = ""


def fixed_work() -> float:
    """How long the fixed work takes on this processor, in seconds."""
    started = process_time()
    table: dict[int, int] = {}
    names: list[str] = []
    for number in range(700_000):
        table[number & 1023] = table.get(number * 7 & 1023, 0) + (number & 7)
        if not number & 15:
            names.append(str(number))
    names.sort()
    return process_time() - started


def slowness() -> float:
    """How many times longer the fixed work takes than on the machine of the targets."""
    return median(fixed_work() for _ in range(5)) / FIXED_WORK


def beside_fixed_work(run: Callable[[], T]) -> tuple[T, float]:
    """The result of a run, and the slowness of the machine before and after it."""
    before = slowness()
    result = run()
    return result, (before + slowness()) / 2


def limited(
    what: str, took: float, most: float, slow: float, unit: str = "s", note: str = ""
) -> Row:
    """The row of a figure that may be `most` on the machine of the targets."""
    multiple = took / slow / most
    digits = 0 if took >= 20 else 1 if took >= 5 else 2
    return Row(
        what,
        f"{took:.{digits}f} {unit}{note}; the fixed work {FIXED_WORK * slow:.2f} s",
        f"≤ {most:g} {unit} where the fixed work takes {FIXED_WORK:g} s",
        multiple <= 1,
    )


def processor_seconds(run: Callable[[], object]) -> float:
    """How much processor time one run takes, in seconds."""
    started = process_time()
    run()
    return process_time() - started


def seconds(run: Callable[[], object]) -> float:
    """How long one run takes, in seconds."""
    started = perf_counter()
    run()
    return perf_counter() - started


def median_seconds(run: Callable[[], object], times: int) -> float:
    """The median of several runs, in seconds."""
    return median(seconds(run) for _ in range(times))


def pairs(
    first: Callable[[], object], second: Callable[[], object], times: int
) -> list[tuple[float, float]]:
    """Both, in turn, after one uncounted run of each."""
    first()
    second()
    return [(seconds(first), seconds(second)) for _ in range(times)]


def ratio(measured: list[tuple[float, float]]) -> float:
    """The median of first over second."""
    return median(one / other for one, other in measured)


def apart(measure: Callable[[], Iterator[Row]]) -> Callable[[], Iterator[Row]]:
    """The same rows, measured in an interpreter that has loaded nothing else.

    What looks through all that is loaded would measure the rows before it.
    """
    name = measure.__name__
    program = (
        "import pickle, sys\n"
        f"from {measure.__module__} import {name}\n"
        f"sys.stdout.buffer.write(pickle.dumps([*{name}()]))"
    )

    @functools.wraps(measure)
    def measured() -> Iterator[Row]:
        told = subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        )
        yield from pickle.loads(told.stdout)

    return measured
