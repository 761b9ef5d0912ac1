"""DLPack both ways, with NumPy, and with torch where it is installed."""

import gc
from typing import Any

import numpy as np
import pytest

from everyorder.runtime.errors.tensor import NotShareable, UnfitValue
from everyorder.runtime.tensors import from_dlpack, from_numpy, tensor, view_of
from everyorder.runtime.tensors.dtype_info import SUPPORTED
from tests.coded import code


@pytest.mark.parametrize("dtype", [each for each in SUPPORTED if each != "bfloat16"])
def test_numpy_takes_it_and_gives_it_back(dtype: str) -> None:
    made = tensor([[0, 1], [1, 0]], dtype=dtype)
    turned = view_of(made, (2, 2), (1, 2), 0)
    array = np.from_dlpack(turned)
    assert array.dtype == np.dtype(dtype)
    assert np.shares_memory(array, made.numpy())
    np.testing.assert_array_equal(array, made.numpy().T)
    again = from_dlpack(array)
    assert again.strides == (1, 2)
    again.numpy()[0, 1] = 0
    assert made.tolist() == [[0, 1], [0, 0]]


def test_a_tensor_is_taken_as_a_view() -> None:
    made = tensor([1.0, 2.0])
    assert from_dlpack(made).storage() is made.storage()


def test_what_cannot_be_handed_over() -> None:
    cases: dict[str, Any] = {
        "it requires grad": tensor([1.0], requires_grad=True),
        "the protocol has no code for the device `meta`": tensor([1], device="meta"),
    }
    for reason, made in cases.items():
        with pytest.raises(NotShareable, check=code("NotExportable")) as caught:
            made.__dlpack__()
        assert caught.value.reason == reason
    assert tensor([1]).__dlpack_device__() == (1, 0)
    assert tensor([1], device="hip").__dlpack_device__() == (1, 0)
    assert np.from_dlpack(tensor([1, 2], device="hip")).tolist() == [1, 2]


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_bfloat16_is_named_in_the_capsule(version: Any) -> None:
    made = tensor([1.5, 2.5], dtype="bfloat16")

    class Handing:
        """As another library would: it passes the capsule on."""

        def __dlpack__(self, **asked: Any) -> Any:
            asked["max_version"] = version
            return made.__dlpack__(**asked)

        def __dlpack_device__(self) -> Any:
            return made.__dlpack_device__()

    again = from_dlpack(Handing())
    assert (str(again.dtype), again.tolist()) == ("bfloat16", [1.5, 2.5])
    assert again.data_ptr() == made.data_ptr()
    with pytest.raises((BufferError, RuntimeError)):
        np.from_dlpack(made)


class Older:
    """A source of the protocol before 1.0: it takes no version, and tells of none."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __dlpack__(self, stream: Any = None) -> Any:
        return self.held.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self.held.__dlpack_device__()


@pytest.mark.parametrize("dtype", ["float32", "int64", "bfloat16"])
def test_legacy_capsules_are_shared_and_may_be_written_to(dtype: str) -> None:
    """They do not say whether they may, and NumPy takes that for a no."""
    made = tensor([1, 2, 3], dtype=dtype)
    for again in (from_dlpack(Older(made)), from_dlpack(made.__dlpack__())):
        assert again.data_ptr() == made.data_ptr()
        again.numpy()[0] += 1
    assert made.tolist() == [3, 2, 3]
    alone = from_dlpack(tensor([7, 8], dtype=dtype).__dlpack__())
    gc.collect()
    assert alone.tolist() == [7, 8]
    used = made.__dlpack__()
    from_dlpack(used)
    with pytest.raises(UnfitValue, match="used_dltensor"):
        from_dlpack(used)


@pytest.mark.torch
@pytest.mark.parametrize("dtype", SUPPORTED)
def test_torch_takes_it_and_gives_it_back(dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    made = tensor([[1, 0, 1], [0, 0, 1]], dtype=dtype)
    theirs = torch.from_dlpack(made)
    assert theirs.dtype == getattr(torch, dtype)
    assert theirs.data_ptr() == made.data_ptr()
    assert theirs.tolist() == made.tolist()
    back = from_dlpack(theirs.T)
    assert (str(back.dtype), back.shape) == (dtype, (3, 2))
    assert back.data_ptr() == made.data_ptr()
    assert back.tolist() == theirs.T.tolist()


@pytest.mark.torch
def test_sharing_outlives_the_one_who_shared() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    theirs = torch.from_dlpack(tensor([1.5] * 1000, dtype="bfloat16"))
    assert theirs.float().sum().item() == 1500
    ours = from_dlpack(torch.full((1000,), 2.5, dtype=torch.bfloat16))
    assert sum(ours.tolist()) == 2500
    assert from_numpy(np.ones(3)[:2]).tolist() == [1.0, 1.0]
