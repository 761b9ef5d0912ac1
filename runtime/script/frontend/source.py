"""Sources of programs: find the text and the syntax tree of a definition.

    SourceDefinition                        a function, class or text: source and tree
    read_function, read_class, read_text    find it, with its lines unchanged

The file of a function is parsed once. A function is found by the first line of its code
object, a class by its qualified name and the lines of its methods. The text is not
dedented, so that string literals stay as they are, and spans are those of the file.

Rules:
- the compiled object is the object itself: if a decorator replaced a function, the
  replacement is compiled;
- lines are read from `linecache`, where tools register sources without a file (cells,
  doctests);
- the trees of a file are shared, and must not be changed;
- an unavailable source raises `NotScriptable`, a text that is not a program
  `MalformedProgram`; a `RecursionError` never escapes.
"""

import ast
import linecache
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, MethodType
from typing import Any, Generic, NoReturn, TypeVar

from everyorder.runtime.errors.script import MalformedProgram, NotScriptable
from everyorder.runtime.errors.source import Source
from everyorder.runtime.script.frontend.language import (
    check_depth,
    construct_of,
    refusal,
    too_deep,
)

N = TypeVar("N", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef
# The number of cached parsed files: compiling a module reads some files repeatedly.
KEPT = 16


@dataclass(frozen=True, slots=True)
class SourceDefinition(Generic[N]):
    """A function, a class or a text: its source, and the tree in it.

    `owner` is the class whose body contains the function, or empty.
    """

    source: Source
    tree: N
    owner: str = ""


def read_function(function: Any) -> SourceDefinition[Function]:
    """Return the definition of a Python function or method.

    Raises:
        NotScriptable: `function` is not a Python function, or its source is not
        available. NotSupported: `function` is a lambda, or nested too deeply.
    """
    if isinstance(function, MethodType):
        function = function.__func__
    if not isinstance(function, FunctionType):
        kind = f"an object of type {type(function).__name__}"
        reason = "it is not a function written in Python"
        raise NotScriptable(code="NoSource", found=kind, reason=reason, hint=_WRITTEN)
    code = function.__code__
    name = f"the function `{function.__qualname__}`"
    file = _file(name, code.co_filename, function.__globals__)
    if code.co_name == "<lambda>":
        _refuse_lambda(file, code, name)
    one = file.functions.get(code.co_firstlineno)
    if one is None or not _is_of(one.tree, code):
        _changed(name, code.co_filename)
    return _checked(SourceDefinition(file.part(one.tree), one.tree, one.owner))


def read_class(python: type) -> SourceDefinition[ast.ClassDef]:
    """Return the definition of a Python class; raises as `read_function`."""
    name = f"the class `{python.__qualname__}`"
    codes = [each.__code__ for each in _methods(python)]
    module = sys.modules.get(python.__module__)
    names = {} if module is None else vars(module)
    path = codes[0].co_filename if codes else names.get("__file__")
    if path is None:
        raise NotScriptable(
            code="NoSource", found=name, reason="it is in no file", hint=_FILE
        )
    file = _file(name, path, names)
    trees = file.classes.get(python.__qualname__, [])
    if len(trees) > 1:
        trees = [each for each in trees if _has_all(each, codes)]
    if len(trees) > 1:
        lines = " and ".join(str(each.lineno) for each in trees)
        reason = f"it may be any of those that begin in the lines {lines} of {path}"
        raise NotScriptable(
            code="NoSource",
            found=name,
            reason=reason,
            hint="Give them different names.",
        )
    if not trees:
        _changed(name, path)
    return _checked(SourceDefinition(file.part(trees[0]), trees[0]))


def read_text(text: str, file: str = "", line: int = 1) -> SourceDefinition[ast.Module]:
    """Return the functions and classes of a text, which begins in a line of a file.

    Raises:
        MalformedProgram: the text is not a Python program. NotSupported: the text is
        nested too deeply.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    source = Source(text, file, line)
    indented = _is_indented(text)
    try:
        tree = _parsed_block(text) if indented else ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise _malformed(source, error, 2 if indented else 1) from None
    except (RecursionError, MemoryError):
        raise too_deep(source) from None
    ast.increment_lineno(tree, line - 1)
    definition = _checked(SourceDefinition(source, tree))
    try:
        # Some errors are raised only by Python's compiler, as for `break` outside of a
        # loop.
        compile(tree, file or "<text>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise _malformed(source, error, line) from None
    return definition


def _is_indented(text: str) -> bool:
    """Return True if the first statement of a text is indented."""
    rows = (each for each in text.split("\n") if each.strip())
    first = next((each for each in rows if not each.lstrip().startswith("#")), "")
    return first[:1] in (" ", "\t")


def _parsed_block(text: str) -> ast.Module:
    """Return the tree of a text that is indented as a whole.

    Its lines remain as they are: those of a string or a comment may be indented less.
    Raises `SyntaxError`, whose lines are counted from 2.
    """
    tree = ast.parse(f"if True:\n{text}")
    block = tree.body[0]
    assert isinstance(block, ast.If), "it is the first statement"
    if len(tree.body) > 1 or block.orelse:
        # What is indented less is not of the block: Python's parser refuses the text.
        tree = ast.parse(f"\n{text}")
    ast.increment_lineno(tree, -1)
    return ast.Module(block.body, tree.type_ignores)


@dataclass(frozen=True, slots=True)
class _Found:
    """A function in a file, and the class whose body contains it."""

    tree: Function
    owner: str


class _File:
    """A parsed file: its functions by their first lines, its classes by their names."""

    __slots__ = ("classes", "functions", "lines", "path", "tree")

    def __init__(self, path: str, lines: list[str]) -> None:
        self.path = path
        self.lines = lines
        self.tree = _parsed("".join(lines), path)
        self.functions: dict[int, _Found] = {}
        self.classes: dict[str, list[ast.ClassDef]] = {}
        for node, prefix, owner in _definitions(self.tree):
            if isinstance(node, ast.ClassDef):
                self.classes.setdefault(f"{prefix}{node.name}", []).append(node)
            else:
                self.functions[_first_line(node)] = _Found(node, owner)

    def part(self, node: Function | ast.ClassDef) -> Source:
        """Return the lines of a definition, with its decorators."""
        first, last = _first_line(node), node.end_lineno
        text = "".join(self.lines[first - 1 : last])
        return Source(text.removesuffix("\n"), self.path, first)


def _parsed(text: str, path: str) -> ast.Module:
    try:
        return ast.parse(text, path)
    except SyntaxError:
        # A warning that is turned into an error was only a warning at compile time.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, path)


_FILES: dict[str, _File] = {}


def _file(name: str, path: str, names: dict[str, Any]) -> _File:
    linecache.checkcache(path)
    lines = linecache.getlines(path, names)
    if not lines:
        reason = f"there are no lines of {path}"
        raise NotScriptable(code="NoSource", found=name, reason=reason, hint=_FILE)
    cached = _FILES.get(path)
    # Compared by identity: linecache replaces the list when it reads the file again.
    if cached is not None and cached.lines is lines:
        return cached
    try:
        file = _File(path, lines)
    except (SyntaxError, ValueError):
        _changed(name, path)
    except (RecursionError, MemoryError):
        raise too_deep(Source("".join(lines), path)) from None
    _FILES.pop(path, None)
    _FILES[path] = file
    for oldest in [*_FILES][: len(_FILES) - KEPT]:
        _FILES.pop(oldest, None)
    return file


def _definitions(
    tree: ast.Module,
) -> Iterator[tuple[Function | ast.ClassDef, str, str]]:
    """Yield the functions and classes of a file.

    Each comes with the prefix of its qualified name, and the enclosing class.
    """
    stack: list[tuple[ast.AST, str, str]] = [(tree, "", "")]
    while stack:
        node, prefix, owner = stack.pop()
        if isinstance(node, Function):
            yield node, prefix, owner
            # The enclosing class also mangles names in nested functions.
            prefix = f"{prefix}{node.name}.<locals>."
        elif isinstance(node, ast.ClassDef):
            yield node, prefix, owner
            prefix, owner = f"{prefix}{node.name}.", node.name
        inner = [
            (each, prefix, owner)
            for each in ast.iter_child_nodes(node)
            # Only these contain statements.
            if isinstance(each, ast.stmt | ast.excepthandler | ast.match_case)
        ]
        stack += reversed(inner)


def _first_line(node: Function | ast.ClassDef) -> int:
    """Return the line of the first decorator, or of the definition."""
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _is_of(node: Function, code: CodeType) -> bool:
    """Return True if the name, parameters and lines of code and function agree."""
    every = node.args
    positional = len(every.posonlyargs) + len(every.args)
    lines = [line for _, _, line in code.co_lines() if line is not None]
    return (
        node.name == code.co_name
        and positional == code.co_argcount
        and len(every.kwonlyargs) == code.co_kwonlyargcount
        and max(lines) <= (node.end_lineno or 0)
    )


def _methods(python: type) -> list[FunctionType]:
    """Return the functions that are written in the body of a class."""
    inside = f"{python.__qualname__}."
    return [
        each
        for each in map(_undecorated, vars(python).values())
        if isinstance(each, FunctionType)
        and each.__qualname__.startswith(inside)
        and each.__module__ == python.__module__
        # Generated methods, as those of dataclasses, are not in a file.
        and not each.__code__.co_filename.startswith("<string>")
    ]


def _undecorated(member: Any) -> Any:
    """Return the function below decorators that set `__wrapped__`."""
    visited: set[int] = set()
    while id(member) not in visited:
        visited.add(id(member))
        if isinstance(member, property):
            member = member.fget
        elif isinstance(member, staticmethod | classmethod):
            member = member.__func__
        elif isinstance(member, FunctionType):
            member = vars(member).get("__wrapped__", member)
    return member


def _has_all(node: ast.ClassDef, codes: list[CodeType]) -> bool:
    lines = range(node.lineno, (node.end_lineno or 0) + 1)
    return all(each.co_firstlineno in lines for each in codes)


def _refuse_lambda(file: _File, code: CodeType, name: str) -> NoReturn:
    """Raise that a lambda is not supported, with its place.

    Of several in a line, it is the one that contains the positions of the code object.
    """
    line, places = code.co_firstlineno, {*code.co_positions()}
    every = [
        each
        for each in ast.walk(file.tree)
        if isinstance(each, ast.Lambda) and each.lineno == line
    ]
    every.sort(key=lambda each: _position(each.body) not in places)
    for each in every:
        source = Source("".join(file.lines).removesuffix("\n"), file.path)
        raise refusal(construct_of(each), source, source.span(each))
    _changed(name, file.path)


def _position(node: ast.expr) -> tuple[int, int | None, int, int | None]:
    """Return the position of an expression as code objects store it."""
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def _checked(definition: SourceDefinition[N]) -> SourceDefinition[N]:
    check_depth(definition.tree, definition.source)
    return definition


def _malformed(
    source: Source, error: SyntaxError | ValueError, first: int
) -> MalformedProgram:
    """Return the error of Python's parser about a text, at its place.

    `first` is the number of the first line in the parser's counting.
    """
    if not isinstance(error, SyntaxError) or error.lineno is None:
        return MalformedProgram(source=source, span=(0, 0), message=str(error))
    rows = source.text.split("\n")
    row = min(max(error.lineno - first, 0), len(rows) - 1)
    before = sum(len(each) + 1 for each in rows[:row])
    start = min(max((error.offset or 1) - 1, 0), len(rows[row]))
    end = start
    if error.end_lineno == error.lineno:
        end = min(max((error.end_offset or 1) - 1, start), len(rows[row]))
    span = before + start, before + end
    return MalformedProgram(source=source, span=span, message=error.msg)


def _changed(name: str, path: str) -> NoReturn:
    reason = f"{path} does not have it; it may have changed since it was run"
    raise NotScriptable(
        code="NoSource", found=name, reason=reason, hint="Run the file again."
    )


# Hints of errors.
_WRITTEN = "Give a function that is written with `def`."
_FILE = "Write it in a file or a notebook, or compile its text."
