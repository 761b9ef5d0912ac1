"""`python -m tests.torch.samples [row ...]`: run the samples, print the report.

With names of rows only those are run, and rows that no longer occur are not looked for.
The exit code is 1 if anything fails.

How it works: two copies of this process, made when the table is loaded, take one row
after the other; the report is that of one process, as each sample has its own seed.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import torch

from everyorder import runtime
from tests.torch.samples.deviations import DEFECTS, DEVIATIONS, Verdict, judged
from tests.torch.samples.loading import forms, load_table
from tests.torch.samples.report import Run, text
from tests.torch.samples.running import Difference, Tally, run

PROCESSES = 2

# What a copy of this process is to run; its number is what is sent to it.
ROWS: list[Any] = []


def main(names: list[str]) -> int:
    """Run all rows, or those with these names; print; 1 if anything fails."""
    # The tensors are small: threads would only wait for each other.
    torch.set_num_threads(1)
    runtime.set_num_threads(1)
    table = load_table()
    shared = [row for row in table if forms(row)]
    lacking = tuple(row.formatted_name for row in table if not forms(row))
    tally = Tally()
    found: list[Difference] = []
    ROWS[:] = [row for row in shared if not names or row.formatted_name in names]
    for differences, more in each_row():
        found += differences
        tally.add(more)
    verdict = judged(found, (*DEFECTS, *DEVIATIONS))
    if names:
        verdict = Verdict(verdict.counts, verdict.unlisted)
    whole = Run(len(table), len(ROWS), lacking, tally, verdict)
    print(text(whole))
    return 1 if whole.failed else 0


def each_row() -> Iterator[tuple[list[Difference], Tally]]:
    """What is found in each of `ROWS`, in their order."""
    with ProcessPoolExecutor(PROCESSES, get_context("fork")) as pool:
        yield from pool.map(one_row, range(len(ROWS)))


def one_row(index: int) -> tuple[list[Difference], Tally]:
    """What is found in one row, and what was tried."""
    tally = Tally()
    return list(run(ROWS[index], tally)), tally


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
