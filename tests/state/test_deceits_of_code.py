"""Whatever code hides is in the form: closures, globals, classes, generators."""

import abc
import builtins
import contextlib
import functools
import gc
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest

from tests.state.deceit import Box, Cases, judge, put

CASES = Cases()
case = CASES.add

# Functions.


def _handle() -> Callable[[], int]:
    index = 0

    def undo() -> int:
        return index

    def change() -> None:
        nonlocal index
        index += 1

    undo.change = change  # type: ignore[attr-defined]  # a function takes attributes
    return undo


case("a variable of a closure", _handle, lambda o: o.change())
case("an empty cell", lambda: Box(x=types.CellType()), put("x", types.CellType(None)))
case(
    "two lambdas on one line",
    lambda: Box(x=(lambda: 1, lambda: 2)[0]),
    lambda o: setattr(o, "x", (lambda: 1, lambda: 2)[1]),
)
case("equal lambdas", lambda: Box(x=[lambda: 1]), lambda o: o.x.append(o.x[0]))


def _default() -> Any:
    def f(a: Any = None, *, b: Any = []) -> Any:  # noqa: B006  # that is the deceit
        return a, b

    f.__kwdefaults__ = {"b": []}
    f.__defaults__ = ([],)
    return f


case("a mutable default", _default, lambda o: o.__defaults__[0].append(1))
case("a keyword default", _default, lambda o: o.__kwdefaults__["b"].append(1))
case("an attribute of a function", _default, lambda o: setattr(o, "x", 1))
case("annotations", _default, lambda o: o.__annotations__.clear())
case("a name", _default, lambda o: setattr(o, "__name__", "g"))
case(
    "the attributes of a function elsewhere",
    lambda: (lambda f: Box(f=f, d=f.__dict__))(_default()),
    put("d", {}),
)
case("a partial", lambda: functools.partial(print, []), lambda o: o.args[0].append(1))
case("a bound method", lambda: Box(x=1).__init__, lambda o: o.__self__.__init__(x=2))  # type: ignore[misc]  # the instance is what counts
case("a method of a list", lambda: [1].append, lambda o: o.__self__.append(2))
case("a slot method", lambda: [1].__len__, lambda o: o.__self__.append(2))
case(
    "a static method",
    lambda: staticmethod(_default()),
    lambda o: setattr(o.__func__, "x", 1),
)
case(
    "a property",
    lambda: property(_default()),
    lambda o: setattr(o.fget, "x", 1),
)


@functools.lru_cache(maxsize=4)
def remembered(key: Any) -> list[Any]:
    return [key]


case(
    "an lru_cache that is filled",
    lambda: remembered,
    lambda _: remembered(1),
    lambda _: remembered.cache_clear(),
)


def _cached() -> Any:
    cached = functools.lru_cache(2)(lambda key: [key])
    cached("a")
    cached("b")
    return cached


case("an lru_cache used in another order", _cached, lambda o: (o("c"), o("a")))
case("an lru_cache that holds a class", _cached, lambda o: o(int))


class Cached:
    """A method that remembers, for all instances at once."""

    @functools.lru_cache  # noqa: B019  # that is the deceit
    def find(self, key: str) -> Any:
        return getattr(self, key)


case(
    "a cache of methods",
    lambda: Cached(),
    lambda o: o.find("find"),
    lambda _: Cached.find.cache_clear(),
)

# Globals.

number: int | None = 0
other: Any = None
table: dict[Any, Any] = {}


def reads_number() -> Any:
    return number


def stores_number(value: Any) -> None:
    global number
    number = value


def nested_reads() -> Any:
    def inner() -> Any:
        return [table for _ in (1,)]

    return inner


def _rebind(name: str, value: Any) -> Callable[[Any], None]:
    return lambda _: globals().__setitem__(name, value)


case(
    "a rebound number", lambda: reads_number, _rebind("number", 1), _rebind("number", 0)
)
case(
    "a rebound number that is only stored",
    lambda: stores_number,
    _rebind("number", None),
    _rebind("number", 0),
)
case(
    "a global of nested code",
    lambda: nested_reads,
    lambda _: table.update(a=1),
    lambda _: table.clear(),
)
case(
    "a global that is not there",
    lambda: lambda: absent,  # type: ignore[name-defined]  # noqa: F821  # that is the deceit
    _rebind("absent", 1),
    lambda _: globals().pop("absent"),
)


class Bodied:
    """Code in the body of a class, made by a function."""

    @staticmethod
    def make() -> type:
        class Inner:
            value = other

        return Inner


case(
    "a global of the body of a class",
    lambda: Bodied.make,
    _rebind("other", 2),
    _rebind("other", None),
)

inner = types.ModuleType(f"{__name__}.inner")
inner.__dict__.update(value=0, unread=0)
sys.modules[inner.__name__] = inner


def reads_attribute() -> Any:
    return inner.value


def uses_module() -> Any:
    return getattr(inner, "".join(("unr", "ead")))


def imports_module() -> Any:
    from importlib import import_module  # noqa: F401  # an import of somebody else

    return None


def _set_inner(name: str, value: Any) -> Callable[[Any], None]:
    return lambda _: setattr(inner, name, value)


case(
    "an attribute of a module",
    lambda: reads_attribute,
    _set_inner("value", 1),
    _set_inner("value", 0),
)
case(
    "a module that is used as a whole",
    lambda: uses_module,
    _set_inner("unread", 1),
    _set_inner("unread", 0),
)
case("a module", lambda: inner, _set_inner("unread", 1), _set_inner("unread", 0))


def importing() -> Any:
    namespace: dict[str, Any] = {"__name__": __name__, "__package__": __package__}
    source = f"def f():\n from {inner.__name__} import value as v\n return v"
    exec(compile(source, "importing", "exec"), namespace)
    return namespace["f"]


case(
    "an import inside of a function",
    importing,
    _set_inner("value", 1),
    _set_inner("value", 0),
)


def asks_globals() -> Any:
    return globals()["other"]


case(
    "all globals",
    lambda: asks_globals,
    _rebind("other", 2),
    _rebind("other", None),
)


ASCII: Any = ascii


def reads_builtin() -> Any:
    return ascii


case(
    "a built-in name that is replaced",
    lambda: reads_builtin,
    lambda _: setattr(builtins, "ascii", repr),
    lambda _: setattr(builtins, "ascii", ASCII),
)
# Classes.


class Base:
    """A base with attributes."""

    shared: ClassVar[list[Any]] = []

    def method(self, default: Any = {}) -> Any:  # noqa: B006  # that is the deceit
        return default


class Derived(Base):
    """What is followed through its base."""


case(
    "an attribute of a base class",
    lambda: Derived(),
    lambda _: Base.shared.append(1),
    lambda _: Base.shared.clear(),
)
case(
    "a new attribute of a class",
    lambda: Derived(),
    lambda _: setattr(Base, "note", None),
    lambda _: delattr(Base, "note"),
)
case(
    "a mutable default of a method",
    lambda: Derived(),
    lambda _: Base.method.__defaults__[0].update(a=1),  # type: ignore[index]  # it has one
    lambda _: Base.method.__defaults__[0].clear(),  # type: ignore[index]  # it has one
)


def _keep_subclass(o: Any) -> None:
    globals()["kept"] = type("Later", (Base,), {"__module__": __name__})


def _drop_subclass(o: Any) -> None:
    del globals()["kept"]
    gc.collect()


case("a subclass", lambda: Derived(), _keep_subclass, _drop_subclass)


class Virtual:
    """What is registered."""


def _abstract() -> Any:
    return abc.ABCMeta("Abstract", (), {"__module__": __name__})


case("a registration", _abstract, lambda o: o.register(Virtual))
case("another registration", _abstract, lambda o: o.register(Derived))


def _hooked() -> Any:
    @classmethod  # type: ignore[misc]  # it becomes one below
    def hook(cls: Any, other: Any) -> Any:
        return cls.accepts

    namespace = {"__module__": __name__, "__subclasshook__": hook, "accepts": True}
    return abc.ABCMeta("Hooked", (), namespace)


case("a cached answer of a hook", _hooked, lambda o: issubclass(Virtual, o))
case(
    "a method that is abstract",
    _abstract,
    lambda o: setattr(o, "__abstractmethods__", frozenset({"x"})),
)
case(
    "the class of an object", lambda: Derived(), lambda o: setattr(o, "__class__", Base)
)
case(
    "the bases of a class",
    lambda: type("D", (type("B", (), {"__module__": __name__}),), {})(),
    lambda o: setattr(type(o), "__bases__", (Virtual,)),
    lambda o: gc.collect(),
)

# Suspended code.


def _generate() -> Iterator[Any]:
    yield 0
    yield 1
    yield 2


def _started(steps: int = 1) -> Iterator[Any]:
    generator = _generate()
    for _ in range(steps):
        next(generator)
    return generator


case("a generator that goes on", _started, next)
case("a generator that ends", _started, lambda o: list(o))


case(
    "which variable is set",
    lambda: _unset(True),
    lambda o: o.__dict__.update(_unset(False).__dict__),
)


def _unset(first: bool) -> Box:
    def generate(flag: list[bool]) -> Iterator[Any]:
        if flag.pop():
            x = 1
        else:
            y = 1
        yield
        yield x, y

    generator = generate([first])
    next(generator)
    return Box(x=generator)


async def _coroutine() -> list[int]:
    found: list[int] = []
    await _pause(found)
    return found


@types.coroutine
def _pause(found: list[int]) -> Iterator[None]:
    while True:
        yield
        found.append(1)


def _sent() -> Box:
    coroutine = _coroutine()
    coroutine.send(None)
    holder = Box(x=coroutine)
    weakref.finalize(holder, coroutine.close)
    return holder


case("a coroutine", _sent, lambda o: o.x.send(None))


async def _asynchronous() -> Any:
    yield 1
    yield 2


def _step(o: Any) -> None:
    with contextlib.suppress(StopIteration):
        o.x.asend(None).send(None)


case("an asynchronous generator", lambda: Box(x=_asynchronous()), _step)


@contextlib.contextmanager
def _manager() -> Iterator[None]:
    yield


case("a context manager", _manager, lambda o: o.__enter__())
case(
    "an exit stack",
    contextlib.ExitStack,
    lambda o: o.callback(print),
    lambda o: o.pop_all(),
)


@pytest.mark.parametrize("name", CASES)
def test_a_hidden_change_gives_another_form(name: str) -> None:
    judge(CASES[name], {"tests"})
