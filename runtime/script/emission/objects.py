"""Objects: the operations on objects of classes and interfaces, and on enums.

    ObjectValue       an object: attributes, methods, and the methods of operators
    interface_type    a class that is marked with `interface` as a type
    EnumClass, EnumValue    an enum, and its members
    NamedTupleClass   a class of named tuples; a call creates a tuple

Rules:
- an operator is a call of the method that Python would call; Python's defaults without
  a method (`==` is `is`, an object is true) apply here, too;
- a property is a call of its getter, or setter; a method is compiled on first use;
- an interface annotates all types: its methods have annotated results and no bodies;
  inherited methods do not count; objects of an interface type have only its methods;
- members of an enum are constants, and a loop over the class is unrolled. Members are
  compared by identity, and are true; members that are also numbers or texts (IntEnum,
  StrEnum) are compared by value, and have the operators of values;
- fields of a named tuple are passed by position, by name, or have constant defaults;
  methods that the class adds are not supported.
"""

import ast
import enum
from collections.abc import Sequence
from types import FunctionType
from typing import Any

from everyorder.runtime.schema.declared import (
    DeclaredType,
    EnumType,
    InterfaceType,
    ScriptClassType,
    qualified_name,
)
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import (
    NO_DEFAULT,
    Argument,
    OperatorName,
    Signature,
)
from everyorder.runtime.schema.types import BoolType, IntType, StrType, TupleType
from everyorder.runtime.script.emission import operators
from everyorder.runtime.script.emission.call_matching import (
    bind_arguments,
    call_method,
)
from everyorder.runtime.script.emission.compiler import Compiler
from everyorder.runtime.script.emission.emitter import (
    Arguments,
    Emitter,
    PythonObject,
    Sugared,
    no_attribute,
)
from everyorder.runtime.script.emission.function_values import (
    IgnoredFunction,
)
from everyorder.runtime.script.emission.python_class import ClassMembers, getter, setter
from everyorder.runtime.script.emission.sugar import (
    SimpleValue,
    SugaredTuple,
    constant_of,
    is_constant,
    register_value,
    sugar_of,
    sugar_of_value,
)
from everyorder.runtime.script.frontend import (
    read_class,
    read_function,
)
from everyorder.runtime.script.ir import Value

# Memo key of a declaration: the function that compiles a method by its name.
PENDING = "pending"
# Memo key of a declaration: the function that returns a method left to Python, or None.
IGNORED_METHODS = "left"

_ARITHMETIC = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "truediv",
    "//": "floordiv",
    "%": "mod",
    "**": "pow",
    "@": "matmul",
    "&": "and",
    "|": "or",
    "^": "xor",
    "<<": "lshift",
    ">>": "rshift",
}
_UNARY = {"-x": "neg", "+x": "pos", "~x": "invert"}
# The method of the left operand, and that of the right one.
_COMPARISONS = {
    "==": ("eq", "eq"),
    "!=": ("ne", "ne"),
    "<": ("lt", "gt"),
    "<=": ("le", "ge"),
    ">": ("gt", "lt"),
    ">=": ("ge", "le"),
}


def method_schema(e: Emitter, declared: DeclaredType, name: str) -> Signature | None:
    """Return the schema of a method, compiled if needed, or None."""
    complete = declared.declaration.memo.get(PENDING)
    if complete is not None:
        complete(name, e)
    return declared.declaration.methods.get(name)


def call_object_method(
    e: Emitter, owner: SimpleValue, name: str, arguments: Arguments
) -> Sugared:
    """Call an existing method of an object.

    Raises:
        IllTyped: the method does not accept the arguments.
    """
    declared = owner.type
    assert isinstance(declared, DeclaredType), "an object is of a declared type"
    schema = method_schema(e, declared, name)
    assert schema is not None, "the caller has checked that the method exists"
    callee = f"the method `{name}` of {declared}"
    return call_method(e, callee, schema, owner, name, arguments)


def attribute_of(e: Emitter, owner: Value, name: str) -> Value:
    """Return an attribute declared by the type of an object."""
    assert isinstance(owner.type, DeclaredType), "only declared types have attributes"
    type_ = owner.type.declaration.attributes[name]
    return e.node("prim::GetAttr", (owner,), (type_,), {"name": name}).output


class SugaredMethod(Sugared):
    """A method of an object."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: SimpleValue, name: str) -> None:
        self.owner = owner
        self.name = name

    def describe(self) -> str:
        return f"the method `{self.name}` of {self.owner.type}"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        return call_object_method(e, self.owner, self.name, arguments)


class ObjectValue(SimpleValue):
    """An object of a class, or of an interface."""

    __slots__ = ()

    @property
    def declared(self) -> DeclaredType:
        """Return its type."""
        assert isinstance(self.type, DeclaredType), "registered for declared types"
        return self.type

    def has(self, e: Emitter, name: str) -> bool:
        """Return True if the method exists."""
        return method_schema(e, self.declared, name) is not None

    def method(self, e: Emitter, name: str, *operands: Sugared) -> Sugared:
        """Return the result of an existing method."""
        return call_object_method(e, self, name, Arguments(operands))

    def attribute(self, e: Emitter, name: str) -> Sugared:
        declaration = self.declared.declaration
        if name in declaration.attributes:
            value = attribute_of(e, self.node_value, name)
            value.hint = name
            return sugar_of_value(value)
        if self.has(e, getter(name)):
            return self.method(e, getter(name))
        if self.has(e, name):
            return SugaredMethod(self, name)
        left = declaration.memo.get(IGNORED_METHODS)
        python = None if left is None else left(name)
        if python is not None:
            return IgnoredFunction(python, self)
        return member(e, self.declared, name)

    def set_attribute(self, e: Emitter, name: str, value: Sugared) -> None:
        declared = self.declared
        declaration = declared.declaration
        if name not in declaration.attributes:
            if self.has(e, setter(name)):
                self.method(e, setter(name), value)
                return
            if self.has(e, getter(name)):
                hint = "Give the property a setter."
                e.fail(f"the property `{name}` of {declared} cannot be set", hint)
            if name in declaration.constants:
                hint = "Make it an attribute: assign it in `__init__`."
                e.fail(f"`{name}` is a constant of {declared}", hint)
            if isinstance(declared, InterfaceType):
                hint = "An interface has methods only."
                e.fail(f"{declared} has no attribute `{name}`", hint)
            no_attribute(e, str(declared), name, [*declaration.attributes], NEW)
        type_of_attribute = declaration.attributes[name]
        message = (
            f"attribute `{name}` of {declared} is of type {type_of_attribute}, "
            "and is set to {}"
        )
        fitted = e.fit(value.value(e), type_of_attribute, message)
        e.node("prim::SetAttr", (self.node_value, fitted), (), {"name": name})

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """Call `__call__`, or `forward` of an interface, as for modules."""
        if isinstance(self.type, InterfaceType) and self.has(e, "forward"):
            return call_object_method(e, self, "forward", arguments)
        self._needs(e, "__call__", "be called")
        return call_object_method(e, self, "__call__", arguments)

    def subscript(self, e: Emitter, index: Sugared) -> Sugared:
        return self._required(e, "__getitem__", "be indexed", index)

    def set_subscript(self, e: Emitter, index: Sugared, value: Sugared) -> None:
        self._required(e, "__setitem__", "have elements set", index, value)

    def delete_subscript(self, e: Emitter, index: Sugared) -> None:
        self._required(e, "__delitem__", "have elements deleted", index)

    def iterate(self, e: Emitter) -> Any:
        hint = "Give it a method that returns a list."
        e.fail(f"an object of {self.declared} is not iterable", hint)

    def truth(self, e: Emitter) -> Value | bool:
        """Return the truth by `__bool__` or `__len__`; without both it is true."""
        if self.has(e, "__bool__"):
            return self._bool(e, self.method(e, "__bool__"))
        if self.has(e, "__len__"):
            length = self.method(e, "__len__")
            zero = SimpleValue(e.constant(0, IntType))
            return operators.binary(e, "!=", length, zero).value(e)
        if isinstance(self.declared, InterfaceType):
            e.fail(f"whether {self.describe()} is true is not known", "Compare it.")
        return True

    def enter(self, e: Emitter) -> Value:
        for name in ("__enter__", "__exit__"):
            self._needs(e, name, "be used in `with`")
        return self.node_value

    def binary(
        self, e: Emitter, symbol: str, other: Sugared, reflected: bool
    ) -> Sugared | None:
        if symbol == "in":
            if not reflected:
                return None
            what = "be searched with `in`"
            contained = self._required(e, "__contains__", what, other)
            return SimpleValue(self._bool(e, contained))
        if symbol in _UNARY:
            return self._required(e, f"__{_UNARY[symbol]}__", f"have `{symbol[:-1]}`")
        if symbol in _COMPARISONS:
            return self._compared(e, symbol, other, reflected)
        if symbol.endswith("="):
            name = f"__i{_ARITHMETIC.get(symbol[:-1], '')}__"
            return self.method(e, name, other) if self.has(e, name) else None
        if symbol not in _ARITHMETIC:
            return None
        name = f"__{'r' if reflected else ''}{_ARITHMETIC[symbol]}__"
        if self.has(e, name):
            return self.method(e, name, other)
        if not reflected and isinstance(other, ObjectValue):
            return None
        mine = _ARITHMETIC[symbol]
        left, right = (other, self) if reflected else (self, other)
        return e.fail(
            f"`{symbol}` of {left.words()} and {right.words()} is nothing",
            f"The class of the left side has no method `__{mine}__`, and that of the "
            f"right side no `__r{mine}__`.",
        )

    def _compared(
        self, e: Emitter, symbol: str, other: Sugared, reflected: bool
    ) -> Sugared | None:
        name = f"__{_COMPARISONS[symbol][reflected]}__"
        if self.has(e, name):
            return self.method(e, name, other)
        if symbol == "!=" and self.has(e, "__eq__"):
            return operators.unary(e, "not ", self.method(e, "__eq__", other))
        if not reflected and isinstance(other, ObjectValue):
            theirs = f"__{_COMPARISONS[symbol][True]}__"
            if other.has(e, theirs) or (symbol == "!=" and other.has(e, "__eq__")):
                return None
        if symbol in ("==", "!="):
            return operators.compare(
                e, "is" if symbol == "==" else "is not", self, other
            )
        self._needs(e, name, f"be compared with `{symbol}`")
        return None

    def _bool(self, e: Emitter, result: Sugared) -> Value:
        truth = result.truth(e)
        return e.constant(truth, BoolType) if isinstance(truth, bool) else truth

    def _required(
        self, e: Emitter, name: str, what: str, *operands: Sugared
    ) -> Sugared:
        """Return the result of a required method; refuse if it is missing."""
        self._needs(e, name, what)
        return self.method(e, name, *operands)

    def _needs(self, e: Emitter, name: str, what: str) -> None:
        if not self.has(e, name):
            message = f"an object of {self.declared} cannot {what}"
            e.fail(message, f"Its class has no method `{name}`.")


NEW = "Attributes are made in `__init__`, or named in the body of the class."


def member(e: Emitter, declared: DeclaredType, name: str) -> Sugared:
    """Return a constant, or a static method, of the class itself.

    Raises:
        UnknownAttribute: the class does not have the member.
    """
    declaration = declared.declaration
    if name in declaration.constants:
        return sugar_of(declaration.constants[name], e)
    static = declaration.functions.get(name)
    if static is not None and name not in declaration.methods:
        return sugar_of(static, e)
    candidates = [
        *declaration.attributes,
        *declaration.constants,
        *declaration.functions,
    ]
    candidates = [
        each.removesuffix(getter("")).removesuffix(setter("")) for each in candidates
    ]
    return no_attribute(e, str(declared), name, candidates)


# Interfaces


def interface_type(compiler: Compiler, python: type) -> InterfaceType:
    """Return the type of a class that is marked as an interface.

    Raises:
        NotScriptable: the source is not available. MalformedProgram: the class has a
        member that is not allowed in interfaces. ProgramError: a method cannot be read.
    """
    classes = compiler.program.classes
    existing = classes.known(python)
    if existing is not None:
        assert isinstance(existing, InterfaceType), (
            "a marked class has an interface type"
        )
        return existing
    members = ClassMembers(python, read_class(python))
    namespace = compiler.program.namespace
    declared = namespace.declare(InterfaceType, qualified_name(python), python)
    classes.put(python, declared)
    compiler.undo_steps.append(lambda: classes.forget(python))
    for name, member in vars(python).items():
        if isinstance(member, FunctionType):
            _method(compiler, members, declared, name, member)
        elif not (name.startswith("__") and name.endswith("__")):
            hint = "Give it a method that returns it."
            place = members.place(name)
            raise members.fault(f"is an interface, and has `{name}`", hint, place)
    for name in vars(python).get("__annotations__", {}):
        hint = "Give it a method that returns it."
        message = f"is an interface, and has the attribute `{name}`"
        raise members.fault(message, hint, members.place(name))
    declared.declaration.seal()
    return declared


def _method(
    compiler: Compiler,
    members: ClassMembers,
    declared: InterfaceType,
    name: str,
    function: FunctionType,
) -> None:
    definition = read_function(function)
    tree = definition.tree
    if tree.returns is None and "->" not in definition.source.text:
        message = f"is an interface, and its method `{name}` has no annotated result"
        raise members.fault(message, "Write `-> None` for none.", members.place(name))
    for each in tree.body:
        words = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
        if not words and not isinstance(each, ast.Pass):
            message = f"is an interface, and its method `{name}` does something"
            raise members.fault(message, "Write `pass`.", each)
    signature = compiler.signature(function, declared)
    declared.declaration.add_method(name, signature.schema())


class InterfaceSugar(PythonObject):
    """An interface in a program."""

    __slots__ = ()

    def describe(self) -> str:
        return f"the interface `{self.python.__name__}`"

    def call(self, e: Emitter, arguments: Arguments) -> Any:
        hint = "Make an object of a class that has its methods."
        e.fail(f"{self.describe()} cannot be instantiated", hint)


# Enums


class EnumClass(Sugared):
    """An enum in a program."""

    __slots__ = ("python", "type")

    def __init__(self, python: type[enum.Enum], type: EnumType) -> None:  # noqa: A002  # the field's own word
        self.python = python
        self.type = type

    def describe(self) -> str:
        return f"the enum `{self.python.__name__}`"

    def _member(self, e: Emitter, one: enum.Enum) -> Sugared:
        return EnumValue(e.constant(one, self.type))

    def attribute(self, e: Emitter, name: str) -> Sugared:
        member = self.python.__members__.get(name)
        if member is not None:
            return self._member(e, member)
        return no_attribute(e, self.describe(), name, [*self.python.__members__])

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        hint = "Go through the members, and compare their values."
        e.fail(f"members of {self.describe()} are not found by their values", hint)

    def subscript(self, e: Emitter, index: Sugared) -> Sugared:
        is_literal, name = constant_of(index)
        if not is_literal or not isinstance(name, str):
            hint = "Write the name in quotes, or go through the members."
            e.fail(f"the name of a member of {self.describe()} is not a constant", hint)
        return self.attribute(e, name)

    def elements(self, e: Emitter) -> Sequence[Sugared] | None:
        """Return its members, without aliases."""
        return [self._member(e, each) for each in self.python]

    def iterate(self, e: Emitter) -> Any:
        return SugaredTuple(self.elements(e) or ()).iterate(e)


class EnumValue(SimpleValue):
    """A member of an enum."""

    __slots__ = ()

    @property
    def _is_plain(self) -> bool:
        assert isinstance(self.type, EnumType), "registered for such types"
        python: Any = self.type.declaration.python
        return python is None or not issubclass(python, int | float | str)

    def _value(self, e: Emitter) -> Sugared:
        return self.attribute(e, "value")

    def attribute(self, e: Emitter, name: str) -> Sugared:
        assert isinstance(self.type, EnumType), "registered for such types"
        is_known, one = constant_of(self)
        if is_known and name in ("name", "value"):
            type_ = StrType if name == "name" else None
            return sugar_of_value(e.constant(getattr(one, name), type_))
        attributes = self.type.declaration.attributes
        if name not in attributes:
            no_attribute(e, str(self.type), name, [*attributes])
        return sugar_of_value(attribute_of(e, self.node_value, name))

    def set_attribute(self, e: Emitter, name: str, value: Sugared) -> None:
        e.fail(f"attributes of {self.type}, an enum, cannot be set")

    def binary(
        self, e: Emitter, symbol: str, other: Sugared, reflected: bool
    ) -> Sugared | None:
        if not self._is_plain and symbol != "in":
            if symbol.endswith("x"):
                return operators.unary(e, symbol[:-1], self._value(e))
            theirs = other._value(e) if isinstance(other, EnumValue) else other
            sides = (theirs, self._value(e)) if reflected else (self._value(e), theirs)
            return operators.binary(e, symbol, *sides)
        if symbol == "==":
            return operators.compare(e, "is", self, other)
        if symbol == "!=":
            return operators.compare(e, "is not", self, other)
        if symbol == "in" or (symbol[-1] in "=x" and symbol[0] not in "<>"):
            return None
        hint = "Members are equal or not; compare their values."
        return e.fail(f"`{symbol}` of {self.type}, an enum, is nothing", hint)

    def truth(self, e: Emitter) -> Value | bool:
        return True if self._is_plain else self._value(e).truth(e)


# Named tuples


class NamedTupleClass(Sugared):
    """The class of named tuples in a program."""

    __slots__ = ("python", "type")

    def __init__(self, python: Any, type: TupleType) -> None:  # noqa: A002  # the field's own word
        self.python = python
        self.type = type

    def describe(self) -> str:
        return f"the named tuple `{self.python.__name__}`"

    def attribute(self, e: Emitter, name: str) -> Sugared:
        hint = "Make a tuple by calling the class."
        return no_attribute(e, self.describe(), name, (), hint)

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        defaults = self.python._field_defaults
        fields = []
        for field, each in zip(self.type.names, self.type.elements, strict=True):
            default = defaults.get(field, NO_DEFAULT)
            has_value = default is NO_DEFAULT or is_constant(default)
            stored = default if has_value else NO_DEFAULT
            fields.append(Argument(field, each, default=stored))
        name = OperatorName(self.python.__name__)
        schema = Schema(name, tuple(fields), (Argument("", self.type),))
        values, _ = bind_arguments(e, self.describe(), schema, arguments)
        node = e.node("prim::TupleConstruct", values, (self.type,))
        return sugar_of_value(node.output)


def install_objects() -> None:
    """Register the sugar of values of classes, interfaces and enums."""
    register_value(ScriptClassType, ObjectValue)
    register_value(InterfaceType, ObjectValue)
    register_value(EnumType, EnumValue)
