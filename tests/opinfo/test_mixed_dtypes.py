"""One argument of another dtype than the rest: a result, or an error that says so.

True only here: every tensor among the arguments of every operator is tried in every
kind of dtype, as nobody would write it, and as gradients of several dtypes meet.
"""

from typing import Any

import numpy as np
import pytest

from everyorder.runtime import DType
from everyorder.runtime.errors import EveryorderError
from everyorder.runtime.tensors.dtype_info import numpy_dtype
from tests.opinfo.info import Array, OpInfo, Sample, on_cpu
from tests.opinfo.table import ROWS

# Of each kind, and of each width of floating-point numbers.
OTHERS = ("bool", "int32", "int64", "float16", "bfloat16", "float32", "float64")
TRIED = (*OTHERS, "complex64")
# Whether there is a weight or a bias, and how many dimensions: the first samples tell.
MOST_SAMPLES = 3


def turned(sample: Sample, wanted: int, dtype: str) -> tuple[Any, Any]:
    """The arguments, array number `wanted` converted to a dtype."""
    at = -1

    def turn(value: Any) -> Any:
        nonlocal at
        if not isinstance(value, Array):
            return on_cpu(value)
        at += 1
        if at != wanted:
            return value.tensor()
        with np.errstate(all="ignore"):
            values = value.values
            if dtype != "complex64" and values.dtype.kind == "c":
                values = values.real
            converted = values.astype(numpy_dtype(DType.named(dtype)))
        return Array(converted, value.layout).tensor()

    return sample.bound(turn)


def outcome(row: OpInfo, args: Any, kwargs: Any) -> str:
    """What the call was refused with; nothing if it was not."""
    try:
        row.call(*args, **kwargs)
    except EveryorderError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("row", ROWS, ids=repr)
def test_a_dtype_is_taken_or_refused_by_name(row: OpInfo) -> None:
    for dtype in row.dtypes:
        for sample in row.samples(dtype)[:MOST_SAMPLES]:
            for number, array in enumerate(sample.arrays()):
                for other in TRIED:
                    if other == array.values.dtype.name:
                        continue
                    told = outcome(row, *turned(sample, number, other))
                    case = f"{row.name}({sample}), {number} in {other}: {told}"
                    assert not told or f"core::{row.name}" in told, case
