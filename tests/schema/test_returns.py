"""Returns of Python kernels: one, several, none, and what is refused."""

from typing import Any

import pytest

from runtime.errors.call import KernelError
from runtime.schema.binding import returner
from runtime.schema.codes import Device, DType
from runtime.schema.parser import parse_schema
from runtime.schema.values import same
from tests.coded import code


class Duck:
    key_bits = 0

    def item(self) -> float:
        return 2.5


T = Duck()


@pytest.mark.parametrize(
    ("returns", "value", "expected"),
    [
        ("()", None, None),
        ("Tensor", T, T),
        ("Tensor", None, None),
        ("Tensor?", None, None),
        ("int", True, 1),
        ("int", T, 2),
        ("float", 1, 1.0),
        ("Tensor[]", (T,), [T]),
        ("int[2]", [1, 2], [1, 2]),
        ("ScalarType", DType(6), 6),
        ("Device", "cpu", Device("cpu")),
        ("(Tensor, int)", (T, 1), (T, 1)),
        ("(Tensor, int)", [T, True], (T, 1)),
        ("(int, int)", range(2), (0, 1)),
        ("((int, str))", (1, "a"), (1, "a")),
        ("...", {"any": "thing"}, {"any": "thing"}),
    ],
)
def test_returns_convert(returns: str, value: Any, expected: Any) -> None:
    found = returner(parse_schema(f"t::f() -> {returns}"))(value)
    assert same(found, expected)


@pytest.mark.parametrize(
    ("returns", "value", "position", "expected", "found", "text"),
    [
        ("()", 1, None, "None", "an int", "1"),
        ("()", (), None, "None", "a tuple", "()"),
        ("Tensor", 1, None, "`Tensor`", "an int", "1"),
        ("Tensor", (None,), None, "`Tensor`", "a tuple of NoneType", "(None,)"),
        ("int", 1.5, None, "`int`", "a float", "1.5"),
        ("int[2]", 5, None, "`int[2]`", "an int", "5"),
        ("(Tensor, int)", None, None, "a sequence of 2 values", "None", "None"),
        ("(int, int)", "ab", None, "a sequence of 2 values", "a str", "'ab'"),
        ("(int, int)", {1: 2}, None, "a sequence of 2 values", "a dict", "{1: 2}"),
        ("(int, int)", (1, "b"), 1, "`int`", "a str", "'b'"),
    ],
)
def test_other_values_are_refused(
    returns: str, value: Any, position: int | None, expected: str, found: str, text: str
) -> None:
    schema = parse_schema(f"t::f() -> {returns}")
    with pytest.raises(KernelError, check=code("WrongReturnType")) as caught:
        returner(schema)(value)
    assert caught.value.fields() == {
        "operator": "t::f",
        "position": position,
        "expected": expected,
        "found": found,
        "value": text,
        "schema": str(schema),
    }


def test_a_tensor_is_not_a_sequence_of_returns() -> None:
    with pytest.raises(KernelError, check=code("WrongReturnType")) as caught:
        returner(parse_schema("t::f() -> (Tensor, Tensor)"))(T)
    assert caught.value.found == "a Duck"


@pytest.mark.parametrize("value", [(T,), (T, T, T), ()])
def test_the_number_of_returns_is_checked(value: tuple[Any, ...]) -> None:
    schema = parse_schema("t::f() -> (Tensor, Tensor)")
    with pytest.raises(KernelError, check=code("WrongReturnCount")) as caught:
        returner(schema)(value)
    assert caught.value.fields() == {
        "operator": "t::f",
        "expected": 2,
        "found": len(value),
        "schema": "t::f() -> (Tensor, Tensor)",
    }
