"""Random programs: both executors, and the passes before, do the same."""

import operator
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from everyorder.runtime.schema.types import (
    BoolType,
    FloatType,
    IntType,
    ListType,
    StrType,
    TupleType,
    Type,
)
from everyorder.runtime.script.executor import executor, plan_of, script_frames
from everyorder.runtime.script.ir import Block, Graph, Node, Value, check, graph_text
from everyorder.runtime.script.primitives import ROWS
from everyorder.runtime.script.primitives.primitive_table import INLINE
from tests.script.executor.conftest import EXECUTORS
from tests.script.primitives.trial import canonical

INTS = ListType(IntType)
CONSTANTS: dict[Type, tuple[Any, ...]] = {
    IntType: (0, 1, -1, 2, 7, 2**62, -(2**63)),
    FloatType: (0.0, -0.0, 1.5, float("inf"), float("nan")),
    BoolType: (True, False),
    StrType: ("", "a", "bc", "7", "{0}{}", "'\n\"", "\ud800"),
}
TYPES = (*CONSTANTS, INTS)
# Whose results may be of any length, or take any time, or differ each time.
_LONG: tuple[str, ...] = (
    "mul.str",
    "mul.left_str",
    "imul.",
    "just.",
    "center.",
    "zfill.",
    "expandtabs.",
    "hash.",
    "pow.",
)
_LONG += ("lshift.", "factorial.", "comb.", "perm.", "iadd.", "extend.", "format")
USABLE = [
    row
    for row in ROWS
    if row.schema.arguments
    and all(each.type in TYPES for each in row.schema.arguments)
    and all(each.type in TYPES for each in row.schema.returns)
    and not any(part in row.name for part in _LONG)
]
LISTS = {
    "script::append.t": (INTS, IntType),
    "script::getitem.t": (INTS, IntType),
    "script::setitem.t": (INTS, IntType, IntType),
    "script::len.t": (INTS,),
    "script::add.t": (INTS, INTS),
    "script::pop.t": (INTS, IntType),
    "script::eq.list": (INTS, INTS),
}
LIST_RESULTS = {
    "script::getitem.t": IntType,
    "script::pop.t": IntType,
    "script::len.t": IntType,
    "script::add.t": INTS,
    "script::eq.list": BoolType,
}


class Growth:
    """A block that grows, and what is visible in it."""

    def __init__(self, random: Random, block: Block, visible: list[Value]) -> None:
        self.random, self.block = random, block
        self.visible = [*visible, *block.parameters]

    def put(self, kind: str, inputs: Any, types: Any, **attributes: Any) -> Node:
        node = Node(kind, inputs, types, attributes)
        self.block.append(node)
        self.visible += node.outputs
        return node

    def value(self, type_: Type) -> Value:
        known = [each for each in self.visible if each.type is type_]
        if known and self.random.random() < 0.8:
            return self.random.choice(known)
        if type_ is INTS:
            inputs = [self.value(IntType) for _ in range(self.random.randrange(3))]
            return self.put("prim::ListConstruct", inputs, [INTS]).output
        value = self.random.choice(CONSTANTS[type_])
        return self.put("prim::Constant", (), [type_], value=value).output

    def line(self, depth: int) -> None:
        way = self.random.random()
        if way < 0.15 and depth:
            self.branch(depth - 1)
        elif way < 0.3 and depth:
            self.loop(depth - 1)
        elif way < 0.35:
            self.put("prim::Print", [self.value(self.random.choice(TYPES))], ())
        elif way < 0.45:
            name = self.random.choice([*LISTS])
            inputs = [self.value(each) for each in LISTS[name]]
            given = LIST_RESULTS.get(name)
            self.put(name, inputs, [] if given is None else [given])
        else:
            row = self.random.choice(USABLE)
            inputs = [self.value(each.type) for each in row.schema.arguments]
            self.put(row.name, inputs, [each.type for each in row.schema.returns])

    def within(self, block: Block, depth: int, types: list[Type]) -> list[Value]:
        inner = type(self)(self.random, block, self.visible)
        for _ in range(self.random.randrange(1, 5)):
            inner.line(depth)
        return [inner.value(each) for each in types]

    def types(self) -> list[Type]:
        return [self.random.choice(TYPES) for _ in range(self.random.randrange(4))]

    def branch(self, depth: int) -> None:
        types = self.types()
        node = Node("prim::If", [self.value(BoolType)], types)
        for _ in range(2):
            block = node.add_block()
            block.exit.set_inputs(self.within(block, depth, types))
        self.block.append(node)
        self.visible += node.outputs

    def loop(self, depth: int) -> None:
        types = self.types()
        trips = self.put(
            "prim::Constant", (), [IntType], value=self.random.randrange(4)
        ).output
        inputs = [trips, self.value(BoolType), *map(self.value, types)]
        node = Node("prim::Loop", inputs, types)
        block = node.add_block()
        for each in (IntType, *types):
            block.add_parameter(each)
        block.exit.set_inputs(self.within(block, depth, [BoolType, *types]))
        self.block.append(node)
        self.visible += node.outputs


def random_program(random: Random) -> Graph:
    graph = Graph("random")
    for each in (IntType, FloatType, StrType, INTS):
        graph.block.add_parameter(each)
    growth = Growth(random, graph.block, [])
    for _ in range(random.randrange(2, 10)):
        growth.line(3)
    results = random.choices(growth.visible, k=4)
    type_ = TupleType(tuple(each.type for each in results))
    node = growth.put("prim::TupleConstruct", results, [type_])
    graph.block.exit.set_inputs([node.output])
    check(graph)
    return graph


def outcome(graph: Graph, capsys: pytest.CaptureFixture[str]) -> Any:
    """What a program gives or raises, prints, and does to its list."""
    mine = [3, 1, 2]
    try:
        given = plan_of(graph).execute(5, 2.5, "abc", mine)
        result: Any = "gave", canonical(given)
    except Exception as error:
        frames = [each.function for each in script_frames(error)]
        result = "raised", type(error), str(error), frames
    return result, mine, capsys.readouterr().out


def compare(
    seeds: range,
    capsys: pytest.CaptureFixture[str],
    program: Callable[[Random], Graph] = random_program,
) -> Counter[str]:
    counts: Counter[str] = Counter()
    for seed in seeds:
        graph = program(Random(seed))
        outcomes = {}
        for name, options in EXECUTORS.items():
            with executor(**options):
                outcomes[name] = outcome(graph, capsys)
        first, *others = outcomes.values()
        assert all(each == first for each in others), (
            f"seed {seed}\n{graph_text(graph)}\n{outcomes}"
        )
        counts[first[0][0]] += 1
        counts.update(node.kind for node in graph.nodes())
    return counts


def test_random_programs(capsys: pytest.CaptureFixture[str]) -> None:
    counts = compare(range(80), capsys)
    assert min(counts["raised"], counts["gave"]) > 15
    assert min(counts[f"prim::{each}"] for each in ("If", "Loop", "Print")) > 15


def test_a_wrong_word_of_the_text_is_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(INLINE, operator.getitem, "{0}[{1} - 1]")
    with pytest.raises(AssertionError, match="seed"):
        compare(range(200), capsys)


@pytest.mark.slow
def test_more_random_programs(capsys: pytest.CaptureFixture[str]) -> None:
    compare(range(150, 500), capsys)


@pytest.mark.nightly
def test_many_random_programs(capsys: pytest.CaptureFixture[str]) -> None:
    compare(range(500, 2_500), capsys)
