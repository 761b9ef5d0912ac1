"""Matching of calls: select a form of the callee and convert the arguments.

Arguments are matched with a schema, and some are converted; if no form accepts them,
the error gives the reason for each form.

Rules:
- the forms are tried in order, first with the arguments as they are, then with numbers
  converted to wider ones; the first that accepts them is called;
- a node has an input for every argument: an omitted one is a constant;
- conversions: numbers to wider numbers, a tuple to a list, and at last a tensor of one
  element to a number; for operators of the runtime also a number to a tensor, one
  number to a list of a fixed size, several numbers to a list of sizes, a text to a
  device or a dtype;
- a list or dictionary display that is not used yet takes the required type if its
  elements fit it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from everyorder.runtime.dispatch.dispatcher import default_dispatcher
from everyorder.runtime.dispatch.handle import provide
from everyorder.runtime.errors.script import IllTyped, NotScriptable
from everyorder.runtime.operators.bindings.python_api import Ordered
from everyorder.runtime.schema.call_errors import renamed
from everyorder.runtime.schema.declared import InterfaceType
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.schema.schema import NUMBERS_AS_TENSORS
from everyorder.runtime.schema.signature import Argument, OperatorName, Signature
from everyorder.runtime.schema.subtyping import (
    Mismatch,
    is_subtype,
    match,
    substitute,
    variables,
)
from everyorder.runtime.schema.types import (
    AnyType,
    BoolType,
    ComplexType,
    DeviceType,
    DictType,
    FloatType,
    FunctionType,
    IntType,
    LayoutType,
    ListType,
    MemoryFormatType,
    NoneType_,
    NumberType,
    ScalarTypeType,
    StrType,
    TensorType,
    TupleType,
    Type,
    TypeVariable,
    unwrap_optional,
)
from everyorder.runtime.script.emission.emitter import (
    Arguments,
    Emitter,
    Sugared,
    becomes,
    constant_type,
    why_not,
)
from everyorder.runtime.script.emission.sugar import (
    SimpleValue,
    constant_of,
    sugar_of_value,
    type_of_class,
)
from everyorder.runtime.script.ir import Value
from everyorder.runtime.script.ir.program import Function
from everyorder.runtime.script.primitives import PrimitiveRow, widened
from everyorder.runtime.tensors.dtype_info import parse_dtype

# The numbers that the runtime converts to other kinds.
_NUMBERS = (BoolType, IntType, FloatType, ComplexType)
# Number -> the primitive that converts a tensor of one element to it.
_OF_TENSORS: Mapping[Type, str] = {
    IntType: "script::as_int.Tensor",
    FloatType: "script::float.Tensor",
}
# The passes over the forms: whether arguments are taken as they are, and whether
# numbers are read out of tensors.
_PASSES = ((True, False), (False, False), (False, True))
# Types whose values are ints in graphs; a parameter `dtype: int` accepts one.
_CODES = (ScalarTypeType, LayoutType, MemoryFormatType)


class CalleeForm(NamedTuple):
    """One form of a callee: its schema, and its kind."""

    name: str
    schema: Signature
    # True for an operator of the runtime: its calls convert more than numbers.
    loose: bool = False
    # True if a number is accepted for a tensor.
    numbers: bool = False
    # The function that is compiled and called, of a form that is not an operator.
    python: Callable[..., Any] | None = None
    # The arguments that must be these constants.
    constants: Mapping[str, Any] = MappingProxyType({})
    # True if a tensor of one element is accepted for a number.
    reads_tensors: bool = True


class _Pending(NamedTuple):
    """A value that is emitted once the form that takes it is selected."""

    type: Type
    make: Callable[[Emitter], Value]


class _FormBinding(NamedTuple):
    """The values for a form, and the binding of the variables of its schema."""

    values: tuple[Value | _Pending, ...]
    bound: dict[str, Type]


def forms_of_rows(rows: Iterable[PrimitiveRow]) -> list[CalleeForm]:
    """Return the forms of primitives."""
    return [
        CalleeForm(each.name, each.schema, reads_tensors=each.reads_tensors)
        for each in rows
    ]


def forms_of_operator(name: str) -> list[CalleeForm]:
    """Return the forms of an operator such as `core::add`; `out` is the last."""
    operator_name = OperatorName(name)
    provide(operator_name)
    forms = []
    for each in default_dispatcher().state.overloads(operator_name):
        if each.definition is None:
            continue
        reading = each.definition.reading
        forms.append(
            CalleeForm(
                reading.text, reading.schema, True, NUMBERS_AS_TENSORS in reading.tags
            )
        )
    forms.sort(key=lambda each: each.schema.overload == "out")
    return forms


def call_forms(
    e: Emitter, callee: str, forms: Sequence[CalleeForm], arguments: Arguments
) -> Sugared:
    """Call the first of the forms that accepts the arguments.

    Raises:
        IllTyped: no form accepts the arguments.
    """
    form, values, types = _choose(e, callee, forms, arguments)
    if form.python is not None:
        function = compiled(e, form.python)
        inputs = (function_constant(e, function), *values)
        types = [each.fake_type for each in function.schema.returns]
        return pack_results(e, e.node("prim::CallFunction", inputs, types).outputs)
    node = e.node(form.name, values, types)
    names = tuple(each.name for each in form.schema.returns)
    if names == Ordered._fields:
        tuple_type = type_of_class(e, Ordered)
        return SimpleValue(
            e.node("prim::TupleConstruct", node.outputs, (tuple_type,)).output
        )
    return pack_results(e, node.outputs)


def call_rows(
    e: Emitter, callee: str, rows: Iterable[PrimitiveRow], *operands: Sugared
) -> Sugared:
    """Call the first of the primitives that accepts the operands."""
    return call_forms(e, callee, forms_of_rows(rows), Arguments(operands))


def pack_results(e: Emitter, outputs: Sequence[Value]) -> Sugared:
    """Return the result of a call: its one output, None, or a tuple of several."""
    if not outputs:
        return SimpleValue(e.constant(None))
    if len(outputs) == 1:
        return sugar_of_value(outputs[0])
    tuple_type = TupleType(tuple(each.type for each in outputs))
    return SimpleValue(e.node("prim::TupleConstruct", outputs, (tuple_type,)).output)


def bind_arguments(
    e: Emitter, callee: str, schema: Signature, arguments: Arguments
) -> tuple[list[Value], list[Type]]:
    """Return the values for all arguments of a function, and its result types.

    Raises:
        IllTyped: the function does not accept the arguments.
    """
    _, values, types = _choose(e, callee, [CalleeForm(callee, schema)], arguments)
    return values, types


def _choose(
    e: Emitter, callee: str, forms: Sequence[CalleeForm], arguments: Arguments
) -> tuple[CalleeForm, list[Value], list[Type]]:
    reasons: list[tuple[str, str]] = []
    call_values = _CallValues(e, arguments)
    for exact, call_values.reads_tensors in _PASSES:
        for form in forms:
            binding = _bind(form, call_values, exact)
            if isinstance(binding, str):
                if call_values.reads_tensors:
                    reasons.append((_signature_text(form, callee), binding))
                continue
            values = [
                each if isinstance(each, Value) else each.make(e)
                for each in binding.values
            ]
            returns = [_result(each) for each in form.schema.returns]
            return form, values, [substitute(each, binding.bound) for each in returns]
    raise IllTyped(
        code="NoSuchCall",
        source=e.place.source,
        span=e.place.span,
        callee=callee,
        arguments=arguments.words(),
        candidates=tuple(dict.fromkeys(reasons)),
    )


def fail_recursive(e: Emitter, callee: str, parameters: str = "...") -> NoReturn:
    """Refuse a recursive call of a function whose result type is not known yet."""
    hint = f"Annotate what it returns: `def f({parameters}) -> int:`."
    e.fail(f"{callee} calls itself, and its result has no type", hint)


def call_function(e: Emitter, function: Function, arguments: Arguments) -> Sugared:
    """Call a function of the program."""
    callee = f"the function `{function.name}`"
    inputs, types = bind_arguments(e, callee, function.schema, arguments)
    constant = function_constant(e, function)
    return pack_results(
        e, e.node("prim::CallFunction", (constant, *inputs), types).outputs
    )


def function_constant(e: Emitter, function: Function) -> Value:
    """Return a function of the program as a constant."""
    attributes = {"function": function}
    return e.node("prim::Constant", (), (FunctionType,), attributes).output


def compiled(e: Emitter, python: Any) -> Function:
    """Return the compiled function of a Python function, for a call at this place."""
    python = getattr(python, "__func__", python)
    function = e.compiler.known(python)
    if function is not None:
        return function
    if e.compiler.is_active(python):
        fail_recursive(e, f"`{python.__name__}`")
    try:
        return e.compiler.function(python, e.since(python.__qualname__))
    except NotScriptable as error:
        if error.code != "NoSource":
            raise
        e.fail(f"{error.found} cannot be compiled: {error.reason}", error.hint)


def call_method(
    e: Emitter,
    callee: str,
    schema: Signature,
    owner: SimpleValue,
    name: str,
    arguments: Arguments,
) -> Sugared:
    """Call a method of a class, a module or an interface."""
    values, types = bind_arguments(e, callee, schema, arguments.behind(owner))
    kind = "Interface" if isinstance(owner.type, InterfaceType) else "Method"
    node = e.node(f"prim::Call{kind}", values, types, {"name": name})
    return pack_results(e, node.outputs)


def _result(returned: Argument) -> Type:
    """Return the type of a result; a dtype stays one, as a plain int may be a size."""
    if returned.type is ScalarTypeType:
        return ScalarTypeType
    return returned.fake_type


def _signature_text(form: CalleeForm, callee: str) -> str:
    text = str(form.schema)
    name, _, rest = text.partition("(")
    return text if form.loose else f"{name.partition('::')[2] or name}({rest}"


class _CallValues:
    """The arguments of a call, each emitted once, on first use."""

    __slots__ = ("_e", "_made", "arguments", "reads_tensors")

    def __init__(self, e: Emitter, arguments: Arguments) -> None:
        self._e = e
        self._made: dict[int, Value] = {}
        self.arguments = arguments
        self.reads_tensors = False
        # In order, as Python evaluates them.
        for each in (*arguments.positional, *arguments.named.values()):
            self.value_of(each)

    def value_of(self, sugared: Sugared) -> Value:
        """Return the value of an argument."""
        value = self._made.get(id(sugared))
        if value is None:
            value = self._made[id(sugared)] = sugared.value(self._e)
        return value

    @property
    def untyped(self) -> set[Value]:
        """Return the displays without elements, whose types are open."""
        return self._e.untyped


def _bind(
    form: CalleeForm, call_values: _CallValues, exact: bool
) -> _FormBinding | str:
    """Return the values for a form, or the reason why it does not accept the call."""
    schema, arguments = form.schema, call_values.arguments
    positional = [each for each in schema.arguments if not each.kwarg_only]
    plain: list[Value | _Pending] = [
        call_values.value_of(each) for each in arguments.positional
    ]
    named = {name: call_values.value_of(each) for name, each in arguments.named.items()}
    if form.loose:
        named = renamed(named, [each.name for each in schema.arguments])
    if form.loose and not exact:
        plain = _with_sizes(positional, plain, call_values.reads_tensors)
    surplus: list[Value | _Pending] = []
    if schema.is_vararg:
        plain, surplus = plain[: len(positional)], plain[len(positional) :]
    if len(plain) > len(positional):
        count = len(positional)
        count_text = f"{count} argument{'s' * (count != 1)}"
        return f"it takes {count_text} by place, and {len(plain)} are given"
    slots: dict[str, Value | _Pending] = {}
    for argument, each in zip(positional, plain, strict=False):
        slots[argument.name] = each
    names = [each.name for each in schema.arguments]
    for name, each in named.items():
        if name in slots:
            return f"`{name}` is given twice"
        if name not in names:
            return f"it has no argument `{name}`"
        slots[name] = each
    missing = [
        each.name
        for each in schema.arguments
        if each.name not in slots and not each.has_default
    ]
    if missing:
        return f"`{missing[0]}` is missing"
    for name, constant in form.constants.items():
        if _constant_argument(schema, name, slots.get(name)) != (True, constant):
            return f"`{name}` is not the constant {constant}"
    matched = _match(form, slots, call_values, exact)
    if isinstance(matched, str) or not surplus:
        return matched
    return _FormBinding((*matched.values, *surplus), matched.bound)


def _is_read(form: CalleeForm, argument: Argument, actual: Type) -> bool:
    """Return True if a tensor may be passed for the number of an argument."""
    target = unwrap_optional(argument.type)
    return form.reads_tensors and actual is TensorType and target in _OF_TENSORS


def _constant_argument(
    schema: Signature, name: str, slot: Value | _Pending | None
) -> tuple[bool, Any]:
    """Return True and the value of an argument if it is a constant, or omitted."""
    if slot is None:
        return True, next(a.default for a in schema.arguments if a.name == name)
    return constant_of(SimpleValue(slot)) if isinstance(slot, Value) else (False, None)


def _with_sizes(
    positional: Sequence[Argument],
    plain: list[Value | _Pending],
    reads_tensors: bool,
) -> list[Value | _Pending]:
    """Return the values, with consecutive numbers joined to one list of sizes."""
    for place, argument in enumerate(positional):
        if unwrap_optional(argument.type) is ListType(IntType):
            rest = plain[place:]
            last = place == len(positional) - 1 or len(rest) > len(positional) - place
            takes = (IntType, TensorType) if reads_tensors else (IntType,)
            if last and rest and all(each.type in takes for each in rest):
                sizes = _Pending(ListType(IntType), partial(_size_list, rest))
                return [*plain[:place], sizes]
            break
        if place and argument.type is not TensorType:
            break
    return plain


def _size_list(sizes: Sequence[Value | _Pending], e: Emitter) -> Value:
    values = [each if isinstance(each, Value) else each.make(e) for each in sizes]
    numbers = [
        e.operator(_OF_TENSORS[IntType], each) if each.type is TensorType else each
        for each in values
    ]
    return e.node("prim::ListConstruct", numbers, (ListType(IntType),)).output


def _of_node(kind: str, inputs: Sequence[Any], type_: Type) -> _Pending:
    return _Pending(type_, lambda e: e.node(kind, inputs, (type_,)).output)


def _match(
    form: CalleeForm,
    slots: dict[str, Value | _Pending],
    call_values: _CallValues,
    exact: bool,
) -> _FormBinding | str:
    names: list[str] = []
    formals: list[Type] = []
    actuals: list[Type] = []
    values: list[Value | _Pending] = []
    opened: list[tuple[Argument, Value]] = []
    for argument in form.schema.arguments:
        formal = argument.fake_type
        slot = slots.get(argument.name)
        if slot is None:
            values.append(_default(argument))
            continue
        if isinstance(slot, Value):
            same = type(slot.type) is type(formal) or isinstance(formal, TypeVariable)
            is_open = slot in call_values.untyped and not slot.uses
            if is_open and variables(formal) and same:
                opened.append((argument, slot))
                values.append(slot)
                continue
            converted = _convert(form, argument, slot, call_values, exact)
            if isinstance(converted, str):
                return (
                    f"`{argument.name}` is of type {formal}, and {slot.type} is given"
                    f"{converted}"
                )
            slot = converted
        values.append(slot)
        names.append(argument.name)
        formals.append(formal)
        actuals.append(slot.type)
    bound = match(formals, actuals)
    if isinstance(bound, Mismatch):
        return f"`{names[bound.index]}` does not fit: {bound.reason}"
    result = dict(bound)
    for argument, value in opened:
        declared = substitute(argument.fake_type, result)
        if variables(declared):
            filled = match((argument.fake_type,), (value.type,))
            if isinstance(filled, Mismatch):
                return f"`{argument.name}` does not fit"
            result |= {k: v for k, v in filled.items() if k not in result}
        elif not becomes(value, declared, call_values.untyped):
            return f"{value.type} is no {declared}"
    return _FormBinding(tuple(values), result)


def _default(argument: Argument) -> _Pending:
    """Return the value of an omitted argument."""
    type_ = argument.fake_type
    return _Pending(type_, lambda e: stored_value(e, argument.default, type_))


def _convert(
    form: CalleeForm,
    argument: Argument,
    slot: Value,
    call_values: _CallValues,
    exact: bool,
) -> Value | _Pending | str:
    """Return the value for an argument, converted if needed, or a reason."""
    formal, actual = argument.fake_type, slot.type
    target = unwrap_optional(formal)
    if exact and actual is IntType and unwrap_optional(argument.type) in _CODES:
        # A literal number is first tried as a size: `x.view(6)`.
        return ""
    if variables(formal) or is_subtype(actual, formal):
        widens = formal is NumberType and actual is not NumberType
        return "" if exact and widens and not form.loose else slot
    if becomes(slot, formal, call_values.untyped):
        return slot
    if form.numbers and target is TensorType and actual in (*_NUMBERS, NumberType):
        return _Pending(TensorType, lambda e: slot)
    if exact:
        return ""
    why = why_not(actual, formal)
    if why:
        return f": {why}"
    first = form.schema.arguments[0].type
    if form.schema.is_mutable and isinstance(first, DictType):
        # A converted key would differ from the one that Python stores.
        return ""
    wider = widened(actual, target)
    if wider is not None:
        return _of_node(wider, (slot,), target)
    takes_names = actual is StrType and (form.loose or argument.kwarg_only)
    text = _named(slot, unwrap_optional(argument.type)) if takes_names else None
    if text is not None:
        return text
    if call_values.reads_tensors and _is_read(form, argument, actual):
        return _of_node(_OF_TENSORS[target], (slot,), target)
    parts = actual.elements if isinstance(actual, TupleType) else None
    if isinstance(target, ListType) and parts is not None:
        element = target.element
        if all(is_subtype(each, element) for each in parts):
            return _list_of_tuple(slot, parts, target)
    if not form.loose:
        return ""
    if target is NumberType and actual is BoolType:
        return _of_node("script::number.bool", (slot,), NumberType)
    if isinstance(target, ListType):
        element = target.element
        if argument.size is not None and is_subtype(actual, element):
            return _of_node("prim::ListConstruct", (slot,), target)
    return ""


# The names of dtypes.
DTYPE_NAMES = frozenset({*DType.NAMES, *DType.SYNONYMS})


def _named(slot: Value, target: Type) -> _Pending | None:
    """Return the device, or the dtype, that a text names, or None."""
    is_constant, text = constant_of(SimpleValue(slot))
    if target is ScalarTypeType and text in DTYPE_NAMES:
        dtype = parse_dtype(text)
        return _Pending(target, lambda e: e.constant(dtype.code, ScalarTypeType))
    if target is not DeviceType:
        return None
    if is_constant:
        device = Device.parse(text)
        return _Pending(DeviceType, lambda e: e.constant(device, DeviceType))
    return _Pending(
        DeviceType,
        lambda e: e.operator("script::device.text", slot, e.constant(None)),
    )


def _list_of_tuple(slot: Value, parts: Sequence[Type], type_: Type) -> _Pending:
    def make(e: Emitter) -> Value:
        elements = e.node("prim::TupleUnpack", (slot,), parts).outputs
        return e.node("prim::ListConstruct", elements, (type_,)).output

    return _Pending(type_, make)


def stored_value(e: Emitter, stored: Any, type_: Type) -> Value:
    """Return a default of a schema as a value: a new list, or a constant."""
    inner = unwrap_optional(type_)
    if isinstance(inner, ListType) and isinstance(stored, tuple):
        parts = [stored_value(e, each, inner.element) for each in stored]
        return e.node("prim::ListConstruct", parts, (inner,)).output
    if isinstance(inner, TupleType) and isinstance(stored, tuple):
        pairs = zip(stored, inner.elements, strict=True)
        parts = [stored_value(e, each, one) for each, one in pairs]
        return e.node("prim::TupleConstruct", parts, (inner,)).output
    if stored is None:
        return e.constant(None, NoneType_)
    if isinstance(stored, int) and inner in (FloatType, ComplexType):
        stored = float(stored) if inner is FloatType else complex(stored)
    kind = inner
    if inner in (NumberType, AnyType) or not isinstance(inner, type(IntType)):
        kind = constant_type(stored)
    return e.constant(stored, kind)
