"""The containers of two scans, their differences, and how one object names another.

A level of a scan (`scan.py`) is expanded when one of its containers is requested: most
levels of two scans are equal, and are compared as a whole.

Names (`.name`, `[3]`, `['key']`) are for people.  They are found by identity, by the
descriptors of base classes and without user code; if there is none, the name is
`.<Type>`.  A module, class, function or instance that refers to its own namespace names
it "", and the namespace names its values `.name`, so that steps join to a path.  An
instance without a dict for its attributes receives one when its names are read; this is
not observable.

The objects of an observing tool change while it observes, so they are not entered.
The names in its modules are compared all the same, by ids and one level deep: what a
program binds there (`pytest.state = 1`), or sets on a class or function, is state.
"""

import _thread
import array
import builtins
import gc
import operator
import sys
import types
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import _lru_cache_wrapper, partial
from itertools import accumulate, chain, compress, repeat
from typing import Any, NamedTuple, TypeAlias

from everyorder.harness.state.layout import (
    HEAP_TYPE,
    bases_of,
    flags_of,
    module_dict,
    module_of,
    mro_of,
    namespace_of,
)
from everyorder.harness.state.scan import (
    MARK,
    SEAM,
    Level,
    bytes_of_ids,
    thread_dict,
)

_Ids: TypeAlias = tuple[int, ...]


class ContainerNode(NamedTuple):
    """One container, by ids; `token` is the state that it keeps in C."""

    kind: int
    slots: _Ids
    keys: _Ids
    token: Hashable


class ContainerTable:
    """The containers of some levels by their ids."""

    def __init__(self, levels: Sequence[Level]) -> None:
        self.levels = levels
        # The collector scans every set, but not a dict of numbers.
        self.places: dict[int, int] = {}
        for at, level in enumerate(levels):
            self.places.update(dict.fromkeys(level.nodes, at))
        self._parts: dict[int, dict[int, ContainerNode]] = {}

    def __contains__(self, owner: int) -> bool:
        return owner in self.places

    def __getitem__(self, owner: int) -> ContainerNode:
        return self._part(self.places[owner])[owner]

    def kind(self, owner: int) -> int | None:
        """Return the id of a container's type; None for other objects."""
        place = self.places.get(owner)
        return None if place is None else self._part(place)[owner].kind

    def references(self, owner: int) -> _Ids:
        """Return the ids of all referents of a container."""
        node = self[owner]
        return node.slots + node.keys

    def differences(self, other: "ContainerTable") -> list[int]:
        """Return the containers that are in both tables and differ."""
        changed = []
        for at, level in enumerate(self.levels):
            if at < len(other.levels) and _is_same(level, other.levels[at]):
                continue  # none of its containers is on another level
            for owner, node in self._part(at).items():
                if owner in other and other[owner] != node:
                    changed.append(owner)
        return changed

    def forget(self) -> None:
        """Drop the expanded levels, which are large."""
        self._parts.clear()

    def _part(self, at: int) -> dict[int, ContainerNode]:
        part = self._parts.get(at)
        if part is None:
            part = self._parts[at] = _nodes_of(self.levels[at])
        return part


def _is_same(one: Level, other: Level) -> bool:
    """Return True if two levels are equal, apart from their readers."""
    return one is other or (
        one.nodes == other.nodes
        and one.kinds == other.kinds
        and one.slots == other.slots
        and one.keyed == other.keyed
        and one.sizes == other.sizes
        and one.keys == other.keys
        and one.tokens == other.tokens
        and one.locals == other.locals
    )


def _nodes_of(level: Level) -> dict[int, ContainerNode]:
    special = level.nodes[len(level.nodes) - len(level.codes) :]
    read = compress(special, level.readers)
    tokens: dict[int, Hashable] = dict(zip(read, level.tokens, strict=True))
    inner: dict[int, _Ids] = {}
    for owner, each in level.locals:
        inner[owner] = (*inner.get(owner, ()), each)
    keys: dict[int, _Ids] = {}
    all_keys, start = tuple(level.keys), 0
    for owner, size in zip(level.keyed, level.sizes, strict=True):
        keys[owner] = all_keys[start : start + size]
        start += size
    nodes: dict[int, ContainerNode] = {}
    mark, slots, start = id(MARK), tuple(level.slots), 0
    for owner, kind in zip(level.nodes, level.kinds, strict=True):
        end = slots.index(mark, start)
        referents = slots[start:end] + inner.get(owner, ())
        nodes[owner] = ContainerNode(
            kind, referents, keys.get(owner, ()), tokens.get(owner)
        )
        start = end + 1
    return nodes


def shortest_path(levels: Sequence[Level], owner: int) -> list[int]:
    """Return a shortest path from a root to a container, by ids of the referrers."""
    way = [owner]
    depth = next(at for at, level in enumerate(levels) if owner in level.nodes)
    for level in reversed(levels[:depth]):
        if way[-1] in level.slots:
            at = level.slots.index(way[-1])
            way.append(level.nodes[level.slots[:at].count(id(MARK))])
        elif way[-1] in level.keys:
            at = level.keys.index(way[-1])
            ends = accumulate(level.sizes)
            way.append(
                next(o for o, end in zip(level.keyed, ends, strict=True) if at < end)
            )
        else:
            way.append(next(o for o, inner in level.locals if inner == way[-1]))
    return way[::-1]


# Attributes of C types that are not members and that read without side effects.
_ATTRIBUTES: Mapping[type, tuple[str, ...]] = {
    types.FunctionType: ("__closure__", "__defaults__", "__kwdefaults__"),
    types.MethodType: ("__self__", "__func__"),
    types.BuiltinFunctionType: ("__self__",),
    types.CellType: ("cell_contents",),
    property: ("fget", "fset", "fdel"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
}
_BY_ID = {id(kind): names for kind, names in _ATTRIBUTES.items()}
_NAMESPACE_SLOTS = (types.GetSetDescriptorType, types.MemberDescriptorType)
_SHOWN_KEYS = (str, int, bytes, bool, float, type(None))
_LONGEST_KEY = 40
_SYSTEM = {"posix": "os", "nt": "os"}  # the usual names
_base_of = type.__dict__["__base__"].__get__


def reference(owner: Any, child: Any, namespace: bool = False) -> str:
    """Return the name of `child` in `owner`, a dict of names if `namespace`."""
    kind = type(owner)
    if issubclass(kind, dict):
        # A copy, because another thread may change the dict meanwhile.
        for key, value in [*dict.items(owner)]:
            if value is child:
                if owner is sys.modules:
                    return _SYSTEM.get(key, str(key))
                return f".{key}" if namespace else f"[{_short(key)}]"
            if key is child:
                return f".keys()[{_short(key)}]"
    for base in (list, tuple, deque):
        if issubclass(kind, base):
            for at, member in enumerate([*base.__iter__(owner)]):
                if member is child:
                    return f"[{at}]"
    if issubclass(kind, (set, frozenset)):
        return "[...]"
    for name in _BY_ID.get(id(kind), ()):
        if getattr(owner, name) is child:
            return f".{name}"
    if kind is types.FunctionType and owner.__globals__ is child:
        return ".__globals__"
    if kind is _lru_cache_wrapper and type(child) is not dict:
        return ".__wrapped__" if type(child) is types.FunctionType else "(...)"
    if issubclass(kind, type):
        return _of_class(owner, child)
    if type(child) is dict and _namespace(owner, child) is child:
        return ""
    return f".{_attribute(owner, child) or f'<{type(child).__name__}>'}"


def _of_class(owner: Any, child: Any) -> str:
    if gc.get_referents(namespace_of(owner))[0] is child:
        return ""
    if _base_of(owner) is child:
        return ".__base__"
    if mro_of(owner) is child:
        return ".__mro__"
    if bases_of(owner) is child:
        return ".__bases__"
    return f".<{type(child).__name__}>"


def _namespace(owner: Any, child: dict[Any, Any]) -> object:
    """Return the namespace of an object that is not a class, if it may be `child`."""
    kind = type(owner)
    if issubclass(kind, types.ModuleType):
        return module_dict(owner)
    if issubclass(kind, _thread._local):
        return thread_dict(owner, "__dict__")
    if kind is types.FunctionType:
        # Reading the annotations or attributes of a function creates them.
        parameters = {"return", *owner.__code__.co_varnames}
        return None if parameters.issuperset(child) else child
    for base in mro_of(kind):
        slot = namespace_of(base).get("__dict__")
        if type(slot) in _NAMESPACE_SLOTS:
            return slot.__get__(owner)
    return None


def _attribute(owner: Any, child: Any) -> str | None:
    """Return the name of the slot or attribute of an instance that holds `child`."""
    kind = type(owner)
    for base in mro_of(kind):
        for name, slot in [*namespace_of(base).items()]:
            if (
                type(slot) is types.MemberDescriptorType
                and _slot_value(slot, owner) is child
            ):
                return str(name)
    if kind is types.FunctionType:
        return "__annotations__" if type(child) is dict else None
    inner = _namespace(owner, {})
    if type(inner) is dict:
        for name, value in [*inner.items()]:
            if value is child:
                return str(name)
    return None


def _slot_value(slot: types.MemberDescriptorType, owner: Any) -> object:
    try:
        return slot.__get__(owner)
    except AttributeError:
        return None


def _short(key: Any) -> str:
    if issubclass(type(key), type):
        return str(type.__dict__["__name__"].__get__(key))
    if type(key) not in _SHOWN_KEYS:
        return f"<{type(key).__name__}>"
    text = repr(key)
    return text if len(text) <= _LONGEST_KEY else f"{text[:_LONGEST_KEY]}..."


# Types of values that are compared by value, because they are created again.
_ATOMS = frozenset({int, str, bytes, float, bool, types.NoneType})
_is_atom = _ATOMS.__contains__
_is_function = partial(operator.is_, types.FunctionType)
_is_dict = partial(operator.is_, dict)


class Bound(NamedTuple):
    """What the names of one namespace are bound to; keeps no object alive.

    `atoms` are the values that are compared by value, in order; others are compared by
    id.  `kinds` are the ids of all types.
    """

    owner: int
    names: tuple[Any, ...]
    kinds: tuple[int, ...]
    ids: tuple[int, ...]
    atoms: tuple[Hashable, ...]

    def values(self) -> dict[str, Hashable]:
        """Return what names are bound to, without modules: those are reported apart."""
        atoms, kinds_of_atoms = iter(self.atoms), frozenset(map(id, _ATOMS))
        values: dict[str, Hashable] = {}
        for name, kind, address in zip(self.names, self.kinds, self.ids, strict=True):
            value = next(atoms) if kind in kinds_of_atoms else address
            if type(name) is str and kind != id(types.ModuleType):
                values[name] = kind, value
        return values


@dataclass(frozen=True, slots=True)
class _Places:
    """The places of the namespaces of observing modules, for reading them again.

    `observing` are places in `sys.modules`, `classes` those of own classes among the
    values of these modules, `functions` those of own functions among the values of
    modules and classes, and `dicts` those of dicts among the referents of functions.
    """

    observing: tuple[int, ...]
    classes: tuple[int, ...]
    functions: tuple[int, ...]
    dicts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bindings:
    """The values of all names of observing modules, by the path of a namespace.

    They include the attributes of classes and functions.  `words` are the ids of all
    that was read, in the order of reading; `modules` keeps the names of all modules.
    """

    spaces: Mapping[str, Bound]
    modules: tuple[object, ...]
    places: _Places
    words: tuple[bytes, ...]

    def is_valid(self) -> bool:
        """Return True if all names have the same values as before.

        It compares the same as `Bound`, at once.  Names and atoms are alive,
        so the same id is the same value; of other objects only types and ids are known
        in both cases.  Reading ends at the first difference, as no place is right after
        it.
        """
        return all(map(operator.eq, _words_at(self.places), self.words))


def bindings(observes: Callable[[str], bool], before: Bindings | None) -> Bindings:
    """Return what names of observing modules are bound to.

    It is `before`, of the same observing modules, if nothing changed since then.
    """
    if before is not None and before.is_valid():
        return before
    names = tuple(sys.modules)
    observing = tuple(
        at
        for at, (name, module) in enumerate(list(sys.modules.items()))
        if type(name) is str
        and observes(name)
        and issubclass(type(module), types.ModuleType)
    )
    spaces: dict[str, Bound] = {}
    modules = list(sys.modules.values())
    for at in observing:
        name, space = str(names[at]), module_dict(modules[at])
        functions = _bind(spaces, name, space, id(space))
        for key, value in list(space.items()):
            if issubclass(type(value), type) and _is_own(value, name):
                functions += _bind(
                    spaces, f"{name}.{key}", namespace_of(value), id(value)
                )
        # Others are attributes of the module that defines them.
        own = [each for each in functions if each.__globals__ is space]
        _bind_attributes(spaces, name, own)
    places = _places(names, observing)
    return Bindings(spaces, names, places, tuple(_words_at(places)))


def _places(names: Sequence[object], observing: tuple[int, ...]) -> _Places:
    modules = list(sys.modules.values())
    spaces = [module_dict(modules[at]) for at in observing]
    values = _values_of(spaces)
    owners = _repeated(range(len(spaces)), spaces)
    classes = tuple(
        at
        for at, (value, owner) in enumerate(zip(values, owners, strict=True))
        if issubclass(type(value), type)
        and _is_own(value, str(names[observing[owner]]))
    )
    inner = _dicts_of(values[at] for at in classes)
    values += _values_of(inner)
    owners += _repeated((owners[at] for at in classes), inner)
    functions = tuple(
        at
        for at, (value, owner) in enumerate(zip(values, owners, strict=True))
        if type(value) is types.FunctionType and value.__globals__ is spaces[owner]
    )
    shared = {id(vars(builtins)), *map(id, spaces)}
    slots = _slots_of(values[at] for at in functions)
    dicts = tuple(
        at
        for at, each in enumerate(slots)
        if type(each) is dict and id(each) not in shared
    )
    return _Places(observing, classes, functions, dicts)


def _words_at(places: _Places) -> Iterator[bytes]:
    """Yield the ids of all that the names at some places are bound to."""
    yield bytes_of_ids(list(sys.modules))
    modules = list(sys.modules.values())
    chosen = [modules[at] for at in places.observing]
    yield bytes_of_ids(list(map(type, chosen)))
    spaces = list(map(module_dict, chosen))
    yield bytes_of_ids(spaces)
    values = _values_of(spaces)
    yield from _contents(spaces, values)
    inner = _dicts_of(values[at] for at in places.classes)
    values_of_classes = _values_of(inner)
    yield from _contents(inner, values_of_classes)
    values += values_of_classes
    slots = _slots_of(values[at] for at in places.functions)
    yield bytes_of_ids(slots)
    attributes = [slots[at] for at in places.dicts]
    yield bytes_of_ids(list(map(type, attributes)))
    yield from _contents(attributes, _values_of(attributes))


def _contents(spaces: list[Any], values: list[Any]) -> Iterator[bytes]:
    """Yield the sizes of dicts, and the ids of their names, their values and types."""
    yield array.array("Q", map(len, spaces)).tobytes()
    yield bytes_of_ids(list(chain.from_iterable(spaces)))
    yield bytes_of_ids(values)
    yield bytes_of_ids(list(map(type, values)))


def _values_of(spaces: Iterable[dict[Any, Any]]) -> list[Any]:
    return list(chain.from_iterable(map(dict.values, spaces)))


def _dicts_of(classes: Iterable[type]) -> list[Any]:
    """Return the namespaces of classes, each of which its proxy refers to."""
    return gc.get_referents(*map(namespace_of, classes))


def _slots_of(functions: Iterable[Any]) -> list[Any]:
    """Return the referents of functions, with a mark after those of each."""
    return gc.get_referents(*chain.from_iterable(zip(functions, repeat(SEAM))))


def _repeated(owners: Iterable[int], spaces: Iterable[Any]) -> list[int]:
    """Return the owner of each value of some dicts."""
    return [o for o, space in zip(owners, spaces, strict=True) for _ in space]


def _bind(
    spaces: dict[str, Bound], path: str, space: Mapping[Any, Any], owner: int
) -> list[types.FunctionType]:
    """Add a namespace; return the functions in it."""
    values = list(space.values())
    kinds = list(map(type, values))
    spaces[path] = Bound(
        owner,
        tuple(space),
        tuple(map(id, kinds)),
        tuple(map(id, values)),
        tuple(compress(values, map(_is_atom, kinds))),
    )
    return list(compress(values, map(_is_function, kinds)))


def _bind_attributes(
    spaces: dict[str, Bound],
    module: str,
    functions: Sequence[types.FunctionType],
) -> None:
    """Add the attributes of functions; creates no dict for those without."""
    shared = {id(each.__globals__) for each in functions}
    shared.add(id(vars(builtins)))
    referents = gc.get_referents(*functions)
    dicts = compress(referents, map(_is_dict, map(type, referents)))
    if shared.issuperset(map(id, dicts)):
        return
    for function in functions:
        for each in gc.get_referents(function):
            if type(each) is dict and id(each) not in shared:
                parameters = function.__code__.co_varnames
                # Otherwise they are annotations, which are a tuple until they are read.
                if not all(key == "return" or key in parameters for key in list(each)):
                    path = f"{module}.{function.__qualname__}"
                    _bind(spaces, path, each, id(each))


def _is_own(kind: type, module: str) -> bool:
    """Return True if a class is defined in the module, and can be changed."""
    return module_of(kind) == module and bool(flags_of(kind) & HEAP_TYPE)


_NO_NAMES = Bound(0, (), (), (), ())


def rebound_names(before: Bindings, now: Bindings) -> Iterator[tuple[str, int]]:
    """Yield the names that were rebound, each with the id of its namespace."""
    if now is before:
        return
    for path in sorted(before.spaces.keys() | now.spaces.keys()):
        old = before.spaces.get(path, _NO_NAMES)
        new = now.spaces.get(path, _NO_NAMES)
        # The atoms are alive, so no other value has the address of one.
        if old == new:
            continue
        was, is_bound = old.values(), new.values()
        owner = new.owner or old.owner
        for name in sorted(was.keys() | is_bound.keys()):
            if old.owner != new.owner or was.get(name) != is_bound.get(name):
                yield f"{path}.{name}", owner
