"""Python numbers as elements of a dtype."""

from typing import Any

import numpy as np
import pytest

from everyorder.runtime.kernels.shared.operands import element


@pytest.mark.parametrize(
    ("dtype", "number", "expected"),
    [
        ("uint8", 300, 44),
        ("uint8", -1, 255),
        ("int8", 128, -128),
        ("int64", 2**63, -(2**63)),
        ("int64", 1.9, 1),
        ("float32", 1e300, np.inf),
        ("float32", 10**400, np.inf),
        ("float64", -(10**400), -np.inf),
        ("float32", 1 + 2j, 1),
        ("complex64", 1 + 2j, 1 + 2j),
        ("complex64", 3, 3),
        ("bool", 1, True),
        ("bool", 7, True),
        ("bool", 2j, True),
        ("float64", True, 1),
    ],
)
def test_numbers_as_elements(dtype: str, number: Any, expected: Any) -> None:
    found = element(dtype, number)
    assert found.dtype == np.dtype(dtype)
    assert found == expected


def test_nan_as_an_element() -> None:
    assert np.isnan(element("float32", float("nan")))
