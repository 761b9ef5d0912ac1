"""Results do not depend on where in memory arguments and results lie.

Compilers ask whether arrays may overlap, and take another loop where they might: one
that adds up in another order, if it may.
"""

from typing import Any

import numpy as np
import pytest

from everyorder.runtime.tensors.construction import from_numpy
from tests.opinfo.info import Array, OpInfo, listed, on_cpu, targets_of
from tests.opinfo.table import ROWS

TARGETED = [
    row
    for row in ROWS
    if row.form("out") and not row.random and len(targets_of(row.form("out"))) == 1
]  # fmt: skip
# Elements between an argument and what follows it.
GAPS = (0, 1, 2, 3, 5)


def neighbours(arrays: list[Any], shape: tuple[int, ...], gap: int) -> list[Any]:
    """Copies of the arrays, one after another in memory, and room for a result."""
    counts = [each.size for each in arrays] + [int(np.prod(shape))]
    size = sum(counts) + gap * len(counts)
    buffer, start, found = np.zeros(size, arrays[0].dtype), 0, []
    for each, count in zip([*arrays, None], counts, strict=True):
        part = buffer[start : start + count]
        part = part.reshape(shape if each is None else each.shape)
        if each is not None:
            part[...] = each
        found.append(part)
        start += count + gap
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", TARGETED, ids=repr)
def test_neighbours_in_memory_change_no_bit(row: OpInfo, dtype: str) -> None:
    if dtype not in row.dtypes:
        return
    for sample in row.samples(dtype):
        arrays = [np.array(each.values) for each in sample.arrays()]
        args, kwargs = sample.bound(on_cpu)
        (expected,) = listed(row.call(*args, **kwargs))[:1]
        kinds = {each.dtype for each in arrays} | {np.dtype(dtype)}
        if not arrays or len(kinds) > 1 or str(expected.dtype) != dtype:
            continue
        for gap in GAPS:
            *given, out = neighbours(arrays, expected.shape, gap)
            turns = iter(given)

            def moved(value: Any, turns: Any = turns) -> Any:
                if isinstance(value, Array):
                    return from_numpy(next(turns))
                return on_cpu(value)

            args, kwargs = sample.bound(moved)
            plain = row.call(*args, **kwargs).numpy()
            row.form("out")(*args, **kwargs, out=from_numpy(out))
            assert out.tobytes() == plain.tobytes(), f"{row.name}({sample}), {gap}"
