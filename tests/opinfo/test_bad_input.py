"""Bad shapes, dtypes, devices and indices: refused by name, and nothing written.

True only here: a row is a call that must raise; torch must raise as well wherever it
knows the operator, so that nothing is refused here that people rely on elsewhere.
"""

import pickle
from typing import Any

import numpy as np
import pytest

from everyorder.runtime import Tensor
from everyorder.runtime.errors import EveryorderError
from tests.opinfo.info import Sample, handle, on_cpu, storage_of
from tests.opinfo.raising import refusal
from tests.opinfo.samples import array, truth, whole

F = "float32"
X = array(F, (3, 4), 1)
V = array(F, (4,), 2)
IMAGES = array(F, (1, 2, 4, 4), 3)
KERNEL = array(F, (3, 2, 3, 3), 4)
INT = array("int64", (3, 4), 5)
ODD = array(F, (5,), 6)

BAD: tuple[tuple[str, Sample], ...] = (
    ("add", Sample(X, ODD)),
    ("add_", Sample(V, X)),
    ("add", Sample(INT, INT, alpha=1.5)),
    ("mul", Sample(X, array(F, (3, 5), 1))),
    ("div", Sample(X, V, rounding_mode="up")),
    ("floor_divide", Sample(INT, 0)),
    ("remainder", Sample(INT, 0)),
    ("floor_divide_", Sample(INT, whole([1, 0, 1, 1]))),
    ("remainder_", Sample(INT, 0)),
    ("div", Sample(INT, 0, rounding_mode="floor")),
    ("div_", Sample(INT, 0, rounding_mode="trunc")),
    ("pow", Sample(INT, -1)),
    ("pow_", Sample(INT, -1)),
    ("exp_", Sample(INT)),
    ("bitwise_and", Sample(X, X)),
    ("lt", Sample(array("complex64", (2,), 1), 1)),
    ("where", Sample(truth([True, False]), X, X)),
    ("where", Sample(X, X, X)),
    ("clamp", Sample(X)),
    ("clamp.Tensor", Sample(X)),
    ("masked_fill", Sample(X, INT, 1)),
    ("masked_fill_", Sample(X, truth([True, False]), 1)),
    ("masked_fill_", Sample(V, truth([[True] * 4] * 2), 1)),
    ("gelu", Sample(X, approximate="fast")),
    ("sum", Sample(X, [2])),
    ("sum", Sample(X, [0, 0])),
    ("sum", Sample(X, [0, -2])),
    ("mean", Sample(INT)),
    ("max", Sample(array(F, (0, 3)))),
    ("min", Sample(array(F, (3, 0)))),
    ("amax", Sample(array(F, (0, 3)))),
    ("amin", Sample(array(F, (3, 0)), [1])),
    ("amin", Sample(array(F, (3, 2)), [2])),
    ("amax", Sample(array(F, (3, 2)), [1, -1])),
    ("amax", Sample(array("complex64", (3, 2)), [1])),
    ("max.dim", Sample(array(F, (3, 0)), 1)),
    ("max.dim", Sample(array(F, (3, 2)), 2)),
    ("min.dim", Sample(array("complex64", (3, 2)), 0)),
    ("max.other", Sample(X, ODD)),
    ("argmax", Sample(array(F, (0,)))),
    ("argmin", Sample(X, 5)),
    ("cumsum", Sample(X, 2)),
    ("var", Sample(INT)),
    ("std", Sample(INT)),
    ("softmax", Sample(X, 2)),
    ("log_softmax", Sample(INT, 1)),
    ("matmul", Sample(X, X)),
    ("matmul", Sample(X, array(F, (), 1))),
    ("matmul", Sample(X, array("float64", (4,), 1))),
    ("mm", Sample(X, V)),
    ("mm", Sample(X, array("float64", (4, 2), 1))),
    ("bmm", Sample(array(F, (2, 3, 4)), array(F, (3, 4, 2)))),
    ("dot", Sample(V, ODD)),
    ("dot", Sample(X, X)),
    ("linear", Sample(X, array(F, (2, 3), 1))),
    ("linear", Sample(X, array(F, (2, 4), 1), ODD)),
    ("layer_norm", Sample(X, [3])),
    ("layer_norm", Sample(X, [4], ODD)),
    ("native_layer_norm", Sample(X, [5], None, None, 1e-5)),
    ("nll_loss", Sample(X, whole([0, 1]))),
    ("nll_loss", Sample(X, whole([0, 1, 4]))),
    ("nll_loss", Sample(X, whole([0, -1, 1]))),
    ("nll_loss", Sample(X, whole([0, 1, 1]), ODD)),
    ("nll_loss_forward", Sample(X, whole([0, 1, 4]), V)),
    ("cross_entropy", Sample(X, whole([0, 1, 4]))),
    ("cross_entropy", Sample(X, whole([0, 1]))),
    ("cross_entropy", Sample(X, whole([0, 1, 2]), None, "average")),
    ("cross_entropy", Sample(X, whole([0, 1, 2]), None, "mean", -100, 1.5)),
    ("dropout", Sample(X, 1.5)),
    ("native_dropout", Sample(X, -0.5, True)),
    ("embedding", Sample(X, whole([0, 3]))),
    ("embedding", Sample(X, whole([-1]))),
    ("embedding", Sample(X, V)),
    ("conv2d", Sample(IMAGES, array(F, (3, 1, 3, 3), 1))),
    ("conv2d", Sample(IMAGES, array(F, (3, 2, 5, 5), 1))),
    ("conv2d", Sample(IMAGES, KERNEL, V)),
    ("conv2d", Sample(IMAGES, KERNEL, None, 0)),
    ("conv2d", Sample(IMAGES, KERNEL, None, 1, -1)),
    ("conv2d", Sample(IMAGES, KERNEL, None, 1, 0, 1, 2)),
    ("conv2d", Sample(IMAGES, array("float64", (3, 2, 3, 3), 1))),
    ("conv2d", Sample(X, KERNEL)),
    ("max_pool2d", Sample(IMAGES, 5)),
    ("max_pool2d", Sample(IMAGES, 2, 1, 2)),
    ("max_pool2d", Sample(IMAGES, 0)),
    ("max_pool2d", Sample(X, 2)),
    ("cat", Sample([X, V])),
    ("cat", Sample([X, array(F, (3, 5), 1)])),
    ("cat", Sample([X, X], 2)),
    ("cat", Sample([])),
    ("stack", Sample([X, V])),
    ("stack", Sample([X], 3)),
    ("stack", Sample([])),
    ("split", Sample(X, -1)),
    ("split", Sample(X, 0)),
    ("split.sizes", Sample(X, [1, 1])),
    ("split.sizes", Sample(X, [4, -1])),
    ("gather", Sample(X, 1, whole([[4]]))),
    ("gather", Sample(X, 1, whole([[-1]]))),
    ("gather", Sample(X, 1, whole([0]))),
    ("gather", Sample(X, 0, whole([[0] * 5]))),
    ("gather", Sample(X, 1, X)),
    ("scatter", Sample(X, 1, whole([[0, 4]]), X)),
    ("scatter_", Sample(X, 1, whole([[0, 9]]), X)),
    ("scatter_", Sample(X, 1, whole([[0, 1]]), INT)),
    ("scatter_.value", Sample(X, 1, whole([[0, 4]]), 1.0)),
    ("scatter_add_", Sample(X, 0, whole([[0], [3]]), X)),
    ("scatter_add", Sample(X, 0, whole([[0] * 4] * 4), X)),
    ("index_select", Sample(X, 0, whole([0, 3]))),
    ("index_select", Sample(X, 0, whole([[0]]))),
    ("index_select", Sample(X, 0, V)),
    ("index_add_", Sample(X, 0, whole([0, 3]), array(F, (2, 4), 1))),
    ("index_add", Sample(X, 0, whole([0]), array(F, (2, 4), 1))),
    ("index_add", Sample(X, 0, whole([0, 1]), array(F, (2, 3), 1))),
    ("index", Sample(X, [whole([3])])),
    ("index", Sample(X, [whole([-4])])),
    ("index", Sample(X, [whole([0, 1]), whole([0, 1, 2])])),
    ("index", Sample(X, [truth([True, False])])),
    ("index", Sample(X, [whole([0]), whole([0]), whole([0])])),
    ("index", Sample(X, [V])),
    ("index_put", Sample(X, [whole([0, 3])], V)),
    ("index_put_", Sample(X, [whole([0, 3])], V)),
    ("index_put_", Sample(X, [whole([0, 1])], ODD)),
    ("index_put_", Sample(X, [whole([0, 1])], array("int64", (4,), 1))),
    ("masked_select", Sample(X, truth([True, False]))),
    ("masked_select", Sample(X, INT)),
    ("sort", Sample(X, 2)),
    ("argsort", Sample(X, 5)),
    ("sort", Sample(array("complex64", (3,), 1))),
    ("topk", Sample(X, 5)),
    ("topk", Sample(X, -1)),
    ("flip", Sample(X, [0, 0])),
    ("flip", Sample(X, [2])),
    ("view", Sample(X, [5])),
    ("view", Sample(array(F, (3, 4), 1, layout="transposed"), [12])),
    ("view", Sample(X, [-1, -1])),
    ("reshape", Sample(X, [7])),
    ("reshape", Sample(array(F, (0, 3)), [-1, 0])),
    ("select", Sample(X, 0, 3)),
    ("select", Sample(X, 2, 0)),
    ("select", Sample(array(F, ()), 0, 0)),
    ("slice", Sample(X, 0, 0, 2, 0)),
    ("slice", Sample(X, 0, 0, 2, -1)),
    ("transpose", Sample(X, 0, 2)),
    ("permute", Sample(X, [0, 0])),
    ("permute", Sample(X, [0])),
    ("expand", Sample(X, [3, 5])),
    ("expand", Sample(X, [4])),
    ("expand", Sample(V, [-1, 4])),
    ("squeeze", Sample(X, [2])),
    ("unsqueeze", Sample(X, 3)),
    ("as_strided", Sample(X, [4, 4], [4, 1])),
    ("as_strided", Sample(X, [2], [-1])),
    ("as_strided", Sample(X, [2], [1, 1])),
    ("as_strided", Sample(X, [2], [1], -1)),
    ("t", Sample(array(F, (2, 2, 2)))),
    ("t_", Sample(array(F, (2, 2, 2)))),
    ("transpose_", Sample(X, 0, 2)),
    ("squeeze_", Sample(X, [2])),
    ("squeeze_", Sample(array(F, (1, 1)), [0, -2])),
    ("unsqueeze_", Sample(X, 3)),
    ("flatten", Sample(X, 1, 0)),
    ("diagonal", Sample(X, 0, 1, 1)),
    ("sum_to_size", Sample(X, [2, 4])),
    ("empty", Sample([2, -1])),
    ("full", Sample([-3], 1)),
    ("arange.start", Sample(1, 5, 0)),
    ("arange.start", Sample(1, 5, -1)),
    ("linspace", Sample(0, 1, -1)),
    ("eye", Sample(-1)),
    ("new_empty", Sample(X, [2, -1])),
    ("new_zeros", Sample(X, [-1])),
    ("new_ones", Sample(X, [-1])),
    ("new_full", Sample(X, [-1], 1)),
    ("new_full", Sample(INT, [2], 1j)),
    ("randint", Sample(5, 5, [2])),
    ("randperm", Sample(-1)),
    ("copy_", Sample(V, X)),
    ("copy_", Sample(X, ODD)),
    ("uniform_", Sample(X, 2.0, 1.0)),
    ("uniform_", Sample(INT)),
    ("normal_", Sample(X, 0.0, -1.0)),
    ("_local_scalar_dense", Sample(X)),
)


@pytest.mark.parametrize(
    ("name", "sample"), BAD, ids=[f"{n}-{i}" for i, (n, _) in enumerate(BAD)]
)
def test_bad_input_is_refused_by_name(name: str, sample: Sample) -> None:
    args, kwargs = sample.bound(on_cpu)
    flat = [t for each in args for t in (each if isinstance(each, list) else [each])]
    tensors = [each for each in flat if isinstance(each, Tensor)]
    before = [(storage_of(each), each._version, each.shape) for each in tensors]
    error = refusal(handle(name), args, kwargs, f"core::{name}({sample})")
    for tensor, (elements, version, shape) in zip(tensors, before, strict=True):
        np.testing.assert_array_equal(storage_of(tensor), elements)
        assert (tensor._version, tensor.shape) == (version, shape)
    text = str(error)
    called = {"_local_scalar_dense": "item()"}.get(name, f"`core::{name}`")
    assert called in text, f"core::{name}({sample}): {text}"
    assert pickle.loads(pickle.dumps(error)).fields() == error.fields()


# Where torch takes what is refused here, or knows nothing like it.
OURS_ALONE = {"as_strided", "_local_scalar_dense", "linspace"}


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "sample"), BAD, ids=[f"{n}-{i}" for i, (n, _) in enumerate(BAD)]
)
def test_torch_refuses_it_too(name: str, sample: Sample) -> None:
    pytest.importorskip("torch", reason="the extra `torch` is not installed")
    from tests.opinfo.table import ROWS
    from tests.opinfo.test_against_torch import on_torch, torch

    base = name.replace("_.", ".").removesuffix("_") if name not in WRITERS else name
    row = next(row for row in ROWS if row.name == base)
    if row.torch is None or name in OURS_ALONE:
        return
    args, kwargs = sample.bound(on_torch)
    function = row.torch(torch)
    if name != base:
        function = getattr(torch.Tensor, name.partition(".")[0])
    with pytest.raises((RuntimeError, IndexError, TypeError, ValueError)):
        function(*args, **kwargs)


WRITERS = ("copy_", "uniform_", "normal_")

PAIRS = ("add", "mul", "mm", "matmul", "where", "cat", "linear", "dot", "gather",
         "index_select", "embedding", "maximum", "add_")  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_devices_may_not_be_mixed(name: str) -> None:
    """A tensor on meta beside one on the CPU is refused by name."""
    square, other, places = array(F, (2, 2), 1), array(F, (2, 2), 2), whole([0, 1])
    calls: dict[str, Sample] = {
        "where": Sample(truth([True, False]), square, other),
        "cat": Sample([square, other]),
        "dot": Sample(array(F, (2,), 1), array(F, (2,), 2)),
        "gather": Sample(square, 0, whole([[0, 1]])),
        "index_select": Sample(square, 0, places),
        "embedding": Sample(square, places),
    }
    sample = calls.get(name, Sample(square, other))
    last = [*sample.arrays()][-1]

    def turned(value: Any) -> Any:
        return value.meta() if value is last else on_cpu(value)

    args, kwargs = sample.bound(turned)
    with pytest.raises(EveryorderError) as caught:
        handle(name)(*args, **kwargs)
    assert f"`core::{name}`" in str(caught.value), str(caught.value)
    assert "meta" in str(caught.value), str(caught.value)
