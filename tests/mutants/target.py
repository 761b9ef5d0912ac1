"""Targets: packages whose mutants are made by rule, and the run that is to kill them.

True only here: which there are, and what differs from one to the other; how a mutant
lives and dies is the same for all (`trial`), and how a sample is drawn (`mechanical`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Target:
    """A package, the sample of its mutants, and what they are tried on.

    `run` is the class of the run, as "module:name".  `loaded` are modules that all
    trials share: none of them may import the package.  One part of the run may take
    `seconds` of the wall's clock, or of the processor's, and `memory` bytes; `seed` and
    `sample` decide about the mutants, `file` remembers what killed them.
    """

    name: str
    package: str
    run: str
    loaded: tuple[str, ...]
    seconds: int
    clock: Literal["wall", "processor"]
    memory: int
    seed: int
    sample: int
    file: Path
    # Modules of the package that are not mutated.
    left_out: frozenset[str] = frozenset()

    @property
    def folder(self) -> Path:
        """Where the package is."""
        return ROOT.joinpath(*self.package.split("."))


DISPATCH = Target(
    "dispatch",
    "everyorder.runtime.dispatch",
    "tests.mutants.default_run:DefaultRun",
    # What takes long to import and knows nothing of us.
    ("ml_dtypes", "numpy", "pytest"),
    # Most scenarios take a tenth of a second; the largest ten seconds.
    seconds=90,
    clock="wall",
    # A mutant that fills the memory is ended by a MemoryError, not by the machine; the
    # right code takes a tenth of this.
    memory=2 << 30,
    seed=10,
    sample=118,
    file=ROOT / "tests" / "mutants" / "mechanical.json",
)

SESSION = Target(
    "session",
    "everyorder.runtime.rpc.protocol",
    "tests.rpc.mutants.session_run:SessionRun",
    # The package above, `everyorder.runtime.rpc`, names workers as the protocol does.
    ("pytest", "hypothesis", "everyorder.runtime"),
    # Sessions never wait, so time is what they compute: one second at most, if right.
    seconds=20,
    clock="processor",
    memory=1 << 30,
    seed=14,
    sample=150,
    file=ROOT / "tests" / "rpc" / "mutants" / "mechanical.json",
    # Formats of bytes, which hostile frames are played against.
    left_out=frozenset({"identities", "messages", "wire"}),
)

TARGETS: Mapping[str, Target] = {each.name: each for each in (DISPATCH, SESSION)}
