"""What a lower area gets of a higher one: answers by hooks, and additions by plug-ins.

Imports point one way, so what a tensor needs of autograd, or a schema of tensors,
cannot be imported there.  Each such question is one `Hook` of this file, with the type
of its answer; the area that can answer sets it once, when it is imported.

Several areas may add to one of the compiler's.  An area that is loaded gets an addition
at once; one that is not gets it at the end of its own loading, so that the compiler is
not loaded only to add something to it:

    register_plug_in    what is to be added, and to which area; `close` takes it back
    ready               an area says that it is loaded: the last line of its `__init__`

Rules:
- a hook is set by one module, once; a module whose first import was interrupted sets it
  again, and any other one may not (`AssertionError`);
- `answer` is None until then, where being without an answer means something;
- an area of a plug-in is a package by its full name (`runtime.script.emission`), an
  addition a function that returns a handle for each part that it has added; they are
  closed in the reverse order;
- an addition is made once for each registration, in the order of the registrations;
- this module knows all hooks and no plug-in.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, Protocol, Self, TypeVar

from everyorder.runtime.base.locks import LOADING
from everyorder.runtime.base.registry import Closeable

A = TypeVar("A")

Install = Callable[[], Iterable[Closeable]]


class Hook(Generic[A]):
    """One question, and its answer as soon as the area that has it is imported."""

    __slots__ = ("answer", "question")

    def __init__(self, question: str) -> None:
        self.question = question
        self.answer: A | None = None

    def set(self, answer: A) -> None:
        """Answer it, for the module that made the answer."""
        known = self.answer is None or self.answer.__module__ == answer.__module__
        assert known, f"{self.question}: answered already"
        self.answer = answer

    def get(self) -> A:
        """Return the answer; the area that sets it is loaded."""
        assert self.answer is not None, f"{self.question}: nobody has answered"
        return self.answer


class TraceObserver(Protocol):
    """What a tracer sees; a call is made by it, and its result returned."""

    def read(self, tensor: Any, asked: str) -> None:
        """Something was asked of a tensor that no operator sees."""

    def apply_function(self, function: type, args: tuple[Any, ...]) -> Any:
        """`function.apply(*args)`, of an autograd function."""

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
MEMORY_PROVIDERS: dict[str, Callable[[], object]] = {}

# The areas that are loaded.
_READY: dict[str, None] = {}
# What is registered, oldest first.
_PLUG_INS: list["PlugIn"] = []


class PlugIn:
    """An addition to an area; `close` takes it back."""

    __slots__ = ("area", "handles", "install")

    def __init__(self, area: str, install: Install) -> None:
        self.area = area
        self.install = install
        # The handles of the added parts; None: nothing has been added.
        self.handles: list[Closeable] | None = None

    def add(self) -> None:
        """Make the addition, unless it has been made."""
        if self.handles is None:
            self.handles = []
            self.handles += self.install()

    def close(self) -> None:
        """Take back what was added, and add nothing later; again is harmless."""
        with LOADING:
            if self in _PLUG_INS:
                _PLUG_INS.remove(self)
            while self.handles:
                self.handles.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def register_plug_in(area: str, install: Install) -> PlugIn:
    """Let `install` add to an area: now, or when that has been loaded."""
    plug_in = PlugIn(area, install)
    with LOADING:
        _PLUG_INS.append(plug_in)
        if area in _READY:
            plug_in.add()
    return plug_in


def ready(area: str) -> None:
    """Let everything be added that is registered for an area."""
    with LOADING:
        _READY[area] = None
        for each in tuple(_PLUG_INS):
            if each.area == area:
                each.add()
