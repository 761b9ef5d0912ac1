"""Refusals: nothing is written, and the error names the operator as it was called."""

from typing import Any

import pytest

from runtime.errors.operands import (
    DivisionByZero,
    IndexOutOfRange,
    NegativeExponent,
    OperandError,
)
from runtime.operators import core
from runtime.operators.structured import composed
from runtime.tensors.tensor import Tensor
from tests.operators.made import META, shown, tensor


def integers(*values: Any) -> Tensor:
    return tensor(values, "int64")


# The last of three places is none.
BAD = integers(0, 7)
SOURCE = tensor([5.0, 6.0])

OUT: dict[str, Any] = {
    "scatter.out": lambda x, out: core.scatter_out(x, 0, BAD, SOURCE, out=out),
    "scatter.value_out": lambda x, out: core.scatter_value_out(x, 0, BAD, 5.0, out=out),
    "scatter_add.out": lambda x, out: core.scatter_add_out(x, 0, BAD, SOURCE, out=out),
    "index_add.out": lambda x, out: core.index_add_out(x, 0, BAD, SOURCE, out=out),
}


@pytest.mark.parametrize("name", OUT)
def test_a_refused_call_leaves_out_alone(name: str) -> None:
    out = tensor([9.0, 9.0, 9.0])
    with pytest.raises(IndexOutOfRange) as caught:
        OUT[name](tensor([1.0, 2.0, 3.0]), out)
    assert caught.value.fields()["operator"] == f"core::{name}"
    assert out.tolist() == [9, 9, 9]


def test_what_fits_is_written_to_out() -> None:
    x, out = tensor([1.0, 2.0, 3.0]), tensor([9.0, 9.0, 9.0])
    core.scatter_out(x, 0, integers(0, 2), SOURCE, out=out)
    assert (x.tolist(), out.tolist()) == ([1, 2, 3], [5, 2, 6])
    core.scatter_out(x, 0, integers(0, 2), SOURCE, out=x)
    assert x.tolist() == [5, 2, 6]


ROW = [[1.0, 2.0]]
IN_PLACE: dict[str, Any] = {
    "scatter_": lambda x: core.scatter_(x, 0, BAD, SOURCE),
    "scatter_.value": lambda x: core.scatter__value(x, 0, BAD, 5.0),
    "scatter_add_": lambda x: core.scatter_add_(x, 0, BAD, SOURCE),
    "index_add_": lambda x: core.index_add_(x, 0, BAD, SOURCE),
    "index_put_": lambda x: core.index_put_(x, [BAD], SOURCE),
    "index_put": lambda x: core.index_put(x, [BAD], SOURCE),
    "index": lambda x: core.index(x, [BAD]),
    "index_select": lambda x: core.index_select(x, 0, BAD),
    "gather": lambda x: core.gather(x, 0, BAD),
    "embedding": lambda x: core.embedding(core.unsqueeze(x, 1), BAD),
    "cross_entropy": lambda x: core.cross_entropy(tensor(ROW), integers(5)),
    "nll_loss": lambda x: core.nll_loss(tensor(ROW), integers(5)),
    "nll_loss_forward": lambda x: core.nll_loss_forward(
        tensor(ROW), integers(5), tensor([1.0, 1.0])
    ),
    "remainder_": lambda x: core.remainder_(integers(1, 2), 0),
    "floor_divide": lambda x: core.floor_divide(integers(1, 2), integers(1, 0)),
    "div": lambda x: core.div(integers(1, 2), 0, rounding_mode="floor"),
    "div_": lambda x: core.div_(integers(1, 2), 0, rounding_mode="trunc"),
    "pow_": lambda x: core.pow_(integers(1, 2), -1),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_values_are_refused_by_the_name_of_the_operator(name: str) -> None:
    x = tensor([1.0, 2.0, 3.0])
    with pytest.raises((IndexOutOfRange, DivisionByZero, NegativeExponent)) as caught:
        IN_PLACE[name](x)
    assert caught.value.fields()["operator"] == f"core::{name}"
    assert x.tolist() == [1, 2, 3]


COMPOSED: dict[str, Any] = {
    "matmul": lambda x: core.matmul(x, tensor([1.0, 2.0], "float64")),
    "matmul.out": lambda x: core.matmul_out(x, tensor([1.0]), out=tensor([])),
    "stack.out": lambda x: core.stack_out([x], 4, out=tensor([])),
    "layer_norm": lambda x: core.layer_norm(x, [3]),
    "max_pool2d": lambda x: core.max_pool2d(x, 2),
    "std": lambda x: core.std(core.to(x, dtype=integers().dtype)),
    "argsort": lambda x: core.argsort(x, 5),
    "dropout": lambda x: core.dropout(x, 2.0),
    "cross_entropy": lambda x: core.cross_entropy(
        core.to(x, dtype=integers().dtype), integers(0)
    ),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_composites_are_refused_by_their_own_names(name: str) -> None:
    with pytest.raises(OperandError) as caught:
        COMPOSED[name](tensor(ROW))
    assert caught.value.fields()["operator"] == f"core::{name}"


def test_other_errors_pass_a_composite_as_they_are() -> None:
    def fails() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        composed("core::fails", fails)()


def test_composites_write_to_out_once() -> None:
    out = core.zeros([1, 1])
    core.matmul_out(tensor(ROW), core.t(tensor(ROW)), out=out)
    assert (out.tolist(), out._version) == ([[5]], 1)
    out = core.zeros([1, 1, 2])
    core.stack_out([tensor(ROW)], out=out)
    assert (out.tolist(), out._version) == ([ROW], 1)


def test_a_mask_on_meta_does_not_change_the_shape_that_is_put_to() -> None:
    x = core.empty([3], device=META)
    mask = core.empty([3], dtype=tensor(0, "bool").dtype, device=META)
    found = core.index_put(x, [mask], core.empty([], device=META))
    assert (found.shape, found.device) == ((3,), META)


def test_the_gradient_of_complex_silu() -> None:
    x = tensor([0.5 + 1j, -2 + 0.25j], "complex128")
    step, slope = 1e-6, core.silu_backward(tensor([1, 1], "complex128"), x)
    ahead, behind = core.silu(core.add(x, step)), core.silu(core.sub(x, step))
    difference = core.div(core.sub(ahead, behind), 2 * step)
    expected = core.conj(difference).tolist()
    assert shown(slope)[1] == pytest.approx(expected, rel=1e-6)
