"""Signatures: the parameters, types and defaults of a definition, as a schema has them.

    Annotations       the types that parameters and variables are given
    read_signature    the arguments of the schema

Rules of annotations (how one is read is in `runtime.script.types.annotations`):
- names are looked up as Python did when the function was defined: among what its own
  annotations mean, what the caller of the compiler sees (`names`), the variables around
  it that it uses, its module, Python; in a union, what its annotations mean is asked
  where none of the others may be meant;
- a parameter without a type is a Tensor; a result or a variable without one has the
  type of its value; the object of a method has the type that is given;
- an assignment is typed by an annotation or by a comment behind it, not by both;
- a comment that says a type and stands where nothing is typed is an error.

Rules of defaults:
- they are the objects that Python has computed; in a text they are constants, and
  tuples and lists of such;
- a default fits the type as a value that is passed: an int is a float, nothing else
  converts; lists are stored as tuples, and each call gets a fresh one.
"""

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import NoneType
from types import UnionType as PythonUnion
from typing import Any, NamedTuple, Union, get_args, get_origin

from everyorder.runtime.errors.script import MalformedProgram
from everyorder.runtime.schema.call_errors import describe_value, shortened
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import NO_DEFAULT, Argument, OperatorName
from everyorder.runtime.schema.types import (
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
from everyorder.runtime.schema.values import MISMATCH, converter, is_tensor
from everyorder.runtime.script.frontend.language import place_of
from everyorder.runtime.script.frontend.scopes import Function
from everyorder.runtime.script.frontend.source import SourceDefinition
from everyorder.runtime.script.types.annotations import (
    DEEPEST,
    AnnotationReader,
    Classes,
    FunctionTypes,
    TypeScope,
)

# What `get_origin` says of both ways to write a union.
_UNIONS = (Union, PythonUnion)
_NO_NAMES: Mapping[str, Any] = {}
_MISPLACED = "Such comments stand behind assignments, and below or behind parameters."


def scope_of(
    function: Any,
    definition: SourceDefinition[Function],
    classes: Classes,
    names: Mapping[str, Any] = _NO_NAMES,
) -> TypeScope:
    """The scope of the annotations of a Python function.

    `classes` gives the type of a class that is not registered, `names` are those of
    the place where the function is compiled.
    """
    function = getattr(function, "__func__", function)
    meanings = [*_meanings(function, definition.tree)]
    sure = {each.name: each.meaning for each in meanings if not each.around}
    known = TypeScope.of(function, classes).within(
        {**names, **closure_of(function), **sure}
    )
    guesses = {
        each.name: each.meaning
        for each in meanings
        if each.around and not _is_known(each, known)
    }
    return known.within(guesses)


def scope_of_class(python: type, classes: Classes) -> TypeScope:
    """The scope of a class: its methods, itself, and its module."""
    around: dict[str, Any] = {}
    for each in vars(python).values():
        method: Any = each.fget if isinstance(each, property) else each
        function = inspect.unwrap(getattr(method, "__func__", method))
        if inspect.isfunction(function):
            around.update(closure_of(function))
    names = getattr(sys.modules.get(python.__module__), "__dict__", {})
    return TypeScope({python.__name__: python}, around, names, classes=classes)


def closure_of(function: Any) -> dict[str, Any]:
    """The variables around a function that it uses and that have a value."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    found = {}
    for name, cell in cells:
        try:
            found[name] = cell.cell_contents
        except ValueError:  # it has none yet
            continue
    return found


class Annotations:
    """The types that are written in a function, or in the body of a class."""

    __slots__ = ("_reader", "definition")

    def __init__(self, definition: SourceDefinition[Any], scope: TypeScope) -> None:
        self.definition = definition
        self._reader = AnnotationReader(scope, definition.source)

    def signature(self) -> FunctionTypes:
        """The types of a function; of parameters without one Tensor, but for `self`.

        Whether the first parameter is the object of a method is not known here: it has
        None if nothing is written.

        Raises:
            AnnotationError: something that is written means no type, or types nothing.
        """
        node = self.definition.tree
        self._check_comments(node)
        written = self._reader.signature(node)
        types = [*written.arguments.items()]
        known = {name: one or TensorType for name, one in types[1:]}
        return FunctionTypes({**dict(types[:1]), **known}, written.returns)

    def assignment(self, node: ast.Assign | ast.AnnAssign) -> Type | None:
        """The type of what an assignment assigns, or None.

        Raises:
            AnnotationError: what is written means no type, or there are two.
        """
        comment = self._reader.assignment(node)
        if not isinstance(node, ast.AnnAssign):
            return comment
        if comment is not None:
            span = self._reader.comments[node.end_lineno or node.lineno]
            hint = "Use the annotation."
            self._reader.fail(span, "this variable is typed twice", hint=hint)
        return self._reader.type(node.annotation)

    def type(self, node: ast.expr) -> Type:
        """The type that an expression means, as in `isinstance(x, list[int])`.

        Raises:
            AnnotationError: it means none.
        """
        return self._reader.type(node)

    def _check_comments(self, node: Function) -> None:
        """Look whether every comment that says a type stands where something is typed.

        Raises as `signature`.
        """
        comments = self._reader.comments
        if not comments:
            return
        typed = {*range(node.lineno, node.body[0].lineno)}
        for each in ast.walk(node):
            if isinstance(each, ast.Assign | ast.AnnAssign):
                typed.add(each.end_lineno or each.lineno)
            elif isinstance(each, Function):
                typed.update(range(each.lineno, each.body[0].lineno))
        # A text has other functions, too, which look for themselves.
        own = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for line, span in comments.items():
            if line in own and line not in typed:
                message = "this comment says a type where nothing is typed"
                self._reader.fail(span, message, hint=_MISPLACED)


class _Meaning(NamedTuple):
    """The meaning of a name in an annotation.

    `around` are the members of the union in which it stands.  There it is a guess: a
    union does not tell the members of its members from its own, and drops doubles.
    """

    name: str
    meaning: Any
    around: tuple[Any, ...]


def _is_known(guess: _Meaning, scope: TypeScope) -> bool:
    """Whether the name has another meaning that the union has members of, too."""
    try:
        found = scope.find(guess.name)
    except LookupError:
        return False
    members = get_args(found) if get_origin(found) in _UNIONS else (found,)
    return all(
        (isinstance(each, type) or get_origin(each) is not None)
        and each in guess.around
        for each in members
    )


def _meanings(function: Any, node: Function) -> Iterator[_Meaning]:
    """The names in the annotations of a function that Python has evaluated."""
    known = function.__annotations__
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    written = [(each.arg, each.annotation) for each in arguments]
    for name, annotation in (*written, ("return", node.returns)):
        if annotation is not None and name in known:
            yield from _names_in(annotation, known[name], ())


def _names_in(
    node: ast.expr, meaning: Any, around: tuple[Any, ...]
) -> Iterator[_Meaning]:
    """The names of an expression, and what they mean if it means `meaning`."""
    if isinstance(meaning, str):
        # It was in quotes, or has not been evaluated.
        return
    if isinstance(node, ast.Name):
        yield _Meaning(node.id, meaning, around)
        return
    parts: list[ast.expr] = []
    generic = ""
    if isinstance(node, ast.Subscript):
        inner, of = node.slice, node.value
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        if isinstance(of, ast.Name | ast.Attribute):
            generic = of.id if isinstance(of, ast.Name) else of.attr
    while isinstance(node, ast.BinOp):
        parts.insert(0, node.right)
        node = node.left
        if not isinstance(node, ast.BinOp):
            parts.insert(0, node)
    origin, meanings = get_origin(meaning), get_args(meaning)
    if origin in _UNIONS:
        around = around or meanings
        if len(parts) == 1 and meanings[-1] is NoneType:
            # It is an Optional.
            meanings = meanings[:-1]
    elif getattr(origin, "__name__", "").lower() != generic.lower():
        # An alias may put its parameters anywhere.
        return
    if origin is not None and len(parts) == len(meanings):
        for part, each in zip(parts, meanings, strict=True):
            yield from _names_in(part, each, around)


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
        MalformedProgram: a default does not fit, or is nothing that a schema has; a
            method has no parameter for its object.
    """
    definition = annotations.definition
    node: Function = definition.tree
    written = annotations.signature()
    every = node.args
    positional = [*every.posonlyargs, *every.args]
    if owner is not None and not positional:
        raise MalformedProgram(
            code="UnfitParameter",
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
                default=defaults.default(each, type),
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

    def default(self, parameter: ast.arg, type: Type) -> Any:  # noqa: A002  # the field's own word
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
            message = f"has {describe_value(value)} as default, which no schema has"
            hint = _DICT_HINT if isinstance(value, dict) else "Use None."
            raise self._fault(parameter, message, hint)
        stored = _stored(value, type)
        if stored is MISMATCH:
            message = (
                f"is of type {type}, and its default {shortened(value)} is "
                f"{describe_value(value)}"
            )
            raise self._fault(parameter, message, _hint(name, value, type))
        return stored

    def _literal(self, name: str) -> Any:
        node = self._nodes[name]
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, RecursionError):
            raise MalformedProgram(
                code="UnfitParameter",
                source=self._source,
                span=self._source.span(node),
                parameter=name,
                message="has a default that is no constant",
                hint="Nothing of a text is run: write the value.",
            ) from None

    def _fault(self, parameter: ast.arg, message: str, hint: str) -> MalformedProgram:
        # A function may have been given other defaults than are written.
        node: ast.AST = self._nodes.get(parameter.arg, parameter)
        return MalformedProgram(
            code="UnfitParameter",
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
    # Code that sets `__defaults__` may give more: the last ones count.
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
    """The hint: a default that fits."""
    for kind, of in _KINDS:
        if type(value) is kind:
            if of is type_:
                return "An `int` is between -2**63 and 2**63 - 1."
            return f"Write `{name}: {of} = {value!r}`, or a default of its type."
    return "Give it a default of its type."
