"""Linear algebra by its public names: refusals, batches, factors and targets."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime import DispatchKey, default_dispatcher, linalg
from everyorder.runtime.errors.tensor import (
    DTypeRefused,
    IndexOutOfRange,
    ShapesDoNotFit,
    WrongOption,
)
from tests.operators.refusals import Refusal, assert_refused
from tests.operators.tensors import tensor

A = tensor([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
NONE = runtime.zeros(2, 2)
# The second matrix of the second row of a batch is singular.
BATCH = runtime.eye(2).repeat(2, 2, 1, 1)
BATCH[1, 1] = 0.0


def with_one(value: float) -> runtime.Tensor:
    """A batch with the value below the diagonal of its second matrix."""
    batch = runtime.stack([A, A])
    batch[1, 2, 0] = value
    return batch


WRONG: dict[str, Refusal] = {
    "inv": (
        lambda: linalg.inv(NONE),
        WrongOption,
        "`core::linalg_inv` does not take a singular matrix for `A`. "
        "fits: invertible matrices",
    ),
    "inv of a batch": (
        lambda: BATCH.inverse(),
        WrongOption,
        "`core::inverse` does not take a singular matrix, number 3 for `A`. "
        "fits: invertible matrices",
    ),
    "solve": (
        lambda: linalg.solve(NONE, runtime.ones(2)),
        WrongOption,
        "`core::linalg_solve` does not take a singular matrix for `A`. "
        "fits: invertible matrices",
    ),
    "cholesky": (
        lambda: linalg.cholesky(runtime.stack([A, -A])),
        WrongOption,
        "`core::linalg_cholesky` does not take a matrix that is not positive definite, "
        "number 1 for `self`. fits: symmetric or Hermitian matrices with positive "
        "eigenvalues",
    ),
    "not square": (
        lambda: linalg.det(runtime.ones(2, 3)),
        ShapesDoNotFit,
        "`core::linalg_det` cannot work on these shapes: A does not hold square "
        "matrices. given: A (2, 3) fits: square matrices in the last two dimensions",
    ),
    "16 bits": (
        lambda: linalg.inv(A.half()),
        DTypeRefused,
        "`core::linalg_inv` does not take `A` of dtype float16. fits: float32, "
        "float64, complex64, complex128",
    ),
    "sides": (
        lambda: linalg.solve(A, runtime.ones(2)),
        ShapesDoNotFit,
        "`core::linalg_solve` cannot work on these shapes: B is not the other side of "
        "equations with A. given: A (3, 3), B (2,) fits: 3 rows for B, and batches "
        "that broadcast",
    ),
    "mode": (
        lambda: linalg.qr(A, "full"),
        WrongOption,
        "`core::linalg_qr` does not take 'full' for `mode`. fits: 'reduced', "
        "'complete', 'r'",
    ),
    "triangle": (
        lambda: linalg.eigh(A, "R"),
        WrongOption,
        "`core::linalg_eigh` does not take 'R' for `UPLO`. fits: 'L' or 'U', the "
        "triangle to read",
    ),
    "driver": (
        lambda: linalg.svd(A, driver="gesvd"),
        WrongOption,
        "`core::linalg_svd` does not take 'gesvd' for `driver`. fits: None: NumPy "
        "chooses it",
    ),
    "order": (
        lambda: linalg.norm(A, 3),
        WrongOption,
        "`core::linalg_norm` does not take 3 for `ord`. fits: 1, 2, inf, their "
        "negatives, 'fro', 'nuc'",
    ),
    "name": (
        lambda: linalg.matrix_norm(A, "foo"),
        WrongOption,
        "`core::linalg_matrix_norm.str_ord` does not take 'foo' for `ord`. fits: 1, 2, "
        "inf, their negatives, 'fro', 'nuc'",
    ),
    "singular values of 16 bits": (
        lambda: linalg.norm(A.half(), 2, dtype="float32"),
        DTypeRefused,
        "`core::linalg_norm` does not take `self` of dtype float16. fits: float32, "
        "float64, complex64, complex128 for singular values: convert the matrices "
        "first",
    ),
    "three dimensions": (
        lambda: linalg.norm(BATCH[0], 1),
        WrongOption,
        "`core::linalg_norm` does not take 3 dimensions, with an ord, for `dim`. fits: "
        "one dimension for vectors, or two for matrices",
    ),
}


# call -> the operator and the argument that the error names
ITERATED: dict[str, tuple[Callable[[runtime.Tensor], Any], str, str]] = {
    "svd": (linalg.svd, "linalg_svd", "A"),
    "norm of 2": (lambda x: linalg.norm(x[1], 2), "linalg_norm", "A"),
    "norm of -2": (lambda x: linalg.matrix_norm(x, -2), "linalg_matrix_norm", "A"),
    "nuc": (lambda x: linalg.matrix_norm(x, "nuc"), "linalg_matrix_norm.str_ord", "A"),
    "eigh": (linalg.eigh, "linalg_eigh", "self"),
}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ITERATED)
def test_what_is_not_finite_has_no_singular_or_eigenvalues(
    name: str, value: float
) -> None:
    call, operator, argument = ITERATED[name]
    values = "eigenvalues" if name == "eigh" else "singular values"
    number = "" if name == "norm of 2" else ", number 1"
    assert_refused(
        lambda: call(with_one(value)),
        WrongOption,
        f"`core::{operator}` does not take a matrix whose {values} cannot be "
        f"computed{number} for `{argument}`. fits: matrices of finite numbers",
    )


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_no_factor_of_a_matrix_that_is_not_finite(value: float) -> None:
    for upper in (False, True):
        batch = with_one(value)
        with pytest.raises(WrongOption, match=r"positive\s+definite,\s+number 1"):
            linalg.cholesky(batch.mT if upper else batch, upper=upper)
        # The other triangle is not read.
        assert (
            linalg.cholesky(batch if upper else batch.mT, upper=upper).isfinite().all()
        )
    assert linalg.eigh(batch, "U").eigenvalues.isfinite().all()


@pytest.mark.parametrize("name", WRONG)
def test_what_has_no_result_is_refused(name: str) -> None:
    assert_refused(*WRONG[name])


def test_other_devices_have_no_kernel() -> None:
    for name in ("inv", "det", "solve", "cholesky", "slogdet", "qr", "svd", "eigh"):
        handle = default_dispatcher().find_op(f"core::linalg_{name}")
        assert handle is not None
        assert handle.has_kernel(DispatchKey.CPU)
        assert not handle.has_kernel(DispatchKey.CUDA)


def test_factors_make_the_matrix_again() -> None:
    batch = runtime.stack([A, A + 1])
    lower = linalg.cholesky(batch)
    assert runtime.allclose(lower @ lower.mT, batch, atol=1e-5)
    assert runtime.allclose(linalg.cholesky(batch, upper=True), lower.mT, atol=1e-6)
    values, vectors = linalg.eigh(batch)
    assert runtime.allclose(vectors @ (values.unsqueeze(-1) * vectors.mT), batch,
                            atol=1e-4)  # fmt: skip
    high = batch[:, :, :2]
    q, r = linalg.qr(high)
    assert (q.shape, r.shape) == ((2, 3, 2), (2, 2, 2))
    assert runtime.allclose(q @ r, high, atol=1e-5)
    q, r = linalg.qr(high, "complete")
    assert runtime.allclose(q @ r, high, atol=1e-5)
    assert linalg.qr(high, "r").Q.shape == (0,)
    u, s, vh = linalg.svd(high, full_matrices=False)
    assert runtime.allclose((u * s.unsqueeze(-2)) @ vh, high, atol=1e-5)
    assert linalg.svd(high).U.shape == (2, 3, 3)


def test_only_one_triangle_is_read() -> None:
    junk = A + runtime.triu(runtime.full((3, 3), 9.0), 1)
    assert runtime.equal(linalg.cholesky(junk), linalg.cholesky(A))
    assert runtime.allclose(linalg.eigh(junk)[0], linalg.eigh(A)[0])
    assert runtime.allclose(linalg.eigh(junk.t(), "u")[0], linalg.eigh(A)[0])
    assert runtime.equal(linalg.cholesky(junk.t(), upper=True), linalg.cholesky(A).t())


def test_solutions_on_both_sides() -> None:
    b = tensor(np.arange(6.0).reshape(3, 2))
    assert runtime.allclose(A @ linalg.solve(A, b), b, atol=1e-5)
    assert runtime.allclose(linalg.solve(A, b.t(), left=False) @ A, b.t(), atol=1e-5)
    assert linalg.solve(A.expand(2, 3, 3), b[:, 0]).shape == (2, 3)
    assert linalg.solve(A, b.expand(4, 3, 2)).shape == (4, 3, 2)


def test_results_are_written_to_out() -> None:
    out = runtime.empty(0)
    assert linalg.inv(A, out=out) is out
    assert runtime.allclose(out @ A, runtime.eye(3), atol=1e-6)
    same = A.clone()
    assert linalg.inv(same, out=same) is same
    assert runtime.equal(same, out)
    number = runtime.empty([])
    linalg.det(A, out=number)
    assert number.item() == pytest.approx(18)
    assert linalg.norm(A, "nuc", out=number).item() == pytest.approx(9)
    assert linalg.matrix_norm(A, 1, out=number).item() == pytest.approx(5)
    with pytest.raises(WrongOption):
        linalg.inv(runtime.zeros(3, 3), out=out)
    assert runtime.equal(same, out)


def test_norms_of_vectors_and_matrices() -> None:
    x = tensor([[3.0, 4.0], [0.0, 0.0]])
    assert linalg.norm(x).item() == 5
    assert linalg.norm(x, 1).item() == 4
    assert linalg.norm(x, 1, dim=1).tolist() == [7, 0]
    assert linalg.vector_norm(x, 0).item() == 2
    assert linalg.vector_norm(x, dim=-1, keepdim=True).tolist() == [[5], [0]]
    assert linalg.matrix_norm(x).item() == 5
    assert linalg.vector_norm(x, dtype="float64").dtype is runtime.float64
    assert linalg.slogdet(A).logabsdet.item() == pytest.approx(np.log(18))
    assert A.det().item() == pytest.approx(18)
    assert runtime.ones(4, 3, 3, device="meta").inverse().shape == (4, 3, 3)


@pytest.mark.parametrize("order", [-1, -2.5, 0.5, 0.25])
def test_a_zero_has_no_slope_in_a_norm(order: float) -> None:
    for values, wanted in (([0.0, 0.0], [0, 0]), ([0.0, 2.0], [0, float(order > 0)])):
        x = tensor(values).requires_grad_()
        norm = linalg.vector_norm(x, order)
        assert norm.item() == pytest.approx(2 * wanted[1])
        norm.backward()
        assert x.grad is not None
        assert x.grad.tolist() == pytest.approx(wanted)


ORDERS = (1, -1, 2, -2, np.inf, -np.inf, "nuc", "fro")
# A least line or singular value does not exist where there are none.
WITHOUT_LEAST = {-1: {(3, 0), (0, 0)}, -2: {(0, 3), (3, 0), (0, 0)},
                 -np.inf: {(0, 3), (0, 0)}}  # fmt: skip


@pytest.mark.parametrize("size", [(0, 3), (3, 0), (0, 0)], ids=str)
@pytest.mark.parametrize("order", ORDERS)
def test_the_norm_of_matrices_without_elements(
    order: Any, size: tuple[int, int]
) -> None:
    x = runtime.zeros(2, *size).requires_grad_()
    if size in WITHOUT_LEAST.get(order, ()):
        with pytest.raises(IndexOutOfRange, match="no result for no elements"):
            linalg.matrix_norm(x, order)
        return
    norm = linalg.matrix_norm(x, order)
    assert norm.tolist() == [0, 0]
    assert linalg.matrix_norm(x, order, keepdim=True).tolist() == [[[0]], [[0]]]
    assert linalg.norm(x[0], order).item() == 0
    norm.sum().backward()
    assert x.grad is not None
    assert x.grad.shape == x.shape


@pytest.mark.parametrize("order", [-1, -2.5, -np.inf])
def test_no_norm_of_a_negative_order_of_no_elements(order: float) -> None:
    x = runtime.zeros(2, 0)
    calls = (
        lambda: linalg.vector_norm(x, order),
        lambda: linalg.vector_norm(x, order, dim=1),
        lambda: linalg.norm(x, order, dim=1),
        lambda: runtime.norm(x, order, dim=1),
    )
    for call in calls:
        with pytest.raises(IndexOutOfRange, match="no result for no elements"):
            call()
    assert linalg.vector_norm(x, order, dim=0).shape == (0,)


NORMS: dict[str, Callable[..., Any]] = {
    "vector": linalg.vector_norm,
    "any": linalg.norm,
    "any, of an order": lambda x, dtype: linalg.norm(x, 1, dtype=dtype),
    "any, of a name": lambda x, dtype: linalg.norm(x, "fro", dtype=dtype),
    "sums of columns": lambda x, dtype: linalg.matrix_norm(x, 1, dtype=dtype),
    "singular value": lambda x, dtype: linalg.matrix_norm(x, 2, dtype=dtype),
    "fro": linalg.matrix_norm,
    "nuc": lambda x, dtype: linalg.matrix_norm(x, "nuc", dtype=dtype),
    "of a tensor": runtime.norm,
}
NARROWER = (("float64", "float32"), ("complex128", "complex64"),
            ("complex64", "float32"), ("float32", "bfloat16"),
            ("float32", "complex64"))  # fmt: skip


@pytest.mark.parametrize("name", NORMS)
def test_a_norm_is_not_computed_in_a_narrower_dtype(name: str) -> None:
    for own, other in NARROWER:
        with pytest.raises(DTypeRefused, match="`dtype` of dtype"):
            NORMS[name](A.to(dtype=own), dtype=other)
    assert NORMS[name](A, dtype="float64").dtype is runtime.float64


def test_norms_of_16_bit_floats() -> None:
    for dtype in (runtime.float16, runtime.bfloat16):
        x = A.to(dtype=dtype)
        for order in (1, -1, np.inf, -np.inf, "fro"):
            assert linalg.matrix_norm(x, order).dtype is dtype
        assert linalg.norm(x, 2, dim=1).dtype is dtype
        assert linalg.vector_norm(x, 3).dtype is dtype
