"""Interfaces: the methods that whatever is of an interface has.

True only here: how a class that is marked with `interface` becomes a type.

Rules:
- an interface says the types of everything: each method has an annotated result;
- a method of an interface has no body; what is inherited does not count;
- it has no attributes, and no objects of its own.
"""

import ast
from types import FunctionType
from typing import Any

from runtime.schema.declaration import InterfaceType, qualified_name
from runtime.script.emission.compile import Compiler
from runtime.script.emission.emitter import Emitter
from runtime.script.emission.python_class import Blueprint
from runtime.script.emission.sugar import Arguments, Sugared
from runtime.script.frontend import (
    Annotations,
    read_class,
    read_function,
    read_signature,
    scope_of,
)


def interface_type(compiler: Compiler, python: type) -> InterfaceType:
    """The type of a class that is marked as an interface.

    Raises:
        NoSource: its source is not there.
        UnfitClass: it has something that interfaces do not have.
        ProgramError: a method of it cannot be read.
    """
    classes = compiler.program.classes
    known = classes.known(python)
    if known is not None:
        assert isinstance(known, InterfaceType), "it is marked"
        return known
    made = Blueprint(python, read_class(python))
    namespace = compiler.program.namespace
    declared = namespace.declare(InterfaceType, qualified_name(python), python)
    classes.put(python, declared)
    compiler.undoing.append(lambda: classes.forget(python))
    for name, member in vars(python).items():
        if isinstance(member, FunctionType):
            _method(compiler, made, declared, name, member)
        elif not (name.startswith("__") and name.endswith("__")):
            hint = "Give it a method that returns it."
            place = made.place(name)
            raise made.fault(f"is an interface, and has `{name}`", hint, place)
    for name in vars(python).get("__annotations__", {}):
        hint = "Give it a method that returns it."
        message = f"is an interface, and has the attribute `{name}`"
        raise made.fault(message, hint, made.place(name))
    declared.declaration.seal()
    return declared


def _method(
    compiler: Compiler,
    made: Blueprint,
    declared: InterfaceType,
    name: str,
    function: FunctionType,
) -> None:
    definition = read_function(function)
    tree = definition.tree
    if tree.returns is None and "->" not in definition.source.text:
        message = f"is an interface, and its method `{name}` has no annotated result"
        raise made.fault(message, "Write `-> None` for none.", made.place(name))
    for each in tree.body:
        words = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
        if not words and not isinstance(each, ast.Pass):
            message = f"is an interface, and its method `{name}` does something"
            raise made.fault(message, "Write `pass`.", each)
    scope = scope_of(function, definition, compiler.classes)
    signature = read_signature(Annotations(definition, scope), function, declared)
    declared.declaration.add_method(name, signature.schema())


class InterfaceSugar(Sugared):
    """An interface in a program."""

    __slots__ = ("python",)

    def __init__(self, python: type) -> None:
        self.python = python

    def says(self) -> str:
        """The interface."""
        return f"the interface `{self.python.__name__}`"

    def call(self, e: Emitter, arguments: Arguments) -> Any:
        """It has no objects of its own."""
        hint = "Make an object of a class that has its methods."
        e.fail(f"{self.says()} has no objects of its own", hint)
