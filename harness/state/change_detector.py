"""Detecting which of some objects changed, by their references and their state in C.

The objects and all their referents are held, so that ids name the same objects as long
as a detector lives.  All slots of the objects are set when it is made: then a slot that
is deleted shows in the number of references, and plain values of slots need no reader.

Every form asks once whether anything changed, so what can be prepared is prepared when
a detector is made: the arguments of the collector's function, and the readers with
their objects.  Objects that nothing can change are not compared, only held.
"""

import array
import gc
import types
from collections.abc import Callable, Hashable, Iterable
from itertools import accumulate
from typing import Any

from everyorder.harness.state.c_state import fixed_class_reader, token_reader
from everyorder.harness.state.hidden_fields import property_token
from everyorder.harness.state.layout import Memo
from everyorder.harness.state.scan import (
    LEAVES,
    MARK,
    PLAIN,
    SEAM,
    TOKEN,
    VALUES,
    Words,
    add_memos,
    bits_of,
    bytes_of_ids,
    is_memo,
    keyed_of,
    keys_of,
    readers_of,
    segment_ends,
)

# Exactly these: a subclass may have attributes.  A generic alias computes its
# parameters when they are first read: its value is the same.
_CONSTANT = frozenset(
    map(
        id,
        (
            frozenset,
            range,
            slice,
            tuple,
            types.GenericAlias,
            types.MethodType,
            types.UnionType,
        ),
    )
)


def _bits(kind: type) -> int:
    code = bits_of(kind)
    if code & TOKEN and token_reader(kind, all_set=True) is None:
        code &= ~TOKEN
    return code | TOKEN if issubclass(kind, property) else code


_bits_of_set: Memo[type, int] = Memo(_bits)


def _reader_of(
    o: Any, reader: Callable[[Any], Hashable] | None
) -> Callable[[Any], Hashable] | None:
    """Return how a detector reads what an object keeps in C; a scan has `reader`."""
    if issubclass(type(o), property):
        # Only hostile code makes a property again in place.
        return property_token
    return fixed_class_reader(o) if issubclass(type(o), type) else reader


class ChangeDetector:
    """Detects changes of some objects; holds them and all their referents.

    All slots of the objects are set.
    For an instance, its class is one of the referents.  Not for objects that keep state
    by thread.
    """

    def __init__(self, objects: Iterable[Any]) -> None:
        leaves = {*map(id, LEAVES), *map(id, VALUES)}
        every = list(objects)
        owners = {
            id(o): o
            for o in every
            if id(type(o)) not in leaves and id(type(o)) not in _CONSTANT
        }.values()
        coded = [(o, _bits_of_set(type(o))) for o in owners]
        coded.sort(key=is_memo)
        self._special = [(o, code) for o, code in coded if code not in PLAIN]
        self._readers = [
            _reader_of(o, reader)
            for (o, _), reader in zip(
                self._special, readers_of(self._special), strict=True
            )
        ]
        self._dicts = [o for o in owners if type(o) is dict]
        self._keyed = keyed_of(self._special)
        self._owners = [o for o, _ in coded]
        ordered = len(coded) - sum(map(is_memo, coded))
        spaced: list[Any] = [SEAM] * (2 * ordered)
        spaced[::2] = self._owners[:ordered]
        self._spaced, self._memos = tuple(spaced), self._owners[ordered:]
        self._read = [
            (o, reader)
            for (o, _), reader in zip(self._special, self._readers, strict=True)
            if reader is not None
        ]
        # Living objects keep their addresses.
        _, keys = keys_of(self._dicts, self._keyed)
        self._held = every, self._references(), keys
        self._sizes = keys_of(self._dicts, self._keyed)[0]
        self._before = self._now()

    def unchanged(self) -> bool:
        """Return True if all references are the same, and no state in C changed."""
        return self._now() == self._before

    def changed(self) -> list[Any]:
        """Return the objects that are not as they were."""
        tokens, slots, keys = self._before
        _, slots_now, keys_now = self._now()
        sizes, _ = keys_of(self._dicts, self._keyed)
        compared: tuple[tuple[list[Any], Iterable[Any], Iterable[Any]], ...] = (
            ([o for o, _ in self._read], tokens, self._tokens()),
            (self._owners, _segments(slots), _segments(slots_now)),
            (
                [*self._dicts, *self._keyed],
                _parts(keys, self._sizes),
                _parts(keys_now, sizes),
            ),
        )
        changed = {
            id(o): o
            for owners, before, now in compared
            for o, old, new in zip(owners, before, now, strict=True)
            if old != new
        }
        return list(changed.values())

    def _references(self) -> list[Any]:
        slots = gc.get_referents(*self._spaced)
        add_memos(slots, self._memos)
        return slots

    def _tokens(self) -> tuple[Hashable, ...]:
        return tuple([reader(o) for o, reader in self._read])

    def _now(self) -> tuple[tuple[Hashable, ...], bytes, bytes]:
        _, keys = keys_of(self._dicts, self._keyed)
        return self._tokens(), bytes_of_ids(self._references()), bytes_of_ids(keys)


def _segments(slots: bytes) -> list[Words]:
    """Return the referents of each container, as they were before its mark."""
    words = array.array("Q", slots)
    return _cut(words, segment_ends(words, id(MARK)))


def _parts(keys: bytes, sizes: Iterable[int]) -> list[Words]:
    """Return the keys of each dict."""
    return _cut(array.array("Q", keys), list(accumulate(sizes)))


def _cut(words: Words, ends: list[int]) -> list[Words]:
    return [words[start:end] for start, end in zip((0, *ends), ends, strict=False)]
