import pytest

from runtime.errors.key import UnknownDevice
from runtime.keys import DispatchKey, key_of_device


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


@pytest.mark.parametrize("device", ["", "CUDA", "ort", "ort:1", ":0", " cpu"])
def test_unknown_type(device: str) -> None:
    with pytest.raises(UnknownDevice) as caught:
        key_of_device(device)
    assert str(caught.value) == (
        f"{device!r} does not begin with a known device type.  Types: cpu, cuda, hip, "
        "xla, mps, ipu, xpu, hpu, ve, lazy, mtia, maia, privateuseone, meta, fpga, "
        "vulkan."
    )


@pytest.mark.parametrize(
    "device", ["cuda:", "cuda:-1", "cuda:01", "cuda:x", "cpu:0:1", "cuda:\u0661"]
)
def test_malformed(device: str) -> None:
    with pytest.raises(UnknownDevice) as caught:
        key_of_device(device)
    assert str(caught.value) == (
        f"{device!r} is not a device: write a type, or a type and an index without "
        "leading zeros, such as 'cuda' or 'cuda:1'."
    )


def test_an_index_of_thousands_of_digits_is_malformed() -> None:
    with pytest.raises(UnknownDevice) as caught:
        key_of_device(f"cuda:{'1' * 5000}")
    assert caught.value.reason == "form"
