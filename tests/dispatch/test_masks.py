"""Masks: a fallthrough clears its own bit, for its own backend."""

from runtime.dispatch.table import masks_of
from runtime.keys import BACKEND_BITS, FULL, SLOTS, DispatchKey
from runtime.keys.model import BACKENDS

CPU, META = BACKENDS.index("CPU"), BACKENDS.index("Meta")


def cleared(*names: str) -> list[int]:
    masks = masks_of(sum(1 << (DispatchKey[name].slot or 0) for name in names))
    return [FULL.bits & ~mask for mask in masks.by_backend]


def test_nothing_falls_through() -> None:
    masks = masks_of(0)
    assert masks.by_backend == (FULL.bits,) * 16
    assert not masks.per_backend


def test_a_key_for_all_backends_is_cleared_for_all() -> None:
    bit = DispatchKey.ADInplaceOrView.bits
    assert cleared("ADInplaceOrView") == [bit] * 16
    slot = DispatchKey.ADInplaceOrView.slot or 0
    assert not masks_of(1 << slot).per_backend


def test_a_key_of_one_backend_is_cleared_for_that_one() -> None:
    functionality = DispatchKey.AutogradFunctionality.bits
    found = cleared("AutogradMeta")
    assert found[META] == functionality
    assert [bits for index, bits in enumerate(found) if index != META] == [0] * 15
    assert masks_of(1 << (DispatchKey.AutogradMeta.slot or 0)).per_backend


def test_all_backends_one_by_one_are_as_good_as_one_key() -> None:
    every = [f"Autograd{backend}" for backend in BACKENDS]
    assert cleared(*every) == [DispatchKey.AutogradFunctionality.bits] * 16
    slots = sum(1 << (DispatchKey[name].slot or 0) for name in every)
    assert not masks_of(slots).per_backend


def test_backend_bits_are_never_cleared() -> None:
    masks = masks_of((1 << len(SLOTS)) - 2)
    assert all(mask & BACKEND_BITS == BACKEND_BITS for mask in masks.by_backend)
    assert all(mask == BACKEND_BITS for mask in masks.by_backend)
