"""Spelling: types, constants, names and nodes as Python expressions.

    type_text, constant_text        types and constants as expressions
    FORMS                           kind -> function that writes a node from the texts
                                    of its operands and the table of constants
    register_form, register_word    add a kind, or a name, of a plug-in

Rules of words:
- the text is Python's grammar; types are written as annotations (`Dict[str, Tensor]`),
  types of a program by their qualified names;
- objects without a text form (tensors, named tuples, objects) are `CONSTANTS.c0` and so
  on, entries of a table that accompanies the text; functions and enums are written by
  name;
- a name is used for one variable in a function, and hides no name that the text uses.

Rules of nodes:
- every operand of a node is in its text, even if its kind is without a form:
  `ops.namespace.name(operand, ..., attribute=...)`;
- an expression can be used anywhere without added parentheses; therefore an expression
  with a Python operator includes them (`ParenthesizedExpression`);
- an argument that equals the schema's default is omitted if it is the last, or
  keyword-only;
- primitives are written as programs write them: `a + b`, `words.append(word)`.
"""

import ast
import builtins
import keyword
import math
import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from everyorder.runtime import autograd
from everyorder.runtime.base.registry import Registry, RegistryHandle
from everyorder.runtime.schema.declared import DeclaredType, EnumType
from everyorder.runtime.schema.enums import Device
from everyorder.runtime.schema.signature import Argument, default_identity
from everyorder.runtime.schema.types import (
    CODED,
    AnyType,
    AwaitType,
    BaseType,
    DictType,
    FutureType,
    ListType,
    NoneType_,
    NumberType,
    OptionalType,
    RRefType,
    TupleType,
    Type,
    UnionType,
    unwrap_optional,
)
from everyorder.runtime.script.ir import Graph, Node, row_of
from everyorder.runtime.script.ir.program import declared_type
from everyorder.runtime.script.ir.type_rules import called
from everyorder.runtime.script.primitives.primitive_row import Way
from everyorder.runtime.script.primitives.primitive_table import by_name

# Names in the text that are neither Python's nor a program's.
WORDS = (
    "CONSTANTS",
    "annotate",
    "awaitable",
    "awaitable_nowait",
    "awaitable_wait",
    "cmath",
    "create",
    "device",
    "fork",
    "math",
    "non_finite",
    "ops",
    "raise_exception",
    "tensor",
    "unchecked_cast",
    "uninitialized",
    "wait",
    "warnings",
)
# Classes of `runtime.autograd` whose objects programs create to enter them: the only
# Python classes that a graph in an archive may call.
MANAGERS = ("enable_grad", "inference_mode", "no_grad", "set_grad_enabled")


_TAKEN = frozenset(
    {*WORDS, *MANAGERS, *keyword.kwlist, *keyword.softkwlist, *dir(builtins)}
)
# Names of plug-ins, and the objects that they refer to.
PLUG_IN_WORDS: Registry[str, Any] = Registry("words of texts", order=str)
_FOREIGN = re.compile(r"[^A-Za-z0-9_]")

_WRAPPERS: Mapping[type[Type], str] = {
    ListType: "List",
    OptionalType: "Optional",
    FutureType: "Future",
    AwaitType: "Await",
    RRefType: "RRef",
}


def manager(value: Any) -> str | None:
    """Return the name of a manager, or None for any other object."""
    for name in MANAGERS:
        if value is getattr(autograd, name):
            return name
    return None


def type_text(type_: Type) -> str:
    """Return the type as an annotation."""
    word = _WRAPPERS.get(type_.__class__)
    if word is not None:
        return f"{word}[{type_text(type_.element)}]"  # type: ignore[attr-defined]  # all of `_WRAPPERS` have one
    if isinstance(type_, TupleType):
        if type_.qualname:
            return type_.qualname
        return f"Tuple[{', '.join(map(type_text, type_.elements)) or '()'}]"
    if isinstance(type_, DictType):
        return f"Dict[{type_text(type_.key)}, {type_text(type_.value)}]"
    if isinstance(type_, UnionType):
        return f"Union[{', '.join(map(type_text, type_.members))}]"
    if type_ is NoneType_:
        return "None"
    return type_.name if isinstance(type_, BaseType) else str(type_)


class Constants:
    """The table of objects that the text only refers to, each object once."""

    __slots__ = ("_numbers", "values")

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[int, int] = {}

    def name(self, value: Any) -> str:
        """Return `CONSTANTS.c0` or similar, the same for the same object."""
        number = self._numbers.setdefault(id(value), len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return f"CONSTANTS.c{number}"


def _real(value: float) -> str:
    return repr(value) if math.isfinite(value) else f'non_finite("{value!r}")'


_WRITERS: Mapping[type, Callable[[Any], str]] = {
    type(None): repr,
    bool: repr,
    int: repr,
    float: _real,
    complex: lambda value: f"complex({_real(value.real)}, {_real(value.imag)})",
    str: ascii,
    Device: lambda value: f'device("{value}")',
}


def constant_text(value: Any, constants: Constants, type_: Type = AnyType) -> str:
    """Return an expression for a constant of a type."""
    kind = value.__class__
    if kind is tuple:
        elements = type_.elements if isinstance(type_, TupleType) else ()
        types = (*elements, *[AnyType] * (len(value) - len(elements)))
        pairs = zip(value, types, strict=True)
        return tuple_text([constant_text(each, constants, of) for each, of in pairs])
    if isinstance(value, Enum):
        declared = _enum_of(kind, type_)
        if declared is not None and is_name(value.name):
            return f"{declared}.{value.name}"
    write = _WRITERS.get(kind)
    return constants.name(value) if write is None else write(value)


def _enum_of(python: type, type_: Type) -> Type | None:
    """Return the enum type of a Python enum: from the type, or by declaration."""
    plain = unwrap_optional(type_)
    for each in plain.members if isinstance(plain, UnionType) else (plain,):
        if isinstance(each, EnumType) and each.declaration.python is python:
            return each
    members = getattr(python, "__members__", {})
    declared = declared_type(next(iter(members.values()), None))
    return declared if isinstance(declared, EnumType) else None


def tuple_text(parts: list[str]) -> str:
    """Return a tuple of expressions."""
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def is_name(text: str) -> bool:
    """Return True if an attribute of this name can be written with a dot."""
    return text.isascii() and text.isidentifier() and not keyword.iskeyword(text)


def register_word(word: str, python: Any) -> RegistryHandle:
    """Add a name of a plug-in to texts.

    The name refers to the object: no variable of a text has this name.
    """
    assert word not in _TAKEN, f"{word} is a word already"
    return PLUG_IN_WORDS.register(word, python, stacklevel=2)


class FunctionNames:
    """The names of one function."""

    __slots__ = ("_used",)

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def take(self, name: str) -> str:
        """Reserve and return this very name."""
        self._used.setdefault(name, 0)
        return name

    def fresh(self, hint: str) -> str:
        """Return an unused name similar to the hint."""
        plain = _FOREIGN.sub("_", hint.rstrip(".0123456789")) or "_0"
        plain = f"_{plain}" if plain[0].isdecimal() else plain
        free = plain
        while (
            free in self._used
            or free in _TAKEN
            or free in PLUG_IN_WORDS.rows
            or free == "__torch__"
        ):
            number = self._used.get(plain, 0)
            self._used[plain] = number + 1
            free = f"{plain}_{number}"
        self._used.setdefault(free, 0)
        return free


Form = Callable[[Node, Sequence[str], Constants], str]
_PLACE = re.compile(r"\{([0-9]+)\}")


class ParenthesizedExpression(str):
    """An expression in parentheses, which can be dropped where it is alone."""

    __slots__ = ()

    @property
    def without_parentheses(self) -> str:
        """Return the expression without its parentheses."""
        return self[1:-1]


def without_parentheses(text: str) -> str:
    """Return the expression without parentheses, for places where it is alone."""
    return (
        text.without_parentheses if isinstance(text, ParenthesizedExpression) else text
    )


def comma_list(texts: Sequence[str]) -> str:
    """Return expressions with commas between them."""
    return ", ".join(map(without_parentheses, texts))


class Spelling(NamedTuple):
    """The spelling of a primitive.

    `order` has the indexes of operands in the order of Python's evaluation; a
    `statement` is without value.
    """

    way: Way
    order: tuple[int, ...]
    statement: bool


def spelling_of(node: Node) -> Spelling | None:
    """Return the spelling of a node that is a primitive, or None."""
    row = by_name(node.kind)
    if row is None:
        return None
    count = len(node.inputs)
    if row.way.kind in ("method", "function", "attribute"):
        return Spelling(row.way, tuple(range(count)), False)
    pattern = row.way.pattern
    try:
        ast.parse(pattern.format(*(f"a{at}" for at in range(count))), mode="eval")
        is_statement = False
    except SyntaxError:
        is_statement = True
    order = tuple(int(each) for each in _PLACE.findall(pattern))
    return Spelling(row.way, order, is_statement)


def parenthesized(text: str) -> str:
    """Return the operand in a form that a dot, or a bracket, can follow."""
    return f"({text})" if text[0] in "-.0123456789" else text


def primitive(node: Node, operands: Sequence[str], way: Way) -> str:
    """Return a primitive as programs write it."""
    texts = [parenthesized(each) for each in operands]
    if way.kind in ("method", "function"):
        inner = [*map(without_parentheses, operands)]
        call_operands = [texts[0], *inner[1:]] if way.kind == "method" else inner
        row = row_of(node.kind)
        arguments = () if row is None or row.schema is None else row.schema.arguments
        positional, named = call_arguments(node, call_operands, arguments)
        return way.expression(positional, named)
    if way.kind == "attribute":
        return way.expression(texts)
    if way.pattern.startswith("{0}[") and way.pattern.endswith("]"):
        return way.expression([texts[0], *map(without_parentheses, operands[1:])])
    signed = [f"({each})" if each[0] == "-" else each for each in operands]
    return ParenthesizedExpression(f"({way.expression(signed)})")


def call_arguments(
    node: Node, operands: Sequence[str], arguments: Sequence[Argument]
) -> tuple[list[str], dict[str, str]]:
    """Return the positional operands, and those passed by name."""
    positional: list[str] = []
    named: dict[str, str] = {}
    for place, text in enumerate(operands):
        argument = arguments[place] if place < len(arguments) else None
        if argument is None or not argument.kwarg_only:
            positional.append(text)
        elif not _is_default(node, place, argument):
            named[argument.name] = text
    while positional and len(positional) <= len(arguments):
        place = len(positional) - 1
        if arguments[place].kwarg_only or not _is_default(
            node, place, arguments[place]
        ):
            break
        positional.pop()
    return positional, named


def _is_default(node: Node, place: int, argument: Argument) -> bool:
    source = node.inputs[place].node
    if not argument.has_default or source.kind != "prim::Constant":
        return False
    value = source.attributes.get("value", NotImplemented)
    if value is NotImplemented:
        return False
    return default_identity(value) == default_identity(argument.default)


def operator(node: Node, operands: Sequence[str], constants: Constants) -> str:
    """Return `ops.namespace.name(...)` for an operator, or any other node."""
    row = row_of(node.kind)
    schema = None if row is None else row.schema
    arguments = () if schema is None else schema.arguments
    positional, named = call_arguments(
        node, [*map(without_parentheses, operands)], arguments
    )
    for name, value in node.attributes.items():
        if not isinstance(value, Graph):
            named[name] = _attribute(value, constants)
    arguments_text = [*positional, *(f"{name}={text}" for name, text in named.items())]
    return f"ops.{node.kind.replace('::', '.')}({', '.join(arguments_text)})"


def _attribute(value: Any, constants: Constants) -> str:
    if isinstance(value, Type):
        return type_text(value)
    if isinstance(value, tuple) and any(isinstance(each, Type) for each in value):
        return tuple_text([type_text(each) for each in value])
    return constant_text(value, constants)


# Kinds


def constant(node: Node, operands: Sequence[str], constants: Constants) -> str:
    """Return the value, annotated if the value does not determine its type."""
    if "function" in node.attributes:
        return function_name(node.attributes["function"], constants)
    value, type_ = node.attributes.get("value"), node.output.type
    text = constant_text(value, constants, type_)
    if _is_plain(type_) or text.startswith("CONSTANTS."):
        return text
    return f"annotate({type_text(type_)}, {text})"


def _is_plain(type_: Type) -> bool:
    if isinstance(type_, TupleType):
        return all(map(_is_plain, type_.elements))
    wide = isinstance(type_, OptionalType | UnionType)
    return not (wide or type_ in CODED or type_ in (AnyType, NumberType))


def construct(node: Node, operands: Sequence[str], constants: Constants) -> str:
    """Return a tuple, a list or a dictionary, annotated if its type is wider."""
    type_ = node.output.type
    if isinstance(type_, TupleType):
        if type_.qualname:
            return f"{type_.qualname}({comma_list(operands)})"
        text, parts = tuple_text([*map(without_parentheses, operands)]), type_.elements
    elif isinstance(type_, DictType):
        pairs = zip(operands[::2], operands[1::2], strict=True)
        rows = [": ".join(map(without_parentheses, pair)) for pair in pairs]
        text = f"{{{', '.join(rows)}}}"
        parts = (type_.key, type_.value) * (len(operands) // 2)
    else:
        assert isinstance(type_, ListType), "the checker says so"
        text = f"[{comma_list(operands)}]"
        parts = (type_.element,) * len(operands)
    is_exact = all(
        value.type is part for value, part in zip(node.inputs, parts, strict=True)
    )
    if is_exact and (operands or isinstance(type_, TupleType)):
        return text
    return f"annotate({type_text(type_)}, {text})"


def _index(node: Node, operands: Sequence[str], constants: Constants) -> str:
    return f"{parenthesized(operands[0])}[{node.attributes['index']}]"


def _get(node: Node, operands: Sequence[str], constants: Constants) -> str:
    return attribute_text(operands[0], node.attributes["name"])


def attribute_text(owner: str, name: str) -> str:
    """Return the access of an attribute."""
    if is_name(name):
        return f"{parenthesized(owner)}.{name}"
    return f"getattr({owner}, {name!a})"


def _create(node: Node, operands: Sequence[str], constants: Constants) -> str:
    return f"create({type_text(node.output.type)})"


def _function(node: Node, operands: Sequence[str], constants: Constants) -> str:
    function = called(node)
    if function is None:
        return f"{operands[0]}({comma_list(operands[1:])})"
    arguments = function.schema.arguments
    inputs = _arguments_text(operands[1:], arguments)
    return f"{function_name(function, constants)}({inputs})"


def _arguments_text(operands: Sequence[str], arguments: Sequence[Argument]) -> str:
    """Return the arguments of a call, keyword-only ones by name."""
    parts: list[str] = []
    for text, argument in zip(operands, arguments, strict=False):
        name = f"{argument.name}=" if argument.kwarg_only else ""
        parts.append(f"{name}{without_parentheses(text)}")
    return comma_list([*parts, *operands[len(parts) :]])


def function_name(function: Any, constants: Constants) -> str:
    """Return the full name of a function, or its entry among the constants."""
    name = str(getattr(function, "qualname", ""))
    is_path = all(map(is_name, name.split(".")))
    return name if is_path else constants.name(function)


def _method(node: Node, operands: Sequence[str], constants: Constants) -> str:
    name, owner = node.attributes["name"], node.inputs[0].type
    methods = owner.declaration.methods if isinstance(owner, DeclaredType) else {}
    arguments = methods[name].arguments[1:] if name in methods else ()
    method = attribute_text(operands[0], name)
    return f"{method}({_arguments_text(operands[1:], arguments)})"


def _python(node: Node, operands: Sequence[str], constants: Constants) -> str:
    name = manager(node.attributes.get("object"))
    if name is None:
        return operator(node, operands, constants)
    return f"{name}({comma_list(operands)})"


def _call(name: str) -> Form:
    def form(node: Node, operands: Sequence[str], constants: Constants) -> str:
        return f"{name}({comma_list(operands)})"

    return form


def _typed(name: str) -> Form:
    def form(node: Node, operands: Sequence[str], constants: Constants) -> str:
        return f"{name}({comma_list([type_text(node.output.type), *operands])})"

    return form


def _nowait(node: Node, operands: Sequence[str], constants: Constants) -> str:
    text, type_ = (
        f"awaitable_nowait({without_parentheses(operands[0])})",
        node.output.type,
    )
    if getattr(type_, "element", NoneType_) is node.inputs[0].type:
        return text
    return f"annotate({type_text(type_)}, {text})"


def _isinstance(node: Node, operands: Sequence[str], constants: Constants) -> str:
    types = [type_text(each) for each in node.attributes["types"]]
    types_text = types[0] if len(types) == 1 else tuple_text(types)
    return f"isinstance({without_parentheses(operands[0])}, {types_text})"


def _unpacked(node: Node, operands: Sequence[str], constants: Constants) -> str:
    return operands[0]


# fmt: off
_ROWS: dict[str, Form] = {
    "prim::Constant": constant,
    "prim::TupleConstruct": construct, "prim::ListConstruct": construct,
    "prim::DictConstruct": construct,
    "prim::TupleUnpack": _unpacked, "prim::ListUnpack": _unpacked,
    "prim::TupleIndex": _index,
    "prim::CreateObject": _create, "prim::GetAttr": _get,
    "prim::CallFunction": _function,
    "prim::PythonOp": _python,
    "prim::CallMethod": _method, "prim::CallInterface": _method,
    "prim::forkClosure": _call("fork"), "prim::awaitableClosure": _call("awaitable"),
    "prim::wait": _call("wait"), "prim::awaitable_wait": _call("awaitable_wait"),
    "prim::awaitable_nowait": _nowait,
    "prim::Print": _call("print"), "prim::warn": _call("warnings.warn"),
    "prim::Uninitialized": _typed("uninitialized"),
    "prim::unchecked_cast": _typed("unchecked_cast"),
    "prim::isinstance": _isinstance,
}
# fmt: on
FORMS: Registry[str, Form] = Registry("writers of nodes", _ROWS, order=str)


def register_form(kind: str, form: Form) -> RegistryHandle:
    """Write nodes of a kind by `form`."""
    return FORMS.register(kind, form, stacklevel=2)


def expression(node: Node, operands: Sequence[str], constants: Constants) -> str:
    """Return the node as an expression of its operands."""
    form = FORMS.rows.get(node.kind)
    if form is not None:
        return form(node, operands, constants)
    row = by_name(node.kind)
    if row is not None:
        return primitive(node, operands, row.way)
    return operator(node, operands, constants)
