"""What a tensor is not made of: foreign objects, capsules, seeds and formats."""

from typing import Any

import numpy as np
import pytest

from runtime.errors.tensor import UnfitValue
from runtime.tensors import Generator, from_dlpack, from_numpy, manual_seed, tensor
from tests.operators.refusals import message_of


@pytest.mark.parametrize("given", [[1, 2], 3, "a", tensor([1])])
def test_from_numpy_takes_arrays_only(given: Any) -> None:
    with pytest.raises(UnfitValue) as caught:
        from_numpy(given)
    assert message_of(caught.value) == (
        f"`from_numpy` takes a NumPy array, but was given a {type(given).__name__}."
        " to do: call `tensor` or `as_tensor`, which take other data"
    )


def test_from_dlpack_takes_objects_and_capsules() -> None:
    array = np.arange(3.0)
    shared = from_dlpack(array.__dlpack__(max_version=(1, 0)))
    array[0] = 7
    assert shared.tolist() == [7.0, 1.0, 2.0]
    with pytest.raises(UnfitValue) as caught:
        from_dlpack(3)
    assert message_of(caught.value) == (
        "`from_dlpack` takes an object with `__dlpack__`, or a capsule,"
        " but was given a int."
    )


def test_a_capsule_is_taken_once() -> None:
    capsule = np.arange(3.0).__dlpack__(max_version=(1, 0))
    from_dlpack(capsule)
    with pytest.raises(UnfitValue) as caught:
        from_dlpack(capsule)
    assert caught.value.fits == "a capsule that nobody took yet"


@pytest.mark.parametrize("seed", ["a", 1.5, None])
def test_a_seed_is_an_integer(seed: Any) -> None:
    for start in (manual_seed, Generator().manual_seed):
        with pytest.raises(UnfitValue) as caught:
            start(seed)
        assert caught.value.fields() == {
            "asked": "manual_seed",
            "found": f"a {type(seed).__name__}",
            "fits": "an integer",
            "near": (),
            "remedy": "",
        }
    assert Generator().manual_seed(np.int64(5)).initial_seed() == 5  # type: ignore[arg-type]  # it has `__index__`


def test_formats() -> None:
    assert f"{tensor(1.5):.2f} {tensor([[2]]):03d}" == "1.50 002"
    assert f"{tensor([1, 2]):>20}" == "      tensor([1, 2])"
    assert f"{tensor([1, 2])}" == "tensor([1, 2])"
    with pytest.raises(UnfitValue) as caught:
        f"{tensor([1.0, 2.0]):.2f}"
    assert message_of(caught.value) == (
        "`format(tensor, '.2f')` takes a tensor of one element, but was given one of"
        " shape (2,). to do: format its elements, from `.tolist()`"
    )
