"""Functions of `runtime` and methods of tensors: operators of the runtime by name.

Rules:
- they are operators of the same name in the namespace `core`, with the arguments of its
  schemas, and with those that Python functions take
  (`runtime.operators.bindings`): other names of arguments (`axis`), texts for dtypes
  and devices, and the forms of `runtime.script.emission.program_forms`;
- `requires_grad` of a function that creates a tensor, and `inplace` of an activation,
  become calls of their own.
"""

from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from everyorder.runtime.dispatch.handle import OperatorHandle, OperatorPacket
from everyorder.runtime.dispatch.namespace import OperatorNamespace, Operators
from everyorder.runtime.operators.bindings import functions
from everyorder.runtime.operators.bindings.methods import CONVERSIONS
from everyorder.runtime.operators.bindings.python_bindings import ACTIVATIONS
from everyorder.runtime.operators.declare.handles import Core
from everyorder.runtime.schema.enums import DType, Layout, MemoryFormat
from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.schema.types import (
    AnyType,
    BoolType,
    IntType,
    LayoutType,
    ListType,
    MemoryFormatType,
    OptionalType,
    ScalarTypeType,
    TensorType,
    UnionType,
)
from everyorder.runtime.script.emission.call_matching import (
    DTYPE_NAMES,
    CalleeForm,
    call_forms,
    call_function,
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
from everyorder.runtime.script.emission.function_values import PythonFunction
from everyorder.runtime.script.emission.program_forms import FIRST, FORMS
from everyorder.runtime.script.emission.sugar import (
    SimpleValue,
    constant_of,
    register_special_form,
    register_special_forms,
    register_sugar,
    sugar_of,
    type_of,
)
from everyorder.runtime.script.emission.tensor_programs import PROGRAMS, SAME
from everyorder.runtime.script.ir import Value
from everyorder.runtime.script.primitives.dtypes import LIMITS
from everyorder.runtime.tensors.dtype_info import set_default_dtype
from everyorder.runtime.tensors.generator import manual_seed
from everyorder.runtime.tensors.tensor import Tensor


def forms_of(name: str) -> list[CalleeForm]:
    """Return the forms of a function or method: of its operator, and programs."""
    operators = forms_of_operator(f"core::{name}")
    programs = [
        CalleeForm(
            f"core::{name}",
            parse_schema(each.schema),
            loose=True,
            python=each.python,
            constants=each.constants,
        )
        for each in FORMS.get(name, ())
    ]
    return [*programs, *operators] if name in FIRST else [*operators, *programs]


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
        return call_forms(e, self.describe(), forms_of(self.name), arguments)


class _LinearAlgebra(RuntimeFunction):
    """A function of `runtime.linalg`, which names its operator as `__operator__`."""

    __slots__ = ()

    def describe(self) -> str:
        return f"the function `runtime.{self.name.replace('_', '.', 1)}`"


def _function(function: FunctionType) -> Sugared:
    """Return what represents a Python function."""
    operator = vars(function).get("__operator__")
    return PythonFunction(function) if operator is None else _LinearAlgebra(operator)


class _Creating(RuntimeFunction):
    """A function that creates a tensor, with `requires_grad`."""

    __slots__ = ()

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """Emit the operator, and a call of `requires_grad_` if it is requested."""
        return with_grad(e, arguments, super().call)


def with_grad(
    e: Emitter, arguments: Arguments, call: Callable[[Emitter, Arguments], Sugared]
) -> Sugared:
    """Emit a call that creates a tensor, and `requires_grad_` as requested."""
    named = dict(arguments.named)
    requires_grad = named.pop("requires_grad", None)
    result = call(e, Arguments(arguments.positional, named))
    if requires_grad is None or constant_of(requires_grad) == (True, False):
        return result
    return result.attribute(e, "requires_grad_").call(e, Arguments((requires_grad,)))


class _Randint(_Creating):
    """`randint(high, size)`, and `randint(low, high, size)`."""

    __slots__ = ()

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """Emit the operator, from 0 if two arguments are passed by position."""
        positional = arguments.positional
        if len(positional) == 2 and "size" not in arguments.named:
            zero = SimpleValue(e.constant(0))
            arguments = Arguments((zero, *positional), arguments.named)
        return super().call(e, arguments)


class _Variadic(RuntimeFunction):
    """A function whose tensors are separate arguments, or one list."""

    __slots__ = ()

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """Emit the operator, with the last tensors as a list."""
        first = [*arguments.positional]
        tensors: list[Value] = []
        while first and type_of(first[-1]) is TensorType:
            tensors.insert(0, first.pop().value(e))
        if tensors:
            of = ListType(TensorType)
            first.append(
                SimpleValue(e.node("prim::ListConstruct", tensors, (of,)).output)
            )
        return super().call(e, Arguments(first, arguments.named))


class _Activation(RuntimeFunction):
    """A function that may be asked to overwrite its input."""

    __slots__ = ()

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """Emit the operator, and a copy to the first argument for `inplace`."""
        named = dict(arguments.named)
        is_known, in_place = constant_of(named.get("inplace"))
        if not is_known:
            return super().call(e, arguments)
        del named["inplace"]
        operands = [*arguments.positional]
        if not operands:
            operands = [each for each in (_first(named),) if each is not None]
        if not in_place or not operands:
            return super().call(e, Arguments(operands, named))
        # The input of an operation that is run backwards must not change.
        source = operands[0].attribute(e, "clone").call(e, Arguments())
        result = super().call(e, Arguments((source, *operands[1:]), named))
        return operands[0].attribute(e, "copy_").call(e, Arguments((result,)))


def _first(named: dict[str, Sugared]) -> Sugared | None:
    """Remove and return the first argument of a function that was passed by name."""
    return named.pop("input", None) or named.pop("self", None)


class _Seed(RuntimeFunction):
    """`manual_seed`; in a program it returns None."""

    __slots__ = ()

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        forms = forms_of_operator("script::manual_seed")
        return call_forms(e, self.describe(), forms, arguments)


class _Where(Sugared):
    """The method `where`, whose condition is not the tensor itself."""

    __slots__ = ("self_",)

    def __init__(self, self_: SimpleValue) -> None:
        self.self_ = self_

    def describe(self) -> str:
        return "the method `Tensor.where`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        first, rest = arguments.positional[:1], arguments.positional[1:]
        operands = Arguments((*first, self.self_, *rest), arguments.named)
        if not first:
            named = {"self": self.self_, **arguments.named}
            operands = Arguments(rest, named)
        forms = forms_of_operator("core::where")
        return call_forms(e, self.describe(), forms, operands)


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

    def attribute(self, e: Emitter, name: str) -> Sugared:
        return SimpleValue(self.value(e)).attribute(e, name)


def tensor_method(e: Emitter, self_: SimpleValue, name: str) -> Sugared | None:
    """Return the method of tensors of the name, or None."""
    if name in CONVERSIONS:
        return _Conversion(self_, name, DType.named(CONVERSIONS[name]))
    if name == "to":
        return _To(self_)
    if name == "where":
        return _Where(self_)
    if not hasattr(Tensor, name) or name.startswith("__"):
        return None
    if name in PROGRAMS:
        return TensorProgram(name, self_)
    name = SAME.get(name, name)
    forms = [
        each
        for each in forms_of(name)
        if each.schema.overload != "out"
        and each.schema.arguments
        and each.schema.arguments[0].type is TensorType
    ]
    if not forms:
        return None
    method = Operator(f"Tensor.{name}", forms, self_)
    if name in _PARTS:
        return method.call(e, Arguments())
    return _NewTensor(method) if name.startswith("new_") else method


# Attributes of tensors that are operators.
_PARTS = ("real", "imag")


class _NewTensor(Sugared):
    """A method that makes a tensor like another, with `requires_grad`."""

    __slots__ = ("method",)

    def __init__(self, method: Operator) -> None:
        self.method = method

    def describe(self) -> str:
        return self.method.describe()

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        return with_grad(e, arguments, self.method.call)


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
        if self_ is not None:
            arguments = arguments.behind(self_)
        named = dict(arguments.named)
        if "input" in named:
            named["self"] = named.pop("input")
        operands = Arguments(arguments.positional, named)
        return call_function(e, compiled(e, PROGRAMS[self.name]), operands)


class _MethodFunction(RuntimeFunction):
    """A function of `runtime` that is the method of its first argument."""

    __slots__ = ()

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        named = dict(arguments.named)
        operands = [*arguments.positional]
        if not operands:
            first = _first(named)
            operands = [] if first is None else [first]
        if not operands:
            e.fail(f"{self.describe()} is given no tensor")
        method = operands[0].attribute(e, self.name)
        return method.call(e, Arguments(operands[1:], named))


class _Outside(RuntimeFunction):
    """A function that changes the whole process, and is not for programs."""

    __slots__ = ()

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        e.fail(
            f"{self.describe()} changes the whole process, and a program does not",
            "Call it before the program, which follows.",
        )


class _Limits(Sugared):
    """`finfo` or `iinfo`, which is called with a dtype."""

    __slots__ = ("python",)

    def __init__(self, python: type) -> None:
        self.python = python

    def describe(self) -> str:
        return f"`{self.python.__name__}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """Return the limits of the dtype, by default those of the default dtype."""
        name = self.python.__name__
        dtypes = [*arguments.positional, *arguments.named.values()]
        if {*arguments.named} - {"dtype"} or len(dtypes) > 1:
            e.fail(f"{self.describe()} takes one dtype")
        if not dtypes and name == "iinfo":
            e.fail(f"{self.describe()} is given no dtype")
        if not dtypes:
            return _LimitsOf(self, e.operator("script::get_default_dtype.mode"))
        words = f"{self.describe()} takes a dtype, and a value of type {{}} is given"
        return _LimitsOf(self, e.fit(dtypes[0].value(e), ScalarTypeType, words))


class _LimitsOf(Sugared):
    """The limits of one dtype: each attribute is a primitive."""

    __slots__ = ("dtype", "limits")

    def __init__(self, limits: _Limits, dtype: Value) -> None:
        self.limits = limits
        self.dtype = dtype

    def describe(self) -> str:
        return f"a result of {self.limits.describe()}"

    def value(self, e: Emitter) -> Value:
        e.fail(
            f"{self.describe()} is used as a value",
            "Read one of its attributes where it is made, such as `.max`.",
        )

    def attribute(self, e: Emitter, name: str) -> Sugared:
        python = self.limits.python
        if name not in LIMITS[python]:
            return no_attribute(e, self.describe(), name, [*LIMITS[python]])
        primitive = f"script::{python.__name__}_{name}.ScalarType"
        return SimpleValue(e.operator(primitive, self.dtype))


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
            elif constant_of(each)[1] in DTYPE_NAMES:
                named["dtype"] = each
            else:
                named["device"] = each
        call_arguments = Arguments((self.self_,), named)
        return call_forms(
            e, self.describe(), forms_of_operator("core::to"), call_arguments
        )


def install_runtime() -> None:
    """Register the functions, operators and constants of the runtime."""
    register_sugar(FunctionType, _function)
    register_sugar(OperatorPacket, operator_of)
    # Their instances accept any attribute name, so they are registered by class.
    register_sugar(Operators, _Names)
    register_sugar(OperatorNamespace, _Names)
    register_sugar(Core, _Names)
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
    register_special_form(manual_seed, _Seed("manual_seed"))
    register_special_forms((of, _Limits(of)) for of in LIMITS)
    register_special_form(set_default_dtype, _Outside("set_default_dtype"))


def _forms_of_functions() -> Iterator[tuple[str, Sugared]]:
    """Yield the names of functions of the runtime, and their forms."""
    questions = "is_floating_point", "is_complex", "is_nonzero", "is_inference"
    for name in ("numel", *questions):
        yield name, _MethodFunction(name)
    yield "is_tensor", _IsTensor("is_tensor")
    for name in PROGRAMS:
        if name in functions.FUNCTIONS:
            yield name, TensorProgram(name)
    for name, operator in SAME.items():
        if name in functions.FUNCTIONS:
            yield name, RuntimeFunction(operator)
    for name in functions.FUNCTIONS:
        if forms_of_operator(f"core::{name}") or name in FORMS:
            yield name, _KINDS.get(name, RuntimeFunction)(name)


_KINDS: dict[str, type[RuntimeFunction]] = {
    **dict.fromkeys(functions.CREATING, _Creating),
    **dict.fromkeys(ACTIVATIONS, _Activation),
    "einsum": _Variadic,
    "meshgrid": _Variadic,
    "randint": _Randint,
}
