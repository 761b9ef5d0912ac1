"""Programs: each of a list does what Python does, and some graphs are kept whole."""

import ast

import pytest

from everyorder.runtime.script.emission import compile_text
from everyorder.runtime.script.frontend import CONSTRUCTS, INNER
from everyorder.runtime.script.ir import graph_text, parse_graph, printed
from everyorder.runtime.script.ir.program import Program
from tests.script.emission.both import NAMES, Both
from tests.script.emission.graphs import GOLDEN, WITH_GRAPH, graphs, programs

PROGRAMS = programs()


@pytest.mark.spec("script 6.2", "statements and expressions")
@pytest.mark.spec("script 6.3", "refinement")
@pytest.mark.parametrize("title", PROGRAMS)
def test_does_what_python_does(title: str) -> None:
    """Value, output, arguments afterwards and exception are Python's."""
    source, calls = PROGRAMS[title]
    both = Both(source)
    for written in calls:
        name, _, given = written.partition("(")
        inside = f"({given[:-1]},)" if given != ")" else "()"
        arguments = eval(inside, dict(NAMES))
        python, script = both.outcomes(name, *arguments)
        assert script == python, written


@pytest.mark.parametrize("title", WITH_GRAPH)
def test_the_graph_is_in_the_file(title: str) -> None:
    GOLDEN.check(title, graphs(PROGRAMS[title][0]))


def test_there_are_enough() -> None:
    assert len(PROGRAMS) >= 110
    assert all(calls for _, calls in PROGRAMS.values())
    assert len(WITH_GRAPH) >= 40


@pytest.mark.spec("script 6.2", "statements and expressions")
def test_every_accepted_construct_is_emitted() -> None:
    """Each class of syntax trees that the language accepts is in some program."""
    accepted = {
        row.node for rows in CONSTRUCTS.values() for row in rows if row.is_accepted
    }
    found = {
        INNER.get(type(node).__name__, type(node).__name__)
        for source, _ in PROGRAMS.values()
        for node in ast.walk(ast.parse(source))
    }
    # Classes have tests of their own.
    assert accepted - found <= {"ClassDef"}


@pytest.mark.spec("script 6.5", "texts read back")
@pytest.mark.parametrize("title", WITH_GRAPH)
def test_graphs_read_back(title: str) -> None:
    """What is printed of a graph parses to a graph that prints the same."""
    functions = compile_text(PROGRAMS[title][0], Program(), NAMES)
    known = {each.qualname: each for each in functions}
    for each in functions:
        made = printed(each.graph)
        again = parse_graph(made.text, functions=known, objects=made.objects)
        assert graph_text(again) == made.text


def test_graphs_are_the_same_each_time() -> None:
    """Whoever compiles again gets the same text."""
    for title in WITH_GRAPH[::4]:
        assert graphs(PROGRAMS[title][0]) == graphs(PROGRAMS[title][0])
