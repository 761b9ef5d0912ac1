"""Defaults taken out and put back: each rule by name, and the laws of both.

True only here: the rules of spec 7.4 as upstream 2.13 showed them when it was run.
"""

from typing import Any

import pytest
from hypothesis import given, settings

from everyorder.runtime.errors.call import CallError
from everyorder.runtime.schema.binding import bind
from everyorder.runtime.schema.defaults import (
    presented_stripper,
    spread,
    stripper,
    stripping,
)
from everyorder.runtime.schema.enums import Device, DType, Layout
from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import Argument
from everyorder.runtime.schema.types import (
    DictType,
    FloatType,
    IntType,
    StrType,
    TupleType,
)
from everyorder.runtime.schema.values import same
from tests.coded import coded
from tests.schema.example_calls import Call, X, calls

DuplicateArgument = coded(CallError, "DuplicateArgument")
MissingArgument = coded(CallError, "MissingArgument")
TooManyArguments = coded(CallError, "TooManyArguments")
UnknownArgument = coded(CallError, "UnknownArgument")
WrongArgumentType = coded(CallError, "WrongArgumentType")


def schema(text: str) -> Schema:
    return parse_schema(f"t::f({text}) -> ()")


def seen(text: str, *args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], Any]:
    """What a handler gets of this call."""
    one = schema(text)
    stripped = one.strip_defaults(args, kwargs)
    # Kernels that see values and kernels that get the stack are shown the same.
    positional, named = one.fill_defaults(args, kwargs)
    start = one.kwarg_only_start
    seen = (*positional[:start], *named.values(), *positional[start:])
    assert alike(presented_stripper(one)(*seen), stripped)
    # And so is a function that is called with them.
    assert alike(stripping(one, called)(*seen), stripped)
    return stripped


def called(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, kwargs


def test_a_function_is_called_as_it_is_where_nothing_is_taken_out() -> None:
    assert stripping(schema("Tensor x, int n"), called) is called
    for text in ("Tensor x=None", "*, Tensor x", "Tensor[] x", "Tensor x, ..."):
        assert stripping(schema(text), called) is not called
    given = [X]
    ((kept,), _) = stripping(schema("Tensor[] x"), called)(given)
    assert kept == given
    assert kept is not given


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


def dropped(argument: str, value: Any) -> bool:
    """Whether a value is its default: by position, and as a keyword-only argument."""
    args, kwargs = seen(argument, value)
    assert (len(args), kwargs) in ((0, {}), (1, {}))
    name = schema(argument).arguments[0].name
    alone, named = seen(f"*, {argument}", **{name: value})
    assert alone == ()
    assert (named == {}) is (args == ())
    return args == ()


def test_7_4_none_equals_only_none() -> None:
    assert dropped("int? i=None", None)
    assert not dropped("int? i=None", 0)
    assert not dropped("int? i=0", None)
    assert not dropped("bool? b=None", False)
    assert not dropped("str? s=None", "None")
    assert not dropped("str? s=None", "")
    assert not dropped("int[]? l=None", [])


@pytest.mark.spec("dispatch 7.4", "4: when a value is its default")
@pytest.mark.parametrize("default", [True, 1, 1.0, 1 + 0j])
@pytest.mark.parametrize("value", [True, 1, 1.0, 1 + 0j])
def test_7_4_a_scalar_knows_the_kinds_of_numbers(default: Any, value: Any) -> None:
    texts = {bool: "True", int: "1", float: "1.", complex: "1.+0.j"}
    argument = f"Scalar s={texts[type(default)]}"
    assert dropped(argument, value) is (type(value) is type(default))


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("float f=1.", 1),
        ("float f=1.", True),
        ("bool b=False", 0),
        ("bool b=True", 1),
        ("int i=0", False),
        ("int i=6", DType.named("float32")),
        ("complex c=1.", 1),
        ("float? f=1.", 1),
        ("float[] l=[1.]", [1]),
        ("bool[] l=[True]", [1]),
    ],
)
def test_7_4_typed_arguments_are_converted_first(argument: str, value: Any) -> None:
    assert dropped(argument, value)


def test_7_4_zero_has_no_sign() -> None:
    assert dropped("float f=0.", -0.0)
    assert dropped("Scalar s=0.", -0.0)
    assert dropped("float[] l=[0.]", [-0.0])
    assert not dropped("Scalar s=0", -0.0)


def test_7_4_not_a_number_is_never_the_default() -> None:
    nan = float("nan")
    assert not dropped("float f=0.", nan)
    one = schema("").clone_with_arguments(
        (Argument("f", FloatType, default=nan), Argument("g", FloatType, default=nan))
    )
    (first, second), named = one.strip_defaults((nan,), {})
    assert (first is nan, second is nan, named) == (True, True, {})
    assert presented_stripper(one)(nan, nan)[0] == (nan, nan)
    assert presented_stripper(one)(1.0, 2.0) == ((1.0, 2.0), {})


def test_7_4_texts() -> None:
    assert dropped("str s='a'", "a")
    assert not dropped("str s='a'", "A")


def test_7_4_devices_by_type_and_index() -> None:
    assert dropped("Device d='cpu'", "cpu")
    assert dropped("Device d='cpu'", Device("cpu"))
    assert dropped("Device d='cuda:1'", Device("cuda", 1))
    assert not dropped("Device d='cpu'", "cuda:1")
    assert not dropped("Device d='cuda:1'", "cuda:0")
    assert not dropped("Device d='cuda:1'", "cuda")
    assert not dropped("Device? d='cpu'", None)


def test_7_4_codes_by_number() -> None:
    assert dropped("ScalarType d=float", DType.named("float32"))
    assert dropped("ScalarType d=float", 6)
    assert not dropped("ScalarType d=float", DType.named("int64"))
    assert dropped("Layout l=strided", Layout.named("strided"))
    assert not dropped("Layout? l=None", Layout.named("strided"))
    assert dropped("MemoryFormat m=contiguous_format", 0)
    assert dropped("ScalarType[] l=[float]", [DType.named("float32")])
    assert not dropped("ScalarType[] l=[float]", [DType.named("int64")])


def test_7_4_one_number_for_a_sized_list_is_expanded_first() -> None:
    assert dropped("int[2] l=1", 1)
    assert dropped("int[2] l=1", [1, 1])
    assert dropped("int[2] l=1", (1, 1))
    assert dropped("int[2] l=[1, 1]", 1)
    assert not dropped("int[2] l=1", [1])


def test_7_4_lists_by_element_and_length() -> None:
    assert dropped("int[] l=[0, 1]", (0, 1))
    assert not dropped("int[] l=[0, 1]", [0, 1, 1])
    assert not dropped("int[] l=[0, 1]", [1, 0])
    assert dropped("int[] l=[]", [])
    assert not dropped("int[] l=[]", [0])


def test_7_4_dicts_and_tuples_by_element() -> None:
    pair, table = TupleType((IntType, StrType)), DictType(StrType, IntType)
    one = schema("").clone_with_arguments(
        (
            Argument("p", pair, default=(1, "a")),
            Argument("t", table, default={"k": 1}, kwarg_only=True),
        )
    )
    strip = presented_stripper(one)
    for (first, second), left in (
        (((1, "a"), {"k": 1}), ((), {})),
        (([1, "a"], {"k": True}), ((), {})),
        (((1, "b"), {"k": 1}), (((1, "b"),), {})),
        (((1, "a"), {"k": 2}), ((), {"t": {"k": 2}})),
        (((1, "a"), {}), ((), {"t": {}})),
        (((1, "a"), {"j": 1}), ((), {"t": {"j": 1}})),
    ):
        stripped = one.strip_defaults((first,), {"t": second})
        assert same(stripped, left)
        positional, named = one.fill_defaults(*stripped)
        assert same(strip(*positional, *named.values()), left)


def test_7_4_objects_and_tensors_by_identity() -> None:
    assert dropped("Tensor t=None", None)
    assert not dropped("Tensor t=None", X)
    assert dropped("Generator? g=None", None)
    assert not dropped("Generator? g=None", object())


@pytest.mark.spec("dispatch 7.4", "1: positional arguments from the end")
def test_7_4_a_default_in_the_middle_stays() -> None:
    assert seen("Tensor x, int a=1, int b=2", X, 1, 5) == ((X, 1, 5), {})
    assert seen("Tensor x, int a=1, int b=2", X, 5, 2) == ((X, 5), {})


def test_7_4_nothing_is_left_of_nothing() -> None:
    assert seen("") == ((), {})
    assert seen("int a=1, *, int b=2") == ((), {})


def test_7_4_what_has_no_default_stays() -> None:
    assert seen("int a, int b=1, *, int c, int d=2", 1, c=2) == ((1,), {"c": 2})


def test_a_handler_sees_objects_and_fresh_lists() -> None:
    one = schema("int[] l, ScalarType d, *, Layout? k=None")
    stack = bind(one, ([1], 6), {"k": 1})
    (sizes, dtype), kwargs = stripper(one)(stack)
    assert sizes == [1]
    assert sizes is not stack[0]
    assert dtype == DType.named("float32")
    assert [str(each) for each in kwargs.values()] == ["sparse_coo"]


def test_a_handler_may_keep_the_lists() -> None:
    one = schema("int[] l, int[]? m=None, *, ScalarType[] n")
    given: list[Any] = [[1], [2], [DType.named("int64")]]
    args, kwargs = presented_stripper(one)(*given)
    assert ([*args], kwargs) == (given[:2], {"n": given[2]})
    lists = [*args, kwargs["n"]]
    assert not [one for one, two in zip(lists, given, strict=True) if one is two]
    assert presented_stripper(one)([1], None, [])[0] == ([1],)


def test_surplus_values_stay() -> None:
    assert seen("Tensor x, ...", X, 1, "s") == ((X, 1, "s"), {})
    assert seen("Tensor x, ...", X) == ((X,), {})
    # No text says so, but a schema can be made that has both.
    one = parse_schema("t::f(int a, ...) -> ()")
    one = one.clone_with_arguments((Argument("a", IntType, default=1),))
    assert presented_stripper(one)(1) == ((), {}) == one.strip_defaults((1,), {})
    assert presented_stripper(one)(1, 2) == ((1, 2), {})
    assert one.strip_defaults((1, 2), {}) == ((1, 2), {})


def test_names_that_python_keeps_for_itself() -> None:
    one = schema("int from=1, *, int lambda=2")
    assert presented_stripper(one)(1, 3) == ((), {"lambda": 3})


def test_equal_texts_are_compiled_once() -> None:
    one = presented_stripper(schema("int a=1"))
    other = presented_stripper(schema("int b=2"))
    assert one.__code__ is other.__code__
    assert (one(1), other(1)) == (((), {}), ((1,), {}))


CALLS = settings(max_examples=300)


@pytest.mark.spec("dispatch 7.5", "bind, fill, strip, normalize")
@CALLS
@given(calls())
def test_stripping_undoes_filling(call: Call) -> None:
    one, args, kwargs = call
    stripped = one.strip_defaults(args, kwargs)
    assert alike(one.strip_defaults(*one.fill_defaults(args, kwargs)), stripped)
    assert alike(one.strip_defaults(*stripped), stripped)


@pytest.mark.spec("dispatch 0.2", "the API that fills defaults in")
@pytest.mark.spec("dispatch 7.5", "bind, fill, strip, normalize")
@CALLS
@given(calls())
def test_filling_undoes_stripping(call: Call) -> None:
    one, args, kwargs = call
    filled = one.fill_defaults(args, kwargs)
    assert alike(one.fill_defaults(*one.strip_defaults(args, kwargs)), filled)
    assert alike(one.fill_defaults(*filled), filled)


@pytest.mark.spec("dispatch 7.5", "upstream's helpers have holes")
@CALLS
@given(calls())
def test_filling_gives_every_argument(call: Call) -> None:
    one, args, kwargs = call
    positional, named = one.fill_defaults(args, kwargs)
    start = one.kwarg_only_start
    assert len(positional) == start
    assert list(named) == [argument.name for argument in one.arguments[start:]]
    assert alike(one.bind(args, kwargs), ([*positional], named))
    assert alike(spread(one, bind(one, args, kwargs)), (positional, named))


@CALLS
@given(calls())
def test_nothing_that_was_stripped_differs_from_its_default(call: Call) -> None:
    """What stripping means, said once more: nothing more, and nothing less."""
    one, args, kwargs = call
    positional, named = one.fill_defaults(args, kwargs)
    left, kept = one.strip_defaults(args, kwargs)
    given = dict(zip((a.name for a in one.arguments), positional, strict=False)) | named
    missing = one.arguments[len(left) : one.kwarg_only_start]
    assert all(at_default(a, given[a.name]) for a in missing)
    assert not left or not at_default(one.arguments[len(left) - 1], left[-1])
    for argument in one.arguments[one.kwarg_only_start :]:
        assert (argument.name in kept) is not at_default(argument, given[argument.name])


@pytest.mark.spec("dispatch 7.4", "6: kernels and modes get the same")
@CALLS
@given(calls())
def test_kernels_that_see_values_are_shown_the_same(call: Call) -> None:
    one, args, kwargs = call
    positional, named = one.fill_defaults(args, kwargs)
    stripped = presented_stripper(one)(*positional, *named.values())
    assert alike(stripped, one.strip_defaults(args, kwargs))
    assert alike(stripped, stripper(one)(bind(one, args, kwargs)))


def alike(left: Any, right: Any) -> bool:
    """`same`, but NaN is NaN, and the order of what is named counts.

    The sign of a zero is lost where the other zero is the default.
    """
    if isinstance(left, float | complex) and type(left) is type(right):
        return left == right or (left != left and right != right)
    if isinstance(left, list | tuple) and type(left) is type(right):
        return len(left) == len(right) and all(map(alike, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(alike(left[k], right[k]) for k in left)
    return same(left, right)


def at_default(argument: Argument, shown: Any) -> bool:
    """Whether what a kernel sees is the default: an independent second opinion."""
    if not argument.has_default:
        return False
    default = argument.default

    def plain(value: Any) -> Any:
        if isinstance(value, DType | Layout):
            return (int, value.code)
        if isinstance(value, list | tuple):
            return tuple(map(plain, value))
        if value != value:
            return object()
        return (type(value), value + 0.0 if isinstance(value, float) else value)

    if argument.type == FloatType and default is not None:
        default = float(default)
    return bool(plain(shown) == plain(default))


def test_calls_that_do_not_fit() -> None:
    """Upstream fills what is missing with None, and loses what is too much."""
    one = schema("int a, int b=1, *, int c=2")
    for args, kwargs, error in (
        ((), {}, MissingArgument),
        ((1, 2, 3), {}, TooManyArguments),
        ((1,), {"a": 1}, DuplicateArgument),
        ((1,), {"d": 1}, UnknownArgument),
        (("x",), {}, WrongArgumentType),
    ):
        for ask in (one.bind, one.fill_defaults, one.strip_defaults):
            with pytest.raises(error):
                ask(args, kwargs)
    assert one.fill_defaults((), {"b": 5, "a": 4}) == ((4, 5), {"c": 2})
