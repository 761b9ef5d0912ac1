"""The printer of graphs: equal graphs have equal texts, and the text parses back.

    graph __torch__.f(%x.1 : Tensor, %n.1 : int):
      %2 : int = prim::Constant[value=1]()  # file.py:3:4
      %y.1 : Tensor = prim::If(%c.1)
        block0():
          -> (%x.1)
        ...
      %9 : Future(Tensor) = prim::fork_0(%y.1)
      return (%y.1)
    with prim::fork_0 = graph(%x.1 : Tensor):
      ...

Rules:
- a value is numbered where it is printed first: with a hint `y` as `%y.1`, `%y.2`,
  without a hint by the count of values printed before; the count starts again in each
  graph;
- graphs that are attributes are printed after the graph that names them, in the order
  in which they are named, and the kinds of their nodes are numbered;
- attributes are printed in the order of the table of kinds;
- objects without a text form (tensors, Python functions, named tuples) are printed as
  `object(n)`, the n-th entry of a table that accompanies the text; functions of
  programs are printed by name;
- every graph can be printed, even a broken one: the checker's error shows it.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from everyorder.runtime.errors.source import printable
from everyorder.runtime.schema.declared import EnumType
from everyorder.runtime.schema.enums import Device
from everyorder.runtime.schema.signature import default_text
from everyorder.runtime.schema.types import OptionalType, TupleType, Type, UnionType
from everyorder.runtime.schema.values import INT_END, INT_FIRST
from everyorder.runtime.script.ir.graph import (
    Block,
    Graph,
    Nested,
    Node,
    Place,
    Value,
    run_nested,
)
from everyorder.runtime.script.ir.node_kinds import AttributeForm, known_kind
from everyorder.runtime.script.ir.type_rules import DEEPEST_CONSTANT, parts_of

# Names of graphs that need no quotes.
_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
# Characters that a hint may not contain.
_FOREIGN = re.compile(r"[^A-Za-z0-9_.]")
_INDENT = "  "


class Printed(NamedTuple):
    """The text of a graph, with the objects that it only refers to.

    `nodes` has the node of each line; the first and last line of a block belong to the
    ends of the block. `names` maps each value to its name.
    """

    lines: tuple[str, ...]
    nodes: tuple[Node, ...]
    names: Mapping[Value, str]
    objects: tuple[Any, ...]
    functions: Mapping[str, Any]

    @property
    def text(self) -> str:
        """Return the whole text; every line ends with a newline."""
        return "".join(f"{line}\n" for line in self.lines)


def graph_text(graph: Graph, *, places: bool = True) -> str:
    """Return the text of a graph, with or without the places of nodes."""
    return printed(graph, places=places).text


def printed(graph: Graph, *, places: bool = True) -> Printed:
    """Return the text of a graph with the objects and functions that it refers to."""
    return _Printer(places).whole(graph)


# Assigned here so that the module of graphs does not import the printer.
Graph.__str__ = graph_text  # type: ignore[method-assign, assignment]  # as said


class _Printer:
    """One run over one graph and the graphs that it names."""

    def __init__(self, places: bool) -> None:
        self.places = places
        self.lines: list[str] = []
        self.nodes: list[Node] = []
        self.names: dict[Value, str] = {}
        self.objects: list[Any] = []
        self.functions: dict[str, Any] = {}
        # Identity -> name of a graph; identity -> number of an object.
        self.graph_names: dict[int, str] = {}
        self.numbers: dict[int, int] = {}
        self.graph_counts: dict[str, int] = {}
        self.graphs: list[Graph] = []
        # Blocks that were printed: a broken ring would never end.
        self.seen: set[int] = set()
        self.count = 0
        self.hints: dict[str, int] = {}

    def whole(self, graph: Graph) -> Printed:
        self.graph("graph", graph)
        # Each graph may name further graphs.
        for inner in self.graphs:
            self.graph(f"with {self.graph_names[id(inner)]} = graph", inner)
        return Printed(
            tuple(self.lines),
            tuple(self.nodes),
            self.names,
            tuple(self.objects),
            self.functions,
        )

    def graph(self, opening: str, graph: Graph) -> None:
        self.count, self.hints = 0, {}
        name = graph.name
        if name:
            path = name if _PATH.fullmatch(name) else default_text(name)
            opening = f"{opening} {path}"
        run_nested(self.block(opening, graph.block, ""))

    def block(self, opening: str, block: Block, indent: str) -> Nested:
        if id(block) in self.seen:
            return
        self.seen.add(id(block))
        parameters = ", ".join(map(self.typed, block.parameters))
        self.line(f"{indent}{opening}({parameters}):", block.entry)
        deeper = f"{indent}{_INDENT}"
        node = block.entry.next
        while node is not None and node is not block.exit and id(node) not in self.seen:
            self.seen.add(id(node))
            self.line(f"{deeper}{self.node(node)}", node)
            for place, inner in enumerate(node.blocks):
                yield self.block(f"block{place}", inner, f"{deeper}{_INDENT}")
            node = node.next
        end = "return" if indent == "" else "->"
        self.line(f"{deeper}{end} ({self.values(block.results)})", block.exit)

    def line(self, text: str, node: Node) -> None:
        self.lines.append(text)
        self.nodes.append(node)

    def node(self, node: Node) -> str:
        """Return outputs '=' kind [attributes] '(' inputs ')' ['#' place]."""
        # Inputs first: in a sound graph they have names already.
        inputs = self.values(node.inputs)
        kind, attributes = self.kind(node)
        outputs = ", ".join(map(self.typed, node.outputs))
        text = f"{kind}{attributes}({inputs})"
        if outputs:
            text = f"{outputs} = {text}"
        if self.places and node.place is not None:
            text = f"{text}  # {place_text(node.place)}"
        return text

    def typed(self, value: Value) -> str:
        return f"{self.name(value)} : {value.type}"

    def values(self, values: Iterable[Value]) -> str:
        return ", ".join(map(self.name, values))

    def name(self, value: Value) -> str:
        assigned = self.names.get(value)
        if assigned is not None:
            return assigned
        hint = ".".join(filter(None, _FOREIGN.sub("_", value.hint).split(".")))
        if hint:
            number = self.hints[hint] = self.hints.get(hint, 0) + 1
            name = f"%{hint}.{number}"
        else:
            name = f"%{self.count}"
        self.count += 1
        self.names[value] = name
        return name

    def kind(self, node: Node) -> tuple[str, str]:
        """Return kind, attributes := ['[' name '=' form (',' name '=' form)* ']']."""
        kind, left = node.kind, dict(node.attributes)
        row = known_kind(kind)
        fields: list[str] = []
        for name, form, _ in () if row is None else row.attributes:
            if name not in left:
                continue
            value = left.pop(name)
            if form is AttributeForm.GRAPH and isinstance(value, Graph):
                kind = self.graph_name(kind, value)
            else:
                fields.append(f"{name}={self.form(form, value, node)}")
        # Attributes that do not belong to the kind are printed all the same.
        fields += [f"{name}={self.object(left[name])}" for name in sorted(left)]
        return kind, f"[{', '.join(fields)}]" if fields else ""

    def graph_name(self, kind: str, graph: Graph) -> str:
        name = self.graph_names.get(id(graph))
        if name is None:
            number = self.graph_counts[kind] = self.graph_counts.get(kind, -1) + 1
            name = self.graph_names[id(graph)] = f"{kind}_{number}"
            self.graphs.append(graph)
        return name

    def form(self, form: AttributeForm, value: Any, node: Node) -> str:
        """form := string | number | '[' types ']' | value | object."""
        if form is AttributeForm.VALUE:
            return self.constant(
                value, _enums(node.outputs[0].type if node.outputs else None)
            )
        if form is AttributeForm.TEXT and value.__class__ is str:
            return default_text(value)
        if form is AttributeForm.INDEX and value.__class__ is int:
            return str(value)
        if form is AttributeForm.TYPES and _is_types(value):
            return f"[{', '.join(map(str, value))}]"
        if form is AttributeForm.FUNCTION:
            name = getattr(value, "qualname", None)
            if (
                isinstance(name, str)
                and self.functions.setdefault(name, value) is value
            ):
                return default_text(name)
        return self.object(value)

    def constant(self, value: Any, enums: Mapping[type, str], depth: int = 0) -> str:
        """value := word | number | string | call | path | '(' values ')' | object."""
        kind = value.__class__
        if kind is tuple and depth < DEEPEST_CONSTANT:
            inner = [self.constant(each, enums, depth + 1) for each in value]
            return f"({inner[0]},)" if len(inner) == 1 else f"({', '.join(inner)})"
        if kind in enums and _PATH.fullmatch(value.name or ""):
            return f"{enums[kind]}.{value.name}"
        if kind is int and not INT_FIRST <= value < INT_END:
            return self.object(value)
        write = _WRITERS.get(kind)
        return self.object(value) if write is None else write(value)

    def object(self, value: Any) -> str:
        """object := 'object' '(' number ')'."""
        number = self.numbers.setdefault(id(value), len(self.objects))
        if number == len(self.objects):
            self.objects.append(value)
        return f"object({number})"


# How constants are written, by their class; `repr` of a float reads back exactly.
_WRITERS: dict[type, Callable[[Any], str]] = {
    type(None): str,
    bool: str,
    int: str,
    float: repr,
    complex: lambda value: f"complex({value.real!r}, {value.imag!r})",
    str: default_text,
    Device: lambda value: f'device("{value}")',
}


def place_text(place: Place) -> str:
    """Return file, line and column as errors write them."""
    line, column = place.source.place(place.span[0])
    file = printable(place.source.file).strip() or "<text>"
    return f"{file}:{line}:{column}"


def _is_types(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(each, Type) for each in value)


def _enums(outer: Type | None) -> dict[type, str]:
    """Return the names of enums in the type of a constant, by Python class."""
    enums: dict[type, str] = {}
    todo = [] if outer is None else [outer]
    while todo:
        each = todo.pop()
        if isinstance(each, EnumType):
            python = each.declaration.python
            if python is not None:
                enums[python] = each.declaration.qualname
        elif isinstance(each, OptionalType | UnionType | TupleType):
            todo += parts_of(each)
    return enums
