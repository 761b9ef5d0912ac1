"""Linear algebra by NumPy's LAPACK: matrices are the last two dimensions.

NumPy computes in float64 or complex128, and the result is rounded once.

Rules:
- a kernel that cannot compute raises `numpy.linalg.LinAlgError` before it writes;
  `runtime.operators.linalg` says what is wrong;
- singular values and eigenvalues are computed of finite numbers only: for others,
  LAPACK raises, does not return, or returns numbers without meaning.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import array_of


def _written(outs: tuple[Tensor, ...], results: tuple[Any, ...]) -> None:
    """Write the results, rounded to the dtypes of the outputs."""
    with np.errstate(all="ignore"):
        for out, result in zip(outs, results, strict=True):
            array_of(out)[...] = result


def _require_finite(elements: Any) -> None:
    if not np.isfinite(elements).all():
        raise LinAlgError("an element is NaN or infinite")


def linalg_inv(out: Tensor, matrices: Tensor) -> None:
    """Write the inverses."""
    _written((out,), (np.linalg.inv(array_of(matrices)),))


def linalg_solve(out: Tensor, matrices: Tensor, right: Tensor) -> None:
    """Write the solutions X of A X = B."""
    a, b = array_of(matrices), array_of(right)
    _written((out,), (np.linalg.solve(a, b),))


def linalg_slogdet(sign: Tensor, logabsdet: Tensor, matrices: Tensor) -> None:
    """Write the signs, and the logarithms of the magnitudes, of the determinants."""
    with np.errstate(all="ignore"):
        results = tuple(np.linalg.slogdet(array_of(matrices)))
    _written((sign, logabsdet), results)


def linalg_det(out: Tensor, matrices: Tensor) -> None:
    """Write the determinants."""
    with np.errstate(all="ignore"):
        _written((out,), (np.linalg.det(array_of(matrices)),))


def linalg_cholesky(out: Tensor, matrices: Tensor) -> None:
    """Write the lower factors; only the lower triangles are read."""
    with np.errstate(all="ignore"):
        factors = np.linalg.cholesky(array_of(matrices))
    # A NaN of a row reaches its element of the diagonal, the root of a difference.
    if np.isnan(np.diagonal(factors, axis1=-2, axis2=-1)).any():
        raise LinAlgError("a pivot is NaN")
    _written((out,), (factors,))


def linalg_qr(q: Tensor, r: Tensor, matrices: Tensor, mode: str) -> None:
    """Write the factors; for the mode `r`, `q` has no elements and is not written."""
    factors: Any = np.linalg.qr(array_of(matrices), mode=mode)  # type: ignore[call-overload]  # a plan has checked it
    if mode == "r":
        _written((r,), (factors,))
    else:
        _written((q, r), tuple(factors))


def linalg_svd(
    u: Tensor, s: Tensor, vh: Tensor, matrices: Tensor, full_matrices: bool
) -> None:
    """Write the factors, the singular values in descending order."""
    a = array_of(matrices)
    _require_finite(a)
    _written((u, s, vh), tuple(np.linalg.svd(a, full_matrices=full_matrices)))


def linalg_eigh(
    values: Tensor, vectors: Tensor, matrices: Tensor, triangle: str
) -> None:
    """Write the eigenvalues in ascending order, and the vectors as columns."""
    a = array_of(matrices)
    _require_finite(np.tril(a) if triangle == "L" else np.triu(a))
    results = np.linalg.eigh(a, UPLO=triangle)  # type: ignore[call-overload]  # as above
    _written((values, vectors), tuple(results))


# Other devices do not have them.
KERNELS: dict[str, Callable[..., None]] = {
    each.__name__: each
    for each in (
        *(linalg_inv, linalg_solve, linalg_slogdet, linalg_det, linalg_cholesky),
        *(linalg_qr, linalg_svd, linalg_eigh),
    )
}
