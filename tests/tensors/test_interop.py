"""What tensors share with other libraries, what they take from them, and what not."""

from ctypes import POINTER, c_char_p, c_int32, c_void_p, cast, py_object, pythonapi
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime.errors.tensor import NoData, NotShareable, UnfitValue
from everyorder.runtime.errors.torch_dispatch import SubclassError
from everyorder.runtime.keys import KeySet
from everyorder.runtime.schema.enums import Device
from everyorder.runtime.tensors import (
    Generator,
    Tensor,
    array_of,
    from_dlpack,
    from_numpy,
    host_copy,
    manual_seed,
    tensor,
    view_of,
)
from everyorder.runtime.tensors.construction import place_on
from everyorder.runtime.tensors.dtype_info import SUPPORTED
from everyorder.runtime.tensors.storage import restored_storage
from tests.coded import code
from tests.examples.nested_wrappers import Wrapper
from tests.operators.refusals import message_of
from tests.tensors.far import Far, use_memory


@pytest.mark.parametrize("dtype", SUPPORTED)
def test_arrays_have_the_strides_of_the_tensor(dtype: str) -> None:
    made = tensor([[0, 1, 1], [1, 0, 0]], dtype=dtype)
    whole = made.numpy()
    for shape, strides, offset in (
        ((3, 2), (1, 3), 0),
        ((2,), (3,), 1),
        ((4, 2), (0, 1), 2),
        ((), (), 5),
        ((0, 2), (1, 1), 6),
    ):
        view = view_of(made, shape, strides, offset)
        array = view.numpy()
        assert (array.shape, array.dtype) == (shape, whole.dtype)
        assert array.size == 0 or np.shares_memory(array, whole)
        assert np.asarray(view).dtype == whole.dtype
        assert np.asarray(view).tolist() == array.tolist()
    assert view_of(made, (3, 2), (1, 3), 0).numpy().tolist() == whole.T.tolist()


def test_views_of_another_dtype() -> None:
    made = tensor([1 + 2j, 3 + 4j])
    parts = view_of(made, (2, 2), (2, 1), 0, made.dtype.named("float32"))
    assert parts.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    second = view_of(made, (2,), (2,), 1, made.dtype.named("float32"))
    assert second.tolist() == [2.0, 4.0]
    second.numpy()[0] = 7
    assert made.tolist() == [1 + 7j, 3 + 4j]
    last = view_of(made, (1,), (1,), 3, made.dtype.named("float32"))
    assert (last.item(), array_of(last).tolist()) == (4.0, [4.0])


def test_numpy_s_interface() -> None:
    made = tensor([1.0, 2.0])
    assert made.__array_interface__["data"][0] == made.data_ptr()
    assert np.asarray(made).__array_interface__["data"][0] == made.data_ptr()
    low = tensor([1.5], dtype="bfloat16")
    assert not hasattr(low, "__array_interface__")
    assert str(np.asarray(low).dtype) == "bfloat16"
    with pytest.raises(AttributeError) as caught:
        _ = tensor(1, device="meta").__array_interface__
    assert str(caught.value) == "a tensor of int64 on meta has no __array_interface__"


def far_tensor(data: Any) -> Tensor:
    return tensor(data, device="fpga:1")


def test_memory_of_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    use_memory(monkeypatch, "fpga", Far())
    made = far_tensor([[1.0, 2.0], [3.0, 4.0]])
    assert made.device is Device("fpga", 1)
    assert made.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    turned = view_of(made, (2, 2), (1, 2), 0)
    assert turned.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert view_of(made, (), (), 2).item() == 3.0
    assert view_of(made, (0, 3), (1, 1), 4).tolist() == []
    assert host_copy(made, "test()").tolist() == made.tolist()
    assert 4.0 in made
    assert not hasattr(made, "__array_interface__")
    asks: tuple[Any, ...] = (made.numpy, made.__array__, lambda: array_of(made))
    for ask in asks:
        with pytest.raises(NotShareable, check=code("NotOnHost")) as caught:
            ask()
        assert caught.value.device == "fpga:1"


def test_the_cuda_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    use_memory(monkeypatch, "cuda", Far())
    made = tensor([[1.0, 2.0], [3.0, 4.0]], device="cuda")
    assert made.device is Device("cuda", 0)
    assert made.__cuda_array_interface__ == {
        "shape": (2, 2),
        "typestr": "<f4",
        "data": (made.data_ptr(), False),
        "strides": None,
        "version": 3,
    }
    turned = view_of(made, (2, 2), (1, 2), 0)
    assert turned.__cuda_array_interface__["strides"] == (4, 8)
    made.requires_grad = True
    with pytest.raises(NotShareable, check=code("NeedsDetach")):
        _ = made.__cuda_array_interface__
    low = tensor([1.5], dtype="bfloat16", device="cuda")
    assert (low.item(), low.tolist()) == (1.5, [1.5])
    for other in (low, tensor(1)):
        assert not hasattr(other, "__cuda_array_interface__")
    assert low.__dlpack_device__() == (2, 0)
    with pytest.raises(BufferError, match="it is on `cuda:0`"):
        low.__dlpack__()


def test_arrays_of_what_is_not_recorded() -> None:
    x = runtime.tensor([1.0, 2.0], requires_grad=True)
    for leave in (Tensor.numpy, np.asarray, Tensor.__dlpack__):
        with pytest.raises(Exception, match="requires grad"):
            leave(x)
    for mode in (runtime.no_grad, runtime.inference_mode):
        with mode():
            assert x.numpy().tolist() == [1.0, 2.0]
            assert np.from_dlpack(x).tolist() == [1.0, 2.0]


def test_a_kernel_below_autograd_may_use_numpy() -> None:
    with runtime.Library("interop", "DEF") as library:
        library.define("double(Tensor x) -> Tensor")
        library.impl("double", lambda x: runtime.from_numpy(x.numpy() * 2), "CPU")
        doubled = runtime.ops.interop.double(runtime.ones(2, requires_grad=True))
        assert doubled.detach().tolist() == [2.0, 2.0]


def test_forced_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    leaf = runtime.tensor([1.0, 2.0], requires_grad=True)
    shared = leaf.numpy(force=True)
    assert (shared.tolist(), np.shares_memory(shared, array_of(leaf))) == ([1, 2], True)
    assert (leaf * 2).numpy(force=True).tolist() == [2.0, 4.0]
    with pytest.raises(NoData) as nothing:
        tensor(1, device="meta").numpy(force=True)
    assert nothing.value.asked == "numpy(force=True)"
    use_memory(monkeypatch, "fpga", Far())
    turned = view_of(far_tensor([[1.0, 2.0], [3.0, 4.0]]), (2, 2), (1, 2), 0)
    assert turned.numpy(force=True).tolist() == [[1.0, 3.0], [2.0, 4.0]]
    with pytest.raises(TypeError):
        leaf.numpy(True)  # type: ignore[call-arg]  # by name only


def test_forced_arrays_are_none_of_a_handled_tensor() -> None:
    handled = tensor(1.0).with_keyset(KeySet("CPU", "Python"))
    with pytest.raises(SubclassError, check=code("NotForSubclasses")) as refused:
        handled.numpy(force=True)
    assert refused.value.asked == "numpy(force=True)"


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
    assert caught.value.fits == "an unused capsule"


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
