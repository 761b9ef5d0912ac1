"""`python -m tests.torch.samples [row ...]`: run the samples, print the report.

With names of rows only those are run, and rows that no longer occur are not looked for.
The exit code is 1 if anything fails.
"""

import sys

import torch

import runtime
from tests.torch.samples.deviations import DEFECTS, DEVIATIONS, Verdict, judged
from tests.torch.samples.loading import forms, load_table
from tests.torch.samples.report import Run, text
from tests.torch.samples.running import Difference, Tally, run


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
    chosen = [row for row in shared if not names or row.formatted_name in names]
    for row in chosen:
        found += run(row, tally)
    verdict = judged(found, (*DEFECTS, *DEVIATIONS))
    if names:
        verdict = Verdict(verdict.counts, verdict.unlisted)
    whole = Run(len(table), len(chosen), lacking, tally, verdict)
    print(text(whole))
    return 1 if whole.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
