"""How tensors print: whole texts."""

from typing import Any

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime.errors.tensor import NoData
from everyorder.runtime.tensors import Tensor, tensor, view_of, wrap_number
from tests.tensors.far import Far, use_memory

CASES: list[tuple[Tensor, str]] = [
    (tensor([1.0, 2.5]), "tensor([1. , 2.5])"),
    (tensor(1.5), "tensor(1.5)"),
    (tensor(True), "tensor(True)"),
    (tensor([[1], [2]]), "tensor([[1],\n        [2]])"),
    (tensor([1 + 2j]), "tensor([1.+2.j])"),
    (tensor([1], dtype="int8"), "tensor([1], dtype=int8)"),
    (tensor([1.5], dtype="float64"), "tensor([1.5], dtype=float64)"),
    (tensor([1.5, 2], dtype="bfloat16"), "tensor([1.5, 2. ], dtype=bfloat16)"),
    (tensor([float("nan"), float("inf")]), "tensor([nan, inf])"),
    (tensor([]), "tensor([], dtype=float32)"),
    (tensor(np.ones((2, 0))), "tensor([], shape=(2, 0), dtype=float64)"),
    (
        tensor([[1.0, 2.0]], device="meta"),
        "tensor(..., shape=(1, 2), dtype=float32, device='meta')",
    ),
    (
        tensor([], device="meta"),
        "tensor(..., shape=(0,), dtype=float32, device='meta')",
    ),
    (
        tensor(1.5, device="hip:1", requires_grad=True),
        "tensor(1.5, device='hip:1', requires_grad=True)",
    ),
    (wrap_number(2), "tensor(2)"),
    (wrap_number(2.5), "tensor(2.5, dtype=float64)"),
    (tensor(range(1001)), "tensor([   0,    1,    2, ...,  998,  999, 1000])"),
    (
        view_of(tensor([[1, 2], [3, 4]]), (2, 2), (1, 2), 0),
        "tensor([[1, 3],\n        [2, 4]])",
    ),
]


@pytest.mark.parametrize(("made", "text"), CASES, ids=[text for _, text in CASES])
def test_a_tensor_prints(made: Tensor, text: str) -> None:
    assert repr(made) == str(made) == text


def test_a_thousand_elements_print_whole() -> None:
    assert "..." not in repr(tensor(range(1000)))


def test_what_it_was_computed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    class Node:
        def name(self) -> str:
            return "MulBackward"

    made = tensor([1.0], requires_grad=True)
    monkeypatch.setattr(Tensor, "grad_fn", Node())
    assert repr(made) == "tensor([1.], grad_fn=<MulBackward>)"


def test_a_view_that_lost_its_base(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(made: Tensor) -> None:
        raise NoData(
            code="NoData", device="cpu", dtype="float32", shape=(), asked="grad_fn"
        )

    monkeypatch.setattr(Tensor, "grad_fn", property(lost))
    assert repr(tensor([1.0])) == "tensor([1.], grad_fn=<invalid>)"


def test_elements_of_another_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    use_memory(monkeypatch, "fpga", Far())
    made = tensor([1.0, 2.0], device="fpga")
    assert repr(made) == "tensor([1., 2.], device='fpga')"


def test_elements_below_a_handler_are_shown_and_nobody_is_asked() -> None:
    asked: list[Any] = []

    class Told(Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            asked.append(func)
            return super().__torch_dispatch__(func, types, args, kwargs)

    def made(data: Any, **options: Any) -> Any:
        return runtime.Tensor._make_subclass(
            Told, runtime.tensor(data, dtype="float64"), **options
        )

    turned = made([[1.0, 2.0], [3.0, 4.0]]).t()
    policed = made([1.5, 2.5], dispatch_sizes_strides_policy="sizes")
    asked.clear()
    assert repr(policed) == str(policed) == "Told([1.5, 2.5], dtype=float64)"
    assert repr(made([])) == "Told([], dtype=float64)"
    assert repr(made([[]])) == "Told([], shape=(1, 0), dtype=float64)"
    assert (
        repr(made([1.0], require_grad=True))
        == "Told([1.], dtype=float64, requires_grad=True)"
    )
    assert asked == []
    assert repr(turned) == "tensor([[1., 3.],\n        [2., 4.]], dtype=float64)"
