"""Rows of awaits that other files do not have: 1.9, and the texts around them."""

# mypy: disable-error-code="no-any-return"
# Functions of the runtime give what they give.

from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, jit
from everyorder.runtime.futures import (
    Await,
    awaitable,
    awaitable_nowait,
    awaitable_wait,
)

X = runtime.tensor([1.0, 2.0])


def fee(x: int, y: int) -> int:
    return x + y


@pytest.mark.spec("script 1.9", "1 python")
def test_await_python() -> None:
    """1.9: function and arguments make the value; an await of a value has neither."""
    aw = awaitable(fee, 3, 4)
    assert aw.fn()(*aw.args()) == awaitable_wait(aw) == 7
    of_value = awaitable_nowait(33)
    assert of_value.is_nowait()
    assert of_value.args() == (33,)
    assert awaitable_wait(of_value) == 33


class Ring:
    """A class of which no program has objects: it holds what it likes."""

    def __init__(self, v: int) -> None:
        self.parent: Ring | None = None
        self.v = v


@pytest.mark.spec("script 1.9", "11 not scriptable")
def test_eager_await_non_scriptable() -> None:
    """1.9: what the function does to its argument is seen; the types are Python's."""

    def make(x: Ring) -> Ring:
        made = Ring(x.v + 1)
        x.parent, made.parent = made, x
        x.v += 2
        return made

    first = Ring(1)
    aw = awaitable(make, first)
    assert first.v == 1
    found = awaitable_wait(aw)
    assert (found.v, found.parent, first.parent, first.v) == (2, first, found, 3)


@pytest.mark.spec("script 1.9", "13 lazy")
def test_await_eager_lazy() -> None:
    """1.9: an attribute of an await of Python's is the tensor's."""

    def lazy(x: Tensor) -> Tensor:
        return x + 1

    aw = awaitable(lazy, X)
    assert isinstance(aw, Await)
    assert aw.dtype == X.dtype
    assert aw.done()


@pytest.mark.spec("futures 1.8", "tracing")
@pytest.mark.spec("script 1.9", "15 jit_trace")
def test_jit_trace() -> None:
    """1.9: a trace with an await in it is the function, on other inputs too."""

    def gap(x: Tensor) -> Tensor:
        return runtime.ops.core.relu(x) + 1

    def main(x: Tensor) -> Tensor:
        aw = awaitable(gap, x)
        return (x * 2) * awaitable_wait(aw) + x

    traced: Any = jit.trace(main, (X,))
    other = runtime.tensor([-3.0, 0.5])
    assert traced(other).tolist() == main(other).tolist()
    assert "awaitable" not in str(traced.code)
