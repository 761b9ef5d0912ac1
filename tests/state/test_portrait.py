"""Portraits are values, and their differences name the variable to fix."""

import functools
import pickle
import types
from collections.abc import Callable
from typing import Any

import pytest

from everyorder.harness.state import FollowedScope, Heap, Portrait, differences

SCOPE = FollowedScope(frozenset({__name__.partition(".")[0]}))


class Plugin:
    """An object with a name."""

    kind: Any = "plugin"

    def __init__(self, name: str) -> None:
        self.name = name


def as_json() -> str:
    return "{}"


TABLE: dict[str, Any] = {}


class Registry:
    """What the examples change."""

    def __init__(self) -> None:
        self._items: dict[Any, Any] = {"json": as_json}
        self._cache: dict[Any, Any] = {}
        self._list: list[Any] = [1, 2]
        self._plugin = Plugin("x")
        self._same: Any = self._items
        self._next_id = 17

    def find(self) -> Any:
        return TABLE


def portraits(change: Callable[[Any], object], root: Any = None) -> tuple[str, ...]:
    heap = Heap(SCOPE)
    registry = Registry() if root is None else root
    before = heap.portrait({"registry": registry})
    change(registry)
    return differences(before, heap.portrait({"registry": registry}))


def handle(index: int) -> Callable[[], int]:
    return lambda: index


MODULE = __name__

LINES: list[tuple[Callable[[Any], object], tuple[str, ...]]] = [
    (
        lambda r: r._cache.update(json=as_json),
        ("registry._cache['json']: <absent> / <function as_json>",),
    ),
    (lambda r: setattr(r, "_next_id", 18), ("registry._next_id: 17 / 18",)),
    (lambda r: setattr(r, "_next_id", "x"), ("registry._next_id: 17 / 'x'",)),
    (
        lambda r: r._list.append(Plugin("y")),
        ("registry._list[2]: <absent> / <Plugin>",),
    ),
    (lambda r: r._list.pop(), ("registry._list[1]: 2 / <absent>",)),
    (lambda r: setattr(r._plugin, "name", 1), ("registry._plugin.name: 'x' / 1",)),
    (lambda r: setattr(r, "_plugin", None), ("registry._plugin: <Plugin> / None",)),
    (
        lambda r: setattr(r, "_same", dict(r._items)),
        ("registry._same: <same as registry._items> / <dict of 1>",),
    ),
    (
        lambda r: setattr(r, "_list", {1}),
        ("registry._list: <list of 2> / <set>",),
    ),
    (
        lambda r: setattr(r, "_list", (1, 2)),
        ("registry._list: <list of 2> / <tuple of 2>",),
    ),
    (
        lambda r: r._items.clear(),
        ("registry._items['json']: <function as_json> / <absent>",),
    ),
    (
        lambda r: r._cache.update({Plugin: 1, int: 2, (1, "a"): 3, Plugin("z"): 4}),
        (
            "registry._cache[<class builtins.int>]: <absent> / 2",
            f"registry._cache[<class {__name__}.Plugin>]: <absent> / 1",
            "registry._cache[(1, 'a')]: <absent> / 3",
            "registry._cache[<Plugin name='z'>]: <absent> / 4",
        ),
    ),
    (
        lambda r: setattr(r, "_list", {Plugin("a"), Plugin("b"), 3}),
        ("registry._list: <list of 2> / <set>",),
    ),
    (lambda r: r.__dict__.pop("_next_id"), ("registry._next_id: 17 / <absent>",)),
]


@pytest.mark.parametrize(("change", "lines"), LINES, ids=[each[1][0] for each in LINES])
def test_a_difference_is_a_path_and_both_values(
    change: Callable[[Any], object], lines: tuple[str, ...]
) -> None:
    assert portraits(change) == lines


def test_a_fault_in_a_handle_names_its_variable() -> None:
    heap = Heap(SCOPE)
    one = heap.portrait({"handle of b": handle(0)})
    other = heap.portrait({"handle of b": handle(1)})
    assert differences(one, other) == ("handle of b.<index>: 0 / 1",)


def test_a_global_is_named_by_its_module() -> None:
    try:
        assert portraits(lambda _: TABLE.update(a=1)) == (
            f"{MODULE}.TABLE['a']: <absent> / 1",
        )
    finally:
        TABLE.clear()


def test_an_attribute_of_a_class_is_named_by_the_class() -> None:
    try:
        assert portraits(lambda _: setattr(Plugin, "kind", None)) == (
            f"{MODULE}.Plugin.kind: 'plugin' / None",
        )
    finally:
        Plugin.kind = "plugin"


def test_the_shortest_paths_come_first_and_nothing_below_them() -> None:
    def change(registry: Any) -> None:
        registry._items["deep"] = [[[1]]]
        registry._list[0] = 3
        registry._plugin.name = [4]
        registry._next_id = 5

    assert portraits(change) == (
        "registry._next_id: 17 / 5",
        "registry._items['deep']: <absent> / <list of 1>",
        "registry._list[0]: 1 / 3",
        "registry._plugin.name: 'x' / <list of 1>",
    )


def test_paths_of_the_registry_come_before_caches_of_the_standard_library() -> None:
    """A cache with a shorter path, or many of them, hid the variable to fix."""
    heap = Heap(SCOPE)
    deep = [[[[0]]]], [[[[1]]]]
    one, other = (
        heap.portrait(
            {
                "fnmatch._cache": [side] * 20,
                "registry": {"a": deep[side]},
                "json.encoder._memo": side,
            }
        )
        for side in (0, 1)
    )
    lines = differences(one, other)
    assert len(lines) == 8
    assert lines[0] == "registry['a'][0][0][0][0]: 0 / 1"
    assert [line.partition(".")[0] for line in lines[1:]] == ["json", *["fnmatch"] * 6]


def test_no_more_than_asked_for() -> None:
    heap = Heap(SCOPE)
    one, other = heap.portrait({"r": [0] * 20}), heap.portrait({"r": [1] * 20})
    assert len(differences(one, other)) == 8
    assert differences(one, other, most=2) == ("r[0]: 0 / 1", "r[1]: 0 / 1")
    assert differences(one, one) == ()


def test_a_portrait_is_a_value_that_stays() -> None:
    heap = Heap(SCOPE)
    registry = Registry()
    before = heap.portrait({"registry": registry})
    copied = pickle.loads(pickle.dumps(before))
    registry._next_id = 0
    assert isinstance(copied, Portrait)
    assert copied == before
    assert hash(copied) == hash(before)
    assert heap.portrait({"registry": Registry()}) == before
    assert differences(copied, heap.portrait({"registry": registry})) == (
        "registry._next_id: 17 / 0",
    )


def test_roots_that_come_and_go() -> None:
    heap = Heap(SCOPE)
    one = heap.portrait({"registry": [], "handle of a": None})
    other = heap.portrait({"registry": [], "handle of a": handle(1), "handle of b": 1})
    assert differences(one, other) == (
        "handle of a: None / <function handle.<locals>.<lambda>>",
        "handle of b: <absent> / 1",
    )


def test_what_no_form_tells_is_shown_where_nothing_else_differs() -> None:
    heap = Heap(SCOPE)
    cached = functools.lru_cache(lambda x: x)
    cached(1)
    numbers = {0, 8}  # both belong to the first place of the table
    one = heap.portrait({"find": cached, "numbers": numbers})
    cached(1)
    numbers.clear()
    numbers.add(8)
    numbers.add(0)
    other = heap.portrait({"find": cached, "numbers": numbers})
    assert one == other
    assert differences(one, other) == (
        "hits of find: 0 hits, 1 misses / 1 hits, 1 misses",
        "set order of numbers: 0, 8 / 8, 0",
    )


def test_long_values_are_cut() -> None:
    (line,) = portraits(lambda r: setattr(r, "_next_id", "x" * 1000))
    assert len(line) < 200
    assert line.endswith("...")


def test_long_values_are_shown_from_where_they_differ() -> None:
    """Both sides of the orders of a long dict read alike."""
    heap = Heap(SCOPE)
    names = {f"name {number:02}": number for number in range(40)}
    one, other = {**names, "a": 1, "b": 2}, {**names, "b": 2, "a": 1}
    assert differences(
        heap.portrait({"names": one}), heap.portrait({"names": other})
    ) == ("order of names: ...'a', 'b' / ...'b', 'a'",)


@pytest.mark.parametrize(
    ("one", "other", "line"),
    [
        ("x" * 200 + "a", "x" * 200 + "b", "root: '...{20}a' / '...{20}b'"),
        ("x" * 200 + ", a", "x" * 200 + ", b", "root: '...{18}, a' / '...{18}, b'"),
        (b"x" * 200 + b"a", b"x" * 200 + b"b", "root: b'...{20}a' / b'...{20}b'"),
        ("'" + "x" * 200, "'" + "x" * 201, 'root: "...{20}" / "...{20}x"'),
        (", " + "x" * 200, ", " + "x" * 201, "root: '...{20}' / '...{20}x'"),
    ],
)
def test_of_long_texts_some_of_what_is_common_is_shown(
    one: Any, other: Any, line: str
) -> None:
    heap = Heap(SCOPE)
    before, after = heap.portrait({"root": one}), heap.portrait({"root": other})
    assert differences(before, after) == (
        line.replace("{20}", "x" * 20).replace("{18}", "x" * 18),
    )


def test_a_function_with_an_empty_closure_can_be_read_back() -> None:
    made = types.FunctionType(compile("1", "made", "eval"), {}, "made", None, ())
    heap, one, other = Heap(SCOPE), {"made": made, "a": [1]}, {"made": made, "a": [2]}
    assert differences(heap.portrait(one), heap.portrait(other)) == ("a[0]: 1 / 2",)


def test_a_nan_in_place_of_another_is_told_by_its_identity() -> None:
    nan = float("nan")
    root = Registry()
    root._list = [nan, nan]
    assert portraits(lambda r: r._list.__setitem__(1, float("nan")), root) == (
        "registry._list[1]: <same as registry._list[0]> / another nan",
    )


NAN = float("nan")


class Degrees(float):
    """A number of a user."""


@pytest.mark.parametrize(
    ("one", "other", "line"),
    [
        (NAN, 1.0, "root: nan / 1.0"),
        (1.0, complex(1.0, NAN), "root: 1.0 / (1+nanj)"),
        (NAN, -NAN, "root: nan / nan with other bits"),
        (Degrees(NAN), Degrees(1.0), "root: <Degrees nan> / <Degrees 1.0>"),
        ([NAN], None, "root: <list of 1> / None"),
        ({NAN: 1}, {NAN: 2}, "root[nan]: 1 / 2"),
        ({(NAN, 1): 1}, {(NAN, 1): 2}, "root[(nan, 1)]: 1 / 2"),
        ({Degrees(NAN): 1}, {Degrees(NAN): 2}, "root[<Degrees nan>]: 1 / 2"),
    ],
)
def test_a_nan_is_shown_as_such(one: Any, other: Any, line: str) -> None:
    heap = Heap(SCOPE)
    before, after = heap.portrait({"root": one}), heap.portrait({"root": other})
    assert differences(before, after) == (line,)


def test_an_attribute_that_is_called_as_a_nan_is() -> None:
    """It is told as an attribute is."""
    one, other = Plugin("x"), Plugin("x")
    setattr(one, "not a number", 1)
    setattr(other, "not a number", 2)
    heap = Heap(SCOPE)
    before, after = heap.portrait({"root": one}), heap.portrait({"root": other})
    assert differences(before, after) == ("root.not a number: 1 / 2",)


def test_a_key_by_the_address_of_an_object_below_it_has_a_name() -> None:
    """Its path led through its own key, without end."""

    def change(registry: Registry) -> None:
        first.name = "other"

    registry = Registry()
    first, second = Plugin("first"), Plugin("second")
    registry._cache[id(first), "x"] = {(id(second), "y"): [first, second]}

    (path,) = portraits(change, registry)

    assert path.startswith("registry._cache<key (id(")
    assert path.endswith(".name: 'first' / 'other'")
