"""The scan: what every container refers to that modules reach, by ids alone.

A scan looks at everything and enters no user code.  Objects are read by the descriptors
of their base classes and by `gc.get_referents`; they are compared by identity and
hashed by id.

Rules:
- a scan returns ids, and values (texts, numbers) that nobody can notice being held; its
  `objects` are for the caller that has to name a path, and are let go right after;
- the collector is off meanwhile: nothing of the program runs inside a scan;
- what an object keeps in C, where it refers to nothing, is read by `c_state.py`.

How it works: `gc.get_referents` tells what a whole level of a breadth-first scan refers
to, in one call; a seam between any two containers keeps them apart.  Dictionaries leave
out keys that are texts, so keys are read separately.  An integer or text that is held
keeps its address to itself, so equal ids mean equal values.  Most of a scan's time goes
into finding what is new among the references of a level; a second scan that meets the
same references takes that from the first (`rescan`).  Ids are kept as machine words:
CPython's id of an object is its address, so the items of a tuple, as they lie in
memory, are their ids, and no integer is made of any (`_ids`).
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
# What reads the state that an object keeps in C.
_Reader: TypeAlias = Callable[[Any], Hashable]

# What the objects of a type are to a scan: bits, because they combine.
_NODE, _VALUE, _KEYED, _CLASS, _FUNCTION, _TOKEN, _MEMO, _LOCAL = (
    1 << bit for bit in range(8)
)
# Tables for `bytes.translate`, which picks among the bits of a whole level at once.
_PLAIN = (_VALUE, _NODE, _NODE | _KEYED, _NODE | _FUNCTION)
_VALUES_ONLY, _NODES_ONLY, _DICTS_ONLY, _FUNCTIONS_ONLY = (
    bytes(bits == wanted for bits in range(256)) for wanted in _PLAIN
)
_SPECIAL_ONLY = bytes(bits not in (0, *_PLAIN) for bits in range(256))
_MEMOS_ONLY = bytes(bool(bits & _MEMO) for bits in range(256))


def _number(value: complex) -> Hashable:
    return repr(value) if value == value else id(value)


# Values that a scan may hold, and as what they compare: -0.0 is not 0.0, and a NaN is
# itself only.
_VALUES: Mapping[type, Callable[[Any], Hashable]] = {
    int: int.__index__,
    str: str.__str__,
    bytes: bytes.__bytes__,
    float: _number,
    complex: _number,
    Decimal: Decimal.__repr__,
}
# Types whose objects refer to nothing that could change.
_LEAVES = (
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
_VALUE_IDS, _LEAF_IDS = frozenset(map(id, _VALUES)), frozenset(map(id, _LEAVES))

_globals_of = types.FunctionType.__dict__["__globals__"].__get__
thread_dict = _thread._local.__getattribute__

# Where the items of a tuple begin.
_ITEMS = tuple.__basicsize__

# Between any two containers of a level stands the one that refers to this mark.
MARK = object()
_SEAM = [MARK]


def _addresses(objects: Sequence[Any]) -> Words:
    """The ids of objects, read from a tuple of them as it lies in memory."""
    held = tuple(objects)
    words = array.array("Q")
    words.frombytes(ctypes.string_at(id(held) + _ITEMS, len(held) * words.itemsize))
    return words


def _numbers(objects: Sequence[Any]) -> Words:
    """The ids of objects, where they are no addresses, or tuples lie otherwise."""
    return array.array("Q", map(id, objects))


def _objects(words: Words, held: Sequence[Any]) -> list[Any]:
    """The objects at these addresses: each is among those held, and so is alive."""
    found: list[Any] = (ctypes.py_object * len(words)).from_buffer(words)[:]
    return found


# Whether ids are addresses, and items of tuples are laid out in words of 64 bits.
_IN_MEMORY = sys.implementation.name == "cpython" and tuple.__itemsize__ == 8
_ids = _addresses if _IN_MEMORY else _numbers


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a scan, by ids: containers, their types, all that they refer to.

    The first `dicts` containers are plain dicts, and the last ones are of special
    kinds, whose bits are `codes`, memos at the very end; `readers` read what these keep
    in C, if anything.
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
        """All that the containers refer to, in the order in which a scan goes on."""
        inner = array.array("Q", (each for _, each in self.locals))
        return self.slots + self.keys + inner


class Scan:
    """One scan from `roots`; `skipped` ids and what belongs to `noise` is not entered.

    `levels` and `values` may be kept, and `met`, which of the skipped were met;
    `objects` must not be.
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
        self._codes = dict.fromkeys(map(id, _LEAVES), 0)
        self._codes.update(dict.fromkeys(map(id, _VALUES), _VALUE))
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
        known, words = self.objects, _ids(slots)
        while True:
            before = len(known)
            known.update(zip(words, slots, strict=True))
            # Dicts keep insertion order: what is new stands at the end.
            new = list(islice(reversed(known.values()), len(known) - before))
            new.reverse()
            found, dicts, codes = self._sift(new)
            if not found:
                return
            level, slots = _read(found, dicts, codes)
            self.levels.append(level)
            words = level.references()

    def _sift(self, new: list[Any]) -> tuple[list[Any], int, bytes]:
        """The containers among new objects, as a level lists them.

        This is most of a scan's time, so whole lists are filtered at once.
        """
        types_of = list(map(type, new))
        kinds = _ids(types_of)
        codes = self._codes
        by_id = dict(zip(kinds, types_of, strict=True))
        for kind in by_id.keys() - codes.keys():
            codes[kind] = self._code(by_id[kind])
        bits = bytes(map(codes.__getitem__, kinds))
        self.values += compress(new, bits.translate(_VALUES_ONLY))
        found = list(compress(new, bits.translate(_DICTS_ONLY)))
        dicts = len(found)
        found += compress(new, bits.translate(_NODES_ONLY))
        functions = list(compress(new, bits.translate(_FUNCTIONS_ONLY)))
        named = map(id, map(_globals_of, functions))
        noisy = self._noisy_globals
        found += [
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
        special.sort(key=_is_memo)
        found += [entered for entered, _ in special]
        return found, dicts, bytes(code for _, code in special)

    def _code(self, kind: type) -> int:
        module = raw_module_of(kind)
        if type(module) is str and self._noise(module):
            return 0
        return _bits_of(kind)

    def _enters(self, found: Any, code: int) -> bool:
        """Whether one object is entered whose type alone does not tell."""
        if code & _CLASS:
            module = raw_module_of(found)
            return bool(flags_of(found) & HEAP_TYPE) and not (
                type(module) is str and self._noise(module)
            )
        if code & _MEMO:
            # A function of the standard library that is memoised is pure.
            return not any(
                is_standard(inner.__module__) or self._is_noisy(inner)
                for inner in gc.get_referents(found)
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
        code = _KEYED  # special: it may say for itself how long it is
    if issubclass(kind, type):
        code |= _CLASS
    if kind is types.FunctionType:
        code |= _FUNCTION
    if kind is _lru_cache_wrapper:
        code |= _MEMO
    if issubclass(kind, _thread._local) and _is_plain_local(kind):
        code |= _LOCAL
    if token_reader(kind) is not None:
        code |= _TOKEN
    return code


_bits_of = Memo(_bits)


class ChangeDetector:
    """Some objects and all that they refer to: both are held, to be compared with.

    Of instances their class is one of the references.  Not for objects that keep
    something by thread.
    """

    def __init__(self, objects: Iterable[Any]) -> None:
        leaves = {*map(id, _LEAVES), *map(id, _VALUES)}
        owners = {id(o): o for o in objects if id(type(o)) not in leaves}.values()
        coded = [(o, _bits_of(type(o))) for o in owners]
        coded.sort(key=_is_memo)
        self._special = [(o, code) for o, code in coded if code not in _PLAIN]
        self._readers = _readers(self._special)
        self._dicts = [o for o in owners if type(o) is dict]
        self._keyed = _keyed(self._special)
        self._owners = [o for o, _ in coded]
        self._codes = bytes(code for _, code in coded)
        # What is alive keeps its address.
        self._held = self._references(), *_keys(self._dicts, self._keyed)
        self._before = self._now()

    def unchanged(self) -> bool:
        """Whether they refer to the same objects still, and nothing changed in C."""
        return self._now() == self._before

    def _references(self) -> list[Any]:
        return _referents(self._owners, self._codes)

    def _now(self) -> tuple[Hashable, ...]:
        _, keys = _keys(self._dicts, self._keyed)
        return (
            _tokens(self._special, self._readers),
            _ids(self._references()).tobytes(),
            _ids(keys).tobytes(),
        )


def _read(found: Sequence[Any], dicts: int, codes: bytes) -> tuple[Level, list[Any]]:
    """A level of containers, and all that they refer to."""
    special = _special(found, codes)
    # First, because a generator refers to its frame once that was looked at.
    readers = _readers(special)
    tokens = _tokens(special, readers)
    slots = _referents(found, codes)
    plain, keyed = list(found[:dicts]), _keyed(special)
    sizes, keys = _keys(plain, keyed)
    threads = _thread_dicts(special)
    level = Level(
        dicts=dicts,
        codes=codes,
        readers=readers,
        nodes=_ids(found),
        kinds=_ids(list(map(type, found))),
        slots=_ids(slots),
        keyed=_ids(plain + keyed),
        sizes=sizes,
        keys=_ids(keys),
        tokens=tokens,
        locals=tuple((id(owner), id(inner)) for owner, inner in threads),
    )
    return level, _next_slots(slots, keys, threads)


def _reread(level: Level, found: list[Any]) -> list[Any] | None:
    """All that containers refer to, if a level of them would be the same.

    They are of the same types as in the level: readers are for one type each.
    """
    special = _special(found, level.codes)
    if _tokens(special, level.readers) != level.tokens:
        return None
    slots = _referents(found, level.codes)
    if _ids(slots) != level.slots:
        return None
    sizes, keys = _keys(found[: level.dicts], _keyed(special))
    if sizes != level.sizes or _ids(keys) != level.keys:
        return None
    threads = _thread_dicts(special)
    if tuple((id(owner), id(inner)) for owner, inner in threads) != level.locals:
        return None
    return _next_slots(slots, keys, threads)


def _special(found: Sequence[Any], codes: bytes) -> list[tuple[Any, int]]:
    return list(zip(found[len(found) - len(codes) :], codes, strict=True))


def _keyed(special: Iterable[tuple[Any, int]]) -> list[Any]:
    return [owner for owner, code in special if code & _KEYED]


def _thread_dicts(special: Iterable[tuple[Any, int]]) -> list[tuple[Any, Any]]:
    return [
        (owner, thread_dict(owner, "__dict__"))
        for owner, code in special
        if code & _LOCAL
    ]


def _is_memo(coded: tuple[Any, int]) -> bool:
    return bool(coded[1] & _MEMO)


def _referents(found: Sequence[Any], codes: bytes) -> list[Any]:
    """All that some containers refer to, with a mark after what each does.

    A memo refers to what it would forget first at the end: each hit changes that.
    """
    ordered = len(found) - codes.translate(_MEMOS_ONLY).count(1)
    spaced: list[Any] = [_SEAM] * (2 * ordered)
    spaced[::2] = found[:ordered]
    slots = gc.get_referents(*spaced)
    for memo in found[ordered:]:
        slots += sorted(gc.get_referents(memo), key=id)
        slots.append(MARK)
    return slots


def _next_slots(
    slots: list[Any], keys: list[Any], threads: list[tuple[Any, Any]]
) -> list[Any]:
    """What a scan goes on with, in the order of `Level.references`."""
    slots += keys
    slots += [inner for _, inner in threads]
    return slots


def _keys(plain: list[Any], others: list[Any]) -> tuple[tuple[int, ...], list[Any]]:
    """How many keys each dict has, and the keys of all; `others` are of subclasses."""
    while True:
        sizes = (*map(len, plain), *map(dict.__len__, others))
        keys: list[Any] = list(chain.from_iterable(plain))
        for mapping in others:
            keys += dict.keys(mapping)
        # If not, another thread, or a handler of signals, wrote in between.
        if len(keys) == sum(sizes):
            return sizes, keys


def _readers(special: Iterable[tuple[Any, int]]) -> tuple[_Reader | None, ...]:
    return tuple(_reader(owner, code) for owner, code in special)


def _reader(owner: Any, code: int) -> _Reader | None:
    if code & _CLASS:
        return class_reader(owner)
    return token_reader(type(owner)) if code & _TOKEN else None


def _tokens(
    special: Iterable[tuple[Any, int]], readers: Iterable[_Reader | None]
) -> tuple[Hashable, ...]:
    return tuple(
        read(owner)
        for (owner, _), read in zip(special, readers, strict=True)
        if read is not None
    )


@dataclass(frozen=True, slots=True)
class Rescan:
    """What a second scan saw, where it met the same containers as the first.

    `levels` are those of the first scan itself where nothing changed; `values` came
    new, and so did what was `met` of the skipped.  `containers` are those of each
    level, and must not be kept.
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
    """A scan from the same roots, if it meets the same containers on each level.

    As long as all references are the same, so is what is new among them, which is most
    of the work of a scan: it is alive, and where it was.  So it is where what came and
    went are values, and containers that are referred to no later than they were.
    Where noise begins is told by the names of modules, so these have to be the same.
    `places` tells the level of each container.
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
        found: list[list[Any]] = []
        for at, level in enumerate(levels):
            found.append(_objects(level.nodes, slots))
            if _ids(list(map(type, found[at]))) != level.kinds:
                return None  # another one came to stand where one had been
            same = _reread(level, found[at])
            if same is not None:
                now.append(level)
                slots = same
                continue
            if at == 0:
                return None
            changed, slots = _read(found[at], level.dicts, level.codes)
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
        return Rescan(tuple(now), tuple(values), frozenset(met), tuple(found))
    finally:
        if collecting:
            gc.enable()


def _changes(old: Level, new: Level) -> Iterator[tuple[Words, Words, int]]:
    """What some containers referred to and refer to now, and where that begins.

    Of the two levels' containers, which are the same; what is the same at the beginning
    and at the end of one's references is left out.
    """
    mark, behind = id(MARK), 0
    for before, after, was, now in (
        (
            old.slots,
            new.slots,
            _segment_ends(old.slots, mark),
            _segment_ends(new.slots, mark),
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


def _segment_ends(words: Words, mark: int) -> list[int]:
    return [place for place, each in enumerate(words, 1) if each == mark]


def comparable(value: Any) -> Hashable:
    """A value that a scan holds, in the form in which it compares."""
    return id(type(value)), _VALUES[type(value)](value)


def class_name(kind: type) -> str:
    """A class as `module.Class`."""
    return f"{raw_module_of(kind)}.{qualname_of(kind)}"


def _is_plain_local(kind: type) -> bool:
    """Whether a thread-local runs nothing when a thread first looks at it."""
    return all(
        base in (kind, object, _thread._local) or "__init__" not in namespace_of(base)
        for base in mro_of(kind)
    ) and "__init__" not in namespace_of(kind)
