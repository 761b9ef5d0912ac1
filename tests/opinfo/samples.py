"""Values for the samples: few, of every dtype, and the same at every run.

True only here: real numbers are multiples of 1/16 below 4, which every floating-point
dtype holds exactly, so that all dtypes see the same numbers.
"""

from typing import Any

import numpy as np

from everyorder.runtime import DType
from everyorder.runtime.tensors.dtype_info import numpy_dtype
from tests.opinfo.info import Array, Sample

REALS = ("float16", "bfloat16", "float32", "float64")
COMPLEXES = ("complex64", "complex128")
INTEGERS = ("uint8", "int8", "int32", "int64")
NUMBERS = (*INTEGERS, *REALS, *COMPLEXES)
ORDERED = ("bool", *INTEGERS, *REALS)
ALL = ("bool", *NUMBERS)

Shape = tuple[int, ...]


def array(
    dtype: str, shape: Shape, seed: int = 0, kind: str = "any", layout: str = "plain"
) -> Array:
    """An array of mixed numbers.

    `kind` is any, positive, small (within -1 and 1), nonzero or distinct.
    """
    count = int(np.prod(shape))
    rng = np.random.default_rng(seed + 11)
    if kind == "distinct":
        # Half a step aside: neither ties, nor integers, nor zero.
        drawn = (rng.permutation(count) - count // 2 + 0.5) / 4
    else:
        low, high = {"positive": (3, 60), "small": (-15, 16)}.get(kind, (-47, 48))
        drawn = rng.integers(low, high, count) / 16
    if dtype in INTEGERS:
        drawn = np.trunc(drawn * 2)
        if kind in ("positive", "nonzero", "distinct"):
            drawn = np.where(drawn == 0, 3, drawn)
        if dtype == "uint8" or kind == "positive":
            drawn = np.abs(drawn)
    elif dtype == "bool":
        drawn = np.where(drawn > 0.5, 1, 0)
    elif dtype in COMPLEXES:
        drawn = drawn + 1j * rng.integers(3, 40, count) / 16
    elif kind == "nonzero":
        drawn = np.where(drawn == 0, 0.5, drawn)
    values = drawn.astype(numpy_dtype(DType.named(dtype))).reshape(shape)
    if layout == "expanded":
        values = np.broadcast_to(values[:1], shape).copy()
    return Array(values, layout)


def whole(values: Any, dtype: str = "int64", layout: str = "plain") -> Array:
    """Indices, or other integers."""
    return Array(np.array(values, dtype=dtype), layout)


def truth(values: Any) -> Array:
    """A mask."""
    return Array(np.array(values, dtype=np.bool_))


def given(values: Any, dtype: str) -> Array:
    """These values."""
    return Array(np.array(values).astype(numpy_dtype(DType.named(dtype))))


def is_real(dtype: str) -> bool:
    """Whether a dtype is one of real floating-point numbers."""
    return dtype in REALS


SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5)


def special(dtype: str) -> Array:
    """Not a number, the infinities, and zeros of both signs."""
    return given(SPECIAL, dtype)


def one_array(kind: str = "any", edges: bool = True) -> Any:
    """Samples of one array: all layouts, no dimension, no element, special values."""

    def samples(dtype: str) -> list[Sample]:
        found = [
            Sample(array(dtype, (3, 4), kind=kind)),
            Sample(array(dtype, (3, 4), 1, kind, "transposed")),
            Sample(array(dtype, (2, 5), 2, kind, "sliced")),
            Sample(array(dtype, (3, 2), 3, kind, "expanded")),
            Sample(array(dtype, (7,), 4, kind, "offset")),
            Sample(array(dtype, (), 5, kind)),
            Sample(array(dtype, (0, 3), 6, kind)),
            # Long enough for the vectorised part of a kernel and its rest.
            Sample(array(dtype, (67,), 7, kind)),
        ]
        if edges and is_real(dtype):
            found.append(Sample(special(dtype)))
        return found

    return samples


def two_arrays(left: str = "any", right: str = "any", edges: bool = True) -> Any:
    """Samples of two arrays: broadcast, laid out differently, with a number."""

    def samples(dtype: str) -> list[Sample]:
        def pair(one: Shape, two: Shape, *layouts: str) -> Sample:
            a, b = (*layouts, "plain", "plain")[:2]
            return Sample(array(dtype, one, 1, left, a), array(dtype, two, 2, right, b))

        found = [
            pair((3, 4), (3, 4)),
            pair((3, 1), (4,)),
            pair((3, 4), (3, 4), "transposed", "sliced"),
            pair((2, 3), (2, 3), "expanded", "offset"),
            pair((), (3,)),
            pair((2, 1, 3), ()),
            pair((), ()),
            pair((0, 3), (1, 3)),
            pair((67,), (67,)),
        ]
        if dtype != "bool":
            found.append(Sample(array(dtype, (5,), 3, left), 3))
        if is_real(dtype):
            found.append(Sample(array(dtype, (5,), 3, left), 2.5))
        if edges and is_real(dtype):
            found.append(Sample(special(dtype), given(SPECIAL[::-1], dtype)))
        return found

    return samples
