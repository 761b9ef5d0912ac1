"""cat on the device against the CPU's."""

import numpy as np
import pytest

from tests.cuda.simulated.agreement import agree, empty, same
from tests.cuda.simulated.arrays import STORED, form, samples


@pytest.mark.parametrize("dtype", STORED)
def test_every_dtype(dtype: str) -> None:
    first, second = samples(dtype)[:6].reshape(2, 3), samples(dtype)[6:16].reshape(2, 5)
    out = empty((2, 8), form(dtype))
    agree("cat", [out], [first, second], 1, compare=same)
    out = empty((8, 2), form(dtype))
    given = [first.T.copy(), second.T.copy()]
    agree("cat", [out], given, 0, compare=same)


def test_empty_ones_fit_everywhere() -> None:
    given = [np.zeros(0, np.int32), np.arange(6, dtype=np.int32).reshape(2, 3)]
    agree("cat", [empty((2, 3), np.int32)], given, 1, compare=same)
    agree("cat", [empty((0,), np.int32)], [given[0], given[0]], 0, compare=same)
