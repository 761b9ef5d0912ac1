"""Signatures of functions: parameters, types and defaults, as a schema has them.

True only here: how the parameters of a definition become arguments of a schema, and
which defaults they may have.

Rules:
- parameters have their types from annotations and comments, else they are Tensors; the
  object of a method has the type that is given;
- defaults are the objects that Python has computed; in a text they are constants, and
  tuples and lists of such;
- a default fits the type as a value that is passed: an int is a float, nothing else
  converts; lists are stored as tuples, and each call gets a fresh one.
"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.errors.script import UnfitParameter
from runtime.schema.argument import NO_DEFAULT, Argument
from runtime.schema.excerpt import described, shortened
from runtime.schema.names import OperatorName
from runtime.schema.numbers import MISMATCH
from runtime.schema.schema import Schema
from runtime.schema.types import (
    AnyType,
    BoolType,
    FloatType,
    IntType,
    ListType,
    NoneType_,
    OptionalType,
    StrType,
    TensorType,
    TupleType,
    Type,
    UnionType,
)
from runtime.schema.values import converter, is_tensor
from runtime.schema.written import DEEPEST
from runtime.script.frontend.annotations import Annotations
from runtime.script.frontend.language import place_of
from runtime.script.frontend.scopes import Function

# What to do about a default that no schema has.
_DICT_HINT = "Use None, and make the dictionary inside."


@dataclass(frozen=True, slots=True)
class FunctionSignature:
    """The arguments of a function, and its result if that is written."""

    name: str
    arguments: tuple[Argument, ...]
    returns: Type | None

    def typed(self, types: Mapping[str, Type]) -> "FunctionSignature":
        """The same with other types of some parameters, by their names."""
        arguments = [
            Argument(
                each.name,
                types.get(each.name, each.type),
                default=each.default if each.has_default else NO_DEFAULT,
                kwarg_only=each.kwarg_only,
            )
            for each in self.arguments
        ]
        return FunctionSignature(self.name, tuple(arguments), self.returns)

    def schema(self, returns: Type | None = None) -> Schema:
        """The schema of the function, which gives `returns` if nothing is written.

        An assertion fails if the type of the result is not known from either.
        """
        result = self.returns or returns
        assert result is not None, "the result of a function is written, or inferred"
        return Schema(OperatorName(self.name), self.arguments, (Argument("", result),))


def read_signature(
    annotations: Annotations,
    function: Any = None,
    owner: Type | None = None,
) -> FunctionSignature:
    """The signature of the definition that has the annotations.

    `function` is the Python function, if there is one; `owner` the type of the object
    whose method it is.

    Raises:
        AnnotationError: an annotation means no type.
        UnfitParameter: a default does not fit, or is nothing that a schema has; a
            method has no parameter for its object.
    """
    definition = annotations.definition
    node: Function = definition.tree
    written = annotations.signature()
    every = node.args
    positional = [*every.posonlyargs, *every.args]
    if owner is not None and not positional:
        raise UnfitParameter(
            source=definition.source,
            span=place_of(node, definition.source),
            parameter="self",
            message="is missing, which the object of a method is passed as",
            hint=f"Write `def {node.name}(self)`.",
        )
    defaults = _Defaults(annotations, function)
    arguments = []
    for index, each in enumerate((*positional, *every.kwonlyargs)):
        type = written.arguments[each.arg]  # noqa: A001  # the field's own word
        if type is None:
            type = owner if owner is not None and index == 0 else TensorType  # noqa: A001  # as above
        assert type is not None, "one of three has said it"
        arguments.append(
            Argument(
                each.arg,
                type,
                default=defaults.of(each, type),
                kwarg_only=index >= len(positional),
            )
        )
    return FunctionSignature(node.name, tuple(arguments), written.returns)


class _Defaults:
    """The defaults of one function, by parameter."""

    __slots__ = ("_nodes", "_source", "_values")

    def __init__(self, annotations: Annotations, function: Any) -> None:
        node: Function = annotations.definition.tree
        self._source = annotations.definition.source
        positional = [*node.args.posonlyargs, *node.args.args]
        count = len(node.args.defaults)
        last = [each.arg for each in positional[len(positional) - count :]]
        self._nodes = dict(zip(last, node.args.defaults, strict=True))
        self._values: Mapping[str, Any] | None = None
        if function is not None:
            function = getattr(function, "__func__", function)
            self._values = _evaluated(function)

    def of(self, parameter: ast.arg, type: Type) -> Any:  # noqa: A002  # the field's own word
        """The default of a parameter as a schema stores it."""
        name = parameter.arg
        if self._values is not None:
            if name not in self._values:
                return NO_DEFAULT
            value = self._values[name]
        elif name in self._nodes:
            value = self._literal(name)
        else:
            return NO_DEFAULT
        if not _has_form(value):
            message = f"has {described(value)} as default, which no schema has"
            hint = _DICT_HINT if isinstance(value, dict) else "Use None."
            raise self._fault(parameter, message, hint)
        stored = _stored(value, type)
        if stored is MISMATCH:
            message = (
                f"is of type {type}, and its default {shortened(value)} is "
                f"{described(value)}"
            )
            raise self._fault(parameter, message, _hint(name, value, type))
        return stored

    def _literal(self, name: str) -> Any:
        node = self._nodes[name]
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, RecursionError):
            raise UnfitParameter(
                source=self._source,
                span=self._source.span(node),
                parameter=name,
                message="has a default that is no constant",
                hint="Nothing of a text is run: write the value.",
            ) from None

    def _fault(self, parameter: ast.arg, message: str, hint: str) -> UnfitParameter:
        # A function may have been given other defaults than are written.
        node: ast.AST = self._nodes.get(parameter.arg, parameter)
        return UnfitParameter(
            source=self._source,
            span=place_of(node, self._source),
            parameter=parameter.arg,
            message=message,
            hint=hint,
        )


def _evaluated(function: Any) -> Mapping[str, Any]:
    """The defaults of a Python function by the names of its parameters."""
    code = function.__code__
    values = function.__defaults__ or ()
    positional = code.co_varnames[: code.co_argcount]
    # Whoever sets `__defaults__` may give more: the last ones count.
    last = dict(zip(reversed(positional), reversed(values), strict=False))
    return {**last, **(function.__kwdefaults__ or {})}


def _has_form(value: Any, depth: int = 0) -> bool:
    """Whether a schema has a form for a default; one without an end has none."""
    if depth > DEEPEST:
        return False
    if isinstance(value, list | tuple):
        return all(_has_form(each, depth + 1) for each in value)
    return not isinstance(value, dict | set | frozenset | bytes)


def _stored(value: Any, type: Type) -> Any:  # noqa: A002  # the field's own word
    """A default in the form of the schema, or `MISMATCH`."""
    if isinstance(type, OptionalType):
        return None if value is None else _stored(value, type.element)
    if isinstance(type, UnionType):
        stored = [_stored(value, each) for each in type.members]
        fitting = [each for each in stored if each is not MISMATCH]
        # What fits as it is is not converted.
        fitting.sort(key=lambda each: each.__class__ is not value.__class__)
        return fitting[0] if fitting else MISMATCH
    if isinstance(type, ListType):
        fits = isinstance(value, list | tuple)
        return _all_stored(value, (type.element,) * len(value)) if fits else MISMATCH
    if isinstance(type, TupleType) and not type.qualname:
        fits = isinstance(value, tuple) and len(value) == len(type.elements)
        return _all_stored(value, type.elements) if fits else MISMATCH
    if type in _ALONE or value is None or isinstance(value, bool) or is_tensor(value):
        # A number is no bool, nor is a bool a number; None is no undefined tensor.
        alone = _ALONE.get(type, lambda each: type is AnyType)
        return value if alone(value) else MISMATCH
    return converter(type)(value)


# Types that nothing else converts to.
_ALONE: dict[Type, Callable[[Any], bool]] = {
    TensorType: is_tensor,
    BoolType: lambda value: isinstance(value, bool),
    NoneType_: lambda value: value is None,
}


def _all_stored(values: Any, types: tuple[Type, ...]) -> Any:
    stored = tuple(map(_stored, values, types))
    return MISMATCH if any(each is MISMATCH for each in stored) else stored


# Constants by whose types a parameter may be meant.
_KINDS = ((bool, BoolType), (int, IntType), (float, FloatType), (str, StrType))


def _hint(name: str, value: Any, type_: Type) -> str:
    """What to write so that the default fits."""
    for kind, of in _KINDS:
        if type(value) is kind:
            if of is type_:
                return "An `int` is between -2**63 and 2**63 - 1."
            return f"Write `{name}: {of} = {value!r}`, or a default of its type."
    return "Give it a default of its type."
