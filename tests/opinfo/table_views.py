"""The rows of views, of their gradients, and of what copies or may copy."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.opinfo.info import D, OpInfo, Sample
from tests.opinfo.samples import ALL, COMPLEXES, array
from tests.opinfo.table_pointwise import aten, by_name

Samples = Callable[[str], list[Sample]]
LAYOUTS = ("plain", "transposed", "sliced", "offset", "expanded")


def laid_out(shape: tuple[int, ...], *calls: tuple[Any, ...]) -> Samples:
    """Each call on an array of this shape, every layout in turn."""

    def samples(dtype: str) -> list[Sample]:
        return [
            Sample(array(dtype, shape, turn, layout=LAYOUTS[turn % 5]), *arguments)
            for turn, arguments in enumerate(calls * 2 if len(calls) < 4 else calls)
        ]

    return samples


def plain(*pairs: tuple[tuple[int, ...], tuple[Any, ...]]) -> Samples:
    """Each call on a contiguous array of its shape."""

    def samples(dtype: str) -> list[Sample]:
        return [Sample(array(dtype, shape, 1), *more) for shape, more in pairs]

    return samples


def cut(x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    place = [slice(None)] * x.ndim
    place[dim] = slice(start, end, step)
    return x[tuple(place)]


def pick(x: Any, dim: int, at: int) -> Any:
    return np.take(x, at, dim)


def split(x: Any, size: int, dim: int = 0) -> list[Any]:
    count = max(x.shape[dim], 1)
    return [cut(x, dim, at, at + size) for at in range(0, count, size)]


def split_sizes(x: Any, sizes: list[int], dim: int = 0) -> list[Any]:
    ends = np.cumsum(sizes)
    return [cut(x, dim, end - n, end) for n, end in zip(sizes, ends, strict=True)]


def strided(x: Any, size: Any, stride: Any, offset: int = 0) -> Any:
    flat = x.ravel()
    found = np.zeros(size, x.dtype)
    for place in np.ndindex(*size):
        found[place] = flat[offset + sum(map(int, np.multiply(place, stride)))]
    return found


def squeeze(x: Any, dim: Any = None) -> Any:
    if dim is None:
        return np.squeeze(x)
    kept = [d % max(x.ndim, 1) for d in np.atleast_1d(dim)]
    return np.squeeze(x, tuple(d for d in kept if x.ndim and x.shape[d] == 1))


def flatten(x: Any, start: int = 0, end: int = -1) -> Any:
    if not x.ndim:
        return x.reshape(1)
    end %= x.ndim
    return x.reshape((*x.shape[:start], -1, *x.shape[end + 1 :]))


def summed(x: Any, size: Any) -> Any:
    lead = x.ndim - len(size)
    dims = tuple(d for d in range(x.ndim) if d < lead or size[d - lead] != x.shape[d])
    return x.sum(dims, keepdims=True).reshape(size)


def same(x: Any, *_: Any, **__: Any) -> Any:
    return x


def view_row(name: str, samples: Samples, reference: Any, **more: Any) -> OpInfo:
    more.setdefault("torch", by_name(name))
    more.setdefault("dtypes", ALL)
    return OpInfo(name=name, samples=samples, reference=reference, view=True, **more)


def paired(x: Any) -> Any:
    """Complex numbers as pairs of their parts."""
    return np.stack([x.real, x.imag], -1)


def bits_samples(dtype: str) -> list[Sample]:
    return [Sample(array(dtype, (2, 4), 1), D("int8" if dtype == "uint8" else "uint8"))]


def _reshape(x: Any, size: Any) -> Any:
    return x.reshape(size)


def method(name: str) -> Callable[[Any], Callable[..., Any]]:
    """The method of torch's tensors of this name."""
    return lambda torch: getattr(torch.Tensor, name)


VIEWS = (
    view_row("view", plain(((2, 6), ([3, -1],)), ((2, 6), ([12],)), ((), ([1, 1],)),
                           ((0, 3), ([3, 0],)), ((4,), ([4],))), _reshape,
             torch=method("view")),
    view_row("reshape", laid_out((2, 6), ([3, 4],), ([-1],), ([2, 3, 2],)), _reshape),
    view_row("select", laid_out((3, 4), (0, 1), (1, -1), (-1, 0)), pick),
    view_row("slice", laid_out((4, 5), (1, 1, 4), (0, -2, None), (1, None, None, 2),
                               (0, 3, 1), (1, -99, 99), (1, 7),
                               (0, -2, -1)), cut, torch=aten("slice")),
    view_row("transpose", laid_out((2, 3, 4), (0, 2), (-1, 1)), np.swapaxes),
    view_row("permute", laid_out((2, 3, 4), ([2, 0, 1],), ([0, -1, 1],)), np.transpose),
    view_row("expand", plain(((1, 3), ([4, 3],)), ((3,), ([2, -1],)), ((), ([2, 2],)),
                             ((2, 1), ([0, 2, 1],))),
             lambda x, size: np.broadcast_to(x, [
                 x.shape[i - len(size)] if n == -1 else n for i, n in enumerate(size)]),
             torch=method("expand")),
    view_row("squeeze", plain(((1, 3, 1), ()), ((1, 3, 1), ([0],)), ((1, 3), ([1],)),
                              ((1, 1, 2), ([0, -2],)), ((), ([0],))), squeeze,
             torch=lambda torch: _squeeze(torch)),
    view_row("unsqueeze", laid_out((2, 3), (0,), (-1,), (1,)),
             lambda x, dim: np.expand_dims(x, dim)),
    view_row("as_strided", plain(((3, 4), ([2, 2], [4, 1])), ((12,), ([3], [2], 5)),
                                 ((4,), ([3, 2], [1, 1], 0)), ((4,), ([0], [1]))),
             strided),
    view_row("t", plain(((2, 3), ()), ((4,), ()), ((), ())), np.transpose),
    view_row("flatten", laid_out((2, 3, 2), (), (1,), (0, 1)), flatten),
    view_row("diagonal", plain(((3, 4), ()), ((3, 4), (1,)), ((3, 4), (-1,)),
                               ((2, 3, 3), (0, -1, 0)), ((2, 2), (2,))),
             np.diagonal),
    view_row("view_as_real", laid_out((2, 3), ()), paired, dtypes=COMPLEXES,
             kind="real"),
    view_row("view_as_complex", plain(((3, 2), ()), ((2,), ()), ((0, 2), ())),
             lambda x: x[..., 0] + 1j * x[..., 1], dtypes=("float32", "float64"),
             kind="free"),
    # NumPy's array of a sample is wider than the tensor: torch says what its bytes are.
    view_row("view.dtype", bits_samples, None, kind="free", gradient=False,
             torch=method("view")),
    view_row("real", laid_out((2, 3), ()), lambda x: x.real, kind="real"),
    view_row("imag", laid_out((2, 3), ()), lambda x: x.imag, dtypes=COMPLEXES,
             kind="real"),
    view_row("detach", laid_out((2, 3), ()), same, torch=method("detach"),
             gradient=False),
    view_row("alias", laid_out((2, 3), ()), same, torch=aten("alias")),
    view_row("split", laid_out((4, 5), (2, 1), (3,), (9, 1)), split),
    view_row("split.sizes", laid_out((4, 5), ([1, 3],), ([0, 5], 1)), split_sizes,
             torch=by_name("split")),
    view_row("contiguous", laid_out((2, 3), ()), same, torch=method("contiguous")),
    view_row("to", plain(((2, 3), ())), same, torch=None),
    view_row("sum_to_size", plain(((2, 3), ([1, 3],)), ((2, 3), ([3],)),
                                  ((2, 3), ([2, 3],)), ((2, 2, 3), ([2, 1],))),
             summed, torch=method("sum_to_size"), kind="free", loose=4.0),
)  # fmt: skip


def _squeeze(torch: Any) -> Callable[..., Any]:
    def run(x: Any, dim: Any = None) -> Any:
        return torch.squeeze(x) if dim is None else torch.squeeze(x, tuple(dim))

    return run


def cut_back(grad: Any, sizes: Any, dim: int, start: int, end: int, step: int) -> Any:
    found = np.zeros(sizes, grad.dtype)
    cut(found, dim, start, end, step)[...] = grad
    return found


def pick_back(grad: Any, sizes: Any, dim: int, at: int) -> Any:
    found = np.zeros(sizes, grad.dtype)
    np.moveaxis(found, dim, 0)[at] = grad
    return found


def diagonal_back(grad: Any, sizes: Any, offset: int, dim1: int, dim2: int) -> Any:
    found = np.zeros(sizes, grad.dtype)
    moved = np.moveaxis(found, (dim1, dim2), (-2, -1))
    for at in range(grad.shape[-1]):
        moved[..., at + max(-offset, 0), at + max(offset, 0)] = grad[..., at]
    return found


def strided_back(
    grad: Any, sizes: Any, strides: Any, base: int, size: Any, stride: Any, offset: int
) -> Any:
    storage = np.zeros(base + int(np.prod(sizes)), grad.dtype)
    for place in np.ndindex(*size):
        storage[offset + sum(map(int, np.multiply(place, stride)))] += grad[place]
    return storage[base:].reshape(sizes)


GRADIENTS = (
    OpInfo(name="slice_backward", dtypes=ALL, reference=cut_back,
           samples=plain(((2, 2), ([2, 5], 1, 1, 4, 2)),
                         ((0, 2), ([3, 2], 0, 3, 3, 1))),
           torch=aten("slice_backward")),
    OpInfo(name="select_backward", dtypes=ALL, reference=pick_back,
           samples=plain(((2,), ([2, 3], 1, -1)), ((3,), ([2, 3], 0, 0))),
           torch=aten("select_backward")),
    OpInfo(name="diagonal_backward", dtypes=ALL, reference=diagonal_back,
           samples=plain(((3,), ([3, 4], 0, 0, 1)), ((2, 2), ([2, 3, 2], -1, 1, 2))),
           torch=aten("diagonal_backward")),
    OpInfo(name="as_strided_backward", dtypes=ALL, reference=strided_back,
           samples=plain(((2, 2), ([2, 3], [3, 1], 0, [2, 2], [1, 2], 1)),
                         ((3, 2), ([5], [1], 0, [3, 2], [1, 1], 0))),
           loose=4.0),
)  # fmt: skip


def casting_samples(dtype: str) -> list[Sample]:
    others = ("bool", "int64", "bfloat16", "float64", "complex64")
    real = tuple(
        d for d in others if not dtype.startswith("complex") or d == "complex64"
    )
    return [
        Sample(array(dtype, (2, 3), 1, "positive"), dtype=D(real[0])),
        *(Sample(array(dtype, (3, 2), 2, "positive", "transposed"), dtype=D(d))
          for d in real),
        Sample(array(dtype, (2, 3), 1, "positive", "sliced")),
        Sample(array(dtype, (0, 3), 1), dtype=D(real[0])),
    ]  # fmt: skip


def cast(x: Any, *, dtype: str = "") -> Any:
    # Two-byte floats are compared as numbers: their rounding is in the tolerance.
    wide = {"bfloat16": "float64", "float16": "float64"}.get(dtype, dtype)
    return x.astype(wide) if wide else x


def _cast(torch: Any) -> Callable[..., Any]:
    def run(x: Any, *, dtype: Any = None) -> Any:
        return torch.ops.aten._to_copy(x, dtype=dtype)

    return run


COPIES = (
    OpInfo(name="clone", samples=laid_out((2, 3), ()), reference=same, dtypes=ALL,
           torch=lambda torch: torch.clone),
    OpInfo(name="resize_", samples=plain(((2, 3), ([3, 2],)), ((2, 3), ([1, 2],))),
           reference=lambda x, size: np.resize(x, size), dtypes=ALL, gradient=False,
           torch=method("resize_")),
    OpInfo(name="_to_copy", samples=casting_samples, reference=cast, dtypes=ALL,
           kind="free", torch=_cast, smooth=lambda: [
               Sample(array("float64", (2, 3), 1), dtype=D("complex128")),
               Sample(array("float64", (3, 2), 1, layout="transposed"))]),
)  # fmt: skip
ROWS = (*VIEWS, *GRADIENTS, *COPIES)
