"""Mutants of a package made by rule, sampled by a seed, and what kills each.

True only here: the sample and the file that remembers the killers.

    python -m tests.mutants.mechanical dispatch     the sample, tried as remembered
    python -m tests.mutants.mechanical session --write      the same, and write the file
    python -m tests.mutants.mechanical dispatch --sample 30 --seed 7    another one

Rules:
- the seed and the names of the mutants rank them: each module has its share, and
  within it the lowest hash comes first;
- the first of the ranking were drawn once, and the file lists them: a rename does not
  draw again, and the next of the ranking replaces a mutant whose code is gone;
- a mutant that cannot be imported is discarded, and the next of the sample takes its
  place;
- the file names the part of the run that killed each mutant, which is tried first;
  where it kills no more, all parts are tried, and the file is out of date;
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
from tests.mutants.target import TARGETS, Target
from tests.mutants.trial import Nursery, Order, Trial

MOST_EQUIVALENT = 7

# Killers of the same module that are tried before all others.
HINTS = 8
# Parts that may have no end before one of them is the killer.
PATIENCE = 2


@dataclass(frozen=True, slots=True)
class Memory:
    """What the file says: killers, reasons of equivalence, what cannot be imported."""

    killed: Mapping[str, str] = field(default_factory=dict)
    equivalent: Mapping[str, str] = field(default_factory=dict)
    discarded: Sequence[str] = ()

    @classmethod
    def read(cls, file: Path) -> "Memory":
        """The memory of a file; empty where there is none."""
        return cls(**json.loads(file.read_text())) if file.exists() else cls()

    def write(self, file: Path) -> None:
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


def texts(target: Target) -> dict[str, str]:
    """The text of each module of the package, by its name."""
    return {
        file.stem: file.read_text(encoding="utf-8")
        for file in sorted(target.folder.glob("*.py"))
        if file.stem not in target.left_out
    }


def everything(target: Target) -> tuple[Candidate, ...]:
    """Every candidate, module by module."""
    found: list[Candidate] = []
    for module, text in texts(target).items():
        found += candidates(module, text)
    return tuple(found)


def ranked(target: Target, seed: int) -> list[Candidate]:
    """All candidates, of which the first so many are a sample spread over modules."""
    modules: dict[str, list[Candidate]] = {}
    for each in everything(target):
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
    target: Target, memory: Memory, seed: int | None = None
) -> tuple[list[Candidate], list[Candidate]]:
    """Return the sample, and the mutants that were discarded on the way to it.

    Without another seed the sample is the one in the file, which the target's seed drew
    and which survives renames of other code; where a mutant's code is gone, the next
    one of the ranking replaces it.
    """
    ranking = ranked(target, target.seed if seed is None else seed)
    discarded = [each for each in ranking if each.name in memory.discarded]
    candidates = [each for each in ranking if each.name not in memory.discarded]
    if seed is None:
        remembered = {*memory.killed, *memory.equivalent}
        # A stable sort: the remembered mutants first, each group by rank.
        candidates.sort(key=lambda each: each.name not in remembered)
    taken = candidates[: target.sample]
    if seed is not None and taken:
        last = ranking.index(taken[-1])
        discarded = [each for each in ranking[:last] if each.name in memory.discarded]
    return taken, discarded


def _hash(seed: int, name: str) -> int:
    return int.from_bytes(blake2b(f"{seed} {name}".encode(), digest_size=8).digest())


def tried(target: Target, memory: Memory, seed: int, count: int) -> Iterator[Trial]:
    """Try the sample of a seed, on the whole run where it is not remembered."""
    killed = dict(memory.killed)
    left = count
    first = sample(target, memory)[0] if seed == target.seed else []
    with Nursery(target) as nursery:
        for each in dict.fromkeys([*first, *ranked(target, seed)]):
            # What has killed by now is tried early on the next mutant of the module.
            order = replace(memory, killed=killed).order(each.name)
            trial = confirmed(nursery, order)
            yield trial
            if trial.outcome == "killed":
                killed[trial.name] = trial.by
            left -= trial.outcome != "discarded"
            if not left:
                return


def confirmed(nursery: Nursery, order: Order) -> Trial:
    """Try a mutant until a part of the run kills it that kills it alone.

    A mutant may spoil the process while one part is run, and be seen by the next one
    only, which would not see it in a process of its own.  Where one kills by having no
    end, another one is looked for that fails, so often as `PATIENCE`.
    """
    endless: list[Trial] = []
    while True:
        trial = nursery.tried(order)
        if trial.outcome != "killed":
            return endless[0] if endless else trial
        if order.first[:1] != (trial.by,):
            alone = Order(trial.name, (trial.by,), everything=False)
            trial = replace(nursery.tried(alone), by=trial.by)
        if trial.outcome == "killed":
            if trial.how != "no end" or order.known or len(endless) == PATIENCE:
                return endless[0] if endless and trial.how == "no end" else trial
            endless.append(trial)
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
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--sample", type=int, help="so many instead")
    parser.add_argument("--seed", type=int, help="another one")
    parser.add_argument("--write", action="store_true", help="write the data file")
    given = parser.parse_args()
    target = TARGETS[given.target]
    seed = target.seed if given.seed is None else given.seed
    memory, sources = Memory.read(target.file), texts(target)
    trials: list[Trial] = []
    try:
        for trial in tried(target, memory, seed, given.sample or target.sample):
            trials.append(trial)
            print(row(trial, memory, sources), flush=True)
    except KeyboardInterrupt:
        if given.write:
            # What was known stays, and what was learned is added.
            memory.joined(remembered(memory, trials)).write(target.file)
        raise
    counts = Counter(each.outcome for each in trials)
    survivors = [each.name for each in trials if each.outcome == "survived"]
    unlisted = [name for name in survivors if name not in memory.equivalent]
    print(
        f"\n{counts['killed']} killed, {len(survivors) - len(unlisted)} equivalent, "
        f"{len(unlisted)} survived, {counts['discarded']} discarded; "
        f"{sum(each.seconds for each in trials):.0f} s of the processor"
    )
    for name in unlisted:
        print(f"survived: {name}")
    if given.write:
        remembered(memory, trials).write(target.file)
    return 1 if unlisted else 0


if __name__ == "__main__":
    sys.exit(main())
