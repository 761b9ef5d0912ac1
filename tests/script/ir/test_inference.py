"""Inference: the types of values, and why some have none."""

import enum
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from everyorder import runtime
from everyorder.runtime.futures import Future
from everyorder.runtime.script.ir.program import NotInferred, Program, inferred_type


class Point(NamedTuple):
    x: int
    y: float


class Colour(enum.Enum):
    RED = 1


@dataclass
class Pair:
    left: int
    right: str


def done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def failed() -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(ValueError())
    return future


TYPES: list[tuple[Any, str]] = [
    (None, "NoneType"),
    (True, "bool"),
    (1, "int"),
    (1.5, "float"),
    (1j, "complex"),
    ("a", "str"),
    (runtime.ones(2), "Tensor"),
    (runtime.device("cpu"), "Device"),
    (runtime.float32, "ScalarType"),
    (runtime.strided, "Layout"),
    (runtime.channels_last, "MemoryFormat"),
    ([1, 2], "int[]"),
    ([1, None], "int?[]"),
    ([[1], [2]], "int[][]"),
    ((), "()"),
    ((1, ["a"]), "(int, str[])"),
    ({"a": [1]}, "Dict(str, int[])"),
    (
        Point(1, 2.0),
        "NamedTuple(__torch__.tests.script.ir.test_inference.Point, x: int, y: float)",
    ),
    (Colour.RED, "__torch__.tests.script.ir.test_inference.Colour"),
    (Pair(1, "a"), "__torch__.tests.script.ir.test_inference.Pair"),
    (done(3), "Future(int)"),
]


@pytest.mark.spec("script 0.7", "types of values")
@pytest.mark.spec("script 6.4", "values")
@pytest.mark.parametrize(("value", "text"), TYPES, ids=[text for _, text in TYPES])
def test_types(value: Any, text: str) -> None:
    assert str(inferred_type(value, Program())) == text


DEEP: list[Any] = []
DEEP.append(DEEP)

REASONS: list[tuple[Any, str]] = [
    ([], "an empty list does not say of what"),
    ({}, "an empty dictionary does not say of what"),
    ([1, "a"], "the elements of a list are of the types int and str"),
    ({1: 1, "a": 2}, "the keys of a dictionary are of the types int and str"),
    ({"a": 1, "b": "c"}, "the values of a dictionary are of the types int and str"),
    ({(1,): 1}, "no dictionary has keys of type (int)"),
    ({1}, "a set is not a value of a program"),
    ([1, {2}], "element 1 of a list: a set is not a value of a program"),
    (
        (1, [[]]),
        "element 1 of a tuple: element 0 of a list: an empty list does not say of what",
    ),
    ({"a": object()}, "value 0 of a dictionary: an object is not a value of a program"),
    (Future(), "a future without a value does not say of which type"),
    (failed(), "a future without a value does not say of which type"),
    (len, "a builtin_function_or_method is not a value of a program"),
]


@pytest.mark.spec("script 0.7", "types of values")
@pytest.mark.spec("script 6.4", "values")
@pytest.mark.parametrize(("value", "reason"), REASONS)
def test_reasons(value: Any, reason: str) -> None:
    assert inferred_type(value, Program()) == NotInferred(reason)


def test_a_list_that_holds_itself() -> None:
    found = inferred_type(DEEP)
    assert isinstance(found, NotInferred)
    assert found.reason.endswith("its containers are nested more than 100 deep")
