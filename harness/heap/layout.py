"""What an instance consists of, and whether all of it can be seen.

True only here: a class is asked by the descriptors of `type` itself, never by
attributes, because a metaclass may answer attributes as it likes.

How it works: an instance is laid out by a chain of classes, each of which adds to its
base what `__slots__`, `__dict__` and `__weakref__` say, or something that only C knows.
The chain is walked down to a type whose instances can be read (`accessors.py`).  If the
sizes on the way are explained exactly, nothing is hidden; else the type is opaque.  A
member of a C type is no slot, although its descriptor looks like one: only classes
with `__slots__` of their own have slots.
"""

import sys
import types
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

Getter: TypeAlias = Callable[..., Any]


def _of(name: str) -> Getter:
    getter: Getter = type.__dict__[name].__get__
    return getter


bases_of = _of("__bases__")
mro_of = _of("__mro__")
namespace_of = _of("__dict__")
qualname_of = _of("__qualname__")
flags_of = _of("__flags__")
raw_module_of = _of("__module__")
name_of = _of("__name__")
_base_of = _of("__base__")
_size_of = _of("__basicsize__")
_item_of = _of("__itemsize__")
_dict_at = _of("__dictoffset__")
_weak_at = _of("__weakrefoffset__")
module_dict: Any = namespace_of(types.ModuleType)["__dict__"].__get__

# CPython, Include/object.h: what the bits of tp_flags mean.
_MANAGED_WEAKREF = 1 << 3
_MANAGED_DICT = 1 << 4
_IMMUTABLE = 1 << 8
HEAP_TYPE = 1 << 9  # other types cannot be changed

_POINTER = 8 if _size_of(object) == 16 else 4
_DESCRIPTORS = {id(types.GetSetDescriptorType), id(types.MemberDescriptorType)}
_LISTS = {id(tuple), id(list), id(dict)}
_ABSENT: Any = object()


class Layout(NamedTuple):
    """What an instance of one type consists of.

    `known` is the type that reads the base of the instance; `slots` are the names and
    getters of slots, nearest class first; `dict_of` returns the instance's dict; and
    `opaque` says that something remains that nobody can see.
    """

    known: type
    slots: tuple[tuple[str, Getter], ...]
    dict_of: Getter | None
    opaque: bool


def module_of(kind: type) -> str:
    """The module that a class names, or nothing if it names none."""
    name = raw_module_of(kind)
    return name if type(name) is str else ""


def is_standard(module: object) -> bool:
    """Whether a module's name is one of the standard library."""
    return type(module) is str and module.partition(".")[0] in sys.stdlib_module_names


def short_name_of(kind: type) -> str:
    """A class's `__name__` where it is not the end of its `__qualname__`, else nothing.

    Both are kept in C, apart, and either can be set.
    """
    name: str = name_of(kind)
    return "" if str.__str__(qualname_of(kind)).rpartition(".")[2] == name else name


def changeable(kind: type) -> bool:
    """Whether attributes of the class itself can be set from Python."""
    flags = flags_of(kind)
    return bool(flags & HEAP_TYPE) and not flags & _IMMUTABLE


_known = {id(object)}


def learn(kinds: Iterable[int]) -> None:
    """Take note of types whose instances can be read: the ids of types of C."""
    _known.update(kinds)


def layout_of(kind: type) -> Layout:
    """What instances of a type consist of, down to the nearest type that is known."""
    slots: list[tuple[str, Getter]] = []
    opaque = False
    level = kind
    while id(level) not in _known:
        base = _base_of(level)
        own = _own_slots(level)
        if own is None:
            opaque = True
        else:
            slots += own
            opaque = opaque or not _explained(level, base, len(own))
        level = base
    dict_of: Getter | None = None
    if _dict_at(kind):
        dict_of = _dict_getter(kind)
        opaque = opaque or dict_of is None
    return Layout(level, tuple(slots), dict_of, opaque)


def _explained(kind: type, base: type, slots: int) -> bool:
    flags = flags_of(kind)
    expected = _size_of(base) + slots * _POINTER
    if _dict_at(kind) and not _dict_at(base) and not flags & _MANAGED_DICT:
        expected += _POINTER
    if _weak_at(kind) and not _weak_at(base) and not flags & _MANAGED_WEAKREF:
        expected += _POINTER
    return bool(_size_of(kind) == expected and _item_of(kind) == _item_of(base))


def _own_slots(kind: type) -> list[tuple[str, Getter]] | None:
    """Names and getters of the slots of a class itself; None if some are lost."""
    namespace = namespace_of(kind)
    declared = namespace.get("__slots__", _ABSENT)
    if declared is _ABSENT:
        return []
    if type(declared) is str:
        declared = (declared,)
    if id(type(declared)) not in _LISTS:
        return None
    found = []
    for declared_name in declared:
        if type(declared_name) is not str:
            return None
        if declared_name in ("__dict__", "__weakref__"):
            continue
        name = _mangled(kind, declared_name)
        member = namespace.get(name)
        if type(member) is not types.MemberDescriptorType:
            return None
        if member.__objclass__ is not kind or member.__name__ != name:
            return None
        found.append((name, member.__get__))
    return found


def _mangled(kind: type, name: str) -> str:
    """A private name as the compiler writes it (Language Reference, 6.2.1)."""
    if not name.startswith("__") or name.endswith("__"):
        return name
    if name in namespace_of(kind):
        return name
    owner = type.__dict__["__name__"].__get__(kind).lstrip("_")
    return f"_{owner}{name}" if owner else name


def _dict_getter(kind: type) -> Getter | None:
    for level in mro_of(kind):
        found = namespace_of(level).get("__dict__")
        if id(type(found)) in _DESCRIPTORS and found.__objclass__ is level:
            getter: Getter = found.__get__
            return getter
    return None
