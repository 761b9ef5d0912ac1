"""Annotations as programs write them: expressions, texts in quotes, and comments.

How the words of an annotation find the objects and types that they mean, and where it
stands if they mean none.

Rules:
- names are looked up where the function was written (`TypeScope`): its own variables,
  its
  module, Python; no code of the program runs for it, but for attributes of modules and
  classes;
- what is in quotes is read in the same way, and marked inside of the quotes;
- a function is typed by annotations or by comments, argument for argument; one that is
  typed in both ways is an error.

How it works: `AnnotationReader` walks the syntax tree.  A name gives an object, and
what objects mean is the business of `runtime.schema.annotation`.
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
# A comment that says a type, and where the type begins.
_COMMENT = re.compile(r"#\s*type:\s*(?!ignore\b)(?=\S)")
# A text that is exactly what stands between its quotes.
_QUOTED = re.compile(r"('''|\"\"\"|['\"])(.*)\1", re.DOTALL)
# What to write instead.
_FORMS = "Annotations are names, `A | B`, and subscripts such as list[int]."
_GENERIC = "Such are list, dict, tuple, Optional, Union, and the like."
_ONE_WAY = "Use annotations or a comment."


def _no_class(python: type, scope: "TypeScope") -> None:
    """The classes of a program that has none."""


class TypeScope:
    """What names mean at a place of a program, and which types its classes are.

    `names` are looked through in their order; `classes` gives the type of a class that
    nobody has registered.
    """

    __slots__ = ("_classes", "_names", "_texts")

    def __init__(self, *names: Mapping[str, Any], classes: Classes = _no_class) -> None:
        self._names = names
        self._classes = classes
        # What is being read: a text that is met again inside of itself has no end.
        self._texts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, function: Any, classes: Classes = _no_class) -> "TypeScope":
        """The scope in which a Python function was written."""
        closure = {}
        cells = function.__closure__ or ()
        for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
            try:
                closure[name] = cell.cell_contents
            except ValueError:  # it has no value yet
                continue
        return cls(closure, function.__globals__, classes=classes)

    def within(self, names: Mapping[str, Any]) -> "TypeScope":
        """A scope in which some names come before those of this one."""
        return TypeScope(names, *self._names, classes=self._classes)

    def find(self, name: str) -> Any:
        """What the name means.

        Raises:
            LookupError: it means nothing here.
        """
        for names in (*self._names, vars(builtins)):
            if name in names:
                return names[name]
        known = named_type(name)
        if known is None:
            raise LookupError(name)
        return known

    def near(self, name: str) -> tuple[str, ...]:
        """The names of classes, modules and the like, close to one that is unknown."""
        known = {
            each
            for names in (*self._names, vars(builtins))
            for each, of in names.items()
            if isinstance(of, type | ModuleType) or _parameters(of) != 0
        }
        return nearest(name, sorted({*known, "Tensor"}))

    def written(self, text: str) -> Type:
        """The type of an annotation in quotes.

        Raises:
            AnnotationError: it means none.
        """
        inner = self.within({})
        inner._texts = self._texts | {text}
        reader = AnnotationReader(inner, Source(text))
        if text in self._texts:
            reader.fail((0, len(text)), f"`{text}` means itself")
        return reader.text((0, len(text)))

    def declared(self, python: type) -> Type | None:
        """The type of a class that nobody has registered, or None."""
        return self._classes(python, self)


@dataclass(frozen=True, slots=True)
class FunctionTypes:
    """The types that a function is written with; None where nothing is said."""

    arguments: Mapping[str, Type | None]
    returns: Type | None


class AnnotationReader:
    """Reads the annotations in one source."""

    __slots__ = ("_comments", "scope", "source")

    def __init__(self, scope: TypeScope, source: Source) -> None:
        self.scope = scope
        self.source = source
        self._comments: dict[int, Span] | None = None

    def type(self, node: ast.expr) -> Type:
        """The type that an expression means.

        Raises:
            AnnotationError: it means none.
        """
        return _AnnotationWalk(self, self.source.span).type(node)

    def text(self, span: Span) -> Type:
        """The type that is written in a part of the source; raises as `type`."""
        text = self.source.text[slice(*span)]
        return self._expression(text, span, self._places(span))

    def escaped(self, text: str, span: Span) -> Type:
        """The type in a text that the source has in other words; raises as `type`."""
        return self._expression(text, span, lambda node: span)

    def _expression(self, text: str, span: Span, place: Place) -> Type:
        tree = self._tree(text, span, "eval")
        assert isinstance(tree, ast.Expression)  # that is what the mode gives
        return _AnnotationWalk(self, place).type(tree.body)

    def assignment(self, node: ast.stmt) -> Type | None:
        """The type in the comment behind an assignment, or None; raises as `type`."""
        span = self.comments.get(node.end_lineno or node.lineno)
        return None if span is None else self.text(span)

    def signature(self, node: Function) -> FunctionTypes:
        """The types of a function by its annotations and comments; raises as `type`."""
        every = node.args
        arguments = [*every.posonlyargs, *every.args, *every.kwonlyargs]
        known = {each.arg: self._annotated(each.annotation) for each in arguments}
        returns = self._annotated(node.returns)
        for line in range(node.lineno, node.body[0].lineno):
            span = self.comments.get(line)
            if span is None:
                continue
            text = self.source.text[slice(*span)]
            if text.startswith("(") and "->" in text:
                if returns is not None:
                    self.fail(span, "the result is typed twice", hint=_ONE_WAY)
                types, returns = self._whole_signature(span, arguments)
            else:
                types = self._one_argument(span, line, arguments)
            for name, one in types.items():
                if known[name] is not None:
                    self.fail(span, f"`{name}` is typed twice", hint=_ONE_WAY)
                known[name] = one
        return FunctionTypes(known, returns)

    @property
    def comments(self) -> Mapping[int, Span]:
        """The line of each comment that says a type, and where the type stands."""
        if self._comments is None:
            self._comments = dict(_comments(self.source))
        return self._comments

    def fail(
        self, span: Span, message: str, *, hint: str = "", near: tuple[str, ...] = ()
    ) -> NoReturn:
        """Raise that something is wrong with a part of the source."""
        raise AnnotationError(
            message=message, source=self.source, span=span, near=near, hint=hint
        )

    def _annotated(self, node: ast.expr | None) -> Type | None:
        return None if node is None else self.type(node)

    def _tree(self, text: str, span: Span, mode: str) -> ast.AST:
        """The tree of a text, which stands at `span`."""
        try:
            return ast.parse(text.strip(), mode=mode)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            reason = getattr(error, "msg", None) or "it is nested too deeply"
            return self.fail(span, f"this is no annotation: {reason}", hint=_FORMS)

    def _places(self, span: Span) -> Place:
        """The places of the nodes of the tree that was made of a part of the source."""
        text = self.source.text[slice(*span)]
        inner, at = Source(text.strip()), span[0] + len(text) - len(text.lstrip())

        def place(node: Any) -> Span:
            start, end = inner.span(node)
            return start + at, end + at

        return place

    def _whole_signature(
        self, span: Span, arguments: list[ast.arg]
    ) -> tuple[Mapping[str, Type], Type]:
        tree = self._tree(self.source.text[slice(*span)], span, "func_type")
        assert isinstance(tree, ast.FunctionType)  # that is what the mode gives
        walk = _AnnotationWalk(self, self._places(span))
        if [*map(_is_ellipsis, tree.argtypes)] == [True]:
            return {}, walk.type(tree.returns)
        types = [walk.type(each) for each in tree.argtypes]
        names = [each.arg for each in arguments]
        if len(names) == len(types) + 1 and names[0] == "self":
            # The object of a method needs no type.
            del names[0]
        if len(names) != len(types):
            message = f"the comment has {len(types)} types for {len(names)} arguments"
            self.fail(span, message, hint="Give each one type, or write `(...)`.")
        return dict(zip(names, types, strict=True)), walk.type(tree.returns)

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
    """One way through a tree, and from its nodes to places of the source."""

    __slots__ = ("depth", "place", "reader")

    def __init__(self, reader: AnnotationReader, place: Place) -> None:
        self.reader = reader
        self.place = place
        self.depth = 0

    def type(self, node: ast.expr) -> Type:
        """The type that an expression means."""
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
            self._fail(node, f"`{self._text(node)}` is no type")
        start, end = self.place(node)
        quoted = _QUOTED.fullmatch(self.reader.source.text[start:end])
        if quoted is None or quoted[2] != value:
            # With escapes, or in pieces: there is no closer place.
            return self.reader.escaped(value, (start, end))
        return self.reader.text((start + quoted.start(2), start + quoted.end(2)))

    def _meaning(self, node: ast.expr, of: Any) -> Type:
        """The type that an object means."""
        try:
            found = annotated_type(of, self.reader.scope)
        except AnnotationError as error:
            message = f"`{self._text(node)}` means no type: {error.message}"
            return self._fail(node, message, near=error.near, hint=error.hint)
        except RecursionError:
            message = f"`{self._text(node)}` is nested too deeply"
            return self._fail(node, message)
        if found is not None:
            return found
        hint = ""
        if _parameters(of) != 0:
            hint = f"Say what it holds, as in `{self._text(node)}[...]`."
        return self._fail(node, f"`{self._text(node)}` means no type", hint=hint)

    def _object(self, node: ast.expr) -> Any:
        """The object that a name, or an attribute of one, means."""
        path: list[ast.Attribute] = []
        while isinstance(node, ast.Attribute):
            path.append(node)
            node = node.value
        if not isinstance(node, ast.Name):
            message = f"`{self._text(node)}` is no annotation"
            return self._fail(node, message, hint=_FORMS)
        try:
            found = self.reader.scope.find(node.id)
        except LookupError:
            near = self.reader.scope.near(node.id)
            return self._fail(node, f"`{node.id}` is not defined here", near=near)
        for each in reversed(path):
            try:
                found = getattr(found, each.attr)
            except Exception:  # code of the program: anything goes
                near = nearest(each.attr, sorted(dir(found)))
                message = f"`{self._text(each.value)}` has no `{each.attr}`"
                return self._fail(each, message, near=near)
        return found

    def _subscript(self, node: ast.Subscript) -> Type:
        base = self._object(node.value)
        wanted = _parameters(base)
        if wanted == 0:
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
        if wanted not in (None, len(types)):
            noun = "one type" if wanted == 1 else f"{wanted} types"
            made = f"`{self._text(node.value)}` is made of {noun}"
            self._fail(node, f"{made}, this gives {len(types)}")
        found = generic_type(get_origin(base) or base, types, self.reader.scope)
        if found is not None:
            return found
        if wanted == 2:
            keys = ", ".join(sorted(map(str, DICT_KEYS)))
            message = f"a {types[0]} cannot be the key of a dictionary"
            self._fail(parts[0], message, hint=f"Keys are {keys}.")
        return self._fail(node, f"`{self._text(node)}` means no type")

    def _text(self, node: ast.expr) -> str:
        """The node as it is written, on one line."""
        return " ".join(self.reader.source.text[slice(*self.place(node))].split())

    def _fail(self, node: ast.expr, message: str, **more: Any) -> NoReturn:
        self.reader.fail(self.place(node), message, **more)


def _alternatives(node: ast.expr) -> list[ast.expr]:
    """The members of `A | B | C`, or the node itself."""
    found = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        found.append(node.right)
        node = node.left
    return [node, *reversed(found)]


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _parameters(of: Any) -> int | None:
    """How many types belong to a subscript of an object; 0 if it has none."""
    try:
        return wanted_parameters(get_origin(of) or of)
    except Exception:  # code of the program that fails
        return 0


def _comments(source: Source) -> Iterable[tuple[int, Span]]:
    """The comments that say a type: their lines, and the places of the types."""
    if _COMMENT.search(source.text) is None:
        return
    starts = [0, *accumulate(len(each) + 1 for each in source.text.split("\n"))]
    try:
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
            if token.type != tokenize.COMMENT:
                continue
            found = _COMMENT.match(token.string)
            if found is not None:
                line, column = token.start
                start = starts[line - 1] + column + found.end()
                text = token.string[found.end() :].partition("#")[0].rstrip()
                yield line - 1 + source.line, (start, start + len(text))
    except (tokenize.TokenError, SyntaxError):
        # A part of a file may end where no file ends; what came before is there.
        return
