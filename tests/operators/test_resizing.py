"""`resize_`: another shape in place, and the room for it."""

from typing import Any

import pytest

import runtime
from runtime import Tensor
from runtime.errors.autograd import WriteRefused
from runtime.errors.operands import ShapesDoNotFit, WrongOption
from tests.coded import coded

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
        (lambda: runtime.ones(3).resize_(2**62, 2**62), WrongOption, "size"),
        (lambda: runtime.ones(2, requires_grad=True).resize_(3), LeafModified, "leaf"),
        (lambda: unrecorded(runtime.ones(2, requires_grad=True)), WrongOption, "grad"),
        (
            lambda: runtime.ones(2).resize_(2, memory_format=runtime.preserve_format),
            WrongOption,
            "order",
        ),
        (
            lambda: runtime.ones(2).resize_(2, memory_format=runtime.channels_last),
            WrongOption,
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
