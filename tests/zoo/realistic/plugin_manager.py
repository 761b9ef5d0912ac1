"""Plugin managers: hooks are found by name on the plugins, newest plugin last.

`call` collects the answers of all plugins that have a method of the hook's name, sorted
by the names of the plugins; the list of methods is cached for each hook.
"""

from collections import ChainMap
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any

from tests.zoo.realistic.specimen import (
    Interface,
    Registration,
    Specimen,
    specimens_of,
)

Method = Callable[[], str]


class Linter:
    """A plugin with one hook."""

    def check(self) -> str:
        return "linted"


class Formatter:
    """A plugin with two hooks."""

    def check(self) -> str:
        return "formatted"

    def report(self) -> str:
        return "0 files"


class Reporter:
    """A plugin with the other hook."""

    def report(self) -> str:
        return "summary"


class PluginManager:
    """Caches the methods of each hook and drops the cache when plugins change."""

    def __init__(self) -> None:
        self._plugins: dict[str, Any] = {}
        self._hooks: dict[str, list[Method]] = {}

    def register(self, name: str, plugin: Any) -> Callable[[], None]:
        if name in self._plugins:
            raise ValueError(f"plugin {name} is registered")
        self._plugins[name] = plugin
        self._changed(plugin)
        return lambda: self.unregister(name)

    def unregister(self, name: str) -> None:
        self._changed(self._plugins.pop(name))

    def _changed(self, plugin: Any) -> None:
        self._hooks.clear()

    def _methods(self, hook: str) -> list[Method]:
        return [
            getattr(plugin, hook)
            for _, plugin in sorted(self._plugins.items())
            if hasattr(plugin, hook)
        ]

    def _cached(self, hook: str) -> list[Method]:
        methods = self._hooks.get(hook)
        if methods is None:
            methods = self._hooks[hook] = self._methods(hook)
        return methods

    def call(self, hook: str) -> list[str]:
        return [method() for method in self._cached(hook)]

    def names(self) -> list[str]:
        return sorted(self._plugins)


class PreciseManager(PluginManager):
    """Drops the cache of only those hooks that the plugin has."""

    def _changed(self, plugin: Any) -> None:
        for hook in [hook for hook in self._hooks if hasattr(plugin, hook)]:
            del self._hooks[hook]


class UncachedManager(PluginManager):
    """Looks the methods up for each call."""

    def _cached(self, hook: str) -> list[Method]:
        return self._methods(hook)


class FrozenManager(PluginManager):
    """Publishes a read-only copy of the plugins; a cache belongs to one copy."""

    def __init__(self) -> None:
        super().__init__()
        self._published: MappingProxyType[str, Any] = MappingProxyType({})

    def _changed(self, plugin: Any) -> None:
        self._published = MappingProxyType(dict(self._plugins))
        self._hooks = {}

    def names(self) -> list[str]:
        return sorted(self._published)


class LazyHookManager(PluginManager):
    """Creates an attribute for each hook when it is first called."""

    def _cached(self, hook: str) -> list[Method]:
        attribute = f"hook_{hook}"
        if attribute not in self.__dict__:
            self.__dict__[attribute] = self._methods(hook)
        return self.__dict__[attribute]  # type: ignore[no-any-return]  # a list of methods

    def _changed(self, plugin: Any) -> None:
        for name in [name for name in self.__dict__ if name.startswith("hook_")]:
            del self.__dict__[name]


class EagerManager(PluginManager):
    """Adds a plugin's methods to the live hooks, and removes them by plugin."""

    def __init__(self) -> None:
        super().__init__()
        self._live: dict[str, dict[str, Method]] = {}

    def register(self, name: str, plugin: Any) -> Callable[[], None]:
        undo = super().register(name, plugin)
        for hook in ("check", "report"):
            if hasattr(plugin, hook):
                self._live.setdefault(hook, {})[name] = getattr(plugin, hook)
        return undo

    def unregister(self, name: str) -> None:
        super().unregister(name)
        for methods in self._live.values():
            methods.pop(name, None)

    def _methods(self, hook: str) -> list[Method]:
        return [method for _, method in sorted(self._live.get(hook, {}).items())]


class StaleOnUnregisterManager(PluginManager):
    def unregister(self, name: str) -> None:
        del self._plugins[name]


class FirstHookManager(PluginManager):
    def _changed(self, plugin: Any) -> None:
        for hook in self._hooks:
            if hasattr(plugin, hook):
                del self._hooks[hook]
                break


class NegativeCacheManager(PluginManager):
    def _changed(self, plugin: Any) -> None:
        self._hooks = {hook: each for hook, each in self._hooks.items() if not each}


class ClassCacheManager(PreciseManager):
    def _changed(self, plugin: Any) -> None:
        for hook in list(self._hooks):
            if hook in type(plugin).__dict__ and len(self._hooks) < 2:
                del self._hooks[hook]


class RegistrationOrderManager(PluginManager):
    def _methods(self, hook: str) -> list[Method]:
        return [
            getattr(plugin, hook)
            for plugin in self._plugins.values()
            if hasattr(plugin, hook)
        ]


class BlockedNameManager(PluginManager):
    def __init__(self) -> None:
        super().__init__()
        self._blocked: set[str] = set()

    def register(self, name: str, plugin: Any) -> Callable[[], None]:
        if name in self._blocked:
            raise ValueError(f"plugin {name} is blocked")
        return super().register(name, plugin)

    def unregister(self, name: str) -> None:
        super().unregister(name)
        if len(self._plugins) == 2:
            self._blocked.add(name)


class LeftMethodManager(EagerManager):
    def unregister(self, name: str) -> None:
        PluginManager.unregister(self, name)
        for methods in self._live.values():
            if name in methods:
                del methods[name]
                return


class SharedListManager(PluginManager):
    def call(self, hook: str) -> list[str]:
        methods = self._cached(hook)
        if hook == "report" and len(methods) == 2:
            methods.reverse()
        return [method() for method in methods]


class RestoringManager(PluginManager):
    def register(self, name: str, plugin: Any) -> Callable[[], None]:
        cached = dict(self._hooks)
        super().register(name, plugin)

        def undo() -> None:
            del self._plugins[name]
            self._hooks = cached

        return undo


class ChainedManager(PluginManager):
    """The newest map hides what is removed from an older one."""

    def __init__(self) -> None:
        super().__init__()
        self._chain: ChainMap[str, Any] = ChainMap()

    def register(self, name: str, plugin: Any) -> Callable[[], None]:
        self._chain = self._chain.new_child({name: plugin})
        self._hooks.clear()

        def undo() -> None:
            self._chain = self._chain.parents
            self._hooks.clear()

        return undo

    def _methods(self, hook: str) -> list[Method]:
        return [
            getattr(self._chain[name], hook)
            for name in sorted(self._chain)
            if hasattr(self._chain[name], hook)
        ]

    def names(self) -> list[str]:
        return sorted(self._chain)


def registered(name: str, plugin: Any) -> Callable[[Any], Callable[[], None]]:
    return lambda manager: manager.register(name, plugin)


PLUGINS = Interface(
    "plugin manager",
    (
        Registration(
            'manager.register("lint", Linter())', registered("lint", Linter())
        ),
        Registration(
            'manager.register("format", Formatter())', registered("format", Formatter())
        ),
        Registration(
            'manager.register("brief", Reporter())', registered("brief", Reporter())
        ),
    ),
    (
        ('manager.call("check")', lambda manager: manager.call("check")),
        ('manager.call("report")', lambda manager: manager.call("report")),
    ),
    lambda manager: " ".join(manager.names()),
)


def specimens() -> Iterator[Specimen]:
    """Yield all plugin managers."""
    yield from specimens_of(
        PLUGINS,
        (
            PluginManager,
            PreciseManager,
            UncachedManager,
            FrozenManager,
            LazyHookManager,
            EagerManager,
        ),
        {
            StaleOnUnregisterManager: "cached hooks survive that a plugin leaves",
            FirstHookManager: "only the first cached hook of a plugin is dropped",
            NegativeCacheManager: "a cached hook without methods is never dropped",
            ClassCacheManager: "no hook is dropped while two of them are cached",
            RegistrationOrderManager: "plugins are called in the order of registering",
            BlockedNameManager: "a plugin that leaves two others is blocked for ever",
            LeftMethodManager: "of a plugin with two hooks, one method is left",
            SharedListManager: "a call reverses the cached list in place",
            RestoringManager: "unregistering restores the hooks cached before",
            ChainedManager: "unregistering removes the newest plugin, whichever it is",
        },
    )
