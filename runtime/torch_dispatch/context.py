"""Contexts: several interpreters in one process.

A context has a name, classes and modes, and may be closed.  Its kernels are found by
`runtime.torch_dispatch.context_library`.

    plugin = Context("plugin")
    with plugin:                        # this thread is in it
        kernels = plugin.library("core", "IMPL", "CPU")
        kernels.impl("mul", theirs)     # `MAIN` has one there, too: see below
        x = Wrapper(...)                # is handled in `plugin`, whoever calls

Rules:
- `MAIN` is there from the start; threads start in it; it alone registers with the
  dispatcher, and what others register is held to it
  (`runtime.torch_dispatch.context_library`);
- a tensor with a handler is of the context that was current when it was made; so is a
  mode that was entered; handlers and copies of kernels run in their own context;
- a context keeps none of its classes and modes alive, and its kernels by its libraries;
- closing lets go of all that at once.  A call that is running comes to its end; what is
  asked of the context from then on is refused, and to leave it, its modes or its
  libraries is always possible.
"""

import threading
from typing import Any, ClassVar, NoReturn, Self
from weakref import WeakKeyDictionary, WeakSet, ref

from everyorder.runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from everyorder.runtime.dispatch.library import KeyLike, Library, origin_of_caller
from everyorder.runtime.errors.torch_dispatch import ContextError
from everyorder.runtime.tensors.keys import PYTHON, STATE
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.torch_dispatch.context_library import (
    CHANGED,
    OTHERS,
    MainLibrary,
    VerifiedLibrary,
)
from everyorder.runtime.torch_dispatch.wrappers import check_class

# Seconds; what torch's deployed interpreters wait for the first one.
TIMEOUT = 2.0


class _EnteredContexts(threading.local):
    """The contexts that a thread is in, each with the one before; innermost last."""

    pairs: tuple[tuple["Context", "Context"], ...] = ()


_ENTERED = _EnteredContexts()


class Context:
    """An interpreter: classes, modes and kernels that belong together.

    `timeout` is how many seconds it waits for the main context to register what it
    registers itself; it may be set at any time.  `alive` says that it is open, and
    `registrar` that it is the main one.
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
            OTHERS.add(ref(self, OTHERS.discard))
        # Identity -> class, as classes need not be hashable.  A dead one's may be that
        # of another class: its reference is another one, too.
        self.noted: dict[int, ref[type[Tensor]]] = {}
        self._libraries: WeakSet[Library] = WeakSet()
        # What was registered beside each dispatcher.
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
        """A library of the context: the main one registers, others do as it does.

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
        made = VerifiedLibrary(self, main, own, ns, kind, dispatch_key, origin)
        with CHANGED:
            self._libraries.add(made)
            alive = self.alive
        if not alive:
            made.close()
            self.check_open(call)
        return made

    def own(self, dispatcher: Dispatcher) -> Dispatcher | None:
        """Where the copies are that it has beside a dispatcher; None if it has none."""
        return self._own.get(dispatcher)

    def modes(self) -> tuple[Any, ...]:
        """Those of its modes that this thread has entered, outermost first."""
        return tuple(each.mode for each in STATE.stack if each.context is self)

    def classes(self) -> tuple[type[Tensor], ...]:
        """Its classes with handlers, in order: registered, or of tensors made in it."""
        found = (reference() for reference in tuple(self.noted.values()))
        return tuple(cls for cls in found if cls is not None)

    def register_class(self, cls: type[Tensor]) -> None:
        """Count a class of tensors among its own; several contexts may have it.

        Raises:
            ContextError: the context is closed.
            SubclassError, HandlerError: no tensors can be made of it.
        """
        call = "Context.register_class"
        check_class(cls, call)
        self.check_open(f"{call}({cls.__name__})")
        self.note(cls)

    def close(self) -> None:
        """Let go of what belongs to it; the second time nothing happens.

        Raises `ContextError` for the main one.
        """
        with CHANGED:
            self.alive = False
            libraries, owned = tuple(self._libraries), tuple(self._own.values())
            self._own.clear()
            CHANGED.notify_all()
        # Kernels go here: with them whatever they refer to, by no matter what code.
        for library in libraries:
            library.close()
        for own in owned:
            own.drain()
        self.noted.clear()

    def check_open(self, asked: str) -> None:
        """Whether something new can be asked of it.  Raises `ContextError`."""
        if not self.alive:
            raise ContextError(code="ContextClosed", context=self.name, asked=asked)

    def _own_dispatcher(self, main: Dispatcher, call: str) -> Dispatcher:
        with CHANGED:
            self.check_open(call)
            found = self._own.get(main)
            if found is None:
                found = self._own[main] = Dispatcher(
                    builtin_fallbacks=False,
                    merges_alias_kinds=main.state.merges_alias_kinds,
                    warns_of_overrides=main.warns_of_overrides,
                )
        return found

    def note(self, cls: type[Tensor]) -> None:
        """Note that a tensor of a class was made here; classes are held weakly."""
        known = self.noted
        if known.get(id(cls)) is not ref(cls) and self.alive:
            for number, reference in tuple(known.items()):
                if reference() is None:
                    known.pop(number, None)
            known[id(cls)] = ref(cls)

    def __enter__(self) -> Self:
        self.check_open(f"with {self!r}")
        entered: tuple[Context, Context] = self, STATE.context
        pairs = *_ENTERED.pairs, entered
        # Together, with no call in between: no signal finds one without the other.
        _ENTERED.pairs, STATE.context = pairs, self
        return self

    def __exit__(self, *_exception: object) -> None:
        pairs = _ENTERED.pairs
        if not pairs or pairs[-1][0] is not self:
            raise ContextError(
                code="ContextNotEntered", context=self.name, current=STATE.context.name
            )
        _ENTERED.pairs, STATE.context = pairs[:-1], pairs[-1][1]

    def __repr__(self) -> str:
        return f"<Context {self.name}{'' if self.alive else ', closed'}>"


class _Main(Context):
    """The context that is there from the start, and registers."""

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
# What every thread starts in, and this one, which has started.
type(STATE).context = STATE.context = MAIN


def current_context() -> Context:
    """The context that the thread is in."""
    found: Context = STATE.context
    return found


def check_wrapped_here(tensor: Tensor, call: str) -> None:
    """Whether a tensor may be made of another one here.  Raises `ContextError`.

    `call` is what makes it.
    """
    if not tensor.key_bits & PYTHON:
        return
    # A tensor whose keys were set by hand has no context.
    context: Context = getattr(tensor, "_context", STATE.context)
    if context is not STATE.context:
        raise ContextError(
            code="WrappedElsewhere",
            call=call,
            cls=type(tensor).__name__,
            context=STATE.context.name,
            other=context.name,
        )
