"""Type rules: what a node computes, from what it is given.

For each kind of `runtime.script.ir.node_kinds` there is a function of the node, which
gives the types of its outputs, or says in words why there are none.

Rules:
- a rule reads the node, its blocks and its attributes, and changes nothing;
- the row of the kind is kept already when a rule is asked: inputs and blocks are as
  many, and attributes are of the forms, that it names;
- where an output is free to be wider than what is put into it (a list, a branch), the
  rule takes the node's word for its type, and looks whether all fits in;
- values are compared as `is_subtype` does: a code is an int, and nothing is converted.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from everyorder.runtime.schema.declared import (
    EnumType,
    InterfaceType,
    ModuleType,
    ScriptClassType,
)
from everyorder.runtime.schema.enums import Device
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import Signature
from everyorder.runtime.schema.subtyping import (
    Mismatch,
    is_subtype,
    match,
    substitute,
    variables,
)
from everyorder.runtime.schema.types import (
    CODED,
    AnyType,
    AwaitType,
    BoolType,
    ComplexType,
    DeviceType,
    DictType,
    FloatType,
    FunctionType,
    FutureType,
    IntType,
    ListType,
    NoneType_,
    NumberType,
    OptionalType,
    StrType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    fake,
)
from everyorder.runtime.schema.values import INT_END, INT_FIRST, is_tensor
from everyorder.runtime.script.ir.graph import Block, Graph, Node, Value

# The kinds whose nodes a rule looks for among the inputs.
CONSTANT, CLOSURE = "prim::Constant", "prim::Closure"
# The types of the outputs, or the fault in words.
Outcome = tuple[Type, ...] | str
Rule = Callable[[Node], Outcome]

# How deeply tuples are nested in a constant; types are not nested deeper either.
DEEPEST_CONSTANT = 64


def parts_of(type_: Type) -> tuple[Type, ...]:
    """The types that a type is made of; none of what is declared by a name."""
    if isinstance(type_, DictType):
        return type_.key, type_.value
    if isinstance(type_, UnionType):
        return type_.members
    if isinstance(type_, TupleType):
        return type_.elements
    element = getattr(type_, "element", None)
    return () if element is None else (element,)


def types_of(values: Iterable[Value]) -> tuple[Type, ...]:
    """The types of values."""
    return tuple([each.type for each in values])


def own(node: Node) -> Outcome:
    """The outputs are what the node says."""
    return types_of(node.outputs)


def nothing(node: Node) -> Outcome:
    """No output."""
    return ()


def _own_type(node: Node) -> Type:
    """The type of the first output, or `Any` where there is none to ask."""
    return node.outputs[0].type if node.outputs else AnyType


def _misfits(
    given: Sequence[Value], wanted: Sequence[Type], what: str, into: str
) -> str | None:
    """Why the values do not fit, one each, into values of these types."""
    if len(given) != len(wanted):
        return f"there are {len(given)} {what}s for {len(wanted)} {into}s"
    for place, (value, type_) in enumerate(zip(given, wanted, strict=True)):
        if not is_subtype(value.type, type_):
            return f"{what} {place}, {value.type}, does not fit {into} {place}, {type_}"
    return None


# Constants


def constant(node: Node) -> Outcome:
    """The type of the value, or of the function."""
    wanted, attributes = _own_type(node), node.attributes
    if ("value" in attributes) == ("function" in attributes):
        return "a constant has a `value` or a `function`"
    if "function" in attributes:
        return (FunctionType,)
    if not fits(attributes["value"], wanted):
        return f"the value is no constant of type {wanted}"
    return (wanted,)


def fits(value: Any, type: Type, depth: int = 0) -> bool:  # noqa: A002  # the field's own word
    """Whether `value` is a constant of the type: nothing is converted."""
    if depth > DEEPEST_CONSTANT:
        return False
    if isinstance(type, OptionalType):
        return value is None or fits(value, type.element, depth + 1)
    if isinstance(type, UnionType):
        return any(fits(value, each, depth + 1) for each in type.members)
    if isinstance(type, TupleType):
        return (
            isinstance(value, tuple)
            and getattr(value, "_fields", ()) == type.names
            and len(value) == len(type.elements)
            and all(
                fits(each, element, depth + 1)
                for each, element in zip(value, type.elements, strict=True)
            )
        )
    if isinstance(type, EnumType):
        return isinstance(value, Enum) and type.declaration.python is value.__class__
    if type is AnyType:
        if value.__class__ is tuple:
            return all(fits(each, AnyType, depth + 1) for each in value)
        return any(is_one(value) for is_one in _CONSTANTS.values())
    is_value = _CONSTANTS.get(type)
    return is_value is not None and is_value(value)


def _is_int(value: Any) -> bool:
    return value.__class__ is int and INT_FIRST <= value < INT_END


def _is(kind: type) -> Callable[[Any], bool]:
    return lambda value: value.__class__ is kind


# Class -> the type of its values as constants; by the class itself: a bool is no int.
PLAIN_TYPES: Mapping[type, Type] = {
    type(None): NoneType_,
    bool: BoolType,
    int: IntType,
    float: FloatType,
    complex: ComplexType,
    str: StrType,
    Device: DeviceType,
}
# Type -> whether a value is a constant of it.
_CONSTANTS: dict[Type, Callable[[Any], bool]] = {
    **{type_: _is(kind) for kind, type_ in PLAIN_TYPES.items()},
    **dict.fromkeys((IntType, *CODED), _is_int),
    TensorType: is_tensor,
    NumberType: lambda value: (
        _is_int(value) or value.__class__ is float or value.__class__ is complex
    ),
}


# Control


def _is_condition(value: Value) -> str | None:
    return None if value.type is BoolType else f"the condition is of type {value.type}"


def branches(node: Node) -> Outcome:
    """The types of the outputs; the results of both blocks fit into them."""
    fault = _is_condition(node.inputs[0])
    wanted = types_of(node.outputs)
    for place, block in enumerate(node.blocks):
        if block.parameters:
            fault = fault or f"block {place} of a branch has no parameters"
        misfit = _misfits(block.results, wanted, "result", "output")
        if misfit is not None:
            fault = fault or f"block {place}: {misfit}"
    return wanted if fault is None else fault


def loop(node: Node) -> Outcome:
    """The types of the parameters; the carried values and results fit into them."""
    trips, condition, *carried = node.inputs
    (body,) = node.blocks
    fault = None
    if trips.type is not IntType:
        fault = f"the number of trips is of type {trips.type}"
    fault = fault or _is_condition(condition)
    if not body.parameters or body.parameters[0].type is not IntType:
        fault = fault or "the first parameter of the block is the index, an int"
    if not body.results:
        fault = fault or "the first result of the block is the condition"
    if fault is not None:
        return fault
    wanted = types_of(body.parameters[1:])
    fault = (
        _misfits(carried, wanted, "carried value", "parameter")
        or _is_condition(body.results[0])
        or _misfits(body.results[1:], wanted, "carried result", "parameter")
    )
    return wanted if fault is None else fault


def with_block(node: Node) -> Outcome:
    """The types of the outputs; the block takes the entered value, its results fit."""
    (manager,) = node.inputs
    (body,) = node.blocks
    if len(body.parameters) != 1:
        return "the block has one parameter, what was entered"
    if isinstance(manager.type, ScriptClassType | InterfaceType | ModuleType):
        methods = manager.type.declaration.methods
        for name in ("__enter__", "__exit__"):
            if name not in methods:
                return f"{manager.type} is no context manager: it has no `{name}`"
        entered = _given(methods["__enter__"])
        if not is_subtype(entered, body.parameters[0].type):
            parameter = body.parameters[0].type
            return f"{entered} is entered, the parameter is of type {parameter}"
    wanted = types_of(node.outputs)
    return _misfits(body.results, wanted, "result", "output") or wanted


# Tuples, lists, dictionaries


def tuple_construct(node: Node) -> Outcome:
    """A tuple of the inputs, with the names that the output says."""
    wanted = _own_type(node)
    if not isinstance(wanted, TupleType):
        return f"a tuple is made, and the output is of type {wanted}"
    return _misfits(node.inputs, wanted.elements, "input", "element") or (wanted,)


def tuple_unpack(node: Node) -> Outcome:
    """The elements of a tuple."""
    (given,) = types_of(node.inputs)
    return given.elements if isinstance(given, TupleType) else f"{given} is no tuple"


def tuple_index(node: Node) -> Outcome:
    """One element of a tuple."""
    (given,), index = types_of(node.inputs), node.attributes["index"]
    if not isinstance(given, TupleType):
        return f"{given} is no tuple"
    if not 0 <= index < len(given.elements):
        return f"{given} has no element {index}"
    return (given.elements[index],)


def list_construct(node: Node) -> Outcome:
    """A list of the inputs; what it may hold, the output says."""
    wanted = _own_type(node)
    if not isinstance(wanted, ListType):
        return f"a list is made, and the output is of type {wanted}"
    elements = [wanted.element] * len(node.inputs)
    return _misfits(node.inputs, elements, "input", "element") or (wanted,)


def list_unpack(node: Node) -> Outcome:
    """So many elements of a list as there are outputs."""
    (given,) = types_of(node.inputs)
    if not isinstance(given, ListType):
        return f"{given} is no list"
    return (given.element,) * len(node.outputs)


def dict_construct(node: Node) -> Outcome:
    """A dictionary of keys and values in turns; what it may hold, the output says."""
    wanted = _own_type(node)
    if not isinstance(wanted, DictType):
        return f"a dictionary is made, and the output is of type {wanted}"
    if len(node.inputs) % 2:
        return "the last key has no value"
    pairs = [wanted.key, wanted.value] * (len(node.inputs) // 2)
    return _misfits(node.inputs, pairs, "input", "element") or (wanted,)


# Objects


def create_object(node: Node) -> Outcome:
    """An object of a class, without attributes."""
    wanted = _own_type(node)
    if not isinstance(wanted, ScriptClassType):
        return f"{wanted} is no class of a program"
    return (wanted,)


def _attribute(owner: Type, name: str) -> Type | str:
    if isinstance(owner, ScriptClassType | ModuleType | EnumType):
        found = owner.declaration.attributes.get(name)
        if found is not None:
            return found
    return f"{owner} has no attribute `{name}`"


def get_attribute(node: Node) -> Outcome:
    """The type of the attribute, by the class."""
    found = _attribute(node.inputs[0].type, node.attributes["name"])
    return found if isinstance(found, str) else (found,)


def set_attribute(node: Node) -> Outcome:
    """Nothing; the value fits into the attribute."""
    owner, value = types_of(node.inputs)
    name = node.attributes["name"]
    found = _attribute(owner, name)
    if isinstance(found, str):
        return found
    if isinstance(owner, EnumType):
        return f"attributes of {owner}, an enum, cannot be set"
    if not is_subtype(value, found):
        return f"attribute `{name}` is of type {found}, the value of type {value}"
    return ()


# Calls


def call(schema: Schema, actuals: Sequence[Type], outputs: int = 0) -> Outcome:
    """The types of a call; `outputs` is their number, if the schema leaves it open.

    Every argument is given, in the order of the schema.
    """
    formals = tuple([each.fake_type for each in schema.arguments])
    count = len(formals)
    if len(actuals) != count and not (schema.is_vararg and len(actuals) > count):
        return f"{len(actuals)} arguments are given to {schema}"
    bound = match(formals, actuals[:count])
    if isinstance(bound, Mismatch):
        return f"argument `{schema.arguments[bound.index]}`: {bound.reason}"
    types = tuple([substitute(each.fake_type, bound) for each in schema.returns])
    for each in types:
        free = variables(each)
        if free:
            return f"nothing says what `{min(free)}` stands for in {schema}"
    if schema.is_varret:
        types += (AnyType,) * (outputs - len(types))
    return types


def operator(schema: Schema, numbers: bool) -> Rule:
    """The rule of an operator; with `numbers`, a number may stand for a tensor."""

    def types_of_call(node: Node) -> Outcome:
        return call(schema, types_of(node.inputs), len(node.outputs))

    def with_numbers(node: Node) -> Outcome:
        actuals = list(types_of(node.inputs))
        for place, argument in enumerate(schema.arguments[: len(actuals)]):
            plain = actuals[place]
            is_number = plain is BoolType or is_subtype(plain, NumberType)
            if argument.type is TensorType and is_number:
                actuals[place] = TensorType
        return call(schema, actuals, len(node.outputs))

    return with_numbers if numbers else types_of_call


def called(node: Node) -> Any | None:
    """The function that `prim::CallFunction` calls, or None if a graph hides it."""
    source = node.inputs[0].node
    return source.attributes.get("function") if source.kind == CONSTANT else None


def call_function(node: Node) -> Outcome:
    """The types that the function, a constant, returns."""
    schema = getattr(called(node), "schema", None)
    if not isinstance(schema, Schema):
        return "the function that is called is no constant"
    return call(schema, types_of(node.inputs)[1:], len(node.outputs))


def call_method(node: Node) -> Outcome:
    """The types that the method of the class, or module, returns."""
    return _call_method(node, (ScriptClassType, ModuleType))


def call_interface(node: Node) -> Outcome:
    """The types that the method of the interface returns."""
    return _call_method(node, (InterfaceType,))


def _call_method(node: Node, kinds: tuple[type, ...]) -> Outcome:
    owner, name = node.inputs[0].type, node.attributes["name"]
    if not isinstance(owner, kinds):
        return f"a method of {owner} is not called in this way"
    schema = owner.declaration.methods.get(name)  # type: ignore[attr-defined]  # all of `kinds` are declared
    if schema is None:
        return f"{owner} has no method `{name}`"
    return call(schema, types_of(node.inputs), len(node.outputs))


def _given(schema: Signature) -> Type:
    """The one type of the result of a call."""
    return _together([each.fake_type for each in schema.returns])


def _together(types: Sequence[Type]) -> Type:
    if not types:
        return NoneType_
    given = tuple(map(fake, types))
    return given[0] if len(given) == 1 else TupleType(given)


def result_type(block: Block) -> Type:
    """The type of the result of a block: of several, a tuple; of none, None."""
    return _together(types_of(block.results))


# Futures and awaits


def closure(node: Node) -> Outcome:
    """A function without parameters."""
    if node.blocks[0].parameters:
        return "the block of a closure has no parameters"
    return (FunctionType,)


def from_closure(wrapper: type[FutureType | AwaitType]) -> Rule:
    """A future, or an await, of what a closure gives."""

    def types_of_closure(node: Node) -> Outcome:
        source = node.inputs[0].node
        if source.kind != CLOSURE or not source.blocks:
            return "what is run later is the output of a prim::Closure"
        return (wrapper(result_type(source.blocks[0])),)

    return types_of_closure


def from_graph(wrapper: type[FutureType | AwaitType]) -> Rule:
    """A future, or an await, of what a graph gives that is given the inputs."""

    def types_of_graph(node: Node) -> Outcome:
        block = _body(node)
        fault = _misfits(node.inputs, types_of(block.parameters), "input", "parameter")
        return fault or (wrapper(result_type(block)),)

    return types_of_graph


def _body(node: Node) -> Block:
    graph: Graph = node.attributes["graph"]
    return graph.block


def fused(node: Node) -> Outcome:
    """The types of the results of a graph that takes the inputs."""
    block = _body(node)
    fault = _misfits(node.inputs, types_of(block.parameters), "input", "parameter")
    return fault or types_of(block.results)


def waited(wrapper: type[FutureType | AwaitType]) -> Rule:
    """The type of the value of a future, or of an await."""

    def element(node: Node) -> Outcome:
        (given,) = types_of(node.inputs)
        if not isinstance(given, wrapper):
            return f"{given} is not waited for in this way"
        return (given.element,)

    return element


def nowait(node: Node) -> Outcome:
    """An await of the input, or of a type that it fits into."""
    (given,), wanted = types_of(node.inputs), _own_type(node)
    if not isinstance(wanted, AwaitType) or not is_subtype(given, wanted.element):
        return f"an await of {given} is made, and the output is of type {wanted}"
    return (wanted,)


# Others


def raises(node: Node) -> Outcome:
    """Nothing; the message is a text."""
    (message,) = types_of(node.inputs)
    return () if message is StrType else f"the message is of type {message}"


def cast(node: Node) -> Outcome:
    """The same value as one of another type, of which either may be the wider one."""
    (given,), wanted = types_of(node.inputs), _own_type(node)
    if not (is_subtype(wanted, given) or is_subtype(given, wanted)):
        return f"no {given} is a {wanted}"
    return (wanted,)


def truth(node: Node) -> Outcome:
    """A bool."""
    return (BoolType,)
