"""Exceptions of users, whose methods may raise, and interrupts, which must be raised.

    traceback_of, set_traceback, cause_of, context_of    the fields of any exception
    is_interrupt     whether an exception ends the program, not only the current work

Rules:
- a class of exceptions may define `__getattribute__`, and properties of any name: the
  fields are read and written by the getters of `BaseException` itself;
- `SystemExit`, or any other class, that code of users raises ends the work that called
  the code.  The same class is an interrupt if a handler of a signal raised it: on the
  main thread, with a frame of the handler.  `KeyboardInterrupt` is always one there.
"""

import signal
from threading import current_thread, main_thread
from types import TracebackType
from typing import Any

_TRACEBACK: Any = BaseException.__dict__["__traceback__"]
_CAUSE: Any = BaseException.__dict__["__cause__"]
_CONTEXT: Any = BaseException.__dict__["__context__"]


def traceback_of(error: BaseException) -> TracebackType | None:
    """Return the traceback of an exception, without code of its class."""
    traceback: TracebackType | None = _TRACEBACK.__get__(error)
    return traceback


def set_traceback(error: BaseException, traceback: TracebackType | None) -> None:
    """Set the traceback of an exception, without code of its class."""
    _TRACEBACK.__set__(error, traceback)


def cause_of(error: BaseException) -> BaseException | None:
    """Return the cause of an exception, without code of its class."""
    cause: BaseException | None = _CAUSE.__get__(error)
    return cause


def context_of(error: BaseException) -> BaseException | None:
    """Return the context of an exception, without code of its class."""
    context: BaseException | None = _CONTEXT.__get__(error)
    return context


def is_interrupt(error: BaseException) -> bool:
    """Return True if an exception that code of users let out must be raised on."""
    kind = type(error)
    if issubclass(kind, Exception) or current_thread() is not main_thread():
        return False
    if issubclass(kind, KeyboardInterrupt):
        return True
    handlers = {
        getattr(handler, "__code__", None)
        for handler in map(signal.getsignal, signal.valid_signals())
    }
    handlers.discard(None)
    trace = traceback_of(error)
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False
