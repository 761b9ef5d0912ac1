"""Looking for elements at fault before anything is written."""

import numpy as np
import pytest

from runtime.errors.tensor import IndexOutOfRange
from runtime.kernels.cuda.copy import first_outside, first_zero, require_indices
from tests.cuda.simulated.arrays import INTEGERS, put, spaced


@pytest.mark.parametrize("name", INTEGERS)
def test_the_first_one_is_found(name: str) -> None:
    array = np.array([[1, 2, 3], [9, 0, 9], [0, 2, 8]], name)
    for layout in (put, spaced):
        assert first_zero(layout(array)) == (4, 0)
        assert first_outside(layout(array), 0, 7) == (3, 9)
        assert first_outside(layout(array), 0, 9) is None


def test_nothing_is_at_fault_in_nothing() -> None:
    assert first_zero(put(np.empty(0, np.int64))) is None


def test_indices() -> None:
    index = put(np.array([0, 4, -1, 5]))
    require_indices("core::gather", put(np.array([0, 4])), 5, 1)
    require_indices("core::index", put(np.array([-5, 4])), 5, 1, wraps=True)
    with pytest.raises(IndexOutOfRange) as caught:
        require_indices("core::gather", index, 5, 1)
    assert caught.value.fields() == {
        "operator": "core::gather",
        "index": -1,
        "size": 5,
        "dim": 1,
        "wraps": False,
    }
    with pytest.raises(IndexOutOfRange) as caught:
        require_indices("core::index", index, 5, 1, wraps=True)
    assert caught.value.index == 5
