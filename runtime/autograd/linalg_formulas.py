"""Formulas of linear algebra: `runtime.operators.linalg`.

`H` is the conjugate of a matrix with rows and columns exchanged. The gradients of
symmetric and Hermitian matrices are those of matrices that stay so. Singular vectors
have no gradient here, and a recorded pass through `det` needs an invertible matrix.

Source: Giles, "Collected matrix derivative results for forward and reverse mode
algorithmic differentiation", 2008; the formulas of complex matrices are those with `H`
for the transposed matrix.
"""

from collections.abc import Sequence
from math import nan
from typing import Any

from everyorder.runtime.autograd.elementwise_formulas import conj
from everyorder.runtime.autograd.grad_mode import GRAD
from everyorder.runtime.autograd.gradient_plan import Formulas
from everyorder.runtime.autograd.reduction_formulas import products_of_others
from everyorder.runtime.errors.autograd import NotImplementedFormula
from everyorder.runtime.operators.declare.handles import core


def _h(matrix: Any) -> Any:
    return conj(core.transpose(matrix, -2, -1))


def _column(vector: Any) -> Any:
    return core.unsqueeze(vector, -1)


def _scalar(values: Any) -> Any:
    """Return one number of each matrix of a batch as a matrix of one element."""
    return _column(_column(values))


def _inv(grad: Any, result: Any) -> Any:
    back = _h(result)
    return core.neg(core.matmul(core.matmul(back, grad), back))


def _det(grad: Any, A: Any, result: Any) -> Any:  # noqa: N803  # torch's name
    """Return the gradient: the cofactors, which singular matrices have, too.

    They follow from the singular values: for each the product of the others. Those of
    a matrix with a NaN or an infinite element are NaN.
    """
    if GRAD.enabled:
        inverse = _h(core.linalg_inv(A))
        return core.mul(_scalar(core.mul(grad, conj(result))), inverse)
    finite = _scalar(core.all(core.isfinite(A), [-2, -1]))
    u, s, vh = core.linalg_svd(core.where(finite, A, 0), False)
    turns = core.mul(core.linalg_det(u), core.linalg_det(vh))
    product = core.unsqueeze(products_of_others(s, (len(s.shape) - 1,)), -2)
    cofactors = core.where(finite, core.matmul(core.mul(u, product), vh), nan)
    return core.mul(_scalar(core.mul(grad, conj(turns))), cofactors)


def _slogdet(grads: Sequence[Any], A: Any) -> Any:  # noqa: N803  # as above
    """Return the gradient of the logarithm; the sign of a real number is constant."""
    of_sign, grad = grads
    if A.dtype.is_complex and of_sign is not None:
        raise NotImplementedFormula(operator="core::linalg_slogdet", inputs=("A",))
    if grad is None:
        return core.zeros_like(A)
    return core.mul(_scalar(grad), _h(core.linalg_inv(A)))


def _solve(
    grad: Any,
    A: Any,  # noqa: N803  # as above
    B: Any,  # noqa: N803  # as above
    left: bool,
    result: Any,
) -> Any:
    """Return the gradients of A and of B."""
    vectors = len(B.shape) == 1 or B.shape == A.shape[:-1]
    if vectors:
        right = core.linalg_solve(_h(A), _column(grad))
        of_matrix = core.matmul(right, _h(_column(result)))
        return core.neg(of_matrix), core.squeeze(right, [-1])
    right = core.linalg_solve(_h(A), grad, left=left)
    sides = (right, _h(result)) if left else (_h(result), right)
    return core.neg(core.matmul(*sides)), right


def _cholesky(grad: Any, upper: bool, result: Any) -> Any:
    """Return the gradient of a matrix that stays symmetric."""
    lower, slope = (_h(result), _h(grad)) if upper else (result, grad)
    inner = core.tril(core.matmul(_h(lower), slope))
    # Half of the diagonal, of which each element is once in the sum below.
    inner = core.sub(inner, core.mul(core.tril(core.triu(inner)), 0.5))
    outer = core.linalg_solve(_h(lower), inner)
    slopes = core.linalg_solve(lower, outer, left=False)
    return core.mul(core.add(slopes, _h(slopes)), 0.5)


def _eigh(grads: Sequence[Any], result0: Any, result1: Any) -> Any:
    """Return the gradient of a matrix that stays symmetric.

    Vectors of equal eigenvalues have none: it is not finite.
    """
    of_values, of_vectors = grads
    vectors = result1
    inner = None
    unit = core.eye(result0.shape[-1], dtype=result0.dtype, device=result0.device)
    if of_values is not None:
        inner = core.mul(_column(core.to(of_values, dtype=vectors.dtype)), unit)
    if of_vectors is not None:
        apart = core.sub(core.unsqueeze(result0, -2), _column(result0))
        turned = core.matmul(_h(vectors), of_vectors)
        # Only this part has a Hermitian quotient by the antisymmetric differences.
        turned = core.mul(core.sub(turned, _h(turned)), 0.5)
        turned = core.div(turned, core.add(apart, unit))
        turned = core.mul(turned, core.sub(1, unit))
        inner = turned if inner is None else core.add(inner, turned)
    return core.matmul(core.matmul(vectors, inner), _h(vectors))


def _svd(
    grads: Sequence[Any], full_matrices: bool, result0: Any, result1: Any, result2: Any
) -> Any:
    """Return the gradient of the singular values.

    Raises:
        NotImplementedFormula: the result depends on the vectors.
    """
    of_left, grad, of_right = grads
    if of_left is not None or of_right is not None:
        raise NotImplementedFormula(operator="core::linalg_svd", inputs=("A",))
    count = result1.shape[-1]
    left = core.slice(result0, -1, 0, count)
    right = core.slice(result2, -2, 0, count)
    return core.matmul(core.mul(left, core.unsqueeze(grad, -2)), right)


LINEAR_ALGEBRA: dict[str, Formulas] = {
    "linalg_inv": {"A": _inv},
    "linalg_det": {"A": _det},
    "linalg_slogdet": {"A": _slogdet},
    "linalg_solve": {("A", "B"): _solve},
    "linalg_cholesky": {"self": _cholesky},
    "linalg_eigh": {"self": _eigh},
    "linalg_svd": {"A": _svd},
}
