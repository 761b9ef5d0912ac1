"""Arrays of others on the device become tensors, by the CUDA array interface.

True only here: the simulator's device memory is the host's, so NumPy plays the other
library.
"""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from everyorder.runtime.bootstrap import Tensor
from everyorder.runtime.errors.tensor import NotShareable, UnfitValue
from everyorder.runtime.tensors.construction import from_cuda_array
from tests.coded import code
from tests.cuda.simulated.arrays import DEVICE, STORED, Array, form, get


class Foreign:
    """An array of another library."""

    def __init__(self, array: Array, **told: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (array.__array_interface__["data"][0], False),
            "strides": array.strides,
            "version": 3,
            **told,
        }


NUMBERS = np.arange(24, dtype=np.float32).reshape(4, 6)


@pytest.mark.parametrize("name", [name for name in STORED if name != "bfloat16"])
def test_of_every_dtype(name: str) -> None:
    given = np.arange(6).reshape(2, 3).astype(form(name))
    for told in ({}, {"strides": None}, {"stream": 1}):
        made = from_cuda_array(Foreign(given, **told))
        assert (made.device, made.dtype.name) == (DEVICE, name)
        np.testing.assert_array_equal(get(made), given)
        assert made.data_ptr() == given.__array_interface__["data"][0]


@pytest.mark.parametrize(
    "given",
    [NUMBERS.T, NUMBERS[1:, ::2], NUMBERS[2, 3], np.broadcast_to(NUMBERS[0], (3, 6))],
)
def test_strides_are_kept_and_memory_is_shared(given: Array) -> None:
    given = np.asarray(given)
    made = from_cuda_array(Foreign(given, data=(_address(given), False)))
    assert made.strides == tuple(step // 4 for step in given.strides)
    np.testing.assert_array_equal(get(made), given)
    assert made.data_ptr() == _address(given)


def test_writes_are_seen_by_the_other_side() -> None:
    given = np.zeros((2, 2), np.float32)
    made = from_cuda_array(Foreign(given))
    made.t()[0].add_(3.0)
    assert given.tolist() == [[3.0, 0.0], [3.0, 0.0]]


PAIRS = np.zeros(3, [("a", "i1"), ("b", "<i2")])


@pytest.mark.parametrize(
    ("given", "fixed"),
    [
        (NUMBERS[::-1, ::-2], False),
        (NUMBERS, True),
        (NUMBERS.astype(">f4"), False),
        (PAIRS["b"], False),
    ],
)
def test_what_cannot_be_shared_is_copied(given: Array, fixed: bool) -> None:
    made = from_cuda_array(Foreign(given, data=(_address(given), fixed)))
    assert made.is_contiguous()
    np.testing.assert_array_equal(get(made), given)
    made.add_(1)
    assert not np.array_equal(get(made), given)


def test_without_elements() -> None:
    given = np.zeros((0, 3), np.int16)
    made = from_cuda_array(Foreign(given, data=(0, False)))
    assert (made.shape, made.dtype.name, made.device) == ((0, 3), "int16", DEVICE)


def test_the_owner_lives_as_long_as_a_view() -> None:
    source = Foreign(np.ones(4, np.float32))
    told = weakref.ref(source)
    view = from_cuda_array(source)[1:]
    del source
    gc.collect()
    assert told() is not None
    assert get(view).tolist() == [1.0, 1.0, 1.0]
    del view
    gc.collect()
    assert told() is None


def test_a_tensor_s_own_interface() -> None:
    made = from_cuda_array(Foreign(NUMBERS))
    again = from_cuda_array(made)
    assert isinstance(again, Tensor)
    assert again.data_ptr() == made.data_ptr()
    np.testing.assert_array_equal(get(again), NUMBERS)


def test_refusals() -> None:
    with pytest.raises(NotShareable, check=code("MaskedArray")) as caught:
        from_cuda_array(Foreign(NUMBERS, mask=Foreign(NUMBERS > 3)))
    assert str(caught.value) == (
        "A CUDA array of shape (4, 6) has a mask, which tensors do not support.\n"
        "  to do: fill the masked elements, then pass the array without the mask"
    )
    with pytest.raises(UnfitValue, check=code("UnsupportedData")):
        from_cuda_array(Foreign(np.zeros(2, "datetime64[s]")))


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
