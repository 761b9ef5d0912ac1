import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everyorder.runtime.errors.registration import KeyMisuse, LookupFailed
from everyorder.runtime.errors.tensor import UnfitValue
from everyorder.runtime.keys import (
    BACKEND_BITS,
    BACKENDS,
    FULL,
    SLOTS,
    DispatchKey,
    KeySet,
    full_after,
    mask_index,
    slot_of,
)
from tests.coded import code

K = DispatchKey
KEYS = st.sampled_from(list(DispatchKey))
BITS = st.integers(0, FULL.bits)
SETS = BITS.map(KeySet.from_bits)


def test_raw_bits() -> None:
    assert FULL.bits == 0x3FFFFFFFFFFFFFFF
    assert KeySet(K.CPU).bits == 65537
    assert full_after(K.AutogradOther).bits == 0x20000007FFFFFFFF
    assert KeySet(K.BackendSelect, K.ADInplaceOrView).bits == 0x404000000
    assert full_after(K.CPU).bits == 0x200000000000FFFF
    # The top key is after itself, since PythonDispatcher is always in.
    assert full_after(K.PythonDispatcher) == FULL


def test_construction() -> None:
    assert KeySet().bits == 0
    assert KeySet(K.Dense).bits == 1 << 16
    assert KeySet(K.Autograd, K.Undefined).bits == 0
    expected = KeySet.from_bits(1 << 16 | 1 << 28 | 1)
    assert KeySet(K.CPU, K.Python) == expected
    assert KeySet([K.CPU, K.Python]) == expected
    assert KeySet(key for key in (K.CPU, K.Python)) == expected
    assert KeySet(KeySet(K.CPU), [K.Python]) == expected
    assert KeySet("CPU", ["Python"]) == KeySet(["CPU", K.Python]) == expected


def test_a_key_may_be_given_by_name() -> None:
    both = KeySet(K.CPU).add("CUDA")
    assert both == KeySet(K.CPU, K.CUDA)
    assert both.has("CUDA")
    assert "AutogradCPU" not in both
    assert both.remove("CPU") == both.remove(K.CPU)
    with pytest.raises(LookupFailed) as caught:
        KeySet(["cpu"])
    assert str(caught.value) == (
        "no dispatch key is named 'cpu'.  Did you mean CPU, XPU or IPU?"
    )


@pytest.mark.parametrize(
    ("given", "kind", "value"),
    [
        (3, "int", "3"),
        ([None], "NoneType", "None"),
        (len, "builtin_function_or_method", "<built-in function len>"),
        ([object()], "object", "<object object>"),
    ],
)
def test_what_is_no_key_is_told_what_is(given: Any, kind: str, value: str) -> None:
    with pytest.raises(UnfitValue, check=code("WrongValue")) as caught:
        KeySet(given)
    assert caught.value.fields() == {
        "expected": "DispatchKey | str | KeySet",
        "found": f"something of type {kind}",
        "value": value,
    }
    # A set is taken by its bits: iteration would lose the building block.
    assert KeySet(KeySet(K.Dense)).bits == 1 << 16


@pytest.mark.parametrize("bits", [-1, 1 << 62])
def test_foreign_bits(bits: int) -> None:
    with pytest.raises(KeyMisuse, check=code("ForeignBits")) as caught:
        KeySet.from_bits(bits)
    assert str(caught.value) == (
        f"{bits:#x} is not a set of keys: expected bits between 0 and "
        "0x3fffffffffffffff."
    )


def test_cross_products() -> None:
    mixed = KeySet(K.CPU, K.AutogradCUDA)
    assert mixed.has(K.CUDA)
    assert mixed.has(K.AutogradCPU)
    assert not mixed.has(K.Meta)
    assert KeySet(K.CPU).has(K.Dense)
    assert (KeySet(K.AutogradCPU) | KeySet(K.Sparse)).has(K.SparseCPU)
    assert K.CPU in mixed


def test_keys_without_bits_are_in_no_set() -> None:
    for key in DispatchKey:
        assert FULL.has(key) is (not key.is_alias and key is not K.Undefined)
        assert not KeySet().has(key)


def test_removal_keeps_backends() -> None:
    full = KeySet(K.CPU, K.CUDA, K.AutogradCPU, K.AutogradCUDA)
    assert full - KeySet(K.AutogradCUDA) == KeySet(K.CPU, K.CUDA)
    assert full.remove(K.AutogradCPU) == KeySet(K.CPU, K.CUDA)
    assert full.remove_backend("CUDA") == KeySet(K.CPU, K.AutogradCPU)
    assert full.has_backend("CUDA")
    assert not full.has_backend("Meta")
    assert full.add(K.Python) == full | KeySet(K.Python)
    assert full & KeySet(K.CPU) == KeySet(K.CPU)
    assert full ^ KeySet(K.CPU) == KeySet.from_bits(1 << 36 | 1 << 1)


def test_unknown_backend() -> None:
    with pytest.raises(LookupFailed, check=code("UnknownBackend")) as caught:
        KeySet().has_backend("cpu")
    assert str(caught.value) == (
        "no backend is named 'cpu'.  Backends: CPU, CUDA, HIP, XLA, MPS, IPU, XPU, HPU,"
        " VE, Lazy, MTIA, MAIA, PrivateUse1, PrivateUse2, PrivateUse3, Meta."
    )


def test_no_algebra_with_other_types() -> None:
    with pytest.raises(TypeError):
        KeySet() | 1  # type: ignore[operator]  # what the test is about
    with pytest.raises(TypeError):
        KeySet() & 1  # type: ignore[operator]  # what the test is about
    with pytest.raises(TypeError):
        KeySet() ^ 1  # type: ignore[operator]  # what the test is about
    with pytest.raises(TypeError):
        KeySet() - 1  # type: ignore[operator]  # what the test is about
    assert KeySet() != 0


def test_printing() -> None:
    assert repr(KeySet(K.AutogradCPU, K.CPU)) == "KeySet(CPU, AutogradCPU)"
    assert repr(KeySet()) == "KeySet()"
    # Half keys have bits, but nothing to show.
    assert repr(KeySet(K.Dense)) == "KeySet()"
    assert repr(KeySet.from_bits(0xFFFF)) == "KeySet()"
    assert repr(KeySet(K.CPU, K.AutogradCUDA)) == (
        "KeySet(CPU, CUDA, AutogradCPU, AutogradCUDA)"
    )
    assert [key.name for key in KeySet(K.SparseCPU, K.FPGA, K.SparseMeta)] == [
        "FPGA",
        "SparseCPU",
        "SparseMeta",
    ]
    assert list(FULL) == list(SLOTS[1:])


@pytest.mark.parametrize(
    ("keys", "functionality", "backend", "highest"),
    [
        ((), K.Undefined, None, K.Undefined),
        ((K.CPU, K.AutogradCPU), K.AutogradFunctionality, "CPU", K.AutogradCPU),
        ((K.CPU, K.Meta), K.Dense, "Meta", K.Meta),
        ((K.Dense,), K.Dense, None, K.Dense),
        ((K.CPU, K.PythonDispatcher), K.PythonDispatcher, "CPU", K.PythonDispatcher),
        ((K.FPGA,), K.FPGA, None, K.FPGA),
    ],
)
def test_highest(
    keys: tuple[DispatchKey, ...],
    functionality: DispatchKey,
    backend: str | None,
    highest: DispatchKey,
) -> None:
    keyset = KeySet(keys)
    assert keyset.highest_functionality is functionality
    assert keyset.highest_backend == backend
    assert keyset.highest_key is highest


def test_stray_backend_bits_reach_undefined() -> None:
    assert KeySet.from_bits(0b11).highest_key is K.Undefined
    assert slot_of(0b11) == 0


def test_slot_of_every_runtime_key() -> None:
    assert [slot_of(key.bits) for key in SLOTS] == list(range(137))


def test_slot_of_half_a_key_is_that_of_the_cpu() -> None:
    assert slot_of(K.Dense.bits) == K.CPU.slot
    assert slot_of(K.AutogradFunctionality.bits) == K.AutogradCPU.slot


def test_mask_index() -> None:
    assert mask_index(0) == 0
    assert mask_index(KeySet(K.Python).bits) == 0
    assert [mask_index(K.parse(name).bits) for name in BACKENDS] == list(range(16))
    assert mask_index(KeySet(K.CPU, K.Meta).bits) == 15


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ((K.CPU, K.ADInplaceOrView, K.AutogradCPU, K.AutocastCPU), K.CPU),
        ((K.MkldnnCPU, K.ADInplaceOrView, K.AutogradOther), K.MkldnnCPU),
        ((K.SparseCUDA, K.AutogradCUDA, K.AutocastCUDA), K.SparseCUDA),
        ((K.CPU, K.Python, K.PythonTLSSnapshot, K.Functionalize), K.CPU),
        ((K.CPU, K.FuncTorchGradWrapper, K.FuncTorchVmapMode), K.CPU),
        ((K.CPU, K.FuncTorchBatched, K.AutogradNestedTensor), K.CPU),
        ((K.CPU, K.Conjugate), K.Conjugate),
        ((K.CPU, K.Batched), K.Batched),
        ((), K.Undefined),
    ],
)
def test_legacy_key(keys: tuple[DispatchKey, ...], expected: DispatchKey) -> None:
    assert KeySet(keys).legacy_key is expected


@pytest.mark.parametrize("key", [K.Undefined, K.Autograd])
def test_nothing_comes_after_a_key_without_place(key: DispatchKey) -> None:
    with pytest.raises(KeyMisuse, check=code("NoPriority")) as caught:
        full_after(key)
    assert str(caught.value) == (
        f"nothing comes after {key}: it has no place in the order of keys.  "
        "Use a runtime key or a functionality, such as AutogradCPU."
    )


def test_immutable() -> None:
    keyset = KeySet(K.CPU)
    with pytest.raises(AttributeError, match="immutable: bits cannot be set"):
        keyset.bits = 0
    with pytest.raises(AttributeError, match="immutable: bits cannot be deleted"):
        del keyset.bits
    assert keyset == KeySet(K.CPU)


@given(SETS)
def test_copies_are_equal(a: KeySet) -> None:
    for twin in (copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert twin == a
        assert hash(twin) == hash(a)
    assert bool(a) is (a.bits != 0)


@given(SETS, SETS, SETS)
def test_laws_of_union_and_intersection(a: KeySet, b: KeySet, c: KeySet) -> None:
    assert a | b == b | a
    assert a & b == b & a
    assert (a | b) | c == a | (b | c)
    assert a & (b | c) == (a & b) | (a & c)
    assert a | (a & b) == a == a & (a | b)
    assert a ^ b == KeySet.from_bits((a | b).bits & ~(a & b).bits)
    assert a | KeySet() == a & FULL == a


@given(SETS, SETS)
def test_law_of_difference(a: KeySet, b: KeySet) -> None:
    left = a - b
    assert left.bits & BACKEND_BITS == a.bits & BACKEND_BITS
    assert left.bits >> 16 == (a.bits >> 16) & ~(b.bits >> 16)
    assert a.has_all(left)
    assert a.has_all(b) is (a | b == a)


@given(SETS, KEYS)
def test_laws_of_one_key(a: KeySet, key: DispatchKey) -> None:
    assert a.add(key) == a | KeySet(key)
    assert a.remove(key) == a - KeySet(key)
    assert not a.remove(key).has(key)
    assert a.add(key).has(key) is (key.bits != 0)


@given(SETS)
def test_iteration_shows_what_the_set_has(a: KeySet) -> None:
    assert list(a) == [key for key in SLOTS if a.has(key)]
    assert a.has_all(KeySet(a))


@given(SETS)
def test_the_highest_key_is_the_last_functionality_shown(a: KeySet) -> None:
    shown = [key.slot for key in a]
    expected = shown[-1] if shown else 0
    if a.highest_key.is_runtime and a.highest_key is not K.Undefined:
        assert slot_of(a.bits) == a.highest_key.slot == expected
    if a.highest_key.kind == "building_block":
        assert a.highest_backend is None
        assert SLOTS[slot_of(a.bits)].backend == "CPU"


@given(SETS, st.sampled_from([key for key in DispatchKey if key.bits]))
def test_after_a_key_only_lower_ones_are_left(a: KeySet, key: DispatchKey) -> None:
    left = (a & full_after(key)).remove(K.PythonDispatcher)
    assert left.highest_functionality.value < DispatchKey[str(key.functionality)].value
    assert left.bits & BACKEND_BITS == a.bits & BACKEND_BITS
