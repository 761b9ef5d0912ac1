"""Functions of one, two and three numbers against NumPy: names, dtypes, layouts.

Nothing, threads, direct entries and plans too; gradients of activations by differences
of the kernels themselves.
"""

import os
from typing import Any

import numpy as np
import pytest

from everyorder.runtime.errors.tensor import ArithmeticRefused, WrongOption
from everyorder.runtime.kernels.cpu import KERNELS, elementwise, pointwise
from everyorder.runtime.kernels.cpu.elementwise import plan
from everyorder.runtime.kernels.math.scalars import DIVIDING
from everyorder.runtime.kernels.shared import thread_pool
from everyorder.runtime.kernels.shared.operands import coalesced
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.construction import from_numpy, view_of
from everyorder.runtime.tensors.dtype_info import SUPPORTED, numpy_dtype
from everyorder.runtime.tensors.tensor_impl import array_of
from tests.coded import code
from tests.kernels.made import REAL, agree, data, empty, operand
from tests.kernels.numpy_oracle import BINARY, TESTS, TO_BOOL, UNARY, reference_of


@pytest.mark.parametrize("name", [*UNARY, *TESTS, *BINARY])
def test_no_elements(name: str) -> None:
    dtypes = UNARY[name][1] if name in UNARY else BINARY.get(name, ("float32",))
    kind = "bool" if name in (*TESTS, *TO_BOOL) else dtypes[-1]
    out = empty((0, 3), kind)
    operands = [empty((0, 3), dtypes[-1])] * (2 if name in BINARY else 1)
    KERNELS[name](out, *operands)
    if name in BINARY:
        KERNELS[name](out, operands[0], empty((1, 3), dtypes[-1]))


@pytest.mark.parametrize("count", [100, 1_000_003])
def test_threads_change_nothing(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        count = min(count, 2003)
    a, b = data("float32", (count,)), data("float32", (count,), 1)
    mask = a > b
    x, y, row = from_numpy(a), from_numpy(b), from_numpy(b[:1].copy())
    sevenths = from_numpy(a[: count // 7 * 7].reshape(-1, 7))
    calls: list[tuple[str, Any, tuple[Any, ...]]] = [
        ("mul", x, (x, y)),
        ("mul", x, (x, 3)),
        ("mul", x, (3, x)),
        ("sub", x, (row, x)),
        ("add", x, (x, y, 2)),
        ("pow", x, (x, y)),
        ("exp", x, (x,)),
        ("clamp", x, (x, -1, 1)),
        ("where", x, (from_numpy(mask), x, y)),
        ("where", x, (from_numpy(mask), 1, y)),
        ("add", sevenths, (sevenths, from_numpy(b[:7].copy()))),
        ("fill", x, (2,)),
        ("arange", x, (0, 2)),
    ]
    onto = [
        ("mul", (y,)),
        ("mul", (2,)),
        ("add", (y, 2)),
        ("exp", ()),
        ("clamp", (0, 1)),
    ]
    results = []
    before = thread_pool.get_num_threads()
    for number in (1, 3):
        thread_pool.set_num_threads(number)
        found = []
        for name, like, arguments in calls:
            out = empty(like.shape, "float32")
            KERNELS[name](out, *arguments)
            found.append(out.numpy().tobytes())
        for name, arguments in onto:
            out = from_numpy(a.copy())
            KERNELS[name](out, out, *arguments)
            found.append(out.numpy().tobytes())
        results.append(found)
    thread_pool.set_num_threads(before)
    assert results[0] == results[1]


def test_direct_entries_are_the_loops_themselves() -> None:
    a, out = np.array([1.0, 2.0], np.float32), np.empty(2, np.float32)
    pointwise.direct_binary("add", "float32")(a, a, out)
    assert out.tolist() == [2, 4]
    truth = np.empty(2, np.bool_)
    pointwise.direct_binary("lt", "float32")(a, out, truth)
    assert truth.tolist() == [True, True]
    pointwise.direct_unary("neg", "float32")(a, out)
    assert out.tolist() == [-1, -2]
    pointwise.direct_unary("gelu", "float32")(np.zeros(2, np.float32), out)
    assert out.tolist() == [0, 0]
    pointwise.direct_unary("isnan", "float32")(a, truth)
    assert truth.tolist() == [False, False]
    wide = np.array([1j], np.complex64)
    pointwise.direct_unary("neg", "complex64")(wide.copy(), wide)
    assert wide.tolist() == [-1j]
    with pytest.raises(KeyError):
        pointwise.direct_binary("no_such", "float32")


def test_specialised_dtypes_are_floating() -> None:
    assert {"float32", "float64"} == elementwise.SPECIALISED


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((), ((),), ((1,), ((0,),))),
        ((1, 1), ((5, 1),), ((1,), ((0,),))),
        ((2, 3), ((3, 1),), ((6,), ((1,),))),
        ((2, 1, 3), ((3, 9, 1),), ((6,), ((1,),))),
        ((2, 3), ((3, 1), (0, 1)), ((2, 3), ((3, 1), (0, 1)))),
        ((4, 2, 3), ((6, 3, 1), (0, 3, 1)), ((4, 6), ((6, 1), (0, 1)))),
        ((2, 3), ((1, 2),), ((2, 3), ((1, 2),))),
    ],
)
def test_coalescing(shape: Any, strides: Any, expected: Any) -> None:
    assert coalesced(shape, *strides) == expected


def test_a_plan_is_a_table_for_rows() -> None:
    rows, inner, table = plan((2, 3), ((2, 3), (3, 1)), ((3,), (1,)))
    assert (rows, inner, table.tolist()) == (2, 3, [2, 2, 3, 3, 1, 0, 1])
    assert plan((2, 3), ((2, 3), (3, 1)), ((3,), (1,)))[2] is table
    assert not table.flags.writeable


UNARY_CASES = [(name, dtype) for name, (_, dtypes) in UNARY.items() for dtype in dtypes]


@pytest.mark.parametrize(("name", "dtype"), UNARY_CASES)
def test_unary(name: str, dtype: str) -> None:
    x = data(dtype, (4, 6))
    with np.errstate(all="ignore"):
        expected = UNARY[name][0](x)
    out = empty((4, 6), dtype)
    KERNELS[name](out, from_numpy(x))
    agree(out.numpy(), expected)
    turned = empty((4, 6), dtype)
    KERNELS[name](turned, from_numpy(np.asfortranarray(x)))
    agree(turned.numpy(), expected)
    onto = from_numpy(x.copy())
    KERNELS[name](onto, onto)
    agree(onto.numpy(), expected)


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize("dtype", ["bool", "int64", "float32", "float64", "complex64"])
def test_questions(name: str, dtype: str) -> None:
    x = data(dtype, (3, 4))
    x[0, 0] = 0
    if x.dtype.kind in "fc":
        x[0, 1:4] = np.nan, np.inf, -np.inf
    if x.dtype.kind == "c":
        x[1, :2] = complex(0, np.inf), complex(0, np.nan)
    out = empty((3, 4), "bool")
    KERNELS[name](out, from_numpy(x))
    agree(out.numpy(), getattr(np, name)(x))
    turned = empty((4, 3), "bool")
    KERNELS[name](turned, from_numpy(x.T))
    agree(turned.numpy(), getattr(np, name)(x.T))


def test_the_size_of_a_complex_number_is_real() -> None:
    x = np.array([[3 + 4j, 1e30 + 0j], [0j, complex(np.inf, np.nan)]], np.complex64)
    out = empty((2, 2), "float32")
    KERNELS["abs"](out, from_numpy(x.T))
    assert out.tolist() == [[5, 0], [np.float32(1e30), np.inf]]


def test_nan_passes_relu() -> None:
    x = np.array([np.nan, -1, 0, 2], np.float32)
    out = empty((4,), "float32")
    KERNELS["relu"](out, from_numpy(x))
    assert np.isnan(out.numpy()[0])
    assert out.tolist()[1:] == [0, 0, 2]


def test_nan_has_no_sign() -> None:
    x = np.array([np.nan, -np.inf, -1, -0.0, 2], np.float32)
    out = empty((5,), "float32")
    KERNELS["sign"](out, from_numpy(x))
    assert out.tolist() == [0, -1, -1, 0, 1]


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize("dtype", REAL)
def test_one_number_far_away_does_not_harm_its_block(name: str, dtype: str) -> None:
    x = np.linspace(-4, 4, 1500).astype(dtype)
    x[700] = 1e30
    expected = getattr(np, name)(x.astype(np.longdouble))
    out = empty(x.shape, dtype)
    KERNELS[name](out, from_numpy(x))
    agree(out.numpy(), expected)
    onto = from_numpy(x)
    KERNELS[name](onto, onto)
    agree(onto.numpy(), expected)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_takes_its_approximation(approximate: str) -> None:
    x, out = np.array([1.0, -1.0]), empty((2,), "float64")
    KERNELS["gelu"](out, from_numpy(x), approximate)
    exact = {"none": 0.8413447460685429, "tanh": 0.8411919906082768}[approximate]
    agree(out.numpy(), [exact, exact - 1])


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for name in BINARY for dtype in BINARY[name]]
)
def test_binary(name: str, dtype: str) -> None:
    a, b = data(dtype, (4, 6)), data(dtype, (4, 6), 1)
    if name in DIVIDING:
        b[b == 0] = 3
    function = reference_of(name)
    kind = "bool" if name in TO_BOOL else dtype
    wide = data(dtype, (4, 12), 2)
    deep = data(dtype, (3, 1, 6), 3).transpose(2, 0, 1)
    for x, y in (
        (a, b),
        (a, b[0]),
        (a[:, :1], b),
        (np.asfortranarray(a), b),
        (wide[:, ::2], b),
        (a, b[1, 1]),
        (a[1, 1], b),
        (deep, b[:3, :5]),
    ):
        with np.errstate(all="ignore"):
            expected = function(x, y)
        out = empty(expected.shape, kind)
        KERNELS[name](out, operand(x), operand(y))
        agree(out.numpy(), expected)
    if kind == dtype:
        with np.errstate(all="ignore"):
            expected, with_number = function(a, b), function(a, b[1, 1])
        for y, wanted in ((from_numpy(b), expected), (b[1, 1].item(), with_number)):
            onto = from_numpy(a.copy())
            KERNELS[name](onto, onto, y)
            agree(onto.numpy(), wanted)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_an_operand_of_one_element_stands_for_all(dtype: str) -> None:
    a = data(dtype, (2, 3))
    for other in (np.full((), 2, dtype), np.full((1, 1), 2, dtype)):
        out = empty((2, 3), dtype)
        KERNELS["sub"](out, from_numpy(a), from_numpy(other))
        agree(out.numpy(), a - other)
        KERNELS["sub"](out, from_numpy(other), from_numpy(a))
        agree(out.numpy(), other - a)
    one = empty((1,), dtype)
    KERNELS["add"](one, from_numpy(np.full((), 2, dtype)), 3)
    assert one.tolist() == [5]


def test_a_view_with_an_offset() -> None:
    base = from_numpy(np.arange(12, dtype=np.float32))
    view = view_of(base, (3, 2), (4, 1), 1)
    out = empty((3, 2), "float32")
    KERNELS["add"](out, view, view)
    assert out.tolist() == [[2, 4], [10, 12], [18, 20]]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_divide_by_zero_as_in_numpy(dtype: str) -> None:
    parts = (0.0, 1.0, -2.0, np.inf, np.nan)
    every = [complex(re, im) for re in parts for im in parts]
    a = np.array([x for x in every for _ in every], dtype)
    b = np.array([y for _ in every for y in every], dtype)
    with np.errstate(all="ignore"):
        expected, inverse, by_zero = a / b, 1 / b, a / b.dtype.type(0)
    out = empty(a.shape, dtype)
    KERNELS["div"](out, from_numpy(a), from_numpy(b))
    assert np.isfinite(out.numpy()).tolist() == np.isfinite(expected).tolist()
    finite = np.isfinite(expected)
    np.testing.assert_allclose(out.numpy()[finite], expected[finite], rtol=1e-6)
    zero = b == 0
    np.testing.assert_array_equal(out.numpy()[zero], expected[zero])
    KERNELS["reciprocal"](out, from_numpy(b))
    np.testing.assert_array_equal(out.numpy()[zero], inverse[zero])
    KERNELS["div"](out, from_numpy(a), 0)
    np.testing.assert_array_equal(out.numpy(), by_zero)
    pointwise.direct_binary("div", dtype)(a, b, out.numpy())
    np.testing.assert_array_equal(out.numpy()[zero], expected[zero])


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8"])
@pytest.mark.parametrize("alpha", [2, -2])
def test_alpha(dtype: str, alpha: int) -> None:
    a, b = data(dtype, (3, 4)), data(dtype, (3, 4), 1)
    factor = np.array([alpha % 256 if dtype == "uint8" else alpha]).astype(dtype)
    for y in (b, b[0], b[0, 0]):
        plus, minus = a + factor * y, a - factor * y
        for name, expected in (("add", plus), ("sub", minus)):
            out, onto = empty((3, 4), dtype), from_numpy(a.copy())
            KERNELS[name](out, from_numpy(a), operand(y), alpha)
            agree(out.numpy(), expected)
            KERNELS[name](onto, onto, operand(y), alpha)
            agree(onto.numpy(), expected)


@pytest.mark.parametrize("name", DIVIDING)
def test_integer_division_by_zero_writes_nothing(name: str) -> None:
    a, out = from_numpy(np.array([7, 8])), from_numpy(np.array([1, 2]))
    for divisor in (from_numpy(np.array([1, 0])), 0):
        with pytest.raises(ArithmeticRefused, check=code("DivisionByZero")) as caught:
            KERNELS[name](out, a, divisor)
        assert caught.value.fields() == {"operator": f"core::{name}", "dtype": "int64"}
        assert out.tolist() == [1, 2]
    assert str(caught.value) == (
        f"`core::{name}` would divide int64 by zero: no integer is the result.\n"
        "  fits:  divisors without zeros, or floating-point elements\n"
        "  state: nothing was written"
    )
    KERNELS[name](empty((0,), "int64"), empty((0,), "int64"), 0)


@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_dividing_the_least_integer_wraps(dtype: str) -> None:
    least = np.iinfo(dtype).min
    a = from_numpy(np.array([least, -7, 7, -7], dtype))
    b = from_numpy(np.array([-1, 2, -2, -2], dtype))
    out = empty((4,), dtype)
    KERNELS["floor_divide"](out, a, b)
    assert out.tolist() == [least, -4, -4, 3]
    KERNELS["remainder"](out, a, b)
    assert out.tolist() == [0, 1, -1, -1]
    KERNELS["fmod"](out, a, b)
    assert out.tolist() == [0, -1, 1, -1]


@pytest.mark.parametrize("dtype", REAL)
def test_floor_division_of_special_values(dtype: str) -> None:
    values = np.array([0.0, -0.0, 1, -1, 5.5, -5.5, np.inf, -np.inf, np.nan], dtype)
    a, b = (grid.reshape(-1).copy() for grid in np.meshgrid(values, values))
    for name in DIVIDING:
        out = empty(a.shape, dtype)
        KERNELS[name](out, from_numpy(a), from_numpy(b))
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(a, b)
        np.testing.assert_array_equal(out.numpy(), expected)


def test_integer_powers() -> None:
    a = np.array([-3, 0, 2, 10, 3], np.int64)
    b = np.array([3, 0, 62, 2, 50], np.int64)
    out = empty((5,), "int64")
    KERNELS["pow"](out, from_numpy(a), from_numpy(b))
    with np.errstate(all="ignore"):
        assert out.tolist() == (a**b).tolist()
    KERNELS["pow"](out, 2, from_numpy(b))
    assert out.tolist() == [8, 1, 2**62, 4, 2**50]
    with pytest.raises(WrongOption, check=code("NegativeExponent")) as caught:
        KERNELS["pow"](out, from_numpy(a), -1)
    assert out.tolist() == [8, 1, 2**62, 4, 2**50]
    assert str(caught.value) == (
        "`core::pow` was given a negative exponent, and int64 has no fractions.\n"
        "  fits:  exponents from 0 on, or floating-point elements\n"
        "  state: nothing was written"
    )
    KERNELS["pow"](empty((0,), "int64"), empty((0,), "int64"), empty((0,), "int64"))


@pytest.mark.parametrize("exponent", [1, 2, 0.5, -1, -0.5, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_by_a_number(exponent: float, dtype: str) -> None:
    x = np.array([0.25, 1, 2, 9], dtype)
    out = empty((4,), dtype)
    KERNELS["pow"](out, from_numpy(x), exponent)
    agree(out.numpy(), x**exponent)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_nan_wins(name: str) -> None:
    a = np.array([np.nan, 1, np.nan, 1], np.float32)
    b = np.array([1, np.nan, np.nan, 2], np.float32)
    out = empty((4,), "float32")
    KERNELS[name](out, from_numpy(a), from_numpy(b))
    assert np.isnan(out.numpy()).tolist() == [True, True, True, False]


@pytest.mark.parametrize("dtype", SUPPORTED)
def test_where_moves_every_dtype(dtype: str) -> None:
    form = numpy_dtype(DType.named(dtype))
    numbers = data("float32", (4, 6)) * 20
    a = (numbers > 0 if dtype == "bool" else numbers).astype(form)
    b = a[::-1].copy()
    mask = data("bool", (4, 6))
    for m, x, y in (
        (mask, a, b),
        (mask[0], a, b),
        (mask, a[:1], b),
        (mask, a[:1, :1], b),
        (mask, a, 1),
        (mask, 1, b),
        (mask, 1, 0),
        (np.asfortranarray(mask), np.asfortranarray(a), b),
    ):
        out = empty((4, 6), dtype)
        operands = (v if isinstance(v, int) else from_numpy(v) for v in (x, y))
        KERNELS["where"](out, from_numpy(m), *operands)
        given = (np.asarray(v).astype(form) for v in (x, y))
        assert array_of(out).tobytes() == np.where(m, *given).tobytes()
    onto = from_numpy(b.copy())
    KERNELS["where"](onto, from_numpy(mask), 1, onto)
    expected = np.where(mask, np.ones((), form), b)
    assert array_of(onto).tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint8"])
def test_clamp(dtype: str) -> None:
    x = data(dtype, (3, 5))
    least, most = (np.array(v).astype(dtype) for v in (2, 60))
    for low, high in ((2, 60), (None, 60), (2, None), (60, 2)):
        expected = x
        if low is not None:
            expected = np.maximum(expected, np.array(low, dtype))
        if high is not None:
            expected = np.minimum(expected, np.array(high, dtype))
        for each in (x, np.asfortranarray(x)):
            out = empty((3, 5), dtype)
            KERNELS["clamp"](out, from_numpy(each), low, high)
            agree(out.numpy(), expected)
    lows = from_numpy(np.full((5,), least))
    for bound in (from_numpy(np.full((3, 1), most)), 60, None):
        out = empty((3, 5), dtype)
        KERNELS["clamp"](out, from_numpy(x), lows, bound)
        expected = np.maximum(x, least)
        agree(out.numpy(), expected if bound is None else np.minimum(expected, most))
    onto = from_numpy(x.copy())
    KERNELS["clamp"](onto, onto, None, view_of(onto, (3, 5), (5, 1), 0))
    agree(onto.numpy(), x)


def test_clamp_keeps_nan_and_moves_bounds_into_the_dtype() -> None:
    x = from_numpy(np.array([np.nan, -5, 5], np.float32))
    out = empty((3,), "float32")
    KERNELS["clamp"](out, x, -1, 1)
    assert np.isnan(out.numpy()[0])
    assert out.tolist()[1:] == [-1, 1]
    KERNELS["clamp"](out, x, float("nan"), None)
    assert np.isnan(out.numpy()).all()
    small = from_numpy(np.array([0, 100, 255], np.uint8))
    kept = empty((3,), "uint8")
    KERNELS["clamp"](kept, small, -5, 1000)
    assert kept.tolist() == [0, 100, 255]
    KERNELS["clamp"](kept, small, None, -5)
    assert kept.tolist() == [0, 0, 0]


def _slope(name: str, x: Any, *extra: str) -> Any:
    """By differences of the kernel itself, in double precision."""
    step = 1e-6
    ends = []
    for moved in (x + step, x - step):
        out = empty(x.shape, "float64")
        KERNELS[name](out, from_numpy(moved), *extra)
        ends.append(out.numpy())
    return (ends[0] - ends[1]) / (2 * step)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize(
    ("name", "extra", "of_result"),
    [
        ("relu", (), True),
        ("sigmoid", (), True),
        ("tanh", (), True),
        ("silu", (), False),
        ("gelu", ("none",), False),
        ("gelu", ("tanh",), False),
    ],
)
def test_gradients(
    name: str, extra: tuple[str, ...], of_result: bool, dtype: str
) -> None:
    x, grad = data("float64", (4, 5)), data(dtype, (4, 5), 1)
    given = x.astype(dtype)
    if of_result:
        result = empty((4, 5), dtype)
        KERNELS[name](result, from_numpy(given), *extra)
        given = result.numpy()
    out = empty((4, 5), dtype)
    KERNELS[f"{name}_backward"](out, from_numpy(grad), from_numpy(given), *extra)
    expected = grad * _slope(name, x, *extra)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
def test_gradients_of_complex_numbers_are_conjugate(name: str) -> None:
    result, grad = data("complex64", (5,)), data("complex64", (5,), 1)
    out = empty((5,), "complex64")
    KERNELS[f"{name}_backward"](out, from_numpy(grad), from_numpy(result))
    slope = (1 - result) * result if name == "sigmoid" else 1 - result * result
    agree(out.numpy(), grad * np.conj(slope))


@pytest.mark.parametrize("name", [*DIVIDING, "atan2", "exp"])
def test_a_kernel_has_the_name_of_its_operator(name: str) -> None:
    kernel: Any = KERNELS[name]
    assert kernel.__name__ == name
