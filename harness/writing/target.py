"""What was named: a class, a function, an object or a module, and what it is made of.

True only here: names.  `package.module:Class.attribute` is looked up after the module
is imported; where it is not there, names that come close are told.
"""

import inspect
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple, TypeAlias

from harness.imports.errors import near_modules
from harness.writing.errors import NoTarget, NotTried
from harness.writing.verbs import OUTSIDE, looks, partner, registers

Kind: TypeAlias = Literal["class", "function", "object", "module"]

# Dunders that register, take back or look.
SPECIAL = frozenset(
    """
    __setitem__ __delitem__ __getitem__ __contains__ __len__ __iter__ __call__
    __enter__ __exit__
    """.split()  # noqa: SIM905  # one column is easier to read
)


class Target(NamedTuple):
    """What was named; `text` is how the printed file names it."""

    name: str
    text: str
    module: ModuleType
    value: Any
    kind: Kind


def find(name: str, folder: str) -> Target:
    """Import and look up what was named.

    Raises:
        NoTarget: there is nothing of that name.
        NotTried: it acts on the machine.
    """
    place, colon, attribute = name.partition(":")
    try:
        module = import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not place.startswith(error.name):
            raise _failed(name, error) from error
        reason = f"there is no module {place}"
        near = _with_colon(name) or near_modules(place, folder)
        raise NoTarget(target=name, reason=reason, near=near) from None
    except (Exception, SystemExit) as error:
        raise _failed(name, error) from error
    if place.partition(".")[0] in OUTSIDE:
        raise NotTried(target=name)
    value: Any = module
    for count, part in enumerate(attribute.split(".") if colon else ()):
        if not hasattr(value, part):
            before = ".".join(attribute.split(".")[:count])
            owner = f"{place}:{before}" if before else place
            known = [each for each in dir(value) if not each.startswith("_")]
            raise NoTarget(
                target=name,
                reason=f"{owner} has no {part!r}",
                near=_near(f"{owner}{'.' if before else ':'}", part, known),
            )
        value = getattr(value, part)
    text = f"{place}.{attribute}" if colon else place
    return Target(name, text, module, value, _kind(value))


def is_own(module: ModuleType) -> bool:
    """Whether a module is of the project: not installed, not of Python."""
    file = getattr(module, "__file__", None)
    top = module.__name__.partition(".")[0]
    if file is None or top in sys.stdlib_module_names:
        return False
    return "site-packages" not in Path(file).parts


def members(value: Any) -> tuple[list[str], list[str]]:
    """The public names of what can be called, and of other attributes."""
    callables, others = [], []
    if isinstance(value, ModuleType):
        names: Iterable[str] = getattr(value, "__all__", None) or [
            name
            for name, each in vars(value).items()
            if str(getattr(each, "__module__", None)).startswith(value.__name__)
        ]
    else:
        own = [*getattr(value, "__dict__", ())]
        names = [*own, *(name for name in names_of(type(value)) if name not in own)]
    for name in names:
        if name.startswith("_") and name not in SPECIAL:
            continue
        found = inspect.getattr_static(value, name, None)
        if isinstance(found, property):
            others.append(name)
        elif isinstance(found, type | ModuleType):
            continue
        elif callable(getattr(value, name, None)):
            callables.append(name)
        elif name not in SPECIAL:
            others.append(name)
    if isinstance(value, ModuleType):
        others += [
            name
            for name, each in vars(value).items()
            if isinstance(each, list | dict | set) and not name.startswith("_")
        ]
    return callables, list(dict.fromkeys(others))


def names_of(kind: type) -> list[str]:
    """The names of a class, whatever a metaclass of its own says of them."""
    return sorted(type.__dir__(kind))


def near_registries(target: Target) -> tuple[str, ...]:
    """Classes and objects of the module that have pairs of names that register."""
    found = []
    for name, value in vars(target.module).items():
        if name.startswith("_") or isinstance(value, ModuleType):
            continue
        kind = value if isinstance(value, type) else type(value)
        if not str(kind.__module__).startswith(
            target.module.__name__.partition(".")[0]
        ):
            continue
        names = [each for each in names_of(kind) if not each.startswith("_")]
        if any(partner(each, names) or registers(each) for each in names):
            found.append(f"{target.module.__name__}:{name}")
    return tuple(each for each in found if each != target.name)[:8]


def is_look(name: str) -> bool:
    """Whether a name only looks."""
    return looks(name) and name not in ("__setitem__", "__delitem__")


def _kind(value: Any) -> Kind:
    if isinstance(value, type):
        return "class"
    if isinstance(value, ModuleType):
        return "module"
    # A function may be a registry itself, as those of `functools.singledispatch` are.
    if inspect.isroutine(value) and not any(
        map(registers, getattr(value, "__dict__", ()))
    ):
        return "function"
    return "object"


def _with_colon(name: str) -> tuple[str, ...]:
    """`package.module:Class` where it was written with dots alone."""
    place, _, attribute = name.rpartition(".")
    if not place or ":" in name:
        return ()
    try:
        found = hasattr(import_module(place), attribute)
    except (Exception, SystemExit):
        return ()
    return (f"{place}:{attribute}",) if found else ()


def _near(prefix: str, part: str, known: Iterable[str]) -> tuple[str, ...]:
    by_lower = {each.lower(): each for each in known}
    close = get_close_matches(part.lower(), list(by_lower), n=3, cutoff=0.6)
    return tuple(f"{prefix}{by_lower[each]}" for each in close)


def _failed(name: str, error: BaseException) -> NoTarget:
    said = f"{type(error).__name__}: {error}".removesuffix(": ")
    return NoTarget(target=name, reason=f"its module cannot be imported, {said}")
