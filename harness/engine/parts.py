"""`parts`: independent groups as a proof, where reads and writes can be followed.

`groups.py` finds groups of steps that write nothing in common and explores each of them
to closure.  What they read does not show there.  Here each group is explored a second
time on a system that records the accesses of each operation to entries of the
registry's dicts and sets (`System.followed`), and operations are joined to *parts* by
the places that one of them writes and another one accesses (`independence.py`).

Theorem T6 (`strategy.py`): if nothing changes but such places, and no place that an
operation writes is accessed by an operation of another part, then the system is the
product of its parts.  By induction over the history, an operation reads the same, and
so does the same, as in the history of its part alone, which was explored.  So n
independent steps need 2 * n states instead of 2^n.

A use, or the look, that only reads need not belong to a part: a list of all names, say.
It answers by the active steps alone if they decide what it reads: each place must have
one value for each set of active steps.  It must write nothing at any state that was
reached.  Laws must hold at every state, so they belong to parts.

Checked:
- everything outside of the places is equal in all states that are reached;
- each part was explored as a whole; groups that share places are joined and explored
  again;
- no weak reference and no finalizer is reachable: these would show other parts;
- all results are those of the registry without records, and so are the instructions
  that are executed: compiled code may take a container with records for something else;
- operations drawn at random over all steps, with records and without, have the results
  of their parts alone, access no more, and readers answer the same after two orders.

Assumed, and reported: no operation looks at the exact type of a container with records;
an operation that reads several parts changes nothing and reads no order at any state;
within a part the order of dicts is not read, where only forms without it were explored.
"""

from collections.abc import Callable, Hashable
from functools import partial
from itertools import cycle
from random import Random

from everyorder.harness.base.errors import BadScenario, ExplorationRestart
from everyorder.harness.engine.independence import (
    EVERY,
    Follower,
    Join,
    parts_of,
    shared_places,
)
from everyorder.harness.engine.limits import remaining, shared
from everyorder.harness.engine.player import Broken
from everyorder.harness.engine.proof import orders_unread, searched
from everyorder.harness.engine.protocol import Caveat, Operations, System
from everyorder.harness.engine.session import ExplorationSession, Halt
from everyorder.harness.engine.states import LEAST, LEGS, SearchPart

Groups = tuple[tuple[int, ...], ...]

_FAILED = (BadScenario, Broken, Halt)
_DIFFERENT = "operations work differently while accesses are recorded"
_RESTARTED = "operations reach or change more objects while accesses are recorded"


def joined(session: ExplorationSession, groups: Groups) -> Groups | None:
    """Return the groups, joined where an operation of one accesses what another writes.

    Sets `session.parts` if they stay apart.  None, and a line in `session.skipped`, if
    accesses do not show everything.
    """
    session.player.drop()
    plain = _begun(session, recording=False)
    recorded = _begun(session, recording=True)
    if plain is None or recorded is None:
        session.skipped.append(
            "parts: accesses cannot be followed with fingerprint= or isolation="
        )
        return None
    again, follower = recorded
    reason = _played_alike(plain, recorded, lambda each: _explored(each, groups))
    reason = reason or _difference(session, again, follower)
    if reason:
        session.skipped.append(f"parts: {reason}")
        return None
    parts, joins, readers = _parts(session, groups, follower)
    steps = _steps(session.operations, parts)
    if len(steps) == 1:
        text = _text(session.operations, joins[0])
        session.skipped.append(f"parts: all steps are one part: {text}")
        return None
    if steps != groups:
        return steps
    walked = shared(remaining(session)).walked // 2
    walk = partial(_disagreement, session, parts, readers, walked)
    reason = _played_alike(plain, recorded, walk)
    if _parts(session, groups, follower) != (parts, joins, readers):
        reason = reason or "operations drawn at random share more than in their parts"
    reason = reason or _difference(session, again, follower)
    if reason:
        session.skipped.append(f"parts: {reason}")
    else:
        session.parts, session.readers = follower.containers, readers
        if session.variants:
            session.unread = orders_unread(session, session.variants)
    return steps


_Followed = tuple[ExplorationSession, Follower]


def _begun(session: ExplorationSession, *, recording: bool) -> _Followed | None:
    """Return a session of the same system, followed, if that is possible."""
    pair = session.system.followed(recording=recording)
    if pair is None:
        return None
    system, follower = pair
    again = ExplorationSession(
        system,
        session.operations,
        session.meter,
        ordering=session.ordering,
        stop_after=1,
    )
    again.reserved = session.reserved
    again.player.watching = False
    return again, follower


def _played_alike(
    plain: _Followed, recorded: _Followed, play: Callable[[ExplorationSession], str]
) -> str:
    """Play the same twice; return why they differ or it cannot be played, or ""."""
    for session, follower in (plain, recorded):
        try:
            reason = play(session)
        except ExplorationRestart:
            reason = _RESTARTED
        except _FAILED:
            reason = _DIFFERENT
        finally:
            session.player.drop()
            follower.release()
        if reason:
            return reason
    executed = {follower.executed for _, follower in (plain, recorded)}
    return "" if len(executed) == 1 else _DIFFERENT


def _parts(
    session: ExplorationSession, groups: Groups, follower: Follower
) -> tuple[Groups, tuple[Join, ...], tuple[int, ...]]:
    """Return the parts, why operations were joined, and the operations left out.

    Those that only read are left out if they would join groups of steps.
    """
    # Laws are numbered after the look.
    count, accesses = session.operations.look + 2, follower.accesses()
    parts, joins = parts_of(count, groups, accesses)
    if _steps(session.operations, parts) == groups:
        return parts, joins, ()
    readers = {
        operation: each
        for operation, each in accesses.items()
        if operation in (*session.operations.questions, session.operations.look)
        and not (each.written or follower.varying)
    }
    writers = {n: each for n, each in accesses.items() if n not in readers}
    parts, _ = parts_of(count, groups, writers)
    of_several = tuple(
        reader
        for reader, read in readers.items()
        if sum(
            any(n in writers and shared_places(read, writers[n]) for n in part)
            for part in parts
        )
        > 1
    )
    left = {n: each for n, each in accesses.items() if n not in of_several}
    return *parts_of(count, groups, left), of_several


def _steps(operations: Operations, parts: Groups) -> Groups:
    """Return the steps of the parts that have some."""
    steps = (tuple(n for n in part if n < operations.steps) for part in parts)
    return tuple(each for each in steps if each)


def caveats(session: ExplorationSession) -> tuple[Caveat, ...]:
    """Return the assumption of a proof by parts."""
    if not session.parts:
        return ()
    several = len(session.parts) > 3
    named = ", ".join((*session.parts[:2], "...") if several else session.parts)
    texts = [f"no operation looks at the exact type of {named}"]
    if session.readers:
        names = " and ".join(
            _name(session.operations, each) for each in session.readers
        )
        texts.append(
            f"{names} changed nothing and broke no law at any state that was reached, "
            f"so at no other, and the order of {named} is not read there"
        )
    texts += [f"the order of {path} is never read" for path in session.unread]
    return tuple(Caveat("assumed", text) for text in texts)


def _explored(session: ExplorationSession, groups: Groups) -> str:
    """Explore each group alone; return why that did not succeed, or ""."""
    for group in groups:
        search, _ = searched(
            session, shared(remaining(session)), SearchPart(frozenset(group), (), LEAST)
        )
        if not search.closed or search.covered < LEAST:
            return "the budget was spent (--steps raises it)"
        if any(search.weak):
            return "a weak reference or a finalizer is reachable"
    return ""


def _difference(
    session: ExplorationSession, again: ExplorationSession, follower: Follower
) -> str:
    """Return why recorded accesses do not show everything, or ""."""
    if not follower.containers:
        return "no attribute of the registry is a dict or a set with one reference"
    if follower.changed_outside:
        return f"{follower.changed_outside} changes, outside of dicts and sets"
    for name in ("seen", "answers", "failures", "refusals"):
        before, after = getattr(session.record, name), getattr(again.record, name)
        if any(before.get(key, value) != value for key, value in after.items()):
            return _DIFFERENT
    if _bounds(again.system) - _bounds(session.system):
        return "more cannot be read while accesses are recorded"
    return ""


def _bounds(system: System) -> set[Caveat]:
    return {each for each in system.caveats() if each.kind != "assumed"}


def _text(operations: Operations, join: Join) -> str:
    """Return which operations share which place."""
    one, other = (_name(operations, each) for each in (join.one, join.other))
    path, key = min(join.places, key=repr)
    place = f"the keys of {path}" if key is EVERY else f"{path}[{key!r}]"
    return f"{one} and {other} share {place}"


def _name(operations: Operations, operation: int) -> str:
    if operation < operations.steps:
        return f"step {operation + 1}"
    if operation < operations.look:
        return f"use {operation - operations.steps + 1}"
    return "the look" if operation == operations.look else "check="


def _disagreement(
    known: ExplorationSession,
    parts: Groups,
    readers: tuple[int, ...],
    left: int,
    session: ExplorationSession,
) -> str:
    """Play operations at random; return a text unless results are those of the parts.

    Results of the parts alone are `known`; so many operations are played.
    """
    operations, player, record = session.operations, session.player, known.record
    masks = _masks(operations, parts)
    answers, seen = dict(record.answers), dict(record.seen)
    failures = dict(record.failures)
    random = Random(f"{operations} {parts}")  # noqa: S311 - reproducible, not secret
    turns = cycle(LEGS)
    while left > 0:
        leg = min(next(turns), left)
        left -= leg
        _begin(session)
        for _ in range(leg):
            possible = filter(player.sensible, range(operations.look + 1))
            operation = random.choice([*possible])
            key = player.mask & masks[operation]
            doing = operation < operations.steps and not key >> operation & 1
            value = _played(session, operation)
            expected: Hashable = value
            if doing:
                expected = failures.get((key, operation))
            elif operation in readers:
                continue
            elif operation == operations.look:
                expected = seen.get(key, value)
            elif operation >= operations.steps:
                use = operation - operations.steps
                expected = answers.get((key, use), value)
            if value != expected:
                return (
                    f"after {len(player.trace):,} operations drawn at random, one has "
                    "another result than in its own part"
                )
        _play_in_two_orders(session, random, readers)
    return ""


def _begin(session: ExplorationSession) -> None:
    """Begin with a fresh system, whose state is read at once."""
    session.player.reset()
    session.player.state()


def _played(session: ExplorationSession, operation: int) -> Hashable:
    """Play one operation, and read the state for its writes."""
    session.meter.count()
    value = session.player.play(operation)
    session.player.state()
    return value


def _play_in_two_orders(
    session: ExplorationSession, random: Random, readers: tuple[int, ...]
) -> None:
    """Play operations that only read after two orders of the same steps.

    The player compares the results.
    """
    operations = session.operations
    if not readers:
        return
    count = random.randint(2, operations.steps)
    chosen = random.sample(range(operations.steps), count)
    for order in (chosen, random.sample(chosen, count)):
        _begin(session)
        for operation in (*operations.history_to(order), *readers):
            _played(session, operation)


def _masks(operations: Operations, parts: Groups) -> dict[int, int]:
    """Return the steps of the part of each operation as a bitmask."""
    masks: dict[int, int] = {}
    for part in parts:
        mask = sum(1 << each for each in part if each < operations.steps)
        masks |= dict.fromkeys(part, mask)
    return masks
