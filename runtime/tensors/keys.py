"""The dispatch keys of a tensor, and its handler in Python.

A tensor has the key of its device, `ADInplaceOrView`, the autograd key of its backend,
and the autocast key of its backend if the model has one (Meta has none).
`requires_grad` does not matter: the kernel at the autograd key decides if a gradient is
recorded.  Tensors made in inference mode have neither `ADInplaceOrView` nor an autograd
key; autograd's mode sets `inference.active` for its thread.

Dispatch to Python and tracing are higher areas.  Tensors represent their state as bits:
a bit of `key_bits` for a class with a handler, the key `Tracer` for a traced thread,
and the entered modes of a thread in `STATE`.

Rules:
- a class has a handler if its `__torch_dispatch__` is not `disabled`; this is checked
  once for each tensor, at its creation;
- an operator reads the elements of a handled tensor, so that the handler sees the
  access; they never leave as an array;
- accesses to a tensor that bypass all operators are reported to the tracer
  (`report_read`);
- every call needs to know if a mode is active, and few processes have one: the shared
  sets `INFERRING` and `MODED` answer at a fifth of the cost of a thread local.
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

# A `Presence` for each active inference mode of each thread.
INFERRING: set[ref[Any]] = set()


class _Inference(threading.local):
    """True if the thread makes inference tensors; a thread starts with False.

    While it is set, a `Presence` is in `INFERRING`.
    """

    active: bool = False


inference = _Inference()

# device type -> the bits of a fresh tensor, outside and inside of inference mode
_FRESH: dict[str, int] = {}
_FRESH_INFERENCE: dict[str, int] = {}


@cache
def keys_of(kind: str) -> KeySet:
    """Return the keys of a plain tensor on a device type.  Raises `UnknownDevice`."""
    key = key_of_device(kind)
    keys = [key, DispatchKey.ADInplaceOrView, autograd_key_of(key.backend)]
    return KeySet([*keys, *_autocast(key)])


@cache
def inference_keys_of(kind: str) -> KeySet:
    """Return the keys of a tensor made in inference mode.  Raises `UnknownDevice`."""
    key = key_of_device(kind)
    return KeySet([key, *_autocast(key)])


def fresh_key_bits(kind: str) -> int:
    """Return the key bits of a tensor that this thread makes now on a device type.

    Raises:
        UnknownDevice: there is no such device type.
    """
    active = bool(INFERRING) and inference.active
    bits = (_FRESH_INFERENCE if active else _FRESH).get(kind)
    return _fresh(kind, active) if bits is None else bits


def _fresh(kind: str, active: bool) -> int:
    if active:
        return _FRESH_INFERENCE.setdefault(kind, inference_keys_of(kind).bits)
    return _FRESH.setdefault(kind, keys_of(kind).bits)


def _autocast(key: DispatchKey) -> tuple[DispatchKey, ...]:
    name = f"Autocast{key.backend}"
    return (DispatchKey[name],) if name in DispatchKey else ()


TRACER = DispatchKey.Tracer.bits


def report_read(tensor: Any, operation: str) -> None:
    """Report an access that bypasses all operators to the tracer, if any."""
    observer = trace_observer()
    if observer is not None:
        observer.read(tensor, operation)


def trace_observer() -> TraceObserver | None:
    """Return the tracer of the thread, or None if it is not tracing."""
    view = LOCAL.view
    return TRACE_OBSERVER.answer if view.included & ~view.excluded & TRACER else None


def backend_select(place: int) -> Callable[[Any, KeySet], Callable[..., Any]]:
    """Return the factory of a linked BackendSelect kernel, which picks the backend.

    `place` is the index of the device among the arguments; the device None is the CPU.
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
    """A tensor as the dispatcher sees it: an object with key bits."""

    key_bits: int


# The bit that calls a handler, and the bits of a tensor with a handler.
PYTHON = DispatchKey.Python.bits
HANDLED = PYTHON | DispatchKey.PythonTLSSnapshot.bits
# All other bits: the keys that a plain tensor shares with one with a handler.
UNHANDLED = FULL.bits & ~HANDLED

# The keys at which handlers and tracers see calls.
_SEEN = PYTHON | TRACER

# The keys between Python and PythonDispatcher, which only observes calls.
ABOVE = full_after(DispatchKey.PythonDispatcher).bits & ~(
    full_after(DispatchKey.Python).bits | PYTHON
)


class Presence:
    """A weak entry in a set that all threads share, as long as this object lives.

    It is released with its holder, also when a thread ends.  Its removal runs no Python
    code, so that nothing can interrupt it.
    """

    __slots__ = ("__weakref__",)

    def __init__(self, among: "set[ref[Any]]") -> None:
        among.add(ref(self, among.discard))


# The entries of the mode stacks of all threads.
MODED: set[ref[Any]] = set()


class _ThreadModes(threading.local):
    """The modes and the context of a thread; a new thread starts without modes.

    `stack` holds the entered modes, outermost first.  `snapshot` is the included and
    excluded keys of the thread when the outermost call was dispatched to Python, None
    outside of such a call.  `context` is the interpreter context of new tensors with
    handlers. `thread` is unique to the thread.  All are in the thread's `__dict__`.
    """

    stack: tuple[Any, ...]
    snapshot: View | None
    # The context of a new thread; the area that defines contexts sets it.
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


# The value of `Tensor.__torch_dispatch__`, and of a subclass that disables its handler.
# Called like a handler, it runs the operator with Python and all keys above excluded,
# also in nested calls.  Raises `HandlerError`.
disabled = _Disabled()


def handler_bits(kind: type) -> int:
    """Return the key bits of the handler of a class: `HANDLED`, or 0 without one.

    The handler may be inherited or defined by the class itself.
    """
    handler = getattr(kind, "__torch_dispatch__", None)
    return 0 if handler is None or handler is disabled else HANDLED


def is_handled(tensor: Keyed) -> bool:
    """Return True if this thread would dispatch a call with the tensor to Python.

    A traced thread dispatches every call, to the tracer.
    """
    view = LOCAL.view
    return bool((tensor.key_bits | view.included) & ~view.excluded & _SEEN)


def check_unhandled(tensor: Keyed, operation: str) -> None:
    """Report an access to the tracer; refuse an export of elements past a handler.

    Raises:
        SubclassError: the class of the tensor has a handler.
    """
    report_read(tensor, operation)
    if tensor.key_bits & PYTHON:
        raise SubclassError(
            code="NotForSubclasses", cls=type(tensor).__name__, asked=operation
        )


def init_from_data(tensor: Keyed, *args: Any, **kwargs: Any) -> None:
    """Initialize a tensor of a subclass, unless `__new__` has already initialized it.

    The tensor is built from data or sizes, as by `Tensor(...)`.

    Raises:
        SubclassError: the class has a handler, which must create its tensors itself;
            other errors as in `runtime.tensors.from_data.fill`.
    """
    try:
        tensor.key_bits  # noqa: B018  # raises AttributeError before initialization
    except AttributeError:
        if handler_bits(type(tensor)):
            raise SubclassError(code="NotMade", cls=type(tensor).__name__) from None
        FILL.get()(tensor, *args, **kwargs)
