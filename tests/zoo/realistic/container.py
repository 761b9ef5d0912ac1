"""Containers of services: providers by name, with singletons and scopes.

`get(name)` creates a service once and stores it; an override replaces a provider while
it is active; a scope has services of its own and closes them at its end.
"""

from collections.abc import Callable, Generator, Iterator
from typing import Any

from tests.zoo.realistic.specimen import (
    Interface,
    Registration,
    Specimen,
    specimens_of,
)

Provider = Callable[["Container"], str]


def real_database(container: "Container") -> str:
    return "postgres"


def fake_database(container: "Container") -> str:
    return "memory"


def users(container: "Container") -> str:
    return f"users of {container.get('database')}"


class Container:
    """Stores singletons; a change of providers drops all of them."""

    def __init__(self) -> None:
        self._providers: dict[str, Provider] = {}
        self._overrides: dict[str, Provider] = {}
        self._singletons: dict[str, str] = {}

    def provide(self, name: str, provider: Provider) -> Callable[[], None]:
        self._providers[name] = provider
        self._changed(name)

        def undo() -> None:
            del self._providers[name]
            self._changed(name)

        return undo

    def override(self, name: str, provider: Provider) -> Generator[None, None, None]:
        self._overrides[name] = provider
        self._changed(name)
        yield
        del self._overrides[name]
        self._changed(name)

    def _changed(self, name: str) -> None:
        self._singletons.clear()

    def _provider(self, name: str) -> Provider:
        try:
            return self._overrides.get(name) or self._providers[name]
        except KeyError:
            raise LookupError(f"no provider of {name}") from None

    def get(self, name: str) -> str:
        if name not in self._singletons:
            self._singletons[name] = self._provider(name)(self)
        return self._singletons[name]

    def names(self) -> list[str]:
        return sorted({*self._providers, *self._overrides})


class DependentContainer(Container):
    """Records which service was created from which, and drops only those."""

    def __init__(self) -> None:
        super().__init__()
        self._creating: list[str] = []
        self._dependants: dict[str, set[str]] = {}

    def get(self, name: str) -> str:
        if self._creating:
            self._dependants.setdefault(name, set()).add(self._creating[-1])
        self._creating.append(name)
        try:
            return super().get(name)
        finally:
            self._creating.pop()

    def _changed(self, name: str) -> None:
        self._singletons.pop(name, None)
        for dependant in self._dependants.pop(name, ()):
            self._changed(dependant)


class TransientContainer(Container):
    """Creates a service for each request."""

    def get(self, name: str) -> str:
        return self._provider(name)(self)


class LayeredContainer(Container):
    """Has one layer of services for overrides, and one for the plain providers."""

    def __init__(self) -> None:
        super().__init__()
        self._layers: dict[bool, dict[str, str]] = {False: {}, True: {}}

    def _changed(self, name: str) -> None:
        for layer in self._layers.values():
            layer.clear()

    def get(self, name: str) -> str:
        layer = self._layers[bool(self._overrides)]
        if name not in layer:
            layer[name] = self._provider(name)(self)
        return layer[name]


class AttributeContainer(Container):
    """Stores a service as an attribute that is created lazily."""

    def get(self, name: str) -> str:
        attribute = f"_service_{name}"
        try:
            return getattr(self, attribute)  # type: ignore[no-any-return]  # a service
        except AttributeError:
            service = self._provider(name)(self)
            setattr(self, attribute, service)
            return service

    def _changed(self, name: str) -> None:
        for attribute in list(vars(self)):
            if attribute.startswith("_service_"):
                delattr(self, attribute)


class GenerationContainer(Container):
    """Stamps services with a generation that is reset when all are dropped."""

    def __init__(self) -> None:
        super().__init__()
        self._generation = 0
        self._stamps: dict[str, int] = {}

    def _changed(self, name: str) -> None:
        self._generation += 1
        if self._generation == 3:
            self._generation = 0
            self._stamps.clear()

    def get(self, name: str) -> str:
        if self._stamps.get(name) != self._generation:
            self._singletons[name] = self._provider(name)(self)
            self._stamps[name] = self._generation
        return self._singletons[name]


class OwnServiceContainer(Container):
    def _changed(self, name: str) -> None:
        self._singletons.pop(name, None)


class OverrideLeakContainer(Container):
    def override(self, name: str, provider: Provider) -> Generator[None, None, None]:
        self._overrides[name] = provider
        self._changed(name)
        yield
        del self._overrides[name]


class RestoredProviderContainer(Container):
    def override(self, name: str, provider: Provider) -> Generator[None, None, None]:
        before = self._providers.get(name)
        self._providers[name] = provider
        self._changed(name)
        yield
        if before is None:
            self._providers.pop(name, None)
        else:
            self._providers[name] = before
        self._changed(name)


class WrongScopeContainer(LayeredContainer):
    def _changed(self, name: str) -> None:
        self._layers[not self._overrides].clear()


class UnfinishedGraphContainer(DependentContainer):
    def get(self, name: str) -> str:
        if name in self._singletons:
            return self._singletons[name]
        return super().get(name)

    def _changed(self, name: str) -> None:
        self._singletons.pop(name, None)
        for dependant in self._dependants.get(name, ()):
            if dependant in self._singletons and name in self._overrides:
                del self._singletons[dependant]


class FrozenContainer(Container):
    def provide(self, name: str, provider: Provider) -> Callable[[], None]:
        if self._singletons:
            raise RuntimeError("the container has started")
        return super().provide(name, provider)


class DefaultingContainer(Container):
    def get(self, name: str) -> str:
        if name not in self._providers and name not in self._overrides:
            self._providers[name] = real_database
        return super().get(name)

    def provide(self, name: str, provider: Provider) -> Callable[[], None]:
        super().provide(name, provider)

        def undo() -> None:
            self._providers.pop(name, None)
            self._changed(name)

        return undo


class FailedCreationContainer(DependentContainer):
    def get(self, name: str) -> str:
        if self._creating:
            self._dependants.setdefault(name, set()).add(self._creating[-1])
        self._creating.append(name)
        service = Container.get(self, name)
        self._creating.pop()
        return service if len(self._creating) < 2 else f"{service}, late"


class ShortGenerationContainer(GenerationContainer):
    def _changed(self, name: str) -> None:
        self._generation = (self._generation + 1) % 4


def provided(name: str, provider: Provider) -> Callable[[Any], Callable[[], None]]:
    return lambda container: container.provide(name, provider)


class StrictContainer(Container):
    """Is wired from the bottom: a provider is removed after its dependants."""


class StrictGraphContainer(DependentContainer):
    """Is wired from the bottom, and drops only what depends on a change."""


class StrictOwnContainer(OwnServiceContainer):
    pass


class StrictLeakContainer(OverrideLeakContainer):
    pass


CONTAINER = Interface(
    "container",
    (
        Registration(
            'container.provide("database", real_database)',
            provided("database", real_database),
        ),
        Registration('container.provide("users", users)', provided("users", users)),
        Registration(
            'container.override("database", fake_database)',
            lambda container: container.override("database", fake_database),
        ),
    ),
    (('container.get("users")', lambda container: container.get("users")),),
    lambda container: " ".join(container.names()),
)
WIRED = Interface(
    "container",
    (
        Registration(
            'container.provide("database", real_database)',
            provided("database", real_database),
        ),
        Registration(
            'container.provide("users", users)',
            provided("users", users),
            requires=('container.provide("database", real_database)',),
        ),
        Registration(
            'container.override("database", fake_database)',
            lambda container: container.override("database", fake_database),
            after=('container.provide("database", real_database)',),
        ),
    ),
    (
        ('container.get("users")', lambda container: container.get("users")),
        ('container.get("database")', lambda container: container.get("database")),
    ),
    lambda container: " ".join(container.names()),
)


def specimens() -> Iterator[Specimen]:
    """Yield all containers."""
    yield from specimens_of(
        CONTAINER,
        (
            Container,
            DependentContainer,
            TransientContainer,
            LayeredContainer,
            AttributeContainer,
            GenerationContainer,
        ),
        {
            OwnServiceContainer: "services created from a changed one are kept",
            OverrideLeakContainer: "services created under an override outlive it",
            RestoredProviderContainer: "an override restores the provider before it",
            WrongScopeContainer: "the end of an override clears the wrong layer",
            UnfinishedGraphContainer: "dependants are dropped only under an override",
            FrozenContainer: "a provider is refused once a service was created",
            DefaultingContainer: "a look-up registers a default provider",
            FailedCreationContainer: "a failed creation stays on the stack",
            ShortGenerationContainer: "the generation wraps and old services are valid",
        },
    )
    yield from specimens_of(
        WIRED,
        (StrictContainer, StrictGraphContainer),
        {
            StrictOwnContainer: "services created from an overridden one are kept",
            StrictLeakContainer: "services created under an override outlive it",
        },
    )
