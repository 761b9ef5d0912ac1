"""State that no container shows: state in C structs, and state of the thread.

`_TOKENS` is the table of types that do not refer to all their state, with a reader for
each: a scan by ids cannot see that state.  `thread_state` is the state of this thread
and process, by name.

Rules:
- no line here runs code of the program: objects are read by the descriptors and
  functions of the base types, never by attributes;
- reading changes nothing, and the result keeps no object alive.

Not covered, because it cannot be read back: the umask, registered codecs and error
handlers, audit hooks.  The audit of C calls reports their writers.
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

from everyorder.harness.state.iterator_accessors import ITERATORS
from everyorder.harness.state.layout import (
    HEAP_TYPE,
    VARIABLE_FLAGS,
    Accessor,
    Memo,
    Unreadable,
    flags_of,
    is_standard,
    module_dict,
    mro_of,
    name_of,
    namespace_of,
    qualname_of,
    raw_module_of,
)

# Size of a buffer that is kept whole; of a larger one a digest.
_LARGEST = 1 << 16


class ClassToken(NamedTuple):
    """The state of a class in C: registered and derived classes, names, and flags.

    The classes are ids.
    """

    registered: frozenset[int]
    subclasses: frozenset[int]
    qualname: str
    name: str
    flags: int


_NO_IDS: frozenset[int] = frozenset()
_subclasses_of: Callable[[type], list[type]] = type.__subclasses__


def class_reader(kind: type) -> Callable[[type], Hashable]:
    """Return the reader of a class's state in C; its result is for `ClassToken`."""
    meta = type(kind)
    registers = (
        meta is not type
        and "_abc_impl" in namespace_of(kind)
        and not _overrides_attributes(meta)
    )
    return _CLASS_READERS[registers, is_standard(raw_module_of(kind))]


def fixed_class_reader(kind: type) -> Callable[[type], Hashable]:
    """Return the same without registered classes, which each form contains."""
    return _CLASS_READERS[False, is_standard(raw_module_of(kind))]


def _class_reader(registers: bool, standard: bool) -> Callable[[type], Hashable]:
    def read(kind: type) -> Hashable:
        registered: frozenset[int] | None = _NO_IDS
        below = _NO_IDS
        if registers:
            try:
                registered = frozenset(map(id, _abc._get_dump(kind)[0]))
            except TypeError:  # `_abc_impl` was replaced
                registered = None
        # Plugins are not found by the subclasses of a standard class.
        if not standard and (subclasses := _subclasses_of(kind)):
            below = frozenset(map(id, subclasses))
        names = qualname_of(kind), name_of(kind)
        return registered, below, *names, flags_of(kind) & VARIABLE_FLAGS

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
    """Return the settings of a context of decimals.

    Not the flags of the current one: every inexact division raises one, and they are
    rarely read.
    """
    flags = [] if context is getcontext() else context.flags.items()
    return (
        tuple(signal.__name__ for signal, set_ in flags if set_),
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
    # The repr of a counter calls the repr of its values, which may be code of a user.
    parts = gc.get_referents(count)
    if all(type(part) in (int, float) for part in parts):
        return itertools.count.__repr__(count)
    return None


def _buffer_token(source: Any) -> Hashable:
    try:
        with memoryview(source) as view:
            plain = view if view.contiguous else view.tobytes()
            return view.nbytes, _contents(plain)
    except (BufferError, NotImplementedError, ValueError):
        return None  # a closed map has no buffer


def _array_token(source: Any) -> Hashable:
    """Return the contents of an array of numpy, which shows no buffer of dates."""
    numpy = sys.modules["numpy"]
    kind, plain = numpy.ndarray, numpy.ndarray.view(source, numpy.ndarray)
    settings = (plain.shape, plain.strides, plain.dtype.str, plain.flags.writeable)
    if plain.dtype.hasobject:
        return settings, tuple(
            (id(type(each)), each) if type(each) in _ATOMS else id(each)
            for each in kind.ravel(plain).tolist()
        )
    if plain.flags.c_contiguous:
        # Bytes of the same memory, whatever the type of the items.
        return settings, _contents(plain.reshape(-1).view("u1"))
    return settings, _contents(kind.tobytes(plain))


def _contents(plain: Any) -> bytes:
    with memoryview(plain) as view:
        if view.nbytes <= _LARGEST:
            return view.tobytes()
        return blake2b(view, digest_size=16).digest()


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
        if frame is None:
            return None
        traced = frame.f_trace_lines, frame.f_trace_opcodes, id(frame.f_trace)
        return frame.f_lasti, *traced

    return token


def _remaining(iterator: Any) -> Hashable:
    hint: int = type(iterator).__length_hint__(iterator)
    return hint


def _accessor_token(accessor: Accessor) -> Callable[[Any], Hashable]:
    """Return a reader by the accessor of the canonical form, for plain values only."""

    def token(iterator: Any) -> Hashable:
        assert accessor.parts is not None, "iterators have only parts"
        try:
            return _plain(accessor.parts(iterator))
        except Unreadable as error:
            return _plain(error.parts)

    return token


def _plain(value: Any) -> Hashable:
    kind = type(value)
    if kind is tuple or kind is list:
        return tuple(map(_plain, value))
    if kind in _ATOMS:
        return kind.__name__, value
    # An object made by `__reduce__` is represented by its remaining length.
    return _remaining(value) if kind in _ITERATOR_TYPES else id(kind)


def _members_token(
    members: Sequence[tuple["weakref.ref[type]", Sequence[str]]],
) -> Callable[[Any], Hashable]:
    """Return a reader of plain values of members, and of which members are set.

    A member that is not set has no place in a scan, so another one could take its
    place.  The members are looked up by name in their class, because a stored
    descriptor would keep its class alive.
    """

    def token(instance: Any) -> Hashable:
        here: list[Hashable] = []
        for reference, names in members:
            owner = reference()  # None if the bases of the class changed
            space = {} if owner is None else namespace_of(owner)
            for name in names:
                try:
                    member = space[name]
                    # A replacement of the member may run code of a user.
                    if id(type(member)) not in _MEMBERS:
                        raise AttributeError(name)
                    value = member.__get__(instance)
                except (AttributeError, KeyError):  # not set, or not a member any more
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
# Marks of members that are not plain values, and of those that are not set.
_SET, _UNSET = object(), object()
# Settings of objects of C types that are not members.
_SETTINGS = {
    "_io.TextIOWrapper": "_CHUNK_SIZE",
    "builtins.OSError": "characters_written",
    "pyexpat.xmlparser": "buffer_size buffer_text namespace_prefixes "
    "ordered_attributes specified_attributes",
}
# Types whose whole state a scan sees as references.
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
    OrderedDict: lambda mapping: tuple(map(id, OrderedDict.__iter__(mapping))),
    _random.Random: lambda generator: hash(_random.Random.getstate(generator)),
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


def token_reader(
    kind: type, *, all_set: bool = False
) -> Callable[[Any], Hashable] | None:
    """Return the reader of state in C of a type's instances, or None.

    If all slots are set when a scan begins, no other slot can take the place of one
    that is deleted later, so the slots of Python classes need no reader.
    """
    if _is_array(kind):
        return _array_token
    if _is_buffer(kind):
        return _buffer_token
    for base in mro_of(kind):
        reader = _READERS.get(id(base))
        if reader is not None:
            return reader
    if id(kind) in _TRAVERSED:
        return None
    return _c_members_of(kind) if all_set else _members_of(kind)


def _members_reader(kind: type) -> Callable[[Any], Hashable] | None:
    """Return the reader of members of C types and slots of classes, if needed."""
    members: list[tuple[weakref.ref[type], Sequence[str]]] = []
    in_c = False
    for base in mro_of(kind):
        if issubclass(base, type):
            return None
        space = namespace_of(base)
        own_names = [
            name
            for name, member in space.items()
            if type(member) is types.MemberDescriptorType
        ]
        settings = _SETTINGS.get(f"{raw_module_of(base)}.{qualname_of(base)}", "")
        own_names += settings.split()
        if own_names:
            members.append((weakref.ref(base), own_names))
        in_c |= bool(own_names) and "__slots__" not in space
    # A single slot needs no reader: setting it changes the number of references.
    several = sum(len(names) for _, names in members) > 1
    return _members_token(members) if in_c or several else None


def _c_members_reader(kind: type) -> Callable[[Any], Hashable] | None:
    in_c = any(
        type(member) is types.MemberDescriptorType
        for base in mro_of(kind)
        if "__slots__" not in namespace_of(base)
        for member in namespace_of(base).values()
    ) or any(f"{raw_module_of(b)}.{qualname_of(b)}" in _SETTINGS for b in mro_of(kind))
    return _members_of(kind) if in_c else None


_members_of = Memo(_members_reader)
_c_members_of = Memo(_c_members_reader)


def _is_buffer(kind: type) -> bool:
    """Return True if the instances show their whole state as a buffer.

    A subclass that overrides the buffer does not count.
    """
    buffers: list[type] = [bytearray, array.array]
    mapped = dict.get(sys.modules, "mmap")
    if mapped is not None:
        buffers.append(module_dict(mapped)["mmap"])
    laid_out = dict.get(sys.modules, "_ctypes")
    if laid_out is not None:
        # The base of all classes of `ctypes`.
        buffers.append(mro_of(module_dict(laid_out)["_SimpleCData"])[1])
    return _is_below(kind, buffers)


def _is_array(kind: type) -> bool:
    """Return True for arrays of numpy, and those of subclasses."""
    loaded = dict.get(sys.modules, "numpy")
    base = None if loaded is None else module_dict(loaded).get("ndarray")
    return base is not None and _is_below(kind, [base])


def _is_below(kind: type, buffers: Sequence[type]) -> bool:
    bases = mro_of(kind)
    return any(each is base for each in bases for base in buffers) and not any(
        "__buffer__" in namespace_of(each)
        for each in bases
        if flags_of(each) & HEAP_TYPE
    )


_SIGNALS = tuple(signal.valid_signals())


def thread_state() -> dict[str, Hashable]:
    """Return state that containers do not show, as `{"the current directory": ...}`.

    Context variables are separate: see `variables`.
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
        # The constants of `signal` are integers that are created at each access.
        state[f"the handler of {_name(number)}"] = (
            int(handler) if isinstance(handler, signal.Handlers) else id(handler)
        )
    # A thread that never divided has no context yet; reading creates the default one.
    state["the decimal context"] = decimal_token(getcontext())
    return state


def variables(excluded: frozenset[int]) -> dict[int, tuple[str, Hashable]]:
    """Return the context variables of this thread by id: name and value of each.

    Those with an id in `excluded` are left out.
    """
    return {
        id(variable): (f"the context variable {variable.name}", _value(value))
        for variable, value in contextvars.copy_context().items()
        if id(variable) not in excluded and type(value) is not Context
    }


def context_values() -> dict[str, Any]:
    """Return the values of the context variables of this thread, by the path to each.

    Without the context of decimals, because each fresh system has its own: its settings
    are in `thread_state`.
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
