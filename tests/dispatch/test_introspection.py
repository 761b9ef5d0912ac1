"""What `inspect.signature` and `help` say of operators."""

import inspect
import pydoc
import re
from typing import Any

import pytest

from everyorder.runtime.dispatch import Library, OperatorHandle
from everyorder.runtime.dispatch.handle import OperatorPacket
from everyorder.runtime.errors.schema import SchemaError
from everyorder.runtime.schema import NO_DEFAULT, parse_schema
from everyorder.runtime.schema.binding import python_signature
from everyorder.runtime.schema.signature import Argument
from everyorder.runtime.schema.types import IntType
from tests.dispatch.samples import defined, on, op, says, silent


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("", "()"),
        ("Tensor self, Tensor other, *, Scalar alpha=1", "(self, other, *, alpha=1)"),
        ("Tensor x, int[2] s=1, str? m=None", "(x, s=(1, 1), m=None)"),
        (
            "*, ScalarType d=float, Device e='cpu'",
            "(*, d=float32, e=Device(type='cpu'))",
        ),
        ("*, int a=1, int b", "(*, a=1, b)"),
        ("int a, ...", "(a, *args)"),
        ("int from=1, *, int lambda", "(from_=1, *, lambda_)"),
    ],
)
def test_a_signature_has_the_schema_s_parameters(arguments: str, shown: str) -> None:
    schema = parse_schema(f"t::f({arguments}) -> ()")
    assert str(python_signature([schema])) == shown


def test_no_operator_has_a_default_before_a_required_argument() -> None:
    """So each default is one for Python, too."""
    # No text says so, but a schema can be made that does.
    arguments = (Argument("a", IntType, default=1), Argument("b", IntType, None))
    assert arguments[1].default is NO_DEFAULT
    schema = parse_schema("t::f() -> ()").clone_with_arguments(arguments)
    with pytest.raises(SchemaError, match="`b` has no default, but follows one that"):
        Library("t", "FRAGMENT", dispatcher=silent()).define(schema)


@pytest.mark.parametrize("calls", [0, 40])
def test_handles_and_packets_show_it_before_and_after_calls(calls: int) -> None:
    dispatcher = silent()
    library = defined(dispatcher, "foo(Tensor x, *, int n=2) -> str")
    library.impl("foo", says("a"), "CPU")
    handle = op(dispatcher)
    packet = handle.overloadpacket
    for _ in range(calls):
        handle(on("CPU"))
        packet(on("CPU"))
    assert str(inspect.signature(handle)) == "(x, *, n=2)"
    assert str(inspect.signature(packet)) == "(x, *, n=2)"
    assert handle.__doc__ == (
        "test.foo.default(x, *, n=2)\n\ntest::foo(Tensor x, *, int n=2) -> str"
    )
    library.define("foo.b(int x) -> str")
    assert str(inspect.signature(packet)) == "(*args, **kwargs)"
    assert packet.__doc__ == (
        "test.foo(*args, **kwargs)\n\n"
        "test::foo(Tensor x, *, int n=2) -> str\ntest::foo.b(int x) -> str"
    )
    library.close()
    assert str(inspect.signature(handle)) == "(*args, **kwargs)"
    assert handle.__doc__ == "test.foo.default: not registered."
    assert packet.__doc__ == "test.foo: not registered."


def test_help() -> None:
    dispatcher = silent()
    library = defined(dispatcher, "foo(Tensor x) -> str")
    text = pydoc.render_doc(op(dispatcher), renderer=pydoc.TextDoc())
    _, _, told = re.sub(".\b", "", text).partition("\n\n")
    assert told.splitlines() == [
        "foo.default = <OperatorHandle test::foo>",
        "    test.foo.default(x)",
        "    ",
        "    test::foo(Tensor x) -> str",
    ]
    library.close()


@pytest.mark.parametrize("kind", [OperatorHandle, OperatorPacket])
def test_the_classes_keep_their_own(kind: Any) -> None:
    assert kind.__doc__.splitlines()[0] in (
        "One operator (one overload) of a dispatcher.",
        "All overloads of one operator; calling it calls the first that fits.",
    )
    assert list(inspect.signature(kind).parameters)[:2] == ["dispatcher", "name"]
    assert kind.__module__.startswith("everyorder.runtime.dispatch.")


def test_an_operator_can_be_a_kernel_before_and_after_calls() -> None:
    """It says nothing about its types, so it is called like any untyped kernel."""
    dispatcher = silent()
    library = Library("test", "DEF", dispatcher=dispatcher)
    for name in ("foo", "bar"):
        library.define(f"{name}(Tensor x, int n=2) -> str")
    library.impl("foo", lambda x, n=2: f"foo {n}", "CPU")
    handle = op(dispatcher)
    for calls in (0, 40):
        for _ in range(calls):
            handle(on("CPU"))
        with library.impl("bar", handle, "CPU"):
            assert op(dispatcher, "test::bar")(on("CPU"), 3) == "foo 3"
            dumped = dispatcher.dump_state("test::bar")
            assert "CPU: foo.default (registered at " in dumped
            assert dumped.endswith(" :: (none) [ boxed ]\n")
