"""Futures and awaits beside those of torch: alike, but for the deviations listed.

Each program is run with both libraries, and what it notes is compared whole.
"""

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from everyorder.runtime import futures as ours
from tests.tools.deviations import SECTIONS

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
pytestmark = pytest.mark.torch


class Theirs:
    """The names of torch, as ours are called."""

    Future = torch.futures.Future
    collect_all = staticmethod(torch.futures.collect_all)
    wait_all = staticmethod(torch.futures.wait_all)
    awaitable = staticmethod(torch.jit._awaitable)
    awaitable_wait = staticmethod(torch.jit._awaitable_wait)
    awaitable_nowait = staticmethod(torch.jit._awaitable_nowait)


class Raised(frozenset[str]):
    """The classes of an exception; alike where an `except` takes both."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Raised) and bool(self & other)

    __hash__ = frozenset.__hash__


KNOWN = (AttributeError, KeyError, RuntimeError, TypeError, ValueError)


def kind(act: Callable[[], object]) -> object:
    """What something returns, or which builtin exceptions it raises."""
    try:
        return act()
    except Exception as error:
        return Raised(each.__name__ for each in KNOWN if isinstance(error, each))


def fails(future: Any) -> Any:
    raise ValueError("a text")


def order(lib: Any) -> Any:
    log: list[str] = []
    future = lib.Future()
    child = future.then(lambda f: log.append("a"))
    child.then(lambda f: log.append("a.a")).then(lambda f: log.append("a.a.a"))
    future.add_done_callback(lambda f: log.append("b"))
    future.then(lambda f: log.append("c"))
    future.set_result(1)
    future.add_done_callback(lambda f: log.append("late"))
    return log


def registering_inside(lib: Any) -> Any:
    log: list[str] = []
    future, other = lib.Future(), lib.Future()

    def first(f: Any) -> None:
        f.add_done_callback(lambda g: log.append("inner"))
        other.set_result(2)
        log.append("first")

    future.add_done_callback(first)
    future.add_done_callback(lambda f: log.append("second"))
    other.add_done_callback(lambda f: log.append("other"))
    future.set_result(1)
    return log


def values(lib: Any) -> Any:
    future = lib.Future()
    child = future.then(lambda f: f.wait() + 1).then(lambda f: f.value() * 10)
    before = future.done(), child.done()
    future.set_result(1)
    return before, future.done(), child.done(), future.value(), child.wait()


def not_flat(lib: Any) -> Any:
    inner, future = lib.Future(), lib.Future()
    child = future.then(lambda f: inner)
    future.set_result(1)
    inner.set_result(2)
    return child.value().wait()


def errors(lib: Any) -> Any:
    future = lib.Future()
    future.set_exception(ValueError("mine"))
    ignoring, asking = future.then(lambda f: 1), future.then(lambda f: f.wait())
    return [
        *(kind(ask) for ask in (future.wait, future.value, future.done)),
        *(kind(ask) for ask in (ignoring.wait, asking.wait, asking.done)),
        *(said in str(catch(asking.wait)) for said in ("ValueError", "mine")),
    ]


def catch(act: Callable[[], object]) -> BaseException:
    with pytest.raises(BaseException) as caught:  # noqa: PT011  # of any kind
        act()
    return caught.value


def errors_of_callbacks(lib: Any) -> Any:
    future = lib.Future()
    future.set_result(1)
    future.add_done_callback(fails)
    none: Any = lambda: 1  # noqa: E731  # as short as a program has it
    return [
        kind(future.then(fails).wait),
        kind(future.then(fails).then(lambda f: f.wait()).wait),
        kind(future.then(none).wait),
        kind(lambda: future.then(None)),
        kind(lambda: future.add_done_callback(3)),
        "takes 0 positional" in " ".join(str(catch(future.then(none).wait)).split()),
        future.wait(),
    ]


def twice(lib: Any) -> Any:
    future = lib.Future()
    before = kind(future.value)
    future.set_result(1)
    return before, kind(lambda: future.set_result(2)), future.wait()


def collecting(lib: Any) -> Any:
    members = [lib.Future() for _ in range(3)]
    combined = lib.collect_all(members)
    for place in (2, 0):
        members[place].set_result(place)
    before = combined.done()
    members[1].set_result(1)
    return before, [each.wait() for each in combined.wait()], lib.wait_all(members)


def collecting_errors(lib: Any) -> Any:
    members = [lib.Future() for _ in range(3)]
    combined = lib.collect_all(members)
    members[2].set_exception(KeyError("late"))
    members[1].set_exception(ValueError("first"))
    before = combined.done()
    members[0].set_result(0)
    return [
        before,
        kind(combined.wait),
        kind(lambda: lib.wait_all(members)),
        kind(lambda: lib.collect_all([None])),
        kind(lambda: lib.wait_all([None])),
        kind(lambda: lib.collect_all([]).wait()),
        kind(lambda: lib.wait_all([])),
    ]


def early_exit(lib: Any) -> Any:
    future, never = lib.Future(), lib.Future()
    future.set_result(0)
    failed = future.then(fails)
    return kind(lambda: lib.wait_all([never, failed]))


def awaits(lib: Any) -> Any:
    log: list[object] = []

    def body(x: int, y: int) -> list[int]:
        log.append(1)
        return [x, y]

    aw = lib.awaitable(body, 1, 2)
    before = [*log], aw.args(), aw.is_nowait(), aw.fn() is body
    first = lib.awaitable_wait(aw)
    return before, first, aw.wait() is first, log, aw.args()


def awaits_of_values(lib: Any) -> Any:
    value = [3]
    aw = lib.awaitable_nowait(value)
    return aw.wait() is value, aw.args(), aw.is_nowait(), kind(aw.fn)


def awaits_that_fail(lib: Any) -> Any:
    runs: list[int] = []

    def body() -> None:
        runs.append(1)
        if len(runs) < 3:
            raise ValueError(len(runs))

    aw = lib.awaitable(body)
    return [kind(aw.wait) for _ in range(5)], len(runs)


def awaits_of_themselves(lib: Any) -> Any:
    runs: list[int] = []

    def body() -> int:
        runs.append(1)
        depth = len(runs)
        if depth == 1:
            runs.append(aw.wait() + aw.wait())
        return depth

    aw = lib.awaitable(body)
    return aw.wait(), aw.wait(), runs


def awaits_as_values(lib: Any) -> Any:
    class W:
        v = 3

        def __len__(self) -> int:
            return 5

        def __add__(self, other: int) -> int:
            return other

        def plus(self, other: int) -> int:
            return self.v + other

    aw = lib.awaitable(W)
    outer = lib.awaitable(lambda: aw)
    return [
        *(aw.v, aw.plus(1), aw.__len__(), aw.__add__(2), outer.v),
        *(kind(lambda: aw + 1), kind(lambda: len(aw)), kind(lambda: aw[0])),
        *(kind(lambda: aw(1)), kind(lambda: iter(aw)), bool(aw), aw == 3),
        kind(lambda: setattr(aw, "v", 1)),
    ]


def awaits_that_are_none(lib: Any) -> Any:
    return [
        kind(lambda: lib.awaitable(3)),
        kind(lambda: lib.awaitable()),
        kind(lambda: lib.awaitable_wait(None)),
    ]


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    each.__name__: each
    for each in (
        *(order, registering_inside, values, not_flat, errors, errors_of_callbacks),
        *(twice, collecting, collecting_errors, early_exit),
        *(awaits, awaits_of_values, awaits_that_fail, awaits_of_themselves),
        *(awaits_as_values, awaits_that_are_none),
    )
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_alike(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = PROGRAMS[name](Theirs)
    assert PROGRAMS[name](ours) == theirs


# What differs: by the deviation's name, what each of the two notes.
def keywords(lib: Any) -> Any:
    return kind(lib.awaitable(lambda x: x, x=3).wait)


def missing(lib: Any) -> Any:
    aw = lib.awaitable_nowait(3)
    return hasattr(aw, "missing"), kind(lambda: aw.missing)


def second_completion(lib: Any) -> Any:
    future = lib.Future()
    future.set_result(1)
    return kind(lambda: future.set_exception(KeyError())), kind(future.wait)


def no_exception(lib: Any) -> Any:
    try:
        lib.Future().set_exception(3)
    except (AssertionError, TypeError) as error:
        return isinstance(error, TypeError)


def nested_errors(lib: Any) -> Any:
    future = lib.Future()
    future.set_result(1)
    last = future.then(fails).then(lambda f: f.wait()).then(lambda f: f.wait())
    return str(catch(last.wait)).count("allback")


def exits(lib: Any) -> Any:
    def leave(future: Any) -> None:
        raise SystemExit

    future = lib.Future()
    child = future.then(leave)
    try:
        future.set_result(1)
    except SystemExit:
        return "raised", kind(child.wait)
    return "not raised", kind(child.wait)


def classes(lib: Any) -> Any:
    return isinstance(lib.Future().then(fails), lib.Future)


def timeouts(lib: Any) -> Any:
    try:
        lib.Future().wait(timeout=0)
    except (TimeoutError, TypeError) as error:
        return isinstance(error, TimeoutError)


def types(lib: Any) -> Any:
    return str(lib.awaitable(fails).type()).rpartition(".")[2]


DIFFERENT: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "keyword arguments of an eager await": (keywords, Raised({"TypeError"}), 3),
    "an attribute that the value of an await lacks": (
        missing,
        (True, None),
        (False, Raised({"AttributeError"})),
    ),
    "an error as the second completion of a future": (
        second_completion,
        (Raised({"RuntimeError"}), Raised({"TypeError"})),
        (Raised({"RuntimeError"}), 1),
    ),
    "`set_exception` of no exception": (no_exception, False, True),
    "an exit or Ctrl-C in a callback": (
        exits,
        ("not raised", Raised({"RuntimeError"})),
        ("raised", Raised({"RuntimeError"})),
    ),
    "classes of futures": (classes, False, True),
    "timeouts of `wait`": (timeouts, False, True),
    "`type()` of an eager await": (types, "Await[PyObject]", "Any]"),
    "errors that callbacks hand on": (nested_errors, 3, 1),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_different(what: str) -> None:
    """The name is that of a listed deviation."""
    assert what in {each.what for each in SECTIONS["Futures"]}
    program, theirs, mine = DIFFERENT[what]
    assert program(Theirs) == theirs
    assert program(ours) == mine
