"""Wrappers in any order: the values are those without them."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from everyorder.runtime import Tensor, ops, tensor
from everyorder.runtime.errors.torch_dispatch import HandlerError
from everyorder.runtime.torch_dispatch.wrappers import flatten, unflatten
from tests.coded import code
from tests.examples.fake_tensor import FakeTensor, FakeTensorMode
from tests.examples.logging_tensor import LoggingTensor, capture_logs, mapped
from tests.examples.nested_wrappers import (
    LAYERS,
    Counting,
    NoNaN,
    Wrapper,
    layers,
    nest,
    plain,
)
from tests.opinfo.info import OpInfo, listed, on_cpu
from tests.opinfo.table import ROWS
from tests.opinfo.test_schemas import dtype_for

Program = list[tuple[str, int, int]]

# What a program does with tensors of 2 by 2.  Integers up to 127 are exact in all.
STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "matmul": lambda x, y: x @ y,
    "relu": lambda x, y: x.relu(),
    "twice": lambda x, y: 2 * x,
    "turn": lambda x, y: x.t(),
    "repeat": lambda x, y: x[:1].expand(2, 2),
    "sum": lambda x, y: x + y.sum(0, keepdim=True),
    "where": lambda x, y: ops.core.where(x > y, x, y),
    "cat": lambda x, y: ops.core.cat([x[:1], y[1:]]),
    "reshape": lambda x, y: x.reshape(4)[[0, 2, 1, 3]].reshape(2, 2),
}

matrices = st.lists(st.integers(-3, 3), min_size=4, max_size=4)
nests = st.lists(st.sampled_from(sorted(LAYERS)), max_size=4)
programs = st.lists(
    st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9), st.integers(0, 9)),
    max_size=5,
)


def matrix(numbers: list[int]) -> Tensor:
    made: Tensor = tensor([float(each) for each in numbers]).reshape(2, 2)
    return made


def run(program: Program, given: list[Tensor]) -> list[Tensor]:
    """Everything that a program computes; each step takes two earlier results."""
    known = list(given)
    for name, one, other in program:
        known.append(STEPS[name](known[one % len(known)], known[other % len(known)]))
    return known


@given(one=matrices, other=matrices, around=nests, beside=nests, program=programs)
@settings(max_examples=200)
def test_values_are_those_without_wrappers(
    one: list[int],
    other: list[int],
    around: list[str],
    beside: list[str],
    program: Program,
) -> None:
    expected = run(program, [matrix(one), matrix(other)])
    assume(all(each.abs().max().item() <= 127 for each in expected))
    found = run(program, [nest(matrix(one), *around), nest(matrix(other), *beside)])
    assert [plain(each).tolist() for each in found] == [e.tolist() for e in expected]


@given(one=matrices, around=nests, program=programs)
@settings(max_examples=100)
def test_gradients_are_those_without_wrappers(
    one: list[int], around: list[str], program: Program
) -> None:
    bare = matrix(one).requires_grad_()
    expected = run(program, [bare, bare])
    assume(all(each.abs().max().item() <= 127 for each in expected))
    wrapped = nest(matrix(one), *around).detach().requires_grad_()
    found = run(program, [wrapped, wrapped])
    expected[-1].sum().backward()
    found[-1].sum().backward()
    assert bare.grad is not None
    assert wrapped.grad is not None
    assume(bare.grad.abs().max().item() <= 127)
    assert plain(wrapped.grad).tolist() == bare.grad.tolist()


# A wrapper keeps the shape that it was made with, whatever becomes of what it wraps.
SHAPED = [row for row in ROWS if not row.random and row.name != "resize_"]


@pytest.mark.parametrize("layer", ["wrapper", "lazy"])
@pytest.mark.parametrize("row", SHAPED, ids=repr)
def test_every_operator_through_a_layer(row: OpInfo, layer: str) -> None:
    def wrapped(value: Any) -> Any:
        return nest(value, layer) if isinstance(value, Tensor) else value

    for sample in row.samples(dtype_for(row)):
        args, kwargs = sample.bound(on_cpu)
        found = row.call(*mapped(wrapped, args), **mapped(wrapped, kwargs))
        args, kwargs = sample.bound(on_cpu)
        for one, other in zip(
            listed(found), listed(row.call(*args, **kwargs)), strict=True
        ):
            if isinstance(other, Tensor):
                assert (one.shape, one.dtype) == (other.shape, other.dtype), sample
                # What handlers see of attention adds in another order.
                near = 1e-6 if row.name == "scaled_dot_product_attention" else 0
                values = plain(one).numpy(), other.numpy()
                assert_allclose(*values, rtol=near, err_msg=repr(sample))
            else:
                assert one == other or other != other, sample


def test_the_layers_come_back() -> None:
    names = ("logging", "quantized", "logging")
    x = nest(tensor([1.0, -2.0]), *names)
    y = (x + x).relu()
    assert (layers(x), layers(y)) == (names, names)
    assert plain(y).tolist() == [2.0, 0.0]
    assert (layers(tensor([1.0])), plain(y).__class__) == ((), Tensor)


def test_each_layer_sees_what_the_one_outside_calls() -> None:
    x = nest(tensor([1.0]), "logging", "wrapper", "logging")
    with capture_logs(types=False) as lines:
        x.exp()
    # The innermost is done first.
    assert lines == [
        "$1 = everyorder.runtime.ops.core.exp.default($0)",
        "$3 = everyorder.runtime.ops.core.exp.default($2)",
    ]


def test_derived_classes_are_asked_first_wherever_they_stand() -> None:
    one, other = Wrapper(tensor([1.0])), Counting(tensor([2.0]))
    before = Counting.count
    assert layers(one + other) == ("counting", "wrapper")
    assert layers(other + one) == ("counting", "wrapper")
    assert Counting.count == before + 2


def test_the_first_nan_is_caught_where_it_is_made() -> None:
    x = NoNaN(tensor([-1.0, 1.0]))
    assert plain(x.exp()).tolist() == tensor([-1.0, 1.0]).exp().tolist()
    assert (x > 0).dtype.name == "bool"
    with pytest.raises(FloatingPointError, match=r"core\.log\.default made NaN"):
        (x.exp() + x).log().sum()


def test_what_is_written_to_stays_itself() -> None:
    x = nest(tensor([1.0, -2.0]), "wrapper", "logging", "counting")
    view = x[1:]
    assert view.abs_() is view
    assert plain(x).tolist() == [1.0, 2.0]


def test_fake_tensors_are_innermost() -> None:
    with FakeTensorMode() as mode:
        x = nest(mode.from_tensor(tensor([1.0])), "wrapper", "logging")
        y = x @ x
    assert layers(y) == ("wrapper", "logging")
    assert (type(plain(y)), y.shape) == (FakeTensor, ())


def test_they_are_taken_apart_and_put_together() -> None:
    x = nest(tensor([1.0]), "logging", "lazy", "quantized", "wrapper")
    tensors, plan = flatten(x)
    assert {type(each) for each in tensors} == {Tensor}
    again = unflatten(tensors, plan)
    assert layers(again) == layers(x)
    assert plain(again).tolist() == [1.0]
    assert repr(nest(tensor([1.0]), "counting")) == "Counting(tensor([1.]))"


def test_two_classes_that_both_want_to_be_innermost() -> None:
    class Polite(LoggingTensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if len(types) > 1:
                return NotImplemented
            return super().__torch_dispatch__(func, types, args, kwargs)

    class AsPolite(Polite):
        pass

    x, y = Polite(tensor([1.0])), AsPolite(tensor([2.0]))
    both: Any = x + x
    assert plain(both.elem).tolist() == [2.0]
    assert layers(x + Wrapper(x)) == ("wrapper",)
    with pytest.raises(HandlerError, check=code("NoImplementation")) as caught:
        x + y
    assert caught.value.asked == ("the class AsPolite", "the class Polite")
