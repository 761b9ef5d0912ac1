"""Class decorators: models and serializers that are registered by decorating a class.

A step decorates a class of the scenario and its undo takes the decoration back.  The
registry computes fields from the class and its bases, and may store them on the class.
"""

from collections.abc import Callable, Iterator
from typing import Any

from tests.zoo.realistic.specimen import (
    Interface,
    Registration,
    Specimen,
    specimens_of,
)

FIELDS = {"Model": ("id",), "User": ("name",), "Admin": ("level",)}


class ModelRegistry:
    """Makes three classes of its own, and caches the fields of each."""

    def __init__(self) -> None:
        model = type("Model", (), {})
        user = type("User", (model,), {})
        self.classes: dict[str, type] = {
            "Model": model,
            "User": user,
            "Admin": type("Admin", (user,), {}),
        }
        self._registered: dict[str, type] = {}
        self._fields: dict[str, tuple[str, ...]] = {}

    def decorate(self, cls: type) -> Callable[[], None]:
        self._registered[cls.__name__] = cls
        self._changed(cls)
        return lambda: self._forget(cls)

    def _forget(self, cls: type) -> None:
        del self._registered[cls.__name__]
        self._changed(cls)

    def _changed(self, cls: type) -> None:
        self._fields.clear()

    def _collect(self, cls: type) -> tuple[str, ...]:
        return tuple(
            field
            for base in reversed(cls.__mro__)
            if base.__name__ in self._registered
            for field in FIELDS[base.__name__]
        )

    def fields(self, name: str) -> tuple[str, ...]:
        if name not in self._fields:
            self._fields[name] = self._collect(self.classes[name])
        return self._fields[name]

    def names(self) -> list[str]:
        return sorted(self._registered)


class LazyFieldModels(ModelRegistry):
    """Stores the fields on the class when they are first needed."""

    def fields(self, name: str) -> tuple[str, ...]:
        cls = self.classes[name]
        if "__fields__" not in vars(cls):
            cls.__fields__ = self._collect(cls)  # type: ignore[attr-defined]  # created here
        return vars(cls)["__fields__"]  # type: ignore[no-any-return]  # fields

    def _changed(self, cls: type) -> None:
        for each in (cls, *self._below(cls)):
            if "__fields__" in vars(each):
                del each.__fields__  # type: ignore[attr-defined]  # created above

    def _below(self, cls: type) -> list[type]:
        below: list[type] = cls.__subclasses__()
        return [*below, *(each for inner in below for each in self._below(inner))]


class MarkedModels(ModelRegistry):
    """Marks a class with an attribute, and looks at the marks of all bases."""

    def decorate(self, cls: type) -> Callable[[], None]:
        cls.__marked__ = True  # type: ignore[attr-defined]  # created here
        return super().decorate(cls)

    def _forget(self, cls: type) -> None:
        del cls.__marked__  # type: ignore[attr-defined]  # created above
        super()._forget(cls)

    def _collect(self, cls: type) -> tuple[str, ...]:
        return tuple(
            field
            for base in reversed(cls.__mro__)
            if "__marked__" in vars(base)
            for field in FIELDS[base.__name__]
        )


class DescribedModels(ModelRegistry):
    """Adds a method to a class, which overrides that of its base."""

    def decorate(self, cls: type) -> Callable[[], None]:
        own = FIELDS[cls.__name__]

        def describe(self: Any) -> tuple[str, ...]:
            inherited = getattr(super(cls, self), "describe", tuple)
            return (*inherited(), *own)

        cls.describe = describe  # type: ignore[attr-defined]  # created here
        return super().decorate(cls)

    def _forget(self, cls: type) -> None:
        del cls.describe  # type: ignore[attr-defined]  # created above
        super()._forget(cls)

    def fields(self, name: str) -> tuple[str, ...]:
        return getattr(self.classes[name](), "describe", tuple)()


class ScanningModels(ModelRegistry):
    """Collects the fields for each question."""

    def fields(self, name: str) -> tuple[str, ...]:
        return self._collect(self.classes[name])


class VersionModels(ModelRegistry):
    """Counts changes for each class, and forgets the count with the cache."""

    def __init__(self) -> None:
        super().__init__()
        self._versions = dict.fromkeys(self.classes, 0)
        self._stamped: dict[str, tuple[int, tuple[str, ...]]] = {}

    def _changed(self, cls: type) -> None:
        for name, each in self.classes.items():
            if issubclass(each, cls):
                self._versions[name] = (self._versions[name] + 1) % 2
                if self._versions[name] == 0:
                    self._stamped.pop(name, None)

    def fields(self, name: str) -> tuple[str, ...]:
        version = self._versions[name]
        stamp, fields = self._stamped.get(name, (-1, ()))
        if stamp != version:
            fields = self._collect(self.classes[name])
            self._stamped[name] = (version, fields)
        return fields


class OwnFieldModels(LazyFieldModels):
    def _below(self, cls: type) -> list[type]:
        return []


class DirectSubclassModels(LazyFieldModels):
    def _below(self, cls: type) -> list[type]:
        return cls.__subclasses__()


class InheritedCacheModels(LazyFieldModels):
    def fields(self, name: str) -> tuple[str, ...]:
        cls = self.classes[name]
        if not hasattr(cls, "__fields__"):
            cls.__fields__ = self._collect(cls)  # type: ignore[attr-defined]  # created here
        return cls.__fields__  # type: ignore[attr-defined,no-any-return]  # fields


class UnmarkedModels(MarkedModels):
    def _forget(self, cls: type) -> None:
        ModelRegistry._forget(self, cls)


class InheritedMarkModels(MarkedModels):
    def decorate(self, cls: type) -> Callable[[], None]:
        if not hasattr(cls, "__marked__"):
            return super().decorate(cls)
        return ModelRegistry.decorate(self, cls)

    def _forget(self, cls: type) -> None:
        if "__marked__" in vars(cls):
            del cls.__marked__  # type: ignore[attr-defined]  # created above
        ModelRegistry._forget(self, cls)


class BoundBaseModels(DescribedModels):
    def decorate(self, cls: type) -> Callable[[], None]:
        own = FIELDS[cls.__name__]
        inherited = getattr(cls, "describe", lambda self: ())

        def describe(self: Any) -> tuple[str, ...]:
            return (*inherited(self), *own)

        cls.describe = describe  # type: ignore[attr-defined]  # created here
        return ModelRegistry.decorate(self, cls)


class RestoredMethodModels(DescribedModels):
    def decorate(self, cls: type) -> Callable[[], None]:
        before = getattr(cls, "describe", None)
        super().decorate(cls)

        def undo() -> None:
            if before is None:
                del cls.describe  # type: ignore[attr-defined]  # created above
            else:
                cls.describe = before  # type: ignore[attr-defined]  # created above
            ModelRegistry._forget(self, cls)

        return undo


class CopiedFieldModels(ModelRegistry):
    def _changed(self, cls: type) -> None:
        fields = self._fields.pop(cls.__name__, ())
        if not fields:
            self._fields.clear()


class WrappedVersionModels(VersionModels):
    def _changed(self, cls: type) -> None:
        for name, each in self.classes.items():
            if issubclass(each, cls):
                self._versions[name] = (self._versions[name] + 1) % 3


class LastDecoratedModels(ModelRegistry):
    def _collect(self, cls: type) -> tuple[str, ...]:
        bases = {base.__name__ for base in cls.__mro__}
        return tuple(
            field
            for name in self._registered
            if name in bases
            for field in FIELDS[name]
        )


def decorated(name: str) -> Callable[[Any], Callable[[], None]]:
    return lambda models: models.decorate(models.classes[name])


MODELS = Interface(
    "class decorators",
    (
        Registration("models.decorate(Model)", decorated("Model")),
        Registration("models.decorate(User)", decorated("User")),
        Registration("models.decorate(Admin)", decorated("Admin")),
    ),
    (
        ('models.fields("Admin")', lambda models: models.fields("Admin")),
        ('models.fields("User")', lambda models: models.fields("User")),
    ),
    lambda models: " ".join(models.names()),
)


def specimens() -> Iterator[Specimen]:
    """Yield all registries of decorated classes."""
    yield from specimens_of(
        MODELS,
        (
            ModelRegistry,
            LazyFieldModels,
            MarkedModels,
            DescribedModels,
            ScanningModels,
            VersionModels,
        ),
        {
            OwnFieldModels: "stored fields of subclasses survive a change",
            DirectSubclassModels: "stored fields two classes below survive a change",
            InheritedCacheModels: "the stored fields of a base are taken as one's own",
            UnmarkedModels: "the mark stays on the class",
            InheritedMarkModels: "a class whose base is marked gets no mark",
            BoundBaseModels: "a method holds the one that its base had at first",
            RestoredMethodModels: "an inherited method is restored as one's own",
            CopiedFieldModels: "only the class's own cached fields are dropped",
            WrappedVersionModels: "the version wraps after three changes",
            LastDecoratedModels: "fields are listed in the order of decorating",
        },
    )
