"""Formulas of functions of elements and of reductions, against finite differences."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runtime.autograd as ag
from runtime import tensor
from runtime.operators.call import core, handle_of
from runtime.tensors.making import from_numpy
from tests.autograd.made import complex_, grad_of, points, real, truth
from tests.opinfo.table_pointwise import BINARY as ROWS

Function = Callable[..., Any]

POSITIVE = (
    *("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "sin", "cos"),
    *("tan", "tanh", "sigmoid", "silu", "erf", "reciprocal", "square", "neg", "gelu"),
)
SIGNED = (
    *("abs", "relu", "sign", "tanh", "sigmoid", "silu", "gelu", "floor", "ceil"),
    *("round", "trunc"),
)
COMPLEX = (
    *("neg", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "sigmoid"),
    *("abs", "conj", "reciprocal", "square", "log2", "log10"),
)

# Operators whose gradient is zero, so that there is no second one to check.
STEPS = ("sign", "floor", "ceil", "round", "trunc")


@pytest.mark.parametrize("name", POSITIVE)
def test_unary_of_positive_numbers(name: str) -> None:
    operator = handle_of(name)
    assert ag.gradcheck(operator, points((2, 3)))
    assert ag.gradgradcheck(operator, points((3,)))


@pytest.mark.parametrize("name", SIGNED)
def test_unary_of_both_signs(name: str) -> None:
    operator = handle_of(name)
    given = points((5,), low=-1.4, high=1.8)
    assert ag.gradcheck(operator, given)
    if name not in STEPS:
        assert ag.gradgradcheck(operator, given)


@pytest.mark.parametrize("name", COMPLEX)
def test_unary_of_complex_numbers(name: str) -> None:
    operator = handle_of(name)
    assert ag.gradcheck(operator, [complex_(3)])
    if name not in ("abs",):
        assert ag.gradgradcheck(operator, [complex_(2)])


def test_gelu_by_tanh() -> None:
    given = points((4,), low=-2, high=2)
    assert ag.gradcheck(lambda x: core.gelu(x, approximate="tanh"), given)
    assert ag.gradgradcheck(lambda x: core.gelu(x, approximate="tanh"), given)


def test_abs_of_zero_is_flat() -> None:
    x = from_numpy(np.array([0j, 3 + 4j])).requires_grad_()
    core.sum(core.abs(x)).backward()
    np.testing.assert_allclose(grad_of(x).numpy(), [0, 0.6 + 0.8j])


BINARY: dict[str, Function] = {
    "add": core.add,
    "add alpha": lambda a, b: core.add(a, b, alpha=2.5),
    "sub": core.sub,
    "sub alpha": lambda a, b: core.sub(a, b, alpha=3),
    "mul": core.mul,
    "div": core.div,
    "pow": core.pow,
    "atan2": core.atan2,
    "maximum": core.maximum,
    "minimum": core.minimum,
    "remainder": core.remainder,
    "div trunc": lambda a, b: core.div(a, b, rounding_mode="trunc"),
    "floor_divide": core.floor_divide,
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), ())])
def test_binary(name: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    function = BINARY[name]
    assert ag.gradcheck(function, points(*shapes))
    if name not in ("div trunc", "floor_divide"):
        assert ag.gradgradcheck(function, points(*shapes))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow"])
def test_binary_of_complex_numbers(name: str) -> None:
    function = BINARY[name]
    assert ag.gradcheck(function, [complex_(2), points((2,))[0]])
    assert ag.gradcheck(function, [points((2,))[0], complex_(2)])
    assert ag.gradcheck(function, [complex_(2), complex_(1)])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: core.add(x, 2, alpha=3),
        lambda x: core.sub(2, x),
        lambda x: core.mul(3, x),
        lambda x: core.div(2.0, x),
        lambda x: core.pow(x, 2),
        lambda x: core.pow(x, 3),
        lambda x: core.pow(x, 0.5),
        lambda x: core.pow(x, 0),
        lambda x: core.pow(2.0, x),
        lambda x: core.remainder(x, 0.7),
    ],
)
def test_numbers(function: Function) -> None:
    assert ag.gradcheck(function, points((2, 2)))


def test_equal_extremes_share() -> None:
    a, b = real([1.0, 2.0, 3.0]), real([1.0, 5.0, 0.0])
    core.sum(core.maximum(a, b)).backward()
    assert grad_of(a).tolist() == [0.5, 0, 1]
    assert grad_of(b).tolist() == [0.5, 1, 0]


def test_powers_at_zero() -> None:
    base, power = real([0.0, 0.0, 2.0]), real([0.0, 2.0, 0.0])
    core.sum(core.pow(base, power)).backward()
    assert grad_of(base).tolist() == [0, 0, 0]
    np.testing.assert_allclose(grad_of(power).numpy(), [0, 0, np.log(2)])


CHOICES: dict[str, tuple[Function, list[Any]]] = {
    "where": (
        lambda a, b: core.where(truth([[True], [False]]), a, b),
        points((2, 3), (3,)),
    ),
    "clamp": (lambda x: core.clamp(x, 0.6, 1.3), points((6,))),
    "clamp min": (lambda x: core.clamp(x, min=0.6), points((6,))),
    "clamp Tensor": (core.clamp_Tensor, [*points((6,)), real(0.6), real(1.3)]),
    "clamp min Tensor": (
        lambda x, least: core.clamp_Tensor(x, least),
        [*points((6,)), real(0.6)],
    ),
    "clamp max": (
        lambda x, most: core.clamp_Tensor(x, None, most),
        [*points((6,)), real(1.3)],
    ),
    "masked_fill": (
        lambda x: core.masked_fill(x, truth([True, False, True]), 2),
        points((2, 3)),
    ),
}


@pytest.mark.parametrize("name", CHOICES)
def test_choices(name: str) -> None:
    function, given = CHOICES[name]
    assert ag.gradcheck(function, given)


REDUCTIONS: dict[str, Function] = {
    "sum": core.sum,
    "sum dim": lambda x: core.sum(x, [1]),
    "sum keepdim": lambda x: core.sum(x, [0, 2], True),
    "mean": core.mean,
    "mean dim": lambda x: core.mean(x, [-1]),
    "prod": core.prod,
    "prod dim": lambda x: core.prod(x, [1]),
    "var": core.var,
    "var dim": lambda x: core.var(x, [1], correction=0, keepdim=True),
    "std": core.std,
    "max": core.max,
    "max dim": lambda x: core.max_dim(x, 2)[0],
    "min dim keepdim": lambda x: core.min_dim(x, 1, True)[0],
    "amax": lambda x: core.amax(x, [2]),
    "amin keepdim": lambda x: core.amin(x, [0, 1], True),
    "cumsum": lambda x: core.cumsum(x, 1),
    "cumsum last": lambda x: core.cumsum(x, -1),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str) -> None:
    function = REDUCTIONS[name]
    assert ag.gradcheck(function, points((2, 3, 2)))
    assert ag.gradgradcheck(function, points((2, 2, 2)))


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "var"])
def test_reductions_of_one_number(name: str) -> None:
    x = real(1.5)
    result = handle_of(name)(x) if name != "var" else core.var(x, correction=0)
    result.backward()
    assert grad_of(x).item() == (0 if name == "var" else 1)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2.0, 0.0, 3.0], [0, 6, 0]),
        ([0.0, 0.0, 3.0], [0, 0, 0]),
        ([2.0, 5.0, 3.0], [15, 6, 10]),
    ],
)
def test_products_with_zeros(values: list[float], expected: list[float]) -> None:
    x = real(values)
    core.prod(x).backward()
    np.testing.assert_allclose(grad_of(x).numpy(), expected)


def test_equal_maxima_share() -> None:
    x = real([2.0, 1.0, 2.0])
    core.max(x).backward()
    assert grad_of(x).tolist() == [0.5, 0, 0.5]


@pytest.mark.parametrize("number", [3, 1.7])
@pytest.mark.parametrize("name", [row.name for row in ROWS if row.gradient])
def test_a_number_is_as_exact_as_a_tensor_of_it(name: str, number: float) -> None:
    """Beside doubles; by itself it would be one of single precision."""
    function = getattr(core, name)
    for turned in (False, True):
        found: list[list[Any]] = []
        for other in (number, tensor([number, number], dtype="float64")):
            x = tensor([0.3, 2.9], dtype="float64", requires_grad=True)
            y = function(other, x) if turned else function(x, other)
            by = tensor([1.1, 0.7], dtype="float64")
            slope = ag.grad(y, [x], by, create_graph=True)[0]
            assert slope is not None
            found.append([slope.tolist()])
            if slope.requires_grad:
                bend = ag.grad(slope, [x], by, allow_unused=True)[0]
                found[-1].append(None if bend is None else bend.tolist())
        assert found[0] == [
            each and pytest.approx(each, rel=1e-14, abs=1e-15) for each in found[1]
        ]
