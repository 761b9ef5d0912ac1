"""`python -m tests.zoo [--seed A:B] [--only CLASS] [--strategy S] [--large]
[--verbose]`.

Explores the entries of some seeds (those of building, unless others are named), prints
every complaint, a table, and a line of counts with the seeds and the strategy, and ends
with 1 if a verdict is wrong.  With `--part K/N` it is every Nth of them from the Kth
on, without the table.  With `--large` every state is read as that of a large registry:
without the globals of code that no operation executes.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence

from everyorder.harness.systems import state_reader
from tests.zoo.registries import CLASSES, SEEDS_BUILDING, entries
from tests.zoo.table import counts, table
from tests.zoo.verdicts import examine


def main(arguments: Sequence[str]) -> int:
    parser = ArgumentParser(prog="python -m tests.zoo")
    parser.add_argument("--seed", default=f"{SEEDS_BUILDING[0]}:{len(SEEDS_BUILDING)}")
    parser.add_argument("--only", choices=CLASSES, metavar="CLASS")
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--part", default="", metavar="K/N")
    parser.add_argument("--large", action="store_true", help="read executed code only")
    parser.add_argument("--verbose", action="store_true", help="tell every verdict")
    chosen = parser.parse_args(arguments)
    if chosen.large:
        state_reader.LARGE = 0
    first, _, last = chosen.seed.partition(":")
    seeds = range(int(first), int(last or int(first) + 1))
    part, _, parts = chosen.part.partition("/")
    share = slice(int(part or 0), None, int(parts or 1))
    judgements = []
    for entry in [*entries(seeds, chosen.only)][share]:
        judgement = examine(entry, chosen.strategy)
        judgements.append(judgement)
        if judgement.complaints:
            print(judgement.line(), flush=True)
        elif chosen.verbose:
            print(f"{entry.name}: {judgement.verdict}", flush=True)
    if not chosen.part:
        print(table(judgements))
    print(counts(judgements, seeds, chosen.strategy))
    return int(any(judgement.has("wrong") for judgement in judgements))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
