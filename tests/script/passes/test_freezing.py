"""Freezing: attributes of a known object as constants, as texts before and after."""

from typing import Any

from everyorder.runtime.schema.declared import ModuleType, Namespace
from everyorder.runtime.schema.subtyping import optional
from everyorder.runtime.schema.types import IntType, ListType, TensorType
from everyorder.runtime.script.ir import check, graph_text, parse_graph
from everyorder.runtime.script.modules.freezing import (
    STAYS,
    Settable,
    freeze_attributes,
    settable,
)
from everyorder.runtime.script.passes import Pass, remove_dead_code, run_passes

NAMES = Namespace()


def _modules() -> None:
    inner = NAMES.declare(ModuleType, "__torch__.Inner")
    inner.declaration.add_attribute("weight", TensorType)
    inner.declaration.add_attribute("count", IntType)
    inner.declaration.add_attribute("bias", optional(TensorType))
    inner.declaration.add_attribute("sizes", ListType(IntType))
    inner.declaration.seal()
    outer = NAMES.declare(ModuleType, "__torch__.Outer")
    outer.declaration.add_attribute("inner", inner)
    outer.declaration.add_attribute("scale", TensorType)
    outer.declaration.seal()


_modules()


class Data:
    """What stands for a tensor: the attribute says so."""

    key_bits = 0


WEIGHT, SCALE = Data(), Data()
VALUES: dict[tuple[str, ...], Any] = {
    ("inner", "weight"): WEIGHT,
    ("inner", "count"): 3,
    ("inner", "bias"): None,
    ("inner", "sizes"): [1],
    ("scale",): SCALE,
}
READS = """\
graph(%self.1 : __torch__.Outer, %x.1 : Tensor):
  %i.1 : __torch__.Inner = prim::GetAttr[name="inner"](%self.1)
  %w.1 : Tensor = prim::GetAttr[name="weight"](%i.1)
  %b.1 : Tensor? = prim::GetAttr[name="bias"](%i.1)
  %n.1 : int = prim::GetAttr[name="count"](%i.1)
  %l.1 : int[] = prim::GetAttr[name="sizes"](%i.1)
  %s.1 : Tensor = prim::GetAttr[name="scale"](%self.1)
  return (%w.1, %b.1, %n.1, %l.1, %s.1)
"""


def test_attributes_become_constants_but_lists_and_what_stays() -> None:
    graph = parse_graph(READS, namespace=NAMES)
    asked = []

    def value_of(way: tuple[str, ...]) -> Any:
        asked.append(way)
        return STAYS if way == ("scale",) else VALUES[way]

    assert freeze_attributes(graph, value_of) == 3
    check(graph)
    assert asked == [
        ("inner", "weight"),
        ("inner", "bias"),
        ("inner", "count"),
        ("inner", "sizes"),
        ("scale",),
    ]
    assert (
        graph_text(graph)
        == """\
graph(%self.1 : __torch__.Outer, %x.1 : Tensor):
  %i.1 : __torch__.Inner = prim::GetAttr[name="inner"](%self.1)
  %self.inner.weight.1 : Tensor = prim::Constant[value=object(0)]()
  %self.inner.bias.1 : Tensor? = prim::Constant[value=None]()
  %self.inner.count.1 : int = prim::Constant[value=3]()
  %l.1 : int[] = prim::GetAttr[name="sizes"](%i.1)
  %s.1 : Tensor = prim::GetAttr[name="scale"](%self.1)
  return (%self.inner.weight.1, %self.inner.bias.1, %self.inner.count.1, %l.1, %s.1)
"""
    )
    assert freeze_attributes(graph, value_of) == 0


FORKED = """\
graph(%self.1 : __torch__.Outer):
  %i.1 : __torch__.Inner = prim::GetAttr[name="inner"](%self.1)
  %f.1 : Future(int) = prim::fork_0(%i.1)
  %n.1 : int = prim::wait(%f.1)
  return (%n.1)
with prim::fork_0 = graph(%i.1 : __torch__.Inner):
  %n.1 : int = prim::GetAttr[name="count"](%i.1)
  prim::Print(%n.1)
  return (%n.1)
"""


def test_graphs_within_are_frozen_too() -> None:
    graph = parse_graph(FORKED, namespace=NAMES)
    assert settable(graph) == Settable(frozenset(), frozenset())
    assert freeze_attributes(graph, VALUES.__getitem__) == 1
    run_passes(graph, [Pass("dead", remove_dead_code)], checked=True)
    assert (
        graph_text(graph)
        == """\
graph(%self.1 : __torch__.Outer):
  %f.1 : Future(int) = prim::fork_0()
  %n.1 : int = prim::wait(%f.1)
  return (%n.1)
with prim::fork_0 = graph():
  %self.inner.count.1 : int = prim::Constant[value=3]()
  prim::Print(%self.inner.count.1)
  return (%self.inner.count.1)
"""
    )


def settable_of(lines: str) -> Settable:
    text = (
        "graph(%self.1 : __torch__.Outer, %c.1 : bool, %n.1 : int):\n"
        '  %i.1 : __torch__.Inner = prim::GetAttr[name="inner"](%self.1)\n'
        f"{lines}  return ()\n"
    )
    graph = parse_graph(text, namespace=NAMES)
    check(graph)
    return settable(graph)


def test_what_a_graph_may_set() -> None:
    nothing = frozenset[Any]()
    assert settable_of("") == Settable(nothing, nothing)
    line = '  prim::SetAttr[name="count"](%i.1, %n.1)\n'
    found = settable_of(line)
    assert found == Settable(frozenset({("inner", "count")}), nothing)
    assert found.has(("inner", "count"))
    assert not found.has(("inner", "weight"))
    # Handed to unknown code, put into a tuple, or given by a branch.
    below = Settable(nothing, frozenset({("inner",)}))
    python = '  prim::PythonOp[name="f", object=object(0)](%i.1)\n'
    graph = parse_graph(
        "graph(%self.1 : __torch__.Outer):\n"
        '  %i.1 : __torch__.Inner = prim::GetAttr[name="inner"](%self.1)\n'
        f"{python}  return ()\n",
        namespace=NAMES,
        objects=(print,),
    )
    assert settable(graph) == below
    tuple_line = "  %t.1 : (__torch__.Inner, int) = prim::TupleConstruct(%i.1, %n.1)\n"
    assert settable_of(tuple_line) == below
    branch = """\
  %j.1 : __torch__.Inner = prim::If(%c.1)
    block0():
      -> (%i.1)
    block1():
      -> (%i.1)
"""
    assert settable_of(branch) == below
    anything = settable_of(branch + line.replace("%i.1", "%j.1"))
    assert anything == Settable(nothing, frozenset({("inner",), ()}))
    assert below.has(("inner", "weight"))
    assert not below.has(("scale",))
    assert anything.has(("scale",))
