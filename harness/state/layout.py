"""The layout of instances, and whether it explains their whole size.

A class is read by the descriptors of `type` itself, never by attributes, because a
metaclass may override attributes; methods and descriptors are those of a built-in type,
never looked up on an instance.

An instance is laid out by a chain of classes, each of which adds to its base what
`__slots__`, `__dict__` and `__weakref__` declare, or fields that only C knows.  The
chain is followed down to a type whose instances can be read (`accessors.py`).  If the
sizes on the way are explained exactly, no state is hidden; else the type is opaque.  A
member of a C type is not a slot, although its descriptor looks like one: only classes
that define `__slots__` have slots.

A class made by `abc.ABCMeta` stores its virtual subclasses, and its earlier answers, in
a place that no attribute shows.  The answers are left out as long as they follow from
bases and registrations: then the next check has the same answer.  Answers that do not
follow, or that a `__subclasshook__` computed, are state, because they can be stale.

A `Memo` caches the result of a function for an object, found by identity: no object is
hashed or compared, and none is kept alive, because a weak reference shows whether the
object at an address is still the same.
"""

import _abc  # type: ignore[import-not-found]  # C module without stubs; abc uses it
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

K = TypeVar("K")
V = TypeVar("V")

# Limit of entries, most of them dead and of generated code; refilling is fast.
_MOST = 50_000
_LIBRARY = str(Path(types.__file__).resolve().parent)


class Memo(Generic[K, V]):
    """Calls a function once for each object that can be referred to weakly."""

    __slots__ = ("_entries", "_work")

    def __init__(self, work: Callable[[K], V]) -> None:
        self._work = work
        self._entries: dict[int, tuple[weakref.ref[K], V]] = {}

    def __call__(self, o: K) -> V:
        """Return the result of the function for this object."""
        entry = self._entries.get(id(o))
        if entry is not None and entry[0]() is o:
            return entry[1]
        value = self._work(o)
        if len(self._entries) > _MOST:
            self._entries.clear()
        self._entries[id(o)] = (weakref.ref(o), value)
        return value


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

# CPython, Include/object.h: the meaning of the bits of tp_flags.
_MANAGED_WEAKREF = 1 << 3
_MANAGED_DICT = 1 << 4
_IMMUTABLE = 1 << 8
HEAP_TYPE = 1 << 9  # other types cannot be changed
_ABSTRACT = 1 << 20
# Flags that a program can change: whether patterns match instances as a sequence or a
# mapping, and whether the class is abstract, so that it cannot be called.
VARIABLE_FLAGS = 1 << 5 | 1 << 6 | _ABSTRACT

_POINTER = 8 if _size_of(object) == 16 else 4
_DESCRIPTORS = {id(types.GetSetDescriptorType), id(types.MemberDescriptorType)}
_LISTS = {id(tuple), id(list), id(dict)}
_ABSENT: Any = object()


class InstanceLayout(NamedTuple):
    """The layout of the instances of one type.

    `base` is the type that reads the base of the instance; `slots` are the names and
    getters of slots, nearest class first; `dict_of` returns the instance's dict, or
    None if a compiled class has yet to create it; and `opaque` means that some state
    remains that cannot be read.
    """

    base: type
    slots: tuple[tuple[str, Getter], ...]
    dict_of: Getter | None
    opaque: bool


def module_of(kind: type) -> str:
    """Return the module that a class names, or "" if it names none."""
    name = raw_module_of(kind)
    return name if type(name) is str else ""


def is_standard(module: object) -> bool:
    """Return True if a module's name is one of the standard library."""
    return type(module) is str and module.partition(".")[0] in sys.stdlib_module_names


def is_library_file(file: str) -> bool:
    """Return True if code of a file is of the standard library."""
    return file.startswith("<frozen ") or (
        file.startswith(_LIBRARY) and "-packages" not in file
    )


def short_name_of(kind: type) -> str:
    """Return a class's `__name__` if it is not the end of its `__qualname__`, else "".

    C stores the two separately, and either can be set.
    """
    name: str = name_of(kind)
    return "" if str.__str__(qualname_of(kind)).rpartition(".")[2] == name else name


def flags_apart(kind: type) -> int:
    """Return the variable flags of a class without one that follows from its dict.

    A class stays abstract if the list of its abstract methods is emptied.
    """
    flags: int = flags_of(kind) & VARIABLE_FLAGS
    methods = namespace_of(kind).get("__abstractmethods__", _ABSENT)
    usual = type(methods) is frozenset and all(type(each) is str for each in methods)
    if usual and methods:
        return flags ^ _ABSTRACT
    return flags


def changeable(kind: type) -> bool:
    """Return True if attributes of the class itself can be set from Python."""
    flags = flags_of(kind)
    return bool(flags & HEAP_TYPE) and not flags & _IMMUTABLE


_readable = {id(object)}


def add_readable(kinds: Iterable[int]) -> None:
    """Add types of C, by id, whose instances have an accessor."""
    _readable.update(kinds)


def layout_of(kind: type) -> InstanceLayout:
    """Return the layout of instances, down to the first type with an accessor."""
    slots: list[tuple[str, Getter]] = []
    opaque = False
    level = kind
    while id(level) not in _readable:
        base = _base_of(level)
        own = _own_slots(level)
        if own is None:
            opaque = True
        else:
            slots += own
            opaque = opaque or not _is_explained(level, base, len(own))
        level = base
    dict_of: Getter | None = None
    if _dict_at(kind):
        dict_of = _dict_getter(kind)
        opaque = opaque or dict_of is None
    return InstanceLayout(level, tuple(slots), dict_of, opaque)


def _is_explained(kind: type, base: type, slots: int) -> bool:
    flags = flags_of(kind)
    expected = _size_of(base) + slots * _POINTER
    if _dict_at(kind) and not _dict_at(base) and not flags & _MANAGED_DICT:
        expected += _POINTER
    if _weak_at(kind) and not _weak_at(base) and not flags & _MANAGED_WEAKREF:
        expected += _POINTER
    return bool(_size_of(kind) == expected and _item_of(kind) == _item_of(base))


def _own_slots(kind: type) -> list[tuple[str, Getter]] | None:
    """Return names and getters of a class's own slots; None if some are lost."""
    namespace = namespace_of(kind)
    declared = namespace.get("__slots__", _ABSENT)
    if declared is _ABSENT:
        return []
    if type(declared) is str:
        declared = (declared,)
    if id(type(declared)) not in _LISTS:
        return None
    slots = []
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
        slots.append((name, member.__get__))
    return slots


def _mangled(kind: type, name: str) -> str:
    """Return a private name as the compiler writes it (Language Reference, 6.2.1)."""
    if not name.startswith("__") or name.endswith("__"):
        return name
    if name in namespace_of(kind):
        return name
    owner = type.__dict__["__name__"].__get__(kind).lstrip("_")
    return f"_{owner}{name}" if owner else name


def _dict_getter(kind: type) -> Getter | None:
    for level in mro_of(kind):
        descriptor = namespace_of(level).get("__dict__")
        if id(type(descriptor)) in _DESCRIPTORS and descriptor.__objclass__ is level:
            if type(descriptor) is types.MemberDescriptorType:
                return _member_getter(descriptor)
            getter: Getter = descriptor.__get__
            return getter
    return None


def _member_getter(descriptor: types.MemberDescriptorType) -> Getter:
    """Return a getter of the dict of a class of mypyc: None until it has attributes."""

    def get(instance: Any) -> Any:
        try:
            return descriptor.__get__(instance)
        except AttributeError:
            return None

    return get


Parts: TypeAlias = list[tuple[str, Any]]
Body: TypeAlias = Literal["", "sequence", "dict", "ordered", "set"]


class Absent:
    """The type of `ABSENT`."""


ABSENT = Absent()
"""The value of a slot that is not set, an empty cell, a dead target."""


class Unreadable(Exception):
    """An instance hides some contents, although its type has an accessor.

    `parts` are those that can be read all the same.
    """

    def __init__(self, parts: Parts | None = None) -> None:
        super().__init__()
        self.parts: Parts = parts or []


class Accessor(NamedTuple):
    """The reader of a type's instances: the kind of body, and labelled parts.

    `ignores_attributes` means that the parts are the whole state.
    """

    body: Body = ""
    parts: Callable[[Any], Parts] | None = None
    items: Callable[[Any], Any] | None = None
    ignores_attributes: bool = False


def members(kind: type, *names: str) -> Callable[[Any], Parts]:
    """Return a reader of attributes by the descriptors of a built-in type."""
    getters = [(name, namespace_of(kind)[name].__get__) for name in names]

    def read(o: Any) -> Parts:
        parts: Parts = []
        for name, getter in getters:
            try:
                parts.append((name, getter(o)))
            except AttributeError:
                parts.append((name, ABSENT))
        return parts

    return read


def reduction(kind: type) -> Accessor:
    """Return an accessor by the `__reduce__` of the type, which copies the rest."""
    reduce: Any = kind.__reduce__

    def read(o: Any) -> Parts:
        return [("state", reduce(o))]

    def read_quietly(o: Any) -> Parts:
        # Python 3.12 and 3.13 warn that iterators of itertools lose __reduce__.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [("state", reduce(o))]

    late = module_of(kind) == "itertools" and sys.version_info >= (3, 12)
    return Accessor(parts=read_quietly if late else read)


def exact_name(kind: type) -> str:
    """Return the name of a class as it is written: `collections.deque`, `dict`."""
    module = module_of(kind)
    name = str.__str__(qualname_of(kind))
    return name if module in ("builtins", "") else f"{module}.{name}"


_subclasses_of = type.__dict__["__subclasses__"]
_data: type = type(namespace_of(__import__("numbers").Number)["_abc_impl"])


def is_abstract(kind: type) -> bool:
    """Return True if a class keeps registrations."""
    return type(namespace_of(kind).get("_abc_impl")) is _data


def virtual_subclasses(kind: type) -> list[type]:
    """Return the live virtual subclasses of an abstract class, in any order."""
    return _live(_abc._get_dump(kind)[0])


def cached_answers(kind: type) -> tuple[list[type], list[type]]:
    """Return the cached answers that are state: positive, and negative ones."""
    _, positive, negative = registered_and_answered(kind)
    return positive, negative


def registered_and_answered(kind: type) -> tuple[list[type], list[type], list[type]]:
    """Return the virtual subclasses of an abstract class, and its cached answers."""
    registered, yes, no, version = _abc._get_dump(kind)
    if not registered and not yes and not no:
        return [], [], []
    virtual, positive = _live(registered), _live(yes)
    negative = _live(no) if version == _abc.get_cache_token() else []
    if not positive and not negative:
        return virtual, [], []
    for level in mro_of(kind):
        if "__subclasshook__" in namespace_of(level):
            if level is not object:
                return virtual, positive, negative
            break
    below = _below(kind)
    return (
        virtual,
        [each for each in positive if not _follows(each, below)],
        [each for each in negative if _follows(each, below)],
    )


def forget_answers(kind: type) -> None:
    """Empty a class's cache of answers; `ABCMeta` does the same in its own tests."""
    _abc._reset_caches(kind)


def _live(references: Any) -> list[type]:
    return [each for ref in references if (each := ref()) is not None]


def _follows(kind: type, below: set[int]) -> bool:
    return any(id(level) in below for level in mro_of(kind))


def _below(kind: type) -> set[int]:
    """Return ids of all classes that are subclasses by bases or registrations."""
    below = {id(kind)}
    pending = [kind]
    while pending:
        level = pending.pop()
        more = _subclasses_of(level)
        if is_abstract(level):
            more += virtual_subclasses(level)
        for each in more:
            if id(each) not in below:
                below.add(id(each))
                pending.append(each)
    return below
