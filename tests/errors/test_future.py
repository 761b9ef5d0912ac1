"""Errors of futures and awaits: whole texts, bases and pickling."""

from pickle import dumps, loads

import pytest

from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.errors.future import (
    CallbackFailed,
    FutureCancelled,
    FutureError,
    FutureMisuse,
    FutureTimeout,
)

TEXTS: list[tuple[EveryorderError, tuple[type[Exception], ...], str]] = [
    (
        FutureMisuse(
            code="FutureMisuse",
            call="collect_all",
            found="None at place 0",
            wanted="futures",
        ),
        (TypeError, RuntimeError),
        """\
`collect_all` was given None at place 0.
  it takes: futures""",
    ),
    (
        FutureMisuse(
            code="AlreadySettled",
            found="a value of type int",
            wanted="the error KeyError",
        ),
        (RuntimeError,),
        """\
A future cannot be completed with the error KeyError: it is complete already.
  it holds: a value of type int, as before
  to do:    complete it once; check `done()` if several threads may complete it""",
    ),
    (
        FutureMisuse(code="NotSettled"),
        (RuntimeError,),
        """\
`value()` was called on a future that is not complete.
  to do: `wait()` waits for it; `then(...)` runs when it is complete""",
    ),
    (
        FutureTimeout(seconds=0.25),
        (TimeoutError,),
        """\
A future was not complete after 0.25 s.
  state: it can still be completed, and waited for again""",
    ),
    (
        FutureCancelled(library="asyncio"),
        (RuntimeError,),
        """\
The asyncio future behind this one was cancelled, so that there is no value.""",
    ),
    (
        CallbackFailed(callback="f", error="ValueError: x", at=("a.py:3 in f",)),
        (RuntimeError,),
        """\
The callback `f` raised ValueError: x
  frame: a.py:3 in f""",
    ),
    (
        FutureMisuse(code="Unmovable", kind="Await", asked="pickled"),
        (RuntimeError, TypeError),
        """\
Await objects cannot be pickled: other threads may wait for this one.
  to do: wait, and let the value be pickled""",
    ),
    (
        FutureMisuse(code="WithoutFunction"),
        (RuntimeError,),
        """\
This await was created from a value by `awaitable_nowait`: it has no function.
  to do: check `is_nowait()` first""",
    ),
    (
        FutureMisuse(code="AwaitedAttribute", attribute="x", kind="Table"),
        (AttributeError,),
        "This await represents a `Table`, which has no attribute `x`.",
    ),
]


@pytest.mark.parametrize(
    ("error", "bases", "text"), TEXTS, ids=lambda v: type(v).__name__
)
def test_an_error_reads(
    error: EveryorderError, bases: tuple[type[Exception], ...], text: str
) -> None:
    assert str(error) == text
    assert isinstance(error, FutureError)
    for base in bases:
        assert isinstance(error, base)
    copy = loads(dumps(error))
    assert type(copy) is type(error)
    assert copy.fields() == error.fields()
