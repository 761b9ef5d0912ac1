"""Factories: shapes, dtypes, devices, and where a call without tensors goes."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from runtime import cuda
from runtime.autograd import inference_mode
from runtime.dispatch.dispatcher import default_dispatcher
from runtime.errors.call import MissingKernel
from runtime.errors.operands import DTypeRefused, WrongOption
from runtime.errors.tensor import DeviceUnavailable, OutOfMemory
from runtime.operators import core, creation
from runtime.schema.codes import Device, DType, MemoryFormat
from runtime.tensors.keys import inference_keys_of, keys_of
from tests.coded import code
from tests.operators.made import LETTERS, META, shown, tensor
from tests.tensors.loading import noted


@pytest.mark.parametrize(("name", "value"), [("zeros", 0), ("ones", 1)])
def test_constants(name: str, value: int) -> None:
    make = getattr(core, name)
    assert shown(make([2, 1])) == ("float32", [[value], [value]])
    assert make([]).item() == value
    assert make([2, 0, 3]).shape == (2, 0, 3)
    for dtype in LETTERS.values():
        found = make([2], dtype=dtype)
        assert found.dtype is dtype
        assert found.numpy().astype("complex64").tolist() == [value, value]


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(True, "bool"), (7, "int64"), (1.5, "float32"), (2j, "complex64")],
)
def test_full_goes_by_its_number(value: Any, dtype: str) -> None:
    assert shown(core.full([2], value)) == (dtype, [value, value])
    like = core.full_like(tensor([[0], [0]], "float64"), 3)
    assert shown(like) == ("float64", [[3.0], [3.0]])


def test_full_refuses_what_elements_cannot_take() -> None:
    with pytest.raises(WrongOption) as caught:
        core.full([2], 300, dtype=DType.named("int8"))
    assert str(caught.value) == (
        "`core::full` does not take 300 for `fill_value`.\n"
        "  fits: -128 to 127, as the elements are int8"
    )
    with pytest.raises(WrongOption):
        core.full([2], 1j, dtype=DType.named("float32"))


@pytest.mark.parametrize(
    ("arguments", "dtype", "expected"),
    [
        ((4,), "int64", [0, 1, 2, 3]),
        ((2.5,), "float32", [0.0, 1.0, 2.0]),
        ((2, 7, 2), "int64", [2, 4, 6]),
        ((5, 0, -2), "int64", [5, 3, 1]),
        ((0, 1, 0.25), "float32", [0.0, 0.25, 0.5, 0.75]),
        ((3, 3), "int64", []),
        ((2**62, 2**62 + 2), "int64", [2**62, 2**62 + 1]),
    ],
)
def test_arange(arguments: Any, dtype: str, expected: list[Any]) -> None:
    make = core.arange if len(arguments) == 1 else core.arange_start
    assert shown(make(*arguments)) == (dtype, expected)
    meta = make(*arguments, device="meta")
    assert (meta.shape, meta.dtype.name) == ((len(expected),), dtype)
    half = make(*arguments, dtype=DType.named("bfloat16"))
    assert half.shape == (len(expected),)


# Source: torch 2.13; of int64 the numbers are integers before they are counted.
FRACTIONS = [
    ((1.9, 6.3, 1.5), "int64", [1, 2, 3, 4, 5]),
    ((1.9, 6.3, 1.5), "int32", [1, 2, 3]),
    ((0.5, 5.5, 1), "int64", [0, 1, 2, 3, 4]),
    ((5.5, 0, -1.2), "int64", [5, 4, 3, 2, 1]),
    ((-2.5, 2.5, 0.7), "int32", [-2] * 8),
]


@pytest.mark.parametrize(("arguments", "dtype", "expected"), FRACTIONS)
def test_integers_from_fractions(
    arguments: Any, dtype: str, expected: list[int]
) -> None:
    made = core.arange_start(*arguments, dtype=DType.named(dtype))
    assert shown(made) == (dtype, expected)


def test_no_integer_lies_between_less_than_one_apart() -> None:
    with pytest.raises(WrongOption) as caught:
        core.arange_start(0, 5, 0.5, dtype=DType.named("int64"))
    assert caught.value.argument == "step"


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ((0, 5, 0), "step"),
        ((0, 5, -1), "step"),
        ((0, float("inf")), "end"),
        ((1j, 2), "start"),
    ],
)
def test_arange_refuses(arguments: Any, argument: str) -> None:
    with pytest.raises(WrongOption) as caught:
        core.arange_start(*arguments)
    assert caught.value.argument == argument
    assert caught.value.operator == "core::arange.start"


def test_eye() -> None:
    assert shown(core.eye(2)) == ("float32", [[1, 0], [0, 1]])
    wide = core.eye(2, 3, dtype=DType.named("int64"))
    assert shown(wide) == ("int64", [[1, 0, 0], [0, 1, 0]])
    assert shown(core.eye(3, 1)) == ("float32", [[1], [0], [0]])
    assert core.eye(0).shape == (0, 0)
    assert core.eye(2, device="meta").shape == (2, 2)


def test_linspace() -> None:
    found = core.linspace(0, 1, 11, dtype=DType.named("float64")).numpy()
    np.testing.assert_allclose(found, np.linspace(0, 1, 11), rtol=1e-15)
    assert found[-1] == 1.0
    assert shown(core.linspace(3, 9, 1)) == ("float32", [3.0])
    assert shown(core.linspace(5, 1, 3, dtype=LETTERS["l"])) == ("int64", [5, 3, 1])
    assert core.linspace(0, 1, 0).shape == (0,)
    assert core.linspace(0, 1, 4, device="meta").shape == (4,)
    turned = core.linspace(1, 2 + 4j, 3)
    assert shown(turned) == ("complex64", [1, 1.5 + 2j, 2 + 4j])
    with pytest.raises(WrongOption):
        core.linspace(0, 1, -1)
    with pytest.raises(WrongOption):
        core.linspace(0, 1j, 3, dtype=LETTERS["f"])


def test_no_range_is_of_bools_and_those_of_steps_are_of_reals() -> None:
    with pytest.raises(DTypeRefused) as caught:
        core.linspace(0, 1, 3, dtype=LETTERS["b"])
    assert caught.value.fits == "every dtype but bool"
    for letter in "bc":
        with pytest.raises(DTypeRefused):
            core.arange(3, dtype=LETTERS[letter])


@pytest.mark.parametrize("name", ["empty", "zeros", "ones", "rand", "randn"])
def test_negative_sizes_are_refused(name: str) -> None:
    with pytest.raises(WrongOption) as caught:
        getattr(core, name)([2, -1])
    assert caught.value.fields() == {
        "operator": f"core::{name}",
        "argument": "size[1]",
        "found": "-1",
        "fits": "sizes of 0 or more; the size is (2, -1)",
    }


@pytest.mark.parametrize("name", ["empty", "zeros", "ones", "rand"])
@pytest.mark.parametrize("size", [(2**40, 2**40), (2**61,)])
def test_what_no_memory_holds_is_refused(name: str, size: tuple[int, ...]) -> None:
    with pytest.raises(OutOfMemory, check=code("NotEnoughMemory")) as caught:
        getattr(core, name)(size)
    assert isinstance(caught.value, MemoryError)
    assert caught.value.fields() == {
        "shape": size,
        "dtype": "float32",
        "device": "cpu",
        "needed": 4 * math.prod(size),
    }


@pytest.mark.parametrize("name", ["empty", "zeros", "ones", "rand", "randn"])
def test_like(name: str) -> None:
    like = getattr(core, f"{name}_like")
    base = core.transpose(tensor(np.ones((2, 3)), "float64"), 0, 1)
    found = like(base)
    assert (found.shape, found.dtype, found.device) == (
        (3, 2),
        base.dtype,
        base.device,
    )
    assert found.strides == (1, 3)
    assert like(
        base, memory_format=MemoryFormat.named("contiguous_format")
    ).is_contiguous()
    other = like(base, dtype=LETTERS["f"], device="meta")
    assert (other.dtype, other.device) == (LETTERS["f"], META)
    assert like(other).device is META
    assert like(other, device="cpu").device is base.device


def test_a_device_without_kernels_is_named() -> None:
    with pytest.raises(MissingKernel) as caught:
        core.zeros([2], device=Device("privateuseone"))
    assert (caught.value.operator, caught.value.key) == ("core::zeros", "PrivateUse1")


def test_pinned_memory_is_host_memory() -> None:
    with pytest.raises(WrongOption) as caught:
        core.zeros([2], device="meta", pin_memory=True)
    assert str(caught.value) == (
        "`core::zeros` does not take True for `pin_memory`.\n"
        "  fits: False on meta: only host memory is pinned"
    )


def test_what_pins_is_loaded_by_one_thread_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = noted(monkeypatch, SimpleNamespace(pinned_array=np.empty))
    monkeypatch.setattr(creation, "memory_of", lambda kind: kind)
    assert creation.pinned_array(3, np.dtype("int8")).shape == (3,)
    names = ("runtime", "runtime.kernels", "runtime.kernels.cuda")
    assert asked == [(n, True) for n in (*names, "runtime.kernels.cuda.memory")]


def test_pinned_tensors_hold_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pinned = []

    def array(count: int, form: Any) -> Any:
        pinned.append(np.empty(count, form))
        return pinned[-1]

    monkeypatch.setattr(creation, "pinned_array", array)
    found = core.full([2, 2], 7, pin_memory=True)
    assert shown(found) == ("int64", [[7, 7], [7, 7]])
    assert found.data_ptr() == pinned[0].ctypes.data


def test_pinning_needs_a_device() -> None:
    if cuda.device_count():
        assert shown(core.ones([2], pin_memory=True)) == ("float32", [1.0, 1.0])
    else:
        with pytest.raises(DeviceUnavailable):
            core.ones([2], pin_memory=True)


def test_large_constants_are_filled_by_the_kernel() -> None:
    found = core.full([300, 100], 2.5).numpy()
    assert found.shape == (300, 100)
    assert (found == 2.5).all()


def test_keys_are_those_of_the_device_and_the_mode() -> None:
    assert core.zeros([1]).keyset == keys_of("cpu")
    with inference_mode():
        made, added = core.ones([1]), core.add(tensor([1.0]), tensor([1.0]))
    assert made.keyset == added.keyset == inference_keys_of("cpu")


def test_dumps_show_what_runs() -> None:
    dump = default_dispatcher().dump_state("core::zeros")
    assert "zeros_cpu" in dump
    assert "zeros_select" in dump
    assert "zeros_meta" in dump
