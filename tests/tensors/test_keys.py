"""From a device to the keys of a tensor on it."""

import pytest

from everyorder.runtime.errors.registration import UnknownDevice
from everyorder.runtime.keys import BACKENDS, KeySet
from everyorder.runtime.keys.key_tables import DEVICES
from everyorder.runtime.tensors.keys import keys_of

# Read off torch 2.13, except for hip and ve (AutogradOther there).
KEYS = {
    "cpu": "KeySet(CPU, ADInplaceOrView, AutogradCPU, AutocastCPU)",
    "cuda": "KeySet(CUDA, ADInplaceOrView, AutogradCUDA, AutocastCUDA)",
    "meta": "KeySet(Meta, ADInplaceOrView, AutogradMeta)",
    "hip": "KeySet(HIP, ADInplaceOrView, AutogradHIP)",
    "ve": "KeySet(VE, ADInplaceOrView, AutogradVE)",
    "privateuseone": (
        "KeySet(PrivateUse1, ADInplaceOrView, AutogradPrivateUse1, AutocastPrivateUse1)"
    ),
    "fpga": "KeySet(FPGA, ADInplaceOrView, AutogradOther)",
}


@pytest.mark.parametrize("kind", KEYS)
def test_the_keys_of_a_device(kind: str) -> None:
    assert repr(keys_of(kind)) == KEYS[kind]


def test_every_device_has_keys() -> None:
    found = {kind: keys_of(kind) for kind, _ in DEVICES}
    assert all(isinstance(keys, KeySet) for keys in found.values())
    assert len(set(found.values())) == len(DEVICES)
    assert len({k.backend for keys in found.values() for k in keys}) > len(BACKENDS) - 3


def test_an_unknown_device_has_none() -> None:
    with pytest.raises(UnknownDevice):
        keys_of("foo")
