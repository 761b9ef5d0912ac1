"""The stream of tokens that describes a graph, and how one value is written into it.

Tokens of a value: an `int` is the number of an object; `(5,)` is the integer 5; `[5]`
is the address of object 5; a tuple of two texts is the name of something outside;
`StopIteration` is nothing at all (an empty cell); all else stands for itself.
`marshal` writes all of them, version 2 of it alike in every process.

True only here: types are told apart by identity.  Neither a type nor an object is
hashed or compared, because a metaclass may say how, and that is code of a user.
"""

import weakref
from collections.abc import Iterable
from typing import Any, NamedTuple

from harness.heap.accessors import known_exactly, known_of
from harness.heap.ignored import Ignored
from harness.heap.known import ABSENT, Known, Parts, Unreadable
from harness.heap.layout import (
    Getter,
    layout_of,
    module_of,
)
from harness.heap.noise import LOOKS_ON, noise_of
from harness.heap.scope import Scope, resolve

ATOMS = (str, bool, type(None), float, bytes, complex, type(...))
ATOM_IDS = frozenset(map(id, ATOMS))
TEXT_IDS = frozenset({id(str)})
# `marshal` writes this one class; as a value of a user it is an object with a number.
NOTHING = StopIteration
IGNORED = ("", "ignored")

# Integers below, or not divisible by 8, are no addresses of objects.
LOWEST_ADDRESS = 1 << 20


_REFERENCE = known_of(weakref.ReferenceType)
_target_of = weakref.ReferenceType.__call__


class Written:
    """The type of what stands in the queue for what is not described by itself."""


WRITTEN = Written()


class Plan(NamedTuple):
    """How instances of one type are read during one walk."""

    kind: type
    slots: tuple[tuple[str, Getter], ...]
    dict_of: Getter | None
    known: Known | None
    opaque: bool
    left_out: frozenset[str] = frozenset()


class Space(NamedTuple):
    """Globals of one module: its number, the dict, and what of it is written."""

    number: int
    values: dict[str, Any]
    done: set[Any]


class Tokens:
    """A stream that grows, and what has to be known about it.

    `out` are the tokens; `order` the objects by number, and `seen` their numbers by id;
    `orders` the orders of dicts; `variants` the orders of sets and the counters of
    caches, which no form tells, because equal ones need not go on alike; `number`
    is that of the object that is being written.  `opaque` are the numbers of opaque
    objects, `sets` those of sets of two or more, `counters` those of caches that count,
    `traces` those of tracebacks, `outside` those of things that are mere names;
    `functions` are the C functions that something else than code holds, which C code
    may call; `abstract` are the classes that remember whom they took for theirs;
    `left_out` is what was ignored.  `weak` says that a weak reference or a finalizer
    was met.  `waiting` are objects in sets, which have no order, by the number of their
    set; `inside` says of modules whether they are followed.

    What was read by name, where no object refers to it, is listed for `base.py`:
    `read_names` by dict, key and value, `resolved` by module, dotted name and object.
    """

    def __init__(self, scope: Scope, ignoring: Ignored | None = None) -> None:
        self.scope = scope
        self.ignoring = ignoring
        self.out: list[Any] = []
        self.order: list[Any] = []
        self.seen: dict[int, int] = {}
        self.orders: list[Any] = []
        self.variants: list[Any] = []
        self.number = -1
        self.weak = False
        self.opaque: list[int] = []
        self.sets: list[int] = []
        self.counters: list[int] = []
        self.traces: list[int] = []
        self.outside: list[int] = []
        self.functions: list[Any] = []
        self.abstract: list[type] = []
        self.left_out: list[tuple[int, str]] = []
        self.waiting: list[tuple[int, list[Any]]] = []
        self.spaces: dict[int, Space] = {}
        self.groups: list[list[Any]] = []
        self.addresses: list[int] = []
        self._references: list[Any] = []
        self.empty: list[tuple[int, dict[Any, Any]]] = []
        self.inside: dict[str, bool] = {}
        self.plans: dict[int, Plan] = {}
        self.read_names: list[tuple[dict[str, Any], str, Any]] = []
        self.resolved: list[tuple[str, str, object]] = []

    # Values

    def emit(self, value: Any) -> None:
        """Write one value; an object is put into the queue."""
        kind = type(value)
        if kind is int:
            if value & 7 or value < LOWEST_ADDRESS:
                self.out.append((value,))
            else:
                self.address(value)
        elif id(kind) in ATOM_IDS:
            self.out.append(value)
        elif value is ABSENT:
            self.out.append(NOTHING)
        else:
            number = self.seen.get(id(value))
            if number is None:
                number = self.seen[id(value)] = len(self.order)
                self.order.append(value)
            self.out.append(number)

    def address(self, value: int) -> None:
        """Write an integer that may turn out to be the address of an object."""
        self.addresses.append(len(self.out))
        self.out.append((value,))

    def filled(self, value: dict[Any, Any]) -> None:
        """Write a dict that hardly ever has something in it.

        Without contents it is an object only if something else refers to it as well,
        which can be known only at the end.
        """
        if type(value) is not dict or value:
            self.emit(value)
        else:
            self.empty.append((len(self.out), value))
            self.out.append(None)

    def leave_out(self, value: Any) -> None:
        """Give an object a number without ever describing it."""
        if id(value) not in self.seen:
            self.seen[id(value)] = len(self.order)
            self.order.append(WRITTEN)

    def named(self, kind: str, name: str) -> None:
        """Write the record of something that is told by its name alone."""
        self.outside.append(self.number)
        self.out += ("named", kind, name)

    def parts(self, parts: Parts) -> None:
        """Write labelled values."""
        self.out.append(len(parts))
        for label, value in parts:
            self.out.append(label)
            if self.ignoring is not None and self.ignores(label):
                self.out.append(IGNORED)
            else:
                self.emit(value)

    def read(self, known: Known, o: Any) -> None:
        """Write the parts of an instance of a known type."""
        if known.parts is None:
            self.out.append(0)
            return
        if known is _REFERENCE:
            self._references.append(o)
        try:
            parts = known.parts(o)
        except Unreadable:
            self.opaque.append(self.number)
            parts = []
        self.parts(parts)

    def pairs(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Write keys and values of a dict."""
        for key, value in pairs:
            self.emit(key)
            if self.ignoring is not None and self.ignores_key(key):
                self.out.append(IGNORED)
            else:
                self.emit(value)

    def slots(self, o: Any, slots: tuple[tuple[str, Getter], ...]) -> None:
        """Write slots by name."""
        for name, getter in slots:
            self.out.append(name)
            if self.ignoring is not None and self.ignores(name):
                self.out.append(IGNORED)
                continue
            try:
                value = getter(o)
            except AttributeError:
                self.out.append(NOTHING)
            else:
                self.emit(value)

    def settle(self) -> None:
        """Write what can be known only at the end."""
        find = self.seen.get
        for place in self.addresses:
            number = find(self.out[place][0])
            if number is not None:
                self.out[place] = [number]
        for place, value in self.empty:
            self.out[place] = find(id(value))
        for group in self.groups:
            tokens = [(0, n) if (n := find(v)) is not None else (1, v) for v in group]
            group[:] = sorted(tokens)
        for space in self.spaces.values():
            self.out.append(find(id(space.values)))
        if len(self._references) > 1:
            self.out += self._callbacks()

    def _callbacks(self) -> list[tuple[int, ...]]:
        """In which order references to one object will be told of its end."""
        targets = [_target_of(each) for each in self._references]
        orders = []
        for target in {id(each): each for each in targets if each is not None}.values():
            numbers = [self.seen.get(id(r)) for r in weakref.getweakrefs(target)]
            order = tuple(number for number in numbers if number is not None)
            if len(order) > 1:
                orders.append(order)
        return orders

    # Types

    def plan(self, kind: type) -> Plan:
        """How instances of a type are read."""
        plan = self.plans.get(id(kind))
        if plan is None:
            known = known_exactly(kind)
            layout = layout_of(kind)
            if self._looks_on(kind):
                plan = Plan(kind, (), None, None, False)
            elif known is not None:
                dict_of = None if known.alone else layout.dict_of
                plan = Plan(kind, (), dict_of, known, False)
            else:
                base = layout.known
                self.weak = self.weak or base is weakref.ReferenceType
                known = known_of(base)
                parts = layout.slots, layout.dict_of, known, layout.opaque
                plan = Plan(kind, *parts, noise_of(kind))
            self.plans[id(kind)] = plan
        return plan

    def _looks_on(self, kind: type) -> bool:
        """Whether instances belong to who explores, unless that is what is explored."""
        module = module_of(kind)
        package = module.partition(".")[0]
        return bool(LOOKS_ON & {module, package}) and not self.follows(package)

    def resolve(self, module: str, qualname: str) -> object:
        """What a module has under a dotted name, or None."""
        found = resolve(module, qualname)
        self.resolved.append((module, qualname, found))
        return found

    def look_up(self, values: dict[str, Any], name: str) -> Any:
        """What a dict has under a name, or `ABSENT`."""
        value = dict.get(values, name, ABSENT)
        self.read_names.append((values, name, value))
        return value

    def follows(self, module: str) -> bool:
        """Whether a module belongs to the scope."""
        inside = self.inside.get(module)
        if inside is None:
            inside = module.partition(".")[0] in self.scope.packages
            self.inside[module] = inside
        return inside

    # Ignored paths

    def ignores(self, label: str) -> bool:
        """Whether an attribute of the object that is being written is ignored."""
        ignoring = self.ignoring
        if ignoring is None or not ignoring.ends(label):
            return False
        if ignoring.matches(self.out, self.number, label):
            self.left_out.append((self.number, label))
            return True
        return False

    def ignores_key(self, key: Any) -> bool:
        """Whether a key of the dict that is being written is ignored."""
        return type(key) is str and self.ignores(f"[{key!r}]")

    def ignores_path(self, path: str) -> bool:
        """Whether a path that begins with a module is ignored."""
        if self.ignoring is None:
            return False
        if self.ignoring.path(path):
            self.left_out.append((-1, path))
            return True
        return False
