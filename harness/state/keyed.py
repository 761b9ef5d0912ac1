"""Dicts and sets that record which of their keys are accessed.

A form shows the writes of an operation, but not its reads.  For the dicts and sets
that a registry keeps in its attributes this module shows both: while accesses are
recorded, a `KeyedDict` or `KeyedSet` replaces each of them.  An access to
one key is recorded as that *place*; everything else (a loop, `len`, `==`, `copy`, a
view) as an access to every place in the container.

Soundness: a keyed container is not a subclass of `dict` or `set`, so compiled code that
reads one directly, without its methods, fails on it instead of reading unseen, or takes
it for something else; `systems/accesses.py` compares the instructions that are executed
then with those that are executed on real containers.  Its class looks like `dict` or
`set` to `isinstance`; only what looks at the exact type sees a difference, which the
proof states as an assumption (`engine/parts.py`).

Rules:
- a container is replaced only if the attribute has the one reference to it: another
  one would bypass the records;
- a key names the same place on every fresh system, so it is a value, or a function or
  class that its name yields; any other key, or one with its own hash and comparison,
  counts as every place;
- the records are kept outside of the containers, which are state.
"""

import sys
from abc import ABCMeta
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final, NamedTuple

from everyorder.harness.engine.independence import EVERY, Place
from everyorder.harness.state.scope import resolve

# The places that were accessed, and those that were written by key, since `take`.
_touched: set[Place] = set()
_written: set[Place] = set()

# Not floats: a NaN is another key each time.
_VALUES = frozenset({str, bytes, int, bool, type(None)})

# Objects of a registry that are searched for containers.
_MOST_OBJECTS = 200


def take() -> tuple[frozenset[Place], frozenset[Place]]:
    """Return the places that were accessed, and those written, since the last call."""
    touched, written = frozenset(_touched | _written), frozenset(_written)
    _touched.clear()
    _written.clear()
    return touched, written


def is_stable(key: object) -> bool:
    """Return True if a key names one place on every system, and is compared in C."""
    kind = type(key)
    if kind in _VALUES:
        return True
    if kind is tuple:
        return all(map(is_stable, key))  # type: ignore[call-overload]  # it is a tuple
    if kind is FunctionType or kind is type:
        named: Any = key
        return resolve(named.__module__, named.__qualname__) is key
    return False


class KeyedContainer:
    """Base class: every access counts as one to all places, unless a method says less.

    `path` is the path of the container, and `content` the real one.
    """

    __slots__ = ("content", "path")

    def __init__(self, path: str, content: Any) -> None:
        self.path = path
        self.content = content

    def touch(self, key: object) -> None:
        """Record an access to a key."""
        _touched.add((self.path, key if is_stable(key) else EVERY))

    def write(self, key: object) -> None:
        """Record that a key is written."""
        _written.add((self.path, key if is_stable(key) else EVERY))


def _reading(name: str) -> Callable[..., Any]:
    """Return a method that reads one key."""

    def method(self: Any, key: object, *rest: Any) -> Any:
        self.touch(key)
        return getattr(self.content, name)(key, *rest)

    return method


def _writing(name: str) -> Callable[..., Any]:
    """Return a method that writes one key."""

    def method(self: Any, key: object, *rest: Any) -> Any:
        self.write(key)
        return getattr(self.content, name)(key, *rest)

    return method


def _accessing_all(name: str) -> Callable[..., Any]:
    """Return a method that accesses every place."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        _touched.add((self.path, EVERY))
        others = [each for each in args if isinstance(each, KeyedContainer)]
        _touched.update((other.path, EVERY) for other in others)
        # Methods in C know real containers only.
        args = tuple(each.content if each in others else each for each in args)
        result = getattr(self.content, name)(*args, **kwargs)
        return self if result is self.content else result

    return method


# Names that every object has, and of which no container decides anything by content.
_OF_OBJECTS = frozenset(
    {"__class__", "__class_getitem__", "__delattr__", "__dir__", "__doc__"}
    | {"__getattribute__", "__hash__", "__init__", "__init_subclass__", "__new__"}
    | {"__setattr__", "__subclasshook__", "fromkeys"}
)


def _keyed(kind: type, reading: str, writing: str) -> dict[str, Any]:
    """Return the members of the keyed class for a type."""
    members: dict[str, Any] = {
        name: _accessing_all(name) for name in dir(kind) if name not in _OF_OBJECTS
    }
    members |= {name: _reading(name) for name in reading.split()}
    members |= {name: _writing(name) for name in writing.split()}
    members["__bool__"] = lambda self: self.__len__() > 0
    members["__class__"] = property(lambda self: kind)
    members["__slots__"] = ()
    members["__module__"] = __name__
    return members


# `match` looks for the flag that classes inherit from `Mapping`.
KeyedDict: Any = ABCMeta(
    "KeyedDict",
    (KeyedContainer, Mapping),
    _keyed(
        dict, "__getitem__ __contains__ get", "__setitem__ __delitem__ pop setdefault"
    ),
)
KeyedSet: Any = type(
    "KeyedSet", (KeyedContainer,), _keyed(set, "__contains__", "add discard remove")
)


def _get_or_make(self: Any, key: object) -> Any:
    """Read one key of a `defaultdict`, or write it."""
    note = self.touch if key in self.content else self.write
    note(key)
    return self.content[key]


KeyedDefaultDict: Any = ABCMeta(
    "KeyedDefaultDict",
    (KeyedContainer, Mapping),
    {
        **_keyed(
            defaultdict, "__contains__ get", "__setitem__ __delitem__ pop setdefault"
        ),
        "__getitem__": _get_or_make,
        "default_factory": property(lambda self: self.content.default_factory),
    },
)

# Factories without state.
_FACTORIES = (list, dict, set, int, str)


def _class_for(value: object) -> Any:
    """Return the keyed class for a container, or None."""
    if type(value) is defaultdict and value.default_factory not in _FACTORIES:
        return None
    return _STANDS_FOR.get(type(value))


_STANDS_FOR: Final[dict[type, Any]] = {
    dict: KeyedDict,
    set: KeyedSet,
    defaultdict: KeyedDefaultDict,
}


class _Attribute(NamedTuple):
    """An attribute of an object: its path, and functions that read and write it."""

    path: str
    get: Callable[[], Any]
    set: Callable[[Any], None]

    def is_only_reference(self) -> bool:
        """Return True if nothing else refers to the value."""
        value = self.get()
        return sys.getrefcount(value) == _ALONE


def _counted_alone() -> int:
    space: dict[str, object] = {"x": {}}
    get = partial(space.__getitem__, "x")
    value = get()
    return sys.getrefcount(value)


# What `is_only_reference` counts for a value with one reference.
_ALONE: Final = _counted_alone()

# Py_TPFLAGS_HEAPTYPE
_HEAP_TYPE: Final = 1 << 9


class Replacement(NamedTuple):
    """A keyed container, and the attribute that has it; None for a registry itself."""

    container: Any
    attribute: _Attribute | None = None

    def undo(self) -> None:
        """Store the real container again, unless the attribute was set since."""
        if self.attribute is None:
            return
        with suppress(AttributeError, KeyError):  # it was deleted
            if self.attribute.get() is self.container:
                self.attribute.set(self.container.content)


def replace_containers(registry: Any) -> tuple[Any, tuple[Replacement, ...]]:
    """Replace the dicts and sets in the attributes of a fresh registry.

    Return the registry, itself replaced if it is a dict or a set, and the replacements
    in a fixed order.  Only instances of Python classes are searched, and what their
    attributes refer to; those of the standard library are left alone.
    """
    kind = _class_for(registry)
    if kind is not None:
        whole = kind("registry", registry)
        return whole, (Replacement(whole),)
    replaced: list[Replacement] = []
    seen: set[int] = set()
    queue = deque([("registry", registry)])
    while queue and len(seen) < _MOST_OBJECTS:
        where, owner = queue.popleft()
        if id(owner) in seen or not _is_searched(type(owner)):
            continue
        seen.add(id(owner))
        for attribute in _attributes(where, owner):
            kind = _class_for(attribute.get())
            if kind is None:
                queue.append((attribute.path, attribute.get()))
            elif attribute.is_only_reference():
                path = attribute.path
                while any(each.container.path == path for each in replaced):
                    path += "'"  # two attributes of one name
                container = kind(path, attribute.get())
                replaced.append(Replacement(container, attribute))
                attribute.set(container)
    return registry, tuple(replaced)


def _is_searched(kind: type) -> bool:
    root = kind.__module__.partition(".")[0]
    return (
        kind.__flags__ & _HEAP_TYPE != 0
        and not issubclass(kind, type)
        and root not in sys.stdlib_module_names | {"everyorder"}
    )


def _attributes(path: str, owner: object) -> Iterator[_Attribute]:
    """Yield the attributes that an instance stores; no code of its class runs."""
    for base in type(owner).__mro__:
        for name, member in [*base.__dict__.items()]:
            if name == "__dict__" and type(member) is GetSetDescriptorType:
                values = member.__get__(owner)
                for each in [*values]:
                    get = partial(values.__getitem__, each)
                    put = partial(values.__setitem__, each)
                    yield _Attribute(f"{path}.{each}", get, put)
            elif type(member) is MemberDescriptorType and base.__flags__ & _HEAP_TYPE:
                with suppress(AttributeError):  # nothing is stored there
                    member.__get__(owner)
                    get = partial(member.__get__, owner)
                    put = partial(member.__set__, owner)
                    yield _Attribute(f"{path}.{name}", get, put)
