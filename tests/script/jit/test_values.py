"""Values that programs take from Python: their attributes, and what may be None."""

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, jit
from everyorder.runtime.errors import CallError, IllTyped
from everyorder.runtime.errors.script import RunningError
from tests.coded import code


@jit.script
class Point:
    def __init__(self, n: int):
        self.n = n
        self.names = ["a"]


@jit.script
class Line:
    def __init__(self, start: Point):
        self.start = start

    def length(self) -> int:
        return self.start.n


def number_of(point: Point) -> int:
    return point.n + 1


def first_of(lines: list[Line]) -> int:
    return lines[0].length()


def test_attributes_of_another_type_are_refused() -> None:
    scripted, point = jit.script(number_of), Point(3)
    assert scripted(point) == 4
    point.n = 2.5  # type: ignore[assignment]  # on purpose
    with pytest.raises(RunningError, check=code("AttributeNotOfType")) as caught:
        scripted(point)
    assert str(caught.value) == (
        "The attribute `Point.n` is a float, expected `int`.\n"
        "  value: 2.5\n"
        "  to do: assign a value of the declared type before the call"
    )
    assert isinstance(caught.value, RuntimeError)
    assert isinstance(caught.value, TypeError)


def test_attributes_of_objects_within_are_checked() -> None:
    scripted, line = jit.script(first_of), Line(Point(3))
    assert scripted([line]) == 3
    line.start.names.append(1)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(RunningError, match=r"`Point\.names` is a list of"):
        scripted([line])


def chosen(x: Tensor | None) -> Tensor:
    y: Tensor = jit._unwrap_optional(x)
    return y + 1


def certain(x: Tensor) -> Tensor:
    y: Tensor = jit._unwrap_optional(x)
    return y


def never() -> None:
    jit._unwrap_optional(None)


def test_unwrapping_gives_the_value_or_raises() -> None:
    x = runtime.ones(1)
    for function in (chosen, jit.script(chosen)):
        assert function(x).tolist() == [2.0]
        with pytest.raises(AssertionError, match="given None: expected a value"):
            function(None)
    assert jit.script(certain)(x) is x
    with pytest.raises(IllTyped, match="given None, which is never a value"):
        jit.script(never)


def first(xs: list[list[int]], d: dict[str, list[int]]) -> int:
    return xs[0][0] + d["a"][0]


def test_tuples_within_a_list_of_the_caller_are_refused() -> None:
    scripted = jit.script(first)
    # The outer tuple becomes a list of the program's own.
    assert scripted(([1],), {"a": [2]}) == 3
    for xs, d in (([(1,)], {"a": [2]}), ([[1]], {"a": (2,)})):
        with pytest.raises(CallError, match="takes"):
            scripted(xs, d)


def grown(n: int, xs: list[int] = [7]) -> int:  # noqa: B006  # that is tested
    xs.append(n)
    return len(xs)


def grown_twice() -> tuple[int, int]:
    return grown(1), grown(2)


def test_a_list_as_a_default_is_new_in_each_call() -> None:
    scripted = jit.script(grown)
    assert [scripted(1), scripted(2)] == [2, 2]
    assert jit.script(grown_twice)() == (2, 2)
    # Python has one for all calls.
    assert [grown(1), grown(2)] == [2, 3]
