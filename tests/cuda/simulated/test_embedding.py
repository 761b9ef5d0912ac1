"""The gradient of an embedding on the device against the CPU's."""

import numpy as np
import pytest

from runtime.errors.tensor import IndexOutOfRange
from runtime.kernels.cuda import KERNELS as CUDA
from tests.cuda.simulated.agreement import agree, empty, numbers, same
from tests.cuda.simulated.arrays import form, get, put


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("padding", [-1, 2])
def test_backward(dtype: str, padding: int) -> None:
    index = np.array([[1, 2, 4], [1, 1, 2]], np.int32)
    grad = numbers((2, 3, 5), np.float64).astype(form(dtype))
    out = empty((6, 5), form(dtype))
    agree("embedding_backward", [out], grad, index, padding, compare=same)


def test_nothing_looked_up() -> None:
    out = empty((2, 3), np.float32)
    grad, index = np.zeros((0, 3), np.float32), np.zeros(0, np.int64)
    found = agree("embedding_backward", [out], grad, index, -1, compare=same)
    np.testing.assert_array_equal(found[0], np.zeros((2, 3)))


def test_an_index_outside_is_refused_first() -> None:
    out = put(np.full((3, 2), 7.0))
    with pytest.raises(IndexOutOfRange) as caught:
        CUDA["embedding_backward"](out, put(np.ones((2, 2))), put(np.array([0, 3])), 0)
    assert caught.value.fields() == {
        "operator": "core::embedding_backward",
        "index": 3,
        "size": 3,
        "dim": 0,
        "wraps": False,
    }
    np.testing.assert_array_equal(get(out), np.full((3, 2), 7.0))
