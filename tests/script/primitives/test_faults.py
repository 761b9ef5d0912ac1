"""Faults planted in rows: each check of `test_rows` finds those it is there for."""

import operator
from collections.abc import Callable
from typing import Any

import pytest

from everyorder.runtime.script.primitives import PrimitiveRow
from everyorder.runtime.script.primitives.primitive_row import (
    OPERATOR_WAYS,
    Way,
    call,
    row,
)
from tests.script.primitives import test_rows as checks

ITEM = OPERATOR_WAYS["getitem"]
Check = Callable[[PrimitiveRow], None]


def _method(name: str) -> Way:
    return Way("method", name, name)


def first_and_cleared(self: list[Any], index: int) -> Any:
    item = self[index]
    self.clear()
    return item


def rounded_to_zero(a: int, b: int) -> int:
    return int(a / b)


def wrapped(a: int, b: int) -> int:
    return (a + b + 2**63) % 2**64 - 2**63


def refused(a: int, b: int) -> int:
    raise ValueError(a, b)


def one_less(self: list[Any]) -> None:
    self.pop()
    raise IndexError


FAULTS: dict[str, tuple[Check, PrimitiveRow]] = {
    "another value": (
        checks.test_a_primitive_does_what_python_does,
        row(
            "f(int a, int b) -> int",
            OPERATOR_WAYS["floordiv"],
            rounded_to_zero,
            "7, -2",
        ),
    ),
    "another type": (
        checks.test_a_primitive_does_what_python_does,
        row(
            "f(int a, int b) -> float",
            OPERATOR_WAYS["truediv"],
            operator.floordiv,
            "4, 2",
        ),
    ),
    "wrapped around": (
        checks.test_a_primitive_does_what_python_does,
        row("f(int a, int b) -> int", OPERATOR_WAYS["add"], wrapped, "MOST, 1"),
    ),
    "beyond 64 bits": (
        checks.test_a_primitive_does_what_python_does,
        row("f(int a, int b) -> int", OPERATOR_WAYS["add"], operator.add, "MOST, 1"),
    ),
    "another exception": (
        checks.test_a_primitive_does_what_python_does,
        row(
            "f(int a, int b) -> int",
            OPERATOR_WAYS["floordiv"],
            refused,
            "1, 0",
            raises=True,
        ),
    ),
    "another state": (
        checks.test_a_primitive_does_what_python_does,
        row("f(t[](a!) self, int i) -> t(*)", ITEM, first_and_cleared, "[1], 0"),
    ),
    "raises untold": (
        checks.test_a_row_is_sampled_and_raises_as_it_says,
        row("f(t[](a) self, int i) -> t(*)", ITEM, operator.getitem, "[1], 0; [], 0"),
    ),
    "raises for no sample": (
        checks.test_a_row_is_sampled_and_raises_as_it_says,
        row("f(t[] x) -> int", call(len), len, "[1]; []", raises=True),
    ),
    "sampled by errors alone": (
        checks.test_a_row_is_sampled_and_raises_as_it_says,
        row(
            *("f(t[](a) self, int i) -> t(*)", ITEM, operator.getitem, "[], 0"),
            raises=True,
        ),
    ),
    "writes untold": (
        checks.test_what_is_written_and_shared_is_told,
        row("f(t[] self) -> ()", _method("clear"), list.clear, "[1]"),
    ),
    "writes before it raises": (
        checks.test_what_is_written_and_shared_is_told,
        row("f(t[](a!) self) -> ()", _method("x"), one_less, "[1]", raises=True),
    ),
    "shares untold": (
        checks.test_what_is_written_and_shared_is_told,
        row("f(t[] self, int i) -> t", ITEM, operator.getitem, "[[1]], 0"),
    ),
    "is the result untold": (
        checks.test_what_is_written_and_shared_is_told,
        row("f(t[] x) -> t[]", call(list), lambda x: x, "[1]"),
    ),
    "keeps untold": (
        checks.test_what_is_written_and_shared_is_told,
        row("f(t[](a!) self, t el) -> ()", _method("append"), list.append, "[], [1]"),
    ),
    "told to write": (
        checks.test_nothing_is_told_that_no_sample_shows,
        row("f(t[](a!) x) -> int", call(len), len, "[1]"),
    ),
    "told to share": (
        checks.test_nothing_is_told_that_no_sample_shows,
        row("f(t[](a) x) -> t[](a)", call(list), list, "[1]"),
    ),
    "told to keep": (
        checks.test_nothing_is_told_that_no_sample_shows,
        row(
            *("f(t[](a!) self, t(b -> *) el) -> ()", _method("remove"), list.remove),
            "[[1]], [1]",
        ),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str) -> None:
    check, faulty = FAULTS[fault]
    with pytest.raises(AssertionError):
        check(faulty)
