"""Pickling, copying and copying deeply."""

from copy import copy, deepcopy
from pickle import dumps, loads
from typing import Any

import pytest

from everyorder.runtime.autograd import inference_mode
from everyorder.runtime.errors.tensor import BadSize, NotShareable, UnfitValue
from everyorder.runtime.keys import DispatchKey, KeySet
from everyorder.runtime.tensors import Tensor, tensor, view_of, wrap_number
from everyorder.runtime.tensors.dtype_info import SUPPORTED
from everyorder.runtime.tensors.keys import keys_of
from tests.coded import code, coded

BadStrides = coded(BadSize, "BadStrides")
OutOfStorage = coded(BadSize, "OutOfStorage")


@pytest.mark.parametrize("dtype", SUPPORTED)
@pytest.mark.parametrize("device", ["cpu", "hip:1", "meta"])
def test_a_tensor_survives(dtype: str, device: str) -> None:
    made = tensor([[0, 1, 1], [1, 0, 0]], dtype=dtype, device=device)
    turned = view_of(made, (3, 1), (1, 3), 3)
    for other in (loads(dumps(turned)), deepcopy(turned), copy(turned)):
        assert type(other) is Tensor
        assert (other.shape, other.strides, other.offset) == ((3, 1), (1, 3), 3)
        assert (other.dtype, other.device) == (made.dtype, made.device)
        assert other.keyset == made.keyset
        if not made.is_meta:
            assert other.tolist() == turned.tolist()


def test_a_copy_shares_and_a_deep_one_does_not() -> None:
    made = tensor([1.0, 2.0], requires_grad=True)
    made.storage().version = 2
    shallow, deep = copy(made), deepcopy(made)
    assert shallow.storage() is made.storage()
    assert deep.storage() is not made.storage()
    assert (deep._version, deep.requires_grad, deep.is_leaf) == (0, True, True)
    assert deep.tolist() == made.tolist()
    assert deep.data_ptr() != made.data_ptr()


def test_what_shares_a_storage_shares_one_again() -> None:
    base = tensor([1.0, 2.0, 3.0])
    pair = [base, view_of(base, (2,), (1,), 1), base]
    for one, view, again in (loads(dumps(pair)), deepcopy(pair)):
        assert one is again
        assert view.storage() is one.storage()
        assert one.storage() is not base.storage()
        one.numpy()[2] = 9
        assert view.tolist() == [2.0, 9.0]


def test_keys_survive_where_they_are_not_the_plain_ones() -> None:
    keys = KeySet(DispatchKey.SparseCPU, DispatchKey.AutogradCPU)
    assert loads(dumps(tensor(1).with_keyset(keys))).keyset == keys
    plain = dumps(tensor(1))
    with inference_mode():
        inferred = dumps(tensor(1))
        assert loads(plain).keyset != keys_of("cpu")
    assert loads(plain).keyset == keys_of("cpu")
    assert loads(inferred).keyset != keys_of("cpu")


def test_wrapped_numbers_stay_numbers() -> None:
    for other in (loads(dumps(wrap_number(2.5))), deepcopy(wrap_number(2.5))):
        assert (other.number, other.numpy().item()) == (2.5, 2.5)


def test_the_history_is_not_pickled() -> None:
    made = tensor([1.0], requires_grad=True)
    made._history = lambda: "cannot be pickled"
    other = loads(dumps(made))
    assert (other._history, other.requires_grad) == (None, True)


def test_only_leaves_are_copied_deeply(monkeypatch: pytest.MonkeyPatch) -> None:
    class Node:
        operator = "core::add"

    monkeypatch.setattr(Tensor, "is_leaf", False)
    monkeypatch.setattr(Tensor, "grad_fn", Node())
    with pytest.raises(NotShareable, check=code("NotALeaf")) as caught:
        deepcopy(tensor([1.0]))
    assert caught.value.fields() == {"asked": "deepcopy()", "operator": "core::add"}


def test_the_gradient_is_copied_too(monkeypatch: pytest.MonkeyPatch) -> None:
    gradients: dict[int, Tensor] = {}
    grad = property(
        lambda self: gradients.get(id(self)),
        lambda self, value: gradients.__setitem__(id(self), value),
    )
    monkeypatch.setattr(Tensor, "grad", grad)
    made, gradient = tensor([1.0]), tensor([5.0])
    made.grad = gradient
    other = deepcopy(made)
    assert other.grad is not None
    assert other.grad.tolist() == [5.0]
    assert other.grad.storage() is not gradient.storage()


@pytest.mark.parametrize(
    ("place", "value"), [(2, (64, 64)), (3, (10**7, 1)), (4, 100), (2, (2.5, 2))]
)
def test_what_is_loaded_must_lie_in_its_storage(place: int, value: Any) -> None:
    restore, parts = tensor([[1.0, 2.0], [3.0, 4.0]]).__reduce__()
    changed = [*parts]
    changed[place] = value
    with pytest.raises((BadStrides, OutOfStorage, TypeError)):
        restore(*changed)


def test_a_storage_is_as_long_as_its_elements() -> None:
    restore, (raw, device, dtype, _count) = tensor([1.0, 2.0]).storage().__reduce__()
    assert len(restore(raw, device, dtype, 1000)) == 2


def test_integers_that_are_loaded_require_no_gradient() -> None:
    restore, parts = tensor([1, 2]).__reduce__()
    with pytest.raises(UnfitValue, check=code("NoGradient")):
        restore(*parts[:-2], True, None)
