"""The scan: the referents of every container that modules reach, by ids alone.

A scan reads everything and runs no user code.  Objects are read by the descriptors of
their base classes and by `gc.get_referents`; they are compared by identity and hashed
by id.

Rules:
- a scan returns ids, and values (texts, numbers) whose lifetime is not observable; its
  `objects` are for the caller that has to name a path, and are dropped right after;
- the collector is off meanwhile: no code of the program runs during a scan;
- state in C that is not a reference is read by `c_state.py`.

How it works: one call of `gc.get_referents` returns the referents of a whole level of a
breadth-first scan; a mark between any two containers separates them.  It leaves out
keys of dictionaries that are texts, so keys are read separately.  An integer or text
that is kept alive is alone at its address, so equal ids mean equal values.  A scan
spends most of its time on finding new objects among the references of a level; a second
scan that meets the same references reuses the result of the first (`rescan`).  Ids are
stored as machine words: CPython's id of an object is its address, so the items of a
list, as they are in memory, are their ids, and no integer is created (`ids_of`).
"""

import _thread
import array
import ctypes
import gc
import sys
import types
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import _lru_cache_wrapper
from itertools import accumulate, chain, compress, islice
from typing import Any, TypeAlias

from everyorder.harness.state.c_state import class_reader, token_reader
from everyorder.harness.state.layout import (
    HEAP_TYPE,
    Memo,
    flags_of,
    is_standard,
    module_dict,
    mro_of,
    namespace_of,
    qualname_of,
    raw_module_of,
)

# Ids.
Words: TypeAlias = "array.array[int]"
# A reader of the state that an object keeps in C.
_Reader: TypeAlias = Callable[[Any], Hashable]

# The kinds of objects for a scan: bits, because they combine.
_NODE, _VALUE, _KEYED, _CLASS, _FUNCTION, TOKEN, _MEMO, _LOCAL = (
    1 << bit for bit in range(8)
)
# Tables for `bytes.translate`, which selects among the bits of a whole level at once.
PLAIN = (_VALUE, _NODE, _NODE | _KEYED, _NODE | _FUNCTION)
_VALUES_ONLY, _NODES_ONLY, _DICTS_ONLY, _FUNCTIONS_ONLY = (
    bytes(bits == chosen for bits in range(256)) for chosen in PLAIN
)
_SPECIAL_ONLY = bytes(bits not in (0, *PLAIN) for bits in range(256))
_MEMOS_ONLY = bytes(bool(bits & _MEMO) for bits in range(256))


def _number(value: complex) -> Hashable:
    return repr(value) if value == value else id(value)


# Values that a scan may hold, and the form that is compared: -0.0 differs from 0.0, and
# a NaN equals only itself.
VALUES: Mapping[type, Callable[[Any], Hashable]] = {
    int: int.__index__,
    str: str.__str__,
    bytes: bytes.__bytes__,
    float: _number,
    complex: _number,
    Decimal: Decimal.__repr__,
}
# Types whose objects have no referents that could change.
LEAVES = (
    bool,
    type(None),
    type(Ellipsis),
    type(NotImplemented),
    types.CodeType,
    types.FrameType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.ClassMethodDescriptorType,
    type(vars(Hashable)["_abc_impl"]),  # read with its class
)
_VALUE_IDS, _LEAF_IDS = frozenset(map(id, VALUES)), frozenset(map(id, LEAVES))

_globals_of = types.FunctionType.__dict__["__globals__"].__get__
thread_dict = _thread._local.__getattribute__

# The offset of the address of a list's items, and the size of an address.
_ITEMS, _WORD = object.__basicsize__ + 8, 8

# The container that refers to this mark separates any two containers of a level.
MARK = object()
SEAM = [MARK]


def _items_of(objects: list[Any]) -> bytes:
    """Return the items of a list as they are in memory."""
    start = ctypes.c_size_t.from_address(id(objects) + _ITEMS).value
    return ctypes.string_at(start, len(objects) * _WORD) if objects else b""


def _addresses(objects: Sequence[Any]) -> Words:
    """Return the ids of objects, read from a list of them in memory."""
    items = objects if type(objects) is list else list(objects)
    return array.array("Q", _items_of(items))


def _numbers(objects: Sequence[Any]) -> Words:
    """Return the ids of objects on interpreters with another layout of lists."""
    return array.array("Q", map(id, objects))


# Arrays of 1, 2, 4, ... objects.  `ctypes` remembers each type of an array, so types of
# other lengths, made later, would be changes of the process.
_ARRAYS = [ctypes.py_object * (1 << power) for power in range(24)]


def _objects(words: Words, owners: Sequence[Any]) -> list[Any]:
    """Return the objects at these addresses; they are alive, as `owners` has each."""
    objects: list[Any] = []
    while (left := len(words) - len(objects)) > 0:
        kind = _ARRAYS[min(left.bit_length(), len(_ARRAYS)) - 1]
        objects += kind.from_buffer(words, len(objects) * words.itemsize)[:]
    return objects


# True if ids are addresses, and the items of a list are words of 64 bits.  In an
# interpreter without a global lock an object begins with other fields.
_IN_MEMORY = (
    sys.implementation.name == "cpython"
    and tuple.__itemsize__ == _WORD
    and (object.__basicsize__, list.__basicsize__) == (2 * _WORD, 5 * _WORD)
)
ids_of = _addresses if _IN_MEMORY else _numbers


def bytes_of_ids(objects: list[Any]) -> bytes:
    """Return the ids of objects as bytes, to be compared at once."""
    return _items_of(objects) if _IN_MEMORY else _numbers(objects).tobytes()


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a scan, by ids: containers, their types, all their referents.

    The first `dicts` containers are plain dicts, and the last ones are of special
    kinds, whose bits are `codes`, memos at the very end; `readers` read their state in
    C, if there is any.
    """

    dicts: int
    codes: bytes
    readers: tuple[_Reader | None, ...]
    nodes: Words
    kinds: Words
    slots: Words
    keyed: Words
    sizes: tuple[int, ...]
    keys: Words
    tokens: tuple[Hashable, ...]
    locals: tuple[tuple[int, int], ...]

    def references(self) -> Words:
        """Return all referents of the containers, in the order of the next level."""
        inner = array.array("Q", (each for _, each in self.locals))
        return self.slots + self.keys + inner


class Scan:
    """One scan from `roots`, without `skipped` ids and objects of `noise` modules.

    `levels` and `values` may be kept, and `met`, the skipped ids that were met;
    `objects` must not be kept.
    """

    __slots__ = (
        "_codes",
        "_noise",
        "_noisy_globals",
        "levels",
        "met",
        "objects",
        "values",
    )

    def __init__(
        self,
        roots: Iterable[Any],
        skipped: Iterable[int],
        noise: Callable[[str], bool],
    ) -> None:
        skipped = frozenset(skipped)
        self.levels: list[Level] = []
        self.values: list[Any] = []
        self.objects: dict[int, Any] = dict.fromkeys(skipped)
        self.objects[id(MARK)] = None
        self._noise = noise
        self._codes = dict.fromkeys(map(id, LEAVES), 0)
        self._codes.update(dict.fromkeys(map(id, VALUES), _VALUE))
        self._noisy_globals: set[int] = set()
        for name, module in dict.items(sys.modules):
            if type(name) is str and noise(name):
                self.objects[id(module)] = None
                if issubclass(type(module), types.ModuleType):
                    self.objects[id(module_dict(module))] = None
                    self._noisy_globals.add(id(module_dict(module)))
        collecting = gc.isenabled()
        gc.disable()
        try:
            self._scan(list(roots))
        finally:
            if collecting:
                gc.enable()
        self.met = frozenset(
            member for member in skipped if self.objects[member] is not None
        )

    def _scan(self, slots: list[Any]) -> None:
        objects, words = self.objects, ids_of(slots)
        while True:
            before = len(objects)
            objects.update(zip(words, slots, strict=True))
            # Dicts keep insertion order: new objects are at the end.
            new = list(islice(reversed(objects.values()), len(objects) - before))
            new.reverse()
            containers, dicts, codes = self._sift(new)
            if not containers:
                return
            level, slots = _read(containers, dicts, codes)
            self.levels.append(level)
            words = level.references()

    def _sift(self, new: list[Any]) -> tuple[list[Any], int, bytes]:
        """Return the containers among new objects, as a level lists them.

        This is most of a scan's time, so whole lists are filtered at once.
        """
        types_of = list(map(type, new))
        kinds = ids_of(types_of)
        codes = self._codes
        by_id = dict(zip(kinds, types_of, strict=True))
        for kind in by_id.keys() - codes.keys():
            codes[kind] = self._code(by_id[kind])
        bits = bytes(map(codes.__getitem__, kinds))
        self.values += compress(new, bits.translate(_VALUES_ONLY))
        containers = list(compress(new, bits.translate(_DICTS_ONLY)))
        dicts = len(containers)
        containers += compress(new, bits.translate(_NODES_ONLY))
        functions = list(compress(new, bits.translate(_FUNCTIONS_ONLY)))
        named = map(id, map(_globals_of, functions))
        noisy = self._noisy_globals
        containers += [
            function
            for function, space in zip(functions, named, strict=True)
            if space not in noisy
        ]
        chosen = bits.translate(_SPECIAL_ONLY)
        special = [
            (candidate, code)
            for candidate, code in zip(
                compress(new, chosen), compress(bits, chosen), strict=True
            )
            if self._enters(candidate, code)
        ]
        special.sort(key=is_memo)
        containers += [entered for entered, _ in special]
        return containers, dicts, bytes(code for _, code in special)

    def _code(self, kind: type) -> int:
        module = raw_module_of(kind)
        if type(module) is str and self._noise(module):
            return 0
        return bits_of(kind)

    def _enters(self, candidate: Any, code: int) -> bool:
        """Return True if an object is entered whose type alone does not decide that."""
        if code & _CLASS:
            module = raw_module_of(candidate)
            return bool(flags_of(candidate) & HEAP_TYPE) and not (
                type(module) is str and self._noise(module)
            )
        if code & _MEMO:
            # A memoised function of the standard library is pure.
            return not any(
                is_standard(inner.__module__) or self._is_noisy(inner)
                for inner in gc.get_referents(candidate)
                if type(inner) is types.FunctionType
            )
        return True

    def _is_noisy(self, function: types.FunctionType) -> bool:
        module = function.__module__
        return type(module) is str and self._noise(module)


def _bits(kind: type) -> int:
    code = _NODE
    if kind is dict:
        code |= _KEYED
    elif issubclass(kind, dict):
        code = _KEYED  # special: it may override its length
    if issubclass(kind, type):
        code |= _CLASS
    if kind is types.FunctionType:
        code |= _FUNCTION
    if kind is _lru_cache_wrapper:
        code |= _MEMO
    if issubclass(kind, _thread._local) and _is_plain_local(kind):
        code |= _LOCAL
    if token_reader(kind) is not None:
        code |= TOKEN
    return code


bits_of = Memo(_bits)


def _read(
    containers: Sequence[Any], dicts: int, codes: bytes
) -> tuple[Level, list[Any]]:
    """Return a level of containers, and all their referents."""
    special = _special(containers, codes)
    # Tokens first, because a generator refers to its frame once that was read.
    readers = readers_of(special)
    tokens = tokens_of(special, readers)
    slots = referents_of(containers, codes)
    plain, keyed = list(containers[:dicts]), keyed_of(special)
    sizes, keys = keys_of(plain, keyed)
    threads = _thread_dicts(special)
    level = Level(
        dicts=dicts,
        codes=codes,
        readers=readers,
        nodes=ids_of(containers),
        kinds=ids_of(list(map(type, containers))),
        slots=ids_of(slots),
        keyed=ids_of(plain + keyed),
        sizes=sizes,
        keys=ids_of(keys),
        tokens=tokens,
        locals=tuple((id(owner), id(inner)) for owner, inner in threads),
    )
    return level, _next_slots(slots, keys, threads)


def _reread(level: Level, containers: list[Any]) -> list[Any] | None:
    """Return all referents of the containers, if their level would be the same.

    They are of the same types as in the level, because a reader is for one type.
    """
    special = _special(containers, level.codes)
    if tokens_of(special, level.readers) != level.tokens:
        return None
    slots = referents_of(containers, level.codes)
    if ids_of(slots) != level.slots:
        return None
    sizes, keys = keys_of(containers[: level.dicts], keyed_of(special))
    if sizes != level.sizes or ids_of(keys) != level.keys:
        return None
    threads = _thread_dicts(special)
    if tuple((id(owner), id(inner)) for owner, inner in threads) != level.locals:
        return None
    return _next_slots(slots, keys, threads)


def _special(containers: Sequence[Any], codes: bytes) -> list[tuple[Any, int]]:
    return list(zip(containers[len(containers) - len(codes) :], codes, strict=True))


def keyed_of(special: Iterable[tuple[Any, int]]) -> list[Any]:
    """Return those of some special objects that are dicts."""
    return [owner for owner, code in special if code & _KEYED]


def _thread_dicts(special: Iterable[tuple[Any, int]]) -> list[tuple[Any, Any]]:
    return [
        (owner, thread_dict(owner, "__dict__"))
        for owner, code in special
        if code & _LOCAL
    ]


def is_memo(coded: tuple[Any, int]) -> bool:
    """Return True for an object, with its bits, that is a memo."""
    return bool(coded[1] & _MEMO)


def referents_of(containers: Sequence[Any], codes: bytes) -> list[Any]:
    """Return all referents of some containers, with a mark after those of each.

    The last referent of a memo is its least recent entry, which each hit changes, so
    these referents are sorted.
    """
    ordered = len(containers) - codes.translate(_MEMOS_ONLY).count(1)
    spaced: list[Any] = [SEAM] * (2 * ordered)
    spaced[::2] = containers[:ordered]
    slots = gc.get_referents(*spaced)
    add_memos(slots, containers[ordered:])
    return slots


def add_memos(slots: list[Any], memos: Iterable[Any]) -> None:
    """Add all referents of some memos, with a mark after those of each, by address."""
    for memo in memos:
        slots += sorted(gc.get_referents(memo), key=id)
        slots.append(MARK)


def _next_slots(
    slots: list[Any], keys: list[Any], threads: list[tuple[Any, Any]]
) -> list[Any]:
    """Return the referents of the next level, in the order of `Level.references`."""
    slots += keys
    slots += [inner for _, inner in threads]
    return slots


def keys_of(plain: list[Any], others: list[Any]) -> tuple[tuple[int, ...], list[Any]]:
    """Return the size of each dict, and the keys of all; `others` are of subclasses."""
    while True:
        sizes = (*map(len, plain), *map(dict.__len__, others))
        keys: list[Any] = list(chain.from_iterable(plain))
        for mapping in others:
            keys += dict.keys(mapping)
        # If not, another thread, or a handler of signals, wrote in between.
        if len(keys) == sum(sizes):
            return sizes, keys


def readers_of(special: Iterable[tuple[Any, int]]) -> tuple[_Reader | None, ...]:
    """Return the readers of the state in C of special objects."""
    return tuple(_reader(owner, code) for owner, code in special)


def _reader(owner: Any, code: int) -> _Reader | None:
    if code & _CLASS:
        return class_reader(owner)
    return token_reader(type(owner)) if code & TOKEN else None


def tokens_of(
    special: Iterable[tuple[Any, int]], readers: Iterable[_Reader | None]
) -> tuple[Hashable, ...]:
    """Return the state in C of the objects that have a reader."""
    return tuple(
        read(owner)
        for (owner, _), read in zip(special, readers, strict=True)
        if read is not None
    )


@dataclass(frozen=True, slots=True)
class Rescan:
    """The result of a second scan that met the same containers as the first.

    `levels` are those of the first scan itself if nothing changed; `values` are new,
    and so are the skipped ids in `met`.  `containers` are those of each level, and must
    not be kept.
    """

    levels: tuple[Level, ...]
    values: tuple[Any, ...]
    met: frozenset[int]
    containers: tuple[list[Any], ...]


def rescan(
    roots: Sequence[Any],
    levels: Sequence[Level],
    places: Mapping[int, int],
    skipped: frozenset[int],
) -> Rescan | None:
    """Scan from the same roots again, if each level has the same containers.

    As long as all references are the same, so are the new objects among them, which are
    most of the work of a scan: they are alive, at the same place.  The same holds if
    only values were added and removed, and containers that are not referred to later
    than before.  The names of modules decide where noise begins, so they must be the
    same.  `places` is the level of each container.  Returns None if a full scan is
    needed.
    """
    if not _IN_MEMORY:
        return None
    collecting = gc.isenabled()
    gc.disable()
    try:
        slots: Sequence[Any] = roots
        now: list[Level] = []
        values: list[Any] = []
        met: set[int] = set()
        containers: list[list[Any]] = []
        for at, level in enumerate(levels):
            containers.append(_objects(level.nodes, slots))
            if ids_of(list(map(type, containers[at]))) != level.kinds:
                return None  # another object has this address now
            same = _reread(level, containers[at])
            if same is not None:
                now.append(level)
                slots = same
                continue
            if at == 0:
                return None
            changed, slots = _read(containers[at], level.dicts, level.codes)
            if changed.kinds != level.kinds or changed.locals != level.locals:
                return None
            left: set[int] = set()
            for gone, came, start in _changes(level, changed):
                left.update(o for o in gone if places.get(o) == at + 1)
                for place, each in enumerate(came, start):
                    kind = id(type(slots[place]))
                    if each in skipped:
                        met.add(each)
                    elif kind in _VALUE_IDS:
                        values.append(slots[place])
                    elif kind not in _LEAF_IDS and places.get(each, at + 2) > at + 1:
                        return None
            if left and not left <= {*changed.slots, *changed.keys}:
                return None
            now.append(changed)
        return Rescan(tuple(now), tuple(values), frozenset(met), tuple(containers))
    finally:
        if collecting:
            gc.enable()


def _changes(old: Level, new: Level) -> Iterator[tuple[Words, Words, int]]:
    """Yield old and new referents of a container, with the start of the new ones.

    The two levels have the same containers; equal references at the beginning and at
    the end of a container are left out.
    """
    mark, behind = id(MARK), 0
    for before, after, was, now in (
        (
            old.slots,
            new.slots,
            segment_ends(old.slots, mark),
            segment_ends(new.slots, mark),
        ),
        (old.keys, new.keys, accumulate(old.sizes), accumulate(new.sizes)),
    ):
        first = start = 0
        for last, end in zip(was, now, strict=True):
            one, other = before[first:last], after[start:end]
            if one != other:
                left, most = 0, min(len(one), len(other))
                while left < most and one[left] == other[left]:
                    left += 1
                right = 0
                while right < most - left and one[~right] == other[~right]:
                    right += 1
                yield (
                    one[left : len(one) - right],
                    other[left : len(other) - right],
                    behind + start + left,
                )
            first, start = last, end
        behind = len(new.slots)


def segment_ends(words: Words, mark: int) -> list[int]:
    """Return the end of the referents of each container, behind its mark."""
    return [place for place, each in enumerate(words, 1) if each == mark]


def comparable(value: Any) -> Hashable:
    """Return a value that a scan holds, in the form that is compared."""
    return id(type(value)), VALUES[type(value)](value)


def class_name(kind: type) -> str:
    """Return the name of a class as `module.Class`."""
    return f"{raw_module_of(kind)}.{qualname_of(kind)}"


def _is_plain_local(kind: type) -> bool:
    """Return True if a thread-local runs no code when a thread first reads it."""
    return all(
        base in (kind, object, _thread._local) or "__init__" not in namespace_of(base)
        for base in mro_of(kind)
    ) and "__init__" not in namespace_of(kind)
