"""Registries that call what is registered, with a fault of a public report each.

The mechanisms are those of the reports, in registries of their own; each docstring
names the report.  A scenario that ends in `_mended` has the fault no more.
"""

from collections.abc import Callable
from typing import Any
from weakref import WeakMethod

from everyorder import Scenario, step, steps, use


class Emitter:
    """Calls listeners, each of them once."""

    def __init__(self) -> None:
        self.listeners: list[str] = []

    def once(self, name: str) -> Callable[[], None]:
        self.listeners.append(name)
        return lambda: self.listeners.remove(name)

    def emit(self) -> list[str]:
        called = []
        for name in self.to_call():
            self.listeners.remove(name)
            called.append(name)
        return sorted(called)

    def to_call(self) -> list[str]:
        return self.listeners


class CopyingEmitter(Emitter):
    """It calls those that were there when it began."""

    def to_call(self) -> list[str]:
        return [*self.listeners]


def emitter_skips_the_next() -> Scenario:
    """A listener that leaves while it is called hides the next: mnot/thor#95."""
    return emitters(Emitter)


def emitter_skips_the_next_mended() -> Scenario:
    """Listeners are called from a copy of their list."""
    return emitters(CopyingEmitter)


def emitters(create: type[Emitter]) -> Scenario:
    return Scenario(
        *steps("once", ["log", "save"], create.once),
        uses=[use("emit", create.emit, ends="all")],
        create=create,
    )


class Hooks:
    """Calls the plugins of a folder, whose list is copied at the first call."""

    def __init__(self) -> None:
        self.plugins: list[str] = []
        self.of_folder: list[str] | None = None

    def register(self, plugin: str) -> Callable[[], None]:
        self.plugins.append(plugin)
        return lambda: self.plugins.remove(plugin)

    def call(self) -> list[str]:
        if self.of_folder is None:
            self.of_folder = self.copied()
        return sorted(self.of_folder)

    def copied(self) -> list[str]:
        return [*self.plugins]


class SharedHooks(Hooks):
    """The list of a folder is that of all plugins."""

    def copied(self) -> list[str]:
        return self.plugins


def hooks_of_a_folder() -> Scenario:
    """A plugin that was removed is still called: pytest-dev/pytest#732."""
    return hooks(Hooks)


def hooks_of_a_folder_mended() -> Scenario:
    """The plugins of a folder are not copied."""
    return hooks(SharedHooks)


def hooks(create: type[Hooks]) -> Scenario:
    return Scenario(
        *steps("register", ["cover", "retry"], create.register),
        uses=[use("call", create.call)],
        create=create,
    )


class Bus:
    """A server that wants to be stopped at the end of the process."""

    def __init__(self) -> None:
        self.at_exit: list[str] = []
        self.running = False

    def start(self) -> Callable[[], None]:
        self.running = True
        self.at_exit.append("stop")
        return self.stop

    def stop(self) -> None:
        self.running = False


class LeavingBus(Bus):
    """It removes what it added."""

    def stop(self) -> None:
        super().stop()
        self.at_exit.remove("stop")


def bus_is_started_again() -> Scenario:
    """Each start adds one more function for the end: cherrypy/cherrypy#1274."""
    return buses(Bus)


def bus_is_started_again_mended() -> Scenario:
    """The function is removed by stopping."""
    return buses(LeavingBus)


def buses(create: type[Bus]) -> Scenario:
    return Scenario(
        step("start", create.start),
        uses=[use("at exit", lambda bus: len(bus.at_exit))],
        create=create,
    )


class Widget:
    """Calls functions for events; each binding has a number."""

    def __init__(self) -> None:
        self.bound: dict[str, list[str]] = {}

    def bind(self, event: str, name: str) -> Callable[[], None]:
        self.bound.setdefault(event, []).append(name)
        return lambda: self.unbind(event, name)

    def unbind(self, event: str, name: str) -> None:
        self.bound.pop(event, None)

    def press(self) -> list[str]:
        return sorted(self.bound.get("press", []))


class ExactWidget(Widget):
    """It removes the named function only."""

    def unbind(self, event: str, name: str) -> None:
        self.bound[event].remove(name)
        if not self.bound[event]:
            del self.bound[event]


def widget_loses_all_bindings() -> Scenario:
    """Removing one binding removes those of others: python/cpython#75666."""
    return widgets(Widget)


def widget_loses_all_bindings_mended() -> Scenario:
    """The named binding is removed, and no other."""
    return widgets(ExactWidget)


def widgets(create: type[Widget]) -> Scenario:
    return Scenario(
        *steps("bind", ["beep", "save"], lambda it, name: it.bind("press", name)),
        uses=[use("press", create.press)],
        create=create,
    )


class Observer:
    """Has a method that is a handler."""

    def handle(self) -> str:
        return "handled"


class Handlers:
    """Stores methods as they are, and looks for weak references to remove them."""

    def __init__(self) -> None:
        self.observer = Observer()
        self.handlers: list[Any] = []

    def set(self) -> Callable[[], None]:
        self.handlers.append(self.observer.handle)
        return self.remove

    def remove(self) -> None:
        removed = WeakMethod(self.observer.handle)
        self.handlers = [each for each in self.handlers if each != removed]

    def dispatch(self) -> list[str]:
        return [handler() for handler in self.handlers]


def handlers_never_removed() -> Scenario:
    """A method is removed by a weak reference to it: pyglet/pyglet#869."""
    return Scenario(
        step("set_handler", Handlers.set),
        uses=[use("dispatch", Handlers.dispatch)],
        create=Handlers,
    )


class Ending:
    """Calls functions at the end of a process, and stores them by function."""

    def __init__(self) -> None:
        self.arguments: dict[str, str] = {}

    def register(self, argument: str) -> Callable[[], None]:
        self.arguments["remove"] = argument
        return lambda: self.unregister(argument)

    def unregister(self, argument: str) -> None:
        self.arguments.pop("remove", None)

    def shown(self) -> list[str]:
        return sorted(self.arguments.values())


class NumberedEnding(Ending):
    """It stores each registration by itself."""

    def register(self, argument: str) -> Callable[[], None]:
        self.arguments[argument] = argument
        return lambda: self.unregister(argument)

    def unregister(self, argument: str) -> None:
        del self.arguments[argument]


def ending_by_function() -> Scenario:
    """A function is called with its last arguments: Gallopsled/pwntools#120."""
    return endings(Ending)


def ending_by_function_mended() -> Scenario:
    """Each registration of a function is one of its own."""
    return endings(NumberedEnding)


def endings(create: type[Ending]) -> Scenario:
    return Scenario(
        *steps("register", ["/a", "/b"], create.register),
        uses=[use("at exit", create.shown)],
        create=create,
    )
