"""Reductions, extremes and variances: conversion, methods, and what is refused."""

from typing import Any

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime import Tensor
from everyorder.runtime.errors.call import CallError
from everyorder.runtime.errors.tensor import (
    DTypeRefused,
    IndexOutOfRange,
    TargetRefused,
)
from everyorder.runtime.keys import DispatchKey, KeySet
from everyorder.runtime.operators import core
from tests.coded import code
from tests.operators.tensors import LETTERS, shown, tensor

VALUES = np.array([[[3, 1, 2, 5], [0, 7, 1, 2], [4, 4, 1, 1]], [[1, 2, 3, 4]] * 3])


@pytest.mark.parametrize("name", ["amax", "amin", "argmax", "argmin"])
def test_nothing_has_no_extreme(name: str) -> None:
    x = tensor(np.ones((2, 0)))
    with pytest.raises(IndexOutOfRange, check=code("NothingToReduce")) as caught:
        getattr(core, name)(x, 1)
    assert caught.value.fields() == {
        "operator": f"core::{name}",
        "shape": (2, 0),
        "dims": (1,),
    }
    assert str(caught.value).endswith("\n  fits: dimensions whose sizes are not 0")
    with pytest.raises(IndexOutOfRange, check=code("NothingToReduce")):
        getattr(core, name)(x)
    assert getattr(core, name)(x, 0).shape == (0,)


@pytest.mark.parametrize(("dim", "repeated"), [([3], False), ([0, -3], True)])
def test_dimensions_that_are_not_there(dim: list[int], repeated: bool) -> None:
    with pytest.raises(IndexOutOfRange) as caught:
        core.sum(tensor(VALUES), dim)
    assert caught.value.fields() == {
        "operator": "core::sum",
        "dim": dim[-1],
        "shape": (2, 3, 4),
        "repeated": repeated,
    }
    assert str(caught.value).endswith("fits: -3 to 2, each once")


def test_dtype_converts_first() -> None:
    whole = LETTERS["l"]
    assert shown(core.sum(tensor([1.7, 2.6]), dtype=whole)) == ("int64", 3)
    double = LETTERS["d"]
    assert shown(core.mean(tensor([1, 2], "int64"), dtype=double)) == ("float64", 1.5)
    assert shown(core.cumsum(tensor([1, 2]), 0, dtype=whole)) == ("int64", [1, 3])
    half = core.sum(tensor([1.0] * 5000, "float16"))
    assert shown(half) == ("float16", 5000.0)
    with pytest.raises(DTypeRefused) as caught:
        core.mean(tensor([1, 2], "int64"))
    assert caught.value.fits == "floating-point and complex dtypes; `dtype=` converts"


def test_the_deviation_where_the_backend_has_none() -> None:
    """The composite: the root of the variance, refused by its own name."""
    x = tensor([[1.0, 2.0, 4.0], [0.0, 0.0, 3.0]], "float64")
    other = KeySet([DispatchKey.PrivateUse1])
    found = core.std.redispatch(other, x, [1], correction=0, keepdim=True)
    assert found.tolist() == core.std(x, [1], correction=0, keepdim=True).tolist()
    with pytest.raises(DTypeRefused) as caught:
        core.std.redispatch(other, tensor([1, 2], "int64"))
    assert caught.value.operator == "core::std"


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "cumsum"])
@pytest.mark.parametrize("given", ["float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("wanted", ["float16", "bfloat16", "float32", "int64"])
def test_what_is_summed_is_converted_before(name: str, given: str, wanted: str) -> None:
    if name == "mean" and wanted == "int64":
        return
    x = tensor([1.75, 0.5, 2.0], given)
    kind = tensor(0, wanted).dtype
    run, dims = getattr(core, name), [0] if name == "cumsum" else []
    found = run(x, *dims, dtype=kind)
    assert shown(found) == shown(run(core.to(x, dtype=kind), *dims, dtype=kind))


def test_the_place_among_all_elements() -> None:
    x = tensor([[1.0, np.nan, 3.0], [5.0, 2.0, 5.0]])
    assert core.argmax(x).item() == 1
    assert core.argmax(x, keepdim=True).shape == (1, 1)
    assert core.argmin(tensor([3, 1, 1], "int64")).item() == 1


def test_out_of_another_shape_is_refused() -> None:
    out = core.empty([3])
    with pytest.raises(TargetRefused, check=code("TargetShape")) as caught:
        core.sum_out(tensor(VALUES), [0, 1], out=out)
    assert str(caught.value) == (
        "`core::sum.out` computes shape (4,), which cannot be written to `out` of "
        "shape\n(3,).\n"
        "  fits: shape (4,), or a tensor without elements, which is resized"
    )


ROWS = [[3.0, 7.0, 7.0], [float("nan"), 1.0, float("nan")], [-0.0, 0.0, -1.0]]
EXTREMES = ("max", "min")


def method(x: Tensor, name: str) -> Any:
    return getattr(x, name)


@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_an_extreme_along_a_dimension_has_values_and_places(
    name: str, dim: int, keepdim: bool
) -> None:
    x = tensor(ROWS)
    found = method(x, name)(dim, keepdim)
    places = getattr(np, f"arg{name}")(x.numpy(), dim, keepdims=True)
    values = np.take_along_axis(x.numpy(), places, dim)
    if not keepdim:
        places, values = places.squeeze(dim), values.squeeze(dim)
    np.testing.assert_equal(found.values.numpy(), values)
    assert shown(found.indices) == ("int64", places.tolist())
    values, indices = found
    assert values is found.values
    assert indices is found.indices
    for again in (
        method(x, name)(dim=dim, keepdim=keepdim),
        method(x, name)(axis=dim, keepdims=keepdim),
        getattr(runtime, name)(x, dim, keepdim=keepdim),
    ):
        np.testing.assert_equal(again[0].numpy(), found[0].numpy())
        assert shown(again[1]) == shown(found[1])


@pytest.mark.parametrize("name", EXTREMES)
def test_an_extreme_of_two_tensors(name: str) -> None:
    x, y = tensor([[1.0, 5.0]]), tensor([[2.0], [3.0]])
    pair = {"max": "maximum", "min": "minimum"}[name]
    expected = shown(getattr(runtime, pair)(x, y))
    assert shown(method(x, name)(y)) == expected
    assert shown(method(x, name)(other=y)) == expected
    assert shown(getattr(runtime, name)(x, y.numpy())) == expected
    out = tensor([[0.0, 0.0]] * 2)
    getattr(runtime, name)(x, y, out=out)
    assert shown(out) == expected
    assert shown(getattr(core, f"{name}_other")(x, y)) == expected


@pytest.mark.parametrize("name", EXTREMES)
def test_an_extreme_of_all(name: str) -> None:
    x = tensor([[3.0, -1.0], [2.0, 5.0]])
    expected = getattr(np, name)(x.numpy())
    assert shown(method(x, name)()) == ("float32", expected)
    assert getattr(np, name)(x).item() == expected
    out = tensor(0.0)
    getattr(runtime, name)(x, out=out)
    assert out.item() == expected
    for wrong in ({"keepdim": True}, {"bogus": 1}):
        with pytest.raises(CallError, check=code("UnknownArgument")):
            method(x, name)(**wrong)


@pytest.mark.parametrize("name", EXTREMES)
def test_dimensions_of_extremes_that_are_refused(name: str) -> None:
    x = tensor([[3.0, -1.0], [2.0, 5.0]])
    for dim in (2, -3):
        with pytest.raises(IndexOutOfRange, check=code("DimensionOutOfRange")):
            method(x, name)(dim)
    for wrong in (None, 1.5, [0], [0, 1], True):
        with pytest.raises(CallError):
            method(x, name)(wrong)
    nothing = core.empty([0, 3])
    with pytest.raises(IndexOutOfRange, check=code("NothingToReduce")):
        method(nothing, name)(0)
    values, indices = method(nothing, name)(1)
    assert (values.shape, indices.shape) == ((0,), (0,))


@pytest.mark.parametrize("name", ["amax", "amin"])
def test_extremes_over_several_dimensions(name: str) -> None:
    x = tensor(np.arange(24).reshape(2, 3, 4) % 7, "float64")
    for dims in (0, -1, (0, 2), [1, 2], (), [0, 1, 2]):
        for keepdim in (False, True):
            axis = tuple(np.atleast_1d(dims).astype(int)) or None
            expected = getattr(np, name)(x.numpy(), axis, keepdims=keepdim)
            found = method(x, name)(dims, keepdim)
            assert found.shape == expected.shape
            np.testing.assert_equal(found.numpy(), expected)
            again = getattr(runtime, name)(x, dim=dims, keepdim=keepdim)
            np.testing.assert_equal(again.numpy(), expected)
    for wrong in ([3], [0, -3], -4):
        with pytest.raises(IndexOutOfRange, check=code("DimensionOutOfRange")):
            method(x, name)(wrong)


def gradient(call: Any, values: Any) -> Any:
    x = tensor(values, "float64").requires_grad_()
    call(x).sum().backward()
    assert x.grad is not None
    return x.grad.tolist()


def test_equal_elements_share_the_gradient_unless_one_is_chosen() -> None:
    values = [[2.0, 1.0, 2.0], [4.0, 4.0, 4.0]]
    third = 1 / 3
    assert gradient(lambda x: x.amax(1), values) == [[0.5, 0, 0.5], [third] * 3]
    assert gradient(lambda x: x.amax(1, True), values) == [[0.5, 0, 0.5], [third] * 3]
    assert gradient(lambda x: x.max(), values) == [[0, 0, 0], [third] * 3]
    assert gradient(lambda x: x.amin((0, 1)), values) == [[0, 1, 0], [0, 0, 0]]
    assert gradient(lambda x: x.max(1).values, values) == [[1, 0, 0], [1, 0, 0]]
    assert gradient(lambda x: x.min(0, True)[0], values) == [[1, 1, 1], [0, 0, 0]]
    assert gradient(lambda x: x.max(x.detach()), values) == [[0.5] * 3] * 2


SPREADS = (
    *("x.{}()", "x.{}(False)", "x.{}(True)", "x.{}(unbiased=False)", "x.{}(0)"),
    *("x.{}(0, False)", "x.{}(1, True, True)", "x.{}([0, 1], False, True)"),
    *("x.{}(dim=0, unbiased=False)", "x.{}(None, False)", "x.{}((), False)"),
    *("x.{}(0, correction=0)", "x.{}(correction=2, keepdim=True)"),
    *("R.{}(x, False)", "R.{}(x, 1, unbiased=True, keepdim=True)"),
    *("R.{}(x, dim=None, correction=0)", "x.{}(dim=1, unbiased=False, keepdim=True)"),
)
WRONG_SPREADS = (
    *("x.{}(0, correction=0, unbiased=False)", "x.{}(False, correction=1)"),
    *("x.{}(0, 1)", "x.{}(False, False)", "x.{}(unbiased=1)", "x.{}(unbiased=None)"),
    *("x.{}(0, False, unbiased=True)", "x.{}(0, False, True, 1)", "x.{}(bogus=1)"),
    *("x.{}(0, False, bogus=1)", "x.{}(0, dim=1, unbiased=False)"),
)


@pytest.mark.torch
@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("call", SPREADS)
def test_spreads_take_unbiased(call: str, name: str) -> None:
    """As torch does; `test_the_divisor_of_a_spread` asks NumPy."""
    text = call.format(name)
    x = tensor([[1.0, 2.0], [3.0, 5.0]], "float64")
    found = eval(text, {"x": x, "R": runtime}).numpy()  # those above
    torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
    same = {"x": torch.tensor(x.tolist(), dtype=torch.float64), "R": torch}
    expected = eval(text, same).numpy()  # as above
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, 1e-14)


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("call", WRONG_SPREADS)
def test_spreads_that_make_no_sense(call: str, name: str) -> None:
    text = call.format(name)
    x = tensor([[1.0, 2.0], [3.0, 5.0]], "float64")
    with pytest.raises(CallError):
        eval(text, {"x": x, "R": runtime})  # those above


@pytest.mark.parametrize("name", ["var", "std"])
def test_the_divisor_of_a_spread(name: str) -> None:
    x = tensor([1.0, 2.0, 4.0], "float64")
    for unbiased in (False, True):
        expected = getattr(np, name)(x.numpy(), ddof=int(unbiased))
        assert method(x, name)(unbiased).item() == pytest.approx(expected, rel=1e-14)
        out = core.empty([], dtype=x.dtype)
        getattr(runtime, name)(x, None, unbiased, out=out)
        assert out.item() == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_the_root_of_a_variance_that_overflows(dtype: str) -> None:
    x = tensor([[1e30, -1e30, 0.0], [1.0, 2.0, 3.0]], dtype)
    assert x.std(1).tolist() == pytest.approx([1e30, 1.0])
    assert x.var(1).tolist() == [float("inf"), 1.0]
    assert x.std(1).dtype.name == "float32"
