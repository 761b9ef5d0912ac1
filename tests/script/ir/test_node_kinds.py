"""The table of kinds, the rows of operators, and effects with those of what is run."""

import pytest

from everyorder.runtime.dispatch.dispatcher import Dispatcher
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.script.ir import (
    KINDS,
    Count,
    Node,
    NodeEffect,
    Sharing,
    effects_of,
    parse_graph,
    row_of,
    writes_of,
)
from everyorder.runtime.script.ir.node_kinds import DEEPEST, bodies
from tests.script.ir.graphs import rows

# What each kind does besides, once more: nothing is said in passing.
EFFECTS: dict[str, tuple[str, str]] = {
    "prim::Param": ("", "ANYTHING"),
    "prim::Return": ("", "NOTHING"),
    "prim::Constant": ("", "ANYTHING"),
    "prim::If": ("RUNS", "BLOCKS"),
    "prim::Loop": ("RUNS", "BLOCKS"),
    "prim::With": ("RUNS UNKNOWN", "BLOCKS"),
    "prim::TupleConstruct": ("", "HOLDS"),
    "prim::TupleUnpack": ("", "PARTS"),
    "prim::TupleIndex": ("", "PARTS"),
    "prim::ListConstruct": ("FRESH", "HOLDS"),
    "prim::ListUnpack": ("READS MAY_RAISE", "PARTS"),
    "prim::DictConstruct": ("FRESH MAY_RAISE", "HOLDS"),
    "prim::CreateObject": ("FRESH", "NOTHING"),
    "prim::GetAttr": ("READS", "PARTS"),
    "prim::SetAttr": ("", "STORES"),
    "prim::CallFunction": ("UNKNOWN", "ANYTHING"),
    "prim::CallMethod": ("UNKNOWN", "ANYTHING"),
    "prim::CallInterface": ("UNKNOWN", "ANYTHING"),
    "prim::PythonOp": ("UNKNOWN", "ANYTHING"),
    "prim::Closure": ("", "ANYTHING"),
    "prim::forkClosure": ("UNKNOWN", "ANYTHING"),
    "prim::awaitableClosure": ("FRESH", "ANYTHING"),
    "prim::fork": ("FRESH RUNS", "ANYTHING"),
    "prim::awaitable": ("FRESH", "ANYTHING"),
    "prim::wait": ("UNKNOWN", "ANYTHING"),
    "prim::awaitable_wait": ("UNKNOWN", "ANYTHING"),
    "prim::awaitable_nowait": ("FRESH", "HOLDS"),
    "prim::RaiseException": ("MAY_RAISE", "NOTHING"),
    "prim::Print": ("IO READS", "NOTHING"),
    "prim::warn": ("IO READS MAY_RAISE", "NOTHING"),
    "prim::Uninitialized": ("", "NOTHING"),
    "prim::unchecked_cast": ("", "SAME"),
    "prim::isinstance": ("", "NOTHING"),
    "prim::FusionGroup": ("RUNS", "NOTHING"),
    "demo::neg": ("READS", "SCHEMA"),
    "demo::add.Tensor": ("READS MAY_RAISE", "SCHEMA"),
    "demo::add_": ("READS MAY_RAISE", "SCHEMA"),
    "demo::rand": ("READS MAY_RAISE NONDETERMINISTIC", "SCHEMA"),
    "demo::pure": ("", "SCHEMA"),
    "demo::unknown": ("READS MAY_RAISE UNKNOWN", "ANYTHING"),
}


def effect(words: str) -> NodeEffect:
    found = NodeEffect.NONE
    for word in words.split():
        found |= NodeEffect[word]
    return found


@pytest.mark.parametrize("name", EFFECTS)
def test_effects_and_sharing(name: str) -> None:
    row = rows(name)
    assert row is not None
    assert row.name == name
    words, sharing = EFFECTS[name]
    assert (row.effects, row.sharing) == (effect(words), Sharing[sharing])


def test_every_kind_of_the_table_is_looked_at() -> None:
    assert {*KINDS} <= {*EFFECTS}
    written = {name: row.writes for name, row in KINDS.items() if row.writes}
    assert written == {"prim::SetAttr": (0,)}


def test_the_row_of_an_operator_is_its_definition() -> None:
    row = rows("demo::add_")
    assert row is not None
    assert row is rows("demo::add_")
    assert (row.inputs, row.outputs, row.writes) == (Count(2, 2), Count(1, 1), (0,))
    assert str(row.schema) == "demo::add_(Tensor(a!) self, Tensor other) -> Tensor(a!)"
    row = rows("demo::show")
    assert row is not None
    assert row.inputs == Count(1, None)


def test_what_has_no_row() -> None:
    for name in ("demo::no", "neg", "", "prim::neg", "::", "demo::add"):
        assert rows(name) is None


def test_the_row_is_that_of_the_operator_that_is_registered_now() -> None:
    dispatcher = Dispatcher()

    def writes() -> tuple[int, ...] | None:
        row = row_of("later::f", dispatcher)
        return None if row is None else row.writes

    assert writes() is None
    library = Library("later", dispatcher=dispatcher)
    first = library.define("f(Tensor x) -> Tensor")
    assert writes() == ()
    first.close()
    assert writes() is None
    with library.define("f(Tensor(a!) x) -> Tensor(a!)"):
        assert writes() == (0,)
    library.impl("f", lambda x: x, "CPU")
    assert writes() is None
    library.close()


def test_operators_of_the_runtime_are_loaded_and_do_not_count_as_raising() -> None:
    row = row_of("core::neg")
    assert row is not None
    assert row.effects == NodeEffect.READS
    row = row_of("core::neg_")
    assert row is not None
    assert row.writes == (0,)


def test_counts() -> None:
    shown = [
        (str(each), each.takes(1), each.takes(2))
        for each in (Count(0, 0), Count(1, 2), Count(1, None), Count(2, 2))
    ]
    assert shown == [
        ("0", False, False),
        ("1 to 2", True, True),
        ("1 or more", True, True),
        ("2", False, True),
    ]


TEXT = """graph(%b : bool, %t : Tensor):
  prim::If(%b)
    block0():
      prim::If(%b)
        block0():
          {}
          -> ()
        block1():
          -> ()
      -> ()
    block1():
      -> ()
  return ()
"""


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%x : Tensor = demo::neg(%t)", "RUNS READS"),
        ("prim::Print(%t)", "RUNS READS IO"),
        ("%x : Tensor = demo::add_(%t, %t)", "RUNS READS MAY_RAISE"),
        ("%x : Tensor = demo::no(%t)", "RUNS UNKNOWN"),
    ],
)
def test_a_node_does_what_its_blocks_do(line: str, words: str) -> None:
    (node,) = parse_graph(TEXT.format(line)).block
    assert effects_of(node, rows) == effect(words)
    written = [(user.kind, place) for user, place in writes_of(node, rows)]
    assert written == [("demo::add_", 0)] * ("add_" in line)


@pytest.mark.parametrize(
    ("kind", "type_", "words"),
    [
        ("fork", "Future", "FRESH RUNS IO READS"),
        # Nothing runs before it is waited for.
        ("awaitable", "Await", "FRESH"),
    ],
)
def test_a_fork_does_what_its_graph_does(kind: str, type_: str, words: str) -> None:
    text = (
        "graph(%t : Tensor):\n"
        f"  %f : {type_}(NoneType) = prim::{kind}_0(%t)\n"
        "  return ()\n"
        f"with prim::{kind}_0 = graph(%t : Tensor):\n"
        "  prim::Print(%t)\n"
        "  return ()\n"
    )
    (node,) = parse_graph(text).block
    assert effects_of(node, rows) == effect(words)


def test_depth_exhausts_no_stack() -> None:
    outer = inner = Node("prim::If")
    for _ in range(20 * DEEPEST):
        inner = inner.add_block().append(Node("prim::If"))
    inner.add_block().append(Node("prim::SetAttr"))
    assert effects_of(outer) == NodeEffect.RUNS
    assert [place for _, place in writes_of(outer)] == [0]


def test_bodies_of_a_node_without_its_graph() -> None:
    assert [*bodies(Node("prim::fork"), KINDS["prim::fork"])] == []
