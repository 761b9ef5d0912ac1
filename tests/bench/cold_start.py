"""Rows about the first run on a machine, when kernels have to be compiled.

True only here: each run has an empty folder for machine code, and an interpreter of its
own; what is compiled is told by the logger of kernels.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median

from tests.bench.row import Row, beside_fixed_work, limited

ADDITION = "x = runtime.tensor([1.0, 2.0])\nx + x"
TRANSFORMER = (
    "from tests.examples.train_transformer import train\ntrain(1, lambda line: None)"
)
PROGRAM = """\
from time import perf_counter
begun = perf_counter()
import logging
class Seen(logging.Handler):
    def emit(self, record):
        seen.append(record.args[1])
seen = []
logger = logging.getLogger("everyorder.runtime.kernels")
logger.setLevel(logging.DEBUG)
logger.propagate = False
logger.addHandler(Seen())
from everyorder import runtime
{program}
print(perf_counter() - begun, len(seen), sum(seen), max(seen, default=0.0))
"""
TIMES = 3


def run(program: str, folder: str) -> tuple[float, int, float, float]:
    """Seconds of a program, how many kernels it compiled, theirs, and the longest's."""
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(program=program)],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "EVERYORDER_CACHE_DIR": folder},
    )
    seconds, count, compiling, longest = finished.stdout.split()
    return float(seconds), int(count), float(compiling), float(longest)


def cold_and_warm(program: str) -> tuple[str, float, float]:
    """What was compiled, the median of cold runs, and that of the runs after them."""
    cold, warm, summary = [], [], ""
    for _ in range(TIMES):
        with tempfile.TemporaryDirectory() as folder:
            seconds, count, compiling, longest = run(program, folder)
            cold.append(seconds)
            again, more, _, _ = run(program, folder)
            warm.append(again)
            assert not more, "the first run stored everything"
            summary = f"{count} kernels in {compiling:.1f} s, the longest "
            summary += f"{longest:.1f} s"
    return summary, median(cold), median(warm)


def first_run() -> Iterator[Row]:
    """An addition, and a step of the transformer, where nothing was ever compiled."""
    for what, program, most in (
        ("cold `import` and a first addition", ADDITION, 1.5),
        ("the first step of a small transformer, cold, `import` and all",
         TRANSFORMER, 12.0),
    ):  # fmt: skip
        (summary, cold, warm), slow = beside_fixed_work(partial(cold_and_warm, program))
        note = f" ({summary}; {warm:.2f} s warm)"
        yield limited(what, cold, most, slow, note=note)


COLD_ROWS = (first_run,)
