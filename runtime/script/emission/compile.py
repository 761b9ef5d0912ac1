"""Compiling: from functions of Python, methods and texts to functions of a program.

Rules:
- a function is compiled once in a program; what it calls is compiled with it;
- a function whose result is annotated may call itself; of another the result has to
  be known before it is called, so it is compiled at the first call that is met;
- where one function cannot be compiled, none of those is kept that were begun for it;
- an error tells the calls because of which a function is compiled;
- whoever compiles is alone.

A signature gives a `Function` with a graph that is still to be made;
those are made one after another, until nothing new is called.
"""

import ast
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from weakref import ref

from runtime.errors.schema import AnnotationError
from runtime.errors.script import IllTyped, NoSource, ProgramError
from runtime.errors.source import Source, Span
from runtime.locks import waited_for
from runtime.schema.annotation import annotated_type
from runtime.schema.declaration import DeclaredType, qualified_name
from runtime.schema.types import FunctionType, NoneType_, Type
from runtime.schema.written import Scope
from runtime.script.emission.builtins import install_builtins
from runtime.script.emission.calls import bound_values, together
from runtime.script.emission.emitter import RESULT, WAYS, Emitter, Torn
from runtime.script.emission.operators import install_runtime
from runtime.script.emission.statements import block
from runtime.script.emission.sugar import (
    Arguments,
    Sugared,
    register_sugar,
    sugar_of_value,
)
from runtime.script.frontend import (
    Annotations,
    Definition,
    Exit,
    FunctionSignature,
    check,
    place_of,
    read_function,
    read_signature,
    read_text,
    scope_of,
)
from runtime.script.frontend.language import too_deep
from runtime.script.ir import Graph, Place, Value
from runtime.script.passes import CLEANUP, run_passes
from runtime.script.program import SHARED_PROGRAM, Function, Program

# Calls because of which something is compiled, innermost first.
Since = tuple[tuple[str, Source, Span], ...]
_ALONE = waited_for()
_NO_NAMES: Mapping[str, Any] = {}
_NO_TYPES: Mapping[str, Type] = {}
# Sugar of the object of a method, from its value and the Python object if known.
OwnerSugar = Callable[[Value, Any], Sugared]
# What gives the type of a Python class, asked in order; None: it knows no such class.
CLASS_TYPES: list[Callable[["Compiler", type, Scope], Type | None]] = []


class _Job(NamedTuple):
    """A function whose graph is to be made."""

    function: Function
    since: Since


class FunctionOfProgram(Sugared):
    """A compiled function."""

    __slots__ = ("function",)

    def __init__(self, function: Function) -> None:
        self.function = function

    def says(self) -> str:
        """The function."""
        return f"the function `{self.function.name}`"

    def value(self, e: Emitter) -> Value:
        """The function, as a constant."""
        attributes = {"function": self.function}
        return e.node("prim::Constant", (), (FunctionType,), attributes).output

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """Call it."""
        return e.compiler.call(e, self.function, arguments)


class Compiler:
    """What is compiled together."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.compiled = program.compiled
        self._jobs: list[_Job] = []
        self._made: list[tuple[Any, Function]] = []
        # Functions whose result is being found out.
        self._active: dict[Any, None] = {}
        # What is compiled now, and why.
        self._since: Since = ()
        # What is done behind the jobs, and what is done where something fails.
        self.later: list[Callable[[], None]] = []
        self.undoing: list[Callable[[], None]] = []
        # Dataclasses whose fields are being read.
        self.declaring: set[type] = set()

    @staticmethod
    def sugar(value: Value) -> Sugared:
        """What a value is to programs."""
        return sugar_of_value(value)

    def type_of_class(self, e: Emitter, python: Any) -> Type:
        """The type of the objects of a Python class.

        Raises:
            IllTyped: they are of none.
        """
        found = annotated_type(python, Scope(classes=self.classes))
        if found is None:
            e.fail(f"{python!r} is no type of programs")
        return found

    def classes(self, python: type, scope: Scope) -> Type | None:
        """The type of a Python class that an annotation names, or None.

        Raises:
            ProgramError: it cannot be compiled.
            AnnotationError: a field of it means no type.
        """
        for each in CLASS_TYPES:
            found = each(self, python, scope)
            if found is not None:
                return found
        return self.program.classes(python, scope)

    def since(self, name: str, e: Emitter) -> Since:
        """Why something is compiled that is called at a place."""
        return ((name, e.at.source, e.at.span), *self._since)

    # Calls

    def call(self, e: Emitter, function: Function, arguments: Arguments) -> Sugared:
        """Call a function of the program."""
        callee = f"the function `{function.name}`"
        inputs, types = bound_values(e, callee, function.schema, arguments)
        attributes = {"function": function}
        constant = e.node("prim::Constant", (), (FunctionType,), attributes).output
        node = e.node("prim::CallFunction", (constant, *inputs), types)
        return together(e, node.outputs)

    def called(self, e: Emitter, python: Any) -> Function:
        """What a Python function is compiled to, for a call at this place."""
        python = getattr(python, "__func__", python)
        known = self._known(python)
        if known is not None:
            return known
        if python in self._active:
            e.fail(
                f"`{python.__name__}` calls itself, and its result has no type",
                "Annotate what it returns: `def f(...) -> int:`.",
            )
        step = python.__qualname__, e.at.source, e.at.span
        try:
            return self.function(python, (step, *self._since))
        except NoSource as error:
            e.fail(f"{error.found} cannot be compiled: {error.reason}", error.hint)

    def _known(self, python: Any) -> Function | None:
        reference = self.compiled.get(python)
        known = None if reference is None else reference()
        if known is None:
            return None
        kept = self.program.functions.get(known.qualname) is known
        return known if kept else None

    # Functions

    def function(
        self, python: Any, since: Since = (), types: Mapping[str, Type] = _NO_TYPES
    ) -> Function:
        """The function of a Python function; its graph may be still to be made.

        `types` are those of parameters that have no annotation.
        """
        with _Told(since):
            definition = read_function(python)
            check(definition.tree, definition.source)
            scope = scope_of(python, definition, self.classes)
            annotations = Annotations(definition, scope)
            signature = read_signature(annotations, python).typed(types)
        qualname = self.program.free_name(qualified_name(python))
        return self._function(
            python, qualname, definition, annotations, scope, signature, since
        )

    def _function(
        self,
        python: Any,
        qualname: str,
        definition: Definition[Any],
        annotations: Annotations,
        scope: Scope,
        signature: FunctionSignature,
        since: Since,
    ) -> Function:
        def make() -> Graph:
            return self._graph(
                qualname, definition, annotations, scope, signature, since
            )

        function = self._begun(python, qualname, signature, make, since)
        self._made.append((python, function))
        self.compiled[python] = ref(function)
        self.program.add(function)
        return function

    def _begun(
        self,
        python: Any,
        qualname: str,
        signature: FunctionSignature,
        make: Callable[[], Graph],
        since: Since,
    ) -> Function:
        """A function, compiled already if what it returns is not written."""
        if signature.returns is None:
            self._active[python] = None
            graph = make()
            del self._active[python]
            (result,) = graph.block.results
            return Function(qualname, signature.schema(result.type), graph, python)
        function = Function(qualname, signature.schema(), make, python)
        self._jobs.append(_Job(function, since))
        return function

    def method(
        self,
        python: Any,
        owner: DeclaredType,
        owner_sugar: OwnerSugar | None = None,
        owner_value: Any = None,
        since: Since = (),
        name: str = "",
        types: Mapping[str, Type] = _NO_TYPES,
    ) -> Function:
        """The function of a method; its first argument is an object of `owner`.

        It is called as it is written, unless there is a `name`.
        """
        with _Told(since):
            definition = read_function(python)
            check(definition.tree, definition.source)
            scope = scope_of(python, definition, self.classes)
            annotations = Annotations(definition, scope)
            signature = read_signature(annotations, python, owner).typed(types)
        name = name or definition.tree.name
        qualname = f"{owner.declaration.qualname}.{name}"

        def make() -> Graph:
            return self._graph(
                qualname,
                definition,
                annotations,
                scope,
                signature,
                since,
                None if owner_sugar is None else (owner_sugar, owner_value),
            )

        return self._begun((python, owner), qualname, signature, make, since)

    def _graph(
        self,
        qualname: str,
        definition: Definition[Any],
        annotations: Annotations,
        scope: Scope,
        signature: FunctionSignature,
        since: Since,
        owner: tuple[OwnerSugar, Any] | None = None,
    ) -> Graph:
        graph = Graph(qualname.rpartition(".")[2])
        before, self._since = self._since, since
        with _Told(since):
            e = Emitter(
                self, definition, annotations, scope.find, graph, signature.returns
            )
            emit_function(e, signature, owner)
        self._since = before
        run_passes(graph, CLEANUP)
        return graph

    def finish(self) -> None:
        """Make the graphs of all that was begun."""
        while self._jobs or self.later:
            if self._jobs:
                self._jobs.pop(0).function.graph  # noqa: B018  # it is made when asked for
            else:
                self.later.pop(0)()

    def undo(self) -> None:
        """Give back all that was begun."""
        for undo in reversed(self.undoing):
            undo()
        for python, function in self._made:
            self.program.discard(function)
            if self.compiled.get(python) == ref(function):
                del self.compiled[python]

    def run(self, begin: Callable[[], Any]) -> Any:
        """Compile something, and all that it calls; all of it or nothing."""
        with _ALONE:
            try:
                result = begin()
                self.finish()
            except BaseException:
                self.undo()
                raise
        return result


class _Told:
    """Lets errors tell because of which calls something is compiled."""

    __slots__ = ("_since",)

    def __init__(self, since: Since) -> None:
        self._since = since

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, ProgramError | AnnotationError) and not error.since:
            error.since = self._since


def emit_function(
    e: Emitter,
    signature: FunctionSignature,
    owner: tuple[OwnerSugar, Any] | None = None,
) -> None:
    """Emit the whole body of a function."""
    tree = e.definition.tree
    for place, argument in enumerate(signature.arguments):
        value = e.block.add_parameter(argument.type, argument.name)
        e.declared[argument.name] = argument.type
        e.names[argument.name] = (
            owner[0](value, owner[1]) if owner and place == 0 else sugar_of_value(value)
        )
    end = ast.copy_location(ast.Return(value=None), tree.body[-1])
    try:
        block(e, [*tree.body, end])
    except RecursionError:
        raise too_deep(e.source) from None
    e.at = Place(e.source, place_of(tree, e.source))
    if Exit.RETURN in e.exits & WAYS:
        found = e.names[RESULT]
        if isinstance(found, Torn):
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
    types: Mapping[str, Type] = _NO_TYPES,
) -> Function:
    """Compile a Python function, and all that it calls.

    `types` are those of parameters that have no annotation.

    Raises:
        NoSource: its source is not there.
        ProgramError: it cannot be compiled, or something that it calls.
    """
    compiler = Compiler(program)
    python = getattr(python, "__func__", python)
    known = compiler._known(python)
    if known is not None:
        return known
    found: Function = compiler.run(lambda: compiler.function(python, types=types))
    return found


def compile_method(
    python: Any,
    owner: DeclaredType,
    program: Program = SHARED_PROGRAM,
    owner_value: Any = None,
    owner_sugar: OwnerSugar | None = None,
) -> Function:
    """Compile a method of the objects of a declared type; raises as `compile_function`.

    `owner_sugar` makes what the object is in the method, from its value and
    `owner_value`; without, it is a value of its type.
    """
    compiler = Compiler(program)
    found: Function = compiler.run(
        lambda: compiler.method(python, owner, owner_sugar, owner_value)
    )
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


class _TextFunction(Sugared):
    """A function of a text, compiled when it is first asked for."""

    __slots__ = ("__weakref__", "made", "make", "name")

    def __init__(self, name: str, make: Callable[[Since], Function]) -> None:
        self.name = name
        self.make = make
        self.made: Function | None = None

    def says(self) -> str:
        """The function."""
        return f"the function `{self.name}`"

    def function(self, since: Since = ()) -> Function:
        """What it is compiled to."""
        if self.made is None:
            self.made = self.make(since)
        return self.made

    def _asked(self, e: Emitter) -> Function:
        if self.made is None and self in e.compiler._active:
            e.fail(
                f"`{self.name}` calls itself, and its result has no type",
                "Annotate what it returns: `def f(...) -> int:`.",
            )
        step = self.name, e.at.source, e.at.span
        return self.function((step, *e.compiler._since))

    def value(self, e: Emitter) -> Value:
        """The function, as a constant."""
        return FunctionOfProgram(self._asked(e)).value(e)

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """Call it."""
        return e.compiler.call(e, self._asked(e), arguments)


def _text_functions(
    compiler: Compiler,
    text: Definition[ast.Module],
    names: Mapping[str, Any],
    path: str,
) -> list[Function]:
    own: dict[str, Any] = {}
    scope = Scope(own, names, classes=compiler.classes)

    def declare(node: ast.FunctionDef) -> _TextFunction:
        definition: Definition[Any] = Definition(text.source, node)

        def make(since: Since) -> Function:
            with _Told(since):
                annotations = Annotations(definition, scope)
                signature = read_signature(annotations)
            qualname = compiler.program.free_name(f"{path}.{node.name}")
            return compiler._function(
                made, qualname, definition, annotations, scope, signature, since
            )

        made = _TextFunction(node.name, make)
        return made

    functions = []
    for node in text.tree.body:
        if isinstance(node, ast.FunctionDef):
            own[node.name] = declare(node)
            functions.append(own[node.name])
        elif isinstance(node, ast.ClassDef):
            raise _no_class(text.source, node)
    return [each.function() for each in functions]


def _no_class(source: Source, node: ast.ClassDef) -> IllTyped:
    """Why a class in a text is refused."""
    return IllTyped(
        source=source,
        span=place_of(node, source),
        message="a class stands in a text",
        hint="Write functions.",
    )


install_runtime()
install_builtins()
register_sugar(Function, FunctionOfProgram)
