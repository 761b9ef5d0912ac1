"""A dispatcher with a little of everything, for laws to look at."""

from dataclasses import dataclass
from typing import Any

from everyorder.invariants.live import FiledOperator
from everyorder.runtime.dispatch import Dispatcher, Library, fallthrough
from everyorder.runtime.dispatch.registration_record import Implementation
from everyorder.runtime.dispatch.state import DispatcherState, OperatorEntry
from everyorder.runtime.keys import DispatchKey


class Listener:
    """Hears everything and does nothing."""

    def on_operator_registered(self, name: Any, schema: Any) -> None:
        """Nothing."""

    def on_operator_deregistered(self, name: Any, schema: Any) -> None:
        """Nothing."""


def typed(x: "Tensor") -> None:  # type: ignore[name-defined]  # noqa: F821  # a registered name
    """A kernel that fits `d::f`."""


def typed_otherwise(x: int) -> None:
    """A kernel that does not."""


@dataclass
class Healthy:
    """The dispatcher, its libraries and its state."""

    dispatcher: Dispatcher
    libraries: list[Library]
    state: DispatcherState

    def entry(self, name: str = "d::f") -> OperatorEntry:
        """An operator's entry."""
        entry = self.dispatcher.entry(name)
        assert entry is not None
        return entry

    def place(self, entry: OperatorEntry | None = None, **fields: Any) -> FiledOperator:
        """`d::f` in its state, with other fields."""
        entry = (entry or self.entry())._replace(memo={}, **fields)
        return FiledOperator(entry, "d", str(entry.name), self.state)

    def token(self, key: str, age: int = 0) -> Implementation:
        """A kernel's token of `d::f`."""
        return self.entry().implementations[DispatchKey.parse(key)][age]


def healthy() -> Healthy:
    """`d::f` with schema and kernels of many kinds, `d::g` with a kernel, `e::h`."""
    dispatcher = Dispatcher(builtin_fallbacks=False, warns_of_overrides=False)
    own = Library("d", "DEF", dispatcher=dispatcher, origin="own")
    other = Library("e", "FRAGMENT", dispatcher=dispatcher, origin="other")
    wild = Library("_", "IMPL", dispatcher=dispatcher, origin="wild")
    own.define("f(Tensor x) -> ()", debug="def")
    own.impl("f", lambda x: None, "CPU", debug="old")
    own.impl("f", typed, "CPU", debug="new")
    own.impl("f", lambda x: None, "SparseCPU", debug="sparse")
    own.impl("f", lambda x: None, "CompositeImplicitAutograd", debug="math")
    own.impl("f", fallthrough, "AutogradCPU", debug="through")
    own.impl("g", lambda: None, "CUDA", debug="cuda")
    other.reserve("h")
    wild.fallback(lambda op, *args: None, "Autograd", debug="autograd fallback")
    wild.fallback(fallthrough, "Python", debug="python fallback")
    dispatcher.add_listener(Listener(), "listener")
    return Healthy(dispatcher, [own, other, wild], dispatcher.snapshot())
