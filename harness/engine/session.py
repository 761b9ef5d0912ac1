"""One exploration in progress: what strategies play through.

True only here: the line between what a strategy plans (`edge`, `word`: counted against
plan and budget) and what it needs besides (`lead`, `rehearse`: executed with the same
checks, not counted as edges of the plan).

Rules:
- a look follows every letter of `edge` and `lead` (warm), and only the last letter of
  `word` and `rehearse`, which start from a fresh system (cold);
- violations are collected; `Halt` ends the run when there are enough, or when what is
  active is unknown.
"""

from collections.abc import Hashable
from dataclasses import dataclass

from harness.engine.alphabet import Alphabet, Key
from harness.engine.budget import Meter
from harness.engine.ledger import Ledger
from harness.engine.protocol import System, Word
from harness.engine.result import Kind
from harness.engine.runner import Runner


class Halt(Exception):
    """Enough violations were found."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation as found: not shrunk, its state still a key."""

    kind: Kind
    key: Key
    expected: Hashable
    found: Hashable
    word: Word
    hidden: bool = False


class Session:
    """A system, its runner, ledger and meter, and the findings so far."""

    def __init__(
        self,
        system: System,
        alphabet: Alphabet,
        meter: Meter,
        *,
        ordered: bool,
        stop_after: int,
    ) -> None:
        self.system = system
        self.alphabet = alphabet
        self.meter = meter
        self.ordered = ordered
        self.stop_after = stop_after
        self.ledger = Ledger()
        self.findings: list[Finding] = []
        self.skipped: list[str] = []
        # Whether every reachable state has its canonical word, or at least was met.
        self.mapped = False
        self.reached = False
        self.runner = Runner(
            system, alphabet, self.ledger, self._report, ordered=ordered
        )

    def edge(self, letter: int) -> None:
        """Play one letter of the plan where the system stands, and look."""
        self.meter.count()
        self.runner.play(letter)
        self.runner.look()

    def lead(self, letter: int) -> None:
        """Play one letter besides the plan where the system stands, and look."""
        self.runner.play(letter)
        self.runner.look()

    def word(self, word: Word) -> None:
        """Play a word of the plan from a fresh system and look at its end."""
        self.meter.count(len(word))
        self.rehearse(word)

    def rehearse(self, word: Word) -> None:
        """Play a word besides the plan from a fresh system and look at its end."""
        runner = self.runner
        runner.reset()
        play = runner.play
        for letter in word:
            play(letter)
        runner.look()

    def _report(
        self, kind: Kind, expected: Hashable, found: Hashable, hidden: bool
    ) -> None:
        key, word = self.runner.key, self.runner.word()
        self.findings.append(Finding(kind, key, expected, found, word, hidden))
        if kind == "undo" or len(self.findings) >= self.stop_after:
            raise Halt
