"""Meaning: what the words of the text mean to the compiler, so that it compiles back.

A text names what no program of Python has given the compiler.

    recompiled    the function that the text of a function compiles to
    names_of      the names of such a text

Rules:
- `__torch__.a.b` is a function, or a type, of the program that the text is of;
- a function within a function is what a fork or an await runs later: its body is
  emitted where it is called, with the variables of that place;
- what is compiled back does the same as what was written; it is not the same graph node
  by node (constants are pooled, a branch knows more of its variables).
"""

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from everyorder.runtime import autograd, futures
from everyorder.runtime.base.locks import load
from everyorder.runtime.errors.registration import UnknownDevice
from everyorder.runtime.schema.declared import DeclaredType, EnumType
from everyorder.runtime.schema.enums import Device
from everyorder.runtime.schema.types import (
    NAMED_BASES,
    PROGRAM_BASES,
    ClassType,
    TupleType,
    Type,
)
from everyorder.runtime.script.archive.code import code_of
from everyorder.runtime.script.archive.spelling import (
    MANAGERS,
    PLUG_IN_WORDS,
    Constants,
)
from everyorder.runtime.script.emission import (
    Arguments,
    Emitter,
    SimpleValue,
    Sugared,
    SyntaxForm,
    compile_text,
    register_sugar,
    sugar_of,
    sugar_of_value,
)
from everyorder.runtime.script.emission.emitter import PythonObject, emits
from everyorder.runtime.script.ir import Graph
from everyorder.runtime.script.ir.program import (
    Function,
    Program,
    annotate,
    fork,
    unchecked_cast,
    wait,
)
from everyorder.runtime.script.ir.type_rules import parts_of
from everyorder.runtime.script.types.python_classes import named_tuple_class
from everyorder.runtime.tensors import tensor


class Path:
    """`__torch__`, or what is below it: functions and types are found at its ends."""

    __slots__ = ("_known", "_path")

    def __init__(self, path: str, known: Mapping[str, Any]) -> None:
        self._path = path
        self._known = known

    def __getattr__(self, name: str) -> Any:
        path = f"{self._path}.{name}"
        found = self._known.get(path)
        if found is not None:
            return found
        if not any(each.startswith(f"{path}.") for each in self._known):
            raise AttributeError(f"there is no {path}")
        return Path(path, self._known)


class _PythonNames(PythonObject):
    """Something whose attributes are objects of Python."""

    __slots__ = ()

    def describe(self) -> str:
        return "a name of the program"

    def attribute(self, e: Emitter, name: str) -> Sugared:
        return sugar_of(getattr(self.python, name), e)


class ConstantTable:
    """`CONSTANTS`: what the text only names."""

    __slots__ = ("_values",)

    def __init__(self, values: list[Any]) -> None:
        self._values = values

    def __getattr__(self, name: str) -> Any:
        return self._values[int(name[1:])]


class InnerFunction(Sugared):
    """A function within a function, with the variables of where it stands."""

    __slots__ = ("node",)

    def __init__(self, node: ast.FunctionDef) -> None:
        self.node = node

    def describe(self) -> str:
        return f"the function `{self.node.name}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """Emit the body here; what it assigns stays inside."""
        *body, last = self.node.body
        names, declared = dict(e.names), dict(e.declared)
        for each in body:
            e.statement(each)
        assert isinstance(last, ast.Return), "so the text was written"
        result = None if last.value is None else e.value(last.value)
        e.names, e.declared = names, declared
        return SimpleValue(e.constant(None) if result is None else result)


@emits(ast.FunctionDef)
def _define(e: Emitter, node: ast.FunctionDef) -> None:
    e.names[node.name] = InnerFunction(node)


def _uninitialized(e: Emitter, node: ast.Call) -> Sugared:
    return sugar_of_value(e.uninitialized(e.annotations.type(node.args[0])))


def _create(e: Emitter, node: ast.Call) -> Sugared:
    wanted = e.annotations.type(node.args[0])
    return sugar_of_value(e.node("prim::CreateObject", (), (wanted,)).output)


def _device(e: Emitter, node: ast.Call) -> Sugared:
    """A device as it is written, or one that the program makes."""
    match node:
        case ast.Call(args=[ast.Constant(value=str(text))], keywords=[]):
            with suppress(UnknownDevice):
                return sugar_of(Device.parse(text), e)
    given = [e.expression(each) for each in node.args]
    named = {str(each.arg): e.expression(each.value) for each in node.keywords}
    return sugar_of(Device, e).call(e, Arguments(given, named))


def _float(e: Emitter, node: ast.Call) -> Sugared:
    return sugar_of(float(ast.literal_eval(node.args[0])), e)


def _raise(e: Emitter, node: ast.Call) -> Sugared:
    kind = ast.literal_eval(node.args[0])
    e.node("prim::RaiseException", (e.value(node.args[1]),), (), {"class": kind})
    return SimpleValue(e.constant(None))


FORMS: Mapping[str, SyntaxForm] = {
    name: SyntaxForm(name, emit)
    for name, emit in (
        ("create", _create),
        ("device", _device),
        ("non_finite", _float),
        ("raise_exception", _raise),
        ("uninitialized", _uninitialized),
    )
}


def names_of(known: Mapping[str, Any], constants: Constants) -> dict[str, Any]:
    """The names of a text; `known` are functions and types by their full names."""
    import cmath
    import math
    import typing
    import warnings

    bases = {**NAMED_BASES, **PROGRAM_BASES}
    return {
        **{name: each for name, each in bases.items() if name[0].isupper()},
        **{
            name: getattr(typing, name)
            for name in ("Any", "Dict", "List", "Optional", "Tuple", "Union")
        },
        "Await": futures.Await,
        "Future": futures.Future,
        "CONSTANTS": ConstantTable(constants.values),
        "__torch__": Path("__torch__", known),
        "annotate": annotate,
        "awaitable": futures.awaitable,
        "awaitable_nowait": futures.awaitable_nowait,
        "awaitable_wait": futures.awaitable_wait,
        "cmath": cmath,
        "fork": fork,
        "math": math,
        "ops": load("everyorder.runtime").ops,
        "tensor": tensor,
        "unchecked_cast": unchecked_cast,
        **{name: getattr(autograd, name) for name in MANAGERS},
        "wait": wait,
        "warnings": warnings,
        **FORMS,
        **PLUG_IN_WORDS.rows,
    }


def recompiled(function: Function, program: Program | None = None) -> Function:
    """The function that the text of a function compiles to, in a program of its own.

    Raises:
        ProgramError: the text does not compile.
    """
    constants = Constants()
    text = code_of(function, constants, is_plain=True)
    target = Program() if program is None else program
    known: dict[str, Any] = {}
    for each in _references(function):
        if isinstance(each, Function):
            known[each.qualname] = each
        elif isinstance(each, DeclaredType):
            known[each.declaration.qualname] = each
            python = each.declaration.python
            if isinstance(each, EnumType) and python is not None:
                known[each.declaration.qualname] = python
                target.classes.put(python, each)
        elif isinstance(each, ClassType):
            known[str(each)] = each
        elif isinstance(each, TupleType) and each.qualname:
            python = named_tuple_class(each)
            known[each.qualname] = python
            target.classes.put(python, each)
    path = function.qualname.rpartition(".")[0]
    names = names_of(known, constants)
    (made,) = compile_text(text, target, names, path=path, is_saved=True)
    return made


def _references(function: Function) -> Iterator[Any]:
    """The functions and types that a function, and its types, speak of."""
    seen: set[int] = set()
    todo: list[Any] = [each.type for each in function.schema.arguments]
    graphs = [function.graph]
    while graphs:
        graph = graphs.pop()
        for node in graph.nodes():
            todo += [each.type for each in node.outputs]
            for value in node.attributes.values():
                if isinstance(value, Graph):
                    graphs.append(value)
                elif isinstance(value, Function):
                    todo.append(value)
                elif isinstance(value, tuple):
                    todo += [each for each in value if isinstance(each, Type)]
    while todo:
        each = todo.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, Type):
            todo += parts_of(each)


register_sugar(Path, _PythonNames)
register_sugar(ConstantTable, _PythonNames)
