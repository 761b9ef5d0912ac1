"""Tensors whose keys promise a handler, and results that look like tensors."""

from collections.abc import Callable
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor
from everyorder.runtime.errors.torch_dispatch import HandlerError
from everyorder.runtime.keys import KeySet
from everyorder.runtime.tensors.keys import HANDLED
from everyorder.runtime.torch_dispatch import Context, TorchDispatchMode, no_dispatch
from tests.coded import code
from tests.torch_dispatch.kinds import TENSOR, asked, core, counted, vector
from tests.torch_dispatch.thread_state import Look


def by_with_keyset(x: Any) -> Any:
    return x.with_keyset(KeySet.from_bits(x.key_bits | HANDLED))


def by_hand(x: Any) -> Any:
    x.key_bits |= HANDLED
    return x


class Runs(TorchDispatchMode):
    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        with no_dispatch():
            return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("marked", [by_with_keyset, by_hand])
def test_a_tensor_with_the_key_and_without_a_handler(
    marked: Callable[[Any], Any],
) -> None:
    """7.2: its handler is the one of those who have none."""
    before, x = Look(), marked(vector(1.0, 2.0))
    assert core.neg(x).tolist() == [-1.0, -2.0]
    assert core.cat([x, vector(3.0)]).tolist() == [1.0, 2.0, 3.0]
    assert core.add(vector(1.0, 1.0), x).tolist() == [2.0, 3.0]
    with Runs():
        assert core.neg(x).tolist() == [-1.0, -2.0]
        assert core.cat([x, x]).tolist() == [1.0, 2.0, 1.0, 2.0]
    with Context("other"):
        assert core.neg(x).tolist() == [-1.0, -2.0]
    assert before.unchanged()


def test_beside_one_that_has_a_handler() -> None:
    """7.3: that one is asked first, as its class derives from the other's."""
    x = by_with_keyset(vector(1.0, 2.0))
    y = counted(1.0, 2.0)
    assert asked(lambda: core.add(x, y)) == ["core.add.default"]
    assert core.add(x, y).tolist() == [2.0, 4.0]
    # Its class is `Tensor`, whatever its keys.
    assert type(y.with_keyset(y.keyset)) is Tensor
    assert core.neg(y.with_keyset(y.keyset)).tolist() == [-1.0, -2.0]


class Looks:
    """No tensor, though it has keys."""

    key_bits = 5

    def __repr__(self) -> str:
        return "looks"


def answering(answer: Any) -> Any:
    def handler(*given: Any) -> Any:
        return answer

    kind: Any = type("A", (Tensor,), {"__torch_dispatch__": classmethod(handler)})
    return TENSOR._make_subclass(kind, vector(1.0))


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize(
    ("answer", "call", "found"),
    [
        (Looks(), core.neg, "looks"),
        (Tensor, core.neg, "<class 'everyorder.runtime.tensors.tensor.Tensor'>"),
        ([vector(1.0), Looks()], lambda x: core.split(x, 1), "looks"),
    ],
)
def test_what_passes_for_a_tensor(
    grad: bool, answer: Any, call: Any, found: str
) -> None:
    """Bad input: the class instead of a tensor, above all."""
    x, before = answering(answer), Look()
    x.requires_grad_(grad)
    with pytest.raises(HandlerError, check=code("WrongHandlerResult")) as caught:
        call(x)
    assert before.unchanged()
    assert caught.value.handler == "A.__torch_dispatch__"
    assert caught.value.problem == f"{found}, which has keys but is not a tensor"


def test_a_tensor_that_was_never_made() -> None:
    """Bad input: it has no keys, and is told so."""
    x = answering(object.__new__(Tensor))
    with pytest.raises(runtime.EveryorderError, match="returned a Tensor"):
        core.neg(x)
