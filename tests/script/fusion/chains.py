"""Chains of pointwise operators as graphs, and what they are run on."""

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from everyorder.runtime.schema.enums import DType
from everyorder.runtime.schema.types import TensorType
from everyorder.runtime.script.executor import ExecutionPlan, executor_options
from everyorder.runtime.script.executor.fused_steps import step_of
from everyorder.runtime.script.executor.fusion import FusedGroup, fuse
from everyorder.runtime.script.ir import Graph, Node, check, graph_text, parse_graph
from everyorder.runtime.script.passes import TensorMeta, facts_of, propagate_shapes
from everyorder.runtime.tensors.construction import from_numpy
from everyorder.runtime.tensors.tensor import Tensor

FLOATS, WHOLE = ("float32", "float64"), ("uint8", "int8", "int16", "int32", "int64")
GROUP = "prim::FusionGroup"

# Where functions bend, and what no arithmetic leaves alone.
EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 1e-40, 1e30, 2e5, -88.5)


def with_plan(graph: Graph) -> FusedGroup:
    """What runs a group: its kernel, or else a plan of its graph."""
    plan = ExecutionPlan(graph.block, (), "<fused>", executor_options())
    return FusedGroup(graph, plan.execute)


def array_of(dtype: str, count: int, seed: int = 0) -> Any:
    """Elements of both signs; of floats, some that are none or without end."""
    source = np.random.default_rng(seed)
    if dtype == "bool":
        return source.random(count) < 0.5
    if dtype in WHOLE:
        low = 0 if dtype == "uint8" else -128
        return source.integers(low, low + 256, count).astype(dtype)
    found = 3 * source.standard_normal(count)
    places = source.permutation(count)[: len(EDGES)]
    found[places] = EDGES[: len(places)]
    with np.errstate(all="ignore"):
        return found.astype(dtype)


def tensor_of(dtype: str, count: int, seed: int = 0) -> Tensor:
    """A tensor of such elements."""
    return from_numpy(array_of(dtype, count, seed))


def text_of(lines: Sequence[str], inputs: Sequence[str], results: str) -> str:
    """A graph of lines like `%2 : Tensor = core::neg(%0)`."""
    given = ", ".join(inputs)
    return f"graph({given}):\n" + "".join(f"  {each}\n" for each in lines) + results


def facts(dtype: str, shape: int | tuple[int, ...]) -> TensorMeta:
    """What is known of a tensor, or of a row."""
    sizes = (shape,) if isinstance(shape, int) else shape
    return TensorMeta(DType.named(dtype), sizes)


def fused(text: str, inputs: Sequence[Any], least: int = 1) -> tuple[Graph, int]:
    """The graph of a text with groups for these inputs, and how many there are.

    Inputs are tensors, or what is known of them; of other parameters nothing is.
    """
    graph = parse_graph(text)
    given: list[TensorMeta | None] = []
    for at, value in enumerate(graph.block.parameters):
        each = inputs[at] if at < len(inputs) else None
        if value.type is not TensorType:
            each = None
        given.append(facts_of(each) if isinstance(each, Tensor) else each)
    count = fuse(graph, propagate_shapes(graph, given), least=least)
    check(graph, "fusion")
    assert graph_text(parse_graph(graph_text(graph))) == graph_text(graph)
    return graph, count


def groups_of(graph: Graph) -> list[Node]:
    """The groups of a graph."""
    return [each for each in graph.nodes() if each.kind == GROUP]


def group_of(text: str, inputs: Sequence[Any]) -> FusedGroup:
    """The one group of a graph, which is all that there is in it."""
    graph, count = fused(text, inputs)
    assert count == 1, graph_text(graph)
    (node,) = groups_of(graph)
    assert all(each.kind in (GROUP, "prim::Constant") for each in graph.block)
    return with_plan(node.attributes["graph"])


def bits_of(value: Any) -> Any:
    """What results are compared by: dtypes, shapes, and bits; all NaN are one."""
    if isinstance(value, tuple):
        return [bits_of(each) for each in value]
    array = value.numpy().copy()
    if array.dtype.kind == "f":
        array[np.isnan(array)] = np.nan
    return str(array.dtype), array.shape, value.stride(), array.tobytes()


def same(group: FusedGroup, *inputs: Any) -> None:
    """The kernel runs, and gives what the operators give."""
    before = group.kernels
    found = group(*inputs)
    assert group.kernels == before + 1, "the operators ran"
    assert bits_of(found) == bits_of(group.otherwise(*inputs))


# Chains by chance.

_UNARY = (
    *("neg", "abs", "sign", "square", "relu", "floor", "ceil", "round", "trunc", "exp"),
    *("expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan"),
    *("tanh", "sigmoid", "reciprocal", "erf", "silu", "logical_not"),
)
_BINARY = (
    *("mul", "div", "hypot", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge"),
    *("logical_and", "logical_or", "logical_xor", "remainder", "fmod", "floor_divide"),
)
_NUMBERS = ("2", "-3", "0.5", "-0.0", "1.5")


def chain(choose: Random, dtypes: Sequence[str], length: int) -> str:
    """The text of a graph of two tensors, and of operators that take what they give."""
    lines = [
        "%c.1 : int = prim::Constant[value=1]()",
        "%z.1 : NoneType = prim::Constant[value=None]()",
    ]
    names = [f"%x{at}.1" for at in range(len(dtypes))]
    for at in range(length):
        # Long chains, rather than broad ones.
        one = choose.choice([len(names) - 1, choose.randrange(len(names))])
        other = choose.randrange(len(names))
        way = choose.random()
        made = f"%v{at}.1 : Tensor"
        if way < 0.45:
            line = f"{made} = core::{choose.choice(_UNARY)}({names[one]})"
        elif way < 0.6:
            number = choose.choice(_NUMBERS)
            kind = "float" if "." in number else "int"
            lines.append(f"%n{at}.1 : {kind} = prim::Constant[value={number}]()")
            name = choose.choice(("add", "sub"))
            line = f"{made} = core::{name}({names[one]}, %n{at}.1, %c.1)"
        elif way < 0.75:
            name = choose.choice(("add", "sub"))
            line = f"{made} = core::{name}({names[one]}, {names[other]}, %c.1)"
        else:
            name = choose.choice(_BINARY)
            mode = ", %z.1" if name == "div" else ""
            line = f"{made} = core::{name}({names[one]}, {names[other]}{mode})"
        tried = text_of([*lines, line], _parameters(dtypes), f"  return (%v{at}.1)\n")
        if not _fits(tried, dtypes):
            continue
        lines.append(line)
        names.append(f"%v{at}.1")
    return text_of(lines, _parameters(dtypes), f"  return ({names[-1]})\n")


def _parameters(dtypes: Sequence[str]) -> list[str]:
    return [f"%x{at}.1 : Tensor" for at in range(len(dtypes))]


def _fits(text: str, dtypes: Sequence[str]) -> bool:
    """Whether the last operator can be fused with the others."""
    graph = parse_graph(text)
    facts = [TensorMeta(DType.named(each), (8,)) for each in dtypes]
    shapes = propagate_shapes(graph, facts)
    (result,) = graph.block.results
    known: dict[Any, Any] = {**shapes}
    for node in graph.block:
        if node.kind == "prim::Constant":
            known[node.output] = node.attributes["value"]
    return step_of(result.node, known) is not None
