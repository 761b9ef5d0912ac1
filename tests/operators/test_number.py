"""Numbers beside tensors: which stand for one, and how they convert."""

from typing import Any

import pytest

from runtime.operators.plan import number_for, number_of
from runtime.schema.codes import Device, DType
from runtime.tensors.making import wrap_number
from tests.operators.made import tensor


@pytest.mark.parametrize(
    ("number", "dtype", "expected"),
    [
        (300, "uint8", 44),
        (-1, "uint8", 255),
        (128, "int8", -128),
        (2.9, "int64", 2),
        (2, "bool", True),
        (2, "bfloat16", 2.0),
        (True, "complex64", 1 + 0j),
    ],
)
def test_numbers_of_a_dtype(number: Any, dtype: str, expected: Any) -> None:
    found = number_for(number, DType.named(dtype))
    assert (found, type(found)) == (expected, type(expected))


def test_which_tensors_stand_for_a_number() -> None:
    cpu, meta, other = Device("cpu"), Device("meta"), Device("privateuseone")
    assert number_of(wrap_number(2), cpu) == 2
    assert number_of(tensor(3.0), other) == 3.0
    assert number_of(tensor(3.0), cpu) is None
    assert number_of(tensor(3.0), meta) is None
    assert number_of(tensor([3.0]), other) is None
