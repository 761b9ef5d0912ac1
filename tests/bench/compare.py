"""Our kernels, NumPy and torch in turn: how long each takes, and their ratios.

True only here: what a trial is, and how it is timed.  All three sides of a trial read
and write the same memory, so that none has the better pages; they run in turn, A B C
A B C, each as often in a row as fills a slice of time, and a ratio is the median of the
ratios of neighbours.

Rules: a side is None where there is nothing like for like.  The first run of a side is
not counted: kernels compile, pools start.  Before each slice there is a rest, since the
threads of OpenMP and OpenBLAS go on spinning after their work, on the core of whoever
comes next; what is short runs once more to wake up.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import repeat
from statistics import median
from time import perf_counter, sleep
from typing import Any

import numpy as np

from everyorder import runtime

Run = Callable[[], object]

# Sides of a trial, in the order in which they run.
SIDES = ("ours", "numpy", "torch")


class Operand:
    """One array as all three see it; `o` ours, `n` NumPy's, `t` torch's or None."""

    def __init__(self, array: "np.ndarray[Any, Any]") -> None:
        self.n = array
        self.o = runtime.from_numpy(array)
        self.t: Any = None if torch is None else torch.from_numpy(array)


@dataclass(frozen=True, slots=True)
class Trial:
    """One computation, to be run by each side into `results`."""

    ours: Run
    numpy: Run | None
    torch: Run | None
    results: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Pace:
    """How long to measure: a slice of one side, how many rounds, a limit, a rest."""

    slice: float = 1e-3
    rounds: int = 15
    limit: float = 0.6
    rest: float = 0

    # Fewer would be no median.
    least: int = field(default=3, kw_only=True)


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds of one run of each side; ours over another, None without that side."""

    seconds: dict[str, float]
    over_numpy: float | None
    over_torch: float | None


def timed(run: Run, number: int) -> float:
    """Seconds of one run, the mean of `number` in a row."""
    turns = repeat(None, number)
    started = perf_counter()
    for _ in turns:
        run()
    return (perf_counter() - started) / number


def rested(run: Run, number: int, rest: float) -> float:
    """As `timed`, when what ran before is quiet."""
    if rest:
        sleep(rest)
        if number > 1:
            run()
    return timed(run, number)


def compare(trial: Trial, pace: Pace) -> Figures:
    """Run all sides in turn."""
    sides: dict[str, Run] = {
        name: run for name in SIDES if (run := getattr(trial, name)) is not None
    }
    numbers = {}
    for name, run in sides.items():
        run()
        once = min(timed(run, 1), timed(run, 1))
        numbers[name] = max(1, round(pace.slice / max(once, 1e-7)))
    rounds: list[dict[str, float]] = []
    started = perf_counter()
    while len(rounds) < pace.rounds:
        rounds.append(
            {name: rested(sides[name], numbers[name], pace.rest) for name in sides}
        )
        if len(rounds) >= pace.least and perf_counter() - started > pace.limit:
            break

    def over(other: str) -> float | None:
        if other not in sides:
            return None
        return median(each["ours"] / each[other] for each in rounds)

    seconds = {name: median(each[name] for each in rounds) for name in sides}
    return Figures(seconds, over("numpy"), over("torch"))


def differences(trial: Trial, relative: float) -> list[str]:
    """The sides whose results are not ours, each after a run of its own."""
    wrong = []
    trial.ours()
    ours = [each.n.copy() for each in trial.results]
    for name in SIDES[1:]:
        run: Run | None = getattr(trial, name)
        if run is None:
            continue
        for each in trial.results:
            each.n[...] = 0
        run()
        if not all(
            np.allclose(each.n, own, rtol=relative, atol=relative)
            for each, own in zip(trial.results, ours, strict=True)
        ):
            wrong.append(name)
    return wrong


def _torch() -> Any:
    try:
        import torch as found
    except ImportError:
        return None
    return found


torch = _torch()
