"""State that objects keep in C, read as a value: what a scan by ids cannot see.

True only here: `_TOKENS`, the table of types that refer to nothing, or not to all they
keep, and of how each is read.  Nothing here runs code of the program: objects are read
by the descriptors and functions of the base types, never by attributes.
"""

import _abc  # type: ignore[import-not-found]  # typeshed leaves it out
import _random
import _thread
import array
import gc
import io
import itertools
import sys
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

from harness.heap.layout import (
    HEAP_TYPE,
    flags_of,
    module_dict,
    mro_of,
    name_of,
    namespace_of,
    qualname_of,
    raw_module_of,
)

# Bytes of a buffer that are kept; of larger ones a digest, of the largest the size.
_LARGEST, _DIGESTED = 1 << 16, 1 << 26


def is_standard(module: object) -> bool:
    """Whether a module's name is one of the standard library."""
    return type(module) is str and module.partition(".")[0] in sys.stdlib_module_names


class ClassToken(NamedTuple):
    """What a class keeps in C: by ids its subclasses and whom it was told of; names."""

    registered: frozenset[int]
    subclasses: frozenset[int]
    qualname: str
    name: str


_NOBODY: frozenset[int] = frozenset()
_subclasses_of: Callable[[type], list[type]] = type.__subclasses__


def class_token(kind: type) -> Hashable:
    """What a class keeps in C, to be made a `ClassToken` of where that differs."""
    meta = type(kind)
    registered = below = _NOBODY
    if (
        meta is not type
        and "_abc_impl" in namespace_of(kind)
        and not _overrides_attributes(meta)
    ):
        registered = frozenset(map(id, _abc._get_dump(kind)[0]))
    subclasses = _subclasses_of(kind)
    # Nobody finds plugins by the subclasses of a standard class.
    if subclasses and not is_standard(raw_module_of(kind)):
        below = frozenset(map(id, subclasses))
    return registered, below, qualname_of(kind), name_of(kind)


def _overrides_attributes(meta: type) -> bool:
    return any(
        "__getattribute__" in namespace_of(base)
        for base in mro_of(meta)
        if base is not type and base is not object
    )


def _weak_token(reference: Any) -> Hashable:
    target = weakref.ReferenceType.__call__(reference)
    return None if target is None else id(target)


def _count_token(count: Any) -> Hashable:
    # A counter of objects of somebody's own would be asked for their repr.
    parts = gc.get_referents(count)
    if all(type(part) in (int, float) for part in parts):
        return itertools.count.__repr__(count)
    return None


def _buffer_token(found: Any) -> Hashable:
    try:
        with memoryview(found) as view:
            if view.nbytes <= _LARGEST:
                return view.tobytes()
            if view.nbytes > _DIGESTED:
                return view.nbytes
            plain = view if view.contiguous else view.tobytes()
            return blake2b(plain, digest_size=16).digest()
    except (BufferError, NotImplementedError, ValueError):
        return None  # numpy shows no buffer of dates; a closed map has none


def _stream_token(
    kind: type[io.StringIO] | type[io.BytesIO],
) -> Callable[[Any], Hashable]:
    def token(stream: Any) -> Hashable:
        try:
            return kind.getvalue(stream), kind.tell(stream)
        except ValueError:
            return None  # closed

    return token


def _frame_token(attribute: str) -> Callable[[Any], Hashable]:
    def token(suspended: Any) -> Hashable:
        frame = getattr(suspended, attribute)
        return None if frame is None else frame.f_lasti

    return token


def _remaining(iterator: Any) -> Hashable:
    hint: int = type(iterator).__length_hint__(iterator)
    return hint


_ITERATORS: tuple[Iterator[Any], ...] = (
    iter([]),
    reversed([]),
    iter(()),
    iter(range(0)),
    iter(""),
    iter({}),
    iter({}.values()),
    iter({}.items()),
    iter(set()),
)
# How to read the state that objects of a C type (and of its subclasses) keep in C.
_TOKENS: Mapping[type, Callable[[Any], Hashable]] = {
    weakref.ReferenceType: _weak_token,
    OrderedDict: lambda found: tuple(map(id, OrderedDict.__iter__(found))),
    _random.Random: lambda found: hash(_random.Random.getstate(found)),
    _thread.LockType: _thread.LockType.locked,
    _thread.RLock: _thread.RLock.__repr__,  # owner and count
    itertools.count: _count_token,
    io.StringIO: _stream_token(io.StringIO),
    io.BytesIO: _stream_token(io.BytesIO),
    types.GeneratorType: _frame_token("gi_frame"),
    types.CoroutineType: _frame_token("cr_frame"),
    types.AsyncGeneratorType: _frame_token("ag_frame"),
    **{type(iterator): _remaining for iterator in _ITERATORS},
}
_ACCESSORS = {id(kind): accessor for kind, accessor in _TOKENS.items()}


def accessor_of(kind: type) -> Callable[[Any], Hashable] | None:
    """How to read what objects of a type keep in C, if they keep anything there."""
    if _is_buffer(kind):
        return _buffer_token
    for base in mro_of(kind):
        accessor = _ACCESSORS.get(id(base))
        if accessor is not None:
            return accessor
    return None


def _is_buffer(kind: type) -> bool:
    """Whether its objects show all that they keep as a buffer.

    Not those of subclasses, which may answer for their own; but what `ctypes` lays out
    is always of one.
    """
    if kind is bytearray or kind is array.array:
        return True
    for module, name in (("numpy", "ndarray"), ("mmap", "mmap")):
        loaded = dict.get(sys.modules, module)
        if loaded is not None and kind is module_dict(loaded).get(name):
            return True
    laid_out = dict.get(sys.modules, "_ctypes")
    if laid_out is None:
        return False
    base = mro_of(module_dict(laid_out)["_SimpleCData"])[1]
    bases = mro_of(kind)
    return any(base is each for each in bases) and not any(
        "__buffer__" in namespace_of(each)
        for each in bases
        if flags_of(each) & HEAP_TYPE
    )
