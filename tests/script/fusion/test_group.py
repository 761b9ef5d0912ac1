"""Groups: which nodes become one, as texts before and after."""

from typing import Any

import pytest

from everyorder.runtime.script.executor import fusion
from everyorder.runtime.script.executor.fusion import fuse
from everyorder.runtime.script.ir import NodeEffect, check, graph_text, parse_graph
from everyorder.runtime.script.passes import propagate_shapes
from tests.script.fusion.chains import facts, fused

# Name -> before, after, groups; parameters that are tensors have 2,000 elements.
CASES: dict[str, tuple[str, str, int]] = {
    "a chain, and constants that it reads": (
        """\
graph(%x.1 : Tensor, %y.1 : Tensor):
  %o.1 : int = prim::Constant[value=1]()
  %a.1 : Tensor = core::mul(%x.1, %y.1)
  %b.1 : Tensor = core::add(%a.1, %x.1, %o.1)
  return (%b.1)
""",
        """\
graph(%x.1 : Tensor, %y.1 : Tensor):
  %o.1 : int = prim::Constant[value=1]()
  %b.1 : Tensor = prim::FusionGroup_0(%x.1, %y.1)
  return (%b.1)
with prim::FusionGroup_0 = graph(%x.1 : Tensor, %y.1 : Tensor):
  %a.1 : Tensor = core::mul(%x.1, %y.1)
  %o.1 : int = prim::Constant[value=1]()
  %b.1 : Tensor = core::add(%a.1, %x.1, %o.1)
  return (%b.1)
""",
        1,
    ),
    "what others read is given, too": (
        """\
graph(%x.1 : Tensor):
  %a.1 : Tensor = core::neg(%x.1)
  %b.1 : Tensor = core::exp(%a.1)
  %c.1 : Tensor = core::t(%a.1)
  return (%b.1, %c.1)
""",
        """\
graph(%x.1 : Tensor):
  %a.1 : Tensor, %b.1 : Tensor = prim::FusionGroup_0(%x.1)
  %c.1 : Tensor = core::t(%a.1)
  return (%b.1, %c.1)
with prim::FusionGroup_0 = graph(%x.1 : Tensor):
  %a.1 : Tensor = core::neg(%x.1)
  %b.1 : Tensor = core::exp(%a.1)
  return (%a.1, %b.1)
""",
        1,
    ),
    "one operator alone, and two with something between them": (
        """\
graph(%x.1 : Tensor):
  %a.1 : Tensor = core::neg(%x.1)
  prim::Print(%x.1)
  %b.1 : Tensor = core::exp(%a.1)
  %c.1 : Tensor = core::t(%b.1)
  %d.1 : Tensor = core::neg(%c.1)
  return (%d.1)
""",
        "",
        0,
    ),
    "nothing moves over a write": (
        """\
graph(%x.1 : Tensor, %y.1 : Tensor):
  %a.1 : Tensor = core::neg(%x.1)
  %w.1 : Tensor = core::zero_(%x.1)
  %b.1 : Tensor = core::mul(%a.1, %y.1)
  return (%b.1)
""",
        "",
        0,
    ),
    "what has no effect lies in front": (
        """\
graph(%x.1 : Tensor, %s.1 : float, %t.1 : float):
  %a.1 : Tensor = core::mul(%x.1, %s.1)
  %p.1 : (float, float) = prim::TupleConstruct(%s.1, %t.1)
  %b.1 : Tensor = core::div(%a.1, %t.1, %z.1)
  return (%b.1, %p.1)
""".replace(", %z.1", "").replace("core::div", "core::mul"),
        """\
graph(%x.1 : Tensor, %s.1 : float, %t.1 : float):
  %p.1 : (float, float) = prim::TupleConstruct(%s.1, %t.1)
  %b.1 : Tensor = prim::FusionGroup_0(%x.1, %s.1, %t.1)
  return (%b.1, %p.1)
with prim::FusionGroup_0 = graph(%x.1 : Tensor, %s.1 : float, %t.1 : float):
  %a.1 : Tensor = core::mul(%x.1, %s.1)
  %b.1 : Tensor = core::mul(%a.1, %t.1)
  return (%b.1)
""",
        1,
    ),
    "in blocks, each by itself": (
        """\
graph(%x.1 : Tensor, %c.1 : bool):
  %a.1 : Tensor = core::neg(%x.1)
  %r.1 : Tensor = prim::If(%c.1)
    block0():
      %b.1 : Tensor = core::exp(%a.1)
      %d.1 : Tensor = core::neg(%b.1)
      -> (%d.1)
    block1():
      -> (%a.1)
  return (%r.1)
""",
        """\
graph(%x.1 : Tensor, %c.1 : bool):
  %a.1 : Tensor = core::neg(%x.1)
  %r.1 : Tensor = prim::If(%c.1)
    block0():
      %d.1 : Tensor = prim::FusionGroup_0(%a.1)
      -> (%d.1)
    block1():
      -> (%a.1)
  return (%r.1)
with prim::FusionGroup_0 = graph(%a.1 : Tensor):
  %b.1 : Tensor = core::exp(%a.1)
  %d.1 : Tensor = core::neg(%b.1)
  return (%d.1)
""",
        1,
    ),
    "what writes, and what has no function of elements": (
        """\
graph(%x.1 : Tensor, %y.1 : Tensor):
  %a.1 : Tensor = core::neg_(%x.1)
  %b.1 : Tensor = core::exp_(%a.1)
  %c.1 : Tensor = core::atan2(%b.1, %y.1)
  %d.1 : Tensor = core::pow(%c.1, %y.1)
  return (%d.1)
""",
        "",
        0,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_groups(name: str) -> None:
    before, after, count = CASES[name]
    graph, found = fused(before, [facts("float32", 2_000)] * 2, least=1_000)
    assert graph_text(graph) == (after or before)
    assert found == count
    # Groups are left alone.
    shapes = propagate_shapes(graph, [None] * len(graph.block.parameters))
    assert fuse(graph, shapes) == 0


PAIR = """\
graph(%x.1 : Tensor, %y.1 : Tensor):
  %a.1 : Tensor = core::mul(%x.1, %y.1)
  %b.1 : Tensor = core::mul(%a.1, %x.1)
  return (%b.1)
"""


@pytest.mark.parametrize(
    ("one", "other", "count"),
    [
        (("float32", 2_000), ("float32", 2_000), 1),
        (("float32", 2_000), ("int8", 2_000), 1),
        (("float32", 2_000), ("float64", ()), 1),
        (("float32", 2_000), ("float32", 1), 1),
        (("float32", 999), ("float32", 999), 0),
        (("float16", 2_000), ("float16", 2_000), 0),
        (("bfloat16", 2_000), ("float32", 2_000), 0),
        (("complex64", 2_000), ("complex64", 2_000), 0),
        (("float32", (50, 40)), ("float32", (40,)), 1),
        (("float32", (50, 40)), ("float32", (50, 1)), 1),
        (("float32", (400, 5)), ("float32", (5,)), 0),
        (("float32", 2_000), ("float32", 3), 0),
        (("float32", 2_000), None, 0),
    ],
)
def test_dtypes_and_shapes(one: Any, other: Any, count: int) -> None:
    given = [None if each is None else facts(*each) for each in (one, other)]
    assert fused(PAIR, given, least=1_000)[1] == count


def test_another_shape_begins_another_group() -> None:
    text = """\
graph(%x.1 : Tensor, %y.1 : Tensor):
  %a.1 : Tensor = core::neg(%x.1)
  %b.1 : Tensor = core::exp(%a.1)
  %c.1 : Tensor = core::neg(%y.1)
  %d.1 : Tensor = core::exp(%c.1)
  return (%b.1, %d.1)
"""
    given = [facts("float32", 2_000), facts("float32", 3_000)]
    assert fused(text, given)[1] == 2


def test_groups_are_no_longer_than_compilers_like() -> None:
    lines = [f"  %v{n + 1}.1 : Tensor = core::neg(%v{n}.1)\n" for n in range(60)]
    text = f"graph(%v0.1 : Tensor):\n{''.join(lines)}  return (%v60.1)\n"
    graph, count = fused(text, [facts("float32", 2_000)])
    sizes = [len([*n.attributes["graph"].block]) for n in graph.nodes()]
    assert (count, sizes) == (3, [24, 24, 12])


def test_a_group_over_a_write_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: nothing counts as having an effect."""
    monkeypatch.setattr(fusion, "effects_of", lambda node: NodeEffect.NONE)
    text = """\
graph(%x.1 : Tensor, %l.1 : Tensor[]):
  %a.1 : Tensor = core::neg(%x.1)
  script::append.t(%l.1, %x.1)
  %b.1 : Tensor = core::mul(%a.1, %x.1)
  return (%b.1)
"""
    graph = parse_graph(text)
    given = [facts("float32", 2_000), None]
    assert fuse(graph, propagate_shapes(graph, given)) == 1
    monkeypatch.undo()
    graph = parse_graph(text)
    assert fuse(graph, propagate_shapes(graph, given)) == 0
    check(graph, "fusion")
