"""Handlers get the Python number that was given where a tensor is asked for."""

from collections.abc import Callable
from typing import Any

import pytest

from everyorder.runtime import Tensor, ops, tensor, where
from everyorder.runtime.torch_dispatch import (
    TorchDispatchMode,
    no_dispatch,
    register_torch_dispatch,
)


class Seen(TorchDispatchMode):
    """Remembers what every handler was given besides tensors, with its type."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[object] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.given += [each for each in args if not isinstance(each, Tensor)]
        return func(*args, **(kwargs or {}))


CALLS: list[tuple[Callable[[Tensor], Tensor], object]] = [
    (lambda x: x * 2, 2),
    (lambda x: x * 2.0, 2.0),
    (lambda x: x**2, 2),
    (lambda x: 2 - x, 2),
    (lambda x: x - 2, 2),
    (lambda x: x / 2, 2),
    (lambda x: 2 / x, 2),
    (lambda x: x + True, True),
    (lambda x: x + 1j, 1j),
    (lambda x: x == 1, 1),
    (lambda x: x < 2.5, 2.5),
    (lambda x: 2**x, 2),
    (lambda x: x // 2, 2),
    (lambda x: x % 2, 2),
    (lambda x: x.mul(3), 3),
    (lambda x: x.add_(0.5), 0.5),
    (lambda x: where(x > 0.0, x, 0.0), 0.0),
    (lambda x: ops.core.atan2(x, 1.0), 1.0),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_a_mode_sees_the_number(number: int) -> None:
    call, expected = CALLS[number]
    with Seen() as mode:
        found = call(tensor([1.0, 2.0]))
    assert mode.given[-1] == expected
    assert {type(each) for each in mode.given} == {type(expected)}
    # What it hands on is what was given.
    plain = call(tensor([1.0, 2.0]))
    assert found.dtype == plain.dtype
    assert found.tolist() == plain.tolist()


class Doubling(Tensor):
    """A class that asks what it was given, as one written for upstream does."""

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        with no_dispatch():
            doubled = [each * 2 if isinstance(each, float) else each for each in args]
            return func(*doubled, **(kwargs or {}))


def test_a_class_that_asks_for_floats_finds_them() -> None:
    x = Tensor._make_subclass(Doubling, tensor([1.0, 2.0]))
    assert (x * 3.0).tolist() == [6.0, 12.0]
    # The short way, and the general one, which a rule takes.
    seen: list[object] = []

    def rule(cls: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        seen.extend(args[1:])
        with no_dispatch():
            return func(*args)

    with register_torch_dispatch(ops.core.mul.default, Doubling, rule):
        assert (x * 3.0).tolist() == [3.0, 6.0]
    assert seen == [3.0]
    assert type(seen[0]) is float


def test_a_tensor_without_dimensions_stays_one() -> None:
    with Seen() as mode:
        found = tensor([1.0, 2.0]) * tensor(2.0)
    assert mode.given == []
    assert found.tolist() == [2.0, 4.0]
