"""Each law finds what was planted against it, and the text shows what is broken."""

from collections.abc import Callable
from random import Random

import pytest

from everyorder.runtime.errors.script import BrokenGraph, GraphFault
from everyorder.runtime.schema.type_parser import MOST_MEMBERS
from everyorder.runtime.schema.types import (
    BoolType,
    DictType,
    FloatType,
    IntType,
    ListType,
    StrType,
    TensorType,
    TupleType,
    Type,
    TypeVariable,
    UnionType,
)
from everyorder.runtime.script.ir import Graph, Node, Value, check, parse_graph, printed
from everyorder.runtime.script.ir.checker import LAWS, LINKS, faults
from everyorder.runtime.script.ir.graph import PARAM, Block
from everyorder.runtime.script.ir.node_kinds import DEEPEST, KINDS
from tests.schema.programs import NODE, PROGRAM
from tests.script.ir.graphs import FUNCTIONS, TYPES, random_graph, rows

TEXT = """graph f(%x.1 : Tensor, %b.1 : bool):
  %2 : Tensor = demo::neg(%x.1)
  %y.1 : Tensor = prim::If(%b.1)
    block0():
      %4 : Tensor = demo::neg(%2)
      -> (%4)
    block1():
      -> (%2)
  %5 : Future(Tensor) = prim::fork_0(%y.1)
  %6 : Tensor = prim::FusionGroup_0(%y.1)
  return (%6, %5)
with prim::fork_0 = graph(%x.1 : Tensor):
  prim::Print(%x.1)
  return (%x.1)
with prim::FusionGroup_0 = graph(%x.1 : Tensor):
  %1 : Tensor = demo::neg(%x.1)
  return (%1)
"""


class Parts:
    """A sound graph, and its parts by name."""

    def __init__(self) -> None:
        self.graph = parse_graph(TEXT, namespace=PROGRAM, functions=FUNCTIONS)
        self.neg, self.branch, self.fork, self.fused = self.graph.block
        self.inner = next(iter(self.branch.blocks[0]))
        self.x, self.condition = self.graph.block.parameters
        self.forked: Graph = self.fork.attributes["graph"]


PLANTED: list[tuple[str, Callable[[Parts], object]]] = []


def planted(law: str) -> Callable[[Callable[[Parts], object]], None]:
    return lambda plant: PLANTED.append((law, plant))


@planted("blocks_are_rings")
def _(parts: Parts) -> None:
    parts.branch.previous = parts.branch


@planted("blocks_are_rings")
def _(parts: Parts) -> None:
    parts.branch.next = parts.neg


@planted("blocks_are_rings")
def _(parts: Parts) -> None:
    parts.branch.next = None


@planted("blocks_are_rings")
def _(parts: Parts) -> None:
    parts.inner.block = parts.graph.block


@planted("blocks_are_rings")
def _(parts: Parts) -> None:
    parts.graph.block.exit.next = parts.neg


@planted("blocks_are_rings")
def _(parts: Parts) -> None:
    parts.graph.block.entry.kind = "demo::neg"


@planted("blocks_are_rings")
def _(parts: Parts) -> None:
    parts.graph.block.entry.block = None


@planted("ends_are_ends")
def _(parts: Parts) -> None:
    parts.graph.block.append(Node(PARAM))


@planted("ends_are_ends")
def _(parts: Parts) -> None:
    parts.graph.block.exit.add_output(IntType)


@planted("ends_are_ends")
def _(parts: Parts) -> None:
    parts.graph.block.entry.attributes["name"] = "x"


@planted("blocks_have_owners")
def _(parts: Parts) -> None:
    parts.branch.blocks[0].owner = parts.neg


@planted("blocks_have_owners")
def _(parts: Parts) -> None:
    parts.branch.blocks[1] = parts.branch.blocks[0]


@planted("blocks_have_owners")
def _(parts: Parts) -> None:
    parts.graph.block.owner = parts.neg


@planted("blocks_are_not_too_deep")
def _(parts: Parts) -> None:
    nest(parts.graph.block, parts.condition, DEEPEST)


@planted("graphs_have_one_node")
def _(parts: Parts) -> None:
    parts.fused.attributes["graph"] = parts.forked


@planted("graphs_have_one_node")
def _(parts: Parts) -> None:
    parts.fused.attributes["graph"] = parts.graph


@planted("outputs_know_their_nodes")
def _(parts: Parts) -> None:
    parts.neg.output.index = 1


@planted("outputs_know_their_nodes")
def _(parts: Parts) -> None:
    parts.neg.output.node = parts.branch


@planted("uses_have_two_ends")
def _(parts: Parts) -> None:
    parts.x.uses.clear()


@planted("uses_have_two_ends")
def _(parts: Parts) -> None:
    parts.x.uses *= 2


@planted("uses_have_two_ends")
def _(parts: Parts) -> None:
    parts.x.uses.append((parts.branch, 0))


@planted("uses_have_two_ends")
def _(parts: Parts) -> None:
    parts.x.uses.append((parts.neg, 5))


@planted("uses_have_two_ends")
def _(parts: Parts) -> None:
    # A node that was put nowhere.
    Node("demo::neg", [parts.x], [TensorType])


@planted("uses_have_two_ends")
def _(parts: Parts) -> None:
    stranger = Node("demo::neg", [], [TensorType])
    parts.inner.set_input(0, stranger.output)


@planted("values_are_defined_before_use")
def _(parts: Parts) -> None:
    parts.neg.set_input(0, parts.branch.output)


@planted("values_are_defined_before_use")
def _(parts: Parts) -> None:
    # Of a block that is left.
    parts.fused.set_input(0, parts.inner.output)


@planted("values_are_defined_before_use")
def _(parts: Parts) -> None:
    # Of the other branch.
    parts.branch.blocks[1].exit.set_input(0, parts.inner.output)


@planted("values_are_defined_before_use")
def _(parts: Parts) -> None:
    # The output of the very node.
    parts.inner.set_input(0, parts.branch.output)


@planted("values_are_defined_before_use")
def _(parts: Parts) -> None:
    # What another graph has: nothing is captured.
    next(iter(parts.forked.block)).set_input(0, parts.x)


@planted("values_are_defined_before_use")
def _(parts: Parts) -> None:
    parts.branch.unlink().insert_before(parts.neg)


@planted("kinds_are_known")
def _(parts: Parts) -> None:
    parts.neg.kind = "demo::no"


@planted("kinds_are_known")
def _(parts: Parts) -> None:
    parts.neg.kind = "prim::Nothing"


@planted("kinds_are_known")
def _(parts: Parts) -> None:
    parts.neg.kind = "neg"


@planted("counts_agree")
def _(parts: Parts) -> None:
    parts.neg.add_input(parts.x)


@planted("counts_agree")
def _(parts: Parts) -> None:
    parts.neg.add_output(TensorType)


@planted("counts_agree")
def _(parts: Parts) -> None:
    parts.branch.add_block()


@planted("attributes_agree")
def _(parts: Parts) -> None:
    parts.neg.attributes["name"] = "x"


@planted("attributes_agree")
def _(parts: Parts) -> None:
    del parts.fork.attributes["graph"]


def attribute(
    kind: str, inputs: int, outputs: list[Type], **attributes: object
) -> None:
    def plant(parts: Parts) -> None:
        values = [parts.x] * inputs
        node = Node(kind, values, outputs, attributes)
        parts.graph.block.append(node)

    PLANTED.append(("attributes_agree", plant))


attribute("prim::TupleIndex", 1, [IntType], index=-1)
attribute("prim::TupleIndex", 1, [IntType], index="0")
attribute("prim::isinstance", 1, [BoolType], types=[IntType])
attribute("prim::isinstance", 1, [BoolType], types=(1,))
attribute("prim::isinstance", 1, [BoolType], types=(TypeVariable("t"),))
attribute("prim::GetAttr", 1, [IntType], name=1)
attribute("prim::Constant", 0, [IntType], function=len)
attribute("prim::fork", 1, [IntType], graph=None)


@planted("types_are_inferred")
def _(parts: Parts) -> None:
    parts.neg.output.type = IntType


@planted("types_are_inferred")
def _(parts: Parts) -> None:
    parts.x.type = FloatType


def typed(type_: Type) -> None:
    def plant(parts: Parts) -> None:
        parts.graph.block.add_parameter(type_)

    PLANTED.append(("types_can_be_written", plant))


def nested(depth: int) -> Type:
    type_: Type = IntType
    for _ in range(depth):
        type_ = ListType(type_)
    return type_


typed(TypeVariable("t"))
typed(ListType(TypeVariable("t")))
typed(DictType(NODE, IntType))
typed(DictType(IntType, TypeVariable("t")))
typed(UnionType(tuple(TupleType((IntType,) * n) for n in range(MOST_MEMBERS + 1))))
typed(nested(64))


@planted("fused_graphs_only_compute")
def _(parts: Parts) -> None:
    block = parts.fused.attributes["graph"].block
    block.append(Node("prim::Print", block.parameters))


@planted("fused_graphs_only_compute")
def _(parts: Parts) -> None:
    block = parts.fused.attributes["graph"].block
    made = Node("demo::add_", [*block.parameters] * 2, [TensorType])
    block.append(made)


def nest(block: Block, condition: Value, depth: int) -> None:
    """Branches within branches."""
    for _ in range(depth):
        node = block.append(Node("prim::If", [condition]))
        block = node.add_block()
        node.add_block()


def test_the_graph_is_sound() -> None:
    check(Parts().graph, rows=rows)


@pytest.mark.parametrize(("law", "plant"), PLANTED)
def test_what_is_planted_is_found(law: str, plant: Callable[[Parts], object]) -> None:
    parts = Parts()
    plant(parts)
    assert law in {name for name, _ in faults(parts.graph, rows)}
    with pytest.raises(BrokenGraph) as caught:
        check(parts.graph, rows=rows)
    assert law in str(caught.value)


def test_each_law_has_something_planted_and_says_what_it_is() -> None:
    laws = {law.__name__ for law in LINKS + LAWS}
    assert {law for law, _ in PLANTED} == laws
    assert all(law.__doc__ for law in LINKS + LAWS)


def test_as_deep_as_may_be_is_sound_and_reads_back() -> None:
    parts = Parts()
    nest(parts.graph.block, parts.condition, DEEPEST - 1)
    check(parts.graph, rows=rows)
    text = printed(parts.graph).text
    assert printed(parse_graph(text, namespace=PROGRAM)).text == text


def test_as_deep_as_types_may_be() -> None:
    parts = Parts()
    parts.graph.block.add_parameter(nested(63))
    check(parts.graph, rows=rows)
    text = printed(parts.graph).text
    assert printed(parse_graph(text, namespace=PROGRAM)).text == text


def test_no_depth_exhausts_the_stack() -> None:
    parts = Parts()
    nest(parts.graph.block, parts.condition, 3000)
    found = faults(parts.graph, rows)
    assert [law for law, _ in found] == ["blocks_are_not_too_deep"] * 2
    assert sum(1 for _ in parts.graph.nodes()) == 3005
    parts.graph.block.clear()
    assert len(parts.condition.uses) == 0


def test_the_text_shows_the_faults_in_it() -> None:
    parts = Parts()
    parts.neg.output.type = IntType
    parts.branch.set_input(0, parts.x)
    with pytest.raises(BrokenGraph) as caught:
        check(parts.graph, "inlining", rows)
    error = caught.value
    assert error.fields() == {
        "graph": "f",
        "stage": "inlining",
        "faults": (
            GraphFault("types_are_inferred", 2, "%2 is of type Tensor, and says int"),
            GraphFault("types_are_inferred", 3, "the condition is of type Tensor"),
            GraphFault(
                "types_are_inferred", 5, "argument `Tensor self`: int is no Tensor"
            ),
        ),
        "text": error.text,
    }
    assert str(error) == (
        "The graph `f` has 3 faults after inlining:\n"
        "  graph f(%x.1 : Tensor, %b.1 : bool):\n"
        "    %2 : int = demo::neg(%x.1)\n"
        "    ^ types_are_inferred: %2 is of type Tensor, and says int\n"
        "    %y.1 : Tensor = prim::If(%x.1)\n"
        "    ^ types_are_inferred: the condition is of type Tensor\n"
        "      block0():\n"
        "        %4 : Tensor = demo::neg(%2)\n"
        "        ^ types_are_inferred: argument `Tensor self`: int is no Tensor\n"
        "        -> (%4)\n"
        "      block1():\n"
        "        -> (%2)\n"
        "    %5 : Future(Tensor) = prim::fork_0(%y.1)\n"
        "    %6 : Tensor = prim::FusionGroup_0(%y.1)\n"
        "    return (%6, %5)\n"
        "  with prim::fork_0 = graph(%x.1 : Tensor):\n"
        "    prim::Print(%x.1)\n"
        "    return (%x.1)\n"
        "  with prim::FusionGroup_0 = graph(%x.1 : Tensor):\n"
        "    %1 : Tensor = demo::neg(%x.1)\n"
        "    return (%1)"
    )


def test_one_fault_of_a_graph_without_a_name() -> None:
    graph = Graph()
    graph.block.add_parameter(TypeVariable("t"))
    with pytest.raises(BrokenGraph) as caught:
        check(graph)
    assert str(caught.value) == (
        "The graph has 1 fault:\n"
        "  graph(%0 : t):\n"
        "  ^ types_can_be_written: %0 has a type with the variable t\n"
        "    return ()"
    )


def damage(random: Random, graph: Graph, nodes: list[Node]) -> None:
    """Something is changed past the methods, or by them without sense."""
    node, other = random.choice(nodes), random.choice(nodes)
    values = [value for each in nodes for value in each.outputs] or [
        *graph.block.parameters
    ]
    match random.randrange(12):
        case 0:
            node.next = random.choice((None, other, node))
        case 1:
            node.previous = random.choice((None, other, node))
        case 2:
            node.block = random.choice((None, other.block))
        case 3:
            node.kind = random.choice([*KINDS, "demo::neg", "x", ""])
        case 4 if node.outputs:
            node.outputs[0].type = random.choice(TYPES)
        case 5 if values:
            node.add_input(random.choice(values))
        case 6 if node.inputs and values:
            node._inputs[0] = random.choice(values)
        case 7 if values:
            random.choice(values).uses.append((other, random.randrange(3)))
        case 8:
            node.blocks = random.choice(([], [*other.blocks, *node.blocks]))
        case 9:
            name = random.choice([*node.attributes, "name", "graph"])
            junk = (None, "a", -1, 1.5, (1,), [IntType], other, graph, TensorType)
            node.attributes[name] = random.choice(junk)
        case 10 if node.attributes:
            node.attributes.popitem()
        case _:
            node.add_output(random.choice(TYPES)).index = random.randrange(3)


def test_whatever_is_damaged_the_checker_answers() -> None:
    broken = 0
    for seed in range(2000):
        random = Random(seed)
        graph = random_graph(random, 6)
        nodes = [*graph.nodes()]
        for _ in range(random.randrange(1, 4) if nodes else 0):
            damage(random, graph, nodes)
        found = faults(graph, rows)
        if found:
            broken += 1
            with pytest.raises(BrokenGraph) as caught:
                check(graph, rows=rows)
            assert len(caught.value.faults) == len(found)
            assert str(caught.value)
        else:
            drawn = printed(graph)
            again = parse_graph(
                drawn.text,
                namespace=PROGRAM,
                objects=drawn.objects,
                functions=FUNCTIONS,
            )
            assert (
                printed(again, places=False).text == printed(graph, places=False).text
            )
    assert broken > 1500


def test_faults_stand_under_their_lines_whatever_texts_are_in_them() -> None:
    graph = Graph("f")
    for value in ("a\u2028b\x85c\x1cd", 1):
        graph.block.append(
            Node("prim::Constant", (), (StrType,), attributes={"value": value})
        )
    with pytest.raises(BrokenGraph) as caught:
        check(graph)
    assert str(caught.value) == (
        """\
The graph `f` has 1 fault:
  graph f():
    %0 : str = prim::Constant[value="a b c\\034d"]()
    %1 : str = prim::Constant[value=1]()
    ^ types_are_inferred: the value is not a constant of type str
    return ()"""
    )
