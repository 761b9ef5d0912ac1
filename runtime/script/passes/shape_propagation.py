"""Shape propagation: infer dtype, shape and device of tensors from the parameters.

Operators run on tensors without elements, before the graph runs.

Rules:
- built-in operators of the runtime run on `meta` by their kernels there; other
  operators are not run, because they may do anything;
- an unknown number in the place of a tensor is replaced by any number of its type;
- other values are used if they are known: constants, lists and tuples of known values,
  and the results of primitives on them; a list that is written to is unknown;
- an output of a branch is known if both blocks agree, and of a loop if no trip changes
  it;
- a value that depends on elements, is random, or raises, is unknown: the pass itself
  does not raise;
- the result is a hint: changes of shape (`resize_`) are ignored, and the graph may run
  with other arguments.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from everyorder.runtime.dispatch.dispatcher import default_dispatcher
from everyorder.runtime.dispatch.watch import WATCH
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.operators.declare.plan import CPU
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.schema.types import BoolType, FloatType, IntType, TensorType
from everyorder.runtime.script.ir import (
    Block,
    Graph,
    Node,
    NodeEffect,
    NodeKind,
    Value,
    row_of,
)
from everyorder.runtime.script.passes.aliases import Aliases
from everyorder.runtime.script.primitives import by_name
from everyorder.runtime.script.primitives.operator_calls import (
    bound_call,
    is_own,
    is_plain,
)
from everyorder.runtime.tensors.construction import empty_tensor
from everyorder.runtime.tensors.tensor import Tensor

META = Device("meta")
# The attributes in which modules store parameters, buffers and submodules.
_TABLES = ("_parameters", "_buffers", "_modules")
# Primitives that work on `meta` tensors as on any other.
_VIEWS = ("script::T.Tensor", "script::mT.Tensor")
# A number of each type.
_ONE: Mapping[Any, Any] = {IntType: 1, FloatType: 1.0, BoolType: True}


class TensorMeta(NamedTuple):
    """The dtype, shape and device of a tensor."""

    dtype: DType
    shape: tuple[int, ...]
    device: Device = CPU


class _MetaTensor(NamedTuple):
    """A tensor without elements, and the device of the tensor that it represents."""

    tensor: Tensor
    device: Device


class _UnknownShape(Exception):
    """The shape or value is not known."""


def facts_of(tensor: Tensor) -> TensorMeta:
    """Return the dtype, shape and device of a tensor."""
    return TensorMeta(tensor.dtype, tensor.shape, tensor.device)


def propagate_shapes(
    graph: Graph, facts: Mapping[Value, TensorMeta | Any] | Sequence[TensorMeta | None]
) -> dict[Value, TensorMeta]:
    """Return dtype, shape and device of all tensors of a graph, if known.

    `facts` describes the parameters in their order, with None for unknown ones; or it
    maps any values, including constants, to their facts.
    """
    if not isinstance(facts, Mapping):
        pairs = zip(graph.block.parameters, facts, strict=True)
        facts = {value: each for value, each in pairs if each is not None}
    return _walked(graph, {value: _meta_tensor(each) for value, each in facts.items()})


def shapes_for(graph: Graph, arguments: Sequence[Any]) -> dict[Value, TensorMeta]:
    """Return the known facts of all tensors of a graph that runs on these arguments.

    Attributes of objects among them are read from the instance dictionaries; no code of
    the objects runs.
    """
    pairs = zip(graph.block.parameters, arguments, strict=True)
    return _walked(graph, {value: _as_meta(each) for value, each in pairs})


def _walked(graph: Graph, known_values: dict[Value, Any]) -> dict[Value, TensorMeta]:
    walk = _ShapeWalk(graph, known_values)
    if not WATCH.active and is_plain(0, LOCAL.view):
        walk.block(graph.block)
    return {
        value: TensorMeta(each.tensor.dtype, each.tensor.shape, each.device)
        for value, each in walk.known.items()
        if isinstance(each, _MetaTensor)
    }


def _as_meta(value: Any) -> Any:
    """Return an argument with its tensors replaced by `meta` tensors."""
    if isinstance(value, Tensor):
        return _meta_tensor(facts_of(value))
    if value.__class__ is list:
        return [_as_meta(each) for each in value]
    if value.__class__ is tuple:
        return tuple([_as_meta(each) for each in value])
    return value


def _attribute(owner: Any, name: str) -> Any:
    """Return an attribute of an object, also from the tables of a module."""
    instance_dict = getattr(owner, "__dict__", {})
    for table in (instance_dict, *[instance_dict.get(each, {}) for each in _TABLES]):
        if name in table:
            return _as_meta(table[name])
    raise _UnknownShape


def _meta_tensor(fact: Any) -> Any:
    if not isinstance(fact, TensorMeta):
        return fact
    return _MetaTensor(empty_tensor(fact.shape, fact.dtype, META), fact.device)


class _ShapeWalk:
    """A walk through a graph and the values that are known so far."""

    def __init__(self, graph: Graph, known_values: dict[Value, Any]) -> None:
        self.known = known_values
        self.aliases = Aliases(graph)
        self.state = default_dispatcher().state

    def block(self, block: Block) -> None:
        """Visit all nodes of a block."""
        for node in block:
            try:
                if node.kind == "prim::If":
                    self._branches(node)
                elif node.kind == "prim::Loop":
                    self._loop(node)
                elif node.blocks:
                    self.block(node.blocks[0])
                else:
                    results = self._results(node)
                    self.known.update(zip(node.outputs, results, strict=True))
            except _UnknownShape:
                continue

    def _branches(self, node: Node) -> None:
        one, other = node.blocks
        self.block(one)
        self.block(other)
        for output, *results in zip(
            node.outputs, one.results, other.results, strict=True
        ):
            self._both(output, *results)

    def _both(self, output: Value, one: Value, other: Value) -> None:
        """Record an output that is one of two values if both agree."""
        first = self.known.get(one, _UnknownShape)
        if first is not _UnknownShape and _alike(
            first, self.known.get(other, _UnknownShape)
        ):
            self.known[output] = first

    def _loop(self, node: Node) -> None:
        (body,) = node.blocks
        carried = [*zip(body.parameters[1:], node.inputs[2:], strict=True)]
        for parameter, value in carried:
            if value in self.known:
                self.known[parameter] = self.known[value]
        before = {**self.known}
        while True:
            self.block(body)
            changed = [
                parameter
                for parameter, result in zip(
                    body.parameters[1:], body.results[1:], strict=True
                )
                if parameter in before
                and not _alike(before[parameter], self.known.get(result, _UnknownShape))
            ]
            if not changed:
                break
            # Repeat with fewer known values.
            for parameter in changed:
                del before[parameter]
            self.known.clear()
            self.known.update(before)
        for output, parameter in zip(node.outputs, body.parameters[1:], strict=True):
            if parameter in self.known:
                self.known[output] = self.known[parameter]

    def _value(self, value: Value) -> Any:
        if value not in self.known or self.aliases.is_written(value):
            known_value = self.known.get(value)
            # A write to a tensor changes only its elements.
            if not isinstance(known_value, _MetaTensor):
                raise _UnknownShape
        return self.known[value]

    def _results(self, node: Node) -> Sequence[Any]:
        if node.kind == "prim::Constant" and "value" in node.attributes:
            return (node.attributes["value"],)
        row = row_of(node.kind)
        operands = [
            self._number(node, row, at)
            if each not in self.known and each.type in _ONE
            else self._value(each)
            for at, each in enumerate(node.inputs)
        ]
        if node.kind == "prim::ListConstruct":
            return (operands,)
        if node.kind == "prim::TupleConstruct":
            return (tuple(operands),)
        if node.kind in ("prim::TupleUnpack", "prim::ListUnpack"):
            (whole,) = operands
            if len(whole) != len(node.outputs):
                raise _UnknownShape
            return whole  # type: ignore[no-any-return]  # a list or tuple
        if node.kind == "prim::TupleIndex":
            return (operands[0][node.attributes["index"]],)
        if node.kind == "prim::GetAttr":
            return (_attribute(operands[0], node.attributes["name"]),)
        if node.kind == "prim::unchecked_cast":
            return operands
        if row is None or row.schema is None:
            raise _UnknownShape
        if (
            NodeEffect.NONDETERMINISTIC in row.effects
            or NodeEffect.UNKNOWN in row.effects
        ):
            raise _UnknownShape
        result = self._computed(node, row, operands)
        return result if len(node.outputs) > 1 else (result,)

    def _number(self, node: Node, row: NodeKind | None, at: int) -> Any:
        """Return a number in the place of a tensor: only its type matters."""
        if row is None or row.schema is None or len(row.schema.arguments) <= at:
            raise _UnknownShape
        if row.schema.arguments[at].type is not TensorType:
            raise _UnknownShape
        return _ONE[node.inputs[at].type]

    def _computed(self, node: Node, row: NodeKind, operands: list[Any]) -> Any:
        """Return the results of an operator, or a primitive."""
        primitive = by_name(node.kind)
        if primitive is not None:
            if node.kind in _VIEWS:
                (pretended,) = operands
                result = _tried(primitive.function, [_meta_argument(pretended)])
                return _wrapped(result, pretended.device)
            if row.writes or any(_has_tensors(each) for each in operands):
                raise _UnknownShape
            return _tried(primitive.function, operands)
        if not is_own(node.kind, self.state):
            raise _UnknownShape
        assert row.schema is not None, "the caller has checked it"
        device = _device_of(operands)
        entry = self.state.entry(row.schema.name)
        assert entry is not None, "a built-in operator is registered"
        bound = bound_call(
            default_dispatcher(), row.schema.name, entry.definitions[0].reading
        )
        meta_operands = [_meta_argument(each) for each in operands]
        if not _tensors(operands):
            # A factory operator creates a `meta` tensor only if `device` says so.
            names = [each.name for each in row.schema.arguments]
            meta_operands = [
                META if name == "device" else each
                for name, each in zip(names, meta_operands, strict=True)
            ]
        result = _tried(bound.call, meta_operands)
        if row.schema.is_varret or not row.schema.returns:
            raise _UnknownShape
        return _wrapped(result, device)


def _tried(function: Any, operands: list[Any]) -> Any:
    try:
        return function(*operands)
    except Exception as error:
        # If it is an error, the graph raises it when it runs.
        raise _UnknownShape from error


def _meta_argument(value: Any) -> Any:
    """Return a value as an argument of an operator on `meta`."""
    if isinstance(value, _MetaTensor):
        return value.tensor
    if isinstance(value, Device):
        return META
    if isinstance(value, list):
        return [_meta_argument(each) for each in value]
    return value


def _has_tensors(value: Any) -> bool:
    if isinstance(value, list | tuple) and not isinstance(value, _MetaTensor):
        return any(map(_has_tensors, value))
    return isinstance(value, _MetaTensor)


def _tensors(value: Any) -> list[_MetaTensor]:
    if isinstance(value, _MetaTensor):
        return [value]
    if isinstance(value, list | tuple):
        return [each for part in value for each in _tensors(part)]
    return []


def _device_of(operands: Sequence[Any]) -> Device:
    """Return the device of the results: the `device` argument, or the tensors'."""
    for each in operands:
        if isinstance(each, Device):
            return each
    tensors = _tensors(operands)
    for pretended in tensors:
        if pretended.tensor.shape:
            return pretended.device
    return tensors[0].device if tensors else CPU


def _wrapped(value: Any, device: Device) -> Any:
    if isinstance(value, Tensor):
        if value.device is not META:
            raise _UnknownShape
        return _MetaTensor(value, device)
    if isinstance(value, list):
        return [_wrapped(each, device) for each in value]
    if isinstance(value, tuple):
        return tuple([_wrapped(each, device) for each in value])
    return value


def _alike(one: Any, other: Any) -> bool:
    """Return True if two known values are equal as far as they are known."""
    if one.__class__ is not other.__class__:
        return False
    if isinstance(one, _MetaTensor):
        x, y = one.tensor, other.tensor
        same = x.dtype is y.dtype and x.shape == y.shape
        return same and one.device is other.device
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    return bool(one == other and repr(one) == repr(other))
