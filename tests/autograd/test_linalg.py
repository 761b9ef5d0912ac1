"""Gradients of linear algebra, and of their gradients, by differences and by hand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, linalg
from everyorder.runtime.autograd import gradcheck, gradgradcheck
from everyorder.runtime.errors.autograd import NotImplementedFormula
from everyorder.runtime.errors.tensor import WrongOption


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    if dtype == "complex128":
        values = values + 1j * rng.standard_normal(shape)
    return values


def positive(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    half = numbers(shape, dtype, seed)
    return half @ np.conj(np.swapaxes(half, -1, -2)) + np.eye(shape[-1])


def leaf(values: Any) -> Tensor:
    return runtime.tensor(values).requires_grad_()


def symmetric(a: Tensor) -> Tensor:
    """The matrix without the part that no triangle of a Hermitian one has."""
    both: Tensor = (a + a.transpose(-2, -1).conj()) / 2
    return both


Function = Callable[..., Tensor]
OF_ANY: dict[str, Function] = {
    "inv": lambda a: linalg.inv(a),
    "det": lambda a: a.det(),
    "slogdet": lambda a: linalg.slogdet(a).logabsdet,
}
OF_POSITIVE: dict[str, Function] = {
    "cholesky": lambda a: linalg.cholesky(symmetric(a)),
    "cholesky of the upper triangle": lambda a: linalg.cholesky(
        symmetric(a), upper=True
    ),
    "eigh, values": lambda a: linalg.eigh(symmetric(a)).eigenvalues,
    # The phase of a vector is free, and its magnitudes are not.
    "eigh, vectors": lambda a: runtime.abs(linalg.eigh(symmetric(a)).eigenvectors),
}
OF_TWO: dict[str, tuple[Function, tuple[int, ...]]] = {
    "matrices": (linalg.solve, (3, 2)),
    "vectors": (linalg.solve, (3,)),
    "on the right": (lambda a, b: linalg.solve(a, b, left=False), (4, 3)),
}


def check(function: Function, *values: Any) -> None:
    leaves = [leaf(each) for each in values]
    assert gradcheck(function, leaves)
    assert gradgradcheck(function, leaves)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
@pytest.mark.parametrize("name", OF_ANY)
def test_of_any_matrix(name: str, batch: tuple[int, ...], dtype: str) -> None:
    check(OF_ANY[name], numbers((*batch, 3, 3), dtype, 1))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
@pytest.mark.parametrize("name", OF_POSITIVE)
def test_of_positive_matrices(name: str, batch: tuple[int, ...], dtype: str) -> None:
    check(OF_POSITIVE[name], positive((*batch, 3, 3), dtype, 2))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
@pytest.mark.parametrize("name", OF_TWO)
def test_of_solutions(name: str, batch: tuple[int, ...], dtype: str) -> None:
    function, shape = OF_TWO[name]
    a, b = numbers((*batch, 3, 3), dtype, 3), numbers(shape, dtype, 4)
    check(function, a, b)


def test_vectors_of_each_matrix_of_a_batch() -> None:
    check(linalg.solve, numbers((2, 3, 3), "float64", 5), numbers((2, 3), "float64", 6))


FACTORS: dict[str, Function] = {
    "cholesky": linalg.cholesky,
    "cholesky of the upper triangle": lambda a: linalg.cholesky(a, upper=True),
    "eigh, values": lambda a: linalg.eigh(a).eigenvalues,
    "eigh, vectors": lambda a: linalg.eigh(a).eigenvectors.abs(),
}


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", FACTORS)
def test_the_gradient_of_a_factor_is_hermitian(name: str, dtype: str) -> None:
    x = leaf(positive((3, 3), dtype, 8))
    factor = FACTORS[name](x)
    weights = runtime.tensor(numbers(factor.shape, str(factor.dtype.name), 9))
    total = (factor * weights).sum()
    (total.real if factor.dtype.is_complex else total).backward()
    assert x.grad is not None
    slopes = x.grad.numpy()
    assert np.abs(slopes).max() > 0.01
    np.testing.assert_allclose(slopes, slopes.conj().T, atol=1e-12)


def test_the_gradient_of_eigenvectors_of_a_matrix() -> None:
    x = leaf(np.array([[2.0, 0.5], [0.5, 1.0]]))
    first = linalg.eigh(x).eigenvectors[0]
    (first * first * runtime.tensor(np.array([1.0, 3.0]))).sum().backward()
    assert x.grad is not None
    # The cosine of the angle t of the vectors, where tan 2t = 2 a01 / (a00 - a11).
    slope = np.sqrt(2) / 4
    np.testing.assert_allclose(x.grad.numpy(), [[slope, -slope], [-slope, -slope]])


@pytest.mark.parametrize("values", [[[1.0, 2.0], [2.0, 4.0]], np.zeros((2, 2))])
def test_the_gradient_of_a_determinant_of_zero(values: Any) -> None:
    x = leaf(np.array(values))
    assert gradcheck(lambda a: a.det(), [x])
    (a, b), (c, d) = np.array(values)
    x.det().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), [[d, -c], [-b, a]], atol=1e-12)
    with pytest.raises(WrongOption, match="a singular matrix"):
        runtime.autograd.grad([x.det()], [x], create_graph=True)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_the_gradient_of_determinants_if_one_is_not_finite(
    value: float, dtype: str
) -> None:
    values = numbers((3, 3, 3), dtype, 10)
    values[1, 0, 2] = value
    x, others = leaf(values), leaf(values[::2])
    x.det().backward(runtime.ones(3, dtype=dtype))
    others.det().backward(runtime.ones(2, dtype=dtype))
    assert x.grad is not None
    assert others.grad is not None
    np.testing.assert_allclose(x.grad.numpy()[::2], others.grad.numpy())
    assert np.isnan(x.grad.numpy()[1]).all()


@pytest.mark.parametrize("order", ["nuc", 2, -2])
def test_singular_values_have_a_gradient_and_vectors_have_none(order: Any) -> None:
    x = leaf(numbers((3, 2), "complex128", 7))
    assert gradcheck(lambda a: linalg.matrix_norm(a, order), [x])
    with pytest.raises(NotImplementedFormula, match="linalg_svd"):
        linalg.svd(x).U.abs().sum().backward()
    with pytest.raises(NotImplementedFormula, match="linalg_qr"):
        linalg.qr(x).R.abs().sum().backward()
    with pytest.raises(NotImplementedFormula, match="linalg_slogdet"):
        linalg.slogdet(x[:2]).sign.abs().backward()
