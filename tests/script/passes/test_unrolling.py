"""Loops that are written out: texts before and after, and which are not."""

import pytest

from runtime.script.passes import inlining, unroll_loops
from tests.script.passes.texts import changed

LOOP = """\
graph(%x.1 : int):
  %n.1 : int = prim::Constant[value=2]()
  %go.1 : bool = prim::Constant[value=True]()
  %y.1 : int = prim::Loop(%n.1, %go.1, %x.1)
    block0(%i.1 : int, %c.1 : int):
      %d.1 : int = script::add.int(%c.1, %i.1)
      prim::Print(%d.1)
      -> (%go.1, %d.1)
  return (%y.1)
"""


def test_a_loop_of_two_trips() -> None:
    text, count = changed(unroll_loops, LOOP)
    assert count == 1
    assert [
        line.strip().partition(" : ")[2] or line.strip() for line in text.splitlines()
    ] == [
        "int):",
        "int = prim::Constant[value=2]()",
        "bool = prim::Constant[value=True]()",
        "int = prim::Constant[value=0]()",
        "int = script::add.int(%x.1, %3)",
        "prim::Print(%d.1)",
        "int = prim::Constant[value=1]()",
        "int = script::add.int(%d.1, %5)",
        "prim::Print(%d.2)",
        "return (%d.2)",
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("value=2", "value=0"),
        ("value=2", "value=9"),
        ("value=True", "value=False"),
        (
            "graph(%x.1 : int):\n  %n.1 : int = prim::Constant[value=2]()",
            "graph(%x.1 : int, %n.1 : int):",
        ),
        (
            "%go.1 : bool = prim::Constant[value=True]()",
            "%go.1 : bool = script::bool.int(%x.1)",
        ),
    ],
)
def test_other_loops_stay(before: str, after: str) -> None:
    assert before in LOOP
    text = LOOP.replace(before, after)
    assert changed(unroll_loops, text) == (text, 0)


def test_no_loop_grows_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inlining, "MOST_UNROLLED", 3)
    assert changed(unroll_loops, LOOP) == (LOOP, 0)


def test_a_loop_in_a_loop_is_unrolled_first() -> None:
    nested = """\
graph(%x.1 : int):
  %n.1 : int = prim::Constant[value=2]()
  %go.1 : bool = prim::Constant[value=True]()
  %y.1 : int = prim::Loop(%n.1, %go.1, %x.1)
    block0(%i.1 : int, %c.1 : int):
      %z.1 : int = prim::Loop(%n.1, %go.1, %c.1)
        block0(%j.1 : int, %e.1 : int):
          %d.1 : int = script::add.int(%e.1, %i.1)
          -> (%go.1, %d.1)
      -> (%go.1, %z.1)
  return (%y.1)
"""
    text, count = changed(unroll_loops, nested)
    assert count == 2
    assert text.count("script::add.int") == 4
    assert "Loop" not in text
