"""The rows of linear algebra: their gradients are in `tests/autograd/test_linalg.py`.

True only here: the matrices are far from singular, and those of which one triangle is
read are Hermitian, so that any layout holds the same numbers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from everyorder.runtime import DType
from everyorder.runtime.tensors.dtype_info import numpy_dtype
from tests.opinfo.info import Array, OpInfo, Sample
from tests.opinfo.samples import COMPLEXES, REALS, array

PRECISE = ("float32", "float64", *COMPLEXES)
NORMED = (*REALS, *COMPLEXES)
Shape = tuple[int, ...]


def regular(dtype: str, shape: Shape, seed: int = 1, layout: str = "plain") -> Array:
    """Matrices with a strong diagonal."""
    values = array(dtype, shape, seed).values
    return Array(values + 16 * np.eye(*shape[-2:], dtype=values.dtype), layout)


def hermitian(dtype: str, shape: Shape, layout: str = "plain") -> Array:
    """Hermitian matrices with positive eigenvalues."""
    half = array(dtype, shape, 1, "small").values
    both = half + np.conj(np.swapaxes(half, -1, -2))
    values = both + 8 * np.eye(shape[-1])
    return Array(values.astype(numpy_dtype(DType.named(dtype))), layout)


def each(matrices: Callable[..., Array], *more: Any) -> Callable[[str], list[Sample]]:
    """One matrix, other layouts, a batch, and nothing."""

    def samples(dtype: str) -> list[Sample]:
        return [
            Sample(matrices(dtype, (3, 3)), *more),
            Sample(matrices(dtype, (3, 3), layout="transposed"), *more),
            Sample(matrices(dtype, (2, 3, 3), layout="sliced"), *more),
            Sample(matrices(dtype, (0, 2, 2)), *more),
            Sample(matrices(dtype, (0, 0)), *more),
        ]

    return samples


def oblong(*calls: tuple[Any, ...]) -> Callable[[str], list[Sample]]:
    """High and wide matrices, and a batch of them."""

    def samples(dtype: str) -> list[Sample]:
        return [
            Sample(array(dtype, shape, seed, layout=layout), *more)
            for more in calls
            for seed, (shape, layout) in enumerate(
                (((3, 2), "plain"), ((2, 4), "transposed"), ((2, 3, 2), "sliced")), 1
            )
        ]

    return samples


def solve_samples(dtype: str) -> list[Sample]:
    a = regular(dtype, (3, 3))
    batch = regular(dtype, (2, 3, 3), layout="sliced")
    return [
        Sample(a, array(dtype, (3, 2), 2)),
        Sample(a, array(dtype, (3,), 2)),
        Sample(batch, array(dtype, (2, 3), 2, layout="transposed")),
        Sample(batch, array(dtype, (3, 2), 2)),
        Sample(a, array(dtype, (2, 3), 2, layout="transposed"), left=False),
    ]


def solve(a: Any, b: Any, left: bool = True) -> Any:
    if not left:
        return solve(a.T, b.T).T
    if b.ndim == 1 or b.shape == a.shape[:-1]:
        return np.linalg.solve(a, b[..., None])[..., 0]
    return np.linalg.solve(a, b)


def norm_samples(dtype: str) -> list[Sample]:
    x = array(dtype, (3, 4), 1, "nonzero")
    return [
        Sample(x),
        Sample(x, 3, [1]),
        Sample(array(dtype, (3, 4), 1, "nonzero", "transposed"), 1, [0], True),
        Sample(array(dtype, (2, 3), 1, "nonzero", "sliced"), float("inf"), [1]),
    ]


def matrix_samples(dtype: str) -> list[Sample]:
    x = array(dtype, (3, 4), 1, "nonzero")
    cube = array(dtype, (2, 3, 4), 1, "nonzero", "sliced")
    calls = [Sample(x, 1), Sample(x, float("-inf")), Sample(cube, -1, [2, 0], True)]
    if dtype in PRECISE:
        calls += [Sample(cube, 2, [0, 2], True), Sample(x, -2)]
    return calls


def named_samples(dtype: str) -> list[Sample]:
    x = array(dtype, (3, 4), 1, "nonzero")
    cube = array(dtype, (2, 3, 4), 1, "nonzero", "sliced")
    calls = [Sample(x, "fro"), Sample(cube, "fro", [-1, 0])]
    if dtype in PRECISE:
        calls += [Sample(cube, "nuc", [-1, 0]), Sample(x, "nuc")]
    return calls


def either_samples(dtype: str) -> list[Sample]:
    return [Sample(each.args[0], each.args[1]) for each in named_samples(dtype)[::3]]


def vector_norm(x: Any, order: Any = 2, dim: Any = None, keepdim: bool = False) -> Any:
    dim = None if dim is None else dim[0]
    line = x.ravel() if dim is None else x
    return np.linalg.norm(line, order, dim, keepdim)


def matrix_norm(x: Any, order: Any, dim: Any = (-2, -1), keepdim: bool = False) -> Any:
    return np.linalg.norm(x, order, tuple(dim), keepdim)


def named(name: str) -> Callable[[Any], Callable[..., Any]]:
    return lambda torch: getattr(torch.linalg, name)


def row(name: str, samples: Any, reference: Any, **more: Any) -> OpInfo:
    more.setdefault("gradient", False)
    more.setdefault("dtypes", PRECISE)
    more.setdefault("torch", named(name.partition(".")[0].removeprefix("linalg_")))
    return OpInfo(name=name, samples=samples, reference=reference, loose=20.0,
                  **more)  # fmt: skip


# Vectors may have another sign in torch: without `torch`, what is unique of the factors
# is compared (`UNIQUE` in `tests/opinfo/test_against_torch.py`).
ROWS = (
    row("linalg_inv", each(regular), np.linalg.inv),
    row("linalg_det", each(regular), np.linalg.det),
    row("linalg_slogdet", each(regular), np.linalg.slogdet, kind="free"),
    row("linalg_solve", solve_samples, solve),
    row("linalg_cholesky", each(hermitian), np.linalg.cholesky),
    row("linalg_eigh", each(hermitian), np.linalg.eigh, kind="free", torch=None),
    row("linalg_qr", oblong((), ("complete",)), lambda x, mode="reduced": np.linalg.qr(
        x, mode), torch=None),
    row("linalg_svd", oblong((), (False,)), np.linalg.svd, kind="free", torch=None),
    row("linalg_vector_norm", norm_samples, vector_norm, kind="real", dtypes=NORMED),
    row("linalg_norm", norm_samples, vector_norm, kind="real", dtypes=NORMED),
    row("linalg_norm.ord_str", either_samples, matrix_norm, kind="real",
        dtypes=NORMED),
    row("linalg_matrix_norm", matrix_samples, matrix_norm, kind="real",
        dtypes=NORMED),
    row("linalg_matrix_norm.str_ord", named_samples, matrix_norm, kind="real",
        dtypes=NORMED),
    row("det", each(regular), np.linalg.det, torch=lambda torch: torch.det),
    row("inverse", each(regular), np.linalg.inv, torch=lambda torch: torch.inverse),
)  # fmt: skip
