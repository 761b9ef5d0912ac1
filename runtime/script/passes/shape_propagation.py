"""Shapes: which dtype, shape and device tensors have, from those of the parameters.

Operators run on tensors without elements, before the graph runs.

Rules:
- an operator of the runtime's own runs on `meta`, as its kernel there says; any other
  is not asked, as it may do anything;
- a number that is not known stands where a tensor does as any of its type;
- other values count as far as they are known: constants, lists and tuples of what is
  known, and what primitives make of them; a list that is written to is not known;
- of branches is known what both give, of loops what every trip leaves as it was;
- what depends on elements, is drawn, or raises, is not known: nothing is raised here;
- the answer is a hint: changes of shape (`resize_`) are not looked at, and parameters
  may be other ones by the time the graph runs.
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
# Where modules keep what they have.
_TABLES = ("_parameters", "_buffers", "_modules")
# Primitives that do with a tensor on `meta` what they do with any other.
_VIEWS = ("script::T.Tensor", "script::mT.Tensor")
# A number of each type.
_ONE: Mapping[Any, Any] = {IntType: 1, FloatType: 1.0, BoolType: True}


class TensorMeta(NamedTuple):
    """The dtype, shape and device of a tensor."""

    dtype: DType
    shape: tuple[int, ...]
    device: Device = CPU


class _MetaTensor(NamedTuple):
    """A tensor without elements, and the device that it stands for one on."""

    tensor: Tensor
    device: Device


class _UnknownShape(Exception):
    """The value is not known."""


def facts_of(tensor: Tensor) -> TensorMeta:
    """The facts of a tensor."""
    return TensorMeta(tensor.dtype, tensor.shape, tensor.device)


def propagate_shapes(
    graph: Graph, given: Mapping[Value, TensorMeta | Any] | Sequence[TensorMeta | None]
) -> dict[Value, TensorMeta]:
    """The facts of all tensors of a graph.

    `given` has facts of the parameters, in their order, None for what is not known; or
    of any values, by the value, also constants.
    """
    if not isinstance(given, Mapping):
        pairs = zip(graph.block.parameters, given, strict=True)
        given = {value: each for value, each in pairs if each is not None}
    return _walked(graph, {value: _meta_tensor(each) for value, each in given.items()})


def shapes_for(graph: Graph, arguments: Sequence[Any]) -> dict[Value, TensorMeta]:
    """The facts of all tensors of a graph that runs on these arguments.

    Attributes of objects among them are looked up where objects keep them; nothing of
    theirs is run.
    """
    pairs = zip(graph.block.parameters, arguments, strict=True)
    return _walked(graph, {value: _as_meta(each) for value, each in pairs})


def _walked(graph: Graph, known: dict[Value, Any]) -> dict[Value, TensorMeta]:
    walk = _ShapeWalk(graph, known)
    if not WATCH.active and is_plain(0, LOCAL.view):
        walk.block(graph.block)
    return {
        value: TensorMeta(each.tensor.dtype, each.tensor.shape, each.device)
        for value, each in walk.known.items()
        if isinstance(each, _MetaTensor)
    }


def _as_meta(value: Any) -> Any:
    """A value that is there, its tensors without elements."""
    if isinstance(value, Tensor):
        return _meta_tensor(facts_of(value))
    if value.__class__ is list:
        return [_as_meta(each) for each in value]
    if value.__class__ is tuple:
        return tuple([_as_meta(each) for each in value])
    return value


def _attribute(owner: Any, name: str) -> Any:
    """An attribute of an object, also one that a module keeps in its tables."""
    kept = getattr(owner, "__dict__", {})
    for table in (kept, *[kept.get(each, {}) for each in _TABLES]):
        if name in table:
            return _as_meta(table[name])
    raise _UnknownShape


def _meta_tensor(fact: Any) -> Any:
    if not isinstance(fact, TensorMeta):
        return fact
    return _MetaTensor(empty_tensor(fact.shape, fact.dtype, META), fact.device)


class _ShapeWalk:
    """The values that are known so far."""

    def __init__(self, graph: Graph, known: dict[Value, Any]) -> None:
        self.known = known
        self.aliases = Aliases(graph)
        self.state = default_dispatcher().state

    def block(self, block: Block) -> None:
        """Look at all nodes of a block."""
        for node in block:
            try:
                if node.kind == "prim::If":
                    self._branches(node)
                elif node.kind == "prim::Loop":
                    self._loop(node)
                elif node.blocks:
                    self.block(node.blocks[0])
                else:
                    made = self._results(node)
                    self.known.update(zip(node.outputs, made, strict=True))
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
        """An output that is one of two values: known if they are alike."""
        found = self.known.get(one, _UnknownShape)
        if found is not _UnknownShape and _alike(
            found, self.known.get(other, _UnknownShape)
        ):
            self.known[output] = found

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
            # Once more, of less.
            for parameter in changed:
                del before[parameter]
            self.known.clear()
            self.known.update(before)
        for output, parameter in zip(node.outputs, body.parameters[1:], strict=True):
            if parameter in self.known:
                self.known[output] = self.known[parameter]

    def _value(self, value: Value) -> Any:
        if value not in self.known or self.aliases.is_written(value):
            found = self.known.get(value)
            # Of a tensor only the elements are written.
            if not isinstance(found, _MetaTensor):
                raise _UnknownShape
        return self.known[value]

    def _results(self, node: Node) -> Sequence[Any]:
        if node.kind == "prim::Constant" and "value" in node.attributes:
            return (node.attributes["value"],)
        row = row_of(node.kind)
        given = [
            self._number(node, row, at)
            if each not in self.known and each.type in _ONE
            else self._value(each)
            for at, each in enumerate(node.inputs)
        ]
        if node.kind == "prim::ListConstruct":
            return (given,)
        if node.kind == "prim::TupleConstruct":
            return (tuple(given),)
        if node.kind in ("prim::TupleUnpack", "prim::ListUnpack"):
            (whole,) = given
            if len(whole) != len(node.outputs):
                raise _UnknownShape
            return whole  # type: ignore[no-any-return]  # a list or tuple
        if node.kind == "prim::TupleIndex":
            return (given[0][node.attributes["index"]],)
        if node.kind == "prim::GetAttr":
            return (_attribute(given[0], node.attributes["name"]),)
        if node.kind == "prim::unchecked_cast":
            return given
        if row is None or row.schema is None:
            raise _UnknownShape
        if (
            NodeEffect.NONDETERMINISTIC in row.effects
            or NodeEffect.UNKNOWN in row.effects
        ):
            raise _UnknownShape
        found = self._computed(node, row, given)
        return found if len(node.outputs) > 1 else (found,)

    def _number(self, node: Node, row: NodeKind | None, at: int) -> Any:
        """A number that stands where a tensor does: of it only the type counts."""
        if row is None or row.schema is None or len(row.schema.arguments) <= at:
            raise _UnknownShape
        if row.schema.arguments[at].type is not TensorType:
            raise _UnknownShape
        return _ONE[node.inputs[at].type]

    def _computed(self, node: Node, row: NodeKind, given: list[Any]) -> Any:
        """The results of an operator, or a primitive."""
        primitive = by_name(node.kind)
        if primitive is not None:
            if node.kind in _VIEWS:
                (pretended,) = given
                made = _tried(primitive.function, [_shown(pretended)])
                return _wrapped(made, pretended.device)
            if row.writes or any(_has_tensors(each) for each in given):
                raise _UnknownShape
            return _tried(primitive.function, given)
        if not is_own(node.kind, self.state):
            raise _UnknownShape
        assert row.schema is not None, "it was looked at"
        device = _device_of(given)
        entry = self.state.entry(row.schema.name)
        assert entry is not None, "it is the runtime's own"
        bound = bound_call(
            default_dispatcher(), row.schema.name, entry.definitions[0].reading
        )
        shown = [_shown(each) for each in given]
        if not _tensors(given):
            # What is made of nothing lies on `meta` only where it is told to.
            names = [each.name for each in row.schema.arguments]
            shown = [
                META if name == "device" else each
                for name, each in zip(names, shown, strict=True)
            ]
        made = _tried(bound.call, shown)
        if row.schema.is_varret or not row.schema.returns:
            raise _UnknownShape
        return _wrapped(made, device)


def _tried(function: Any, given: list[Any]) -> Any:
    try:
        return function(*given)
    except Exception as error:
        # It is raised when the graph runs, if it is.
        raise _UnknownShape from error


def _shown(value: Any) -> Any:
    """A value as an operator on `meta` is given it."""
    if isinstance(value, _MetaTensor):
        return value.tensor
    if isinstance(value, Device):
        return META
    if isinstance(value, list):
        return [_shown(each) for each in value]
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


def _device_of(given: Sequence[Any]) -> Device:
    """Where the results are: at the device that is named, else with the tensors."""
    for each in given:
        if isinstance(each, Device):
            return each
    tensors = _tensors(given)
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
    """Whether two known values are the same, as far as anything is known of them."""
    if one.__class__ is not other.__class__:
        return False
    if isinstance(one, _MetaTensor):
        x, y = one.tensor, other.tensor
        same = x.dtype is y.dtype and x.shape == y.shape
        return same and one.device is other.device
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    return bool(one == other and repr(one) == repr(other))
