"""Checking of traces: compare a trace with the traced function, by examples.

The arguments and results of a trace are tensors, and tuples, lists and dictionaries of
tensors.

Rules of examples:
- the elements of a list, and the values of a dictionary, are of one type, as in graphs;
  those of a tuple need not be; lists and dictionaries are not empty;
- keys are texts or integers; an ordered dictionary is a dictionary, a named tuple keeps
  its class;
- a copy of an example holds new tensors, one for each place: writes of a traced
  function do not change the example, and two places are two tensors.

To check, the function is recorded once more, with copies of the inputs, and the trace
is run with other copies. If the results or the two recordings differ, the error shows
the first difference: the first node of another kind, or with another constant; if all
nodes are equal, the first whose results differ in two runs of the function.

Rules of checking:
- results are equal if types, shapes and dtypes are, and all elements are within the
  tolerance; NaN is equal to NaN;
- a difference at a node that draws random numbers is only a warning, every other
  difference is an error.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from everyorder.runtime.errors.base import code_of, page
from everyorder.runtime.errors.script import Untraceable
from everyorder.runtime.schema.call_errors import describe_value, shortened
from everyorder.runtime.schema.types import (
    DictType,
    IntType,
    ListType,
    StrType,
    TensorType,
    TupleType,
    Type,
)
from everyorder.runtime.schema.values import is_tensor
from everyorder.runtime.script.ir import (
    Graph,
    Node,
    NodeEffect,
    Place,
    Value,
    effects_of,
)
from everyorder.runtime.script.tracing.builder import CONSTANT
from everyorder.runtime.script.tracing.recorder import place_of
from everyorder.runtime.script.types.annotations import TypeScope
from everyorder.runtime.script.types.python_classes import PythonClasses
from everyorder.runtime.tensors import Tensor

_KEYS = {str: StrType, int: IntType}
_DICTS = (dict, OrderedDict)
# The deepest nesting of containers; the checker limits the nesting of types.
_DEEPEST = 60


class TypeFault(Exception):  # the tracer catches it and names the function
    """A value without a type: its path, and the reason."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason


def type_of(value: Any, path: str, classes: PythonClasses, depth: int = 0) -> Type:
    """Return the type of an example or of a result; `path` is its name in errors.

    Raises:
        TypeFault: the value is, or contains, something else.
    """
    if is_tensor(value):
        return TensorType
    if depth > _DEEPEST:
        raise TypeFault(path, "it is nested too deeply")
    if isinstance(value, tuple):
        return _tuple(value, path, classes, depth)
    if isinstance(value, list):
        if not value:
            raise TypeFault(path, "an empty list does not say of what")
        types = [
            type_of(each, f"{path}[{place}]", classes, depth + 1)
            for place, each in enumerate(value)
        ]
        return ListType(_one(types, path, "elements of a list"))
    if type(value) in _DICTS:
        return _dict(value, path, classes, depth)
    raise TypeFault(path, f"{describe_value(value)} is not a tensor")


def _tuple(
    value: tuple[Any, ...], path: str, classes: PythonClasses, depth: int
) -> Type:
    names = getattr(value, "_fields", ())
    inner = tuple(
        [
            type_of(
                each,
                f"{path}.{names[place]}" if names else f"{path}[{place}]",
                classes,
                depth + 1,
            )
            for place, each in enumerate(value)
        ]
    )
    if not names:
        return TupleType(inner)
    declared = classes(type(value), TypeScope({}, classes=classes))
    if not isinstance(declared, TupleType):
        raise TypeFault(path, f"the named tuple `{type(value).__name__}` has no types")
    if declared.elements != inner:
        fields = TupleType(declared.elements)
        reason = (
            f"`{type(value).__name__}` is declared with {fields}, "
            f"and has {TupleType(inner)}"
        )
        raise TypeFault(path, reason)
    return declared


def _dict(value: dict[Any, Any], path: str, classes: PythonClasses, depth: int) -> Type:
    if not value:
        raise TypeFault(path, "an empty dictionary does not say of what")
    kinds = {type(key) for key in value}
    kind = kinds.pop()
    if kinds or kind not in _KEYS:
        raise TypeFault(path, "the keys of a dictionary are texts or integers")
    types = [
        type_of(each, f"{path}[{key!r}]", classes, depth + 1)
        for key, each in value.items()
    ]
    return DictType(_KEYS[kind], _one(types, path, "values of a dictionary"))


def _one(types: list[Type], path: str, what: str) -> Type:
    several = list(dict.fromkeys(types))
    if len(several) > 1:
        reason = f"the {what} are of the types {several[0]} and {several[1]}"
        raise TypeFault(path, reason)
    return several[0]


def tensors_in(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the tensors of a value that has a type, each with its path."""
    if isinstance(value, list | tuple):
        names = getattr(value, "_fields", None)
        for place, each in enumerate(value):
            inner = f"[{place}]" if names is None else f".{names[place]}"
            yield from tensors_in(each, f"{path}{inner}")
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from tensors_in(each, f"{path}[{key!r}]")
    else:
        yield path, value


def map_tensors(change: Callable[[Any], Any], value: Any) -> Any:
    """Return the value with its tensors replaced by `change(tensor)`."""
    if isinstance(value, tuple):
        inner = [map_tensors(change, each) for each in value]
        make: Any = type(value)
        return make(*inner) if hasattr(value, "_fields") else tuple(inner)
    if isinstance(value, list):
        return [map_tensors(change, each) for each in value]
    if type(value) in _DICTS:
        return type(value)(
            (key, map_tensors(change, each)) for key, each in value.items()
        )
    return change(value) if is_tensor(value) else value


def copy_tensor(tensor: Tensor) -> Tensor:
    """Return a copy of a tensor: a leaf for a leaf, else connected to its history."""
    if tensor.requires_grad and not tensor.is_leaf:
        copied: Tensor = tensor.clone()
        return copied
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


NodeResults = list[tuple[Node, list[Any]]]


@dataclass(frozen=True, slots=True)
class TraceDifference:
    """The first node that differs, or None, and the difference."""

    node: Node | None
    found: str


def check_trace(
    function: str,
    inputs: str,
    traced: Graph,
    record: Callable[[], tuple[Graph, Any, NodeResults]],
    run: Callable[[], Any],
    tolerance: float,
    warn: Callable[[str, Place | None], None],
) -> None:
    """Compare a trace with the function for some inputs.

    `record` records the function once more and returns the graph, the result, and the
    results of each node; `run` runs the trace.

    Raises:
        Untraceable: the results or the graphs differ.
    """
    graph, expected, _ = record()
    cause = None
    try:
        actual = run()
    except Exception as error:  # a trace may raise anything
        cause, results = error, f"running the trace raises {code_of(error)}"
    else:
        results = different_results(expected, actual, tolerance)
    difference = different_graphs(traced, graph)
    if not results and difference is None:
        return
    if difference is None:
        difference = _different_runs(record()[2], record()[2], tolerance)
    node = difference.node
    if node is not None and NodeEffect.NONDETERMINISTIC in effects_of(node):
        place = place_of(node)
        rows = [("at", place)] if place else []
        head = (
            f"The trace of `{function}` draws random numbers by `{node.kind}`, and "
            f"could not be checked for {inputs}."
        )
        advice = "trace without them, or with check_trace=False"
        warn(page(head, *rows, ("to do", advice)), node.place)
        return
    raise Untraceable(
        code="TraceDiffers",
        function=function,
        inputs=inputs,
        difference=results,
        step="" if node is None else node.kind,
        place="" if node is None else place_of(node),
        found=difference.found,
    ) from cause


def different_results(expected: Any, actual: Any, tolerance: float) -> str:
    """Describe the difference of two results; empty if there is none."""
    for one, other in zip_longest(tensors_in(expected, "it"), tensors_in(actual, "it")):
        if one is None or other is None or one[0] != other[0]:
            return "they do not have the same structure"
        words = different_tensors(one[1], other[1], tolerance)
        if words:
            return f"{one[0].replace('it', 'the result', 1)} {words}"
    return ""


def different_tensors(expected: Any, actual: Any, tolerance: float) -> str:
    """Describe the difference of two tensors or other values; empty if none."""
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


# The identities of functions that are assumed to be alike.
Pairs = frozenset[tuple[int, int]]


def different_graphs(
    traced: Graph, second: Graph, pairs: Pairs = frozenset()
) -> TraceDifference | None:
    """Return the first node of the trace that differs in another recording."""
    names: dict[Value, Value] = {}
    _same(traced.block.parameters, second.block.parameters, names)
    for one, two in zip_longest(_steps(traced), _steps(second)):
        if one is None:
            return TraceDifference(
                two, "it is not in the trace: Python went another way"
            )
        if two is None:
            return TraceDifference(
                one, "only the trace has it: Python went another way"
            )
        fault = _different_nodes(one, two, names, pairs)
        if fault:
            return TraceDifference(one, fault)
    for value, other in zip(traced.block.results, second.block.results, strict=True):
        fault = _different_values(value, other, names, pairs)
        if fault:
            return TraceDifference(None, "the next time another value was the result")
    return None


def _steps(graph: Graph) -> Iterator[Node]:
    """Yield the nodes except constants, and after a fork those of its graph."""
    for node in graph.nodes():
        if node.kind != CONSTANT:
            yield node
        inner = node.attributes.get("graph")
        if isinstance(inner, Graph):
            yield from _steps(inner)


def _different_nodes(
    one: Node, two: Node, names: dict[Value, Value], pairs: Pairs
) -> str:
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
        fault = _different_values(value, other, names, pairs)
        if fault:
            return fault
    _same(one.outputs, two.outputs, names)
    return ""


def _same(
    ours: Iterable[Value], theirs: Iterable[Value], names: dict[Value, Value]
) -> None:
    """Map each value of the second recording to one of the trace."""
    names |= zip(theirs, ours, strict=False)


def _different_values(
    one: Value, two: Value, names: dict[Value, Value], pairs: Pairs
) -> str:
    """Return the reason why two values differ; empty if they do not."""
    if one.node.kind != CONSTANT or two.node.kind != CONSTANT:
        same = names.get(two) is one
        return "" if same else "the next time it was given another value"
    first, second = one.node.attributes, two.node.attributes
    if not _same_functions(first.get("function"), second.get("function"), pairs):
        return "another function was called the next time"
    left, right = first.get("value"), second.get("value")
    if _same_constants(left, right):
        return ""
    first_words, second_words = _constant_words(left), _constant_words(right)
    return f"it was given {first_words}, and the next time {second_words}"


def _same_functions(one: Any, two: Any, pairs: Pairs) -> bool:
    """Return True if two compiled functions are one, or are compiled alike.

    A function that is defined in the traced one is compiled again by each recording.
    """
    if one is two or (id(one), id(two)) in pairs:
        return True
    if one is None or two is None or one.name != two.name:
        return False
    if str(one.schema) != str(two.schema):
        return False
    # A recursive function refers to itself.
    within = pairs | {(id(one), id(two))}
    return different_graphs(one.graph, two.graph, within) is None


def _constant_words(constant: Any) -> str:
    return "another tensor" if is_tensor(constant) else shortened(constant)


def _same_constants(one: Any, two: Any) -> bool:
    if is_tensor(one) and is_tensor(two):
        return one is two or not different_tensors(one, two, 0.0)
    return type(one) is type(two) and repr(one) == repr(two)


def _different_runs(
    one: NodeResults, two: NodeResults, tolerance: float
) -> TraceDifference:
    """Return the first node whose results differ in two runs of the function."""
    for (node, ours), (_, theirs) in zip(one, two, strict=False):
        for expected, actual in zip(ours, theirs, strict=False):
            words = different_tensors(expected, actual, tolerance)
            if words:
                return TraceDifference(node, f"what it gives {words} in two runs of it")
    reason = "every operator gives the same; something else changes what comes out"
    return TraceDifference(None, reason)
