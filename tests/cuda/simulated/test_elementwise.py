"""Elementwise kernels on the device against those of the CPU."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from everyorder.runtime.errors.tensor import ArithmeticRefused, WrongOption
from everyorder.runtime.kernels.cpu.kernel_table import KERNELS as CPU
from everyorder.runtime.kernels.cuda import KERNELS as CUDA
from everyorder.runtime.kernels.cuda.pointwise import FAMILIES
from everyorder.runtime.kernels.math.complex import divide
from everyorder.runtime.kernels.math.scalars import BINARY, DIVIDING, UNARY
from everyorder.runtime.tensors.tensor import Tensor
from tests.coded import code
from tests.cuda.simulated.arrays import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    close,
    fresh,
    get,
    host,
    on_host,
    put,
    samples,
    spaced,
)

UNARY_NAMES = sorted(name for name in UNARY if not name.startswith("gelu"))
BINARY_NAMES = sorted(name for name in BINARY if not name.endswith("_backward"))
WHOLE_TOO = ("abs", "floor", "ceil", "round", "trunc", "relu", "isnan", "isfinite")


def result_of(signature: str, name: str) -> str:
    """The dtype of the output of a family."""
    letter = signature.split("[")[0]
    real = {"complex64": "float32", "complex128": "float64"}
    return {"T": name, "R": real.get(name, name)}.get(letter, letter)


def agree(name: str, result: str, *given: Any) -> None:
    """Both backends give the same for arrays and numbers, in two layouts."""
    arrays = [item for item in given if isinstance(item, np.ndarray)]
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    expected = host(shape, result)
    CPU[name](expected, *map(_made(on_host), given))
    for layout in (put, spaced):
        out = fresh(shape, result)
        CUDA[name](out, *map(_made(layout), given))
        close(get(out), get(expected))


def _made(make: Any) -> Any:
    return lambda item: make(item) if isinstance(item, np.ndarray) else item


@pytest.mark.parametrize("name", UNARY_NAMES)
def test_unary(name: str) -> None:
    for key in FAMILIES[name].keys:
        array = samples(key[0]).reshape(4, 6)
        agree(name, result_of(FAMILIES[name].signature, key[0]), array)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize(
    "name",
    [
        *("exp", "expm1", "log", "log2", "log10", "sin", "cos", "tan", "tanh"),
        *("asin", "acos", "atan", "asinh", "acosh", "atanh"),
    ],
)
def test_complex_functions_at_their_limits(name: str, dtype: str) -> None:
    parts = [0.0, -0.0, 1.5, 1000.0, -1000.0, np.inf, -np.inf, np.nan, 88.9, 710.0]
    array = np.array([complex(x, y) for x in parts for y in parts]).astype(dtype)
    expected, out = host(array.shape, dtype), fresh(array.shape, dtype)
    CPU[name](expected, on_host(array))
    CUDA[name](out, put(array))
    real = "float32" if dtype == "complex64" else "float64"
    close(get(out).view(real), get(expected).view(real))


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_logaddexp_at_its_limits(dtype: str) -> None:
    parts = [0.0, 2.0, -1000.0, np.inf, -np.inf, np.nan]
    numbers = [complex(x, y) for x in parts for y in parts]
    one, two = (
        np.array(each, dtype) for each in zip(*product(numbers, numbers), strict=True)
    )
    expected, out = host(one.shape, dtype), fresh(one.shape, dtype)
    CPU["logaddexp"](expected, on_host(one), on_host(two))
    CUDA["logaddexp"](out, put(one), put(two))
    real = "float32" if dtype == "complex64" else "float64"
    close(get(out).view(real), get(expected).view(real))


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_expm1_is_exact_near_zero(dtype: str) -> None:
    array = np.array([1e-12 + 1e-9j, -1e-9 - 1e-12j, 1e-20 + 0j]).astype(dtype)
    out = fresh(array.shape, dtype)
    CUDA["expm1"](out, put(array))
    real = "float32" if dtype == "complex64" else "float64"
    exact = (array + array * array / 2).view(real)
    np.testing.assert_allclose(get(out).view(real), exact, rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", WHOLE_TOO)
def test_unary_of_integers(name: str) -> None:
    for dtype in ("int32", "uint8"):
        agree(name, "bool" if name.startswith("is") else dtype, samples(dtype))


@pytest.mark.parametrize("form", ["none", "tanh"])
def test_gelu_and_its_gradient(form: str) -> None:
    for dtype in FLOATS:
        array = samples(dtype)[6:]
        agree("gelu", dtype, array, form)
        agree("gelu_backward", dtype, array[::-1].copy(), array, form)


@pytest.mark.parametrize(
    "name", [f"{of}_backward" for of in ("relu", "sigmoid", "tanh", "silu")]
)
def test_gradients(name: str) -> None:
    smooth = not name.startswith("relu")
    for dtype in (*FLOATS, *(COMPLEX if smooth else ())):
        array = samples(dtype)[6:]
        agree(name, dtype, array[::-1].copy(), array)


def _operands(name: str, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    left, right = samples(dtype), samples(dtype)[::-1].copy()
    if np.dtype(dtype).kind in "iu" and name in DIVIDING:
        right[right == 0] = 3
        if dtype == "int64":
            # The least number by -1 fits nothing; both sides wrap as they like.
            right[right == -1] = 2
    if np.dtype(dtype).kind in "iu" and name == "pow":
        right = np.abs(right % 7).astype(dtype)
    if np.dtype(dtype).kind == "f" and name == "pow":
        left = np.abs(left)
    return left.reshape(2, 3, 4), right.reshape(2, 3, 4)


@pytest.mark.parametrize("name", BINARY_NAMES)
def test_binary(name: str) -> None:
    extra = (1,) if name in ("add", "sub") else ()
    for key in FAMILIES[name].keys:
        dtype = key[0]
        left, right = _operands(name, dtype)
        result = result_of(FAMILIES[name].signature, dtype)
        agree(name, result, left, right[:1, :, :1].copy(), *extra)
        agree(name, result, left, right, *extra)
        if name != "pow":
            agree(name, result, left, right.flat[0].item() or 3, *extra)


@pytest.mark.parametrize("dtype", ["int32", "float64", "complex64"])
def test_sums_with_a_factor(dtype: str) -> None:
    left, right = _operands("add", dtype)
    agree("add", dtype, left, right, 3)
    agree("sub", dtype, left, right, 2)


def test_a_number_may_stand_on_the_left() -> None:
    agree("sub", "float32", 2.5, samples("float32"), 1)
    agree("lt", "bool", 3, samples("int16"))


@pytest.mark.parametrize("name", DIVIDING)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_an_integer_by_zero_is_refused_before_anything_is_written(
    name: str, dtype: str
) -> None:
    out = put(np.full(5, 7, dtype))
    divisor = np.array([1, 2, 0, 4, 0], dtype)
    for given in (put(divisor), 0):
        with pytest.raises(ArithmeticRefused, check=code("DivisionByZero")) as caught:
            CUDA[name](out, put(divisor), given)
        assert caught.value.fields() == {"operator": f"core::{name}", "dtype": dtype}
        np.testing.assert_array_equal(get(out), np.full(5, 7, dtype))


def test_a_negative_exponent_of_integers_is_refused() -> None:
    out = put(np.array([7, 7]))
    with pytest.raises(WrongOption, check=code("NegativeExponent")) as caught:
        CUDA["pow"](out, put(np.array([2, 2])), -2)
    assert caught.value.fields() == {"operator": "core::pow", "dtype": "int64"}
    np.testing.assert_array_equal(get(out), [7, 7])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_of_negative_powers_of_integers_the_whole_part_is_left(dtype: str) -> None:
    base = np.array([2, 1, -1, -1, 0, 127, -3]).astype(dtype)
    agree("pow", dtype, base, np.array([-1, -2, -3, -4, -1, -2, 3]).astype(dtype))


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_numbers_by_zero(dtype: str) -> None:
    """Infinite or NaN, as on the CPU and in NumPy; all elements are written."""
    numbers = np.array([1 + 2j, 0, -1, 3], dtype)
    for divisor in (np.array([0, 0, 0, 2 - 1j], dtype), 0j):
        agree("div", dtype, numbers, divisor)
    CUDA["reciprocal"](out := fresh((4,), dtype), put(numbers))
    assert np.isfinite(get(out)).tolist() == [True, False, True, True]
    CUDA["rsqrt"](out, put(numbers))
    assert np.isfinite(get(out)).tolist() == [True, False, True, True]


def test_the_compiled_quotient_of_complex_numbers() -> None:
    """Device code that is a Python function too is as near as NumPy's."""
    parts = [0.0, 1.0, -2.5, 1e200, -1e-200, np.inf, np.nan]
    numbers = [np.complex128(complex(x, y)) for x in parts for y in parts]
    for x in numbers[::3]:
        for y in numbers:
            found = np.complex128(divide(x, y))
            np.testing.assert_allclose(found, x / y, rtol=1e-14, atol=0)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex128"])
def test_where(dtype: str) -> None:
    chosen = samples("bool").reshape(4, 6)
    left, right = samples(dtype).reshape(4, 6), samples(dtype)[:6]
    agree("where", dtype, chosen, left, right)
    agree("where", dtype, chosen[:, :1].copy(), left, right[0].item())


def test_where_takes_sixteen_bits() -> None:
    left = np.arange(6, dtype=np.float16)
    chosen = np.array([1, 0, 1, 0, 1, 0], bool)
    out = fresh((6,), "float16")
    CUDA["where"](out, put(chosen), put(left), -1.5)
    np.testing.assert_array_equal(get(out), [0, -1.5, 2, -1.5, 4, -1.5])


@pytest.mark.parametrize("dtype", ["int64", "float32"])
@pytest.mark.parametrize("bounds", [(-1, 2), (None, 2), (-1, None), "tensors"])
def test_clamp(dtype: str, bounds: Any) -> None:
    array = samples(dtype)
    if bounds == "tensors":
        bounds = (samples(dtype)[::-1].copy(), samples(dtype)[:1].copy())
    agree("clamp", dtype, array, *bounds)


def test_nothing_and_no_dimensions() -> None:
    agree("exp", "float32", np.empty((0, 3), np.float32))
    agree("mul", "int64", np.array(3), np.array(4))
    out = fresh((), "float32")
    CUDA["neg"](out, put(np.float32(2)))
    assert get(out).item() == -2


def test_many_dimensions_are_joined_or_taken_one_by_one() -> None:
    array = np.arange(2**7, dtype=np.float32).reshape((2,) * 7)
    agree("neg", "float32", array.transpose(6, 1, 4, 3, 2, 5, 0))
    agree("add", "float32", array, array[:1, :, :1, :, :1, :, :1].copy(), 1)


def test_a_wrapped_number_is_a_number() -> None:
    from everyorder.runtime.tensors.construction import wrap_number

    out = fresh((3,), "float32")
    CUDA["mul"](out, put(np.arange(3, dtype=np.float32)), wrap_number(2.5))
    np.testing.assert_array_equal(get(out), [0, 2.5, 5])


def test_an_output_may_be_its_operand() -> None:
    tensor: Tensor = put(np.arange(6, dtype=np.float32))
    CUDA["add"](tensor, tensor, tensor, 1)
    np.testing.assert_array_equal(get(tensor), np.arange(6) * 2)


def test_what_is_not_a_number() -> None:
    """The sign is 0, as the CPU has it; relu lets NaN pass, and so its gradient."""
    nan = np.array([np.nan, -np.nan, 2.0, 0.0], np.float32)
    grad = np.array([3.0, 4.0, 5.0, 6.0], np.float32)
    for name, given, expected in (
        ("sign", (nan,), [0.0, 0.0, 1.0, 0.0]),
        ("relu_backward", (grad, nan), [3.0, 4.0, 5.0, 0.0]),
    ):
        agree(name, "float32", *given)
        out = fresh((4,), "float32")
        CUDA[name](out, *map(put, given))
        assert get(out).tolist() == expected
