"""Linear algebra, by the names of torch.linalg: `runtime.linalg.solve(A, B)`.

Matrices are the last two dimensions of a tensor, and the others a batch of them.

Rule: each function calls the operator `core::linalg_...` of its name.  `out` of several
results is a tuple of tensors.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from everyorder.runtime.operators.bindings.python_bindings import (
    parse_options,
    targets_of,
)
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.schema.call_errors import checked
from everyorder.runtime.tensors.tensor import Tensor

Order = float | str | None
# `out=` of several results.
Targets = Sequence[Tensor] | None


class Slogdet(NamedTuple):
    """The results of `slogdet`."""

    sign: Tensor
    logabsdet: Tensor


class QR(NamedTuple):
    """The results of `qr`."""

    Q: Tensor
    R: Tensor


class SVD(NamedTuple):
    """The results of `svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class Eigh(NamedTuple):
    """The results of `eigh`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def _run(name: str, *args: Any, out: Tensor | None = None, **options: Any) -> Any:
    """Call an operator, or its form that writes to `out`."""
    options = parse_options(options)
    if out is None:
        return getattr(core, name)(*args, **options)
    return getattr(core, f"{name}_out")(*args, **options, out=out)


def _several(kind: Any, name: str, *args: Any, out: Any = None, **options: Any) -> Any:
    """Call an operator of several results, or its form that writes to `out`."""
    run = f"linalg_{name}"
    if out is None:
        return kind(*getattr(core, run)(*args, **options))
    targets = targets_of(name, out, kind._fields)
    return kind(*getattr(core, f"{run}_out")(*args, **options, **targets))


@checked
def inv(A: Tensor, *, out: Tensor | None = None) -> Any:  # noqa: N803  # torch's name
    """Return the inverses of square matrices.

    Raises:
        WrongOption: a matrix is singular.
    """
    return _run("linalg_inv", A, out=out)


@checked
def det(A: Tensor, *, out: Tensor | None = None) -> Any:  # noqa: N803  # as above
    """Return the determinants of square matrices."""
    return _run("linalg_det", A, out=out)


@checked
def slogdet(A: Tensor, *, out: Targets = None) -> Slogdet:  # noqa: N803  # as above
    """Return the signs of determinants, and the logarithms of their magnitudes."""
    result: Slogdet = _several(Slogdet, "slogdet", A, out=out)
    return result


@checked
def solve(
    A: Tensor,  # noqa: N803  # as above
    B: Tensor,  # noqa: N803  # as above
    *,
    left: bool = True,
    out: Tensor | None = None,
) -> Any:
    """Return X, where A X = B; where X A = B, if not `left`.

    B holds matrices, or vectors if it has one dimension, or one less than A.

    Raises:
        WrongOption: a matrix of A is singular.
    """
    return _run("linalg_solve", A, B, left=left, out=out)


@checked
def cholesky(
    A: Tensor,  # noqa: N803  # as above
    *,
    upper: bool = False,
    out: Tensor | None = None,
) -> Any:
    """Return the triangular factors L of positive definite matrices L L'.

    Raises:
        WrongOption: a matrix is not positive definite.
    """
    return _run("linalg_cholesky", A, upper=upper, out=out)


@checked
def qr(A: Tensor, mode: str = "reduced", *, out: Targets = None) -> QR:  # noqa: N803  # as above
    """Return an orthogonal and an upper triangular factor.

    `mode` is "reduced", "complete", or "r" for the triangular factor only.
    """
    result: QR = _several(QR, "qr", A, mode, out=out)
    return result


@checked
def svd(
    A: Tensor,  # noqa: N803  # as above
    full_matrices: bool = True,
    *,
    driver: str | None = None,
    out: Targets = None,
) -> SVD:
    """Return the singular vectors and values; the values are in descending order.

    Raises:
        WrongOption: an element is not finite.
    """
    result: SVD = _several(SVD, "svd", A, full_matrices, driver=driver, out=out)
    return result


@checked
def eigh(A: Tensor, UPLO: str = "L", *, out: Targets = None) -> Eigh:  # noqa: N803  # as above
    """Return the eigenvalues and vectors of symmetric or Hermitian matrices.

    The values are in ascending order; `UPLO` is the triangle that is read.

    Raises:
        WrongOption: an element of the triangle is not finite.
    """
    result: Eigh = _several(Eigh, "eigh", A, UPLO, out=out)
    return result


def _dims(dim: Any) -> Any:
    return [dim] if hasattr(dim, "__index__") else dim


@checked
def vector_norm(
    x: Tensor,
    ord: float = 2,  # noqa: A002  # as above
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Tensor | None = None,
) -> Any:
    """Return the norm of vectors: of all elements, or over dimensions.

    Raises:
        IndexOutOfRange: there are no elements, and the order is negative or infinite.
        DTypeRefused: `dtype` does not hold every number of the dtype of `x`.
    """
    options = {"dtype": dtype, "out": out}
    return _run("linalg_vector_norm", x, ord, _dims(dim), keepdim, **options)


@checked
def matrix_norm(
    A: Tensor,  # noqa: N803  # as above
    ord: float | str = "fro",  # noqa: A002  # as above
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Tensor | None = None,
) -> Any:
    """Return the norm of matrices: 1, 2, inf, their negatives, "fro" or "nuc".

    Raises:
        IndexOutOfRange: there is no least sum or singular value.
        DTypeRefused: `dtype` does not hold every number of the dtype of `A`, or the
            norm is of singular values, and `A` of 16-bit floats.
        WrongOption: the norm is of singular values, and an element is not finite.
    """
    name = "linalg_matrix_norm" + ("_str_ord" if isinstance(ord, str) else "")
    return _run(name, A, ord, list(dim), keepdim, dtype=dtype, out=out)


@checked
def norm(
    A: Tensor,  # noqa: N803  # as above
    ord: Order = None,  # noqa: A002  # as above
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Tensor | None = None,
) -> Any:
    """Return the norm of vectors, or with two dimensions and an `ord` of matrices."""
    name = "linalg_norm" + ("_ord_str" if isinstance(ord, str) else "")
    return _run(name, A, ord, _dims(dim), keepdim, dtype=dtype, out=out)


# What programs call instead (`runtime.script.emission.runtime_functions`).
for _each in (
    *(inv, det, slogdet, solve, cholesky, qr, svd, eigh),
    *(vector_norm, matrix_norm, norm),
):
    vars(_each)["__operator__"] = f"linalg_{_each.__name__}"
