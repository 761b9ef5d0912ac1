"""Values are those of the large tensor, and what was computed stays small."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everyorder import runtime
from everyorder.runtime import Tensor, ops, tensor
from everyorder.runtime.errors.tensor import ShapesDoNotFit, TargetRefused
from everyorder.runtime.testing import assert_close
from everyorder.runtime.torch_dispatch.wrappers import flatten, unflatten
from tests.coded import code
from tests.examples.lazy_broadcast import LazyBroadcast, materialized
from tests.examples.logging_tensor import LoggingTensor, capture_logs

DATA = [[1.0], [-2.0]]
SHAPE = (2, 3)


def lazy() -> LazyBroadcast:
    return LazyBroadcast(tensor(DATA), SHAPE)


def large() -> Tensor:
    made: Tensor = tensor(DATA).expand(*SHAPE).contiguous()
    return made


def small_of(value: Any) -> tuple[int, ...] | None:
    """The shape of what is held; None for a plain tensor."""
    return value.small.shape if isinstance(value, LazyBroadcast) else None


OPERATORS: list[tuple[str, Any, tuple[int, ...] | None]] = [
    ("neg", lambda x: -x, (2, 1)),
    ("number", lambda x: 2 * x + 1, (2, 1)),
    ("itself", lambda x: x * x.exp(), (2, 1)),
    ("row", lambda x: x + tensor([1.0, 2.0, 3.0]), None),
    ("column", lambda x: x + tensor([[1.0], [2.0]]), (2, 1)),
    ("more", lambda x: x + runtime.ones(4, 1, 1), (4, 2, 1)),
    ("expanded", lambda x: x + runtime.ones(1, 1).expand(2, 3), (2, 1)),
    ("where", lambda x: ops.core.where(x > 0, x, tensor(0.5)), (2, 1)),
    ("clamp", lambda x: ops.core.clamp(x, min=0), (2, 1)),
    ("double", lambda x: x.double(), (2, 1)),
    ("detach", lambda x: x.detach(), (2, 1)),
    ("expand", lambda x: x.expand(4, -1, 3), (1, 2, 1)),
    ("sum", lambda x: x.sum(), None),
    ("sum 0", lambda x: x.sum(0), (1,)),
    ("sum 1", lambda x: x.sum(1), None),
    ("sum -1, kept", lambda x: x.sum(-1, keepdim=True), None),
    ("sum 0, kept", lambda x: x.sum(0, keepdim=True), (1, 1)),
    ("sum of ints", lambda x: x.long().sum([0, 1]), None),
    ("mean", lambda x: x.mean(), None),
    ("mean 0", lambda x: x.mean(0), (1,)),
    ("max", lambda x: x.max(), None),
    ("matmul", lambda x: x @ runtime.ones(3, 2), None),
    ("reshape", lambda x: x.reshape(6), None),
    ("select", lambda x: x[1], None),
    ("cat", lambda x: ops.core.cat([x, x]), None),
    ("clone", lambda x: x.clone(), None),
]


@pytest.mark.parametrize(
    ("run", "small"), [each[1:] for each in OPERATORS], ids=[e[0] for e in OPERATORS]
)
def test_it_is_as_the_large_one_and_as_small_as_may_be(
    run: Any, small: tuple[int, ...] | None
) -> None:
    found, expected = run(lazy()), run(large())
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert_close(materialized(found), expected)
    assert small_of(found) == small


def test_what_runs_is_small() -> None:
    row = LazyBroadcast(LoggingTensor(tensor([1.0, 2.0])), (1_000_000, 2))
    with capture_logs() as lines:
        y = row.exp() * row + 1.0
    assert lines == [
        "$1: f32[1, 2] = everyorder.runtime.ops.core.exp.default($0)",
        "$2: f32[1, 2] = everyorder.runtime.ops.core.mul.default($1, $0)",
        "$3: f32[1, 2] = everyorder.runtime.ops.core.add.default($2, 1.0)",
    ]
    assert y.shape == (1_000_000, 2)


def test_more_elements_than_any_memory_holds() -> None:
    x = LazyBroadcast(tensor([0.5]), (2**40, 2**20))
    assert (x + x).mean().item() == 1.0
    assert (x * 2).sum().item() == 2.0**60


def test_gradients_are_those_of_the_large_tensor() -> None:
    weights = [
        tensor([[1.0, -2.0, 0.5]], requires_grad=True),
        tensor([[1.0, -2.0, 0.5]], requires_grad=True),
    ]
    for x, weight in zip((lazy(), large()), weights, strict=True):
        ((x * weight).exp() + x).sum().backward()
    found, expected = (each.grad for each in weights)
    assert found is not None
    assert expected is not None
    assert_close(found, expected)


def test_the_backward_pass_is_small_too() -> None:
    x = LazyBroadcast(tensor([1.0, 2.0]), (1_000_000, 2), requires_grad=True)
    (grad,) = runtime.autograd.grad((x.exp() * x).sum(), x)
    assert isinstance(grad, LazyBroadcast)
    assert grad.small.shape == (1, 2)
    exact = tensor([[1.0, 2.0]])
    assert_close(grad.small, exact.exp() * (1 + exact))


def test_a_gradient_comes_through_expand() -> None:
    x = LazyBroadcast(tensor([[1.0, 2.0]]), (1, 2), requires_grad=True)
    x.expand(5, 2).sum().backward()
    assert x.grad is not None
    assert materialized(x.grad).tolist() == [[5.0, 5.0]]


def test_a_number_without_dimensions_counts_as_what_it_shows() -> None:
    x = LazyBroadcast(tensor(1.0, dtype=runtime.float64), (3,))
    assert (x + runtime.ones(3)).dtype is runtime.float64


def test_what_is_repeated_is_not_written_to() -> None:
    x = lazy()
    with pytest.raises(TargetRefused, check=code("TargetOverlaps")):
        x.add_(1)
    with pytest.raises(TargetRefused, check=code("TargetOverlaps")):
        ops.core.neg.out(large(), out=x)
    single = LazyBroadcast(tensor([1.0, 2.0]), (2,))
    assert single.add_(1) is single
    assert single.small.tolist() == [2.0, 3.0]


def test_shapes_that_do_not_fit() -> None:
    for shape in ((3,), (1,), ()):
        with pytest.raises(ShapesDoNotFit, check=code("ShapesDiffer")):
            LazyBroadcast(tensor([1.0, 2.0]), shape)
    with pytest.raises(ShapesDoNotFit, check=code("ShapesDoNotFit")):
        # The column could be repeated seven times, but what is shown could not.
        lazy().expand(2, 7)
    with pytest.raises(runtime.EveryorderError, match="2"):
        lazy().sum(2)


def test_no_repetitions_and_no_dimensions() -> None:
    x = LazyBroadcast(tensor([[float("inf")]]), (0, 3))
    assert x.sum().item() == 0.0
    assert LazyBroadcast(tensor(2.0), ()).sum().item() == 2.0


def test_it_is_taken_apart_and_put_together() -> None:
    x = lazy()
    tensors, plan = flatten(x)
    again = unflatten(tensors, plan)
    assert (again.small is x.small, again.shape) == (True, SHAPE)
    assert repr(x) == "LazyBroadcast(tensor([[ 1.],\n        [-2.]]), (2, 3))"


sizes = st.tuples(*[st.sampled_from([1, 2, 3])] * 3)


@given(shape=sizes, repeated=st.tuples(*[st.booleans()] * 3), data=st.data())
def test_sums_over_any_dimensions(
    shape: tuple[int, ...], repeated: tuple[bool, ...], data: st.DataObject
) -> None:
    held = [1 if each else size for each, size in zip(repeated, shape, strict=True)]
    small = runtime.arange(held[0] * held[1] * held[2]).reshape(*held)
    dims = data.draw(st.sets(st.integers(-3, 2).map(lambda d: d % 3), min_size=1))
    keepdim = data.draw(st.booleans())
    found = LazyBroadcast(small, shape).sum([*dims], keepdim)
    expected = small.expand(*shape).sum([*dims], keepdim)
    assert materialized(found).tolist() == expected.tolist()
    assert found.dtype is runtime.int64
