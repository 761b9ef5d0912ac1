"""`host_tensor`: nothing but a faster `Tensor(...)`."""

import numpy as np

from runtime.autograd import inference_mode
from runtime.tensors.arrays import TensorBase
from runtime.tensors.data import tensor
from runtime.tensors.keys import fresh_key_bits
from runtime.tensors.making import CPU, host_tensor, view_of
from runtime.tensors.tensor import Tensor

# Slots that only tensors with handlers fill.
HANDLED = {"__weakref__", "_context", "_policy"}
PARTS = tuple(name for name in TensorBase.__slots__ if name not in HANDLED)


def test_every_part_is_that_of_a_tensor_made_by_the_class() -> None:
    flat, dtype = np.zeros(6, np.float32), tensor(0.0).dtype
    for mode in (False, True):
        with inference_mode(mode):
            plain = Tensor(flat, (2, 3), dtype, CPU, fresh_key_bits("cpu"))
            made = host_tensor(flat, (2, 3), dtype)
        for name in PARTS:
            assert getattr(made, name) is getattr(plain, name) or (
                getattr(made, name) == getattr(plain, name) and name != "_flat"
            )


def test_a_view_has_every_part() -> None:
    base = tensor([[1.0, 2.0], [3.0, 4.0]])
    made = view_of(base, (2,), (2,), 1)
    assert made.tolist() == [2, 4]
    assert all(hasattr(made, name) for name in PARTS)
    assert (made.number, made._history, made.requires_grad) == (None, None, False)
