"""Faults from public reports that the standard library of Python 3.11 still has.

Each docstring names the report.  Most of them are documented by now: a history shows
them all the same.  A table that the whole process shares is emptied by `create`.
"""

import atexit
import encodings
import logging
import mimetypes
import sys
import typing
import warnings
from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import suppress
from encodings.aliases import aliases
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any, NoReturn
from unittest import mock

from everyorder import Scenario, Step, step, steps, use

# Two types that are equal, and whose alternatives are in different orders.
UNIONS = {"int, str": int | str, "str, int": str | int}


def typing_cached_unions() -> Scenario:
    """Equal generic types are one object, the first: python/cpython#103749."""
    return unions(lambda union: typing.List[union])  # type: ignore[valid-type]  # noqa: UP006 - the cached one


def typing_cached_unions_mended() -> Scenario:
    """Generic types of `list` itself are not cached."""
    return unions(lambda union: list[union])  # type: ignore[valid-type]  # as above


def unions(generic: Callable[[Any], Any]) -> Scenario:
    def create() -> dict[str, Any]:
        for clear in typing._cleanups:  # type: ignore[attr-defined]  # not public
            clear()
        return {}

    def annotate(annotations: dict[str, Any], name: str) -> Callable[[], None]:
        annotations[name] = generic(UNIONS[name])
        return lambda: annotations.__delitem__(name)

    return Scenario(
        *steps("annotate", [*UNIONS], annotate),
        create=create,
        observe=lambda annotations: "\n".join(map(str, sorted(annotations.items()))),
    )


def warnings_shown_once() -> Scenario:
    """A new filter forgets what was shown once: python/cpython#153128."""

    class Warned:
        """The warnings of one module, and which of them were shown."""

        def __init__(self) -> None:
            self.registry: dict[Any, Any] = {}
            self.shown: list[str] = []
            warnings.resetwarnings()
            warnings.filterwarnings("once", "repeated")
            warnings.showwarning = self.show  # type: ignore[assignment]  # of any place

        def show(self, message: Warning | str, *place: Any) -> None:
            self.shown.append(str(message))

        def warn(self, line: int) -> None:
            warnings.warn_explicit(
                "repeated", UserWarning, "file", line, registry=self.registry
            )

    def add_filter(warned: Warned) -> None:
        warnings.filterwarnings("ignore", "something else")

    return Scenario(
        *steps("warn", [1, 2], Warned.warn, undo=None),
        step("filterwarnings", add_filter, undo=None),
        uses=[use("shown", lambda warned: warned.shown)],
        create=Warned,
        # The version of the filters counts in the whole process, so no two systems
        # would be alike; without it, what it decides is hidden.
        ignore=["registry.registry['version']"],
    )


def argparse_parents() -> Scenario:
    """A parser has its parent's arguments of that time: ThomasWaldmann/argparse#61."""

    class Raising(ArgumentParser):
        """A parser that does not end the process."""

        def error(self, message: str) -> NoReturn:
            raise ValueError(message)

    class Parsers:
        """A parser, and one that has it as a parent."""

        def __init__(self) -> None:
            self.parent = Raising(add_help=False)
            self.child: ArgumentParser | None = None

        def derive(self) -> None:
            self.child = Raising(parents=[self.parent], add_help=False)

        def parse(self) -> str:
            return str(self.child and self.child.parse_known_args(["--verbose"]))

    def add_argument(parsers: Parsers) -> None:
        parsers.parent.add_argument("--verbose", action="store_true")

    return Scenario(
        step("add_argument", add_argument, undo=None),
        step("derive", Parsers.derive, undo=None),
        uses=[use("parse", Parsers.parse)],
        create=Parsers,
    )


def atexit_of_two_owners() -> Scenario:
    """All owners of a function are removed: spatialaudio/python-sounddevice#48."""

    def terminate() -> None:
        """What each owner wants to be called at the end."""

    def initialize(owners: list[str], owner: str) -> Callable[[], None]:
        atexit.register(terminate)
        return lambda: atexit.unregister(terminate)

    class Count:
        """Counts the functions that it is compared with: there is no list of them."""

        def __init__(self) -> None:
            self.count = 0

        def __eq__(self, other: object) -> bool:
            self.count += other is terminate
            return False

        __hash__ = None  # type: ignore[assignment]  # it is not a key

    def create() -> list[str]:
        atexit.unregister(terminate)
        return []

    def registered(owners: list[str]) -> int:
        count = Count()
        atexit.unregister(count)  # type: ignore[arg-type]  # it is equal to none
        return count.count

    return Scenario(
        *steps("initialize", ["one", "other"], initialize),
        uses=[use("registered", registered)],
        create=create,
    )


class Target:
    """A value that is patched."""

    value = "original"


def mock_stopped_in_order() -> Scenario:
    """The patch that began first ends first: anishathalye/dotbot#370."""

    def patch(target: Target, name: str) -> Callable[[], object]:
        patcher = mock.patch.object(target, "value", name)
        patcher.start()
        return patcher.stop

    return Scenario(
        *steps("patch", ["one", "other"], patch),
        uses=[use("is patched", lambda target: target.value != "original")],
        create=Target,
    )


def logging_level_names() -> Scenario:
    """Two packages name one level: lsst/daf_butler#527."""

    def create() -> type[logging.Logger]:
        for name in ("VERBOSE", "TRACE"):
            logging._nameToLevel.pop(name, None)
        logging._levelToName.pop(15, None)
        return logging.Logger

    return Scenario(
        *steps(
            "addLevelName",
            ["VERBOSE", "TRACE"],
            lambda logger, name: logging.addLevelName(15, name),
            undo=None,
        ),
        uses=[use("level 15", lambda logger: logging.getLevelName(15))],
        create=create,
    )


class Named(logging.Handler):
    """A handler that is only named."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


def logging_removed_in_a_loop() -> Scenario:
    """A loop that removes handlers skips each second one: vatlab/sos#182."""
    return loggers(lambda logger: logger.handlers)


def logging_removed_in_a_loop_mended() -> Scenario:
    """A loop over another list removes all."""
    return loggers(lambda logger: [*logger.handlers])


def loggers(removed: Callable[[logging.Logger], list[logging.Handler]]) -> Scenario:
    def add(logger: logging.Logger, name: str) -> Callable[[], None]:
        handler = Named(name)
        logger.addHandler(handler)
        return lambda: logger.removeHandler(handler)

    def reset(logger: logging.Logger) -> None:
        for handler in removed(logger):
            logger.removeHandler(handler)

    def names(logger: logging.Logger) -> list[str]:
        return sorted(str(each.name) for each in logger.handlers)

    return Scenario(
        *steps("addHandler", ["file", "stream"], add),
        uses=[use("reset", reset, ends="all"), use("handlers", names)],
        create=lambda: logging.Logger("books"),
    )


# An entry of `sys.path` that only the finder of a hook can search.
PLACE = "books:"


class Finder:
    """A finder of any module at `PLACE`."""

    @staticmethod
    def find_spec(name: str, target: object = None) -> ModuleSpec:
        return ModuleSpec(name, None)


def hook(path: str) -> type[Finder]:
    if path != PLACE:
        raise ImportError(path)
    return Finder


def import_path_hooks() -> Scenario:
    """A path that was not found stays so: python/mypy#4811."""
    return path_hooks(forgets=False)


def import_path_hooks_mended() -> Scenario:
    """Who changes the hooks, drops the cached finder."""
    return path_hooks(forgets=True)


def path_hooks(*, forgets: bool) -> Scenario:
    def forget() -> None:
        sys.path_importer_cache.pop(PLACE, None)

    def create() -> type[PathFinder]:
        forget()
        with suppress(ValueError):
            sys.path_hooks.remove(hook)
        return PathFinder

    def add(finder: type[PathFinder]) -> Callable[[], None]:
        sys.path_hooks.append(hook)
        if forgets:
            forget()
        return remove

    def remove() -> None:
        sys.path_hooks.remove(hook)
        if forgets:
            forget()

    def find(finder: type[PathFinder]) -> bool:
        return finder.find_spec("novel", [PLACE]) is not None

    return Scenario(
        step("hook", add),
        uses=[use("find", find)],
        create=create,
        watch={
            "sys.path_hooks": sys.path_hooks,
            "sys.path_importer_cache": sys.path_importer_cache,
        },
    )


def encodings_not_found() -> Scenario:
    """A name that was not found stays so: python/cpython#146054."""

    def create() -> dict[str, str]:
        encodings._cache.pop("plain", None)
        aliases.pop("plain", None)
        return aliases

    def add(names: dict[str, str]) -> Callable[[], None]:
        names["plain"] = "ascii"
        return lambda: names.__delitem__("plain")

    def find(names: dict[str, str]) -> str:
        codec = encodings.search_function("plain")
        return codec.name if codec else "none"

    return Scenario(
        step("alias", add),
        uses=[use("find", find)],
        create=create,
        watch={"encodings._cache": encodings._cache},
    )


def mimetypes_first_extension() -> Scenario:
    """The extension that was added first is guessed: python/cpython#6288."""

    def add(types: mimetypes.MimeTypes, extension: str) -> None:
        types.add_type("image/drawn", extension)

    def guess(types: mimetypes.MimeTypes) -> str | None:
        return types.guess_extension("image/drawn")

    return Scenario(
        *steps("add_type", [".drawn", ".drw"], add, undo=None),
        uses=[use("guess_extension", guess)],
        create=mimetypes.MimeTypes,
    )


def pytest_patches_of_a_fixture() -> Scenario:
    """Undoing patches undoes those of others: pytest-dev/pytest#981."""
    import pytest

    class Patched:
        """A dict that a fixture and a test change by one object."""

        def __init__(self) -> None:
            self.patch = pytest.MonkeyPatch()
            self.values: dict[str, str] = {}

    def change(name: str) -> Step:
        return step(
            f"patch({name})",
            lambda patched: patched.patch.setitem(patched.values, name, "patched"),
            undo=lambda patched, done: patched.patch.undo(),
        )

    return Scenario(
        change("fixture"),
        change("test"),
        uses=[use("values", lambda patched: sorted(patched.values))],
        create=Patched,
    )
