"""The histories that each strategy plays, and the number of their operations.

A strategy is a size, if no step fails, and a run.  `sca` and `random` are in
`covering_arrays.py`, `groups` in `groups.py`, `graph` in `proof.py`; `strategy.py`
lists all of them with the claims that a report may make.

`histories:k`: every history of at most k operations, each on a fresh system.  There is
no look before the end of a history.  That finds stale caches: a look after every
operation warms all histories equally, and then they agree.  Shorter histories are
first, so the first history that reaches a state is its reference if the cold looks were
not taken, and the first history that fails is a shortest one.

`stale`: short histories that unmask caches.  The largest group of faults in real
registries are stale caches: a use is answered, the registry changes, and the same use
is answered again.  Two steps and one use nearly always suffice, so every use (the look
is one, too) is performed before and after every change, with no step and with each
single other step active; O(n^2 m) histories of at most six operations, at any n.  Each
is played on a fresh system; the last use and the look at the end are observed.

    use, do s, use                     do t, use, do s, use
    do s, use, undo s, use             do t, do s, use, undo s, use
                                       do t, do s, use, undo t, use

A use e that ends steps is a change as well: the histories in which e takes the place of
a step or of its undo are played in addition.

`full`: every order of adding times every order of removing; the oracle.  It is the
exhaustive test of operator registrations of PyTorch's dispatcher tests ("commute"), so
that the other strategies can be measured against it: for each permutation of the steps
and each permutation again, add in the first order and remove in the second, with a look
after every operation, compared by set.  A step that raises ends the adding; the error
is recorded, and the active steps are removed.  All rounds run on one system, one after
the other, without a reset, unless a step could not be removed: then the next round has
a fresh system.  It takes 2n(n!)^2 operations, and it never adds after it removed within
a round.

`arrangements`: every operation after every order of adding.  The states are ordered
arrangements of distinct steps, whatever the key of the system's observations: right for
registries where the order of the active steps may matter ("the newest wins").  It never
plays a longer history than needed.  Breadth-first over arrangements: each is reached by
the first history that leads to it, and every operation is played at the end of that
history on a fresh system.  If steps fail, only reachable arrangements are expanded; an
arrangement that is only reachable by removing a step is reached that way.

`kA:k`: complete up to k hidden operations, for systems that show only observations.  If
every state of the system is reached by a canonical history followed by at most k
operations, and different active sets look different, then a system that passes is
equivalent to "the state is the active set": the suite is the canonical histories, times
all histories of at most k + 1 operations, times the separating looks (here one look, at
the end).  This is k-A-completeness (Vaandrager and Melse, "New fault domains for
conformance testing of finite state machines", CONCUR 2025), with the lattice of sets as
the specification.  States that look alike are not distinguished, and the exploration
reports how many there are.

`walk:s`: one run without a reset that takes every operation after s others.  The
digraph whose nodes are (active set, last s operations) and whose transitions are the
operations, toggles and uses alike, has an Eulerian circuit, and `SuiteWalk` follows one
while the system runs, with one byte per node and no list of transitions.
"""

from collections import deque
from collections.abc import Iterator
from itertools import permutations, product
from math import factorial

from everyorder.harness.base.errors import BadStrategy
from everyorder.harness.engine.protocol import (
    EVERY_ORDER,
    UNORDERED,
    History,
    Key,
    Operations,
    state_of,
)
from everyorder.harness.engine.reference import map_states
from everyorder.harness.engine.session import ExplorationSession, Incomplete


def histories_size(steps: int, uses: int, longest: int) -> int:
    """Return the operations of all histories."""
    operations = steps + uses
    return sum(length * operations**length for length in range(1, longest + 1))


def run_histories(session: ExplorationSession, longest: int) -> None:
    """Play all histories of at most `longest` operations."""
    operations = range(session.operations.actions)
    for length in range(longest + 1):
        for history in product(operations, repeat=length):
            session.play_history(history)


# Operations of all histories of two operations of a large scenario: 100 operations.
MOST_SHALLOW = 20_000


def run_shallow(session: ExplorationSession) -> None:
    """Play all histories of at most two operations, outside of the plan.

    In a scenario with very many operations only those of one.
    """
    actions = session.operations.actions
    longest = 2 if 2 * actions**2 <= MOST_SHALLOW else 1
    if longest == 1:
        session.skipped.append(
            f"histories of two operations on fresh systems: {actions**2:,} of them are "
            "too many to begin with (--strategy histories:2 plays them)"
        )
    for length in range(longest + 1):
        for history in product(range(actions), repeat=length):
            session.meter.check_time()
            session.check_history(history)


def stale_size(steps: int, uses: int) -> int:
    """Return the operations of all histories."""
    single, pair = 3 + 4, 4 + 5 + 5
    return (uses + 1) * steps * (single + pair * (steps - 1))


def stale_histories(operations: Operations) -> Iterator[History]:
    """Yield the histories of `stale`, the shortest shapes first for each use."""
    steps = range(operations.steps)
    ending = operations.changes[operations.steps :]
    for use in (*range(operations.steps, operations.actions), operations.look):
        for step in steps:
            yield use, step, use
            yield step, use, step, use
            for end in ending:
                yield step, use, end, use
        for other in steps:
            for step in steps:
                if step != other:
                    yield other, use, step, use
                    yield other, step, use, step, use
                    yield other, step, use, other, use
                    for end in ending:
                        yield other, step, use, end, use


def run_stale(session: ExplorationSession) -> None:
    """Play all of `stale_histories`."""
    for history in stale_histories(session.operations):
        session.play_history(history)


def full_size(steps: int) -> int:
    """Return the operations of the run when no step fails."""
    return 2 * steps * factorial(steps) ** 2


def run_full(session: ExplorationSession) -> None:
    """Play every round."""
    player, transition = session.player, session.transition
    player.reset()
    player.look()
    steps = range(session.operations.steps)
    # Never all at once: there are 479,001,600 orders of twelve steps.
    for adding in permutations(steps):
        for removing in permutations(steps):
            if player.mask:
                player.reset()
                player.look()
            for step in adding:
                transition(step)
                if not player.mask >> step & 1:
                    break
            for step in removing:
                if player.mask >> step & 1:
                    transition(step)


def arrangements_size(steps: int, uses: int) -> int:
    """Return the operations of all histories when no step fails.

    That is the sum of (arrangement length + 1) * A over all arrangements.
    """
    total, many = 0, 1
    for length in range(steps + 1):
        total += many * (length + 1)
        many *= steps - length
    return total * (steps + uses)


def run_arrangements(session: ExplorationSession) -> None:
    """Play every operation from every arrangement with a distinct key."""
    player = session.player
    session.play_history(())
    queue: list[tuple[Key, History]] = [((), ())]
    reached: set[Key] = {()}
    for arrangement, history in queue:
        mask = UNORDERED.key(state_of(arrangement))
        for operation in range(session.operations.actions):
            session.play_history((*history, operation))
            if player.mask == mask:
                continue
            target = session.operations.after(arrangement, operation, EVERY_ORDER)
            if target not in reached:
                reached.add(target)
                queue.append((target, (*history, operation)))
    session.reached = True


def depth_size(steps: int, uses: int, hidden: int) -> int:
    """Return the operations of the suite when no step fails.

    Canonical histories are n/2 operations long on average.
    """
    operations = steps + uses
    doubled = sum(
        int(operations**length) * (steps + 2 * length)
        for length in range(1, hidden + 2)
    )
    return (doubled << steps) // 2


def depth_measured(session: ExplorationSession, hidden: int) -> int:
    """Return the operations of the suite, once the canonical histories are known."""
    operations = session.operations.actions
    return sum(
        int(operations**length) * (len(history) + length)
        for history in session.record.canonical.values()
        for length in range(1, hidden + 2)
    )


def run_depth(session: ExplorationSession, hidden: int) -> None:
    """Play the suite for `hidden` operations."""
    map_states(session)
    operations = range(session.operations.actions)
    for history in tuple(session.record.canonical.values()):
        for length in range(1, hidden + 2):
            for suffix in product(operations, repeat=length):
                session.play_history(history + suffix)
    states, looks = len(session.record.seen), len(set(session.record.seen.values()))
    if looks < states:
        session.skipped.append(
            f"kA:{hidden}: {states} states show {looks} observations; states that "
            "look alike are not distinguished"
        )


# One byte per node; past this the walk itself would take weeks.
MOST_NODES = 1 << 30

# Successive ways that led elsewhere, before the walk ends as stuck.
MOST_FUTILE = 64


def walk_size(steps: int, uses: int, depth: int) -> int:
    """Operations of the circuit when no step fails."""
    operations = steps + uses
    return int(operations ** (depth + 1)) << steps


class SuiteWalk:
    """The state of one walk: its place, the spent transitions, the failing steps.

    Why a circuit exists.  If every step succeeds, each operation permutes the sets, so
    a node (S, h) has as many transitions in (one for each operation that the history
    dropped) as out (one for each operation), and everything is strongly connected.  A
    step that fails is a self-loop on its set; while a downward-closed family of sets
    decides the failures, each operation still permutes the reachable sets.  The circuit
    has |sets| * A^(s+1) transitions for A operations.

    How the circuit is found without looking ahead.  In the BEST theorem (van
    Aardenne-Ehrenfest and de Bruijn 1951; circuits of de Bruijn graphs: de Bruijn 1946,
    Good 1946; splicing, which needs a stored walk: Hierholzer 1873) a walk that leaves
    each node by its transitions in any order, but last by the transition of a spanning
    tree that points to the root, can stick only at the root, with every transition
    used.  Our tree in closed form: in a set with a member other than step 0 remove its
    highest; else toggle step 0.  Removing shrinks the set, so after at most n removals
    only step 0 is left to be toggled, and after s more operations the last s are 0^s:
    the tree's root is the node that s toggles of step 0 from a fresh system lead to,
    which is also the lead-in that makes the first history a real one.  Operation 0 may
    fail; then it is a loop, and the same holds.

    If failures have another shape (a step that must be added after another, which may
    then be removed), or operations end steps, the digraph need not be balanced.  Then
    the walk sticks early and follows a shortest known path to the nearest node with an
    unspent transition: every transition is still executed, some more than once.
    """

    def __init__(self, session: ExplorationSession, depth: int) -> None:
        self._session = session
        self._operations = session.operations.actions
        self._steps = session.operations.steps
        self._width = 1 << self._steps
        self._changes = frozenset(session.operations.changes)
        self._span = self._operations ** (depth - 1) if depth else 0
        nodes = self._operations**depth * self._width
        if nodes > MOST_NODES:
            raise BadStrategy(
                code="TooLarge",
                what=f"walk:{depth}'s nodes",
                size=nodes,
                limit=MOST_NODES,
            )
        self._spent = bytearray(nodes)
        self._recent = 0
        self._depth = depth
        self._blocked: dict[int, int] = {}
        self._open = 0

    def run(self, *, resume: bool = False) -> None:
        """Start from a fresh system, lead in, and take every transition once.

        With `resume` the system continues from its current state, after all steps were
        done and undone in falling order, so that all later operations have another
        history.

        Raises:
            Incomplete: the walk cannot reach its unspent transitions.
        """
        session = self._session
        if resume:
            for _ in range(2):
                for step in reversed(range(self._steps)):
                    session.play_setup(step)
            session.player.clear()
        else:
            session.player.reset()
        session.player.look()
        if not self._operations:
            return
        for _ in range(self._depth):
            session.play_setup(0)
        self._follow()
        futile = 0
        while self._open:
            left = self._open
            for operation in self._path_to_open():
                before = session.player.mask
                session.play_setup(operation)
                self._moved(operation, before)
            self._follow()
            futile = futile + 1 if self._open == left else 0
            if futile > MOST_FUTILE:
                raise self._stuck()
        session.reached = True

    def _follow(self) -> None:
        """Take unspent transitions until the current node has none."""
        transition = self._session.transition
        player = self._session.player
        spent, operations, span = self._spent, self._operations, self._span
        width, last, recent = self._width, self._operations - 1, self._recent
        mask, remaining = player.mask, self._open
        changes = self._changes
        while True:
            node = recent * width + mask
            count = spent[node]
            if not count:
                remaining += operations
            # The tree's transition: highest member other than step 0, else step 0.
            final = (mask >> 1).bit_length()
            if count < last:
                operation = count if count < final else count + 1
            elif count == last:
                operation = final
            else:
                break
            spent[node] = count + 1
            remaining -= 1
            self._open, self._recent = remaining, recent
            transition(operation)
            if player.mask == mask and operation in changes:
                self._blocked[mask] = self._blocked.get(mask, 0) | 1 << operation
            mask = player.mask
            if span:
                recent = (recent % span) * operations + operation
        self._open, self._recent = remaining, recent

    def _moved(self, operation: int, before: int) -> None:
        mask = self._session.player.mask
        if mask == before and operation in self._changes:
            self._blocked[mask] = self._blocked.get(mask, 0) | 1 << operation
        if self._span:
            self._recent = (self._recent % self._span) * self._operations + operation

    def _path_to_open(self) -> list[int]:
        """Return a shortest known path to a node with an unspent transition."""
        start = (self._recent, self._session.player.mask)
        came: dict[tuple[int, int], tuple[tuple[int, int], int]] = {}
        queue = deque([start])
        while queue:
            node = queue.popleft()
            recent, mask = node
            count = self._spent[recent * self._width + mask]
            if node != start and 0 < count < self._operations:
                return self._back(node, start, came)
            for operation in range(self._operations):
                target = self._target(recent, mask, operation)
                if target != start and target not in came:
                    came[target] = (node, operation)
                    queue.append(target)
        raise self._stuck()

    def _stuck(self) -> Incomplete:
        """Return the error for a walk that knows no path to its unspent transitions."""
        why = "steps fail by history"
        if not self._session.operations.reversible:
            why = "some steps cannot be undone"
        return Incomplete(
            f"walk:{self._depth} cannot reach {self._open} transitions, because {why}"
        )

    def _target(self, recent: int, mask: int, operation: int) -> tuple[int, int]:
        if not self._blocked.get(mask, 0) >> operation & 1:
            after = self._session.operations.after(mask, operation, UNORDERED)
            assert isinstance(after, int), "no order counts in it"
            mask = after
        if self._span:
            recent = (recent % self._span) * self._operations + operation
        return recent, mask

    @staticmethod
    def _back(
        node: tuple[int, int],
        start: tuple[int, int],
        came: dict[tuple[int, int], tuple[tuple[int, int], int]],
    ) -> list[int]:
        way: list[int] = []
        while node != start:
            node, operation = came[node]
            way.append(operation)
        way.reverse()
        return way


def run_walk(session: ExplorationSession, depth: int, *, resume: bool = False) -> None:
    """Run `walk:depth` on the session; see `SuiteWalk.run`."""
    SuiteWalk(session, depth).run(resume=resume)
