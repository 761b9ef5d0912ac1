"""Mutants of `runtime.dispatch` made by rule, sampled by a seed, and what kills each.

True only here: the sample and the file that remembers the killers.

    python -m tests.mutants.mechanical             the sample, tried as remembered
    python -m tests.mutants.mechanical --write     the same, and write the file
    python -m tests.mutants.mechanical --sample 30 --seed 7     another one, for a look

Rules:
- which mutants are in the sample is decided by the seed and their names alone: each
  module has its share, and within it those of the lowest hash come first, so editing
  one function leaves the sample of all others as it is;
- a mutant that cannot be imported is discarded, and the next of the sample takes its
  place;
- the file names the scenario that killed each mutant, which is tried first; where it
  kills no more, the whole catalogue is tried, and the file is out of date;
- a mutant that no run can tell from the right code is listed in the file with the
  reason; `MOST_EQUIVALENT` at most.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path

from tests.mutants.mutation import Candidate, candidates, shown
from tests.mutants.trial import FOLDER, Order, Trial, run

FILE = Path(__file__).with_suffix(".json")

SEED = 10
SAMPLE = 120
MOST_EQUIVALENT = 5

# Scenarios of the same module that are tried before all others.
HINTS = 8


@dataclass(frozen=True, slots=True)
class Memory:
    """What the file says: killers, reasons of equivalence, what cannot be imported."""

    killed: Mapping[str, str] = field(default_factory=dict)
    equivalent: Mapping[str, str] = field(default_factory=dict)
    discarded: Sequence[str] = ()

    @classmethod
    def read(cls, file: Path = FILE) -> "Memory":
        """The memory of a file; empty where there is none."""
        return cls(**json.loads(file.read_text())) if file.exists() else cls()

    def write(self, file: Path = FILE) -> None:
        """Replace the file."""
        values = {
            "killed": dict(sorted(self.killed.items())),
            "equivalent": dict(sorted(self.equivalent.items())),
            "discarded": sorted(self.discarded),
        }
        file.write_text(json.dumps(values, indent=2) + "\n")

    def joined(self, newer: "Memory") -> "Memory":
        """Both, the newer where they differ."""
        return Memory(
            {**self.killed, **newer.killed},
            {**self.equivalent, **newer.equivalent},
            sorted({*self.discarded, *newer.discarded}),
        )

    def order(self, name: str) -> Order:
        """How to try a mutant: by its killer, else by those of its neighbours first."""
        if name in self.killed:
            return Order(name, (self.killed[name],), known=True)
        module = name.partition(":")[0] + ":"
        near = Counter(
            by for each, by in self.killed.items() if each.startswith(module)
        )
        return Order(name, tuple(by for by, _ in near.most_common(HINTS)))


def texts() -> dict[str, str]:
    """The text of each module of the package, by its name."""
    return {
        file.stem: file.read_text(encoding="utf-8")
        for file in sorted(FOLDER.glob("*.py"))
    }


def everything() -> tuple[Candidate, ...]:
    """Every candidate, module by module."""
    found: list[Candidate] = []
    for module, text in texts().items():
        found += candidates(module, text)
    return tuple(found)


def ranked(seed: int) -> list[Candidate]:
    """All candidates, of which the first so many are a sample spread over modules."""
    modules: dict[str, list[Candidate]] = {}
    for each in everything():
        modules.setdefault(each.module, []).append(each)
    places: list[tuple[float, int, Candidate]] = []
    for held in modules.values():
        held.sort(key=lambda each: _hash(seed, each.name))
        places += [
            ((at + 0.5) / len(held), _hash(seed, each.name), each)
            for at, each in enumerate(held)
        ]
    return [each for _, _, each in sorted(places, key=lambda place: place[:2])]


def sample(
    memory: Memory, seed: int = SEED, count: int = SAMPLE
) -> tuple[list[Candidate], list[Candidate]]:
    """The sample, and what was discarded on the way to it."""
    taken: list[Candidate] = []
    discarded: list[Candidate] = []
    for each in ranked(seed):
        if len(taken) == count:
            break
        (discarded if each.name in memory.discarded else taken).append(each)
    return taken, discarded


def _hash(seed: int, name: str) -> int:
    return int.from_bytes(blake2b(f"{seed} {name}".encode(), digest_size=8).digest())


def tried(memory: Memory, seed: int, count: int) -> Iterator[Trial]:
    """Try the sample of a seed, on the whole catalogue where it is not remembered."""
    killed = dict(memory.killed)
    left = count
    for each in ranked(seed):
        # What has killed by now is tried early on the next mutant of the module.
        trial = confirmed(replace(memory, killed=killed).order(each.name))
        yield trial
        if trial.outcome == "killed":
            killed[trial.name] = trial.by
        left -= trial.outcome != "discarded"
        if not left:
            return


def confirmed(order: Order) -> Trial:
    """Try a mutant until a scenario kills it that kills it alone.

    A mutant may spoil the process while one scenario is explored, and be seen by the
    next one only, which would not see it in a process of its own.
    """
    while True:
        (trial,) = run([order])
        alone = order.first[:1] == (trial.by,)
        if trial.outcome != "killed" or alone:
            return trial
        (again,) = run([Order(trial.name, (trial.by,), everything=False)])
        if again.outcome == "killed":
            return again
        order = replace(order, without=(*order.without, trial.by))


def remembered(memory: Memory, trials: Sequence[Trial]) -> Memory:
    """What is to be remembered of trials; equivalents that still survive are kept."""
    survivors = {each.name for each in trials if each.outcome == "survived"}
    return Memory(
        killed={each.name: each.by for each in trials if each.outcome == "killed"},
        equivalent={
            name: why for name, why in memory.equivalent.items() if name in survivors
        },
        discarded=[each.name for each in trials if each.outcome == "discarded"],
    )


def row(trial: Trial, memory: Memory, sources: Mapping[str, str]) -> str:
    """A trial for people: the mutant, what it changes, what became of it."""
    module = trial.name.partition(":")[0]
    before, after = shown(module, sources[module], trial.name)
    said: str = trial.outcome
    if trial.outcome == "killed":
        said = f"killed by {trial.by}: {trial.how}"
    elif trial.outcome == "discarded":
        said = f"discarded: {trial.how}"
    elif trial.name in memory.equivalent:
        said = f"equivalent: {memory.equivalent[trial.name]}"
    return f"{trial.name}\n  - {before}\n  + {after}\n  {said} ({trial.seconds:.1f} s)"


def main() -> int:
    """The command; 1 where something survived that is not listed as equivalent."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.mechanical")
    parser.add_argument("--sample", type=int, default=SAMPLE)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--write", action="store_true", help="write the data file")
    given = parser.parse_args()
    memory, sources = Memory.read(), texts()
    trials: list[Trial] = []
    try:
        for trial in tried(memory, given.seed, given.sample):
            trials.append(trial)
            print(row(trial, memory, sources), flush=True)
    except KeyboardInterrupt:
        if given.write:
            # What was known stays, and what was learned is added.
            memory.joined(remembered(memory, trials)).write()
        raise
    counts = Counter(each.outcome for each in trials)
    survivors = [each.name for each in trials if each.outcome == "survived"]
    unlisted = [name for name in survivors if name not in memory.equivalent]
    print(
        f"\n{counts['killed']} killed, {len(survivors) - len(unlisted)} equivalent, "
        f"{len(unlisted)} survived, {counts['discarded']} discarded"
    )
    for name in unlisted:
        print(f"survived: {name}")
    if given.write:
        remembered(memory, trials).write()
    return 1 if unlisted else 0


if __name__ == "__main__":
    sys.exit(main())
