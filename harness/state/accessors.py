"""The table of known types: accessors for the contents of built-in types' instances.

The table maps a type to an `Accessor`: `body` is the kind of its contents (a sequence,
a dict, a set or none of these), and `parts` returns further labelled values.
Subclasses are read by the accessor of their nearest known base, except for some types
that are read exactly, whose subclasses are laid out like any class.  A type that is not
in the table, and whose layout does not explain its whole size, is opaque.

- *Exceptions*: arguments, cause, context, notes, and the fields that each class adds in
  C, like the file name of an `OSError`; the class that adds a field has its descriptor.
- *Iterators*: see `iterator_accessors.py`.
- *Properties, aliases of generic types, weak references*: with fields of their C
  structs that no attribute shows (`hidden_fields.py`).
- *Arrays* of numpy, without importing it: bytes, layout, whether they are writable, and
  the base of a view.
- *Event loops* of asyncio: their pending work (callbacks, timers, asynchronous
  generators, watched file descriptors).  Sockets, selector and clock are internals of
  the loop, and not part of any state.

Rule: no line runs code of a user.  Types are exact or known bases, methods and
descriptors are those of the base, never looked up on the instance, and values are
compared or hashed only if they are of built-in types.

Sources: the C structs and traverse functions of CPython 3.11 to 3.13.
"""

import array
import builtins
import collections
import decimal
import functools
import gc
import io
import itertools
import marshal
import operator
import pathlib
import random
import re
import struct
import sys
import threading
import types
import typing
import weakref
import zoneinfo
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from hashlib import blake2b
from typing import Any

from everyorder.harness.state.array_accessors import array_reader
from everyorder.harness.state.context_accessors import CONTEXT_ACCESSORS
from everyorder.harness.state.hidden_fields import (
    hash_of_reference,
    own_parameters,
    property_fields,
)
from everyorder.harness.state.iterator_accessors import ITERATORS
from everyorder.harness.state.layout import (
    ABSENT,
    Accessor,
    Parts,
    Unreadable,
    add_readable,
    layout_of,
    members,
    module_of,
    mro_of,
    namespace_of,
    reduction,
)


def _exception(kind: type) -> Accessor:
    """Return the accessor of an exception: the fields of its C structs, bases first."""
    fields: Parts = []
    for level in reversed(mro_of(kind)):
        if level is object:
            continue
        for name, descriptor in sorted(namespace_of(level).items()):
            kinds = (types.MemberDescriptorType, types.GetSetDescriptorType)
            if type(descriptor) in kinds and name != "__dict__":
                fields.append((name, descriptor.__get__))

    def read(o: Any) -> Parts:
        parts: Parts = []
        for name, getter in fields:
            try:
                value = getter(o)
            except (AttributeError, TypeError):  # not set
                value = ABSENT
            if value is not None or name == "args":
                parts.append((name, value))
        return parts

    return Accessor(parts=read)


def _exceptions() -> dict[type, Accessor]:
    return {
        kind: _exception(kind)
        for kind in vars(builtins).values()
        if type(kind) is type and issubclass(kind, BaseException)
    }


EXCEPTIONS = _exceptions()


_READ = (
    "_ready",
    "_scheduled",
    "_asyncgens",
    "_closed",
    "_stopping",
    "_debug",
    "_exception_handler",
    "_task_factory",
    "_default_executor",
    "_signal_handlers",
)
# The loop watches its own pipe, which wakes it up.
_OWN_PIPES = 1


def loop_reader(kind: type) -> Accessor | None:
    """Return the accessor of an event loop that is written in Python, or None."""
    if module_of(kind).partition(".")[0] != "asyncio":
        return None
    events = sys.modules.get("asyncio.base_events")
    base = getattr(events, "BaseEventLoop", None)
    if not any(each is base for each in mro_of(kind)):
        return None
    return Accessor(parts=_loop, ignores_attributes=True)


def _loop(o: Any) -> Parts:
    attributes = _attributes(o)
    selector = attributes.get("_selector")
    if selector is not None:
        watched = _attributes(selector).get("_fd_to_key")
        if type(watched) is not dict or len(watched) > _OWN_PIPES:
            raise Unreadable
    return [(name, attributes.get(name, ABSENT)) for name in _READ]


def _attributes(o: Any) -> dict[str, Any]:
    dict_of = layout_of(type(o)).dict_of
    if dict_of is None:
        raise Unreadable
    return dict_of(o) or {}


LRU: Any = functools._lru_cache_wrapper


# The label of a number that is unequal to itself; no attribute has this name.
NAN = "not a number"


def _value(label: str, convert: Callable[[Any], Any]) -> Accessor:
    return Accessor(parts=lambda o: [(label, convert(o))])


def _number(value: complex) -> Parts:
    """Return a number; one that is unequal to itself as text, followed by its bits."""
    if value == value:
        return [("value", value)]
    return [(NAN, f"{value} {marshal.dumps(value, 2)[1:].hex()}")]


def _nothing(_o: Any) -> Parts:
    return []


def _referents(o: Any) -> Parts:
    return [("referent", each) for each in gc.get_referents(o)]


def _ordered(o: Any) -> list[tuple[Any, Any]]:
    """Return the items of an OrderedDict in its own order.

    Its iterators hash keys.  If keys are not plain texts, the order is taken from the
    traverse function: it ends with all keys in order, then all items of the dict.
    """
    items = list(dict.items(o))
    values = {id(key): (key, value) for key, value in items}
    if all(type(key) is str for key, _ in items):
        try:
            keys = list(collections.OrderedDict.__iter__(o))
        except KeyError:  # its items were changed by methods of dict
            raise Unreadable from None
    else:
        keys = gc.get_referents(o)[-3 * len(items) : -2 * len(items)]
    if len(keys) != len(items) or {id(key) for key in keys} != values.keys():
        raise Unreadable
    return [values[id(key)] for key in keys]


def _cached(o: Any) -> Parts:
    """Return the size of an lru_cache and all its referents, least recent first."""
    info = LRU.cache_info(o)
    return [
        ("maxsize", info.maxsize),
        ("currsize", info.currsize),
        *(("cached", each) for each in gc.get_referents(o)),
    ]


def cache_entries(o: Any) -> tuple[list[tuple[Any, Any]], list[Any]] | None:
    """Return keys and answers of an lru_cache, and its other referents.

    None if its referents are not laid out as expected.
    """
    info = LRU.cache_info(o)
    referents = gc.get_referents(o)
    if info.maxsize is None:
        for place, each in enumerate(referents):
            if type(each) is dict and len(each) == info.currsize:
                others = referents[:place] + referents[place + 1 :]
                return list(each.items()), others
        return None
    # Its class, the entries, each with its key, its answer and perhaps its class, and a
    # dict of the entries.
    size = info.currsize
    for begin, width in itertools.product((1, 0), (3, 2)):
        end = begin + size * width
        entries = referents[begin:end]
        table = referents[end] if end < len(referents) else None
        keys = entries[::width]
        if type(table) is dict and set(map(id, table)) == set(map(id, keys)):
            pairs = list(zip(keys, entries[1::width], strict=True))
            return pairs, referents[:begin] + referents[end + 1 :]
    return None


def _lock(o: Any) -> Parts:
    return [("locked", type(o).locked(o))]


def _rlock(o: Any) -> Parts:
    # CPython prints both, and until 3.14 there is no other way to read them.
    owner, count = _HELD.findall(_RLOCK_REPR(o))[0]
    mine = "this thread" if int(owner) == threading.get_ident() else "another thread"
    return [("owner", mine if int(owner) else None), ("count", int(count))]


_RLock: type = type(threading.RLock())
_RLOCK_REPR: Any = _RLock.__repr__
_HELD = re.compile(r"owner=(\d+) count=(\d+)")
_Local: type = threading.local
_local_get: Any = _Local.__getattribute__


def _local(o: Any) -> Parts:
    return [("here", _local_get(o, "__dict__"))]


def _view(o: Any) -> Parts:
    return [("of", gc.get_referents(o)[0])]


# Contents that are longer are represented by a digest.
_LARGEST = 1 << 16


def _buffer(o: Any) -> bytes:
    """Return the contents of a buffer of bytes, or their digest."""
    with memoryview(o) as view:
        if view.nbytes <= _LARGEST:
            return view.tobytes()
        return blake2b(view, digest_size=32).digest()


def _numbers(o: Any) -> Parts:
    return [
        ("typecode", _typecode_of(o)),
        ("size", array.array.__len__(o)),
        ("bytes", _buffer(o)),
    ]


_typecode_of = namespace_of(array.array)["typecode"].__get__


def _memory(o: Any) -> Parts:
    try:
        shape, strides = o.shape, o.strides
    except ValueError:
        return [("released", True)]
    owner = o.obj
    if type(owner) is bytes or type(owner) is bytearray:
        whole = o.nbytes == len(owner)
    else:
        whole = type(owner) is array.array and o.nbytes == len(owner) * owner.itemsize
    if not whole or not o.contiguous:  # the offset of a part is unknown
        raise Unreadable
    return [
        ("obj", owner),
        ("bytes", memoryview.tobytes(o)),
        ("format", o.format),
        ("shape", shape),
        ("strides", strides),
        ("readonly", o.readonly),
    ]


def _reference(o: Any) -> Parts:
    target = weakref.ReferenceType.__call__(o)
    parts: Parts = [
        ("target", ABSENT if target is None else target),
        ("callback", _callback_of(o)),
    ]
    known = hash_of_reference(o, target)
    if known is None:
        return parts
    if target is None and not -_LEAST_ADDRESS < known < _LEAST_ADDRESS:
        # It may derive from an address, which is another one in each system.
        raise Unreadable([*parts, ("hashed", True)])
    return [*parts, ("hashed", known)]


# A hash from here on may be that of an address.
_LEAST_ADDRESS = 1 << 16
_callback_of = namespace_of(weakref.ReferenceType)["__callback__"].__get__


def _zone(o: Any) -> Parts:
    if o.key is None:  # read from an unknown file
        raise Unreadable
    return [("key", o.key)]


def _path(o: Any) -> Parts:
    """Return the text of a path, and caches that do not follow from it."""
    kind = type(o)
    text = str(o)
    twin = kind(text)
    # Fill the caches of the twin.
    hash(twin), twin.parts, twin < twin  # it is not an assertion
    parts: Parts = [("value", text)]
    for slot, member in _slots_of_path(kind):
        value, usual = _slot(member, o), _slot(member, twin)
        if value is not ABSENT and not (type(value) is type(usual) and value == usual):
            parts.append((slot, value))
    return parts


def _slots_of_path(kind: type) -> list[tuple[str, Any]]:
    return [
        (name, member)
        for base in mro_of(kind)
        for name, member in namespace_of(base).items()
        if type(member) is types.MemberDescriptorType
    ]


def _slot(member: Any, o: Any) -> Any:
    try:
        return member.__get__(o)
    except AttributeError:
        return ABSENT


def _stream_state(kind: Any) -> Accessor:
    """Return the accessor of a stream in memory: contents, position, or closed."""
    state = kind.__getstate__
    # Which ends of lines a stream of text has translated.
    own = namespace_of(kind).get("newlines")
    newlines = (lambda o: None) if own is None else own.__get__

    def read(o: Any) -> Parts:
        try:
            # The last item holds its attributes.
            return [("state", state(o)[:-1]), ("newlines", newlines(o))]
        except ValueError:
            return [("closed", True)]

    return Accessor(parts=read)


_TABLE: dict[type, Accessor] = {
    object: Accessor(),
    type(NotImplemented): Accessor(parts=_nothing),
    # Values and their subclasses.
    int: _value("value", int.__int__),
    str: _value("value", str.__str__),
    float: Accessor(parts=lambda o: _number(float.__float__(o))),
    complex: Accessor(parts=lambda o: _number(complex.__complex__(o))),
    bytes: _value("value", lambda o: bytes.__getitem__(o, slice(None))),
    bytearray: _value("value", _buffer),
    range: Accessor(parts=members(range, "start", "stop", "step")),
    slice: Accessor(parts=members(slice, "start", "stop", "step")),
    decimal.Decimal: _value("value", lambda o: tuple(decimal.Decimal.as_tuple(o))),
    # Containers.
    list: Accessor("sequence", items=list.__iter__),
    tuple: Accessor("sequence", items=tuple.__iter__),
    dict: Accessor("dict"),
    collections.defaultdict: Accessor(
        "dict", members(collections.defaultdict, "default_factory")
    ),
    collections.OrderedDict: Accessor("ordered", items=_ordered),
    set: Accessor("set", items=set.__iter__),
    frozenset: Accessor("set", items=frozenset.__iter__),
    collections.deque: Accessor(
        "sequence",
        members(collections.deque, "maxlen"),
        collections.deque.__iter__,
    ),
    array.array: Accessor(parts=_numbers),
    memoryview: Accessor(parts=_memory),
    types.MappingProxyType: Accessor(parts=_view),
    types.SimpleNamespace: Accessor(),
    types.ModuleType: Accessor(),
    type: Accessor(),
    weakref.ReferenceType: Accessor(parts=_reference),
    # Functions and their relatives.
    types.MethodType: Accessor(parts=members(types.MethodType, "__func__", "__self__")),
    functools.partial: Accessor(
        parts=members(functools.partial, "func", "args", "keywords")
    ),
    property: Accessor(parts=property_fields),
    classmethod: Accessor(parts=members(classmethod, "__func__")),
    staticmethod: Accessor(parts=members(staticmethod, "__func__")),
    super: Accessor(
        parts=members(super, "__thisclass__", "__self__", "__self_class__")
    ),
    LRU: Accessor(parts=_cached),
    type(functools.cmp_to_key(_nothing)): Accessor(parts=_referents),  # type: ignore[arg-type]  # any callable makes one
    operator.itemgetter: reduction(operator.itemgetter),
    operator.attrgetter: reduction(operator.attrgetter),
    operator.methodcaller: reduction(operator.methodcaller),
    types.GenericAlias: Accessor(
        parts=own_parameters(
            types.GenericAlias, "__origin__", "__args__", "__unpacked__"
        )
    ),
    types.UnionType: Accessor(parts=own_parameters(types.UnionType, "__args__")),
    # State by thread and context; the scope of a proof is one of each.
    type(threading.Lock()): Accessor(parts=_lock),
    _RLock: Accessor(parts=_rlock),
    _Local: Accessor(parts=_local),
    **CONTEXT_ACCESSORS,
    # Values of the standard library.
    re.Pattern: Accessor(parts=members(re.Pattern, "pattern", "flags")),
    re.Match: Accessor(
        parts=lambda o: [
            ("re", o.re),
            ("string", o.string),
            ("regs", o.regs),
            ("pos", o.pos),
            ("endpos", o.endpos),
            ("lastindex", o.lastindex),
        ]
    ),
    date: _value("state", lambda o: date.__reduce__(o)[1]),
    datetime: _value("state", lambda o: datetime.__reduce_ex__(o, 4)[1]),
    time: _value("state", lambda o: time.__reduce_ex__(o, 4)[1]),
    timedelta: _value("state", lambda o: timedelta.__reduce__(o)[1]),
    timezone: _value("state", timezone.__getinitargs__),  # type: ignore[attr-defined]  # pickles use it
    struct.Struct: Accessor(parts=members(struct.Struct, "format", "size")),
    io.BytesIO: _stream_state(io.BytesIO),
    io.StringIO: _stream_state(io.StringIO),
    random.Random.__base__: _value("state", random.Random.__base__.getstate),  # type: ignore[dict-item, union-attr]  # _random.Random
}

_EXACT: dict[type, Accessor] = {
    kind: Accessor(parts=_path)
    for kind in (
        pathlib.PurePosixPath,
        pathlib.PureWindowsPath,
        pathlib.PosixPath,
        pathlib.WindowsPath,
    )
}
_EXACT[decimal.Context] = reduction(decimal.Context)
_EXACT[random.SystemRandom] = Accessor(parts=_nothing)
_EXACT[zoneinfo.ZoneInfo] = Accessor(parts=_zone)


def _views() -> dict[type, Accessor]:
    """Return the accessors of the views of dicts, which have no names."""
    plain: dict[Any, Any] = {}
    ordered: Any = collections.OrderedDict()
    views = [
        view
        for each in (plain, ordered)
        for view in (each.keys(), each.values(), each.items())
    ]
    return dict.fromkeys(map(type, views), Accessor(parts=_view))


def _links() -> dict[type, Accessor]:
    """Return accessors of cache links; the cache itself has the entries."""
    cache = functools.lru_cache(1)(_nothing)
    cache(None)
    links: list[type] = [
        type(each)
        for entries in gc.get_referents(cache)
        if type(entries) is dict
        for each in entries.values()
        if type(each).__name__ == "_lru_list_elem"
    ]
    return dict.fromkeys(links, Accessor(parts=_nothing))


def _type_parameters() -> dict[type, Accessor]:
    """Return accessors of type variables and the like, C types from Python 3.12 on.

    They have attributes but do not show the dict of them; the referents include it.
    """
    table = {}
    for name in ("TypeVar", "ParamSpec", "TypeVarTuple", "TypeAliasType"):
        kind = getattr(typing, name, None)
        if kind is not None and "__name__" in namespace_of(kind):
            descriptors = (types.MemberDescriptorType, types.GetSetDescriptorType)
            flags = ("__covariant__", "__contravariant__", "__infer_variance__")
            names = ("__name__", *(each for each in flags if hasattr(kind, each)))
            if type(namespace_of(kind)["__name__"]) in descriptors:
                table[kind] = Accessor(parts=_parameter(members(kind, *names)))
    return table


def _parameter(flags: Callable[[Any], Parts]) -> Callable[[Any], Parts]:
    def read(o: Any) -> Parts:
        return flags(o) + _referents(o)

    return read


_field = type(collections.namedtuple("_Field", "x").x)  # type: ignore[attr-defined]  # only C makes them
_TABLE |= ITERATORS | _views() | _links() | EXCEPTIONS
_TABLE[_field] = reduction(_field)
_EXACT |= _type_parameters()


# By id: a metaclass may define how its classes are hashed.
_BY_ID = {id(kind): accessor for kind, accessor in _TABLE.items()}
_EXACT_BY_ID = {id(kind): accessor for kind, accessor in _EXACT.items()}
add_readable(_BY_ID.keys())


def accessor_of(kind: type) -> Accessor | None:
    """Return the accessor of the last type in an instance's chain of classes."""
    return None if kind is object else _BY_ID.get(id(kind))


def exact_accessor(kind: type) -> Accessor | None:
    """Return the accessor for instances of exactly this type, if there is one."""
    return _EXACT_BY_ID.get(id(kind)) or array_reader(kind) or loop_reader(kind)


def set_exact_accessor(kind: type, accessor: Accessor) -> None:
    """Read instances of exactly this type by `accessor` from now on."""
    _EXACT_BY_ID[id(kind)] = accessor
