"""The stream of tokens that describes a graph, and a canonical order for its parts.

Tokens of a value: an `int` is the number of an object; `(5,)` is the integer 5; `[5]`
is the address of object 5; a tuple of two texts is the name of an object outside;
`StopIteration` marks a missing value (an empty cell); other tokens are plain values.
`marshal` writes all of them, version 2 of it the same in every process.  A number that
is unequal to itself (NaN) is an object: containers find it by its identity.

Items of dicts and members of sets are sorted: values are first, by type and value; then
objects that have a number; then the others by their shape, which summarises their
neighbourhood without addresses and orders of dicts.  Between equal shapes the order of
the dict is kept.  Sorting chooses an order and never merges anything, so a coarse shape
can cost a proof, but never its soundness.

Rule: types are distinguished by identity.  Neither a type nor an object is hashed or
compared, because a metaclass may define how, and that is code of a user.
"""

import marshal
import operator
import types
import weakref
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, NamedTuple

from everyorder.harness.state.accessors import accessor_of, exact_accessor
from everyorder.harness.state.keyed import KeyedContainer
from everyorder.harness.state.layout import (
    ABSENT,
    Accessor,
    Getter,
    Parts,
    Unreadable,
    exact_name,
    layout_of,
    module_of,
    mro_of,
)
from everyorder.harness.state.noise import ONLOOKERS, noise_of
from everyorder.harness.state.scope import (
    FollowedScope,
    IgnorePatterns,
    function_modules,
    package_of,
    resolve,
)

if TYPE_CHECKING:
    from everyorder.harness.state.executed_code import ExecutedCode
    from everyorder.harness.state.unique_values import UniqueValues

ATOMS = (str, bool, type(None), float, bytes, complex, type(...))
ATOM_IDS = frozenset(map(id, ATOMS))
TEXT_IDS = frozenset({id(str)})
# `marshal` writes this one class; as a value of a user it is an object with a number.
NOTHING = StopIteration
IGNORED = ("", "ignored")

# Integers below, or not divisible by 8, are not addresses of objects.
LOWEST_ADDRESS = 1 << 20


_REFERENCE = accessor_of(weakref.ReferenceType)
_target_of = weakref.ReferenceType.__call__


class Placeholder:
    """The type of the queue entries of objects that have no record."""


PLACEHOLDER = Placeholder()


class InstancePlan(NamedTuple):
    """The plan for reading instances of one type during one walk."""

    kind: type
    slots: tuple[tuple[str, Getter], ...]
    dict_of: Getter | None
    accessor: Accessor | None
    opaque: bool
    left_out: frozenset[str] = frozenset()


class Space(NamedTuple):
    """Globals of one module: its number, the dict, and the names that are written."""

    number: int
    values: dict[str, Any]
    done: set[Any]


class Tokens:
    """A growing stream of tokens, and its side tables.

    `out` are the tokens; `order` the objects by number, and `seen` their numbers by id;
    `number` is that of the object that is being written.

    Stored separately: `orders`, the orders of dicts, which only the exact form
    contains, and `variants`, the orders of sets and the counters of caches, which no
    form contains, because states that differ in them may have different futures.

    `full_caches` are names of caches that may drop an entry now (see `encoders.py`).

    Lists of numbers: `opaque` objects; `sets` of two or more; `counters`, caches that
    count; `traces`, tracebacks; `frames` with a caller, without the `traced` ones,
    which are the ids of frames of tracebacks; `outside`, objects that are written as
    names.

    `functions` are the C functions that objects other than code hold, which C code may
    call; `abstract` are the classes that cache subclass answers; `left_out` lists
    ignored labels.  `weak` means that a weak reference or a finalizer was met.
    `waiting` are objects in sets, which have no order, by the number of their set;
    `omitted` are attributes that may be noise, by number and name: they are written at
    the end if some code names them (`named`);
    `inside` records which modules are followed; `plans` and `readers` are those of the
    types that were met, by id.

    Values that were read by name, without a reference, are listed for `heap.py`:
    `read_names` by dict, key and value, `resolved` by module, dotted name and object.

    For `fixed_part.py`: an object that `defers` accepts has no record, and its number
    is added to `deferred`; globals of `deferred_names`, by the id of their dict, are
    added to `postponed`, with their space and the built-in names.  `references` are the
    weak references that were met; `executed` is the code whose globals are read, or
    None if all are; `is_partial` is True for a part of a walk, and
    `irregular` means that one met what only a whole walk can read: a weak proxy, a
    module in the place of another value, an ignored attribute.
    """

    is_partial = False
    executed: "ExecutedCode | None" = None

    def __init__(
        self, scope: FollowedScope, ignoring: IgnorePatterns | None = None
    ) -> None:
        self.scope = scope
        self.ignoring = ignoring
        self.unique: UniqueValues | None = None
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
        self.full_caches: set[str] = set()
        self.traces: list[int] = []
        self.traced: set[int] = set()
        self.frames: list[int] = []
        self.outside: list[int] = []
        self.functions: list[Any] = []
        self.abstract: list[type] = []
        self.left_out: list[tuple[int, str]] = []
        self.waiting: list[tuple[int, list[Any]]] = []
        self.omitted: list[tuple[int, str, Any]] = []
        self.named: frozenset[str] = frozenset()
        self.spaces: dict[int, Space] = {}
        self.groups: list[list[Any]] = []
        self.addresses: list[int] = []
        self.references: list[Any] = []
        self.empty: list[tuple[int, dict[Any, Any]]] = []
        self.inside: dict[str, bool] = {}
        self.plans: dict[int, InstancePlan] = {}
        self.readers: dict[int, Any] = {}
        self.read_names: list[tuple[dict[str, Any], str, Any]] = []
        self.resolved: list[tuple[str, str, object]] = []
        self.defers: Callable[[Any], bool] | None = None
        self.deferred: list[int] = []
        self.deferred_names: AbstractSet[tuple[int, str]] = frozenset()
        self.postponed: list[tuple[Space, str, Any]] = []
        self.irregular = False

    # Values

    def emit(self, value: Any) -> None:
        """Write one value; an object is added to the queue."""
        kind = type(value)
        if kind is int:
            if value & 7 or value < LOWEST_ADDRESS:
                self.out.append((value,))
            else:
                self.address(value)
        elif id(kind) in ATOM_IDS and value == value:
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
        """Write an integer that may prove to be the address of an object."""
        self.addresses.append(len(self.out))
        self.out.append((value,))

    def emit_rare_dict(self, value: dict[Any, Any]) -> None:
        """Write a dict that is nearly always empty.

        An empty one is an object only if another object refers to it as well, which is
        known only at the end.
        """
        if type(value) is not dict or value:
            self.emit(value)
        else:
            self.empty.append((len(self.out), value))
            self.out.append(None)

    def exclude(self, value: Any) -> None:
        """Reserve a number for an object without ever describing it."""
        if id(value) not in self.seen:
            self.seen[id(value)] = len(self.order)
            self.order.append(PLACEHOLDER)

    def emit_name(self, kind: str, name: str) -> None:
        """Write the record of an object that is identified by its name alone."""
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

    def read(self, accessor: Accessor, o: Any) -> None:
        """Write the parts of an instance of a known type."""
        if accessor.parts is None:
            self.out.append(0)
            return
        if accessor is _REFERENCE:
            self.references.append(o)
        try:
            parts = accessor.parts(o)
        except Unreadable as error:
            self.opaque.append(self.number)
            parts = error.parts
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

    def finish(self) -> None:
        """Write the tokens that are known only at the end."""
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
        if len(self.references) > 1:
            self.out += self._callbacks()

    def _callbacks(self) -> list[tuple[int, ...]]:
        """Return the order in which callbacks of references to one object will run."""
        targets = [_target_of(each) for each in self.references]
        orders = []
        for target in {id(each): each for each in targets if each is not None}.values():
            numbers = [self.seen.get(id(r)) for r in weakref.getweakrefs(target)]
            order = tuple(number for number in numbers if number is not None)
            if len(order) > 1:
                orders.append(order)
        return orders

    # Types

    def plan(self, kind: type) -> InstancePlan:
        """Return the plan that reads instances of a type."""
        plan = self.plans.get(id(kind))
        if plan is None:
            accessor = exact_accessor(kind)
            layout = layout_of(kind)
            if self._is_onlooker(kind):
                plan = InstancePlan(kind, (), None, None, False)
            elif accessor is not None:
                dict_of = None if accessor.ignores_attributes else layout.dict_of
                plan = InstancePlan(kind, (), dict_of, accessor, False)
            else:
                base = layout.base
                self.weak = self.weak or base is weakref.ReferenceType
                accessor = accessor_of(base)
                parts = layout.slots, layout.dict_of, accessor, layout.opaque
                plan = InstancePlan(kind, *parts, noise_of(kind))
            self.plans[id(kind)] = plan
        return plan

    def _is_onlooker(self, kind: type) -> bool:
        """Return True for types of an observing tool that is not itself explored."""
        module = module_of(kind)
        package = package_of(module)
        observing = ONLOOKERS & {module, package} and not self.follows(package)
        # What stands for a container of a registry is state.
        return bool(observing) and KeyedContainer not in mro_of(kind)

    def resolve(self, module: str, qualname: str) -> object:
        """Return the object of a dotted name in a module, or None."""
        target = resolve(module, qualname)
        self.resolved.append((module, qualname, target))
        return target

    def look_up(self, values: dict[str, Any], name: str) -> Any:
        """Return the value of a name in a dict, or `ABSENT`."""
        value = dict.get(values, name, ABSENT)
        self.read_names.append((values, name, value))
        return value

    def follows(self, module: str) -> bool:
        """Return True if a module belongs to the scope."""
        inside = self.inside.get(module)
        if inside is None:
            inside = package_of(module) in self.scope.packages
            self.inside[module] = inside
        return inside

    # Ignored paths

    def ignores(self, label: str) -> bool:
        """Return True if an attribute of the current object is ignored."""
        ignoring = self.ignoring
        if ignoring is None or not ignoring.ends(label):
            return False
        if self.is_partial:  # paths cannot be determined
            self.irregular = True
            return False
        if ignoring.matches(self.out, self.number, label):
            self.left_out.append((self.number, label))
            return True
        return False

    def ignores_key(self, key: Any) -> bool:
        """Return True if a key of the current dict is ignored."""
        return type(key) is str and self.ignores(f"[{key!r}]")

    def ignores_path(self, path: str) -> bool:
        """Return True if a path that begins with a module is ignored."""
        if self.ignoring is None:
            return False
        if self.ignoring.path(path):
            self.left_out.append((-1, path))
            return True
        return False


# Limits of a shape: its depth, the neighbours of one object, and all objects.
_DEPTH = 3
_WIDTH = 32
_MOST = 64

_first = operator.itemgetter(0)


def arrange(stream: Tokens, items: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return items of a dict in an order that does not depend on that of the dict."""
    pairs = list(items)
    if len(pairs) < 2:
        return pairs
    keys = tuple(map(_first, pairs))
    if stream.unique is not None and any(map(stream.unique.is_key, keys)):
        return pairs
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
    """Return the sort key of a dict's key or a set's member."""
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
    if id(kind) in ATOM_IDS and key == key:
        return (0, kind.__name__, marshal.dumps(key, 2))
    number = stream.seen.get(id(key))
    if number is not None:
        return (1, number, 1)
    return (2, shape(stream, key), shape(stream, value))


def shape(stream: Tokens, value: Any) -> bytes:
    """Return a summary of a value's neighbourhood, the same for equal values."""
    return _Look(stream).at(value, _DEPTH)


class _Look:
    """One summary of a value and its neighbours, up to the budget.

    Neighbours are visited in an order that depends on neither addresses nor dicts.
    """

    def __init__(self, stream: Tokens) -> None:
        self.stream = stream
        self.left = _MOST

    def at(self, value: Any, depth: int) -> bytes:
        if value is ABSENT:
            return b""
        numbers = self.stream.seen
        kind = type(value)
        if kind is int:
            if value & 7 or value < LOWEST_ADDRESS:
                return marshal.dumps(value, 2)
            number = numbers.get(value)
            return marshal.dumps(("address", number), 2)
        if id(kind) in ATOM_IDS:
            return marshal.dumps((kind.__name__, value), 2)
        number = numbers.get(id(value))
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
        """Return summaries of some referents, enough to distinguish most objects."""
        if kind is types.CellType:
            return [self.at(_contents(value), depth)]
        plan = self.stream.plan(kind)
        looks: list[bytes] = []
        for name, getter in plan.slots:
            try:
                looks += [name.encode(), self.at(getter(value), depth)]
            except AttributeError:
                continue
        if plan.dict_of is not None:
            looks += self._items(dict.items(plan.dict_of(value) or {}), depth)
        accessor = plan.accessor
        if accessor is None:
            return looks
        if accessor.body == "sequence" and accessor.items is not None:
            for place, each in enumerate(accessor.items(value)):
                if place == _WIDTH:
                    break
                looks.append(self.at(each, depth))
        elif accessor.body in ("dict", "ordered"):
            looks += self._items(dict.items(value), depth)
        elif accessor.body == "set" and accessor.items is not None:
            looks += self._items(
                ((each, None) for each in accessor.items(value)), depth
            )
        if accessor.parts is not None:
            try:
                parts = accessor.parts(value)
            except Unreadable as error:
                parts = error.parts
            looks += [self.at(part, depth) for _, part in parts[:_WIDTH]]
        return looks

    def _items(self, items: Iterable[tuple[Any, Any]], depth: int) -> list[bytes]:
        """Return items with keys that are values, by key; the others are counted."""
        plain = []
        count = 0
        for key, value in items:
            count += 1
            if type(key) is str or id(type(key)) in ATOM_IDS:
                plain.append((rank(self.stream, key), value))
        looks = [marshal.dumps(count, 2)]
        plain.sort(key=_first)
        for (_, kind, key), value in plain[:_WIDTH]:
            looks += [marshal.dumps((kind, key), 2), self.at(value, depth)]
        return looks


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
        elif id(kind) in ATOM_IDS and value == value:
            atoms.append(value)
        else:
            objects.append(value)
    if len(values) > 1:
        stream.sets.append(stream.number)
        if len(atoms) == len(values):
            # Order of iteration and capacity: `pop` and `for` depend on them.
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
    """Return the size of a set's table, which decides the order of later members."""
    changeable = any(each is set for each in mro_of(type(o)))
    return (set if changeable else frozenset).__sizeof__(o)
