"""Objects in scripts, in every place where a value may stand."""

# mypy: disable-error-code="arg-type,assignment,empty-body,list-item,misc"
# What is of an interface, or left to Python, is known to scripts, and not to mypy.

from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, NamedTuple, Optional

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor
from everyorder.runtime.errors.script import ProgramError
from everyorder.runtime.futures import Await, Future, awaitable, awaitable_wait
from everyorder.runtime.script.emission import compile_function
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir.program import (
    Program,
    fork,
    ignore,
    interface,
    unused,
    wait,
)
from tests.script.emission.scripts import agrees, script


class Number:
    def __init__(self, x: int) -> None:
        self.x = x

    def __add__(self, other: "Number") -> "Number":
        return Number(self.x + other.x)

    @ignore
    def odd(self, n: int) -> str:
        return str({n}) + str(self.x)

    @unused
    def never(self, n: int) -> str:
        return eval("3")  # type: ignore[no-any-return]  # `eval` gives anything

    @property
    def twice(self) -> int:
        return self.x * 2


@pytest.mark.spec("script 6.3", "refinement")
def test_refined_objects() -> None:
    def f(v: Number | None, n: int) -> int:
        if v is not None:
            w = v + v
            w += Number(n)
            return w.x + v.twice
        return n

    agrees(f, (None, 1), (Number(3), 1))


def test_methods_that_are_left_to_python() -> None:
    def f(n: int) -> str:
        return Number(n).odd(3)

    def g(n: int) -> str:
        if n > 3:
            return Number(n).never(3)
        return "no"

    agrees(f, (3,))
    scripted = script(g)
    assert scripted(3) == "no"
    with pytest.raises(Exception, match=r"Number\.never is marked as unused"):
        scripted(4)


def test_classes_in_functions() -> None:
    class Local:
        K = 3

        def __init__(self, n: int) -> None:
            self.n = n

        def method(self):  # type: ignore[no-untyped-def]  # it is inferred
            return self.n * self.K

    def f(n: int) -> int:
        return Local(n).method()  # type: ignore[no-untyped-call,no-any-return]  # as above

    agrees(f, (3,))


@interface
class Sized:
    def size(self, by: int) -> int:
        pass


class Small:
    def __init__(self) -> None:
        self.n = 1

    def size(self, by: int, more: int = 5) -> int:
        return self.n + by + more


def test_defaults_behind_an_interface() -> None:
    def f() -> int:
        s: Sized = Small()
        return s.size(2)

    agrees(f)


def doubled(n: int) -> int:
    return n * 2


class Later:
    def __init__(self, a: Await[int]) -> None:
        self.a = a
        self.f: Future[int] = fork(doubled, 3)
        self.o: int | None = None
        self.l: list[Await[int]] = []


def test_awaits_and_futures_as_attributes() -> None:
    def f() -> int:
        h = Later(awaitable(doubled, 3))
        h.l.append(h.a)
        h.o = 4
        return awaitable_wait(h.a) + wait(h.f) + awaitable_wait(h.l[0])

    agrees(f)


class Kind(Enum):
    A = 1
    B = 2


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class OfKind:
    DEFAULT = Kind.A
    KINDS = (Kind.A, Kind.B)

    def __init__(self) -> None:
        self.kind = self.DEFAULT

    def known(self) -> bool:
        return self.kind in self.KINDS


def test_members_as_constants() -> None:
    def f() -> bool:
        return OfKind().known()

    def g() -> int:
        total = 0
        for i, each in enumerate(Kind):
            total += i * each.value
        return total

    agrees(f)
    agrees(g)


def test_members_that_are_numbers() -> None:
    def f(level: Level) -> tuple[bool, int, bool, bool]:
        return level < Level.HIGH, level + 1, level == 1, bool(level)

    agrees(f, (Level.LOW,), (Level.HIGH,))


def test_objects_in_containers_and_loops() -> None:
    def f(n: int) -> int:
        v = Number(n)
        d = {"a": v}
        t = (v, n)
        total = 0
        for each in [v, Number(2)]:
            total += each.x
        while total < 100:
            v = v + Number(10)
            total += v.x
        return total + d["a"].x + t[0].x

    agrees(f, (3,))


class Manager:
    def __init__(self, log: list[int]) -> None:
        self.log = log

    def __enter__(self) -> "Manager":
        self.log.append(1)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.log.append(2)


def test_a_return_out_of_a_manager() -> None:
    def f(n: int) -> list[int]:
        log: list[int] = []
        with Manager(log) as m:
            if n > 1:
                return log
            m.log.append(n)
        return log

    agrees(f, (1,), (2,))


def test_isinstance_of_anything() -> None:
    def f(x: Any) -> int:
        if isinstance(x, Number):
            return x.x
        return -1

    agrees(f, (Number(3),), (3,))


class Maybe(NamedTuple):
    a: int
    v: int | None = None


def test_optional_fields() -> None:
    def f(n: int) -> tuple[int, bool]:
        p = Maybe(n)
        v = Maybe(n, 3).v
        assert v is not None
        return v + p.a, p.v is None

    agrees(f, (3,))


class Parity:
    def __init__(self) -> None:
        self.k = 0

    def even(self, n: int) -> bool:
        return True if n == 0 else self.odd(n - 1)

    def odd(self, n: int) -> bool:
        return False if n == 0 else self.even(n - 1)


def test_methods_that_call_each_other() -> None:
    def f(n: int) -> bool:
        return Parity().even(n)

    agrees(f, (4,), (5,))


def squared(x: Tensor) -> Tensor:
    return x * x


def test_forks_of_tensors() -> None:
    def f(x: Tensor) -> Tensor:
        futures = [fork(squared, x), fork(squared, x + 1)]
        return wait(futures[0]) + wait(futures[1])

    assert script(f)(runtime.tensor([1.0, 2.0])).tolist() == [5.0, 13.0]


class Converted:
    def __init__(self) -> None:
        self.n: int = 0

    def __hash__(self) -> int:
        return 3

    def __int__(self) -> int:
        return 4

    def __float__(self) -> float:
        return 4.5

    def __repr__(self) -> str:
        return "r"

    def __abs__(self) -> int:
        return 9

    def __str__(self) -> str:
        return "s"


def test_conversions() -> None:
    def f() -> tuple[int, int, float, str, int, str]:
        c = Converted()
        return hash(c), int(c), float(c), repr(c), abs(c), f"{c}!"

    agrees(f)


class Declared:
    n: int

    def __init__(self, k: int) -> None:
        if k > 0:
            self.n = k
        else:
            self.n = -k


def test_attributes_that_are_set_in_branches() -> None:
    def f(k: int) -> int:
        return Declared(k).n

    agrees(f, (3,), (-3,))


def test_forms_by_other_names() -> None:
    waits = awaitable_wait

    def f(n: int) -> int:
        a = awaitable(doubled, n)
        return waits(a) + a.wait()

    agrees(f, (3,))


def test_a_class_of_two_programs() -> None:
    def f(v: Number) -> int:
        return v.twice

    first, second = script(f), script(f)
    assert first(Number(3)) == second(Number(3)) == first(Number(3)) == 6


@dataclass
class Link:
    n: int
    rest: Optional["Link"] = None

    def total(self) -> int:
        rest = self.rest
        return self.n if rest is None else self.n + rest.total()


@dataclass
class Inner:
    k: int
    outer: Optional["Outer"] = None


@dataclass
class Outer:
    inner: Inner
    many: list[Inner] = field(default_factory=list)


def test_dataclasses_of_themselves_and_of_each_other() -> None:
    def f() -> int:
        return Link(1, Link(2)).total()

    def g() -> int:
        outer = Outer(Inner(3))
        outer.inner.outer = outer
        outer.many.append(outer.inner)
        return outer.inner.k + len(outer.many)

    agrees(f)
    agrees(g)


def test_a_class_stays_where_another_function_fails() -> None:
    def wrong() -> int:
        return Number(1).twice + "a"  # type: ignore[operator]  # it is wrong

    def right() -> int:
        return Number(1).twice

    program = Program()
    with pytest.raises(ProgramError):
        compile_function(wrong, program)
    assert program.namespace.qualnames == ()
    assert call(compile_function(right, program), (), {}) == 2
