"""Tables of codes, whose numbers are upstream's, and devices: text and identity."""

from pickle import dumps, loads
from typing import Any

import pytest

from everyorder.runtime.errors.registration import UnknownDevice
from everyorder.runtime.schema.enums import (
    Device,
    DType,
    EnumConstant,
    Layout,
    MemoryFormat,
)

# Read from torch 2.13 by passing each object through an operator that returns it.
UPSTREAM = {
    DType: {
        "uint8": 0,
        "int8": 1,
        "int16": 2,
        "int32": 3,
        "int64": 4,
        "float16": 5,
        "float32": 6,
        "float64": 7,
        "complex32": 8,
        "complex64": 9,
        "complex128": 10,
        "bool": 11,
        "qint8": 12,
        "bfloat16": 15,
        "bits16": 22,
        "float8_e4m3fnuz": 26,
        "uint64": 29,
        "uint7": 36,
        "int7": 43,
        "float8_e8m0fnu": 44,
        "float4_e2m1fn_x2": 45,
    },
    Layout: {"strided": 0, "sparse_coo": 1, "sparse_csr": 2, "jagged": 7},
    MemoryFormat: {"contiguous_format": 0, "channels_last": 2, "channels_last_3d": 3},
}


@pytest.mark.parametrize("kind", UPSTREAM)
def test_names_have_upstreams_numbers(kind: type[EnumConstant]) -> None:
    table = UPSTREAM[kind]
    assert {name: kind.named(name).code for name in table} == table
    assert {kind(code).name: code for code in table.values()} == table


def test_a_table_ends_where_upstreams_ends() -> None:
    sizes = {DType: 46, Layout: 8, MemoryFormat: 4}
    assert {kind: len(kind.NAMES) for kind in sizes} == sizes
    for kind, size in sizes.items():
        assert [kind.is_code(c) for c in (-1, 0, size - 1, size)] == [0, 1, 1, 0]


def test_synonyms_lead_to_the_canonical_name() -> None:
    assert str(DType.named("long")) == "int64"
    assert repr(DType.named("half")) == "float16"
    with pytest.raises(KeyError, match="'flaot32'"):
        DType.named("flaot32")
    with pytest.raises(KeyError):
        Layout.named("float")


def test_codes_are_values_of_their_kind() -> None:
    assert DType(0) == DType.named("uint8")
    codes: list[EnumConstant] = [DType(0), Layout(0), MemoryFormat(0)]
    assert [code == codes[0] for code in codes] == [True, False, False]
    assert len({DType(0), DType.named("uint8"), Layout(0)}) == 2
    assert loads(dumps(DType(6))) == DType(6)
    with pytest.raises(AttributeError):
        DType(0).code = 1


def test_dtypes_know_what_they_hold() -> None:
    floating = [n for n in DType.NAMES if DType.named(n).is_floating]
    assert floating == [
        *("float16", "float32", "float64", "bfloat16"),
        *("float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz"),
        *("float8_e8m0fnu", "float4_e2m1fn_x2"),
    ]
    complexes = [n for n in DType.NAMES if DType.named(n).is_complex]
    assert complexes == ["complex32", "complex64", "complex128"]


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("cpu", Device("cpu")),
        ("cpu:0", Device("cpu", 0)),
        ("cuda:1", Device("cuda", 1)),
        ("privateuseone:3", Device("privateuseone", 3)),
    ],
)
def test_a_device_parses_and_prints(text: str, device: Device) -> None:
    assert Device.parse(text) == device
    assert str(device) == text


@pytest.mark.parametrize(
    "text", ["foo", "CPU", "cuda:", "cuda:01", "cuda:-1", "cuda:1:2", "cuda:1 ", ""]
)
def test_other_text_is_no_device(text: str) -> None:
    with pytest.raises(UnknownDevice) as caught:
        Device.parse(text)
    assert caught.value.device == text


def test_only_integers_are_numbers_of_an_entry() -> None:
    assert DType(1) is DType(True) is DType.named("int8")
    wrong: Any = 1.0
    with pytest.raises(TypeError):
        DType(wrong)


@pytest.mark.parametrize(
    "arguments",
    [
        *[("other",), ("CPU",), ("",), (0,), (None,), (3.0,), ("cpu:0", 0)],
        *[("cuda", -1), ("cuda", "1"), ("cuda", 1.0), ("cuda", True)],
        ("other", 1),
    ],
)
def test_a_device_is_of_a_known_type(arguments: Any) -> None:
    assert Device("cuda", 1).index == 1, "a known index has no equal but itself"
    with pytest.raises(UnknownDevice):
        Device(*arguments)


def test_an_index_makes_another_device() -> None:
    assert Device("cpu") != Device("cpu", 0)
    assert len({Device("cuda", 1), Device.parse("cuda:1"), Device("cuda")}) == 2
