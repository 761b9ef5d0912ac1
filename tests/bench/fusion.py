"""Rows about fusion: chains of five pointwise operators as one kernel.

True only here: one thread, float32, 1e5 elements.  NumPy writes into arrays that are
there, which is the fastest way that it has; ours makes its result.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from everyorder.runtime.script.executor import ExecutionPlan, executor_options
from everyorder.runtime.script.executor.fusion import FusedGroup, fuse
from everyorder.runtime.script.ir import parse_graph
from everyorder.runtime.script.passes import facts_of, propagate_shapes
from everyorder.runtime.tensors.construction import from_numpy
from tests.bench.row import Row, pairs, ratio

COUNT, TURNS = 100_000, 200

# NumPy's calls, on two arrays and one to write to.
Steps = Callable[[Any, Any, Any], None]


def _light(x: Any, y: Any, t: Any) -> None:
    np.multiply(x, y, t)
    np.add(t, 0.5, t)
    np.maximum(t, 0, out=t)
    np.subtract(t, x, t)
    np.multiply(t, y, t)


def _with_sigmoid(x: Any, y: Any, t: Any) -> None:
    np.multiply(x, y, t)
    np.add(t, 0.5, t)
    np.negative(t, t)
    np.exp(t, t)
    np.add(t, 1, t)
    np.reciprocal(t, t)
    np.subtract(t, x, t)
    np.multiply(t, y, t)


def _heavy(x: Any, y: Any, t: Any) -> None:
    np.multiply(x, y, t)
    np.tanh(t, t)
    np.add(t, 0.5, t)
    np.exp(t, t)
    np.multiply(t, y, t)


_HEAD = """\
graph(%x.1 : Tensor, %y.1 : Tensor):
  %o.1 : int = prim::Constant[value=1]()
  %h.1 : float = prim::Constant[value=0.5]()
  %a.1 : Tensor = core::mul(%x.1, %y.1)
"""
_LIGHT = """\
  %b.1 : Tensor = core::add(%a.1, %h.1, %o.1)
  %c.1 : Tensor = core::relu(%b.1)
  %d.1 : Tensor = core::sub(%c.1, %x.1, %o.1)
  %e.1 : Tensor = core::mul(%d.1, %y.1)
  return (%e.1)
"""
_HEAVY = """\
  %b.1 : Tensor = core::tanh(%a.1)
  %c.1 : Tensor = core::add(%b.1, %h.1, %o.1)
  %d.1 : Tensor = core::exp(%c.1)
  %e.1 : Tensor = core::mul(%d.1, %y.1)
  return (%e.1)
"""

# What is computed, as a graph, and by NumPy; the ordinary chain first.
CHAINS: tuple[tuple[str, str, Steps], ...] = (
    ("x * y + 0.5, relu, - x, * y", _HEAD + _LIGHT, _light),
    ("the same with sigmoid", _HEAD + _LIGHT.replace("relu", "sigmoid"), _with_sigmoid),
    ("x * y, tanh, + 0.5, exp, * y", _HEAD + _HEAVY, _heavy),
)


def fusion() -> Iterator[Row]:
    """Fused chains, over NumPy's and eager operators."""
    source = np.random.default_rng(0)
    x, y = (source.standard_normal(COUNT).astype(np.float32) for _ in range(2))
    made = np.empty_like(x)
    given = from_numpy(x), from_numpy(y)
    for name, text, steps in CHAINS:
        graph = parse_graph(text)
        fuse(graph, propagate_shapes(graph, [*map(facts_of, given)]))
        (node,) = (each for each in graph.nodes() if each.kind == "prim::FusionGroup")
        graph = node.attributes["graph"]
        plan = ExecutionPlan(graph.block, (), "<fused>", executor_options())
        group = FusedGroup(graph, plan.execute)
        run = lambda group=group: group(*given)  # noqa: E731  # called by name only here
        eager = lambda group=group: group.otherwise(*given)  # noqa: E731  # as above
        numpy = lambda steps=steps: steps(x, y, made)  # noqa: E731  # as above
        times = ratio(pairs(numpy, run, TURNS))
        beside = ratio(pairs(eager, run, TURNS))
        yield Row(
            f"a fused chain of five at 1e5 float32 ({name}): times NumPy",
            f"{times:.1f} ({beside:.1f} times eager operators)",
            "≥ 2",
            times >= 2,
            why="NumPy's own loops of the heavy functions are vectorised, too",
        )


FUSION_ROWS = (fusion,)
