"""Every operator and dtype against NumPy or SciPy, and meta against the CPU."""

import numpy as np
import pytest

from everyorder.runtime import DType, Tensor
from everyorder.runtime.errors import EveryorderError
from tests.opinfo.info import (
    Array,
    OpInfo,
    Sample,
    assert_same,
    listed,
    on_cpu,
    on_meta,
)
from tests.opinfo.raising import refusal
from tests.opinfo.samples import ALL
from tests.opinfo.table import ROWS, VARIANTS

EVERY = [*ROWS, *VARIANTS]
# What cannot be told without elements; `index` only if there is a mask.
ON_ELEMENTS = ("masked_select", "nonzero", "equal", "_local_scalar_dense")


def cases(row: OpInfo) -> list[tuple[str, Sample, str]]:
    """Each sample in each dtype, and what to call it when it fails."""
    return [
        (dtype, sample, f"{row.name}[{dtype}]({sample})")
        for dtype in row.dtypes
        for sample in row.samples(dtype)
    ]


@pytest.mark.parametrize(
    "row", [row for row in EVERY if row.reference is not None], ids=repr
)
def test_values_are_those_of_the_reference(row: OpInfo) -> None:
    for dtype, sample, case in cases(row):
        args, kwargs = sample.bound(on_cpu)
        found = listed(row.call(*args, **kwargs))
        expected = row.run_reference(sample, dtype)
        assert len(found) == len(expected), case
        result = row.result(dtype)
        for one, other in zip(found, expected, strict=True):
            assert (one is None) == (other is None), case
            if one is None:
                continue
            if isinstance(one, Tensor):
                assert result in (None, one.dtype.name), f"{case}: {one.dtype}"
                assert one.shape == one.numpy().shape, case
                one = one.detach().numpy()
            assert_same(one, other, row.loose, case)


@pytest.mark.parametrize("row", EVERY, ids=repr)
def test_meta_agrees(row: OpInfo) -> None:
    for _, sample, case in cases(row):
        args, kwargs = sample.bound(on_meta)
        if not row.meta:
            continue
        if not any(isinstance(each, Array) for each in sample.arrays()):
            kwargs["device"] = "meta"
        found = listed(row.call(*args, **kwargs))
        args, kwargs = sample.bound(on_cpu)
        expected = listed(row.call(*args, **kwargs))
        assert len(found) == len(expected), case
        for one, other in zip(found, expected, strict=True):
            assert (one is None) == (other is None), case
            if one is not None:
                assert one.is_meta, case
                told = (one.shape, one.dtype.name, one.strides, one.offset)
                assert told == (
                    other.shape,
                    other.dtype.name,
                    other.strides,
                    other.offset,
                ), case


@pytest.mark.parametrize(
    "row", [row for row in EVERY if row.name in ON_ELEMENTS], ids=repr
)
def test_what_depends_on_elements_says_so_on_meta(row: OpInfo) -> None:
    args, kwargs = row.samples("float32")[0].bound(on_meta)
    with pytest.raises(EveryorderError) as caught:
        row.call(*args, **kwargs)
    called = {"_local_scalar_dense": "item()"}.get(row.name, f"core::{row.name}")
    assert called in str(caught.value)
    assert "meta" in str(caught.value)


@pytest.mark.parametrize("row", ROWS, ids=repr)
def test_other_dtypes_are_refused_by_name(row: OpInfo) -> None:
    """A dtype that a row does not list raises, and says which operator refuses it."""
    plain = [row.samples(row.dtypes[-1])[0]]
    if not row.dtypes or set(row.dtypes) == {*ALL} or row.name in UNLISTED:
        return
    for dtype in set(ALL) - {*row.dtypes}:
        for sample in plain:

            def turned(value: object, dtype: str = dtype, row: OpInfo = row) -> object:
                if isinstance(value, Array):
                    if value.values.dtype.name not in row.dtypes[-1:]:
                        return value.tensor()
                    with np.errstate(all="ignore"):
                        number = value.values.real.astype(np.float64)
                    return Array(number.astype(_numpy(dtype)), value.layout).tensor()
                return DType.named(dtype)

            args, kwargs = sample.bound(turned)
            if row.random or "dtype" in kwargs:
                continue
            error = refusal(row.call, args, kwargs, f"{row.name}[{dtype}]")
            told = str(error)
            assert f"core::{row.name}" in told, f"{row.name}[{dtype}]: {told}"
            assert dtype in told, f"{row.name}[{dtype}]: {told}"


# Rows whose samples leave out dtypes that the operator does take.
UNLISTED = {"native_layer_norm_backward", "clamp", "square", "any", "all"}


def _numpy(dtype: str) -> object:
    from everyorder.runtime.tensors.dtype_info import numpy_dtype

    return numpy_dtype(DType.named(dtype))


@pytest.mark.parametrize("row", [row for row in ROWS if row.random], ids=repr)
def test_random_numbers_come_from_the_seed(row: OpInfo) -> None:
    for dtype, sample, case in cases(row):
        results = []
        for _ in range(2):
            args, kwargs = sample.bound(on_cpu)
            results.append(listed(row.call(*args, **kwargs)))
        for one, other in zip(*results, strict=True):
            assert row.result(dtype) in (None, one.dtype.name), case
            assert one.shape == other.shape, case
            if "generator" in kwargs:
                np.testing.assert_array_equal(one.numpy(), other.numpy(), case)


RANGES = {
    "rand": (0.0, 1.0),
    "rand_like": (0.0, 1.0),
    "uniform_": (-1.0, 2.0),
    "randint": (-3.0, 5.0),
    "randperm": (0.0, 9.0),
    "random_.to": (0.0, 5.0),
    "random_.from": (2.0, 9.0),
}


@pytest.mark.parametrize("name", RANGES)
def test_random_numbers_stay_in_their_range(name: str) -> None:
    row = next(row for row in ROWS if row.name == name)
    low, high = RANGES[name]
    for _, sample, case in cases(row):
        args, kwargs = sample.bound(on_cpu)
        drawn = row.call(*args, **kwargs).numpy().astype(np.float64)
        assert ((drawn >= low) & (drawn < high)).all(), case
        if name == "randperm":
            assert sorted(drawn.tolist()) == [*range(drawn.size)], case
        elif drawn.size == 200:
            # Twelve standard deviations wide, for numbers that are spread evenly.
            assert abs(drawn.mean() - (low + high) / 2) < (high - low) / 4, case


def test_dropout_keeps_a_share_and_scales_it() -> None:
    row = next(row for row in ROWS if row.name == "native_dropout")
    for dtype, sample, case in cases(row):
        args, kwargs = sample.bound(on_cpu)
        result, mask = row.call(*args, **kwargs)
        assert mask.dtype.name == "bool", case
        x, p, train = (args[0].numpy().astype(np.float64), *args[1:])
        scale = 1 / (1 - p) if train else 1.0
        expected = np.where(mask.numpy(), x * scale, 0)
        assert_same(result.numpy(), expected, 4.0, case)
        if x.size == 400:
            assert 0.6 < mask.numpy().mean() < 0.9, case
        assert train or mask.numpy().all(), case
        assert result.dtype.name == dtype, case
