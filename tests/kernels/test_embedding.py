"""embedding_backward: rows of the gradient, added where they were looked up."""

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from runtime.errors.operator import IndexOutOfRange
from runtime.kernels.cpu.index import embedding_backward
from runtime.kernels.threads import get_num_threads, set_num_threads
from runtime.tensors.making import from_numpy


def gradient(rows: int, grad: Any, indices: Any, padding: int = -1) -> Any:
    out = np.full((rows, grad.shape[-1]), 7, grad.dtype)
    embedding_backward(from_numpy(out), from_numpy(grad), from_numpy(indices), padding)
    return out


@pytest.mark.parametrize("padding", [-1, 2])
def test_rows_are_added_and_padding_is_left_out(padding: int) -> None:
    indices = np.array([[0, 2, 2], [3, 0, 2]], np.int32)
    grad = np.arange(24.0).reshape(2, 3, 4)
    wanted = np.zeros((5, 4))
    np.add.at(wanted, indices[indices != padding], grad[indices != padding])
    assert np.array_equal(gradient(5, grad, indices, padding), wanted)


def test_16_bit_floats_are_rounded_once() -> None:
    grad = np.ones((300, 2), bfloat16)
    found = gradient(1, grad, np.zeros(300, np.int64))
    assert found.astype(np.float32).tolist() == [[300, 300]]


def test_nothing_looked_up_leaves_zeros() -> None:
    found = gradient(2, np.zeros((0, 3), np.float32), np.zeros(0, np.int64))
    assert found.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_a_bad_index_is_named_before_anything_is_written() -> None:
    out = np.full((2, 1), 7.0)
    with pytest.raises(IndexOutOfRange) as caught:
        embedding_backward(
            from_numpy(out), from_numpy(np.ones((1, 1))), from_numpy(np.array([2])), -1
        )
    assert (caught.value.operator, caught.value.index, caught.value.size) == (
        "core::embedding_backward",
        2,
        2,
    )
    assert out.tolist() == [[7.0], [7.0]]


def test_threads_share_columns() -> None:
    rng = np.random.default_rng(0)
    indices = rng.integers(0, 9, 2000)
    grad = rng.standard_normal((2000, 128)).astype(np.float32)
    found = []
    before = get_num_threads()
    try:
        for threads in (1, 3):
            set_num_threads(threads)
            found.append(gradient(9, grad, indices))
    finally:
        set_num_threads(before)
    assert found[0].tobytes() == found[1].tobytes()
