"""The kernels in the path of every call, and the plans of recorded ones."""

import gc
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from everyorder.runtime import Library, Tensor, ops, tensor, zeros
from everyorder.runtime.autograd.gradient_plan import TENSOR, Saved, derivatives_of
from everyorder.runtime.autograd.recording import any_requires_grad
from everyorder.runtime.errors.autograd import WriteRefused
from everyorder.runtime.errors.call import KernelError
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.schema import parse_schema
from everyorder.runtime.schema.schema import Schema
from tests.autograd.made import grad_of, leaf
from tests.coded import code, coded

WrongReturnCount = coded(KernelError, "WrongReturnCount")
WrongReturnType = coded(KernelError, "WrongReturnType")


def schema_of(text: str) -> Schema:
    found = parse_schema(text)
    assert isinstance(found, Schema)
    return found


PAIR = schema_of("x::pair(Tensor self, Tensor? other, float p) -> (Tensor, Tensor)")


def test_only_what_is_wanted_is_saved() -> None:
    derivatives = derivatives_of(
        PAIR,
        {
            "self": lambda grad, other, p: None,
            "other": lambda grad1, self, self_shape, result1: None,
        },
    )
    first, second, both = (derivatives.plan(mask) for mask in (1, 2, 3))
    assert [each.name for each in first.arguments] == ["other", "p"]
    assert (first.results, first.holds) == ((), True)
    assert [each.name for each in second.arguments] == ["self", "self_shape"]
    assert [(each.name, each.place) for each in second.results] == [("result1", 1)]
    assert both.arguments == (
        *first.arguments,
        Saved(TENSOR, 0, "self", "{}"),
        *second.arguments[1:],
    )
    assert derivatives.plan(1) is first


def test_what_is_saved_has_its_version() -> None:
    derivatives = derivatives_of(
        PAIR,
        {"self": lambda grad, self, other, p, self_dtype, self_device, other_layout: 0},
    )
    x, y = tensor([1.0]), zeros(4, 2)[1:, 1:]
    y.add_(1)
    kept = derivatives.plan(1).keep(x, y, 0.5)
    assert kept[0][0] is x
    assert [each[1] for each in kept[:2]] == [0, 1]
    assert kept[2:] == [0.5, x.dtype, x.device, ((3, 1), (2, 1), 3)]


def test_a_formula_of_unknown_needs_is_refused() -> None:
    with pytest.raises(AssertionError, match="no arguments"):
        derivatives_of(PAIR, {"nobody": lambda grad: grad})
    derivatives = derivatives_of(PAIR, {"self": lambda grad, self_colour: grad})
    with pytest.raises(KeyError):
        derivatives.plan(1)
    joint = derivatives_of(PAIR, {("other", "self"): lambda grad, needs: grad})
    with pytest.raises(AssertionError, match="in order"):
        joint.plan(1)


def test_tensors_in_lists() -> None:
    x = leaf(1)
    assert not any_requires_grad([None, tensor([1.0])])
    assert any_requires_grad([None, x])
    y = core.cat([tensor([1.0], dtype="float64"), x])
    assert [edge and edge[0].name() for edge in y.grad_fn.next_edges] == [
        None,
        "AccumulateGrad",
    ]


def test_a_call_that_raises_records_nothing() -> None:
    x = leaf(1, 2, 3)
    before = x._history
    with pytest.raises(ValueError, match="core::add"):
        core.add(x, tensor([1.0, 2.0]))
    y = x * 1
    node = y.grad_fn
    with pytest.raises(ValueError, match="core::add_"):
        core.add_(y, tensor([1.0, 2.0]))
    assert y.grad_fn is node
    assert before is None
    assert y.tolist() == [1, 2, 3]


def test_meta_tensors_have_gradients_of_their_shape() -> None:
    x = tensor([[1.0, 2.0]], device="meta", requires_grad=True)
    y = (x * 2).exp().sum()
    y.backward()
    assert (grad_of(x).shape, str(grad_of(x).device)) == ((1, 2), "meta")


def test_sixteen_bit_floats() -> None:
    x = leaf(1, 2, dtype="bfloat16")
    (x * x).sum().backward()
    assert (str(grad_of(x).dtype), grad_of(x).tolist()) == ("bfloat16", [2, 4])


def test_steps_leave_nothing_behind() -> None:
    weight, x = leaf(*range(6)), tensor([1.0] * 6, dtype="float64")

    def step() -> None:
        view = (x * weight).view(2, 3)
        core.mul(view[0], 3).mul_(2).sum().backward()
        weight.grad = None

    def steps() -> int:
        for _ in range(200):
            step()
        return len(gc.get_objects())

    steps()
    gc.collect()
    gc.disable()
    try:
        before = steps()
        steps()
        assert len(gc.get_objects()) - before < 20
    finally:
        gc.enable()


def test_out_of_inference_mode_may_be_named() -> None:
    from everyorder.runtime import inference_mode

    with inference_mode():
        out = tensor([0.0])
    with pytest.raises(WriteRefused, check=code("InferenceTensorUsed")) as refused:
        core.exp_out(tensor([1.0]), out=out)
    assert refused.value.operator == "core::exp.out"


def test_views_of_integers_are_not_followed() -> None:
    whole: Any = tensor([1, 2, 3])
    assert whole[1:]._history is None
    real: Tensor = tensor([1.0, 2.0, 3.0])
    assert real[1:]._base is real


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("mul", lambda x: x * x),
        ("split", lambda x: x.split(1)),
        ("view", lambda x: x.view(2, 1)),
        ("t", lambda x: x.t()),
        ("exp_", lambda x: (x + 1.0).exp_()),
        (
            "native_layer_norm",
            lambda x: ops.core.native_layer_norm(x, [2], None, None, 0.5),
        ),
    ],
)
@pytest.mark.parametrize("result", [7, [1], "a"])
def test_what_a_kernel_returns_wrongly_is_named(
    name: str, call: Callable[[Tensor], object], result: object
) -> None:
    """Also by a kernel without annotations, and where the call is recorded."""
    x = tensor([1.0, 2.0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = Library("core", "IMPL", "CPU")
        library.impl(name, lambda *args: result)
    try:
        with pytest.raises((WrongReturnType, WrongReturnCount), match=f"core::{name}"):
            call(x)
    finally:
        library.close()
