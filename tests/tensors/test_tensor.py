"""The tensor: what it says about itself, its constructor, methods put on it."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from operator import index
from threading import Barrier, Thread
from typing import Any
from weakref import ref

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime.errors.tensor import (
    BadSize,
    IndexOutOfRange,
    NoData,
    NotReplaceable,
    NotShareable,
    UnfitValue,
)
from everyorder.runtime.keys import DispatchKey, KeySet
from everyorder.runtime.schema.annotation import kernel_signature
from everyorder.runtime.schema.binding import bind
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.tensors import (
    Storage,
    Tensor,
    install,
    tensor,
    view_of,
    wrap_number,
)
from everyorder.runtime.tensors.tensor import METHODS
from tests.coded import code


def test_numpy_shares() -> None:
    made = tensor([0.0, 0.0])
    made.numpy()[1] = 2
    assert made.numpy().tolist() == [0.0, 2.0]
    assert np.shares_memory(np.asarray(made), made.numpy())
    assert not np.shares_memory(np.array(made), made.numpy())
    assert np.asarray(made, dtype=np.int64).tolist() == [0, 2]


def test_keys_come_from_the_device() -> None:
    made = tensor([1.0])
    assert repr(made.keyset) == "KeySet(CPU, ADInplaceOrView, AutogradCPU, AutocastCPU)"
    assert type(made.key_bits) is int
    assert made.key_bits == made.keyset.bits
    assert tensor([1.0], requires_grad=True).keyset == made.keyset
    assert tensor([1.0], device="hip:1").keyset == tensor([1.0], device="hip").keyset
    assert made.device is Device("cpu")


def test_other_keys_make_another_tensor_on_the_same_storage() -> None:
    made = tensor([1.0], requires_grad=True)
    keys = KeySet(DispatchKey.SparseCPU, DispatchKey.AutogradCPU)
    other = made.with_keyset(keys)
    assert other.keyset == keys
    assert repr(made.keyset) == "KeySet(CPU, ADInplaceOrView, AutogradCPU, AutocastCPU)"
    assert other.storage() is made.storage()
    assert other.requires_grad
    assert (other.shape, other.dtype, other.device) == (
        made.shape,
        made.dtype,
        made.device,
    )
    assert wrap_number(2).with_keyset(keys).number == 2


def test_geometry() -> None:
    made = tensor([[1, 2, 3], [4, 5, 6]], dtype="int16")
    assert made.shape == made.size() == (2, 3)
    assert (made.size(-1), made.stride(0), made.stride()) == (3, 3, (3, 1))
    assert (made.strides, made.offset, made.storage_offset()) == ((3, 1), 0, 0)
    assert (made.ndim, made.dim(), made.numel(), len(made)) == (2, 2, 6, 2)
    assert made.itemsize == made.element_size() == 2
    assert made.nbytes == made.storage().nbytes() == 12
    turned = view_of(made, (3, 2), (1, 3), 0)
    assert made.is_contiguous()
    assert not turned.is_contiguous()
    assert turned.tolist() == [[1, 4], [2, 5], [3, 6]]
    part = view_of(made, (2,), (1,), 3)
    assert (part.offset, part.is_contiguous(), part.tolist()) == (3, True, [4, 5])
    for ask in (made.size, made.stride):
        with pytest.raises(IndexOutOfRange, check=code("BadDimension")):
            ask(2)
    for ask in (tensor(1).size, tensor(1).stride):
        for dim in (0, -1, 1):
            with pytest.raises(
                IndexOutOfRange,
                check=code("BadDimension"),
                match="in a tensor of 0 dimensions",
            ):
                ask(dim)


def test_kinds_and_places() -> None:
    plain, meta = tensor([1.0]), tensor([1j], device="meta")
    asked = ("is_cpu", "is_cuda", "is_meta")
    assert [getattr(plain, name) for name in asked] == [True, False, False]
    assert [getattr(meta, name) for name in asked] == [False, False, True]
    assert (plain.is_floating_point(), plain.is_complex()) == (True, False)
    assert (meta.is_floating_point(), meta.is_complex()) == (False, True)


def test_the_storage_is_made_when_it_is_asked_for() -> None:
    made = tensor([1.0, 2.0])
    assert (made._place, made._version) == (None, 0)
    start = made.data_ptr()
    assert (made._place, start > 0) == (None, True)
    storage = made.storage()
    assert storage is made.storage()
    assert (storage.data_ptr(), made.data_ptr()) == (start, start)
    assert view_of(made, (1,), (1,), 1).data_ptr() == start + 4
    storage.version += 1
    assert made._version == view_of(made, (1,), (1,), 1)._version == 1
    assert tensor([]).data_ptr() == tensor([1.0], device="meta").data_ptr() == 0
    assert wrap_number(1.5).storage().count == 1


def test_threads_get_one_storage() -> None:
    for _ in range(50):
        made = tensor([1.0])
        found: list[Storage] = []
        barrier = Barrier(4)

        def ask(made: Tensor, found: list[Storage], barrier: Barrier) -> None:
            barrier.wait()
            found.append(made.storage())

        threads = [Thread(target=ask, args=(made, found, barrier)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(map(id, found))) == 1


def test_a_meta_tensor_has_everything_but_data() -> None:
    made = tensor([[1.0, 2.0]], device="meta")
    assert (made.shape, str(made.dtype), made.numel()) == ((1, 2), "float32", 2)
    asks: dict[str, Callable[[], object]] = {
        "numpy()": made.numpy,
        "item()": made.item,
        "tolist()": made.tolist,
        "__array__()": made.__array__,
        "bool()": made.__bool__,
        "in": lambda: 1.0 in made,
    }
    for asked, ask in asks.items():
        with pytest.raises(NoData) as caught:
            ask()
        assert caught.value.fields() == {
            "device": "meta",
            "dtype": "float32",
            "shape": (1, 2),
            "asked": asked,
        }


@pytest.mark.parametrize(
    ("data", "dtype", "number"),
    [
        ([[2.5]], None, 2.5),
        (3, None, 3),
        (True, None, True),
        (1 + 2j, None, 1 + 2j),
        ([1.5], "bfloat16", 1.5),
        ([1.5], "float16", 1.5),
    ],
)
def test_item_reads_one_element(data: Any, dtype: Any, number: Any) -> None:
    found = tensor(data, dtype=dtype).item()
    assert (found, type(found)) == (number, type(number))


def test_item_needs_one_element() -> None:
    for data in ([1, 2], []):
        with pytest.raises(BadSize, check=code("NotOneElement")) as caught:
            tensor(data).item()
        assert caught.value.fields() == {
            "shape": (len(data),),
            "elements": len(data),
            "asked": "item()",
        }
    assert view_of(tensor([1, 2, 3]), (1, 1), (7, 9), 2).item() == 3


def test_python_s_numbers() -> None:
    assert (int(tensor(2.5)), float(tensor([2])), complex(tensor(1j))) == (2, 2.0, 1j)
    assert (bool(tensor([[0.0]])), bool(tensor(2))) == (False, True)
    assert [10, 11, 12][tensor(1)] == 11
    assert f"{tensor(2.5):.2f}" == "2.50"
    assert f"{tensor([2.5])}" == "tensor([2.5])"
    for data in (1.5, [1, 2], [], 1j):
        with pytest.raises(UnfitValue, check=code("NotAnInteger")) as caught:
            index(tensor(data))
        assert caught.value.shape == tensor(data).shape
    with pytest.raises(BadSize, check=code("NotOneElement")) as several:
        bool(tensor([1, 2]))
    assert several.value.asked == "bool()"
    with pytest.raises(TypeError):
        float(tensor(1j))


def test_it_has_a_length_and_members() -> None:
    import everyorder.runtime.bootstrap  # noqa: F401  # tensors are compared by operators

    made = tensor([[1.0, 2.0], [3.0, 4.0]])
    assert len(made) == 2
    assert 3.0 in made
    assert tensor(4) in made
    assert 5 not in made
    for ask, name in ((len, "len()"), (iter, "iter()")):
        with pytest.raises(UnfitValue, check=code("NoLength")) as caught:
            ask(tensor(1))
        assert caught.value.asked == name


def test_lists() -> None:
    assert tensor(1.5).tolist() == 1.5
    assert wrap_number(1.5).tolist() == 1.5
    assert tensor([[1, 2]], dtype="bfloat16").tolist() == [[1.0, 2.0]]
    assert type(tensor([1], dtype="bfloat16").tolist()[0]) is float
    assert tensor([1.0], requires_grad=True).tolist() == [1.0]


def test_requires_grad() -> None:
    made = tensor([1.0])
    made.requires_grad = True
    seen = [made.requires_grad]
    assert made.requires_grad_(False) is made
    assert [*seen, made.requires_grad] == [True, False]
    assert (made.grad, made.grad_fn, made.is_leaf) == (None, None, True)
    made.grad = None
    with pytest.raises(UnfitValue, check=code("NoGradient")):
        tensor([1]).requires_grad = True
    tensor([1]).requires_grad = False


def test_elements_do_not_leave_autograd_s_sight() -> None:
    made = tensor([1.0], requires_grad=True)
    asks: dict[str, Callable[[], object]] = {
        "numpy()": made.numpy,
        "__array__()": made.__array__,
        "__array_interface__": lambda: made.__array_interface__,
    }
    for asked, ask in asks.items():
        with pytest.raises(NotShareable) as caught:
            ask()
        assert caught.value.asked == asked


def test_schemas_take_it() -> None:
    schema = parse_schema("t::f(Tensor x, int k, float y) -> Tensor")
    one = tensor([3.5])
    assert [id(one), 3, 3.5] == [
        id(value) if value is one else value
        for value in bind(schema, (one, one, one), {})
    ]

    def kernel(x: Tensor, d: Device, t: DType) -> Tensor:
        return x

    inferred = kernel_signature(kernel).schema
    assert str(inferred) == "(Tensor _0, Device _1, ScalarType _2) -> Tensor _0"


def test_it_is_hashed_by_identity_and_can_be_referred_to_weakly() -> None:
    made = tensor(1)
    assert len({made, tensor(1)}) == 2
    assert hash(made) == hash(made)
    seen = ref(made)
    assert seen() is made
    del made
    assert seen() is None


def test_numpy_waits_for_the_first_tensor() -> None:
    code = "import sys, everyorder.runtime.tensors; print('numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


@pytest.mark.parametrize("name", ["shape", "dtype", "device"])
def test_what_the_memory_is_cannot_be_set(name: str) -> None:
    x = tensor([1.0, 2.0, 3.0])
    before = getattr(x, name)
    with pytest.raises(NotReplaceable, check=code("FixedAttribute")) as refused:
        setattr(x, name, (100,))
    assert refused.value.name == name
    assert getattr(x, name) is before


class Kept(Tensor):
    """A class without a handler, and without a word on how it is made."""


class Slotted(Tensor):
    __slots__ = ("mark",)


class Mixed:
    __slots__ = ()

    def shouted(self) -> str:
        return "mixed"


class Both(Mixed, Slotted):
    __slots__ = ("__other",)


@pytest.mark.parametrize("kind", [Tensor, Kept, Slotted, Both])
def test_of_data(kind: type[Tensor]) -> None:
    made = kind([[1, 2.5], [3, 4]])
    assert (type(made), str(made.dtype)) == (kind, "float32")
    assert made.tolist() == [[1, 2.5], [3, 4]]
    assert kind(made).tolist() == made.tolist()
    assert kind(runtime.ones(2, dtype="int64")).tolist() == [1, 1]
    assert (made + 1).sum().item() == 14.5


@pytest.mark.parametrize("sizes", [(), (0,), (2, 3), (1, 2, 3, 1, 2), (1,) * 8])
def test_of_sizes(sizes: tuple[int, ...]) -> None:
    for kind in (Tensor, Kept):
        made = kind(*sizes)
        assert (made.shape, str(made.dtype)) == (sizes or (0,), "float32")
    assert Tensor(2, 3, device="meta").is_meta


@pytest.mark.parametrize("given", [(3.0,), (True,), ([1], [2]), (2, [3]), ("cpu", 1)])
def test_of_what_is_neither(given: tuple[Any, ...]) -> None:
    with pytest.raises(UnfitValue) as caught:
        Tensor(*given)
    assert "tensor" in str(caught.value)


def noted() -> Any:
    x: Any = runtime.ones(2)
    x.tag = ["a"]
    return x


def test_whoever_wants_to_notes_something() -> None:
    x = noted()
    assert copy.copy(x).tag is x.tag
    deep = copy.deepcopy(x)
    assert (deep.tag, deep.tag is x.tag) == (["a"], False)
    assert pickle.loads(pickle.dumps(x)).tag == ["a"]
    for other in (x + 1, x.detach(), x.view(2), x.clone()):
        assert not hasattr(other, "tag")
    del x.tag
    assert not hasattr(x, "tag")


@pytest.mark.torch
def test_notes_are_kept_where_torch_keeps_them() -> None:
    torch = pytest.importorskip("torch")
    x, ours = torch.ones(2), noted()
    x.tag = ["a"]
    acts: tuple[Any, ...] = (
        copy.copy,
        copy.deepcopy,
        lambda t: pickle.loads(pickle.dumps(t)),
        lambda t: t + 1,
        lambda t: t.detach(),
    )
    for act in acts:
        assert hasattr(act(ours), "tag") == hasattr(act(x), "tag")


def test_slots_of_subclasses() -> None:
    made: Any = Both([1.0])
    made.mark, made._Both__other, made.extra = 1, 2, 3
    again = pickle.loads(pickle.dumps(made))
    for each in (made, copy.copy(made), copy.deepcopy(made), again):
        assert (each.mark, each._Both__other, each.extra) == (1, 2, 3)
        assert each.shouted() == "mixed"


@pytest.fixture(autouse=True)
def _taken_off() -> Iterator[None]:
    yield
    for name in ("doubled", "halved", "__divmod__"):
        if METHODS.pop(name, None) is not None:
            delattr(Tensor, name)


def test_methods_properties_and_operators() -> None:
    install("doubled", lambda self: 2 * self.item())
    install("halved", property(lambda self: self.item() / 2))
    install("__divmod__", lambda self, other: divmod(self.item(), other))
    made: Any = tensor(3)
    assert (made.doubled(), made.halved, divmod(made, 2)) == (6, 1.5, (1, 1))
    assert {"doubled", "halved", "__divmod__"} <= set(METHODS)
    install("doubled", lambda self: "again")
    assert made.doubled() == "again"


def test_iterating_goes_through_indexing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Tensor, "__getitem__", lambda self, index: ("row", index), raising=False
    )
    assert list(tensor([1, 2])) == [("row", 0), ("row", 1)]
