"""The graph builder: create graphs from Python, node by node.

A call that is written in Python becomes a node:

    builder = GraphBuilder("f")
    x = builder.parameter(TensorType, "x")
    builder.result(builder.insert("core::add", x, 1, alpha=2))
    graph = builder.finish()

Rules:
- a node is appended to the current block: the outermost one, or the argument of
  `inside`;
- an argument that is not a value of the graph becomes a constant, a list a node of
  constants; for an operator named without overload, the first overload that accepts the
  arguments is used;
- types of outputs are inferred by the rule of the kind; kinds that leave them open need
  `types`; a call without valid types is refused, and adds no node;
- `finish` checks the graph.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from everyorder.runtime.dispatch.dispatcher import default_dispatcher
from everyorder.runtime.errors.script import Untraceable
from everyorder.runtime.schema.call_errors import describe_value
from everyorder.runtime.schema.enums import EnumConstant
from everyorder.runtime.schema.signature import OperatorName
from everyorder.runtime.schema.subtyping import Mismatch, unify, variables
from everyorder.runtime.schema.types import (
    DictType,
    FunctionType,
    IntType,
    ListType,
    NumberType,
    TensorType,
    TupleType,
    Type,
    unwrap_optional,
)
from everyorder.runtime.schema.values import is_tensor
from everyorder.runtime.script.ir import (
    Block,
    Graph,
    Node,
    NodeKind,
    Place,
    Value,
    check,
    row_of,
)
from everyorder.runtime.script.ir.program import Function
from everyorder.runtime.script.ir.type_rules import PLAIN_TYPES

CONSTANT = "prim::Constant"
# Values of subclasses of these classes are converted to the class.
_KINDS = (bool, int, float, complex, str)


def plain_of(value: Any) -> tuple[Any, Type] | None:
    """Return a value as a graph constant with its type, or None."""
    if isinstance(value, EnumConstant):
        return value.code, IntType
    kind = type(value)
    if kind not in PLAIN_TYPES:
        kind = next((each for each in _KINDS if isinstance(value, each)), kind)
        if kind in PLAIN_TYPES:
            value = kind(value)
    type_ = PLAIN_TYPES.get(kind)
    return None if type_ is None else (value, type_)


class GraphBuilder:
    """A graph under construction, and the block for the next node."""

    def __init__(self, name: str = "") -> None:
        self.graph = Graph(name)
        self.block: Block = self.graph.block
        # The place of every node that is created.
        self.place: Place | None = None

    def parameter(self, of: Type, hint: str = "") -> Value:
        """Append a parameter to the block."""
        return self.block.add_parameter(of, hint)

    def result(self, value: Any) -> None:
        """Append a result to the block."""
        self.block.add_result(self.value(value))

    @contextmanager
    def inside(self, block: Block) -> Iterator[Block]:
        """Append nodes to `block` within the context."""
        before, self.block = self.block, block
        try:
            yield block
        finally:
            self.block = before

    def value(self, argument: Any, expected: Type | None = None) -> Value:
        """Return an argument as a value of the graph.

        `expected` determines the types of the elements of a list or a dictionary.

        Raises:
            Untraceable: a graph cannot hold the argument.
        """
        if isinstance(argument, Value):
            return argument
        expected = None if expected is None else unwrap_optional(expected)
        if isinstance(argument, tuple) and not isinstance(expected, ListType):
            return self.tuple_of(argument)
        if isinstance(argument, list | tuple):
            of = expected.element if isinstance(expected, ListType) else None
            return self.list_of(argument, None if of is None or variables(of) else of)
        if isinstance(argument, dict):
            pair = (
                (expected.key, expected.value)
                if isinstance(expected, DictType)
                else None
            )
            return self.dict_of(argument, pair)
        return self.constant(argument)

    def constant(self, value: Any) -> Value:
        """Append a constant: number, text, device, enum, None, tensor or function.

        Raises:
            Untraceable: the value is none of these.
        """
        if isinstance(value, Function):
            attributes: dict[str, Any] = {"function": value}
            return self._put(CONSTANT, (), [FunctionType], attributes).output
        plain = plain_of(value)
        if plain is None and is_tensor(value):
            plain = value, TensorType
        if plain is None:
            reason = f"{describe_value(value)} is not a constant of a graph"
            raise Untraceable(code="BuildRefused", kind=CONSTANT, reason=reason)
        constant, of = plain
        return self._put(CONSTANT, (), [of], {"value": constant}).output

    def tuple_of(self, elements: Iterable[Any], of: TupleType | None = None) -> Value:
        """Append a tuple of values; `of` gives its names, if it has some."""
        values = [self.value(each) for each in elements]
        tuple_type = of or TupleType(tuple([each.type for each in values]))
        return self.node("prim::TupleConstruct", values, [tuple_type]).output

    def list_of(self, elements: Iterable[Any], of: Type | None = None) -> Value:
        """Append a list of values; `of` is the element type if not inferred.

        Raises:
            Untraceable: the elements are missing, or of several types.
        """
        values = [self.value(each) for each in elements]
        kind = "prim::ListConstruct"
        list_type = ListType(of or self._one(kind, values))
        return self.node(kind, values, [list_type]).output

    def dict_of(
        self, pairs: Mapping[Any, Any], of: tuple[Type, Type] | None = None
    ) -> Value:
        """Append a dictionary of values by constant keys; for `of` see `list_of`.

        Raises:
            Untraceable: the elements are missing, or of several types.
        """
        values = [self.value(each) for pair in pairs.items() for each in pair]
        kind = "prim::DictConstruct"
        if of is None:
            of = self._one(kind, values[::2]), self._one(kind, values[1::2])
        return self.node(kind, values, [DictType(*of)]).output

    def _one(self, kind: str, values: Sequence[Value]) -> Type:
        if not values:
            raise Untraceable(
                code="BuildRefused",
                kind=kind,
                reason="the type of its elements is not known",
            )
        element = unify(*dict.fromkeys(each.type for each in values))
        if isinstance(element, Mismatch):
            raise Untraceable(code="BuildRefused", kind=kind, reason=element.reason)
        return element

    def unpack(self, value: Value, count: int | None = None) -> Sequence[Value]:
        """Append a node that unpacks a tuple, or a list of `count` elements.

        Raises:
            Untraceable: the value is neither.
        """
        if isinstance(value.type, ListType) and count is not None:
            types = [value.type.element] * count
            return self.node("prim::ListUnpack", [value], types).outputs
        return self.node("prim::TupleUnpack", [value]).outputs

    def call(self, function: Function, *args: Any) -> Value:
        """Append a call of a compiled function, with all of its arguments.

        Raises:
            Untraceable: the function does not accept the arguments.
        """
        values = [self.constant(function), *map(self.value, args)]
        return self.node("prim::CallFunction", values).output

    def insert(self, operator: str, *args: Any, **kwargs: Any) -> Any:
        """Append a call of an operator; return its output, a tuple of several, or None.

        Raises:
            Untraceable: the operator does not exist, or no overload accepts the
            arguments.
        """
        reasons: list[str] = []
        for row in _overloads(operator):
            assert row.schema is not None, "an operator has a schema"
            try:
                arguments = self._bound(row, args, kwargs)
                outcome = self._outcome(row, arguments, {})
            except Untraceable as error:
                if error.code != "BuildRefused":
                    raise
                reasons.append(error.reason)
                continue
            if isinstance(outcome, str):
                reasons.append(outcome)
                continue
            values = [self.value(each, of) for each, of in arguments]
            outputs = self._put(row.name, values, outcome).outputs
            if not outputs:
                return None
            return outputs[0] if len(outputs) == 1 else tuple(outputs)
        # The first overload is most likely the intended one.
        reason = reasons[0] if reasons else "there is no such operator"
        raise Untraceable(code="BuildRefused", kind=operator, reason=reason)

    def node(
        self,
        kind: str,
        inputs: Iterable[Any] = (),
        types: Sequence[Type] | None = None,
        *,
        blocks: int = 0,
        **attributes: Any,
    ) -> Node:
        """Append a node of any kind.

        Without `types` the types of outputs are inferred. A node with blocks needs
        `types`, because its blocks are filled afterwards.

        Raises:
            Untraceable: the kind does not accept the inputs, types and attributes.
        """
        values = [self.value(each) for each in inputs]
        row = row_of(kind)
        if row is None:
            raise Untraceable(
                code="BuildRefused", kind=kind, reason="there is no such kind"
            )
        if not row.inputs.takes(len(values)):
            raise Untraceable(
                code="BuildRefused",
                kind=kind,
                reason=f"it does not take {len(values)} inputs",
            )
        if not blocks:
            arguments = [(each, None) for each in values]
            outcome = self._outcome(row, arguments, attributes, types)
            if isinstance(outcome, str):
                raise Untraceable(code="BuildRefused", kind=kind, reason=outcome)
            types = outcome if types is None else types
        result = self._put(kind, values, types or (), attributes)
        for _ in range(blocks):
            result.add_block()
        return result

    def finish(self) -> Graph:
        """Check the graph and return it.

        Raises:
            BrokenGraph: the graph breaks a law.
        """
        check(self.graph, "building")
        return self.graph

    def _put(
        self,
        kind: str,
        inputs: Iterable[Value],
        types: Iterable[Type],
        attributes: Mapping[str, Any] | None = None,
    ) -> Node:
        return self.block.append(Node(kind, inputs, types, attributes, self.place))

    def _outcome(
        self,
        row: NodeKind,
        inputs: Iterable[tuple[Any, Type | None]],
        attributes: Mapping[str, Any],
        types: Sequence[Type] | None = None,
    ) -> tuple[Type, ...] | str:
        """Return the output types of such a node, or the reason for a refusal."""
        apart = Block()
        with self.inside(apart):
            try:
                values = [self.value(each, of) for each, of in inputs]
                probe = Node(row.name, values, types or (), attributes)
                outcome = row.infer(probe)
                probe.set_inputs(())
            finally:
                apart.clear()
        return outcome

    def _bound(
        self, row: NodeKind, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> list[tuple[Any, Type | None]]:
        """Return every argument of the schema, in order, with its type."""
        schema, left = row.schema, dict(kwargs)
        assert schema is not None, "an operator has a schema"
        bound: list[tuple[Any, Type | None]] = []
        for place, argument in enumerate(schema.arguments):
            if place < len(args) and not argument.kwarg_only:
                value = args[place]
            elif argument.name in left:
                value = left.pop(argument.name)
            elif argument.has_default:
                value = argument.default
            else:
                reason = f"`{argument.name}` is missing"
                raise Untraceable(code="BuildRefused", kind=row.name, reason=reason)
            declared = argument.fake_type
            if argument.size is not None and isinstance(value, int | float):
                value = [value] * argument.size
            bound.append((value, declared))
        surplus = args[schema.kwarg_only_start :]
        if left or (surplus and not schema.is_vararg):
            much = f"no argument `{min(left)}`" if left else f"no room for {len(args)}"
            raise Untraceable(
                code="BuildRefused", kind=row.name, reason=f"it has {much}"
            )
        return bound + [(each, None) for each in surplus]


def _overloads(operator: str) -> list[NodeKind]:
    """Return the row of the named overload, or the rows of all overloads.

    Rows that accept numbers of any kind are last.
    """
    row = row_of(operator)
    rows = [row] if row is not None else []
    if "." not in operator:
        entries = default_dispatcher().state.overloads(OperatorName(operator))
        names = [str(each.name) for each in entries]
        others = [row_of(each) for each in names if each != operator]
        rows += [each for each in others if each is not None]
    # Kinds of the table are without schema: `node` creates those.
    operators = [each for each in rows if each.schema is not None]
    return sorted(operators, key=_takes_any_number)


def _takes_any_number(row: NodeKind) -> bool:
    schema = row.schema
    return schema is not None and any(
        each.type is NumberType and not each.kwarg_only for each in schema.arguments
    )
