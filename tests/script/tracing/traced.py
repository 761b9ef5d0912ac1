"""Functions that were traced: their graphs as text, and what they compute."""

import warnings
from collections.abc import Callable
from typing import Any

from everyorder import runtime
from everyorder.runtime.schema.declared import SHARED, Namespace
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir import check, graph_text, parse_graph, printed
from everyorder.runtime.script.ir.program import Function, Program
from everyorder.runtime.script.tracing import TraceWarning, trace_function


def arange(*shape: int, start: float = 0.0) -> Any:
    """A tensor of consecutive numbers."""
    count = 1
    for each in shape:
        count *= each
    return (runtime.arange(count, dtype=runtime.float32) + start).reshape(list(shape))


def trace(function: Callable[..., Any], *args: Any, **options: Any) -> Function:
    """A trace, in a program of its own; warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", TraceWarning)
        return trace_function(function, args, program=Program(), **options)


def warned(function: Callable[..., Any], *args: Any, **options: Any) -> list[str]:
    """What is said while a function is traced, each on one line."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        trace_function(function, args, program=Program(), **options)
    assert {each.category for each in said} <= {TraceWarning}
    return [" ".join(str(each.message).split()) for each in said]


def body(function: Function, namespace: Namespace = SHARED) -> str:
    """The text of a graph without places, which reads back as the same."""
    graph = function.graph
    check(graph)
    drawn = printed(graph, places=False)
    again = parse_graph(
        drawn.text,
        namespace=namespace,
        functions=drawn.functions,
        objects=drawn.objects,
    )
    assert graph_text(again) == drawn.text
    return drawn.text.partition("\n")[2]


def same(one: Any, other: Any) -> bool:
    """Whether two results are equal, structures and all."""
    if isinstance(one, tuple | list):
        return (
            type(one) is type(other)
            and len(one) == len(other)
            and all(map(same, one, other))
        )
    if isinstance(one, dict):
        return list(one) == list(other) and all(
            same(each, other[key]) for key, each in one.items()
        )
    equal: bool = runtime.equal(one, other)
    return equal and one.dtype is other.dtype


def agrees(function: Function, *args: Any) -> None:
    """Make sure that a trace computes what its Python function does."""
    assert same(call(function, args), function.python(*args))
