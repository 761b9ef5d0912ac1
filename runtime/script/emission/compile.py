"""Compiling: from functions of Python, and of texts, to functions of a program.

emit_body         the graph of a body: what `runtime.script.emission.compiler` asks
compile_function  a Python function, with all that it calls
compile_text      the functions of a text
"""

import ast
from collections.abc import Mapping
from typing import Any

from runtime.errors.script import IllTyped
from runtime.errors.source import Source
from runtime.hooks import BODY
from runtime.schema.scope import Scope
from runtime.schema.types import NoneType_, Type
from runtime.script.emission.branches import TypeConflict
from runtime.script.emission.builtins import install_builtins
from runtime.script.emission.calls import (
    FunctionOfProgram,
    PythonFunction,
    fail_recursive,
)
from runtime.script.emission.compiler import (
    NO_TYPES,
    Body,
    CallChain,
    Compiler,
    OwnerSugar,
    with_call_chain,
)
from runtime.script.emission.emitter import RESULT, WAYS, Emitter
from runtime.script.emission.operators import install_runtime
from runtime.script.emission.statements import block
from runtime.script.emission.sugar import register_sugar, sugar_of_value
from runtime.script.frontend import (
    Annotations,
    Definition,
    Exit,
    check,
    place_of,
    read_signature,
    read_text,
)
from runtime.script.frontend.language import too_deep
from runtime.script.ir import Graph, Place
from runtime.script.program import SHARED_PROGRAM, Function, Program

_NO_NAMES: Mapping[str, Any] = {}


def emit_body(
    compiler: Compiler, graph: Graph, body: Body, sugar: OwnerSugar | None = None
) -> None:
    """Emit the whole body of a function; `sugar` makes its object, if it has one."""
    e = Emitter(compiler, graph, body)
    tree = e.definition.tree
    for argument in body.signature.arguments:
        value = e.block.add_parameter(argument.type, argument.name)
        e.declared[argument.name] = argument.type
        e.names[argument.name] = (sugar or sugar_of_value)(value)
        sugar = None
    end = ast.copy_location(ast.Return(value=None), tree.body[-1])
    try:
        block(e, [*tree.body, end])
    except RecursionError:
        raise too_deep(e.source) from None
    e.at = Place(e.source, place_of(tree, e.source))
    if Exit.RETURN in e.exits & WAYS:
        found = e.names[RESULT]
        if isinstance(found, TypeConflict):
            e.fail(
                f"the function returns different types: {found.mismatch.reason}",
                "Annotate what it returns with a type of all.",
                [(f"It is of type {one} here", place) for one, place in found.places],
            )
        result = found.value(e)
    else:
        result = e.uninitialized(e.returns or NoneType_)
    e.block.add_result(result)


def compile_function(
    python: Any,
    program: Program = SHARED_PROGRAM,
    types: Mapping[str, Type] = NO_TYPES,
) -> Function:
    """Compile a Python function, and all that it calls.

    `types` are those of parameters that have no annotation.

    Raises:
        NotScriptable: its source is not there.
        ProgramError: it cannot be compiled, or something that it calls.
    """
    compiler = Compiler(program)
    python = getattr(python, "__func__", python)
    known = compiler.known(python)
    if known is not None:
        return known
    found: Function = compiler.run(lambda: compiler.function(python, types=types))
    return found


def compile_text(
    text: str,
    program: Program = SHARED_PROGRAM,
    names: Mapping[str, Any] = _NO_NAMES,
    *,
    file: str = "",
    path: str = "__torch__",
    is_saved: bool = False,
) -> list[Function]:
    """Compile the functions of a text, which know each other and `names`.

    `path` is what stands before their names; `is_saved`: the compiler has written it.

    Raises:
        ProgramError: it is no program, or cannot be compiled.
    """
    definition = read_text(text, file)
    check(definition.tree, definition.source, is_saved=is_saved)
    compiler = Compiler(program)
    found: list[Function] = compiler.run(
        lambda: _text_functions(compiler, definition, names, path)
    )
    return found


class _TextFunction(PythonFunction):
    """A function of a text, `python`; compiled when it is first asked for."""

    __slots__ = ("__weakref__", "made", "path", "scope", "source")

    def __init__(
        self, node: ast.FunctionDef, source: Source, scope: Scope, path: str
    ) -> None:
        super().__init__(node)
        self.source = source
        self.scope = scope
        self.path = path
        self.made: Function | None = None

    def describe(self) -> str:
        return f"the function `{self.python.name}`"

    def compiled(self, compiler: Compiler, since: CallChain = ()) -> Function:
        """What it is compiled to."""
        if self.made is None:
            definition: Definition[Any] = Definition(self.source, self.python)
            with with_call_chain(since):
                annotations = Annotations(definition, self.scope)
                signature = read_signature(annotations)
            body = Body(definition, annotations, self.scope, signature)
            qualname = f"{self.path}.{self.python.name}"
            self.made = compiler.add(self, qualname, body, since)
        return self.made

    def function(self, e: Emitter) -> Function:
        if self.made is None and e.compiler.is_active(self):
            fail_recursive(e, f"`{self.python.name}`")
        return self.compiled(e.compiler, e.since(self.python.name))


def _text_functions(
    compiler: Compiler,
    text: Definition[ast.Module],
    names: Mapping[str, Any],
    path: str,
) -> list[Function]:
    own: dict[str, Any] = {}
    scope = Scope(own, names, classes=compiler.classes)
    functions = []
    for node in text.tree.body:
        if isinstance(node, ast.FunctionDef):
            function = own[node.name] = _TextFunction(node, text.source, scope, path)
            functions.append(function)
        elif isinstance(node, ast.ClassDef):
            raise IllTyped(
                code="IllTyped",
                source=text.source,
                span=place_of(node, text.source),
                message="a class stands in a text",
                hint="Write functions.",
            )
    return [each.compiled(compiler) for each in functions]


BODY.set(emit_body)
install_runtime()
install_builtins()
register_sugar(Function, FunctionOfProgram)
