"""Context variables: settings that a block overrides, set and reset by tokens.

Each registry creates a variable; a step enters a block that changes the settings, and
its undo leaves the block.  Blocks need not end in the order in which they began.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, Token, copy_context
from typing import Any

from tests.zoo.realistic.specimen import (
    Interface,
    Registration,
    Specimen,
    specimens_of,
)

Settings = tuple[tuple[str, int], ...]


class ContextSettings:
    """Holds an immutable tuple of settings in a variable."""

    def __init__(self) -> None:
        self._variable: ContextVar[Settings] = ContextVar("settings", default=())

    @contextmanager
    def block(self, name: str, value: int) -> Iterator[None]:
        self._enter(name, value)
        yield
        self._leave(name, value)

    def _enter(self, name: str, value: int) -> None:
        self._variable.set(tuple(sorted((*self._variable.get(), (name, value)))))

    def _leave(self, name: str, value: int) -> None:
        rest = list(self._variable.get())
        rest.remove((name, value))
        self._variable.set(tuple(rest))

    def value(self, name: str) -> int:
        values = [value for other, value in self._variable.get() if other == name]
        return max(values, default=0)

    def size(self) -> int:
        return len(self._variable.get())


class SeparateSettings(ContextSettings):
    """Has a variable for each setting, created when it is first needed."""

    def __init__(self) -> None:
        super().__init__()
        self._variables: dict[str, ContextVar[tuple[int, ...]]] = {}

    def _of(self, name: str) -> ContextVar[tuple[int, ...]]:
        if name not in self._variables:
            self._variables[name] = ContextVar(name, default=())
        return self._variables[name]

    def _enter(self, name: str, value: int) -> None:
        variable = self._of(name)
        variable.set(tuple(sorted((*variable.get(), value))))

    def _leave(self, name: str, value: int) -> None:
        variable = self._of(name)
        rest = list(variable.get())
        rest.remove(value)
        variable.set(tuple(rest))

    def value(self, name: str) -> int:
        return max(self._of(name).get(), default=0)

    def size(self) -> int:
        return sum(len(each.get()) for each in self._variables.values())


class MaskedSettings(ContextSettings):
    """Counts the blocks of each setting and value in a dict that is copied."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: ContextVar[dict[tuple[str, int], int]] = ContextVar("counts")

    def _added(self, key: tuple[str, int], number: int) -> None:
        counts = dict(self._counts.get({}))
        counts[key] = counts.get(key, 0) + number
        self._counts.set({k: n for k, n in sorted(counts.items()) if n})

    def _enter(self, name: str, value: int) -> None:
        self._added((name, value), 1)

    def _leave(self, name: str, value: int) -> None:
        self._added((name, value), -1)

    def value(self, name: str) -> int:
        values = [value for other, value in self._counts.get({}) if other == name]
        return max(values, default=0)

    def size(self) -> int:
        return sum(self._counts.get({}).values())


class FinallySettings(MaskedSettings):
    """Leaves a block that is abandoned, too: in the context of who collects it."""

    @contextmanager
    def block(self, name: str, value: int) -> Iterator[None]:
        self._enter(name, value)
        try:
            yield
        finally:
            self._leave(name, value)


class CachedSettings(ContextSettings):
    """Caches the answer beside the tuple that it was computed from."""

    def __init__(self) -> None:
        super().__init__()
        self._cache: dict[str, tuple[Settings, int]] = {}

    def value(self, name: str) -> int:
        settings = self._variable.get()
        cached = self._cache.get(name)
        if cached is None or cached[0] is not settings:
            cached = self._cache[name] = (settings, super().value(name))
        return cached[1]


class OwnContextSettings(ContextSettings):
    """Runs everything in a context of the registry."""

    def __init__(self) -> None:
        super().__init__()
        self._context: Context = copy_context()

    def _enter(self, name: str, value: int) -> None:
        self._context.run(super()._enter, name, value)

    def _leave(self, name: str, value: int) -> None:
        self._context.run(super()._leave, name, value)

    def value(self, name: str) -> int:
        return self._context.run(super().value, name)

    def size(self) -> int:
        return self._context.run(super().size)


class CopiedContextSettings(OwnContextSettings):
    """Goes on in a fresh copy of the caller's context when a block is left."""

    def _leave(self, name: str, value: int) -> None:
        super()._leave(name, value)
        settings = self._context.run(self._variable.get)
        self._context = copy_context()
        self._context.run(self._variable.set, settings)


class TokenSettings(ContextSettings):
    def __init__(self) -> None:
        super().__init__()
        self._tokens: dict[tuple[str, int], Token[Settings]] = {}

    def _enter(self, name: str, value: int) -> None:
        settings = tuple(sorted((*self._variable.get(), (name, value))))
        self._tokens[name, value] = self._variable.set(settings)

    def _leave(self, name: str, value: int) -> None:
        self._variable.reset(self._tokens.pop((name, value)))


class InnermostSettings(ContextSettings):
    def _enter(self, name: str, value: int) -> None:
        self._variable.set((*self._variable.get(), (name, value)))

    def value(self, name: str) -> int:
        values = [value for other, value in self._variable.get() if other == name]
        return values[-1] if values else 0


class SharedListSettings(ContextSettings):
    def __init__(self) -> None:
        super().__init__()
        self._list: ContextVar[list[tuple[str, int]]] = ContextVar("list")

    def _enter(self, name: str, value: int) -> None:
        entries = self._list.get(None)
        if entries is None:
            self._list.set([(name, value)])
        else:
            entries.append((name, value))

    def _leave(self, name: str, value: int) -> None:
        self._list.get().pop()

    def value(self, name: str) -> int:
        entries = self._list.get([])
        return max((value for other, value in entries if other == name), default=0)

    def size(self) -> int:
        return len(self._list.get([]))


class DefaultSettings(ContextSettings):
    """The first value that is read becomes the default."""

    def __init__(self) -> None:
        super().__init__()
        self._defaults: dict[str, int] = {}

    def value(self, name: str) -> int:
        value = super().value(name)
        if value:
            self._defaults.setdefault(name, value)
        return value or self._defaults.get(name, 0)


class StaleSettings(CachedSettings):
    def value(self, name: str) -> int:
        settings = self._variable.get()
        cached = self._cache.get(name)
        if cached is None or len(cached[0]) != len(settings):
            cached = self._cache[name] = (
                settings,
                ContextSettings.value(self, name),
            )
        return cached[1]


class OuterValueSettings(ContextSettings):
    @contextmanager
    def block(self, name: str, value: int) -> Iterator[None]:
        before = self.value(name)
        self._enter(name, max(value, before))
        yield
        self._leave(name, max(value, before))


class WrongContextSettings(OwnContextSettings):
    def _leave(self, name: str, value: int) -> None:
        # A fresh copy forgets what was entered since.
        self._context = copy_context()


class DedupedSettings(ContextSettings):
    def _enter(self, name: str, value: int) -> None:
        others = [each for each in self._variable.get() if each[0] != name]
        self._variable.set((*others, (name, value)))

    def _leave(self, name: str, value: int) -> None:
        others = [each for each in self._variable.get() if each[0] != name]
        self._variable.set(tuple(others))


class HalfTokenSettings(SeparateSettings):
    def _leave(self, name: str, value: int) -> None:
        variable = self._of(name)
        if variable.get()[-1:] == (value,):
            variable.set(variable.get()[:-1])
        else:
            variable.set(variable.get()[1:] if len(variable.get()) == 2 else ())
            self._variables[name] = ContextVar(name, default=())


class LimitedSettings(ContextSettings):
    def __init__(self) -> None:
        super().__init__()
        self._entered: ContextVar[int] = ContextVar("entered", default=0)

    def _enter(self, name: str, value: int) -> None:
        if self._entered.get() == 3:
            raise RecursionError("blocks are nested too deeply")
        self._entered.set(self._entered.get() + 1)
        super()._enter(name, value)

    def _leave(self, name: str, value: int) -> None:
        super()._leave(name, value)
        if not self._variable.get():
            self._entered.set(0)


def entered(name: str, value: int) -> Callable[[Any], Any]:
    def enter(settings: Any) -> Generator[None, None, None]:
        # Without `with`: a block that is abandoned is not left.
        block = settings.block(name, value)
        block.__enter__()
        yield
        block.__exit__(None, None, None)

    return enter


SETTINGS = Interface(
    "context variables",
    (
        Registration('settings.block("depth", 1)', entered("depth", 1)),
        Registration('settings.block("depth", 2)', entered("depth", 2)),
        Registration('settings.block("width", 7)', entered("width", 7)),
    ),
    (('settings.value("depth")', lambda settings: settings.value("depth")),),
    lambda settings: f"{settings.size()} blocks",
)


def specimens() -> Iterator[Specimen]:
    """Yield all registries of settings."""
    yield from specimens_of(
        SETTINGS,
        (
            ContextSettings,
            SeparateSettings,
            MaskedSettings,
            FinallySettings,
            CachedSettings,
            OwnContextSettings,
            CopiedContextSettings,
        ),
        {
            TokenSettings: "a token resets what was entered since",
            InnermostSettings: "the block that was entered last decides",
            SharedListSettings: "leaving a block removes the newest one",
            DefaultSettings: "the first value that is read becomes the default",
            StaleSettings: "the cache is checked by the number of blocks",
            OuterValueSettings: "a block takes the value of the outer one",
            WrongContextSettings: "leaving a block forgets the context",
            DedupedSettings: "a block replaces the other one of its setting",
            HalfTokenSettings: "leaving the inner block first drops the variable",
            LimitedSettings: "the depth is only reset when no block is left",
        },
    )
