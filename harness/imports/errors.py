"""What can be wrong with a question about the order of imports.

True only here: the reader has just named modules; each text says what to name instead.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.machinery import PathFinder
from pkgutil import iter_modules

from harness.errors import HarnessError


@dataclass(eq=False, kw_only=True)
class NothingToOrder(HarnessError, ValueError):
    """Fewer than two modules, or a module named twice."""

    modules: tuple[str, ...]

    def render(self) -> str:
        """What was named, and what is wanted."""
        if len(set(self.modules)) < len(self.modules):
            twice = next(m for m in self.modules if self.modules.count(m) > 1)
            return f"{twice} is named twice; a process imports a module only once."
        named = self.modules[0] if self.modules else "nothing"
        return f"{named} has no order to be imported in; name two modules at least."


@dataclass(eq=False, kw_only=True)
class NoSuchModule(HarnessError, LookupError):
    """A module was named that cannot be found."""

    name: str
    path: str
    near: tuple[str, ...] = ()

    def render(self) -> str:
        """The name, where was looked, and what comes close."""
        text = f"there is no module {self.name!r} in {self.path} or on Python's path"
        if self.near:
            return f"{text}; did you mean {' or '.join(self.near)}?"
        return f"{text}; --path names the folder that it is in."


@dataclass(eq=False, kw_only=True)
class NotAnExpression(HarnessError, ValueError):
    """A use that cannot be evaluated."""

    text: str
    reason: str

    def render(self) -> str:
        """The text, and why it is none."""
        return (
            f"{self.text!r} is no expression: {self.reason}. A use is evaluated when "
            "all is imported, as in --use 'shop.formats()'."
        )


@dataclass(eq=False, kw_only=True)
class OtherOrder(HarnessError, ValueError):
    """Orders that were to be compared are of other modules."""

    first: tuple[str, ...]
    other: tuple[str, ...]

    def render(self) -> str:
        """Both, and what is compared."""
        return (
            f"{','.join(self.first)} and {','.join(self.other)} are no orders of the "
            "same modules; only those can be compared."
        )


@dataclass(eq=False, kw_only=True)
class NeverImported(HarnessError, LookupError):
    """A module was to be watched that none of the orders imports."""

    name: str
    near: tuple[str, ...] = ()

    def render(self) -> str:
        """The name, and what comes close to it."""
        text = f"--watch {self.name}: nothing imports a module of this name"
        if self.near:
            return f"{text}; did you mean {' or '.join(self.near)}?"
        return f"{text}; name it beside the modules, and it is imported."


def near_modules(name: str, folder: str) -> tuple[str, ...]:
    """At most three names of modules that can be found, close to this one.

    Nothing is imported: the first part of the name that cannot be found is compared
    with the files beside it.
    """
    places: Sequence[str] = [folder, *sys.path]
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        prefix = ".".join(parts[:count])
        spec = PathFinder.find_spec(prefix, places)
        if spec is None:
            known = sorted({found.name for found in iter_modules(places)})
            if count == 1:
                known += sys.builtin_module_names
            before = [*parts[: count - 1]]
            close = get_close_matches(parts[count - 1], known, n=3)
            return tuple(".".join((*before, each)) for each in close)
        places = spec.submodule_search_locations or ()
    return ()
