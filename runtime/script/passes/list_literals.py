"""List literals: what is asked of a list that is written out, and that nobody changes.

True only here: which questions the elements themselves answer.

Rules:
- a list counts that a `prim::ListConstruct` makes and that nothing writes to, whoever
  may hold it;
- its length is a constant, an element at a constant index is the value itself, and
  unpacking it gives the elements; an index out of range stays, and raises;
- the list itself goes as dead code, when nobody is left who uses it.
"""

from collections.abc import Callable, Sequence

from runtime.schema.types import IntType
from runtime.script.ir import Graph, Node, Value
from runtime.script.passes.aliases import Aliases
from runtime.script.passes.splicing import constant_before, is_constant, replace_node

LIST = "prim::ListConstruct"


def erase_list_literals(graph: Graph) -> int:
    """Answer what is asked of lists that are written out; gives how much that was."""
    asked = [
        node
        for node in graph.nodes()
        if node.kind in _ANSWERS and node.inputs[0].node.kind == LIST
    ]
    if not asked:
        return 0
    aliases = Aliases(graph)
    count = 0
    for node in asked:
        literal = node.inputs[0]
        if aliases.is_written(literal):
            continue
        answer = _ANSWERS[node.kind](node, literal.node.inputs)
        if answer is not None:
            replace_node(node, answer)
            count += 1
    return count


_Answer = Sequence[Value] | None


def _length(node: Node, elements: Sequence[Value]) -> _Answer:
    return [constant_before(node, len(elements), IntType, node.output.hint)]


def _element(node: Node, elements: Sequence[Value]) -> _Answer:
    if not is_constant(node.inputs[1]):
        return None
    index = node.inputs[1].node.attributes["value"]
    return [elements[index]] if -len(elements) <= index < len(elements) else None


def _all(node: Node, elements: Sequence[Value]) -> _Answer:
    return elements if len(node.outputs) == len(elements) else None


_ANSWERS: dict[str, Callable[[Node, Sequence[Value]], _Answer]] = {
    "script::len.t": _length,
    "script::getitem.t": _element,
    "prim::ListUnpack": _all,
}
