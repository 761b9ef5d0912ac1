"""Small registries that forget several registrations at once, right and faulty."""

from collections.abc import Callable
from typing import Any


class Table:
    """Names and values."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def add(self, name: str) -> Callable[[], None]:
        self.values[name] = name.upper()
        return lambda: self.remove(name)

    def remove(self, name: str) -> None:
        del self.values[name]

    def get(self, name: str) -> str | None:
        return self.values.get(name)

    def clear(self) -> None:
        self.values.clear()

    def shown(self) -> str:
        return " ".join(sorted(self.values))


class ForgetsLast(Table):
    def clear(self) -> None:
        for name in sorted(self.values)[1:]:
            del self.values[name]


class Counted(Table):
    """It counts what is registered."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def add(self, name: str) -> Callable[[], None]:
        self.count += 1
        return super().add(name)

    def remove(self, name: str) -> None:
        self.count -= 1
        super().remove(name)

    def clear(self) -> None:
        self.count = 0
        super().clear()

    def shown(self) -> str:
        return f"{self.count}: {super().shown()}"


class CountStays(Counted):
    def clear(self) -> None:
        self.values.clear()


class Cached(Table):
    """Look-ups are cached until something changes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str | None] = {}

    def add(self, name: str) -> Callable[[], None]:
        self.found.clear()
        return super().add(name)

    def remove(self, name: str) -> None:
        self.found.clear()
        super().remove(name)

    def get(self, name: str) -> str | None:
        if name not in self.found:
            self.found[name] = super().get(name)
        return self.found[name]

    def clear(self) -> None:
        self.found.clear()
        super().clear()


class CacheStays(Cached):
    def clear(self) -> None:
        self.values.clear()


class CacheBySize(Cached):
    """It forgets its cache when the size has changed."""

    def clear(self) -> None:
        if len(self.values) > 1:
            self.found.clear()
        self.values.clear()


class Indexed(Table):
    """A second table by the kind of a name."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: dict[str, list[str]] = {}

    def add(self, name: str) -> Callable[[], None]:
        self.kinds.setdefault(name[0], []).append(name)
        return super().add(name)

    def remove(self, name: str) -> None:
        self.kinds[name[0]].remove(name)
        super().remove(name)

    def of_kind(self, kind: str) -> list[str]:
        return sorted(self.kinds.get(kind, []))

    def clear(self) -> None:
        self.kinds.clear()
        super().clear()

    def close(self, kind: str) -> None:
        for name in self.kinds.pop(kind, []):
            del self.values[name]


class IndexStays(Indexed):
    def clear(self) -> None:
        self.values.clear()


class ClosesOne(Indexed):
    def close(self, kind: str) -> None:
        for name in self.kinds.pop(kind, [])[:1]:
            del self.values[name]


class ClosesAll(Indexed):
    def close(self, kind: str) -> None:
        self.clear()


class Places(Table):
    """An undo removes the entry at its place."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[list[str]] = []

    def add(self, name: str) -> Callable[[], None]:
        entry = [name]
        self.entries.append(entry)
        return lambda: self.entries.__delitem__(self.place(entry))

    def place(self, entry: list[str]) -> int:
        return self.entries.index(entry)

    def clear(self) -> None:
        self.entries.clear()

    def shown(self) -> str:
        return " ".join(sorted(name for (name,) in self.entries))


class PlacesShift(Places):
    """After `clear`, an undo removes the entry of another."""

    shift = 0

    def place(self, entry: list[str]) -> int:
        return super().place(entry) - self.shift

    def clear(self) -> None:
        if self.entries:
            self.shift = 1
        super().clear()


class Open(Table):
    """It closes what is open, by a stack of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.uses: dict[str, int] = {}
        self.open: list[str] = []

    def add(self, name: str) -> Callable[[], None]:
        self.uses[name] = self.uses.get(name, 0) + 1
        self.open.append(name)
        return lambda: self.remove(name)

    def remove(self, name: str) -> None:
        self.release(name)
        self.open.remove(name)

    def release(self, name: str) -> None:
        self.uses[name] -= 1

    def clear(self) -> None:
        while self.open:
            self.release(self.open.pop())

    def shown(self) -> str:
        return " ".join(f"{name}{n}" for name, n in sorted(self.uses.items()) if n)


class ClosesTwice(Open):
    """What was undone stays in the stack, and is closed again."""

    def remove(self, name: str) -> None:
        self.release(name)


class Theme:
    """One is active; to choose another one replaces it."""

    def __init__(self) -> None:
        self.active = ""

    def choose(self, name: str) -> Callable[[], None]:
        self.active = name
        return self.none

    def none(self) -> None:
        self.active = ""

    def shown(self) -> str:
        return self.active or "none"


class Restores(Theme):
    """The undo brings back what was replaced."""

    def choose(self, name: str) -> Callable[[], None]:
        before, self.active = self.active, name

        def undo() -> None:
            self.active = before

        return undo


class OnlyFirst(Theme):
    """What was chosen first stays."""

    def choose(self, name: str) -> Callable[[], None]:
        self.active = self.active or name
        return self.none


class Once(Table):
    """A name can be registered once, until all are forgotten."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def add(self, name: str) -> Any:
        if name in self.names:
            raise LookupError(name)
        self.names.add(name)
        super().add(name)

    def clear(self) -> None:
        self.names.clear()
        super().clear()


class OnceForEver(Once):
    def clear(self) -> None:
        self.values.clear()


class Locked(Table):
    """It cannot be cleared while it is locked."""

    def __init__(self) -> None:
        super().__init__()
        self.locked = False

    def lock(self) -> Callable[[], None]:
        self.locked = True
        return self.unlock

    def unlock(self) -> None:
        self.locked = False

    def clear(self) -> None:
        if self.locked:
            raise PermissionError("locked")
        super().clear()


class ClearsHalf(Locked):
    def clear(self) -> None:
        if self.values:
            self.values.pop(min(self.values))
        super().clear()


class LocksForEver(Locked):
    """A refused `clear` leaves its lock behind."""

    refused = False

    def clear(self) -> None:
        if self.locked:
            self.refused = True
        elif self.refused:
            raise PermissionError("still locked")
        super().clear()


class Defaulted(Table):
    """The first name in the alphabet is the default."""

    def __init__(self) -> None:
        super().__init__()
        self.default = ""

    def add(self, name: str) -> Callable[[], None]:
        undo = super().add(name)
        self.default = min(self.values)
        return undo

    def remove(self, name: str) -> None:
        super().remove(name)
        self.default = min(self.values, default="")

    def clear(self) -> None:
        super().clear()
        self.default = ""


class DefaultStays(Defaulted):
    def clear(self) -> None:
        self.values.clear()


class Aliases(Table):
    """A name and its aliases; to drop the name drops these, too."""

    def __init__(self) -> None:
        super().__init__()
        self.aliases: dict[str, str] = {}

    def alias(self, name: str, other: str) -> Callable[[], None]:
        self.aliases[name] = other
        return lambda: self.aliases.__delitem__(name)

    def drop(self, name: str) -> None:
        self.values.pop(name, None)
        for each in [one for one, other in self.aliases.items() if other == name]:
            del self.aliases[each]

    def get(self, name: str) -> str | None:
        return super().get(self.aliases.get(name, name))

    def shown(self) -> str:
        return f"{super().shown()} / {' '.join(sorted(self.aliases))}"


class AliasesStay(Aliases):
    def drop(self, name: str) -> None:
        self.values.pop(name, None)


class Versions(Table):
    """A new version takes the place of the old one."""

    def upgrade(self, name: str, newer: str) -> Callable[[], None]:
        self.values.pop(name)
        return self.add(newer)


class OldStays(Versions):
    def upgrade(self, name: str, newer: str) -> Callable[[], None]:
        return self.add(newer)


class NoNewAfterOld(Versions):
    """The undo of the new version drops the next old one."""

    def upgrade(self, name: str, newer: str) -> Callable[[], None]:
        undo = super().upgrade(name, newer)

        def undo_both() -> None:
            undo()
            self.values.pop(name, None)

        return undo_both


class Bus:
    """Callbacks by event, and what was sent while nobody listened."""

    def __init__(self) -> None:
        self.callbacks: dict[str, list[Callable[[str], str]]] = {}
        self.muted: set[str] = set()

    def on(self, event: str, word: str) -> Callable[[], None]:
        callback = f"{word} {{}}".format
        self.callbacks.setdefault(event, []).append(callback)
        return lambda: self.callbacks[event].remove(callback)

    def mute(self, event: str) -> Callable[[], None]:
        self.muted.add(event)
        return lambda: self.muted.discard(event)

    def emit(self, event: str) -> list[str]:
        if event in self.muted:
            return []
        return sorted(each(event) for each in self.callbacks.get(event, []))

    def off(self, event: str) -> None:
        self.callbacks.pop(event, None)
        self.muted.discard(event)


class MuteStays(Bus):
    def off(self, event: str) -> None:
        self.callbacks.pop(event, None)
