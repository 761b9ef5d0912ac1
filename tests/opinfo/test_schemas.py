"""What an operator writes to and what shares storage is what its schema says."""

from typing import Any

import numpy as np
import pytest

from everyorder.runtime import Tensor
from tests.opinfo.info import (
    Array,
    OpInfo,
    Sample,
    listed,
    on_cpu,
    storage_of,
    targets_of,
)
from tests.opinfo.table import ROWS

# One real dtype where there is one: sharing does not depend on the elements.
PREFERRED = ("float32", "int64", "bool", "complex64")


def dtype_for(row: OpInfo) -> str:
    return next(name for name in PREFERRED if name in row.dtypes)


def tensors_by_argument(handle: Any, args: Any, kwargs: Any) -> dict[str, list[Tensor]]:
    names = [argument.name for argument in handle.schema.arguments]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    return {
        name: [each for each in listed(value) if isinstance(each, Tensor)]
        for name, value in given.items()
    }


def check(handle: Any, args: Any, kwargs: Any, case: str) -> None:
    """Call, and compare what changed and what is shared with the schema."""
    schema = handle.schema
    given = tensors_by_argument(handle, args, kwargs)
    before = {
        name: [(storage_of(t), t._version, t.shape, t.strides) for t in tensors]
        for name, tensors in given.items()
    }
    results = handle(*args, **kwargs)
    for argument in schema.arguments:
        for tensor, (elements, version, shape, strides) in zip(
            given.get(argument.name, ()), before.get(argument.name, ()), strict=True
        ):
            where = f"{case}: {argument.name}"
            if argument.is_write:
                assert tensor._version == version + 1, f"{where}: {tensor._version}"
                continue
            np.testing.assert_array_equal(storage_of(tensor), elements, where)
            assert tensor._version == version, where
            assert (tensor.shape, tensor.strides) == (shape, strides), where
    many = isinstance(results, list) and len(schema.returns) == 1
    for number, result in enumerate(listed(results)):
        if not isinstance(result, Tensor):
            continue
        place = 0 if many else number
        for at, argument in enumerate(schema.arguments):
            for tensor in given.get(argument.name, ()):
                shared = tensor.storage() is result.storage()
                allowed = schema.may_alias(at, place) or (
                    many and schema.may_contain_alias(at, place)
                )
                assert allowed or not shared, f"{case}: {argument.name}"
                if argument.is_write and schema.may_alias(at, place):
                    assert result is tensor, f"{case}: {argument.name} is not returned"


@pytest.mark.parametrize("row", ROWS, ids=repr)
def test_functional_forms(row: OpInfo) -> None:
    if row.name == "_unsafe_view":  # it is for what nobody else holds
        return
    for sample in row.samples(dtype_for(row)):
        args, kwargs = sample.bound(on_cpu)
        check(row.call, args, kwargs, f"{row.name}({sample})")


@pytest.mark.parametrize("row", [row for row in ROWS if row.view], ids=repr)
def test_views_share_their_storage(row: OpInfo) -> None:
    if row.name == "sum_to_size":
        return
    args, kwargs = row.samples(dtype_for(row))[0].bound(on_cpu)
    for result in listed(row.call(*args, **kwargs)):
        assert result.storage() is args[0].storage()
        assert result.device is args[0].device


IN_PLACE = [row for row in ROWS if row.form("in-place")]


@pytest.mark.parametrize("row", [row for row in IN_PLACE if row.view], ids=repr)
def test_in_place_views(row: OpInfo) -> None:
    """The target becomes what the functional form shows; no element is written."""
    handle = row.form("in-place")
    assert {"inplace", "inplace_view"} <= {*handle.tags}
    for sample in row.samples(dtype_for(row)):
        args, kwargs = sample.bound(on_cpu)
        case = f"{handle}({sample})"
        expected, elements = row.call(*args, **kwargs), storage_of(args[0])
        check(handle, args, kwargs, case)
        np.testing.assert_array_equal(storage_of(args[0]), elements, case)
        for part in ("shape", "strides", "offset", "dtype"):
            assert getattr(args[0], part) == getattr(expected, part), case
        assert args[0].storage() is expected.storage(), case
        np.testing.assert_array_equal(args[0].numpy(), expected.numpy(), case)


@pytest.mark.parametrize("row", [row for row in IN_PLACE if not row.view], ids=repr)
def test_in_place_forms(row: OpInfo) -> None:
    """The target keeps its place; its elements are those of the functional form."""
    handle = row.form("in-place")
    done = 0
    for sample in row.samples(dtype_for(row)):
        args, kwargs = sample.bound(on_cpu)
        case = f"{handle}({sample})"
        if (
            not isinstance(args[0], Tensor)
            or next(sample.arrays()).layout == "expanded"
        ):
            continue
        expected = row.call(*args, **kwargs)
        if expected.shape != args[0].shape:
            continue
        if expected.dtype.is_floating and not args[0].dtype.is_floating:
            continue
        junk = outside(args[0])
        check(handle, args, kwargs, case)
        found = args[0].numpy()
        with np.errstate(all="ignore"):
            wanted = expected.numpy().astype(found.dtype)
        np.testing.assert_array_equal(found, wanted, case)
        np.testing.assert_array_equal(outside(args[0]), junk, case)
        done += 1
    assert done


def outside(tensor: Tensor) -> Any:
    """The elements of the storage that the tensor does not reach."""
    array = np.array(tensor.storage().array, copy=True)
    reached = np.zeros(array.shape, np.bool_)
    strides = tuple(stride for stride in tensor.strides)
    view = np.lib.stride_tricks.as_strided(
        reached[tensor.offset :], tensor.shape, strides, writeable=True
    )
    view[...] = True
    return array[~reached]


OUT = [row for row in ROWS if row.form("out")]


@pytest.mark.parametrize("row", OUT, ids=repr)
def test_out_forms(row: OpInfo) -> None:
    """Fitting targets, some to be resized, strided ones, and of a wider dtype."""
    handle = row.form("out")
    for sample in row.samples(dtype_for(row)):
        args, kwargs = sample.bound(on_cpu)
        results = [each.numpy() for each in listed(row.call(*args, **kwargs))]
        for name in ("plain", "transposed", "sliced", "offset", "resized", "wider"):
            targets = [target_for(values, name).tensor() for values in results]
            junk = [outside(out) for out in targets] if name != "resized" else []
            args, kwargs = sample.bound(on_cpu)
            named = dict(zip(targets_of(handle), targets, strict=True))
            case = f"{handle}({sample}) out {name}"
            dtypes = [out.dtype for out in targets]
            check(handle, args, {**kwargs, **named}, case)
            assert [out.dtype for out in targets] == dtypes, case
            for out, values in zip(targets, results, strict=True):
                assert out.shape == values.shape, case
                np.testing.assert_allclose(out.numpy(), values, rtol=1e-6, err_msg=case)
            for out, before in zip(targets, junk, strict=False):
                np.testing.assert_array_equal(outside(out), before, case)


def target_for(values: Any, name: str) -> Array:
    """A target for a result: in a layout, to be resized, or of a wider dtype."""
    if name == "resized":
        return Array(np.zeros(0, values.dtype))
    if name != "wider":
        return Array(np.zeros(values.shape, values.dtype), name)
    wider = {"float32": "float64", "int64": "float32"}
    dtype = wider.get(values.dtype.name, values.dtype.name)
    return Array(np.zeros(values.shape, dtype), "transposed")


@pytest.mark.parametrize("row", OUT, ids=repr)
def test_the_target_may_be_an_input(row: OpInfo) -> None:
    """The same tensor, and one that overlaps it partly: as if it had been a copy."""
    handle = row.form("out")
    sample = row.samples(dtype_for(row))[0]
    args, kwargs = sample.bound(on_cpu)
    results = listed(row.call(*args, **kwargs))
    for at, expected in enumerate(results):
        for number, array in enumerate(sample.arrays()):
            kind = array.values.dtype.name, array.values.shape
            if kind == (expected.dtype.name, expected.shape):
                for shift in (0, 1, 3):
                    aliased(handle, sample, number, shift, results, at)


def aliased(
    handle: Any, sample: Sample, number: int, shift: int, results: list[Tensor], at: int
) -> None:
    from everyorder.runtime.tensors.construction import from_numpy, view_of

    turn, expected = 0, results[at]
    whole = from_numpy(np.zeros(expected.numel() + 3, expected.numpy().dtype))
    strides = expected.strides

    def turned(value: Any) -> Any:
        nonlocal turn
        if not isinstance(value, Array):
            return on_cpu(value)
        turn += 1
        if turn - 1 != number:
            return value.tensor()
        tensor = view_of(whole, expected.shape, strides, 0)
        np.copyto(tensor.numpy(), value.values)
        return tensor

    args, kwargs = sample.bound(turned)
    out = view_of(whole, expected.shape, strides, shift)
    targets = [Array(np.zeros(0, each.numpy().dtype)).tensor() for each in results]
    targets[at] = out
    handle(*args, **kwargs, **dict(zip(targets_of(handle), targets, strict=True)))
    case = f"{handle}({sample}), out {at} is argument {number} moved by {shift}"
    for target, result in zip(targets, results, strict=True):
        np.testing.assert_array_equal(target.numpy(), result.numpy(), case)
