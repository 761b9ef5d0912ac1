"""Planted miscompilations: each is found by programs that are run before and after."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest

from everyorder.runtime.dispatch.dispatcher import default_dispatcher
from everyorder.runtime.errors.script import BrokenGraph
from everyorder.runtime.schema.types import FloatType
from everyorder.runtime.script.ir import (
    KINDS,
    Graph,
    Node,
    NodeEffect,
    Sharing,
    copy_graph,
    row_of,
)
from everyorder.runtime.script.passes import (
    aliases,
    dce_cse,
    folding,
    peephole,
    run_passes,
)
from everyorder.runtime.script.passes.inline import splice
from everyorder.runtime.script.passes.peephole import (
    PatternCall,
    PatternConstant,
    PeepholeRule,
)
from tests.script.passes.programs import Outcome, outcome, patched, random_program
from tests.script.passes.test_programs import LEGS, ROUNDS
from tests.script.passes.texts import read

Planting = AbstractContextManager[None]


@dataclass
class Fault:
    """What is planted, and the passes that then go wrong."""

    leg: str
    plant: Callable[[], Planting]


def _row(kind: str, **changes: Any) -> Callable[[], Planting]:
    """A row of the table of kinds, or of an operator, with something else in it."""

    def plant() -> Planting:
        row = row_of(kind)
        assert row is not None
        changed = replace(row, **changes)
        if kind in KINDS:
            return patched(KINDS, kind, changed)
        entry = default_dispatcher().state.find(kind.partition("::")[0], kind)
        assert entry is not None
        assert entry.definition is not None
        return patched(entry.definition.reading.memo, "kind", changed)

    return plant


def _without(kind: str, effect: NodeEffect) -> Callable[[], Planting]:
    row = row_of(kind)
    assert row is not None
    assert effect in row.effects
    return _row(kind, effects=row.effects & ~effect)


def _instead(target: Any, name: str, value: Any) -> Callable[[], Planting]:
    return lambda: patched(target, name, value)


@contextmanager
def _wrong_rule() -> Iterator[None]:
    wrong = PeepholeRule(
        {"x": FloatType},
        PatternCall("script::add.float", ("x", PatternConstant(0.0))),
        "x",
    )
    with patched(peephole._BY_KIND, "script::add.float", [wrong]):
        yield


@contextmanager
def _nothing_is_outside() -> Iterator[None]:
    whole = dce_cse._Marking.__init__

    class Blind(aliases.Aliases):
        outside = property(lambda self: 0, lambda self, value: None)

    with patched(dce_cse, "Aliases", Blind):
        assert whole is dce_cse._Marking.__init__
        yield


def _kind_of(value: Any) -> Any:
    return value if value == value else "nan"


# Where the first program is that shows a fault: the search begins there.
SEEDS: dict[str, int] = {
    "raising is no effect": 57,
    "a division does not raise": 71,
    "a call does nothing": 17,
    "a call gives new memory": 369,
    "an attribute is set without a write": 2,
    "an attribute is new memory": 7,
    "a list does not hold its elements": 456,
    "a tuple does not hold its elements": 9,
    "a branch gives new memory": 31,
    "a loop gives new memory": 90,
    "a wait does nothing": 173,
    "an element is new memory": 337,
    "an operator in place writes to nothing": 82,
    "drawn numbers are always the same": 16,
    "drawing is no effect": 16,
    "a live value keeps no memory": 4,
    "writes spoil nothing": 55,
    "nothing is written to": 30,
    "nobody sees two from one": 95,
    "lists of constants are never written to": 55,
    "the other branch is taken": 1,
    "a turned branch is not turned": 652,
    "a condition is known in both blocks": 1,
}
DEAD, MERGE = "remove_dead_code", "merge_subexpressions"
FAULTS: dict[str, Fault] = {
    "printing is no effect": Fault(DEAD, _row("prim::Print", effects=NodeEffect.READS)),
    "raising is no effect": Fault(
        DEAD, _row("prim::RaiseException", effects=NodeEffect.NONE)
    ),
    "a division does not raise": Fault(
        DEAD, _without("script::floordiv.int", NodeEffect.MAY_RAISE)
    ),
    "a call does nothing": Fault(
        DEAD, _row("prim::CallFunction", effects=NodeEffect.NONE)
    ),
    "a call gives new memory": Fault(
        DEAD, _row("prim::CallFunction", effects=NodeEffect.IO, sharing=Sharing.NOTHING)
    ),
    "an attribute is set without a write": Fault(
        DEAD, _row("prim::SetAttr", writes=())
    ),
    "an attribute does not hold what it is set to": Fault(
        MERGE, _row("prim::SetAttr", sharing=Sharing.NOTHING)
    ),
    "an attribute is new memory": Fault(
        DEAD, _row("prim::GetAttr", sharing=Sharing.NOTHING)
    ),
    "an attribute is never another": Fault(
        MERGE, _row("prim::GetAttr", effects=NodeEffect.NONE)
    ),
    "a list does not hold its elements": Fault(
        MERGE, _row("prim::ListConstruct", sharing=Sharing.NOTHING)
    ),
    "a tuple does not hold its elements": Fault(
        DEAD, _row("prim::TupleConstruct", sharing=Sharing.NOTHING)
    ),
    "a branch gives new memory": Fault(DEAD, _row("prim::If", sharing=Sharing.NOTHING)),
    "a loop gives new memory": Fault(DEAD, _row("prim::Loop", sharing=Sharing.NOTHING)),
    "a wait does nothing": Fault(
        DEAD, _row("prim::awaitable_wait", effects=NodeEffect.NONE)
    ),
    "an element is new memory": Fault(
        DEAD, _row("script::getitem.t", sharing=Sharing.NOTHING)
    ),
    "appending writes to nothing": Fault(DEAD, _row("script::append.t", writes=())),
    "an operator in place writes to nothing": Fault(
        DEAD, _row("core::zero_", writes=())
    ),
    "a view is new memory": Fault(DEAD, _row("core::t", sharing=Sharing.NOTHING)),
    "drawn numbers are always the same": Fault(
        MERGE, _without("core::rand", NodeEffect.NONDETERMINISTIC)
    ),
    "drawing is no effect": Fault(
        DEAD, _without("core::rand", NodeEffect.NONDETERMINISTIC)
    ),
    "what is written to a parameter is lost": Fault(DEAD, _nothing_is_outside),
    "a live value keeps no memory": Fault(
        DEAD, _instead(aliases.Aliases, "region", lambda self, value: 0)
    ),
    "writes spoil nothing": Fault(
        MERGE, _instead(dce_cse._Merging, "invalidate", lambda self, written: None)
    ),
    "nothing is written to": Fault(
        MERGE, _instead(aliases.Aliases, "is_written", lambda self, value: False)
    ),
    "nobody sees two from one": Fault(
        MERGE, _instead(dce_cse._Merging, "is_seen", lambda self, value: False)
    ),
    "lists of constants are never written to": Fault(
        "propagate_all",
        _instead(aliases.Aliases, "is_written", lambda self, value: False),
    ),
    "the other branch is taken": Fault(
        "propagate_constants",
        _instead(
            folding,
            "splice",
            lambda node, block: splice(
                node, next(each for each in node.blocks if each is not block)
            ),
        ),
    ),
    "equal numbers are one constant": Fault(
        "pool_constants", _instead(folding, "identity", _kind_of)
    ),
    "a float plus zero is the float": Fault("simplify", _wrong_rule),
    "a turned branch is not turned": Fault(
        "simplify",
        _instead(
            peephole._RULES,
            "prim::If",
            (
                lambda node: (
                    0
                    if node.inputs[0].node.kind != peephole.NOT
                    else (node.set_input(0, node.inputs[0].node.inputs[0]), 1)[1]
                ),
            ),
        ),
    ),
    "a condition is known in both blocks": Fault(
        "simplify", _instead(Node, "is_within", lambda node, block: True)
    ),
}

# Where programs show too seldom what goes wrong, one that does.
WITNESSES: dict[str, str] = {
    "an attribute does not hold what it is set to": """\
graph():
  %n : int = prim::Constant[value=1]()
  %l : int[] = prim::ListConstruct(%n)
  %c : __torch__.passes.Cell = prim::CreateObject()
  prim::SetAttr[name="items"](%c, %l)
  %a : int = script::len.t(%l)
  %m : int[] = prim::GetAttr[name="items"](%c)
  script::append.t(%m, %n)
  %b : int = script::len.t(%l)
  return (%a, %b)
""",
    "an attribute is never another": """\
graph():
  %n : int = prim::Constant[value=1]()
  %m : int = prim::Constant[value=2]()
  %c : __torch__.passes.Cell = prim::CreateObject()
  prim::SetAttr[name="count"](%c, %n)
  %a : int = prim::GetAttr[name="count"](%c)
  prim::SetAttr[name="count"](%c, %m)
  %b : int = prim::GetAttr[name="count"](%c)
  return (%a, %b)
""",
    "a view is new memory": """\
graph():
  %l : int[] = prim::ListConstruct()
  %g : Generator? = prim::Constant[value=None]()
  %s : ScalarType? = prim::Constant[value=None]()
  %d : Device? = prim::Constant[value=None]()
  %p : bool = prim::Constant[value=False]()
  %x : Tensor = core::rand(%l, %g, %s, %d, %p)
  %v : Tensor = core::t(%x)
  %w : Tensor = core::zero_(%v)
  return (%x)
""",
    "equal numbers are one constant": """\
graph():
  %a : float = prim::Constant[value=0.0]()
  %b : float = prim::Constant[value=-0.0]()
  return (%a, %b)
""",
    "a float plus zero is the float": """\
graph():
  %a : float = prim::Constant[value=-0.0]()
  %b : float = prim::Constant[value=0.0]()
  %c : float = script::add.float(%a, %b)
  return (%c)
""",
}

# How many programs are run until one shows a fault.
MOST = 1000
_PROGRAMS: dict[int, tuple[Graph, Outcome]] = {}


def program(seed: int) -> tuple[Graph, Outcome]:
    """A random program, and what it does; kept, as many faults ask for it."""
    if seed not in _PROGRAMS:
        graph = random_program(Random(seed))
        _PROGRAMS[seed] = graph, outcome(graph, Random(seed))
    return _PROGRAMS[seed]


def differs(graph: Graph, before: Outcome, seed: int, leg: str) -> bool:
    """Whether a program does something else after passes, or these break a law."""
    copied = copy_graph(graph)
    try:
        run_passes(copied, LEGS[leg], rounds=ROUNDS, checked=True)
    except (BrokenGraph, AssertionError):
        return True
    return outcome(copied, Random(seed)) != before


def shows(fault: Fault, graph: Graph, before: Outcome, seed: int) -> bool:
    """Whether a program shows a fault, and is all right without it."""
    with ExitStack() as planted:
        planted.enter_context(fault.plant())
        found = differs(graph, before, seed, fault.leg)
    assert not differs(graph, before, seed, fault.leg), "wrong without the fault"
    return found


@pytest.mark.parametrize("name", [each for each in FAULTS if each not in WITNESSES])
def test_a_planted_fault_is_found_by_a_random_program(name: str) -> None:
    first = SEEDS.get(name, 0)
    for seed in range(first, first + MOST):
        if shows(FAULTS[name], *program(seed), seed):
            return
    pytest.fail(f"{MOST} programs do not show it")


@pytest.mark.parametrize("name", WITNESSES)
def test_a_planted_fault_is_found_by_its_witness(name: str) -> None:
    graph = read(WITNESSES[name])
    assert shows(FAULTS[name], graph, outcome(graph, Random(0)), 0)
