"""Devices: written form and equality."""

import pytest

from runtime.errors.registration import UnknownDevice
from runtime.schema.codes import Device


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


def test_an_index_makes_another_device() -> None:
    assert Device("cpu") != Device("cpu", 0)
    assert len({Device("cuda", 1), Device.parse("cuda:1"), Device("cuda")}) == 2
