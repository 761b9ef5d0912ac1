"""The fast paths of reductions, softmax, losses and `cat`, beside the general ones.

A plain tensor takes the fast path, and float16 always the general one: both have to
agree on shapes, on values as near as float16 comes, and on what they refuse.
"""

from typing import Any

import numpy as np
import pytest

from runtime.errors.operands import (
    DimensionOutOfRange,
    DTypeRefused,
    IndexOutOfRange,
    ShapesDoNotFit,
    WrongOption,
)
from runtime.keys import DispatchKey, KeySet
from runtime.operators import core
from runtime.tensors.tensor import Tensor
from tests.coded import code, coded
from tests.operators.made import shown, tensor

NothingToReduce = coded(DimensionOutOfRange, "NothingToReduce")

X = np.array([[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]])
TARGETS = np.array([2, 0])


def x_row(x: Tensor) -> Tensor:
    """The first row, for weights and biases."""
    row: Tensor = core.clone(core.select(x, 0, 0))
    return row


CALLS: dict[str, Any] = {
    "sum": lambda x: core.sum(x),
    "sum of rows": lambda x: core.sum(x, [-1], True),
    "prod": lambda x: core.prod(x, [0]),
    "mean": lambda x: core.mean(x, [0, 1]),
    "argmax": lambda x: core.argmax(x, 1),
    "cumsum": lambda x: core.cumsum(x, -2),
    "cumsum of columns": lambda x: core.cumsum(core.t(x), 1),
    "argmin of all": lambda x: core.argmin(x),
    "softmax": lambda x: core.softmax(x, -1),
    "log_softmax": lambda x: core.log_softmax(x, 0),
    "softmax_backward": lambda x: core.softmax_backward(x, x, 1),
    "log_softmax_backward": lambda x: core.log_softmax_backward(x, x, -1),
    "cat": lambda x: core.cat([x, x, x], -1),
    "cat of one": lambda x: core.cat([x]),
    "transposed": lambda x: core.cat([core.t(x), core.t(x)], 1),
    "max": lambda x: core.amax(x, [1]),
    "min of all": lambda x: core.min(x),
    "layer_norm": lambda x: core.layer_norm(x, [3], x_row(x), x_row(x)),
    "layer_norm of all": lambda x: core.layer_norm(x, [2, 3]),
    "deviations": lambda x: core.native_layer_norm(x, [3], None, x_row(x), 1e-3)[2],
    "where": lambda x: core.where(core.lt(x, 0.5), x, core.neg(x)),
    "where transposed": lambda x: core.where(
        core.t(core.lt(x, 0.5)), core.t(x), core.clone(core.t(x))
    ),
    "clone": lambda x: core.clone(core.t(x)),
    "nll": lambda x: core.nll_loss(x, tensor(TARGETS, "int64")),
    "nll of each": lambda x: core.nll_loss(
        x, tensor(TARGETS, "int64"), reduction="none"
    ),
    "nll ignoring": lambda x: core.nll_loss(
        x, tensor(TARGETS, "int64"), reduction="sum", ignore_index=2
    ),
    "nll_backward": lambda x: core.nll_loss_backward(
        core.sum(x), x, tensor(TARGETS, "int64"), None, "mean", -100, core.mean(x)
    ),
    "nll_backward of each": lambda x: core.nll_loss_backward(
        core.sum(x, [1]),
        x,
        tensor(TARGETS, "int64"),
        None,
        "none",
        -100,
        core.mean(x),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_both_ways_agree(name: str) -> None:
    short: Tensor = CALLS[name](tensor(X, "float64"))
    general: Tensor = CALLS[name](tensor(X, "float16"))
    assert short.shape == general.shape
    found = core.to(general, dtype=short.dtype)
    np.testing.assert_allclose(found.numpy(), short.numpy(), rtol=4e-3, atol=2e-3)


REFUSED: dict[str, tuple[Any, type[Exception]]] = {
    "sum": (lambda x: core.sum(x, [2]), DimensionOutOfRange),
    "argmax": (lambda x: core.argmax(x, 2), DimensionOutOfRange),
    "max": (lambda x: core.max(core.slice(x, 0, 2)), NothingToReduce),
    "amin": (lambda x: core.amin(x, [0, 0]), DimensionOutOfRange),
    "argmin": (lambda x: core.argmin(core.slice(x, 0, 2)), NothingToReduce),
    "native_layer_norm": (
        lambda x: core.native_layer_norm(x, [2], None, None, 1e-5),
        ShapesDoNotFit,
    ),
    "where": (lambda x: core.where(x, x, x), DTypeRefused),
    "softmax": (lambda x: core.softmax(x, 2), DimensionOutOfRange),
    "softmax_backward": (
        lambda x: core.softmax_backward(x, x, -3),
        DimensionOutOfRange,
    ),
    "cat": (lambda x: core.cat([x, x], 2), DimensionOutOfRange),
    "nll_loss_forward": (
        lambda x: core.nll_loss_forward(x, tensor([0, 3], "int64")),
        IndexOutOfRange,
    ),
    "nll_loss_backward": (
        lambda x: core.nll_loss_backward(
            core.sum(x),
            x,
            tensor([0, 3], "int64"),
            None,
            "mean",
            -100,
            core.sum(x),
        ),
        IndexOutOfRange,
    ),
}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", REFUSED)
def test_both_ways_refuse_by_the_name_of_the_operator(name: str, dtype: str) -> None:
    call, kind = REFUSED[name]
    with pytest.raises(kind) as caught:
        call(tensor(X, dtype))
    assert caught.value.operator == f"core::{name}"  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["sum", "prod", "mean"])
@pytest.mark.parametrize("given", ["float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("wanted", ["float16", "bfloat16", "float32", "int64"])
def test_what_is_summed_is_converted_before(name: str, given: str, wanted: str) -> None:
    if name == "mean" and wanted == "int64":
        return
    x = tensor([1.75, 0.5, 2.0], given)
    kind = tensor(0, wanted).dtype
    found = getattr(core, name)(x, dtype=kind)
    assert shown(found) == shown(getattr(core, name)(core.to(x, dtype=kind)))


def test_the_running_sum_in_a_narrow_dtype() -> None:
    found = core.cumsum(tensor([1.5, 2.0]), 0, dtype=tensor(0, "float16").dtype)
    assert shown(found) == ("float16", [1.5, 3.5])


def test_nothing_to_join_is_refused() -> None:
    for name in ("cat", "stack"):
        with pytest.raises(WrongOption) as caught:
            getattr(core, name)([])
        assert caught.value.fields() == {
            "operator": f"core::{name}",
            "argument": "tensors",
            "found": "an empty list",
            "fits": "one or more",
        }


def test_nothing_to_join_below_the_dispatcher() -> None:
    with pytest.raises(WrongOption):
        core.cat.redispatch(KeySet([DispatchKey.CPU]), [])


def test_joining_where_no_backend_does() -> None:
    """The composite: by copies, for backends without a kernel of their own."""
    from runtime.operators.arranging import cat_anywhere

    x, y = tensor([[1.0], [2.0]]), tensor([[3, 4], [5, 6]], "int64")
    assert shown(cat_anywhere([x, y], 1)) == ("float32", [[1, 3, 4], [2, 5, 6]])
    with pytest.raises(ShapesDoNotFit, check=code("ShapesDoNotFit")):
        cat_anywhere([x, y], 0)
