"""The canonical form of an object graph: one walk from named roots.

The walk is iterative, runs no code of a user, and leaves no traces.  Equal streams of
tokens are isomorphic graphs: the stream is complete, so that `decode.py` can read it
back, and sorting only chooses the order.

How it works: objects are numbered when they are first met, and described in the order
of their numbers, each by one record that holds its kind and refers to others by number.
The stream of all records is serialised and digested.

Dicts are written in an order that does not depend on theirs.  Their actual order is
written to a separate list, so that one walk has both digests: the blind one of the
stream, the exact one of the stream and the orders.  Objects in sets have no order at
all, so they wait until all other objects are numbered.
"""

import hashlib
import marshal
import types
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

from everyorder.harness.state.code_references import write_module, write_postponed
from everyorder.harness.state.encoders import HANDLERS, name_of, write_class
from everyorder.harness.state.layout import Accessor, Unreadable
from everyorder.harness.state.noise import STATE_IF_NAMED, is_noise_attribute
from everyorder.harness.state.tokens import (
    ATOM_IDS,
    IGNORED,
    LOWEST_ADDRESS,
    NOTHING,
    PLACEHOLDER,
    InstancePlan,
    Space,
    Tokens,
    arrange,
    rank,
    write_set,
)

# All live finalizers, in order of creation.
_finalizers: Any = vars(weakref.finalize)["_registry"]


def _age(finalizer: Any) -> int:
    age: int = _finalizers[finalizer].index
    return age


# Replaces a value that is ignored.
_IGNORED_VALUE: Any = object()

# With more members of equal shape than this, their order is left to chance.
_TIED = 64


class HeapWalk(Tokens):
    """One traversal; afterwards its attributes are the result."""

    _depth = 0

    # The number of objects that were described by an earlier walk, and are unchanged.
    described = 0

    def run(self, roots: Mapping[str, object]) -> None:
        """Describe everything that the roots reach."""
        self._roots(roots)
        self._complete(0)
        self.finish()

    def open(self, roots: Mapping[str, object]) -> int:
        """Describe all that the first roots reach; return where `close` continues."""
        self._roots(roots)
        return self._describe(0)

    def close(self, done: int, roots: Mapping[str, object]) -> None:
        """Describe all objects that more roots reach."""
        self.out.append("roots")
        self._roots(roots)
        self._complete(done)
        self.finish()

    def reopen(
        self,
        deferred: Iterable[Any],
        postponed: Iterable[tuple[int, str, Any]],
        roots: Mapping[str, object],
    ) -> None:
        """Continue a walk: describe all that was left out of it, and more roots.

        A deferred object has a second number, for its record.
        """
        self.order += deferred
        for space, name, builtin_space in postponed:
            write_postponed(self, self.spaces[space], name, builtin_space)
        self._roots(roots)

    def describe_from(self, done: int) -> None:
        """Describe the objects of the queue from a number on."""
        self._describe(done)

    def _roots(self, roots: Mapping[str, object]) -> None:
        for name, root in roots.items():
            self.out.append(name)
            self.emit(root)
        self.out.append(NOTHING)

    def _complete(self, done: int) -> None:
        while True:
            done = self._describe(done)
            if self.waiting:
                self._members(*self.waiting.pop(0))
            elif self._named_noise():
                continue
            elif not self._ends():
                break

    def _named_noise(self) -> bool:
        """Write the omitted attributes that some code names; return True if any."""
        named = [each for each in self.omitted if each[1] in self.named]
        if named:
            self.omitted = [each for each in self.omitted if each[1] not in self.named]
        for number, _, value in named:
            self._members(number, [value])
        return bool(named)

    def _ends(self) -> bool:
        """Write the finalizers of objects that were met by now; return True if any.

        Only the library refers to a finalizer, but it is called all the same.
        """
        wrote = False
        for each in sorted(_finalizers, key=_age):
            if id(each) not in self.seen:
                target = self.seen.get(id(_finalizers[each].weakref()))
                if target is not None:
                    wrote = True
                    self.out += ("members", target, 1)
                    self.emit(each)
        return wrote

    def _describe(self, done: int) -> int:
        """Write the records of all objects in the queue, with those that they add.

        The frequent kinds are written here, all others by their handlers.  This is the
        innermost loop, so it repeats `Tokens.emit` inline: keep both the same.
        """
        order, numbers, out = self.order, self.seen, self.out
        append, enqueue, find, identity = out.append, order.append, numbers.get, id
        ignoring = self.ignoring
        unique = None if self.unique is None else self.unique.is_key
        readers = self.readers
        if not readers:
            readers.update(HANDLERS)
        reader_of = readers.get
        none, boolean, text, cell = type(None), bool, str, types.CellType
        defers = self.defers
        # The iterator also yields what is added to the queue meanwhile; it begins at
        # the first object without a record.
        queue = iter(order)
        queue.__setstate__(done)  # type: ignore[attr-defined]  # every list iterator has it
        number = done - 1
        for o in queue:
            number += 1
            kind = type(o)
            if defers is not None and defers(o):
                append("written")
                self.deferred.append(number)
                continue
            if kind is list or kind is tuple:
                append("list" if kind is list else "tuple")
                append(len(o))
                for value in o:
                    t = type(value)
                    if t is str or t is none or t is boolean:
                        append(value)
                    elif t is int:
                        # In a tuple, because an int is the number of an object here.
                        if value & 7 or value < LOWEST_ADDRESS:
                            append((value,))
                        else:
                            self.address(value)
                    else:
                        n = find(identity(value))
                        if n is None:
                            # A NaN is not equal to itself: it is compared as an object.
                            if identity(t) in ATOM_IDS and value == value:
                                append(value)
                                continue
                            n = numbers[identity(value)] = len(order)
                            enqueue(value)
                        append(n)
                continue
            if kind is dict:
                append("dict")
                attributes = o
                holder = number
            elif kind is cell:
                append("cell")
                try:
                    self.emit(o.cell_contents)
                except ValueError:
                    append(NOTHING)
                continue
            else:
                plan = reader_of(identity(kind))
                if plan is None:
                    plan = readers[identity(kind)] = self._reader(kind)
                self.number = number
                if type(plan) is not InstancePlan:
                    plan(self, o)
                    continue
                kind, slots, dict_of, accessor, opaque, left_out = plan
                if opaque:
                    name = name_of(self, o, kind)
                    if name:
                        self.emit_name("object", name)
                        continue
                    self.opaque.append(number)
                append("opaque" if opaque else "object")
                n = find(identity(kind))
                if n is None:
                    n = numbers[identity(kind)] = len(order)
                    enqueue(kind)
                append(n)
                if slots:
                    self.slots(o, slots)
                append(NOTHING)
                if accessor is None:
                    append(None)
                else:
                    self._body(o, accessor)
                if dict_of is None:
                    append(None)
                    continue
                attributes = dict_of(o)
                n = find(identity(attributes))
                if n is not None:
                    append(n)
                    continue
                if type(attributes) is not dict:
                    self.emit(attributes)
                    continue
                holder = len(order)
                numbers[identity(attributes)] = holder
                enqueue(PLACEHOLDER)
                append(True)
                if left_out:
                    attributes = self._without_noise(o, attributes, left_out)
            # A dict, or the attributes of an instance.
            append(len(attributes))
            keys = [*attributes]
            for key in keys:
                if type(key) is not text:
                    self.number = holder
                    entries: Any = arrange(self, attributes.items())
                    by_key = False
                    break
            else:
                # Sorted, so that the form is the same in every order of insertion; the
                # order itself is part of the exact form only.
                entries = sorted(keys)
                if entries != keys and unique is not None and any(map(unique, keys)):
                    entries = keys
                elif entries != keys:
                    self.orders.append((holder, tuple(keys)))
                by_key = True
            if ignoring is not None and ignoring.concerns(attributes):
                self.number = number
                if by_key:
                    entries = [(key, attributes[key]) for key in entries]
                    by_key = False
                entries = self._without(entries, holder == number)
            for entry in entries:
                if by_key:
                    append(entry)
                    value = attributes[entry]
                else:
                    key, value = entry
                    if type(key) is text:
                        append(key)
                    else:
                        self.emit(key)
                t = type(value)
                if t is str or t is none or t is boolean:
                    append(value)
                elif t is int:
                    if value & 7 or value < LOWEST_ADDRESS:
                        append((value,))
                    else:
                        self.address(value)
                else:
                    n = find(identity(value))
                    if n is None:
                        if identity(t) in ATOM_IDS and value == value:
                            append(value)
                            continue
                        if value is _IGNORED_VALUE:
                            append(IGNORED)
                            continue
                        n = numbers[identity(value)] = len(order)
                        enqueue(value)
                    append(n)
        return len(order)

    def _without_noise(
        self, o: Any, attributes: dict[Any, Any], left_out: frozenset[str]
    ) -> dict[Any, Any]:
        """Return the attributes of an instance that are state."""
        noise = {
            key: value
            for key, value in attributes.items()
            if type(key) is str
            and key in left_out
            and is_noise_attribute(o, key, value)
        }
        for key in sorted(noise.keys() & STATE_IF_NAMED):
            self.omitted.append((self.number, key, noise[key]))
        return {
            key: value
            for key, value in attributes.items()
            if type(key) is not str or key not in noise
        }

    def _reader(self, kind: type) -> Any:
        """Return the plan or the handler that reads instances of a type."""
        if issubclass(kind, type):
            return write_class
        if issubclass(kind, types.ModuleType):
            return write_module
        return self.plan(kind)

    def _body(self, o: Any, accessor: Accessor) -> None:
        """Write the contents of an instance, without its attributes."""
        out = self.out
        body, items = accessor.body, accessor.items
        out.append(body)
        if body == "dict":
            out.append(dict.__len__(o))
            self.pairs(arrange(self, dict.items(o)))
        elif items is not None:
            try:
                values = list(items(o))
            except Unreadable:
                self.opaque.append(self.number)
                values = []
            if body == "sequence":
                out.append(len(values))
                for value in values:
                    self.emit(value)
            elif body == "ordered":
                out.append(len(values))
                plain = [id(key) for key in dict.__iter__(o)]
                if values and plain != [id(key) for key, _ in values]:
                    places = {id(key): n for n, (key, _) in enumerate(values)}
                    order = tuple(places[key] for key in plain)
                    self.orders.append((self.number, ("dict", *order)))
                self.pairs(arrange(self, values))
            else:
                write_set(self, values, o)
        self.read(accessor, o)

    def _without(
        self, pairs: Iterable[tuple[Any, Any]], keys: bool
    ) -> list[tuple[Any, Any]]:
        """Return pairs of a dict, with a mark in place of values that are ignored."""
        entries = []
        for key, value in pairs:
            ignored = type(key) is str and (
                self.ignores_key(key) if keys else self.ignores(key)
            )
            entries.append((key, _IGNORED_VALUE if ignored else value))
        return entries

    # Sets

    def _members(self, number: int, objects: list[Any]) -> None:
        """Write the objects of a set that waited."""
        self.number = number
        self.out += ("members", number, len(objects))
        if len(objects) > 1:
            objects = self._ordered(objects)
        for each in objects:
            self.emit(each)

    def _ordered(self, objects: list[Any]) -> list[Any]:
        """Return objects by number or shape; ties are sorted by all that they reach."""
        ranked = [(rank(self, each), each) for each in objects]
        alike: dict[Any, int] = {}
        for place, _ in ranked:
            alike[place] = alike.get(place, 0) + 1
        tied = sum(count for count in alike.values() if count > 1)
        deep = 1 < tied <= _TIED and self._depth == 0
        keys = [
            (place, self._reached(each) if deep and alike[place] > 1 else b"")
            for place, each in ranked
        ]
        return [objects[n] for n in sorted(range(len(keys)), key=keys.__getitem__)]

    def _reached(self, value: Any) -> bytes:
        """Return a digest of all unnumbered objects that an object reaches."""
        walk = HeapWalk(self.scope, None)
        walk._depth = self._depth + 1
        walk.executed = self.executed
        walk.order = list(self.order)
        walk.seen = dict(self.seen)
        walk.spaces = {
            key: Space(space.number, space.values, set(space.done))
            for key, space in self.spaces.items()
        }
        walk.emit(value)
        walk._complete(len(self.order))
        walk.finish()
        return hashlib.blake2b(marshal.dumps(walk.out, 2), digest_size=16).digest()
