"""Saved plans: a call whose plan is saved gives what the general way gives.

Every example runs calls of one operator several times, by a memory of their own, and
compares each result, to the bit, with that of the plan run anew.  The same comparison
finds the faults that are planted into the keys.
"""

import gc
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everyorder.runtime.base import locks
from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.errors.tensor import IndexOutOfRange
from everyorder.runtime.kernels import get_num_threads, set_num_threads
from everyorder.runtime.operators import core
from everyorder.runtime.operators.declare import saved_plans
from everyorder.runtime.operators.declare.allocate_outputs import (
    REFUSALS,
    produce,
    table_of,
)
from everyorder.runtime.operators.declare.plan import CallPlan
from everyorder.runtime.operators.declare.saved_plans import (
    MOST,
    NEVER,
    SavedPlans,
    saving_plans,
)
from everyorder.runtime.operators.declare.structured import Structured
from everyorder.runtime.operators.install import FAMILIES
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.construction import view_of, wrap_number
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import array_of
from tests.injection.interrupting import at_lines
from tests.operators.tensors import of_letter

Call = tuple[Any, ...]

DECLARED = {
    each.name: each
    for family in FAMILIES
    for each in family
    if isinstance(each, Structured) and each.saves_plans
}


class Lying(NamedTuple):
    """A tensor that is made anew for every call; `below` bounds what it holds."""

    letter: str
    shape: tuple[int, ...]
    layout: str = "rows"
    below: int = 3


LAYOUTS = ("rows", "inside", "turned", "gaps", "spread")


def tensor_of(said: Lying, source: np.random.Generator) -> Tensor:
    """The tensor, of other values each time."""
    letter, shape, layout, below = said
    room = {"inside": (3, *shape), "gaps": (*shape[:-1], 2 * (shape or (1,))[-1])}
    whole = room.get(layout, shape[::-1] if layout == "turned" else shape)
    values: Any = source.integers(0, max(below, 1), whole)
    if letter in "hgfdc":
        values = values + source.choice([0.0, -0.0, 0.5, -1.5, np.nan, np.inf], whole)
    if letter in "ilhgfd" and below == 3:
        values = values - 1
    base = of_letter(letter, values)
    steps = base.strides
    if layout == "inside":
        return view_of(base, shape, steps[1:], steps[0])
    if layout == "turned":
        return view_of(base, shape, steps[::-1], 0)
    if layout == "gaps" and shape:
        return view_of(base, shape, (*steps[:-1], 2), 0)
    if layout == "spread" and shape:
        return view_of(base, shape, (0, *steps[1:]), 0)
    return base


def arguments_of(call: Call, source: np.random.Generator) -> list[Any]:
    """The arguments of one call: tensors of other values, lists of their own."""

    def one(value: Any) -> Any:
        if isinstance(value, Lying):
            return tensor_of(value, source)
        return [*map(one, value)] if isinstance(value, list) else value

    return [*map(one, call)]


def anew(declared: Structured, arguments: Sequence[Any]) -> Any:
    """What the plan gives when no plan is saved."""
    call = f"core::{declared.name}"
    try:
        return produce(declared.plan(*arguments), table_of("CPU"), declared.own)
    except REFUSALS as error:
        error.operator = call
        raise


def with_memory(declared: Structured, plan: Any = None) -> Callable[..., Any]:
    """The operator with a memory of its own."""
    return saving_plans(
        f"core::{declared.name}",
        declared.arguments,
        declared.returns.count("Tensor"),
        plan or declared.plan,
        declared.own,
        lambda *arguments: anew(declared, arguments),
    )


def memory_of(function: Callable[..., Any]) -> SavedPlans:
    """What it has saved."""
    cells = [each.cell_contents for each in function.__closure__ or ()]
    owners = [getattr(each, "__self__", None) for each in cells]
    return next(each for each in owners if isinstance(each, SavedPlans))


def told(run: Callable[..., Any], *arguments: Any) -> Any:
    """Dtypes, shapes, strides and bytes of the results, or the error in words."""
    try:
        results = run(*arguments)
    except EveryorderError as error:
        return type(error), str(error)
    several = results if isinstance(results, tuple) else (results,)
    return [
        (each.dtype, each.shape, each.strides, array_of(each).tobytes())
        for each in several
    ]


def disagreements(
    declared: Structured, calls: Sequence[Call], seed: int = 0
) -> Iterator[str]:
    """The calls whose result by a saved plan is another one than that made anew."""
    run, source = with_memory(declared), np.random.default_rng(seed)
    for place, call in enumerate(calls):
        arguments = arguments_of(call, source)
        expected = told(anew, declared, arguments)
        try:
            found = told(run, *arguments)
        except Exception as error:
            found = repr(error)
        if found != expected:
            yield f"call {place}, {declared.name}{call}: {found} for {expected}"


# Calls of every operator, from few shapes and values: so that many are nearly alike.

SHAPES = st.sampled_from([(), (1,), (3,), (0,), (2, 3), (3, 1), (2, 2, 3), (2, 0)])
DIM = st.integers(-3, 2)
DIMS = st.none() | st.lists(st.integers(-2, 2), max_size=2)
FLAG = st.booleans()
NUMBER = st.sampled_from(
    [*(0, 0.0, -0.0, False), *(1, 1.0, True), 0.5, -2, float("nan"), float("inf"), 300]
)
LETTER = st.sampled_from("builhgfdc")
FLOAT = st.sampled_from("fdh")
DTYPE = st.none() | st.sampled_from([DType.named("float64"), DType.named("int64")])


def lying(
    letters: Any = LETTER, shapes: Any = SHAPES, below: int = 3
) -> st.SearchStrategy[Lying]:
    """Any tensor of these dtypes and shapes."""
    return st.builds(Lying, letters, shapes, st.sampled_from(LAYOUTS), st.just(below))


def alike(*strategies: Any) -> Any:
    """Tensors of one shape each."""
    return SHAPES.flatmap(
        lambda shape: st.tuples(*(each(shape) for each in strategies))
    )


def of(letters: Any, below: int = 3) -> Any:
    """A tensor of a shape that is given."""
    return lambda shape: lying(letters, st.just(shape), below)


def matrices(*rows: str) -> Any:
    """Tensors whose sizes are named by letters: one letter, one size."""

    def sized(sizes: tuple[int, ...]) -> Any:
        named = dict(zip("abcd", sizes, strict=True))
        shapes = [tuple(named[letter] for letter in row) for row in rows]
        return st.tuples(*(lying(FLOAT, st.just(shape)) for shape in shapes))

    return st.tuples(*[st.sampled_from([1, 2, 3])] * 4).flatmap(sized)


def spliced(tensors: Any, *rest: Any) -> Any:
    """The tensors of a tuple, and what comes behind them."""
    return st.tuples(tensors, *rest).map(lambda found: (*found[0], *found[1:]))


def maybe(tensors: Any, *places: int) -> Any:
    """The tensors, some of which may be None."""
    return st.tuples(tensors, st.tuples(*[FLAG] * len(places))).map(
        lambda found: tuple(
            None if at in places and found[1][places.index(at)] else each
            for at, each in enumerate(found[0])
        )
    )


_REDUCED = st.tuples(lying(), DIMS, FLAG)
_TOTAL = st.tuples(lying(), DIMS, FLAG, DTYPE)
_EXTREME = st.tuples(lying())
_PLACE = st.tuples(lying(), st.none() | DIM, FLAG)
_LINES = st.tuples(lying(FLOAT), DIM, st.none())
_BACK = spliced(alike(of(FLOAT), of(FLOAT)), DIM)
_TARGETS = lying(st.just("l"), st.just((2,)), 4)
_SCORES = lying(FLOAT, st.sampled_from([(2, 3), (2, 4), (3,)]))
_WEIGHT = st.none() | lying(FLOAT, st.just((3,)))
_WAY = st.sampled_from(["none", "mean", "sum", "other"])
_INDEX = lying(st.sampled_from("li"), st.sampled_from([(2,), (2, 3), ()]), 4)

CALLS: dict[str, Any] = {
    **dict.fromkeys(("sum", "prod", "mean"), _TOTAL),
    **dict.fromkeys(("max", "min"), _EXTREME),
    **dict.fromkeys(("amax", "amin", "any", "all"), _REDUCED),
    **dict.fromkeys(("argmax", "argmin"), _PLACE),
    **dict.fromkeys(("softmax", "log_softmax"), _LINES),
    **dict.fromkeys(("softmax_backward", "log_softmax_backward"), _BACK),
    "var": st.tuples(lying(FLOAT), DIMS, st.none() | NUMBER, FLAG),
    "cumsum": st.tuples(lying(), DIM, DTYPE),
    "clone": st.tuples(lying(), st.none()),
    "where": alike(of(st.just("b")), of(LETTER), of(LETTER)),
    "clamp": st.tuples(lying(), st.none() | NUMBER, st.none() | NUMBER),
    "masked_fill": spliced(alike(of(LETTER), of(st.just("b"))), NUMBER),
    "mm": matrices("ab", "bc"),
    "linear": maybe(matrices("ab", "cb", "c"), 2),
    "native_layer_norm": st.tuples(
        maybe(matrices("ab", "b", "b"), 1, 2),
        st.sampled_from([[1], [2], [3]]),
        st.sampled_from([1e-5, 0.0, -0.0, 1.0, float("nan")]),
    ).map(lambda found: (found[0][0], found[1], *found[0][1:], found[2])),
    "nll_loss_forward": st.tuples(
        _SCORES, _TARGETS, _WEIGHT, _WAY, st.sampled_from([-100, 1])
    ),
    "nll_loss_backward": st.tuples(
        lying(FLOAT, st.sampled_from([(), (2,)])),
        *(_SCORES, _TARGETS, _WEIGHT, _WAY, st.sampled_from([-100, 1])),
        lying(FLOAT, st.just(())),
    ),
    "cat": st.tuples(
        st.lists(lying(st.sampled_from("fbl")), min_size=1, max_size=4), DIM
    ),
    "gather": st.tuples(lying(), DIM, _INDEX),
    "index_select": st.tuples(lying(), DIM, _INDEX),
}


def test_every_operator_that_saves_plans_is_called_here() -> None:
    assert sorted(CALLS) == sorted(DECLARED)


# The first call of an entry compiles it.
@given(st.data())
@pytest.mark.parametrize("name", CALLS)
def test_what_is_saved_equals_what_is_made_anew(name: str, data: Any) -> None:
    first, second = data.draw(CALLS[name]), data.draw(CALLS[name])
    at = data.draw(st.integers(0, len(first) - 1))
    # A call that differs in one argument; and one that has nothing to do with it.
    near = (*first[:at], second[at], *first[at + 1 :])
    calls = [first] * 3 + [near] * 3 + [second] * 3 + [first, near, second]
    assert not [*disagreements(DECLARED[name], calls, data.draw(st.integers(0, 9)))]


# A fault of the key, and two calls that it takes for one.
X = Lying("f", (2, 3))
FAULTS: dict[str, tuple[str, dict[str, str], Call, Call]] = {
    "strides": (
        "sum",
        {"Tensor": "_n{at}, {name}._dtype"},
        (X, [0], False, None),
        (X._replace(layout="turned"), [0], False, None),
    ),
    "dtype": (
        "sum",
        {"Tensor": "_n{at}, _s{at}"},
        (X, [0], False, None),
        (X._replace(letter="d"), [0], False, None),
    ),
    "shape": (
        "clone",
        {"Tensor": "{name}._dtype, _s{at}"},
        (X, None),
        (X._replace(shape=(3, 2)), None),
    ),
    "type of a number": (
        "clamp",
        {"Scalar": "{name}"},
        (Lying("l", (4,)), 1, None),
        (Lying("l", (4,)), 1.0, None),
    ),
    "truth among numbers": (
        "clamp",
        {"Scalar": "{name}"},
        (Lying("l", (4,)), True, None),
        (Lying("l", (4,)), 1.0, None),
    ),
    "sign of zero": (
        "masked_fill",
        {"Scalar": "type({name}), {name}"},
        (X, Lying("b", (2, 3)), 0.0),
        (X, Lying("b", (2, 3)), -0.0),
    ),
    "number": (
        "native_layer_norm",
        {"float": "None"},
        (X, [3], None, None, 1e-5),
        (X._replace(below=1), [3], None, None, 1.0),
    ),
    "list": (
        "sum",
        {"list": "None"},
        (X, [0], False, None),
        (X, [1], False, None),
    ),
    "flag": ("amax", {"": "None"}, (X, [0], False), (X, [0], True)),
    "optional tensor": (
        "linear",
        {"Tensor?": "None"},
        (X, X, None),
        (X, X, Lying("f", (2,))),
    ),
    "tensors of a list": (
        "cat",
        {"Tensor[]": "len({name})"},
        ([X, X], 0),
        ([X, Lying("f", (1, 3))], 0),
    ),
}


@pytest.fixture
def fresh_text() -> Iterator[None]:
    """Functions made of the table of keys as it is now."""
    saved_plans._saved.cache_clear()
    yield
    saved_plans._saved.cache_clear()


@pytest.mark.usefixtures("fresh_text")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_key_that_forgets_something_is_found(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, keys, first, second = FAULTS[fault]
    calls = [first] * 3 + [second] * 3
    assert not [*disagreements(DECLARED[name], calls)]
    saved_plans._saved.cache_clear()
    for kind, text in keys.items():
        monkeypatch.setitem(saved_plans._KEYS, kind, text)
    assert [*disagreements(DECLARED[name], calls)]


def test_numbers_are_told_apart_by_type_sign_and_nan() -> None:
    nan = float("nan")
    several: list[Any] = [0, 0.0, -0.0, False, 1, 1.0, True, nan, complex(0, -0.0), 0j]
    several += [complex(1, 0.0), complex(1, -0.0), complex(nan, 1), None]
    text = f"({saved_plans._KEYS['Scalar'].format(at=0, name='each')})"
    keys = [
        tuple(
            eval(text, saved_plans.NAMES, {"each": each}) for each in several
        )  # the text is ours
        for _ in range(2)
    ]
    assert len({*keys[0]}) == len(several)
    assert keys[0] == keys[1]


# What is kept, and for how long.


def test_the_plan_is_made_twice_and_then_never_again() -> None:
    plans = []

    def plan(*arguments: Any) -> CallPlan:
        plans.append(arguments)
        return DECLARED["sum"].plan(*arguments)

    run = with_memory(DECLARED["sum"], plan)
    for _ in range(5):
        run(tensor_of(X, np.random.default_rng(0)), None, False, None)
    # The general way of these tests plans by itself; this is the one without elements.
    assert len(plans) == 1
    (hollow, *_) = plans[0]
    assert hollow.shape == (2, 3)
    assert hollow._flat is None


def test_the_oldest_keys_are_forgotten() -> None:
    run = with_memory(DECLARED["sum"])
    memory = memory_of(run)
    for size in range(3 * MOST):
        for _ in range(2):
            run(of_letter("f", np.ones(size)), None, False, None)
        assert len(memory) <= MOST
    kept = sorted(key[0][0] for key in memory)
    assert kept == [*range(2 * MOST, 3 * MOST)]


def test_no_tensor_is_kept() -> None:
    for name in ("native_layer_norm", "cat", "where", "gather"):
        run, source = with_memory(DECLARED[name]), np.random.default_rng(0)
        seen = []
        row, mask = Lying("f", (3,)), Lying("b", (2, 3))
        calls: dict[str, Call] = {
            "native_layer_norm": (X, [3], row, row, 1e-5),
            "cat": ([X, X], 0),
            "where": (mask, X, X),
            "gather": (X, 0, Lying("l", (2, 3), "rows", 2)),
        }
        for _ in range(4):
            arguments = arguments_of(calls[name], source)
            run(*arguments)
            for each in arguments:
                held = each if isinstance(each, list) else [each]
                seen += [ref(one) for one in held if isinstance(one, Tensor)]
        (ready,) = memory_of(run).values()
        assert ready
        del arguments, each, held
        gc.collect()
        assert not [each for each in seen if each() is not None], name


def test_values_are_checked_by_each_call() -> None:
    run = with_memory(DECLARED["index_select"])
    x = of_letter("f", np.arange(6.0).reshape(2, 3))
    for places in ([0, 1], [1, 0], [1, 1], [0, 2], [1, 0], [-1, 0]):
        index = of_letter("l", places)
        if {*places} <= {0, 1}:
            assert run(x, 0, index).tolist() == x.numpy()[places].tolist()
        else:
            with pytest.raises(IndexOutOfRange) as caught:
                run(x, 0, index)
            assert caught.value.operator == "core::index_select"
    (ready,) = memory_of(run).values()
    assert ready


def test_no_exception_is_saved() -> None:
    run = with_memory(DECLARED["softmax"])
    for _ in range(4):
        with pytest.raises(EveryorderError):
            run(of_letter("f", [1.0, 2.0]), 1, None)
    assert [*memory_of(run).values()] == [None]


def test_a_wrapped_number_goes_the_general_way() -> None:
    run = with_memory(DECLARED["clamp"])
    for _ in range(3):
        for number in (1.5, 2.5):
            assert run(wrap_number(number), 0.0, 2.0).item() == min(number, 2.0)
    assert [*memory_of(run).values()] == [NEVER]


def test_threads_are_asked_by_each_call() -> None:
    """The same result by one thread and by two, of work that is shared out."""
    run, threads = with_memory(DECLARED["softmax"]), get_num_threads()
    x = of_letter("f", np.random.default_rng(0).normal(size=(700, 300)))
    found = []
    try:
        for count in (1, 1, 1, 2, 2, 1):
            set_num_threads(count)
            found.append(told(run, x, 1, None))
    finally:
        set_num_threads(threads)
    assert all(each == found[0] for each in found)


def test_inference_mode_is_asked_by_each_call() -> None:
    from everyorder import runtime

    x = runtime.ones(3)
    for _ in range(3):
        core.sum(x)
    with runtime.inference_mode():
        inside = [core.sum(x) for _ in range(3)]
    outside = core.sum(x)
    assert [each.is_inference() for each in inside] == [True] * 3
    assert not outside.is_inference()


def test_threads_that_race_get_what_is_theirs() -> None:
    """Many threads, more keys than are kept: every result is that of its own call."""
    run, wrong = with_memory(DECLARED["sum"]), []

    def work(offset: int) -> None:
        for turn in range(600):
            size = (turn * 7 + offset) % (MOST + 40)
            found = run(of_letter("f", np.ones(size)), None, turn % 2 == 1, None)
            if found.shape != ((1,) if turn % 2 else ()) or found.item() != size:
                wrong.append((size, found))

    workers = [threading.Thread(target=work, args=(at * 5,)) for at in range(6)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for each in workers:
            each.start()
        for each in workers:
            each.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong
    assert len(memory_of(run)) <= MOST + len(workers)


RUNTIME = (str(Path(saved_plans.__file__).parents[2]),)


def free_of(lock: Any) -> bool:
    """Whether a thread finds the lock free."""
    if not lock.acquire(blocking=False):
        return False
    lock.release()
    return True


@pytest.mark.parametrize("met", [0, 1, 2])
def test_an_interrupted_call_leaves_nothing_half_made(met: int) -> None:
    """At every line of a first, a second and a saved call."""
    x, expected = of_letter("f", [[1.0, 2.0], [3.0, 4.0]]), [4.0, 6.0]
    seen = 0
    while True:
        run = with_memory(DECLARED["sum"])
        for _ in range(met):
            run(x, [0], False, None)
        program = partial(run, x, [0], False, None)
        if at_lines(program, RUNTIME, seen + 1) is None:
            break
        for _ in range(3):
            assert program().tolist() == expected
        assert all(each is None or len(each) == 5 for each in memory_of(run).values())
        seen += 1
    assert seen > 5
    # A thread that forks would wait for them.
    with ThreadPoolExecutor(1) as another:
        assert all(another.map(free_of, locks._AWAITED))
