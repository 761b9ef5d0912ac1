"""Observers (spec 5.9) and the trace (5.4)."""

import subprocess
import sys
from typing import Any

import pytest

from everyorder.runtime.dispatch import Library
from everyorder.runtime.dispatch.watch import DEPTH, UNOBSERVED, WATCH
from everyorder.runtime.keys import AFTER_AUTOGRAD, DispatchKey, KeySet
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.tensors import Tensor, tensor
from tests.dispatch.samples import defined, op, says, silent, untyped


class Eye:
    """An observer that notes what it sees."""

    def __init__(self, name: str, seen: list[Any], fails: str = "") -> None:
        self.name = name
        self.seen = seen
        self.fails = fails

    def before(
        self, operator: str, schema: Schema, arguments: tuple[Any, ...], keyset: KeySet
    ) -> object:
        self.seen.append(
            (self.name, operator, str(schema), len(arguments), str(keyset))
        )
        if self.fails == "before":
            raise ValueError(self.name)
        return f"context of {self.name}"

    def after(self, context: object, outcome: object) -> None:
        self.seen.append((context, outcome))
        if self.fails == "after":
            raise OSError(self.name)


SCHEMA = "test::foo(int x) -> int"
CE = "CompositeExplicitAutograd"
EMPTY = "KeySet()"


def called(*eyes: Eye) -> Any:
    d = silent()
    library = defined(d, "foo(int x) -> int")
    library.impl("foo", lambda x: x + 1, CE)
    contexts = [WATCH.observing(eye) for eye in eyes]
    for context in contexts:
        context.__enter__()
    try:
        return op(d).call(4)
    finally:
        for context in contexts:  # in the order of entering: any order will do
            context.__exit__(None, None, None)
        assert not WATCH.active
        assert DEPTH.level == 0


def test_observers_hear_of_calls_inside_of_each_other() -> None:
    seen: list[Any] = []
    assert called(Eye("a", seen), Eye("b", seen)) == 5
    assert seen == [
        ("a", "test::foo", SCHEMA, 1, EMPTY),
        ("b", "test::foo", SCHEMA, 1, EMPTY),
        ("context of b", 5),
        ("context of a", 5),
    ]


def test_calls_and_boxed_calls_but_no_redispatch() -> None:
    seen: list[Any] = []
    d = silent()
    library = defined(d, "foo(Tensor x) -> Tensor")

    @untyped
    def autograd(keys: Any, x: Any) -> Any:
        return op(d).redispatch(keys & AFTER_AUTOGRAD, x)

    library.impl("foo", autograd, "AutogradCPU", with_keyset=True)
    library.impl("foo", lambda x: x, "CPU")
    x = tensor([1.0])
    with WATCH.observing(Eye("a", seen)):
        op(d).call(x)
        op(d).call_boxed([x])
        op(d).redispatch(KeySet(DispatchKey.CPU), x)
    keys = "KeySet(CPU, AutogradCPU)"
    shown = "test::foo(Tensor x) -> Tensor"
    assert seen == 2 * [("a", "test::foo", shown, 1, keys), ("context of a", x)]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("before", "", ["a"]),
        ("", "before", ["a", "b", "context of a"]),
        ("", "after", ["a", "b", "context of b", "context of a"]),
        ("after", "", ["a", "b", "context of b", "context of a"]),
    ],
)
def test_each_that_began_hears_the_end_whatever_others_do(
    first: str, second: str, expected: list[str]
) -> None:
    seen: list[Any] = []
    with pytest.raises((ValueError, OSError)) as caught:
        called(Eye("a", seen, first), Eye("b", seen, second))
    assert [each[0] for each in seen] == expected
    if second == "after":
        assert seen[-1][1] is caught.value


def test_exceptions_are_an_outcome() -> None:
    seen: list[Any] = []
    d = silent()
    library = defined(d, "foo(int x) -> int")
    error = ZeroDivisionError()

    @untyped
    def fails(x: Any) -> Any:
        raise error

    library.impl("foo", fails, CE)
    with WATCH.observing(Eye("a", seen)), pytest.raises(ZeroDivisionError):
        op(d).call(1)
    assert seen[-1] == ("context of a", error)


def test_trivial_operators_are_not_observed() -> None:
    assert {
        *("core::size", "core::is_leaf", "core::output_nr", "core::_version"),
        "core::is_complex",
    } == UNOBSERVED
    seen: list[Any] = []
    d = silent()
    library = Library("core", "FRAGMENT", dispatcher=d)
    library.define("size.int(int x) -> int")
    library.impl("size.int", says(1), CE)
    with WATCH.observing(Eye("a", seen)), WATCH.tracing() as lines:
        op(d, "core::size.int").call(1)
    assert seen == []
    assert lines == ["[call] op=[core::size.int], key=[Undefined]"]


def nested() -> Any:
    """`foo` calls `bar`, which redispatches, boxed."""
    d = silent()
    library = defined(d, "foo(Tensor x) -> Tensor")
    library.define("bar.over(Tensor x) -> Tensor")

    @untyped
    def foo(x: Tensor) -> Any:
        return op(d, "test::bar.over").call_boxed([x])[0]

    @untyped
    def bar(keys: KeySet, x: Tensor) -> Any:
        below = keys & AFTER_AUTOGRAD
        op(d, "test::bar.over").redispatch(below, x)
        return op(d, "test::bar.over").redispatch_boxed(below, [x])[0]

    library.impl("foo", foo, "CPU")
    library.impl("bar.over", bar, "AutogradCPU", with_keyset=True)
    library.impl("bar.over", lambda x: x, "CPU")
    return d, library


NESTED = [
    "[call] op=[test::foo], key=[CPU]",
    " [callBoxed] op=[test::bar.over], key=[AutogradCPU]",
    "  [redispatch] op=[test::bar.over], key=[CPU]",
    "  [redispatchBoxed] op=[test::bar.over], key=[CPU]",
]


def test_the_trace_is_indented_by_nesting(capsys: pytest.CaptureFixture[str]) -> None:
    d, library = nested()
    with WATCH.tracing(to_stderr=True) as outer, WATCH.tracing() as inner:
        op(d).call(tensor([1.0]))
    assert outer == inner == NESTED
    assert capsys.readouterr().err.splitlines() == NESTED
    assert WATCH.sinks == ()
    assert not WATCH.active
    library.close()


def test_calling_for_a_key_is_not_traced() -> None:
    d = silent()
    library = defined(d, "foo(int x) -> int")
    library.impl("foo", says(1), CE)
    with WATCH.tracing() as lines:
        assert op(d).call_for_key(DispatchKey[CE], [1]) == [1]
    assert lines == []


def test_the_nesting_is_restored_after_an_error() -> None:
    d = silent()
    library = defined(d, "foo(int x) -> int")

    @untyped
    def fails(x: Any) -> Any:
        raise ZeroDivisionError

    library.impl("foo", fails, CE)
    with WATCH.tracing() as lines:
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                op(d).call(1)
    assert lines == 2 * ["[call] op=[test::foo], key=[Undefined]"]
    assert DEPTH.level == 0


PROGRAM = """
from everyorder.runtime import Library, ops
library = Library("test", "DEF")
library.define("foo(int x) -> int")
library.impl("foo", lambda x: x, "CompositeExplicitAutograd")
ops.test.foo(1)
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1", "[call] op=[test::foo], key=[Undefined]\n"),
        ("0", ""),
        ("", ""),
    ],
)
def test_the_environment_traces_to_standard_error(value: str, expected: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        env={"EVERYORDER_TRACE": value},
    )
    assert (run.stdout, run.stderr) == ("", expected)


class Alike(Eye):
    """Equal to every other one; who asks runs its code."""

    asked = 0

    def __eq__(self, other: object) -> bool:
        type(self).asked += 1
        return True

    __hash__ = None  # type: ignore[assignment]  # by identity only


def test_an_observer_leaves_by_identity() -> None:
    """The last of the same that was entered; `==` would be code of anybody."""
    seen: list[Any] = []
    one, two = Alike("one", seen), Alike("two", seen)
    first, second, again = (WATCH.observing(each) for each in (one, two, one))
    for context in (first, second, again):
        context.__enter__()
    found = []
    for context in (first, second, again):
        context.__exit__(None, None, None)
        found.append([each is one for each in WATCH.observers])
    assert found == [[True, False], [True], []]
    assert Alike.asked == 0
