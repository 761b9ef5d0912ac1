"""Exits that a signal cannot keep from running: of modes, of guards, of any class."""

import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack
from ctypes import pythonapi
from typing import Any

import pytest

from everyorder.runtime import inference_mode, no_grad
from everyorder.runtime.autograd import autocast, enable_grad, set_grad_enabled
from everyorder.runtime.autograd.graph import (
    disable_saved_tensors_hooks,
    saved_tensors_hooks,
)
from everyorder.runtime.base.exits import Exit
from everyorder.runtime.errors.call import ExitCalledAgain
from everyorder.runtime.keys import (
    DispatchKey,
    exclude_keys,
    force_keys,
    include_keys,
    preserve_keys,
)
from everyorder.runtime.script.tracing.recorder import GraphRecorder
from everyorder.runtime.torch_dispatch import (
    Context,
    TorchDispatchMode,
    disable_current_modes,
    no_dispatch,
)
from tests.injection.tensors import Passing, Thread


class Interrupt(BaseException):
    """What a signal raises."""


@pytest.fixture(autouse=True)
def handled() -> Iterator[None]:
    """Raises `Interrupt` at the signal."""

    def handle(number: int, frame: Any) -> None:
        raise Interrupt

    before = signal.signal(signal.SIGALRM, handle)
    yield
    signal.signal(signal.SIGALRM, before)


MANAGERS: dict[str, Callable[[], Any]] = {
    "no_grad": no_grad,
    "enable_grad": enable_grad,
    "set_grad_enabled": lambda: set_grad_enabled(False),
    "inference_mode": inference_mode,
    "autocast": lambda: autocast("cpu"),
    "saved_tensors_hooks": lambda: saved_tensors_hooks(abs, abs),
    "disable_saved_tensors_hooks": lambda: disable_saved_tensors_hooks("none"),
    "a mode": Passing,
    "disable_current_modes": disable_current_modes,
    "no_dispatch": no_dispatch,
    "include_keys": lambda: include_keys(DispatchKey.Tracer),
    "exclude_keys": lambda: exclude_keys(DispatchKey.AutogradCPU),
    "preserve_keys": preserve_keys,
    "force_keys": lambda: force_keys(DispatchKey.Python, DispatchKey.Tracer),
    "a recorder of traces": GraphRecorder,
    "a context": lambda: Context("interrupted"),
}


class Sends:
    """Has a subscript that sends a signal; nobody looks for signals behind one."""

    __getitem__ = pythonapi.PyErr_SetInterruptEx


def interrupt_the_exit(manager: AbstractContextManager[Any]) -> None:
    """Leave a block while a signal waits that was not seen inside of it."""
    sends: Any = Sends()
    with manager:
        sends[signal.SIGALRM]


@pytest.mark.parametrize("name", MANAGERS)
def test_a_signal_at_the_exit(name: str) -> None:
    thread = Thread()
    for _ in range(3):
        with pytest.raises(Interrupt):
            interrupt_the_exit(MANAGERS[name]())
        assert thread.unchanged()


class Guard:
    """Counts how often it is entered and left."""

    def __init__(self) -> None:
        self.entered = self.left = 0

    def __enter__(self) -> "Guard":
        self.entered += 1
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
                self.left += 1


def test_an_exit_is_called_once_whoever_calls_it() -> None:
    guard = Guard()
    with guard:
        assert guard.left == 0
    with pytest.raises(ZeroDivisionError), guard:
        raise ZeroDivisionError
    with ExitStack() as stack:
        stack.enter_context(guard)
    guard.__enter__().__exit__(None, None, None)
    assert (guard.entered, guard.left) == (4, 4)
    with pytest.raises(Interrupt):
        interrupt_the_exit(guard)
    assert (guard.entered, guard.left) == (5, 5)


def test_an_exit_that_is_read_and_not_called_does_nothing() -> None:
    guard = Guard()
    leave = guard.__enter__().__exit__
    del leave
    assert guard.left == 0


def test_an_exit_that_was_read_leaves_once() -> None:
    guard = Guard()
    leave = guard.__enter__().__exit__
    leave(None, None, None)
    for _ in range(2):
        with pytest.raises(ExitCalledAgain, match="has left it"):
            leave(None, None, None)
    assert guard.left == 1


def test_an_error_of_an_exit_is_raised_by_it() -> None:
    mode = no_grad()
    with pytest.raises(RuntimeError, match="more often than it was entered"):
        mode.__exit__(None, None, None)


def test_a_mode_can_be_left_in_a_subclass() -> None:
    thread, left = Thread(), list[Any]()

    class Noting(Passing):
        def __exit__(self, *exception: object) -> None:
            left.append(exception)
            super().__exit__(*exception)

    assert issubclass(Noting, TorchDispatchMode)
    with Noting():
        pass
    assert left == [(None, None, None)]
    assert thread.unchanged()
