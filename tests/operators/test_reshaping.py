"""Reshaping: views where they can be, copies where they must."""

from collections.abc import Callable

import numpy as np
import pytest

from runtime.autograd import no_grad
from runtime.dispatch.library import Library
from runtime.errors.operands import ShapesDoNotFit, WrongOption
from runtime.operators.call import core
from runtime.tensors import tensor
from runtime.tensors.tensor import Tensor
from tests.operators.grid import cube
from tests.operators.told import refused


def test_a_reshape_copies_only_where_it_must() -> None:
    base = cube()
    turned = core.permute(base, [2, 0, 1])
    copy = core.reshape(turned, [-1])
    assert copy.tolist() == base.numpy().transpose(2, 0, 1).ravel().tolist()
    assert copy.storage() is not base.storage()
    assert core.reshape(turned, [4, 6, 1]).storage() is base.storage()


def test_sum_to_size_sums_what_broadcasting_repeated() -> None:
    base = tensor(np.arange(24).reshape(2, 3, 4))
    array = base.numpy()
    summed = core.sum_to_size(base, [3, 1])
    assert summed.tolist() == array.sum(axis=(0, 2)).reshape(3, 1).tolist()
    assert core.sum_to_size(base, [2, 1, 4]).tolist() == (
        array.sum(axis=1, keepdims=True).tolist()
    )
    assert core.sum_to_size(base, []).tolist() == 276
    assert core.sum_to_size(base, [2, 3, 4]).tolist() == array.tolist()


def test_a_reshaped_view_is_a_view_to_autograd() -> None:
    x = tensor([[1.0, 2.0, 3.0, 4.0]], requires_grad=True)
    # The fast path is taken from some call on: the history is the same.
    for _ in range(20):
        y = core.reshape(x, [2, 2])
        assert (type(y.grad_fn).__name__, y.grad_fn.name()) == (
            type(core.view(x, [2, 2]).grad_fn).__name__,
            "ViewBackward",
        )
        assert y._base is x
    z = core.reshape(core.t(y), [4])
    z.backward(tensor([1.0, 2.0, 3.0, 4.0]))
    assert x.grad is not None
    assert x.grad.tolist() == [[1.0, 3.0, 2.0, 4.0]]


def test_what_is_written_to_a_reshaped_view_is_seen_by_the_base() -> None:
    for _ in range(20):
        base = tensor([1.0, 2.0])
        core.mul_(core.reshape(base, [2, 1]), 3.0)
        assert base.tolist() == [3.0, 6.0]
        assert base._version == 1


def test_without_recording_nothing_is_recorded() -> None:
    x = core.mul(tensor([1.0, 2.0], requires_grad=True), 2.0)
    for _ in range(20):
        with no_grad():
            assert core.reshape(x, [2, 1]).grad_fn is None
        assert core.reshape(x, [2, 1]).grad_fn is not None


def test_a_kernel_of_view_serves_reshape_from_then_on() -> None:
    x = tensor([1.0, 2.0])
    for _ in range(20):
        core.reshape(x, [2, 1])
    with Library("core", "IMPL", "CPU") as library:
        library.impl("view", lambda self, size: tensor([float(sum(size))]))
        assert core.reshape(x, [2, 1]).tolist() == [3.0]
    assert core.reshape(x, [2, 1]).tolist() == [[1.0], [2.0]]


WRONG: dict[str, tuple[Callable[[Tensor], object], type[Exception], str]] = {
    "reshape": (
        lambda x: core.reshape(x, [5, -1]),
        ShapesDoNotFit,
        "`core::reshape` cannot work on these shapes: they do not have the same number "
        "of elements. given: self (2, 3, 4), wanted (5, -1) fits: sizes whose product "
        "is 24",
    ),
    "reshape of no run": (
        lambda x: core.reshape(core.t(core.select(x, 0, 0)), [-1, -1]),
        ShapesDoNotFit,
        "`core::reshape` cannot work on these shapes: size -1 at position 1 is no "
        "size. given: self (4, 3), wanted (-1, -1) fits: sizes of zero and more, and "
        "-1 once",
    ),
    "flatten": (
        lambda x: core.flatten(x, 2, 1),
        WrongOption,
        "`core::flatten` does not take 2 for `start_dim`.\n"
        "  fits: a dimension before or at end_dim, which is 1",
    ),
    "sum_to_size": (
        lambda x: core.sum_to_size(x, [2, 4]),
        ShapesDoNotFit,
        "`core::sum_to_size` cannot work on these shapes: the size does not broadcast "
        "to\n"
        "the shape.\n"
        "  given: self (2, 3, 4), size (2, 4)\n"
        "  fits:  a size that broadcasts to the shape of self",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused_by_name(case: str) -> None:
    call, kind, text = WRONG[case]
    refused(lambda: call(cube()), kind, text)
