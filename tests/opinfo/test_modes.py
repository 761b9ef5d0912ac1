"""Every operator under autocast and in inference mode, and from several threads."""

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import numpy as np
import pytest

from everyorder.runtime import DispatchKey, Tensor, autocast, inference_mode
from tests.opinfo.info import Array, OpInfo, handle, listed, on_cpu
from tests.opinfo.table import ROWS
from tests.opinfo.test_gradients import FIXED as CONSTANT
from tests.opinfo.test_schemas import dtype_for

ADINPLACE = DispatchKey.ADInplaceOrView


def kept(result: Any) -> list[Any]:
    """What can be compared of results."""
    return [r.detach().numpy().copy() if isinstance(r, Tensor) else r
            for r in listed(result)]  # fmt: skip


def call(row: OpInfo, number: int) -> list[Any]:
    args, kwargs = row.samples(dtype_for(row))[number].bound(on_cpu)
    return kept(row.call(*args, **kwargs))


def equal(one: list[Any], other: list[Any], case: str) -> None:
    assert len(one) == len(other), case
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b, case)


FIXED = [row for row in ROWS if not row.random]


@pytest.mark.parametrize("row", FIXED, ids=repr)
def test_inference_mode(row: OpInfo) -> None:
    """The same results; new tensors have no keys of autograd."""
    for number in range(min(2, len(row.samples(dtype_for(row))))):
        expected = call(row, number)
        with inference_mode():
            args, kwargs = row.samples(dtype_for(row))[number].bound(on_cpu)
            results = row.call(*args, **kwargs)
        equal(kept(results), expected, row.name)
        for result in listed(results):
            if isinstance(result, Tensor):
                assert not result.requires_grad
                fresh = all(
                    result.storage() is not a.storage()
                    for a in args
                    if isinstance(a, Tensor)
                )
                assert not (fresh and result.keyset.has(ADINPLACE)), row.name


@pytest.mark.parametrize("row", [r for r in FIXED if "float32" in r.dtypes], ids=repr)
def test_autocast(row: OpInfo) -> None:
    """Near what comes out without it, with gradients where there are any."""
    sample = row.samples("float32")[0]
    args, kwargs = sample.bound(on_cpu)
    expected = kept(row.call(*args, **kwargs))
    for dtype in ("bfloat16", "float16"):
        args, kwargs = sample.bound(on_cpu)
        with autocast("cpu", dtype):
            found = kept(row.call(*args, **kwargs))
        for one, other in zip(found, expected, strict=True):
            assert (one is None) == (other is None)
            if one is not None and not isinstance(one, bool):
                np.testing.assert_allclose(
                    np.asarray(one).astype(np.complex128),
                    np.asarray(other).astype(np.complex128),
                    rtol=0.05,
                    atol=0.1,
                    err_msg=f"{row.name} in {dtype}",
                )


LOW = ("mm", "bmm", "matmul", "linear", "conv2d")


@pytest.mark.parametrize("name", LOW)
def test_autocast_computes_products_in_the_fast_dtype(name: str) -> None:
    row = next(row for row in ROWS if row.name == name)
    sample = row.samples("float32")[0]
    leaves: list[Tensor] = []

    def turned(value: Any) -> Any:
        if not isinstance(value, Array):
            return on_cpu(value)
        leaves.append(value.tensor().requires_grad_())
        return leaves[-1]

    args, kwargs = sample.bound(turned)
    with autocast("cpu"):
        result = row.call(*args, **kwargs)
    assert result.dtype.name == "bfloat16"
    handle("sum")(result).backward()
    for leaf in leaves:
        assert leaf.grad is not None
        assert leaf.grad.dtype.name == "float32"


@pytest.mark.slow
def test_four_threads_compute_the_same() -> None:
    """Every operator at once, each thread in an order of its own."""
    expected = {row.name: call(row, 0) for row in FIXED}

    def work(turn: int) -> list[str]:
        wrong = []
        for row in FIXED[turn * 37 :] + FIXED[: turn * 37]:
            try:
                equal(call(row, 0), expected[row.name], row.name)
            except Exception as error:
                wrong.append(f"{row.name}: {error!r}")
        return wrong

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(work, range(4))] == [[], [], [], []]


@pytest.mark.slow
def test_four_threads_differentiate_the_same() -> None:
    rows = [r for r in FIXED if r.gradient and not r.view and "float32" in r.dtypes]

    def gradients(row: OpInfo) -> list[Any]:
        leaves: list[Tensor] = []
        constant, arrays = CONSTANT.get(row.name, lambda at: False), count()

        def turned(value: Any) -> Any:
            if not isinstance(value, Array):
                return on_cpu(value)
            if constant(next(arrays)) or value.values.dtype.kind != "f":
                return value.tensor()
            leaves.append(value.tensor().requires_grad_())
            return leaves[-1]

        args, kwargs = row.samples("float32")[0].bound(turned)
        results = listed(row.call(*args, **kwargs))
        first = next((r for r in results if r.requires_grad), None)
        if first is not None:
            handle("sum")(first).backward()
        return [None if leaf.grad is None else leaf.grad.numpy() for leaf in leaves]

    once = ("relu_backward",)
    chosen = [row for row in rows if row.name not in once]
    expected = {row.name: gradients(row) for row in chosen}

    def work(turn: int) -> None:
        for row in chosen[turn * 19 :] + chosen[: turn * 19]:
            equal(gradients(row), expected[row.name], row.name)

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(work, range(4))] == [None] * 4
