"""Middleware stacks: applications wrapped by layers, the lowest rank outermost.

The wrapped application is built for the first request and dropped when the layers
change.  In `STACK` layers have ranks; in `CHAIN` the order of adding two of them shows,
and is declared.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, reduce
from typing import Any

from tests.zoo.realistic.specimen import (
    Interface,
    Registration,
    Specimen,
    specimens_of,
)

App = Callable[[str], str]
Layer = Callable[[App, str], str]


def endpoint(path: str) -> str:
    return f"page {path}"


def with_gzip(app: App, path: str) -> str:
    return f"gzip({app(path)})"


def with_session(app: App, path: str) -> str:
    return f"session({app(path)})"


def with_cors(app: App, path: str) -> str:
    return f"cors({app(path)})"


RANKS: dict[Layer, int] = {with_gzip: 1, with_session: 2, with_cors: 3}


class MiddlewareStack:
    """Builds the wrapped application lazily."""

    def __init__(self) -> None:
        self._layers: list[Layer] = []
        self._app: App | None = None

    def add(self, layer: Layer) -> Callable[[], None]:
        self._layers.append(layer)
        self._app = None
        return lambda: self._remove(layer)

    def _remove(self, layer: Layer) -> None:
        self._layers.remove(layer)
        self._app = None

    def _ordered(self) -> list[Layer]:
        return sorted(self._layers, key=RANKS.__getitem__)

    def _build(self) -> App:
        app: App = endpoint
        for layer in reversed(self._ordered()):
            app = partial(layer, app)
        return app

    def request(self, path: str) -> str:
        if self._app is None:
            self._app = self._build()
        return self._app(path)

    def size(self) -> int:
        return len(self._layers)


class FoldedStack(MiddlewareStack):
    """Folds the layers for each request."""

    def request(self, path: str) -> str:
        def wrapped(app: App, layer: Layer) -> App:
            return lambda path: layer(app, path)

        first: App = endpoint
        return reduce(wrapped, reversed(self._ordered()), first)(path)


class ContextStack(MiddlewareStack):
    """Adds a layer by a context manager."""

    @contextmanager
    def add(self, layer: Layer) -> Iterator[None]:  # type: ignore[override]  # a context manager undoes, too
        undo = super().add(layer)
        try:
            yield
        finally:
            undo()


class PrebuiltStack(MiddlewareStack):
    """Builds at once, and after each change."""

    def __init__(self) -> None:
        super().__init__()
        self._app = self._build()

    def add(self, layer: Layer) -> Callable[[], None]:
        self._layers.append(layer)
        self._app = self._build()
        return lambda: self._remove(layer)

    def _remove(self, layer: Layer) -> None:
        self._layers.remove(layer)
        self._app = self._build()


class MaskStack(MiddlewareStack):
    """Keeps a bit for each rank, and the applications by mask: never stale."""

    def __init__(self) -> None:
        super().__init__()
        self._mask = 0
        self._apps: dict[int, App] = {}

    def add(self, layer: Layer) -> Callable[[], None]:
        bit = 1 << RANKS[layer]
        self._layers.append(layer)
        self._mask |= bit

        def undo() -> None:
            self._layers.remove(layer)
            self._mask &= ~bit

        return undo

    def request(self, path: str) -> str:
        if self._mask not in self._apps:
            self._apps[self._mask] = self._build()
        return self._apps[self._mask](path)


class InsertingStack(MiddlewareStack):
    """Inserts a layer before the first one of a higher rank."""

    def add(self, layer: Layer) -> Callable[[], None]:
        position = sum(RANKS[each] < RANKS[layer] for each in self._layers)
        self._layers.insert(position, layer)
        self._app = None
        return lambda: self._remove(layer)

    def _ordered(self) -> list[Layer]:
        return list(self._layers)


class BuiltOnceStack(MiddlewareStack):
    def add(self, layer: Layer) -> Callable[[], None]:
        self._layers.append(layer)
        return lambda: self._remove(layer)


class KeptAppStack(MiddlewareStack):
    def _remove(self, layer: Layer) -> None:
        self._layers.remove(layer)


class PoppingStack(MiddlewareStack):
    def _remove(self, layer: Layer) -> None:
        self._layers.pop()
        self._app = None


class WrappingStack(MiddlewareStack):
    def __init__(self) -> None:
        super().__init__()
        self._app = endpoint

    def add(self, layer: Layer) -> Callable[[], None]:
        before = self._app
        assert before is not None, "there is always an application"
        self._layers.append(layer)
        self._app = partial(layer, before)

        def undo() -> None:
            self._layers.remove(layer)
            self._app = before

        return undo


class LowMaskStack(MaskStack):
    def request(self, path: str) -> str:
        mask = self._mask & 0b110
        if mask not in self._apps:
            self._apps[mask] = self._build()
        return self._apps[mask](path)


class OffByOneStack(InsertingStack):
    def add(self, layer: Layer) -> Callable[[], None]:
        position = next(
            (
                number
                for number, each in enumerate(self._layers)
                if RANKS[each] == RANKS[layer] + 1
            ),
            len(self._layers),
        )
        self._layers.insert(position, layer)
        self._app = None
        return lambda: self._remove(layer)


class OuterOnlyStack(MiddlewareStack):
    def _remove(self, layer: Layer) -> None:
        outermost = self._ordered()[0]
        self._layers.remove(layer)
        if layer is outermost:
            self._app = None


class TwiceStack(MiddlewareStack):
    def request(self, path: str) -> str:
        answer = super().request(path)
        if len(self._layers) == 3:
            # An adapter for old servers is meant to be put on once.
            self._app = partial(with_gzip, self._app or endpoint)
        return answer


class ClosedStack(MiddlewareStack):
    def add(self, layer: Layer) -> Callable[[], None]:
        if self._app is not None:
            raise RuntimeError("the application has started")
        return super().add(layer)


class ChainStack(MiddlewareStack):
    """The layer that is added last is outermost; two of them may show their order."""

    def _ordered(self) -> list[Layer]:
        both = [each for each in self._layers if each is not with_cors]
        return [*([with_cors] if with_cors in self._layers else []), *reversed(both)]


class AlternatingChainStack(ChainStack):
    """Keeps the two layers in a tuple that is replaced."""

    def __init__(self) -> None:
        super().__init__()
        self._pair: tuple[Layer, ...] = ()

    def add(self, layer: Layer) -> Callable[[], None]:
        if layer is not with_cors:
            self._pair = (layer, *self._pair)
        return super().add(layer)

    def _remove(self, layer: Layer) -> None:
        super()._remove(layer)
        self._pair = tuple(each for each in self._pair if each is not layer)

    def _ordered(self) -> list[Layer]:
        return [*([with_cors] if with_cors in self._layers else []), *self._pair]


class WholeChainStack(ChainStack):
    def _ordered(self) -> list[Layer]:
        return list(reversed(self._layers))


class RevertedChainStack(ChainStack):
    def _remove(self, layer: Layer) -> None:
        super()._remove(layer)
        if layer is with_cors:
            self._layers.reverse()


def added(layer: Layer) -> Callable[[Any], Any]:
    return lambda stack: stack.add(layer)


ADDITIONS = (
    Registration("stack.add(with_gzip)", added(with_gzip)),
    Registration("stack.add(with_session)", added(with_session)),
    Registration("stack.add(with_cors)", added(with_cors)),
)
REQUESTS = (('stack.request("/")', lambda stack: stack.request("/")),)
STACK = Interface(
    "middleware", ADDITIONS, REQUESTS, lambda stack: f"{stack.size()} layers"
)
CHAIN = Interface(
    "middleware",
    ADDITIONS,
    REQUESTS,
    lambda stack: f"{stack.size()} layers",
    ordered=(("stack.add(with_gzip)", "stack.add(with_session)"),),
)


def specimens() -> Iterator[Specimen]:
    """Yield all middleware stacks."""
    yield from specimens_of(
        STACK,
        (
            MiddlewareStack,
            FoldedStack,
            ContextStack,
            PrebuiltStack,
            MaskStack,
            InsertingStack,
        ),
        {
            BuiltOnceStack: "a layer that is added after the first request is ignored",
            KeptAppStack: "a removed layer stays in the built application",
            PoppingStack: "removing takes the newest layer, whichever it is",
            WrappingStack: "removing restores the application before the layer",
            LowMaskStack: "the mask of cached applications leaves a rank out",
            OffByOneStack: "a layer is put before the next rank, or else last",
            OuterOnlyStack: "removing an inner layer keeps the application",
            TwiceStack: "a request wraps the cached application once more",
            ClosedStack: "a layer is refused after the first request",
        },
    )
    yield from specimens_of(
        CHAIN,
        (ChainStack, AlternatingChainStack),
        {
            WholeChainStack: "the order shows of layers that are not declared",
            RevertedChainStack: "removing an undeclared layer reverts the declared two",
        },
    )
