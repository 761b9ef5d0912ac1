"""The operators of `core` do what they say: no check raises a false alarm.

Samples, in few dtypes, of every operator of the table, its in-place form and its out=
form; of the differentiable ones, with gradients against finite differences.
"""

from typing import Any

import numpy as np
import pytest

from everyorder.runtime import Tensor
from everyorder.runtime.custom.opcheck import CHECKS, opcheck
from tests.opinfo.info import Array, OpInfo, Sample, listed, on_cpu, targets_of
from tests.opinfo.table import ROWS
from tests.opinfo.test_gradients import DIFFERENTIABLE, FIXED, usable

# Its result shows memory that nobody else holds, so its schema says nothing of that.
ALIASING = "_unsafe_view"
CHECKED = [row for row in ROWS if row.name != ALIASING]
# One of each kind; sharing and shapes do not depend on more.
DTYPES = ("float32", "int64", "bool")
# Samples beyond these are like those before.
MOST_SAMPLES = 6


def check(row: OpInfo, handle: Any, args: Any, kwargs: Any, case: str) -> None:
    report = opcheck(handle, args, kwargs, test_utils=[*CHECKS], raise_exception=False)
    assert report == dict.fromkeys(CHECKS, "SUCCESS"), f"{handle}({case})"


@pytest.mark.parametrize("row", CHECKED, ids=repr)
def test_every_operator(row: OpInfo) -> None:
    for dtype in DTYPES:
        samples = row.samples(dtype) if dtype in row.dtypes else []
        for sample in samples[:MOST_SAMPLES]:
            check(row, row.call, *sample.bound(on_cpu), repr(sample))


@pytest.mark.parametrize("row", [row for row in ROWS if row.form("in-place")], ids=repr)
def test_in_place_forms(row: OpInfo) -> None:
    dtype = next(name for name in (*DTYPES, *row.dtypes) if name in row.dtypes)
    for sample in row.samples(dtype)[:MOST_SAMPLES]:
        if fits_in_place(row, sample):
            args, kwargs = sample.bound(on_cpu)
            check(row, row.form("in-place"), args, kwargs, repr(sample))


def fits_in_place(row: OpInfo, sample: Sample) -> bool:
    args, kwargs = sample.bound(on_cpu)
    first = args[0]
    if not isinstance(first, Tensor) or next(sample.arrays()).layout == "expanded":
        return False
    result = row.call(*args, **kwargs)
    fits = first.dtype.is_floating or not result.dtype.is_floating
    return bool(result.shape == first.shape and fits)


@pytest.mark.parametrize("row", [row for row in ROWS if row.form("out")], ids=repr)
def test_out_forms(row: OpInfo) -> None:
    dtype = next(name for name in (*DTYPES, *row.dtypes) if name in row.dtypes)
    for sample in row.samples(dtype)[:MOST_SAMPLES]:
        args, kwargs = sample.bound(on_cpu)
        results = [each.numpy() for each in listed(row.call(*args, **kwargs))]
        fitting = [
            Array(np.zeros(each.shape, each.dtype), "transposed") for each in results
        ]
        empty = [Array(np.zeros(0, each.dtype)) for each in results]
        names = targets_of(row.form("out"))
        for targets in (fitting, empty):
            named = dict(zip(names, map(on_cpu, targets), strict=True))
            check(row, row.form("out"), args, {**kwargs, **named}, repr(sample))


def requiring(row: OpInfo, sample: Sample) -> tuple[Any, Any]:
    """The arguments of a sample; those with gradients require them."""
    fixed = FIXED.get(row.name, lambda at: False)
    at = -1

    def turned(value: Any) -> Any:
        nonlocal at
        if not isinstance(value, Array):
            return on_cpu(value)
        at += 1
        made = value.tensor()
        wanted = value.values.dtype.kind in "fc" and not fixed(at)
        return made.requires_grad_() if wanted else made

    return sample.bound(turned)


@pytest.mark.parametrize(
    "row", [row for row in DIFFERENTIABLE if row.name != ALIASING], ids=repr
)
def test_gradients(row: OpInfo) -> None:
    for sample in usable(row)[:2]:
        args, kwargs = requiring(row, sample)
        check(row, row.call, args, kwargs, repr(sample))
        if row.form("in-place") and fits_in_place(row, sample):
            check(row, row.form("in-place"), args, kwargs, repr(sample))
