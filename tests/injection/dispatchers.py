"""Operations on a dispatcher, and what must be true after each, however it ended.

True only here: a world of everything that can be registered, with a listener that
believes what it is told.

After an operation that was interrupted
- the state is that of before, or that after the operation: nothing in between;
- what is live is owned by a handle that says so, and closing all handles ends it all;
- listeners believe what the state says;
- the thread and the lock are as before, and the next registration works.
"""

from collections.abc import Callable, Iterator

from everyorder.runtime.dispatch import Dispatcher, Library, Registration, fingerprint
from everyorder.runtime.dispatch.registration_record import RegistrationRecord
from everyorder.runtime.dispatch.state import DispatcherState
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import OperatorName
from everyorder.runtime.torch_dispatch import TorchDispatchMode
from everyorder.runtime.torch_dispatch.fallback import register_torch_dispatch
from tests.dispatch.samples import says, silent, t_t
from tests.torch_dispatch.thread_state import Look


class Believer:
    """Knows which operators have a schema from what it is told alone."""

    def __init__(self) -> None:
        self.known: list[str] = []

    def on_operator_registered(self, name: OperatorName, schema: Schema) -> None:
        self.known.append(str(name))

    def on_operator_deregistered(self, name: OperatorName, schema: Schema) -> None:
        self.known.remove(str(name))


class Ruled(TorchDispatchMode):
    """A class that rules are registered for."""


class World:
    """A dispatcher, some libraries, and everything that was made of them."""

    def __init__(self) -> None:
        self.dispatcher = silent()
        self.ears = [Believer(), Believer()]
        self.handles = [self.dispatcher.add_listener(ear) for ear in self.ears]
        self.library = self.made("test", "FRAGMENT")
        self.wild = self.made("_", "IMPL")
        self.definition = self.library.define("foo(Tensor x) -> Tensor")
        self.kernel = self.library.impl("foo", t_t, "CPU")
        self.owned = self.made("owned", "DEF")
        self.owned.define("bar(Tensor x) -> Tensor", kernel=t_t)
        self.owned.impl("bar", t_t, ["CPU", "CUDA"])
        self.libraries: list[Library] = [self.library, self.wild, self.owned]

    def made(self, namespace: str, kind: str) -> Library:
        """A library of this dispatcher."""
        key = "CUDA" if kind == "IMPL" else None
        return Library(namespace, kind, key, dispatcher=self.dispatcher, origin="here")

    def lose(self) -> None:
        """Lose the last reference to a library; the next writer takes it down."""
        self.libraries.remove(self.owned)
        del self.owned
        self.dispatcher.drain()

    def claim(self) -> None:
        """Make a library that claims a namespace."""
        self.libraries.append(self.made("claimed", "DEF"))

    def listen(self) -> None:
        """Add a listener, who hears of what is there."""
        self.ears.append(ear := Believer())
        self.handles.append(self.dispatcher.add_listener(ear))

    def rule(self) -> None:
        """Let a class handle an operator."""
        found = self.dispatcher.find_op("test::foo")
        self.handles.append(register_torch_dispatch(found, Ruled, says(1)))


def _twice(world: World) -> None:
    world.kernel.close()
    world.kernel.close()


OPERATIONS: dict[str, Callable[[World], object]] = {
    "define": lambda world: world.library.define("new(Tensor x) -> Tensor"),
    "define with a kernel": lambda world: world.library.define(
        "new(Tensor x) -> Tensor", kernel=t_t
    ),
    "impl": lambda world: world.library.impl("foo", t_t, "CUDA"),
    "impl of an operator to come": lambda world: world.library.impl("new", t_t, "CPU"),
    "impl over another": lambda world: world.library.impl("foo", t_t, "CPU"),
    "impl at several keys": lambda world: world.library.impl(
        "foo", t_t, ["CUDA", "Meta", "Autograd"]
    ),
    "impl that overrides nothing": lambda world: world.library.impl(
        "foo", t_t, "CUDA", allow_override=False
    ),
    "fallback": lambda world: world.wild.fallback(says(1), "CUDA"),
    "reserve": lambda world: world.library.reserve("name"),
    "rule": lambda world: world.library.rule("foo", Ruled, says(1)),
    "register_torch_dispatch": World.rule,
    "a library with a claim": World.claim,
    "add_listener": World.listen,
    "a kernel is closed": lambda world: world.kernel.close(),
    "a kernel is closed twice": _twice,
    "a definition is closed": lambda world: world.definition.close(),
    "a listener is closed": lambda world: world.handles[0].close(),
    "a library is closed": lambda world: world.library.close(),
    "a library with a claim is closed": lambda world: world.owned.close(),
    "a library is lost": World.lose,
}


def live_tokens(state: DispatcherState) -> Iterator[RegistrationRecord]:
    """All that is registered, but for the built-in fallbacks."""
    for entry in state.entries():
        yield from entry.definitions
        yield from entry.reservations
        yield from entry.rules
        for held in entry.implementations.values():
            yield from held
    builtin = {*Dispatcher().state.fallbacks.tokens}
    yield from (each for each in state.fallbacks.tokens if each not in builtin)
    yield from state.claims
    yield from state.subscriptions


# Who calls these owns what they return: nobody else does, also where a signal comes
# before it is there.
RETURNING = ("register_torch_dispatch", "Dispatcher.add_listener")


def wrong(
    world: World, before: Look, expected: tuple[object, ...], where: str
) -> str | None:
    """What is not as it must be after something came in a function, in words."""
    dispatcher = world.dispatcher
    if dispatcher._lock.locked() or dispatcher._is_writer():
        return "the lock is held"
    if not before.unchanged():
        return "the thread is not as before"
    dispatcher.check_writable("look")
    # Libraries that are lost go with the next writer.
    dispatcher.drain()
    state = dispatcher.state
    if fingerprint(state) not in expected:
        return "the state is neither that of before nor that after"
    held = [*world.handles, world.definition, world.kernel]
    owners: list[Registration | Library] = [*held, *world.libraries]
    owned = {id(token) for each in owners for token in each.tokens}
    live = {id(token) for token in live_tokens(state)}
    if owned - live:
        return "a handle says that something is live, which is not"
    if live - owned and not where.startswith(RETURNING):
        return "something is live that nobody owns"
    if any(each.closed == bool(each.tokens) for each in held):
        return "a handle is closed and holds something, or neither"
    defined = [str(entry.name) for entry in state.entries() if entry.definitions]
    for ear in world.ears:
        told = ear in [each.listener for each in state.subscriptions]
        if told and sorted(ear.known) != defined and "listener" not in where:
            return f"a listener believes in {ear.known}"
    again = world.made("another", "DEF")
    again.define("foo(Tensor x) -> Tensor", kernel=t_t)
    again.close()
    if fingerprint(dispatcher.state) != fingerprint(state):
        return "the next registration leaves something"
    for each in owners:
        each.close()
    left = {id(token) for token in live_tokens(dispatcher.state)}
    if left & owned or (left and not where.startswith(RETURNING)):
        return "something is left when all is closed"
    return None
