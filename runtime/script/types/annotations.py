"""Annotations as programs write them: expressions, texts in quotes, and comments.

`TypeScope` resolves the names of an annotation to objects and types; errors point to
the position of the annotation in its source.

Rules:
- names are looked up in the scope of the function (`TypeScope`): its closure, its
  module, builtins; this runs no code of the program, except attribute access on modules
  and classes;
- a quoted annotation is parsed in the same way, and errors point inside of the quotes;
- a function is typed by annotations or by comments, argument by argument; an argument
  that is typed in both ways is an error.

How it works: `AnnotationReader` walks the syntax tree.  A name resolves to an object,
and `runtime.schema.annotation` converts the object to a type.
"""

import ast
import builtins
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from types import ModuleType
from typing import Annotated, Any, NoReturn, get_origin

from everyorder.runtime.errors.base import nearest
from everyorder.runtime.errors.schema import AnnotationError
from everyorder.runtime.errors.source import Source, Span
from everyorder.runtime.schema.annotation import (
    annotated_type,
    generic_type,
    named_type,
    wanted_parameters,
)
from everyorder.runtime.schema.subtyping import union
from everyorder.runtime.schema.types import DICT_KEYS, Type

Function = ast.FunctionDef | ast.AsyncFunctionDef
Place = Callable[[Any], Span]
Classes = Callable[[type, "TypeScope"], Type | None]

# Types are nested no deeper than in schemas; reading them recurses.
DEEPEST = 64
# A comment with a type; the match ends where the type begins.
_COMMENT = re.compile(r"#\s*type:\s*(?!ignore\b)(?=\S)")
# A string literal without escapes: its value is the text between the quotes.
_QUOTED = re.compile(r"('''|\"\"\"|['\"])(.*)\1", re.DOTALL)
# Hints of errors.
_FORMS = "Annotations are names, `A | B`, and subscripts such as list[int]."
_GENERIC = "Such are list, dict, tuple, Optional, Union, and the like."
_ONE_WAY = "Use annotations or a comment."


def _no_class(python: type, scope: "TypeScope") -> None:
    """Return None: the program declares no classes."""


class TypeScope:
    """The meanings of names at a place of a program, and the types of its classes.

    `names` are searched in their order; `classes` returns the type of a class that is
    not registered.
    """

    __slots__ = ("_classes", "_names", "_texts")

    def __init__(self, *names: Mapping[str, Any], classes: Classes = _no_class) -> None:
        self._names = names
        self._classes = classes
        # Texts that are being parsed: a text that refers to itself would never end.
        self._texts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, function: Any, classes: Classes = _no_class) -> "TypeScope":
        """Return the scope in which a Python function was written."""
        closure = {}
        cells = function.__closure__ or ()
        for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
            try:
                closure[name] = cell.cell_contents
            except ValueError:  # the variable is not assigned yet
                continue
        return cls(closure, function.__globals__, classes=classes)

    def within(self, names: Mapping[str, Any]) -> "TypeScope":
        """Return a scope that searches `names` before the names of this scope."""
        return TypeScope(names, *self._names, classes=self._classes)

    def find(self, name: str) -> Any:
        """Return the object that the name refers to.

        Raises:
            LookupError: the name is not defined here.
        """
        for names in (*self._names, vars(builtins)):
            if name in names:
                return names[name]
        named = named_type(name)
        if named is None:
            raise LookupError(name)
        return named

    def near(self, name: str) -> tuple[str, ...]:
        """Return the names of types and modules that resemble an unknown name."""
        candidates = {
            each
            for names in (*self._names, vars(builtins))
            for each, of in names.items()
            if isinstance(of, type | ModuleType) or _parameters(of) != 0
        }
        return nearest(name, sorted({*candidates, "Tensor"}))

    def written(self, text: str) -> Type:
        """Return the type of an annotation in quotes.

        Raises:
            AnnotationError: the text is not a type.
        """
        inner = self.within({})
        inner._texts = self._texts | {text}
        reader = AnnotationReader(inner, Source(text))
        if text in self._texts:
            reader.fail((0, len(text)), f"`{text}` means itself")
        return reader.text((0, len(text)))

    def declared(self, python: type) -> Type | None:
        """Return the type of a class that is not registered, or None."""
        return self._classes(python, self)


@dataclass(frozen=True, slots=True)
class FunctionTypes:
    """The annotated types of a function; None for an argument without annotation."""

    arguments: Mapping[str, Type | None]
    returns: Type | None


class AnnotationReader:
    """The reader of the annotations in one source."""

    __slots__ = ("_comments", "scope", "source")

    def __init__(self, scope: TypeScope, source: Source) -> None:
        self.scope = scope
        self.source = source
        self._comments: dict[int, Span] | None = None

    def type(self, node: ast.expr) -> Type:
        """Return the type that an expression denotes.

        Raises:
            AnnotationError: the expression is not a type.
        """
        return _AnnotationWalk(self, self.source.span).type(node)

    def text(self, span: Span) -> Type:
        """Return the type written in a part of the source; raises as `type`."""
        text = self.source.text[slice(*span)]
        return self._expression(text, span, self._places(span))

    def escaped(self, text: str, span: Span) -> Type:
        """Return the type in an escaped or split text; raises as `type`."""
        return self._expression(text, span, lambda node: span)

    def _expression(self, text: str, span: Span, place: Place) -> Type:
        tree = self._tree(text, span, "eval")
        assert isinstance(tree, ast.Expression)  # by the mode "eval"
        return _AnnotationWalk(self, place).type(tree.body)

    def assignment(self, node: ast.stmt) -> Type | None:
        """Return the type in an assignment's comment, or None; raises as `type`."""
        span = self.comments.get(node.end_lineno or node.lineno)
        return None if span is None else self.text(span)

    def signature(self, node: Function) -> FunctionTypes:
        """Return a function's types by annotations and comments; raises as `type`."""
        every = node.args
        arguments = [*every.posonlyargs, *every.args, *every.kwonlyargs]
        types_by_name = {
            each.arg: self._annotated(each.annotation) for each in arguments
        }
        returns = self._annotated(node.returns)
        for line in range(node.lineno, node.body[0].lineno):
            span = self.comments.get(line)
            if span is None:
                continue
            text = self.source.text[slice(*span)]
            has_argument = any(each.end_lineno == line for each in arguments)
            if text.startswith("(") and ("->" in text or not has_argument):
                types, result = self._whole_signature(span, arguments)
                if result is not None and returns is not None:
                    self.fail(span, "the result is typed twice", hint=_ONE_WAY)
                returns = result if returns is None else returns
            else:
                types = self._one_argument(span, line, arguments)
            for name, one in types.items():
                if types_by_name[name] is not None:
                    self.fail(span, f"`{name}` is typed twice", hint=_ONE_WAY)
                types_by_name[name] = one
        return FunctionTypes(types_by_name, returns)

    @property
    def comments(self) -> Mapping[int, Span]:
        """Return the line of each type comment and the span of its type."""
        if self._comments is None:
            self._comments = dict(_comments(self.source))
        return self._comments

    def fail(
        self, span: Span, message: str, *, hint: str = "", near: tuple[str, ...] = ()
    ) -> NoReturn:
        """Raise an `AnnotationError` at a part of the source."""
        raise AnnotationError(
            message=message, source=self.source, span=span, near=near, hint=hint
        )

    def _annotated(self, node: ast.expr | None) -> Type | None:
        return None if node is None else self.type(node)

    def _tree(self, text: str, span: Span, mode: str) -> ast.AST:
        """Return the syntax tree of a text whose position is `span`."""
        try:
            return ast.parse(text.strip(), mode=mode)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            reason = getattr(error, "msg", None) or "it is nested too deeply"
            return self.fail(span, f"invalid annotation: {reason}", hint=_FORMS)

    def _places(self, span: Span) -> Place:
        """Return a function that maps nodes of a part of the source to spans."""
        text = self.source.text[slice(*span)]
        inner, at = Source(text.strip()), span[0] + len(text) - len(text.lstrip())

        def place(node: Any) -> Span:
            start, end = inner.span(node)
            return start + at, end + at

        return place

    def _whole_signature(
        self, span: Span, arguments: list[ast.arg]
    ) -> tuple[Mapping[str, Type], Type | None]:
        """Return the types of arguments, and that of the result; None without `->`."""
        text = self.source.text[slice(*span)]
        has_result = "->" in text
        whole = text if has_result else f"{text} -> None"
        tree = self._tree(whole, span, "func_type")
        assert isinstance(tree, ast.FunctionType)  # by the mode "func_type"
        walk = _AnnotationWalk(self, self._places(span))
        if [*map(_is_ellipsis, tree.argtypes)] == [True]:
            return {}, walk.type(tree.returns) if has_result else None
        types = [walk.type(each) for each in tree.argtypes]
        names = [each.arg for each in arguments]
        if len(names) == len(types) + 1 and names[0] == "self":
            # The object of a method is not annotated.
            del names[0]
        if len(names) != len(types):
            message = f"the comment has {len(types)} types for {len(names)} arguments"
            self.fail(span, message, hint="Give each one type, or write `(...)`.")
        result = walk.type(tree.returns) if has_result else None
        return dict(zip(names, types, strict=True)), result

    def _one_argument(
        self, span: Span, line: int, arguments: list[ast.arg]
    ) -> Mapping[str, Type]:
        names = [each.arg for each in arguments if each.end_lineno == line]
        if len(names) != 1:
            message = f"this comment is in a line with {len(names)} arguments"
            hint = "Write one argument in a line, or `# type: (A, B) -> C` below all."
            self.fail(span, message, hint=hint)
        return {names[0]: self.text(span)}


class _AnnotationWalk:
    """One walk through a syntax tree that maps its nodes to spans of the source."""

    __slots__ = ("depth", "place", "reader")

    def __init__(self, reader: AnnotationReader, place: Place) -> None:
        self.reader = reader
        self.place = place
        self.depth = 0

    def type(self, node: ast.expr) -> Type:
        """Return the type that an expression denotes."""
        self.depth += 1
        if self.depth > DEEPEST:
            self._fail(node, "this annotation is nested too deeply")
        members = [self._type(each) for each in _alternatives(node)]
        self.depth -= 1
        return members[0] if len(members) == 1 else union(members)

    def _type(self, node: ast.expr) -> Type:
        if isinstance(node, ast.Constant):
            return self._constant(node)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self.type(node)
        return self._meaning(node, self._object(node))

    def _constant(self, node: ast.Constant) -> Type:
        value = node.value
        if value is None:
            return self._meaning(node, None)
        if not isinstance(value, str):
            self._fail(node, f"`{self._text(node)}` is not a type")
        start, end = self.place(node)
        quoted = _QUOTED.fullmatch(self.reader.source.text[start:end])
        if quoted is None or quoted[2] != value:
            # With escapes, or concatenated: the literal is the closest position.
            return self.reader.escaped(value, (start, end))
        return self.reader.text((start + quoted.start(2), start + quoted.end(2)))

    def _meaning(self, node: ast.expr, of: Any) -> Type:
        """Return the type that an object denotes."""
        try:
            type_ = annotated_type(of, self.reader.scope)
        except AnnotationError as error:
            message = f"`{self._text(node)}` means no type: {error.message}"
            return self._fail(node, message, near=error.near, hint=error.hint)
        except RecursionError:
            message = f"`{self._text(node)}` is nested too deeply"
            return self._fail(node, message)
        if type_ is not None:
            return type_
        hint = ""
        if _parameters(of) != 0:
            hint = f"Say what it holds, as in `{self._text(node)}[...]`."
        return self._fail(node, f"`{self._text(node)}` means no type", hint=hint)

    def _object(self, node: ast.expr) -> Any:
        """Return the object that a name, or an attribute of one, refers to."""
        path: list[ast.Attribute] = []
        while isinstance(node, ast.Attribute):
            path.append(node)
            node = node.value
        if not isinstance(node, ast.Name):
            message = f"`{self._text(node)}` is not an annotation"
            return self._fail(node, message, hint=_FORMS)
        try:
            value = self.reader.scope.find(node.id)
        except LookupError:
            near = self.reader.scope.near(node.id)
            return self._fail(node, f"`{node.id}` is not defined here", near=near)
        for each in reversed(path):
            try:
                value = getattr(value, each.attr)
            except Exception:  # user code may raise anything
                near = nearest(each.attr, sorted(dir(value)))
                message = f"`{self._text(each.value)}` has no `{each.attr}`"
                return self._fail(each, message, near=near)
        return value

    def _subscript(self, node: ast.Subscript) -> Type:
        base = self._object(node.value)
        arity = _parameters(base)
        if arity == 0:
            message = f"`{self._text(node.value)}` is not made of other types"
            self._fail(node.value, message, hint=_GENERIC)
        inner = node.slice
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        if base is Annotated:
            parts = parts[:1]
        if any(map(_is_ellipsis, parts)):
            hint = "Write its elements one by one, or take a list."
            self._fail(node, "the length of a tuple is part of its type", hint=hint)
        types = tuple(map(self.type, parts))
        if arity not in (None, len(types)):
            noun = "one type" if arity == 1 else f"{arity} types"
            requirement = f"`{self._text(node.value)}` is made of {noun}"
            self._fail(node, f"{requirement}, this gives {len(types)}")
        type_ = generic_type(get_origin(base) or base, types, self.reader.scope)
        if type_ is not None:
            return type_
        if arity == 2:
            keys = ", ".join(sorted(map(str, DICT_KEYS)))
            message = f"a {types[0]} cannot be the key of a dictionary"
            self._fail(parts[0], message, hint=f"Keys are {keys}.")
        return self._fail(node, f"`{self._text(node)}` means no type")

    def _text(self, node: ast.expr) -> str:
        """Return the source text of the node on one line."""
        return " ".join(self.reader.source.text[slice(*self.place(node))].split())

    def _fail(self, node: ast.expr, message: str, **more: Any) -> NoReturn:
        self.reader.fail(self.place(node), message, **more)


def _alternatives(node: ast.expr) -> list[ast.expr]:
    """Return the members of `A | B | C`, or the node itself."""
    members = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        members.append(node.right)
        node = node.left
    return [node, *reversed(members)]


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _parameters(of: Any) -> int | None:
    """Return the number of types in a subscript of an object; 0 if it takes none."""
    try:
        return wanted_parameters(get_origin(of) or of)
    except Exception:  # user code that fails
        return 0


def _comments(source: Source) -> Iterable[tuple[int, Span]]:
    """Yield the line and the span of the type of each type comment."""
    if _COMMENT.search(source.text) is None:
        return
    starts = [0, *accumulate(len(each) + 1 for each in source.text.split("\n"))]
    try:
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
            if token.type != tokenize.COMMENT:
                continue
            match = _COMMENT.match(token.string)
            if match is not None:
                line, column = token.start
                start = starts[line - 1] + column + match.end()
                text = token.string[match.end() :].partition("#")[0].rstrip()
                yield line - 1 + source.line, (start, start + len(text))
    except (tokenize.TokenError, SyntaxError):
        # A part of a file may end in the middle of a token; earlier comments are valid.
        return
