"""Graphs before and after a pass, as texts."""

from collections.abc import Callable
from typing import Any

from everyorder.runtime.script.ir import (
    Graph,
    Rows,
    check,
    graph_text,
    parse_graph,
    row_of,
)
from tests.script.passes.programs import FUNCTIONS, NAMES


def read(text: str, **tables: Any) -> Graph:
    """The graph of a text with the types and functions of the tests."""
    known: dict[str, Any] = {"namespace": NAMES, "functions": FUNCTIONS}
    return parse_graph(text, **{**known, "objects": (print,), **tables})


def changed(
    run: Callable[[Graph], int], text: str, rows: Rows = row_of, **tables: Any
) -> tuple[str, int]:
    """The text after a pass, and how often it says that it changed the graph.

    Both graphs keep all laws, and done again the pass changes nothing.
    """
    graph = read(text, **tables)
    check(graph, "reading", rows=rows)
    count = run(graph)
    check(graph, "the pass", rows=rows)
    after = graph_text(graph)
    assert (after == text) is (count == 0)
    assert run(graph) == 0, "a pass changed again what it had changed"
    assert graph_text(graph) == after
    return after, count
