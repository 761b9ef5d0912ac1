"""The part of a state that no operation changes: described once, and then verified.

A registry of a large package reaches most of that package: classes, their functions,
the globals that these read.  Nearly all of it is never changed by an operation.  The
*fixed part* is a walk from the roots that every state has.  It is described once, for
all fresh systems.  A form then has the records of all other objects only, which refer
to objects of the fixed part by their numbers, and each form verifies that the fixed
part is as it was.

Why equal forms are still isomorphic states: two states are compared only if both were
read with one fixed part, which was verified in both.  So its objects are the same ones,
with the same references and values; its numbers name the same objects in both states,
and the other records are complete.  Whatever is found to have changed leaves the fixed
part for good, the part is built again, and the exploration restarts: forms of two fixed
parts are never compared.

What belongs to it: objects that the lasting roots reach without passing through a
*deferred* one; of an abstract class all but its registrations and cached answers, which
each form contains together with its number.  Deferred objects have a number in the
fixed part, and are described in each form.  They are

- objects of kinds of which the verification might miss state (`is_scanned`);
- objects that changed, and globals that were rebound.  Their children stay in the fixed
  part as long as they are children (`ChangedParts.level`): a class with a counter is
  described in each form, its functions are not;
- objects whose lifetime may be observable, that is targets of weak references, and
  objects that are not plain Python objects (files, generators, finalizers), with all
  that hold them, up to a class or a global.  The fixed part holds its objects, and must
  not keep these alive.  The classes and functions that they refer to stay in the fixed
  part if these are found by their names, and so does the code of such a function with
  the globals that it reads: others may be made with each system.  They stay there if
  nothing refers to them any longer.

Held objects cannot mislead an operation unless it drops the last reference to one of
them, finds it again by a weak reference, and restores it.  Its own weak references
exclude that for all but classes, which only the cycle collector frees: it does not run
during an operation.  As elsewhere, weak references outside of the state are not seen.

If the verification cannot say which object changed, nothing is fixed any longer, and
each form describes everything.
"""

import gc
import operator
import types
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Set
from itertools import chain, islice, repeat
from threading import Lock, RLock
from typing import Any

from everyorder.harness.state.accessors import LRU
from everyorder.harness.state.change_detector import ChangeDetector
from everyorder.harness.state.code_references import write_reads
from everyorder.harness.state.code_value import names_in
from everyorder.harness.state.encode import HeapWalk
from everyorder.harness.state.encoders import HANDLERS, is_named, write_answers
from everyorder.harness.state.layout import (
    ABSENT,
    changeable,
    exact_name,
    is_abstract,
    module_of,
    qualname_of,
)
from everyorder.harness.state.lifetimes import alike, holders_of, is_permanent
from everyorder.harness.state.references import (
    attribute_dicts,
    children_of,
    has_lasting_plan,
    is_scanned,
    lookups_of,
    owns_memory_only,
)
from everyorder.harness.state.scope import resolve
from everyorder.harness.state.tokens import (
    ATOM_IDS,
    LOWEST_ADDRESS,
    PLACEHOLDER,
    InstancePlan,
    Space,
    room_of,
)

# Children of a deferred object that stay in the fixed part, by how often it changed:
# all; classes and functions; none.  New instances are often made with each fresh
# system, new functions rarely.
ALL, DEFINITIONS, NONE = 1, 2, 3
_DEFINED = (types.FunctionType, staticmethod, classmethod, property)
# Attempts to leave out objects with an observable lifetime: holders of holders.
ROUNDS = 8
# Changes of unknown objects (an import, a renamed class) after which nothing is fixed.
_MOST_UNKNOWN = 4

_target_of = weakref.ReferenceType.__call__
_SETS = frozenset(map(id, (set, frozenset)))
# Deferred kinds without an observable lifetime; the answers of an abstract class are
# weak references.
_ANSWERS = type(vars(Hashable)["_abc_impl"])
_LOCKS = type(Lock()), type(RLock())
_HARMLESS = _SETS | set(map(id, (LRU, *_LOCKS, _ANSWERS, type(NotImplemented))))


class ChangedParts:
    """All that was found to be changeable so far, by ids.

    The id of a freed object may name another one later: then that is deferred, too.
    """

    def __init__(self) -> None:
        self.level: dict[int, int] = {}
        # Globals by the id of their dict; the name "*" stands for the set of names.
        self.names: set[tuple[int, str]] = set()
        # Roots that are not the same for each system.
        self.roots: set[str] = set()
        # Objects that must not be held.
        self.observable: set[int] = set()
        # Names, with their modules, that were bound to another class or function.
        self.rebound: set[tuple[str, str]] = set()
        # Older objects of the fixed part, by ids; None if there has been no fixed part.
        self.older: dict[int, Any] | None = None
        # True if nothing is fixed any longer.
        self.everything = False
        self._unknown = 0

    def unknown(self) -> None:
        """Record a change of which the object is unknown."""
        self._unknown += 1
        self.everything = self.everything or self._unknown > _MOST_UNKNOWN


class FixedPart:
    """One walk from the lasting roots, with all that verifies it.

    `met` is a whole walk at the same time; `older` are objects, by ids, that are older
    than each system.
    """

    def __init__(
        self,
        start: Callable[[], HeapWalk],
        lasting: Mapping[str, object],
        changed: ChangedParts,
        met: HeapWalk,
        older: Mapping[int, Any],
    ) -> None:
        self._changed = changed
        self._met: Set[int] = met.seen.keys()
        self._older = older
        # Objects whose level was raised by this part: once each.
        self._raised: set[int] = set()
        self._has_unknown = False
        self._names, self._roots = list(lasting), list(lasting.values())
        self._walk = walk = start()
        walk.is_partial = True
        walk.defers = self._defers
        walk.deferred_names = changed.names
        # Children of deferred objects that are in the fixed part; of objects that must
        # not be held, those that are found by name; and the code of such functions, by
        # ids.
        self._children: list[tuple[Any, frozenset[int]]] = []
        self._found: list[tuple[tuple[str, str], Any]] = []
        self._codes: dict[int, int] = {}
        walk.open(
            {
                name: root
                for name, root in lasting.items()
                if name not in changed.roots and id(root) not in changed.observable
            }
        )
        added = self._add_children(0)
        for o in met.order:
            if id(o) not in walk.seen or id(o) in changed.observable:
                self._add_lasting_of(o)
        self._add_children(added)
        self._met, self._older = frozenset(), {}
        walk.defers = None
        walk.deferred_names = frozenset()
        self.done = len(walk.order)
        self.deferred = [walk.order[number] for number in walk.deferred]
        late = set(walk.deferred)
        outside = set(walk.outside)
        self._inside = [
            o
            for number, o in enumerate(walk.order)
            if number not in outside and number not in late
        ]
        self._prepare()
        self.held_functions = tuple(walk.functions)
        # How many opaque objects of each class are described here, the first ones.
        self.opaque = dict[str, int](
            Counter(exact_name(type(walk.order[number])) for number in walk.opaque)
        )
        self.abstract = tuple(walk.abstract)
        self.names_of_code = frozenset(
            names_in(o) for o in self._inside if type(o) is types.CodeType
        )
        # In the records of each form.
        walk.functions, walk.abstract = [], []

    def _defers(self, o: Any) -> bool:
        """Return True if an object is described in each form, not here."""
        kind = type(o)
        changed = self._changed
        if id(o) in changed.level or id(o) in changed.observable:
            return True
        if id(kind) in _SETS:
            return not all(map(_is_plain, o))
        if issubclass(kind, type) and is_named(self._walk, o):
            return False
        return not is_scanned(self._walk, o)

    def _add_children(self, at: int) -> int:
        """Add children of deferred objects from that one on; return their number."""
        walk = self._walk
        while at < len(walk.deferred):
            o = walk.order[walk.deferred[at]]
            at += 1
            if o is not PLACEHOLDER:
                children = self._add_children_of(o)
                if children:
                    self._children.append((o, children))
        return at

    def _add_children_of(self, o: Any) -> frozenset[int]:
        """Add children of an object that is not here, as its level allows."""
        walk = self._walk
        level = self._changed.level.get(id(o), ALL)
        if level == NONE:
            return frozenset()
        own = map(id, attribute_dicts(walk, o))
        left_out = self._changed.observable.union(own)
        children = [
            child
            for child in children_of(o)
            if id(child) in self._met
            and id(child) not in left_out
            and (level == ALL or _is_definition(child))
        ]
        done = len(walk.order)
        for child in children:
            walk.emit(child)
        if level == ALL and type(o) is types.FunctionType:
            write_reads(walk, o)
        walk.describe_from(done)
        return frozenset(map(id, children))

    def _add_lasting_of(self, o: Any) -> None:
        """Add what an object that is not held refers to and is the same in each system.

        That are classes and functions that are found by their names, and objects that
        are older than each system.  Of a function that is found by its name the code
        and the globals that it reads are added as well.
        """
        walk, changed = self._walk, self._changed
        done = len(walk.order)
        for child in children_of(o):
            if id(child) in self._met and id(child) not in changed.observable:
                name = self._name_of(child)
                if name is not None:
                    self._found.append((name, child))
                older = id(child) in self._older and is_scanned(walk, child)
                if name is not None or older:
                    walk.emit(child)
        if (
            type(o) is types.FunctionType
            and changed.level.get(id(o)) != NONE
            and id(o.__code__) not in changed.observable
            and self._name_of(o) is not None
        ):
            self._codes[id(o)] = id(o.__code__)
            walk.emit(o.__code__)
            write_reads(walk, o)
        walk.describe_from(done)

    def _name_of(self, o: Any) -> tuple[str, str] | None:
        """Return the module and the name by which a class or a function is found."""
        kind = type(o)
        if kind is types.FunctionType:
            module, name = o.__module__, o.__qualname__
        elif issubclass(kind, type):
            module, name = module_of(o), qualname_of(o)
        else:
            return None
        if type(module) is not str or type(name) is not str:
            return None
        found = (module, name) not in self._changed.rebound
        return (module, name) if found and resolve(module, name) is o else None

    def _prepare(self) -> None:
        walk = self._walk
        self._spaces = [
            (space.values, list(space.values))
            for space in walk.spaces.values()
            if "*" in space.done and (id(space.values), "*") not in self._changed.names
        ]
        triples = {
            (id(values), name): (values, name, value)
            for values, name, value in chain(
                walk.read_names, *map(lookups_of, walk.resolved)
            )
        }
        self._dicts = [values for values, _, _ in triples.values()]
        self._keys = [name for _, name, _ in triples.values()]
        self._values = [value for _, _, value in triples.values()]
        self._empty = [each for _, each in walk.empty]
        self._ints = [walk.out[place][0] for place in walk.addresses]
        self._watched = frozenset((*self._ints, *map(id, self._empty)))
        classes = [o for o in self._inside if issubclass(type(o), type)]
        self._abstract = [each for each in classes if is_abstract(each)]
        self._verified = frozenset(map(id, classes))
        # Types of which it is known whether their plans may be used in other walks.  A
        # plan holds its type; a type with another reader may end, and its id be used
        # again.
        self._planned = set(walk.plans)
        walk.readers = HANDLERS | {
            kind: reader
            for kind, reader in walk.readers.items()
            if type(reader) is InstancePlan
        }
        self._named = [
            (o, module_of(o), qualname_of(o))
            for o in map(walk.order.__getitem__, walk.outside)
            if issubclass(type(o), type) and changeable(o)
        ]
        sets = map(walk.order.__getitem__, walk.sets)
        self._room = [(o, room_of(o)) for o in sets]
        # The instances and classes that the dicts of attributes belong to.
        self._owners: dict[int, Any] = {}
        dicts = []
        for o in self._inside:
            for each in attribute_dicts(walk, o):
                self._owners[id(each)] = o
                dicts.append(each)
        self._detector = ChangeDetector([*self._inside, *dicts])
        self.members = frozenset(walk.seen) - {
            id(walk.order[number]) for number in walk.outside
        }
        # What waits for the end of a walk would be lost.
        self.is_whole = not walk.waiting and not walk.groups
        # Their values are in `_dicts`, and the tokens are the same in each form.
        walk.read_names, walk.resolved = [], []
        walk.out, walk.orders, walk.variants = [], [], []
        walk.addresses, walk.empty = [], []
        self._postponed = [
            (id(space.values), name, builtin_space)
            for space, name, builtin_space in walk.postponed
        ]

    def open(self, lasting: Mapping[str, object]) -> HeapWalk:
        """Return a walk that continues from here, with all deferred parts."""
        mine = self._walk
        walk = HeapWalk(mine.scope, mine.ignoring)
        walk.is_partial, walk.irregular = True, mine.irregular
        walk.order = mine.order[:]
        walk.seen = mine.seen.copy()
        walk.opaque = mine.opaque[:]
        walk.sets = mine.sets[:]
        walk.outside = mine.outside[:]
        walk.inside = mine.inside
        walk.plans, walk.readers = mine.plans.copy(), mine.readers.copy()
        walk.weak = mine.weak
        walk.omitted, walk.named = mine.omitted[:], mine.named
        walk.described = self.done
        walk.spaces = {
            key: Space(space.number, space.values, space.done.copy())
            for key, space in mine.spaces.items()
        }
        walk.reopen(
            self.deferred,
            self._postponed,
            {
                name: root
                for name, root in lasting.items()
                if name in self._changed.roots or id(root) in self._changed.observable
            },
        )
        for each in self._abstract:
            write_answers(walk, each)
        return walk

    def close(self, walk: HeapWalk) -> None:
        """Write how values and empty dicts of this part refer to other objects."""
        find, done = walk.seen.get, self.done
        # Ids of later objects are the last ones of a dict.
        later = islice(reversed(walk.seen), len(walk.seen) - len(self._walk.seen))
        some = not self._watched.isdisjoint(later)
        for kind, numbers in (
            ("addresses", map(find, self._ints if some else ())),
            ("empty", map(find, map(id, self._empty if some else ()))),
        ):
            late = [
                (at, number)
                for at, number in enumerate(numbers)
                if number is not None and number >= done
            ]
            if late:
                walk.out += (kind, *late)
        more = len(walk.plans) - len(self._walk.plans)
        for plan in list(islice(reversed(walk.plans.values()), more)):
            if id(plan.kind) not in self._planned:
                self._planned.add(id(plan.kind))
                if has_lasting_plan(plan.kind, self._verified):
                    self._walk.plans[id(plan.kind)] = plan
                    reader = walk.readers.get(id(plan.kind))
                    if reader is plan:
                        self._walk.readers[id(plan.kind)] = plan

    def holds(self, o: Any) -> bool:
        """Return True if an object is in this part, and not deferred."""
        return id(o) in self._walk.seen and id(o) not in self._changed.observable

    # Verification

    def is_valid(self, lasting: Mapping[str, object]) -> bool:
        """Return True if all objects are as they were described."""
        roots = self._changed.roots
        return (
            list(lasting) == self._names
            and (
                all(map(operator.is_, lasting.values(), self._roots))
                or all(
                    new is old or name in roots
                    for (name, new), old in zip(
                        lasting.items(), self._roots, strict=True
                    )
                )
            )
            and all(
                map(
                    operator.is_,
                    map(dict.get, self._dicts, self._keys, repeat(ABSENT)),
                    self._values,
                )
            )
            and not any(self._empty)
            and all(list(values) == names for values, names in self._spaces)
            and all(
                module_of(kind) == module and qualname_of(kind) is name
                for kind, module, name in self._named
            )
            and self._detector.unchanged()
            and all(room_of(o) == room for o, room in self._room)
            and all(
                children <= set(map(id, children_of(o)))
                for o, children in self._children
            )
        )

    def lost(self, walk: HeapWalk) -> bool:
        """Return True if what objects that are not held refer to is not as it was.

        `walk` is one that began here, and is complete.  What differs is recorded.
        """
        rebound = {
            (module, name)
            for (module, name), o in self._found
            if resolve(module, name) is not o
        }
        self._changed.rebound |= rebound
        lost = bool(rebound)
        for function, code in self._codes.items():
            number = walk.seen.get(function)
            o = None if number is None else walk.order[number]
            if type(o) is types.FunctionType and id(o.__code__) != code:
                lost = True
                self._changed.level[function] = NONE
        return lost

    def learn(self, lasting: Mapping[str, object]) -> None:
        """Add to the changed parts what is not as it was."""
        changed, unknown = self._changed, False
        if list(lasting) != self._names:
            changed.everything = True
            return
        changed.roots |= {
            name
            for (name, new), old in zip(lasting.items(), self._roots, strict=True)
            if new is not old
        }
        for values, name, old in zip(
            self._dicts, self._keys, self._values, strict=True
        ):
            if dict.get(values, name, ABSENT) is not old:
                new = dict.get(values, name)
                known = id(values) in self._walk.spaces
                if not known or _is_module(old) or _is_module(new):
                    unknown = True  # what was named by it is unknown
                else:
                    changed.names.add((id(values), name))
        for values, names in self._spaces:
            if list(values) != names:
                changed.names.add((id(values), "*"))
        for kind, module, name in self._named:
            if module_of(kind) != module or qualname_of(kind) is not name:
                unknown = True
        filled = {id(each) for each in self._empty if each}
        if filled:
            for o in self._inside:
                if type(o) is types.FunctionType and not filled.isdisjoint(
                    map(id, gc.get_referents(o))
                ):
                    self._raise(o)
        for o in self._detector.changed():
            self._raise(self._owners.get(id(o), o))
        for o, room in self._room:
            if room_of(o) != room:
                self._raise(o)
        for o, children in self._children:
            if not children <= set(map(id, children_of(o))):
                self._raise(o, changed.level.get(id(o), ALL))
        if unknown and not self._has_unknown:
            self._has_unknown = True
            changed.unknown()

    def _raise(self, o: object, least: int = 0) -> None:
        """Defer an object; if it was deferred before, with fewer children."""
        if id(o) not in self._raised:
            self._raised.add(id(o))
            level = self._changed.level
            level[id(o)] = min(max(level.get(id(o), 0), least) + 1, NONE)

    # Lifetimes

    def targets(self, walk: HeapWalk) -> set[int]:
        """Return the held objects that a weak reference refers to, by id."""
        live = (_target_of(each) for each in walk.references)
        return {
            id(target)
            for target in live
            if target is not None
            and not is_permanent(target)
            and walk.seen.get(id(target), self.done) < self.done
        }

    def releases(self, walk: HeapWalk, *, late: bool = False) -> bool:
        """Return True if it holds nothing whose lifetime may be observable.

        Else what must not be held is added to the changed parts.  `walk` is one that
        began here, and is complete; it is `late` if other states were read before.
        """
        changed = self._changed
        seeds = {
            id(o)
            for o in self.deferred
            if id(o) in changed.observable
            or (
                id(type(o)) not in _HARMLESS
                and not is_permanent(o)
                and not owns_memory_only(self._walk, o)
            )
        }
        seeds.update(self.targets(walk))
        if not seeds:
            return True
        owners = [*self._inside, *self.deferred]
        observable, permanent = holders_of(seeds, owners)
        for each in permanent:
            changed.level.setdefault(id(each), ALL)
        if late:
            observable |= alike(observable, owners, self._roots)
        for values, name, value in zip(
            self._dicts, self._keys, self._values, strict=True
        ):
            if id(value) in observable:
                changed.names.add((id(values), name))
        changed.observable |= observable
        return False


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind is int:
        return bool(value & 7) or value < LOWEST_ADDRESS
    return id(kind) in ATOM_IDS and bool(value == value)


def _is_module(o: object) -> bool:
    return issubclass(type(o), types.ModuleType)


def _is_definition(o: Any) -> bool:
    return issubclass(type(o), type) or type(o) in _DEFINED
