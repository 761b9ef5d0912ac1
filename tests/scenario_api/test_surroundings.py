"""What stands around a registry: the event loop, finalizers, caches of the library.

What an operation leaves there is state or is told; what the library keeps for itself
is neither.
"""

import abc
import asyncio
import functools
import importlib.metadata
import logging
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, runtime_checkable

import pytest

from everyorder.harness import Report, Scenario, explore, step, use

LOG = logging.getLogger(__name__)
MOST = 3


class Names:
    """A sound registry of names."""

    def __init__(self) -> None:
        self.names: dict[str, object] = {}

    def add(self, name: str) -> Callable[[], object]:
        self.names[name] = name
        return lambda: self.names.pop(name)

    def find(self, name: str) -> object:
        return self.names.get(name)

    def shown(self) -> str:
        return " ".join(sorted(self.names))


def explored(kind: type[Any], strategy: str = "graph", **given: Any) -> Report:
    scenario = Scenario(
        step("a", lambda registry: registry.add("a")),
        step("b", lambda registry: registry.add("b")),
        uses=[use("find a", lambda registry: registry.find("a"))],
        create=kind,
        observe=lambda registry: registry.shown(),
        name=kind.__name__,
        **given,
    )
    return explore(scenario, strategy)


def handler_of(loop: asyncio.AbstractEventLoop) -> Any:
    handler = loop.get_exception_handler()
    return handler if hasattr(handler, "depth") else None


class OnTheLoop(Names):
    """Each adding leaves something on the loop, and too much of it is an answer."""

    async def add(self, name: str) -> Callable[[], object]:  # type: ignore[override]  # it is awaited
        loop = asyncio.get_running_loop()
        self.put(loop, min(self.got(loop) + 1, MOST))
        return super().add(name)

    async def find(self, name: str) -> object:
        loop = asyncio.get_running_loop()
        many = self.got(loop) >= MOST
        self.put(loop, 0)
        return "too many" if many else super().find(name)

    def put(self, loop: Any, count: int) -> None:
        loop.count = count

    def got(self, loop: Any) -> int:
        return getattr(loop, "count", 0)


class InItsHandler(OnTheLoop):
    """The same, in the loop's handler of exceptions."""

    def put(self, loop: Any, count: int) -> None:
        def handler(_loop: object, _context: object) -> None: ...

        handler.depth = count  # type: ignore[attr-defined]  # functions have any
        loop.set_exception_handler(handler if count else None)

    def got(self, loop: Any) -> int:
        depth: int = getattr(loop.get_exception_handler(), "depth", 0)
        return depth


class InItsSettings(OnTheLoop):
    """The same, in a number that can be set of every loop."""

    def put(self, loop: Any, count: int) -> None:
        loop.slow_callback_duration = 1 + count

    def got(self, loop: Any) -> int:
        return max(int(loop.slow_callback_duration) - 1, 0)


@pytest.mark.parametrize("kind", [OnTheLoop, InItsHandler, InItsSettings])
def test_what_is_left_on_the_loop_is_state(kind: type[OnTheLoop]) -> None:
    report = explored(kind)
    assert report.verdict == "order"
    (first, *_) = report.exploration.violations
    assert all(path.startswith("event loop.") for path in first.paths)


class Policy(Names):
    """Each adding sets a policy of event loops that stays."""

    def add(self, name: str) -> Callable[[], object]:
        made = type("Made", (asyncio.DefaultEventLoopPolicy,), {})
        asyncio.set_event_loop_policy(made())
        return super().add(name)


class Patched(Names):
    """Each adding patches what lists entry points, and leaves it so."""

    def add(self, name: str) -> Callable[[], object]:
        importlib.metadata.entry_points = functools.partial(tuple)  # type: ignore[assignment]  # that is the fault
        return super().add(name)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (Policy, "asyncio.events._event_loop_policy"),
        (Patched, "importlib.metadata.entry_points"),
    ],
)
def test_what_is_left_in_the_library_is_told(
    kind: type[Names], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda: ())
    policy = asyncio.get_event_loop_policy()
    try:
        report = explored(kind)
    finally:
        asyncio.set_event_loop_policy(policy)
    assert report.verdict == "holds"
    assert any(path in caveat.text for caveat in report.exploration.caveats)


class Finalized(Names):
    """Each adding has the registry tell when it ends, and never takes that back."""

    def add(self, name: str) -> Callable[[], object]:
        if self.left() < MOST:
            weakref.finalize(self, len, ()).atexit = False
        return super().add(name)

    def left(self) -> int:
        living = [each.peek() for each in [*weakref.finalize._registry]]  # type: ignore[attr-defined]  # the fault is to look there
        return sum(peeked is not None and peeked[0] is self for peeked in living)

    def find(self, name: str) -> object:
        return "too many" if self.left() >= MOST else super().find(name)


def test_what_is_called_at_the_end_of_the_registry_is_state() -> None:
    assert explored(Finalized).verdict != "proven"


class Logging(Names):
    """It writes into a log."""

    def add(self, name: str) -> Callable[[], object]:
        LOG.debug("added %s", name)
        return super().add(name)


@functools.singledispatch
def told(value: object) -> str:
    return "object"


class Dispatching(Names):
    """It asks a function that remembers whom it chose."""

    def find(self, name: str) -> object:
        found = super().find(name)
        return told(found), found


@runtime_checkable
class HasShown(Protocol):
    """Whoever can be shown."""

    def shown(self) -> str: ...


class Asking(Names):
    """It asks a protocol, which remembers what it answered."""

    def find(self, name: str) -> object:
        return isinstance(self, HasShown) and super().find(name)


class Sized(abc.ABC):  # noqa: B024  # the hook is all there is
    """A class that answers by a hook."""

    @classmethod
    def __subclasshook__(cls, kind: type) -> bool:
        return True


class Hooked(Names):
    """It asks a class that answers by a hook, and remembers what."""

    def find(self, name: str) -> object:
        return isinstance(self, Sized) and super().find(name)


class Knowing(Names):
    """Whose members know it, and are what is answered."""

    class Member:
        """One of them."""

        def __init__(self, owner: "Knowing", name: str) -> None:
            self.owner, self.name = owner, name

    def add(self, name: str) -> Callable[[], object]:
        self.names[name] = self.Member(self, name)
        return lambda: self.names.pop(name)


class Global(Names):
    """It looks at all that its module has."""

    def find(self, name: str) -> object:
        return "LOG" in globals() and super().find(name)


@pytest.mark.parametrize(
    "kind", [Logging, Dispatching, Asking, Hooked, Knowing, Global]
)
def test_what_the_library_remembers_is_no_state(
    kind: type[Names], monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Scenario(
        step("a", lambda registry: registry.append(1), undo=None),
        create=list,
        observe=repr,
    )
    monkeypatch.setitem(globals(), "held", held)
    explore(held, "walk:0")
    for _ in range(2):  # it remembers from the first time what it is asked the second
        report = explored(kind)
        assert report.verdict == "proven", report.exploration.caveats


Awaited = Coroutine[Any, Any, object]


class AwaitedLogging(Names):
    """The harness makes a loop for it, which writes into a log of its own."""

    async def find(self, name: str) -> object:
        await asyncio.sleep(0)
        return super().find(name)


def test_the_loop_of_the_harness_is_no_state() -> None:
    report = explored(AwaitedLogging)
    assert report.verdict == "proven", report.exploration.caveats
