"""Building: graphs made from Python, one node after another.

A call that is written in Python becomes a node:

    builder = GraphBuilder("f")
    x = builder.parameter(TensorType, "x")
    builder.result(builder.insert("core::add", x, 1, alpha=2))
    graph = builder.finish()

Rules:
- a node is put where the builder stands: at the end of a block, the outermost one
  unless `inside` says which;
- what is no value of the graph becomes a constant, a list a node of constants; of an
  operator that is named without overload, the first one that takes what is given;
- types of outputs follow from the rule of the kind; kinds that leave them open are told
  them in `types`; a call that has no outcome is refused, and leaves nothing;
- a graph that is finished was checked.
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
# Classes whose subclasses' values are theirs.
_KINDS = (bool, int, float, complex, str)


def plain_of(value: Any) -> tuple[Any, Type] | None:
    """A constant as graphs have it (a code is an int) and its type, or None."""
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
    """A graph that is being made, and where the next node is put."""

    def __init__(self, name: str = "") -> None:
        self.graph = Graph(name)
        self.block: Block = self.graph.block
        # Given to every node that is made.
        self.place: Place | None = None

    def parameter(self, of: Type, hint: str = "") -> Value:
        """One parameter more of the block."""
        return self.block.add_parameter(of, hint)

    def result(self, value: Any) -> None:
        """One result more of the block."""
        self.block.add_result(self.value(value))

    @contextmanager
    def inside(self, block: Block) -> Iterator[Block]:
        """Context: nodes are put at the end of `block`."""
        before, self.block = self.block, block
        try:
            yield block
        finally:
            self.block = before

    def value(self, given: Any, wanted: Type | None = None) -> Value:
        """A value of the graph: given as it is, or a constant, or a node of constants.

        `wanted` says what a list or a dictionary may hold.

        Raises:
            Untraceable: it is nothing that a graph holds.
        """
        if isinstance(given, Value):
            return given
        wanted = None if wanted is None else unwrap_optional(wanted)
        if isinstance(given, tuple) and not isinstance(wanted, ListType):
            return self.tuple_of(given)
        if isinstance(given, list | tuple):
            of = wanted.element if isinstance(wanted, ListType) else None
            return self.list_of(given, None if of is None or variables(of) else of)
        if isinstance(given, dict):
            pair = (wanted.key, wanted.value) if isinstance(wanted, DictType) else None
            return self.dict_of(given, pair)
        return self.constant(given)

    def constant(self, value: Any) -> Value:
        """A number, a text, a device, a code, None, a tensor or a function.

        Raises:
            Untraceable: it is nothing of that.
        """
        if isinstance(value, Function):
            attributes: dict[str, Any] = {"function": value}
            return self._put(CONSTANT, (), [FunctionType], attributes).output
        plain = plain_of(value)
        if plain is None and is_tensor(value):
            plain = value, TensorType
        if plain is None:
            reason = f"{describe_value(value)} is no constant of a graph"
            raise Untraceable(code="BuildRefused", kind=CONSTANT, reason=reason)
        constant, of = plain
        return self._put(CONSTANT, (), [of], {"value": constant}).output

    def tuple_of(self, elements: Iterable[Any], of: TupleType | None = None) -> Value:
        """A tuple of values; `of` says its names, if it has some."""
        values = [self.value(each) for each in elements]
        wanted = of or TupleType(tuple([each.type for each in values]))
        return self.node("prim::TupleConstruct", values, [wanted]).output

    def list_of(self, elements: Iterable[Any], of: Type | None = None) -> Value:
        """A list of values; `of` is what it may hold, if they do not say it.

        Raises:
            Untraceable: there are none, or they are of several types.
        """
        values = [self.value(each) for each in elements]
        kind = "prim::ListConstruct"
        wanted = ListType(of or self._one(kind, values))
        return self.node(kind, values, [wanted]).output

    def dict_of(
        self, pairs: Mapping[Any, Any], of: tuple[Type, Type] | None = None
    ) -> Value:
        """A dictionary of values by constant keys; for `of` see `list_of`.

        Raises:
            Untraceable: there are none, or they are of several types.
        """
        values = [self.value(each) for pair in pairs.items() for each in pair]
        kind = "prim::DictConstruct"
        if of is None:
            of = self._one(kind, values[::2]), self._one(kind, values[1::2])
        return self.node(kind, values, [DictType(*of)]).output

    def _one(self, kind: str, values: Sequence[Value]) -> Type:
        if not values:
            raise Untraceable(
                code="BuildRefused", kind=kind, reason="nothing says what it holds"
            )
        found = unify(*dict.fromkeys(each.type for each in values))
        if isinstance(found, Mismatch):
            raise Untraceable(code="BuildRefused", kind=kind, reason=found.reason)
        return found

    def unpack(self, value: Value, count: int | None = None) -> Sequence[Value]:
        """The elements of a tuple, or of a list that has `count` of them.

        Raises:
            Untraceable: it is neither.
        """
        if isinstance(value.type, ListType) and count is not None:
            types = [value.type.element] * count
            return self.node("prim::ListUnpack", [value], types).outputs
        return self.node("prim::TupleUnpack", [value]).outputs

    def call(self, function: Function, *args: Any) -> Value:
        """A call of a compiled function, with all of its arguments.

        Raises:
            Untraceable: it does not take them.
        """
        values = [self.constant(function), *map(self.value, args)]
        return self.node("prim::CallFunction", values).output

    def insert(self, operator: str, *args: Any, **kwargs: Any) -> Any:
        """A call of an operator: its output, a tuple of several, or None.

        Raises:
            Untraceable: there is no such operator, or none takes these arguments.
        """
        reasons: list[str] = []
        for row in _overloads(operator):
            assert row.schema is not None, "an operator has a schema"
            try:
                given = self._bound(row, args, kwargs)
                outcome = self._outcome(row, given, {})
            except Untraceable as error:
                if error.code != "BuildRefused":
                    raise
                reasons.append(error.reason)
                continue
            if isinstance(outcome, str):
                reasons.append(outcome)
                continue
            values = [self.value(each, wanted) for each, wanted in given]
            outputs = self._put(row.name, values, outcome).outputs
            if not outputs:
                return None
            return outputs[0] if len(outputs) == 1 else tuple(outputs)
        # What is said of the first overload is most likely what was meant.
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
        """A node of any kind, put where the builder stands.

        Types that are not given follow from the inputs.  The blocks of a node that has
        some are filled afterwards, which is why its `types` are given.

        Raises:
            Untraceable: the kind does not go with inputs, types and attributes.
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
            given = [(each, None) for each in values]
            outcome = self._outcome(row, given, attributes, types)
            if isinstance(outcome, str):
                raise Untraceable(code="BuildRefused", kind=kind, reason=outcome)
            types = outcome if types is None else types
        made = self._put(kind, values, types or (), attributes)
        for _ in range(blocks):
            made.add_block()
        return made

    def finish(self) -> Graph:
        """The graph, checked.

        Raises:
            BrokenGraph: it breaks a law.
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
        """The types of the outputs of such a node, or why there is none."""
        apart = Block()
        with self.inside(apart):
            try:
                values = [self.value(each, wanted) for each, wanted in inputs]
                probe = Node(row.name, values, types or (), attributes)
                found = row.infer(probe)
                probe.set_inputs(())
            finally:
                apart.clear()
        return found

    def _bound(
        self, row: NodeKind, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> list[tuple[Any, Type | None]]:
        """Every argument of the schema, in order, with its type."""
        schema, left = row.schema, dict(kwargs)
        assert schema is not None, "an operator has a schema"
        given: list[tuple[Any, Type | None]] = []
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
            wanted = argument.fake_type
            if argument.size is not None and isinstance(value, int | float):
                value = [value] * argument.size
            given.append((value, wanted))
        surplus = args[schema.kwarg_only_start :]
        if left or (surplus and not schema.is_vararg):
            much = f"no argument `{min(left)}`" if left else f"no room for {len(args)}"
            raise Untraceable(
                code="BuildRefused", kind=row.name, reason=f"it has {much}"
            )
        return given + [(each, None) for each in surplus]


def _overloads(operator: str) -> list[NodeKind]:
    """The rows of an operator: the one that is named, or all overloads.

    Those that take numbers of any kind come last.
    """
    row = row_of(operator)
    found = [row] if row is not None else []
    if "." not in operator:
        entries = default_dispatcher().state.overloads(OperatorName(operator))
        names = [str(each.name) for each in entries]
        others = [row_of(each) for each in names if each != operator]
        found += [each for each in others if each is not None]
    # Kinds of the table have no schema: `node` makes those.
    operators = [each for each in found if each.schema is not None]
    return sorted(operators, key=_takes_any_number)


def _takes_any_number(row: NodeKind) -> bool:
    schema = row.schema
    return schema is not None and any(
        each.type is NumberType and not each.kwarg_only for each in schema.arguments
    )
