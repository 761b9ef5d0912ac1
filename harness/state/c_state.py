"""State that no container shows: what objects keep in C, and what the thread does.

`_TOKENS` is the table of types that refer to nothing, or not to all they keep, and of
how each is read as a value: a scan by ids cannot see that.  `thread_state` is what this
thread and process keep, by what it is called.

Rules:
- nothing here runs code of the program: objects are read by the descriptors and
  functions of the base types, never by attributes;
- reading changes nothing, and what is returned keeps nothing alive.

Not here, because nobody can read it back: the umask, the codecs and error handlers
registered, audit hooks.  The audit of C calls tells those who write them.
"""

import _abc  # type: ignore[import-not-found]  # typeshed leaves it out
import _locale
import _random
import _thread
import array
import atexit
import contextvars
import decimal
import gc
import io
import itertools
import os
import signal
import sys
import types
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from decimal import Context, getcontext
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

from everyorder.harness.state.accessors import ITERATORS
from everyorder.harness.state.layout import (
    HEAP_TYPE,
    Accessor,
    Memo,
    flags_of,
    is_standard,
    module_dict,
    mro_of,
    name_of,
    namespace_of,
    qualname_of,
    raw_module_of,
)

# Bytes of a buffer that are kept; of larger ones a digest, of the largest the size.
_LARGEST, _DIGESTED = 1 << 16, 1 << 26


class ClassToken(NamedTuple):
    """What a class keeps in C: by ids its subclasses and whom it was told of; names."""

    registered: frozenset[int]
    subclasses: frozenset[int]
    qualname: str
    name: str


_NOBODY: frozenset[int] = frozenset()
_subclasses_of: Callable[[type], list[type]] = type.__subclasses__


def class_reader(kind: type) -> Callable[[type], Hashable]:
    """How to read what a class keeps in C, to be made a `ClassToken` of."""
    meta = type(kind)
    registers = (
        meta is not type
        and "_abc_impl" in namespace_of(kind)
        and not _overrides_attributes(meta)
    )
    return _CLASS_READERS[registers, is_standard(raw_module_of(kind))]


def _class_reader(registers: bool, standard: bool) -> Callable[[type], Hashable]:
    def read(kind: type) -> Hashable:
        registered: frozenset[int] | None = _NOBODY
        below = _NOBODY
        if registers:
            try:
                registered = frozenset(map(id, _abc._get_dump(kind)[0]))
            except TypeError:  # `_abc_impl` is something else by now
                registered = None
        # Nobody finds plugins by the subclasses of a standard class.
        if not standard and (subclasses := _subclasses_of(kind)):
            below = frozenset(map(id, subclasses))
        return registered, below, qualname_of(kind), name_of(kind)

    return read


_CLASS_READERS = {
    (registers, standard): _class_reader(registers, standard)
    for registers in (False, True)
    for standard in (False, True)
}


def _overrides_attributes(meta: type) -> bool:
    return any(
        "__getattribute__" in namespace_of(base)
        for base in mro_of(meta)
        if base is not type and base is not object
    )


def decimal_token(context: Any) -> Hashable:
    """What is set in a context of decimals.

    Not the flags: every inexact division raises one, and hardly anybody reads them.
    """
    return (
        context.prec,
        context.rounding,
        context.Emin,
        context.Emax,
        context.capitals,
        context.clamp,
        tuple(signal.__name__ for signal, set_ in context.traps.items() if set_),
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


def _accessor_token(accessor: Accessor) -> Callable[[Any], Hashable]:
    """What the canonical form reads of an object, as far as that are plain values."""

    def token(found: Any) -> Hashable:
        assert accessor.parts is not None, "iterators have nothing but parts"
        return _plain(accessor.parts(found))

    return token


def _plain(value: Any) -> Hashable:
    kind = type(value)
    if kind is tuple or kind is list:
        return tuple(map(_plain, value))
    if kind in _ATOMS:
        return kind.__name__, value
    # What `__reduce__` makes for the occasion is told by how far it is.
    return _remaining(value) if kind in _ITERATOR_TYPES else id(kind)


def _members_token(
    members: Sequence[tuple["weakref.ref[type]", Sequence[str]]],
) -> Callable[[Any], Hashable]:
    """What C keeps as a plain value, and which members and slots are set.

    Those that are not have no place in a scan, where one may stand for another.  The
    members are found by the names that their classes have for them, for a descriptor
    that is kept would keep its class alive.
    """

    def token(found: Any) -> Hashable:
        here: list[Hashable] = []
        for reference, names in members:
            owner = reference()  # None where the bases of the class are others now
            space = {} if owner is None else namespace_of(owner)
            for name in names:
                try:
                    member = space[name]
                    # What stands in its place may be code of anybody's.
                    if id(type(member)) not in _MEMBERS:
                        raise AttributeError(name)
                    value = member.__get__(found)
                except (AttributeError, KeyError):  # not set, or no member any more
                    here.append(_UNSET)
                else:
                    here.append(value if type(value) in _ATOMS else _SET)
        return tuple(here)

    return token


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
_ITERATOR_TYPES = frozenset(map(type, _ITERATORS))
_ATOMS = frozenset({int, bool, str, bytes, float, type(None)})
_MEMBERS = frozenset(map(id, (types.MemberDescriptorType, types.GetSetDescriptorType)))
# What stands for members that are no plain values, and for those that are not set.
_SET, _UNSET = object(), object()
# What can be set in objects of C types and is no member.
_SETTINGS = {
    "_io.TextIOWrapper": "_CHUNK_SIZE",
    "builtins.OSError": "characters_written",
    "pyexpat.xmlparser": "buffer_size buffer_text namespace_prefixes "
    "ordered_attributes specified_attributes",
}
# Types of which a scan sees all references, and which keep nothing else.
_TRAVERSED = frozenset(
    map(
        id,
        (
            types.BuiltinFunctionType,
            types.FunctionType,
            types.MethodType,
            types.ModuleType,
            classmethod,
            partial,
            property,
            slice,
            staticmethod,
        ),
    )
)
# How to read the state that objects of a C type (and of its subclasses) keep in C.
_TOKENS: dict[type, Callable[[Any], Hashable]] = {
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
    decimal.Context: decimal_token,
    **{type(iterator): _remaining for iterator in _ITERATORS},
}
_TOKENS = {
    kind: _accessor_token(accessor) for kind, accessor in ITERATORS.items()
} | _TOKENS
_READERS = {id(kind): reader for kind, reader in _TOKENS.items()}


def token_reader(kind: type) -> Callable[[Any], Hashable] | None:
    """How to read what objects of a type keep in C, if they keep anything there."""
    if _is_buffer(kind):
        return _buffer_token
    for base in mro_of(kind):
        reader = _READERS.get(id(base))
        if reader is not None:
            return reader
    return None if id(kind) in _TRAVERSED else _members_of(kind)


def _members_reader(kind: type) -> Callable[[Any], Hashable] | None:
    """How to read members of C types and slots of classes, if that is needed."""
    members: list[tuple[weakref.ref[type], Sequence[str]]] = []
    in_c = False
    for base in mro_of(kind):
        if issubclass(base, type):
            return None
        space = namespace_of(base)
        found = [
            name
            for name, member in space.items()
            if type(member) is types.MemberDescriptorType
        ]
        settings = _SETTINGS.get(f"{raw_module_of(base)}.{qualname_of(base)}", "")
        found += settings.split()
        if found:
            members.append((weakref.ref(base), found))
        in_c |= bool(found) and "__slots__" not in space
    # One slot that gets set, or unset, is one reference more, or less.
    several = sum(len(names) for _, names in members) > 1
    return _members_token(members) if in_c or several else None


_members_of = Memo(_members_reader)


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


_SIGNALS = tuple(signal.valid_signals())


def thread_state() -> dict[str, Hashable]:
    """What containers do not show, as `{"the current directory": ...}`.

    Context variables are not among it: see `variables`.
    """
    state: dict[str, Hashable] = {
        "the recursion limit": sys.getrecursionlimit(),
        "the trace function": sys.gettrace() is None,
        "the profile function": sys.getprofile() is None,
        "the switch interval": sys.getswitchinterval(),
        "the hooks of async generators": tuple(map(id, sys.get_asyncgen_hooks())),
        "the thresholds of the collector": gc.get_threshold(),
        "the current directory": _directory(),
        "the locale": _locale.setlocale(_locale.LC_ALL, None),
        "the number of atexit callbacks": atexit._ncallbacks(),
        "the number of threads": _thread._count(),
    }
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        # The constants of `signal` are integers made anew at each look.
        state[f"the handler of {_name(number)}"] = (
            int(handler) if isinstance(handler, signal.Handlers) else id(handler)
        )
    # A thread that never divided has no context yet; asking makes the default one.
    state["the decimal context"] = decimal_token(getcontext())
    return state


def variables(excluded: frozenset[int]) -> dict[int, tuple[str, Hashable]]:
    """The context variables of this thread by id: what each is called, and its value.

    Those with an id in `excluded` are left out.
    """
    return {
        id(variable): (f"the context variable {variable.name}", _value(value))
        for variable, value in contextvars.copy_context().items()
        if id(variable) not in excluded and type(value) is not Context
    }


def context_values() -> dict[str, Any]:
    """The values of the context variables of this thread, by the path to each.

    Not the context of decimals, of which each fresh system has one of its own:
    `thread_state` tells what is set in it.
    """
    values: dict[str, Any] = {}
    namesakes: Counter[str] = Counter()
    for variable, value in contextvars.copy_context().items():
        if type(value) is Context:
            continue
        name = f"contextvars[{variable.name!r}]"
        namesakes[name] += 1
        if namesakes[name] > 1:
            name += f" ({namesakes[name]})"
        values[name] = value
    return values


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None  # it was removed


def _value(value: Any) -> Hashable:
    kind = type(value)
    return (id(kind), value) if kind in (int, str, bytes, bool) else id(value)
