"""Forms are canonical: equal for isomorphic graphs, and for no others."""

import abc
import copyreg
import datetime
import enum
import functools
import gc
import itertools
import logging
import random
import re
import subprocess
import sys
import types
import weakref
from collections.abc import Callable
from contextvars import Context, ContextVar
from pathlib import Path
from typing import Any

import pytest

from everyorder.harness import Scenario, explore, step
from everyorder.harness.state import FollowedScope, Heap, differences
from tests.counting import calls_of

ROOT = Path(__file__).parent.parent.parent
SCOPE = FollowedScope(frozenset({__name__.partition(".")[0]}))


class Node:
    """An object that may refer to anything."""

    def __init__(self) -> None:
        self.links: list[Any] = []

    def method(self) -> None: ...


NODE = Node()
NODE.links.append(1)


class Slot:
    """An object with slots."""

    __slots__ = ("left", "right")


class Key:
    """An object that is a key by its address."""

    def __init__(self, name: str) -> None:
        self.name = name


def chain(length: int) -> Callable[[], Any]:
    def link(below: Any) -> Callable[[], Any]:
        return lambda: below

    top: Any = None
    for _ in range(length):
        top = link(top)
    return top  # type: ignore[no-any-return]  # a function unless it is empty


@pytest.mark.slow
def test_a_chain_of_closures_does_not_recurse() -> None:
    heap = Heap(SCOPE)
    one = heap.form({"handle": chain(100_000)})
    other = heap.form({"handle": chain(99_999)})
    # A function and a cell each, and what all have in common.
    assert one.objects - other.objects == 2
    assert one.blind != other.blind
    assert heap.form({"handle": chain(100_000)}) == one


LEAVES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -5, 1 << 40, (1 << 40) + 8, 1.5, -0.0, 0.0, 2j),
    *("", "a", "\u00e9", "\ud800", b"", b"a", (), ..., int, len),
)


def grow(seed: int, size: int) -> list[Any]:
    """Objects that refer to each other, made in an order that the seed chooses.

    What is referred to depends on the size alone, where things lie on the seed.
    """
    plan = random.Random(size)
    kinds = [plan.randrange(6) for _ in range(size)]
    makers: list[Callable[[], Any]] = [list, dict, Node, Slot, set, lambda: Key("k")]
    order = list(range(size))
    random.Random(seed).shuffle(order)
    ballast: list[Any] = []
    objects: list[Any] = [None] * size
    for place in order:
        ballast.append([None] * random.Random(seed + place).randrange(9))
        objects[place] = makers[kinds[place]]()
    steps: list[Callable[[], object]] = []

    def value() -> Any:
        if plan.random() < 0.5:
            return plan.choice(LEAVES)
        return objects[plan.randrange(size)]

    for place, o in enumerate(objects):
        for turn in range(plan.randrange(4)):
            held = value()
            steps.append(_linking(o, kinds[place], turn, held, objects))
    # Order counts in lists, so every object keeps its own; otherwise it does not.
    random.Random(seed).shuffle(steps) if not seed else None
    for perform in steps:
        perform()
    return objects


def _linking(
    o: Any, kind: int, turn: int, held: Any, objects: list[Any]
) -> Callable[[], object]:
    if kind == 0:
        return lambda: o.append(held)
    if kind == 1:
        return lambda: o.__setitem__(f"k{turn}", held)
    if kind == 2:
        return lambda: o.links.append(held)
    if kind == 3:
        return lambda: setattr(o, ("left", "right")[turn % 2], held)
    if kind == 4:
        fits = type(held) in (Node, Key, int, str, bytes, tuple, type(None))
        return lambda: o.add(held) if fits else None
    return lambda: setattr(o, f"a{turn}", held)


@pytest.mark.parametrize("size", [3, 7, 20, 60, 200])
@pytest.mark.parametrize("seed", range(1, 9))
def test_isomorphic_graphs_have_one_form(size: int, seed: int) -> None:
    heap = Heap(SCOPE)
    one = {"root": grow(seed, size)}
    other = {"root": grow(seed + 100, size)}
    form = heap.form(one)
    assert differences(heap.portrait(one), heap.portrait(other)) == ()
    assert heap.form(other) == form


@pytest.mark.parametrize("size", [3, 7, 20, 60])
@pytest.mark.parametrize("seed", range(12))
def test_every_single_change_shows(size: int, seed: int) -> None:
    heap = Heap(SCOPE)
    objects = grow(1, size)
    roots = {"root": objects}
    known = {heap.form(roots).exact}
    chance = random.Random(seed)
    for turn in range(40):
        _change(objects, chance, turn)
        form = heap.form(roots).exact
        assert form not in known
        known.add(form)


def _change(objects: list[Any], chance: random.Random, turn: int) -> None:
    """Something that never was before: `turn` makes the leaves fresh."""
    o = chance.choice(objects)
    held = chance.choice([turn + 1000, f"t{turn}", turn + 0.5, objects[0]])
    if held is objects[0]:
        held = [turn, objects[0]]
    kind = type(o)
    if kind is list:
        o.insert(chance.randrange(len(o) + 1), held)
    elif kind is dict:
        o[chance.choice(["k0", f"t{turn}"])] = held
    elif kind is Node:
        o.links.append(held)
    elif kind is Slot:
        setattr(o, chance.choice(["left", "right"]), held)
    elif kind is set:
        o.add(turn + 1000)
    else:
        o.name = held


def test_the_order_of_a_dict_belongs_to_the_exact_form_alone() -> None:
    heap = Heap(SCOPE)
    one = Key("")
    other = Key("")
    one.items = {"a": [1], "b": [2]}  # type: ignore[attr-defined]  # any attribute does
    other.items = {"b": [2], "a": [1]}  # type: ignore[attr-defined]  # any attribute does
    left, right = heap.form({"r": one}), heap.form({"r": other})
    assert left.blind == right.blind
    assert left.exact != right.exact
    assert differences(heap.portrait({"r": one}), heap.portrait({"r": other})) == (
        "order of r.items: 'a', 'b' / 'b', 'a'",
    )


def test_the_order_of_attributes_is_the_order_of_a_dict() -> None:
    heap = Heap(SCOPE)
    one, other = Key("a"), Key("a")
    one.x = one.y = 1  # type: ignore[attr-defined]  # any attribute does
    other.y = other.x = 1  # type: ignore[attr-defined]  # any attribute does
    left, right = heap.form({"r": one}), heap.form({"r": other})
    assert (left.blind == right.blind, left.exact == right.exact) == (True, False)


@pytest.mark.parametrize(
    "keys",
    [
        [1, 2, 3],
        ["a", 1, None, 2.5, b"x", True + 1, (), 10**30],
        [(1, 2), (2, 1), (1, "a"), frozenset({1})],
        [Key("a"), Key("b"), Key("c"), int, len],
        [types.SimpleNamespace, Node, Slot, "Node"],
        [list[int], list[str], int | str, int | None, type(None)],
        [Path("a"), Path("b"), datetime.date(1, 2, 3), datetime.date(1, 2, 4)],
        [functools.partial(len, "a"), functools.partial(len, "b"), [].append, {}.pop],
        [Node().method, NODE.method, re.compile("a"), re.compile("b")],
        [weakref.ref(Node), weakref.ref(Slot), weakref.WeakMethod(NODE.method)],
        [chain(1), chain(2), chain(3)],
    ],
)
def test_no_order_of_a_dict_shows_in_the_blind_form(keys: list[Any]) -> None:
    heap = Heap(SCOPE)
    chance = random.Random(1)
    blind, exact = set(), set()
    for _ in range(20):
        chance.shuffle(keys)
        form = heap.form({"r": {key: [str(type(key))] for key in keys}})
        blind.add(form.blind)
        exact.add(form.exact)
    assert len(blind) == 1
    assert len(exact) > 1


def test_members_of_a_set_have_no_order() -> None:
    """Objects that look alike are told apart by what else refers to them."""
    forms = set()
    heap = Heap(SCOPE)
    for seed in range(20):
        chance = random.Random(seed)
        members = [Node() for _ in range(6)]
        chance.shuffle(members)
        for left, right in itertools.pairwise(members):
            left.links.append(right)
        apart = set(members)
        forms.add(heap.form({"set": apart, "third": members[2]}))
    assert len(forms) == 1


def test_variables_of_one_name_have_no_order_in_a_context() -> None:
    """They are ordered by hashes of addresses, and told apart by other references."""
    heap = Heap(SCOPE)
    forms = set()
    orders = set()
    for _ in range(50):
        variables = [ContextVar[int]("limit") for _ in range(4)]
        context = Context()
        for variable in variables:
            context.run(variable.set, 7)
        forms.add(heap.form({"context": context, "third": variables[2]}))
        orders.add(tuple(map(variables.index, context)))
    assert len(forms) == 1
    assert len(orders) > 1
    context.run(variables[2].set, 8)
    assert heap.form({"context": context, "third": variables[2]}) not in forms


def test_members_that_look_alike_from_near_are_told_apart_from_afar() -> None:
    def deep(value: int) -> Node:
        top = last = Node()
        for _ in range(10):
            below = Node()
            last.links.append(below)
            last = below
        last.links.append(value)
        return top

    heap = Heap(SCOPE)
    forms = set()
    for seed in range(20):
        members = [deep(value) for value in range(6)]
        random.Random(seed).shuffle(members)
        forms.add(heap.form({"set": set(members)}))
    assert len(forms) == 1


def test_an_address_is_the_object_that_lies_there() -> None:
    heap = Heap(SCOPE)
    forms = set()
    for _ in range(10):
        keys = [Key("a"), Key("b")]
        by_id = {id(key): key for key in keys}
        forms.add(heap.form({"r": [by_id, {id(key) for key in keys}, id(keys[1])]}))
    assert len(forms) == 1


def test_what_proxies_point_at_is_looked_for_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Everything that lives is looked through for it, in seconds where much does."""
    targets = [Node() for _ in range(50)]
    heap, proxies = Heap(SCOPE), [weakref.proxy(each) for each in targets]
    looked: list[None] = []
    every = gc.get_objects

    def counted() -> list[Any]:
        looked.append(None)
        return every()

    monkeypatch.setattr(gc, "get_objects", counted)
    gc.freeze()  # what a collection leaves alone is not listed
    try:
        first = heap.form({"root": proxies})
        assert heap.form({"root": proxies}) == first
        assert len(looked) == 1
        targets[7].links.append(1)
        assert heap.form({"root": proxies}) != first
    finally:
        gc.unfreeze()
    assert heap.is_complete


def test_nothing_is_left_behind() -> None:
    target = Node()
    target.links.append({target, Slot()})
    held = weakref.WeakSet([target])
    generator = (each for each in [target])
    roots = {"a": target, "b": held, "c": generator}
    heap = Heap(SCOPE)
    heap.form(roots)
    heap.portrait(roots)
    objects = [target, target.links, target.links[0], Node, generator]
    before = [sys.getrefcount(each) for each in objects]
    for _ in range(3):
        heap.form(roots)
        heap.portrait(roots)
        heap.extent(roots)
    assert [sys.getrefcount(each) for each in objects] == before
    gone = weakref.ref(target)
    del target, roots, objects, generator
    gc.collect()
    assert gone() is None


def test_classes_made_on_the_way_are_not_kept() -> None:
    heap = Heap(SCOPE)
    made = type("Made", (), {"__module__": __name__, "f": lambda self: self})
    heap.form({"r": made()})
    gone = weakref.ref(made)
    del made
    gc.collect()
    assert gone() is None


def test_the_copy_that_locals_made_stays_what_it_was() -> None:
    def generate() -> Any:
        x = 1
        copy = locals()
        copy["mine"] = 2
        yield copy
        yield x

    generator = generate()
    copy = next(generator)
    Heap(SCOPE).form({"g": generator})
    assert copy["mine"] == 2


def test_a_running_generator_can_be_looked_at() -> None:
    forms = []

    def generate() -> Any:
        forms.append(heap.form({"g": generator}))
        yield

    heap = Heap(SCOPE)
    generator = generate()
    next(generator)
    assert forms != [heap.form({"g": generator})]


PROGRAM = """
import collections, enum, functools, sys
from everyorder.harness.state import FollowedScope, Heap

class Color(enum.Enum):
    RED = 1
    BLUE = 2

class Plugin:
    known = {"b", "a", "c"}
    def __init__(self, name):
        self.name = name
        self.tags = {name, "t", Color.RED, Color.BLUE}
    def run(self, x={"p": 1, "q": 2}):
        return x in {"u", "v", "w"}

class Registry:
    def __init__(self):
        self.items = {name: Plugin(name) for name in "xyz"}
        self.by_type = {Plugin: 1, Color: 2, str: 3}
        self.all = set(self.items.values())
        self.pairs = {("a", 1), ("b", 2), ("c", 3)}
        self.find = functools.lru_cache(self.items.get)
        self.find("x")

ballast = [object() for _ in range(int(sys.argv[1]))]
form = Heap(FollowedScope(frozenset({"__main__"}))).form({"r": Registry()})
print(form.blind.hex(), form.exact.hex(), form.objects)
"""


def test_another_process_with_another_hash_seed_gives_the_same() -> None:
    told = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM, str(seed * 1000)],
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(1, 5)
    }
    assert len(told) == 1


def test_a_weak_reference_in_reach_is_told() -> None:
    heap = Heap(SCOPE)
    target = Node()
    assert not heap.form({"r": [target]}).weak
    assert heap.form({"r": [target, weakref.ref(target)]}).weak
    assert heap.form({"r": weakref.WeakSet()}).weak

    class Final:
        def __del__(self) -> None:
            pass

    assert heap.form({"r": Final()}).weak


def asked(kind: Any, base: Any) -> bool:
    return issubclass(kind, base)


def test_what_an_abc_remembers_is_no_state_as_long_as_it_is_true() -> None:
    heap = Heap(SCOPE)
    base = abc.ABCMeta("Base", (), {"__module__": __name__})
    below = abc.ABCMeta("Below", (base,), {"__module__": __name__})
    above = type("Above", (), {"__module__": __name__})
    between: Any = type("Between", (above,), {"__module__": __name__})
    one: Any = type("One", (between,), {"__module__": __name__})
    other = type("Other", (), {"__module__": __name__})
    below.register(other)
    roots = {"r": [base, below, one, other]}
    before = heap.form(roots)
    assert not asked(one, base)
    assert asked(other, base)
    assert asked(below, base)
    assert heap.form(roots) == before
    between.__bases__ = (base,)
    assert not asked(one, base), "the answer of before is stale"
    stale = heap.form(roots)
    abc.ABCMeta("Any", (), {}).register(int)  # this makes all of them forget
    fresh = heap.form(roots)
    assert asked(one, base)
    assert heap.form(roots) == fresh
    assert len({before, stale, fresh}) == 3


def test_a_class_that_may_be_garbage_is_told() -> None:
    heap = Heap(SCOPE)

    class Base:
        pass

    assert not heap.form({"r": Base()}).weak
    type("Below", (Base,), {"__module__": __name__})
    assert heap.form({"r": Base()}).weak
    gc.collect()
    assert not heap.form({"r": Base()}).weak


def test_the_collector_keeps_still_during_a_walk() -> None:
    collected: list[Any] = []
    gc.callbacks.append(lambda phase, info: collected.append(phase))
    threshold = gc.get_threshold()
    roots = {"r": [[place] for place in range(5_000)]}
    gc.collect()
    gc.set_threshold(1)
    try:
        collected.clear()
        gc.disable()
        Heap(SCOPE).form(roots)
        assert not gc.isenabled()
        gc.enable()
        assert collected == []
        heap = Heap(SCOPE)
        heap.form(roots)
        assert gc.isenabled()
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.pop()


def test_members_are_all_objects_of_the_state() -> None:
    inner: list[Any] = [{}]
    node = Node()
    node.links = inner
    found = Heap(SCOPE).extent({"r": node}).members
    assert {id(each) for each in (node, node.__dict__, inner, inner[0], Node)} <= found


def test_what_is_a_mere_name_is_no_member() -> None:
    held = [subprocess, subprocess.Popen, subprocess.run, len, iter([1])]
    found = Heap(SCOPE).extent({"r": held}).members
    assert found == {id(held), id(held[4]), *map(id, held[4].__reduce__()[1])}


def test_globals_that_belong_to_the_state_are_told() -> None:
    read = Heap(SCOPE).extent({"r": grow}).names
    names = {"LEAVES", "Key", "Node", "Slot", "_linking", "random"}
    assert {name for space, name in read if space == id(globals())} >= names


def test_a_walk_costs_some_calls_an_object() -> None:
    """Ten times the objects, ten times the calls."""
    heap = Heap(SCOPE)

    def cost(size: int) -> int:
        roots = {"r": [Key(str(place)) for place in range(size)]}
        return calls_of(lambda: heap.form(roots))

    assert cost(20_000) < 11 * cost(2_000)


def test_what_is_called_at_an_end_is_state_of_what_ends() -> None:
    heap, one, other = Heap(SCOPE), Node(), Node()
    plain = heap.form({"one": one, "other": other})

    weakref.finalize(one, print, "ended").atexit = False
    once = heap.form({"one": one, "other": other})
    second = weakref.finalize(one, print, "ended")
    second.atexit = False
    twice = heap.form({"one": one, "other": other})
    second.detach()

    assert len({plain, once, twice}) == 3
    assert once.weak
    assert heap.form({"one": one, "other": other}) == once
    assert heap.form({"one": other, "other": one}) != once
    assert heap.form({"other": other}) == Heap(SCOPE).form({"other": Node()})


def test_caches_of_the_library_are_no_state() -> None:
    @functools.singledispatch
    def told(value: object) -> str:
        return "object"

    class Flag(enum.Flag):
        A = 1
        B = 2

    log = logging.getLogger("of a test")
    roots = {"told": told, "Flag": Flag, "log": log, "Node": Node}
    heap = Heap(FollowedScope(SCOPE.packages | {"logging"}))
    before = heap.form(roots)

    told(1)
    assert heap.form(roots) == before
    Flag.A | Flag.B
    assert (~Flag.A) is Flag.B
    assert heap.form(roots) == before
    log.debug("nothing")
    assert heap.form(roots) == before
    copyreg._slotnames(Node)  # type: ignore[attr-defined]  # pickle calls it

    assert heap.form(roots) == before

    told.register(int, lambda value: "int")
    assert heap.form(roots) != before
    log.setLevel(10)
    assert heap.form(roots) != before


def test_who_explores_is_no_state() -> None:
    made = Scenario(
        step("a", lambda registry: registry.append(1), undo=None),
        create=list,
        observe=repr,
    )
    heap = Heap(SCOPE)
    before = heap.form({"scenario": made})
    explore(made, strategy="walk:0")
    assert heap.form({"scenario": made}) == before
