"""mm, bmm, dot and linear: BLAS and integers."""

from typing import Any

import numpy as np
import pytest

from runtime.kernels.cpu.matmul import WIDTH, bmm, dot, linear, mm
from runtime.kernels.threads import get_num_threads, set_num_threads
from runtime.tensors.making import from_numpy

Array = np.ndarray[Any, Any]
NUMBERS = np.random.default_rng(9)
FLOATS = ("float32", "float64", "complex64", "complex128")
INTEGERS = ("uint8", "int8", "int64")


def made(shape: tuple[int, ...], form: str) -> Array:
    return NUMBERS.integers(0, 9, shape).astype(form)


def product(kernel: Any, shape: tuple[int, ...], *inputs: Array | None) -> Array:
    first = inputs[0]
    assert first is not None
    out = np.full(shape, 77, first.dtype)
    kernel(from_numpy(out), *(None if a is None else from_numpy(a) for a in inputs))
    return out


def layouts(a: Array) -> list[Array]:
    """The same matrices lying in memory in different ways."""
    turned = np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)
    gaps = np.repeat(a, 2, -2)[..., ::2, :]
    steps = np.repeat(np.repeat(a, 2, -2), 3, -1)[..., ::2, ::3]
    return [a, turned, gaps, steps]


@pytest.mark.parametrize("form", FLOATS + INTEGERS)
def test_mm_of_every_layout(form: str) -> None:
    a, b = made((7, 5), form), made((5, 6), form)
    for left in layouts(a):
        for right in layouts(b):
            assert product(mm, (7, 6), left, right).tolist() == (a @ b).tolist()


@pytest.mark.parametrize("form", ["float32", "int64", "uint8"])
def test_bmm_of_every_layout(form: str) -> None:
    a, b = made((3, 4, 5), form), made((3, 5, 2), form)
    for left, right in zip(layouts(a), layouts(b), strict=True):
        assert product(bmm, (3, 4, 2), left, right).tolist() == (a @ b).tolist()


def test_a_broadcast_operand_is_read() -> None:
    a = made((3, 1, 5), "float32")
    wide = np.ndarray((3, 4, 5), "float32", a, 0, (20, 0, 4))
    b = made((3, 5, 2), "float32")
    assert product(bmm, (3, 4, 2), wide, b).tolist() == (wide @ b).tolist()


@pytest.mark.parametrize("form", ["float32", "int64"])
@pytest.mark.parametrize(
    "sizes", [(1, 1, 1), (1, 9, 1), (70, 70, WIDTH + 3), (2, 131, 5), (300, 40, 300)]
)
def test_sizes_beside_blocks(form: str, sizes: tuple[int, int, int]) -> None:
    n, k, m = sizes
    a, b = made((n, k), form), made((k, m), form)
    assert product(mm, (n, m), a, b).tolist() == (a @ b).tolist()


@pytest.mark.parametrize("form", ["float64", "int32"])
@pytest.mark.parametrize("sizes", [(0, 3, 2), (2, 0, 3), (2, 3, 0)])
def test_nothing(form: str, sizes: tuple[int, int, int]) -> None:
    n, k, m = sizes
    a, b = made((n, k), form), made((k, m), form)
    assert product(mm, (n, m), a, b).tolist() == (a @ b).tolist()
    stacks = a[None].repeat(2, 0), b[None].repeat(2, 0)
    assert product(bmm, (2, n, m), *stacks).tolist() == (
        (stacks[0] @ stacks[1]).tolist()
    )


def test_integers_wrap() -> None:
    a = np.full((1, 2), 100, np.int8)
    assert product(mm, (1, 1), a, a.T).tolist() == [[(20_000 + 128) % 256 - 128]]


def test_truth_values_multiply_as_bytes() -> None:
    a = np.array([[True, False]])
    b = np.array([[True], [True]])
    assert product(mm, (1, 1), a, b).tolist() == [[True]]


@pytest.mark.parametrize("form", FLOATS + INTEGERS)
def test_dot(form: str) -> None:
    a, b = made((14,), form), made((14,), form)
    assert product(dot, (), a, b) == a @ b
    assert product(dot, (), a[::2], b[7:]) == a[::2] @ b[7:]
    assert product(dot, (), a[:0], b[:0]) == 0


@pytest.mark.parametrize("form", ["float32", "complex128", "int64"])
def test_linear(form: str) -> None:
    x, weight, bias = made((4, 3), form), made((5, 3), form), made((5,), form)
    wanted = x @ weight.T
    for rows in layouts(x):
        for right in layouts(weight):
            assert product(linear, (4, 5), rows, right, None).tolist() == (
                wanted.tolist()
            )
            found = product(linear, (4, 5), rows, right, bias)
            assert found.tolist() == (wanted + bias).tolist()


@pytest.mark.parametrize("kernel", [mm, linear], ids=["mm", "linear"])
@pytest.mark.parametrize("side", [3, 70])
def test_nan_and_infinity_come_without_a_warning(kernel: Any, side: int) -> None:
    a, b = np.full((side, side), np.inf), np.zeros((side, side))
    b[0] = 1e308
    b[:, 0] = 1e308
    bias = () if kernel is mm else (np.full(side, -np.inf),)
    found = product(kernel, (side, side), a, b, *bias)
    assert np.isnan(found[1:, 1:]).all()


def test_a_long_bias_is_added_on_several_threads() -> None:
    x, weight = made((700, 2), "float32"), made((300, 2), "float32")
    bias = np.arange(300, dtype=np.float32)
    before = get_num_threads()
    try:
        set_num_threads(3)
        found = product(linear, (700, 300), x, weight, bias)
    finally:
        set_num_threads(before)
    assert np.array_equal(found, x @ weight.T + bias)
