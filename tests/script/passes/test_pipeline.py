"""The frame of passes: rounds, counts, graphs within, and the checker between."""

import pytest

from everyorder.runtime.errors.script import BrokenGraph
from everyorder.runtime.script.ir import Graph, Node, graph_text
from everyorder.runtime.script.passes import (
    CLEANUP,
    OPTIMIZE,
    Pass,
    check_passes,
    graphs_of,
    remove_dead_code,
    run_passes,
)
from tests.script.passes.texts import read

FORKED = """\
graph f(%x.1 : int):
  %y.1 : Future(int) = prim::fork_0(%x.1)
  %z.1 : Await(int) = prim::awaitable_0(%x.1)
  return (%y.1, %z.1)
with prim::fork_0 = graph inner(%x.1 : int):
  %y.1 : Await(int) = prim::awaitable_1(%x.1)
  %z.1 : int = prim::awaitable_wait(%y.1)
  return (%z.1)
with prim::awaitable_0 = graph later(%x.1 : int):
  return (%x.1)
with prim::awaitable_1 = graph innermost(%x.1 : int):
  return (%x.1)
"""


def test_graphs_within_come_first_and_fused_ones_never() -> None:
    graph = read(FORKED)
    assert [each.name for each in graphs_of(graph)] == [
        "innermost",
        "later",
        "inner",
        "f",
    ]
    fused = Graph("fused")
    fused.block.add_result(fused.block.add_parameter(graph.block.parameters[0].type))
    node = Node("prim::FusionGroup", graph.block.parameters, (), {"graph": fused})
    graph.block.append(node)
    assert "fused" not in [each.name for each in graphs_of(graph)]


@pytest.mark.spec("script 6.1", "cleaning up between")
def test_passes_run_in_rounds_until_one_changes_nothing() -> None:
    graph = Graph()
    left = {"a": 2, "b": 1}
    asked = []

    def pass_of(name: str) -> Pass:
        def run(given: Graph) -> int:
            assert given is graph
            asked.append(name)
            left[name] -= 1
            return max(0, left[name] + 1)

        return Pass(name, run)

    counts = run_passes(graph, [pass_of("a"), pass_of("b")], rounds=9)
    assert counts == {"a": 3, "b": 1}
    assert asked == ["a", "b", "a", "b", "a", "b"]
    assert run_passes(graph, [pass_of("a")]) == {"a": 0}


@pytest.mark.spec("script 6.1", "cleaning up between")
def test_the_checker_names_the_pass_that_broke_a_law() -> None:
    def breaks(graph: Graph) -> int:
        graph.block.append(Node("prim::Nonsense"))
        return 1

    broken = Pass("breaks", breaks)
    before = check_passes(False)
    try:
        assert run_passes(Graph(), [broken]) == {"breaks": 1}
        with pytest.raises(BrokenGraph) as caught:
            run_passes(Graph(), [broken], checked=True)
        assert caught.value.stage == "breaks"
        assert check_passes(True) is False
        with pytest.raises(BrokenGraph):
            run_passes(Graph(), [broken])
        assert run_passes(Graph(), [broken], checked=False) == {"breaks": 1}
        assert check_passes(False) is True
    finally:
        check_passes(before)


def test_every_pass_has_a_name_of_its_own_and_takes_an_empty_graph() -> None:
    for passes in (CLEANUP, OPTIMIZE):
        names = [each.name for each in passes]
        assert len(set(names)) == len(names)
        graph = Graph("empty")
        assert run_passes(graph, passes, checked=True) == dict.fromkeys(names, 0)
        assert graph_text(graph) == "graph empty():\n  return ()\n"


def test_dead_code_of_graphs_within_goes_before_what_they_are_given() -> None:
    text = """\
graph f(%x.1 : int, %y.1 : int):
  %z.1 : float = script::float.int(%y.1)
  %w.1 : Future(int) = prim::fork_0(%x.1, %z.1)
  return (%w.1)
with prim::fork_0 = graph(%x.1 : int, %z.1 : float):
  prim::Print(%x.1)
  %w.1 : float = script::neg.float(%z.1)
  return (%x.1)
"""
    after = """\
graph f(%x.1 : int, %y.1 : int):
  %w.1 : Future(int) = prim::fork_0(%x.1)
  return (%w.1)
with prim::fork_0 = graph(%x.1 : int):
  prim::Print(%x.1)
  return (%x.1)
"""
    graph = read(text)
    dead = Pass("dead", remove_dead_code)
    assert run_passes(graph, [dead], checked=True) == {"dead": 3}
    assert graph_text(graph) == after


@pytest.mark.parametrize("passes", [CLEANUP, OPTIMIZE], ids=["cleanup", "optimize"])
def test_blocks_may_be_nested_deeply(passes: tuple[Pass, ...]) -> None:
    lines = ["graph(%n : int, %l : int[]):"]
    for depth in range(150):
        margin = "  " * (2 * depth + 1)
        lines += [
            f"{margin}%a{depth} : int = script::len.t(%l)",
            f"{margin}%c{depth} : bool = script::lt.int(%a{depth}, %n)",
            f"{margin}%r{depth} : int = prim::If(%c{depth})",
            f"{margin}  block0():",
        ]
    lines.append("  " * 301 + "prim::Print(%l)")
    for depth in reversed(range(150)):
        margin = "  " * (2 * depth + 1)
        result = "n" if depth == 149 else f"r{depth + 1}"
        lines += [
            f"{margin}    -> (%{result})",
            f"{margin}  block1():",
            f"{margin}    -> (%a{depth})",
        ]
    graph = read("\n".join([*lines, "  return (%r0)\n"]))
    counts = run_passes(graph, passes, rounds=3, checked=True)
    if passes is OPTIMIZE:
        assert counts["merge_subexpressions"] == 298
        assert sum(1 for _ in graph.nodes()) < 160
