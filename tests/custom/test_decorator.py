# What is done with tensors gives Any.
# mypy: disable-error-code=no-any-return
"""`custom_op`: what it makes, and what it refuses (spec 3.13.3)."""

import gc
from collections.abc import Callable
from typing import Any

import pytest

from everyorder.runtime import Dispatcher, Library, Tensor, ops, tensor
from everyorder.runtime.custom.definition import live
from everyorder.runtime.dispatch.dispatcher import default_dispatcher
from everyorder.runtime.errors.call import OperatorGone
from everyorder.runtime.errors.custom import DefinitionRefused
from everyorder.runtime.errors.registration import (
    Conflict,
    LibraryMisuse,
    UnknownDevice,
)
from everyorder.runtime.errors.schema import SchemaError, SchemaSyntaxError
from everyorder.runtime.library import CustomOpDef, custom_op
from tests.coded import code, coded
from tests.custom.functions import add_one, double, repeatedly, scale

BadMutatesArgs = coded(DefinitionRefused, "BadMutatesArgs")
LibraryRefused = coded(LibraryMisuse, "LibraryRefused")
NoDeviceArgument = coded(DefinitionRefused, "NoDeviceArgument")
UnfitKernel = coded(DefinitionRefused, "UnfitKernel")
UnknownTag = coded(SchemaError, "UnknownTag")


def test_a_function_becomes_an_operator() -> None:
    with custom_op("mine::scale", scale, mutates_args=()) as made:
        assert isinstance(made, CustomOpDef)
        assert str(made.schema) == "mine::scale(Tensor x, float factor=2.) -> Tensor"
        assert made.handle is ops.mine.scale.default
        assert made._opoverload is made.handle
        assert made.handle.tags == ("pt2_compliant_tag",)
        x = tensor([1.0, 2.0])
        for result in repeatedly(lambda: made(x)):
            assert result.tolist() == [2.0, 4.0]
        for result in repeatedly(lambda: ops.mine.scale(x, factor=3)):
            assert result.tolist() == [3.0, 6.0]


def test_an_argument_called_self() -> None:
    schema = "(Tensor self) -> Tensor"
    made: Any
    with custom_op("mine::f", lambda s: s * 2, mutates_args=(), schema=schema) as made:
        assert made(self=tensor([1.0])).tolist() == [2.0]


def test_as_a_decorator() -> None:
    @custom_op("mine::scale", mutates_args=(), tags="pointwise")
    def doubled(x: Tensor) -> Tensor:
        """Twice as much."""
        return x * 2

    with doubled:
        assert (doubled.__name__, doubled.__doc__) == ("doubled", "Twice as much.")
        assert repr(doubled) == "<CustomOpDef mine::scale>"
        assert doubled.handle.tags == ("pointwise", "pt2_compliant_tag")


def test_it_is_registered_where_it_was_made() -> None:
    with custom_op("mine::scale", scale, mutates_args=()) as made:
        state = made.handle.dump_state()
    lines = [line for line in state.splitlines() if "registered at " in line]
    assert len(lines) == 3
    assert all("test_decorator.py:" in line for line in lines)


def test_an_overload() -> None:
    with (
        custom_op("mine::scale", double, mutates_args=()) as plain,
        custom_op("mine::scale.by", scale, mutates_args=()) as other,
    ):
        x = tensor([1.0])
        assert plain(x).tolist() == [2.0]
        assert other(x, 5).tolist() == [5.0]
        assert ops.mine.scale(x, factor=7.0).tolist() == [7.0]


def test_a_written_schema() -> None:
    schema = "(Tensor x, int n=3) -> (Tensor, Tensor)"
    made: Any = custom_op(
        "mine::f", lambda x, n: (x * n, x + n), mutates_args=(), schema=schema
    )
    with made:
        assert str(made.schema) == f"mine::f{schema}"
        first, second = made(tensor([1.0]))
        assert (first.tolist(), second.tolist()) == ([3.0], [4.0])


def test_a_written_schema_that_says_what_is_mutated() -> None:
    made = custom_op(
        "mine::f",
        add_one,
        mutates_args="unknown",
        schema="(Tensor(a!) x) -> ()",
    )
    with made:
        x = tensor([1.0])
        made(x)
        assert x.tolist() == [2.0]


def test_making_it_anew_ends_the_old_one() -> None:
    old = custom_op("mine::f", double, mutates_args=())
    with custom_op("mine::f", scale, mutates_args=()) as new:
        assert (old.closed, new.closed) == (True, False)
        with pytest.raises(OperatorGone, check=code("OperatorGone")):
            old(tensor([1.0]))
        assert live(default_dispatcher(), "mine::f") is new
        old.close()
        assert new(tensor([1.0]), 3.0).tolist() == [3.0]
    assert live(default_dispatcher(), "mine::f") is None


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"mutates_args": "x"}, BadMutatesArgs),
        ({"tags": "oout"}, UnknownTag),
        ({"device_types": "gpu"}, UnknownDevice),
        ({"schema": "(Tensor x, int n, int m) -> Tensor"}, UnfitKernel),
        ({"schema": "(int x, int n) -> int", "device_types": "cpu"}, NoDeviceArgument),
    ],
)
def test_what_is_refused_leaves_the_old_one(
    change: dict[str, Any], error: type[Exception]
) -> None:
    with custom_op("mine::f", double, mutates_args=()) as old:
        with pytest.raises(error):
            custom_op("mine::f", scale, **{"mutates_args": (), **change})
        assert not old.closed
        assert old(tensor([1.0])).tolist() == [2.0]


def test_it_stays_though_nobody_keeps_it() -> None:
    custom_op("mine::f", double, mutates_args=())
    gc.collect()
    assert ops.mine.f(tensor([1.0])).tolist() == [2.0]
    kept = live(default_dispatcher(), "mine::f")
    assert kept is not None
    kept.close()


def test_on_another_dispatcher_its_owner_keeps_it() -> None:
    dispatcher = Dispatcher()
    made = custom_op("mine::f", double, mutates_args=(), dispatcher=dispatcher)
    handle = made.handle
    assert handle(tensor([1.0])).tolist() == [2.0]
    assert live(dispatcher, "mine::f") is made
    assert live(default_dispatcher(), "mine::f") is None
    del made
    gc.collect()
    dispatcher.drain()
    assert dispatcher.op_names() == ()
    with pytest.raises(OperatorGone, check=code("OperatorGone")):
        handle(tensor([1.0]))


def test_on_another_dispatcher_the_name_is_free_again_when_it_is_lost() -> None:
    dispatcher = Dispatcher()
    made = custom_op("mine::f", double, mutates_args=(), dispatcher=dispatcher)
    del made
    gc.collect()
    again = custom_op("mine::f", scale, mutates_args=(), dispatcher=dispatcher)
    assert again(tensor([1.0])).tolist() == [2.0]


def test_an_operator_of_a_library_is_not_ended() -> None:
    with Library("mine", "FRAGMENT") as library:
        library.define("f(Tensor x) -> Tensor")
        with pytest.raises(Conflict, check=code("DuplicateDefinition")):
            custom_op("mine::f", double, mutates_args=())
        assert live(default_dispatcher(), "mine::f") is None
        assert not ops.mine.f.default.has_kernel("CompositeExplicitAutograd")


@pytest.mark.parametrize(
    ("name", "found", "near"),
    [
        ("f", "'f'", "f"),
        ("", "''", "name"),
        ("f.b", "'f.b'", "name"),
        (3, "an int", "name"),
    ],
)
def test_a_name_without_namespace(name: Any, found: str, near: str) -> None:
    with pytest.raises(DefinitionRefused, check=code("NotQualified")) as refused:
        custom_op(name, double, mutates_args=())
    assert str(refused.value) == (
        f"A custom operator is named `namespace::name`; found {found}.\n"
        f"  write: 'mylib::{near}'"
    )


@pytest.mark.parametrize(
    ("name", "error"),
    [("a::b::c", SchemaSyntaxError), ("_::f", LibraryRefused)],
)
def test_other_names_that_are_none(name: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        custom_op(name, double, mutates_args=())


def test_a_schema_with_a_name() -> None:
    with pytest.raises(DefinitionRefused, check=code("MalformedSignature")) as refused:
        custom_op(
            "mine::f", double, mutates_args=(), schema="mine::f(Tensor x) -> Tensor"
        )
    assert str(refused.value) == (
        "The schema of `mine::f` is not of the form `(arguments) -> results`, "
        "without a\nname.\n"
        "  found: 'mine::f(Tensor x) -> Tensor'\n"
        "  write: '(Tensor x, int n=1) -> Tensor'"
    )


@pytest.mark.parametrize(
    "schema", ["(Tensor x, ...) -> Tensor", "(Tensor x) -> ...", "(Tensor x)", 3]
)
def test_other_schemas_that_are_none(schema: Any) -> None:
    with pytest.raises(DefinitionRefused, check=code("MalformedSignature")):
        custom_op("mine::f", double, mutates_args=(), schema=schema)


def test_a_fault_inside_of_a_schema() -> None:
    with pytest.raises(SchemaSyntaxError) as refused:
        custom_op("mine::f", double, mutates_args=(), schema="(Tenso x) -> Tensor")
    assert str(refused.value) == (
        "`Tenso` is not a type\n"
        "    mine::f(Tenso x) -> Tensor\n"
        "            ~~~~^\n"
        "Did you mean Tensor?"
    )


@pytest.mark.parametrize(
    ("declared", "schema", "text"),
    [
        (
            ("x",),
            "(Tensor x) -> Tensor",
            "  schema:       writes to none: mine::f(Tensor x) -> Tensor\n"
            "  mutates_args: x",
        ),
        (
            (),
            "(Tensor(a!) x) -> Tensor",
            "  schema:       writes to x: mine::f(Tensor(a!) x) -> Tensor\n"
            "  mutates_args: none",
        ),
    ],
)
def test_a_schema_and_mutates_args_disagree(
    declared: Any, schema: str, text: str
) -> None:
    with pytest.raises(DefinitionRefused, check=code("MutationMismatch")) as refused:
        custom_op("mine::f", double, mutates_args=declared, schema=schema)
    assert str(refused.value) == (
        "The schema of `mine::f` and its `mutates_args` disagree on which arguments "
        f"are\nwritten to.\n{text}"
    )
    assert "mine::f" not in default_dispatcher().op_names()


def by_name(x: Tensor, *, y: Tensor) -> Tensor:
    return x + y


def test_a_tensor_by_name_only() -> None:
    with pytest.raises(DefinitionRefused, check=code("KeywordOnlyTensor")) as refused:
        custom_op("mine::f", by_name, mutates_args=())
    assert str(refused.value) == (
        "The tensor `y` of `mine::f` can be passed by name only, and such a tensor "
        "could\nget no gradient.\n"
        "  schema: mine::f(Tensor x, *, Tensor y) -> Tensor\n"
        "  to do:  make 'y' positional; or, if it is only there to be written to and\n"
        "          returned, add tags='out'"
    )
    assert isinstance(refused.value, NotImplementedError)


def out_form(x: Tensor, *, out: Tensor) -> Tensor:
    return out.copy_(x)


def test_the_tag_out_lets_tensors_be_named() -> None:
    made = custom_op("mine::f", out_form, mutates_args=("out",), tags="out")
    with made:
        out = tensor([0.0])
        assert made(tensor([3.0]), out=out) is out
        assert out.tolist() == [3.0]


@pytest.mark.parametrize(
    ("function", "schema", "fault"),
    [
        (scale, "(Tensor x) -> Tensor", None),
        (double, "(Tensor x, int n) -> Tensor", "too many positional arguments"),
        (by_name, "(Tensor x) -> Tensor", "missing a required argument: 'y'"),
        (double, "(Tensor x, *, int n=1) -> Tensor", "unexpected keyword argument 'n'"),
        (3, "(Tensor x) -> Tensor", "it cannot be called"),
    ],
)
def test_a_function_that_does_not_fit(
    function: Any, schema: str, fault: str | None
) -> None:
    def make() -> Any:
        return custom_op("mine::f", function, mutates_args=(), schema=schema)

    if fault is None:
        make().close()
        return
    with pytest.raises(DefinitionRefused, check=code("UnfitKernel")) as refused:
        make()
    assert fault in refused.value.fault


def test_the_text_of_an_unfit_kernel() -> None:
    with pytest.raises(TypeError) as refused:
        custom_op("mine::f", 3, mutates_args=(), schema="(Tensor x) -> Tensor")  # type: ignore[call-overload]  # the fault
    assert str(refused.value) == (
        "`3` cannot be a kernel of `mine::f`: it cannot be called.\n"
        "  schema:   mine::f(Tensor x) -> Tensor\n"
        "  calls it: with every argument, in this order, keyword-only ones by name,\n"
        "            defaults filled in"
    )


def zeros(n: int) -> Tensor:
    made: Tensor = ops.core.zeros([n])
    return made


def test_devices_and_nothing_that_says_which() -> None:
    with pytest.raises(NoDeviceArgument) as refused:
        custom_op("mine::f", zeros, mutates_args=(), device_types="cpu")
    assert str(refused.value) == (
        "`mine::f` takes no tensor, so that a call could not select a kernel by "
        "device.\n"
        "  schema: mine::f(SymInt n) -> Tensor\n"
        "  to do:  add an argument `device: Device`, or register one kernel for all\n"
        "          devices (device_types=None)"
    )


def named_device(device: str) -> Tensor:
    made: Tensor = ops.core.zeros([2], device=device)
    return made


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"device_types": "gpu"}, UnknownDevice),
        ({"tags": "oout"}, UnknownTag),
        ({"tags": "inplace"}, SchemaError),
    ],
)
def test_what_else_is_refused(change: Any, error: type[Exception]) -> None:
    given: dict[str, Any] = {"mutates_args": (), "schema": "(Tensor x) -> Tensor"}
    with pytest.raises(error):
        custom_op("mine::f", double, **given, **change)
    assert "mine::f" not in default_dispatcher().op_names()


def test_a_text_is_no_device() -> None:
    with pytest.raises(NoDeviceArgument):
        custom_op("mine::f", named_device, mutates_args=(), device_types="cpu")


def test_a_mutates_args_that_can_be_read_once() -> None:
    names: Callable[[], Any] = lambda: iter(["x"])  # noqa: E731  # short
    with custom_op("mine::f", add_one, mutates_args=names()) as made:
        assert str(made.schema) == "mine::f(Tensor(a0!) x) -> ()"
