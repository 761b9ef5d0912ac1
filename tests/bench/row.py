"""One row of the table, and how a figure is taken.

These machines are noisy: where two things are compared they are run in turn, A B A B,
and the figure is the median of the ratios of neighbours.
"""

import functools
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

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
