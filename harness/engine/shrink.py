"""From a fault found late in a long run to the shortest history that shows it.

A history found by a walk may be a hundred thousand operations long, while the fault
nearly always needs its last few operations and the steps that were active before.

How it works, each stage by the judge's verdict on fresh systems:
1. *Window*: the last 1, 2, 4, ... operations, after the canonical history of the state
   where they begin; first without the looks of the walk, then with them.
2. *Reduction*: delta debugging (Zeller and Hildebrandt 2002) removes runs of
   operations, then single ones, then any two, while the history still fails: a step and
   its undo can be removed together only.
3. *Directed search*, if the next stage cannot be afforded: the states that the needed
   operations reach are visited from the empty one on, shallow ones first, each by one
   history; a history fails that leaves a state by one operation, or by the last
   operations of the reduced history.
4. *Every shorter history* over the operations that the reduced one needs and the look,
   by length, each on a fresh system, for a fault of any kind: none is skipped because
   another one ended in the same state.  When all of them pass, no shorter history over
   those operations fails, and only then is that claimed.
5. The same over all operations, up to the length that half of the allowance affords.

The allowance of operations may end any stage; then the best history so far is the
result, and there is no claim about shorter ones.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

from everyorder.harness.engine.oracle import HistoryFault, Judge, OperationsExhausted
from everyorder.harness.engine.protocol import (
    History,
    Key,
    Operations,
    Ordering,
    is_active,
    state_of,
)
from everyorder.harness.engine.record import ObservationRecord
from everyorder.harness.engine.result import Kind
from everyorder.harness.engine.session import RawViolation

# Up to this length, delta debugging reduces a history by some hundred replays.
SHORT = 32


@dataclass(frozen=True, slots=True)
class Shrunk:
    """A short history, its fault, and whether a shorter one is ruled out.

    `shorter` is a shorter history over other operations, if there is one: its fault may
    be another one.
    """

    history: History
    fault: HistoryFault
    proven: bool
    shorter: "Shrunk | None" = None


def shrink(
    judge: Judge,
    finding: RawViolation,
    operations: Operations,
    record: ObservationRecord,
    ordering: Ordering,
) -> Shrunk | None:
    """Shrink a finding; None if no window of it fails on a fresh system."""
    kind: Kind | None = finding.kind
    try:
        history = _window(judge, finding, _keys(finding, operations, record, ordering))
    except OperationsExhausted:
        return None
    if history is None:
        return None
    history = _reduced(judge, history, finding.kind)
    needed = tuple(sorted({*history, operations.look}))
    if _cost(needed, len(history)) > judge.left:
        directed = _directed(judge, history, needed)
        if directed is not None:
            history, kind = _reduced(judge, directed, None), None
            needed = tuple(sorted({*history, operations.look}))
    shorter, proven = _search(judge, needed, len(history))
    if shorter is not None:
        history, kind = shorter, None
    other: Shrunk | None = None
    every = tuple(range(operations.look + 1))
    if proven and len(needed) < len(every):
        below = len(history)
        while _cost(every, below) > max(judge.left, 0) // 2:
            below -= 1
        shorter, _ = _search(judge, every, below)
        if shorter is not None:
            other = _judged(judge, shorter, None, proven=True)
    return _judged(judge, history, kind, proven=proven, shorter=other)


def _judged(
    judge: Judge,
    history: History,
    kind: Kind | None,
    *,
    proven: bool,
    shorter: Shrunk | None = None,
) -> Shrunk | None:
    """Return a history that fails, with its fault; may exceed the allowance."""
    judge.extend(len(history))
    fault = judge.fault(history, kind)
    return None if fault is None else Shrunk(history, fault, proven, shorter)


def _window(judge: Judge, finding: RawViolation, keys: list[Key]) -> History | None:
    ends = [len(finding.history)]
    # The first visit may be the wrong one: a complete state is compared with the first
    # one met, not with a cold reference.
    first = keys.index(keys[-1])
    if first < ends[0]:
        ends.append(first)
    look = judge.look
    for start, end in _windows(ends):
        way = judge.canonical(state_of(keys[start]))
        tail = finding.history[start:end]
        bare = tuple(operation for operation in tail if operation != look)
        for candidate in dict.fromkeys((way + bare, way + tail)):
            if judge.fault(candidate, finding.kind) is not None:
                return candidate
    return None


def _windows(ends: list[int]) -> Iterator[tuple[int, int]]:
    """Yield start and end: the last 1, 2, 4, ... operations before each end, then all.

    Windows that can be reduced quickly are first, whatever the end.
    """
    long: list[tuple[int, int]] = []
    for end in ends:
        length = 1
        while length < end:
            if length <= SHORT:
                yield end - length, end
            else:
                long.append((end - length, end))
            length *= 2
        if end <= SHORT:
            yield 0, end
        else:
            long.append((0, end))
    yield from long


def _keys(
    finding: RawViolation,
    operations: Operations,
    record: ObservationRecord,
    ordering: Ordering,
) -> list[Key]:
    """Return the key before each operation and at the end, by the recorded failures."""
    key = ordering.root
    keys = [key]
    again = operations.relations.again
    for operation in finding.history:
        place = (key, operation)
        undone = operation < operations.steps and is_active(key, operation)
        undone = undone and operation not in again
        failed = record.refusals if undone else record.failures
        if place not in failed and place not in record.raised:
            key = operations.after(key, operation, ordering)
        keys.append(key)
    return keys


def _reduced(judge: Judge, history: History, kind: Kind | None) -> History:
    """Remove runs of operations, halving their length, then single ones and pairs."""
    chunk = max(len(history) // 2, 1)
    try:
        while True:
            before = history
            at = 0
            while at < len(history):
                trial = history[:at] + history[at + chunk :]
                if judge.fault(trial, kind) is not None:
                    history = trial
                else:
                    at += chunk
            if chunk > 1:
                chunk //= 2
            elif history == before:
                shorter = _without_pair(judge, history, kind)
                if shorter is None:
                    return history
                history = shorter
    except OperationsExhausted:
        return history


def _without_pair(judge: Judge, history: History, kind: Kind | None) -> History | None:
    """Return the history without some two operations, if it still fails."""
    if len(history) > SHORT:
        return None
    for one, other in combinations(range(len(history)), 2):
        trial = history[:one] + history[one + 1 : other] + history[other + 1 :]
        if judge.fault(trial, kind) is not None:
            return trial
    return None


def _directed(judge: Judge, history: History, operations: History) -> History | None:
    """Return a shorter failing history that leaves a shallow state; None if none does.

    States of equal forms are one state, so that no history is ruled out by this.  It
    takes half of the allowance at most.
    """
    least = judge.left // 2
    shallow: deque[History] = deque([()])
    shortest: History | None = None
    below = len(history)
    try:
        forms = {judge.form(())}
        while shallow and len(shallow[0]) + 1 < below:
            way = shallow.popleft()
            # The last operations of the history, where they are shorter than it.
            for length in range(2, below - len(way)):
                trial = way + history[-length:]
                if judge.left < least:
                    return shortest
                if judge.fault(trial, None) is not None:
                    shortest, below = trial, len(trial)
                    break
            for operation in operations:
                if judge.left < least:
                    return shortest
                longer = (*way, operation)
                if len(longer) < below and judge.fault(longer, None) is not None:
                    return longer
                form = judge.form(longer)
                if form is not None and form not in forms:
                    forms.add(form)
                    shallow.append(longer)
    except OperationsExhausted:
        pass
    return shortest


def _search(
    judge: Judge, operations: History, below: int
) -> tuple[History | None, bool]:
    """Return the first failing history shorter than `below`, and True if it is decided.

    The histories are tried by length, so no shorter one than the result fails.
    """
    for length in range(below):
        for history in product(operations, repeat=length):
            try:
                if judge.fault(history, None) is not None:
                    return history, True
            except OperationsExhausted:
                return None, False
    return None, True


def _cost(operations: History, below: int) -> int:
    return sum(int(len(operations) ** size) * (size + 1) for size in range(below))
