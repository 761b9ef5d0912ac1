"""What is registered where, and on which dispatcher."""

import pytest

from everyorder.runtime import Dispatcher
from everyorder.runtime.autograd.install import install, kernels_of
from everyorder.runtime.dispatch.dispatcher import default_dispatcher
from everyorder.runtime.errors.registration import Conflict
from everyorder.runtime.operators import install as install_operators
from everyorder.runtime.operators.declare.handles import NAMESPACE
from everyorder.runtime.schema import parse_schema
from everyorder.runtime.schema.schema import Schema
from tests.coded import code

PASSING = ("ADInplaceOrView", "fallthrough")


def parsed(text: str) -> Schema:
    found = parse_schema(text)
    assert isinstance(found, Schema)
    return found


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (
            "core::mul(Tensor self, Tensor other) -> Tensor",
            [("Autograd", "mul_auto"), PASSING],
        ),
        (
            "core::mul_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
            [("Autograd", "mul__auto"), ("ADInplaceOrView", "mul__version")],
        ),
        (
            "core::exp.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
            [("Autograd", "exp_out_auto"), ("ADInplaceOrView", "exp_out_version")],
        ),
        (
            "core::t(Tensor(a) self) -> Tensor(a)",
            [("Autograd", "t_auto"), ("ADInplaceOrView", "t_view")],
        ),
        (
            "core::detach(Tensor(a) self) -> Tensor(a)",
            [("Autograd", "fallthrough"), PASSING],
        ),
        (
            "core::eq(Tensor self, Tensor other) -> Tensor",
            [("Autograd", "fallthrough"), PASSING],
        ),
        ("core::novel(Tensor self) -> Tensor", [("Autograd", "novel_auto"), PASSING]),
        (
            "core::novel_(Tensor(a!) self) -> Tensor(a!)",
            [("Autograd", "novel__auto"), ("ADInplaceOrView", "novel__version")],
        ),
        ("core::rand(int[] size) -> Tensor", [PASSING]),
    ],
)
def test_kernels_by_schema(schema: str, expected: list[tuple[str, str]]) -> None:
    found = [(key, kernel.facts.name) for key, kernel in kernels_of(parsed(schema))]
    assert found == [(k, n.replace("_auto", "_autograd")) for k, n in expected]


def test_another_dispatcher_gets_the_same_tables() -> None:
    other = Dispatcher()
    operators = install_operators(other)
    with pytest.raises(Conflict, check=code("NamespaceTaken")):
        install_operators(other)
    libraries = install(other)
    for name in ("mul", "mul_", "t", "mm", "sum", "matmul"):
        full = f"{NAMESPACE}::{name}"
        mine = default_dispatcher().dump_state(full)
        assert other.dump_state(full) == mine
    assert "Autograd[alias]: mul_autograd" in other.dump_state("core::mul")
    assert "Autograd" not in other.dump_state("core::matmul").replace(
        "CompositeImplicitAutograd", ""
    )
    for library in (*libraries, *operators):
        library.close()
    assert other.op_names() == ()


def test_the_default_dispatcher_is_installed_on_once() -> None:
    assert install() is install(default_dispatcher())
