import pytest

from runtime.errors.call import COLUMNS
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
