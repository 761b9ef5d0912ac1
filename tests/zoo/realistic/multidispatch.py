"""Multiple dispatch: implementations by class, found along the MRO and cached.

`dispatch(cls)` returns the implementation of the nearest class in the method resolution
order; the cache is keyed by the class that was asked for.
"""

from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

from tests.zoo.realistic.specimen import (
    Interface,
    Registration,
    Specimen,
    specimens_of,
)

Handler = Callable[[], str]


class Shape:
    """The root of the classes that are dispatched on."""


class Polygon(Shape):
    """A class between the two."""


class Square(Polygon):
    """The class that is asked for."""


def draw_shape() -> str:
    return "shape"


def draw_polygon() -> str:
    return "polygon"


def draw_square() -> str:
    return "square"


class Multimethod:
    """Caches the implementation of each class; a change clears the cache."""

    def __init__(self) -> None:
        self._handlers: dict[type, Handler] = {}
        self._cache: dict[type, Handler] = {}

    def register(self, cls: type, handler: Handler) -> Callable[[], None]:
        self._handlers[cls] = handler
        self._changed(cls)
        return lambda: self._remove(cls)

    def _remove(self, cls: type) -> None:
        del self._handlers[cls]
        self._changed(cls)

    def _changed(self, cls: type) -> None:
        self._cache.clear()

    def _nearest(self, cls: type) -> Handler:
        for base in cls.__mro__:
            if base in self._handlers:
                return self._handlers[base]
        raise LookupError(cls.__name__)

    def dispatch(self, cls: type) -> str:
        if cls not in self._cache:
            self._cache[cls] = self._nearest(cls)
        return self._cache[cls]()

    def classes(self) -> list[str]:
        return sorted(cls.__name__ for cls in self._handlers)


class SubclassMultimethod(Multimethod):
    """Drops the cached implementations of only the subclasses of what changed."""

    def _changed(self, cls: type) -> None:
        for cached in [each for each in self._cache if issubclass(each, cls)]:
            del self._cache[cached]


class WeakCacheMultimethod(Multimethod):
    """Caches by weak reference, so that a class can be collected."""

    def __init__(self) -> None:
        super().__init__()
        self._weak: WeakKeyDictionary[type, Handler] = WeakKeyDictionary()

    def _changed(self, cls: type) -> None:
        self._weak.clear()

    def dispatch(self, cls: type) -> str:
        handler = self._weak.get(cls)
        if handler is None:
            handler = self._weak[cls] = self._nearest(cls)
        return handler()


class VersionedMultimethod(Multimethod):
    """Caches with the frozen handlers that the implementation was found in."""

    def __init__(self) -> None:
        super().__init__()
        self._versions: dict[type, tuple[frozenset[type], Handler]] = {}

    def dispatch(self, cls: type) -> str:
        version = frozenset(self._handlers)
        cached = self._versions.get(cls)
        if cached is None or cached[0] != version:
            cached = self._versions[cls] = (version, self._nearest(cls))
        return cached[1]()


class OrderedMultimethod(Multimethod):
    """Keeps the classes in an order of subclasses first, computed when needed."""

    def __init__(self) -> None:
        super().__init__()
        self._ordering: list[type] | None = None

    def _changed(self, cls: type) -> None:
        self._ordering = None

    def dispatch(self, cls: type) -> str:
        if self._ordering is None:
            self._ordering = sorted(self._handlers, key=lambda c: -len(c.__mro__))
        for base in self._ordering:
            if issubclass(cls, base):
                return self._handlers[base]()
        raise LookupError(cls.__name__)


class LastHitMultimethod(Multimethod):
    """Remembers only the last class and its implementation."""

    def __init__(self) -> None:
        super().__init__()
        self._last: tuple[type, Handler] | None = None

    def _changed(self, cls: type) -> None:
        if self._last is not None and issubclass(self._last[0], cls):
            self._last = None

    def dispatch(self, cls: type) -> str:
        if self._last is None or self._last[0] is not cls:
            self._last = (cls, self._nearest(cls))
        return self._last[1]()


class ExactInvalidationMultimethod(Multimethod):
    def _changed(self, cls: type) -> None:
        self._cache.pop(cls, None)


class DirectBasesMultimethod(Multimethod):
    def _changed(self, cls: type) -> None:
        for cached in [c for c in self._cache if c is cls or cls in c.__bases__]:
            del self._cache[cached]


class NeverClearedMultimethod(Multimethod):
    def _changed(self, cls: type) -> None:
        if cls in self._handlers:
            self._cache.clear()


class SizeStampMultimethod(Multimethod):
    def __init__(self) -> None:
        super().__init__()
        self._stamped: dict[type, tuple[int, Handler]] = {}

    def dispatch(self, cls: type) -> str:
        size = len(self._handlers)
        cached = self._stamped.get(cls)
        if cached is None or cached[0] != size:
            cached = self._stamped[cls] = (size, self._nearest(cls))
        return cached[1]()


class FirstMatchMultimethod(Multimethod):
    def _nearest(self, cls: type) -> Handler:
        for base, handler in self._handlers.items():
            if issubclass(cls, base):
                return handler
        raise LookupError(cls.__name__)


class StaleOrderingMultimethod(OrderedMultimethod):
    def _changed(self, cls: type) -> None:
        if self._ordering is None:
            return
        if cls in self._handlers:
            self._ordering.append(cls)
        else:
            self._ordering.remove(cls)


class PromotedMultimethod(Multimethod):
    def __init__(self) -> None:
        super().__init__()
        self._named: set[str] = set()

    def _changed(self, cls: type) -> None:
        self._named ^= {cls.__name__}

    def dispatch(self, cls: type) -> str:
        handler = self._nearest(cls)
        # An inherited implementation is entered for the class itself.
        self._handlers.setdefault(cls, handler)
        return handler()

    def classes(self) -> list[str]:
        return sorted(self._named)


class MissCacheMultimethod(Multimethod):
    def __init__(self) -> None:
        super().__init__()
        self._misses: set[type] = set()

    def _changed(self, cls: type) -> None:
        super()._changed(cls)
        self._misses.discard(cls)

    def dispatch(self, cls: type) -> str:
        if cls in self._misses:
            raise LookupError(cls.__name__)
        try:
            return super().dispatch(cls)
        except LookupError:
            self._misses.add(cls)
            raise


class ReplacedHandlerMultimethod(Multimethod):
    def register(self, cls: type, handler: Handler) -> Callable[[], None]:
        below = [c for c in self._handlers if c is not cls and issubclass(cls, c)]
        replaced = {c: self._handlers.pop(c) for c in below[:1] if len(below) > 1}
        undo = super().register(cls, handler)

        def restored() -> None:
            undo()
            self._handlers.update(replaced)

        return restored


def registered(cls: type, handler: Handler) -> Callable[[Any], Callable[[], None]]:
    return lambda method: method.register(cls, handler)


MULTIMETHOD = Interface(
    "multidispatch",
    (
        Registration("draw.register(Shape, draw_shape)", registered(Shape, draw_shape)),
        Registration(
            "draw.register(Polygon, draw_polygon)", registered(Polygon, draw_polygon)
        ),
        Registration(
            "draw.register(Square, draw_square)", registered(Square, draw_square)
        ),
    ),
    (
        ("draw.dispatch(Square)", lambda draw: draw.dispatch(Square)),
        ("draw.dispatch(Polygon)", lambda draw: draw.dispatch(Polygon)),
    ),
    lambda draw: " ".join(draw.classes()),
)


def specimens() -> Iterator[Specimen]:
    """Yield all multimethods."""
    yield from specimens_of(
        MULTIMETHOD,
        (
            Multimethod,
            SubclassMultimethod,
            WeakCacheMultimethod,
            VersionedMultimethod,
            OrderedMultimethod,
            LastHitMultimethod,
        ),
        {
            ExactInvalidationMultimethod: "cached subclasses survive a change",
            DirectBasesMultimethod: "a change two classes above is not noticed",
            NeverClearedMultimethod: "the cache survives that a class is removed",
            SizeStampMultimethod: "the stamp is the number of classes only",
            FirstMatchMultimethod: "the first registered base wins, not the nearest",
            StaleOrderingMultimethod: "a new class is appended to the cached ordering",
            PromotedMultimethod: "an inherited implementation stays with the class",
            MissCacheMultimethod: "a cached miss of a subclass survives a change",
            ReplacedHandlerMultimethod: "a third class replaces the first one below it",
        },
    )
