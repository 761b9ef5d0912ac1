"""Marks: what they are in Python, where no compiler looks at them."""

from collections.abc import Callable
from typing import Any, Optional, Union

import pytest

from everyorder.runtime.errors.future import FutureMisuse
from everyorder.runtime.errors.script import NotScriptable
from everyorder.runtime.futures import Await, Future, awaitable
from everyorder.runtime.script.ir.program import (
    Attribute,
    Mark,
    annotate,
    export,
    fork,
    ignore,
    interface,
    is_interface,
    is_of_type,
    is_scripting,
    mark_of,
    unchecked_cast,
    unused,
    wait,
)
from tests.coded import code


def doubled(n: int, *, more: int = 0) -> int:
    return 2 * n + more


def fresh() -> Callable[..., int]:
    def one(n: int) -> int:
        return n

    return one


MARKS = [(export, Mark.EXPORT), (ignore, Mark.IGNORE), (unused, Mark.UNUSED)]


@pytest.mark.parametrize(("mark", "found"), MARKS)
def test_a_marked_function_is_itself(mark: Any, found: Mark) -> None:
    one = fresh()
    assert mark(one) is one
    assert mark_of(one) is found
    assert one(3) == 3


def test_ignore_takes_a_switch() -> None:
    assert mark_of(ignore(drop=True)(fresh())) is Mark.UNUSED
    assert mark_of(ignore(drop=False)(fresh())) is Mark.IGNORE
    assert mark_of(ignore()(fresh())) is Mark.IGNORE


def test_a_function_has_the_last_of_its_marks() -> None:
    assert mark_of(export(ignore(fresh()))) is Mark.EXPORT
    assert mark_of(fresh()) is None
    assert mark_of(3) is None


def test_methods_and_properties_are_marked() -> None:
    class Marked:
        @ignore
        def method(self) -> int:
            return 1

        @unused  # type: ignore[prop-decorator]  # mypy knows no decorator of properties
        @property
        def read(self) -> int:
            return 2

        @staticmethod
        @export
        def static() -> int:
            return 3

    assert mark_of(Marked().method) is Mark.IGNORE
    assert mark_of(vars(Marked)["read"]) is Mark.UNUSED
    assert mark_of(vars(Marked)["static"]) is Mark.EXPORT
    assert Marked().read == 2


MISUSED = [
    (
        lambda: export(3),
        "`export` was given an object of type int.\n  it takes: a function",
    ),
    (
        lambda: unused(None),
        "`unused` was given None.\n  it takes: a function",
    ),
    (
        lambda: ignore(len),
        "`ignore` was given an object of type builtin_function_or_method.\n"
        "  it takes: a function that is written in Python",
    ),
    (
        lambda: interface(3),  # type: ignore[type-var]  # that is the point
        "`interface` was given an object of type int.\n  it takes: a class",
    ),
    (
        lambda: interface(bool),
        "`interface` was given bool, which derives from int.\n"
        "  it takes: a class without bases, with all of the methods",
    ),
    (
        lambda: is_of_type(3, 4),
        "`isinstance` was given 4 as type.\n"
        "  it takes: an object, and a type or a tuple of types",
    ),
]


@pytest.mark.parametrize(("misuse", "text"), MISUSED)
def test_what_cannot_be_marked(misuse: Callable[[], object], text: str) -> None:
    with pytest.raises(NotScriptable, check=code("MarkMisuse")) as caught:
        misuse()
    assert str(caught.value) == text


def test_interfaces_are_not_inherited() -> None:
    @interface
    class Told:
        def method(self) -> int:
            return 0

    class Derived(Told):
        pass

    assert is_interface(Told)
    assert not is_interface(Derived)
    assert not is_interface(Told())


def test_expressions_are_their_values() -> None:
    value: list[Any] = []
    assert annotate(list[int], value) is value
    assert unchecked_cast(str, value) is value
    assert is_scripting() is False
    assert Attribute([], list[int]) == ([], list[int])


IS = [
    (3, int, True),
    (True, int, True),
    (3, float, False),
    ([1, 2], list[int], True),
    ([1, "a"], list[int], False),
    ([1, "a"], list, True),
    ([], list[str], True),
    ({"a": [1]}, dict[str, list[int]], True),
    ({"a": ["b"]}, dict[str, list[int]], False),
    ({1: [1]}, dict[str, list[int]], False),
    ((1, "a"), tuple[int, str], True),
    ((1, "a", 2), tuple[int, str], False),
    ((1, 2), tuple[int, str], False),
    (None, Optional[int], True),  # noqa: UP045  # both ways to write it
    (3, Union[int, str], True),  # noqa: UP007  # as above
    ("a", int | str, True),
    (None, None, True),
    (3, None, False),
    (3, Any, True),
    (3, (str, int), True),
    (3, (str, list[int]), False),
    (Future(), Future[int], True),
    (awaitable(doubled, 3), Await[int], True),
]


@pytest.mark.parametrize(("value", "type_", "found"), IS)
def test_isinstance_looks_into_containers(
    value: object, type_: object, found: bool
) -> None:
    assert is_of_type(value, type_) is found


def test_fork_runs_at_once() -> None:
    future = fork(doubled, 3, more=1)
    assert future.done()
    assert wait(future) == future.wait() == 7
    with pytest.raises(ZeroDivisionError):
        fork(divmod, 1, 0)


def test_fork_and_wait_are_misused() -> None:
    with pytest.raises(FutureMisuse) as forked:
        fork(3)  # type: ignore[arg-type]  # that is the point
    assert str(forked.value) == (
        "`fork` was given an object of type int.\n"
        "  it takes: a callable, then its arguments"
    )
    with pytest.raises(FutureMisuse) as waited:
        wait(3)  # type: ignore[arg-type]  # as above
    assert str(waited.value) == (
        "`wait` was given an object of type int.\n"
        "  it takes: the result of `fork`, or another future"
    )
