import pytest

from runtime.errors.key import UnknownBackend
from runtime.keys import (
    AFTER_ADINPLACEORVIEW,
    AFTER_AUTOGRAD,
    AFTER_FUNCTIONALIZE,
    AUTOCAST_KEYS,
    AUTOGRAD_KEYS,
    AUTOGRAD_KEYS_WITH_ADINPLACEORVIEW,
    AUTOGRADOTHER_BACKENDS,
    BACKENDS,
    DEFAULT_EXCLUDED,
    DEFAULT_INCLUDED,
    FUNCTORCH_KEYS,
    PYTHON_KEYS,
    DispatchKey,
    autograd_key_of,
    guarded_backends,
    is_member,
    members,
)

K = DispatchKey
B_IN_WORDS = """
CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA
PrivateUse1 PrivateUse2 PrivateUse3 Meta
"""
B = B_IN_WORDS.split()
EAGER = [name for name in B if name not in ("XLA", "Lazy")]
SINGLE = ["FPGA", "Vulkan", "Metal", "CustomRNGKeyId", "MkldnnCPU"]


def over(prefix: str, backends: list[str]) -> set[str]:
    return {prefix + name for name in backends}


EXPLICIT = (
    {*SINGLE, *B} | over("Quantized", B) | over("Sparse", B) | over("SparseCsr", B)
)
AUTOGRAD = over("Autograd", B) | {"AutogradOther", "AutogradNestedTensor"}
# Written by hand from the specification, apart from the tables of the runtime.
MEMBERS = {
    "Autograd": (18, AUTOGRAD),
    "CompositeImplicitAutograd": (103, EXPLICIT | over("NestedTensor", B) | AUTOGRAD),
    "FuncTorchBatchedDecomposition": (1, {"FuncTorchBatched"}),
    "CompositeImplicitAutogradNestedTensor": (
        17,
        over("NestedTensor", B) | {"AutogradNestedTensor"},
    ),
    "CompositeExplicitAutograd": (69, EXPLICIT),
    "CompositeExplicitAutogradNonFunctional": (
        47,
        {*SINGLE, *EAGER} | over("Quantized", EAGER) | over("SparseCsr", EAGER),
    ),
}


@pytest.mark.parametrize("alias", MEMBERS)
def test_members_of_an_alias(alias: str) -> None:
    count, names = MEMBERS[alias]
    found = members(K.parse(alias))
    assert len(found) == count
    assert {key.name for key in found} == names
    slots = [key.slot for key in found]
    assert None not in slots
    assert slots == sorted(slots, key=lambda slot: slot or 0)


@pytest.mark.parametrize("alias", MEMBERS)
def test_membership_of_every_key(alias: str) -> None:
    _, names = MEMBERS[alias]
    assert {key.name for key in DispatchKey if is_member(key, K.parse(alias))} == names


def test_every_alias_is_checked() -> None:
    assert [key.name for key in DispatchKey if key.is_alias] == list(MEMBERS)


def test_a_key_stands_for_itself_if_it_has_a_slot() -> None:
    for key in DispatchKey:
        if not key.is_alias:
            assert members(key) == ((key,) if key.is_runtime else ())
            assert is_member(key, key) is key.is_runtime
    assert not is_member(K.CPU, K.CUDA)


def test_every_backend_is_guarded_by_its_own_autograd_key() -> None:
    for name in BACKENDS:
        assert autograd_key_of(name).name == f"Autograd{name}"
        assert guarded_backends(autograd_key_of(name)) == (K.parse(name),)
    assert autograd_key_of(None) is K.AutogradOther


def test_guards_of_the_other_autograd_keys() -> None:
    nested = guarded_backends(K.AutogradNestedTensor)
    assert [key.name for key in nested] == [f"NestedTensor{name}" for name in B]
    other = {key.name for key in guarded_backends(K.AutogradOther)}
    assert other == EXPLICIT - set(B)


def test_only_autograd_keys_guard() -> None:
    guards = {key.name for key in DispatchKey if guarded_backends(key)}
    assert guards == AUTOGRAD


def test_autograd_key_of_an_unknown_backend() -> None:
    with pytest.raises(UnknownBackend) as caught:
        autograd_key_of("TPU")
    assert caught.value.fields() == {"name": "TPU", "known": BACKENDS}


def test_named_sets() -> None:
    assert AUTOGRADOTHER_BACKENDS.bits == 0x1FEFFFF
    assert AUTOGRAD_KEYS.bits == 0b111 << 35
    assert AUTOGRAD_KEYS_WITH_ADINPLACEORVIEW.bits == 0b1111 << 34
    assert AUTOCAST_KEYS.bits == 0x3FF << 39
    assert AFTER_AUTOGRAD.bits == 0x20000007FFFFFFFF
    assert AFTER_ADINPLACEORVIEW.bits == (1 << 61) + (1 << 34) - 1
    assert AFTER_FUNCTIONALIZE.bits == (1 << 61) + (1 << 30) - 1
    assert PYTHON_KEYS.bits == 1 << 28 | 1 << 56
    assert FUNCTORCH_KEYS.bits == 1 << 49 | 1 << 51 | 1 << 52 | 1 << 53 | 1 << 54
    assert DEFAULT_INCLUDED.bits == 1 << 26 | 1 << 34
    assert DEFAULT_EXCLUDED.bits == 0x3FF << 39
