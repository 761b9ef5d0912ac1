"""The oracle is right: on machines made by hand, and against every history in full."""

from itertools import product
from random import Random

import pytest

from tests.zoo.behaviours import (
    Again,
    Behaviour,
    CellModel,
    Mirror,
    Partial,
    Pattern,
    Shows,
    Stale,
    Wedge,
)
from tests.zoo.drawing import SORTS, VolatileModel, draw_model
from tests.zoo.grown_failures import Counter
from tests.zoo.grown_handles import Index
from tests.zoo.model import Model
from tests.zoo.oracle import ends, operations, play, truth

A, B, LOOK2 = 0, 1, 2


def cell(
    behaviour: Behaviour,
    steps: int = 2,
    targets: tuple[int, ...] = (),
    shows: Shows = "look",
) -> CellModel:
    return CellModel(behaviour, steps, targets, shows)


# Model, verdict, length of a shortest history, one such history.
CASES = {
    "sound": (cell(Mirror((1, 2), 3)), "correct", None, None),
    "not shown": (cell(Again(A, 2), shows="nowhere"), "correct", None, None),
    "the second time": (cell(Again(A, 2)), "faulty", 3, (A, A, A)),
    "the fourth time": (cell(Again(A, 4)), "faulty", 7, (A,) * 7),
    "forgotten when undone": (cell(Again(A, 2, True)), "correct", None, None),
    "last change was +b": (
        cell(Pattern(((B, True),), sticks=False)),
        "faulty",
        2,
        # Beside +a: {a b} made in two orders.
        None,
    ),
    "+a +b -b sticks": (
        cell(Pattern(((A, True), (B, True), (B, False)), sticks=True)),
        "faulty",
        3,
        (A, B, B),
    ),
    "the same, shown without a only": (
        cell(Pattern(((A, True), (B, True), (B, False)), sticks=True, unless=A)),
        "faulty",
        4,
        (A, B, B, A),
    ),
    "never forgotten": (
        cell(Stale((A,), frozenset()), targets=(A,)),
        "faulty",
        3,
        # +a, use; use, +a, use.
        (2, A, 2),
    ),
    "not forgotten when undone": (
        cell(Stale((A,), frozenset({(A, True)})), targets=(A,)),
        "faulty",
        4,
        (A, 2, A, 2),
    ),
    "always forgotten": (
        cell(Stale((A,), frozenset({(A, True), (A, False)})), targets=(A,)),
        "correct",
        None,
        None,
    ),
    "refused for ever": (
        cell(Wedge(A, B, blocks=True, heals=False)),
        "faulty",
        4,
        # +b, +a refused, -b, +a refused without reason.
        (B, A, B, A),
    ),
    "seen at once": (
        cell(Wedge(A, B, blocks=False, heals=False)),
        "faulty",
        2,
        (B, A),
    ),
    "left when undone": (cell(Partial(A, B, mends=False)), "faulty", 3, None),
    "an undo raises": (Index(2, 0), "faulty", 4, (A, B, A, B)),
    "a number, harmful": (Counter(2, 0, 3, None), "faulty", 4, None),
}


@pytest.mark.parametrize("name", CASES)
def test_on_machines_made_by_hand(name: str) -> None:
    model, verdict, length, history = CASES[name]
    found = truth(model)
    assert (found.verdict, found.length) == (verdict, length)
    assert history is None or found.history == history


def test_a_machine_without_end_is_not_closed() -> None:
    found = truth(Counter(2, 0, None, None), limit=500)
    assert (found.verdict, found.closed, found.length) == ("undecided", False, None)


def test_of_some_operations_only() -> None:
    """Without the use nothing is stale, and without b nothing is refused."""
    stale = cell(Stale((A,), frozenset()), targets=(A,))
    assert truth(stale, (A, B, 3)).verdict == "correct"
    wedge = cell(Wedge(A, B, blocks=True, heals=False))
    assert truth(wedge, (A, LOOK2)).verdict == "correct"


def naive(model: Model, longest: int) -> int | None:
    """The length of a shortest violating history, by the definition itself.

    Every history of at most so many operations is played from its beginning.
    """
    first: dict[object, int] = {}
    kinds: dict[object, set[object]] = {}
    look = model.steps + model.uses
    for length in range(longest + 1):
        for history in product(operations(model), repeat=length):
            state, raised = model.fresh(), False
            for operation in (*history, look):
                if raised:
                    break
                before = state
                state, answer = play(model, state, operation)
                raised = ends(model, before, operation, answer)
                if answer is not None:
                    key = before[0], operation
                    first.setdefault((key, answer), length)
                    kinds.setdefault(key, set()).add(answer)
                if raised:
                    return length
        if any(len(answers) > 1 for answers in kinds.values()):
            return length
    return None


@pytest.mark.parametrize("seed", range(40))
def test_against_every_history(seed: int) -> None:
    random = Random(seed)
    model = draw_model(
        random, SORTS[seed % len(SORTS)], faulty=seed % 4 != 0, volatile=seed % 5 == 0
    )
    longest = 4 if model.steps + model.uses > 3 else 5
    found = truth(model).length
    assert naive(model, longest) == (found if found and found <= longest else None)


def test_an_undo_that_raises_ends_a_history() -> None:
    assert naive(Index(3, 1), 4) == truth(Index(3, 1)).length == 4


def test_collecting_is_an_operation_where_it_counts() -> None:
    volatile = VolatileModel(Mirror((1, 1), 2), 2, (), "look")
    assert operations(volatile) == (0, 1, 2, 3)
    # Collected beside a the number is 0, and it was 1.
    assert truth(volatile).length == 2
    assert truth(volatile, (0, 1, 2)).verdict == "correct"
