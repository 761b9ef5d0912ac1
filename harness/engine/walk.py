"""`walk:s`: one run without a reset that takes every letter after every history.

True only here: the digraph whose nodes are (active set, last s letters) and whose edges
are the letters, toggles and uses alike, has an Eulerian circuit, and this file follows
one while the system runs, with one byte per node and no list of edges.

Why there is a circuit.  With every step succeeding, each letter permutes the sets, so a
node (S, h) has as many edges in (one for each letter that the history dropped) as out
(one for each letter), and everything is strongly connected.  A step that fails is a
self-loop on its set; while failing is decided by a downward-closed family of sets each
letter still permutes the sets that are reachable.  The circuit has |sets| * A^(s+1)
edges for an alphabet of A letters.

How the circuit is found without looking ahead.  In the BEST theorem (van
Aardenne-Ehrenfest and de Bruijn 1951; circuits of de Bruijn graphs: de Bruijn 1946,
Good 1946; splicing, which needs a stored walk: Hierholzer 1873) a walk that leaves each
node by its edges in any order, but last by the edge of a spanning tree that points to
the root, can stick only at the root, with every edge used.  Our tree in closed form: in
a set with a member other than step 0 remove its highest; else toggle step 0.  Removing
shrinks the set, so after at most n removals only step 0 is left to be toggled, and
after s more letters the history is 0^s: the tree's root is the node that s toggles of
step 0 from a fresh system lead to, which is also the lead-in that makes the first
history a real one.  Letter 0 may fail; then it is a loop, and the same holds.

Where failing is of another shape (a step that must be added after another, which may
then be removed) the digraph need not be balanced.  Then the walk sticks early and goes
by a shortest known way to the nearest node with an edge left: every edge is still
executed, some more than once.
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
    """Letters of the circuit when no step fails."""
    letters = steps + uses
    return int(letters ** (depth + 1)) << steps


class Walk:
    """The state of one walk: where it is, what is spent, what is known to fail."""

    def __init__(self, session: Session, depth: int) -> None:
        self._session = session
        self._letters = session.alphabet.actions
        self._steps = session.alphabet.steps
        self._width = 1 << self._steps
        self._span = self._letters ** (depth - 1) if depth else 0
        nodes = self._letters**depth * self._width
        if nodes > MOST_NODES:
            raise TooLarge(what=f"walk:{depth}'s nodes", size=nodes, limit=MOST_NODES)
        self._spent = bytearray(nodes)
        self._history = 0
        self._depth = depth
        self._blocked: dict[int, int] = {}
        self._open = 0

    def run(self) -> None:
        """Start from a fresh system, lead in, and take every edge once."""
        session = self._session
        session.runner.reset()
        session.runner.look()
        if not self._letters:
            return
        for _ in range(self._depth):
            session.lead(0)
        self._follow()
        futile = 0
        while self._open:
            left = self._open
            for letter in self._way():
                before = session.runner.mask
                session.lead(letter)
                self._moved(letter, before)
            self._follow()
            futile = futile + 1 if self._open == left else 0
            if futile > MOST_FUTILE:
                raise self._lost()
        session.reached = True

    def _follow(self) -> None:
        """Take unspent edges until the node at hand has none."""
        edge = self._session.edge
        runner = self._session.runner
        spent, letters, span = self._spent, self._letters, self._span
        width, last, history = self._width, self._letters - 1, self._history
        mask, remaining = runner.mask, self._open
        steps = self._steps
        while True:
            node = history * width + mask
            count = spent[node]
            if not count:
                remaining += letters
            # The tree's edge: highest member other than step 0, else step 0.
            final = (mask >> 1).bit_length()
            if count < last:
                letter = count if count < final else count + 1
            elif count == last:
                letter = final
            else:
                break
            spent[node] = count + 1
            remaining -= 1
            self._open, self._history = remaining, history
            edge(letter)
            if runner.mask == mask and letter < steps:
                self._blocked[mask] = self._blocked.get(mask, 0) | 1 << letter
            mask = runner.mask
            if span:
                history = (history % span) * letters + letter
        self._open, self._history = remaining, history

    def _moved(self, letter: int, before: int) -> None:
        mask = self._session.runner.mask
        if mask == before and letter < self._steps:
            self._blocked[mask] = self._blocked.get(mask, 0) | 1 << letter
        if self._span:
            self._history = (self._history % self._span) * self._letters + letter

    def _way(self) -> list[int]:
        """Letters of a shortest known way to a node with an unspent edge."""
        start = (self._history, self._session.runner.mask)
        came: dict[tuple[int, int], tuple[tuple[int, int], int]] = {}
        queue = deque([start])
        while queue:
            node = queue.popleft()
            history, mask = node
            count = self._spent[history * self._width + mask]
            if node != start and 0 < count < self._letters:
                return self._back(node, start, came)
            for letter in range(self._letters):
                target = self._target(history, mask, letter)
                if target != start and target not in came:
                    came[target] = (node, letter)
                    queue.append(target)
        raise self._lost()

    def _lost(self) -> Spent:
        """Where failing depends on more than the active set, ways cannot be known."""
        return Spent(
            f"walk:{self._depth} cannot come back to {self._open} edges, because "
            "steps fail by history"
        )

    def _target(self, history: int, mask: int, letter: int) -> tuple[int, int]:
        if letter < self._steps and not self._blocked.get(mask, 0) >> letter & 1:
            mask ^= 1 << letter
        if self._span:
            history = (history % self._span) * self._letters + letter
        return history, mask

    @staticmethod
    def _back(
        node: tuple[int, int],
        start: tuple[int, int],
        came: dict[tuple[int, int], tuple[tuple[int, int], int]],
    ) -> list[int]:
        way: list[int] = []
        while node != start:
            node, letter = came[node]
            way.append(letter)
        way.reverse()
        return way


def run(session: Session, depth: int) -> None:
    """Run `walk:depth` on the session."""
    Walk(session, depth).run()
