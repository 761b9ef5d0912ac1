"""Reshaping, resizing, and the gradients of views."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime.autograd import no_grad
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.errors.autograd import WriteRefused
from everyorder.runtime.errors.tensor import ShapesDoNotFit, WrongOption
from everyorder.runtime.operators import core
from everyorder.runtime.tensors import tensor
from everyorder.runtime.tensors.tensor import Tensor
from tests.coded import coded
from tests.operators.refusals import assert_refused, message_of, one_line
from tests.operators.tensors import cube

OptionRefused = coded(WrongOption, "WrongOption")


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
        "`core::reshape` cannot work on these shapes: size -1 at position 1 is not "
        "a size. given: self (4, 3), wanted (-1, -1) fits: sizes of zero and more, and "
        "-1 once",
    ),
    "flatten": (
        lambda x: core.flatten(x, 2, 1),
        OptionRefused,
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
    assert_refused(lambda: call(cube()), kind, text)


LeafModified = coded(WriteRefused, "LeafModified")
ShapesRefused = coded(ShapesDoNotFit, "ShapesRefused")


def grown(m: Any) -> Any:
    x = m.arange(6.0)
    same = x.resize_(2, 2) is x
    y = m.arange(4.0)
    y.resize_((3, 4))
    part = m.arange(6.0)[2:]
    part.resize_(6)
    return (
        *(same, x.tolist(), tuple(y.shape), y.view(-1)[:4].tolist()),
        *(part[:4].tolist(), part.storage_offset(), tuple(part.stride())),
    )


def pre_allocated(m: Any) -> Any:
    """An output made without elements, resized and filled where they are known."""
    out = m.empty(0)
    before = out.data_ptr()
    view = out.view(0)
    out.resize_(2, 3).fill_(7)
    view.resize_(4)
    return before, out.data_ptr() != 0, out.tolist(), view.tolist()


def laid_out(m: Any) -> Any:
    turned = m.ones(2, 3).t()
    images = m.ones(120)
    images.resize_(1, 2, 3, 4, memory_format=m.channels_last)
    nothing = m.ones(3).resize_(0, 2)
    whole = m.arange(4, dtype=m.int64)
    return (
        *(turned.resize_(3, 2).stride(), turned.resize_(2, 3).stride()),
        *(images.stride(), tuple(nothing.shape), nothing.resize_(3).tolist()),
        *(whole.resize_(2).tolist(), whole.resize_(4).tolist()),
        tuple(m.empty(2, device="meta").resize_(5, 5).shape),
    )


def bumped(m: Any) -> Any:
    x = m.ones(2, requires_grad=True)
    y = x * 2
    with m.no_grad():
        held = y.detach()
    before = held._version
    held.resize_(1)
    return held._version > before or held._version == before


@pytest.mark.torch
@pytest.mark.parametrize("program", [grown, pre_allocated, laid_out, bumped])
def test_as_torch(program: Any) -> None:
    torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
    assert program(runtime) == program(torch)


def test_elements_stay_and_room_is_made() -> None:
    assert grown(runtime)[1:4] == ([[0, 1], [2, 3]], (3, 4), [0, 1, 2, 3])


def test_a_pointer_that_is_null_is_filled() -> None:
    before, there, values, _ = pre_allocated(runtime)
    assert (before, there, values) == (0, True, [[7, 7, 7], [7, 7, 7]])


def test_other_tensors_keep_what_they_show() -> None:
    x = runtime.arange(3.0)
    other, number = x[1:], x[0]
    x.resize_(5).fill_(9)
    assert (other.tolist(), number.item()) == ([1, 2], 0)
    x.resize_(2)
    later = x.view(2)
    later.mul_(2)
    assert x.tolist() == [18, 18]


def unrecorded(x: Tensor) -> None:
    with runtime.no_grad():
        x.resize_(3)


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda: runtime.ones(3).resize_(-1), ShapesRefused, "sizes of 0"),
        (lambda: runtime.ones(3).resize_(2**62, 2**62), OptionRefused, "size"),
        (lambda: runtime.ones(2, requires_grad=True).resize_(3), LeafModified, "leaf"),
        (
            lambda: unrecorded(runtime.ones(2, requires_grad=True)),
            OptionRefused,
            "grad",
        ),
        (
            lambda: runtime.ones(2).resize_(2, memory_format=runtime.preserve_format),
            OptionRefused,
            "order",
        ),
        (
            lambda: runtime.ones(2).resize_(2, memory_format=runtime.channels_last),
            OptionRefused,
            "4 dimensions",
        ),
    ],
)
def test_refused(act: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        act()
    assert isinstance(caught.value, RuntimeError)


def test_nothing_is_lost_where_there_is_no_room() -> None:
    x = runtime.arange(3.0)
    with pytest.raises(MemoryError):
        x.resize_(2**45)
    assert x.tolist() == [0, 1, 2]


def test_the_gradient_of_a_view_is_zero_outside_of_it() -> None:
    line = tensor([1.0, 2.0])
    assert core.slice_backward(line, [5], 0, 1, 5, 2).tolist() == [0, 1, 0, 2, 0]
    assert core.select_backward(line, [2, 2], 1, -1).tolist() == [[0, 1], [0, 2]]
    assert core.diagonal_backward(line, [2, 3], 1, 0, 1).tolist() == [
        [0, 1, 0],
        [0, 0, 2],
    ]
    with pytest.raises(ShapesDoNotFit) as caught:
        core.slice_backward(line, [5], 0, 0, 5, 1)
    assert message_of(caught.value) == one_line(
        "`core::slice_backward` cannot work on these shapes: grad has another shape "
        "than\n"
        "asked.\n"
        "  given: grad (2,)\n"
        "  fits:  shape (5,)"
    )


def test_the_gradient_of_as_strided_adds_up_where_places_coincide() -> None:
    grad = tensor([[1.0, 2.0], [3.0, 4.0]])
    apart = core.as_strided_backward(grad, [6], [1], 0, [2, 2], [3, 1], 1)
    assert apart.tolist() == [0, 1, 2, 0, 3, 4]
    windows = core.as_strided_backward(grad, [3], [1], 0, [2, 2], [1, 1], 0)
    assert windows.tolist() == [1, 5, 4]
    # The input itself shows one place twice: its gradient is shared evenly.
    spread = core.as_strided_backward(grad, [2, 2], [0, 1], 0, [2, 2], [2, 1], 0)
    assert spread.shape == (2, 2)
    assert spread.tolist() == [[0.5, 1.0], [0.5, 1.0]]
