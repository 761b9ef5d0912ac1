"""Python numbers as elements: in the dtype of a kernel, without warnings.

True only here: what a number becomes that the dtype cannot hold.  Integers wrap, as
they do in arithmetic; floating-point numbers become infinite; a fraction is cut off;
the imaginary part of a number is dropped where the dtype has none.
"""

from functools import cache
from typing import Any

import numpy as np

from runtime.schema.codes import DType
from runtime.tensors.elements import info, numpy_dtype

Number = bool | int | float | complex


@cache
def _facts(name: str) -> tuple[Any, str, Any, Any]:
    """The scalar type, its kind, and what it can hold without a second look."""
    dtype = DType.named(name)
    facts = info(dtype)
    kind = facts.kind
    low = facts.smallest if kind in "ui" else -facts.largest
    return numpy_dtype(dtype).type, kind, low, facts.largest


def element(name: str, number: Any) -> Any:
    """The number as a NumPy scalar of the dtype of that name."""
    make, kind, low, high = _facts(name)
    if type(number) is complex:
        if kind in "cb":
            with np.errstate(all="ignore"):
                return make(number)
        number = number.real
    if kind in "ui":
        whole = int(number)
        # A mask of the width takes an integer to the one that is left of it.
        return make(whole) if low <= whole <= high else _wrapped(make, whole)
    if low <= number <= high:
        return make(number)
    with np.errstate(all="ignore"):
        return make(float(number) if abs(number) < 2**1023 else _infinite(number))


def _wrapped(make: Any, whole: int) -> Any:
    bits = 8 * np.dtype(make).itemsize
    raw = (whole & (2**bits - 1)).to_bytes(bits // 8, "little")
    return np.frombuffer(raw, np.dtype(make).newbyteorder("<")).astype(make)[0]


def _infinite(number: Any) -> float:
    """An integer beyond every float; other numbers are themselves."""
    if isinstance(number, int):
        return float("inf") if number > 0 else float("-inf")
    return float(number)
