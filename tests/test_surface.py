"""The surface: names that programs for torch take from it."""

import math
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.errors.registration import Conflict
from everyorder.runtime.errors.tensor import UnfitValue
from tests.coded import code


def test_classes_and_constants() -> None:
    x = runtime.ones(2)
    assert isinstance(x.dtype, runtime.dtype)
    assert isinstance(x.device, runtime.device)
    assert runtime.device("cuda:1") is runtime.device("cuda", 1)
    assert runtime.device(x.device) is x.device
    assert (runtime.double, runtime.long) == (runtime.float64, runtime.int64)
    assert runtime.float is runtime.float32
    assert (runtime.inf, runtime.pi) == (math.inf, math.pi)
    size = runtime.Size([2, 3])
    assert (size.numel(), size, repr(size)) == (6, (2, 3), "Size([2, 3])")
    assert runtime.zeros(size).shape == size


def test_names_of_modes_and_of_values() -> None:
    with runtime.inference_mode():
        assert runtime.is_inference_mode_enabled()
    assert not runtime.is_inference_mode_enabled()
    assert isinstance(runtime.channels_last, runtime.memory_format)
    assert runtime.ones(1).layout is runtime.strided
    assert isinstance(runtime.strided, runtime.layout)
    assert runtime.promote_types(runtime.int64, runtime.half) is runtime.half
    assert runtime.can_cast(runtime.int64, runtime.float32)
    assert not runtime.can_cast(runtime.complex64, runtime.float32)
    assert runtime.is_floating_point(runtime.ones(1))
    assert runtime.is_complex(runtime.tensor([1j]))
    tree = runtime.utils._pytree.tree_map(lambda leaf: leaf + 1, {"a": [1, 2]})
    assert tree == {"a": [2, 3]}
    found = runtime.utils._python_dispatch.TorchDispatchMode
    assert found is runtime.TorchDispatchMode


@pytest.mark.torch
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float64", "complex64"])
def test_limits_of_fractions_are_those_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
    one, other = runtime.finfo(name), torch.finfo(getattr(torch, name))
    for fact in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "dtype"):
        assert getattr(one, fact) == getattr(other, fact)
    assert one.resolution == other.resolution


@pytest.mark.parametrize("name", ["uint8", "int8", "int16", "int32", "int64"])
def test_limits_of_integers(name: str) -> None:
    import numpy as np

    one, other = runtime.iinfo(name), np.iinfo(name)
    facts = ("bits", "max", "min")
    assert [getattr(one, f) for f in facts] == [getattr(other, f) for f in facts]
    assert str(one) == f"iinfo(min={other.min}, max={other.max}, dtype={name})"


def test_limits_that_there_are_not() -> None:
    with pytest.raises(UnfitValue, check=code("UnfitValue")):
        runtime.finfo("int32")
    with pytest.raises(UnfitValue, check=code("UnfitValue")):
        runtime.iinfo("float32")
    assert "max=65504" in str(runtime.finfo(runtime.half))


def test_every_name_is_told() -> None:
    told = dir(runtime)
    assert {*runtime.__all__, "zeros", "float32", "long", "inf", "library"} <= {*told}
    for name in told:
        getattr(runtime, name)


def test_a_library_first() -> None:
    def twice(x: Any) -> Any:
        return x * 2

    with runtime.Library("surface", "DEF") as library:

        @runtime.define(library, "plus(Tensor x) -> Tensor")
        def plus(x: Any) -> Any:
            return x + 1

        assert plus(1) == 2
        assert runtime.ops.surface.plus(runtime.ones(1)).tolist() == [2]

        @runtime.impl(library, "plus", "CPU")
        def plus_on_cpu(x: Any) -> Any:
            return x + 10

        assert plus_on_cpu(1) == 11
        assert runtime.ops.surface.plus(runtime.ones(1)).tolist() == [11]
        # As functions, and as the module of the library has them.
        library.define("double(Tensor x) -> Tensor")
        assert runtime.library.impl(library, "double", "CPU")(twice) is twice
        assert runtime.ops.surface.double(runtime.ones(1)).tolist() == [2]
    with runtime.Library("surface", "IMPL", "CPU") as other:
        assert runtime.impl(other, "late")(twice) is twice


def test_a_definition_whose_kernel_does_not_fit_is_taken_back() -> None:
    with runtime.Library("surface", "DEF") as library:
        with pytest.raises(Exception, match="kernel"):
            runtime.define(library, "none(Tensor x) -> Tensor")(3)  # type: ignore[type-var]  # on purpose
        library.define("none(Tensor x, int n) -> Tensor")
        with pytest.raises(Conflict):
            library.define("none(Tensor x) -> Tensor")
