"""Which Python numbers elements of a dtype can take."""

from typing import Any

import pytest

from runtime.errors.operands import WrongOption
from runtime.operators.plan import check_fill, default_dtype
from runtime.schema.codes import DType


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (2.9, "int8"),
        (-128, "int8"),
        (255, "uint8"),
        (float("nan"), "float32"),
        (1e300, "float32"),
        (7, "bool"),
        (1j, "complex64"),
    ],
)
def test_numbers_that_fit(value: Any, dtype: str) -> None:
    check_fill(value, DType.named(dtype))


@pytest.mark.parametrize(
    ("value", "dtype", "fits"),
    [
        (1j, "float32", "a real number, as the elements are float32"),
        (1j, "bool", "a real number, as the elements are bool"),
        (1j, "int8", "a real number, as the elements are int8"),
        (128, "int8", "-128 to 127, as the elements are int8"),
        (-1, "uint8", "0 to 255, as the elements are uint8"),
        (float("inf"), "int8", "-128 to 127, as the elements are int8"),
    ],
)
def test_numbers_that_do_not(value: Any, dtype: str, fits: str) -> None:
    with pytest.raises(WrongOption) as caught:
        check_fill(value, DType.named(dtype), "fill_value")
    assert caught.value.fields() == {
        "operator": "",
        "argument": "fill_value",
        "found": repr(value),
        "fits": fits,
    }


def test_the_dtype_of_a_number() -> None:
    found = [default_dtype(value).name for value in (True, 1, 1.0, 1j)]
    assert found == ["bool", "int64", "float32", "complex64"]
