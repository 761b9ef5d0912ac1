"""Pointwise operators: which of them have a function of elements, and which one."""

from typing import Any

import pytest

from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.script.executor.fused_steps import operators, step_of
from everyorder.runtime.script.ir import Graph, parse_graph, row_of
from everyorder.runtime.script.passes import TensorMeta
from tests.opinfo.table import ROWS
from tests.script.fusion.chains import FLOATS, WHOLE, facts, same, tensor_of, with_plan

HEAD = """\
graph(%x.1 : Tensor, %y.1 : Tensor, %m.1 : Tensor):
  %one.1 : int = prim::Constant[value=1]()
  %two.1 : int = prim::Constant[value=2]()
  %none.1 : NoneType = prim::Constant[value=None]()
  %exact.1 : str = prim::Constant[value="none"]()
"""
# What stands for an argument, by its name; other tensors are x and y, in turn.
GIVEN = {
    "condition": "m",
    "mask": "m",
    "alpha": "one",
    "rounding_mode": "none",
    "approximate": "exact",
    "value": "two",
    "min": "one",
    "max": "none",
}


def line_of(kind: str, schema: Schema, number: int, **others: str) -> str:
    """A line that calls an operator."""
    named = {**GIVEN, **others}
    tensors = ["y", "x"]
    taken = []
    for argument in schema.arguments:
        name = named.get(argument.name)
        if name is None or (kind.endswith(".Tensor") and name == "one"):
            name = tensors.pop()
        taken.append(f"%{name}.1")
    return f"  %v{number}.1 : Tensor = {kind}({', '.join(taken)})\n"


def graph_of(lines: list[str]) -> Graph:
    """A graph that gives what all lines give."""
    results = ", ".join(line.split()[0] for line in lines)
    return parse_graph(f"{HEAD}{''.join(lines)}  return ({results})\n")


def known_of(graph: Graph, dtype: str) -> dict[Any, Any]:
    x, y, m = graph.block.parameters
    fact: TensorMeta = facts(dtype, 50)
    known: dict[Any, Any] = {x: fact, y: fact, m: facts("bool", 50)}
    for node in graph.block:
        if node.kind == "prim::Constant":
            known[node.output] = node.attributes["value"]
    return known


def fusible(dtype: str) -> list[str]:
    """A line for each operator that can be fused."""
    found: list[str] = []
    for kind in operators():
        row = row_of(kind)
        assert row is not None
        assert row.schema is not None
        line = line_of(kind, row.schema, len(found))
        graph = graph_of([line])
        step = step_of(graph.block.results[0].node, known_of(graph, dtype))
        if step is not None:
            found.append(line)
    return found


def names_of(lines: list[str]) -> set[str]:
    return {line.split("core::")[1].partition("(")[0] for line in lines}


TAKES = {row.name: row.dtypes for row in ROWS}


def absent(dtype: str) -> str:
    """The operators that are not fused, though they take elements of that dtype."""
    names = {kind.removeprefix("core::") for kind in operators()}
    left = names - names_of(fusible(dtype))
    return " ".join(sorted(n for n in left if dtype in TAKES.get(n, (dtype,))))


# By dtype: what NumPy computes, what looks at all elements first, and what is put
# together of several kernels.
ABSENT = {
    "float32": "atan2 clamp.Tensor pow",
    "int32": (
        "atan2 clamp.Tensor floor_divide fmod isfinite isinf isnan pow remainder"
    ),
    "bool": "add atan2 isfinite isinf isnan",
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64"])
def test_what_is_not_computed_in_is_not_fused(dtype: str) -> None:
    assert fusible(dtype) == []


@pytest.mark.parametrize("dtype", ABSENT)
def test_operators_without_a_function_of_elements(dtype: str) -> None:
    assert absent(dtype) == ABSENT[dtype]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE, "bool"])
def test_each_gives_the_bits_of_the_eager_operator(dtype: str) -> None:
    lines = fusible(dtype)
    given = tensor_of(dtype, 3_000), tensor_of(dtype, 3_000, 1)
    mask = tensor_of("bool", 3_000)
    # As many as the compiler takes at once.
    for begin in range(0, len(lines), 12):
        part = graph_of(lines[begin : begin + 12])
        same(with_plan(part), *given, mask)


FORMS = (
    *("  %v0.1 : Tensor = core::add(%x.1, %two.1, %two.1)\n",),
    *("  %v1.1 : Tensor = core::sub(%x.1, %two.1, %two.1)\n",),
    *("  %v2.1 : Tensor = core::sub(%two.1, %x.1, %two.1)\n",),
    *("  %v3.1 : Tensor = core::clamp(%x.1, %none.1, %two.1)\n",),
    *("  %v4.1 : Tensor = core::pow(%x.1, %one.1)\n",),
    *("  %v5.1 : Tensor = core::pow(%x.1, %two.1)\n",),
    *("  %v6.1 : Tensor = core::where(%m.1, %x.1, %two.1)\n",),
    *("  %v7.1 : Tensor = core::where(%m.1, %two.1, %x.1)\n",),
    *("  %v8.1 : Tensor = core::add(%x.1, %y.1, %two.1)\n",),
    *("  %v9.1 : Tensor = core::sub(%x.1, %y.1, %two.1)\n",),
)


def test_numbers_and_factors_on_each_side() -> None:
    given = tensor_of("float32", 3_000), tensor_of("float32", 3_000, 1)
    same(with_plan(graph_of([*FORMS])), *given, tensor_of("bool", 3_000))
