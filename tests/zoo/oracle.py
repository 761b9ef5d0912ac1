"""The truth about a model, by brute force: every history, states merged where equal.

An operation is a number, as everywhere: `0 .. n-1` toggle a step, `n .. n+m-1` perform
a use, `n+m` looks, `n+m+1` collects garbage.  A history is a sequence of operations on
a fresh registry; a look after its last operation is implied and not counted.

What is decided, exactly.  In a history every operation but a collection gives an
*event*: the operation, the active steps before it, and its answer (of a step, that it
was done or the error).  The implied look gives one, too.

- Two histories *conflict* if they have events of the same operation and the same
  active steps with different answers.
- A history *violates* if it conflicts with a history that is not longer (one whose
  own events differ conflicts with itself), or if an undo raises in it; nothing can
  follow an undo that raised.
- A model is *faulty* if a history violates, *correct* if none does.  `length` is the
  least number of operations of a history that violates.

The law "answers depend on the active steps alone" holds if and only if no history
violates: of two that conflict, the longer one does.

The search is breadth first over states (active steps and all that the model holds), so
each event is first met at the end of a shortest history that has it.  It ends when no
new state is found (`closed`), or at `limit` states; a fault found until then is one,
with its true length, and no fault found means nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tests.zoo.model import DONE, Answer, Model, State

History: TypeAlias = tuple[int, ...]
Key: TypeAlias = tuple[tuple[int, ...], int]

# No finite model of the zoo has more states; the infinite ones are given up here.
LIMIT = 20_000


@dataclass(frozen=True)
class Truth:
    """What is known of a model.

    `history` is one shortest history that violates, and `length` its length; both are
    None if none was found.  `events` are the answers by active steps and operation.
    """

    verdict: Literal["correct", "faulty", "undecided"]
    closed: bool
    states: int
    length: int | None
    history: History | None
    events: dict[Key, frozenset[Answer]]


def operations(model: Model) -> tuple[int, ...]:
    """All operations of a model; collecting is one where it can change anything."""
    last = model.steps + model.uses + 1
    return tuple(range(last + 1 if model.collects else last))


def play(model: Model, state: State, operation: int) -> tuple[State, Answer | None]:
    """One operation: the state after it and its answer, None for a collection."""
    steps, look = model.steps, model.steps + model.uses
    if operation < steps:
        active = operation in state[0]
        return (model.undo if active else model.do)(state, operation)
    if operation < look:
        return model.use(state, operation - steps)
    if operation == look:
        return model.look(state)
    return model.collect(state), None


def ends(model: Model, state: State, operation: int, answer: Answer | None) -> bool:
    """Whether this was an undo that raised."""
    return operation < model.steps and operation in state[0] and answer != DONE


def truth(
    model: Model, chosen: Iterable[int] | None = None, limit: int = LIMIT
) -> Truth:
    """The truth about a model, over some of its operations or over all."""
    return _Search(model, tuple(chosen or operations(model)), limit).run()


class _Search:
    """One breadth-first search."""

    def __init__(self, model: Model, chosen: tuple[int, ...], limit: int) -> None:
        self.model = model
        self.chosen = chosen
        self.limit = limit
        start = model.fresh()
        self.parents: dict[State, tuple[State, int] | None] = {start: None}
        self.layer = [start]
        self.events: dict[Key, set[Answer]] = {}
        self.history: History | None = None

    def run(self) -> Truth:
        depth = 0
        while self.layer and len(self.parents) < self.limit:
            # Events of the implied look belong to this length, all others to the next.
            for state in self.layer:
                self.look(state)
            self.layer = list(self.next_layer())
            depth += 1
        closed = not self.layer
        found = self.history
        verdict: Literal["correct", "faulty", "undecided"] = (
            "faulty" if found is not None else "correct" if closed else "undecided"
        )
        return Truth(
            verdict=verdict,
            closed=closed,
            states=len(self.parents),
            length=None if found is None else len(found),
            history=found,
            events={key: frozenset(seen) for key, seen in self.events.items()},
        )

    def next_layer(self) -> Iterator[State]:
        for state in self.layer:
            for operation in self.chosen:
                after, answer = play(self.model, state, operation)
                if answer is not None:
                    self.record(state, operation, answer, (operation,))
                if ends(self.model, state, operation, answer):
                    self.violated(state, (operation,))
                elif after not in self.parents:
                    self.parents[after] = (state, operation)
                    yield after

    def look(self, state: State) -> None:
        answer = self.model.look(state).answer
        self.record(state, self.model.steps + self.model.uses, answer, ())

    def record(
        self, state: State, operation: int, answer: Answer, last: History
    ) -> None:
        """An event; the second answer to one question violates, at this length."""
        seen = self.events.setdefault((state[0], operation), set())
        if seen and answer not in seen:
            self.violated(state, last)
        seen.add(answer)

    def violated(self, state: State, last: History) -> None:
        history = (*self.history_to(state), *last)
        if self.history is None or len(history) < len(self.history):
            self.history = history

    def history_to(self, state: State) -> History:
        found: list[int] = []
        step = self.parents[state]
        while step is not None:
            state, operation = step
            found.append(operation)
            step = self.parents[state]
        return tuple(reversed(found))
