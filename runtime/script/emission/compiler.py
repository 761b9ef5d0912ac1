"""The compiler: the order of functions that are compiled together, and the rollback.

Rules:
- a function is compiled once in a program; the functions that it calls are compiled
  with it;
- a function whose result is annotated may call itself; any other function is compiled
  at the first call, because the caller needs its result type;
- if one function cannot be compiled, all functions begun for it are removed;
- an error shows the chain of calls that caused the compilation of a function;
- one thread compiles at a time.

A function with an annotated result becomes a `Function` with a pending graph; pending
graphs are built one after another, until no new function is called.
`runtime.script.emission.statements`, a higher layer, builds the graph of a body,
through the hook `BODY`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import ref

from everyorder.runtime.autograd.grad_mode import Mode, mode_of
from everyorder.runtime.base.hooks import BODY, Hook
from everyorder.runtime.base.locks import waited_for
from everyorder.runtime.errors.schema import AnnotationError
from everyorder.runtime.errors.script import ProgramError
from everyorder.runtime.errors.source import Source, Span
from everyorder.runtime.schema.declared import (
    DeclaredType,
    InterfaceType,
    ScriptClassType,
    qualified_name,
)
from everyorder.runtime.schema.types import Type
from everyorder.runtime.script.frontend import (
    Annotations,
    FunctionSignature,
    SourceDefinition,
    check,
    read_function,
    read_signature,
    scope_of,
)
from everyorder.runtime.script.ir import Graph, Value
from everyorder.runtime.script.ir.program import Function, Program
from everyorder.runtime.script.passes import CLEANUP, run_passes
from everyorder.runtime.script.types.annotations import TypeScope

# The calls that caused a compilation, innermost first.
CallChain = tuple[tuple[str, Source, Span], ...]
NO_TYPES: Mapping[str, Type] = {}
# Returns the sugar of a method's object for its value.
OwnerSugar = Callable[[Value], Any]
# Asked by a compiler, answered by the compilation of classes; None: no class of those.
CLASS_TYPE: Hook[Callable[["Compiler", type, TypeScope], Type | None]] = Hook(
    "the type of a Python class"
)
_LOCK = waited_for()


class FunctionBody(NamedTuple):
    """A definition, the scope of its names, and its signature.

    `modes` are the modes of autograd that decorate the function, outermost first.
    """

    definition: SourceDefinition[Any]
    annotations: Annotations
    scope: TypeScope
    signature: FunctionSignature
    modes: tuple[Mode, ...] = ()


def without_modes(python: Any) -> tuple[Any, tuple[Mode, ...]]:
    """Return a function without the modes that decorate it, and the modes."""
    modes = []
    while (mode := mode_of(python)) is not None:
        modes.append(mode)
        python = python.__wrapped__
    return python, tuple(modes)


class Compiler:
    """A compilation of functions and classes that belong together."""

    def __init__(self, program: Program) -> None:
        self.program = program
        # The calls that caused the current compilation.
        self.since: CallChain = ()
        # Functions to call when all graphs are built, and after a failure.
        self.final_jobs: list[Callable[[], None]] = []
        self.undo_steps: list[Callable[[], None]] = []
        # Dataclasses whose fields are being read.
        self.declaring: set[type] = set()
        self._jobs: list[Function] = []
        # Functions that are being compiled to infer the type of their result.
        self._active: dict[Any, None] = {}

    def classes(self, python: type, scope: TypeScope) -> Type | None:
        """Return the type of a Python class that an annotation names, or None.

        Raises:
            ProgramError: the class cannot be compiled. AnnotationError: the annotation
            of a field is not a type.
        """
        kind = CLASS_TYPE.get()(self, python, scope)
        return self.program.classes(python, scope) if kind is None else kind

    def known(self, python: Any) -> Function | None:
        """Return the compiled function of a Python function if still alive."""
        reference = self.program.compiled.get(python)
        function = None if reference is None else reference()
        if function is None:
            return None
        is_registered = self.program.functions.get(function.qualname) is function
        return function if is_registered else None

    def is_active(self, key: Any) -> bool:
        """Return True if a function is being compiled to infer its result type."""
        return key in self._active

    def read(
        self,
        python: Any,
        since: CallChain = (),
        owner: DeclaredType | None = None,
        types: Mapping[str, Type] = NO_TYPES,
    ) -> FunctionBody:
        """Return the body of a Python function, or of a method of `owner`.

        `types` has the types of parameters without annotation.
        """
        python, modes = without_modes(python)
        with with_call_chain(since):
            definition = read_function(python)
            check(definition.tree, definition.source)
            annotations, scope = self._annotations(python, definition, owner)
            signature = read_signature(annotations, python, owner).typed(types)
        return FunctionBody(definition, annotations, scope, signature, modes)

    def _annotations(
        self, python: Any, definition: SourceDefinition[Any], owner: Type | None
    ) -> tuple[Annotations, TypeScope]:
        scope = scope_of(python, definition, self.classes, _own_name(owner))
        return Annotations(definition, scope), scope

    def signature(self, python: Any, owner: Type | None) -> FunctionSignature:
        """Return the signature of a function whose body is not compiled."""
        python, _ = without_modes(python)
        annotations, _ = self._annotations(python, read_function(python), owner)
        return read_signature(annotations, python, owner)

    def function(
        self, python: Any, since: CallChain = (), types: Mapping[str, Type] = NO_TYPES
    ) -> Function:
        """Return the function of a Python function; its graph may be pending."""
        body = self.read(python, since, types=types)
        return self.add(python, qualified_name(python), body, since, python)

    def add(
        self,
        key: Any,
        qualname: str,
        body: FunctionBody,
        since: CallChain,
        python: Any = None,
    ) -> Function:
        """Add a function to the program, registered under the key."""
        program = self.program
        name = program.free_name(qualname)
        function = self.begin(key, name, body, since, python)

        def undo() -> None:
            program.discard(function)
            if program.compiled.get(key) == ref(function):
                del program.compiled[key]

        self.undo_steps.append(undo)
        program.compiled[key] = ref(function)
        program.add(function)
        return function

    def method(
        self,
        python: Any,
        owner: DeclaredType,
        name: str,
        since: CallChain = (),
        types: Mapping[str, Type] = NO_TYPES,
        sugar: OwnerSugar | None = None,
    ) -> Function:
        """Return the function of a method; its object is of type `owner`."""
        body = self.read(python, since, owner, types)
        qualname = f"{owner.declaration.qualname}.{name}"
        return self.begin((python, owner), qualname, body, since, python, sugar)

    def begin(
        self,
        key: Any,
        qualname: str,
        body: FunctionBody,
        since: CallChain = (),
        python: Any = None,
        sugar: OwnerSugar | None = None,
    ) -> Function:
        """Return a function; it is compiled now if its result is not annotated."""

        def make() -> Graph:
            graph = Graph(qualname.rpartition(".")[2])
            before, self.since = self.since, since
            with with_call_chain(since):
                BODY.get()(self, graph, body, sugar)
            self.since = before
            run_passes(graph, CLEANUP)
            return graph

        signature = body.signature
        if signature.returns is None:
            self._active[key] = None
            graph = make()
            del self._active[key]
            (result,) = graph.block.results
            return Function(qualname, signature.schema(result.type), graph, python)
        function = Function(qualname, signature.schema(), make, python)
        self._jobs.append(function)
        return function

    def finish(self) -> None:
        """Build the graphs of all functions that were begun."""
        while self._jobs or self.final_jobs:
            if self._jobs:
                self._jobs.pop(0).graph  # noqa: B018  # the access builds it
            else:
                self.final_jobs.pop(0)()

    def undo(self) -> None:
        """Remove all functions and classes that were begun."""
        for undo in reversed(self.undo_steps):
            undo()

    def run(self, begin: Callable[[], Any]) -> Any:
        """Compile a function or class, and all that it calls; all of it or nothing."""
        with _LOCK:
            try:
                result = begin()
                self.finish()
            except BaseException:
                self.undo()
                raise
        return result


def _own_name(owner: Type | None) -> Mapping[str, Any]:
    """Return the class of a method by its name, which a decorator runs before."""
    if not isinstance(owner, ScriptClassType | InterfaceType):
        return {}
    python = owner.declaration.python
    return {} if python is None else {python.__name__: python}


@contextmanager
def with_call_chain(since: CallChain) -> Iterator[None]:
    """Add the calls that caused the compilation to errors within the context."""
    try:
        yield
    except (ProgramError, AnnotationError) as error:
        if not error.since:
            error.since = since
        raise
