"""Integers: a bool is none, for whichever operator, function or method."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime import default_dispatcher
from everyorder.runtime.errors.call import CallError
from everyorder.runtime.errors.tensor import UnfitValue, WrongOption
from everyorder.runtime.operators import core
from everyorder.runtime.schema.types import (
    IntType,
    ListType,
    SymIntType,
    unwrap_optional,
)
from tests.coded import code, coded
from tests.operators.tensors import tensor
from tests.opinfo.info import handle, on_cpu
from tests.opinfo.table import ROWS

INTEGERS = (IntType, SymIntType)


def integers_of(schema: Any) -> Iterator[tuple[int, Any, bool]]:
    """The places of the integers of a schema, and whether each is a list of them."""
    for place, argument in enumerate(schema.arguments):
        kind = unwrap_optional(argument.type)
        listed = isinstance(kind, ListType)
        if (kind.element if isinstance(kind, ListType) else kind) in INTEGERS:
            yield place, argument, listed


def cases() -> Iterator[Any]:
    """Every operator with a row, and each of its integers."""
    for row in ROWS:
        for place, argument, listed in integers_of(row.call.schema):
            yield pytest.param(
                row, place, argument.name, listed, id=f"{row.name}-{argument.name}"
            )


@pytest.mark.parametrize(("row", "place", "name", "listed"), [*cases()])
def test_a_bool_is_no_integer(row: Any, place: int, name: str, listed: bool) -> None:
    """Of Python's and of NumPy's, and in a list among integers."""
    args, kwargs = row.samples(row.dtypes[-1])[0].bound(on_cpu)
    for value in (True, False, np.bool_(True), tensor(True, "bool")):
        for given in ([1, value], (value,), value) if listed else (value,):
            ready, named = [*args], dict(kwargs)
            if place < len(args):
                ready[place] = given
            else:
                named[name] = given
            with pytest.raises(CallError, check=code("WrongArgumentType")) as caught:
                row.call(*ready, **named)
            assert caught.value.argument == name


def test_every_operator_of_ours_refuses_a_bool() -> None:
    """Also those without a row: their forms, factories and gradients."""
    names = [n for n in default_dispatcher().op_names() if n.startswith("core::")]
    handles = [handle(name.removeprefix("core::")) for name in names]
    asking = [each for each in handles if [*integers_of(each.schema)]]
    assert len(asking) > 50
    lax = [each.name for each in asking if "integers_only" not in each.tags]
    assert lax == []


CALLS = (
    *("x.sum(True)", "x.sum([True])", "x.sum((0, False))", "x.sum(dim=False)"),
    *("x.sum(axis=True)", "x.mean(True)", "x.amax(True)", "x.max(True)"),
    *("x.argmax(False)", "x.var(0, True, 1)", "x.var([True])", "x.var(True, True)"),
    *("x.std(dim=True)", "x.var(0, 1)", "x.var(unbiased=1)", "x.var(False, 1)"),
    *("x.select(True, 0)", "x.select(0, False)", "x.transpose(True, 0)"),
    *("x.view(True, 4)", "x.view([True, 4])", "x.flatten(False)", "x.unsqueeze(True)"),
    *("x.chunk(True)", "x.narrow(0, True, 1)", "x.narrow(0, 0, True)"),
    *("x.split(True)", "x.split([True, 1])", "x.unbind(True)", "x.topk(True)"),
    *("x.sort(True)", "x.softmax(True)", "x.diagonal(True)", "x.new_zeros(True)"),
    *("R.zeros(True)", "R.zeros([True])", "R.eye(True)", "R.cat([x, x], True)"),
    *("R.randint(True, (2,))", "R.linspace(0, 1, True)", "R.full([True], 1)"),
    *("R.stack([x, x], True)", "x.size(True)", "x.stride(False)", "x.squeeze(True)"),
    *("x.cumsum(True)", "R.randperm(True)", "x.scatter(True, x.long(), 1.0)"),
)
REFUSED = (
    CallError,
    coded(WrongOption, "WrongOption"),
    coded(UnfitValue, "WrongValue"),
)


@pytest.mark.parametrize("call", CALLS)
def test_functions_and_methods_refuse_a_bool(call: str) -> None:
    x = tensor([[1.0, 2.0], [3.0, 5.0]])
    with pytest.raises(REFUSED):
        eval(call, {"R": runtime, "x": x})  # the calls are those above


FRACTIONS = (
    *("x.select(0, F)", "x.select(0, F[None])", "x.chunk(F)"),
    *("R.zeros(F)", "x.reshape(4, F)", "x.reshape([4, F])", "x.topk(F)"),
    *("x.narrow(0, F, 1)", "x.narrow(0, 0, F)", "x.sum(F)", "x.roll(F, 0)"),
    *("x.expand(F, 2)", "R.eye(F)", "x.narrow(0, F.long()[None], 1)"),
    *("x.narrow(0, F > 0, 1)", "x.transpose(F, 0)", "R.cat([x, x], F)"),
)


@pytest.mark.parametrize("call", FRACTIONS)
def test_a_tensor_of_fractions_is_not_an_integer(call: str) -> None:
    x = tensor([[1.0, 2.0], [3.0, 5.0]])
    with pytest.raises(REFUSED):
        eval(
            call, {"R": runtime, "x": x, "F": tensor(1.0)}
        )  # the calls are those above


@pytest.mark.torch
@pytest.mark.parametrize("call", FRACTIONS)
def test_torch_refuses_fractions_too(call: str) -> None:
    torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    with pytest.raises((TypeError, RuntimeError)):
        eval(call, {"R": torch, "x": x, "F": torch.tensor(1.0)})  # as above


def test_a_tensor_of_an_integer_is_one() -> None:
    x: Any = tensor([[1.0, 2.0], [3.0, 5.0]])
    assert x.select(0, runtime.tensor(1)).tolist() == [3.0, 5.0]
    for start in (
        runtime.tensor(1),
        runtime.tensor(-1),
        runtime.tensor(1, dtype="uint8"),
    ):
        assert x.narrow(0, start, 1).tolist() == [[3.0, 5.0]]


def test_an_error_names_the_argument_and_what_it_takes() -> None:
    x: Any = tensor([1.0])
    with pytest.raises(WrongOption) as caught:
        x.chunk(runtime.tensor([1, 2]))
    assert str(caught.value) == (
        "`chunk` does not take tensor([1, 2]) for `chunks`.\n  fits: an integer"
    )


@pytest.mark.torch
@pytest.mark.parametrize("call", CALLS)
def test_torch_refuses_them_too(call: str) -> None:
    torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    with pytest.raises((TypeError, RuntimeError)):
        eval(call, {"R": torch, "x": x})  # the calls are those above


def test_other_operators_take_a_bool_for_an_integer() -> None:
    """As upstream's do, called by name."""
    with runtime.Library("bools", "DEF") as library:
        library.define("twice(int x) -> int", kernel=lambda x: 2 * x)
        library.define(
            "strictly(int x) -> int", kernel=lambda x: 2 * x, tags=("integers_only",)
        )
        assert runtime.ops.bools.twice(True) == 2
        assert runtime.ops.bools.strictly(3) == 6
        with pytest.raises(CallError):
            runtime.ops.bools.strictly(True)


def test_a_bool_where_a_bool_is_asked_for() -> None:
    x = tensor([[1.0, 2.0]])
    assert core.sum(x, [1], True).shape == (1, 1)
    assert x[True].shape == (1, 1, 2)
