"""`walk:s`: one run without a reset that takes every operation after s others.

True only here: the digraph whose nodes are (active set, last s operations) and whose
transitions are the operations, toggles and uses alike, has an Eulerian circuit, and
this file follows one while the system runs, with one byte per node and no list of
transitions.

Why there is a circuit.  With every step succeeding, each operation permutes the sets,
so a node (S, h) has as many transitions in (one for each operation that the history
dropped) as out (one for each operation), and everything is strongly connected.  A step
that fails is a self-loop on its set; while failing is decided by a downward-closed
family of sets each operation still permutes the sets that are reachable.  The circuit
has |sets| * A^(s+1) transitions for A operations.

How the circuit is found without looking ahead.  In the BEST theorem (van
Aardenne-Ehrenfest and de Bruijn 1951; circuits of de Bruijn graphs: de Bruijn 1946,
Good 1946; splicing, which needs a stored walk: Hierholzer 1873) a walk that leaves each
node by its transitions in any order, but last by the transition of a spanning tree that
points to the root, can stick only at the root, with every transition used.  Our tree in
closed form: in a set with a member other than step 0 remove its highest; else toggle
step 0.  Removing shrinks the set, so after at most n removals only step 0 is left to be
toggled, and after s more operations the last s are 0^s: the tree's root is the node
that s toggles of step 0 from a fresh system lead to, which is also the lead-in that
makes the first history a real one.  Operation 0 may fail; then it is a loop, and the
same holds.

Where failing is of another shape (a step that must be added after another, which may
then be removed) the digraph need not be balanced.  Then the walk sticks early and goes
by a shortest known way to the nearest node with a transition left: every transition is
still executed, some more than once.
"""

from collections import deque

from harness.engine.budget import Spent
from harness.engine.session import Session
from harness.errors import TooLarge

# One byte per node; past this the walk itself would take weeks.
MOST_NODES = 1 << 30

# Ways that led elsewhere, one after the other, before the walk calls itself lost.
MOST_FUTILE = 64


def size(steps: int, uses: int, depth: int) -> int:
    """Operations of the circuit when no step fails."""
    operations = steps + uses
    return int(operations ** (depth + 1)) << steps


class Walk:
    """The state of one walk: where it is, what is spent, what is known to fail."""

    def __init__(self, session: Session, depth: int) -> None:
        self._session = session
        self._operations = session.operations.actions
        self._steps = session.operations.steps
        self._width = 1 << self._steps
        self._span = self._operations ** (depth - 1) if depth else 0
        nodes = self._operations**depth * self._width
        if nodes > MOST_NODES:
            raise TooLarge(what=f"walk:{depth}'s nodes", size=nodes, limit=MOST_NODES)
        self._spent = bytearray(nodes)
        self._recent = 0
        self._depth = depth
        self._blocked: dict[int, int] = {}
        self._open = 0

    def run(self, *, again: bool = False) -> None:
        """Start from a fresh system, lead in, and take every transition once.

        With `again` the system goes on from where it stands, after all steps were done
        and undone in falling order: all that follows is of another history.
        """
        session = self._session
        if again:
            for _ in range(2):
                for step in reversed(range(self._steps)):
                    session.lead(step)
            session.runner.clear()
        else:
            session.runner.reset()
        session.runner.look()
        if not self._operations:
            return
        for _ in range(self._depth):
            session.lead(0)
        self._follow()
        futile = 0
        while self._open:
            left = self._open
            for operation in self._way():
                before = session.runner.mask
                session.lead(operation)
                self._moved(operation, before)
            self._follow()
            futile = futile + 1 if self._open == left else 0
            if futile > MOST_FUTILE:
                raise self._lost()
        session.reached = True

    def _follow(self) -> None:
        """Take unspent transitions until the node at hand has none."""
        transition = self._session.transition
        runner = self._session.runner
        spent, operations, span = self._spent, self._operations, self._span
        width, last, recent = self._width, self._operations - 1, self._recent
        mask, remaining = runner.mask, self._open
        steps = self._steps
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
            if runner.mask == mask and operation < steps:
                self._blocked[mask] = self._blocked.get(mask, 0) | 1 << operation
            mask = runner.mask
            if span:
                recent = (recent % span) * operations + operation
        self._open, self._recent = remaining, recent

    def _moved(self, operation: int, before: int) -> None:
        mask = self._session.runner.mask
        if mask == before and operation < self._steps:
            self._blocked[mask] = self._blocked.get(mask, 0) | 1 << operation
        if self._span:
            self._recent = (self._recent % self._span) * self._operations + operation

    def _way(self) -> list[int]:
        """Operations of a shortest known way to a node with an unspent transition."""
        start = (self._recent, self._session.runner.mask)
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
        raise self._lost()

    def _lost(self) -> Spent:
        """Where failing depends on more than the active steps, ways cannot be known."""
        why = "steps fail by history"
        if not self._session.operations.reversible:
            why = "some steps cannot be undone"
        return Spent(
            f"walk:{self._depth} cannot come back to {self._open} transitions, because "
            f"{why}"
        )

    def _target(self, recent: int, mask: int, operation: int) -> tuple[int, int]:
        if operation < self._steps and not self._blocked.get(mask, 0) >> operation & 1:
            mask ^= 1 << operation
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


def run(session: Session, depth: int, *, again: bool = False) -> None:
    """Run `walk:depth` on the session; see `Walk.run`."""
    Walk(session, depth).run(again=again)
