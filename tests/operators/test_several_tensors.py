"""Calls of several tensors that a comparison with torch has found wrong."""

from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.errors.tensor import (
    DevicesDiffer,
    DTypeRefused,
    ShapesDoNotFit,
    WrongOption,
)


def made(*shape: int, dtype: str = "float32", device: str = "cpu") -> Any:
    return runtime.ones(shape, dtype=dtype, device=device)


def test_a_grid_is_of_one_device() -> None:
    with pytest.raises(DevicesDiffer):
        runtime.meshgrid(made(2), made(2, device="meta"), indexing="ij")
    with pytest.raises(DTypeRefused):
        runtime.meshgrid(made(2), made(2, dtype="float64"), indexing="ij")


def test_weights_have_the_dtype_of_what_they_join() -> None:
    for dtype in ("float64", "int64"):
        with pytest.raises(DTypeRefused, match="weight"):
            runtime.lerp(made(2), made(2), made(2, dtype=dtype))
        joined = runtime.lerp(made(2), made(2), made(dtype=dtype))
        assert str(joined.dtype) == "float32"


def test_numbers_are_searched_in_lines() -> None:
    with pytest.raises(ShapesDoNotFit):
        runtime.searchsorted(made(), made())
    assert runtime.searchsorted(made(2), made()).item() == 0


INDICES: dict[str, Any] = {
    "an index": lambda: runtime.tensor([0, 1]),
    "a list": lambda: [0, 1],
    "a mask": lambda: runtime.tensor([True, True, False]),
    "indices": lambda: (runtime.tensor([0, 1]),),
}


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize(
    ("target", "value"),
    [
        ("int64", runtime.tensor([1.5, 2.5])),
        ("float32", runtime.tensor([1j, 2j])),
        ("bool", runtime.tensor([2, 3])),
    ],
)
def test_elements_lose_nothing_at_an_index(index: str, target: str, value: Any) -> None:
    x = made(3, dtype=target)
    with pytest.raises(DTypeRefused) as caught:
        x[INDICES[index]()] = value
    assert caught.value.argument == "value"
    assert x.tolist() == [1, 1, 1]


def test_wider_elements_are_converted_at_an_index() -> None:
    x = made(3)
    x[runtime.tensor([0, 1])] = runtime.tensor([4, 5])
    x[runtime.tensor([False, False, True])] = runtime.tensor([6.0], dtype="float64")
    assert x.tolist() == [4.0, 5.0, 6.0]
    # One value for a mask is as a number.
    whole = made(3, dtype="int64")
    whole[runtime.tensor([True, False, False])] = runtime.tensor(2.5)
    whole[1] = 3.5
    assert whole.tolist() == [2, 3, 1]


@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
def test_a_factor_is_refused_by_its_name(name: str) -> None:
    x = made(2)
    with pytest.raises(WrongOption) as caught:
        getattr(runtime, name)(x, x, x, value=1j)
    assert caught.value.argument == "value"


@pytest.mark.parametrize("dtype", ["int64", "float32", "float16"])
@pytest.mark.parametrize("factor", ["alpha", "beta"])
def test_factors_of_real_products_are_not_complex(factor: str, dtype: str) -> None:
    x, factors = made(2, 2, dtype=dtype), dict[str, Any]({factor: 1j})
    for call, operands in (
        (runtime.addmm, (x, x, x)),
        (runtime.addmv, (x[0], x, x[0])),
        (runtime.baddbmm, (x[None], x[None], x[None])),
    ):
        with pytest.raises(DTypeRefused) as caught:
            call(*operands, **factors)
        assert caught.value.argument == factor


@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
@pytest.mark.parametrize(
    ("dtypes", "dims", "expected"),
    [
        (("float16", "float16", "bfloat16"), (1, 1, 1), "float32"),
        (("bfloat16", "bfloat16", "bfloat16"), (1, 1, 1), "bfloat16"),
        (("float16", "bfloat16", "float16"), (0, 1, 0), "bfloat16"),
        (("float32", "float16", "float64"), (0, 1, 0), "float16"),
        (("float16", "float64", "float32"), (1, 0, 0), "float16"),
        (("int64", "float16", "bfloat16"), (0, 0, 0), "float32"),
    ],
)
def test_the_dtype_is_that_of_all_operands(
    name: str, dtypes: Any, dims: Any, expected: str
) -> None:
    operands = [
        made(*[1] * dim, dtype=dtype) for dim, dtype in zip(dims, dtypes, strict=True)
    ]
    result = getattr(runtime, name)(*operands)
    assert str(result.dtype) == expected
    assert result.item() == 2.0
