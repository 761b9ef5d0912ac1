"""Rows about kernels; `python -m tests.bench.kernels [--quick] [NAME...]` prints them.

True only here: sizes, dtypes and threads are gone through, every figure is filed in
`results/cpu-kernels.md`, and docs/speed.md gets four rows: how many figures meet their
target, and which one is the worst.

Rules: outputs are there before the clock starts, on every side.  With one thread BLAS
has one, too.  A target is missed by the figure as it is; nothing is rounded in favour.
"""

import os
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # no stubs

from everyorder import runtime
from tests.bench import elementwise, movement, products, reductions
from tests.bench.case import Case
from tests.bench.compare import Figures, Pace, compare, differences, torch
from tests.bench.row import NO_TORCH, Row

CASES = (*elementwise.CASES, *reductions.CASES, *movement.CASES, *products.CASES)
DTYPES = ("float32", "float64")
THREADS = (1, 2)
RESULT = Path(__file__).parent / "results" / "cpu-kernels.md"

# The targets: against NumPy, and against torch where `Case.always` or the size asks no
# more; the smallest size is to be faster than torch.
NUMPY, TORCH, FASTER = 1.1, 1.5, 1.0
# How many of the figures over NumPy have to meet it: there are 312.
OF_NUMPY = Fraction(290, 312)
SMALLEST = ("1e3", "32")

FULL = Pace()
# Threads of GNU's OpenMP spin for about a millisecond after their work.
REST = 5e-3
QUICK = Pace(slice=3e-4, rounds=5, limit=0.1)


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of one kernel at one size, dtype and number of threads."""

    case: Case
    size: str
    dtype: str
    threads: int
    figures: Figures

    @property
    def name(self) -> str:
        return f"{self.case.name} {self.size} {self.dtype} on {self.threads}"

    @property
    def against_torch(self) -> float:
        """What torch's time is allowed to be multiplied by."""
        return FASTER if self.case.always or self.size in SMALLEST else TORCH

    @property
    def faster_everywhere(self) -> bool:
        return self.case.always and self.size not in SMALLEST


def limited(threads: int) -> threadpool_limits:
    """So many threads for all three sides."""
    runtime.set_num_threads(threads)
    if torch is not None:
        torch.set_num_threads(threads)
    return threadpool_limits(threads)


def pace_of(pace: Pace, threads: int) -> Pace:
    """With threads beside it, a side waits until those of the last one sleep."""
    return replace(pace, rest=REST) if threads > 1 else pace


def measure(cases: Sequence[Case], pace: Pace) -> Iterator[Measured]:
    """All sizes, dtypes and numbers of threads of the cases.

    Raises:
        AssertionError: a side computes something else.
    """
    cores = len(os.sched_getaffinity(0))
    counts = [threads for threads in THREADS if threads <= cores]
    for case in cases:
        for size, count in case.sizes:
            for dtype in DTYPES:
                trial = case.build(count, dtype)
                if size == case.sizes[0][0]:
                    wrong = differences(trial, case.relative)
                    assert not wrong, f"{case.name}: {wrong} compute something else"
                for threads in counts:
                    with limited(threads):
                        figures = compare(trial, pace_of(pace, threads))
                    yield Measured(case, size, dtype, threads, figures)
    limited(cores).restore_original_limits()


def meets(ratio: float, target: float) -> bool:
    """Whether a ratio is what was aimed at; equal is not faster."""
    return ratio < target or ratio == target != FASTER


def _aim(target: float) -> str:
    return "< 1" if target == FASTER else f"≤ {target}"


def _cell(ratio: float | None, target: float) -> str:
    if ratio is None:
        return "-"
    return f"{ratio:.2f}" if meets(ratio, target) else f"**{ratio:.2f}**"


def _micro(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e6:.{0 if seconds > 1e-3 else 2}f}"


def processor() -> str:
    """The model of the processor, as the system names it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def table(measured: Sequence[Measured]) -> str:
    """All figures, in Markdown."""
    lines = [
        "# Kernels on the CPU",
        "",
        f"{processor()}, {len(os.sched_getaffinity(0))} cores.  Outputs are "
        "preallocated wherever the other side can have it so; microseconds of one "
        "call, and the median of the ratios of neighbours, ours over theirs.  What "
        f"misses its target is bold: {NUMPY} of NumPy, and of torch what the last "
        "column says.",
        "",
        "| kernel | size | dtype | threads | ours | NumPy | torch "
        "| over NumPy | over torch | aim |",
        "|---|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for each in measured:
        figures, aim = each.figures, each.against_torch
        times = " | ".join(
            _micro(figures.seconds.get(side)) for side in ("ours", "numpy", "torch")
        )
        lines.append(
            f"| {each.case.name} | {each.size} | {each.dtype} | {each.threads} | "
            f"{times} | {_cell(figures.over_numpy, NUMPY)} | "
            f"{_cell(figures.over_torch, aim)} | {_aim(aim)} |"
        )
    return "\n".join(lines) + "\n"


def summary(
    what: str,
    found: list[tuple[float, str]],
    target: float,
    why: str,
    share: Fraction = Fraction(1),
) -> Row:
    """How many figures meet the target, and the worst; `share` of them has to."""
    aim = _aim(target) + (f", {float(share):.0%} of them" if share < 1 else "")
    if not found:
        return Row(what, "-", aim, None, NO_TORCH)
    good = sum(meets(ratio, target) for ratio, _ in found)
    worst, name = max(found)
    figure = f"{good} of {len(found)} figures; worst {worst:.2f} ({name})"
    return Row(what, figure, aim, good >= share * len(found), why=why)


def rows_of(measured: Sequence[Measured]) -> Iterator[Row]:
    """The rows of docs/speed.md."""
    numpy = [
        (ratio, each.name)
        for each in measured
        if (ratio := each.figures.over_numpy) is not None
    ]
    yield summary(
        "kernels over NumPy, 1e3 to 1e7, one and two threads",
        numpy,
        NUMPY,
        "at 1e3 the way from Python into a compiled loop is 0.1 to 0.3 µs longer than "
        "a ufunc's; gathered indices are checked, NumPy's are clipped",
        OF_NUMPY,
    )
    torch_ = [
        (ratio, each)
        for each in measured
        if (ratio := each.figures.over_torch) is not None
    ]
    small = [(ratio, each.name) for ratio, each in torch_ if each.size in SMALLEST]
    yield summary(
        "kernels over torch at 1e3",
        small,
        FASTER,
        "what Python there is around the compiled loops of conv2d, sort and products",
    )
    always = [(ratio, each.name) for ratio, each in torch_ if each.faster_everywhere]
    yield summary(
        "chains, layer_norm, gather, scatter_add over torch at 1e5, 1e7",
        always,
        FASTER,
        "three passes over memory on both sides of a chain; a second Python thread "
        "pays from about 20 µs of work on, an OpenMP thread from 2",
    )
    others = [
        (ratio, each.name) for ratio, each in torch_ if each.against_torch == TORCH
    ]
    yield summary(
        "all other kernels over torch at 1e5, 1e7",
        others,
        TORCH,
        "on two threads kernels stay serial below the size where a second Python "
        "thread pays; deep convolutions read more than they compute",
    )


def kernels() -> Iterator[Row]:
    """Measure everything, file the table, give the rows."""
    measured = list(measure(CASES, FULL))
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(table(measured), encoding="utf-8")
    yield from rows_of(measured)


def main(arguments: list[str]) -> int:
    """Print the table of the named kernels, or of all; nothing is filed."""
    names = [each for each in arguments if not each.startswith("-")]
    chosen = [
        case for case in CASES if not names or any(each in case.name for each in names)
    ]
    measured = list(measure(chosen, QUICK if "--quick" in arguments else FULL))
    print(table(measured), end="")
    for row in rows_of(measured):
        print(f"{row.what}: {row.figure}; {row.target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
