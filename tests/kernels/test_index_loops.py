"""Walks made ready: what is remembered, and for how long."""

from typing import Any

import numpy as np
import pytest

from everyorder.runtime.kernels.cpu import gather
from everyorder.runtime.kernels.cpu.index_loops import READ, REMEMBERED, plan
from everyorder.runtime.schema.enums import DType


def test_a_geometry_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Any, ...]] = []

    def call(*_: Any) -> bool:
        return False

    def along(family: Any, name: str, slices: bool, *geometry: int) -> Any:
        made.append((family, name, slices, *geometry))
        return call

    monkeypatch.setattr(gather, "along", along)
    calls: Any = gather._calls(READ, True, str)
    dtype = DType.named("int8")
    assert calls(dtype, 1, 2) is call
    assert calls(dtype, 1, 2) is calls(dtype, 3, 4)
    assert made == [(READ, "int8", True, 1, 2), (READ, "int8", True, 3, 4)]
    assert calls.cache_info().maxsize == REMEMBERED


def test_dimensions_that_walk_as_one_are_joined() -> None:
    walk = plan((2, 3, 1, 4), (0, 0, 0, 1), 4, (3, 1, 0, 0), (12, 4, 4, 1), 9, 6)
    # The step and the check, six rows of four columns.
    assert walk.table.tolist() == [4, 9, 6, 6, 0, 1, 4, 4, 1, 0, 1]
    assert (walk.sheets, walk.elements, walk.together) == (1, 24, 1)


def test_rows_and_columns_are_the_innermost_of_what_is_left() -> None:
    walk = plan((2, 3, 4), (30, 0, 1), 5, (0, 1, 0), (24, 8, 2))
    assert walk.table.tolist() == [5, 0, 0, 3, 0, 1, 8, 4, 1, 0, 2, 2, 30, 0, 24]
    assert (walk.sheets, walk.elements, walk.together) == (2, 24, 1)
    assert walk.apart == (True, False, True)


@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 0, 3), (2, 3, 0)])
def test_nothing_has_no_sheets(shape: tuple[int, ...]) -> None:
    walk = plan(shape, (1, 0, 0), 1, (0, 1, 0), (7, 5, 2), 4, 2)
    assert (walk.sheets, walk.elements) == (0, 0)
    assert walk.table.tolist() == [1, 4, 2, *[0] * 8]
    assert walk.table.dtype == np.int64
