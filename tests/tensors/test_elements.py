"""The element types: against NumPy, ml_dtypes and what is not supported."""

import ml_dtypes
import numpy as np
import pytest

from runtime.errors.tensor import UnfitValue
from runtime.schema.codes import DType
from runtime.tensors.elements import (
    SUPPORTED,
    complex_dtype,
    compute_dtype,
    dtype_of,
    info,
    itemsize,
    numpy_dtype,
    real_dtype,
    supported,
)
from tests.coded import coded

UnsupportedData = coded(UnfitValue, "UnsupportedData")


@pytest.mark.parametrize("name", SUPPORTED)
def test_a_dtype_is_its_numpy_form(name: str) -> None:
    dtype = DType.named(name)
    form = numpy_dtype(dtype)
    assert form == np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    assert dtype_of(form) is dtype
    assert itemsize(dtype) == form.itemsize == info(dtype).itemsize
    facts = info(dtype)
    assert facts.name == name
    if facts.kind in "iu":
        limits = np.iinfo(form)
        assert (facts.smallest, facts.largest) == (limits.min, limits.max)
    if facts.kind in "fc":
        real = np.dtype(real_dtype(dtype).name) if name != "bfloat16" else form
        floats = (ml_dtypes.finfo if name == "bfloat16" else np.finfo)(real)
        assert facts.eps == float(floats.eps)
        assert facts.largest == float(floats.max)
        assert facts.smallest == float(floats.smallest_normal)


def test_relatives() -> None:
    shown = {
        name: tuple(str(of(DType.named(name))) for of in RELATIVES)
        for name in ("int8", "float16", "bfloat16", "float64", "complex64")
    }
    assert shown == {
        "int8": ("int8", "int8", "complex64"),
        "float16": ("float32", "float16", "complex64"),
        "bfloat16": ("float32", "bfloat16", "complex64"),
        "float64": ("float64", "float64", "complex128"),
        "complex64": ("complex64", "float32", "complex64"),
    }


RELATIVES = (compute_dtype, real_dtype, complex_dtype)


def test_what_is_not_supported_is_named() -> None:
    with pytest.raises(UnsupportedData) as caught:
        numpy_dtype(DType.named("uint16"))
    assert caught.value.dtype == "uint16"
    with pytest.raises(UnsupportedData) as caught:
        dtype_of(np.dtype("U3"))
    assert caught.value.dtype == "str96"
    with pytest.raises(UnsupportedData) as caught:
        supported("flaot32")
    assert caught.value.near[0] == "float32"
    assert supported("double") is supported(DType.named("float64"))
