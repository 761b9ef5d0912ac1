"""Operators of one tensor: dtypes as torch 2.13 gives them, values as NumPy's."""

from typing import Any

import numpy as np
import pytest

from runtime.errors.operands import DTypeRefused, TargetRefused, WrongOption
from runtime.operators import core
from runtime.operators.unary import OPERATORS, ROWS, TESTS
from tests.coded import code
from tests.operators.made import LETTERS, META, letter_of, made, shown, tensor

# Letter of the result for each of LETTERS; "-" is refused.  Source: torch 2.13.
RESULTS = {
    "neg": "-uilhgfdc",
    "abs": "-uilhgfdf",
    "sign": "builhgfd-",
    "exp": "ffffhgfdc",
    "expm1": "ffffhgfdc",
    "log": "ffffhgfdc",
    "log1p": "ffffhgfdc",
    "log2": "ffffhgfdc",
    "log10": "ffffhgfdc",
    "sqrt": "ffffhgfdc",
    "rsqrt": "ffffhgfdc",
    "sin": "ffffhgfdc",
    "cos": "ffffhgfdc",
    "tan": "ffffhgfdc",
    "tanh": "ffffhgfdc",
    "sigmoid": "ffffhgfdc",
    "relu": "-uilhgfd-",
    "silu": "----hgfdc",
    **dict.fromkeys(("sinh", "cosh"), "ffffhgfdc"),
    **dict.fromkeys(("asin", "acos", "atan", "asinh", "acosh"), "ffffhgfdc"),
    **dict.fromkeys(("erf", "erfc"), "ffffhgfd-"),
    "atanh": "ffffhgfdc",
    "reciprocal": "ffffhgfdc",
    "square": "luilhgfdc",
    "floor": "-uilhgfd-",
    "ceil": "-uilhgfd-",
    "round": "-uilhgfd-",
    "trunc": "-uilhgfd-",
    "logical_not": "bbbbbbbbb",
    "bitwise_not": "buil-----",
    "conj": "builhgfdc",
    "isnan": "bbbbbbbbb",
    "isinf": "bbbbbbbbb",
    "isfinite": "bbbbbbbbb",
    "gelu": "----hgfd-",
}


def _erf(x: Any) -> Any:
    from math import erf

    return np.vectorize(erf)(x)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


# What each computes, in NumPy's words.
REFERENCE: dict[str, Any] = {
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x * _sigmoid(x),
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": _erf,
    "erfc": lambda x: 1 - _erf(x),
    "reciprocal": lambda x: 1 / x,
    "square": np.square,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.round,
    "trunc": np.trunc,
    "logical_not": np.logical_not,
    "bitwise_not": np.invert,
    "conj": np.conj,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "gelu": lambda x: x * 0.5 * (1 + _erf(x / np.sqrt(2))),
}
# Relative error allowed: the precision of the dtype, and that of the polynomials.
TOLERANCE = {"g": 8e-3, "f": 1e-6}


def test_every_operator_is_in_the_tables() -> None:
    declared = {operator.name for operator in OPERATORS}
    assert declared == set(RESULTS) == set(REFERENCE)
    assert declared == {*ROWS, *TESTS, "gelu"}


@pytest.mark.parametrize("name", RESULTS)
def test_dtypes(name: str) -> None:
    found, refused = "", set()
    for dtype in LETTERS.values():
        x = core.empty([2, 3], dtype=dtype, device=META)
        try:
            y = getattr(core, name)(x)
        except DTypeRefused as error:
            refused.add((error.operator, error.dtype == dtype.name))
            found += "-"
        else:
            assert y.shape == (2, 3)
            found += letter_of(y)
    assert found == RESULTS[name]
    assert refused <= {(f"core::{name}", True)}


# One kind each: every kernel is compiled, every way is taken, few are compiled twice.
@pytest.mark.parametrize("letter", "lgf")
@pytest.mark.parametrize("name", RESULTS)
def test_values(name: str, letter: str) -> None:
    if RESULTS[name][list(LETTERS).index(letter)] == "-":
        with pytest.raises(DTypeRefused):
            getattr(core, name)(made(letter, [1]))
        return
    x = made(letter, [[1, 2, 3]])
    y = getattr(core, name)(x)
    assert letter_of(y) == RESULTS[name][list(LETTERS).index(letter)]
    given = x.numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = REFERENCE[name](
            given.astype("float64") if y.dtype.is_floating else given
        )
    rtol = TOLERANCE.get(letter_of(y), 0)
    got = y.numpy().astype(expected.dtype)
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol / 10)


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 4)])
def test_shapes_are_kept(name: str, shape: tuple[int, ...]) -> None:
    dtype = "int64" if name == "bitwise_not" else "float32"
    x = tensor(np.ones(shape), dtype)
    assert getattr(core, name)(x).shape == shape


@pytest.mark.parametrize("name", [n for n in RESULTS if n not in TESTS])
def test_in_place_and_out_equal_the_functional_form(name: str) -> None:
    dtype = "int64" if name == "bitwise_not" else "float32"
    values = [[1.0, 2.5, 4.0], [0.5, 3.0, 9.0]]
    expected = getattr(core, name)(tensor(values, dtype)).numpy()
    changed = tensor(values, dtype)
    assert getattr(core, f"{name}_")(changed) is changed
    np.testing.assert_array_equal(changed.numpy(), expected.astype(dtype))
    out = core.empty([0], dtype=getattr(core, name)(tensor(values, dtype)).dtype)
    assert getattr(core, f"{name}_out")(tensor(values, dtype), out=out) is out
    np.testing.assert_array_equal(out.numpy(), expected)


@pytest.mark.parametrize("name", TESTS)
def test_tests_write_to_out(name: str) -> None:
    out = core.empty([2])
    x = tensor([np.nan, 1.0])
    assert getattr(core, f"{name}_out")(x, out=out) is out
    assert out.numpy().tolist() == [float(v) for v in REFERENCE[name](x.numpy())]


def test_large_and_strided_inputs_go_the_general_way() -> None:
    values = np.linspace(-2, 2, 30_000, dtype="float32").reshape(100, 300)
    large = core.tanh(tensor(values))
    np.testing.assert_allclose(large.numpy(), np.tanh(values), rtol=1e-6)
    turned = tensor(values)
    turned = core.transpose(turned, 0, 1)
    np.testing.assert_allclose(core.exp(turned).numpy(), np.exp(values.T), rtol=1e-6)


def test_in_place_on_a_strided_view_writes_only_the_view() -> None:
    base = tensor([[1, 2, 3], [4, 5, 6]])
    column = core.select(base, 1, 1)
    core.neg_(column)
    assert base.numpy().tolist() == [[1, -2, 3], [4, -5, 6]]


def test_floats_of_integers_in_place_are_refused() -> None:
    x = tensor([1, 2], "int64")
    with pytest.raises(TargetRefused, check=code("TargetDType")) as caught:
        core.exp_(x)
    assert caught.value.fields() == {
        "operator": "core::exp_",
        "argument": "self",
        "dtype": "int64",
        "result": "float32",
    }
    assert shown(x) == ("int64", [1, 2])


def test_special_values() -> None:
    x = tensor([np.nan, np.inf, -np.inf, -0.0])
    assert core.isnan(x).numpy().tolist() == [True, False, False, False]
    assert core.isinf(x).numpy().tolist() == [False, True, True, False]
    assert core.isfinite(x).numpy().tolist() == [False, False, False, True]
    relu = core.relu(x).numpy().tolist()
    assert np.isnan(relu[0])
    assert relu[1:] == [np.inf, 0.0, 0.0]


def test_gelu_by_tanh() -> None:
    x = tensor([-1.0, 0.0, 2.0])
    inner = np.sqrt(2 / np.pi) * (x.numpy() + 0.044715 * x.numpy() ** 3)
    expected = 0.5 * x.numpy() * (1 + np.tanh(inner))
    found = core.gelu(x, approximate="tanh").numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_gelu_knows_two_approximations() -> None:
    with pytest.raises(WrongOption) as caught:
        core.gelu(tensor([1.0]), approximate="fast")
    assert str(caught.value) == (
        "`core::gelu` does not take 'fast' for `approximate`.\n  fits: 'none' or 'tanh'"
    )


def test_the_refusal_names_what_fits() -> None:
    with pytest.raises(DTypeRefused) as caught:
        core.bitwise_not(tensor([1.0]))
    assert str(caught.value) == (
        "`core::bitwise_not` does not take `self` of dtype float32.\n"
        "  fits: bool, int16, int32, int64, int8, uint8"
    )
