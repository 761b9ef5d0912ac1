"""Functions of programs, written as graphs."""

from collections.abc import Mapping, Sequence
from typing import Any

from everyorder.runtime.errors.source import Source
from everyorder.runtime.schema.declared import SHARED, Namespace
from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.schema.types import Type
from everyorder.runtime.script.ir import check, parse_graph
from everyorder.runtime.script.ir.program import Function


def written(
    schema: str,
    lines: str,
    *,
    namespace: Namespace = SHARED,
    functions: Mapping[str, Any] | None = None,
    objects: Sequence[Any] = (),
    source: str = "",
) -> Function:
    """The function of a schema and of the lines of its graph, the head left out.

    `source` is the text that places in `p.py` speak of.
    """
    parsed = parse_schema(schema, namespace=namespace)
    head = ", ".join(f"%{each.name} : {each.type}" for each in parsed.arguments)
    graph = parse_graph(
        f"graph({head}):\n{lines}",
        namespace=namespace,
        functions=functions,
        objects=objects,
        sources={"p.py": Source(source, "p.py")} if source else None,
    )
    check(graph)
    return Function(f"__torch__.p.{parsed.name}", parsed, graph)


def constant(name: str, type_: Type | str, value: str) -> str:
    """A line that defines a constant."""
    return f"  %{name} : {type_} = prim::Constant[value={value}]()\n"
