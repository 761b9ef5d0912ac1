"""Programs for the tests of special forms: compiled, run, and looked into."""

from collections.abc import Callable
from typing import Any

from everyorder.runtime.script.emission import compile_function
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir import Graph, check
from everyorder.runtime.script.ir.program import Function, Program


def compiled(function: Any) -> Function:
    """The function of a program; its graph keeps all laws."""
    made = compile_function(function, Program())
    check(made.graph)
    return made


def script(function: Any) -> Callable[..., Any]:
    """The function as a script: compiled in a program of its own, and called."""
    made = compiled(function)
    return lambda *args, **kwargs: call(made, args, kwargs)


def agrees(function: Any, *cases: tuple[Any, ...]) -> None:
    """A script gives what Python gives, case for case."""
    scripted = script(function)
    for case in cases or ((),):
        found, wanted = scripted(*case), function(*case)
        assert type(found) is type(wanted)
        assert found == wanted, (case, found, wanted)


def kinds(function: Function) -> list[str]:
    """The kinds of the nodes of a function, those within others too."""
    return [*_kinds(function.graph)]


def _kinds(graph: Graph) -> Any:
    for node in graph.nodes():
        yield node.kind
        for inner in node.attributes.values():
            if isinstance(inner, Graph):
                yield from _kinds(inner)
