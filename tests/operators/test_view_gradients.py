"""The gradients of views: zero outside of them, added up where places coincide."""

import pytest

from runtime.errors.operands import ShapesDoNotFit
from runtime.operators.call import core
from runtime.tensors import tensor
from tests.operators.told import told, words


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
    assert told(caught.value) == words(
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
