"""Type rules: infer the output types of a node from its inputs.

For each kind of `runtime.script.ir.node_kinds` there is a function of the node, which
returns the types of its outputs, or the fault as a text.

Rules:
- a rule reads the node, its blocks and its attributes, and changes nothing;
- the caller has verified the row of the kind: the numbers of inputs and blocks, and the
  forms of attributes, agree with it;
- where an output may be wider than its parts (a list, a branch), the rule uses the type
  that the node declares, and checks that all parts fit;
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

# Kinds that the rules look for among the inputs.
CONSTANT, CLOSURE = "prim::Constant", "prim::Closure"
# The types of the outputs, or the fault as a text.
Outcome = tuple[Type, ...] | str
Rule = Callable[[Node], Outcome]

# The deepest nesting of tuples in a constant; types are not nested deeper either.
DEEPEST_CONSTANT = 64


def parts_of(type_: Type) -> tuple[Type, ...]:
    """Return the types that a type consists of; declared types have none."""
    if isinstance(type_, DictType):
        return type_.key, type_.value
    if isinstance(type_, UnionType):
        return type_.members
    if isinstance(type_, TupleType):
        return type_.elements
    element = getattr(type_, "element", None)
    return () if element is None else (element,)


def types_of(values: Iterable[Value]) -> tuple[Type, ...]:
    """Return the types of values."""
    return tuple([each.type for each in values])


def own(node: Node) -> Outcome:
    """Return the output types that the node declares."""
    return types_of(node.outputs)


def nothing(node: Node) -> Outcome:
    """Return no types: the node is without outputs."""
    return ()


def _own_type(node: Node) -> Type:
    """Return the declared type of the first output, or `Any` without outputs."""
    return node.outputs[0].type if node.outputs else AnyType


def _misfits(
    values: Sequence[Value], types: Sequence[Type], noun: str, into: str
) -> str | None:
    """Return the reason why the values do not fit the types one by one, or None."""
    if len(values) != len(types):
        return f"there are {len(values)} {noun}s for {len(types)} {into}s"
    for place, (value, type_) in enumerate(zip(values, types, strict=True)):
        if not is_subtype(value.type, type_):
            return f"{noun} {place}, {value.type}, does not fit {into} {place}, {type_}"
    return None


# Constants


def constant(node: Node) -> Outcome:
    """Return the type of the value, or of the function."""
    declared, attributes = _own_type(node), node.attributes
    if ("value" in attributes) == ("function" in attributes):
        return "a constant has a `value` or a `function`"
    if "function" in attributes:
        return (FunctionType,)
    if not fits(attributes["value"], declared):
        return f"the value is not a constant of type {declared}"
    return (declared,)


def fits(value: Any, type: Type, depth: int = 0) -> bool:  # noqa: A002  # the field's own word
    """Return True if `value` is a constant of the type; nothing is converted."""
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


# Class -> type of its values as constants; compared by identity: a bool is not an int.
PLAIN_TYPES: Mapping[type, Type] = {
    type(None): NoneType_,
    bool: BoolType,
    int: IntType,
    float: FloatType,
    complex: ComplexType,
    str: StrType,
    Device: DeviceType,
}
# Type -> test of a value as a constant of the type.
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
    """Return the declared types of the outputs; the results of both blocks must fit."""
    fault = _is_condition(node.inputs[0])
    declared = types_of(node.outputs)
    for place, block in enumerate(node.blocks):
        if block.parameters:
            fault = fault or f"block {place} of a branch has no parameters"
        misfit = _misfits(block.results, declared, "result", "output")
        if misfit is not None:
            fault = fault or f"block {place}: {misfit}"
    return declared if fault is None else fault


def loop(node: Node) -> Outcome:
    """Return the types of the parameters; carried values and results must fit them."""
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
    declared = types_of(body.parameters[1:])
    fault = (
        _misfits(carried, declared, "carried value", "parameter")
        or _is_condition(body.results[0])
        or _misfits(body.results[1:], declared, "carried result", "parameter")
    )
    return declared if fault is None else fault


def with_block(node: Node) -> Outcome:
    """Return the declared types; the results of the block must fit them."""
    (manager,) = node.inputs
    (body,) = node.blocks
    if len(body.parameters) != 1:
        return "the block has one parameter, what was entered"
    if isinstance(manager.type, ScriptClassType | InterfaceType | ModuleType):
        methods = manager.type.declaration.methods
        for name in ("__enter__", "__exit__"):
            if name not in methods:
                return f"{manager.type} is not a context manager: it has no `{name}`"
        entered = _call_result(methods["__enter__"])
        if not is_subtype(entered, body.parameters[0].type):
            parameter = body.parameters[0].type
            return f"{entered} is entered, the parameter is of type {parameter}"
    declared = types_of(node.outputs)
    return _misfits(body.results, declared, "result", "output") or declared


# Tuples, lists, dictionaries


def tuple_construct(node: Node) -> Outcome:
    """Return the declared tuple type; the inputs must fit its elements."""
    declared = _own_type(node)
    if not isinstance(declared, TupleType):
        return f"a tuple is made, and the output is of type {declared}"
    return _misfits(node.inputs, declared.elements, "input", "element") or (declared,)


def tuple_unpack(node: Node) -> Outcome:
    """Return the types of the elements of a tuple."""
    (operand,) = types_of(node.inputs)
    return (
        operand.elements
        if isinstance(operand, TupleType)
        else f"{operand} is not a tuple"
    )


def tuple_index(node: Node) -> Outcome:
    """Return the type of one element of a tuple."""
    (operand,), index = types_of(node.inputs), node.attributes["index"]
    if not isinstance(operand, TupleType):
        return f"{operand} is not a tuple"
    if not 0 <= index < len(operand.elements):
        return f"{operand} has no element {index}"
    return (operand.elements[index],)


def list_construct(node: Node) -> Outcome:
    """Return the declared list type; the inputs must fit its elements."""
    declared = _own_type(node)
    if not isinstance(declared, ListType):
        return f"a list is made, and the output is of type {declared}"
    elements = [declared.element] * len(node.inputs)
    return _misfits(node.inputs, elements, "input", "element") or (declared,)


def list_unpack(node: Node) -> Outcome:
    """Return one element type of a list for each output."""
    (operand,) = types_of(node.inputs)
    if not isinstance(operand, ListType):
        return f"{operand} is not a list"
    return (operand.element,) * len(node.outputs)


def dict_construct(node: Node) -> Outcome:
    """Return the declared dictionary type; keys and values alternate in the inputs."""
    declared = _own_type(node)
    if not isinstance(declared, DictType):
        return f"a dictionary is made, and the output is of type {declared}"
    if len(node.inputs) % 2:
        return "the last key has no value"
    pairs = [declared.key, declared.value] * (len(node.inputs) // 2)
    return _misfits(node.inputs, pairs, "input", "element") or (declared,)


# Objects


def create_object(node: Node) -> Outcome:
    """Return the type of an object of a class, without attributes."""
    declared = _own_type(node)
    if not isinstance(declared, ScriptClassType):
        return f"{declared} is not a class of a program"
    return (declared,)


def _attribute(owner: Type, name: str) -> Type | str:
    if isinstance(owner, ScriptClassType | ModuleType | EnumType):
        attribute = owner.declaration.attributes.get(name)
        if attribute is not None:
            return attribute
    return f"{owner} has no attribute `{name}`"


def get_attribute(node: Node) -> Outcome:
    """Return the type of the attribute as its class declares it."""
    attribute = _attribute(node.inputs[0].type, node.attributes["name"])
    return attribute if isinstance(attribute, str) else (attribute,)


def set_attribute(node: Node) -> Outcome:
    """Return no types; the value must fit the attribute."""
    owner, value = types_of(node.inputs)
    name = node.attributes["name"]
    attribute = _attribute(owner, name)
    if isinstance(attribute, str):
        return attribute
    if isinstance(owner, EnumType):
        return f"attributes of {owner}, an enum, cannot be set"
    if not is_subtype(value, attribute):
        return f"attribute `{name}` is of type {attribute}, the value of type {value}"
    return ()


# Calls


def call(schema: Schema, actuals: Sequence[Type], outputs: int = 0) -> Outcome:
    """Return the types of a call; `outputs` is their number for a vararg return.

    `actuals` has a type for every argument, in the order of the schema.
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
    """Return the rule of an operator; `numbers` accepts numbers as tensors."""

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
    """Return the function that a node calls, or None if it is not a constant."""
    source = node.inputs[0].node
    return source.attributes.get("function") if source.kind == CONSTANT else None


def call_function(node: Node) -> Outcome:
    """Return the types that the called function, a constant, returns."""
    schema = getattr(called(node), "schema", None)
    if not isinstance(schema, Schema):
        return "the function that is called is not a constant"
    return call(schema, types_of(node.inputs)[1:], len(node.outputs))


def call_method(node: Node) -> Outcome:
    """Return the types that the method of the class, or module, returns."""
    return _call_method(node, (ScriptClassType, ModuleType))


def call_interface(node: Node) -> Outcome:
    """Return the types that the method of the interface returns."""
    return _call_method(node, (InterfaceType,))


def _call_method(node: Node, kinds: tuple[type, ...]) -> Outcome:
    owner, name = node.inputs[0].type, node.attributes["name"]
    if not isinstance(owner, kinds):
        return f"a method of {owner} is not called in this way"
    schema = owner.declaration.methods.get(name)  # type: ignore[attr-defined]  # all of `kinds` are declared
    if schema is None:
        return f"{owner} has no method `{name}`"
    return call(schema, types_of(node.inputs), len(node.outputs))


def _call_result(schema: Signature) -> Type:
    """Return the type of the result of a call."""
    return _together([each.fake_type for each in schema.returns])


def _together(types: Sequence[Type]) -> Type:
    if not types:
        return NoneType_
    types_of_results = tuple(map(fake, types))
    return (
        types_of_results[0]
        if len(types_of_results) == 1
        else TupleType(types_of_results)
    )


def result_type(block: Block) -> Type:
    """Return the type of a block's result: a tuple for several, None for none."""
    return _together(types_of(block.results))


# Futures and awaits


def closure(node: Node) -> Outcome:
    """Return the type of a function without parameters."""
    if node.blocks[0].parameters:
        return "the block of a closure has no parameters"
    return (FunctionType,)


def from_closure(wrapper: type[FutureType | AwaitType]) -> Rule:
    """Return the rule of a future, or an await, of the result of a closure."""

    def types_of_closure(node: Node) -> Outcome:
        source = node.inputs[0].node
        if source.kind != CLOSURE or not source.blocks:
            return "what is run later is the output of a prim::Closure"
        return (wrapper(result_type(source.blocks[0])),)

    return types_of_closure


def from_graph(wrapper: type[FutureType | AwaitType]) -> Rule:
    """Return the rule of a future, or an await, of the result of a graph."""

    def types_of_graph(node: Node) -> Outcome:
        block = _body(node)
        fault = _misfits(node.inputs, types_of(block.parameters), "input", "parameter")
        return fault or (wrapper(result_type(block)),)

    return types_of_graph


def _body(node: Node) -> Block:
    graph: Graph = node.attributes["graph"]
    return graph.block


def fused(node: Node) -> Outcome:
    """Return the types of a graph's results; the inputs must fit its parameters."""
    block = _body(node)
    fault = _misfits(node.inputs, types_of(block.parameters), "input", "parameter")
    return fault or types_of(block.results)


def waited(wrapper: type[FutureType | AwaitType]) -> Rule:
    """Return the rule of the value of a future, or of an await."""

    def element(node: Node) -> Outcome:
        (operand,) = types_of(node.inputs)
        if not isinstance(operand, wrapper):
            return f"{operand} is not waited for in this way"
        return (operand.element,)

    return element


def nowait(node: Node) -> Outcome:
    """Return the declared await type; the input must fit its value."""
    (operand,), declared = types_of(node.inputs), _own_type(node)
    if not isinstance(declared, AwaitType) or not is_subtype(operand, declared.element):
        return f"an await of {operand} is made, and the output is of type {declared}"
    return (declared,)


# Others


def raises(node: Node) -> Outcome:
    """Return no types; the message must be a str."""
    (message,) = types_of(node.inputs)
    return () if message is StrType else f"the message is of type {message}"


def cast(node: Node) -> Outcome:
    """Return the declared type; it or the input's type must be the wider one."""
    (operand,), declared = types_of(node.inputs), _own_type(node)
    if not (is_subtype(declared, operand) or is_subtype(operand, declared)):
        return f"no {operand} is a {declared}"
    return (declared,)


def truth(node: Node) -> Outcome:
    """Return the type bool."""
    return (BoolType,)
