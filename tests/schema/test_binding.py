"""Binding: which calls and returns fit, what they become, what is wrong with others."""

from collections.abc import Mapping
from typing import Any

import pytest

from everyorder.runtime.errors.call import CallError, KernelError
from everyorder.runtime.schema.binding import bind, binder, returner, stored_default
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.values import same
from tests.coded import code, coded

DuplicateArgument = coded(CallError, "DuplicateArgument")
MissingArgument = coded(CallError, "MissingArgument")
TooManyArguments = coded(CallError, "TooManyArguments")
UnknownArgument = coded(CallError, "UnknownArgument")
WrongArgumentType = coded(CallError, "WrongArgumentType")


class Duck:
    """A tensor in the eyes of binding."""

    key_bits = 0

    def __repr__(self) -> str:
        return "Duck()"


X, Y = Duck(), Duck()


def schema(text: str) -> Schema:
    return parse_schema(f"t::f({text}) -> ()")


@pytest.mark.parametrize(
    ("text", "args", "kwargs", "bound"),
    [
        ("", (), {}, []),
        ("Tensor x, Tensor y", (X, Y), {}, [X, Y]),
        ("Tensor x, Tensor y", (X, None), {}, [X, None]),
        ("Tensor x, Tensor y", (X,), {"y": Y}, [X, Y]),
        ("Tensor x, Tensor y", (), {"y": Y, "x": X}, [X, Y]),
        ("Tensor x, *, int k=0", (X,), {}, [X, 0]),
        ("Tensor x, *, int k=0", (X,), {"k": True}, [X, 1]),
        ("Tensor x, *, int k", (X,), {"k": 2}, [X, 2]),
        ("int a=1, float b=1", (), {"b": 2}, [1, 2.0]),
        ("int a=1, float b=1", (5,), {}, [5, 1.0]),
        ("int[2] a=3", (), {}, [[3, 3]]),
        ("int[2] a=3", (4,), {}, [[4, 4]]),
        ("Tensor x, *, int[] l=[1, 2]", (X,), {}, [X, [1, 2]]),
        ("Tensor x, *, int[] l=[1, 2]", (X,), {"l": (3,)}, [X, [3]]),
        ("ScalarType d", (DType(6),), {}, [6]),
        ("Device d='cuda:1'", (), {}, [Device("cuda", 1)]),
        ("Device d", ("cuda:1",), {}, [Device("cuda", 1)]),
        # A default that its type does not take stands as it is, and can be given.
        ("int a=1.5, int b=1", (), {}, [1.5, 1]),
        ("int a=1.5, int b=1", (1.5, 2), {}, [1.5, 2]),
        ("int a=1.5, int b=1", (1.5,), {}, [1.5, 1]),
        ("str s=None", (None,), {}, [None]),
        ("bool b=1", (), {}, [True]),
        ("Tensor x, ...", (X,), {}, [X]),
        ("Tensor x, ...", (X, 1, "s"), {}, [X, 1, "s"]),
        ("Tensor x, *, int k, ...", (X, 1), {"k": 2}, [X, 2, 1]),
    ],
)
def test_a_call_that_fits(
    text: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], bound: list[Any]
) -> None:
    found = bind(schema(text), args, kwargs)
    assert found == bound
    assert [type(each) for each in found] == [type(each) for each in bound]


@pytest.mark.parametrize(
    ("text", "args", "kwargs", "kind", "fields"),
    [
        (
            "Tensor x, int a, *, int k",
            (X,),
            {},
            MissingArgument,
            {"call": "t::f(<Duck>)", "missing": ("a", "k")},
        ),
        (
            "Tensor x, *, int k=0",
            (X, 1),
            {},
            TooManyArguments,
            {
                "call": "t::f(<Duck>, 1)",
                "maximum": 1,
                "given": 2,
                "keyword_only": ("k",),
            },
        ),
        (
            "Tensor x, int alpha=1",
            (X,),
            {"alhpa": 2},
            UnknownArgument,
            {"call": "t::f(<Duck>, alhpa=2)", "argument": "alhpa", "near": ("alpha",)},
        ),
        (
            "Tensor x, int alpha=1",
            (X, 1),
            {"alpha": 2},
            DuplicateArgument,
            {"call": "t::f(<Duck>, 1, alpha=2)", "argument": "alpha", "position": 1},
        ),
        (
            "Tensor x, int[2]? a=1",
            (X, [1.5]),
            {},
            WrongArgumentType,
            {
                "call": "t::f(<Duck>, [1.5])",
                "argument": "a",
                "position": 1,
                "expected": "int[2]?",
                "found": "a list of float",
                "value": "[1.5]",
            },
        ),
        (
            "Tensor x, *, SymInt k=0",
            (X,),
            {"k": "one"},
            WrongArgumentType,
            {
                "call": "t::f(<Duck>, k='one')",
                "argument": "k",
                "position": 1,
                "expected": "SymInt",
                "found": "a str",
                "value": "'one'",
            },
        ),
        (
            "Tensor x, Tensor y",
            (X, 1),
            {},
            WrongArgumentType,
            {
                "call": "t::f(<Duck>, 1)",
                "argument": "y",
                "position": 1,
                "expected": "Tensor",
                "found": "an int",
                "value": "1",
            },
        ),
        # A value that its type does not take is no better for a wrong default.
        (
            "int a=1.5",
            (2.5,),
            {},
            WrongArgumentType,
            {
                "call": "t::f(2.5)",
                "argument": "a",
                "position": 0,
                "expected": "int",
                "found": "a float",
                "value": "2.5",
            },
        ),
        (
            "Tensor x, ...",
            (),
            {},
            MissingArgument,
            {"call": "t::f()", "missing": ("x",)},
        ),
    ],
)
def test_a_call_that_does_not_fit(
    text: str,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    kind: type[CallError],
    fields: Mapping[str, Any],
) -> None:
    with pytest.raises(kind) as caught:
        bind(schema(text), args, kwargs)
    assert isinstance(caught.value, TypeError)
    assert caught.value.fields() == {
        "operator": "t::f",
        "schema": str(schema(text)),
        **fields,
    }


@pytest.mark.parametrize(
    ("args", "kwargs", "kind"),
    [
        (("no", 1, 2), {"b": 1, "a": 1}, TooManyArguments),
        (("no",), {"c": 1, "x": 1}, UnknownArgument),
        (("no",), {"x": 1}, DuplicateArgument),
        (("no",), {}, MissingArgument),
        (("no", 1), {}, WrongArgumentType),
    ],
)
def test_names_are_checked_before_values(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], kind: type[CallError]
) -> None:
    with pytest.raises(kind):
        bind(schema("Tensor x, int a"), args, kwargs)


def test_a_whole_error_reads() -> None:
    with pytest.raises(WrongArgumentType) as caught:
        bind(schema("Tensor x, int[2] a"), (X,), {"a": "ab"})
    assert (
        str(caught.value)
        == """\
Argument 2 of `t::f`, `a`, takes `int[2]`, but was given a str.
  call:   t::f(<Duck>, a='ab')
  schema: t::f(Tensor x, int[2] a) -> ()
  value:  'ab'"""
    )


def test_the_error_names_the_overload() -> None:
    with pytest.raises(MissingArgument) as caught:
        bind(parse_schema("t::f.out(Tensor x) -> ()"), (), {})
    assert caught.value.operator == "t::f.out"
    assert caught.value.call == "t::f.out()"


def test_list_defaults_come_fresh() -> None:
    bound = binder(schema("Tensor x, int[] l=[1, 2]"))
    first, second = bound((X,), {}), bound((X,), {})
    assert first == second == [X, [1, 2]]
    assert first[1] is not second[1]
    first[1].append(3)
    assert bound((X,), {}) == [X, [1, 2]]


def test_given_lists_are_copied() -> None:
    given = [1, 2]
    (found,) = bind(schema("int[] l"), (given,), {})
    assert found == given
    assert found is not given


def test_equal_schemas_keep_their_own_conversions() -> None:
    code, number = schema("ScalarType x"), schema("int x")
    assert code == number
    assert bind(number, (99,), {}) == [99]
    with pytest.raises(WrongArgumentType):
        bind(code, (99,), {})


def test_binding_changes_neither_call_nor_defaults() -> None:
    args, kwargs = (X, [1]), {"k": 1}
    bind(schema("Tensor x, int[] l, *, int k=0"), args, kwargs)
    assert args == (X, [1])
    assert kwargs == {"k": 1}


def test_only_key_bits_make_a_tensor() -> None:
    class Plain:
        pass

    with pytest.raises(WrongArgumentType):
        bind(schema("Tensor x"), (Plain(),), {})


def test_a_stored_default_is_converted_where_its_type_takes_it() -> None:
    arguments = schema("float a=1, bool b=1, int c=1.5, int[2] d=1").arguments
    found = [stored_default(argument) for argument in arguments]
    assert found == [1.0, True, 1.5, [1, 1]]
    assert [type(each) for each in found] == [float, bool, float, list]


class Single:
    """A tensor of one element."""

    key_bits = 0

    def item(self) -> float:
        return 2.5


T = Single()


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
    assert caught.value.found == "a Single"


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
