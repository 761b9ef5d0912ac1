"""The rows of operators that move elements: cat, gather, index, sort and the like."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.opinfo.info import OpInfo, Sample
from tests.opinfo.samples import ALL, ORDERED, array, given, is_real, truth, whole
from tests.opinfo.table_pointwise import by_name


def cat_samples(dtype: str) -> list[Sample]:
    a, b = array(dtype, (2, 3), 1), array(dtype, (2, 1), 2)
    return [
        Sample([a, array(dtype, (1, 3), 2)]),
        Sample([a, b, array(dtype, (2, 2), 3, layout="transposed")], -1),
        Sample([array(dtype, (3,), 1, layout="sliced"), array(dtype, (0,))]),
        Sample([array(dtype, (0,)), a], 1),
        Sample([array(dtype, (2, 3), 1, layout="expanded"), a], 0),
        Sample([a]),
    ]


def cat(tensors: list[Any], dim: int = 0) -> Any:
    wide = max(each.ndim for each in tensors)
    kept = [each for each in tensors if each.ndim == wide or each.shape != (0,)]
    return np.concatenate(kept, dim)


def stack_samples(dtype: str) -> list[Sample]:
    a, b = array(dtype, (2, 3), 1), array(dtype, (2, 3), 2, layout="transposed")
    return [
        Sample([a, b]),
        Sample([a, b, a], -1),
        Sample([a, b], 1),
        Sample([array(dtype, (), 1), array(dtype, (), 2)]),
        Sample([array(dtype, (0, 2)), array(dtype, (0, 2))], 2),
    ]


GATHERED = whole([[0, 2], [1, 1]])


def gather_samples(dtype: str) -> list[Sample]:
    x = array(dtype, (3, 3), 1)
    return [
        Sample(x, 1, GATHERED),
        Sample(x, 0, whole([[0, 2, 1]])),
        Sample(array(dtype, (3, 3), 1, layout="transposed"), -1, GATHERED),
        Sample(array(dtype, (3, 4), 1, layout="sliced"), 1, whole([[3], [0], [2]])),
        Sample(x, 1, whole([[0, 2], [1, 1]], layout="transposed")),
        Sample(array(dtype, (), 1), 0, whole(0)),
        Sample(x, 0, whole(np.zeros((0, 3)))),
    ]


def gather(x: Any, dim: int, index: Any) -> Any:
    if not x.ndim:
        return x
    cut = tuple(
        slice(None) if d == dim % x.ndim else slice(n)
        for d, n in enumerate(index.shape)
    )
    return np.take_along_axis(x[cut], index, dim)


def scatter_samples(dtype: str) -> list[Sample]:
    x, src = array(dtype, (3, 3), 1), array(dtype, (3, 3), 2)
    distinct = whole([[0, 2], [1, 0]])
    return [
        Sample(x, 1, distinct, src),
        Sample(x, 0, whole([[0, 2, 1]]), src),
        Sample(
            array(dtype, (3, 3), 1, layout="transposed"),
            -1,
            distinct,
            array(dtype, (2, 2), 2, layout="sliced"),
        ),
        Sample(array(dtype, (), 1), 0, whole(0), array(dtype, (), 2)),
        Sample(x, 0, whole(np.zeros((0, 3))), src),
    ]


def adding_samples(dtype: str) -> list[Sample]:
    x, src = array(dtype, (3, 3), 1, "small"), array(dtype, (3, 3), 2, "small")
    again = Sample(x, 1, whole([[0, 0, 0], [1, 2, 1]]), src)
    return [*scatter_samples(dtype), again]


def places(index: Any, dim: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Where each element of `index` lies, and where it points to."""
    found = []
    for place in np.ndindex(index.shape):
        target = list(place)
        if index.ndim:
            target[dim] = int(index[place])
        found.append((place, tuple(target)))
    return found


def scatter(x: Any, dim: int, index: Any, src: Any) -> Any:
    for place, target in places(index, dim):
        x[target] = src if np.isscalar(src) else src[place]
    return x


def scatter_add(x: Any, dim: int, index: Any, src: Any) -> Any:
    for place, target in places(index, dim):
        x[target] += src[place]
    return x


def value_samples(dtype: str) -> list[Sample]:
    value = True if dtype == "bool" else 3
    return [Sample(*sample.args[:3], value) for sample in scatter_samples(dtype)]


def select_samples(dtype: str) -> list[Sample]:
    x = array(dtype, (3, 4), 1)
    return [
        Sample(x, 1, whole([2, 0, 2])),
        Sample(x, 0, whole([1], "int32")),
        Sample(x, -1, whole(3)),
        Sample(array(dtype, (3, 4), 1, layout="transposed"), -1, whole([3, 3, 0])),
        Sample(array(dtype, (3, 4), 1, layout="sliced"), 0, whole([])),
        Sample(array(dtype, (), 1), 0, whole([0])),
    ]


def index_select(x: Any, dim: int, index: Any) -> Any:
    return np.take(x, np.atleast_1d(index), dim) if x.ndim else x


def index_add_samples(dtype: str) -> list[Sample]:
    x, source = array(dtype, (3, 4), 1, "small"), array(dtype, (2, 4), 2, "small")
    found = [
        Sample(x, 0, whole([2, 0]), source),
        Sample(x, 0, whole([1, 1]), source),
        Sample(array(dtype, (3, 4), 1, "small", "transposed"), -1, whole([3, 0]),
               array(dtype, (3, 2), 2, "small", "sliced")),
        Sample(x, 0, whole([]), array(dtype, (0, 4))),
    ]  # fmt: skip
    if dtype != "bool":
        found.append(Sample(x, 0, whole([2, 2]), source, alpha=2))
    return found


def index_add(x: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    moved, source = np.moveaxis(x, dim, 0), np.moveaxis(source, dim, 0)
    for n, target in enumerate(index):
        moved[target] += source[n] * np.asarray(alpha, x.dtype)
    return x


def index_samples(dtype: str) -> list[Sample]:
    x = array(dtype, (3, 4), 1)
    cube = array(dtype, (2, 3, 4), 2, layout="sliced")
    mask = truth([[True, False, True, False], [False] * 4, [True] * 4])
    return [
        Sample(x, [whole([0, -1, 1]), whole([2, 0, -4])]),
        Sample(x, [None, whole([[3, 0], [1, 1]])]),
        Sample(x, [whole([2, 0])]),
        Sample(array(dtype, (3, 4), 1, layout="transposed"), [whole([[0], [2]]),
               whole([1, 3])]),
        Sample(cube, [whole([1, 0]), None, whole([3, 2])]),
        Sample(cube, [None, whole([1, 0]), whole([3, 2])]),
        Sample(x, [mask]),
        Sample(x, [truth([True, False, True]), whole([1, 2])]),
        Sample(x, [whole([])]),
    ]  # fmt: skip


def subscripts(indices: list[Any]) -> tuple[Any, ...]:
    return tuple(slice(None) if each is None else each for each in indices)


def index(x: Any, indices: list[Any]) -> Any:
    return x[subscripts(indices)]


def put_samples(dtype: str) -> list[Sample]:
    x = array(dtype, (3, 4), 1, "small")
    found = [
        Sample(x, [whole([0, 2])], array(dtype, (2, 4), 2, "small")),
        Sample(x, [whole([0, -1]), whole([1, 3])], array(dtype, (), 2, "small")),
        Sample(array(dtype, (3, 4), 1, "small", "transposed"), [None, whole([1, 0])],
               array(dtype, (3, 2), 2, "small", "sliced")),
        Sample(x, [truth([True, False, True])], array(dtype, (4,), 2, "small")),
        Sample(x, [whole([])], array(dtype, (0, 4), 2)),
    ]  # fmt: skip
    if dtype != "bool":
        twice = whole([0, 0, 2])
        found.append(Sample(x, [twice], array(dtype, (3, 4), 3, "small"), True))
    return found


def index_put(x: Any, indices: list[Any], values: Any, accumulate: bool = False) -> Any:
    if accumulate:
        np.add.at(x, subscripts(indices), values)
    else:
        x[subscripts(indices)] = values
    return x


def masked_samples(dtype: str) -> list[Sample]:
    mask = truth([[True, False, True], [False, False, True]])
    return [
        Sample(array(dtype, (2, 3), 1), mask),
        Sample(
            array(dtype, (2, 3), 1, layout="transposed"), truth([True, False, True])
        ),
        Sample(array(dtype, (3,), 1), mask),
        Sample(array(dtype, (0, 3), 1), truth([True, False, True])),
        Sample(array(dtype, (), 1), truth(True)),
    ]


def masked_select(x: Any, mask: Any) -> Any:
    x, mask = np.broadcast_arrays(x, mask)
    return x[mask]


def nonzero_samples(dtype: str) -> list[Sample]:
    return [
        Sample(given([[1, 0, 2], [0, 0, 3]], dtype)),
        Sample(array(dtype, (3, 4), 1, layout="transposed")),
        Sample(array(dtype, (2, 5), 1, layout="sliced")),
        Sample(given(1, dtype)),
        Sample(given(0, dtype)),
        Sample(array(dtype, (0, 3))),
    ]


def nonzero(x: Any) -> Any:
    return np.argwhere(x)


def sort_samples(dtype: str) -> list[Sample]:
    kind = "any" if dtype in ("bool", "int8", "uint8") else "distinct"
    x = array(dtype, (3, 5), 1, kind)
    found = [
        Sample(x, -1, False, True),
        Sample(x, 0, True, True),
        Sample(array(dtype, (3, 5), 1, kind, "transposed"), 1, True, True),
        Sample(array(dtype, (2, 3, 2), 1, kind, "sliced"), 1, False, True),
        Sample(array(dtype, (), 1, kind), -1, False, True),
        Sample(array(dtype, (2, 0), 1, kind), 1, False, True),
        Sample(given([2, 1, 2, 1, 1], dtype), 0, True, True),
    ]
    if is_real(dtype):
        values = given([1.0, np.nan, -np.inf, np.inf, np.nan], dtype)
        found += [Sample(values, 0, False, True), Sample(values, 0, True, True)]
    return found


def sort_points() -> list[Sample]:
    """Without equal elements, between which a gradient is split at will."""
    x = array("float64", (3, 4), 1, "distinct")
    return [
        Sample(x, -1, False, True),
        Sample(x, 0, True, True),
        Sample(x, 1, False, False),
    ]


def argsort(
    x: Any, dim: int = -1, descending: bool = False, stable: bool = False
) -> Any:
    if not x.ndim:
        return np.zeros((), np.int64)
    keys = x
    if descending:
        keys = ~x if x.dtype.kind in "bu" else -x
        # NaN comes first when descending: below everything that was turned round.
        if x.dtype.kind == "f":
            first = np.isnan(x)
            keys = np.where(first, 0, keys)
            return np.lexsort((keys, ~first), axis=dim)
    return np.argsort(keys, axis=dim, kind="stable")


def sort(x: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    order = argsort(x, dim, descending)
    return [np.take_along_axis(x, order, dim) if x.ndim else x, order]


def top_samples(dtype: str) -> list[Sample]:
    x = array(dtype, (3, 5), 1, "distinct")
    if not is_real(dtype):
        # No ties: which of equal elements comes first is nobody's promise.
        values = given([1, 0] if dtype == "bool" else [3, 1, 2], dtype)
        return [Sample(values, 1), Sample(values, 1, 0, False)]
    found = [
        Sample(x, 2),
        Sample(x, 2, 0, False),
        Sample(array(dtype, (3, 5), 1, "distinct", "transposed"), 3, 1),
        Sample(array(dtype, (3, 5), 1, "distinct", "sliced"), 5, 1, False),
        Sample(x, 0, 1),
        Sample(array(dtype, (), 1), 1),
    ]
    values = given([1.0, np.nan, -np.inf, np.inf, 2.0], dtype)
    return [*found, Sample(values, 2), Sample(values, 4, 0, False)]


def topk(x: Any, k: int, dim: int = -1, largest: bool = True, *_: Any) -> list[Any]:
    values, order = sort(x, dim, largest)
    if x.ndim:
        cut = [slice(None)] * x.ndim
        cut[dim] = slice(k)
        return [values[tuple(cut)], order[tuple(cut)]]
    return [values, order]


def flip_samples(dtype: str) -> list[Sample]:
    return [
        Sample(array(dtype, (2, 3), 1), [0, -1]),
        Sample(array(dtype, (2, 3), 1, layout="transposed"), [1]),
        Sample(array(dtype, (2, 3), 1, layout="sliced"), []),
        Sample(array(dtype, (0, 3), 1), [1]),
    ]


def row(name: str, samples: Any, reference: Callable[..., Any], dtypes: Any = ALL,
        kind: str = "same", **more: Any) -> OpInfo:  # fmt: skip
    more.setdefault("torch", by_name(name))
    return OpInfo(name=name, samples=samples, reference=reference, dtypes=dtypes,
                  kind=kind, **more)  # fmt: skip


def _functional(name: str) -> Callable[[Any], Callable[..., Any]]:
    """The function of torch, with indices as it takes them."""

    def find(torch: Any) -> Callable[..., Any]:
        function = getattr(torch.ops.aten, name)
        return lambda x, indices, *more: function(x, indices, *more)

    return find


ROWS = (
    row("cat", cat_samples, cat),
    row("stack", stack_samples, lambda tensors, dim=0: np.stack(tensors, dim)),
    row("gather", gather_samples, gather),
    row("scatter", scatter_samples, scatter),
    row("scatter.value", value_samples, scatter, torch=by_name("scatter")),
    row("scatter_add", adding_samples, scatter_add, loose=4.0),
    row("index_select", select_samples, index_select),
    row("index_add", index_add_samples, index_add, loose=4.0),
    row("index", index_samples, index, meta=False, torch=_functional("index")),
    row("index_put", put_samples, index_put, torch=_functional("index_put"), loose=4.0),
    row("masked_select", masked_samples, masked_select, meta=False),
    row("nonzero", nonzero_samples, nonzero, kind="int64", gradient=False, meta=False),
    row("sort", sort_samples, sort, ORDERED, "free", smooth=sort_points,
        torch=lambda torch: lambda x, dim, descending, stable: torch.sort(
            x, dim=dim, descending=descending, stable=stable)),
    row("argsort", sort_samples, argsort, ORDERED, "int64", gradient=False,
        torch=lambda torch: lambda x, dim, descending, stable: torch.argsort(
            x, dim=dim, descending=descending, stable=stable)),
    row("topk", top_samples, topk, ORDERED, "free"),
    row("flip", flip_samples, lambda x, dims: np.flip(x, tuple(dims))),
)  # fmt: skip
