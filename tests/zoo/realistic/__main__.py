"""`python -m tests.zoo.realistic [--only WORD] [--strategy S ...] [--part K/N]`.

Decides about each specimen by the oracle, explores it by each strategy, prints every
complaint and a table for each strategy.  It ends with 1 if a declaration is not so, if
a verdict is wrong that is not in `KNOWN`, or if one in `KNOWN` is not wrong.

`--part K/N` takes every Nth specimen from the Kth on.  `--some` adds three of the
explicit strategies, in turn, to the default one, and leaves the graph of what grows
without end out; `--all` adds all.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence

from tests.zoo.realistic.judge import DEFAULT, STRATEGIES, judge, table
from tests.zoo.realistic.oracle import SEED, WALK_LENGTH, WALKS, truth
from tests.zoo.realistic.registries import GROWING, KNOWN, all_specimens

# Distances of the strategies that a specimen gets: coprime to their number.
TURNS = (0, 3, 7)
# Left out for a specimen of `GROWING`: it takes minutes, or is there already.
LEFT_OUT = ("graph", "histories:3")


def strategies_of(number: int, name: str = "") -> tuple[str, ...]:
    """The strategies that the specimen of this number and name gets by `--some`."""
    turns = tuple(STRATEGIES[(number + turn) % len(STRATEGIES)] for turn in TURNS)
    if name not in GROWING:
        return (DEFAULT, *turns)
    return ("histories:3", *(each for each in turns if each not in LEFT_OUT))


def main(arguments: Sequence[str]) -> int:
    parser = ArgumentParser(prog="python -m tests.zoo.realistic")
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--strategy", action="append", metavar="S")
    parser.add_argument("--some", action="store_true", help="three more strategies")
    parser.add_argument("--all", action="store_true", help="all strategies")
    parser.add_argument("--part", default="0/1", metavar="K/N")
    parser.add_argument("--verbose", action="store_true", help="print every verdict")
    chosen = parser.parse_args(arguments)
    part, _, parts = chosen.part.partition("/")
    judgements, failed = [], False
    numbered = [
        (number, each)
        for number, each in enumerate(all_specimens())
        if chosen.only in each.name
    ]
    for number, specimen in numbered[int(part) :: int(parts)]:
        known = truth(specimen)
        if known.faulty != bool(specimen.fault):
            failed = True
            print(f"{specimen.name}: declared otherwise, by {known.history}")
        strategies: Sequence[str] = chosen.strategy or (DEFAULT,)
        if chosen.all:
            strategies = (DEFAULT, *STRATEGIES)
        elif chosen.some:
            strategies = strategies_of(number, specimen.name)
        for strategy in strategies:
            judgement = judge(specimen, known, strategy)
            judgements.append(judgement)
            if specimen.name not in KNOWN:
                failed = failed or judgement.has("wrong")
            elif strategy == DEFAULT and not judgement.has("wrong"):
                failed = True
                print(f"{specimen.name}: remove it from KNOWN, {judgement.verdict}")
            if judgement.complaints or chosen.verbose:
                print(f"{judgement.line()} ({judgement.seconds:.1f} s)", flush=True)
    walks = f"{WALKS} walks of {WALK_LENGTH} by seed {SEED}"
    for strategy in dict.fromkeys(each.strategy for each in judgements):
        rows = [each for each in judgements if each.strategy == strategy]
        print(f"\n{strategy}: {len(rows)} registries; the oracle with {walks}")
        print(table(rows))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
