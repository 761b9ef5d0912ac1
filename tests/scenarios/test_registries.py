"""Registries of other people: the harness asks the same questions of any of them.

Each scenario says how a fresh registry is made (`create`), what of it must depend only
on what is registered (`observe`), and steps that return what undoes them.
"""

import codecs
import logging
import sqlite3
from collections import ChainMap
from collections.abc import Callable
from contextlib import suppress
from functools import partial, singledispatch
from typing import Any

from everyorder.harness.scenario import Scenario, step, use

Undo = Callable[[], object]


class Renderers:
    """`functools.singledispatch` with a way back: a new one for every change.

    A generic function forgets nothing that it was taught, so it is made anew.
    """

    def __init__(self) -> None:
        self.taught: dict[type, Callable[[Any], str]] = {}
        self.render = self._made()

    def teach(self, kind: type, renderer: Callable[[Any], str]) -> Undo:
        if kind in self.taught:
            raise LookupError(f"{kind.__name__} has a renderer")
        self.taught[kind] = renderer
        self.render = self._made()
        return partial(self._forget, kind)

    def _forget(self, kind: type) -> None:
        del self.taught[kind]
        self.render = self._made()

    def _made(self) -> Callable[[Any], str]:
        generic = singledispatch(lambda _: "some object")
        for kind, renderer in self.taught.items():
            generic.register(kind, renderer)
        return generic


def _rendered(renderers: Renderers) -> str:
    return "\n".join(
        f"{value!r}: {renderers.render(value)}" for value in (True, 1, 1.5, "text")
    )


# A generic function: the nearest class decides, not the newest registration.
generic_function = Scenario(
    step("teach(int)", lambda to: to.teach(int, lambda _: "an integer")),
    step("teach(bool)", lambda to: to.teach(bool, lambda _: "a truth")),
    step("teach(object)", lambda to: to.teach(object, lambda _: "anything")),
    step("teach(int) again", lambda to: to.teach(int, lambda _: "a whole number")),
    uses=[use("render(True)", lambda of: of.render(True))],
    create=Renderers,
    observe=_rendered,
)


class SearchFunctions:
    """The search functions of this process's `codecs`, as far as they are ours."""

    # A fresh one takes down what an abandoned one left in the process.
    live: list[Callable[[str], codecs.CodecInfo | None]] = []  # noqa: RUF012  # the process has one

    def __init__(self) -> None:
        while self.live:
            codecs.unregister(self.live.pop())

    def add(self, name: str) -> Undo:
        def search(wanted: str) -> codecs.CodecInfo | None:
            return codecs.lookup("rot13") if wanted == name else None

        codecs.register(search)
        self.live.append(search)
        return partial(self._remove, search)

    def _remove(self, search: Callable[[str], codecs.CodecInfo | None]) -> None:
        codecs.unregister(search)
        self.live.remove(search)


def _known(_: object) -> str:
    found = []
    for name in ("everyorder_one", "everyorder_two", "everyorder_three"):
        with suppress(LookupError):
            found.append(f"{name}: {codecs.lookup(name).name}")
    return "\n".join(found)


# Codecs keep what they found in a cache, which removal has to empty.
codec_search = Scenario(
    step("register(one)", lambda to: to.add("everyorder_one")),
    step("register(two)", lambda to: to.add("everyorder_two")),
    uses=[
        use("lookup(one)", lambda _: codecs.lookup("everyorder_one").name),
        use(
            "lookup(three)",
            lambda _: codecs.lookup("everyorder_three").name,
            raises=LookupError,
        ),
    ],
    create=SearchFunctions,
    observe=_known,
)


class Notes(logging.Handler):
    """A handler that has a name and keeps nothing."""

    def __init__(self, name: str, level: int) -> None:
        super().__init__(level)
        self.name = name

    def emit(self, record: logging.LogRecord) -> None:
        return


def _logger() -> logging.Logger:
    """A logger of its own manager, so that no other test knows it."""
    root = logging.RootLogger(logging.WARNING)
    return logging.Manager(root).getLogger("shop")


def _handle(name: str, level: int, logger: logging.Logger) -> Undo:
    handler = Notes(name, level)
    logger.addHandler(handler)
    return partial(logger.removeHandler, handler)


def _set_level(level: int, logger: logging.Logger) -> Undo:
    if logger.level:
        raise ValueError("the logger has a level")
    logger.setLevel(level)
    return partial(logger.setLevel, logging.NOTSET)


def _logged(logger: logging.Logger) -> str:
    handlers = sorted(f"{h.name} from {h.level}" for h in logger.handlers)
    enabled = [n for n in (10, 20, 30, 40) if logger.isEnabledFor(n)]
    return f"handlers: {handlers}\nenabled: {enabled}"


def _logger_state(logger: logging.Logger) -> object:
    handlers = [(each.name, each.level) for each in logger.handlers]
    remembered = sorted(vars(logger)["_cache"].items())
    return logger.level, handlers, remembered


# A logger remembers which levels are enabled; changing the level has to forget it.
logging_handlers = Scenario(
    step("addHandler(file)", partial(_handle, "file", 10)),
    step("addHandler(mail)", partial(_handle, "mail", 40)),
    step("setLevel(DEBUG)", partial(_set_level, 10)),
    step("setLevel(ERROR)", partial(_set_level, 40)),
    uses=[use("isEnabledFor(DEBUG)", lambda of: of.isEnabledFor(10))],
    create=_logger,
    observe=_logged,
    # Read whole, the state has the process's root logger in it, and whoever runs this
    # may log to files, which nobody can read.
    fingerprint=_logger_state,
)


def _collation(
    name: str, compare: Callable[[str, str], int], database: sqlite3.Connection
) -> Undo:
    database.create_collation(name, compare)
    return partial(database.create_collation, name, None)


def _backwards(one: str, two: str) -> int:
    return (one < two) - (one > two)


def _by_length(one: str, two: str) -> int:
    return len(one) - len(two)


def _ordered(database: sqlite3.Connection) -> str:
    shown = []
    for collation in ("backwards", "by_length"):
        query = (
            "select group_concat(word) from (select column1 as word from "
            f"(values ('pear'), ('fig'), ('quince')) order by word collate {collation})"
        )
        try:
            shown.append(f"{collation}: {database.execute(query).fetchone()[0]}")
        except sqlite3.OperationalError as error:
            shown.append(f"{collation}: {error}")
    return "\n".join(shown)


class Database(sqlite3.Connection):
    """A connection that is closed when nobody uses it any more."""

    def __del__(self) -> None:
        self.close()


# Collations of a database: statements that were prepared before have to see what came
# and went after.
sql_collations = Scenario(
    step("create_collation(backwards)", partial(_collation, "backwards", _backwards)),
    step("create_collation(by_length)", partial(_collation, "by_length", _by_length)),
    uses=[use("select ... collate backwards, by_length", _ordered)],
    create=partial(Database, ":memory:"),
    observe=_ordered,
)


class ExitCallbacks:
    """Callbacks that run at the end, last registered first."""

    def __init__(self) -> None:
        self.callbacks: list[str] = []

    def register(self, name: str) -> Undo:
        self.callbacks.append(name)
        return partial(self.callbacks.remove, name)

    def run(self) -> str:
        return ", ".join(reversed(self.callbacks))


# The order of callbacks is meant to be that of their registration, reversed.
exit_callbacks = Scenario(
    step('register("close the file")', lambda to: to.register("close the file")),
    step('register("flush")', lambda to: to.register("flush")),
    step('register("say goodbye")', lambda to: to.register("say goodbye")),
    create=ExitCallbacks,
    observe=ExitCallbacks.run,
    fingerprint=ExitCallbacks.run,
    order_dependent="callbacks run last registered first",
)


class Plugins:
    """A plugin manager as one writes it on a quiet afternoon.

    Hooks are called by priority, then by name, so the order of loading is no matter.
    What was sorted is kept until something is loaded or unloaded.
    """

    def __init__(self) -> None:
        self.loaded: dict[str, tuple[int, Callable[[str], str]]] = {}
        self.sorted: list[Callable[[str], str]] | None = None

    def load(self, name: str, priority: int, hook: Callable[[str], str]) -> Undo:
        if name in self.loaded:
            raise ValueError(f"plugin {name} is loaded")
        self.loaded[name] = (priority, hook)
        self.sorted = None
        return partial(self._unload, name)

    def _unload(self, name: str) -> None:
        del self.loaded[name]
        self.sorted = None

    def call(self, text: str) -> str:
        if self.sorted is None:
            order = sorted((rank, name) for name, (rank, _) in self.loaded.items())
            self.sorted = [self.loaded[name][1] for _, name in order]
        for hook in self.sorted:
            text = hook(text)
        return text


# Hooks with priorities; the same name twice is refused; a call warms what is sorted.
plugins = Scenario(
    step('load("shout", 2)', lambda to: to.load("shout", 2, str.upper)),
    step('load("greet", 1)', lambda to: to.load("greet", 1, "hello {}".format)),
    step('load("greet", 3)', lambda to: to.load("greet", 3, "{}, bye".format)),
    uses=[use('call("you")', lambda of: of.call("you"))],
    create=Plugins,
    observe=lambda of: of.call("you"),
)


class Settings:
    """Layers of settings over a base, found front to back."""

    def __init__(self) -> None:
        self.layers: ChainMap[str, str] = ChainMap({"colour": "grey", "size": "m"})

    def push(self, **layer: str) -> Undo:
        self.layers.maps.insert(0, layer)
        return partial(self._drop, layer)

    def _drop(self, layer: dict[str, str]) -> None:
        self.layers.maps = [held for held in self.layers.maps if held is not layer]

    def shown(self) -> str:
        return ", ".join(f"{key}={self.layers[key]}" for key in sorted(self.layers))


# Layers that set different things commute.
settings_apart = Scenario(
    step('push(colour="red")', lambda to: to.push(colour="red")),
    step('push(size="l")', lambda to: to.push(size="l")),
    create=Settings,
    observe=Settings.shown,
)

# Layers that set the same thing do not, and are not meant to.
settings_over_each_other = Scenario(
    step('push(colour="red")', lambda to: to.push(colour="red")),
    step('push(colour="blue")', lambda to: to.push(colour="blue", size="s")),
    create=Settings,
    observe=Settings.shown,
    order_dependent="the newest layer is in front",
)
