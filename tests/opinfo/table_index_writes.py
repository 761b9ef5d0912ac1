"""The rows of operators that write by index, and of windows of a dimension."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.opinfo.info import OpInfo, Sample
from tests.opinfo.samples import ALL, COMPLEXES, array, truth, whole
from tests.opinfo.table_movement import places
from tests.opinfo.table_pointwise import by_name
from tests.opinfo.table_views import laid_out, method

# Each reduction -> of an array of elements of one place.
JOINED: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(dtype=x.dtype),
    "prod": lambda x: x.prod(dtype=x.dtype),
    "mean": lambda x: (
        x.sum(dtype=x.dtype) // len(x) if x.dtype.kind in "iu" else x.mean()
    ),
    "amax": np.max,
    "amin": np.min,
}


def reduce_samples(dtype: str) -> list[Sample]:
    x, src = array(dtype, (3, 3), 1, "small"), array(dtype, (2, 3), 2, "small")
    index = whole([[0, 0, 2], [1, 2, 1]])
    turned = array(dtype, (3, 3), 1, "small", "transposed")
    cut = array(dtype, (3, 3), 2, "small", "sliced")
    found = []
    for how in JOINED:
        if how in ("amax", "amin") and dtype in COMPLEXES:
            continue
        if how == "mean" and dtype == "bool":
            continue
        found += [
            Sample(x, 1, index, src, how),
            Sample(x, 0, index, src, how, include_self=False),
            Sample(turned, -1, index, cut, how),
            Sample(array(dtype, (), 1), 0, whole(0), array(dtype, (), 2), how),
            Sample(x, 0, whole(np.zeros((0, 3))), src, how, include_self=False),
        ]
    return found


def reduce_points() -> list[Sample]:
    """Without equal elements, between which a gradient is split."""
    both = array("float64", (5, 3), 1, "distinct").values
    x, src = both[:3], both[3:]
    index = whole([[0, 0, 2], [1, 2, 1]])
    return [
        Sample(_given(x), 1, index, _given(src), "prod"),
        Sample(_given(x), 0, index, _given(src), "amax", include_self=False),
        Sample(_given(x), 1, index, _given(src), "mean", include_self=False),
        Sample(_given(x), 1, index, _given(src), "amin"),
    ]


def _given(values: Any) -> Any:
    found = array("float64", values.shape)
    found.values[...] = values
    return found


def scatter_reduce(
    x: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Any:
    groups: dict[Any, list[Any]] = {}
    for place, target in places(index, dim):
        first = [x[target]] if include_self else []
        groups.setdefault(target, first).append(src[place])
    for target, values in groups.items():
        x[target] = JOINED[reduce](np.array(values, x.dtype))
    return x


def copy_samples(dtype: str) -> list[Sample]:
    x, source = array(dtype, (3, 4), 1), array(dtype, (2, 4), 2)
    return [
        Sample(x, 0, whole([2, 0]), source),
        Sample(array(dtype, (3, 4), 1, layout="transposed"), -1, whole([3, 0]),
               array(dtype, (3, 2), 2, layout="sliced")),
        Sample(x, 1, whole(2), array(dtype, (3, 1), 2)),
        Sample(x, 0, whole([]), array(dtype, (0, 4))),
        Sample(array(dtype, (), 1), 0, whole(0), array(dtype, (), 2)),
    ]  # fmt: skip


def index_copy(x: Any, dim: int, index: Any, source: Any) -> Any:
    if not x.ndim:
        return source.reshape(())
    moved, source = np.moveaxis(x, dim, 0), np.moveaxis(source, dim, 0)
    for n, target in enumerate(np.atleast_1d(index)):
        moved[target] = source[n]
    return x


def fill_samples(dtype: str) -> list[Sample]:
    x, value = array(dtype, (3, 4), 1), True if dtype == "bool" else 3
    return [
        Sample(x, 0, whole([2, 0, -1]), value),
        Sample(array(dtype, (3, 4), 1, layout="transposed"), -1, whole([3, 0]), value),
        Sample(array(dtype, (2, 5), 1, layout="sliced"), 1, whole(2), value),
        Sample(x, 0, whole([]), value),
        Sample(array(dtype, (), 1), 0, whole([0]), value),
    ]


def fill_tensor_samples(dtype: str) -> list[Sample]:
    value = array(dtype, (), 2, "positive")
    return [Sample(*each.args[:3], value) for each in fill_samples(dtype)]


def index_fill(x: Any, dim: int, index: Any, value: Any) -> Any:
    if not x.ndim:
        return np.full((), value, x.dtype)
    np.moveaxis(x, dim, 0)[np.atleast_1d(index)] = value
    return x


def scattered_samples(dtype: str) -> list[Sample]:
    mask = truth([[True, False, True], [False, False, True]])
    return [
        Sample(array(dtype, (2, 3), 1), mask, array(dtype, (4,), 2)),
        Sample(array(dtype, (2, 3), 1, layout="transposed"), mask,
               array(dtype, (2, 2), 2, layout="transposed")),
        Sample(array(dtype, (3,), 1), mask, array(dtype, (3,), 2)),
        Sample(array(dtype, (2, 3), 1, layout="sliced"), truth([True, False, True]),
               array(dtype, (4,), 2)),
        Sample(array(dtype, (), 1), truth(True), array(dtype, (2,), 2)),
        Sample(array(dtype, (0, 3), 1), truth([True, False, True]),
               array(dtype, (0,), 2)),
    ]  # fmt: skip


def masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    x, mask = np.broadcast_arrays(x, mask)
    x = x.copy()
    x[mask] = source.ravel()[: mask.sum()]
    return x


def unfold(x: Any, dim: int, size: int, step: int) -> Any:
    if not x.ndim:
        return x.reshape(1)[:size]
    windows = np.lib.stride_tricks.sliding_window_view(x, size, dim)
    return np.moveaxis(np.moveaxis(windows, dim, 0)[::step], 0, dim)


def row(name: str, samples: Any, reference: Any, **more: Any) -> OpInfo:
    more.setdefault("torch", by_name(name.partition(".")[0]))
    return OpInfo(name=name, samples=samples, reference=reference, dtypes=ALL, **more)


ROWS = (
    row("scatter_reduce", reduce_samples, scatter_reduce, smooth=reduce_points,
        loose=4.0, torch_lacks=("complex128",)),
    row("index_copy", copy_samples, index_copy),
    row("index_fill", fill_samples, index_fill),
    row("index_fill.int_Tensor", fill_tensor_samples, index_fill),
    row("masked_scatter", scattered_samples, masked_scatter),
    row("unfold", laid_out((4, 5), (0, 2, 1), (1, 3, 2), (-1, 5, 1), (0, 1, 3)),
        unfold, view=True, torch=method("unfold")),
)  # fmt: skip
