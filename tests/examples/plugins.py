"""A plugin registry as people write them, with a cache, in two versions.

`Plugins` forgets its cache on every change.  `StalePlugins` forgets it when a plugin
is added and not when one is removed: the fault that a real registry most often has,
and that no permutation of registrations shows, because it needs a call in between.
"""

from collections.abc import Callable


class StalePlugins:
    """Names to functions; the newest of a name wins, `find` remembers its answer."""

    def __init__(self) -> None:
        self._plugins: list[tuple[str, Callable[[], str]]] = []
        self._found: dict[str, Callable[[], str] | None] = {}

    def add(self, name: str, plugin: Callable[[], str]) -> Callable[[], None]:
        entry = (name, plugin)
        self._plugins.append(entry)
        self._found.clear()

        def remove() -> None:
            self._plugins.remove(entry)
            self.changed()

        return remove

    def changed(self) -> None:
        """Forgets to forget."""

    def find(self, name: str) -> Callable[[], str] | None:
        if name not in self._found:
            matches = [plugin for known, plugin in self._plugins if known == name]
            self._found[name] = matches[-1] if matches else None
        return self._found[name]

    def names(self) -> str:
        return ", ".join(sorted({name for name, _ in self._plugins})) or "none"


class Plugins(StalePlugins):
    """The same with the fault mended."""

    def changed(self) -> None:
        self._found.clear()
