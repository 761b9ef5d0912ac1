"""Tensors whose class, or whose thread, handles operators in Python.

True only here: how tensors and their elements know of dispatch to Python, which is an
area far above: who has a handler is told by a bit of `key_bits`, and what the thread is
in by `STATE`.

Rules:
- a class has a handler if it has a `__torch_dispatch__` that is not `disabled`; that is
  asked once for each tensor, when it is made;
- elements of a tensor that is handled are read by an operator, so that the handler
  hears of it, and never leave as an array;
- who asks whether that is so pays for the test of a bit and of an empty set.
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import ref

from runtime.errors.python_dispatch import NotForSubclasses, NotMade, WrongSuperCall
from runtime.keys import LOCAL, DispatchKey, full_after
from runtime.keys.keyset import FULL
from runtime.keys.local import View, view_of
from runtime.locks import load
from runtime.tensors.traced import TRACER, tell

if TYPE_CHECKING:
    from runtime.tensors.tensor import Tensor

# The bit that has a handler called, and those that a tensor with one carries.
PYTHON = DispatchKey.Python.bits
HANDLED = PYTHON | DispatchKey.PythonTLSSnapshot.bits
# Every bit but these: what a plain tensor keeps of the keys of one with a handler.
UNHANDLED = FULL.bits & ~HANDLED

# With either of these in a call, somebody sees it.
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

# What reads the one element of a tensor that is handled: the last one does.
READERS: list[Callable[["Tensor"], Any]] = []


class _State(threading.local):
    """What a thread is in; a new one starts with nothing.

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


STATE = _State()


class _Disabled:
    """The handler of those who have none; see `disabled`."""

    __slots__ = ()
    __name__ = "disabled"

    def __call__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if not isinstance(args, (list, tuple)):
            raise WrongSuperCall(
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
# also for calls inside of it.  Raises `WrongSuperCall`.
disabled = _Disabled()


def handler_bits(kind: type) -> int:
    """What a new tensor of that class carries for its handler: `HANDLED`, or nothing.

    A class above this one may have it, or the class's own class.
    """
    found = getattr(kind, "__torch_dispatch__", None)
    return 0 if found is None or found is disabled else HANDLED


def is_handled(tensor: "Tensor") -> bool:
    """Whether a call with the tensor would be dispatched to Python, here and now.

    What a traced thread calls is, to the tracer.
    """
    view = LOCAL.view
    return bool((tensor.key_bits | view.included) & ~view.excluded & _SEEN)


def check_unhandled(tensor: "Tensor", asked: str) -> None:
    """Whether the elements may leave as an array.  Raises `NotForSubclasses`."""
    tell(tensor, asked)
    if tensor.key_bits & PYTHON:
        raise NotForSubclasses(cls=type(tensor).__name__, asked=asked)


def made_elsewhere(tensor: "Tensor", *args: Any, **kwargs: Any) -> None:
    """What subclasses have for `__init__`: nothing is left to do, or all of it.

    A tensor that nobody made is one of the data or sizes given, as `Tensor(...)` is.
    Raises `NotMade` for one with a handler, which decides what it is made of, and as
    `runtime.tensors.data.fill`.
    """
    try:
        tensor.key_bits  # noqa: B018  # asked for, not used: is it made?
    except AttributeError:
        if handler_bits(type(tensor)):
            raise NotMade(cls=type(tensor).__name__) from None
        load("runtime.tensors.data").fill(tensor, *args, **kwargs)
