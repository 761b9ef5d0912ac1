"""The compiler: functions that are compiled together, their order, and their undoing.

Rules:
- a function is compiled once in a program; the functions that it calls are compiled
  with it;
- a function whose result is annotated may call itself; the result of any other has to
  be known before it is called, so it is compiled at the first call;
- where one function cannot be compiled, all that were begun for it are undone;
- an error shows the chain of calls because of which a function is compiled;
- one thread compiles at a time.

A signature gives a `Function` with a graph that is still to be made; those are made one
after another, until nothing new is called.  The graph of a body is made by
`runtime.script.emission.statements`, above this chapter, through the hook `BODY`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import ref

from everyorder.runtime.base.hooks import BODY, Hook
from everyorder.runtime.base.locks import waited_for
from everyorder.runtime.errors.schema import AnnotationError
from everyorder.runtime.errors.script import ProgramError
from everyorder.runtime.errors.source import Source, Span
from everyorder.runtime.schema.declared import DeclaredType, qualified_name
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

# Calls because of which something is compiled, innermost first.
CallChain = tuple[tuple[str, Source, Span], ...]
NO_TYPES: Mapping[str, Type] = {}
# What the object of a method is in it, from its value: sugar.
OwnerSugar = Callable[[Value], Any]
# Asked by a compiler, answered by the compilation of classes; None: no class of those.
CLASS_TYPE: Hook[Callable[["Compiler", type, TypeScope], Type | None]] = Hook(
    "the type of a Python class"
)
_LOCK = waited_for()


class FunctionBody(NamedTuple):
    """A definition, what the names in it mean, and its signature."""

    definition: SourceDefinition[Any]
    annotations: Annotations
    scope: TypeScope
    signature: FunctionSignature


class Compiler:
    """Functions and classes that are compiled together."""

    def __init__(self, program: Program) -> None:
        self.program = program
        # The calls because of which something is compiled now.
        self.since: CallChain = ()
        # Functions to be called when all graphs are made, and when something fails.
        self.final_jobs: list[Callable[[], None]] = []
        self.undo_steps: list[Callable[[], None]] = []
        # Dataclasses whose fields are being read.
        self.declaring: set[type] = set()
        self._jobs: list[Function] = []
        # Functions that are compiled to learn the type of their result.
        self._active: dict[Any, None] = {}

    def classes(self, python: type, scope: TypeScope) -> Type | None:
        """The type of a Python class that an annotation names, or None.

        Raises:
            ProgramError: it cannot be compiled.
            AnnotationError: a field of it means no type.
        """
        kind = CLASS_TYPE.get()(self, python, scope)
        return self.program.classes(python, scope) if kind is None else kind

    def known(self, python: Any) -> Function | None:
        """The function that a Python function was compiled to, if it is still kept."""
        reference = self.program.compiled.get(python)
        function = None if reference is None else reference()
        if function is None:
            return None
        kept = self.program.functions.get(function.qualname) is function
        return function if kept else None

    def is_active(self, key: Any) -> bool:
        """Whether a function is being compiled to learn the type of its result."""
        return key in self._active

    def read(
        self,
        python: Any,
        since: CallChain = (),
        owner: DeclaredType | None = None,
        types: Mapping[str, Type] = NO_TYPES,
    ) -> FunctionBody:
        """The body of a Python function, or of a method of the objects of `owner`.

        `types` are those of parameters that have no annotation.
        """
        with with_call_chain(since):
            definition = read_function(python)
            check(definition.tree, definition.source)
            annotations, scope = self._annotations(python, definition)
            signature = read_signature(annotations, python, owner).typed(types)
        return FunctionBody(definition, annotations, scope, signature)

    def _annotations(
        self, python: Any, definition: SourceDefinition[Any]
    ) -> tuple[Annotations, TypeScope]:
        scope = scope_of(python, definition, self.classes)
        return Annotations(definition, scope), scope

    def signature(self, python: Any, owner: Type | None) -> FunctionSignature:
        """The signature of a function whose body is not looked at."""
        annotations, _ = self._annotations(python, read_function(python))
        return read_signature(annotations, python, owner)

    def function(
        self, python: Any, since: CallChain = (), types: Mapping[str, Type] = NO_TYPES
    ) -> Function:
        """The function of a Python function; its graph may be still to be made."""
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
        """A function of the program, found by the key from now on."""
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
        """The function of a method; its first argument is an object of `owner`."""
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
        """A function, compiled already if what it returns is not written."""

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
        """Make the graphs of all functions that were begun."""
        while self._jobs or self.final_jobs:
            if self._jobs:
                self._jobs.pop(0).graph  # noqa: B018  # it is made when asked for
            else:
                self.final_jobs.pop(0)()

    def undo(self) -> None:
        """Undo all that was begun."""
        for undo in reversed(self.undo_steps):
            undo()

    def run(self, begin: Callable[[], Any]) -> Any:
        """Compile something, and all that it calls; all of it or nothing."""
        with _LOCK:
            try:
                result = begin()
                self.finish()
            except BaseException:
                self.undo()
                raise
        return result


@contextmanager
def with_call_chain(since: CallChain) -> Iterator[None]:
    """Lets errors tell because of which calls something is compiled."""
    try:
        yield
    except (ProgramError, AnnotationError) as error:
        if not error.since:
            error.since = since
        raise
