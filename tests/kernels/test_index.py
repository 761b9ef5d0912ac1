"""Advanced indexing as NumPy lays it out; nonzero; embedding's gradient."""

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from everyorder.runtime.errors.tensor import IndexOutOfRange
from everyorder.runtime.kernels.cpu.axis import nonzero, nonzero_count
from everyorder.runtime.kernels.cpu.gather import embedding_backward, index, index_put
from everyorder.runtime.kernels.shared.thread_pool import (
    get_num_threads,
    set_num_threads,
)
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.construction import from_numpy, view_of
from everyorder.runtime.tensors.dtype_info import SUPPORTED, numpy_dtype

Array = np.ndarray[Any, Any]

A = np.array([1, -1, 0])
B = np.array([[0], [3]])
C = np.array([[2, 1, -4]])

CASES: dict[str, list[Any]] = {
    "first": [A],
    "last": [None, None, A],
    "neighbours": [None, B, C],
    "apart": [A, None, C],
    "apart in the middle": [None, A, None, C],
    "all": [A, B, C, A],
    "number": [None, np.array(-2)],
    "none": [None, None],
    "empty": [np.zeros((0, 2), np.int64)],
    "narrow": [A.astype(np.int32)],
    "strided": [None, np.array([0, 9, -1, 9])[::2]],
}


# Indices that broadcast, results and indices without elements: x, indices.
EDGES: dict[str, Any] = {
    "one of several": ((4, 5), [np.array([3]), np.array([0, 4, 2])]),
    "one value, then a table": ((4, 5), [np.array([[1]]), np.array([[0, 4], [2, 2]])]),
    "a number and a list": ((4, 5), [np.array(2), np.array([0, 1, 1])]),
    "negative of one": ((4, 5), [np.array([-1]), np.array([0, -5, 2])]),
    "no index values": ((4, 5, 6), [None, np.zeros(0, np.int64), np.zeros(1, int)]),
    "no rows to take from, none asked": ((0, 5), [np.zeros(0, np.int64)]),
    "rows without elements": ((4, 0), [np.array([3, 1])]),
    "sheets without elements": ((0, 3, 0, 2), [None, np.array([2, 0])]),
    "an outer dimension without elements": ((0, 3, 4, 5), [None, None, A]),
}


def numpy_key(indices: list[Any]) -> tuple[Any, ...]:
    return tuple(slice(None) if one is None else one for one in indices)


def tensors(indices: list[Any]) -> list[Any]:
    return [None if one is None else from_numpy(one) for one in indices]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("form", [np.float32, np.bool_, np.complex128], ids=str)
def test_index_is_laid_out_as_in_numpy(case: str, form: Any) -> None:
    x = (np.arange(4 * 5 * 6 * 7) % 11).reshape(4, 5, 6, 7).astype(form)
    wanted = x[numpy_key(CASES[case])]
    out = np.zeros(wanted.shape, form)
    index(from_numpy(out), from_numpy(x), tensors(CASES[case]))
    assert np.array_equal(out, wanted)


@pytest.mark.parametrize("case", EDGES)
def test_index_of_what_broadcasts_and_of_nothing(case: str) -> None:
    shape, indices = EDGES[case]
    x = np.arange(float(np.prod(shape))).reshape(shape)
    wanted = x[numpy_key(indices)]
    out = np.full(wanted.shape, -1.0)
    index(from_numpy(out), from_numpy(x), tensors(indices))
    assert np.array_equal(out, wanted)


@pytest.mark.parametrize("case", EDGES)
@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put_of_what_broadcasts_and_of_nothing(
    case: str, accumulate: bool
) -> None:
    shape, indices = EDGES[case]
    wanted = np.zeros(shape)
    values = np.arange(1.0, 1 + wanted[numpy_key(indices)].size)
    values = values.reshape(wanted[numpy_key(indices)].shape)
    if accumulate:
        np.add.at(wanted, numpy_key(indices), values)
    else:
        wanted[numpy_key(indices)] = values
    out = np.zeros(shape)
    index_put(from_numpy(out), tensors(indices), from_numpy(values), accumulate)
    assert np.array_equal(out, wanted)


@pytest.mark.parametrize("bad", [4, -5])
def test_a_single_index_outside_is_named(bad: int) -> None:
    out = np.full((2, 5), 7.0)
    with pytest.raises(IndexOutOfRange) as caught:
        index(
            from_numpy(out), from_numpy(np.ones((4, 5))), tensors([np.array([0, bad])])
        )
    assert (caught.value.index, caught.value.size, caught.value.dim) == (bad, 4, 0)
    assert (out == 7).all()


def test_index_reads_any_strides() -> None:
    x = np.arange(48).reshape(4, 12).T[::2]
    out = np.zeros((3, 3), np.int64)
    rows, columns = np.array([[0], [5], [2]]), np.array([3, -1, 0])
    index(from_numpy(out), from_numpy(x), tensors([rows, columns]))
    assert np.array_equal(out, x[rows, columns])


@pytest.mark.parametrize("case", CASES)
def test_index_put_writes_broadcast_values(case: str) -> None:
    base = np.arange(4 * 5 * 6 * 7, dtype=np.float32).reshape(4, 5, 6, 7)
    wanted, out = base.copy(), base.copy()
    wanted[numpy_key(CASES[case])] = -1
    value = from_numpy(np.array(-1, np.float32))
    index_put(from_numpy(out), tensors(CASES[case]), value)
    assert np.array_equal(out, wanted)


@pytest.mark.parametrize(
    "form", [np.int8, np.float16, np.float32, np.complex64], ids=str
)
def test_index_put_accumulates_equal_places(form: Any) -> None:
    wanted, out = np.zeros((3, 4), form), np.zeros((3, 4), form)
    rows, columns = np.array([0, 2, 0, -1]), np.array([1, 1, 1, 1])
    values = np.array([1, 2, 3, 4], form)
    np.add.at(wanted, (rows, columns), values)
    index_put(
        from_numpy(out), tensors([rows, columns]), from_numpy(values), accumulate=True
    )
    assert np.array_equal(out, wanted)
    assert out[0, 1] == 4
    assert out[2, 1] == 6


def test_index_put_keeps_the_last_of_equal_places() -> None:
    out = np.zeros(3)
    values = view_of(from_numpy(np.array([1.0, 9, 2, 9, 3])), (3,), (2,), 0)
    index_put(from_numpy(out), tensors([np.array([1, 1, 0])]), values)
    assert out.tolist() == [3, 2, 0]


@pytest.mark.parametrize("bad", [5, -6])
def test_an_index_outside_is_named_and_nothing_written(bad: int) -> None:
    out = np.zeros((4, 5))
    with pytest.raises(IndexOutOfRange) as caught:
        index_put(
            from_numpy(out),
            tensors([np.array([0, 1]), np.array([0, bad])]),
            from_numpy(np.ones(2)),
        )
    assert caught.value.fields() == {
        "operator": "core::index_put",
        "index": bad,
        "size": 5,
        "dim": 1,
        "wraps": True,
    }
    assert "fits:  -5 to 4" in str(caught.value)
    assert not out.any()


DTYPES = [numpy_dtype(DType.named(name)) for name in SUPPORTED]


def positions(x: Any) -> Any:
    tensor = from_numpy(x)
    out = np.full((nonzero_count(tensor), x.ndim), -1)
    nonzero(from_numpy(out), tensor)
    return out


@pytest.mark.parametrize("form", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(40,), (5, 8), (2, 4, 5)])
def test_positions_are_in_row_major_order(form: Any, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(0, 3, shape).astype(form)
    assert np.array_equal(positions(x), np.argwhere(x))
    assert np.array_equal(positions(x.T), np.argwhere(x.T))


@pytest.mark.parametrize("form", [np.float16, np.float32, np.float64], ids=str)
def test_signed_zero_is_zero_and_nan_is_not(form: Any) -> None:
    x = np.array([0.0, -0.0, np.nan, -np.inf, np.finfo(form).smallest_subnormal], form)
    assert positions(x).tolist() == [[2], [3], [4]]


@pytest.mark.parametrize("form", [np.complex64, np.complex128], ids=str)
def test_a_complex_number_is_zero_in_both_parts(form: Any) -> None:
    x = np.array([complex(-0.0, -0.0), 1j, 1, complex(0.0, -0.0)], form)
    assert positions(x).tolist() == [[1], [2]]


def test_numbers_and_nothing() -> None:
    assert positions(np.array(3)).shape == (1, 0)
    assert positions(np.array(0)).shape == (0, 0)
    assert positions(np.zeros((0, 3))).shape == (0, 2)
    assert positions(np.zeros((2, 3))).shape == (0, 2)


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
