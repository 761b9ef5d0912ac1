"""What is taken from elsewhere: arrays of other classes, pickled bytes, capsules."""

from ctypes import POINTER, c_char_p, c_int32, c_void_p, cast, py_object, pythonapi
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime
from runtime import tensor
from runtime.errors.python_dispatch import SubclassError
from runtime.errors.tensor import NotShareable, UnfitValue
from runtime.tensors.making import from_dlpack, from_numpy, place_on
from runtime.tensors.storage import restored_storage
from tests.coded import code
from tests.examples.nested_wrappers import Wrapper


class Turned(np.ndarray[Any, Any]):
    """An array whose `reshape` does something else."""

    def reshape(self, *_shape: Any, **_options: Any) -> Any:
        return np.zeros((3, 3))


def test_an_array_of_another_class_is_an_array() -> None:
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix([[1.0, 2.0], [3.0, 4.0]] * 500)
    made = from_numpy(matrix)
    assert made.shape == (1000, 2)
    assert made.sum().item() == 5000.0
    assert (made + 1).tolist()[0] == [2.0, 3.0]
    matrix[0, 0] = 7.0
    assert made[0, 0].item() == 7.0
    turned = from_numpy(np.arange(4.0).view(Turned))
    assert (turned + 1).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert type(turned.numpy()) is np.ndarray


@pytest.mark.parametrize(
    ("raw", "device"),
    [
        (np.zeros((1000, 8), np.uint8), "cpu"),
        (np.zeros(32, np.uint8)[::2], "cpu"),
        (np.zeros(12, np.uint8), "cpu"),
        (np.zeros(2, np.float64), "cpu"),
        (None, "cpu"),
        (np.zeros(16, np.uint8), "meta"),
        (b"\0" * 16, "cpu"),
    ],
)
def test_a_pickled_storage_is_one_run_of_whole_elements(raw: Any, device: str) -> None:
    with pytest.raises(UnfitValue, match="one run of whole elements"):
        restored_storage(raw, device, "float64", 1)


def test_pickled_bytes_may_be_a_mapped_file(tmp_path: Path) -> None:
    """As joblib hands them to its workers."""
    (tmp_path / "bytes").write_bytes(np.arange(3.0).tobytes())
    for mode in ("r", "c"):
        raw = np.memmap(tmp_path / "bytes", np.uint8, mode)
        storage = restored_storage(raw, "cpu", "float64", 3)
        assert storage.array is not None
        assert storage.array.tolist() == [0.0, 1.0, 2.0]


def test_pickled_bytes_may_lie_anywhere() -> None:
    raw = np.zeros(17, np.uint8)[1:]
    storage = restored_storage(raw, "cpu", "float64", 1)
    assert storage.count == 2
    assert storage.array is not None
    assert storage.array.flags.aligned


def test_an_empty_target_on_another_dtype_grows_by_bytes() -> None:
    """A storage counts elements of its own dtype, a tensor those of its own."""
    storage = runtime.zeros(0, dtype="uint8").storage()
    target = place_on(storage, (0,), (1,), 0, runtime.DType.named("float64"))
    runtime.ops.core.add.out(
        runtime.ones(5, dtype="float64"), runtime.ones(5, dtype="float64"), out=target
    )
    assert target.tolist() == [2.0] * 5


def test_dlpack_asks_a_tensor_of_ours_as_any_other() -> None:
    made: Any = Wrapper
    with pytest.raises(SubclassError, check=code("NotForSubclasses")):
        from_dlpack(made(tensor([1.0])))
    with pytest.raises(
        NotShareable, check=code("NotExportable"), match="requires grad"
    ):
        from_dlpack(tensor([1.0], requires_grad=True))
    assert from_dlpack(runtime.zeros(2, device="meta")).shape == (2,)
    shared = tensor([1.0])
    from_dlpack(shared).mul_(2)
    assert shared.tolist() == [2.0]


def test_a_capsule_that_is_refused_is_as_before() -> None:
    """The code of bfloat16 is rewritten for NumPy, and then the device is refused."""
    source = tensor([1.0, 2.0], dtype="bfloat16")
    held = source.__dlpack__(max_version=(1, 0))
    pointer_of = pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = c_void_p, [py_object, c_char_p]
    # Behind version, context, deleter, flags and the pointer to the data.
    device = cast(pointer_of(held, b"dltensor_versioned") + 40, POINTER(c_int32))
    assert device[0] == 1
    device[0] = 2
    with pytest.raises(RuntimeError):
        from_dlpack(held)
    device[0] = 1
    again = from_dlpack(held)
    assert (again.dtype.name, again.tolist()) == ("bfloat16", [1.0, 2.0])
