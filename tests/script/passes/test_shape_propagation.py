"""Shapes: what is known of the values of a graph, from its parameters."""

from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.schema.declared import Namespace, ScriptClassType
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.schema.types import TensorType
from everyorder.runtime.script.ir import parse_graph
from everyorder.runtime.script.passes import (
    TensorMeta,
    propagate_shapes,
    shape_propagation,
    shapes_for,
)
from everyorder.runtime.tensors.construction import empty_tensor


def facts(dtype: str, *shape: int, device: str = "cpu") -> TensorMeta:
    return TensorMeta(DType.named(dtype), shape, Device(device))


def known(text: str, *given: TensorMeta | None) -> dict[str, str]:
    """What is known, by the hints of values."""
    graph = parse_graph(text)
    found = propagate_shapes(graph, given)
    return {
        value.hint: f"{fact.dtype} {[*fact.shape]} {fact.device}"
        for value, fact in found.items()
        if not value.is_parameter or value.node.block is not graph.block
    }


def test_operators_of_the_runtime() -> None:
    text = """\
graph(%x.1 : Tensor, %y.1 : Tensor, %s.1 : float):
  %o.1 : int = prim::Constant[value=1]()
  %z.1 : int = prim::Constant[value=0]()
  %k.1 : bool = prim::Constant[value=False]()
  %n.1 : NoneType = prim::Constant[value=None]()
  %a.1 : Tensor = core::mm(%x.1, %y.1)
  %b.1 : Tensor = core::gt(%a.1, %s.1)
  %l.1 : int[] = prim::ListConstruct(%z.1)
  %c.1 : Tensor = core::sum(%a.1, %l.1, %k.1, %n.1)
  %d.1 : Tensor = core::add(%c.1, %b.1, %o.1)
  %m.1 : Tensor[] = prim::ListConstruct(%d.1, %a.1)
  %e.1 : Tensor = core::cat(%m.1, %z.1)
  return (%e.1)
"""
    assert known(text, facts("float32", 4, 3), facts("float32", 3, 5), None) == {
        "a": "float32 [4, 5] cpu",
        "b": "bool [4, 5] cpu",
        "c": "float32 [5] cpu",
        "d": "float32 [4, 5] cpu",
        "e": "float32 [8, 5] cpu",
    }


def test_what_writes_and_where_it_lies() -> None:
    text = """\
graph(%x.1 : Tensor, %y.1 : Tensor):
  %a.1 : Tensor = core::mul_(%x.1, %y.1)
  %b.1 : Tensor = core::t(%a.1)
  return (%b.1)
"""
    cuda = facts("float64", 2, 3, device="cuda")
    assert known(text, cuda, facts("float64")) == {
        "a": "float64 [2, 3] cuda",
        "b": "float64 [3, 2] cuda",
    }


def test_transposed_tensors() -> None:
    runtime.empty(0)  # from here on tensors have their methods
    text = """\
graph(%x.1 : Tensor):
  %a.1 : Tensor = script::T.Tensor(%x.1)
  %b.1 : Tensor = script::mT.Tensor(%a.1)
  return (%b.1)
"""
    assert known(text, facts("int8", 2, 3, 4, device="cuda")) == {
        "a": "int8 [4, 3, 2] cuda",
        "b": "int8 [4, 2, 3] cuda",
    }


def test_what_is_made_of_no_tensor() -> None:
    """Nothing is allocated, and where it lies is what is named, or the CPU."""
    text = """\
graph(%n.1 : int):
  %s.1 : int = prim::Constant[value=1000000000]()
  %o.1 : NoneType = prim::Constant[value=None]()
  %k.1 : bool = prim::Constant[value=False]()
  %d.1 : Device = prim::Constant[value=device("cuda")]()
  %l.1 : int[] = prim::ListConstruct(%s.1, %s.1)
  %a.1 : Tensor = core::ones(%l.1, %o.1, %o.1, %k.1)
  %b.1 : Tensor = core::zeros(%l.1, %o.1, %d.1, %k.1)
  %c.1 : Tensor = core::exp(%b.1)
  return (%a.1, %c.1)
"""
    assert known(text, None) == {
        "a": "float32 [1000000000, 1000000000] cpu",
        "b": "float32 [1000000000, 1000000000] cuda",
        "c": "float32 [1000000000, 1000000000] cuda",
    }


BRANCH = """\
graph(%x.1 : Tensor, %y.1 : Tensor, %c.1 : bool):
  %r.1 : Tensor, %q.1 : Tensor = prim::If(%c.1)
    block0():
      %a.1 : Tensor = core::neg(%x.1)
      -> (%a.1, %a.1)
    block1():
      -> (%x.1, %y.1)
  return (%r.1, %q.1)
"""
LOOP = """\
graph(%x.1 : Tensor, %y.1 : Tensor, %n.1 : int):
  %t.1 : bool = prim::Constant[value=True]()
  %z.1 : int = prim::Constant[value=0]()
  %o.1 : int = prim::Constant[value=1]()
  %r.1 : Tensor, %q.1 : Tensor, %k.1 : int = prim::Loop(%n.1, %t.1, %x.1, %y.1, %z.1)
    block0(%i.1 : int, %p.1 : Tensor, %s.1 : Tensor, %m.1 : int):
      %a.1 : Tensor = core::neg(%p.1)
      %b.1 : Tensor = core::unsqueeze(%s.1, %z.1)
      %w.1 : int = script::add.int(%m.1, %o.1)
      -> (%t.1, %a.1, %b.1, %w.1)
  return (%r.1, %q.1)
"""


def test_branches_are_known_where_both_are_alike() -> None:
    assert known(BRANCH, facts("float32", 2), facts("float32", 3), None) == {
        "a": "float32 [2] cpu",
        "r": "float32 [2] cpu",
    }


def test_loops_are_known_where_each_trip_leaves_it() -> None:
    assert known(LOOP, facts("float32", 2), facts("float32", 3), None) == {
        "p": "float32 [2] cpu",
        "a": "float32 [2] cpu",
        "r": "float32 [2] cpu",
    }


def test_a_loop_that_is_looked_at_once_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A planted fault: whatever a trip leaves counts as what it was."""
    monkeypatch.setattr(shape_propagation, "_alike", lambda one, other: True)
    found = known(LOOP, facts("float32", 2), facts("float32", 3), None)
    assert found["q"] == "float32 [3] cpu"


UNKNOWN = """\
graph(%x.1 : Tensor, %y.1 : Tensor, %l.1 : int[]):
  %z.1 : int = prim::Constant[value=0]()
  %a.1 : Tensor = core::nonzero(%x.1)
  %b.1 : Tensor = core::mm(%x.1, %x.1)
  %c.1 : Tensor = core::neg(%y.1)
  %d.1 : Tensor = core::reshape(%x.1, %l.1)
  %e.1 : int[] = prim::ListConstruct(%z.1)
  script::append.t(%e.1, %z.1)
  %f.1 : Tensor = core::reshape(%x.1, %e.1)
  return (%a.1, %b.1, %c.1, %d.1, %f.1)
"""


def test_what_is_not_known() -> None:
    assert known(UNKNOWN, facts("float32", 2, 3), None, None) == {}


def test_operators_of_others_are_not_asked() -> None:
    text = """\
graph(%x.1 : Tensor):
  %a.1 : Tensor = core::neg(%x.1)
  return (%a.1)
"""
    asked: list[Any] = []
    library = Library("core", "IMPL", "Meta")
    library.impl("neg", lambda self: asked.append(self))
    try:
        assert known(text, facts("float32", 2)) == {}
    finally:
        library.close()
    assert asked == []
    assert known(text, facts("float32", 2)) == {"a": "float32 [2] cpu"}


class Layer:
    """What keeps a tensor as objects do, and one as modules do."""

    def __init__(self) -> None:
        self.scale = empty_tensor((3,), DType.named("float32"))
        self._parameters = {"bias": empty_tensor((2, 1), DType.named("float64"))}

    @property
    def other(self) -> Any:
        raise AssertionError("nothing of an object is run")


ATTRIBUTES = """\
graph(%l.1 : __torch__.passes.Layer, %x.1 : Tensor, %n.1 : int):
  %s.1 : Tensor = prim::GetAttr[name="scale"](%l.1)
  %b.1 : Tensor = prim::GetAttr[name="bias"](%l.1)
  %o.1 : Tensor = prim::GetAttr[name="other"](%l.1)
  %k.1 : int[] = prim::ListConstruct(%n.1)
  %a.1 : Tensor = core::mul(%x.1, %s.1)
  %c.1 : Tensor = core::mul(%a.1, %b.1)
  %d.1 : Tensor = core::mul(%c.1, %o.1)
  %e.1 : Tensor = core::reshape(%c.1, %k.1)
  return (%d.1, %e.1)
"""


def test_what_is_there_is_looked_at_and_not_run() -> None:
    namespace = Namespace()
    declared = namespace.declare(ScriptClassType, "__torch__.passes.Layer", Layer)
    for name in ("scale", "bias", "other"):
        declared.declaration.add_attribute(name, TensorType)
    declared.declaration.seal()
    graph = parse_graph(ATTRIBUTES, namespace=namespace)
    arguments = [Layer(), empty_tensor((2, 3), DType.named("float32")), 6]
    found = shapes_for(graph, arguments)
    assert {value.hint: (str(f.dtype), f.shape) for value, f in found.items()} == {
        "x": ("float32", (2, 3)),
        "s": ("float32", (3,)),
        "b": ("float64", (2, 1)),
        "a": ("float32", (2, 3)),
        "c": ("float64", (2, 3)),
        "e": ("float64", (6,)),
    }
