"""`python -m tests.zoo.realistic [--only WORD] [--strategy S ...] [--part K/N]`.

Decides about each specimen by the oracle, explores it by each strategy, prints every
complaint and a table for each strategy, and says how many of the specimens it chose.
It ends with 1 if a declaration is not so, or if a verdict is wrong.

`--part K/N` takes every Nth specimen from the Kth on.  `--some` adds three of the
explicit strategies, in turn, to the default one; `--all` adds all.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from random import Random
from types import ModuleType

from tests.zoo.realistic.judge import DEFAULT, STRATEGIES, Judgement, judge, table
from tests.zoo.realistic.oracle import SEED, WALK_LENGTH, WALKS, truth
from tests.zoo.realistic.registries import all_specimens
from tests.zoo.realistic.specimen import Specimen

# Distances of the strategies that a specimen gets: coprime to their number.
TURNS = (0, 3, 7)


def strategies_of(number: int) -> tuple[str, ...]:
    """The strategies that the specimen of this number gets by `--some`."""
    turns = tuple(STRATEGIES[(number + turn) % len(STRATEGIES)] for turn in TURNS)
    return (DEFAULT, *turns)


def sample_of(kind: ModuleType) -> tuple[Specimen, Specimen]:
    """Draw a right and a faulty specimen of a kind, by the seed of the oracle."""
    random = Random(f"{SEED} {kind.__name__}")
    specimens = [*kind.specimens()]
    right = random.choice([each for each in specimens if not each.fault])
    return right, random.choice([each for each in specimens if each.fault])


def chosen_specimens(only: str, part: str) -> list[tuple[int, Specimen]]:
    """Return the specimens to explore, each with its number among all."""
    numbered = [
        (number, each)
        for number, each in enumerate(all_specimens())
        if only in each.name
    ]
    first, _, parts = part.partition("/")
    return numbered[int(first) :: int(parts)]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that this share of the values does not exceed."""
    ranked = sorted(values)
    return ranked[max(-int(-share * len(ranked) // 1) - 1, 0)]


def summary(judgements: Sequence[Judgement], count: int) -> str:
    """The number of specimens of how many, the longer histories, and the seconds."""
    seconds = [each.seconds for each in judgements]
    longer = sum(bool(each.excess and each.excess > 0) for each in judgements)
    half, most = percentile(seconds, 0.5), percentile(seconds, 0.95)
    return (
        f"{len(judgements)} of {count} registries; the oracle with {WALKS} walks of "
        f"{WALK_LENGTH} by seed {SEED}; {longer} histories longer than needed; CPU "
        f"seconds: median {half:.1f}, 95th percentile {most:.1f}"
    )


def main(arguments: Sequence[str]) -> int:
    parser = ArgumentParser(prog="python -m tests.zoo.realistic")
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--strategy", action="append", metavar="S")
    parser.add_argument("--some", action="store_true", help="three more strategies")
    parser.add_argument("--all", action="store_true", help="all strategies")
    parser.add_argument("--part", default="0/1", metavar="K/N")
    parser.add_argument("--verbose", action="store_true", help="print every verdict")
    options = parser.parse_args(arguments)
    judgements, failed = [], False
    for number, specimen in chosen_specimens(options.only, options.part):
        known = truth(specimen)
        if known.faulty != bool(specimen.fault):
            failed = True
            print(f"{specimen.name}: declared otherwise, by {known.history}")
        strategies: Sequence[str] = options.strategy or (DEFAULT,)
        if options.all:
            strategies = (DEFAULT, *STRATEGIES)
        elif options.some:
            strategies = strategies_of(number)
        for strategy in strategies:
            judgement = judge(specimen, known, strategy)
            judgements.append(judgement)
            failed = failed or judgement.has("wrong")
            if judgement.complaints or options.verbose:
                print(f"{judgement.line()} ({judgement.seconds:.1f} s)", flush=True)
    count = sum(1 for _ in all_specimens())
    for strategy in dict.fromkeys(each.strategy for each in judgements):
        rows = [each for each in judgements if each.strategy == strategy]
        print(f"\n{strategy}: {summary(rows, count)}")
        print(table(rows))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
