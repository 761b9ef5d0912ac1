"""Products on threads of ours: what BLAS is set to, and that it is put back."""

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runtime.kernels.cpu import matmul
from runtime.kernels.cpu.matmul import bmm, mm
from runtime.kernels.threads import get_num_threads, set_num_threads
from runtime.tensors.making import from_numpy

Array = np.ndarray[Any, Any]
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


def product(a: Array, b: Array) -> Array:
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
        assert np.array_equal(product(a, b.copy()), a @ b)
        turned = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2)
        assert np.array_equal(product(a, turned), a @ b)
    finally:
        set_num_threads(before)


def test_blas_has_one_thread_while_we_multiply(known: Known) -> None:
    a = np.ones((100, 100))
    assert np.array_equal(product(a, a + 1), a @ (a + 1))
    assert known.seen == [1, 7]


def test_small_products_set_nothing(known: Known) -> None:
    a = np.ones((64, 64), np.float32)
    assert product(a, a.copy())[0, 0] == 64
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
        right = [np.array_equal(product(a, b), wanted) for _ in range(20)]
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
    assert product(a, a + 1)[0, 0] == 200


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
