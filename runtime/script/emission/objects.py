"""Objects of classes: attributes, methods, operators, and what Python calls for them.

True only here: what an expression means that is of a class or interface of a program,
and which method stands for which operator.

Rules:
- an operator is a call of the method that Python would call; what Python does where
  there is none (`==` is `is`, an object counts as true) is done here, too;
- a property is a call of its getter, or setter;
- a method is compiled when it is first asked for, if it is not known yet;
- objects of an interface have its methods and nothing else.
"""

from typing import Any

from runtime.schema.declaration import (
    DeclaredType,
    InterfaceType,
    ScriptClassType,
)
from runtime.schema.schema import Schema
from runtime.schema.types import BoolType, IntType
from runtime.script.emission import operators
from runtime.script.emission.calls import bound_values, together
from runtime.script.emission.emitter import Emitter
from runtime.script.emission.python_calls import LeftFunction
from runtime.script.emission.python_class import getter, setter
from runtime.script.emission.sugar import (
    Arguments,
    SimpleValue,
    Sugared,
    no_attribute,
    register_value,
    sugar_of,
)
from runtime.script.ir import Value

# In the memo of a declaration: what compiles a method that is asked for, by its name.
PENDING = "pending"
# Likewise: what knows of a method that is left to Python: its function, its mark and
# its schema; None: it is none.
LEFT = "left"

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
# The method of the left side, and that of the right one.
_COMPARISONS = {
    "==": ("eq", "eq"),
    "!=": ("ne", "ne"),
    "<": ("lt", "gt"),
    "<=": ("le", "ge"),
    ">": ("gt", "lt"),
    ">=": ("ge", "le"),
}


def method_schema(e: Emitter, declared: DeclaredType, name: str) -> Schema | None:
    """The schema of a method, compiled now if it has to be; None: there is none."""
    complete = declared.declaration.memo.get(PENDING)
    if complete is not None:
        complete(name, e)
    return declared.declaration.methods.get(name)


def call_method(
    e: Emitter, owner: SimpleValue, name: str, arguments: Arguments
) -> Sugared:
    """Call a method that there is.

    Raises:
        NoSuchCall: it does not take the arguments.
    """
    declared = owner.type
    assert isinstance(declared, DeclaredType), "an object is of a declared type"
    schema = method_schema(e, declared, name)
    assert schema is not None, "it was asked for"
    callee = f"the method `{name}` of {declared}"
    given = Arguments((owner, *arguments.positional), arguments.named)
    values, types = bound_values(e, callee, schema, given)
    kind = "Interface" if isinstance(declared, InterfaceType) else "Method"
    node = e.node(f"prim::Call{kind}", values, types, {"name": name})
    return together(e, node.outputs)


class Method(Sugared):
    """A method of an object."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: SimpleValue, name: str) -> None:
        self.owner = owner
        self.name = name

    def says(self) -> str:
        """The method and the class."""
        return f"the method `{self.name}` of {self.owner.type}"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """Call it."""
        return call_method(e, self.owner, self.name, arguments)


class ObjectValue(SimpleValue):
    """An object of a class, or of an interface."""

    __slots__ = ()

    @property
    def declared(self) -> DeclaredType:
        """Its type."""
        assert isinstance(self.type, DeclaredType), "registered for such types"
        return self.type

    def has(self, e: Emitter, name: str) -> bool:
        """Whether there is such a method."""
        return method_schema(e, self.declared, name) is not None

    def method(self, e: Emitter, name: str, *given: Sugared) -> Sugared:
        """The result of a method that there is."""
        return call_method(e, self, name, Arguments(given))

    def attribute(self, e: Emitter, name: str) -> Sugared:
        """An attribute, a property, a method, a constant or a static method."""
        declaration = self.declared.declaration
        known = declaration.attributes.get(name)
        if known is not None:
            node = e.node("prim::GetAttr", (self.node_value,), (known,), {"name": name})
            node.output.hint = name
            return e.compiler.sugar(node.output)
        if self.has(e, getter(name)):
            return self.method(e, getter(name))
        if self.has(e, name):
            return Method(self, name)
        left = declaration.memo.get(LEFT)
        found = None if left is None else left(name)
        if found is not None:
            python, mark, schema = found
            return LeftFunction(python, schema, mark, self)
        return member(e, self.declared, name)

    def set_attribute(self, e: Emitter, name: str, value: Sugared) -> None:
        """Set an attribute, or a property that has a setter."""
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
        super().set_attribute(e, name, value)

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """`__call__`; `forward` of an interface, as modules are called so."""
        if isinstance(self.type, InterfaceType) and self.has(e, "forward"):
            return call_method(e, self, "forward", arguments)
        self._needs(e, "__call__", "be called")
        return call_method(e, self, "__call__", arguments)

    def subscript(self, e: Emitter, index: Sugared) -> Sugared:
        """`__getitem__`."""
        self._needs(e, "__getitem__", "be indexed")
        return self.method(e, "__getitem__", index)

    def set_subscript(self, e: Emitter, index: Sugared, value: Sugared) -> None:
        """`__setitem__`."""
        self._needs(e, "__setitem__", "have elements set")
        self.method(e, "__setitem__", index, value)

    def delete_subscript(self, e: Emitter, index: Sugared) -> None:
        """`__delitem__`."""
        self._needs(e, "__delitem__", "have elements deleted")
        self.method(e, "__delitem__", index)

    def iterate(self, e: Emitter) -> Any:
        """Classes of programs have no iterators."""
        hint = "Give it a method that returns a list."
        e.fail(f"an object of {self.declared} cannot be gone through", hint)

    def truth(self, e: Emitter) -> Value | bool:
        """`__bool__`, or `__len__`; an object that has neither is true."""
        if self.has(e, "__bool__"):
            return self._bool(e, self.method(e, "__bool__"))
        if self.has(e, "__len__"):
            length = self.method(e, "__len__")
            zero = SimpleValue(e.constant(0, IntType))
            return operators.binary(e, "!=", length, zero).value(e)
        if isinstance(self.declared, InterfaceType):
            e.fail(f"whether {self.says()} is true is not known", "Compare it.")
        return True

    def enter(self, e: Emitter) -> Value:
        """A manager has `__enter__` and `__exit__`."""
        for name in ("__enter__", "__exit__"):
            self._needs(e, name, "be used in `with`")
        return self.node_value

    def binary(
        self, e: Emitter, symbol: str, other: Sugared, reflected: bool
    ) -> Sugared | None:
        """The method that Python would call for an operator."""
        if symbol == "in":
            if not reflected:
                return None
            self._needs(e, "__contains__", "be searched with `in`")
            found = self.method(e, "__contains__", other)
            return SimpleValue(self._bool(e, found))
        if symbol in _UNARY:
            name = f"__{_UNARY[symbol]}__"
            self._needs(e, name, f"have `{symbol[:-1]}`")
            return self.method(e, name)
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

    def _bool(self, e: Emitter, found: Sugared) -> Value:
        truth = found.truth(e)
        return e.constant(truth, BoolType) if isinstance(truth, bool) else truth

    def _needs(self, e: Emitter, name: str, what: str) -> None:
        if not self.has(e, name):
            message = f"an object of {self.declared} cannot {what}"
            e.fail(message, f"Its class has no method `{name}`.")


NEW = "Attributes are made in `__init__`, or named in the body of the class."


def member(e: Emitter, declared: DeclaredType, name: str) -> Sugared:
    """What the class itself has of a name: a constant, or a static method.

    Raises:
        UnknownAttribute: it has nothing of that name.
    """
    declaration = declared.declaration
    if name in declaration.constants:
        return sugar_of(declaration.constants[name], e)
    static = declaration.functions.get(name)
    if static is not None and name not in declaration.methods:
        return sugar_of(static, e)
    known = [*declaration.attributes, *declaration.constants, *declaration.functions]
    known = [each.removesuffix(getter("")).removesuffix(setter("")) for each in known]
    no_attribute(e, str(declared), name, known)
    raise AssertionError("an attribute that is missing was refused")


def install_objects() -> None:
    """Let values of classes and interfaces be objects."""
    register_value(ScriptClassType, ObjectValue)
    register_value(InterfaceType, ObjectValue)
