"""Copies of values: alike, and apart from the originals."""

from typing import Any

from runtime import ops, tensor
from runtime.custom.opcheck.sample import META, Copier
from runtime.keys import DispatchKey

core = ops.core


def test_what_shares_a_storage_shares_its_copy() -> None:
    base = tensor([[1.0, 2.0], [3.0, 4.0]])
    view, again = base.t()[1], [base, None, "text"]
    one, (two, *rest) = Copier().values([view, again])
    assert (one.shape, one.strides, one.offset) == ((2,), (2,), 1)
    assert one.storage() is two.storage()
    assert one.storage() is not base.storage()
    assert rest == [None, "text"]
    core.fill_(two, 0)
    assert base.tolist() == [[1, 2], [3, 4]]


def test_apart() -> None:
    base = tensor([1.0, 2.0])
    one, two = Copier(apart=True).values([base, base[0:1]])
    assert one.storage() is not two.storage()


def test_one_tensor_is_copied_once() -> None:
    x = tensor([1.0], requires_grad=True)
    one, two = Copier().values([x, (x,)])
    assert two[0] is one
    assert not one.requires_grad


def test_tensors_that_stand_for_others() -> None:
    x, other = tensor([1.0]), tensor([2.0])
    found: Any = Copier(given={id(x): other}).value({"x": x})
    assert found["x"] is other


def test_without_elements() -> None:
    x = tensor([[1.0, 2.0]]).t()
    made = Copier(meta=True).tensor(x)
    assert (made.device, made.shape, made.strides) == (META, (2, 1), (1, 2))
    assert made.keyset.has(DispatchKey.Meta)
    assert not made.keyset.has(DispatchKey.CPU)


def test_what_can_be_changed_is_copied() -> None:
    given = [object(), {1, 2}]
    made: Any = Copier().value(given)
    assert made[1] == {1, 2}
    assert made[1] is not given[1]
