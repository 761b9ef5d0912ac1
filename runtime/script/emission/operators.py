"""Operators: `+`, `<`, `-x`, `in`, and operators of the runtime called by name.

A Python operator is compiled to an operator of the runtime, or to a primitive, by the
types of its operands; functions and methods of the runtime are looked up by name.

Rules:
- an operand that implements the operator (`Sugared.binary`) is tried first, the left
  one before the right one, as in Python;
- if one of two operands is a tensor the operator of the runtime is used, else a
  primitive;
- functions of `runtime` and methods of tensors are operators of the same name in the
  namespace `core`, with the arguments of its schemas.
"""

from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

from everyorder.runtime.dispatch.handle import OperatorHandle, OperatorPacket
from everyorder.runtime.dispatch.namespace import OperatorNamespace, Operators
from everyorder.runtime.operators.bindings import functions
from everyorder.runtime.operators.bindings.methods import CONVERSIONS
from everyorder.runtime.schema.enums import DType, Layout, MemoryFormat
from everyorder.runtime.schema.subtyping import is_subtype
from everyorder.runtime.schema.types import (
    AnyType,
    BoolType,
    ComplexType,
    DictType,
    FloatType,
    IntType,
    LayoutType,
    ListType,
    MemoryFormatType,
    NoneType_,
    NumberType,
    OptionalType,
    ScalarTypeType,
    StrType,
    TensorType,
    TupleType,
    UnionType,
)
from everyorder.runtime.script.emission.call_matching import (
    CalleeForm,
    call_forms,
    call_function,
    call_rows,
    compiled,
    forms_of_operator,
)
from everyorder.runtime.script.emission.emitter import (
    Arguments,
    Emitter,
    PythonObject,
    Sugared,
    no_attribute,
)
from everyorder.runtime.script.emission.sugar import (
    SimpleValue,
    SugaredTuple,
    constant_of,
    register_special_forms,
    register_sugar,
    sugar_of,
    type_of,
)
from everyorder.runtime.script.emission.tensor_programs import PROGRAMS, SAME
from everyorder.runtime.script.ir import Value
from everyorder.runtime.script.primitives import by_operator
from everyorder.runtime.tensors.tensor import Tensor

# Python operator -> operator of namespace `core` for tensors.
TENSOR_OPERATORS = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "//": "floor_divide",
    "%": "remainder",
    "**": "pow",
    "@": "matmul",
    "&": "bitwise_and",
    "|": "bitwise_or",
    "^": "bitwise_xor",
    "==": "eq",
    "!=": "ne",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
    "-x": "neg",
    "~x": "bitwise_not",
}
# Operators with exchangeable operands; a number is moved to the right.
COMMUTATIVE = frozenset({"+", "*", "&", "|", "^", "==", "!="})
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NUMBERS = (BoolType, IntType, FloatType, ComplexType, NumberType)


def binary(e: Emitter, symbol: str, left: Sugared, right: Sugared) -> Sugared:
    """Emit `left symbol right`."""
    result = left.binary(e, symbol, right, False)
    if result is None:
        result = right.binary(e, symbol, left, True)
    if result is not None:
        return result
    kinds = type_of(left), type_of(right)
    if TensorType in kinds and symbol in TENSOR_OPERATORS:
        return _tensors(e, symbol, left, right)
    special = _TUPLES.get(symbol)
    if special is not None:
        combined = special(e, symbol, left, right)
        if combined is not None:
            return combined
    if symbol == "**" and kinds == (IntType, IntType):
        is_known, exponent = constant_of(right)
        if is_known and exponent < 0:
            # A negative exponent results in a fraction; other powers of ints are ints.
            left = SimpleValue(e.operator("script::float.int", left.value(e)))
    rows = [each for each in by_operator(symbol) if len(each.schema.arguments) == 2]
    return call_rows(e, f"`{symbol}`", rows, left, right)


def _tensors(e: Emitter, symbol: str, left: Sugared, right: Sugared) -> Sugared:
    if type_of(left) is not TensorType and symbol in COMMUTATIVE:
        left, right = right, left
    elif type_of(left) is not TensorType and symbol in _MIRRORED:
        left, right, symbol = right, left, _MIRRORED[symbol]
    forms = [
        each
        for each in forms_of_operator(f"core::{TENSOR_OPERATORS[symbol]}")
        if each.schema.overload != "out"
    ]
    return call_forms(e, f"`{symbol}`", forms, Arguments((left, right)))


def in_place(e: Emitter, symbol: str, left: Sugared, right: Sugared) -> Sugared:
    """Emit `left symbol= right`; the caller assigns the result."""
    result = left.binary(e, f"{symbol}=", right, False)
    if result is not None:
        return result
    if type_of(left) is TensorType and symbol in TENSOR_OPERATORS:
        forms = forms_of_operator(f"core::{TENSOR_OPERATORS[symbol]}_")
        if forms:
            return call_forms(e, f"`{symbol}=`", forms, Arguments((left, right)))
    kind = type_of(left)
    if isinstance(kind, ListType | DictType):
        rows = by_operator(f"{symbol}=")
        if rows:
            return call_rows(e, f"`{symbol}=`", rows, left, right)
    return binary(e, symbol, left, right)


def unary(e: Emitter, symbol: str, operand: Sugared) -> Sugared:
    """Emit `symbol operand`; `-` and `~` of a bool are those of an int."""
    result = operand.binary(e, f"{symbol}x", operand, False)
    if result is not None:
        return result
    callee = f"`{symbol}` of one"
    if type_of(operand) is not TensorType:
        return call_rows(e, callee, by_operator(f"{symbol}x"), operand)
    forms = forms_of_operator(f"core::{TENSOR_OPERATORS[f'{symbol}x']}")
    return call_forms(e, callee, forms, Arguments((operand,)))


def _concatenated(
    e: Emitter, symbol: str, left: Sugared, right: Sugared
) -> Sugared | None:
    """Emit `+` of two tuples."""
    if not (_is_tuple(left) and _is_tuple(right)):
        return None
    return SugaredTuple([*_elements(e, left), *_elements(e, right)])


def _compared(e: Emitter, symbol: str, left: Sugared, right: Sugared) -> Sugared | None:
    """Emit `==` and `!=` of two tuples, element by element; of None, by its type."""
    kinds = type_of(left), type_of(right)
    if _is_tuple(left) and _is_tuple(right):
        first, second = _elements(e, left), _elements(e, right)
        if len(first) != len(second):
            return SimpleValue(e.constant(symbol == "!="))
        return SimpleValue(_all_equal(e, symbol, list(zip(first, second, strict=True))))
    plain = (IntType, FloatType, BoolType, ComplexType, StrType)
    for one, other in (kinds, kinds[::-1]):
        element = other.element if isinstance(other, OptionalType) else None
        of_python = element in plain or isinstance(element, ListType | DictType)
        if one is NoneType_ and of_python:
            return _identical(e, "is" if symbol == "==" else "is not", left, right)
    if NoneType_ in kinds and not any(isinstance(k, OptionalType) for k in kinds):
        if TensorType in kinds or None in kinds:
            return None
        same = kinds[0] is kinds[1]
        return SimpleValue(e.constant(same is (symbol == "==")))
    return None


def _all_equal(e: Emitter, symbol: str, pairs: list[tuple[Sugared, Sugared]]) -> Value:
    """Return the conjunction of pairwise equality, or its negation."""
    equal = symbol == "=="
    if not pairs:
        return e.constant(equal)
    first = e.boolean(binary(e, symbol, *pairs[0]).truth(e))
    if len(pairs) == 1:
        return first

    def rest() -> Value:
        return _all_equal(e, symbol, pairs[1:])

    if equal:
        return e.if_else(first, rest, lambda: False)
    return e.if_else(first, lambda: True, rest)


def _is_tuple(sugared: Sugared) -> bool:
    return isinstance(sugared, SugaredTuple) or isinstance(type_of(sugared), TupleType)


def _elements(e: Emitter, whole: Sugared) -> Sequence[Sugared]:
    elements = whole.elements(e)
    assert elements is not None, "tuples have elements"
    return elements


_TUPLES: dict[str, Callable[[Emitter, str, Sugared, Sugared], Sugared | None]] = {
    "+": _concatenated,
    "==": _compared,
    "!=": _compared,
}


def compare(e: Emitter, symbol: str, left: Sugared, right: Sugared) -> Sugared:
    """Emit a comparison, `in` or `is`."""
    if symbol in ("in", "not in"):
        return _contains(e, symbol, left, right)
    if symbol in ("is", "is not"):
        return _identical(e, symbol, left, right)
    return binary(e, symbol, left, right)


def _identical(e: Emitter, symbol: str, left: Sugared, right: Sugared) -> Sugared:
    if not (isinstance(left, SimpleValue) or isinstance(right, SimpleValue)):
        same = left is right or getattr(left, "python", left) is getattr(
            right, "python", right
        )
        return SimpleValue(e.constant(same is (symbol == "is")))
    for one, other in ((left, right), (right, left)):
        if type_of(one) is NoneType_:
            kind = type_of(other)
            if kind is NoneType_ or kind is None or not _may_be_none(kind):
                is_none = kind is NoneType_
                return SimpleValue(e.constant(is_none is (symbol == "is")))
    return call_rows(e, f"`{symbol}`", by_operator(symbol), left, right)


def _may_be_none(kind: Any) -> bool:
    return is_subtype(NoneType_, kind)


def _contains(e: Emitter, symbol: str, item: Sugared, within: Sugared) -> Sugared:
    contained = within.binary(e, "in", item, True)
    if contained is None:
        if _is_tuple(within):
            contained = _in_tuple(e, item, within)
        else:
            contained = call_rows(e, "`in`", by_operator("in"), within, item)
    return unary(e, "not ", contained) if symbol == "not in" else contained


def _in_tuple(e: Emitter, item: Sugared, within: Sugared) -> Sugared:
    """Return True in the graph if an element is the item, or equal to it."""
    elements = _elements(e, within)
    value = SimpleValue(item.value(e))

    def test(place: int) -> Value:
        if place == len(elements):
            return e.constant(False)
        first = e.boolean(binary(e, "==", elements[place], value).truth(e))
        if place == len(elements) - 1:
            return first
        return e.if_else(first, lambda: True, lambda: test(place + 1))

    return SimpleValue(test(0))


# Functions and methods of the runtime


class Operator(Sugared):
    """An operator of the runtime that is called by its name."""

    __slots__ = ("forms", "name", "self_")

    def __init__(
        self, name: str, forms: list[CalleeForm], self_: Sugared | None = None
    ) -> None:
        self.name = name
        self.forms = forms
        self.self_ = self_

    def describe(self) -> str:
        what = "operator" if self.self_ is None else "method"
        return f"the {what} `{self.name}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        if self.self_ is not None:
            arguments = arguments.behind(self.self_)
        return call_forms(e, self.describe(), self.forms, arguments)


def operator_of(packet: OperatorPacket) -> Sugared:
    """Return the sugar of all overloads of an operator."""
    name = packet._name.name
    return Operator(name, forms_of_operator(name))


def overload_of(handle: OperatorHandle) -> Sugared:
    """Return the sugar of one overload of an operator."""
    text = str(handle.schema.name)
    plain = text.partition(".")[0]
    forms = [each for each in forms_of_operator(plain) if each.name == text]
    return Operator(text, forms)


class RuntimeFunction(Sugared):
    """A function of `runtime` that is an operator of `core`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def describe(self) -> str:
        return f"the function `runtime.{self.name}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        forms = forms_of_operator(f"core::{self.name}")
        return call_forms(e, self.describe(), forms, _with_self(arguments))


def _with_self(arguments: Arguments) -> Arguments:
    """Return the arguments, with `input`, the name in torch, changed to `self`."""
    named = dict(arguments.named)
    if "input" in named:
        named["self"] = named.pop("input")
    return Arguments(arguments.positional, named)


class _RuntimeModule(PythonObject):
    """The package `runtime`, or another Python module."""

    __slots__ = ()

    def describe(self) -> str:
        return f"the module `{self.python.__name__}`"

    def attribute(self, e: Emitter, name: str) -> Sugared:
        try:
            member = getattr(self.python, name)
        except AttributeError:
            candidates = [each for each in dir(self.python) if not each.startswith("_")]
            return no_attribute(e, self.describe(), name, candidates)
        return sugar_of(member, e)


class _Names(_RuntimeModule):
    """`runtime.ops`, or a namespace of it."""

    __slots__ = ()

    def describe(self) -> str:
        return "the operators of the runtime"


class SugaredEnumConstant(Sugared):
    """A dtype, a layout or a memory format, represented by its number."""

    __slots__ = ("code", "kind")

    def __init__(self, code: Any, kind: Any) -> None:
        self.code = code
        self.kind = kind

    def describe(self) -> str:
        return f"`{self.code}`"

    def words(self) -> str:
        return str(self.kind)

    def value(self, e: Emitter) -> Value:
        return e.constant(self.code.code, self.kind)


def tensor_method(e: Emitter, self_: SimpleValue, name: str) -> Sugared | None:
    """Return the method of tensors of the name, or None."""
    if name in CONVERSIONS:
        return _Conversion(self_, name, DType.named(CONVERSIONS[name]))
    if name == "to":
        return _To(self_)
    if not hasattr(Tensor, name) or name.startswith("__"):
        return None
    if name in PROGRAMS:
        return TensorProgram(name, self_)
    name = SAME.get(name, name)
    forms = [
        each
        for each in forms_of_operator(f"core::{name}")
        if each.schema.overload != "out"
        and each.schema.arguments
        and each.schema.arguments[0].type is TensorType
    ]
    return Operator(f"Tensor.{name}", forms, self_) if forms else None


class TensorProgram(Sugared):
    """A method of tensors, or function of `runtime`, that is compiled as a program."""

    __slots__ = ("name", "self_")

    def __init__(self, name: str, self_: Sugared | None = None) -> None:
        self.name = name
        self.self_ = self_

    def describe(self) -> str:
        what = "function `runtime" if self.self_ is None else "method `Tensor"
        return f"the {what}.{self.name}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        self_ = self.self_
        call_arguments = (
            _with_self(arguments) if self_ is None else arguments.behind(self_)
        )
        return call_function(e, compiled(e, PROGRAMS[self.name]), call_arguments)


class _MethodFunction(RuntimeFunction):
    """A function of `runtime` that is the method of its first argument."""

    __slots__ = ()

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        named = dict(arguments.named)
        operands = [*arguments.positional]
        if not operands:
            first = named.pop("input", None) or named.pop("self", None)
            operands = [] if first is None else [first]
        if not operands:
            e.fail(f"{self.describe()} is given no tensor")
        method = operands[0].attribute(e, self.name)
        return method.call(e, Arguments(operands[1:], named))


class _IsTensor(RuntimeFunction):
    """`runtime.is_tensor`, decided by types."""

    __slots__ = ()

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        if len(arguments.positional) != 1 or arguments.named:
            e.fail(f"{self.describe()} takes one value")
        kind = type_of(arguments.positional[0])
        if kind is AnyType or isinstance(kind, OptionalType | UnionType):
            e.fail(
                f"{self.describe()} is asked of a value of type {kind}",
                "Ask `isinstance(x, Tensor)`.",
            )
        return SimpleValue(e.constant(kind is TensorType))


class _Conversion(Sugared):
    """A dtype conversion such as `x.float()`."""

    __slots__ = ("dtype", "name", "self_")

    def __init__(self, self_: SimpleValue, name: str, dtype: DType) -> None:
        self.self_ = self_
        self.name = name
        self.dtype = dtype

    def describe(self) -> str:
        return f"the method `Tensor.{self.name}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        named = {
            **arguments.named,
            "dtype": SugaredEnumConstant(self.dtype, ScalarTypeType),
        }
        call_arguments = Arguments((self.self_, *arguments.positional), named)
        return call_forms(
            e, self.describe(), forms_of_operator("core::to"), call_arguments
        )


class _To(Sugared):
    """`x.to(...)`: dtypes, devices and tensors in any order."""

    __slots__ = ("self_",)

    def __init__(self, self_: SimpleValue) -> None:
        self.self_ = self_

    def describe(self) -> str:
        return "the method `Tensor.to`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        named = dict(arguments.named)
        places = ["non_blocking", "copy"]
        for each in arguments.positional:
            kind = each.kind if isinstance(each, SugaredEnumConstant) else type_of(each)
            if kind is ScalarTypeType or kind is IntType:
                named["dtype"] = each
            elif kind is BoolType and places:
                named[places.pop(0)] = each
            elif kind is TensorType:
                for attribute in ("dtype", "device"):
                    named[attribute] = each.attribute(e, attribute)
            else:
                named["device"] = each
        call_arguments = Arguments((self.self_,), named)
        return call_forms(
            e, self.describe(), forms_of_operator("core::to"), call_arguments
        )


def install_runtime() -> None:
    """Register the functions, operators and constants of the runtime."""
    register_sugar(OperatorPacket, operator_of)
    # Their instances accept any attribute name, so they are registered by class.
    register_sugar(Operators, _Names)
    register_sugar(OperatorNamespace, _Names)
    register_sugar(OperatorHandle, overload_of)
    register_sugar(DType, lambda each: SugaredEnumConstant(each, ScalarTypeType))
    register_sugar(Layout, lambda each: SugaredEnumConstant(each, LayoutType))
    register_sugar(
        MemoryFormat, lambda each: SugaredEnumConstant(each, MemoryFormatType)
    )
    register_sugar(ModuleType, _RuntimeModule)
    register_special_forms(
        (getattr(functions, name), form) for name, form in _forms_of_functions()
    )


def _forms_of_functions() -> Iterator[tuple[str, Sugared]]:
    """Yield the names of functions of the runtime, and their forms."""
    for name in ("numel", "is_floating_point", "is_complex"):
        yield name, _MethodFunction(name)
    yield "is_tensor", _IsTensor("is_tensor")
    for name in PROGRAMS:
        if name in functions.FUNCTIONS:
            yield name, TensorProgram(name)
    for name, operator in SAME.items():
        if name in functions.FUNCTIONS:
            yield name, RuntimeFunction(operator)
    for name in functions.FUNCTIONS:
        if forms_of_operator(f"core::{name}"):
            yield name, RuntimeFunction(name)
