"""where and clamp against NumPy: every dtype and layout."""

import numpy as np
import pytest

from runtime.kernels.cpu import KERNELS
from runtime.schema.codes import DType
from runtime.tensors.arrays import array_of
from runtime.tensors.elements import SUPPORTED, numpy_dtype
from runtime.tensors.making import from_numpy, view_of
from tests.kernels.made import agree, data, empty


@pytest.mark.parametrize("dtype", SUPPORTED)
def test_where_moves_every_dtype(dtype: str) -> None:
    form = numpy_dtype(DType.named(dtype))
    numbers = data("float32", (4, 6)) * 20
    a = (numbers > 0 if dtype == "bool" else numbers).astype(form)
    b = a[::-1].copy()
    mask = data("bool", (4, 6))
    for m, x, y in (
        (mask, a, b),
        (mask[0], a, b),
        (mask, a[:1], b),
        (mask, a[:1, :1], b),
        (mask, a, 1),
        (mask, 1, b),
        (mask, 1, 0),
        (np.asfortranarray(mask), np.asfortranarray(a), b),
    ):
        out = empty((4, 6), dtype)
        operands = (v if isinstance(v, int) else from_numpy(v) for v in (x, y))
        KERNELS["where"](out, from_numpy(m), *operands)
        given = (np.asarray(v).astype(form) for v in (x, y))
        assert array_of(out).tobytes() == np.where(m, *given).tobytes()
    onto = from_numpy(b.copy())
    KERNELS["where"](onto, from_numpy(mask), 1, onto)
    expected = np.where(mask, np.ones((), form), b)
    assert array_of(onto).tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint8"])
def test_clamp(dtype: str) -> None:
    x = data(dtype, (3, 5))
    least, most = (np.array(v).astype(dtype) for v in (2, 60))
    for low, high in ((2, 60), (None, 60), (2, None), (60, 2)):
        expected = x
        if low is not None:
            expected = np.maximum(expected, np.array(low, dtype))
        if high is not None:
            expected = np.minimum(expected, np.array(high, dtype))
        for operand in (x, np.asfortranarray(x)):
            out = empty((3, 5), dtype)
            KERNELS["clamp"](out, from_numpy(operand), low, high)
            agree(out.numpy(), expected)
    lows = from_numpy(np.full((5,), least))
    for bound in (from_numpy(np.full((3, 1), most)), 60, None):
        out = empty((3, 5), dtype)
        KERNELS["clamp"](out, from_numpy(x), lows, bound)
        expected = np.maximum(x, least)
        agree(out.numpy(), expected if bound is None else np.minimum(expected, most))
    onto = from_numpy(x.copy())
    KERNELS["clamp"](onto, onto, None, view_of(onto, (3, 5), (5, 1), 0))
    agree(onto.numpy(), x)


def test_clamp_keeps_nan_and_moves_bounds_into_the_dtype() -> None:
    x = from_numpy(np.array([np.nan, -5, 5], np.float32))
    out = empty((3,), "float32")
    KERNELS["clamp"](out, x, -1, 1)
    assert np.isnan(out.numpy()[0])
    assert out.tolist()[1:] == [-1, 1]
    KERNELS["clamp"](out, x, float("nan"), None)
    assert np.isnan(out.numpy()).all()
    small = from_numpy(np.array([0, 100, 255], np.uint8))
    kept = empty((3,), "uint8")
    KERNELS["clamp"](kept, small, -5, 1000)
    assert kept.tolist() == [0, 100, 255]
    KERNELS["clamp"](kept, small, None, -5)
    assert kept.tolist() == [0, 0, 0]
