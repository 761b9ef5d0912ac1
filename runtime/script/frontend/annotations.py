"""Annotations of a definition: the types that its parameters and variables are given.

True only here: whose names the annotations of a function may use, and which comments
of it say a type.  How an annotation is read is in `runtime.schema.written`.

Rules:
- names are looked up as Python did when the function was defined: among what its own
  annotations mean, what the caller of the compiler sees (`names`), the variables around
  it that it uses, its module, Python; in a union, what its annotations mean is asked
  where none of the others may be meant;
- a parameter without a type is a Tensor; a result or a variable without one has the
  type of its value;
- an assignment is typed by an annotation or by a comment behind it, not by both;
- a comment that says a type and stands where nothing is typed is an error.
"""

import ast
from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

from runtime.schema.types import TensorType, Type
from runtime.schema.written import Classes, Reader, Scope, Signature
from runtime.script.frontend.scopes import Function
from runtime.script.frontend.source import Definition

# What `get_origin` says of both ways to write a union.
_UNIONS = (Union, UnionType)
_NO_NAMES: Mapping[str, Any] = {}
_MISPLACED = "Such comments stand behind assignments, and below or behind parameters."


def scope_of(
    function: Any,
    definition: Definition[Function],
    classes: Classes,
    names: Mapping[str, Any] = _NO_NAMES,
) -> Scope:
    """The scope of the annotations of a Python function.

    `classes` gives the type of a class that nobody has registered, `names` are those of
    the place where the function is compiled.
    """
    function = getattr(function, "__func__", function)
    meanings = [*_meanings(function, definition.tree)]
    sure = {each.name: each.meaning for each in meanings if not each.around}
    known = Scope.of(function, classes).within({**names, **_own(function), **sure})
    guesses = {
        each.name: each.meaning
        for each in meanings
        if each.around and not _is_known(each, known)
    }
    return known.within(guesses)


class Annotations:
    """The types that are written in a function, or in the body of a class."""

    __slots__ = ("_reader", "definition")

    def __init__(self, definition: Definition[Any], scope: Scope) -> None:
        self.definition = definition
        self._reader = Reader(scope, definition.source)

    def signature(self) -> Signature:
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
        return Signature({**dict(types[:1]), **known}, written.returns)

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


def _own(function: Any) -> dict[str, Any]:
    """The variables around a function that it uses and that have a value."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    found = {}
    for name, cell in cells:
        try:
            found[name] = cell.cell_contents
        except ValueError:  # it has none yet
            continue
    return found


class _Meaning(NamedTuple):
    """What a name of an annotation means.

    `around` are the members of the union in which it stands.  There it is a guess: a
    union does not tell the members of its members from its own, and drops doubles.
    """

    name: str
    meaning: Any
    around: tuple[Any, ...]


def _is_known(guess: _Meaning, scope: Scope) -> bool:
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
