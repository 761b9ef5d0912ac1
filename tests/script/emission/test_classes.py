"""Classes in scripts: attributes, methods, operators, dataclasses, interfaces."""

# mypy: disable-error-code="arg-type,assignment,empty-body,list-item,misc"
# What is of an interface is known to scripts, and not to mypy.

import gc
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple
from weakref import ref

import pytest

from everyorder.runtime.script.emission import compile_class, compile_function
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir.program import Program, interface
from tests.script.emission.scripts import agrees, script


class Counter:
    """A class with everything that classes have."""

    STEP = 2
    NAMES: ClassVar[tuple[str, str]] = ("one", "two")
    total: int

    def __init__(self, start: int, name: str = "c") -> None:
        self.total = start
        self.name = name
        self.seen: list[int] = []
        self.__hidden = start * 10

    def add(self, n: int) -> int:
        """Add."""
        self.total += n * self.STEP
        self.seen.append(n)
        return self.total

    def hidden(self) -> int:
        return self.__hidden + self.__more()

    def __more(self) -> int:
        return 1

    @property
    def twice(self) -> int:
        return self.total * 2

    @property
    def level(self) -> int:
        return self.total

    @level.setter
    def level(self, to: int) -> None:
        self.total = to

    @staticmethod
    def half(n: int) -> int:
        return n // 2

    def again(self, n: int):  # type: ignore[no-untyped-def]  # it is inferred
        return self.add(self.add(n))


def test_a_program_with_classes_is_let_go() -> None:
    """Nothing but the program keeps what has been compiled of a class that stays."""
    gone = []
    for _ in range(2):
        program = Program()
        compiled = compile_class(Counter, program)
        gone += [ref(program), ref(compiled.declaration.functions["add"])]
        del program, compiled
    gc.collect()
    # Objects of the class are of the type that was declared last.
    assert [each() for each in gone[:2]] == [None, None]


@pytest.mark.spec("script 6.3", "named tuples, enums, classes, interfaces")
def test_attributes_and_methods() -> None:
    def g(n: int) -> tuple[int, int, int, list[int], str]:
        c = Counter(n, name="d")
        c.add(3)
        c.total += 1
        return c.total, c.add(n), c.again(1), c.seen, c.name

    agrees(g, (1,), (-4,))


def test_private_names() -> None:
    def f() -> int:
        return Counter(3).hidden()

    agrees(f)


def test_constants_properties_and_static_methods() -> None:
    def f(n: int) -> tuple[int, int, str, int, int, int]:
        c = Counter(n)
        c.level = 7
        twice = c.twice
        c.level += 1
        return c.STEP, Counter.STEP, c.NAMES[1], twice, c.half(9), Counter.half(c.level)

    agrees(f, (1,))


def test_objects_are_shared_with_python() -> None:
    def f(c: Counter, n: int) -> Counter:
        c.add(n)
        return c

    given = Counter(1)
    assert script(f)(given, 4) is given
    assert (given.total, given.seen) == (9, [4])


def test_objects_made_in_a_script_are_objects_of_python() -> None:
    def f(n: int) -> Counter:
        return Counter(n)

    made = script(f)(3)
    assert type(made) is Counter
    assert (made.total, made.hidden(), made.twice) == (3, 31, 6)


class Vector:
    __slots__ = ("x", "y")

    def __init__(self, x: int, y: int) -> None:
        self.x = x
        self.y = y

    def __add__(self, other: "Vector") -> "Vector":
        return Vector(self.x + other.x, self.y + other.y)

    def __sub__(self, other: "Vector") -> "Vector":
        return Vector(self.x - other.x, self.y - other.y)

    def __mul__(self, by: int) -> "Vector":
        return Vector(self.x * by, self.y * by)

    def __rmul__(self, by: int) -> "Vector":
        return self * by

    def __neg__(self) -> "Vector":
        return self * -1

    def __iadd__(self, other: "Vector") -> "Vector":
        self.x += other.x
        self.y += other.y
        return self

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> int:
        if i == 0:
            return self.x
        return self.y

    def __setitem__(self, i: int, to: int) -> None:
        if i == 0:
            self.x = to
        else:
            self.y = to

    def __contains__(self, n: int) -> bool:
        return n == self.x or n == self.y

    def __call__(self, n: int, m: int = 1) -> int:
        return self.x * n + self.y * m

    def __str__(self) -> str:
        return "v" + str(self.x)

    def __bool__(self) -> bool:
        return self.x != 0 or self.y != 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vector) and self.x == other.x

    def __hash__(self) -> int:
        return self.x

    def __lt__(self, other: "Vector") -> bool:
        return self.x < other.x


def test_operators() -> None:
    def f(n: int) -> list[int]:
        a, b = Vector(n, 2), Vector(3, n)
        c = a + b - a * 2
        d = -c
        d += a
        e = 3 * d
        return [c.x, c.y, d.x, d.y, e.x, e.y]

    agrees(f, (1,), (5,))


def test_containers_and_calls() -> None:
    def f(n: int) -> tuple[int, int, int, bool, bool, int, int]:
        a = Vector(n, 2)
        a[1] = 9
        a[0] += 1
        return len(a), a[0], a[1], 9 in a, 3 not in a, a(2), a(2, m=3)

    agrees(f, (1,), (3,))


def test_conversions_and_comparisons() -> None:
    def f(n: int) -> tuple[str, bool, bool, bool, bool, bool, int]:
        a, b = Vector(n, 1), Vector(3, 0)
        truth = 1 if Vector(0, 0) else 2
        return str(a), bool(a), a == b, a != b, a < b, not a, truth

    agrees(f, (1,), (3,), (4,))


class Noted:
    def __init__(self) -> None:
        self.log: list[str] = []

    def __enter__(self) -> int:
        self.log.append("in")
        return 5

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.log.append("out")


@pytest.mark.spec("script 6.2", "with")
def test_managers() -> None:
    def f(n: int) -> tuple[int, list[str]]:
        noted = Noted()
        with noted as five:
            n += five
        return n, noted.log

    agrees(f, (2,))


class Chain:
    def __init__(self, n: int, rest: "Chain | None") -> None:
        self.n = n
        self.rest = rest

    def sum(self) -> int:
        rest = self.rest
        if rest is None:
            return self.n
        return self.n + rest.sum()


def test_recursive_classes() -> None:
    def f(n: int) -> int:
        chain: Chain | None = None
        for each in range(n):
            chain = Chain(each, chain)
        if chain is None:
            return -1
        return chain.sum()

    agrees(f, (0,), (1,), (5,))


class Left:
    def __init__(self, right: "Right | None") -> None:
        self.right = right


class Right:
    def __init__(self, left: Left) -> None:
        self.left = left

    def round(self) -> Left:
        return self.left


def test_classes_of_each_other() -> None:
    def f() -> bool:
        left = Left(None)
        right = Right(left)
        left.right = right
        return right.round() is left

    agrees(f)


@dataclass
class Point:
    x: int
    y: int = 2
    names: list[str] = field(default_factory=list)

    def norm(self) -> int:
        return self.x * self.x + self.y * self.y


@dataclass(order=True)
class Ranked:
    first: int
    second: str = "b"
    third: float = field(default=1.5, compare=False)


@dataclass
class Derived:
    a: int
    b: int = field(init=False, default=4)
    c: ClassVar[int] = 3

    def __post_init__(self) -> None:
        self.b = self.a + self.c


def test_dataclasses() -> None:
    def f(n: int) -> tuple[int, int, int, list[str], bool, bool]:
        p, q = Point(n), Point(y=3, x=1)
        p.names.append("a")
        q.x += 1
        return p.x, p.norm(), q.norm(), q.names, p == q, Point(1) == Point(1)

    agrees(f, (1,), (2,))


@dataclass
class Named:
    x: int
    type_x: int
    Owner: int
    new_x: int = 4
    _owner: int = 5


def test_fields_may_have_any_names() -> None:
    @script
    def program(a: int) -> tuple[int, bool]:
        one = Named(a, 2, 3)
        total = one.x + one.type_x + one.Owner + one.new_x + one._owner
        return total, one == Named(a, 2, 3)

    assert program(1) == (15, True)


def test_dataclasses_with_an_order() -> None:
    def f(n: int) -> list[bool]:
        a, b = Ranked(n, "a"), Ranked(2, third=n * 1.0)
        return [a < b, a <= b, a > b, a >= b, a == b, a != b]

    agrees(f, (1,), (2,), (3,))


def test_dataclasses_that_compute_fields() -> None:
    def f(n: int) -> tuple[int, int, int]:
        d = Derived(n)
        return d.a, d.b, d.c

    agrees(f, (1,))


class Pair(NamedTuple):
    first: int
    second: str = "b"


@pytest.mark.spec("script 6.3", "named tuples, enums, classes, interfaces")
def test_named_tuples() -> None:
    def f(n: int) -> tuple[int, str, str, int, int, bool]:
        p, q = Pair(n), Pair(second="c", first=2)
        one, two = q
        return p.first, p.second, two, one, p[0] + len(q), p == q

    agrees(f, (1,), (2,))


def test_named_tuples_cross_the_boundary() -> None:
    def f(p: Pair) -> Pair:
        return Pair(p.first + 1, p.second)

    agrees(f, (Pair(3),))


@interface
class Sized:
    def size(self, by: int) -> int:
        pass


class Small:
    def __init__(self, n: int) -> None:
        self.n = n

    def size(self, by: int) -> int:
        return self.n + by


class Large:
    def __init__(self) -> None:
        self.n = 100

    def size(self, by: int) -> int:
        return self.n * by


def sized(s: Sized, by: int) -> int:
    return s.size(by)


@pytest.mark.spec("script 6.3", "named tuples, enums, classes, interfaces")
def test_interfaces() -> None:
    def f(n: int) -> int:
        s: Sized = Small(n)
        if n > 2:
            s = Large()
        both: list[Sized] = [s, Small(1)]
        total = sized(Small(n), 1)
        for each in both:
            total += each.size(3)
        return total

    agrees(f, (1,), (4,))


class Holder:
    def __init__(self, inner: Sized) -> None:
        self.inner = inner

    def size(self, by: int) -> int:
        return self.inner.size(by) + 1


def test_interfaces_of_what_holds_them() -> None:
    def f() -> int:
        return sized(Holder(Holder(Small(1))), 3)

    agrees(f)


def test_isinstance_of_classes() -> None:
    def f(n: int, held: int | str | list[int]) -> list[bool]:
        c = Small(n)
        a = isinstance(c, Small)
        b = isinstance(c, Large)
        d = isinstance(held, (int, list))
        e = isinstance(n, (str, float))
        return [a, b, d, e, isinstance(n, int), isinstance(Pair(1), Pair)]

    agrees(f, (1, 2), (1, "a"), (1, [3]))


def test_objects_without_methods_are_compared_by_identity_and_true() -> None:
    def f(n: int) -> list[bool]:
        a, b = Small(n), Small(n)
        c = a
        return [a == b, a == c, a != b, bool(a), not a, a is not b if a else False]

    agrees(f, (1,))


def test_a_class_is_compiled_once() -> None:
    program = Program()
    made = compile_class(Counter, program)
    assert compile_class(Counter, program) is made
    assert str(made) == "__torch__.tests.script.emission.test_classes.Counter"
    assert [*made.declaration.attributes] == [
        "total",
        "name",
        "seen",
        "_Counter__hidden",
    ]
    assert str(made.declaration.methods["add"]) == (
        "add(__torch__.tests.script.emission.test_classes.Counter self, int n) -> int"
    )

    def f(n: int) -> int:
        return Counter(n).total

    assert call(compile_function(f, program), (3,), {}) == 3
    assert program.namespace.qualnames == (str(made),)
