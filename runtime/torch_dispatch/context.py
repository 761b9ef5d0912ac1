"""Contexts: several interpreters in one process.

A context has a name, classes and modes, and may be closed.
`runtime.torch_dispatch.context_library` registers and selects its kernels.

    plugin = Context("plugin")
    with plugin:                        # this thread is in it
        kernels = plugin.library("core", "IMPL", "CPU")
        kernels.impl("mul", theirs)     # `MAIN` has one there, too: see below
        x = Wrapper(...)                # is handled in `plugin`, for every caller

Rules:
- `MAIN` always exists; threads start in it; it is the only context that registers with
  the dispatcher, and registrations of other contexts are verified against it
  (`runtime.torch_dispatch.context_library`);
- a tensor with a handler belongs to the context that was current when it was created,
  and an entered mode to the one that was current when it was entered; handlers and
  copies of kernels run in their own context;
- a context does not keep its classes and modes alive; its libraries own its kernels;
- closing releases all of these at once. A running call finishes; new requests to the
  context are refused, but leaving it, its modes or its libraries is always possible.
"""

import threading
from collections.abc import Generator
from typing import Any, ClassVar, NoReturn, Self
from weakref import WeakKeyDictionary, WeakSet, ref

from everyorder.runtime.base.exits import Exit
from everyorder.runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from everyorder.runtime.dispatch.library import KeyLike, Library, origin_of_caller
from everyorder.runtime.errors.torch_dispatch import ContextError
from everyorder.runtime.tensors.keys import PYTHON, STATE
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.torch_dispatch.context_library import (
    CHANGED,
    MainLibrary,
    VerifiedLibrary,
    count_context,
)
from everyorder.runtime.torch_dispatch.wrappers import check_class

# Seconds; the time that torch's deployed interpreters wait for the first one.
TIMEOUT = 2.0


class _EnteredContexts(threading.local):
    """The contexts that a thread is in, each with the previous one; innermost last."""

    pairs: tuple[tuple["Context", "Context"], ...] = ()


_ENTERED = _EnteredContexts()


class Context:
    """An interpreter: classes, modes and kernels that belong together.

    `timeout` is the number of seconds to wait until the main context registers the
    same; it may be set at any time. `alive` is True while the context is open,
    `registrar` is True for the main context.
    """

    __slots__ = (
        "__weakref__",
        "_libraries",
        "_own",
        "alive",
        "name",
        "noted",
        "timeout",
    )

    registrar: ClassVar[bool] = False

    def __init__(self, name: str, *, timeout: float = TIMEOUT) -> None:
        self.name = name
        self.timeout = timeout
        self.alive = True
        if not self.registrar:
            count_context(self)
        # Identity -> class, as classes need not be hashable. The id of a dead class may
        # be used again by another class: then the reference differs.
        self.noted: dict[int, ref[type[Tensor]]] = {}
        self._libraries: WeakSet[Library] = WeakSet()
        # The dispatcher of this context for each main dispatcher.
        self._own: WeakKeyDictionary[Dispatcher, Dispatcher] = WeakKeyDictionary()

    def library(
        self,
        ns: str,
        kind: str = "DEF",
        dispatch_key: KeyLike | None = None,
        *,
        dispatcher: Dispatcher | None = None,
        origin: str | None = None,
    ) -> Library:
        """Return a library of the context: the main one registers, others do as it
        does.

        The arguments are those of `Library`; see
        `runtime.torch_dispatch.context_library`.

        Raises:
            ContextError: the context is closed.
            LibraryMisuse, Conflict: as `Library`, and as its methods do.
        """
        self.check_open(f"Context.library({ns!r}, {kind!r})")
        if origin is None:
            origin = origin_of_caller()
        main = dispatcher or default_dispatcher()
        return self._library(main, ns, kind, dispatch_key, origin)

    def _library(
        self,
        main: Dispatcher,
        ns: str,
        kind: str,
        dispatch_key: KeyLike | None,
        origin: str,
    ) -> Library:
        call = f"Context.library({ns!r}, {kind!r})"
        own = self._own_dispatcher(main, call)
        library = VerifiedLibrary(self, main, own, ns, kind, dispatch_key, origin)
        with CHANGED:
            self._libraries.add(library)
            alive = self.alive
        if not alive:
            library.close()
            self.check_open(call)
        return library

    def own(self, dispatcher: Dispatcher) -> Dispatcher | None:
        """Return the dispatcher with this context's copies, or None if it has none."""
        return self._own.get(dispatcher)

    def modes(self) -> tuple[Any, ...]:
        """Return the modes of this context that the thread has entered, outermost
        first.
        """
        return tuple(each.mode for each in STATE.stack if each.context is self)

    def classes(self) -> tuple[type[Tensor], ...]:
        """Return its classes with handlers, in order.

        These are the registered classes, and the classes of tensors created in the
        context.
        """
        classes = (reference() for reference in tuple(self.noted.values()))
        return tuple(cls for cls in classes if cls is not None)

    def register_class(self, cls: type[Tensor]) -> None:
        """Register a class of tensors in the context; several contexts may share it.

        Raises:
            ContextError: the context is closed.
            SubclassError, HandlerError: tensors of this class cannot be created.
        """
        call = "Context.register_class"
        check_class(cls, call)
        self.check_open(f"{call}({cls.__name__})")
        self.note(cls)

    def close(self) -> None:
        """Release everything that belongs to the context; a second call has no effect.

        Raises:
            ContextError: this is the main context.
        """
        with CHANGED:
            self.alive = False
            libraries, owned = tuple(self._libraries), tuple(self._own.values())
            self._own.clear()
            CHANGED.notify_all()
        # Kernels are freed here, with all objects that they refer to; finalizers may
        # run arbitrary code.
        for library in libraries:
            library.close()
        for own in owned:
            own.drain()
        self.noted.clear()

    def check_open(self, call: str) -> None:
        """Check that the context is open.

        Raises:
            ContextError: the context is closed.
        """
        if not self.alive:
            raise ContextError(code="ContextClosed", context=self.name, asked=call)

    def _own_dispatcher(self, main: Dispatcher, call: str) -> Dispatcher:
        with CHANGED:
            self.check_open(call)
            own = self._own.get(main)
            if own is None:
                own = self._own[main] = Dispatcher(
                    builtin_fallbacks=False,
                    merges_alias_kinds=main.state.merges_alias_kinds,
                    warns_of_overrides=main.warns_of_overrides,
                )
        return own

    def note(self, cls: type[Tensor]) -> None:
        """Record that a tensor of a class was created here; the reference is weak."""
        noted = self.noted
        if noted.get(id(cls)) is not ref(cls) and self.alive:
            for number, reference in tuple(noted.items()):
                if reference() is None:
                    noted.pop(number, None)
            noted[id(cls)] = ref(cls)

    def __enter__(self) -> Self:
        self.check_open(f"with {self!r}")
        entered: tuple[Context, Context] = self, STATE.context
        pairs = *_ENTERED.pairs, entered
        # In one statement, with no call in between: a signal never sees one without the
        # other.
        _ENTERED.pairs, STATE.context = pairs, self
        return self

    @Exit
    def __exit__(self) -> Generator[None, None, None]:
        freed = False
        try:
            yield
        except GeneratorExit:
            freed = True
        finally:
            if not freed:
                pairs = _ENTERED.pairs
                if not pairs or pairs[-1][0] is not self:
                    raise ContextError(
                        code="ContextNotEntered",
                        context=self.name,
                        current=STATE.context.name,
                    )
                _ENTERED.pairs, STATE.context = pairs[:-1], pairs[-1][1]

    def __repr__(self) -> str:
        return f"<Context {self.name}{'' if self.alive else ', closed'}>"


class _Main(Context):
    """The main context, which always exists and registers with the dispatcher."""

    __slots__ = ()

    registrar = True

    def _library(
        self,
        main: Dispatcher,
        ns: str,
        kind: str,
        dispatch_key: KeyLike | None,
        origin: str,
    ) -> Library:
        return MainLibrary(ns, kind, dispatch_key, dispatcher=main, origin=origin)

    def close(self) -> NoReturn:
        raise ContextError(code="MainStaysOpen", context=self.name)


MAIN: Context = _Main("main")
# The context in which every thread starts; this thread has started already.
type(STATE).context = STATE.context = MAIN


def current_context() -> Context:
    """Return the current context of the thread."""
    context: Context = STATE.context
    return context


def check_wrapped_here(tensor: Tensor, call: str) -> None:
    """Check that a tensor may be wrapped in the current context.

    `call` names the function that wraps it, for the error.

    Raises:
        ContextError: the tensor belongs to another context.
    """
    if not tensor.key_bits & PYTHON:
        return
    # A tensor whose keys were set by hand does not have a context.
    context: Context = getattr(tensor, "_context", STATE.context)
    if context is not STATE.context:
        raise ContextError(
            code="WrappedElsewhere",
            call=call,
            cls=type(tensor).__name__,
            context=STATE.context.name,
            other=context.name,
        )
