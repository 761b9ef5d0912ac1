"""Views made in one mode and written to in another: refused, or with right gradients.

`views_in_modes.txt` has a line for each base, view and write, with the outcomes in all
modes (`views_in_modes.rows`). torch has the same.
"""

from pathlib import Path
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import autograd, tensor
from everyorder.runtime.autograd import Function, grad, inference_mode, no_grad
from everyorder.runtime.errors.autograd import WriteRefused
from tests.autograd.views_in_modes import Side, rows
from tests.coded import code

EXPECTED = Path(__file__).with_name("views_in_modes.txt").read_text().splitlines()


def test_every_combination() -> None:
    assert autograd.is_grad_enabled()
    assert [*rows(Side(runtime, "float64"))] == EXPECTED


@pytest.mark.torch
def test_every_combination_in_torch() -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed")
    assert [*rows(Side(torch, torch.float64))] == EXPECTED


def test_the_mode_is_named() -> None:
    computed = tensor([1.0, 2.0], requires_grad=True) * 1
    with inference_mode():
        view = computed.view(2)
    with pytest.raises(WriteRefused, check=code("ViewModified")) as refused:
        view.mul_(3)
    assert refused.value.made == "it was made in inference_mode()"


class Returned(Function):
    """Returns one tensor several times, and a part of it."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x, x, x[:2]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        whole = grads[0] + grads[1]
        whole[:2] += grads[2]
        return whole


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("requires_grad", [True, False])
def test_a_tensor_that_is_returned_twice(number: int, requires_grad: bool) -> None:
    base = tensor([1.0, 2.0, 3.0]).requires_grad_(requires_grad) * 1
    outputs = Returned.apply(base)
    assert len({id(base), *map(id, outputs)}) == 4
    with pytest.raises(WriteRefused, check=code("ViewModified")):
        outputs[number].mul_(tensor(2.0, requires_grad=True))


class Inner(Function):
    """Returns a view and the temporary that it shows, which is written to later."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        made = x * 2
        return made[1:], made

    @staticmethod
    def backward(ctx: Any, of_part: Any, of_whole: Any) -> Any:
        whole = of_whole * 2
        whole[1:] += of_part * 2
        return whole


def test_a_view_of_a_later_output() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    part, whole = Inner.apply(x)
    whole.mul_(3)
    (of_whole,) = grad(whole.sum(), x)
    assert of_whole is not None
    assert of_whole.tolist() == [6, 6]
    with pytest.raises(WriteRefused, check=code("ViewModified")):
        part.sum()


class Detached(Function):
    """Returns its input, detached."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.detach()

    @staticmethod
    def backward(ctx: Any, of_result: Any) -> Any:
        return of_result


def test_a_detached_input_is_not_written_to() -> None:
    output = Detached.apply(tensor([1.0, 2.0], requires_grad=True) * 1)
    with pytest.raises(WriteRefused, check=code("ViewModified")):
        output.mul_(3)
    plain = Detached.apply(tensor([1.0, 2.0]))
    plain.mul_(tensor(3.0, requires_grad=True))
    assert plain.requires_grad


class Constant(Function):
    """Returns a view of its input that has no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        view = x[:1]
        ctx.mark_non_differentiable(view)
        return view


def test_a_constant_output_does_not_require_grad() -> None:
    base = tensor([1.0, 2.0], requires_grad=True) * 1
    output = Constant.apply(base)
    assert (output.requires_grad, output._base) == (False, None)
    with no_grad():
        output.mul_(3)
    assert (base.tolist(), output.tolist()) == ([3, 2], [3])


def test_a_detached_tensor_of_inference_mode_is_one_of_it() -> None:
    with inference_mode():
        base = tensor([1.0, 2.0])
    with pytest.raises(WriteRefused, check=code("InferenceTensorUsed")):
        base.detach().mul_(3)
