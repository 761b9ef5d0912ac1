"""Which values are which numbers; the table was read off torch 2.13."""

from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from runtime.schema.codes import DType, Layout
from runtime.schema.values import (
    MISMATCH,
    to_bool,
    to_complex,
    to_float,
    to_int,
    to_scalar,
    to_symint,
)


class Duck:
    """A tensor in the eyes of the conversions."""

    key_bits = 0

    def __init__(self, *elements: object) -> None:
        self.elements = elements

    def item(self) -> object:
        (element,) = self.elements
        return element


NO = MISMATCH
COLUMNS = (to_int, to_symint, to_float, to_complex, to_bool, to_scalar)
TABLE: list[tuple[object, tuple[object, ...]]] = [
    # value            int  SymInt float complex bool Scalar
    (True, (1, 1, 1.0, 1 + 0j, True, True)),
    (0, (0, 0, 0.0, 0j, False, 0)),
    (2, (2, 2, 2.0, 2 + 0j, True, 2)),
    (2.5, (NO, NO, 2.5, 2.5 + 0j, True, 2.5)),
    (2**63, (NO, NO, 2.0**63, complex(2**63), True, 2**63)),
    (2**64, (NO, NO, 2.0**64, complex(2**64), True, NO)),
    (-(2**63), (-(2**63), -(2**63), -(2.0**63), complex(-(2**63)), True, -(2**63))),
    (-(2**63) - 1, (NO, NO, -(2.0**63), complex(-(2**63)), True, NO)),
    (10**400, (NO, NO, NO, NO, True, NO)),
    (1j, (NO, NO, NO, 1j, True, 1j)),
    (None, (NO,) * 6),
    ("1", (NO,) * 6),
    ([1], (NO,) * 6),
    (Duck(3), (3, 3, 3.0, 3 + 0j, True, NO)),
    (Duck(3.5), (3, 3, 3.5, 3.5 + 0j, True, NO)),
    (Duck(-3.5), (-3, -3, -3.5, -3.5 + 0j, True, NO)),
    (Duck(inf), (NO, NO, inf, complex(inf), True, NO)),
    (Duck(True), (1, 1, 1.0, 1 + 0j, True, NO)),
    (Duck(1j), (NO, NO, NO, 1j, True, NO)),
    (Duck(1, 2), (NO,) * 6),
    (Duck(), (NO,) * 6),
    (np.int64(3), (3, 3, 3.0, 3 + 0j, True, 3)),
    (np.float64(2.5), (NO, NO, 2.5, 2.5 + 0j, True, 2.5)),
    (np.float32(2.5), (NO, NO, 2.5, 2.5 + 0j, True, 2.5)),
    (np.complex64(1j), (NO, NO, NO, 1j, True, 1j)),
    (np.bool_(True), (1, 1, 1.0, 1 + 0j, True, True)),
    (np.array([1, 2]), (NO,) * 6),
    (DType.named("float32"), (6, NO, NO, NO, NO, 6)),
    (Layout.named("sparse_coo"), (1, NO, NO, NO, NO, 1)),
]


@pytest.mark.parametrize(("value", "row"), TABLE, ids=lambda v: repr(v)[:20])
def test_the_table_of_conversions(value: object, row: tuple[object, ...]) -> None:
    found = tuple(turn(value) for turn in COLUMNS)
    assert found == row
    assert [type(each) for each in found] == [type(each) for each in row]


def test_a_tensor_that_is_not_a_number_is_no_int() -> None:
    assert to_int(Duck(nan)) is MISMATCH
    assert repr(to_float(Duck(nan))) == "nan"


@pytest.mark.parametrize("turn", [to_int, to_scalar])
def test_what_the_type_takes_loses_its_subclass(turn: Callable[[Any], Any]) -> None:
    class Level(int):
        pass

    assert type(turn(Level(3))) is int


def test_the_mismatch_prints_its_name() -> None:
    assert repr(MISMATCH) == "MISMATCH"
