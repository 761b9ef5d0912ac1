"""opcheck itself: what it takes, what it leaves alone, and what it reports."""

import pickle
from typing import Any

import pytest

from everyorder.runtime import Generator, Tensor, custom_op, ops, tensor
from everyorder.runtime.custom.opcheck import CHECKS, DEFAULT_CHECKS, opcheck
from everyorder.runtime.errors.call import CallError
from everyorder.runtime.errors.custom import DefinitionRefused, OpCheckError
from everyorder.runtime.keys import DispatchKey, KeySet
from tests.coded import code, coded
from tests.custom.functions import double
from tests.custom.opcheck.planted import Planted

UndeclaredWrite = coded(OpCheckError, "UndeclaredWrite")

core = ops.core
ALL_WELL = dict.fromkeys(DEFAULT_CHECKS, "SUCCESS")


def written(x: Any) -> Any:
    x.numpy()[...] = 0
    return x.clone()


def test_every_check_has_its_turn() -> None:
    x = tensor([1.0, 2.0], dtype="float64", requires_grad=True)
    assert opcheck(core.mul.default, (x, x)) == ALL_WELL
    assert [*opcheck(core.mul.default, (x, x))] == [*DEFAULT_CHECKS]
    every = opcheck(core.mul.default, (x, x), test_utils=[*CHECKS])
    assert every == dict.fromkeys(CHECKS, "SUCCESS")


def test_the_check_of_numbers_runs_only_if_it_is_named() -> None:
    assert {*CHECKS} - {*DEFAULT_CHECKS} == {"test_gradients"}


def test_the_checks_that_are_asked_for() -> None:
    x = tensor([1.0])
    some = ["test_faketensor", "test_schema"]
    assert [*opcheck(core.neg.default, [x], test_utils=some)] == some
    one = opcheck(core.neg.default, [x], {}, test_utils="test_schema")
    assert one == {"test_schema": "SUCCESS"}


def test_a_finding_is_raised_or_reported(define: Planted) -> None:
    handle = define("f(Tensor x) -> Tensor", written, Meta=lambda x: x.clone())
    x = tensor([1.0], requires_grad=True)
    with pytest.raises(OpCheckError, match="wrote to argument `x`"):
        opcheck(handle, [x])
    report = opcheck(handle, [x], test_utils=[*CHECKS], raise_exception=False)
    kinds = {name: getattr(each, "code", each) for name, each in report.items()}
    assert kinds == {
        "test_schema": "UndeclaredWrite",
        "test_autograd_registration": "SUCCESS",
        "test_gradients": "AutogradMissing",
        "test_faketensor": "SUCCESS",
        "test_functionalization": "FunctionalDiffers",
    }


def test_a_finding_is_data(define: Planted) -> None:
    handle = define("f(Tensor x) -> Tensor", written)
    report = opcheck(handle, [tensor([1.0])], raise_exception=False)
    error = report["test_schema"]
    assert isinstance(error, UndeclaredWrite)
    assert error.fields() == {
        "test": "test_schema",
        "operator": "check::f",
        "call": "check::f(<Tensor>)",
        "schema": "check::f(Tensor x) -> Tensor",
        "argument": "x",
        "aspect": "elements",
        "seen": "element (0,) was 1.0 and is 0.0 (1 of 1 elements changed)",
        "right": "check::f(Tensor(a!) x) -> Tensor",
    }
    assert pickle.loads(pickle.dumps(error)).fields() == error.fields()


def test_the_callers_arguments_stay_as_they_are(define: Planted) -> None:
    def everything(x: Any, ys: Any, g: Any) -> Any:
        core.neg_(x)
        for y in ys:
            core.add_(y, 1)
        g.take(3)
        return x

    handle = define(
        "f(Tensor(a!) x, Tensor(b!)[] ys, Generator? g) -> Tensor(a!)",
        everything,
        Meta=everything,
    )
    base = tensor([[1.0, 2.0], [3.0, 4.0]])
    x, y, g = base.t()[1:], base[0], Generator(seed=3)
    report = opcheck(handle, (x, [y, y]), {"g": g}, raise_exception=False)
    assert report["test_schema"] == "SUCCESS"
    assert base.tolist() == [[1, 2], [3, 4]]
    assert (base._version, x._version) == (0, 0)
    assert (x.shape, x.strides, x.offset) == ((1, 2), (1, 2), 1)
    assert x.storage() is base.storage()
    assert g.get_state() == (3, 0)


def test_a_sample_that_was_computed_under_autograd() -> None:
    x = tensor([1.0], dtype="float64", requires_grad=True)
    y = x * 2
    assert opcheck(core.mul.default, (y, x)) == ALL_WELL
    assert x.grad is None


def test_one_overload_of_a_packet(define: Planted) -> None:
    define("f(Tensor x) -> Tensor", lambda x: x.clone(), Meta=lambda x: x.clone())
    assert opcheck(ops.check.f, [tensor([1.0])]) == ALL_WELL


def test_what_custom_op_returns() -> None:
    with custom_op("check::double", double, mutates_args=()) as made:
        made.register_fake(double)
        assert opcheck(made, [tensor([1.0])]) == ALL_WELL
        assert opcheck("check::double", [tensor([1.0])]) == ALL_WELL


def misuse(op: Any, *args: Any, **options: Any) -> str:
    with pytest.raises(DefinitionRefused, check=code("OpCheckMisuse")) as caught:
        opcheck(op, args, **options)
    return str(caught.value)


def test_no_operator() -> None:
    with pytest.raises(DefinitionRefused, check=code("NotAnOperator")) as refused:
        opcheck(len, ())  # type: ignore[arg-type]  # the fault
    assert refused.value.fields()["call"] == "opcheck(...)"


def test_several_overloads(define: Planted) -> None:
    define("f(Tensor x) -> Tensor", written)
    define.library.define("f.other(int x) -> int")
    with pytest.raises(DefinitionRefused, check=code("OverloadNeeded")) as refused:
        opcheck(ops.check.f, [1])
    assert refused.value.fields() == {
        "call": "opcheck(...)",
        "operator": "check::f",
        "overloads": ("default", "other"),
    }


def test_no_check() -> None:
    assert (
        misuse(core.neg.default, test_utils="test_shema")
        == """\
opcheck: 'test_shema' is not a check.
  fits: test_schema"""
    )
    assert (
        misuse(core.neg.default, test_utils=["all"])
        == """\
opcheck: 'all' is not a check.
  fits: test_schema, test_autograd_registration, test_gradients,
        test_faketensor, test_functionalization"""
    )


@pytest.mark.parametrize(
    ("args", "found"),
    [
        (tensor([1.0, 2.0]), "a Tensor"),
        (3, "an int"),
        ("ab", "a str"),
        ({"self": 1}, "a dict of"),
        (None, "None"),
    ],
)
def test_arguments_are_not_one_argument(args: Any, found: str) -> None:
    with pytest.raises(DefinitionRefused, check=code("OpCheckMisuse")) as caught:
        opcheck(core.neg.default, args)
    assert str(caught.value) == (
        f"opcheck: `args`, {found.removesuffix(' of')}, is not a sequence of "
        "arguments.\n"
        "  fits: a tuple or a list, as in opcheck(op, (x,))"
    )


def test_options_are_a_mapping() -> None:
    with pytest.raises(DefinitionRefused, check=code("OpCheckMisuse")) as caught:
        opcheck(core.neg.default, (tensor([1.0]),), 1)  # type: ignore[arg-type]  # the fault
    assert (
        str(caught.value)
        == """\
opcheck: `kwargs`, an int, is not a mapping of arguments.
  fits: a dict, as in opcheck(op, (x,), {"dim": 0})"""
    )


@pytest.mark.parametrize("name", ["dynamic", "static"])
def test_what_torch_calls_a_check_is_told_by_its_name_here(name: str) -> None:
    assert misuse(core.neg.default, test_utils=f"test_aot_dispatch_{name}") == (
        f"opcheck: 'test_aot_dispatch_{name}' is not a check.\n"
        "  fits: test_functionalization"
    )


def test_a_tensor_with_a_handler() -> None:
    x = tensor([1.0])
    python = x.with_keyset(KeySet([DispatchKey.CPU, DispatchKey.Python]))
    assert (
        misuse(core.neg.default, python)
        == """\
opcheck: argument `self`, a Tensor, has a handler.
  fits: a plain tensor"""
    )


def test_one_tolerance() -> None:
    assert (
        misuse(core.neg.default, tensor([1.0]), rtol=0.1)
        == """\
opcheck: one tolerance says nothing.
  fits: both rtol and atol, or neither"""
    )


def test_a_call_that_does_not_fit() -> None:
    with pytest.raises(CallError, check=code("MissingArgument")):
        opcheck(core.add.default, [tensor([1.0])])


def test_a_call_that_raises(define: Planted) -> None:
    def refuse(x: Tensor) -> Tensor:
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"):
        opcheck(define("f(Tensor x) -> Tensor", refuse), [tensor([1.0])])


def test_values_of_every_kind(define: Planted) -> None:
    schema = "f(Tensor x, Dict(str, Tensor) d, (Tensor, int) t, ...) -> Tensor"
    handle = define(
        schema,
        lambda x, d, t, *rest: x + d["a"] + t[0],
        Meta=lambda x, d, t, *rest: x + d["a"] + t[0],
    )
    x = tensor([1.0])
    report = opcheck(handle, (x, {"a": x}, (x, 2), [x], object), raise_exception=False)
    assert report == ALL_WELL
