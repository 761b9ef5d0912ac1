"""`parts`: independent groups as a proof, where reads and writes can be followed.

`groups.py` finds groups of steps that write nothing in common and explores each of them
to closure.  What they read does not show there.  Here each group is explored a second
time on a system that records the accesses of each operation to entries of the
registry's dicts and sets (`System.followed`), and operations are joined to *parts* by
the places that one of them writes and another one accesses (`independence.py`).

Theorem T6 (`strategy.py`): if nothing changes but such places, and no place that an
operation writes is accessed by an operation of another part, then the system is the
product of its parts.  By induction over the history, an operation reads the same, and
so does the same, as in the history of its own part alone, which was explored.  So n
independent steps need 2 * n states instead of 2^n.

Checked:
- everything outside of the places is equal in all states that are reached;
- each part was explored as a whole; groups that share places are joined and explored
  again;
- no weak reference and no finalizer is reachable: they show what others hold alive;
- all results are those of the registry without records;
- operations drawn at random over all steps have the results of their parts alone.

Assumed, and reported: no operation looks at the exact type of a container with records.
"""

from collections.abc import Hashable
from random import Random

from everyorder.harness.base.errors import BadScenario, ExplorationRestart
from everyorder.harness.engine.independence import EVERY, Join, parts_of
from everyorder.harness.engine.limits import remaining, shared
from everyorder.harness.engine.player import Broken
from everyorder.harness.engine.proof import searched
from everyorder.harness.engine.protocol import Caveat, Operations, System
from everyorder.harness.engine.session import ExplorationSession, Halt
from everyorder.harness.engine.states import LEAST, LEGS, SearchPart

Groups = tuple[tuple[int, ...], ...]


def joined(session: ExplorationSession, groups: Groups) -> Groups | None:
    """Return the groups, joined where an operation of one accesses what another writes.

    Sets `session.parts` if they stay apart.  None, and a line in `session.skipped`, if
    accesses do not show everything.
    """
    player = session.player
    player.drop()
    pair = session.system.followed()
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
    try:
        reason = _explored(again, groups)
    except (BadScenario, Broken, ExplorationRestart, Halt):
        reason = "its operations do not work, or differ, while accesses are recorded"
    finally:
        again.player.drop()
    if not follower.containers:
        reason = "no attribute of the registry is a dict or a set of its own"
    elif follower.changed_outside:
        reason = (
            f"{follower.changed_outside} changes, which is no entry of a dict or set"
        )
    reason = reason or _difference(session, again)
    if reason:
        session.skipped.append(f"parts: {reason}")
        return None
    operations = session.operations
    parts, joins = parts_of(operations.look + 1, groups, follower.accesses())
    steps = tuple(
        tuple(each for each in part if each < operations.steps) for part in parts
    )
    steps = tuple(each for each in steps if each)
    if len(steps) == 1:
        # Two steps, if there are two that share a place.
        join = min(joins, key=lambda each: each.other >= operations.steps)
        text = _text(operations, join)
        session.skipped.append(f"parts: all steps are one part: {text}")
        return None
    if steps == groups and _agrees(session, parts):
        session.parts = follower.containers
    return steps


def caveats(session: ExplorationSession) -> tuple[Caveat, ...]:
    """Return the assumption of a proof by parts."""
    if not session.parts:
        return ()
    several = len(session.parts) > 3
    named = ", ".join((*session.parts[:2], "...") if several else session.parts)
    text = f"no operation looks at the exact type of {named}"
    return (Caveat("assumed", text),)


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


def _difference(session: ExplorationSession, again: ExplorationSession) -> str:
    """Return how the results with recorded accesses differ from those before, or ""."""
    for name in ("seen", "answers", "failures", "refusals"):
        before, after = getattr(session.record, name), getattr(again.record, name)
        if any(before.get(key, value) != value for key, value in after.items()):
            return "results differ while accesses are recorded"
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
    return "the look"


def _agrees(session: ExplorationSession, parts: Groups) -> bool:
    """Play operations at random; return True if results are those of parts alone."""
    operations, player, record = session.operations, session.player, session.record
    masks = _masks(operations, parts)
    answers, seen = dict(record.answers), dict(record.seen)
    failures = dict(record.failures)
    random = Random(f"{operations} {parts}")  # noqa: S311 - reproducible, not secret
    left = shared(remaining(session)).walked
    while left > 0:
        for leg in LEGS:
            player.reset()
            for _ in range(min(leg, left)):
                left -= 1
                session.meter.count()
                possible = filter(player.sensible, range(operations.look + 1))
                operation = random.choice([*possible])
                key = player.mask & masks[operation]
                doing = operation < operations.steps and not key >> operation & 1
                value = player.play(operation)
                expected: Hashable = value
                if doing:
                    expected = failures.get((key, operation))
                elif operation == operations.look:
                    expected = seen.get(key, value)
                elif operation >= operations.steps:
                    use = operation - operations.steps
                    expected = answers.get((key, use), value)
                if value != expected:
                    session.skipped.append(
                        f"parts: after {len(player.trace):,} operations drawn at "
                        "random, one has another result than in its own part"
                    )
                    return False
    return True


def _masks(operations: Operations, parts: Groups) -> dict[int, int]:
    """Return the steps of the part of each operation as a bitmask."""
    masks: dict[int, int] = {}
    for part in parts:
        mask = sum(1 << each for each in part if each < operations.steps)
        masks |= dict.fromkeys(part, mask)
    return masks
