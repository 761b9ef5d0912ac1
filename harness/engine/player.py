"""The executor of the engine: plays one operation, owns undo handles, compares.

This is the only file of the engine that calls a system's `do`, `undo` and `use`, and
the only owner of undo handles.  Collecting garbage can hide a handle that lives too
long, or keep one alive by accident; so a handle is dropped at one place, and a weak
reference shows at once whether it was freed (`leaks.py`).

The *record* holds the first results of a system: the reference that every action is
compared with.  The first value of a key is never replaced, so that "expected" means the
same from the first comparison to the report.  One record serves all strategies of an
exploration: the results of `walk` are compared with those of `histories`.

Rules:
- the traceback of an error, chain included, is cleared before anything else happens:
  frames hold locals, and locals hold handles;
- handles of a system that was reset are void; they are dropped before the reset;
- an operation that makes no sense at the current state (see `Relations`) is not played,
  and is not part of the history;
- if an operation succeeds that ends other steps, their handles are dropped without an
  undo, and must be freed like those of undone steps;
- laws are checked after every action; a look is not an action (its effect on the laws
  shows after the next one);
- for a settled system the state is compared around uses that end no steps, and around
  operations that raise, which must not change it; before a step it is read only if the
  step is not known to succeed, because then the step may raise.

How it works: `play` appends the operation to the trace, so that the trace is always the
exact history since the last reset; every contradiction of the record is passed to
`report`.  The loop of a walk spends its time here: keep a step free of allocations.
"""

import gc
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeAlias
from weakref import ref

from everyorder.harness.base.errors import HarnessError
from everyorder.harness.engine import progress
from everyorder.harness.engine.leaks import outlives
from everyorder.harness.engine.protocol import (
    History,
    Key,
    Operations,
    Ordering,
    System,
    state_of,
)
from everyorder.harness.engine.record import ObservationRecord
from everyorder.harness.engine.result import Kind

# The pseudo-operation for the state of a settled system.
STATE: Final = -1


class Missing:
    """The type of `MISSING`, which is unequal to every value of a system."""

    __slots__ = ()


MISSING: Final = Missing()


Report: TypeAlias = Callable[[Kind, Key, Hashable, Hashable, bool], None]
"""Receives kind, active steps, expected, found, and True if these two are states.

It may raise in order to end the run.  It must not refer to a player: that would be a
cycle, which the operation that collects garbage would find.
"""


class Broken(Exception):
    """An undo raised: the active steps are unknown, and no operation may follow."""


class Player:
    """Plays operations on one system and counts them."""

    __slots__ = (
        "_actions",
        "_blockers",
        "_cyclic",
        "_ends",
        "_excluded",
        "_failed_at",
        "_guarded",
        "_laws",
        "_needed_by",
        "_observe",
        "_ordering",
        "_passed",
        "_plain",
        "_pulse",
        "_record",
        "_relations",
        "_report",
        "_requires",
        "_seen",
        "_state",
        "_steps",
        "_system",
        "adds",
        "collect_operation",
        "contradicted",
        "failing",
        "handles",
        "key",
        "look_operation",
        "mask",
        "observations",
        "printed",
        "proving",
        "removes",
        "resets",
        "trace",
        "uses",
        "watching",
    )

    def __init__(
        self,
        system: System,
        operations: Operations,
        record: ObservationRecord,
        report: Report,
        *,
        ordering: Ordering,
    ) -> None:
        self._system = system
        self._observe = system.observe
        self._laws = system.laws
        self._state = system.state
        self._record = record
        self._seen = record.seen
        self._passed = record.passed
        self._report = report
        self._ordering = ordering
        self._plain = not ordering.counts
        self._steps = operations.steps
        self._actions = operations.actions
        self._relations = relations = operations.relations
        self._guarded = bool(relations.lasting) or relations.combined
        self._requires = [0] * operations.steps
        self._needed_by = [0] * operations.steps
        self._excluded = [0] * operations.steps
        for step, needed in relations.requires.items():
            for other in needed:
                self._requires[step] |= 1 << other
                self._needed_by[other] |= 1 << step
        for step, before in relations.after.items():
            for other in before:
                self._requires[step] |= 1 << other
        for step, excluded in relations.excludes.items():
            for other in excluded:
                self._excluded[step] |= 1 << other
        # Bitmasks by operation: the steps that it ends, and those that require these.
        self._ends: dict[int, int] = {}
        self._blockers: dict[int, int] = {}
        for operation, ended in relations.ends.items():
            self._ends[operation] = mask = sum(1 << step for step in ended)
            self._blockers[operation] = 0
            for step in ended:
                self._blockers[operation] |= self._needed_by[step] & ~mask
        self._cyclic: set[type] = set()
        self._failed_at = -1
        # The key and the operation whose recorded result is contradicted.
        self.contradicted: tuple[Key, int] | None = None
        # The progress that a watching process reads, if there is one.
        self._pulse = progress.current()
        self.look_operation = operations.look
        self.collect_operation = operations.collect
        self.handles: list[object] = [None] * operations.steps
        self.trace = bytearray()
        self.mask = 0
        self.key: Key = ordering.root
        # `printed`: a settled system shows its state; `proving`: it is compared.
        self.printed = False
        self.proving = False
        # True if handles are watched by weak references when they are dropped.
        self.watching = True
        self.adds = self.removes = self.failing = self.uses = 0
        self.observations = self.resets = 0

    @property
    def cyclic(self) -> tuple[str, ...]:
        """Return the types of handles that only the cycle collector frees, by name."""
        return tuple(sorted(kind.__qualname__ for kind in self._cyclic))

    def history(self) -> History:
        """Return the exact history since the last reset; a final look is implied."""
        trace = self.trace
        end = len(trace)
        if end and trace[end - 1] == self.look_operation:
            end -= 1
        return tuple(trace[:end])

    def state(self) -> Hashable | None:
        """Return the complete state of the system, handles included."""
        return self._state(self.handles)

    def reset(self) -> None:
        """Drop every handle and start from a fresh system."""
        self.drop()
        self.trace.clear()
        self.mask = 0
        self.key = self._ordering.root
        self._failed_at = -1
        if self._pulse is not None:
            self._pulse.reset()
        self._system.reset()
        self.resets += 1
        self.printed = self._system.settled and self.state() is not None
        self._check_laws()

    def sensible(self, operation: int, mask: int | None = None) -> bool:
        """Return True if the operation makes sense at `mask` or the current state."""
        if not self._guarded:
            return True
        if mask is None:
            mask = self.mask
        ending = not self._blockers.get(operation, 0) & mask
        if operation >= self._steps:
            return ending
        there = ending and not self._requires[operation] & ~mask
        there = there and not self._excluded[operation] & mask
        if not mask >> operation & 1:
            return there
        relations = self._relations
        if operation in relations.lasting:
            return there and operation in relations.again
        return not self._needed_by[operation] & mask

    def play(self, operation: int) -> Hashable:
        """Play one operation if it makes sense.

        Returns the fields of a failure, the answer of a use, a look, or None.

        Raises:
            Broken: an undo raised that must not raise.
        """
        if self._guarded and not self.sensible(operation):
            return None
        self.trace.append(operation)
        if self._pulse is not None:
            undo = self.mask >> operation & 1 if operation < self._steps else 0
            self._pulse.beat(operation | progress.UNDO if undo else operation)
        value: Hashable = None
        if operation < self._steps:
            if self.mask >> operation & 1 and operation not in self._relations.again:
                value = self._undo(operation)
            else:
                value = self._do(operation)
        elif operation < self._actions:
            value = self._use(operation - self._steps)
        elif operation == self.look_operation:
            return self._look()
        else:
            self._system.collect()
        broken = self._laws()
        if broken:
            self._report("law", self.key, (), tuple(broken), False)
        return value

    def look(self) -> Hashable:
        """Play the operation that observes, as `play(look_operation)` does."""
        self.trace.append(self.look_operation)
        if self._pulse is not None:
            self._pulse.beat(self.look_operation)
        return self._look()

    def rest(self) -> None:
        """Record that the engine does its own work until the next operation."""
        if self._pulse is not None:
            self._pulse.rest()

    def drop(self) -> None:
        """Drop every handle without undoing; only a reset may follow.

        Until then the engine does its own work: effects of freed handles do not count.
        """
        self._system.drop(self.handles)
        self.rest()

    def clear(self) -> None:
        """Undo all steps that can be undone, lowest first, with all checks but no look.

        A step that others require is undone after them.
        """
        left = -1
        while self.mask and self.mask != left:
            left = self.mask
            for step in range(self._steps):
                if self.mask >> step & 1 and step not in self._relations.lasting:
                    self.play(step)

    def _check_laws(self) -> None:
        broken = self._laws()
        if broken:
            self._report("law", self.key, (), tuple(broken), False)

    def _do(self, step: int) -> Hashable:
        key = self.key
        passed = self._passed.get(key, 0)
        succeeded = passed >> step & 1
        before = None if succeeded or not self.printed else self.state()
        try:
            self.handles[step] = self._system.do(step)
        except HarnessError:
            # Not a transition: the question itself is wrong.
            raise
        except Exception as error:
            return self._failed(
                step, self._fields(error), before, succeeded=bool(succeeded)
            )
        self.adds += 1
        ended = self._end(step) if step in self._ends else None
        if not self.mask >> step & 1:
            self.mask = mask = self.mask | 1 << step
            self.key = mask if self._plain else self._ordering.toggled(self.key, step)
        if not succeeded:
            fields = self._record.failures.get((key, step), MISSING)
            if fields is MISSING:
                self._passed[key] = passed | 1 << step
                self._record.note(key, step, self.trace)
            else:
                self._contradict("error", key, step, fields, None)
        if ended:
            for watch in ended:
                self._check_freed(watch)
        return None

    def _end(self, operation: int) -> list["ref[Any]"]:
        """End the steps that an operation ends, which are not undone.

        Returns weak references to their handles, if these are watched.
        """
        ended = self._ends[operation] & self.mask
        handles: list[object] = []
        watches: list[ref[Any]] = []
        for step in state_of(ended):
            handles.append(self.handles[step])
            self.handles[step] = None
            watch = self._watched(handles[-1])
            if watch is not None:
                watches.append(watch)
        self.mask &= ~ended
        self.key = (
            self.mask
            if self._plain
            else self._ordering.without(self.key, state_of(ended))
        )
        if handles:
            self._system.release(handles, self.mask.bit_count())
        return watches

    def _watched(self, handle: object) -> "ref[Any] | None":
        """Return a weak reference to a handle that is about to be dropped, or None."""
        kind = type(handle)
        if self.watching and kind.__weakrefoffset__ and kind not in self._cyclic:
            return ref(handle)
        return None

    def _check_freed(self, watch: "ref[Any]") -> None:
        """Report a dropped handle that is still alive."""
        if watch() is None:
            return
        kind = type(watch())
        gc.collect()
        if watch() is None:
            self._cyclic.add(kind)
        elif outlives(watch):
            self._report("leak", self.key, None, kind.__qualname__, False)

    def _failed(
        self, step: int, fields: Hashable, before: Hashable, *, succeeded: bool
    ) -> Hashable:
        self.failing += 1
        self._failed_at = len(self.trace)
        if not succeeded:
            self._record.note(self.key, step, self.trace)
            if before is not None and (after := self.state()) != before:
                self._report("wedged", self.key, before, after, True)
        expected = self._record.failures.setdefault((self.key, step), fields)
        if succeeded:
            self._contradict("error", self.key, step, None, fields)
        elif expected != fields:
            self._contradict("error", self.key, step, expected, fields)
        return fields

    def _undo(self, step: int) -> Hashable:
        refusable = step in self._relations.refusable
        before = self.state() if refusable and self.printed else None
        handle = self.handles[step]
        self.handles[step] = None
        watched = self.watching and type(handle).__weakrefoffset__
        watch = self._watched(handle) if watched else None
        try:
            self._system.undo(step, handle)
        except HarnessError:
            raise
        except Exception as error:
            fields = self._fields(error)
            if refusable:
                self.handles[step] = handle
                return self._refused(step, fields, before)
            self._report("undo", self.key, None, fields, False)
            raise Broken from None
        del handle
        self.removes += 1
        if refusable:
            self._retired(step)
        self.mask ^= 1 << step
        self.key = self.mask if self._plain else self._ordering.toggled(self.key, step)
        if watch is not None:
            self._check_freed(watch)
        return None

    def _refused(self, step: int, fields: Hashable, before: Hashable) -> Hashable:
        """Record that an undo was refused: the step stays active."""
        self.failing += 1
        self._failed_at = len(self.trace)
        undone_before = self._record.retired.get(self.key, 0) >> step & 1
        if not undone_before:
            self._record.note(self.key, step, self.trace)
            if before is not None and (after := self.state()) != before:
                self._report("wedged", self.key, before, after, True)
        expected = self._record.refusals.setdefault((self.key, step), fields)
        if undone_before:
            self._contradict("error", self.key, step, None, fields)
        elif expected != fields:
            self._contradict("error", self.key, step, expected, fields)
        return fields

    def _retired(self, step: int) -> None:
        """Record that an undo that may be refused succeeded."""
        retired = self._record.retired
        undone_steps = retired.get(self.key, 0)
        if undone_steps >> step & 1:
            return
        fields = self._record.refusals.get((self.key, step), MISSING)
        if fields is MISSING:
            retired[self.key] = undone_steps | 1 << step
            self._record.note(self.key, step, self.trace)
        else:
            self._contradict("error", self.key, step, fields, None)

    def _use(self, use: int) -> Hashable:
        before = self.state() if self.printed else None
        operation = self._steps + use
        ends = operation in self._ends
        try:
            answer = self._system.use(use)
        except HarnessError:
            # As for a step: there is no answer to compare, the question is wrong.
            raise
        except Exception as error:
            answer = ("raised", self._fields(error))
            if ends:
                ends = False
                self._failed_at = len(self.trace)
                if (self.key, use) not in self._record.answers:
                    self._record.raised.add((self.key, operation))
        self.uses += 1
        if self.printed and not ends and (after := self.state()) != before:
            self._report("use", self.key, before, after, True)
        first_answer = self._record.answers.get((self.key, use), MISSING)
        if first_answer is MISSING:
            self._record.answers[self.key, use] = answer
            self._record.note(self.key, operation, self.trace)
        elif first_answer != answer:
            self._contradict("use", self.key, operation, first_answer, answer)
        if ends:
            for watch in self._end(operation):
                self._check_freed(watch)
        return answer

    def _look(self) -> Hashable:
        before = self._prove(looked=False) if self.proving else None
        observation = self._observe()
        self.observations += 1
        reference = self._seen.get(self.key, MISSING)
        if reference is not observation and reference != observation:
            if reference is MISSING:
                self._seen[self.key] = self._record.interned(observation)
                self._record.note(self.key, self.look_operation, self.trace)
            else:
                operation = self.look_operation
                self._contradict(
                    self._suspect(), self.key, operation, reference, observation
                )
        self._check_laws()
        # An identical object was compared just now.
        if self.proving and self.state() is not before:
            self._prove(looked=True)
        return observation

    def _prove(self, *, looked: bool) -> Hashable:
        """Compare the state with the recorded one, and return it."""
        current = self.state()
        expected = self._record.prints.get(self.key, MISSING)
        if expected is MISSING:
            self._record.prints[self.key] = current
            self._record.note(self.key, STATE, self.trace)
        elif expected != current:
            kind = "cold" if looked else self._suspect()
            self._contradict(kind, self.key, STATE, expected, current, hidden=True)
        return current

    def _contradict(
        self,
        kind: Kind,
        key: Key,
        operation: int,
        expected: Hashable,
        actual: Hashable,
        *,
        hidden: bool = False,
    ) -> None:
        """Report a result that differs from the first result of the operation."""
        self.contradicted = (key, operation)
        try:
            self._report(kind, self.key, expected, actual, hidden)
        finally:
            self.contradicted = None

    def _suspect(self) -> Kind:
        """Return the kind for a look that differs, by the last operation before it."""
        trace = self.trace
        if len(trace) - 1 == self._failed_at:
            return "wedged"
        last = trace[-2] if len(trace) > 1 else 0
        if last < self._steps or last in self._ends:
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
