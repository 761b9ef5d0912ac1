"""Movement: dimensions turned round, as NumPy has it."""

import numpy as np
import pytest

from runtime.operators.call import core
from runtime.tensors import tensor
from tests.operators.grid import grid, on_meta


@pytest.mark.parametrize("dims", [[], [0], [-1], [0, 2], [2, 1, 0]], ids=str)
def test_flip_reverses_dimensions(dims: list[int]) -> None:
    array = grid(2, 3, 4)
    expected = np.flip(array, tuple(dims)) if dims else array
    found = core.flip(tensor(array), dims)
    assert found.tolist() == expected.tolist()
    assert core.flip(*on_meta(tensor(array), dims)).shape == found.shape
