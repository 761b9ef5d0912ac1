"""Containers that record their accesses behave as real ones, and miss none of them."""

import copy
import json
import operator
import pickle
from collections import defaultdict
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, ClassVar

import pytest

from everyorder.harness.engine.independence import EVERY
from everyorder.harness.state.keyed import is_stable, replace_containers, take


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    take()
    yield
    take()


def keyed(content: Any) -> Any:
    return replace_containers(content)[0]


# Drawn without Hypothesis, whose records of collections other tests here would see.
KEYS = ("a", "b", 1, True, None, ("a", 1))
OF_ONE_KEY = ("__getitem__", "__contains__", "get", "pop")
SETTING = ("__setitem__", "setdefault", "pop")
WHOLE = ("__len__", "copy", "clear", "popitem", "__repr__")
OF_A_SET = ("add", "discard", "remove", "__contains__")


def dict_of(random: Random) -> dict[Any, int]:
    return {key: random.randrange(9) for key in random.sample(KEYS, 3)}


def dict_call(random: Random) -> tuple[Any, ...]:
    key = random.choice(KEYS)
    return random.choice(
        [
            (random.choice(OF_ONE_KEY), key),
            (random.choice(SETTING), key, random.randrange(9)),
            (random.choice(WHOLE),),
            (random.choice(("update", "__or__", "__eq__")), dict_of(random)),
        ]
    )


def set_call(random: Random) -> tuple[Any, ...]:
    return random.choice(
        [
            (random.choice(OF_A_SET), random.choice(KEYS)),
            (random.choice(("__len__", "copy", "clear")),),
            (random.choice(("__or__", "__le__", "update")), {*dict_of(random)}),
        ]
    )


def called(target: Any, name: str, *arguments: Any) -> Any:
    try:
        return getattr(target, name)(*arguments)
    except Exception as error:
        return repr(error)


@pytest.mark.parametrize("seed", range(20))
def test_a_keyed_dict_answers_as_a_dict(seed: int) -> None:
    random = Random(seed)
    start = dict_of(random)
    real, stand_in = {**start}, keyed({**start})
    for _ in range(200):
        call = dict_call(random)
        assert called(stand_in, *call) == called(real, *call)
    assert [*stand_in.items()] == [*real.items()]


@pytest.mark.parametrize("seed", range(20))
def test_a_keyed_set_answers_as_a_set(seed: int) -> None:
    random = Random(seed)
    start = {*dict_of(random)}
    real, stand_in = {*start}, keyed({*start})
    for _ in range(200):
        call = set_call(random)
        assert called(stand_in, *call) == called(real, *call)
    assert {*stand_in} == real


def test_a_keyed_default_dict_writes_what_it_makes() -> None:
    handlers = keyed(defaultdict(list))
    handlers["a"].append(1)
    place = frozenset({("registry", "a")})
    assert take() == (place, place)
    assert handlers["a"] == [1]
    assert take() == (place, frozenset())
    assert handlers.get("b") is None
    assert "b" not in handlers
    assert isinstance(handlers, defaultdict)
    assert handlers.default_factory is list


# Each way to see more than one entry of a dict.
WAYS: dict[str, Callable[[Any], object]] = {
    "len": len,
    "bool": bool,
    "list": list,
    "sorted": sorted,
    "unpacked": lambda each: [*each],
    "merged": lambda each: {**each},
    "keywords": lambda each: dict(**each),
    "dict": dict,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "repr": repr,
    "format": lambda each: f"{each}",
    "equal": lambda each: each == {"a": 1},
    "equal, right": lambda each: {"a": 1} == each,  # noqa: SIM300 - the other side
    "union": lambda each: each | {},
    "union, right": lambda each: {} | each,
    "keys": lambda each: each.keys(),
    "values": lambda each: each.values(),
    "items": lambda each: each.items(),
    "popitem": lambda each: each.popitem(),
    "clear": lambda each: each.clear(),
    "update of another": lambda each: {}.update(each),
    "size": lambda each: each.__sizeof__(),
    "length_hint": operator.length_hint,
    "reversed": reversed,
    "by its class": lambda each: type(each).__len__(each),
    "key object": lambda each: each.get(object()),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_sees_several_entries_touches_all(way: str) -> None:
    plugins = keyed({"a": 1, "b": 2})
    WAYS[way](plugins)
    touched, _ = take()
    assert ("registry", EVERY) in touched


# What reads a real dict without its methods.
DIRECTLY: dict[str, Callable[[Any], object]] = {
    "json": json.dumps,
    "dict.__len__": dict.__len__,
    "dict.items": dict.items,
    "exec": lambda each: exec("a", each),
    "class body": lambda each: type("Made", (), each),
}


@pytest.mark.parametrize("way", DIRECTLY)
def test_what_bypasses_the_methods_fails(way: str) -> None:
    DIRECTLY[way]({"a": 1, "b": 2})
    with pytest.raises(TypeError):
        DIRECTLY[way](keyed({"a": 1, "b": 2}))


def test_single_keys_are_places() -> None:
    plugins = keyed({"a": 1})
    plugins["b"] = 2
    assert "c" in plugins or plugins.get("a") == 1
    touched, written = take()
    assert touched == {("registry", "a"), ("registry", "b"), ("registry", "c")}
    assert written == {("registry", "b")}


class Own:
    pass


class Meta(type):
    def __eq__(cls, other: object) -> bool:
        return isinstance(other, Meta)

    def __hash__(cls) -> int:
        return 1


class Hashed(metaclass=Meta):
    pass


class Text(str):
    __slots__ = ()


def test_a_key_names_one_place_or_none() -> None:
    local = type("Local", (), {})
    stable: list[object] = ["a", 1, None, b"", ("a", (1, Own)), Own, keyed]
    others: list[object] = [Own(), local, lambda: 0, Text("a"), Hashed, ("a", Own())]
    assert all(map(is_stable, stable))
    assert not any(map(is_stable, [*others, 1.5, complex("nan")]))


class Part:
    def __init__(self) -> None:
        self.inner: dict[str, int] = {}


class Holder:
    __slots__ = ("__dict__", "__weakref__", "slot", "unset")

    shared: ClassVar[dict[str, int]] = {}

    def __init__(self) -> None:
        self.slot: set[str] = set()
        self.plain: dict[str, int] = {}
        self.one: dict[str, int] = {}
        self.other = self.one
        self.views: dict[str, int] = {}
        self.view = self.views.keys()
        self.methods: dict[str, int] = {}
        self.method = self.methods.get
        self.part = Part()
        self.back = self
        self.subclass = type("Special", (dict,), {})()
        self.factory: defaultdict[str, Part] = defaultdict(Part)


def test_only_containers_with_one_reference_are_replaced() -> None:
    holder, containers = replace_containers(Holder())
    paths = {"registry.plain", "registry.slot", "registry.part.inner"}
    assert {each.container.path for each in containers} == paths
    assert type(holder.factory) is defaultdict
    assert type(holder.one) is type(holder.views) is type(holder.methods) is dict
    assert type(Holder.shared) is dict


def test_real_containers_are_given_back() -> None:
    real = Holder()
    plain, slot = real.plain, real.slot
    holder, replaced = replace_containers(real)
    holder.plain["a"] = 1
    holder.slot = other = {"b"}
    del holder.part.inner
    for each in replaced:
        each.undo()
    assert holder.plain is plain
    assert plain == {"a": 1}
    assert holder.slot is other is not slot
    assert not vars(holder.part)


def test_classes_modules_and_foreign_objects_are_left_alone() -> None:
    others: list[object] = [Holder, json, [{}], 1, None, keyed]
    for other in others:
        assert replace_containers(other) == (other, ())
