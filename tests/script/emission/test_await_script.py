"""Awaits in scripts: every row of what upstream's tests ask, and the rules of typing.

Rows of saving, loading and tracing are with those who save and trace.
"""

# mypy: disable-error-code="no-any-return"
# Functions of the runtime give what they give.

from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor
from everyorder.runtime.futures import (
    Await,
    awaitable,
    awaitable_nowait,
    awaitable_wait,
)
from everyorder.runtime.script.emission import compile_function
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir.program import annotate, is_scripting
from tests.script.emission.scripts import agrees, compiled, kinds, script

X = runtime.tensor([[1.0, 2.0], [3.0, 4.0]])


def equal(one: Tensor, other: Tensor) -> bool:
    return bool((one == other).all())


def delayed(x: int) -> int:
    return 2 * (x + 2)


def as_await_int(x: Tensor) -> Tensor:
    aw: Await[int] = awaitable(delayed, 99)
    a = runtime.ops.core.eye(2)
    b = awaitable_wait(aw)
    return a + b + x


@pytest.mark.spec("script 0.23", "the example")
@pytest.mark.spec("script 1.9", "3 script")
def test_script() -> None:
    assert equal(script(as_await_int)(X), as_await_int(X))


# Of what a script makes.
@pytest.mark.spec("futures 1.8", "the boundary of scripts")
@pytest.mark.spec("script 0.21", "a type of its own")
def test_await_of_a_script_is_one_of_python() -> None:
    def g(n: int, m: int) -> int:
        return n * m

    def f(n: int) -> Await[int]:
        return awaitable(g, n, 7)

    made = script(f)(6)
    assert isinstance(made, Await)
    assert not made.done()
    assert made.wait() == 42
    assert made.done()


@pytest.mark.spec("futures 1.8", "awaits in containers and modules")
@pytest.mark.spec("script 1.9", "2 type_python")
def test_await_type_of_a_list() -> None:
    def f() -> int:
        awaits = annotate(list[Await[int]], [])
        awaits.append(awaitable(delayed, 1))
        return len(awaits)

    agrees(f)


@pytest.mark.spec("script 0.24", "three functions")
@pytest.mark.spec("script 1.9", "4 nowait")
def test_nowait() -> None:
    def f(x: Tensor) -> Tensor:
        aw = awaitable_nowait(13)
        return x + awaitable_wait(aw)

    assert equal(script(f)(X), f(X))


class Held:
    def __init__(self, a: Tensor, b: Tensor) -> None:
        self._a = a
        self._b = b

    def a(self) -> Tensor:
        return self._a


@pytest.mark.spec("script 1.9", "5 nowait_class")
def test_nowait_class() -> None:
    def f(x: Tensor) -> Tensor:
        aw = awaitable_nowait(Held(x, x + 1))
        return awaitable_wait(aw).a()

    assert equal(script(f)(X), f(X))


class Private:
    def __init__(self, a: Tensor, b: Tensor) -> None:
        self.__a = a
        self.__b = b

    def a(self) -> Tensor:
        return self.__a

    def both(self) -> Tensor:
        return self.__a + self.__b


@pytest.mark.spec("script 1.9", "6 class_arg")
def test_await_class_arg() -> None:
    def g(held: Private) -> Tensor:
        return held.both()

    def f(x: Tensor) -> Tensor:
        aw: Await[Tensor] = awaitable(g, Private(x, x * 2))
        return awaitable_wait(aw)

    assert equal(script(f)(X), f(X))


class Slotted:
    __slots__ = ("_a", "_b")

    def __init__(self, a: Tensor, b: Tensor) -> None:
        self._a = a
        self._b = b


@pytest.mark.spec("script 1.9", "7 awaitable_to_await")
def test_awaitable_to_await() -> None:
    def awaited(self: Slotted) -> Tensor:
        return self._a + self._b

    def f(x: Tensor) -> Tensor:
        aw: Await[Tensor] = awaitable(awaited, Slotted(x, x + 3))
        return awaitable_wait(aw)

    assert equal(script(f)(X), f(X))


@pytest.mark.spec("script 1.9", "8 class_return")
def test_await_class_return() -> None:
    def g(x: Tensor) -> Held:
        return Held(x, x)

    def f(x: Tensor) -> Tensor:
        aw: Await[Held] = awaitable(g, x)
        held = awaitable_wait(aw)
        return held.a() + held._b

    made = compiled(f)
    assert equal(call(made, (X,), {}), f(X))
    assert kinds(made).count("prim::awaitable_wait") == 1


@pytest.mark.spec("script 0.20", "made when first needed")
@pytest.mark.spec("script 1.9", "9 getattr")
def test_await_getattr_implicit_conversion() -> None:
    def g(x: Tensor) -> Held:
        return Held(x, x + 1)

    def f(x: Tensor) -> Tensor:
        aw: Await[Held] = awaitable(g, x)
        return aw._b + aw.a()

    made = compiled(f)
    assert equal(call(made, (X,), {}), f(X))
    assert kinds(made).count("prim::awaitable_wait") == 2


@pytest.mark.spec("script 1.9", "10 nested")
def test_await_nested() -> None:
    def inner(x: Tensor) -> Tensor:
        return x * 2

    def outer(x: Tensor) -> Await[Tensor]:
        return awaitable(inner, x)

    def f(x: Tensor) -> Tensor:
        aw: Await[Await[Tensor]] = awaitable(outer, x)
        return awaitable_wait(awaitable_wait(aw))

    assert equal(script(f)(X), f(X))


@pytest.mark.spec("script 1.9", "12 isinstance")
def test_await_isinstance() -> None:
    def f(x: Tensor) -> Tensor:
        aw: Await[Tensor] = awaitable_nowait(x)
        if is_scripting():
            assert isinstance(aw, Await)
        return awaitable_wait(aw)

    made = compiled(f)
    assert equal(call(made, (X,), {}), X)
    assert "prim::isinstance" not in kinds(made)


# In a script: an attribute of what is awaited.
@pytest.mark.spec("script 1.9", "13 lazy")
def test_await_lazy() -> None:
    def g(x: Tensor) -> Tensor:
        return x + 1

    def f(x: Tensor) -> bool:
        aw = awaitable(g, x)
        return aw.dtype == x.dtype

    assert script(f)(X) is f(X) is True


@pytest.mark.spec("script 1.9", "14 out_of_interpreter")
def test_await_out_of_interpreter() -> None:
    def g(x: Tensor) -> Tensor:
        return x + 1

    def f(x: Tensor) -> Await[Tensor]:
        return awaitable(g, x)

    assert equal(awaitable_wait(script(f)(X)), awaitable_wait(f(X)))


@pytest.mark.spec("script 1.9", "16 multiout_save")
def test_await_multiout() -> None:
    def g(x: Tensor) -> tuple[Tensor, list[Tensor]]:
        return x, [x + each for each in range(5)]

    def f(x: Tensor) -> Tensor:
        aw: Await[tuple[Tensor, list[Tensor]]] = awaitable(g, x)
        one, more = awaitable_wait(aw)
        return one + more[4]

    assert equal(script(f)(X), f(X))


@pytest.mark.spec("script 1.9", "17 func_arg")
def test_await_func_arg() -> None:
    def g(aw: Await[Tensor]) -> Tensor:
        return -awaitable_wait(aw)

    def h(x: Tensor) -> Tensor:
        return x * 3

    def f(x: Tensor) -> Tensor:
        return g(awaitable(h, x))

    assert equal(script(f)(X), f(X))
    # An await of Python's is taken, too.
    assert equal(script(g)(awaitable(h, X)), f(X))


@pytest.mark.spec("script 0.22", "closures that run at the wait")
@pytest.mark.spec("script 0.24", "three functions")
def test_nothing_runs_before_the_first_wait() -> None:
    def g(log: list[int]) -> int:
        log.append(1)
        return len(log)

    def f(log: list[int]) -> list[int]:
        aw = awaitable(g, log)
        log.append(5)
        before = len(log)
        first = awaitable_wait(aw)
        return [before, first, awaitable_wait(aw), len(log)]

    assert script(f)([]) == f([]) == [1, 2, 2, 2]


def test_arguments_by_keyword_and_default() -> None:
    def g(n: int, m: int = 2, k: int = 3) -> int:
        return n * 100 + m * 10 + k

    def f() -> list[int]:
        awaits = [awaitable(g, 1), awaitable(g, 1, k=5), awaitable(g, k=1, n=2, m=7)]
        return [awaitable_wait(each) for each in awaits]

    agrees(f)


class Counter:
    def __init__(self, start: int) -> None:
        self.n = start

    def more(self, by: int = 1) -> int:
        self.n += by
        return self.n

    @staticmethod
    def twice(n: int) -> int:
        return 2 * n


def test_methods_are_awaited() -> None:
    def f() -> list[int]:
        c = Counter(3)
        one = awaitable(c.more, 4)
        two = awaitable(Counter.twice, 4)
        return [c.n, awaitable_wait(one), awaitable_wait(one), awaitable_wait(two), c.n]

    agrees(f)


def test_operators_are_awaited() -> None:
    def f(x: Tensor) -> Tensor:
        return awaitable_wait(awaitable(runtime.ops.core.neg, x))

    assert equal(script(f)(X), -X)


@pytest.mark.spec("futures 1.8", "awaits in containers and modules")
def test_awaits_are_values() -> None:
    def f(n: int) -> int:
        aw = awaitable_nowait(n)
        if n > 2:
            aw = awaitable(delayed, n)
        kept: dict[str, Await[int]] = {"a": aw}
        maybe: Await[int] | None = aw
        total = awaitable_wait(kept["a"])
        if maybe is not None:
            total += awaitable_wait(maybe)
        return total

    agrees(f, (1,), (3,))


def test_methods_of_what_is_awaited() -> None:
    def g(n: int) -> list[int]:
        return [n]

    def f() -> list[int]:
        aw = awaitable(g, 3)
        aw.append(4)
        return awaitable_wait(aw)

    agrees(f)


def test_an_error_is_raised_at_each_wait() -> None:
    def g(n: int) -> int:
        return 7 // n

    def f(n: int) -> Await[int]:
        return awaitable(g, n)

    aw = script(f)(0)
    for _ in range(2):
        with pytest.raises(Exception, match="zero"):
            aw.wait()


@pytest.mark.spec("script 0.21", "a type of its own")
def test_the_type_of_an_await() -> None:
    def f(n: int) -> Any:
        return 1

    def g(n: int):  # type: ignore[no-untyped-def]  # it is inferred
        return awaitable(delayed, n)

    assert str(compile_function(g).schema) == "g(int n) -> Await(int)"
    assert str(compiled(f).schema) == "f(int n) -> Any"


@pytest.mark.spec("futures 1.1", "the bare name in an annotation")
def test_an_await_without_a_type_is_one_of_anything() -> None:
    def f(aw: Await) -> bool:  # type: ignore[type-arg]  # that is the point
        found = awaitable_wait(aw)
        return isinstance(found, int)

    assert str(compiled(f).schema) == "f(Await(Any) aw) -> bool"
    assert script(f)(awaitable_nowait(3)) is True
    assert script(f)(awaitable_nowait("a")) is False


@pytest.mark.spec("futures 1.8", "the boundary of scripts")
@pytest.mark.spec(
    "futures 10", "D4 an await of Python is converted when it is waited for"
)
def test_what_an_await_of_python_gives_is_looked_at() -> None:
    def f(aw: Await[int]) -> int:
        return awaitable_wait(aw)

    assert script(f)(awaitable_nowait(3)) == 3
    with pytest.raises(Exception, match="int"):
        script(f)(awaitable_nowait("a"))
