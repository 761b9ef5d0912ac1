"""What an await does for its value: attributes and methods, and nothing else."""

import operator
from collections.abc import Callable
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.errors import FutureMisuse
from everyorder.runtime.futures import Await, awaitable, awaitable_nowait
from tests.coded import code
from tests.futures.test_awaits import Body


class W:
    """A value with attributes, methods, and names that an await has, too."""

    class_level = "class"

    def __init__(self) -> None:
        self.v = 3
        self.args = "shadowed"
        self.type = "shadowed"

    def plus(self, other: int) -> int:
        return self.v + other

    def wait(self) -> str:
        return "shadowed"

    @property
    def broken(self) -> int:
        raise AttributeError("a fault of its own")

    def __add__(self, other: int) -> int:
        return self.v + other

    __radd__ = __add__

    def __call__(self, other: int) -> int:
        return self.v * other

    def __enter__(self) -> str:
        return "entered"

    def __exit__(self, *raised: object) -> None:
        pass

    def __getitem__(self, at: int) -> int:
        return at

    def __contains__(self, value: object) -> bool:
        return True

    def __iter__(self) -> Any:
        return iter([1])

    def __len__(self) -> int:
        return 5

    def __int__(self) -> int:
        return 7


def make() -> tuple[Any, Body]:
    body = Body(W())
    return awaitable(body), body


@pytest.mark.spec("futures 0.20", "made when first needed")
@pytest.mark.spec("futures 1.4", "a miss waits")
def test_an_attribute_waits_once() -> None:
    """1.4, 0.20: the first one runs the function, on the same stack, once."""
    aw, body = make()
    assert aw.v == 3
    assert aw.plus(1) == 4
    assert aw.class_level == "class"
    assert body.runs == 1
    # What it has now, and not what it had.
    aw.wait().v = 8
    assert aw.v == 8


@pytest.mark.spec("futures 1.4", "own names")
def test_its_own_names_come_first() -> None:
    """1.4: they are never the value's, and do not wait."""
    aw, body = make()
    assert aw.args() == ()
    assert aw.is_nowait() is False
    assert aw.fn() is body
    assert (aw.kwargs(), aw.done(), aw.type()) == ({}, False, Await[Any])
    assert aw.__class__ is Await
    assert body.runs == 0
    assert isinstance(aw.wait(), W)


@pytest.mark.spec("futures 1.4", "missing attributes")
@pytest.mark.spec("futures 10", "D2 a missing attribute is an AttributeError")
def test_a_missing_attribute() -> None:
    """1.4, D2: an AttributeError that names the type of the value; hasattr is False."""
    aw, body = make()
    with pytest.raises(FutureMisuse, check=code("AwaitedAttribute")) as caught:
        aw.missing  # noqa: B018  # it raises
    assert isinstance(caught.value, AttributeError)
    assert (caught.value.attribute, caught.value.kind) == ("missing", "W")
    assert not hasattr(aw, "missing")
    assert getattr(aw, "missing", None) is None
    assert hasattr(aw, "v")
    assert body.runs == 1


def test_a_fault_of_the_value_is_the_cause() -> None:
    aw, _ = make()
    with pytest.raises(FutureMisuse, check=code("AwaitedAttribute")) as caught:
        aw.broken  # noqa: B018  # it raises
    assert str(caught.value.__cause__) == "a fault of its own"


def test_an_error_of_the_function_is_raised_as_it_is() -> None:
    aw: Any = awaitable(Body(ValueError("mine"), W()))
    with pytest.raises(ValueError, match="mine"):
        aw.v  # noqa: B018  # it raises
    assert aw.v == 3


OPERATIONS: dict[str, Callable[[Any], object]] = {
    "aw + 1": lambda aw: aw + 1,
    "1 + aw": lambda aw: 1 + aw,
    "len(aw)": len,
    "aw[0]": lambda aw: aw[0],
    "aw(2)": lambda aw: aw(2),
    "iter(aw)": iter,
    "1 in aw": lambda aw: 1 in aw,
    "int(aw)": int,
    "with aw": lambda aw: aw.__class__.__enter__(aw),
    "aw < aw": lambda aw: aw < aw,
    "-aw": operator.neg,
    "index": operator.index,
}


@pytest.mark.spec("futures 1.4", "operators")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_operators_are_not_the_values(operation: str) -> None:
    """1.4: Python looks them up on the class; nothing runs."""
    aw, body = make()
    with pytest.raises((TypeError, AttributeError)):
        OPERATIONS[operation](aw)
    assert body.runs == 0


@pytest.mark.spec("futures 1.4", "operators")
def test_with_is_not_the_values() -> None:
    """1.4: neither `with`."""
    aw, body = make()
    with pytest.raises(TypeError), aw:
        pass
    assert body.runs == 0


@pytest.mark.spec("futures 1.4", "identity")
def test_equality_hash_truth_and_text_are_its_own() -> None:
    """1.4: identity; the value is not asked."""
    aw, body = make()
    assert aw == aw
    assert aw != awaitable(body)
    assert len({aw, aw}) == 1
    assert bool(aw) is True
    zero: Any = awaitable_nowait(0)
    assert zero != 0
    assert bool(awaitable_nowait(0)) is True
    assert body.runs == 0


@pytest.mark.spec("futures 1.4", "explicit special methods")
def test_explicit_special_methods_are_the_values() -> None:
    """1.4: those that an await lacks; the others are its own."""
    aw, _ = make()
    assert aw.__add__(1) == 4
    assert aw.__len__() == 5
    assert aw.__call__(2) == 6
    assert aw.__enter__() == "entered"
    assert aw.__eq__(aw) is True
    assert aw.__str__() == repr(aw)


@pytest.mark.spec("futures 1.4", "setting")
def test_attributes_are_not_set() -> None:
    """1.4: nor deleted; nothing runs."""
    aw, body = make()
    for name in ("v", "wait"):
        with pytest.raises(AttributeError):
            setattr(aw, name, 1)
        with pytest.raises(AttributeError):
            delattr(aw, name)
    assert body.runs == 0
    assert aw.v == 3


@pytest.mark.spec("futures 1.4", "awaits of awaits")
def test_an_await_of_an_await() -> None:
    """1.4: attributes go through both; what is missing is missing of the innermost."""
    inner = awaitable(Body(W()))
    outer: Any = awaitable(Body(inner))
    assert outer.v == 3
    with pytest.raises(FutureMisuse, check=code("AwaitedAttribute")) as caught:
        outer.missing  # noqa: B018  # it raises
    assert caught.value.kind == "W"


def test_names_inside_are_no_names_of_the_value() -> None:
    """Whatever an await keeps, a value may have an attribute of that name."""
    taken = {
        name
        for each in Await.__mro__
        for name in vars(each)
        if name not in vars(object)
    }
    own = {name for name in taken if not name.startswith("__")}
    members = {"args", "done", "fn", "is_nowait", "kwargs", "type", "wait"}
    assert {name for name in own if not name.startswith("_Await__")} <= {
        *members,
        *("_is_protocol",),
    }


TAKING_TENSORS: list[Callable[[Any], object]] = [
    lambda aw: runtime.add(aw, 1),
    lambda aw: runtime.ops.core.add(aw, 1),
    lambda aw: runtime.ops.core.exp(aw),
    lambda aw: runtime.ops.core.cat([aw]),
    lambda aw: runtime.ones(2) + aw,
    lambda aw: aw + runtime.ones(2),
    lambda aw: aw + 1,
]


@pytest.mark.spec("futures 1.4", "tensors")
def test_a_tensor() -> None:
    """1.4: methods and attributes of a tensor, and no operator of tensors takes one."""
    aw: Any = awaitable(lambda: runtime.ones(2))
    assert aw.dtype is runtime.float32
    assert aw.add(1).tolist() == [2, 2]
    assert aw.shape == (2,)
    body = Body(runtime.ones(2))
    for warm in range(3):
        aw = awaitable(body) if warm < 2 else awaitable_nowait(runtime.ones(2))
        for call in TAKING_TENSORS:
            with pytest.raises(TypeError):
                call(aw)
    assert body.runs == 0


@pytest.mark.spec("futures 0.20", "made when first needed")
@pytest.mark.spec("futures 0.21", "acts as its value")
@pytest.mark.spec("script 0.20", "made when first needed")
def test_a_lazy_module() -> None:
    """0.20, 0.21: what it is for: an object that is made when it is first needed."""
    made: list[int] = []

    class Table:
        def __init__(self, rows: int) -> None:
            made.append(rows)
            self.rows = rows

        def row(self, at: int) -> list[int]:
            return [at] * self.rows

    tables: list[Any] = [awaitable(Table, rows=count) for count in range(3)]
    assert made == []
    assert tables[2].row(1) == [1, 1]
    assert made == [2]


@pytest.mark.spec("futures 0.23", "the example")
@pytest.mark.spec("script 0.23", "the example")
def test_the_founding_example() -> None:
    """0.23: an await of a number, waited for explicitly."""

    def delayed(z: int) -> int:
        return z * 3

    def fn(x: Any) -> Any:
        aw: Await[int] = awaitable(delayed, 99)
        a = runtime.eye(2)
        b = aw.wait()
        return a + b + x

    expected = runtime.eye(2) + 297 + runtime.ones(2)
    assert fn(runtime.ones(2)).equal(expected)
