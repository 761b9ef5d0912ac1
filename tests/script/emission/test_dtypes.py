"""Dtypes in programs: promotion, limits, facts, and functions that read numbers."""

import io
from collections.abc import Callable
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import DType, Tensor, jit, tensor
from everyorder.runtime.errors.script import IllTyped, UnknownAttribute


def can_cast(x: Tensor) -> tuple[bool, bool]:
    return (
        runtime.can_cast(x.dtype, runtime.float64),
        runtime.can_cast(runtime.float64, runtime.int64),
    )


def promote_types(x: Tensor) -> bool:
    return runtime.promote_types(x.dtype, runtime.int64) == x.dtype


def result_type(x: Tensor) -> tuple[bool, bool, bool, bool]:
    whole = x.to(runtime.int64)
    return (
        runtime.result_type(whole, 1.5) == runtime.float32,
        runtime.result_type(1, whole) == runtime.int64,
        runtime.result_type(whole, x) == runtime.float32,
        runtime.result_type(1, 1.5) == runtime.get_default_dtype(),
    )


def finfo(x: Tensor) -> tuple[float, float, float, float, float, float, int, str]:
    return (
        runtime.finfo(x.dtype).eps,
        runtime.finfo(runtime.float64).max,
        runtime.finfo(dtype=x.dtype).min,
        runtime.finfo().tiny,
        runtime.finfo(runtime.bfloat16).smallest_normal,
        runtime.finfo(runtime.float16).resolution,
        runtime.finfo(x.dtype).bits,
        runtime.finfo(runtime.complex64).dtype,
    )


def iinfo(x: Tensor) -> tuple[int, int, int, str]:
    dtype = runtime.int32
    return (
        runtime.iinfo(dtype).max,
        runtime.iinfo(runtime.int8).min,
        runtime.iinfo(runtime.int16).bits,
        runtime.iinfo(runtime.uint8).dtype,
    )


def facts(x: Tensor) -> tuple[bool, bool, bool, int, bool, bool]:
    return (
        x.dtype.is_floating_point,
        x.dtype.is_complex,
        runtime.uint8.is_signed,
        x.dtype.itemsize,
        x.dtype.to_complex() == runtime.complex64,
        runtime.complex128.to_real() == runtime.float64,
    )


def layout(x: Tensor) -> bool:
    return x.layout == runtime.strided


def is_nonzero(x: Tensor) -> tuple[bool, bool]:
    return runtime.is_nonzero(x.sum()), (x.sum() * 0).is_nonzero()


def quantile(x: Tensor) -> Tensor:
    return runtime.quantile(x, 0.25, dim=0, keepdim=True)


def quantile_method(x: Tensor) -> Any:
    return x.quantile(0.3, interpolation="lower")


def tensordot(x: Tensor) -> Tensor:
    return runtime.tensordot(x, x, dims=1)


def tensordot_by_default(x: Tensor) -> Any:
    return runtime.tensordot(x, x)


def tensordot_along(x: Tensor) -> Any:
    return runtime.tensordot(x, x, [[0], [1]])


def converted(x: Tensor) -> Any:
    return x.type(runtime.int64)


FUNCTIONS: tuple[Callable[[Tensor], Any], ...] = (
    *(can_cast, promote_types, result_type, finfo, iinfo, facts, layout, is_nonzero),
    *(quantile, quantile_method, tensordot, tensordot_by_default, tensordot_along),
    converted,
)


def plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.dtype, value.tolist()
    return value


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_a_program_returns_what_the_function_returns(
    function: Callable[[Tensor], Any],
) -> None:
    compiled = jit.script(function)
    stored = io.BytesIO()
    jit.save(compiled, stored)
    stored.seek(0)
    for _ in range(3):
        x = tensor([[1.5, 2.5], [3.5, 5.0]])
        assert plain(compiled(x)) == plain(function(x))
    stored.seek(0)
    assert plain(jit.load(stored)(x)) == plain(function(x))


def test_a_dtype_is_returned_as_one() -> None:
    def function(x: Tensor) -> DType:
        return runtime.promote_types(x.dtype, runtime.float64)

    assert jit.script(function)(tensor([1])) is runtime.float64


def test_the_default_is_read_when_the_program_runs() -> None:
    def function() -> DType:
        return runtime.get_default_dtype()

    compiled = jit.script(function)
    assert compiled() is runtime.float32
    runtime.set_default_dtype(runtime.float64)
    try:
        assert compiled() is runtime.float64
    finally:
        runtime.set_default_dtype(runtime.float32)


def test_limits_are_not_values() -> None:
    def returned(x: Tensor) -> Any:
        return runtime.finfo(x.dtype)

    def unknown(x: Tensor) -> float:
        return runtime.finfo(x.dtype).epsilon  # type: ignore[attr-defined,no-any-return]  # the mistake

    def missing(x: Tensor) -> int:
        return runtime.iinfo().max  # type: ignore[call-arg]  # the mistake

    with pytest.raises(IllTyped, match="a result of `finfo` is used as a value"):
        jit.script(returned)
    with pytest.raises(UnknownAttribute, match="epsilon"):
        jit.script(unknown)
    with pytest.raises(IllTyped, match="`iinfo` is given no dtype"):
        jit.script(missing)


def test_limits_can_have_a_name() -> None:
    def named(x: Tensor) -> float:
        limits = runtime.finfo(x.dtype)
        return limits.eps + limits.max

    expected = runtime.finfo("float32").eps + runtime.finfo("float32").max
    assert jit.script(named)(tensor([1.0])) == expected


def test_an_int_has_no_facts_of_a_dtype() -> None:
    def function(number: int) -> bool:
        return number.is_floating_point  # type: ignore[attr-defined,no-any-return]  # the mistake

    with pytest.raises(UnknownAttribute, match="is_floating_point"):
        jit.script(function)


def test_a_program_does_not_set_the_default() -> None:
    def function(x: Tensor) -> Tensor:
        runtime.set_default_dtype(runtime.float64)
        return x

    with pytest.raises(IllTyped, match="changes the whole process"):
        jit.script(function)


def test_wrong_dims_are_refused() -> None:
    compiled = jit.script(tensordot_wrong)
    with pytest.raises(Exception, match="a number of dimensions that both"):
        compiled(tensor([1.0]))


def tensordot_wrong(x: Tensor) -> Tensor:
    return runtime.tensordot(x, x, dims=3)


def test_unsupported_dtypes_are_refused() -> None:
    from everyorder.runtime.errors.tensor import UnfitValue

    for call in (runtime.promote_types, runtime.can_cast):
        with pytest.raises(UnfitValue, match="complex32"):
            call(runtime.complex32, runtime.float32)
