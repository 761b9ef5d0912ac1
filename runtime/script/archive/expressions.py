"""Expressions: one row for each kind of node that is one expression of the text.

True only here: how a node is written when its operands are.

    FORMS           kind -> function of a node, its operands as texts, and the constants
    register_form   how plug-ins add a kind of their own

Rules:
- every operand of a node is in its text, also of a kind that nobody has described:
  `ops.namespace.name(operand, ..., attribute=...)`;
- an expression is closed: it can stand anywhere without parentheses around it, which
  is why an operator of Python comes with its own (`Group`);
- an argument that is what the schema has as default anyway is not written if it stands
  at the end, or by its name;
- primitives are written as programs write them: `a + b`, `words.append(word)`.
"""

import ast
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from runtime.schema.argument import Argument
from runtime.schema.declaration import DeclaredType
from runtime.schema.default import default_identity
from runtime.schema.types import (
    CODED,
    AnyType,
    DictType,
    ListType,
    NoneType_,
    NumberType,
    OptionalType,
    TupleType,
    Type,
    UnionType,
)
from runtime.script.archive.spelling import (
    Constants,
    constant_text,
    is_name,
    manager,
    tuple_text,
    type_text,
)
from runtime.script.ir import Graph, Node, row_of
from runtime.script.ir.type_rules import called
from runtime.script.primitives.row import Way
from runtime.script.primitives.table import by_name

Form = Callable[[Node, Sequence[str], Constants], str]
_PLACE = re.compile(r"\{([0-9]+)\}")


class Group(str):
    """An expression in parentheses, which may go where it stands alone."""

    __slots__ = ()

    @property
    def bare(self) -> str:
        """Without the parentheses."""
        return self[1:-1]


def bare(text: str) -> str:
    """The expression where no operator is beside it."""
    return text.bare if isinstance(text, Group) else text


def joined(texts: Sequence[str]) -> str:
    """Expressions with commas between them."""
    return ", ".join(map(bare, texts))


class Written(NamedTuple):
    """How a primitive is written.

    `order` has the operands in the order in which Python evaluates them; a `statement`
    gives no value.
    """

    way: Way
    order: tuple[int, ...]
    statement: bool


def written(node: Node) -> Written | None:
    """How the node is written as a primitive; None if it is none."""
    row = by_name(node.kind)
    if row is None:
        return None
    count = len(node.inputs)
    if row.way.kind in ("method", "function", "attribute"):
        return Written(row.way, tuple(range(count)), False)
    pattern = row.way.pattern
    try:
        ast.parse(pattern.format(*(f"a{at}" for at in range(count))), mode="eval")
        is_statement = False
    except SyntaxError:
        is_statement = True
    order = tuple(int(each) for each in _PLACE.findall(pattern))
    return Written(row.way, order, is_statement)


def closed(text: str) -> str:
    """The operand so that a dot, or a bracket, can stand behind it."""
    return f"({text})" if text[0] in "-.0123456789" else text


def primitive(node: Node, operands: Sequence[str], way: Way) -> str:
    """A primitive as programs write it."""
    texts = [closed(each) for each in operands]
    if way.kind in ("method", "function"):
        inner = [*map(bare, operands)]
        shown = [texts[0], *inner[1:]] if way.kind == "method" else inner
        row = row_of(node.kind)
        arguments = () if row is None or row.schema is None else row.schema.arguments
        positional, named = arranged(node, shown, arguments)
        return way.expression(positional, named)
    if way.kind == "attribute":
        return way.expression(texts)
    if way.pattern.startswith("{0}[") and way.pattern.endswith("]"):
        return way.expression([texts[0], *map(bare, operands[1:])])
    signed = [f"({each})" if each[0] == "-" else each for each in operands]
    return Group(f"({way.expression(signed)})")


def arranged(
    node: Node, operands: Sequence[str], arguments: Sequence[Argument]
) -> tuple[list[str], dict[str, str]]:
    """The operands that stand by their places, and those by names."""
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
    """`ops.namespace.name(...)`: an operator, or what nobody has described."""
    row = row_of(node.kind)
    schema = None if row is None else row.schema
    arguments = () if schema is None else schema.arguments
    positional, named = arranged(node, [*map(bare, operands)], arguments)
    for name, value in node.attributes.items():
        if not isinstance(value, Graph):
            named[name] = _attribute(value, constants)
    given = [*positional, *(f"{name}={text}" for name, text in named.items())]
    return f"ops.{node.kind.replace('::', '.')}({', '.join(given)})"


def _attribute(value: Any, constants: Constants) -> str:
    if isinstance(value, Type):
        return type_text(value)
    if isinstance(value, tuple) and any(isinstance(each, Type) for each in value):
        return tuple_text([type_text(each) for each in value])
    return constant_text(value, constants)


# Kinds


def constant(node: Node, operands: Sequence[str], constants: Constants) -> str:
    """The value; its type too, where that does not follow from the value."""
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
    """A tuple, a list or a dictionary, with its type where that is wider."""
    type_ = node.output.type
    if isinstance(type_, TupleType):
        if type_.qualname:
            return f"{type_.qualname}({joined(operands)})"
        text, parts = tuple_text([*map(bare, operands)]), type_.elements
    elif isinstance(type_, DictType):
        pairs = zip(operands[::2], operands[1::2], strict=True)
        text = f"{{{', '.join(f'{bare(key)}: {bare(value)}' for key, value in pairs)}}}"
        parts = (type_.key, type_.value) * (len(operands) // 2)
    else:
        assert isinstance(type_, ListType), "the checker says so"
        text = f"[{joined(operands)}]"
        parts = (type_.element,) * len(operands)
    is_exact = all(
        value.type is part for value, part in zip(node.inputs, parts, strict=True)
    )
    if is_exact and (operands or isinstance(type_, TupleType)):
        return text
    return f"annotate({type_text(type_)}, {text})"


def _index(node: Node, operands: Sequence[str], constants: Constants) -> str:
    return f"{closed(operands[0])}[{node.attributes['index']}]"


def _get(node: Node, operands: Sequence[str], constants: Constants) -> str:
    return attribute_text(operands[0], node.attributes["name"])


def attribute_text(owner: str, name: str) -> str:
    """An attribute that is read."""
    if is_name(name):
        return f"{closed(owner)}.{name}"
    return f"getattr({owner}, {name!a})"


def _create(node: Node, operands: Sequence[str], constants: Constants) -> str:
    return f"create({type_text(node.output.type)})"


def _function(node: Node, operands: Sequence[str], constants: Constants) -> str:
    function = called(node)
    if function is None:
        return f"{operands[0]}({joined(operands[1:])})"
    arguments = function.schema.arguments
    return f"{function_name(function, constants)}({_given(operands[1:], arguments)})"


def _given(operands: Sequence[str], arguments: Sequence[Argument]) -> str:
    """The arguments of a call, those by their names that have to be."""
    parts: list[str] = []
    for text, argument in zip(operands, arguments, strict=False):
        name = f"{argument.name}=" if argument.kwarg_only else ""
        parts.append(f"{name}{bare(text)}")
    return joined([*parts, *operands[len(parts) :]])


def function_name(function: Any, constants: Constants) -> str:
    """The full name of a function, or its place among the constants."""
    name = str(getattr(function, "qualname", ""))
    is_path = all(map(is_name, name.split(".")))
    return name if is_path else constants.name(function)


def _method(node: Node, operands: Sequence[str], constants: Constants) -> str:
    name, owner = node.attributes["name"], node.inputs[0].type
    known = owner.declaration.methods if isinstance(owner, DeclaredType) else {}
    arguments = known[name].arguments[1:] if name in known else ()
    method = attribute_text(operands[0], name)
    return f"{method}({_given(operands[1:], arguments)})"


def _python(node: Node, operands: Sequence[str], constants: Constants) -> str:
    name = manager(node.attributes.get("object"))
    if name is None:
        return operator(node, operands, constants)
    return f"{name}({joined(operands)})"


def _call(name: str) -> Form:
    def form(node: Node, operands: Sequence[str], constants: Constants) -> str:
        return f"{name}({joined(operands)})"

    return form


def _typed(name: str) -> Form:
    def form(node: Node, operands: Sequence[str], constants: Constants) -> str:
        return f"{name}({joined([type_text(node.output.type), *operands])})"

    return form


def _nowait(node: Node, operands: Sequence[str], constants: Constants) -> str:
    text, type_ = f"awaitable_nowait({bare(operands[0])})", node.output.type
    if getattr(type_, "element", NoneType_) is node.inputs[0].type:
        return text
    return f"annotate({type_text(type_)}, {text})"


def _isinstance(node: Node, operands: Sequence[str], constants: Constants) -> str:
    types = [type_text(each) for each in node.attributes["types"]]
    shown = types[0] if len(types) == 1 else tuple_text(types)
    return f"isinstance({bare(operands[0])}, {shown})"


def _unpacked(node: Node, operands: Sequence[str], constants: Constants) -> str:
    return operands[0]


# fmt: off
FORMS: dict[str, Form] = {
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


def register_form(kind: str, form: Form) -> Callable[[], None]:
    """Let nodes of a kind be written by `form`; what comes back takes it out again."""
    assert kind not in FORMS, f"{kind} is described already"
    FORMS[kind] = form

    def remove() -> None:
        if FORMS.get(kind) is form:
            del FORMS[kind]

    return remove


def expression(node: Node, operands: Sequence[str], constants: Constants) -> str:
    """The node as an expression of its operands."""
    form = FORMS.get(node.kind)
    if form is not None:
        return form(node, operands, constants)
    row = by_name(node.kind)
    if row is not None:
        return primitive(node, operands, row.way)
    return operator(node, operands, constants)
