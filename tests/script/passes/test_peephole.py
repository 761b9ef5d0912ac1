"""The peephole: what nodes amount to, and each rule on values of its types."""

import math
from itertools import product
from typing import Any

import pytest

from everyorder.runtime.schema.types import BoolType, FloatType, IntType, StrType
from everyorder.runtime.script.passes import RULES, simplify
from everyorder.runtime.script.passes.peephole import (
    PatternCall,
    PatternConstant,
    PeepholeRule,
    Term,
)
from everyorder.runtime.script.primitives import by_name
from tests.script.passes.texts import changed

# Name -> before, after ("" for the same), changes.
CASES: dict[str, tuple[str, str, int]] = {
    "rules of values, one on another": (
        """\
graph(%x.1 : int, %y.1 : int):
  %a.1 : int = prim::Constant[value=0]()
  %b.1 : int = script::add.int(%x.1, %a.1)
  %c.1 : bool = script::lt.int(%b.1, %y.1)
  %d.1 : bool = script::not_.bool(%c.1)
  %e.1 : bool = script::not_.bool(%d.1)
  %f.1 : int = script::sub.int(%b.1, %x.1)
  return (%d.1, %e.1, %f.1)
""",
        """\
graph(%x.1 : int, %y.1 : int):
  %a.1 : int = prim::Constant[value=0]()
  %c.1 : bool = script::lt.int(%x.1, %y.1)
  %d.1 : bool = script::ge.int(%x.1, %y.1)
  %e.1 : bool = script::lt.int(%x.1, %y.1)
  %f.1 : int = prim::Constant[value=0]()
  return (%d.1, %e.1, %f.1)
""",
        4,
    ),
    "zeros of floats, and numbers of another kind": (
        """\
graph(%x.1 : float, %s.1 : Scalar):
  %a.1 : float = prim::Constant[value=0.0]()
  %b.1 : float = script::add.float(%x.1, %a.1)
  %c.1 : bool = script::eq.float(%x.1, %x.1)
  %d.1 : Scalar = prim::Constant[value=1]()
  %e.1 : Scalar = script::mul.Scalar(%s.1, %d.1)
  %f.1 : float = script::mul.float(%x.1, %a.1)
  return (%b.1, %c.1, %e.1, %f.1)
""",
        "",
        0,
    ),
    "casts": (
        """\
graph(%x.1 : int):
  %a.1 : int = prim::unchecked_cast(%x.1)
  %b.1 : int? = prim::unchecked_cast(%a.1)
  return (%a.1, %b.1)
""",
        """\
graph(%x.1 : int):
  %b.1 : int? = prim::unchecked_cast(%x.1)
  return (%x.1, %b.1)
""",
        1,
    ),
    "questions about types": (
        """\
graph(%x.1 : int, %y.1 : int?, %b.1 : bool, %l.1 : int[], %n.1 : NoneType):
  %0 : bool = prim::isinstance[types=[int]](%x.1)
  %1 : bool = prim::isinstance[types=[str, float]](%x.1)
  %2 : bool = prim::isinstance[types=[int]](%y.1)
  %3 : bool = prim::isinstance[types=[str]](%y.1)
  %4 : bool = prim::isinstance[types=[int]](%b.1)
  %5 : bool = prim::isinstance[types=[int[]]](%l.1)
  %6 : bool = script::is_.t(%x.1, %n.1)
  %7 : bool = script::is_not.t(%x.1, %n.1)
  %8 : bool = script::is_.t(%y.1, %n.1)
  %9 : bool = script::is_.t(%n.1, %n.1)
  %10 : bool = script::is_.t(%x.1, %b.1)
  return (%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10)
""",
        """\
graph(%x.1 : int, %y.1 : int?, %b.1 : bool, %l.1 : int[], %n.1 : NoneType):
  %5 : bool = prim::Constant[value=True]()
  %6 : bool = prim::Constant[value=False]()
  %7 : bool = prim::isinstance[types=[int]](%y.1)
  %8 : bool = prim::Constant[value=False]()
  %9 : bool = prim::isinstance[types=[int]](%b.1)
  %10 : bool = prim::Constant[value=True]()
  %11 : bool = prim::Constant[value=False]()
  %12 : bool = prim::Constant[value=True]()
  %13 : bool = script::is_.t(%y.1, %n.1)
  %14 : bool = prim::Constant[value=True]()
  %15 : bool = script::is_.t(%x.1, %b.1)
  return (%5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15)
""",
        7,
    ),
    "waiting for what is there": (
        """\
graph(%x.1 : int):
  %a.1 : Await(int?) = prim::awaitable_nowait(%x.1)
  %b.1 : int? = prim::awaitable_wait(%a.1)
  return (%b.1)
""",
        """\
graph(%x.1 : int):
  %a.1 : Await(int?) = prim::awaitable_nowait(%x.1)
  %b.1 : int? = prim::unchecked_cast(%x.1)
  return (%b.1)
""",
        1,
    ),
    "a condition, and a branch on what is not so": (
        """\
graph(%c.1 : bool, %x.1 : int, %y.1 : int):
  %d.1 : bool = script::not_.bool(%c.1)
  %z.1 : int = prim::If(%d.1)
    block0():
      prim::Print(%c.1)
      -> (%x.1)
    block1():
      prim::Print(%d.1)
      -> (%y.1)
  return (%z.1)
""",
        """\
graph(%c.1 : bool, %x.1 : int, %y.1 : int):
  %d.1 : bool = script::not_.bool(%c.1)
  %z.1 : int = prim::If(%c.1)
    block0():
      prim::Print(%d.1)
      -> (%y.1)
    block1():
      %5 : bool = prim::Constant[value=False]()
      prim::Print(%5)
      -> (%x.1)
  return (%z.1)
""",
        2,
    ),
    "outputs that are the same either way, or the condition": (
        """\
graph(%c.1 : bool, %x.1 : int):
  %t.1 : bool = prim::Constant[value=True]()
  %f.1 : bool = prim::Constant[value=False]()
  %a.1 : int?, %b.1 : bool, %d.1 : bool, %e.1 : int, %g.1 : bool = prim::If(%c.1)
    block0():
      %k.1 : int = prim::Constant[value=5]()
      -> (%x.1, %t.1, %f.1, %k.1, %t.1)
    block1():
      %l.1 : int = prim::Constant[value=5]()
      -> (%x.1, %f.1, %t.1, %l.1, %c.1)
  return (%a.1, %b.1, %d.1, %e.1)
""",
        """\
graph(%c.1 : bool, %x.1 : int):
  %t.1 : bool = prim::Constant[value=True]()
  %f.1 : bool = prim::Constant[value=False]()
  %a.1 : int? = prim::unchecked_cast(%x.1)
  %e.1 : int = prim::Constant[value=5]()
  %d.1 : bool = script::not_.bool(%c.1)
  %a.2 : int?, %b.1 : bool, %d.2 : bool, %e.2 : int, %g.1 : bool = prim::If(%c.1)
    block0():
      %k.1 : int = prim::Constant[value=5]()
      -> (%x.1, %t.1, %f.1, %k.1, %t.1)
    block1():
      %13 : bool = prim::Constant[value=False]()
      %l.1 : int = prim::Constant[value=5]()
      -> (%x.1, %f.1, %t.1, %l.1, %13)
  return (%a.1, %c.1, %d.1, %e.1)
""",
        5,
    ),
    "what every trip hands on as it came": (
        """\
graph(%n.1 : int, %c.1 : bool, %x.1 : int):
  %a.1 : int, %b.1 : int? = prim::Loop(%n.1, %c.1, %x.1, %x.1)
    block0(%i.1 : int, %p.1 : int, %q.1 : int?):
      prim::Print(%p.1, %q.1)
      -> (%c.1, %p.1, %p.1)
  return (%a.1, %b.1)
""",
        """\
graph(%n.1 : int, %c.1 : bool, %x.1 : int):
  %a.1 : int, %b.1 : int? = prim::Loop(%n.1, %c.1, %x.1, %x.1)
    block0(%i.1 : int, %p.1 : int, %q.1 : int?):
      prim::Print(%x.1, %q.1)
      -> (%c.1, %p.1, %x.1)
  return (%x.1, %b.1)
""",
        1,
    ),
}


@pytest.mark.spec("script 6.7", "peephole")
@pytest.mark.parametrize("case", CASES)
def test_peephole(case: str) -> None:
    before, after, count = CASES[case]
    assert changed(simplify, before) == (after or before, count)


VALUES: dict[Any, tuple[Any, ...]] = {
    BoolType: (True, False),
    IntType: (0, 1, -1, 2, 63, 64, 7, -8, 2**62, 2**63 - 1, -(2**63)),
    FloatType: (0.0, -0.0, 1.0, -1.5, 5e-324, 1e308, math.inf, -math.inf, math.nan),
    StrType: ("", "a", "é\x00b"),
}


def words(term: Term) -> str:
    if isinstance(term, str):
        return term
    if isinstance(term, PatternConstant):
        return repr(term.value)
    name = term.kind.removeprefix("script::")
    return f"{name}({', '.join(map(words, term.inputs))})"


def run(term: Term, values: dict[str, Any]) -> Any:
    if isinstance(term, str):
        return values[term]
    if isinstance(term, PatternConstant):
        return term.value
    row = by_name(term.kind)
    assert row is not None, term.kind
    return row.function(*(run(each, values) for each in term.inputs))


def told(term: Term, values: dict[str, Any]) -> tuple[type, str]:
    try:
        value = run(term, values)
    except Exception as error:
        return type(error), str(error)
    return type(value), repr(value)


def differs(rule: PeepholeRule) -> list[dict[str, Any]]:
    """The values for which before and after are not the same."""
    names = [*rule.types]
    return [
        values
        for each in product(*(VALUES[rule.types[name]] for name in names))
        for values in [dict(zip(names, each, strict=True))]
        if told(rule.before, values) != told(rule.after, values)
    ]


@pytest.mark.parametrize(
    "rule", RULES, ids=lambda rule: f"{words(rule.before)} is {words(rule.after)}"
)
def test_before_and_after_are_the_same_for_all_values(rule: PeepholeRule) -> None:
    assert differs(rule) == []


def test_no_rule_is_there_twice() -> None:
    befores = [words(rule.before) for rule in RULES]
    assert len(set(befores)) == len(befores)


@pytest.mark.parametrize(
    ("before", "after", "type_"),
    [
        (PatternCall("script::add.float", ("x", PatternConstant(0.0))), "x", FloatType),
        (
            PatternCall("script::mul.float", ("x", PatternConstant(0.0))),
            PatternConstant(0.0),
            FloatType,
        ),
        (PatternCall("script::eq.float", ("x", "x")), PatternConstant(True), FloatType),
        (
            PatternCall("script::neg.int", (PatternCall("script::neg.int", ("x",)),)),
            "x",
            IntType,
        ),
        (PatternCall("script::floordiv.int", ("x", "x")), PatternConstant(1), IntType),
    ],
)
def test_rules_that_look_right_and_are_not_are_found(
    before: PatternCall, after: Term, type_: Any
) -> None:
    assert differs(PeepholeRule({"x": type_}, before, after))
