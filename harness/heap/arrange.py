"""An order for what has none: items of dicts, members of sets.

True only here: sorting chooses an order and never merges anything, so a coarse shape
can cost a proof, but never its soundness.

How it works: values come first, by type and value; then objects that have a number;
then the others by their shape, which is what they look like from near, apart from
addresses and the orders of dicts.  Where shapes are equal a dict keeps its own order.
"""

import marshal
import operator
import types
from collections.abc import Iterable
from typing import Any

from harness.heap.known import ABSENT, Unreadable, exact_name
from harness.heap.layout import mro_of
from harness.heap.scope import function_modules
from harness.heap.tokens import ATOM_IDS, LOWEST_ADDRESS, TEXT_IDS, Tokens

# How far, at how many neighbours of one object, and at how many in all a shape looks.
_DEPTH = 3
_WIDTH = 32
_MOST = 64

_first = operator.itemgetter(0)


def arrange(stream: Tokens, items: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Items of a dict in an order that does not depend on that of the dict."""
    pairs = list(items)
    if len(pairs) < 2:
        return pairs
    keys = tuple(map(_first, pairs))
    if TEXT_IDS.issuperset(map(id, map(type, keys))):
        arranged = sorted(pairs, key=_first)
        if keys != tuple(map(_first, arranged)):
            stream.orders.append((stream.number, keys))
        return arranged
    ranked = sorted(
        (rank(stream, key, value), place) for place, (key, value) in enumerate(pairs)
    )
    places = [place for _, place in ranked]
    if places != sorted(places):
        stream.orders.append((stream.number, tuple(places)))
    return [pairs[place] for place in places]


def rank(stream: Tokens, key: Any, value: Any = ABSENT) -> tuple[int, Any, Any]:
    """Where a key belongs among others."""
    kind = type(key)
    if kind is str:
        return (0, "str", key)
    if kind is int:
        if key & 7 or key < LOWEST_ADDRESS:
            return (0, "int", key)
        number = stream.seen.get(key)
        if number is not None:
            return (1, number, 0)
        return (2, b"", shape(stream, value))
    if id(kind) in ATOM_IDS:
        return (0, kind.__name__, marshal.dumps(key, 2))
    number = stream.seen.get(id(key))
    if number is not None:
        return (1, number, 1)
    return (2, shape(stream, key), shape(stream, value))


def shape(stream: Tokens, value: Any) -> bytes:
    """What a value looks like from near; equal values look alike, not only they."""
    return _Look(stream).at(value, _DEPTH)


class _Look:
    """One look at a value and its neighbours, as far as the budget reaches.

    Neighbours are visited in an order that depends on neither addresses nor dicts.
    """

    def __init__(self, stream: Tokens) -> None:
        self.stream = stream
        self.left = _MOST

    def at(self, value: Any, depth: int) -> bytes:
        if value is ABSENT:
            return b""
        seen = self.stream.seen
        kind = type(value)
        if kind is int:
            if value & 7 or value < LOWEST_ADDRESS:
                return marshal.dumps(value, 2)
            number = seen.get(value)
            return marshal.dumps(("address", number), 2)
        if id(kind) in ATOM_IDS:
            return marshal.dumps((kind.__name__, value), 2)
        number = seen.get(id(value))
        if number is not None:
            return marshal.dumps(("number", number), 2)
        if issubclass(kind, type):
            return marshal.dumps(("class", exact_name(value)), 2)
        self.left -= 1
        text: Any = exact_name(kind)
        near: list[bytes] = []
        if kind is types.FunctionType:
            text = (*function_modules(value), value.__qualname__)
            text = (*text, value.__code__.co_firstlineno)
            if depth:
                cells = [_contents(cell) for cell in value.__closure__ or ()]
                near = [self.at(each, depth - 1) for each in cells]
        elif kind is types.BuiltinFunctionType or kind is types.MethodWrapperType:
            text = (text, value.__qualname__)
            near = [self.at(value.__self__, depth - 1)] if depth else []
        elif depth and self.left > 0 and not issubclass(kind, types.ModuleType):
            near = self._near(value, kind, depth - 1)
        return marshal.dumps((text, near), 2)

    def _near(self, value: Any, kind: type, depth: int) -> list[bytes]:
        """Some of what an object refers to, enough to tell most objects apart."""
        if kind is types.CellType:
            return [self.at(_contents(value), depth)]
        plan = self.stream.plan(kind)
        found: list[bytes] = []
        for name, getter in plan.slots:
            try:
                found += [name.encode(), self.at(getter(value), depth)]
            except AttributeError:
                continue
        if plan.dict_of is not None:
            found += self._items(dict.items(plan.dict_of(value)), depth)
        known = plan.known
        if known is None:
            return found
        if known.body == "sequence" and known.items is not None:
            for place, each in enumerate(known.items(value)):
                if place == _WIDTH:
                    break
                found.append(self.at(each, depth))
        elif known.body in ("dict", "ordered"):
            found += self._items(dict.items(value), depth)
        elif known.body == "set" and known.items is not None:
            found += self._items(((each, None) for each in known.items(value)), depth)
        if known.parts is not None:
            try:
                parts = known.parts(value)
            except Unreadable:
                parts = []
            found += [self.at(part, depth) for _, part in parts[:_WIDTH]]
        return found

    def _items(self, items: Iterable[tuple[Any, Any]], depth: int) -> list[bytes]:
        """Items with keys that are values, by key; the others are counted."""
        plain = []
        count = 0
        for key, value in items:
            count += 1
            if type(key) is str or id(type(key)) in ATOM_IDS:
                plain.append((rank(self.stream, key), value))
        found = [marshal.dumps(count, 2)]
        plain.sort(key=_first)
        for (_, kind, key), value in plain[:_WIDTH]:
            found += [marshal.dumps((kind, key), 2), self.at(value, depth)]
        return found


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


def write_set(stream: Tokens, values: list[Any], o: Any) -> None:
    """Write the values of a set; its objects wait until they are numbered."""
    out = stream.out
    atoms: list[Any] = []
    addresses: list[Any] = []
    objects: list[Any] = []
    for value in values:
        kind = type(value)
        if kind is int:
            small = value & 7 or value < LOWEST_ADDRESS
            (atoms if small else addresses).append(value)
        elif id(kind) in ATOM_IDS:
            atoms.append(value)
        else:
            objects.append(value)
    if len(values) > 1:
        stream.sets.append(stream.number)
        if len(atoms) == len(values):
            # Order of iteration and capacity: what `pop` and `for` would show.
            plain = tuple(marshal.dumps(each, 2) for each in atoms)
            stream.variants.append((stream.number, plain, room_of(o)))
    if len(atoms) > 1:
        atoms.sort(key=lambda each: rank(stream, each))
    out.append(len(atoms))
    for value in atoms:
        stream.emit(value)
    group: list[Any] = addresses
    out.append(group)
    if group:
        stream.groups.append(group)
    out.append(len(objects))
    if objects:
        stream.waiting.append((stream.number, objects))


def room_of(o: Any) -> int:
    """How large the table of a set is, which decides about the order of what comes."""
    changeable = any(each is set for each in mro_of(type(o)))
    return (set if changeable else frozenset).__sizeof__(o)
