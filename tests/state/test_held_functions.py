"""C functions that objects hold are told: C code may call them, and nobody hears it."""

import codecs
import collections
import functools
import itertools
import operator
import os
import threading
import time
import weakref
from collections.abc import Callable
from time import monotonic
from typing import Any, ClassVar

import pytest

from everyorder.harness import Scenario, explore, steps, use
from everyorder.harness.engine.protocol import Caveat
from everyorder.harness.engine.states import Search
from everyorder.harness.report.verdict import Report
from everyorder.harness.state import FollowedScope, Heap
from everyorder.harness.state.c_call_audit import caveats_of, merge_caveats

HERE = __name__.partition(".")[0]

NAME = "everyorder.planted"
HANDLERS: list[Any] = [(lambda error, n=n: ("", n)) for n in range(10)]
TABLE: dict[str, Any] = {"register": codecs.register_error, "get": dict.get}
TABLE_OF_PURE: dict[str, Any] = {"get": dict.get}
SET: Callable[[Any], None] = functools.partial(codecs.register_error, NAME)
ASK = operator.methodcaller("register_error", NAME, HANDLERS[0])


class Registry:
    """Counts by `put` in the table of error handlers, which no object shows."""

    def __init__(self, put: Callable[[int], object]) -> None:
        self.items: dict[str, int] = {}
        self.put = put
        put(0)

    def count(self) -> int:
        return HANDLERS.index(codecs.lookup_error(NAME))

    def add(self, key: str) -> Callable[[], object]:
        self.items[key] = 1
        self.put(min(self.count() + 1, 9))
        return functools.partial(self.items.pop, key)

    def find(self, key: str) -> str:
        bad = self.count() >= 5
        self.put(0)
        return "bad" if bad else str(self.items.get(key))


class Hooked:
    hook = staticmethod(SET)


def _by_partial(number: int) -> None:
    SET(HANDLERS[number])


def _by_attribute(number: int) -> None:
    Hooked.hook(HANDLERS[number])


def _by_call(number: int) -> None:
    operator.call(TABLE["register"], NAME, HANDLERS[number])


def _by_map(number: int) -> None:
    list(map(TABLE["register"], [NAME], [HANDLERS[number]]))


def _by_reduce(number: int) -> None:
    functools.reduce(TABLE["register"], [NAME, HANDLERS[number]])


def _asked_for(number: int) -> None:
    operator.methodcaller("register_error", NAME, HANDLERS[number])(codecs)


def _nowhere(number: int) -> None:
    functools.reduce(TABLE_OF_PURE["get"], [{"a": {"b": number}}, "a", "b"])


class Plain(Registry):
    """Sound: it counts nothing."""

    def count(self) -> int:
        return 0


def explored(create: Callable[[], Registry]) -> Report:
    return explore(
        Scenario(
            *steps("add", "ab", lambda registry, key: registry.add(key)),
            uses=[use("find", lambda registry: registry.find("a"))],
            create=create,
            observe=lambda registry: " ".join(sorted(registry.items)),
        )
    )


@pytest.mark.parametrize(
    ("put", "name"),
    [
        (_by_partial, "_codecs.lookup_error, _codecs.register_error"),
        (_by_attribute, "_codecs.lookup_error, _codecs.register_error"),
        (_by_call, "_codecs.lookup_error, _codecs.register_error"),
        (_by_map, "_codecs.lookup_error, _codecs.register_error"),
        (_by_reduce, "_codecs.lookup_error, _codecs.register_error"),
        (
            _asked_for,
            "_codecs.lookup_error, a function of codecs by a computed name, "
            "operator.methodcaller",
        ),
    ],
)
def test_what_c_code_calls_is_assumed(
    put: Callable[[int], object], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert explored(lambda: Registry(put)).verdict == "hidden"
    # It is the random walk that finds what these hide.
    monkeypatch.setattr(Search, "walk_at_random", lambda *_: None)
    report = explored(lambda: Registry(put))
    assert (report.verdict, report.assumes) == ("proven", (f"calls {name}",))


def test_the_same_registry_that_hides_nothing_is_proven() -> None:
    report = explored(lambda: Plain(_nowhere))
    assert (report.verdict, report.assumes) == ("proven", ())


class Clocked:
    clock = time.perf_counter


def _captured(function: Callable[..., Any]) -> Callable[[], Any]:
    return lambda: list(map(function, ()))


def _defaulted(function: Callable[..., Any] = time.ctime) -> Any:
    return list(map(function, ()))


def _of_the_whole() -> Any:
    return list(map(globals()["monotonic"], ()))


def _by_name() -> float:
    return monotonic()


HIDING: dict[str, tuple[Callable[[], Any], frozenset[str]]] = {
    "partial": (lambda: SET, frozenset({"_codecs.register_error"})),
    "value of a dict": (lambda: TABLE, frozenset({"_codecs.register_error"})),
    "item of a list": (lambda: [time.ctime], frozenset({"time.ctime"})),
    "attribute of a class": (Clocked, frozenset({"time.perf_counter"})),
    "closure": (lambda: _captured(os.getcwd), frozenset({"os.getcwd"})),
    "default": (lambda: _defaulted, frozenset({"time.ctime"})),
    "method of a type": (
        lambda: {"size": list.__sizeof__},
        frozenset({"list.__sizeof__"}),
    ),
    "method of an object": (
        lambda: {}.__sizeof__,
        frozenset({"dict.__sizeof__"}),
    ),
    "instance of a method caller": (lambda: ASK, frozenset({"operator.methodcaller"})),
    "class of method callers": (
        lambda: [operator.methodcaller],
        frozenset({"operator.methodcaller"}),
    ),
    "by name, and held as well": (
        lambda: [_by_name, {"now": monotonic}],
        frozenset({"time.monotonic"}),
    ),
}


class Usual:
    """What registries hold that C code calls."""

    kinds: ClassVar[dict[str, type]] = {"list": list}
    dispatch: ClassVar[dict[str, Any]] = {"get": dict.get, "add": operator.add}
    new = object.__new__

    def __init__(self) -> None:
        self.items: list[str] = ["a"]
        self.table = collections.defaultdict[str, list[int]](list)
        self.undo = [self.items.remove, functools.partial(self.table.pop, "a", None)]
        self.number = itertools.count().__next__
        self.lock = threading.Condition()
        self.key = operator.itemgetter(0)
        self.attribute = operator.attrgetter("items")
        self.forget = weakref.ref(Usual, self.undo.remove)
        self.ordered = collections.OrderedDict(a=1).move_to_end
        self.find = functools.partial(_captured, len)
        self.queue = collections.deque(["a"]).append
        self.finalize = weakref.finalize(Usual, self.items.remove, "a")
        self.finalize.detach()


CLEAN: dict[str, Callable[[], Any]] = {
    "usual": Usual,
    "by name": lambda: _by_name,
    "type": lambda: Usual.__init__,
    "dict": lambda: {"a": len, "b": [].append, "c": str.upper, "d": _reads_clock},
}


def _reads_clock(value: float) -> float:
    return time.time() + value


def called(value: object) -> frozenset[str]:
    heap = Heap(FollowedScope(frozenset({HERE})))
    heap.form({"registry": value})
    return heap.impure_functions


@pytest.mark.parametrize("name", HIDING)
def test_what_objects_hold_is_told(name: str) -> None:
    build, names = HIDING[name]
    assert called(build()) == names


def test_all_globals_of_a_module_are_held_by_who_asks_for_them() -> None:
    assert "time.monotonic" in called(_of_the_whole)


@pytest.mark.parametrize("name", CLEAN)
def test_what_hides_nothing_is_not_told(name: str) -> None:
    assert called(CLEAN[name]()) == frozenset()


def test_a_function_read_by_name_is_told_from_another() -> None:
    heap = Heap(FollowedScope(frozenset({HERE})))
    before = heap.form({"f": _by_name})
    real = globals()["monotonic"]
    globals()["monotonic"] = time.time
    try:
        assert heap.form({"f": _by_name}).blind != before.blind
    finally:
        globals()["monotonic"] = real
    assert heap.form({"f": _by_name}) == before


def test_calls_are_told_in_one_line() -> None:
    ignored = Caveat("assumed", "x is ignored")
    unknown = "C functions that hide state were not audited: a profiler is installed"
    assert merge_caveats(
        [
            Caveat("assumed", f"calls id; {unknown}"),
            ignored,
            Caveat("outside", "calls os.urandom, which answers by chance"),
            ignored,
            *caveats_of({"id", "hash", "os.urandom"}),
        ]
    ) == (
        Caveat("assumed", unknown),
        ignored,
        Caveat("assumed", "calls hash, id"),
        Caveat("outside", "calls os.urandom, which answers by chance"),
    )
