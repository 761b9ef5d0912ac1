"""The element types, and promotion: the table's laws, and torch as the judge."""

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from everyorder.runtime.errors.tensor import UnfitValue
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors import (
    Tensor,
    can_cast,
    promote_types,
    result_type,
    tensor,
)
from everyorder.runtime.tensors.construction import wrap_number
from everyorder.runtime.tensors.dtype_info import (
    SUPPORTED,
    complex_dtype,
    compute_dtype,
    dtype_of,
    info,
    itemsize,
    numpy_dtype,
    parse_dtype,
    real_dtype,
)
from everyorder.runtime.tensors.promotion import (
    DTYPES,
    combine_categories,
    number_dtype,
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
        parse_dtype("flaot32")
    assert caught.value.near[0] == "float32"
    assert parse_dtype("double") is parse_dtype(DType.named("float64"))


NUMBERS = (True, 3, 2.5, 1j)


def test_the_table_is_a_lattice() -> None:
    for one, other in product(DTYPES, repeat=2):
        joined = promote_types(one, other)
        assert joined is promote_types(other, one)
        assert promote_types(joined, one) is joined
        assert promote_types(one, one) is one
    for one, other, third in product(DTYPES, repeat=3):
        both = promote_types(promote_types(one, other), third)
        assert both is promote_types(one, promote_types(other, third))


@pytest.mark.parametrize(
    ("one", "other", "joined"),
    [
        ("uint8", "int8", "int16"),
        ("uint8", "int16", "int16"),
        ("int64", "float16", "float16"),
        ("float16", "bfloat16", "float32"),
        ("float64", "complex64", "complex128"),
        ("bool", "uint8", "uint8"),
    ],
)
def test_the_pairs_that_surprise(one: str, other: str, joined: str) -> None:
    assert promote_types(DType.named(one), DType.named(other)) is DType.named(joined)


def dimensioned(name: str) -> Tensor:
    return tensor([1], dtype=name)


def scalar(name: str) -> Tensor:
    return tensor(1, dtype=name)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ((dimensioned("int8"), 3), "int8"),
        ((dimensioned("int8"), 2.5), "float32"),
        ((dimensioned("float16"), 2.5), "float16"),
        ((dimensioned("bfloat16"), 1j), "complex64"),
        ((dimensioned("float64"), 1j), "complex128"),
        ((dimensioned("bool"), 3), "int64"),
        ((dimensioned("float32"), scalar("float64")), "float32"),
        ((dimensioned("int32"), scalar("float64")), "float64"),
        ((dimensioned("int8"), scalar("int64")), "int8"),
        ((scalar("int8"), 3), "int8"),
        ((scalar("int8"), scalar("int64")), "int64"),
        ((scalar("float16"), wrap_number(2.5)), "float16"),
        ((True, 2.5), "float32"),
        ((wrap_number(2.5),), "float32"),
        ((DType.named("int16"), dimensioned("uint8"), 1), "int16"),
    ],
)
def test_categories(values: tuple[Any, ...], found: str) -> None:
    assert result_type(*values) is DType.named(found)


def test_there_must_be_a_value() -> None:
    with pytest.raises(ValueError, match="a result type needs a value"):
        result_type()
    with pytest.raises(AssertionError):
        combine_categories(None, None, None)


def test_numbers_of_derived_classes() -> None:
    import numpy as np

    assert number_dtype(np.float64(1)) is DType.named("float32")
    assert number_dtype(np.complex128(1)) is DType.named("complex64")


def test_results_fit_what_is_no_less() -> None:
    pairs = {
        ("bool", "uint8"): True,
        ("uint8", "bool"): False,
        ("int64", "uint8"): True,
        ("float32", "int64"): False,
        ("float64", "float16"): True,
        ("complex64", "float64"): False,
        ("int8", "complex64"): True,
    }
    assert pairs == {pair: can_cast(*map(DType.named, pair)) for pair in pairs}


@pytest.mark.torch
def test_it_is_torch_s() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")

    def theirs(name: str) -> Any:
        return getattr(torch, name)

    def ours(dtype: Any) -> str:
        name = str(dtype).removeprefix("torch.")
        # Tensors of ours have no narrower complex numbers.
        return "complex64" if name == "complex32" else name

    for one, other in product(SUPPORTED, repeat=2):
        found = promote_types(DType.named(one), DType.named(other))
        assert str(found) == ours(torch.promote_types(theirs(one), theirs(other)))
        cast = can_cast(DType.named(one), DType.named(other))
        assert cast == torch.can_cast(theirs(one), theirs(other))
        mixed = result_type(dimensioned(one), scalar(other))
        left, right = torch.ones(1).to(theirs(one)), torch.tensor(1).to(theirs(other))
        assert str(mixed) == ours(torch.result_type(left, right))
    for name, number in product(SUPPORTED, NUMBERS):
        for make in (dimensioned, scalar):
            mine = make(name)
            found = result_type(mine, number)
            assert found is result_type(number, mine)
            judge = torch.ones(mine.shape).to(theirs(name))
            assert str(found) == ours(torch.result_type(judge, number))


@pytest.mark.parametrize("value", ["a", None, [1], object()])
def test_what_is_not_a_number_has_no_result_type(value: Any) -> None:
    for values in ((value, 1), (tensor([1.5]), value)):
        with pytest.raises(UnfitValue, match="takes tensors, numbers and dtypes"):
            result_type(*values)


def test_promotion_by_the_names_of_torch() -> None:
    assert can_cast(from_=DType.named("int64"), to=DType.named("float32"))
    pair = promote_types(type1=DType.named("int64"), type2=DType.named("float32"))
    assert pair is DType.named("float32")
