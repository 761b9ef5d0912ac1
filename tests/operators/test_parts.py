"""The parts of complex numbers: taken apart and put together again."""

import numpy as np
import pytest

from runtime.autograd import gradcheck, gradgradcheck
from runtime.errors.operands import DTypeRefused
from runtime.errors.operator import ShapesDoNotFit
from runtime.operators import core
from tests.operators.made import META, tensor

NUMBERS = np.array([[1 + 2j, -3j, 0], [np.inf, 5 - 1j, complex(np.nan, 2)]])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_parts_and_back(dtype: str) -> None:
    numbers = tensor(NUMBERS, dtype)
    for x in (numbers, core.t(numbers), core.slice(numbers, 1, 0, None, 2)):
        parts = core._parts(x)
        real = {"complex64": "float32", "complex128": "float64"}[dtype]
        assert (parts.shape, parts.dtype.name) == ((*x.shape, 2), real)
        expected = np.stack([x.numpy().real, x.numpy().imag], -1)
        np.testing.assert_array_equal(parts.numpy(), expected)
        again = core._joined(parts)
        np.testing.assert_array_equal(again.numpy(), x.numpy())
        turned = core._joined(core.transpose(core._parts(core.t(x)), 0, 1))
        np.testing.assert_array_equal(turned.numpy(), x.numpy())
        # They are of their own: what is written there is not written here.
        core.fill_(parts, 7)
        np.testing.assert_array_equal(again.numpy(), x.numpy())


def test_on_meta() -> None:
    x = core.empty([2, 3], dtype=tensor(0, "complex64").dtype, device=META)
    parts = core._parts(x)
    assert (parts.shape, parts.dtype.name) == ((2, 3, 2), "float32")
    assert core._joined(parts).dtype is x.dtype


def test_gradients() -> None:
    x = tensor(np.array([1 + 2j, -3j, 0.5]), "complex128").requires_grad_()
    for check in (gradcheck, gradgradcheck):
        assert check(core._parts, (x,))
        assert check(lambda x: core._joined(core.square(core._parts(x))), (x,))


def test_what_has_no_parts_is_refused() -> None:
    with pytest.raises(DTypeRefused):
        core._parts(tensor([1.0]))
    with pytest.raises(DTypeRefused):
        core._joined(tensor([1, 2], "int64"))
    with pytest.raises(ShapesDoNotFit):
        core._joined(tensor([1.0, 2.0, 3.0]))
