"""Targets that do not fit are refused, and nothing is written."""

from typing import Any

import numpy as np
import pytest

from everyorder.runtime import Tensor
from everyorder.runtime.errors.tensor import DevicesDiffer, TargetRefused
from tests.coded import coded
from tests.opinfo.info import (
    Array,
    OpInfo,
    listed,
    on_cpu,
    storage_of,
    targets_of,
)
from tests.opinfo.raising import refusal
from tests.opinfo.table import ROWS
from tests.opinfo.test_schemas import dtype_for

TargetDType = coded(TargetRefused, "TargetDType")
TargetOverlaps = coded(TargetRefused, "TargetOverlaps")
TargetShape = coded(TargetRefused, "TargetShape")
TargetsOverlap = coded(TargetRefused, "TargetsOverlap")

OUT = [row for row in ROWS if row.form("out")]
SEVERAL = [row for row in OUT if len(targets_of(row.form("out"))) > 1]


def refused(handle: Any, args: Any, kwargs: Any, kind: Any, target: Tensor) -> str:
    """Call what must raise `kind` by name and leave every tensor as it was."""
    tensors = [each for each in (*args, *kwargs.values()) if isinstance(each, Tensor)]
    hosted = [each for each in tensors if not each.is_meta]
    before = [(storage_of(t), t._version, t.shape, t.strides) for t in hosted]
    case = f"{handle} with a target of {target.shape} {target.dtype}"
    error = refusal(handle, args, kwargs, case)
    assert isinstance(error, kind), f"{handle}: {error!r}"
    assert f"`{handle.schema.name}`" in str(error), str(error)
    for tensor, (elements, version, shape, strides) in zip(hosted, before, strict=True):
        np.testing.assert_array_equal(storage_of(tensor), elements, str(handle))
        assert tensor._version == version, f"{handle}: the version was counted"
        assert (tensor.shape, tensor.strides) == (shape, strides), str(handle)
    return str(error)


@pytest.mark.parametrize("row", OUT, ids=repr)
def test_wrong_targets(row: OpInfo) -> None:
    handle = row.form("out")
    sample = row.samples(dtype_for(row))[0]
    args, kwargs = sample.bound(on_cpu)
    results = [each.numpy() for each in listed(row.call(*args, **kwargs))]
    names = targets_of(handle)
    lower = {"f": "int64", "c": "float32", "i": "bool", "u": "bool"}
    for name, values in zip(names, results, strict=True):
        wrong: list[tuple[Any, Tensor]] = [
            (TargetShape, Array(np.zeros((7, *values.shape), values.dtype)).tensor()),
            (DevicesDiffer, Array(np.zeros(values.shape, values.dtype)).meta()),
        ]
        if values.dtype.kind in lower:
            narrow = np.zeros(values.shape, lower[values.dtype.kind])
            wrong.append((TargetDType, Array(narrow).tensor()))
        if values.ndim and values.shape[0] > 1:
            flat = Array(np.zeros(values.shape, values.dtype), "expanded")
            wrong.append((TargetOverlaps, flat.tensor()))
        for kind, target in wrong:
            fitting = [Array(np.ones(each.shape, each.dtype)) for each in results]
            named = {
                **dict(zip(names, map(on_cpu, fitting), strict=True)),
                name: target,
            }
            refused(handle, args, {**kwargs, **named}, kind, target)


@pytest.mark.parametrize("row", SEVERAL, ids=repr)
def test_targets_that_share_memory(row: OpInfo) -> None:
    """Two views of one storage, whose elements meet."""
    handle = row.form("out")
    args, kwargs = row.samples(dtype_for(row))[0].bound(on_cpu)
    results = [each.numpy() for each in listed(row.call(*args, **kwargs))]
    counts = [values.size for values in results]
    whole = Array(np.zeros(max(counts), np.complex128)).tensor()
    targets = [
        whole[:count].reshape(values.shape)
        for count, values in zip(counts, results, strict=True)
    ]
    named = dict(zip(targets_of(handle), targets, strict=True))
    text = refused(handle, args, {**kwargs, **named}, TargetsOverlap, targets[1])
    assert f"`{targets_of(handle)[1]}` and to `{targets_of(handle)[0]}`" in text


# In-place views write nothing, so that what overlaps is as good as any other.
IN_PLACE = [row for row in ROWS if row.form("in-place") and not row.view]


@pytest.mark.parametrize("row", IN_PLACE, ids=repr)
def test_wrong_targets_in_place(row: OpInfo) -> None:
    """An expanded tensor, a dtype too narrow, and one too small."""
    handle = row.form("in-place")
    sample = row.samples(dtype_for(row))[0]
    args, kwargs = sample.bound(on_cpu)
    first = next(sample.arrays()).values
    flat = Array(np.broadcast_to(first[:1], first.shape).copy(), "expanded").tensor()
    refused(handle, [flat, *args[1:]], kwargs, TargetOverlaps, flat)
    result = row.call(*args, **kwargs)
    if row.kind == "floating" and row.result("int64") == "float32":
        whole = Array(np.ones(first.shape, np.int64)).tensor()
        refused(handle, [whole, *args[1:]], kwargs, TargetDType, whole)
    if len(args) > 1 and isinstance(args[1], Tensor) and result.ndim == 2:
        if row.name in ("masked_fill", "index_put", "scatter", "scatter_add"):
            return
        small = Array(first[:1].copy()).tensor()
        if row.call(small, *args[1:], **kwargs).shape != small.shape:
            refused(handle, [small, *args[1:]], kwargs, TargetShape, small)
