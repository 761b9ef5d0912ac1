"""Arrays that share memory with tensors: NumPy's and CUDA's protocols."""

from typing import Any

import numpy as np
import pytest

import runtime
from runtime.errors.python_dispatch import SubclassError
from runtime.errors.tensor import NoData, NotShareable
from runtime.keys import KeySet
from runtime.schema.codes import Device
from runtime.tensors import Tensor, array_of, host_copy, tensor, view_of
from runtime.tensors.elements import SUPPORTED
from runtime.tensors.storage import MEMORIES
from tests.coded import code
from tests.tensors.far import Far


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
    monkeypatch.setitem(MEMORIES, "fpga", Far())
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
    monkeypatch.setitem(MEMORIES, "cuda", Far())
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
    monkeypatch.setitem(MEMORIES, "fpga", Far())
    turned = view_of(far_tensor([[1.0, 2.0], [3.0, 4.0]]), (2, 2), (1, 2), 0)
    assert turned.numpy(force=True).tolist() == [[1.0, 3.0], [2.0, 4.0]]
    with pytest.raises(TypeError):
        leaf.numpy(True)  # type: ignore[call-arg]  # by name only


def test_forced_arrays_are_none_of_a_handled_tensor() -> None:
    handled = tensor(1.0).with_keyset(KeySet("CPU", "Python"))
    with pytest.raises(SubclassError, check=code("NotForSubclasses")) as refused:
        handled.numpy(force=True)
    assert refused.value.asked == "numpy(force=True)"
