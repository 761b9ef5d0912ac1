"""Whatever comes at any place, no gradient is wrong in silence, and no thread changed.

Of each operation some places are tried in `make test`, all in `make test-long`; seeds
are printed.
"""

import os
import random
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.autograd import engine, function, grad_mode, inplace
from everyorder.runtime.keys import LOCAL, preserve_keys
from everyorder.runtime.tensors.keys import INFERRING, STATE, inference
from everyorder.runtime.torch_dispatch import TorchDispatchMode
from everyorder.runtime.torch_dispatch import modes as dispatch_modes
from tests.injection import tensors
from tests.injection.interrupting import (
    ROUNDS,
    Round,
    at_depths,
    at_places,
    counted,
    interrupted,
)
from tests.injection.telling import Record, Told, nobody, tell
from tests.injection.tensors import (
    HANDLED,
    OPERATIONS,
    Graph,
    Operation,
    Seen,
    Thread,
    Wrapped,
    called,
    customs,
    owned,
    seen,
    wrong,
)

# What is interrupted: the areas above the dispatcher, and what they compile from text.
FOLDERS = (
    *(
        str(Path(runtime.__file__).parent / area) + os.sep
        for area in ("autograd", "custom", "keys", "torch_dispatch")
    ),
    "<autograd",
    "<custom",
    "<handling",
    "<snapshot",
)
# The module, not the function of its name.
BACKWARD = sys.modules["everyorder.runtime.autograd.engine"]
# So many places of an operation are tried in the short leg.
SAMPLED = 25
# Calls until the operators of an operation are called by their call stubs.
CALLS = 12
Wrap = Callable[[runtime.Tensor], Any]


def plain(elem: runtime.Tensor) -> Any:
    """The tensor as it is."""
    return elem


VIEW, STACK = LOCAL.view, STATE.stack


def restore() -> None:
    """Let the thread be as one that starts, whatever was left in it."""
    grad_mode.GRAD.enabled = grad_mode.GRAD.follows = True
    inference.active, LOCAL.view, STATE.stack = False, VIEW, STACK


@pytest.fixture(autouse=True)
def apart() -> Iterator[None]:
    """What one test leaves behind in its thread, the next one does not see."""
    with preserve_keys():
        yield
    restore()


def outcomes(act: Operation, wrap: Wrap) -> tuple[Seen, Seen]:
    """What is seen before, and after, where nothing comes; caches are warm by then."""
    for _ in range(CALLS):
        before = seen(Graph(wrap))
        graph = Graph(wrap)
        act(graph)
        after = seen(graph)
    return before, after


def tried(
    act: Operation, wrap: Wrap, way: Round, points: list[int] | range
) -> tuple[int, list[str]]:
    """How often an operation was interrupted, and what was wrong after it."""
    before, after = outcomes(act, wrap)
    came, failed = 0, []
    for at in points:
        graph, thread = Graph(wrap), Thread()
        where = way(partial(act, graph), FOLDERS, at)
        if where is None:
            break
        came += 1
        told = wrong(graph, thread, before, after)
        if told is not None:
            failed.append(f"{where}: {told}")
            restore()
    if seen(Graph(wrap)) != before:
        failed.append("the next graph is another one")
    return came, failed


CASES = [
    *((name, False) for name in OPERATIONS),
    *((name, True) for name in HANDLED),
]


def played(
    act: Operation, wrap: Wrap, name: str, everything: bool, record: Record = nobody
) -> None:
    """Try places of an operation, and all depths."""
    outcomes(act, wrap)
    count = counted(partial(act, Graph(wrap)), FOLDERS)
    assert count > 2, "nothing can be interrupted"
    points: list[int] | range = range(1, count + 1)
    seed = random.SystemRandom().getrandbits(32)
    if not everything:
        chosen = random.Random(seed).sample(points, min(SAMPLED, count))
        points = sorted(chosen)
    came, failed = tried(act, wrap, at_places, points)
    depths = range(1, 200) if everything else range(1, 200, 7)
    deep, faults = tried(act, wrap, at_depths, depths)
    places = Told(
        operation=f"{name}, {'plain' if wrap is plain else 'handled'}, places",
        points=came,
        of=count,
        seed=seed,
        failures=len(failed),
    )
    by_depth = Told(
        operation=places.operation.replace("places", "depths"),
        points=deep,
        of=deep if everything else 7 * deep,
        failures=len(faults),
    )
    tell(record, places)
    tell(record, by_depth)
    assert came
    assert failed + faults == []


@pytest.mark.parametrize(("name", "handled"), CASES)
def test_at_places(name: str, handled: bool, record_property: Record) -> None:
    wrap = Wrapped.of if handled else plain
    played(OPERATIONS[name], wrap, name, False, record_property)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "handled"), CASES)
def test_at_every_place(name: str, handled: bool, record_property: Record) -> None:
    wrap = Wrapped.of if handled else plain
    played(OPERATIONS[name], wrap, name, True, record_property)


@pytest.mark.parametrize(
    "everything", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_operators_of_our_own(everything: bool, record_property: Record) -> None:
    with customs() as made:
        for name, act in called(made).items():
            played(act, plain, name, everything, record_property)


def _defined(graph: Graph) -> None:
    with customs() as made:
        graph.kept.append(made["plain"](graph.grown))


def test_definitions_leave_nothing(record_property: Record) -> None:
    """Whoever defines is interrupted: what is live when all is lost is as before."""
    before, failed = owned(), []
    _defined(Graph())
    count = counted(partial(_defined, Graph()), FOLDERS)
    seed = random.SystemRandom().getrandbits(32)
    points = random.Random(seed).sample(range(1, count + 1), min(60, count))
    for at in sorted(points):
        thread = Thread()
        where = at_places(partial(_defined, Graph()), FOLDERS, at)
        if not thread.unchanged() or tensors.held():
            failed.append(f"{where}: the thread is not as before")
        # What was made and not yet returned lives, until one of its name is made.
        _defined(Graph())
        if owned() != before:
            failed.append(f"{where}: something is left")
    told = Told(
        operation="definitions, places",
        points=len(points),
        of=count,
        seed=seed,
        failures=len(failed),
    )
    tell(record_property, told)
    assert failed == []


def _nothing(*_arguments: Any) -> None:
    """Forgets what was written."""


def _enters_first(mode: Any) -> Any:
    grad_mode.GRAD.enabled = mode._inside
    mode._entry = grad_mode.GRAD.__dict__, _what_was(), mode._entry
    return mode


def _what_was() -> bool:
    return True


def _runs(roots: Any, *, create_graph: bool, retain_graph: bool, **_: Any) -> None:
    grad_mode.GRAD.enabled = grad_mode.GRAD.follows = create_graph
    engine._run(roots, retain_graph, None, None)
    grad_mode.GRAD.enabled = grad_mode.GRAD.follows = True


def _exits(mode: Any, *exception: Any) -> None:
    dispatch_modes._leave(mode, bool(exception), any(exception))


FAULTS: list[tuple[Any, str, Any, str, str]] = [
    (inplace, "refuse_gradients", _nothing, "in place on a view", "wrong in silence"),
    (inplace, "refuse_gradients", _nothing, "copy_", "wrong in silence"),
    (
        function,
        "refuse_gradients",
        _nothing,
        "a Function that writes",
        "wrong in silence",
    ),
    (grad_mode._Records, "__enter__", _enters_first, "no_grad", "not as before"),
    (
        grad_mode._Records,
        "__enter__",
        _enters_first,
        "set_grad_enabled",
        "not as before",
    ),
    (
        sys.modules["everyorder.runtime.autograd.engine"],
        "run",
        _runs,
        "backward",
        "not as before",
    ),
    (TorchDispatchMode, "__exit__", _exits, "an infra mode", "not as before"),
]


@pytest.mark.parametrize(("where", "name", "fault", "operation", "told"), FAULTS)
def test_a_fault_is_found(
    where: Any,
    name: str,
    fault: Any,
    operation: str,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was so once."""
    monkeypatch.setattr(where, name, fault)
    # Its own lines are interrupted as well.
    monkeypatch.setattr(f"{__name__}.FOLDERS", (*FOLDERS, __file__))
    with pytest.raises(AssertionError, match=told):
        played(OPERATIONS[operation], plain, operation, True)


@pytest.mark.parametrize("rounds", ROUNDS)
def test_at_any_time(rounds: int, record_property: Record) -> None:
    """A real signal, by a real timer."""
    seed = random.SystemRandom().getrandbits(32)
    chance, came, failed = random.Random(seed), 0, []
    known = {name: outcomes(act, plain) for name, act in OPERATIONS.items()}
    for _ in range(rounds):
        name = chance.choice(list(OPERATIONS))
        graph, thread = Graph(), Thread()
        after = chance.uniform(0, 4e-4)
        came += not interrupted(partial(OPERATIONS[name], graph), after, frozenset())
        if (fault := wrong(graph, thread, *known[name])) is not None:
            failed.append(f"{name}: {fault}")
            restore()
    name = "operations of tensors, a timer"
    told = Told(
        operation=name, rounds=rounds, came=came, seed=seed, failures=len(failed)
    )
    tell(record_property, told)
    assert came > rounds / 20
    assert failed == [], f"seed {seed}"


def test_inference_mode_is_not_looked_for_in_vain() -> None:
    """Interrupted on the way in or out, it leaves nothing that all threads ask."""
    act = OPERATIONS["inference_mode"]
    count = counted(partial(act, Graph()), FOLDERS)
    for at in range(1, count + 1):
        at_places(partial(act, Graph()), FOLDERS, at)
        assert not INFERRING
