"""Checking: whether a trace is the function that was traced.

True only here: what is compared, and what is told of the first difference.

How it works: the function is recorded once more, with copies of the inputs, and the
trace is run with others.  Where results differ, or the two recordings do, it is told
where that begins: at the first node that is another one, or has another constant; if
all are the same, at the first that gave something else in two runs of the function.

Rules:
- equal are results of the same types, shapes and dtypes, all elements within the
  tolerance; NaN is equal to NaN;
- what draws random numbers is no fault of the trace: that is warned of, everything else
  is an error.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from runtime.errors.call import page
from runtime.errors.trace import TraceDiffers
from runtime.schema.excerpt import shortened
from runtime.schema.values import is_tensor
from runtime.script.ir import Effect, Graph, Node, Place, Value, effects_of
from runtime.script.tracing.building import CONSTANT
from runtime.script.tracing.flattening import leaves
from runtime.script.tracing.recorder import place_of

Kept = list[tuple[Node, list[Any]]]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first node that differs, if there is one, and how."""

    node: Node | None
    found: str


def check_trace(
    function: str,
    inputs: str,
    traced: Graph,
    again: Callable[[], tuple[Graph, Any, Kept]],
    run: Callable[[], Any],
    tolerance: float,
    warn: Callable[[str, Place | None], None],
) -> None:
    """Compare a trace with what it was made of, for some inputs.

    `again` records the function once more: the graph, the result, and what each node
    gave; `run` runs the trace.

    Raises:
        TraceDiffers: they are not the same.
    """
    graph, expected, _ = again()
    cause = None
    try:
        actual = run()
    except Exception as error:  # a trace may raise anything
        cause, results = error, f"running the trace raises {type(error).__name__}"
    else:
        results = different_results(expected, actual, tolerance)
    difference = different_graphs(traced, graph)
    if not results and difference is None:
        return
    if difference is None:
        difference = _different_runs(again()[2], again()[2], tolerance)
    node = difference.node
    if node is not None and Effect.NONDETERMINISTIC in effects_of(node):
        place = place_of(node)
        rows = [("at", place)] if place else []
        head = (
            f"The trace of `{function}` draws random numbers by `{node.kind}`, and "
            f"could not be checked for {inputs}."
        )
        advice = "trace without them, or with check_trace=False"
        warn(page(head, *rows, ("to do", advice)), node.place)
        return
    raise TraceDiffers(
        function=function,
        inputs=inputs,
        difference=results,
        step="" if node is None else node.kind,
        place="" if node is None else place_of(node),
        found=difference.found,
    ) from cause


def different_results(expected: Any, actual: Any, tolerance: float) -> str:
    """How two results differ; empty if they do not."""
    for one, other in zip_longest(leaves(expected, "it"), leaves(actual, "it")):
        if one is None or other is None or one[0] != other[0]:
            return "they do not have the same structure"
        words = different_tensors(one[1], other[1], tolerance)
        if words:
            return f"{one[0].replace('it', 'the result', 1)} {words}"
    return ""


def different_tensors(expected: Any, actual: Any, tolerance: float) -> str:
    """How two tensors, or other values, differ; empty if they do not."""
    if not (is_tensor(expected) and is_tensor(actual)):
        same = type(expected) is type(actual) and expected == actual
        return "" if same else f"is {shortened(expected)}, and {shortened(actual)}"
    for word in ("dtype", "shape", "device"):
        one, other = getattr(expected, word), getattr(actual, word)
        if one != other:
            return f"has the {word} {one}, and {other}"
    if expected.device.type == "meta" or not expected.numel():
        return ""
    one, other = expected.detach(), actual.detach()
    if one.dtype.is_floating or one.dtype.is_complex:
        near = ((one - other).abs() <= tolerance * (1 + one.abs())) | (one == other)
        near = near | ((one != one) & (other != other))
    else:
        near = one == other
    wrong = int((~near).sum().item())
    if not wrong:
        return ""
    return f"differs in {wrong} of {expected.numel()} elements"


def different_graphs(traced: Graph, again: Graph) -> Difference | None:
    """The first node of the trace that is another one in a second recording."""
    names: dict[Value, Value] = {}
    _same(traced.block.parameters, again.block.parameters, names)
    for one, two in zip_longest(_steps(traced), _steps(again)):
        if one is None:
            return Difference(two, "it is not in the trace: Python went another way")
        if two is None:
            return Difference(one, "only the trace has it: Python went another way")
        found = _different_nodes(one, two, names)
        if found:
            return Difference(one, found)
    for value, other in zip(traced.block.results, again.block.results, strict=True):
        found = _different_values(value, other, names)
        if found:
            return Difference(None, "the next time another value was the result")
    return None


def _steps(graph: Graph) -> Iterator[Node]:
    """The nodes but constants, and behind a fork those of its graph."""
    for node in graph.nodes():
        if node.kind != CONSTANT:
            yield node
        inner = node.attributes.get("graph")
        if isinstance(inner, Graph):
            yield from _steps(inner)


def _different_nodes(one: Node, two: Node, names: dict[Value, Value]) -> str:
    if one.kind != two.kind:
        return f"the next time `{two.kind}` was called in its place"
    if one.kind == "prim::fork":
        ours, theirs = one.attributes["graph"].block, two.attributes["graph"].block
        _same(ours.parameters, theirs.parameters, names)
    elif one.attributes.get("name") != two.attributes.get("name"):
        return f"the next time it was {two.attributes.get('name')}"
    if len(one.outputs) != len(two.outputs) or len(one.inputs) != len(two.inputs):
        return "the next time there were more or fewer values"
    for value, other in zip(one.inputs, two.inputs, strict=True):
        found = _different_values(value, other, names)
        if found:
            return found
    _same(one.outputs, two.outputs, names)
    return ""


def _same(
    ours: Iterable[Value], theirs: Iterable[Value], names: dict[Value, Value]
) -> None:
    """Take each value of the second recording for one of the trace."""
    names |= zip(theirs, ours, strict=False)


def _different_values(one: Value, two: Value, names: dict[Value, Value]) -> str:
    """Why two values are not the same; empty if they are."""
    if one.node.kind != CONSTANT or two.node.kind != CONSTANT:
        same = names.get(two) is one
        return "" if same else "the next time it was given another value"
    first, second = one.node.attributes, two.node.attributes
    if first.get("function") is not second.get("function"):
        return "another function was called the next time"
    left, right = first.get("value"), second.get("value")
    if _same_constants(left, right):
        return ""
    return f"it was given {_told(left)}, and the next time {_told(right)}"


def _told(constant: Any) -> str:
    return "another tensor" if is_tensor(constant) else shortened(constant)


def _same_constants(one: Any, two: Any) -> bool:
    if is_tensor(one) and is_tensor(two):
        return one is two or not different_tensors(one, two, 0.0)
    return type(one) is type(two) and repr(one) == repr(two)


def _different_runs(one: Kept, two: Kept, tolerance: float) -> Difference:
    """The first node that gave something else in another run of the function."""
    for (node, ours), (_, theirs) in zip(one, two, strict=False):
        for expected, actual in zip(ours, theirs, strict=False):
            words = different_tensors(expected, actual, tolerance)
            if words:
                return Difference(node, f"what it gives {words} in two runs of it")
    found = "every operator gives the same; something else changes what comes out"
    return Difference(None, found)
