"""Keys, aliases, devices, and what may be registered at each key."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import pytest

from everyorder.runtime.errors.base import COLUMNS
from everyorder.runtime.errors.registration import (
    KeyMisuse,
    LookupFailed,
    UnknownDevice,
)
from everyorder.runtime.keys import (
    AFTER_ADINPLACEORVIEW,
    AFTER_AUTOGRAD,
    AFTER_FUNCTIONALIZE,
    AUTOCAST_KEYS,
    AUTOGRAD_KEYS,
    AUTOGRAD_KEYS_WITH_ADINPLACEORVIEW,
    AUTOGRADOTHER_BACKENDS,
    BACKEND_BITS,
    BACKENDS,
    DEFAULT_EXCLUDED,
    DEFAULT_INCLUDED,
    FUNCTORCH_KEYS,
    PYTHON_KEYS,
    SLOTS,
    DispatchKey,
    autograd_key_of,
    fallback_keys,
    guarded_backends,
    is_member,
    kernel_key,
    key_of_device,
    members,
)
from tests.coded import code, coded
from tests.keys.test_key_tables import BITS_16_TO_61

NotRegistrable = coded(KeyMisuse, "NotRegistrable")

PER_BACKEND_PREFIXES = {
    "Dense": "",
    "Quantized": "Quantized",
    "Sparse": "Sparse",
    "SparseCsr": "SparseCsr",
    "NestedTensor": "NestedTensor",
    "AutogradFunctionality": "Autograd",
}


def test_slots_are_the_order_of_a_table_dump() -> None:
    expected = ["Undefined"]
    for name in BITS_16_TO_61.split():
        if name in PER_BACKEND_PREFIXES:
            expected += [PER_BACKEND_PREFIXES[name] + each for each in BACKENDS]
        else:
            expected.append(name)
    assert [key.name for key in SLOTS] == expected
    assert [key.slot for key in SLOTS] == list(range(137))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Undefined", 0),
        ("Dense", 1),
        ("FPGA", 2),
        ("PythonDispatcher", 46),
        # 47 ends the functionalities, 48 begins the dense block.
        ("CPU", 49),
        ("Meta", 64),
        ("QuantizedCPU", 66),
        ("SparseCPU", 83),
        ("SparseCsrCPU", 100),
        ("NestedTensorCPU", 117),
        ("AutogradCPU", 134),
        ("AutogradMeta", 149),
        ("Autograd", 150),
        ("CompositeImplicitAutograd", 151),
        ("FuncTorchBatchedDecomposition", 152),
        ("CompositeImplicitAutogradNestedTensor", 153),
        ("CompositeExplicitAutograd", 154),
        ("CompositeExplicitAutogradNonFunctional", 155),
    ],
)
def test_values_are_the_integers_of_the_enum(name: str, value: int) -> None:
    assert DispatchKey[name].value == value


@pytest.mark.parametrize(
    ("name", "kind", "slot", "bits", "backend", "functionality"),
    [
        ("Undefined", "undefined", 0, 0, None, None),
        ("Dense", "building_block", None, 1 << 16, None, "Dense"),
        ("CPU", "runtime", 1, 1 << 16 | 1, "CPU", "Dense"),
        ("Python", "functionality", 88, 1 << 28, None, "Python"),
        ("SparseCsrMeta", "runtime", 69, 1 << 24 | 1 << 15, "Meta", "SparseCsr"),
        ("Autograd", "alias", None, 0, None, None),
    ],
)
def test_what_a_key_knows(
    name: str,
    kind: str,
    slot: int | None,
    bits: int,
    backend: str | None,
    functionality: str | None,
) -> None:
    key = DispatchKey.parse(name)
    assert (key.name, key.kind, key.slot, key.bits, key.backend, key.functionality) == (
        name,
        kind,
        slot,
        bits,
        backend,
        functionality,
    )
    assert key.is_alias is (kind == "alias")
    assert key.is_runtime is (slot is not None)


def test_functionality_bit_follows_from_the_value() -> None:
    for key in DispatchKey:
        if key.kind in ("functionality", "building_block"):
            assert key.bits == 1 << (16 + key.value - 1)


def test_all_keys_by_value() -> None:
    values = [key.value for key in DispatchKey]
    assert len(DispatchKey) == len(values) == 149
    assert values == sorted(set(values))
    assert {0, 1, 46, 49, 149, 150, 155} <= set(values)
    # The end marker and the six start markers are no keys.
    assert set(range(156)) - set(values) == {47, 48, 65, 82, 99, 116, 133}


def test_every_key_is_reached_in_three_ways() -> None:
    for key in DispatchKey:
        assert DispatchKey.parse(key.name) is key
        assert DispatchKey[key.name] is key
        assert getattr(DispatchKey, key.name) is key
        assert key in DispatchKey
        assert key.name in DispatchKey
    assert "cpu" not in DispatchKey


def test_access_by_name_is_typed() -> None:
    key: DispatchKey = DispatchKey.AutogradCPU
    assert str(key) == "AutogradCPU"
    assert repr(key) == "DispatchKey.AutogradCPU"


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_copies_are_the_key_itself(protocol: int) -> None:
    for key in DispatchKey:
        assert pickle.loads(pickle.dumps(key, protocol)) is key
        assert copy.copy(key) is key
        assert copy.deepcopy(key) is key


def test_keys_order_by_value() -> None:
    low, high = DispatchKey.PythonDispatcher, DispatchKey.CPU
    assert low < high
    assert low <= high
    assert high > low
    assert high >= low
    assert not low > high
    assert not low >= high
    assert sorted([high, low]) == [low, high]


def test_no_key_can_be_made_or_changed() -> None:
    with pytest.raises(TypeError, match="keys cannot be created"):
        DispatchKey("CPU")  # type: ignore[call-arg]  # what the test is about
    with pytest.raises(FrozenInstanceError):
        DispatchKey.CPU.value = 3  # type: ignore[misc]  # what the test is about


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cpu", "no dispatch key is named 'cpu'.  Did you mean CPU, XPU or IPU?"),
        (
            "AutogradCPUs",
            "no dispatch key is named 'AutogradCPUs'.  "
            "Did you mean AutogradCPU, AutogradXPU or AutogradMPS?",
        ),
        (
            "CatchAll",
            "no dispatch key is named 'CatchAll'.  "
            "Did you mean CompositeImplicitAutograd?",
        ),
        (
            "DefaultBackend",
            "no dispatch key is named 'DefaultBackend'.  "
            "Did you mean CompositeExplicitAutograd?",
        ),
        (
            "Autocast",
            "no dispatch key is named 'Autocast'.  Did you mean AutocastCUDA?",
        ),
        (
            "",
            "no dispatch key is named ''.  `list(DispatchKey)` lists them all.",
        ),
    ],
)
def test_unknown_names(name: str, text: str) -> None:
    with pytest.raises(LookupFailed) as caught:
        DispatchKey.parse(name)
    assert str(caught.value) == text
    with pytest.raises(LookupFailed, check=code("UnknownKey")):
        DispatchKey[name]


def test_unknown_attributes() -> None:
    with pytest.raises(AttributeError) as caught:
        DispatchKey.PythonTlsSnapshot  # noqa: B018  # the access is the test
    assert str(caught.value) == (
        "no dispatch key is named 'PythonTlsSnapshot'.  Did you mean PythonTLSSnapshot?"
    )
    assert not hasattr(DispatchKey, "__wrapped__")
    assert not hasattr(DispatchKey, "lower")


def test_backend_bits() -> None:
    assert BACKEND_BITS == 0xFFFF


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
    with pytest.raises(LookupFailed, check=code("UnknownBackend")) as caught:
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


BLOCKS = [key for key in DispatchKey if key.kind == "building_block"]


def test_a_kernel_is_kept_at_its_key() -> None:
    for key in DispatchKey:
        if key not in BLOCKS and key is not K.Undefined:
            assert kernel_key(key) is key
            assert fallback_keys(key) == members(key) != ()


def test_a_kernel_without_a_key_is_composite() -> None:
    assert kernel_key(K.Undefined) is K.CompositeImplicitAutograd


@pytest.mark.parametrize("key", BLOCKS)
def test_building_blocks_take_nothing(key: DispatchKey) -> None:
    with pytest.raises(NotRegistrable) as kernel:
        kernel_key(key)
    with pytest.raises(NotRegistrable) as fallback:
        fallback_keys(key)
    assert kernel.value.fields() | {"subject": "fallback"} == fallback.value.fields()
    assert kernel.value.key == key.name
    assert [K.parse(name).functionality for name in kernel.value.instead] == [
        key.name
    ] * 16


def test_text_for_a_building_block() -> None:
    with pytest.raises(NotRegistrable) as caught:
        kernel_key(K.Dense)
    assert str(caught.value) == (
        "a kernel cannot be registered at Dense: it is only half of a key, and "
        "calls dispatch to whole keys.  Register at CPU, CUDA, HIP, XLA, MPS, IPU, "
        "XPU, HPU, VE, Lazy, MTIA, MAIA, PrivateUse1, PrivateUse2, PrivateUse3 or "
        "Meta."
    )


def test_text_for_undefined() -> None:
    with pytest.raises(NotRegistrable) as caught:
        fallback_keys(K.Undefined)
    assert str(caught.value) == (
        "a fallback cannot be registered at Undefined: it means that a call has no "
        "keys left.  Register at a runtime key or an alias."
    )


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("cpu", "CPU"),
        ("cuda", "CUDA"),
        ("cuda:0", "CUDA"),
        ("cuda:12", "CUDA"),
        ("meta", "Meta"),
        ("xla", "XLA"),
        ("mps", "MPS"),
        ("xpu", "XPU"),
        ("hpu", "HPU"),
        ("privateuseone", "PrivateUse1"),
        ("mtia", "MTIA"),
        ("hip", "HIP"),
        ("ipu", "IPU"),
        ("ve", "VE"),
        ("lazy", "Lazy"),
        ("maia", "MAIA"),
        ("fpga", "FPGA"),
        ("vulkan", "Vulkan"),
    ],
)
def test_key_of_device(device: str, name: str) -> None:
    assert key_of_device(device) is DispatchKey[name]


@pytest.mark.parametrize(
    ("device", "near"),
    [
        ("", ()),
        ("ort:1", ()),
        (":0", ()),
        ("CUDA", ("cuda",)),
        (" cpu", ("cpu", "xpu", "ipu")),
        ("gpu", ("cuda",)),
        ("GPU:0", ("cuda",)),
        ("rocm", ("hip",)),
        ("vulcan", ("vulkan",)),
    ],
)
def test_unknown_type(device: str, near: tuple[str, ...]) -> None:
    with pytest.raises(UnknownDevice) as caught:
        key_of_device(device)
    assert (caught.value.reason, caught.value.near) == ("type", near)


def test_an_unknown_type_names_those_near_and_all() -> None:
    with pytest.raises(UnknownDevice) as gpu:
        key_of_device("gpu")
    with pytest.raises(UnknownDevice) as ort:
        key_of_device("ort")
    assert (
        str(gpu.value)
        == """\
'gpu' does not begin with a known device type.
  near:  cuda
  types: cpu, cuda, hip, xla, mps, ipu, xpu, hpu, ve, lazy, mtia, maia,
         privateuseone, meta, fpga, vulkan"""
    )
    assert (
        str(ort.value)
        == """\
'ort' does not begin with a known device type.
  types: cpu, cuda, hip, xla, mps, ipu, xpu, hpu, ve, lazy, mtia, maia,
         privateuseone, meta, fpga, vulkan"""
    )


@pytest.mark.parametrize(
    "device", ["cuda:", "cuda:-1", "cuda:01", "cuda:x", "cpu:0:1", "cuda:\u0661"]
)
def test_malformed(device: str) -> None:
    with pytest.raises(UnknownDevice) as caught:
        key_of_device(device)
    assert str(caught.value).replace("\n", " ") == (
        f"{device!r} is not a device: write a type, or a type and an index without "
        "leading zeros, such as 'cuda' or 'cuda:1'."
    )
    assert max(map(len, str(caught.value).splitlines())) <= COLUMNS


def test_an_index_of_thousands_of_digits_is_malformed() -> None:
    with pytest.raises(UnknownDevice) as caught:
        key_of_device(f"cuda:{'1' * 5000}")
    assert caught.value.reason == "form"
