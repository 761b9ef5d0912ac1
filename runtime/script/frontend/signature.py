"""Signatures: the parameters, types and defaults of a definition, as a schema has them.

    Annotations       the declared types of parameters and variables
    read_signature    the arguments of the schema

Rules of annotations (how one is read is in `runtime.script.types.annotations`):
- names are looked up as Python did when the function was defined: in the evaluated
  annotations, the names visible to the caller of the compiler (`names`), the closure,
  the module, the builtins; within a union, the evaluated annotations are used only if
  no other scope has a matching name;
- a parameter without a type is a Tensor; a result or a variable without one has the
  type of its value; the object of a method has the type of its class;
- an assignment is typed by an annotation or by a comment after it, not by both;
- a type comment at any other place is an error.

Rules of defaults:
- they are the objects that Python has evaluated; in a text they are constants, or
  tuples and lists of constants;
- a default fits the type as a value that is passed: an int is a float, nothing else
  converts; lists are stored as tuples, and each call receives a new list.
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

# The origins that `get_origin` returns for the two spellings of a union.
_UNIONS = (Union, PythonUnion)
_NO_NAMES: Mapping[str, Any] = {}
_MISPLACED = "Such comments follow assignments, or are below or after parameters."


def scope_of(
    function: Any,
    definition: SourceDefinition[Function],
    classes: Classes,
    names: Mapping[str, Any] = _NO_NAMES,
) -> TypeScope:
    """Return the scope of the annotations of a Python function.

    `classes` returns the type of a class that is not registered; `names` are the names
    visible where the function is compiled.
    """
    function = getattr(function, "__func__", function)
    meanings = [*_meanings(function, definition.tree)]
    sure = {each.name: each.meaning for each in meanings if not each.around}
    scope = TypeScope.of(function, classes).within(
        {**names, **closure_of(function), **sure}
    )
    guesses = {
        each.name: each.meaning
        for each in meanings
        if each.around and not _is_known(each, scope)
    }
    return scope.within(guesses)


def scope_of_class(python: type, classes: Classes) -> TypeScope:
    """Return the scope of a class: its methods' closures, itself, and its module."""
    around: dict[str, Any] = {}
    for each in vars(python).values():
        method: Any = each.fget if isinstance(each, property) else each
        function = inspect.unwrap(getattr(method, "__func__", method))
        if inspect.isfunction(function):
            around.update(closure_of(function))
    names = getattr(sys.modules.get(python.__module__), "__dict__", {})
    return TypeScope({python.__name__: python}, around, names, classes=classes)


def closure_of(function: Any) -> dict[str, Any]:
    """Return the assigned closure variables of a function."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    variables = {}
    for name, cell in cells:
        try:
            variables[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return variables


class Annotations:
    """The types that are written in a function, or in the body of a class."""

    __slots__ = ("_reader", "definition")

    def __init__(self, definition: SourceDefinition[Any], scope: TypeScope) -> None:
        self.definition = definition
        self._reader = AnnotationReader(scope, definition.source)

    def signature(self) -> FunctionTypes:
        """Return the types of a function; unannotated parameters are Tensors.

        The first parameter may be the object of a method, so without annotation its
        type is None.

        Raises:
            AnnotationError: an annotation is not a type, or a type comment is
            misplaced.
        """
        node = self.definition.tree
        self._check_comments(node)
        written = self._reader.signature(node)
        types = [*written.arguments.items()]
        others = {name: one or TensorType for name, one in types[1:]}
        return FunctionTypes({**dict(types[:1]), **others}, written.returns)

    def assignment(self, node: ast.Assign | ast.AnnAssign) -> Type | None:
        """Return the declared type of an assignment's target, or None.

        Raises:
            AnnotationError: the annotation is not a type, or there are two.
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
        """Return the type that an expression denotes, as in `isinstance(x, list[int])`.

        Raises:
            AnnotationError: the expression is not a type.
        """
        return self._reader.type(node)

    def _check_comments(self, node: Function) -> None:
        """Refuse type comments at places where nothing is typed.

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
        # A text contains other functions, too, which check their own comments.
        own = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for line, span in comments.items():
            if line in own and line not in typed:
                message = "this comment says a type where nothing is typed"
                self._reader.fail(span, message, hint=_MISPLACED)


class _Meaning(NamedTuple):
    """The meaning of a name in an annotation.

    `around` are the members of the enclosing union. In a union the meaning is a guess:
    Python flattens nested unions and drops duplicates.
    """

    name: str
    meaning: Any
    around: tuple[Any, ...]


def _is_known(guess: _Meaning, scope: TypeScope) -> bool:
    """Return True if the scope has another meaning for the name that fits the union."""
    try:
        meaning = scope.find(guess.name)
    except LookupError:
        return False
    members = get_args(meaning) if get_origin(meaning) in _UNIONS else (meaning,)
    return all(
        (isinstance(each, type) or get_origin(each) is not None)
        and each in guess.around
        for each in members
    )


def _meanings(function: Any, node: Function) -> Iterator[_Meaning]:
    """Yield the names in the annotations of a function that Python has evaluated."""
    evaluated = function.__annotations__
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    written = [(each.arg, each.annotation) for each in arguments]
    for name, annotation in (*written, ("return", node.returns)):
        if annotation is not None and name in evaluated:
            yield from _names_in(annotation, evaluated[name], ())


def _names_in(
    node: ast.expr, meaning: Any, around: tuple[Any, ...]
) -> Iterator[_Meaning]:
    """Yield the names of an expression with their meanings if it means `meaning`."""
    if isinstance(meaning, str):
        # The annotation was in quotes, or is not evaluated.
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
            # The expression is an Optional.
            meanings = meanings[:-1]
    elif getattr(origin, "__name__", "").lower() != generic.lower():
        # An alias may reorder its parameters.
        return
    if origin is not None and len(parts) == len(meanings):
        for part, each in zip(parts, meanings, strict=True):
            yield from _names_in(part, each, around)


# The hint for a default that no schema can hold.
_DICT_HINT = "Use None, and make the dictionary inside."


@dataclass(frozen=True, slots=True)
class FunctionSignature:
    """The arguments of a function, and its result if it is annotated."""

    name: str
    arguments: tuple[Argument, ...]
    returns: Type | None

    def typed(self, types: Mapping[str, Type]) -> "FunctionSignature":
        """Return the signature with other types of some parameters, by their names."""
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
        """Return the schema; `returns` is the result type if none is annotated.

        An assertion fails if neither gives the type of the result.
        """
        result = self.returns or returns
        assert result is not None, "the type of a result is annotated, or inferred"
        return Schema(OperatorName(self.name), self.arguments, (Argument("", result),))


def read_signature(
    annotations: Annotations,
    function: Any = None,
    owner: Type | None = None,
) -> FunctionSignature:
    """Return the signature of the definition that has the annotations.

    `function` is the Python function, if there is one; `owner` is the type of the
    object if it is a method.

    Raises: AnnotationError: an annotation is not a type. MalformedProgram: a default
    does not fit its type, or no schema can hold it; a method is missing the parameter
    for its object.
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
        assert type is not None, "one of the three gives a type"
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
        """Return the default of a parameter as a schema stores it."""
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
                message="has a default that is not a constant",
                hint="Nothing of a text is run: write the value.",
            ) from None

    def _fault(self, parameter: ast.arg, message: str, hint: str) -> MalformedProgram:
        # The defaults of a function may have been replaced after its definition.
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
    """Return the defaults of a Python function by the names of its parameters."""
    code = function.__code__
    values = function.__defaults__ or ()
    positional = code.co_varnames[: code.co_argcount]
    # Code that sets `__defaults__` may provide too many: the last ones count.
    last = dict(zip(reversed(positional), reversed(values), strict=False))
    return {**last, **(function.__kwdefaults__ or {})}


def _has_form(value: Any, depth: int = 0) -> bool:
    """Return True if a schema can hold a default; a recursive value is not possible."""
    if depth > DEEPEST:
        return False
    if isinstance(value, list | tuple):
        return all(_has_form(each, depth + 1) for each in value)
    return not isinstance(value, dict | set | frozenset | bytes)


def _stored(value: Any, type: Type) -> Any:  # noqa: A002  # the field's own word
    """Return a default in the form of the schema, or `MISMATCH`."""
    if isinstance(type, OptionalType):
        return None if value is None else _stored(value, type.element)
    if isinstance(type, UnionType):
        stored = [_stored(value, each) for each in type.members]
        fitting = [each for each in stored if each is not MISMATCH]
        # A member of the value's class is preferred, as it is not converted.
        fitting.sort(key=lambda each: each.__class__ is not value.__class__)
        return fitting[0] if fitting else MISMATCH
    if isinstance(type, ListType):
        fits = isinstance(value, list | tuple)
        return _all_stored(value, (type.element,) * len(value)) if fits else MISMATCH
    if isinstance(type, TupleType) and not type.qualname:
        fits = isinstance(value, tuple) and len(value) == len(type.elements)
        return _all_stored(value, type.elements) if fits else MISMATCH
    if type in _ALONE or value is None or isinstance(value, bool) or is_tensor(value):
        # A number is not a bool, nor a bool a number; None is not an undefined tensor.
        accepts = _ALONE.get(type, lambda each: type is AnyType)
        return value if accepts(value) else MISMATCH
    return converter(type)(value)


# Types without conversions from other types.
_ALONE: dict[Type, Callable[[Any], bool]] = {
    TensorType: is_tensor,
    BoolType: lambda value: isinstance(value, bool),
    NoneType_: lambda value: value is None,
}


def _all_stored(values: Any, types: tuple[Type, ...]) -> Any:
    stored = tuple(map(_stored, values, types))
    return MISMATCH if any(each is MISMATCH for each in stored) else stored


# Classes of constants that suggest the intended type of a parameter.
_KINDS = ((bool, BoolType), (int, IntType), (float, FloatType), (str, StrType))


def _hint(name: str, value: Any, type_: Type) -> str:
    """Return the hint with a default that fits."""
    for kind, of in _KINDS:
        if type(value) is kind:
            if of is type_:
                return "An `int` is between -2**63 and 2**63 - 1."
            return f"Write `{name}: {of} = {value!r}`, or a default of its type."
    return "Give it a default of its type."
