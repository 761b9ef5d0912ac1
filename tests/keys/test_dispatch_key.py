import copy
import pickle
from dataclasses import FrozenInstanceError

import pytest

from runtime.errors.key import UnknownKey
from runtime.keys import BACKEND_BITS, BACKENDS, SLOTS, DispatchKey
from tests.keys.test_model import BITS_16_TO_61

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
    with pytest.raises(TypeError, match="keys are not made"):
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
            "no dispatch key is named ''.  `list(DispatchKey)` holds them all.",
        ),
    ],
)
def test_unknown_names(name: str, text: str) -> None:
    with pytest.raises(UnknownKey) as caught:
        DispatchKey.parse(name)
    assert str(caught.value) == text
    with pytest.raises(UnknownKey):
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
