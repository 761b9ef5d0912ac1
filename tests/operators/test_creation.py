"""Tensors made of none, or like another one: shapes, dtypes, devices, pinned memory."""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime import Generator, cuda, ops
from everyorder.runtime.autograd import inference_mode
from everyorder.runtime.dispatch.dispatcher import default_dispatcher
from everyorder.runtime.errors.call import CallError, MissingKernel
from everyorder.runtime.errors.tensor import (
    DeviceUnavailable,
    DTypeRefused,
    OutOfMemory,
    TargetRefused,
    WrongOption,
)
from everyorder.runtime.operators import core, creation
from everyorder.runtime.operators.creation import CONSTANTS, NAMES
from everyorder.runtime.schema.enums import Device, DType, MemoryFormat
from everyorder.runtime.tensors.keys import inference_keys_of, keys_of
from everyorder.runtime.tensors.tensor import METHODS, Tensor
from everyorder.runtime.torch_dispatch import TorchDispatchMode
from tests.coded import code, coded
from tests.operators.refusals import assert_refused
from tests.operators.tensors import LETTERS, META, shown, tensor
from tests.tensors.loading import noted


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(True, "bool"), (7, "int64"), (1.5, "float32"), (2j, "complex64")],
)
def test_full_goes_by_its_number(value: Any, dtype: str) -> None:
    assert shown(core.full([2], value)) == (dtype, [value, value])
    like = core.full_like(tensor([[0], [0]], "float64"), 3)
    assert shown(like) == ("float64", [[3.0], [3.0]])


def test_full_refuses_what_elements_cannot_take() -> None:
    with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
        core.full([2], 300, dtype=DType.named("int8"))
    assert str(caught.value) == (
        "`core::full` does not take 300 for `fill_value`.\n"
        "  fits: -128 to 127, as the elements are int8"
    )
    with pytest.raises(WrongOption, check=code("WrongOption")):
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
    with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
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
    with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
        core.arange_start(*arguments)
    assert caught.value.argument == argument
    assert caught.value.operator == "core::arange.start"


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
    with pytest.raises(WrongOption, check=code("WrongOption")):
        core.linspace(0, 1, -1)
    with pytest.raises(WrongOption, check=code("WrongOption")):
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
    with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
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
    with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
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
    names = (
        "everyorder",
        "everyorder.runtime",
        "everyorder.runtime.kernels",
        "everyorder.runtime.kernels.cuda",
    )
    assert asked == [
        (n, True) for n in (*names, "everyorder.runtime.kernels.cuda.memory")
    ]


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


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_given_is_that_of_the_tensor(name: str) -> None:
    make = getattr(core, f"{name}_like")
    for letter in "hd":
        x = core.t(tensor([[1, 2, 3]], LETTERS[letter].name))
        for base in (x, core.empty([3, 1], dtype=x.dtype, device=META)):
            found = make(base)
            assert (found.shape, found.dtype) == ((3, 1), x.dtype)
            assert found.device == base.device
            assert found.is_contiguous()
    wide = make(tensor([1.0]), dtype=LETTERS["d"])
    assert wide.dtype is LETTERS["d"]
    assert make(tensor([1.0]), device=META).device == META


def test_constants_like_a_tensor() -> None:
    x = tensor([5, 6], "int64")
    for name, value in CONSTANTS.items():
        if value is not None:
            assert shown(getattr(core, f"{name}_like")(x)) == ("int64", [value] * 2)
    assert shown(core.full_like(x, 2.9)) == ("int64", [2, 2])
    assert shown(core.full_like(x, 2.5, dtype=LETTERS["f"])) == ("float32", [2.5] * 2)
    assert core.full_like(x, 1, device=META).device == META
    with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
        core.full_like(x, 1j)
    assert (caught.value.operator, caught.value.argument) == (
        "core::full_like",
        "fill_value",
    )


NEW = tuple(f"new_{name}" for name in (*CONSTANTS, "full"))


def call(name: str, x: Tensor, size: Any, **options: Any) -> Any:
    more = (7,) if name == "new_full" else ()
    return getattr(core, name)(x, size, *more, **options)


@pytest.mark.parametrize("name", NEW)
def test_what_is_not_given_beside_a_size_is_that_of_the_tensor(name: str) -> None:
    for letter in "bhdc":
        x = core.t(tensor([[1, 2, 3]], LETTERS[letter].name))
        for base in (x, core.empty([3, 1], dtype=x.dtype, device=META)):
            found = call(name, base, [2, 0, 4])
            assert (found.shape, found.dtype) == ((2, 0, 4), x.dtype)
            assert found.device == base.device
            assert found.strides == (4, 4, 1)
    x = tensor([1.0])
    assert call(name, x, [2], dtype=LETTERS["l"]).dtype is LETTERS["l"]
    assert call(name, x, [2], device=META).device == META


def test_constants_of_another_size() -> None:
    x = tensor([5, 6], "int64")
    assert shown(core.new_zeros(x, [3])) == ("int64", [0, 0, 0])
    assert shown(core.new_ones(x, [])) == ("int64", 1)
    assert shown(core.new_full(x, [2], 2.9)) == ("int64", [2, 2])
    assert shown(core.new_full(x, [1], 2.5, dtype=LETTERS["f"])) == ("float32", [2.5])


@pytest.mark.parametrize("name", NEW)
def test_refused_by_name(name: str) -> None:
    for device in (None, META):
        with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
            call(name, tensor([1.0]), [2, -3], device=device)
        assert (caught.value.operator, caught.value.argument, caught.value.found) == (
            f"core::{name}",
            "size[1]",
            "-3",
        )
    assert_refused(
        lambda: call(name, tensor([1.0]), [1], device=META, pin_memory=True),
        coded(WrongOption, "WrongOption"),
        f"`core::{name}` does not take True for `pin_memory`. fits: False on meta: "
        "only host memory is pinned",
    )


def test_a_number_that_the_dtype_cannot_hold() -> None:
    with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
        core.new_full(tensor([1.0]), [1], 1j)
    assert (caught.value.operator, caught.value.argument) == (
        "core::new_full",
        "fill_value",
    )
    with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
        core.full_like(tensor([1.0]), 1j, device=META)
    assert caught.value.operator == "core::full_like"


@pytest.mark.parametrize("name", NEW)
def test_the_result_has_no_gradient(name: str) -> None:
    x = tensor([1.0, 2.0]).requires_grad_()
    found = call(name, x, [2])
    assert (found.requires_grad, found.is_leaf) == (False, True)


def test_the_keys_are_those_of_likes() -> None:
    for name in CONSTANTS:
        new, like = (
            default_dispatcher().find_op(f"core::{each}")
            for each in (f"new_{name}", f"{name}_like")
        )
        assert new is not None
        assert like is not None
        for key in ("CompositeExplicitAutograd", "CPU", "Autograd", "BackendSelect"):
            assert new.has_kernel(key) == like.has_kernel(key), (name, key)


def test_a_mode_hears_of_them() -> None:
    heard = []

    class Hearing(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            heard.append(str(func))
            return func(*args, **(kwargs or {}))

    with Hearing():
        ops.core.new_zeros(tensor([1.0]), [2])
    assert heard == ["core.new_zeros.default"]


def test_without_a_size() -> None:
    with pytest.raises(CallError, check=code("MissingArgument")):
        core.new_zeros(tensor([1.0]))


X = tensor([[1.0, 2.0]])


@pytest.mark.parametrize(
    ("made", "shape"),
    [
        (lambda: X.new_zeros(2, 3), (2, 3)),
        (lambda: X.new_zeros((2, 3)), (2, 3)),
        (lambda: X.new_zeros([4]), (4,)),
        (lambda: X.new_zeros(4), (4,)),
        (lambda: X.new_zeros(()), ()),
        (lambda: X.new_zeros(size=(2,)), (2,)),
        (lambda: X.new_empty(0, 2), (0, 2)),
        (lambda: X.new_ones(2, 1), (2, 1)),
        (lambda: X.new_full((2, 1), 3), (2, 1)),
        (lambda: X.new_full(2, 3), (2,)),
        (lambda: X.new_full((1,), fill_value=3), (1,)),
        (lambda: X.new_full(size=(1,), fill_value=3), (1,)),
    ],
)
def test_sizes_may_come_one_by_one(made: Any, shape: tuple[int, ...]) -> None:
    found = made()
    assert (type(found), found.shape, found.dtype) == (Tensor, shape, X.dtype)


def test_values_and_options() -> None:
    assert X.new_ones(2, dtype="int64").tolist() == [1, 1]
    assert X.new_full((1, 2), 3).tolist() == [[3, 3]]
    assert X.new_zeros(2, device="meta").is_meta
    leaf = X.new_zeros(2, requires_grad=True)
    assert (leaf.requires_grad, leaf.is_leaf) == (True, True)


def test_what_is_missing_is_named() -> None:
    for name, given, argument in (
        ("new_zeros", (), "size"),
        ("new_full", ((2,),), "fill_value"),
    ):
        with pytest.raises(
            CallError, check=code("MissingArgument"), match=f"without `{argument}`"
        ):
            getattr(X, name)(*given)


def test_in_place_views_return_the_tensor() -> None:
    x = tensor([[[1.0, 2.0]]])
    assert x.squeeze_() is x
    assert x.shape == (2,)
    assert x.unsqueeze_(0) is x
    assert x.unsqueeze_(dim=-1).shape == (1, 2, 1)
    assert x.squeeze_(0, 2).shape == (2,)
    assert x.unsqueeze_(0).squeeze_((0,)).unsqueeze_(1).t_().shape == (1, 2)
    assert x.transpose_(0, 1).transpose_(dim0=0, dim1=-1).shape == (1, 2)
    assert x.tolist() == [[1, 2]]


def test_help_says_what_they_do() -> None:
    for name in ("new_empty", "new_full", "new_ones", "new_zeros"):
        text = METHODS[name].__doc__ or ""
        assert text.startswith("Return ")
        assert f"Schema: `core::{name}(Tensor self, int[] size" in text
    assert (METHODS["t_"].__doc__ or "").startswith(
        "Return a view of a matrix with its dimensions exchanged, in place."
    )


FILLING: dict[str, tuple[Callable[[Tensor], Tensor], list[float]]] = {
    "arange": (lambda out: runtime.arange(3, out=out), [0, 1, 2]),
    "arange.start": (lambda out: runtime.arange(1, 7, 2, out=out), [1, 3, 5]),
    "zeros": (lambda out: runtime.zeros(2, out=out), [0, 0]),
    "ones": (lambda out: runtime.ones((2,), out=out), [1, 1]),
    "full": (lambda out: runtime.full((2,), 3, out=out), [3, 3]),
    "linspace": (lambda out: runtime.linspace(0, 4, 3, out=out), [0, 2, 4]),
    "logspace": (lambda out: runtime.logspace(0, 2, 3, out=out), [1, 10, 100]),
    "eye": (lambda out: runtime.eye(1, 2, out=out), [1, 0]),
}


@pytest.mark.parametrize("dtype", ["float32", "int64", "float16"])
@pytest.mark.parametrize("name", FILLING)
def test_a_factory_writes_to_out_in_its_dtype(name: str, dtype: str) -> None:
    make, wanted = FILLING[name]
    out = runtime.empty(0, dtype=dtype)
    assert make(out) is out
    assert out.reshape(-1).tolist() == wanted
    assert out.dtype.name == dtype
    with pytest.raises(TargetRefused):
        make(runtime.empty(7, dtype=dtype))
    meta = runtime.empty(0, dtype=dtype, device="meta")
    assert make(meta).shape == out.shape


def test_random_factories_write_to_out() -> None:
    for make in (runtime.rand, runtime.randn):
        drawn = [
            make(4, generator=Generator().manual_seed(3), out=out)
            for out in (None, runtime.empty(8)[::2])
        ]
        assert drawn[0].tolist() == drawn[1].tolist()
    out = runtime.empty(3, dtype="int32")
    assert sorted(runtime.randperm(3, out=out).tolist()) == [0, 1, 2]
    assert {*runtime.randint(2, 3, (4,), out=runtime.empty(4)).tolist()} == {2}


def test_options_of_a_factory_are_those_of_out() -> None:
    out = runtime.empty(3)
    assert runtime.arange(3, dtype="float32", device="cpu", out=out) is out
    leaf = runtime.arange(3, out=runtime.empty(3), requires_grad=True)
    assert leaf.requires_grad
    with pytest.raises(WrongOption, match="float32, as `out` has"):
        runtime.arange(3, dtype="int64", out=out)
    with pytest.raises(WrongOption, match="cpu, as `out` has"):
        runtime.zeros(3, device="meta", out=out)
    with pytest.raises(DTypeRefused, match=r"core::arange\.out"):
        runtime.arange(3, out=runtime.empty(0, dtype="bool"))
    with pytest.raises(CallError):
        runtime.arange(3, out=3)  # type: ignore[arg-type]  # what is refused


def test_what_is_found_is_written_to_out() -> None:
    x = tensor([[0, 1], [2, 0]], "int64")
    out = runtime.empty(0, dtype="int64")
    assert runtime.nonzero(x, out=out) is out
    assert out.tolist() == [[0, 1], [1, 0]]
    line = runtime.empty(4, dtype="int64")[::2]
    assert runtime.masked_select(x, x > 0, out=line) is line
    assert line.tolist() == [1, 2]
    with pytest.raises(TargetRefused):
        runtime.nonzero(x, out=runtime.empty(7, 2, dtype="int64"))
