"""The rows of what describes lines: differences, medians, records, distances."""

from typing import Any

import numpy as np

from tests.opinfo.info import OpInfo, Sample
from tests.opinfo.samples import (
    ALL,
    COMPLEXES,
    INTEGERS,
    NUMBERS,
    REALS,
    array,
    given,
)
from tests.opinfo.table_composed import called, each, of

FLOATING = (*REALS, *COMPLEXES)
LONG_FLOATS = ("float32", "float64")
ORDERED = ("bool", *INTEGERS, *REALS)
Found = list[Any]


def neighbours(dtype: str) -> list[Sample]:
    line = array(dtype, (2, 4), 1)
    ends = {"prepend": array(dtype, (2, 1), 2), "append": array(dtype, (2, 2), 3)}
    return [
        *each(of((3, 4)), of((3, 4), 2, 0), of((4,), 5))(dtype),
        Sample(line, 1, 1, **ends),
    ]


def differences(
    x: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None
) -> Any:
    joined = [each for each in (prepend, x, append) if each is not None]
    return np.diff(np.concatenate(joined, dim), n, dim)


def middles(dtype: str) -> list[Sample]:
    """Lines of different elements, since any of equal ones may be the median."""
    return [
        Sample(given([[3, 1, 2, 0], [7, 4, 6, 5]], dtype), 1),
        Sample(given([[3, 1, 2], [7, 4, 6]], dtype), 0, True),
        Sample(given([5, 9, 2], dtype), 0),
        Sample(given(np.zeros((0, 3)), dtype), 1),
    ]


def middle(x: Any, dim: int, keepdim: bool = False) -> Found:
    place = (x.shape[dim] - 1) // 2
    places = np.argsort(x, dim).take([place], dim)
    values = np.take_along_axis(x, places, dim)
    return [each if keepdim else each.squeeze(dim) for each in (values, places)]


def fractions(dtype: str) -> list[Sample]:
    line, square = [3, 1, 2, 0.5], [[3, 1, 2, 0.5], [7, 4, 6, 5]]
    some = given([0.0, 0.3, 1.0], dtype)
    found = [
        Sample(given(line, dtype), given(0.4, dtype)),
        Sample(given(square, dtype), some),
        Sample(given(square, dtype), some, 1),
        Sample(given(square, dtype), given(0.25, dtype), 0, True),
        Sample(given([1, np.nan], dtype), some),
    ]
    ways = ("lower", "higher", "midpoint", "nearest")
    return found + [
        Sample(given(square, dtype), some, 1, interpolation=way) for way in ways
    ]


def at_fractions(
    x: Any, q: Any, dim: int | None = None, keepdim: bool = False, **options: Any
) -> Any:
    way = options.get("interpolation", "linear")
    return np.quantile(x, q, axis=dim, keepdims=keepdim, method=way)


def record(best: Any) -> Any:
    """The running extreme and its place, of NumPy's `maximum` or `minimum`."""

    def found(x: Any, dim: int) -> Found:
        values = best.accumulate(x, dim)
        shape = [1] * x.ndim
        shape[dim] = -1
        places = np.arange(x.shape[dim]).reshape(shape) * np.ones(x.shape, int)
        equal = (values == x) | (np.isnan(values) & np.isnan(x))
        return [values, np.maximum.accumulate(np.where(equal, places, 0), dim)]

    return found


def climbing(dtype: str) -> list[Sample]:
    found = each(of((3, 4), 1), of((5, 2), 0), of((7,), -1))(dtype)
    if dtype in REALS:
        found.append(Sample(given([2.0, 3.0, np.nan, 9.0, np.nan, 1.0], dtype), 0))
    return found


def steps(dtype: str) -> list[Sample]:
    """Lines without equal elements."""
    return [Sample(given([[1.0, 3.0, 2.0, 5.0], [4.0, 0.0, 7.0, 6.0]], dtype), 1)]


def rows(dtype: str) -> list[Sample]:
    x, y = array(dtype, (3, 4), 1), array(dtype, (2, 4), 9)
    return [
        Sample(x, y),
        *(Sample(x, y, order) for order in (1.0, 3.0, float("inf"))),
        Sample(array(dtype, (5, 1, 3, 4), 1), array(dtype, (2, 2, 4), 9)),
        Sample(array(dtype, (0, 4), 1), y),
    ]


def distances(x: Any, y: Any, p: float = 2.0) -> Any:
    return np.linalg.norm(x[..., :, None, :] - y[..., None, :, :], p, -1)


def contracted(dtype: str) -> list[Sample]:
    x, y = array(dtype, (2, 3, 4), 1), array(dtype, (4, 3, 5), 7)
    return [
        Sample(x, y, [2, 1], [0, 1]),
        Sample(x, y, [-1], [0]),
        Sample(array(dtype, (2, 3), 1), array(dtype, (4,), 2), [], []),
        Sample(array(dtype, (2, 0), 1), array(dtype, (0, 3), 2), [1], [0]),
    ]


def spread(name: str) -> Any:
    def found(
        x: Any, dim: Any = None, correction: Any = None, keepdim: bool = False
    ) -> Found:
        options: dict[str, Any] = {
            "axis": tuple(dim) if dim else None,
            "keepdims": keepdim,
        }
        ddof = 1 if correction is None else correction
        return [getattr(np, name)(x, ddof=ddof, **options), np.mean(x, **options)]

    return found


SPREADS = each(
    of((3, 4), empty=False),
    of((3, 4), [1], empty=False),
    of((2, 3, 4), [0, 2], correction=0, keepdim=True, empty=False),
)


def shifted(dtype: str) -> list[Sample]:
    counts = given([0, 1, 7, 3], dtype)
    return [
        Sample(array(dtype, (4,), 1), counts),
        Sample(array(dtype, (2, 4), 3), counts),
        Sample(array(dtype, (4,), 1), given([8 * np.dtype(dtype).itemsize], dtype)),
    ]


def shift(move: Any) -> Any:
    def found(x: Any, y: Any) -> Any:
        bits = 8 * x.dtype.itemsize
        kept = move(x, np.minimum(y, bits - 1))
        if move is np.left_shift:
            return np.where(y < bits, kept, 0).astype(x.dtype)
        return np.where(y < bits, kept, np.where(x < 0, -1, 0)).astype(x.dtype)

    return found


def among(dtype: str) -> list[Sample]:
    line = array(dtype, (3, 4), 1)
    return [
        Sample(line, array(dtype, (5,), 2)),
        Sample(line, array(dtype, (2, 2), 1), invert=True),
        Sample(line, array(dtype, (0,), 1)),
    ]


def all_of(dtype: str) -> list[Sample]:
    found = [Sample(given([[3, 1, 2, 0], [7, 4, 6, 5]], dtype)),
             Sample(given([5, 9, 2], dtype)), Sample(given(4, dtype))]  # fmt: skip
    if dtype in REALS:
        found.append(Sample(given([5, np.nan, 2], dtype)))
    return found


def lower(x: Any) -> Any:
    line = np.sort(x, None)
    return line[-1] if np.isnan(line[-1]) else line[(line.size - 1) // 2]


ROWS = (
    OpInfo(name="diff", samples=neighbours, reference=differences, dtypes=ALL,
           torch=called("diff")),
    OpInfo(name="rot90",
           samples=each(*(of((3, 4), k) for k in range(4)), of((2, 3, 4), 1, [2, 0])),
           reference=lambda x, k, dims=(0, 1): np.rot90(x, k, tuple(dims)),
           dtypes=ALL, torch=called("rot90")),
    OpInfo(name="median", kinks=("ties", "zeros"), samples=all_of, reference=lower,
           dtypes=(*INTEGERS, *REALS), torch=called("median")),
    OpInfo(name="median.dim", kinks=("ties", "zeros"), samples=middles,
           reference=middle, kind="free",
           dtypes=(*INTEGERS, *REALS), torch=called("median")),
    OpInfo(name="quantile", kinks=("ties", "zeros"), samples=fractions,
           reference=at_fractions,
           dtypes=LONG_FLOATS, torch=called("quantile"), loose=4.0,
           smooth=lambda: fractions("float64")[2:3]),
    OpInfo(name="isin", samples=among, kind="bool", gradient=False,
           reference=lambda x, y, invert=False: np.isin(x, y, invert=invert),
           dtypes=(*INTEGERS, *REALS), torch=called("isin")),
    OpInfo(name="cummax", kinks=("ties", "zeros"), samples=climbing,
           reference=record(np.maximum), kind="free",
           dtypes=ORDERED, torch=called("cummax"), smooth=lambda: steps("float64")),
    OpInfo(name="cummin", kinks=("ties", "zeros"), samples=climbing,
           reference=record(np.minimum), kind="free",
           dtypes=ORDERED, torch=called("cummin"), smooth=lambda: steps("float64")),
    OpInfo(name="cdist", kinks=("zeros",), samples=rows, reference=distances,
           dtypes=LONG_FLOATS, loose=8.0, torch=called("cdist"),
           torch_lacks=("float64",)),
    OpInfo(name="tensordot", samples=contracted, dtypes=NUMBERS, loose=4.0,
           reference=lambda x, y, ours, theirs: np.tensordot(x, y, (ours, theirs)),
           torch=lambda torch: lambda x, y, ours, theirs: torch.tensordot(
               x, y, (ours, theirs))),
    OpInfo(name="var_mean", samples=SPREADS, reference=spread("var"), dtypes=FLOATING,
           kind="free",
           loose=4.0, torch=called("var_mean")),
    OpInfo(name="std_mean", samples=SPREADS, reference=spread("std"), dtypes=FLOATING,
           kind="free",
           loose=4.0, torch=called("std_mean")),
    OpInfo(name="bitwise_left_shift", samples=shifted, reference=shift(np.left_shift),
           dtypes=INTEGERS, gradient=False, torch=called("bitwise_left_shift")),
    OpInfo(name="bitwise_right_shift", samples=shifted,
           reference=shift(np.right_shift), dtypes=INTEGERS, gradient=False,
           torch=called("bitwise_right_shift")),
)  # fmt: skip
