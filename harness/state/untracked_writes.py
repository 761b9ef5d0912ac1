"""Which state changed that nobody follows, named by the shortest path to it.

The canonical form follows the packages of a registry.  Whether an operation also wrote
somewhere else (a table of another package, the environment) is checked from outside:
every container that `sys.modules` reaches is fingerprinted before and after, and so is
what this thread keeps where no container shows it.

Rules:
- a scan runs no user code, and a snapshot keeps nothing alive that anybody could miss;
- members of the followed state are not entered: what changes in them is seen there;
- noise is data, each entry with its reason: pure caches, and the tools that look on,
  unless operations name them; what is put in the place of a function there is told all
  the same (`containers.py`);
- what cannot be told to be the same is told as changed.

How it works: as long as a scan meets the same references as the one before, it knows
where the next containers stand (`scan.py`); that nothing changed, the usual case, is
found that way.  Otherwise the levels of a new scan are taken apart and compared from
the root, only along references that both scans know: an object that came to stand at
the address of another is a change of what refers to it, and of nothing else.  Rebinding
a name to an equal value, or to an equal tuple of the same members, is no change.

What it does not see: an attribute that moved to another name of the same object with
the same value (a slot that did is seen); buffers of more than 64 MB; C objects that
refer to nothing and have no accessor, whose methods `calls` tells.
"""

import enum
import functools
import gc
import operator
import sys
import types
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
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
from everyorder.harness.state.layout import mro_of
from everyorder.harness.state.scan import (
    Level,
    Rescan,
    Scan,
    class_name,
    comparable,
    rescan,
)
from everyorder.harness.state.scope import (
    NOISE_ATTRIBUTES,
    NOISE_MODULES,
    NOISE_OF_FLAGS,
    NOISE_PATHS,
    NOISE_UNLESS_NAMED,
    package_of,
)

# How many changes are told one by one.
_MOST_CAVEATS = 20
# Up to how many differences the way to each is looked for by itself.
_FEW = 40

# What refers to its members in no order, or in one that only says what to forget first.
_UNORDERED = frozenset(map(id, (set, frozenset, functools._lru_cache_wrapper)))
# What nobody can tell from an equal one.
_IMMUTABLE = frozenset(map(id, (tuple, types.MethodType)))
_DICT, _FUNCTION = id(dict), id(types.FunctionType)
# Annotations, before and after somebody looked at them.
_LOOKED_AT = (id(tuple), _DICT)

_Ids: TypeAlias = tuple[int, ...]
_Pair: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Snapshot:
    """What a scan saw; it keeps nothing alive that anybody could miss."""

    roots: tuple[int, ...]
    levels: tuple[Level, ...]
    values: tuple[Any, ...]
    thread: Mapping[str, Hashable]
    variables: Mapping[int, tuple[str, Hashable]]
    bindings: Bindings
    met: frozenset[int]
    onlookers: frozenset[str]

    def rescan(self, roots: list[Any], extent: "Extent") -> Rescan | None:
        """What a scan from these roots would see, if that can be had without one."""
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
        """The containers by their ids."""
        return ContainerTable(self.levels)

    @functools.cached_property
    def by_id(self) -> dict[int, Any]:
        """The values by their ids."""
        return {id(value): value for value in self.values}

    @property
    def containers(self) -> int:
        """How many containers were seen."""
        return sum(len(level.nodes) for level in self.levels)


@dataclass(frozen=True, slots=True)
class Extent:
    """How far the followed state goes.

    `members` are the ids of its objects; `names` are the single names that are followed
    of a namespace which is not, as (id of the dict, name); `modules` are those that it
    names without following them, and `noise` the paths of noise that its code names.
    """

    members: frozenset[int] = frozenset()
    names: frozenset[tuple[int, str]] = frozenset()
    modules: frozenset[str] = frozenset()
    noise: frozenset[str] = frozenset()

    def includes(self, space: int, name: str) -> bool:
        """Whether a name of a namespace, or of a class, is followed."""
        return space in self.members or (space, name) in self.names

    @property
    def onlookers(self) -> frozenset[str]:
        """What only looks on, as long as nobody names it."""
        return frozenset(filter(self.ignores, NOISE_UNLESS_NAMED))

    def ignores(self, module: str) -> bool:
        """Whether what belongs to a module may change unseen."""
        if _is_noise(module):
            return True
        package = package_of(module)
        looks_on = module in NOISE_UNLESS_NAMED or package in NOISE_UNLESS_NAMED
        return looks_on and not any(
            each == package or each.startswith(f"{package}.") for each in self.modules
        )


class Boundary:
    """Tells changes of what modules reach and nobody follows.

    `extent` is asked at every scan how far the followed state goes.
    """

    def __init__(self, extent: Callable[[], Extent]) -> None:
        self._extent = extent

    def snapshot(self) -> Snapshot:
        """All containers outside of the followed state, as they are now."""
        values, extent = context_values(), self._extent()
        return _snapshot(_roots(values), _scan(values, extent), extent)

    def changes(self, snapshot: Snapshot) -> tuple[str, ...]:
        """The paths of what changed since, shortest first; `imports NAME` for modules.

        What this thread keeps outside of containers is told in words.
        """
        return self.compare(snapshot)[0]

    def compare(self, snapshot: Snapshot) -> tuple[tuple[str, ...], Snapshot]:
        """What changed since, as `changes` tells it, and how everything is now."""
        collecting = gc.isenabled()
        gc.disable()  # finalizers would run in the middle of it
        try:
            return self._compare(snapshot)
        finally:
            if collecting:
                gc.enable()

    def _compare(self, snapshot: Snapshot) -> tuple[tuple[str, ...], Snapshot]:
        values, extent = context_values(), self._extent()
        roots = _roots(values)
        seen = snapshot.rescan(roots, extent)
        if seen is None:
            scan = _scan(values, extent)
            now, objects = _snapshot(roots, scan, extent), scan.objects
        else:
            now = replace(
                snapshot,
                levels=seen.levels,
                values=snapshot.values + seen.values,
                thread=thread_state(),
                variables=variables(extent.members),
                bindings=bindings(),
                met=snapshot.met | seen.met,
            )
            objects = {}
        told = _other_changes(snapshot, now, extent)
        if seen is not None and all(map(operator.is_, seen.levels, snapshot.levels)):
            # Without news it is the one which knows its containers.
            return tuple(dict.fromkeys(told)), now if told else snapshot
        if seen is not None:
            nodes = chain.from_iterable(each.nodes for each in seen.levels)
            objects = dict(
                zip(nodes, chain.from_iterable(seen.containers), strict=True)
            )
        told += _ScanComparison(snapshot, now, objects, values, extent).changes()
        now.table.forget()
        return tuple(dict.fromkeys(told)), now


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
        bindings(),
        scan.met,
        extent.onlookers,
    )


def _other_changes(before: Snapshot, now: Snapshot, extent: Extent) -> list[str]:
    """What changed that no container shows: words for it, or paths."""
    told = [
        what
        for what in sorted(now.thread.keys() | before.thread.keys())
        if now.thread.get(what) != before.thread.get(what)
    ]
    was, new = before.variables, now.variables
    told += [
        (new.get(each) or was[each])[0]
        for each in {**was, **new}
        if each not in extent.members and new.get(each) != was.get(each)
    ]
    return told + [
        path
        for path, space in rebound_names(before.bindings, now.bindings)
        if not extent.includes(space, path.rpartition(".")[2])
    ]


def caveats(changes: tuple[str, ...]) -> tuple[Caveat, ...]:
    """What stands between the states and a proof, for each of some changes."""
    told = [Caveat("outside", _sentence(change)) for change in changes[:_MOST_CAVEATS]]
    if len(changes) > _MOST_CAVEATS:
        more = len(changes) - _MOST_CAVEATS
        told.append(
            Caveat("outside", f"{more} more changed outside of what is followed")
        )
    return tuple(told)


def _sentence(change: str) -> str:
    if change.startswith("imports "):
        return f"an operation {change}; import it before the registry is created"
    if change.startswith("the "):
        # A process for each fresh system would not help: it is as unseen there.
        return f"{change} changed, which no object shows; let each operation restore it"
    return f"{change} changed outside of what is followed; name it in watch="


def _is_at_or_below(path: str, place: str) -> bool:
    return fnmatchcase(path, place) or fnmatchcase(path, f"{place}[.[<]*")


def _is_noise(module: str) -> bool:
    return module in NOISE_MODULES or package_of(module) in NOISE_MODULES


class _ScanComparison:
    """Two scans taken apart and compared from the roots; see the module's docstring."""

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
        # What each container was reached from.
        self._parents: dict[int, int | None] = dict.fromkeys(self._names)
        self._imported: set[int] = set()

    def changes(self) -> Iterator[str]:
        """The paths of what changed and is no noise."""
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
        """Whether a shortest way to a container is one that both scans know."""
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
        """What two states of a container both refer to."""
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
        """Whether two references are to the same object, or to equal constants."""
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
        """Whether a container is what it was, as far as an answer could tell."""
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
        """The references of an instance whose attributes became a dict meanwhile.

        Somebody looked at its `__dict__`, which changes nothing but where they stand.
        Likewise the annotations of a function are a tuple until somebody looks.
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
            # Where there are none an empty dict is made for whoever looks.
            for at, slot in enumerate(new.slots):
                if self._new.kind(slot) == _DICT and not self._new[slot].keys:
                    return new.slots[:at] + new.slots[at + 1 :]
            return None
        for at, (before, now) in enumerate(zip(old.slots, new.slots, strict=False)):
            if (self._old.kind(before), self._new.kind(now)) == _LOOKED_AT:
                items = zip(self._new[now].keys, self._new[now].slots, strict=False)
                flat = tuple(chain.from_iterable(items))
                # The collector looks at a tuple from its end.
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
        """The paths of what changed in one container and is no noise."""
        if self._equal(old, new) or self._is_noise_attribute(now):
            return
        if now == id(sys.modules):
            paths = self._modules(old, new)
        elif new.kind == old.kind == _DICT and self._is_namespace(now):
            paths = self._attributes(now, old, new)
        elif issubclass(type(self._objects[now]), type) and old.token != new.token:
            paths = self._class_paths(now, old, new)
        else:
            paths = iter((self._path(now),))
        for path in paths:
            noise = NOISE_PATHS.keys() - self._extent.noise
            if not any(_is_at_or_below(path, each) for each in noise):
                yield path

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
        """The names of a namespace that were bound, bound anew or deleted."""
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

    @staticmethod
    def _items(node: ContainerNode, values: Mapping[int, Any]) -> dict[Any, int]:
        """The items of a dict: keys (names as texts), ids of values."""
        keys = node.keys
        slots = node.slots
        if len(slots) == 2 * len(keys):
            # Not all keys are texts, so they are among the references.
            slots = slots[::2] if slots[1::2] == keys else slots[1::2]
        # Not strict: another thread may have written between one look and the next.
        return {
            values.get(key, key): slot for key, slot in zip(keys, slots, strict=False)
        }

    def _is_namespace(self, now: int) -> bool:
        owner = self._parents[now]
        return (
            owner is not None
            and reference(self._objects[owner], self._objects[now]) == ""
        )

    def _is_noise_attribute(self, now: int) -> bool:
        owner = self._parents[now]
        if owner is None:
            return False
        namespace = type(self._objects[owner]) is dict and self._is_namespace(owner)
        name = reference(self._objects[owner], self._objects[now], namespace)
        holder = self._parents[owner] if namespace else owner
        assert holder is not None, "what refers to a namespace has been entered"
        found = self._objects[holder]
        names = NOISE_ATTRIBUTES.get(class_name(type(found)), frozenset())
        if issubclass(type(found), type) and any(
            each is enum.Flag for each in mro_of(found)
        ):
            names |= NOISE_OF_FLAGS
        return name.removeprefix(".") in names

    def _path(self, now: int) -> str:
        """The shortest path that names a container."""
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
