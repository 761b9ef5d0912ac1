"""What the dispatcher tests share: kernels, libraries, tensors, and a look at all.

True only here: `everything` is what a failing call must leave as it was.
"""

from collections.abc import Hashable
from typing import Any

from everyorder.runtime.dispatch import Dispatcher, Library, OperatorHandle, fingerprint
from everyorder.runtime.dispatch.watch import DEPTH, WATCH
from everyorder.runtime.keys import LOCAL, DispatchKey, KeySet
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import OperatorName
from everyorder.runtime.tensors import Tensor, tensor

FOO = "foo(Tensor x) -> Tensor"


def t_t(x: Tensor) -> Tensor:
    """A typed kernel that fits `FOO`."""
    return x


def tt_t(x: Tensor, y: Tensor) -> Tensor:
    """A typed kernel of another signature."""
    return x


def silent() -> Dispatcher:
    """A dispatcher with the built-in fallbacks that warns of nothing."""
    return Dispatcher(warns_of_overrides=False)


def bare() -> Dispatcher:
    """A dispatcher without any fallback that warns of nothing."""
    return Dispatcher(builtin_fallbacks=False, warns_of_overrides=False)


def defined(dispatcher: Dispatcher, schema: str = FOO, ns: str = "test") -> Library:
    """A DEF library that has defined one operator."""
    library = Library(ns, "DEF", dispatcher=dispatcher, origin="here")
    library.define(schema)
    return library


def op(dispatcher: Dispatcher, name: str = "test::foo") -> OperatorHandle:
    """The handle of an operator that is registered."""
    found = dispatcher.find_op(name)
    assert found is not None
    return found


def on(*names: str) -> Tensor:
    """A tensor that carries exactly these keys."""
    keys = KeySet(*(DispatchKey[name] for name in names))
    return tensor([1.0]).with_keyset(keys)


def says(answer: object) -> Any:
    """An untyped kernel that returns `answer`, whatever it is given."""
    return lambda *args, **kwargs: answer


def everything(dispatcher: Dispatcher) -> Hashable:
    """All that a call could have changed, of the dispatcher and of the thread."""
    state = dispatcher.snapshot()
    return (
        fingerprint(state),
        tuple(dispatcher.dump_state(name) for name in dispatcher.op_names()),
        tuple(dispatcher.dump_table(name) for name in dispatcher.op_names()),
        tuple((str(e.name), e.total, len(e.definitions)) for e in state.entries()),
        tuple(map(id, state.subscriptions)),
        tuple(map(id, state.claims)),
        tuple(map(id, state.fallbacks.tokens)),
        (LOCAL.included, LOCAL.excluded, LOCAL.switched_in, LOCAL.switched_out),
        (DEPTH.level, WATCH.observers, WATCH.sinks),
        tuple(dispatcher.dropped),
    )


class Ear:
    """A listener that notes what it hears, and raises what it is told to."""

    def __init__(self, name: str = "", heard: list[str] | None = None) -> None:
        self.name = name
        self.heard: list[str] = [] if heard is None else heard
        self.fails_at_registered: BaseException | None = None
        self.fails_at_deregistered: BaseException | None = None

    def on_operator_registered(self, name: OperatorName, schema: Schema) -> None:
        self.heard.append(f"{self.name}+{name}")
        if self.fails_at_registered is not None:
            raise self.fails_at_registered

    def on_operator_deregistered(self, name: OperatorName, schema: Schema) -> None:
        self.heard.append(f"{self.name}-{name}")
        if self.fails_at_deregistered is not None:
            raise self.fails_at_deregistered


def untyped(function: Any) -> Any:
    """The function without its annotations: an untyped kernel, typed for a checker."""
    function.__annotations__ = {}
    return function
