"""The hands of the engine: plays one letter, owns the undo handles, compares.

True only here: this is the only file that calls a system's `do`, `undo` and `use`, and
the only owner of undo handles.  Collecting garbage can hide a handle that lives too
long, or keep one alive by accident; so a handle is dropped at one place, and a weak
reference tells at once whether it is gone.

Rules:
- an error's traceback is cleared, chain included, before anything else happens: frames
  hold locals, and locals hold handles;
- handles of a system that was reset are void; they are dropped before the reset;
- laws are checked after every action; a look is no action (its effect on the laws
  shows after the next one);
- a fingerprint is taken before a step only where the step is not known to succeed:
  that is where it may raise.

How it works: `play` appends the letter to the trace, so that the trace is at all times
the exact word since the last reset; whatever contradicts the ledger goes to `report`.
The loop of a walk spends its time here: keep a step free of allocations.
"""

import gc
from collections.abc import Callable, Hashable
from typing import TypeAlias
from weakref import ref

from harness.engine.alphabet import Alphabet, Key, toggled
from harness.engine.ledger import MISSING, Ledger
from harness.engine.protocol import System, Word
from harness.engine.result import Kind
from harness.errors import HarnessError

Report: TypeAlias = Callable[[Kind, Hashable, Hashable, bool], None]
"""Receives kind, expected, found, and whether these two are fingerprints.

It may raise in order to end the run.
"""


class Broken(Exception):
    """An undo raised: what is active is unknown, and nothing may be played."""


class Runner:
    """Plays letters on one system and keeps count."""

    __slots__ = (
        "_actions",
        "_cyclic",
        "_failed_at",
        "_fingerprint",
        "_laws",
        "_ledger",
        "_observe",
        "_ordered",
        "_passed",
        "_report",
        "_seen",
        "_steps",
        "_system",
        "adds",
        "failing",
        "handles",
        "key",
        "look_letter",
        "mask",
        "observations",
        "printed",
        "proving",
        "removes",
        "resets",
        "trace",
        "uses",
    )

    def __init__(
        self,
        system: System,
        alphabet: Alphabet,
        ledger: Ledger,
        report: Report,
        *,
        ordered: bool,
    ) -> None:
        self._system = system
        self._observe = system.observe
        self._laws = system.laws
        self._fingerprint = system.fingerprint
        self._ledger = ledger
        self._seen = ledger.seen
        self._passed = ledger.passed
        self._report = report
        self._ordered = ordered
        self._steps = alphabet.steps
        self._actions = alphabet.actions
        self._cyclic: set[type] = set()
        self._failed_at = -1
        self.look_letter = alphabet.look
        self.handles: list[object] = [None] * alphabet.steps
        self.trace = bytearray()
        self.mask = 0
        self.key: Key = () if ordered else 0
        self.printed = False
        self.proving = False
        self.adds = self.removes = self.failing = self.uses = 0
        self.observations = self.resets = 0

    @property
    def cyclic(self) -> tuple[str, ...]:
        """Types of handles that only the cycle collector frees, by name."""
        return tuple(sorted(kind.__qualname__ for kind in self._cyclic))

    def word(self) -> Word:
        """The exact word since the last reset; a final look is implied."""
        trace = self.trace
        end = len(trace)
        if end and trace[end - 1] == self.look_letter:
            end -= 1
        return tuple(trace[:end])

    def reset(self) -> None:
        """Drop every handle and start from a fresh system."""
        self.drop()
        self.trace.clear()
        self.mask = 0
        self.key = () if self._ordered else 0
        self._failed_at = -1
        self._system.reset()
        self.resets += 1
        self.printed = self._fingerprint() is not None
        self._check_laws()

    def play(self, letter: int) -> Hashable:
        """Play one letter: a failure's fields, a use's answer or a look, else None."""
        self.trace.append(letter)
        value: Hashable = None
        if letter < self._steps:
            if self.mask >> letter & 1:
                self._undo(letter)
            else:
                value = self._do(letter)
        elif letter < self._actions:
            value = self._use(letter - self._steps)
        else:
            return self._look()
        broken = self._laws()
        if broken:
            self._report("law", (), tuple(broken), False)
        return value

    def look(self) -> Hashable:
        """Play the letter that observes; the same as `play(look_letter)`."""
        self.trace.append(self.look_letter)
        return self._look()

    def drop(self) -> None:
        """Let go of every handle without undoing; only a reset may follow."""
        for step in range(self._steps):
            self.handles[step] = None

    def clear(self) -> None:
        """Undo whatever is active, lowest step first, with all checks but no look."""
        for step in range(self._steps):
            if self.mask >> step & 1:
                self.play(step)

    def _check_laws(self) -> None:
        broken = self._laws()
        if broken:
            self._report("law", (), tuple(broken), False)

    def _do(self, step: int) -> Hashable:
        key = self.key
        passed = self._passed.get(key, 0)
        known = passed >> step & 1
        before = None if known or not self.printed else self._fingerprint()
        try:
            self.handles[step] = self._system.do(step)
        except HarnessError:
            # No edge: the question itself is wrong.
            raise
        except Exception as error:
            return self._failed(step, self._fields(error), before, known=bool(known))
        self.adds += 1
        self.mask |= 1 << step
        self.key = self.mask if not self._ordered else toggled(key, step)
        if not known:
            self._passed[key] = passed | 1 << step
            fields = self._ledger.failures.get((key, step), MISSING)
            if fields is not MISSING:
                self._report("error", fields, None, False)
        return None

    def _failed(
        self, step: int, fields: Hashable, before: Hashable, *, known: bool
    ) -> Hashable:
        self.failing += 1
        self._failed_at = len(self.trace)
        if known:
            self._report("error", None, fields, False)
        elif before is not None and (after := self._fingerprint()) != before:
            self._report("wedged", before, after, True)
        expected = self._ledger.failures.setdefault((self.key, step), fields)
        if expected != fields:
            self._report("error", expected, fields, False)
        return fields

    def _undo(self, step: int) -> None:
        handle = self.handles[step]
        self.handles[step] = None
        kind = type(handle)
        watch = None
        if kind.__weakrefoffset__ and kind not in self._cyclic:
            watch = ref(handle)
        try:
            self._system.undo(step, handle)
        except Exception as error:
            self._report("undo", None, self._fields(error), False)
            raise Broken from None
        del handle
        self.removes += 1
        self.mask ^= 1 << step
        self.key = self.mask if not self._ordered else toggled(self.key, step)
        if watch is not None and watch() is not None:
            gc.collect()
            if watch() is None:
                self._cyclic.add(kind)
            else:
                self._report("leak", None, kind.__qualname__, False)

    def _use(self, use: int) -> Hashable:
        before = self._fingerprint() if self.printed else None
        try:
            answer = self._system.use(use)
        except HarnessError:
            # As for a step: no answer to compare, the question is wrong.
            raise
        except Exception as error:
            answer = ("raised", self._fields(error))
        self.uses += 1
        if self.printed and (after := self._fingerprint()) != before:
            self._report("use", before, after, True)
        expected = self._ledger.answers.setdefault((self.key, use), answer)
        if expected != answer:
            self._report("use", expected, answer, False)
        return answer

    def _look(self) -> Hashable:
        if self.proving:
            self._prove(looked=False)
        seen = self._observe()
        self.observations += 1
        known = self._seen.get(self.key, MISSING)
        if known is not seen and known != seen:
            if known is MISSING:
                self._seen[self.key] = self._ledger.interned(seen)
            else:
                self._report(self._suspect(), known, seen, False)
        self._check_laws()
        if self.proving:
            self._prove(looked=True)
        return seen

    def _prove(self, *, looked: bool) -> None:
        found = self._fingerprint()
        expected = self._ledger.prints.setdefault(self.key, found)
        if expected != found:
            kind = "cold" if looked else self._suspect()
            self._report(kind, expected, found, True)

    def _suspect(self) -> Kind:
        """What a look that differs points at: the last letter before it."""
        trace = self.trace
        if len(trace) - 1 == self._failed_at:
            return "wedged"
        last = trace[-2] if len(trace) > 1 else 0
        if last < self._steps:
            return "order"
        return "use" if last < self._actions else "cold"

    def _fields(self, error: Exception) -> Hashable:
        fields = self._system.failure(error)
        chain: list[BaseException] = [error]
        for link in chain:
            link.__traceback__ = None
            for further in (link.__context__, link.__cause__):
                if further is not None and all(further is not old for old in chain):
                    chain.append(further)
        return fields
