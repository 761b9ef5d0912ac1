"""Defaults taken out and put back: upstream's cases, and the two inverse laws."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.schema.binding import bind
from runtime.schema.codes import DType
from runtime.schema.device import Device
from runtime.schema.parser import parse_schema
from runtime.schema.schema import Schema
from runtime.schema.strip import fill_defaults, strip_defaults
from runtime.schema.values import same


class Duck:
    key_bits = 0


X = Duck()


def schema(text: str) -> Schema:
    return parse_schema(f"t::f({text}) -> ()")


def seen(text: str, *args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], Any]:
    """What a handler gets of this call."""
    one = schema(text)
    return strip_defaults(one, bind(one, args, kwargs))


@pytest.mark.parametrize(
    ("args", "left"),
    [
        ((X,), (X,)),
        ((X, 1), (X,)),
        ((X, 1, 1.5), (X,)),
        ((X, 2), (X, 2)),
        ((X, 1, 5), (X, 1, 5.0)),
        ((X, 2, 1.5), (X, 2)),
    ],
)
def test_positional_defaults_go_from_the_end(
    args: tuple[Any, ...], left: tuple[Any, ...]
) -> None:
    assert seen("Tensor x, int a=1, float b=1.5", *args) == (left, {})


def test_a_keyword_for_a_positional_argument_becomes_positional() -> None:
    found = seen("Tensor x, int a=1, int b=2", X, b=3)
    assert found == ((X, 1, 3), {})


def test_keyword_only_arguments_go_each_by_itself() -> None:
    text = "Tensor x, *, int a=1, int b=2, int c=3"
    assert seen(text, X, a=1, b=5, c=3) == ((X,), {"b": 5})
    assert list(seen(text, X, c=9, a=9)[1]) == ["a", "c"]


def test_a_required_keyword_only_argument_stays() -> None:
    assert seen("Tensor x, *, int? k", X, k=None) == ((X,), {"k": None})


@pytest.mark.parametrize(
    ("argument", "value", "dropped"),
    [
        ("Scalar s=1", 1, True),
        ("Scalar s=1", 1.0, False),
        ("Scalar s=1", True, False),
        ("Scalar s=1", 1 + 0j, False),
        ("float f=1.", 1, True),
        ("bool b=False", 0, True),
        ("int i=0", False, True),
        ("float f=0.", -0.0, True),
        ("float f=0.", float("nan"), False),
        ("str s='a'", "a", True),
        ("Device d='cpu'", "cpu", True),
        ("Device d='cpu'", Device("cpu"), True),
        ("Device d='cpu'", "cuda:1", False),
        ("ScalarType d=float", DType.named("float32"), True),
        ("ScalarType d=float", 6, True),
        ("ScalarType d=float", DType.named("int64"), False),
        ("int[2] l=1", 1, True),
        ("int[2] l=1", [1, 1], True),
        ("int[2] l=1", (1, 1), True),
        ("int[2] l=1", [1], False),
        ("int? i=None", None, True),
        ("int? i=None", 0, False),
        ("Tensor t=None", None, True),
        ("Tensor t=None", X, False),
        ("Generator? g=None", None, True),
    ],
)
def test_equal_to_the_default(argument: str, value: Any, dropped: bool) -> None:
    args, kwargs = seen(argument, value)
    assert (args == ()) is dropped
    name = argument.split()[1].split("=")[0]
    args, kwargs = seen(f"*, {argument}", **{name: value})
    assert (kwargs == {}) is dropped
    assert args == ()


def test_a_handler_sees_objects_and_fresh_lists() -> None:
    one = schema("int[] l, ScalarType d, *, Layout? k=None")
    stack = bind(one, ([1], 6), {"k": 1})
    (sizes, dtype), kwargs = strip_defaults(one, stack)
    assert sizes == [1]
    assert sizes is not stack[0]
    assert dtype == DType.named("float32")
    assert [str(each) for each in kwargs.values()] == ["sparse_coo"]


def test_surplus_values_stay() -> None:
    assert seen("Tensor x, ...", X, 1, "s") == ((X, 1, "s"), {})


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-2, 2),
    "float": st.sampled_from([0.0, -0.0, 1.0, 2.5]),
    "bool": st.booleans(),
    "Scalar": st.sampled_from([0, 1, True, 1.0, 1j]),
    "str": st.sampled_from(["", "a"]),
    "int?": st.none() | st.integers(0, 1),
    "int[]": st.lists(st.integers(0, 1), max_size=2),
    "ScalarType": st.sampled_from([4, 6, DType.named("float32")]),
}
DEFAULTS = {
    "int": ["1", "1.5"],
    "float": ["1", "0."],
    "bool": ["True", "1"],
    "Scalar": ["1", "1.", "True"],
    "str": ['"a"', "None"],
    "int?": ["None", "1"],
    "int[]": ["[0, 1]", "[]"],
    "ScalarType": ["float", "4"],
}


@st.composite
def calls(draw: st.DrawFn) -> tuple[Schema, tuple[Any, ...], dict[str, Any]]:
    """A schema with up to six arguments, and a call that fits it."""
    kinds = draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=6))
    required = draw(st.integers(0, len(kinds)))
    positional = draw(st.integers(0, len(kinds)))
    given = draw(st.integers(min(required, positional), positional))
    texts, args, kwargs = [], [], {}
    for index, kind in enumerate(kinds):
        default = f"={draw(st.sampled_from(DEFAULTS[kind]))}"
        optional = index >= required
        star = "*, " if index == positional else ""
        texts.append(f"{star}{kind} a{index}{default if optional else ''}")
        if index < given:
            args.append(draw(VALUES[kind]))
        elif not optional or draw(st.booleans()):
            kwargs[f"a{index}"] = draw(VALUES[kind])
    return schema(", ".join(texts)), tuple(args), kwargs


@settings(max_examples=200, deadline=None)
@given(calls())
def test_filling_undoes_stripping(
    call: tuple[Schema, tuple[Any, ...], dict[str, Any]],
) -> None:
    one, args, kwargs = call
    stack = fill_defaults(one, args, kwargs)
    stripped = strip_defaults(one, stack)
    again = fill_defaults(one, *stripped)
    assert same(again, stack)
    assert same(strip_defaults(one, again), stripped)
    assert len(stack) == len(one.arguments)
