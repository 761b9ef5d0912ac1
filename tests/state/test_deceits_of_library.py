"""Whatever the library hides is in the form: iterators, references, locks."""

import array
import collections
import contextvars
import gc
import io
import itertools
import operator
import random
import threading
import types
import weakref
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from tests.state.deceit import Box, Cases, Loud, judge, put, ring

CASES = Cases()
case = CASES.add


def numpy() -> Any:
    """Loaded when it is looked at: what is loaded is what many other tests scan."""
    return import_module("numpy")


# Iterators.

ITERATORS: dict[str, Callable[[], Any]] = {
    "list": lambda: iter([1, 2]),
    "tuple": lambda: iter((1, 2)),
    "reversed": lambda: reversed([1, 2]),
    "text": lambda: iter("ab"),
    "range": lambda: iter(range(3)),
    "dict": lambda: iter({1: 2, 3: 4}),
    "items": lambda: iter({1: 2, 3: 4}.items()),
    "set": lambda: iter({1, 2}),
    "enumerate": lambda: enumerate("ab"),
    "zip": lambda: zip("ab", "cd", strict=False),
    "map": lambda: map(str, [1, 2]),
    "filter": lambda: filter(None, [1, 2]),
    "count": lambda: itertools.count(5),
    "cycle": lambda: itertools.cycle("ab"),
    "chain": lambda: itertools.chain("ab", "cd"),
    "islice": lambda: itertools.islice("abcd", 3),
    "repeat": lambda: itertools.repeat(1, 3),
    "tee": lambda: itertools.tee("abc")[0],
    "product": lambda: itertools.product("ab", "cd"),
    "groupby": lambda: itertools.groupby("aabb"),
    "accumulate": lambda: itertools.accumulate([1, 2, 3]),
    "deque": lambda: iter(collections.deque([1, 2])),
    "array": lambda: iter(array.array("b", [1, 2])),
}
for name, build in ITERATORS.items():
    case(
        f"an iterator: {name}",
        lambda build=build: Box(x=build()),
        lambda o: next(o.x),
    )
case(
    "an iterator over a dict that changes",
    lambda: (lambda d: Box(d=d, x=iter(d)))({1: 2}),
    lambda o: o.d.update({1: 3}),
)
# Their reductions leave out some state.
OPAQUE = frozenset(
    {"an iterator over a dict that changes"}
    | {f"an iterator: {name}" for name in ("dict", "items", "set", "groupby", "deque")}
)

# Weak references.


def _weak() -> Box:
    target = Box(x=1)
    return Box(target=target, ref=weakref.ref(target))


case("a weak reference that dies", _weak, lambda o: o.__dict__.pop("target"))
case("a weak target", _weak, lambda o: setattr(o.ref(), "x", 2))


def _weakly(kind: Any) -> Callable[[], Box]:
    def build() -> Box:
        targets = [Box(x=1), Box(x=2)]
        weak = kind()
        for place, target in enumerate(targets):
            if kind is weakref.WeakSet:
                weak.add(target)
            elif kind is weakref.WeakValueDictionary:
                weak[place] = target
            else:
                weak[target] = place
        return Box(targets=targets, weak=weak)

    return build


for kind in (weakref.WeakSet, weakref.WeakValueDictionary, weakref.WeakKeyDictionary):
    case(f"a {kind.__name__}", _weakly(kind), lambda o: o.targets.pop())

GARBAGE = weakref.WeakSet[Box]()


def _garbage(o: Any) -> None:
    gc.disable()
    GARBAGE.add(ring(2))


def _collect(o: Any) -> None:
    gc.enable()
    gc.collect()


case("garbage in a weak set", lambda: GARBAGE, _garbage, _collect)


def _proxy_of_a_namesake() -> Box:
    target: Any = type("NoneType at 0x1; dead", (), {})()
    target.x = 1
    return Box(proxy=weakref.proxy(target), target=target)


def _proxy() -> Box:
    target = Loud(x=1)
    return Box(proxy=weakref.proxy(target), target=target)


case(
    "what a proxy points at",
    _proxy,
    lambda o: object.__getattribute__(o.target, "__dict__").update(x=2),
)
case(
    "what a proxy of a class with the name of another points at",
    _proxy_of_a_namesake,
    lambda o: setattr(o.target, "x", 2),
)
case("a proxy that dies", _proxy, lambda o: o.__dict__.pop("target"))


def _callback() -> Box:
    target = Box()
    calls: list[Any] = []
    return Box(target=target, ref=weakref.ref(target, calls.append), calls=calls)


case("the callback of a reference", _callback, lambda o: o.calls.append(1))


class Listener:
    """Listens to the end of something."""

    def tell(self, reference: Any) -> None: ...


def _told_twice(first: bool) -> Box:
    target = Box()
    one, other = Listener(), Listener()
    refs: list[Any] = [None, None]
    for place in (0, 1) if first else (1, 0):
        refs[place] = weakref.ref(target, [one, other][place].tell)
    return Box(target=target, refs=refs)


case(
    "which callback comes first",
    lambda: _told_twice(True),
    lambda o: o.__dict__.update(_told_twice(False).__dict__),
)


def _finalized() -> Box:
    target = Box()
    return Box(target=target, final=weakref.finalize(target, print))


case("a finalizer", _finalized, lambda o: o.final.detach())

# Addresses.


def _by_address() -> Box:
    target = Box()
    return Box(target=target, seen={id(target): 1}, ids={id(target)}, own=id(target))


case("an address as a key", _by_address, lambda o: setattr(o, "seen", {64 << 20: 1}))
case("an address as a value", _by_address, lambda o: setattr(o, "own", id(o)))
case("an address in a set", _by_address, lambda o: setattr(o, "ids", {64 << 20}))

# Threads, contexts, locks, chance.

case("a lock", lambda: Box(x=threading.Lock()), lambda o: o.x.acquire())
case("a lock held twice", lambda: Box(x=threading.RLock()), lambda o: o.x.acquire())
case("an event", lambda: Box(x=threading.Event()), lambda o: o.x.set())
case("a semaphore", lambda: Box(x=threading.Semaphore()), lambda o: o.x.acquire())
case("a thread's own", threading.local, lambda o: setattr(o, "x", 1))

VARIABLE: contextvars.ContextVar[Any] = contextvars.ContextVar("VARIABLE")


def reads_variable() -> Any:
    return VARIABLE.get()


case(
    "a context variable",
    lambda: reads_variable,
    lambda _: VARIABLE.set(1),
)
case("a context", contextvars.Context, lambda o: o.run(VARIABLE.set, 1))
case("a generator of chance", lambda: random.Random(1), lambda o: o.random())
case("a second number of chance", lambda: random.Random(1), lambda o: o.gauss(0, 1))
case(
    "a seeded method",
    lambda: random.Random(1).random,
    lambda o: o(),
)

# Exceptions.


def _raised() -> Box:
    try:
        raise ValueError("x")
    except ValueError as error:
        return Box(x=error.with_traceback(None))


case("the arguments of an error", _raised, lambda o: setattr(o.x, "args", ("y",)))
case("the cause of an error", _raised, lambda o: setattr(o.x, "__cause__", KeyError()))
case("the context", _raised, lambda o: setattr(o.x, "__context__", KeyError()))
case("a note of an error", _raised, lambda o: o.x.add_note("y"))
case(
    "what C keeps of an error",
    lambda: Box(x=OSError(1, "a")),
    lambda o: setattr(o.x, "filename", "f"),
)
case(
    "a group of errors",
    lambda: Box(x=ExceptionGroup("g", [ValueError([])])),
    lambda o: o.x.exceptions[0].args[0].append(1),
)


def _traced(value: int) -> BaseException:
    local = [value]
    try:
        raise ValueError
    except ValueError as error:
        assert local
        return error


case(
    "a variable behind a traceback",
    lambda: Box(x=_traced(1)),
    lambda o: setattr(o, "x", _traced(2)),
)

# Values of the standard library, and arrays.

case("an array", lambda: array.array("i", [1]), lambda o: o.append(2))
case("a bytearray", lambda: bytearray(b"a"), lambda o: o.append(2))
case("a view", lambda: memoryview(bytearray(b"a")), lambda o: o.__setitem__(0, 1))
case("bytes in memory", lambda: io.BytesIO(b"ab"), lambda o: o.read(1))
case("text in memory", lambda: io.StringIO("ab"), lambda o: o.read(1))
case("a namespace", types.SimpleNamespace, lambda o: setattr(o, "x", 1))
case(
    "a proxy of a mapping",
    lambda: (lambda d: Box(d=d, x=types.MappingProxyType(d)))({}),
    lambda o: o.d.update(a=1),
)
case(
    "a view of a dict",
    lambda: (lambda d: Box(x=d.values(), add=d.update))({1: [2]}),
    lambda o: o.add({1: [3]}),
)
case(
    "an itemgetter",
    lambda: Box(x=operator.itemgetter(1)),
    put("x", operator.itemgetter(2)),
)
case(
    "an array of numpy",
    lambda: numpy().zeros(2),
    lambda o: o.__setitem__(0, 1),
)
# Buffers above 64 MB were not read.
HUGE = (1 << 26) + 8
for name, build in {
    "bytearray": lambda: bytearray(HUGE),
    "array": lambda: array.array("b", bytes(HUGE)),
    "ndarray": lambda: numpy().zeros(HUGE, "u1"),
}.items():
    case(
        f"the last byte of a huge {name}",
        lambda build=build: Box(x=build()),
        lambda o: o.x.__setitem__(-1, 1),
    )
case(
    "whether an array can be written",
    lambda: numpy().zeros(2),
    lambda o: setattr(o.flags, "writeable", False),
)


def _view() -> Box:
    base = numpy().zeros(4)
    return Box(base=base, view=base[:2])


case("where a view begins", _view, lambda o: setattr(o, "view", o.base[1:3]))
case("the strides of a view", _view, lambda o: setattr(o, "view", o.base[::2]))
case("whether it is a view", _view, lambda o: setattr(o, "view", numpy().zeros(2)))
case(
    "objects in an array",
    lambda: numpy().array([[], 1], dtype=object),
    lambda o: o[0].append(1),
)


@pytest.mark.parametrize("name", CASES)
def test_a_hidden_change_gives_another_form(name: str) -> None:
    judge(CASES[name], {"tests"}, opaque=name in OPAQUE)
