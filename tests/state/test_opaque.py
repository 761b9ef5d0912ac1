"""What nobody can see is told: once for each type, by the shortest path."""

import collections
import ctypes
import functools
import hashlib
import queue
import re
import sqlite3
import sys
import threading
import types
import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from everyorder.harness.engine.protocol import Caveat
from everyorder.harness.state import FollowedScope, Heap

SCOPE = FollowedScope(frozenset({__name__.partition(".")[0]}))


class Box:
    """An object with attributes."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def numpy() -> Any:
    """Loaded when it is looked at: what is loaded is what many other tests scan."""
    return import_module("numpy")


def caveats(root: Any, scope: FollowedScope = SCOPE) -> list[Caveat]:
    heap = Heap(scope)
    heap.form({"registry": root})
    return list(heap.caveats())


def told(root: Any) -> list[str]:
    return [each.text for each in caveats(root) if each.kind == "opaque"]


def test_a_type_of_c_is_told_with_its_shortest_path() -> None:
    connection = sqlite3.connect(":memory:")
    root = Box(_deep=Box(also=connection), _db=connection)
    assert caveats(root) == [
        Caveat("opaque", "what a sqlite3.Connection holds (registry._db)")
    ]
    connection.close()


def test_a_type_is_told_once_with_the_number_of_its_objects() -> None:
    root = Box(queues=[queue.SimpleQueue() for _ in range(3)])
    assert told(root) == [
        "what a _queue.SimpleQueue holds (registry.queues[0], and 2 more)"
    ]


def test_many_types_are_told_in_one_line_those_of_the_registry_first() -> None:
    connection = sqlite3.connect(":memory:")
    root = Box(
        queue=queue.SimpleQueue(),
        connection=connection,
        compressor=zlib.compressobj(),
        digest=hashlib.md5(usedforsecurity=False),
        decompressor=zlib.decompressobj(),
    )
    (line,) = told(root)
    assert line.startswith("what a _hashlib.HASH holds (registry.digest), what ")
    assert line.endswith(", and what objects of 2 more classes hold")
    connection.close()


def test_three_types_are_told_in_one_line() -> None:
    connection = sqlite3.connect(":memory:")
    root = Box(a=queue.SimpleQueue(), b=connection, c=zlib.compressobj())
    assert told(root) == [
        "what a _queue.SimpleQueue holds (registry.a), what a sqlite3.Connection holds "
        "(registry.b), what a zlib.Compress holds (registry.c)"
    ]
    connection.close()


def test_a_long_path_is_told_without_its_middle() -> None:
    connection = sqlite3.connect(":memory:")
    (line,) = told(Box(**{f"first_{'x' * 200}_last": connection}))
    assert re.fullmatch(r"what .* holds \(registry\.first_x+ \.\.\. x+_last\)", line)
    assert len(line) < 160
    connection.close()


class Structure(ctypes.Structure):
    """C lays this out."""

    _fields_ = (("x", ctypes.c_int),)


class Query(sqlite3.Connection):
    """A class of Python over an opaque base; its attributes are state all the same."""


class Emptied:
    """A slot whose descriptor is gone."""

    __slots__ = ("lost",)


type.__delattr__(Emptied, "lost")


class Spent:
    """Slots that were named by an iterator, which is spent by now."""

    __slots__ = iter(("a", "b"))


class Replaced:
    """A slot whose descriptor is replaced by a value."""

    __slots__ = ("a",)


type.__setattr__(Replaced, "a", 1)


def half() -> memoryview:
    return memoryview(bytearray(b"abcd"))[2:]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Structure(), f"{__name__}.Structure"),
        (Emptied(), f"{__name__}.Emptied"),
        (Spent(), f"{__name__}.Spent"),
        (Replaced(), f"{__name__}.Replaced"),
        (half(), "memoryview"),
        (open(__file__), "_io.TextIOWrapper"),  # noqa: SIM115  # closed below
        (ctypes.c_int(1), "ctypes.c_int"),
    ],
    ids=lambda each: each if isinstance(each, str) else "value",
)
def test_what_is_hidden_by_the_layout(value: Any, name: str) -> None:
    texts = told(Box(x=value))
    article = "an" if name[0] in "aeiou" else "a"
    assert f"what {article} {name} holds (registry.x)" in texts
    if hasattr(value, "close"):
        value.close()


def test_a_generator_of_a_c_library_is_hidden_by_its_layout() -> None:
    texts = told(Box(x=numpy().random.default_rng(1)))
    assert "what a numpy.random._generator.Generator holds (registry.x)" in texts


@pytest.mark.parametrize("name", ["add", "where", "concatenate"])
def test_a_function_of_a_c_library_is_its_name(name: str) -> None:
    value = getattr(numpy(), name)
    assert told(Box(x=value)) == []
    assert Heap(SCOPE).form({"r": value}).objects == 1


def test_a_function_of_a_c_library_that_nobody_named_is_opaque() -> None:
    made = numpy().frompyfunc(lambda x: x, 1, 1)
    assert len(told(Box(x=made))) == 1


def test_attributes_of_opaque_objects_are_state_nonetheless() -> None:
    heap = Heap(SCOPE)
    query = sqlite3.connect(":memory:", factory=Query)
    before = heap.form({"r": query})
    query.x = 1  # type: ignore[attr-defined]  # any attribute does
    assert heap.form({"r": query}) != before
    query.close()


class Plain:
    """Attributes."""


class Slots:
    """Slots, a dict, and weak references."""

    __slots__ = ("__dict__", "__weakref__", "a")


class Number(int):
    """A value."""


class Error(OSError):
    """An error with fields of C."""


class Both(Plain, collections.OrderedDict):  # type: ignore[type-arg]  # what it maps does not matter
    """Two bases."""


class Local(threading.local):
    """One for each thread."""


class Module(types.ModuleType):
    """A module with attributes."""


Named = collections.namedtuple("Named", "a b")


@pytest.mark.parametrize(
    "value",
    [
        *(Plain(), Slots(), Number(3), Error(1, "x"), Both(a=1), Local(), Named(1, 2)),
        *(Module("m"), object(), property(), threading.Condition(), queue.Queue()),
        functools.partial(len),
        *(int | str, list[int], slice(1), range(3), NotImplemented, len, Plain),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_laid_out_by_python_is_not_opaque(value: Any) -> None:
    assert told(Box(x=value)) == []


def test_arrays_and_numbers_are_not_opaque() -> None:
    np = numpy()
    for value in (np.zeros(2), np.float64(1), np.dtype("i4")):
        assert told(Box(x=value)) == []


def test_sets_of_two_are_an_assumption() -> None:
    root = Box(names={"a", "b"}, one={"a"}, none=set())
    assert caveats(root) == [
        Caveat(
            "assumed", "the order of a set of 2 or more (registry.names) is not read"
        )
    ]


def test_constants_of_code_are_no_sets_of_the_state() -> None:
    def f(x: Any) -> bool:
        return x in {"a", "b", "c"}

    assert caveats(f) == []


def test_counters_of_caches_are_an_assumption_and_no_part_of_the_state() -> None:
    heap = Heap(SCOPE)
    cached = functools.lru_cache(lambda x: [x])
    cached(1)
    before = heap.form({"registry": Box(find=cached)})
    cached(1)
    after = heap.form({"registry": Box(find=cached)})
    assert (before.blind, before.exact) == (after.blind, after.exact)
    assert before.variant != after.variant
    assert heap.caveats() == (
        Caveat("assumed", "how often a cache was hit (registry.find) is not read"),
    )


def test_callers_behind_a_traceback_are_an_assumption() -> None:
    try:
        raise ValueError
    except ValueError as error:
        texts = caveats(Box(error=error))
    assert texts == [
        Caveat(
            "assumed",
            "the frames of a traceback (registry.error.__traceback__) are not read",
        )
    ]


def caller_frame() -> types.FrameType:
    return sys._getframe()


def test_the_caller_of_a_frame_is_an_assumption() -> None:
    def build(value: int) -> Any:
        return Box(frame=caller_frame(), kept=value)

    assert build(1).frame.f_back.f_locals == {"value": 1}
    assert caveats(build(1)) == [
        Caveat("assumed", "who called a frame (registry.frame) is not read")
    ]


def test_every_place_is_named_that_some_state_has() -> None:
    heap = Heap(SCOPE)
    root: Any = Box(one={1, 2}, other={1}, error=None)
    heap.form({"registry": root})
    root.one, root.other = {1}, {1, 2}
    heap.form({"registry": root})
    root.other = {1}
    try:
        raise ValueError
    except ValueError as error:
        root.error = error
    heap.form({"registry": root})
    assert [caveat.text for caveat in heap.caveats()] == [
        "the order of a set of 2 or more (registry.one, registry.other) is not read",
        "the frames of a traceback (registry.error.__traceback__) are not read",
    ]


def test_every_path_is_named_that_one_number_has() -> None:
    heap = Heap(SCOPE)
    heap.form({"registry": Box(one={1, 2}, other=None)})
    heap.form({"registry": Box(one=None, other={1, 2})})
    assert [caveat.text for caveat in heap.caveats()] == [
        "the order of a set of 2 or more (registry.one, registry.other) is not read"
    ]


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (8, "k00, registry.k01, registry.k02 and 5 more"),
        (12, "k00, registry.k01, registry.k02 and at least 5 more"),
    ],
)
def test_places_that_were_not_counted_are_told(count: int, told: str) -> None:
    """Eight were told where there are twelve."""
    heap = Heap(SCOPE)
    for number in range(count):
        heap.form({"registry": Box(**{f"k{number:02}": {1, 2}})})
    assert [caveat.text for caveat in heap.caveats()] == [
        f"the order of a set of 2 or more (registry.{told}) is not read"
    ]


class Counting:
    """A registry that counts."""

    count = 0

    def __init__(self) -> None:
        self._next_id = 0
        self.items: dict[str, int] = {}
        self.inner = Box(hits=0, kept=1)


IGNORE: dict[str, Callable[[Any], object]] = {
    "registry._next_id": lambda r: setattr(r, "_next_id", 1),
    "*._next_id": lambda r: setattr(r, "_next_id", 1),
    "*.hits": lambda r: setattr(r.inner, "hits", 1),
    "registry.inner.hits": lambda r: setattr(r.inner, "hits", 1),
    "registry.items['a']": lambda r: r.items.update(a=2),
    "registry.items[*]": lambda r: r.items.update(a=2),
    "registry.inner": lambda r: setattr(r, "inner", None),
}
PATHS = {"*._next_id": "registry._next_id", "*.hits": "registry.inner.hits"}


@pytest.mark.parametrize("pattern", IGNORE)
def test_an_ignored_path_is_no_state_and_an_assumption(pattern: str) -> None:
    registry = Counting()
    registry.items["a"] = 1
    heap = Heap(FollowedScope(SCOPE.packages, (pattern,)))
    before = heap.form({"registry": registry})
    IGNORE[pattern](registry)
    assert heap.form({"registry": registry}) == before
    path = PATHS.get(pattern, pattern).replace("[*]", "['a']")
    assert heap.caveats() == (Caveat("assumed", f"{path} is ignored"),)
    registry.inner = Box(hits=registry.inner, kept=3)
    registry.items["b"] = 3
    if "inner" not in pattern or "." in pattern[9:]:
        assert heap.form({"registry": registry}) != before


NUMBER = 0


def reads() -> int:
    return NUMBER


def test_a_global_can_be_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    heap = Heap(FollowedScope(SCOPE.packages, ("*.NUMBER",)))
    before = heap.form({"use": reads})
    monkeypatch.setattr(sys.modules[__name__], "NUMBER", 1, raising=True)
    assert heap.form({"use": reads}) == before
    assert heap.caveats() == (Caveat("assumed", f"{__name__}.NUMBER is ignored"),)


def test_an_attribute_of_a_class_can_be_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heap = Heap(FollowedScope(SCOPE.packages, ("*.Counting.count",)))
    registry = Counting()
    before = heap.form({"registry": registry})
    monkeypatch.setattr(Counting, "count", 1)
    assert heap.form({"registry": registry}) == before
    assert heap.caveats() == (
        Caveat("assumed", f"{__name__}.Counting.count is ignored"),
    )


def test_a_pattern_that_matches_nothing_is_no_assumption() -> None:
    assert caveats(Counting(), FollowedScope(SCOPE.packages, ("registry.never",))) == []
