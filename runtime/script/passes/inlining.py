"""Inlining: the body of a function, or method, in place of a call of it.

True only here: which calls are known, and when none is inlined.

Rules:
- a call of a function that is a constant is known, and of a method of a class, or of a
  module, as what lies with a declaration stays; one through an interface is not;
- a function that calls itself, directly or through others, is inlined once at most
  where it is called from outside, and its own calls of itself stay;
- a graph does not grow beyond `MOST_NODES`;
- what is inlined is a copy; its nodes keep their places in the source of the function.
"""

from runtime.schema.declaration import ModuleType, ScriptClassType
from runtime.script.ir import Graph, Node
from runtime.script.ir.copy import copy_nodes
from runtime.script.ir.type_rules import called
from runtime.script.passes.splicing import of_type, replace_node
from runtime.script.program import Function

# Source: programs of some thousand nodes are compiled in less than a second.
MOST_NODES = 10_000


def inline_calls(graph: Graph) -> int:
    """Inline all known calls, also those in what is inlined; gives how many."""
    size = sum(1 for _ in graph.nodes())
    count = 0
    # A call, and the functions that it lies in.
    todo = [(node, frozenset[int]()) for node in graph.nodes() if callee(node)]
    while todo:
        node, around = todo.pop()
        function = callee(node)
        assert function is not None, "only calls that are known are looked at"
        if id(function) in around:
            continue
        body = function.graph
        if body is graph:
            continue
        added = sum(1 for _ in body.nodes())
        if size + added > MOST_NODES:
            continue
        size += added
        count += 1
        todo += [
            (each, around | {id(function)})
            for each in _inline(node, body)
            if callee(each)
        ]
    return count


def callee(node: Node) -> Function | None:
    """The function that a call runs, or None if it is no call, or not known which."""
    found = None
    if node.kind == "prim::CallFunction":
        found = called(node)
    elif node.kind == "prim::CallMethod":
        owner = node.inputs[0].type
        if isinstance(owner, ScriptClassType | ModuleType):
            found = owner.declaration.functions.get(node.attributes["name"])
    return found if isinstance(found, Function) else None


def _inline(node: Node, body: Graph) -> list[Node]:
    """Put the body of a function in place of a call; gives the nodes that this made."""
    is_function = node.kind == "prim::CallFunction"
    given = node.inputs[1:] if is_function else node.inputs
    parameters = body.block.parameters
    values = {
        parameter: of_type(value, parameter.type, node)
        for parameter, value in zip(parameters, given, strict=True)
    }
    before, block = node.before, node.block
    assert before is not None, "a call is in a block"
    assert block is not None, "a call is in a block"
    results = copy_nodes(body.block, node, values)
    made: list[Node] = []
    each = before.behind
    while each is not None and each is not node:
        made += [each, *each.nodes_within()]
        each = each.behind
    replace_node(node, results)
    return made
