"""`python -m tests.stability [--seeds N] [--all] [--whole] [--part K/N] [--large]`.

Explores the scenarios under all conditions and prints the counts; ends with 1 if a
verdict or a remark differs.  `--here` is what each of its processes does.
"""

import json
import sys
import threading
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

from tests.stability.conditions import (
    LONG_NAMES,
    NAMES,
    Condition,
    differences,
    verdicts,
    whole_names,
)

# Libraries that are imported before, where they are installed.
LARGE = ("numba", "torch")


def conditions(seeds: int, *, large: bool) -> list[Condition]:
    """Return the conditions: each hash seed once, and one change at a time."""
    libraries = [(name,) for name in LARGE if find_spec(name)] if large else []
    return [
        *(Condition(seed=seed) for seed in range(seeds)),
        Condition(times=2),
        Condition(backwards=True),
        Condition(worker=True),
        *(Condition(imports=names) for names in libraries),
    ]


def main(arguments: Sequence[str]) -> int:
    """Run the leg, or the scenarios of one process."""
    parser = ArgumentParser(prog="python -m tests.stability")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--all", action="store_true", help="also the slow scenarios")
    parser.add_argument("--whole", action="store_true", help="the zoos and catalogue")
    parser.add_argument(
        "--part", default="0/1", metavar="K/N", help="every Nth of them"
    )
    parser.add_argument("--large", action="store_true", help="also numba and torch")
    parser.add_argument("--here")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--import", action="append", default=[], dest="imports")
    parser.add_argument("--worker", action="store_true")
    chosen = parser.parse_args(arguments)
    for name in chosen.imports:
        import_module(name)
    if chosen.here is not None:
        ended = threading.Event()
        if chosen.worker:  # a worker of pytest-xdist has further modules and threads
            import_module("xdist.remote")
            threading.Thread(target=ended.wait).start()
        try:
            print(json.dumps(verdicts(json.loads(chosen.here), chosen.times)))
        finally:
            ended.set()
        return 0
    names = LONG_NAMES if chosen.all else NAMES
    if chosen.whole:
        first, _, parts = chosen.part.partition("/")
        names = tuple(dict.fromkeys((*names, *whole_names())))[int(first) :: int(parts)]
    every = conditions(chosen.seeds, large=chosen.large)
    count, lines = differences(names, every)
    missing = [name for name in LARGE if chosen.large and not find_spec(name)]
    if missing:
        print(f"not installed, so never imported before: {', '.join(missing)}")
    print(*lines, sep="\n", end="\n" if lines else "")
    print(
        f"{len(names)} scenarios, {len(every)} conditions (hash seeds 0 to "
        f"{chosen.seeds - 1}), {count} verdicts, {len(lines)} differences"
    )
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
