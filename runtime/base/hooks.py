"""What a lower area gets of a higher one: answers by hooks, and additions by plug-ins.

Imports point one way, so what a tensor needs of autograd, or a schema of tensors,
cannot be imported there.  Each such question is one `Hook` of this file, with the type
of its answer; the area that can answer sets it once, when it is imported.

Several areas may add to one of the compiler's.  An area that is loaded gets an addition
at once; one that is not gets it at the end of its own loading, so that the compiler is
not loaded only to add something to it:

    register_plug_in    an addition to an area, by a name; `close` takes it back
    ready               an area says that it is loaded: the last line of its `__init__`

Rules:
- a hook is set once; a module whose first import was interrupted sets it again;
- `answer` is None until then, where being without an answer means something;
- an area of a plug-in is a package by its full name (`runtime.script.emission`), an
  addition a function that returns a handle for each part that it has added; they are
  closed in the reverse order;
- an addition is made once for each registration, and of one area in the order of names;
- an addition is made whole or not at all: if `install` raises or is interrupted, its
  parts are closed, and the next `ready` of the area makes it again;
- this module knows all hooks and no plug-in.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any, Generic, Protocol, TypeVar

from everyorder.runtime.base.locks import LOADING
from everyorder.runtime.base.registry import Closeable, Registry, RegistryHandle

A = TypeVar("A")

Install = Callable[[], Iterable[Closeable]]

# The only key of a hook's registry.
_ANSWER = "the answer"


class Hook(Generic[A]):
    """One question of a lower area, answered by one higher area."""

    __slots__ = ("_registry", "answer", "question")

    def __init__(self, question: str) -> None:
        self.question = question
        self._registry: Registry[str, A] = Registry(question)
        # None while the area that answers is not loaded.  An attribute of its own: a
        # read costs 9 ns, and a look into the registry 50.
        self.answer: A | None = None

    def set(self, answer: A) -> RegistryHandle:
        """Register the answer.

        Raises:
            AlreadyRegistered: there is an answer.
        """
        handle = self._registry.register(_ANSWER, answer, stacklevel=2)
        self.answer = answer

        def close() -> None:
            handle.close()
            self.answer = self._registry.rows.get(_ANSWER)

        return RegistryHandle(close)

    def get(self) -> A:
        """Return the answer, of an area that is certainly loaded."""
        assert self.answer is not None, f"{self.question}: no area has answered"
        return self.answer


class TraceObserver(Protocol):
    """What a tracer sees; a call is made by it, and its result returned."""

    def read(self, tensor: Any, asked: str) -> None:
        """Something was asked of a tensor that no operator sees."""

    def apply_function(self, function: type, args: tuple[Any, ...]) -> Any:
        """`function.apply(*args)`, of an autograd function."""

    def change(self, name: str, run: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """`run(*args)`, a method that changes the first argument's gradient mode."""

    def call_function(
        self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Record a call of a compiled function."""

    def fork(
        self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Record a fork and return its future."""


# Asked by schemas, answered by tensors.
TENSOR_OF_NUMBER: Hook[Callable[[Any], object]] = Hook("the tensor of a number")
# Asked by tensors, answered by autograd.
RECORDS: Hook[Callable[[], bool]] = Hook("whether the thread records")
# Asked by tensors, answered by dispatch to Python.
APPLY_POLICY: Hook[Callable[[Any, int], None]] = Hook("a handler asked for metadata")
ELEMENT: Hook[Callable[[Any], Any]] = Hook("the one element of a handled tensor")
# Asked by tensors, autograd and programs, answered by tracing.
TRACE_OBSERVER: Hook[TraceObserver] = Hook("the observer of what is traced")
# Asked by steps of programs, answered by what runs them.
PLAN: Hook[Callable[[Any], Any]] = Hook("the plan of a function")
# Asked by whoever compiles together, answered by the emission of bodies.
BODY: Hook[Callable[..., None]] = Hook("the graph of a body")

# Asked by compiled modules, answered by the package `everyorder.runtime`, which sees
# archives: the text of a function, and `save` of a module.
CODE_OF: Hook[Callable[[Any], str]] = Hook("the text of a function")
SAVE: Hook[Callable[..., None]] = Hook("the archive of a module")
# Asked by compiled modules, answered by what builds them.
DEFINE_METHODS: Hook[Callable[[Any, str], None]] = Hook("the methods of a text")
# Asked by keys of tensors, answered by constructors.
FILL: Hook[Callable[..., None]] = Hook("the parts of a tensor of data")

# Device type -> a function that registers its memory, added by `everyorder.runtime`.
MEMORY_PROVIDERS: Registry[str, Callable[[], object]] = Registry(
    "providers of memories"
)


class PlugIn(Closeable):
    """An addition to an area; `close` removes it, and keeps it from being added."""

    __slots__ = ("_added", "_handle", "_install")

    def __init__(self, install: Install) -> None:
        self._install = install
        self._added: ExitStack | None = None
        self._handle: RegistryHandle | None = None

    def add(self) -> None:
        """Make the addition, unless it is made."""
        if self._added is not None:
            return
        with ExitStack() as added:
            for handle in self._install():
                added.callback(handle.close)
            self._added = added.pop_all()

    def close(self) -> None:
        """Remove the addition; closing again has no effect."""
        with LOADING:
            if self._handle is not None:
                self._handle.close()
            if self._added is not None:
                added, self._added = self._added, None
                added.close()


PLUG_INS: Registry[tuple[str, str], PlugIn] = Registry(
    "plug-ins", order=lambda key: key
)
# The areas that are loaded; they are never unloaded.
_LOADED: set[str] = set()


def register_plug_in(area: str, name: str, install: Install) -> PlugIn:
    """Let `install` add to an area, now or when that is loaded.

    Raises:
        AlreadyRegistered: the area has a plug-in of this name.
    """
    plug_in = PlugIn(install)
    with LOADING:
        plug_in._handle = PLUG_INS.register((area, name), plug_in, stacklevel=2)
        if area in _LOADED:
            try:
                plug_in.add()
            except BaseException:
                plug_in.close()
                raise
    return plug_in


def ready(area: str) -> None:
    """Add the plug-ins that are registered for an area, at the end of its loading."""
    with LOADING:
        _LOADED.add(area)
        try:
            for (owner, _), plug_in in PLUG_INS.rows.items():
                if owner == area:
                    plug_in.add()
        except BaseException:
            # The import fails; the next one calls this again.
            _LOADED.discard(area)
            raise
