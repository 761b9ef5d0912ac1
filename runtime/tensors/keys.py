"""The dispatch keys of a tensor, and its handler in Python.

A tensor has the key of its device, `ADInplaceOrView`, the autograd key of its backend,
and the autocast key of its backend where the model has one (Meta has none).
`requires_grad` does not matter: whether a gradient is wanted is decided by the kernel
at the autograd key.  Tensors made in inference mode carry neither `ADInplaceOrView` nor
an autograd key; autograd's mode sets `inference.active` for its thread.

Dispatch to Python and tracing are areas far above.  Tensors know of them by bits: that
a class has a handler is a bit of `key_bits`, that a thread is traced is its key
`Tracer`, and what modes a thread has entered is in `STATE`.

Rules:
- a class has a handler if it has a `__torch_dispatch__` that is not `disabled`; that is
  asked once for each tensor, when it is made;
- elements of a tensor that is handled are read by an operator, so that the handler
  hears of it, and never leave as an array;
- what is asked of a tensor past all operators is told to the tracer (`tell`);
- every call asks for modes, and nearly no process has a thread in one: the sets
  `INFERRING` and `MODED`, which all threads share, say so at a fifth of the cost.
"""

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol
from weakref import ref

from everyorder.runtime.base.hooks import FILL, TRACE_OBSERVER, TraceObserver
from everyorder.runtime.errors.torch_dispatch import HandlerError, SubclassError
from everyorder.runtime.keys import (
    LOCAL,
    DispatchKey,
    KeySet,
    autograd_key_of,
    full_after,
    key_of_device,
)
from everyorder.runtime.keys.keyset import FULL
from everyorder.runtime.keys.local import View, view_of

# A `Presence` for each time that a thread has entered inference mode.
INFERRING: set[ref[Any]] = set()


class _Inference(threading.local):
    """Whether the thread makes inference tensors; a thread starts without.

    As long as it is set, a `Presence` is in `INFERRING`.
    """

    active: bool = False


inference = _Inference()

# device type -> the bits of a fresh tensor, outside and inside of inference mode
_FRESH: dict[str, int] = {}
_FRESH_INFERENCE: dict[str, int] = {}


@cache
def keys_of(kind: str) -> KeySet:
    """The keys of a plain tensor on a device type.  Raises `UnknownDevice`."""
    key = key_of_device(kind)
    keys = [key, DispatchKey.ADInplaceOrView, autograd_key_of(key.backend)]
    return KeySet([*keys, *_autocast(key)])


@cache
def inference_keys_of(kind: str) -> KeySet:
    """The keys of a tensor made in inference mode.  Raises `UnknownDevice`."""
    key = key_of_device(kind)
    return KeySet([key, *_autocast(key)])


def fresh_key_bits(kind: str) -> int:
    """The bits of a tensor that this thread makes now on a device type.

    Raises `UnknownDevice`.
    """
    active = bool(INFERRING) and inference.active
    found = (_FRESH_INFERENCE if active else _FRESH).get(kind)
    return _fresh(kind, active) if found is None else found


def _fresh(kind: str, active: bool) -> int:
    if active:
        return _FRESH_INFERENCE.setdefault(kind, inference_keys_of(kind).bits)
    return _FRESH.setdefault(kind, keys_of(kind).bits)


def _autocast(key: DispatchKey) -> tuple[DispatchKey, ...]:
    name = f"Autocast{key.backend}"
    return (DispatchKey[name],) if name in DispatchKey else ()


TRACER = DispatchKey.Tracer.bits


def tell(tensor: Any, asked: str) -> None:
    """Something is asked of a tensor that no operator sees."""
    observer = trace_observer()
    if observer is not None:
        observer.read(tensor, asked)


def trace_observer() -> TraceObserver | None:
    """The tracer that watches the thread now, or None."""
    view = LOCAL.view
    return TRACE_OBSERVER.answer if view.included & ~view.excluded & TRACER else None


def backend_select(place: int) -> Callable[[Any, KeySet], Callable[..., Any]]:
    """The factory of a linked kernel at BackendSelect: on to the backend of a device.

    `place` is where the device stands among the arguments; None is the CPU.
    """

    def select(below: Any, keyset: KeySet) -> Callable[..., Any]:
        backends: dict[str, Callable[..., Any]] = {}

        def run(*arguments: Any) -> Any:
            device = arguments[place]
            kind = "cpu" if device is None else device.type
            kernel = backends.get(kind)
            if kernel is None:
                kernel = backends[kind] = below.for_keyset(
                    KeySet([key_of_device(kind)])
                )
            return kernel(*arguments)

        return run

    return select


class Keyed(Protocol):
    """A tensor, to the dispatcher."""

    key_bits: int


# The bit that has a handler called, and those that a tensor with one carries.
PYTHON = DispatchKey.Python.bits
HANDLED = PYTHON | DispatchKey.PythonTLSSnapshot.bits
# Every bit but these: what a plain tensor keeps of the keys of one with a handler.
UNHANDLED = FULL.bits & ~HANDLED

# The keys at which calls are seen, by handlers and tracers.
_SEEN = PYTHON | TRACER

# The keys between Python and PythonDispatcher, which looks at calls only.
ABOVE = full_after(DispatchKey.PythonDispatcher).bits & ~(
    full_after(DispatchKey.Python).bits | PYTHON
)


class Presence:
    """Is in a set, which all threads share, as long as it lives.

    It goes with what holds it, also where a thread ends.  No code in Python runs at its
    end, so that nothing can interrupt it.
    """

    __slots__ = ("__weakref__",)

    def __init__(self, among: "set[ref[Any]]") -> None:
        among.add(ref(self, among.discard))


# The entries of all stacks of modes, of every thread.
MODED: set[ref[Any]] = set()


class _ThreadModes(threading.local):
    """The modes and the context of a thread; a new one starts without modes.

    `stack` holds the modes that were entered, outermost first; `snapshot` is what the
    thread included and excluded when the outermost call was dispatched to Python, None
    outside of one; `context` is the interpreter that new tensors with handlers are of.
    `thread` is no other thread's.  All of them lie in the thread's `__dict__`.
    """

    stack: tuple[Any, ...]
    snapshot: View | None
    # What a new thread starts with; the area that has contexts says which.
    context: Any = None

    def __init__(self) -> None:
        self.stack, self.snapshot, self.context = (), None, type(self).context
        self.thread = object()


STATE = _ThreadModes()


class _Disabled:
    """The handler of classes without one; see `disabled`."""

    __slots__ = ()
    __name__ = "disabled"

    def __call__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if not isinstance(args, (list, tuple)):
            raise HandlerError(
                code="WrongSuperCall",
                handler="Tensor.__torch_dispatch__",
                argument="args",
                expected="a list or tuple",
                found=f"a {type(args).__name__}",
            )
        view = LOCAL.view
        LOCAL.view = view_of(view.included, view.excluded | ABOVE | PYTHON)
        try:
            return func(*args, **(kwargs or {}))
        finally:
            LOCAL.view = view

    def __repr__(self) -> str:
        return "<disabled __torch_dispatch__>"

    def __reduce__(self) -> str:
        return "disabled"


# What `Tensor.__torch_dispatch__` is, and what a class is given that wants no handler.
# Called as a handler is, it runs the operator with Python and all above switched off,
# also for calls inside of it.  Raises `HandlerError`.
disabled = _Disabled()


def handler_bits(kind: type) -> int:
    """The key bits of the handler of a class: `HANDLED`, or 0 without one.

    A class above this one may have it, or the class's own class.
    """
    found = getattr(kind, "__torch_dispatch__", None)
    return 0 if found is None or found is disabled else HANDLED


def is_handled(tensor: Keyed) -> bool:
    """Whether a call with the tensor would be dispatched to Python, here and now.

    What a traced thread calls is, to the tracer.
    """
    view = LOCAL.view
    return bool((tensor.key_bits | view.included) & ~view.excluded & _SEEN)


def check_unhandled(tensor: Keyed, asked: str) -> None:
    """Whether the elements may leave as an array.  Raises `SubclassError`."""
    tell(tensor, asked)
    if tensor.key_bits & PYTHON:
        raise SubclassError(
            code="NotForSubclasses", cls=type(tensor).__name__, asked=asked
        )


def init_from_data(tensor: Keyed, *args: Any, **kwargs: Any) -> None:
    """The `__init__` of subclasses, which does nothing if `__new__` made the tensor.

    Else the tensor is made of the data or sizes given, as by `Tensor(...)`.
    Raises `SubclassError` for one with a handler, which decides what it is made of, and
    as `runtime.tensors.from_data.fill`.
    """
    try:
        tensor.key_bits  # noqa: B018  # asked for, not used: is it made?
    except AttributeError:
        if handler_bits(type(tensor)):
            raise SubclassError(code="NotMade", cls=type(tensor).__name__) from None
        FILL.get()(tensor, *args, **kwargs)
