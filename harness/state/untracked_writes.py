"""Detect writes outside the tracked state; report the shortest path to each.

The canonical form follows the packages of a registry.  An operation may also write in
other places (a table of another package, the environment).  That is checked from
outside: every container that `sys.modules` reaches is fingerprinted before and after,
and so is the state of this thread that no container shows.

Rules:
- a scan runs no user code, and a snapshot keeps no object alive whose lifetime is
  observable;
- members of the followed state are not entered: their changes are seen there;
- noise is data (`noise.py`), each entry with its reason: values that are functions of
  their inputs, and the observing tools, unless operations name them; a name that is
  bound in a module of an observing tool, or an attribute that one of its functions is
  given, is reported all the same (`container_changes.py`);
- if equality cannot be established, a change is reported.

How it works: as long as a scan meets the same references as the one before, it reuses
the places of the next containers (`scan.py`); the usual case, that nothing changed, is
detected that way.  Otherwise the levels of a new scan are expanded and compared from
the root, only along references that are in both scans: a new object at the address of
another one is a change of its referrer, and of nothing else.  Rebinding a name to an
equal value, or to an equal tuple of the same members, is not a change.

Not detected: an attribute that moved to another name of the same object with the same
value (a moved slot is detected); C objects without referents and accessor, whose
methods `c_call_audit.py` reports.
"""

import functools
import gc
import operator
import sys
import types
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any, TypeAlias

from everyorder.harness.engine.protocol import Caveat
from everyorder.harness.state.c_state import (
    ClassToken,
    context_values,
    thread_state,
    variables,
)
from everyorder.harness.state.container_changes import (
    Bindings,
    ContainerNode,
    ContainerTable,
    bindings,
    rebound_names,
    reference,
    shortest_path,
)
from everyorder.harness.state.noise import (
    NOISE_MODULES,
    NOISE_UNLESS_NAMED,
    is_noise_attribute,
    is_noise_of_class,
    is_noise_path,
)
from everyorder.harness.state.scan import (
    Level,
    Rescan,
    Scan,
    comparable,
    rescan,
)
from everyorder.harness.state.scope import package_of

# The number of changes that are reported one by one.
_MOST_CAVEATS = 20
# Up to this many differences, the path to each is searched by itself.
_FEW = 40

# Containers without an order, or with one that only decides which entry to drop first.
_UNORDERED = frozenset(map(id, (set, frozenset, functools._lru_cache_wrapper)))
# Containers that are indistinguishable from equal ones.
_IMMUTABLE = frozenset(map(id, (tuple, types.MethodType)))
_DICT, _FUNCTION = id(dict), id(types.FunctionType)
# Annotations, before and after they were read.
_LOOKED_AT = (id(tuple), _DICT)

_Ids: TypeAlias = tuple[int, ...]
_Pair: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Snapshot:
    """The result of a scan; it keeps no object alive whose lifetime is observable."""

    roots: tuple[int, ...]
    levels: tuple[Level, ...]
    values: tuple[Any, ...]
    thread: Mapping[str, Hashable]
    variables: Mapping[int, tuple[str, Hashable]]
    bindings: Bindings
    met: frozenset[int]
    onlookers: frozenset[str]

    def rescan(self, roots: list[Any], extent: "Extent") -> Rescan | None:
        """Return the cached scan of these roots, or None."""
        excluded = extent.members
        if (
            self.roots == tuple(map(id, roots))
            and self.met <= excluded
            and self.onlookers == extent.onlookers
            and self.table.places.keys().isdisjoint(excluded)
        ):
            return rescan(roots, self.levels, self.table.places, excluded)
        return None

    @functools.cached_property
    def table(self) -> ContainerTable:
        """Return the containers by their ids."""
        return ContainerTable(self.levels)

    @functools.cached_property
    def by_id(self) -> dict[int, Any]:
        """Return the values by their ids."""
        return {id(value): value for value in self.values}

    @property
    def containers(self) -> int:
        """Return the number of containers."""
        return sum(len(level.nodes) for level in self.levels)


@dataclass(frozen=True, slots=True)
class Extent:
    """The limits of the followed state.

    `members` are the ids of its objects; `names` are the single names that are followed
    in a namespace that is not, as (id of the dict, name); `modules` are those that it
    names without following them, and `noise` the paths of noise that its code names.
    """

    members: frozenset[int] = frozenset()
    names: frozenset[tuple[int, str]] = frozenset()
    modules: frozenset[str] = frozenset()
    noise: frozenset[str] = frozenset()

    def includes(self, space: int, name: str) -> bool:
        """Return True if a name of a namespace, or of a class, is followed."""
        return space in self.members or (space, name) in self.names

    @property
    def onlookers(self) -> frozenset[str]:
        """Return the observing modules that the followed state does not name."""
        return frozenset(filter(self.ignores, NOISE_UNLESS_NAMED))

    def ignores(self, module: str) -> bool:
        """Return True if changes of objects of a module are not reported."""
        if _is_noise(module):
            return True
        package = package_of(module)
        looks_on = module in NOISE_UNLESS_NAMED or package in NOISE_UNLESS_NAMED
        return looks_on and not any(
            each == package or each.startswith(f"{package}.") for each in self.modules
        )


class Boundary:
    """Reports changes of objects that modules reach and that are not followed.

    `extent` is called at every scan for the limits of the followed state.
    """

    def __init__(self, extent: Callable[[], Extent]) -> None:
        self._extent = extent

    def snapshot(self) -> Snapshot:
        """Return all containers outside of the followed state, as they are now."""
        values, extent = context_values(), self._extent()
        return _snapshot(_roots(values), _scan(values, extent), extent)

    def changes(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Return paths of later changes, shortest first; `imports NAME` for modules.

        State of this thread outside of containers is reported in words.
        """
        return self.compare(snapshot)[0]

    def compare(self, snapshot: Snapshot) -> tuple[tuple[str, ...], Snapshot]:
        """Return the changes, as `changes` does, and a new snapshot."""
        collecting = gc.isenabled()
        gc.disable()  # finalizers would run during the scan
        try:
            return self._compare(snapshot)
        finally:
            if collecting:
                gc.enable()

    def _compare(self, snapshot: Snapshot) -> tuple[tuple[str, ...], Snapshot]:
        values, extent = context_values(), self._extent()
        roots = _roots(values)
        second = snapshot.rescan(roots, extent)
        if second is None:
            scan = _scan(values, extent)
            now, objects = _snapshot(roots, scan, extent), scan.objects
        else:
            now = replace(
                snapshot,
                levels=second.levels,
                values=snapshot.values + second.values,
                thread=thread_state(),
                variables=variables(extent.members),
                bindings=bindings(extent.ignores, snapshot.bindings),
                met=snapshot.met | second.met,
            )
            objects = {}
        changes = _other_changes(snapshot, now, extent)
        if second is not None and all(
            map(operator.is_, second.levels, snapshot.levels)
        ):
            # Without changes, the old snapshot has its table already.
            return tuple(dict.fromkeys(changes)), now if changes else snapshot
        if second is not None:
            nodes = chain.from_iterable(each.nodes for each in second.levels)
            objects = dict(
                zip(nodes, chain.from_iterable(second.containers), strict=True)
            )
        changes += _ScanComparison(snapshot, now, objects, values, extent).changes()
        now.table.forget()
        return tuple(dict.fromkeys(changes)), now


def _roots(values: Mapping[str, Any]) -> list[Any]:
    return [sys.modules, *values.values()]


def _scan(values: Mapping[str, Any], extent: Extent) -> Scan:
    return Scan(_roots(values), extent.members, extent.ignores)


def _snapshot(roots: list[Any], scan: Scan, extent: Extent) -> Snapshot:
    return Snapshot(
        tuple(map(id, roots)),
        tuple(scan.levels),
        tuple(scan.values),
        thread_state(),
        variables(extent.members),
        bindings(extent.ignores, None),
        scan.met,
        extent.onlookers,
    )


def _other_changes(before: Snapshot, now: Snapshot, extent: Extent) -> list[str]:
    """Return the changes that no container shows, in words or as paths."""
    changes = [
        what
        for what in sorted(now.thread.keys() | before.thread.keys())
        if now.thread.get(what) != before.thread.get(what)
    ]
    was, new = before.variables, now.variables
    changes += [
        (new.get(each) or was[each])[0]
        for each in {**was, **new}
        if each not in extent.members and new.get(each) != was.get(each)
    ]
    return changes + [
        path
        for path, space in rebound_names(before.bindings, now.bindings)
        if not extent.includes(space, path.rpartition(".")[2])
    ]


def caveats(changes: tuple[str, ...]) -> tuple[Caveat, ...]:
    """Return a caveat for each of some changes."""
    caveats = [
        Caveat("outside", _sentence(change)) for change in changes[:_MOST_CAVEATS]
    ]
    if len(changes) > _MOST_CAVEATS:
        more = len(changes) - _MOST_CAVEATS
        caveats.append(
            Caveat("outside", f"{more} more changed outside of the followed state")
        )
    return tuple(caveats)


def _sentence(change: str) -> str:
    if change.startswith("imports "):
        return f"an operation {change}; import it before the registry is created"
    if change.startswith("the "):
        # A process for each fresh system would not help: the state is not visible
        # there.
        return f"{change} changed, which no object shows; let each operation restore it"
    return f"{change} changed outside of the followed state; name it in watch="


def _is_noise(module: str) -> bool:
    return module in NOISE_MODULES or package_of(module) in NOISE_MODULES


class _ScanComparison:
    """Two scans expanded and compared from the roots; see the module's docstring."""

    def __init__(
        self,
        snapshot: Snapshot,
        now: Snapshot,
        objects: Mapping[int, Any],
        roots: Mapping[str, Any],
        extent: Extent,
    ) -> None:
        self._levels = now.levels
        self._old, self._new = snapshot.table, now.table
        self._old_values, self._new_values = snapshot.by_id, now.by_id
        self._objects = objects
        self._extent = extent
        self._names = {id(value): path for path, value in roots.items()}
        self._names[id(sys.modules)] = ""
        # The referrer by which each container was reached.
        self._parents: dict[int, int | None] = dict.fromkeys(self._names)
        self._imported: set[int] = set()

    def changes(self) -> Iterator[str]:
        """Yield the paths of changes that are not noise."""
        different = self._new.differences(self._old)
        if len(different) <= _FEW and all(map(self._reach, different)):
            for now in different:
                yield from self._differences(now, self._old[now], self._new[now])
            return
        self._parents = dict.fromkeys(self._names)
        pairs = [(root, root) for root in self._names if root in self._new]
        changed = set(different)
        for before, now in pairs:  # grows while it is read: breadth first
            if before == now and now not in changed:
                shared = self._new.references(now)
                self._enter(now, zip(shared, shared, strict=True), pairs)
            else:
                old, new = self._old[before], self._new[now]
                yield from self._differences(now, old, new)
                self._enter(now, self._common(old, new), pairs)

    def _reach(self, now: int) -> bool:
        """Return True if a shortest path to a container is one that both scans have."""
        way = shortest_path(self._levels, now)
        for owner, child in pairwise(way):
            if owner not in self._old or child not in self._old.references(owner):
                return False
            self._parents.setdefault(child, owner)
        return True

    def _enter(
        self, owner: int, children: Iterable[tuple[int, int]], pairs: list[_Pair]
    ) -> None:
        for before, now in children:
            if now not in self._parents and now in self._new and before in self._old:
                self._parents[now] = owner
                pairs.append((before, now))

    def _common(self, old: ContainerNode, new: ContainerNode) -> Iterator[_Pair]:
        """Yield the common referents of two states of a container."""
        yield from self._pairs(old.slots, new.slots)
        yield from self._pairs(old.keys, new.keys)
        expanded = self._expanded(old, new)
        if expanded is not None:
            yield from self._pairs(old.slots, expanded)

    def _pairs(self, old: _Ids, new: _Ids) -> Iterator[_Pair]:
        for shared in set(old).intersection(new):
            yield shared, shared
        for before, now in zip(old, new, strict=False):
            if before != now and self._same(before, now):
                yield before, now

    def _same(self, before: int, now: int) -> bool:
        """Return True if two references have the same object, or equal constants."""
        if before == now:
            return True
        if before in self._old_values and now in self._new_values:
            return comparable(self._old_values[before]) == comparable(
                self._new_values[now]
            )
        kind = self._old.kind(before)
        return (
            kind in _IMMUTABLE
            and kind == self._new.kind(now)
            and self._all_same(self._old[before].slots, self._new[now].slots)
        )

    def _all_same(self, old: _Ids, new: _Ids) -> bool:
        return len(old) == len(new) and all(map(self._same, old, new))

    def _equal(self, old: ContainerNode, new: ContainerNode) -> bool:
        """Return True if a container is unchanged, as far as an answer could show."""
        if old.kind != new.kind or old.token != new.token:
            return False
        if old.kind in _UNORDERED:
            return self._counted(old.slots, self._old_values) == self._counted(
                new.slots, self._new_values
            )
        if not self._all_same(old.keys, new.keys):
            return False
        if self._all_same(old.slots, new.slots):
            return True
        expanded = self._expanded(old, new)
        return expanded is not None and self._all_same(old.slots, expanded)

    def _expanded(self, old: ContainerNode, new: ContainerNode) -> _Ids | None:
        """Return the references of an instance whose attributes are now a dict.

        Reading `__dict__` creates the dict, which only moves the references.  In the
        same way the annotations of a function are a tuple until they are read.
        """
        if old.kind == _FUNCTION:
            return self._annotated(old, new)
        for at, slot in enumerate(new.slots):
            if self._new.kind(slot) == _DICT and slot not in old.slots:
                inner = self._new[slot].slots
                return new.slots[:at] + inner + new.slots[at + 1 :]
        return None

    def _annotated(self, old: ContainerNode, new: ContainerNode) -> _Ids | None:
        if len(new.slots) == len(old.slots) + 1:
            # If there are none, reading them creates an empty dict.
            for at, slot in enumerate(new.slots):
                if self._new.kind(slot) == _DICT and not self._new[slot].keys:
                    return new.slots[:at] + new.slots[at + 1 :]
            return None
        for at, (before, now) in enumerate(zip(old.slots, new.slots, strict=False)):
            if (self._old.kind(before), self._new.kind(now)) == _LOOKED_AT:
                items = zip(self._new[now].keys, self._new[now].slots, strict=False)
                flat = tuple(chain.from_iterable(items))
                # The collector reads a tuple from its end.
                if self._old[before].slots in (flat, flat[::-1]):
                    return (*new.slots[:at], before, *new.slots[at + 1 :])
        return None

    @staticmethod
    def _counted(slots: _Ids, values: Mapping[int, Any]) -> Counter[Hashable]:
        return Counter(
            comparable(values[slot]) if slot in values else slot for slot in slots
        )

    def _differences(
        self, now: int, old: ContainerNode, new: ContainerNode
    ) -> Iterator[str]:
        """Yield the paths of changes in one container that are not noise."""
        if self._equal(old, new) or self._is_noise(now):
            return
        if now == id(sys.modules):
            paths = self._modules(old, new)
        elif new.kind == old.kind == _DICT and self._is_namespace(now):
            paths = self._attributes(now, old, new)
        elif issubclass(type(self._objects[now]), type) and old.token != new.token:
            paths = self._class_paths(now, old, new)
        else:
            paths = iter((self._path(now),))
        above = self._path(now)
        for path in paths:
            if path == above or not self._is_noise_name(now, path):
                yield path

    def _is_noise_name(self, now: int, path: str) -> bool:
        """Return True if a name of a namespace is bound to a value that is noise."""
        space, name = self._objects[now], path.rpartition(".")[2]
        if type(space) is not dict or name not in space:
            return False
        value = space[name]
        if is_noise_path(path, value, self._extent.noise):
            return True
        holder = self._parents[now]
        if holder is None:
            return False
        owner = self._objects[holder]
        if self._is_noise_of_class(owner, name, value):
            return True
        return is_noise_attribute(owner, name, value)

    def _modules(self, old: ContainerNode, new: ContainerNode) -> Iterator[str]:
        before, now = (
            self._items(old, self._old_values),
            self._items(new, self._new_values),
        )
        for name in now.keys() - before.keys():
            self._imported.add(now[name])
        for name in sorted(map(str, now.keys() - before.keys())):
            if not self._extent.ignores(name):
                yield f"imports {name}"
        for name in sorted(map(str, before.keys())):
            if name in now and before[name] == now[name]:
                continue
            if not self._extent.ignores(name):
                yield f"sys.modules[{name!r}]"

    def _attributes(
        self, now: int, old: ContainerNode, new: ContainerNode
    ) -> Iterator[str]:
        """Yield the names of a namespace that were bound, rebound or deleted."""
        owner = self._path(now)
        before, after = (
            self._items(old, self._old_values),
            self._items(new, self._new_values),
        )
        for name in sorted(map(str, before.keys() | after.keys())):
            if (
                name in before
                and name in after
                and self._same(before[name], after[name])
            ):
                continue
            if (now, name) in self._extent.names or after.get(name) in self._imported:
                continue
            yield f"{owner}.{name}"

    def _class_paths(
        self, now: int, old: ContainerNode, new: ContainerNode
    ) -> Iterator[str]:
        path = self._path(now)
        if not self._all_same(old.slots, new.slots):
            yield path
        before, after = ClassToken(*old.token), ClassToken(*new.token)  # type: ignore[misc]  # as every class has one
        if before.registered != after.registered:
            yield f"{path}.register"
        if before.subclasses != after.subclasses:
            yield f"{path}.__subclasses__"
        if (before.qualname, before.name) != (after.qualname, after.name):
            yield f"{path}.__name__"
        if before.flags != after.flags:
            yield f"{path}.__flags__"

    @staticmethod
    def _items(node: ContainerNode, values: Mapping[int, Any]) -> dict[Any, int]:
        """Return the items of a dict: keys (names as texts), ids of values."""
        keys = node.keys
        slots = node.slots
        if len(slots) == 2 * len(keys):
            # Not all keys are texts, so they are among the references.
            slots = slots[::2] if slots[1::2] == keys else slots[1::2]
        # Not strict: another thread may have written between reading keys and values.
        return {
            values.get(key, key): slot for key, slot in zip(keys, slots, strict=False)
        }

    def _is_namespace(self, now: int) -> bool:
        owner = self._parents[now]
        return (
            owner is not None
            and reference(self._objects[owner], self._objects[now]) == ""
        )

    def _is_noise(self, now: int) -> bool:
        """Return True if a container, or one that holds it, is noise."""
        at: int | None = now
        while at is not None:
            noise = self._extent.noise
            if is_noise_path(self._path(at), self._objects[at], noise):
                return True
            if self._is_noise_attribute(at):
                return True
            at = self._parents[at]
        return False

    def _is_noise_attribute(self, now: int) -> bool:
        owner = self._parents[now]
        if owner is None:
            return False
        namespace = type(self._objects[owner]) is dict and self._is_namespace(owner)
        name = reference(self._objects[owner], self._objects[now], namespace)
        holder = self._parents[owner] if namespace else owner
        assert holder is not None, "what refers to a namespace has been entered"
        owned = self._objects[holder]
        name, value = name.removeprefix("."), self._objects[now]
        if self._is_noise_of_class(owned, name, value):
            return True
        return is_noise_attribute(owned, name, value)

    def _is_noise_of_class(self, owner: Any, name: str, value: Any) -> bool:
        named = self._extent.noise
        return issubclass(type(owner), type) and is_noise_of_class(
            owner, name, value, named
        )

    def _path(self, now: int) -> str:
        """Return the shortest path that names a container."""
        way = [now]
        while (owner := self._parents[way[-1]]) is not None:
            way.append(owner)
        way.reverse()
        path = self._names[way[0]]
        namespace = False
        for owner, child in pairwise(way):
            step = reference(self._objects[owner], self._objects[child], namespace)
            namespace = step == ""
            path += step
        return path or "sys.modules"
