"""Tuples, lists and dictionaries that a trace is given and gives."""

from collections import OrderedDict
from typing import Any, NamedTuple

import pytest

from everyorder import runtime
from everyorder.runtime.errors.call import CallError
from everyorder.runtime.errors.script import Untraceable
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir.program import Program, fork
from everyorder.runtime.script.tracing import trace_function
from tests.coded import code, coded
from tests.script.tracing.traced import agrees, arange, body, same, trace

UntraceableOutput = coded(Untraceable, "UntraceableOutput")


class Pair(NamedTuple):
    """Two tensors with names."""

    one: runtime.Tensor
    two: runtime.Tensor


def test_inputs_are_taken_apart() -> None:
    def f(x: Any, more: Any) -> Any:
        first, named = more
        return x + first[0] * first[1] - named["a"]

    more = ([arange(2), arange(2)], {"a": arange(2), "b": arange(2)})
    traced = trace(f, arange(2), more)
    assert str(traced.schema) == (
        "f(Tensor x, (Tensor[], Dict(str, Tensor)) more) -> Tensor"
    )
    assert (
        body(traced)
        == """\
  %2 : Tensor[], %3 : Dict(str, Tensor) = prim::TupleUnpack(%more.1)
  %4 : Tensor, %5 : Tensor = prim::ListUnpack(%2)
  %6 : str = prim::Constant[value="a"]()
  %7 : Tensor = script::getitem.Dict_str(%3, %6)
  %8 : str = prim::Constant[value="b"]()
  %9 : Tensor = script::getitem.Dict_str(%3, %8)
  %10 : Tensor = core::mul(%4, %5)
  %11 : int = prim::Constant[value=1]()
  %12 : Tensor = core::add(%x.1, %10, %11)
  %13 : Tensor = core::sub(%12, %7, %11)
  return (%13)
"""
    )
    other = ([arange(2, start=1), arange(2)], {"b": arange(2), "a": arange(2) * 5})
    agrees(traced, arange(2), other)


def test_results_are_put_together() -> None:
    def f(x: Any) -> Any:
        return {"a": [x, x * 2], "b": [x]}, (x, (x.exp(),))

    traced = trace(f, arange(2), strict=False)
    assert str(traced.schema) == (
        "f(Tensor x) -> ((Dict(str, Tensor[]), (Tensor, (Tensor))))"
    )
    agrees(traced, arange(2, start=1))


def test_a_result_may_be_an_input_or_a_constant() -> None:
    constant = arange(3)
    traced = trace(lambda x: (x, constant, x), arange(2))
    x = arange(2, start=4)
    given = call(traced, (x,))
    assert given[0] is x is given[2]
    assert given[1] is constant


def test_named_tuples_are_of_their_class() -> None:
    traced = trace(
        lambda pair: Pair(pair.two, pair.one * 2), Pair(arange(2), arange(3))
    )
    given = call(traced, (Pair(arange(1), arange(2)),))
    assert isinstance(given, Pair)
    assert same(tuple(given), (arange(2), arange(1)))


def test_ordered_dictionaries_are_dictionaries() -> None:
    given = OrderedDict(a=arange(2), b=arange(2))
    traced = trace(lambda d: d["a"] - d["b"], given)
    agrees(traced, {"a": arange(2) * 3, "b": arange(2)})


def test_keys_may_be_integers() -> None:
    traced = trace(lambda d: {3: d[7] * 2}, {7: arange(2)}, strict=False)
    agrees(traced, {7: arange(2, start=2)})


def test_arguments_have_the_names_of_parameters() -> None:
    def f(x: Any, *rest: Any, scale: int = 2, **more: Any) -> Any:
        return x * scale + rest[0] - rest[1] * more["y"]

    traced = trace_function(
        f,
        (arange(2), arange(2), arange(2)),
        example_kwarg_inputs={"y": arange(2)},
        program=Program(),
    )
    assert str(traced.schema) == (
        "f(Tensor x, Tensor rest_0, Tensor rest_1, Tensor y) -> Tensor"
    )
    x = arange(2, start=1)
    given = call(traced, (x, x, x), {"y": x * 2})
    assert same(given, f(x, x, x, y=x * 2))
    with pytest.raises(CallError, check=code("MissingArgument")):
        call(traced, (x, x, x))
    with pytest.raises(CallError, check=code("WrongArgumentType")):
        call(traced, (x, x, x, 2))


def test_one_example_may_stand_alone() -> None:
    program = Program()
    assert str(trace_function(lambda x: x, arange(2), program=program).schema) == (
        "_lambda_(Tensor x) -> Tensor"
    )
    assert str(
        trace_function(lambda d: d["a"], {"a": arange(2)}, program=program).schema
    ) == ("_lambda_(Dict(str, Tensor) d) -> Tensor")
    named = trace_function(lambda p: p.one, Pair(*arange(2)), program=program)
    assert str(named.schema) == (
        "_lambda_(NamedTuple(__torch__.tests.script.tracing.test_structures.Pair, one: "
        "Tensor, two: Tensor) p) -> Tensor"
    )
    assert list(program.functions) == [
        "__torch__.tests.script.tracing.test_structures._lambda_",
        "__torch__.tests.script.tracing.test_structures.___torch_mangle_0._lambda_",
        "__torch__.tests.script.tracing.test_structures.___torch_mangle_1._lambda_",
    ]


def test_two_places_are_two_arguments() -> None:
    x = arange(2)
    traced = trace(lambda a, b: a - b * 2, x, x)
    agrees(traced, arange(2), arange(2, start=5))


class Untyped(NamedTuple):
    """A tuple whose fields say nothing of use."""

    one: object


DEEP: Any = arange(1)
for _ in range(70):
    DEEP = (DEEP,)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (3, "`x`: an int is not a tensor"),
        (None, "`x`: None is not a tensor"),
        ((arange(2), [3]), "`x`[1][0]: an int is not a tensor"),
        ([], "`x`: an empty list does not say of what"),
        ({}, "`x`: an empty dictionary does not say of what"),
        ({"a": {}}, "`x`['a']: an empty dictionary does not say of what"),
        ({2.5: arange(1)}, "`x`: the keys of a dictionary are texts or integers"),
        (
            {"a": arange(1), 2: arange(1)},
            "`x`: the keys of a dictionary are texts or integers",
        ),
        (
            [arange(1), (arange(1),)],
            "`x`: the elements of a list are of the types Tensor and (Tensor)",
        ),
        (
            {"a": arange(1), "b": [arange(1)]},
            "`x`: the values of a dictionary are of the types Tensor and Tensor[]",
        ),
        (
            Pair(arange(1), [arange(1)]),  # type: ignore[arg-type]  # not as declared
            "`x`: `Pair` is declared with (Tensor, Tensor), and has (Tensor, Tensor[])",
        ),
        (Untyped(3), "`x`.one: an int is not a tensor"),
        (DEEP, f"`x`{'[0]' * 61}: it is nested too deeply"),
    ],
    ids=range(13),
)
def test_other_examples_are_refused(given: Any, text: str) -> None:
    with pytest.raises(Untraceable, check=code("UntraceableInput")) as raised:
        trace(lambda x: x, given)
    assert f"{raised.value.path}: {raised.value.reason}" == text


def test_the_text_of_a_refused_example() -> None:
    with pytest.raises(Untraceable, check=code("UntraceableInput")) as raised:
        trace(lambda x, n: x * n, arange(2), 2)
    assert (
        str(raised.value)
        == """\
`_lambda_` cannot be traced with `n`: an int is not a tensor.
  it takes: tensors, and tuples, lists and dictionaries of them
  to do:    bind everything else to the function before it is traced"""
    )


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (lambda x: 3, "The result: an int is not a tensor"),
        (lambda x: (x, None), "The result[1]: None is not a tensor"),
        (lambda x: fork(lambda: x), "The result: it is a future"),
    ],
    ids=range(3),
)
def test_other_results_are_refused(result: Any, text: str) -> None:
    with pytest.raises(UntraceableOutput) as raised:
        trace(result, arange(2))
    assert f"{raised.value.path}: {raised.value.reason}" == text


@pytest.mark.parametrize(
    ("result", "what"),
    [(lambda x: [x], "a list"), (lambda x: (x, {"a": x}), "a dictionary")],
    ids=["list", "dictionary"],
)
def test_strictly_no_container_that_may_grow_is_a_result(
    result: Any, what: str
) -> None:
    with pytest.raises(UntraceableOutput) as raised:
        trace(result, arange(2))
    assert raised.value.reason.startswith(f"it has {what} in it")
    agrees(trace(result, arange(2), strict=False), arange(2, start=1))


def test_the_text_of_a_refused_result() -> None:
    with pytest.raises(UntraceableOutput) as raised:
        trace(lambda x: [x], arange(2))
    assert (
        str(raised.value)
        == """\
The result of `_lambda_` cannot be traced: it has a list in it, which always has
the elements that it had while it was traced.
  to do: return a tuple, or trace with strict=False"""
    )
