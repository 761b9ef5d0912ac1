"""Upstream's row testAvailableArgTypes: every type there and back, boxed or not."""

from typing import Any

import pytest

from everyorder.runtime.dispatch import boxed
from everyorder.runtime.keys import KeySet
from tests.dispatch.samples import (
    defined,
    on,
    op,
    silent,
)

CPU, CUDA = on("CPU"), on("CUDA")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("float", 1.5),
        ("int", 1),
        ("bool", True),
        ("str", "test"),
        ("float?", 1.5),
        ("float?", None),
        ("int?", None),
        ("bool?", None),
        ("str?", None),
        ("int[]", [2, 4]),
        ("float[]", [1.5, 2.5]),
        ("bool[]", [True, False]),
        ("str[]", ["a", "b"]),
        ("int[]?", None),
        ("int?[]", [1, None]),
        ("str[][]", [["a"], []]),
        ("Dict(str, int)", {"a": 1}),
        ("Dict(int, str)", {1: "a"}),
        ("Dict(str, int[])", {"a": [1, 2]}),
        ("Dict(str, Dict(int, str)?[])[]", [{"a": [{1: "b"}, None]}]),
    ],
)
def test_available_argument_types(written: str, value: Any) -> None:
    d = silent()
    library = defined(d, f"foo(Tensor x, {written} a) -> {written}")
    library.impl("foo", lambda x, a: a, "CPU")

    def pops(operator: Any, keys: KeySet, stack: list[Any]) -> None:
        last = stack.pop()
        stack.pop()
        stack.append(last)

    library.impl("foo", boxed(pops), "CUDA")
    for x in (CPU, CUDA):
        assert op(d).call(x, value) == value
        assert op(d).call_boxed([x, value]) == [value]
    library.define("pair((int, str) a) -> ((int, str))")
    library.impl("pair", lambda a: a, "CompositeExplicitAutograd")
    assert op(d, "test::pair").call((1, "a")) == (1, "a")
    assert op(d, "test::pair").call_boxed([[1, "a"]]) == [(1, "a")]
    x = CPU
    tensors = defined(silent(), "foo(Tensor[] xs, Tensor? y) -> Tensor?[]")
    tensors.impl("foo", lambda xs, y=None: [*xs, y], "CPU")
    assert op(tensors._dispatcher).call([x], None) == [x, None]
