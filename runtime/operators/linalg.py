"""Linear algebra: norms, solutions, determinants and factors of matrices.

Matrices are the last two dimensions, and the others a batch.  NumPy computes on the
CPU; on meta there are shapes, and every other device refuses the call by name.

Rules:
- elements are float32, float64, or complex numbers; 16-bit floats have norms only, and
  none of singular values;
- a singular matrix, or one without the factor, is refused, and so are numbers that are
  not finite where LAPACK iterates: the error says which of the batch it is;
- of a symmetric matrix one triangle is read; its gradient is that of a matrix that
  stays symmetric.
"""

from collections.abc import Callable, Sequence
from math import inf, prod
from typing import Any

from numpy.linalg import LinAlgError

from everyorder.runtime.operators.declare.allocate_outputs import expanded
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.declare.plan import (
    COMPLEXES,
    FLOATS,
    PLAIN,
    CallPlan,
    KernelTable,
    Shape,
    bad_option,
    bad_shapes,
    distinct_dims,
    one_dtype,
    require_dtype,
    same_device,
)
from everyorder.runtime.operators.declare.structured import Structured, composite
from everyorder.runtime.operators.reductions import in_dtype
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.construction import view_of
from everyorder.runtime.tensors.dtype_info import real_dtype
from everyorder.runtime.tensors.shape import broadcast_shapes
from everyorder.runtime.tensors.tensor import Tensor

_DTYPES = PLAIN | COMPLEXES
_NORMED = FLOATS | COMPLEXES
_FITS = "float32, float64, complex64, complex128"
BACKENDS = ("CPU", "Meta")


def _matrices(name: str, tensor: Tensor, square: bool = True) -> Shape:
    """Return the shape of the batch.

    Raises:
        ShapesDoNotFit: there are no matrices, or none that are `square`.
        DTypeRefused: the elements have another dtype.
    """
    one_dtype(_DTYPES, _FITS, (name, tensor))
    shape = tensor.shape
    if len(shape) < 2 or (square and shape[-1] != shape[-2]):
        kind = "square matrices" if square else "matrices"
        raise bad_shapes(
            f"{name} does not hold {kind}",
            f"{kind} in the last two dimensions",
            (name, tensor),
        )
    return shape[:-2]


def _real(dtype: DType) -> DType:
    return real_dtype(dtype) if dtype in COMPLEXES else dtype


def _refusing(
    kernel: str, name: str, what: str, fits: str, outputs: int = 1
) -> Callable[..., None]:
    """Return the work of a kernel that some matrices have no result for.

    The matrices are the operand after the `outputs`.
    """

    def run(table: KernelTable, *operands: Any) -> None:
        try:
            table[kernel](*operands)
        except LinAlgError:
            refused, batch = what, operands[outputs].shape[:-2]
            if batch:
                number = _first_bad(table[kernel], operands, outputs, batch)
                refused = f"{what}, number {number}"
            raise bad_option(name, refused, fits) from None

    return run


def _first_bad(
    kernel: Callable[..., None], operands: tuple[Any, ...], outputs: int, batch: Shape
) -> int:
    """Return the number in the batch of the first matrix that a kernel refuses."""
    for number in range(prod(batch)):
        parts = [
            _part(each, number, batch) if isinstance(each, Tensor) else each
            for each in operands
        ]
        # The caller's outputs stay as they are.
        parts[:outputs] = [_like(each) for each in parts[:outputs]]
        try:
            kernel(*parts)
        except LinAlgError:
            return number
    return 0


def _part(tensor: Tensor, number: int, batch: Shape) -> Tensor:
    """Return the view of what a tensor holds of one matrix of the batch."""
    at, count = tensor.offset, len(batch)
    for size, step in zip(batch[::-1], tensor.strides[:count][::-1], strict=True):
        at += number % size * step
        number //= size
    return view_of(tensor, tensor.shape[count:], tensor.strides[count:], at)


def _like(tensor: Tensor) -> Tensor:
    result: Tensor = core.empty(
        list(tensor.shape), dtype=tensor.dtype, device=tensor.device
    )
    return result


_SINGULAR = ("a singular matrix", "invertible matrices")
_FINITE = "matrices of finite numbers"


def plan_inv(A: Tensor) -> CallPlan:  # noqa: N803  # torch's name
    """Return the plan of the inverses."""
    _matrices("A", A)
    work = _refusing("linalg_inv", "A", *_SINGULAR)
    return CallPlan(((A.shape, A.dtype),), A.device, (A,), kernel=work)


def plan_det(A: Tensor) -> CallPlan:  # noqa: N803  # as above
    """Return the plan of the determinants."""
    return CallPlan(((_matrices("A", A), A.dtype),), A.device, (A,))


def plan_slogdet(A: Tensor) -> CallPlan:  # noqa: N803  # as above
    """Return the plan of the signs and logarithms of the determinants."""
    batch = _matrices("A", A)
    outputs = (batch, A.dtype), (batch, _real(A.dtype))
    return CallPlan(outputs, A.device, (A,))


def plan_solve(A: Tensor, B: Tensor, left: bool) -> CallPlan:  # noqa: N803  # as above
    """Return the plan of X, where A X = B, or X A = B if not `left`.

    B holds vectors if it has one dimension, or one less than A and its batch.
    """
    batch = _matrices("A", A)
    one_dtype(_DTYPES, _FITS, ("A", A), ("B", B))
    device, size = same_device(A, B), A.shape[-1]
    vectors = len(B.shape) == 1 or B.shape == A.shape[:-1]
    shape = (*B.shape, 1) if vectors else B.shape
    rows = -2 if left or vectors else -1
    try:
        fits = len(shape) > 1 and shape[rows] == size and (left or not vectors)
        whole = broadcast_shapes(batch, shape[:-2])
    except ValueError:
        fits = False
    if not fits:
        raise bad_shapes(
            "B is not the other side of equations with A",
            f"{size} {'rows' if left else 'columns'} for B, and batches that broadcast",
            ("A", A),
            ("B", B),
        )
    own = (*whole, *shape[-2:])
    result = own[:-1] if vectors else own
    arguments = (A, B, left, vectors)
    return CallPlan(((result, A.dtype),), device, arguments, kernel=_solve)


def _solve(
    table: KernelTable,
    out: Tensor,
    a: Tensor,
    b: Tensor,
    left: bool,
    vectors: bool,
) -> None:
    if vectors:
        out, b = _column_view(out), _column_view(b)
    elif not left:
        # X A = B is A' X' = B', of the transposed matrices.
        out, a, b = _transposed_view(out), _transposed_view(a), _transposed_view(b)
    a = expanded(a, (*out.shape[:-2], *a.shape[-2:]))
    work = _refusing("linalg_solve", "A", *_SINGULAR)
    work(table, out, a, expanded(b, out.shape))


def _column_view(tensor: Tensor) -> Tensor:
    shape, strides = (*tensor.shape, 1), (*tensor.strides, 1)
    return view_of(tensor, shape, strides, tensor.offset)


def _transposed_view(tensor: Tensor) -> Tensor:
    *batch, rows, columns = tensor.shape
    *steps, down, right = tensor.strides
    return view_of(
        tensor, (*batch, columns, rows), (*steps, right, down), tensor.offset
    )


def plan_cholesky(self: Tensor, upper: bool) -> CallPlan:
    """Return the plan of the triangular factors of positive definite matrices."""
    _matrices("self", self)
    outputs = ((self.shape, self.dtype),)
    return CallPlan(outputs, self.device, (self, upper), kernel=_cholesky)


def _cholesky(table: KernelTable, out: Tensor, self: Tensor, upper: bool) -> None:
    lower = _refusing(
        "linalg_cholesky",
        "self",
        "a matrix that is not positive definite",
        "symmetric or Hermitian matrices with positive eigenvalues",
    )
    if not upper:
        lower(table, out, self)
        return
    # The upper triangle is the lower one of the transposed matrix, which has the
    # conjugate of the factor that the transposed result holds.
    lower(table, _transposed_view(out), _transposed_view(self))


def plan_qr(A: Tensor, mode: str) -> CallPlan:  # noqa: N803  # torch's name
    """Return the plan of an orthogonal and a triangular factor."""
    batch = _matrices("A", A, square=False)
    if mode not in ("reduced", "complete", "r"):
        raise bad_option("mode", repr(mode), "'reduced', 'complete', 'r'")
    rows, columns = A.shape[-2:]
    inner = rows if mode == "complete" else min(rows, columns)
    q = (0,) if mode == "r" else (*batch, rows, inner)
    outputs = (q, A.dtype), ((*batch, inner, columns), A.dtype)
    return CallPlan(outputs, A.device, (A, mode))


def plan_svd(A: Tensor, full_matrices: bool, driver: str | None) -> CallPlan:  # noqa: N803  # as above
    """Return the plan of the singular values and vectors."""
    batch = _matrices("A", A, square=False)
    if driver is not None:
        raise bad_option("driver", repr(driver), "None: NumPy chooses it")
    rows, columns = A.shape[-2:]
    least = min(rows, columns)
    left, right = (rows, columns) if full_matrices else (least, least)
    outputs = (
        ((*batch, rows, left), A.dtype),
        ((*batch, least), _real(A.dtype)),
        ((*batch, right, columns), A.dtype),
    )
    what = "a matrix whose singular values cannot be computed"
    work = _refusing("linalg_svd", "A", what, _FINITE, outputs=3)
    return CallPlan(outputs, A.device, (A, full_matrices), kernel=work)


def plan_eigh(self: Tensor, UPLO: str) -> CallPlan:  # noqa: N803  # as above
    """Return the plan of the eigenvalues and vectors of symmetric matrices."""
    batch = _matrices("self", self)
    triangle = UPLO.upper()
    if triangle not in ("L", "U"):
        raise bad_option("UPLO", repr(UPLO), "'L' or 'U', the triangle to read")
    values = (*batch, self.shape[-1])
    outputs = (values, _real(self.dtype)), (self.shape, self.dtype)
    what = "a matrix whose eigenvalues cannot be computed"
    work = _refusing("linalg_eigh", "self", what, _FINITE, outputs=2)
    return CallPlan(outputs, self.device, (self, triangle), kernel=work)


_NORM = "int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"


@composite(
    f"linalg_vector_norm(Tensor self, Scalar ord=2, {_NORM}",
    public=False,
    takes=_NORMED,
    out=True,
)
def vector_norm(
    self: Tensor,
    ord: Any,  # noqa: A002  # torch's name
    dim: Sequence[int] | None,
    keepdim: bool,
    dtype: DType | None,
) -> Any:
    """Return the root of the sum of powers of magnitudes over dimensions."""
    _check_order("ord", ord)
    return core.norm(self, ord, dim, keepdim, dtype=dtype)


def _check_order(name: str, order: Any) -> None:
    if isinstance(order, complex):
        raise bad_option(name, repr(order), "a real number")


_OF_MATRICES = (
    "int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"
)


@composite(
    f"linalg_matrix_norm(Tensor self, Scalar ord, {_OF_MATRICES}",
    public=False,
    takes=_NORMED,
    out=True,
)
def matrix_norm(
    self: Tensor,
    ord: Any,  # noqa: A002  # as above
    dim: Sequence[int],
    keepdim: bool,
    dtype: DType | None,
) -> Any:
    """Return the greatest or least sum of a line, or singular value."""
    _check_order("ord", ord)
    rows, columns = _two_dims(self, dim)
    order = float(ord)
    if abs(order) == 2:
        values = _singular_values(self, rows, columns, dtype)
        return _with_reduced_dims(_extreme(values, -1, order), dim, keepdim)
    if abs(order) not in (1, inf):
        raise bad_option("ord", repr(ord), "1, 2, inf, their negatives, 'fro', 'nuc'")
    over, along = (rows, columns) if abs(order) == 1 else (columns, rows)
    sums = core.sum(core.abs(in_dtype(self, dtype)), [over], True)
    result = _extreme(sums, along, order, keepdim=True)
    return result if keepdim else core.squeeze(result, [rows, columns])


def _extreme(values: Any, dim: int, order: float, keepdim: bool = False) -> Any:
    """Return the greatest value, which is 0 for no values, or the least.

    The values are not negative, and the least of none does not exist.
    """
    if order < 0:
        return core.amin(values, [dim], keepdim)
    reduce = core.amax if values.shape[dim] else core.sum
    return reduce(values, [dim], keepdim)


@composite(
    f'linalg_matrix_norm.str_ord(Tensor self, str ord="fro", {_OF_MATRICES}',
    public=False,
    takes=_NORMED,
    out=True,
)
def named_matrix_norm(
    self: Tensor,
    ord: str,  # noqa: A002  # as above
    dim: Sequence[int],
    keepdim: bool,
    dtype: DType | None,
) -> Any:
    """Return the norm of all elements (fro), or the sum of singular values (nuc)."""
    rows, columns = _two_dims(self, dim)
    if ord == "fro":
        return core.norm(self, 2, [rows, columns], keepdim, dtype=dtype)
    if ord != "nuc":
        raise bad_option("ord", repr(ord), "1, 2, inf, their negatives, 'fro', 'nuc'")
    total = core.sum(_singular_values(self, rows, columns, dtype), [-1])
    return _with_reduced_dims(total, dim, keepdim)


def _two_dims(self: Tensor, dim: Sequence[int]) -> tuple[int, int]:
    if len(dim) != 2:
        raise bad_option("dim", str(list(dim)), "the two dimensions of the matrices")
    rows, columns = distinct_dims(dim, self.shape)
    return rows, columns


def _singular_values(self: Tensor, rows: int, columns: int, dtype: DType | None) -> Any:
    fits = f"{_FITS} for singular values: convert the matrices first"
    require_dtype("self", self.dtype, _DTYPES, fits)
    moved = core.movedim(in_dtype(self, dtype), [rows, columns], [-2, -1])
    return core.linalg_svd(moved, False)[1]


def _with_reduced_dims(result: Any, dim: Sequence[int], keepdim: bool) -> Any:
    """Return the result with the reduced dimensions of size 1, if `keepdim`."""
    if keepdim:
        count = len(result.shape) + 2
        for place in sorted(each % count for each in dim):
            result = core.unsqueeze(result, place)
    return result


@composite(
    f"linalg_norm(Tensor self, Scalar? ord=None, {_NORM}",
    public=False,
    takes=_NORMED,
    out=True,
)
def norm(
    self: Tensor,
    ord: Any,  # noqa: A002  # as above
    dim: Sequence[int] | None,
    keepdim: bool,
    dtype: DType | None,
) -> Any:
    """Return the norm of vectors, or of matrices if there are two dimensions."""
    if ord is None:
        return core.norm(self, 2, dim, keepdim, dtype=dtype)
    dims = _dims_of(self, dim)
    if len(dims) == 1:
        return core.linalg_vector_norm(self, ord, dims, keepdim, dtype=dtype)
    return core.linalg_matrix_norm(self, ord, dims, keepdim, dtype=dtype)


@composite(
    f"linalg_norm.ord_str(Tensor self, str ord, {_NORM}",
    public=False,
    takes=_NORMED,
    out=True,
)
def named_norm(
    self: Tensor,
    ord: str,  # noqa: A002  # as above
    dim: Sequence[int] | None,
    keepdim: bool,
    dtype: DType | None,
) -> Any:
    """Return the norm of matrices of a name."""
    dims = _dims_of(self, dim)
    return core.linalg_matrix_norm_str_ord(self, ord, dims, keepdim, dtype=dtype)


def _dims_of(self: Tensor, dim: Sequence[int] | None) -> list[int]:
    dims = [*range(len(self.shape))] if dim is None else list(dim)
    if len(dims) not in (1, 2):
        raise bad_option(
            "dim",
            f"{len(dims)} dimensions, with an ord,",
            "one dimension for vectors, or two for matrices",
        )
    return dims


@composite("det(Tensor self) -> Tensor")
def det(self: Tensor) -> Any:
    """Return the determinants of square matrices."""
    return core.linalg_det(self)


@composite("inverse(Tensor self) -> Tensor", out=True)
def inverse(self: Tensor) -> Any:
    """Return the inverses of square matrices."""
    return core.linalg_inv(self)


def _structured(name: str, arguments: str, plan: Any, returns: str = "") -> Structured:
    returned = returns or "Tensor"
    return Structured(name, arguments, plan, returned, backends=BACKENDS)


OPERATORS = (
    _structured("linalg_inv", "Tensor A", plan_inv),
    _structured("linalg_det", "Tensor A", plan_det),
    _structured("linalg_solve", "Tensor A, Tensor B, *, bool left=True", plan_solve),
    _structured("linalg_cholesky", "Tensor self, *, bool upper=False", plan_cholesky),
    _structured(
        "linalg_slogdet",
        "Tensor A",
        plan_slogdet,
        "(Tensor sign, Tensor logabsdet)",
    ),
    _structured(
        "linalg_qr", 'Tensor A, str mode="reduced"', plan_qr, "(Tensor Q, Tensor R)"
    ),
    _structured(
        "linalg_svd",
        "Tensor A, bool full_matrices=True, *, str? driver=None",
        plan_svd,
        "(Tensor U, Tensor S, Tensor Vh)",
    ),
    _structured(
        "linalg_eigh",
        'Tensor self, str UPLO="L"',
        plan_eigh,
        "(Tensor eigenvalues, Tensor eigenvectors)",
    ),
    *(vector_norm, matrix_norm, named_matrix_norm, norm, named_norm, det, inverse),
)
