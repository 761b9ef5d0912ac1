"""Program graphs: their data structures, their text form and their invariants."""

from everyorder.runtime.script.ir.checker import check
from everyorder.runtime.script.ir.graph import (
    Block,
    Graph,
    Node,
    Place,
    Value,
    copy_graph,
    copy_node,
    copy_nodes,
)
from everyorder.runtime.script.ir.node_kinds import (
    KINDS,
    AttributeForm,
    Count,
    NodeAttribute,
    NodeEffect,
    NodeKind,
    Rows,
    Sharing,
    effects_of,
    known_kind,
    register_kind,
    row_of,
    writes_of,
)
from everyorder.runtime.script.ir.parser import parse_graph
from everyorder.runtime.script.ir.printer import Printed, graph_text, printed

__all__ = [
    "KINDS",
    "AttributeForm",
    "Block",
    "Count",
    "Graph",
    "Node",
    "NodeAttribute",
    "NodeEffect",
    "NodeKind",
    "Place",
    "Printed",
    "Rows",
    "Sharing",
    "Value",
    "check",
    "copy_graph",
    "copy_node",
    "copy_nodes",
    "effects_of",
    "graph_text",
    "known_kind",
    "parse_graph",
    "printed",
    "register_kind",
    "row_of",
    "writes_of",
]
