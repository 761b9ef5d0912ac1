"""Reductions and the variance over every kind of layout; passes and loops alone."""

import os
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from everyorder.runtime.kernels.cpu.reduce import (
    _ANY,
    GRAIN,
    KERNELS,
    REMEMBERED,
    _ready_call,
    _variance_call,
    var,
)
from everyorder.runtime.kernels.shared.reduction_passes import (
    BLOCK,
    EXACT_LEAF,
    TILE,
    ReductionPass,
    add,
    both,
    columns,
    divide,
    either,
    extreme_rows,
    greater,
    integer,
    keep,
    less,
    moved_last,
    multiply,
    passes,
    product_rows,
    rows,
    same,
    signed32,
    signed64,
    sum_rows,
    truth,
    unsigned32,
    unsigned64,
)
from everyorder.runtime.kernels.shared.thread_pool import (
    get_num_threads,
    set_num_threads,
)
from everyorder.runtime.tensors.construction import from_numpy

Array = np.ndarray[Any, Any]

compiled = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="too slow uncompiled"
)

INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")


def made(shape: tuple[int, ...], form: str, seed: int = 0) -> Array:
    numbers = np.random.default_rng(seed)
    if form in COMPLEX:
        return (numbers.normal(size=shape) + 1j * numbers.normal(size=shape)).astype(
            form
        )
    if form in FLOATS:
        return numbers.normal(size=shape).astype(form)
    low, high = (0, 2) if form == "bool" else (0, 120)
    return numbers.integers(low, high, shape).astype(form)


def out_form(name: str, form: str) -> str:
    if name in ("any", "all"):
        return "bool"
    return "int64" if name in ("sum", "prod") and form in INTEGERS else form


def reduced(name: str, x: Array, dims: tuple[int, ...], out: str = "") -> Array:
    shape = tuple(n for dim, n in enumerate(x.shape) if dim not in dims)
    result = np.full(shape, 77, out or out_form(name, x.dtype.name))
    KERNELS[name](from_numpy(result), from_numpy(x), dims)
    return result


def wide(x: Array) -> Array:
    return x.astype({"f": "f8", "c": "c16"}.get(x.dtype.kind, x.dtype))


def all_dims(ndim: int) -> list[tuple[int, ...]]:
    return [dims for n in range(ndim + 1) for dims in combinations(range(ndim), n)]


LAYOUTS = {
    "rows": made((3, 4, 5, 6), "float64"),
    "turned": made((6, 5, 4, 3), "float64").transpose(3, 1, 0, 2),
    "reversed axes": made((6, 5, 4, 3), "float64").transpose(),
    "gaps": made((3, 8, 5, 12), "float64")[:, ::2, :, 1:7],
    "steps": made((3, 4, 5, 12), "float64")[..., ::2],
    "repeated": np.ndarray(
        (3, 4, 5, 6), "float64", made((4, 6), "float64"), 0, (0, 48, 0, 8)
    ),
    "ones": made((1, 4, 1, 6), "float64"),
}


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("x", LAYOUTS.values(), ids=LAYOUTS)
def test_every_set_of_axes_of_every_layout(name: str, x: Array) -> None:
    for dims in all_dims(x.ndim):
        expected = getattr(np, name)(x, axis=dims)
        np.testing.assert_allclose(reduced(name, x, dims), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["any", "all"])
@pytest.mark.parametrize("form", ["bool", "int8", "int64", "float32", "complex64"])
def test_truth(name: str, form: str) -> None:
    x = np.zeros((5, 2100), form)
    x[1] = 1
    x[2, 2050] = 3
    x[3] = 2
    x[3, 7] = 0
    for dims in [(), (0,), (1,), (0, 1)]:
        expected = getattr(np, name)(x, axis=dims)
        assert reduced(name, x, dims).tolist() == expected.tolist()


@pytest.mark.parametrize("name", ["any", "all"])
def test_not_a_number_is_true(name: str) -> None:
    x = np.full((3, 4), np.nan, np.float32)
    assert reduced(name, x, (0,)).tolist() == [True] * 4
    assert reduced(name, x, (1,)).tolist() == [True] * 3


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("form", ["bool", "uint8", "int8", "int64"])
def test_integers(name: str, form: str) -> None:
    x = made((300, 7), form)
    for dims in [(0,), (1,), (0, 1)]:
        kind = {"dtype": np.int64} if name in ("sum", "prod") else {}
        expected = getattr(np, name)(x, axis=dims, **kind)
        assert reduced(name, x, dims).tolist() == expected.tolist()


def test_sums_of_int8_do_not_wrap_before_int64() -> None:
    x = np.full((9, 9), 127, np.int8)
    assert reduced("sum", x, (0, 1)).tolist() == 127 * 81
    assert reduced("sum", x, (0,)).tolist() == [127 * 9] * 9


def test_sums_of_int64_wrap() -> None:
    x = np.full(2, 2**62, np.int64)
    assert reduced("sum", x, (0,)).tolist() == -(2**63)


@pytest.mark.parametrize("form", FLOATS + COMPLEX)
@pytest.mark.parametrize("name", ["sum", "mean", "prod"])
def test_precisions(name: str, form: str) -> None:
    x = made((40, 50), form)
    x = x / abs(x) if name == "prod" else x
    tolerance = 1e-5 if form in ("float32", "complex64") else 1e-13
    for dims in [(0,), (1,), (0, 1)]:
        expected = getattr(np, name)(wide(x), axis=dims)
        scale = abs(x).max() * (40 if name == "sum" else 1)
        found = reduced(name, x.astype(form), dims)
        np.testing.assert_allclose(
            found, expected, rtol=tolerance, atol=tolerance * scale
        )


@compiled
@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("shape", [(1, 1_000_000), (1_000_000, 1), (1000, 1000)])
def test_long_sums_keep_their_digits(
    shape: tuple[int, int], dims: tuple[int, ...]
) -> None:
    x = np.full(shape, 0.1, np.float32)
    expected = x.astype(np.float64).sum(dims)
    np.testing.assert_allclose(reduced("sum", x, dims), expected, rtol=1e-6)


def test_leaves_are_combined() -> None:
    n = 2 * EXACT_LEAF + 10
    x = np.ones(n, np.float32)
    x[n - 1], x[n - 2] = 5, -5
    assert [float(reduced(name, x, (0,))) for name in ("max", "min")] == [5, -5]
    x[EXACT_LEAF + 1] = np.nan
    assert np.isnan([reduced("max", x, (0,)), reduced("min", x, (0,))]).all()
    truths = np.zeros(n, bool)
    assert not reduced("any", truths, (0,))
    truths[n - 1] = True
    assert reduced("any", truths, (0,))
    assert not reduced("all", truths, (0,))
    assert reduced("all", ~np.zeros(n, bool), (0,))
    assert reduced("sum", np.arange(n), (0,)) == n * (n - 1) // 2


@pytest.mark.parametrize("form", FLOATS)
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("bad", [np.nan, -np.nan])
@pytest.mark.parametrize("other", [np.inf, -np.inf, 1.0, -1.0, 0.0])
def test_extremes_are_nan_where_one_is(
    form: str, name: str, bad: float, other: float
) -> None:
    x = np.full((2100, 3), other, form)
    x[2070, 1] = bad
    found = reduced(name, np.ascontiguousarray(x.T), (1,))
    np.testing.assert_array_equal(found, np.array([other, np.nan, other], form))
    np.testing.assert_array_equal(reduced(name, x, (0,)), found)
    assert np.isnan(reduced(name, x, (0, 1)))


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize(
    "row", [[1, 2, 3], [-1, -2, -3], [-1, 0, 1], [-0.0, 0.0], [np.inf, 1], [-np.inf, 1]]
)
def test_extremes_of_any_signs(name: str, row: list[float]) -> None:
    x = np.array(row, np.float32)
    assert reduced(name, x, (0,)) == getattr(x, name)()


@pytest.mark.parametrize(
    ("name", "nothing"),
    [("sum", 0.0), ("prod", 1.0), ("mean", np.nan), ("any", False), ("all", True)],
)
def test_nothing(name: str, nothing: float) -> None:
    x = np.empty((2, 0, 3), np.float32)
    expected = np.full((2, 3), nothing, out_form(name, "float32"))
    np.testing.assert_array_equal(reduced(name, x, (1,)), expected)
    assert reduced(name, x, (0,)).shape == (0, 3)
    np.testing.assert_array_equal(reduced(name, x, (0, 1, 2)), expected[0, 0])


def test_the_mean_of_no_complex_numbers_has_two_parts_of_nan() -> None:
    found = reduced("mean", np.empty((2, 0), np.complex64), (1,))
    assert np.isnan([found.real, found.imag]).all()


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "min"])
def test_a_number_is_its_own_reduction(name: str) -> None:
    assert reduced(name, np.array(2.5), ()) == 2.5


@compiled
@pytest.mark.parametrize("name", ["sum", "max"])
@pytest.mark.parametrize("shape", [(4 * GRAIN,), (3, GRAIN), (GRAIN, 3), (700, 5000)])
def test_threads_change_nothing(name: str, shape: tuple[int, ...]) -> None:
    x = made(shape, "float32")
    before = get_num_threads()
    results = []
    try:
        for threads in (1, 3):
            set_num_threads(threads)
            results.append([reduced(name, x, dims) for dims in all_dims(x.ndim)[1:]])
    finally:
        set_num_threads(before)
    for one, three in zip(*results, strict=True):
        assert one.tobytes() == three.tobytes()


def test_geometries_are_forgotten_before_they_are_many() -> None:
    most = _ready_call.cache_info().maxsize
    assert most is not None
    for n in range(most + 2):
        _ready_call(_ANY, (n, 1), (1, 1), (0,), "bool", "bool")
    assert 0 < _ready_call.cache_info().currsize <= most


def test_operations_displace_no_geometries_of_others() -> None:
    _ready_call.cache_clear()
    x = np.ones((3, 4))
    reduced("sum", x, (0,))
    for n in range(1, REMEMBERED + 2):
        _ready_call(_ANY, (n, 1), (1, 1), (0,), "bool", "bool")
    before = _ready_call.cache_info().hits
    reduced("sum", x, (0,))
    assert _ready_call.cache_info().hits == before + 1


NUMBERS = np.random.default_rng(3)


def varied(x: Array, dims: tuple[int, ...], correction: float = 1) -> Array:
    shape = tuple(n for dim, n in enumerate(x.shape) if dim not in dims)
    out = np.full(shape, 77, x.dtype)
    var(from_numpy(out), from_numpy(x), dims, correction)
    return out


VARIANCES_LAYOUTS = {
    "rows": NUMBERS.normal(size=(4, 5, 6)),
    "turned": NUMBERS.normal(size=(6, 5, 4)).transpose(2, 0, 1),
    "steps": NUMBERS.normal(size=(4, 5, 12))[..., ::2],
    "long": NUMBERS.normal(size=(2, 3, 2500)),
    "deep": NUMBERS.normal(size=(300, 2, 3)),
}


@pytest.mark.parametrize("x", VARIANCES_LAYOUTS.values(), ids=VARIANCES_LAYOUTS)
@pytest.mark.parametrize("correction", [0, 1, 0.5])
def test_every_set_of_axes(x: Array, correction: float) -> None:
    for n in (1, 2, 3):
        for dims in combinations(range(3), n):
            expected = x.var(axis=dims, ddof=correction)
            np.testing.assert_allclose(
                varied(x, dims, correction), expected, rtol=1e-12
            )


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)])
def test_a_large_mean_costs_no_digits(dims: tuple[int, ...]) -> None:
    x = (NUMBERS.normal(size=(200, 300)) + 1000).astype(np.float32)
    expected = x.astype(np.float64).var(axis=dims, ddof=1)
    np.testing.assert_allclose(varied(x, dims), expected, rtol=1e-5)


@pytest.mark.parametrize("shape", [(3,), (2, 1500), (1500, 2), (2, 3, 4, 5)])
def test_single_precision_is_summed_in_double(shape: tuple[int, ...]) -> None:
    """As exact as its own rounding, beyond the roots of its range as well."""
    x = (NUMBERS.normal(size=shape) + 1e4).astype(np.float32)
    dims = tuple(range(0, len(shape), 2))
    expected = x.astype(np.float64).var(axis=dims, ddof=1)
    np.testing.assert_allclose(varied(x, dims), expected, rtol=6e-8)
    wide = np.empty(expected.shape)
    var(from_numpy(wide), from_numpy(x * np.float32(1e25)), dims, 1)
    np.testing.assert_allclose(
        wide, (x * np.float32(1e25)).astype(np.float64).var(axis=dims, ddof=1), 1e-12
    )


def test_nothing_over_nothing_is_nan() -> None:
    assert np.isnan(varied(np.array([3.0]), (0,)))
    assert np.isnan(varied(np.array([3.0]), (0,), 5))
    assert np.isnan(varied(np.empty((2, 0)), (1,))).tolist() == [True, True]
    assert np.isinf(varied(np.array([3.0, 4.0]), (0,), 2))


def test_nan_and_infinity_give_nan() -> None:
    x = np.array([[1.0, np.nan], [1.0, np.inf], [1.0, 2.0]], np.float32)
    np.testing.assert_array_equal(
        varied(x, (1,)), np.array([np.nan, np.nan, 0.5], "float32")
    )


@compiled
@pytest.mark.parametrize("shape", [(3, GRAIN), (GRAIN, 3)])
def test_threads_change_nothing_of_variances(shape: tuple[int, int]) -> None:
    x = NUMBERS.normal(size=shape).astype(np.float32)
    before = get_num_threads()
    results = []
    try:
        for threads in (1, 3):
            set_num_threads(threads)
            results.append([varied(x, dims).tobytes() for dims in [(0,), (1,), (0, 1)]])
    finally:
        set_num_threads(before)
    assert results[0] == results[1]


def test_geometries_are_forgotten_before_they_are_many_of_variances() -> None:
    for n in range(REMEMBERED + 2):
        varied(np.zeros((0, n)), (0,))
    assert 0 < _variance_call.cache_info().currsize <= REMEMBERED


A = np.arange(1.0, 25)


@pytest.mark.parametrize(
    ("body", "start", "wanted"),
    [
        (sum_rows, 0.0, [5 + 6 + 7, 8, 13 + 14 + 15, 16]),
        (product_rows, 1.0, [5 * 6 * 7, 8, 13 * 14 * 15, 16]),
        (rows(add), 0.0, [5 + 6 + 7, 8, 13 + 14 + 15, 16]),
        (extreme_rows(True, signed64, unsigned64), -np.inf, [7, 8, 15, 16]),
        (extreme_rows(False, signed64, unsigned64), np.inf, [5, 8, 13, 16]),
    ],
)
def test_leaves_of_rows(body: Any, start: float, wanted: list[float]) -> None:
    """Rows of 4, 8 apart, in leaves of 3, from the third leaf on."""
    out = np.empty(4)
    body(A[4:], out, 0, 2, 4, 8, 3, np.float64(start), 1.0)
    assert out.tolist() == wanted
    body(A[4:], out[:2], 2, 2, 4, 8, 3, np.float64(start), 1.0)
    assert out[:2].tolist() == wanted[2:]


def test_sums_of_rows_are_divided() -> None:
    out = np.empty(2)
    sum_rows(A, out, 0, 1, 12, 12, 1024, np.float64(0), 12.0)
    assert out.tolist() == [6.5, 18.5]


@pytest.mark.parametrize("length", [1, 2, 4, 5, 6, 9, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_columns_go_block_by_block(length: int) -> None:
    a = np.arange(2.0 * length * 3).reshape(2, length, 3)
    blocks = -(-length // BLOCK)
    out = np.empty((2, blocks, 3))
    body = columns(same, add, divide)
    body(a.reshape(-1), out.reshape(-1), 0, 2 * blocks, length, 3, 3 * length, 3, 2.0)
    for block in range(blocks):
        part = a[:, block * BLOCK : (block + 1) * BLOCK]
        assert out[:, block].tolist() == (part.sum(1) / 2).tolist()


def test_columns_go_tile_by_tile() -> None:
    inner = TILE + 3
    a = np.arange(2.0 * inner)
    out = np.zeros(inner)
    columns(same, add, keep)(a, out, 1, 2, 2, inner, 0, inner, 1.0)
    assert out[:TILE].tolist() == [0] * TILE
    assert out[TILE:].tolist() == (a[TILE:inner] + a[inner + TILE :]).tolist()


def test_steps() -> None:
    nan = np.float64(np.nan)
    assert (add(2, 3), multiply(2, 3)) == (5, 6)
    assert (greater(2, 3), greater(3, 2), less(2, 3), less(3, 2)) == (3, 3, 2, 2)
    pairs = [(nan, 1.0), (1.0, nan)]
    assert all(np.isnan([greater(*p), less(*p)]).all() for p in pairs)
    assert (either(False, 0), either(False, 2), both(True, 2)) == (False, True, True)
    assert (both(True, 0), truth(nan), truth(0.0)) == (False, True, False)
    assert (divide(6, 3), keep(6, 3), same(6)) == (2, 6, 6)
    assert type(integer(np.int8(3))) is np.int64
    assert unsigned32(np.int32(-1)) == 2**32 - 1
    assert signed32(np.uint32(2**32 - 1)) == -1
    assert unsigned64(np.int64(-1)) == 2**64 - 1
    assert signed64(np.uint64(2**64 - 1)) == -1


def test_a_whole_tensor_is_one_row() -> None:
    assert passes((2, 3, 4), (12, 4, 1), (0, 1, 2)) == (ReductionPass(1, 0, 24, 1, 1),)


def test_a_whole_turned_tensor_is_one_row() -> None:
    assert passes((4, 3, 2), (1, 4, 12), (0, 1, 2)) == (ReductionPass(1, 0, 24, 1, 1),)


def test_the_last_axis_is_rows() -> None:
    assert passes((2, 3, 4), (12, 4, 1), (2,)) == (ReductionPass(6, 4, 4, 1, 1),)


def test_rows_may_have_gaps_between_them() -> None:
    assert passes((5, 4), (9, 1), (1,)) == (ReductionPass(5, 9, 4, 1, 1),)


def test_the_first_axis_is_columns() -> None:
    assert passes((2, 3, 4), (12, 4, 1), (0,)) == (ReductionPass(1, 0, 2, 12, 12),)


def test_a_middle_axis_is_columns_of_each() -> None:
    assert passes((2, 3, 4), (12, 4, 1), (1,)) == (ReductionPass(2, 12, 3, 4, 4),)


def test_rows_of_a_turned_matrix_are_columns() -> None:
    assert passes((3, 4), (1, 3), (1,)) == (ReductionPass(1, 0, 4, 3, 3),)


def test_channels_take_two_passes() -> None:
    assert passes((8, 3, 4, 5), (60, 20, 5, 1), (0, 2, 3)) == (
        ReductionPass(24, 20, 20, 1, 1),
        ReductionPass(1, 0, 8, 3, 3),
    )


def test_axes_of_one_element_vanish() -> None:
    assert passes((1, 3, 1), (7, 1, 9), (0, 2)) == (ReductionPass(1, 0, 1, 3, 3),)
    assert passes((), (), ()) == (ReductionPass(1, 0, 1, 1, 1),)


def test_steps_and_repetitions_need_a_copy() -> None:
    assert passes((3, 4), (8, 2), (1,)) is None
    assert passes((3, 4), (1, 0), (1,)) is None
    assert passes((3, 4), (8, 2), ()) is None


def test_kept_axes_in_another_order_need_a_copy() -> None:
    assert passes((2, 3, 4), (1, 2, 6), (2,)) is None


def test_a_copy_has_kept_axes_first() -> None:
    a = np.arange(24)
    moved = moved_last(a, (2, 3, 4), (12, 4, 1), (1,))
    assert moved.tolist() == a.reshape(2, 3, 4).swapaxes(1, 2).reshape(-1).tolist()
