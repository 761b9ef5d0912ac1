"""What the CUDA kernels reach of the device's bandwidth: `python -m tests.cuda.bench`.

Rules: times are those of events on the device, the median of `TURNS` runs after two to
warm up; bytes are what a kernel must read and write at least.  Every row stands beside
the copy of the same run, since bandwidth differs between devices.  With `--write FILE`
the table goes into a file, too.  Without a device nothing is measured, and it says so.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from everyorder.runtime.kernels.cuda import (
    KERNELS,
    Event,
    current_stream,
    is_available,
    properties,
)
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.tensors.construction import empty_tensor
from everyorder.runtime.tensors.tensor import Tensor

TURNS = 15
DEVICE = Device("cuda", 0)
SINGLE = DType.named("float32")

# Elements: one that the cache of the device holds, and one that it does not.
COUNTS = (1 << 20, 1 << 27)
# The length of the rows that are normalised and reduced one by one.
ROW = 1 << 10


@dataclass(frozen=True, slots=True)
class Row:
    """One measured kernel; `share` is of the copy's bandwidth at the same count."""

    name: str
    count: int
    microseconds: float
    gigabytes: float
    share: float
    target: float


def filled(*shape: int) -> Tensor:
    """A tensor of ones."""
    made = empty_tensor(shape, SINGLE, DEVICE)
    KERNELS["fill"](made, 1.0)
    return made


def cases(count: int) -> dict[str, tuple[Callable[[], Any], int, float]]:
    """Name -> call, elements read and written, and the share of copying aimed at."""
    rows = count // ROW
    a, b, out = filled(rows, ROW), filled(rows, ROW), filled(rows, ROW)
    line, one = filled(ROW), empty_tensor((), SINGLE, DEVICE)
    ends = empty_tensor((rows,), SINGLE, DEVICE)
    tops = empty_tensor((ROW,), SINGLE, DEVICE)
    mean, rstd = filled(rows), filled(rows)
    k = KERNELS
    found: dict[str, tuple[Callable[[], Any], int, float]] = {
        "copy": (lambda: k["copy"](out, a), 2 * count, 1.0),
        "fill": (lambda: k["fill"](out, 2.0), count, 0.85),
        "add": (lambda: k["add"](out, a, b, 1), 3 * count, 0.85),
        "add a row": (lambda: k["add"](out, a, line, 1), 2 * count, 0.85),
        "relu": (lambda: k["relu"](out, a), 2 * count, 0.85),
        "gelu": (lambda: k["gelu"](out, a, "none"), 2 * count, 0.85),
        "sum, all": (lambda: k["sum"](one, a, (0, 1)), count, 0.8),
        "sum, rows": (lambda: k["sum"](ends, a, (1,)), count, 0.8),
        "sum, columns": (lambda: k["sum"](tops, a, (0,)), count, 0.8),
    }
    if "softmax" in k:
        found["softmax"] = (lambda: k["softmax"](out, a, 1), 2 * count, 0.7)
    if "layer_norm" in k:
        found["layer_norm"] = (
            lambda: k["layer_norm"](out, mean, rstd, a, ROW, line, line, 1e-5),
            2 * count,
            0.7,
        )
    return found


def timed(call: Callable[[], Any], turns: int) -> float:
    """Microseconds of a call on the device."""
    stream = current_stream(0)
    times = []
    for turn in range(turns + 2):
        start, end = Event(0, timing=True), Event(0, timing=True)
        start.record(stream)
        call()
        end.record(stream).synchronize()
        if turn >= 2:
            times.append(1000 * start.elapsed(end))
    return median(times)


def measured(counts: tuple[int, ...] = COUNTS, turns: int = TURNS) -> list[Row]:
    """All rows for all counts."""
    rows = []
    for count in counts:
        copied = 0.0
        for name, (call, elements, target) in cases(count).items():
            microseconds = timed(call, turns)
            speed = 4e-3 * elements / microseconds
            copied = copied or speed
            rows.append(Row(name, count, microseconds, speed, speed / copied, target))
    return rows


def table(rows: list[Row]) -> str:
    """The rows as a table in Markdown."""
    lines = [
        f"CUDA kernels, float32, on {properties(0).name}",
        "",
        "| kernel | elements | us | GB/s | of copy | target | met |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for row in rows:
        met = "yes" if row.share >= row.target else "no"
        lines.append(
            f"| {row.name} | {row.count} | {row.microseconds:.1f} | "
            f"{row.gigabytes:.0f} | {row.share:.2f} | {row.target:.2f} | {met} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Measure, print, and write where asked to."""
    if not is_available():
        print("skipped: there is no CUDA device here, so nothing was measured")
        return 0
    text = table(measured())
    print(text, end="")
    if "--write" in arguments:
        file = Path(arguments[arguments.index("--write") + 1])
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
