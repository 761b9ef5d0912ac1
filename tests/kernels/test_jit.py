"""Families: what is compiled, and that it is what the body says."""

import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

from everyorder.runtime.kernels.compile.jit import Family, digest, lowered
from everyorder.runtime.kernels.math import (
    bits,
    copysign,
    exp,
    fma,
    from_bits,
    like,
    rint,
)
from everyorder.runtime.kernels.math.primitive import CHOICES, by_width


def _double(x: Any) -> Any:
    return x + x


def _body(x: Any, out: Any) -> None:
    for i in range(x.size):
        out[i] = _double(x[i])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64"])
def test_a_family_has_one_entry_for_each_dtype(dtype: str) -> None:
    family = Family("double", _body, "void(T[::1], T[::1])")
    x = np.arange(5).astype(dtype)
    out = np.empty_like(x)
    family[dtype](x, out)
    assert out.tolist() == [0, 2, 4, 6, 8]
    assert family[dtype] is family[dtype]
    assert list(family) == [dtype]


def test_the_second_letter_is_the_second_dtype() -> None:
    def cast(x: Any, n: int, out: Any) -> None:
        for i in range(n):
            out[i] = x[i]

    family = Family("cast", cast, "void(T[::1], int64, U[::1])")
    out = np.zeros(3, np.int32)
    family["float64", "int32"](np.array([1.9, -1.9, 7.0]), 2, out)
    assert out.tolist() == [1, -1, 0]


def test_bool_arrays_are_masks() -> None:
    def invert(x: Any, out: Any) -> None:
        for i in range(x.size):
            out[i] = not x[i]

    out = np.zeros(2, np.bool_)
    Family("invert", invert, "void(boolean[::1], T[::1])")["bool"](
        np.array([True, False]), out
    )
    assert out.tolist() == [False, True]


def _by(factor: float) -> Family:
    def scale(x: Any, out: Any) -> None:
        for i in range(x.size):
            out[i] = factor * x[i]

    return Family("scale", scale, "void(T[::1], T[::1])")


def test_bodies_of_one_factory_do_not_share_code() -> None:
    x, out = np.ones(1), np.empty(1)
    results = []
    for factor in (2.0, 3.0):
        _by(factor)["float64"](x, out)
        results.append(out[0])
    assert results == [2.0, 3.0]


def test_the_digest_follows_what_a_body_calls() -> None:
    def one(x: Any) -> Any:
        return x + 1

    def two(x: Any) -> Any:
        return x + 2

    def calling(callee: Any) -> Any:
        def body(x: Any) -> Any:
            return callee(x)

        return body

    assert digest(calling(one)) == digest(calling(one))
    assert digest(calling(one)) != digest(calling(two))
    assert digest((_body, "a")) != digest((_body, "b"))


def test_the_digest_follows_constants_and_options() -> None:
    long, other = np.zeros(5000), np.zeros(5000)
    other[2500] = 1

    def reading(array: Any) -> Any:
        def body(i: Any) -> Any:
            return array[i]

        return body

    assert digest(reading(long)) == digest(reading(long.copy()))
    assert digest(reading(long)) != digest(reading(other))
    assert digest(np.float32(1)) != digest(np.float64(1))
    assert digest((_body, False)) != digest((_body, True))


def test_the_digest_looks_into_functions_of_numba() -> None:
    import numba

    def one(x: Any) -> Any:
        return x + 1

    def two(x: Any) -> Any:
        return x + 2

    assert digest(numba.njit(one)) == digest(one)
    assert digest(numba.njit(one)) != digest(numba.njit(two))


def test_the_digest_follows_both_sides_of_a_choice() -> None:
    def chosen(offset: int) -> Any:
        def wide(x: Any) -> Any:
            return x + offset

        @by_width(_double, wide)
        def choice(x: Any) -> Any:
            """Double, or more."""

        return choice

    assert digest(chosen(1)) != digest(chosen(2))


def test_a_choice_is_made_by_width() -> None:
    def narrow(x: Any) -> Any:
        return like(x, 32)

    def wide(x: Any) -> Any:
        return like(x, 64)

    @by_width(narrow, wide)
    def width(x: Any) -> Any:
        """The bits of the number."""

    def body(x: Any, out: Any) -> None:
        for i in range(x.size):
            out[i] = width(x[i])

    family = Family("width", body, "void(T[::1], T[::1])")
    for dtype, expected in (("float32", 32), ("float64", 64)):
        out = np.zeros(1, dtype)
        family[dtype](out.copy(), out)
        assert out[0] == expected
        assert width(np.dtype(dtype).type(1)) == expected
    assert width.__doc__ == "The bits of the number."
    assert CHOICES[width] == (narrow, wide)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_primitives_compiled_and_not(dtype: str) -> None:
    def body(x: Any, out: Any) -> None:
        out[0] = rint(x[0])
        out[1] = fma(x[0], x[1], x[2])
        out[2] = copysign(x[0], x[1])
        out[3] = from_bits(bits(x[2]))
        out[4] = like(x[0], 0.1)

    x = np.array([2.5, -3.0, 0.7], dtype)
    compiled, plain = np.empty(5, dtype), np.empty(5, dtype)
    Family("primitives", body, "void(T[::1], T[::1])")[dtype](x, compiled)
    body(x, plain)
    assert compiled.tobytes() == plain.tobytes()
    assert compiled[0] == 2
    assert compiled[2] == -2.5


def test_reassociation_only_where_it_is_asked_for() -> None:
    def total(x: Any, out: Any) -> None:
        s = like(x[0], 0)
        for i in range(x.size):
            s += x[i]
        out[0] = s

    x = np.full(4096, 0.1, np.float32)
    strict, out = np.float32(0), np.empty(1, np.float32)
    for value in x:
        strict += value
    Family("total", total, "void(T[::1], T[::1])")["float32"](x, out)
    assert out[0] == strict
    Family("total", total, "void(T[::1], T[::1])", fastmath=True)["float32"](x, out)
    assert out[0] == pytest.approx(409.6, rel=1e-3)


def _cancelled(a: Any, b: Any, c: Any) -> Any:
    return (a - b) - c


def test_what_a_body_calls_keeps_its_own_order_of_sums() -> None:
    def body(x: Any, out: Any) -> None:
        for i in range(out.size):
            out[i] = _cancelled(x[0], x[1], x[2])

    signature = "void(T[::1], T[::1])"
    x = np.array([1e30, 1e30, 0.5])
    for name, relaxed in (("relaxed", True), ("strict", False)):
        out = np.empty(4)
        # The relaxed one is compiled first, and must not leave its flags behind.
        Family(f"cancelled_{name}", body, signature, fastmath=relaxed)["float64"](
            x, out
        )
        assert out.tolist() == [-0.5] * 4


def test_numpys_own_types_are_constants_of_a_body() -> None:
    kind = np.float32

    def body(x: Any, out: Any) -> None:
        for i in range(out.size):
            out[i] = kind(x[i])

    assert digest(body) != digest(_body)


def test_what_is_no_function_is_left_alone() -> None:
    assert lowered(np) is np
    assert lowered(3) == 3
    assert repr(Family("f", _body, "void(T[::1])")) == "Family('f', 'void(T[::1])')"


def test_threads_that_ask_at_once_get_one_entry() -> None:
    def body(x: Any, out: Any) -> None:
        for i in range(x.size):
            out[i] = exp(x[i]) - 1

    family = Family("asked_at_once", body, "void(T[::1], T[::1])")
    begin, entries = threading.Barrier(4), []

    def ask() -> None:
        begin.wait()
        entries.append(family["float64"])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, entries))) == 1


def test_bodies_run_uncompiled_without_warnings() -> None:
    code = """
import warnings
warnings.simplefilter("error")
import numpy as np
from everyorder.runtime.kernels.compile.jit import Family
from everyorder.runtime.kernels.math import exp
def body(x, out):
    for i in range(x.size):
        out[i] = exp(x[i]) / (x[i] - x[i])
entry = Family("f", body, "void(T[::1], T[::1])")["float32"]
out = np.empty(2, np.float32)
entry(np.array([1, 1000], np.float32), out)
print(out.tolist(), hasattr(entry, "__code__"))
"""
    import os

    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[inf, inf] True\n"


def test_importing_kernels_loads_no_numba() -> None:
    code = "import sys, everyorder.runtime.kernels.math\nprint('numba' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
