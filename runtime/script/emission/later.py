"""Forks and awaits: what is called later, and what waits for it.

True only here: how `fork` and `awaitable` put a call into a closure, what the
attributes of futures and awaits are, and what is refused of both.

Rules:
- the callee and its arguments are what they are now; the call itself is what is in the
  closure, so that it is matched, and refused, like any other;
- a future has `wait`, and nothing else;
- an attribute of an await is one of its value, for which is waited first, but for
  `wait`, which is the await's own; nothing else waits by itself.
"""

from runtime import futures
from runtime.schema.annotation import register_wrapper
from runtime.schema.types import AnyType, AwaitType, FunctionType, FutureType
from runtime.script.emission.emitter import Emitter
from runtime.script.emission.forms import SpecialForm, arguments_of, register_forms
from runtime.script.emission.sugar import (
    Arguments,
    SimpleValue,
    Sugared,
    no_attribute,
    register_value,
)
from runtime.script.ir import Value
from runtime.script.program import marks

# What only Python's own awaits and futures can be asked.
_OF_PYTHON = ("done", "fn", "args", "kwargs", "type", "is_nowait")
_WAIT = "Wait for it first: `awaitable_wait(...)`."


def _closure(e: Emitter, name: str, arguments: Arguments, kind: str) -> Sugared:
    if not arguments.positional:
        hint = f"Write `{name}(f, x)` for what would be `f(x)`."
        e.fail(f"`{name}` takes a function, and its arguments", hint)
    callee, *rest = arguments.positional
    # What is computed for the call is computed now.
    given = [_now(e, each) for each in rest]
    named = {key: _now(e, each) for key, each in arguments.named.items()}
    closure = e.node("prim::Closure", (), (FunctionType,))
    block = closure.add_block()
    with e.into(block):
        result = callee.call(e, Arguments(given, named)).value(e)
    block.add_result(result)
    wrapper = FutureType if kind == "fork" else AwaitType
    node = e.node(f"prim::{kind}Closure", (closure.output,), (wrapper(result.type),))
    return e.compiler.sugar(node.output)


def _now(e: Emitter, sugared: Sugared) -> Sugared:
    """An argument that is computed before the closure; what is no value, as it is."""
    items = getattr(sugared, "items", None)
    return e.compiler.sugar(sugared.value(e)) if items is not None else sugared


def _fork(e: Emitter, arguments: Arguments) -> Sugared:
    return _closure(e, "fork", arguments, "fork")


def _awaitable(e: Emitter, arguments: Arguments) -> Sugared:
    return _closure(e, "awaitable", arguments, "awaitable")


def _wait(e: Emitter, arguments: Arguments) -> Sugared:
    (future,) = arguments_of(e, "wait", ("future",), arguments)
    value = future.value(e)
    if isinstance(value.type, AwaitType):
        hint = "Awaits are waited for by `awaitable_wait`."
        e.fail(f"`wait` takes a future, and this is of type {value.type}", hint)
    if not isinstance(value.type, FutureType):
        hint = "Futures are what `fork` gives."
        e.fail(f"`wait` takes a future, and this is of type {value.type}", hint)
    return waited(e, value)


def _awaitable_wait(e: Emitter, arguments: Arguments) -> Sugared:
    (one,) = arguments_of(e, "awaitable_wait", ("aw",), arguments)
    value = one.value(e)
    if not isinstance(value.type, AwaitType):
        hint = "Awaits are what `awaitable` and `awaitable_nowait` give."
        message = f"`awaitable_wait` takes an await, and this is of type {value.type}"
        e.fail(message, hint)
    return waited(e, value)


def _awaitable_nowait(e: Emitter, arguments: Arguments) -> Sugared:
    (one,) = arguments_of(e, "awaitable_nowait", ("o",), arguments)
    value = one.value(e)
    node = e.node("prim::awaitable_nowait", (value,), (AwaitType(value.type),))
    return e.compiler.sugar(node.output)


def waited(e: Emitter, value: Value) -> Sugared:
    """The value of a future, or of an await."""
    type_ = value.type
    assert isinstance(type_, FutureType | AwaitType), "only these are waited for"
    kind = "wait" if isinstance(type_, FutureType) else "awaitable_wait"
    return e.compiler.sugar(e.node(f"prim::{kind}", (value,), (type_.element,)).output)


class Wait(Sugared):
    """`future.wait`, or that of an await."""

    __slots__ = ("waits",)

    def __init__(self, waits: SimpleValue) -> None:
        self.waits = waits

    def says(self) -> str:
        """The method."""
        return f"the method `wait` of {self.waits.type}"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """The value."""
        arguments_of(e, self.says(), (), arguments)
        return waited(e, self.waits.node_value)


class FutureValue(SimpleValue):
    """A future."""

    __slots__ = ()

    def attribute(self, e: Emitter, name: str) -> Sugared:
        """`wait`; everything else is of Python's."""
        if name == "wait":
            return Wait(self)
        hint = "In a script a future can only be waited for: `wait`."
        no_attribute(e, str(self.type), name, (), hint)
        raise AssertionError("an attribute that is missing was refused")


class AwaitValue(SimpleValue):
    """An await: its attributes are those of its value."""

    __slots__ = ()

    def attribute(self, e: Emitter, name: str) -> Sugared:
        """`wait`, or an attribute of the value, for which this waits."""
        if name == "wait":
            return Wait(self)
        if name in _OF_PYTHON:
            hint = "In a script an await can only be waited for: `awaitable_wait`."
            no_attribute(e, str(self.type), name, (), hint)
        return waited(e, self.node_value).attribute(e, name)

    def set_attribute(self, e: Emitter, name: str, value: Sugared) -> None:
        """Attributes are set on the value itself."""
        e.fail(f"attributes of {self.says()} cannot be set", _WAIT)

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """An await is not called."""
        e.fail(f"{self.says()} cannot be called", _WAIT)

    def subscript(self, e: Emitter, index: Sugared) -> Sugared:
        """An await has no elements."""
        e.fail(f"{self.says()} has no elements", _WAIT)

    def iterate(self, e: Emitter) -> object:
        """An await is not gone through."""
        e.fail(f"{self.says()} cannot be gone through", _WAIT)

    def truth(self, e: Emitter) -> Value | bool:
        """What an await is says nothing of its value."""
        e.fail(f"{self.says()} is neither true nor false", _WAIT)

    def binary(
        self, e: Emitter, symbol: str, other: Sugared, reflected: bool
    ) -> Sugared | None:
        """Awaits have no operators."""
        return e.fail(f"`{symbol}` of {self.says()} is nothing", _WAIT)


def install_later() -> None:
    """Let forks, awaits and what waits for them mean what they are."""
    register_wrapper(futures.Future, FutureType)
    register_wrapper(futures.Await, AwaitType, AnyType)
    register_value(FutureType, FutureValue)
    register_value(AwaitType, AwaitValue)
    register_forms(
        SpecialForm("fork", _fork, marks.fork),
        SpecialForm("wait", _wait, marks.wait),
        SpecialForm("awaitable", _awaitable, futures.awaitable),
        SpecialForm("awaitable_wait", _awaitable_wait, futures.awaitable_wait),
        SpecialForm("awaitable_nowait", _awaitable_nowait, futures.awaitable_nowait),
    )
