"""Registries that remember what they found, with a fault of a public report each.

The mechanisms are those of the reports, in registries of their own; each docstring
names the report.  A scenario that ends in `_mended` has the fault no more.
"""

from collections.abc import Callable
from itertools import count
from typing import Any

from everyorder import Scenario, step, steps, use


class Filler:
    """Fills documents by handlers, each of which it creates once."""

    def __init__(self) -> None:
        self.classes: dict[str, str] = {}
        self.handlers: dict[str, str] = {}

    def register(self, name: str) -> Callable[[], None]:
        self.classes["images"] = name
        return self.deregister

    def deregister(self) -> None:
        del self.classes["images"]

    def fill(self) -> str:
        if "images" not in self.handlers:
            if "images" not in self.classes:
                return "no handler"
            self.handlers["images"] = f"filled by {self.classes['images']}"
        return self.handlers["images"]


class ForgettingFiller(Filler):
    """It drops the handler of a class that leaves."""

    def deregister(self) -> None:
        super().deregister()
        self.handlers.pop("images", None)


def filler_keeps_handlers() -> Scenario:
    """Another class of handlers is not used: bluesky/event-model#114."""
    return fillers(Filler)


def filler_keeps_handlers_mended() -> Scenario:
    """A handler leaves with its class."""
    return fillers(ForgettingFiller)


def fillers(create: type[Filler]) -> Scenario:
    old = step("register(old)", lambda filler: filler.register("old"))
    new = step("register(new)", lambda filler: filler.register("new"), excludes=old)
    return Scenario(old, new, uses=[use("fill", create.fill)], create=create)


class Container:
    """Creates what a provider provides once, if it is asked for."""

    def __init__(self) -> None:
        self.providers: dict[str, Callable[[], object]] = {}
        self.instances: dict[str, object] = {}

    def register(self, name: str) -> Callable[[], None]:
        self.providers[name] = name.upper
        return lambda: self.unregister(name)

    def unregister(self, name: str) -> None:
        del self.providers[name]

    def resolve(self) -> tuple[object, ...]:
        for name, provider in self.providers.items():
            self.instances.setdefault(name, provider())
        return tuple(sorted(map(str, self.instances.values())))


class ForgettingContainer(Container):
    """It drops an instance with its provider."""

    def unregister(self, name: str) -> None:
        super().unregister(name)
        self.instances.pop(name, None)


def container_keeps_instances() -> Scenario:
    """The instance of a removed provider is still there: python-anydi/anydi#95."""
    return containers(Container)


def container_keeps_instances_mended() -> Scenario:
    """An instance leaves with its provider."""
    return containers(ForgettingContainer)


def containers(create: type[Container]) -> Scenario:
    return Scenario(
        *steps("register", ["books", "users"], create.register),
        uses=[use("resolve", create.resolve)],
        create=create,
    )


class Converter:
    """Converts text to the first alternative of a type that fits."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self.alternatives: dict[Any, tuple[type, ...]] = {}

    def add(self, name: str, kind: Any) -> Callable[[], None]:
        self.fields[name] = kind
        return lambda: self.fields.__delitem__(name)

    def key(self, kind: Any) -> Any:
        return kind

    def convert(self) -> list[tuple[str, str]]:
        converted = []
        for name, kind in sorted(self.fields.items()):
            key = self.key(kind)
            first, *_ = self.alternatives.setdefault(key, kind.__args__)
            converted.append((name, repr(first("3"))))
        return converted


class ExactConverter(Converter):
    """Its key has the order of the alternatives."""

    def key(self, kind: Any) -> Any:
        return kind.__args__


def converter_of_equal_types() -> Scenario:
    """Equal types share the order of the first: konradhalas/dacite#294."""
    return converters(Converter)


def converter_of_equal_types_mended() -> Scenario:
    """The order of the alternatives is part of the key."""
    return converters(ExactConverter)


def converters(create: type[Converter]) -> Scenario:
    return Scenario(
        step("add(id)", lambda it: it.add("id", int | float)),
        step("add(size)", lambda it: it.add("size", float | int)),
        uses=[use("convert", create.convert)],
        create=create,
    )


class Row:
    """Rows of one number are equal."""

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Row) and self.number == other.number

    def __hash__(self) -> int:
        return hash(self.number)

    def shown(self) -> str:
        return self.name


class Methods:
    """Binds a generic method to an instance once."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.bound: dict[Row, Callable[[], str]] = {}

    def load(self, name: str) -> Callable[[], None]:
        self.rows[name] = Row(1, name)
        return lambda: self.rows.__delitem__(name)

    def call(self) -> list[str]:
        called = []
        for row in sorted(self.rows.values(), key=lambda row: row.name):
            bound = self.bound.setdefault(row, row.shown)
            called.append(bound())
        return called


def method_of_equal_rows() -> Scenario:
    """The method of the first of equal instances is called: python/cpython#127750."""
    return Scenario(
        *steps("load", ["draft", "final"], Methods.load),
        uses=[use("call", Methods.call)],
        create=Methods,
    )


class Signal:
    """Caches the receivers of a sender by its address, which others get later."""

    def __init__(self) -> None:
        self.addresses: dict[str, int] = {}
        self.receivers: dict[int, str] = {}

    def open(self, sender: str) -> Callable[[], None]:
        taken = self.addresses.values()
        address = next(number for number in count() if number not in taken)
        self.addresses[sender] = address
        return lambda: self.close(sender)

    def close(self, sender: str) -> None:
        del self.addresses[sender]

    def send(self) -> list[str]:
        return sorted(
            f"{sender}: {self.receivers.setdefault(address, f'log of {sender}')}"
            for sender, address in self.addresses.items()
        )


class ForgettingSignal(Signal):
    """It drops what it cached of a sender that leaves."""

    def close(self, sender: str) -> None:
        self.receivers.pop(self.addresses[sender], None)
        super().close(sender)


def signal_by_address() -> Scenario:
    """The receivers of a sender that is no more are called: django/django#19093."""
    return signals(Signal)


def signal_by_address_mended() -> Scenario:
    """What is cached of a sender leaves with it."""
    return signals(ForgettingSignal)


def signals(create: type[Signal]) -> Scenario:
    return Scenario(
        *steps("open", ["books", "users"], create.open),
        uses=[use("send", create.send)],
        create=create,
    )


class Left:
    """One base of `Both`."""


class Right:
    """The other base of `Both`, and no relation of `Left`."""


class Both(Left, Right):
    """Has two bases that are not related."""


class Dispatcher:
    """Calls the first function whose class fits, as no other is more special."""

    def __init__(self) -> None:
        self.functions: dict[type, str] = {}

    def add(self, base: type) -> Callable[[], None]:
        self.functions[base] = base.__name__
        return lambda: self.functions.__delitem__(base)

    def call(self) -> str:
        fitting = (self.functions[each] for each in self.searched())
        return next(fitting, "none")

    def searched(self) -> list[type]:
        return [each for each in self.functions if issubclass(Both, each)]


class LinearDispatcher(Dispatcher):
    """It searches the bases in the order of the class."""

    def searched(self) -> list[type]:
        return [each for each in Both.__mro__ if each in self.functions]


def dispatch_by_definition() -> Scenario:
    """The function that was defined first is called: mrocklin/multipledispatch#118."""
    return dispatchers(Dispatcher)


def dispatch_by_definition_mended() -> Scenario:
    """The order of the bases decides."""
    return dispatchers(LinearDispatcher)


def dispatchers(create: type[Dispatcher]) -> Scenario:
    return Scenario(
        *steps("add", [Left, Right], create.add),
        uses=[use("call", create.call)],
        create=create,
    )
