"""mm, bmm, dot and linear: BLAS, its threads and its address, and integers."""

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from everyorder.runtime.kernels.cpu import matmul
from everyorder.runtime.kernels.cpu.matmul import SMALL, WIDTH, bmm, dot, linear, mm
from everyorder.runtime.kernels.shared.thread_pool import (
    get_num_threads,
    set_num_threads,
)
from everyorder.runtime.tensors.construction import from_numpy

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


RNG = np.random.default_rng(4)


class Known:
    """A BLAS that writes down what it is set to."""

    def __init__(self) -> None:
        self.threads = 7
        self.seen: list[int] = []
        self.setting = matmul.Setting(lambda: self.threads, self.write)

    def write(self, threads: int) -> None:
        self.threads = threads
        self.seen.append(threads)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Known:
    made = Known()
    monkeypatch.setattr(matmul, "setting", lambda: made.setting)
    return made


def product_of_blas(a: Array, b: Array) -> Array:
    out = np.full((*a.shape[:-1], b.shape[-1]), np.nan, a.dtype)
    (mm if a.ndim == 2 else bmm)(from_numpy(out), from_numpy(a), from_numpy(b))
    return out


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((150, 60), (60, 40)),
        ((40, 60), (60, 150)),
        ((9, 40, 30), (9, 30, 20)),
        ((1, 150, 60), (1, 60, 40)),
        ((1, 300), (300, 200)),
    ],
    ids=str,
)
@pytest.mark.parametrize("form", [np.float32, np.complex128], ids=str)
def test_large_products_are_cut(
    left: Any,
    right: Any,
    form: Any,
    threads: int,
    known: Known,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(matmul, "GRAIN", 1 << 14)
    monkeypatch.setattr(matmul, "SMALL", 1 << 12)
    a, b = (RNG.integers(0, 9, shape).astype(form) for shape in (left, right))
    before = get_num_threads()
    try:
        set_num_threads(threads)
        assert np.array_equal(product_of_blas(a, b.copy()), a @ b)
        turned = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2)
        assert np.array_equal(product_of_blas(a, turned), a @ b)
    finally:
        set_num_threads(before)


def test_blas_has_one_thread_while_we_multiply(known: Known) -> None:
    a = np.ones((100, 100))
    assert np.array_equal(product_of_blas(a, a + 1), a @ (a + 1))
    assert known.seen == [1, 7]


def test_small_products_set_nothing(known: Known) -> None:
    a = np.ones((64, 64), np.float32)
    assert product_of_blas(a, a.copy())[0, 0] == 64
    assert known.seen == []


def test_a_matrix_by_its_own_transpose_is_another_routine(known: Known) -> None:
    a, out = np.ones((40, 40)), np.zeros((40, 40))
    matmul.multiply(out, a, a.T)
    assert out.tolist() == (a @ a.T).tolist()
    assert known.seen == [1, 7]


def test_the_last_of_several_puts_it_back(known: Known) -> None:
    known.setting.enter()
    known.setting.enter()
    known.setting.leave()
    assert known.threads == 1
    known.setting.leave()
    assert known.threads == 7
    assert known.seen == [1, 7]


def test_an_error_puts_it_back(known: Known) -> None:
    with pytest.raises(ValueError, match="mismatch"):
        matmul.multiply(np.ones((100, 100)), np.ones((100, 100)), np.ones((99, 100)))
    assert known.threads == 7
    assert known.setting.depth == 0


def test_a_child_puts_it_back(known: Known) -> None:
    known.setting.enter()
    known.setting.forked()
    assert (known.threads, known.setting.depth) == (7, 0)
    known.setting.forked()
    assert known.seen == [1, 7]
    known.setting.enter()
    known.setting.leave()
    assert known.seen == [1, 7, 1, 7]


def test_products_of_several_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmul, "GRAIN", 1 << 14)
    known = matmul.setting()
    before = known and known.read()
    a, b = (RNG.integers(0, 9, (90, 90)).astype(np.float32) for _ in range(2))
    wanted, wrong = a @ b, list[bool]()

    def call() -> None:
        right = [np.array_equal(product_of_blas(a, b), wanted) for _ in range(20)]
        wrong.append(not all(right))

    callers = [threading.Thread(target=call) for _ in range(4)]
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    assert wrong == [False] * 4
    assert (known and known.read()) == before


def test_without_a_known_library_numpy_multiplies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(matmul, "setting", lambda: None)
    a = np.ones((100, 100))
    assert product_of_blas(a, a + 1)[0, 0] == 200


def test_other_files_are_not_it(tmp_path: Path) -> None:
    assert matmul.setting_of(tmp_path / "scipy_openblas.so") is None
    # The C library has no such functions.
    import ctypes.util

    name = ctypes.util.find_library("c")
    if name is None or os.name == "nt":
        pytest.skip("no C library is found by its name here")
    assert matmul.setting_of(Path(name)) is None


def test_the_library_of_the_wheel_is_found() -> None:
    blas_of_numpy: Any = np.show_config(mode="dicts")
    named = blas_of_numpy["Build Dependencies"]["blas"]["name"]
    if named != "scipy-openblas":
        pytest.skip(f"this NumPy has another BLAS: {named}")
    known = matmul.setting()
    assert known is not None
    before = known.read()
    known.enter()
    assert known.read() == 1
    known.leave()
    assert known.read() == before


GEMM_RNG = np.random.default_rng(7)

# Rows, inner size, columns: the last two are the largest that take this way, and more.
SIZES = [(2, 1, 2), (3, 5, 4), (32, 32, 32), (64, 64, SMALL >> 12), (65, 64, 64)]


def made_of_gemm(*shape: int, form: Any) -> Array:
    numbers: Array = GEMM_RNG.integers(-9, 9, shape).astype(form)
    return numbers


@pytest.mark.parametrize("form", [np.float32, np.float64], ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("compiled", [True, False])
def test_products_with_and_without_it(
    sizes: tuple[int, int, int],
    form: Any,
    compiled: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not compiled:
        monkeypatch.setattr(matmul, "entry", lambda name: None)
    rows, inner, columns = sizes
    a, b = made_of_gemm(rows, inner, form=form), made_of_gemm(inner, columns, form=form)
    weight, bias = (
        made_of_gemm(columns, inner, form=form),
        made_of_gemm(columns, form=form),
    )
    out = np.full((rows, columns), np.nan, form)
    to, x = from_numpy(out), from_numpy(a)
    matmul.mm(to, x, from_numpy(b))
    assert np.array_equal(out, a @ b)
    matmul.linear(to, x, from_numpy(weight), None)
    assert np.array_equal(out, a @ weight.T)
    matmul.linear(to, x, from_numpy(weight), from_numpy(bias))
    assert np.array_equal(out, a @ weight.T + bias)


def test_a_matrix_by_itself_and_a_bias_with_gaps() -> None:
    a, gaps = (
        made_of_gemm(8, 8, form=np.float32),
        made_of_gemm(16, form=np.float32)[::2],
    )
    out = np.zeros((8, 8), np.float32)
    x = from_numpy(a)
    matmul.linear(from_numpy(out), x, x, from_numpy(gaps))
    assert np.array_equal(out, a @ a.T + gaps)


def test_nothing_is_called_without_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmul, "gemm_address", lambda name: None)
    assert matmul.entry.__wrapped__("float32") is None
