"""The linear layer: every number of dimensions, any strides, and what is refused."""

from collections.abc import Callable

import numpy as np
import pytest

from runtime.errors.operands import ShapesDoNotFit
from runtime.operators.call import core
from runtime.tensors import tensor
from tests.operators.arrays import normal, on_meta, zeros
from tests.operators.told import Refused, refused


@pytest.mark.parametrize("shape", [(3,), (5, 3), (4, 5, 3), (0, 3)], ids=str)
@pytest.mark.parametrize("with_bias", [True, False])
def test_linear(shape: tuple[int, ...], with_bias: bool) -> None:
    x, weight, bias = normal(*shape, seed=1), normal(2, 3, seed=2), normal(2, seed=3)
    found = core.linear(tensor(x), tensor(weight), tensor(bias) if with_bias else None)
    expected = x @ weight.T + (bias if with_bias else 0)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-13)


def test_linear_of_integers() -> None:
    x, weight = np.arange(12).reshape(3, 4), np.arange(8).reshape(2, 4) - 3
    found = core.linear(tensor(x), tensor(weight), tensor([1, 2]))
    assert found.dtype.name == "int64"
    assert found.tolist() == (x @ weight.T + [1, 2]).tolist()


def test_linear_of_any_strides() -> None:
    x, weight = normal(4, 3, 5, seed=1), normal(3, 2, seed=2)
    turned = core.permute(tensor(x), [2, 0, 1])
    found = core.linear(turned, core.t(tensor(weight)))
    np.testing.assert_allclose(
        found.numpy(), x.transpose(2, 0, 1) @ weight, rtol=1e-13, atol=1e-13
    )
    assert core.linear(tensor(zeros(2, 3), device="meta"), on_meta(4, 3)).shape == (
        2,
        4,
    )


def test_linear_of_sixteen_bits_computes_in_float32() -> None:
    x = tensor(normal(5, 3, seed=1), dtype="bfloat16")
    weight = tensor(normal(2, 3, seed=2), dtype="bfloat16")
    found = core.linear(x, weight)
    exact = x.numpy().astype(np.float32) @ weight.numpy().astype(np.float32).T
    assert found.tolist() == exact.astype(found.numpy().dtype).tolist()


WRONG: tuple[Refused, ...] = (
    (
        lambda: core.linear(zeros(2, 3), zeros(4, 5)),
        ShapesDoNotFit,
        "`core::linear` cannot work on these shapes: the last dimension of input is "
        "not\n"
        "that of weight.\n"
        "  given: input (2, 3), weight (4, 5)\n"
        "  fits:  input of shape (..., 5)",
    ),
    (
        lambda: core.linear(zeros(2, 3), zeros(4, 3), zeros(3)),
        ShapesDoNotFit,
        "`core::linear` cannot work on these shapes: bias has another shape than "
        "asked.\n"
        "  given: bias (3,)\n"
        "  fits:  shape (4,)",
    ),
)


@pytest.mark.parametrize(("call", "kind", "text"), WRONG)
def test_what_does_not_go_together_is_refused(
    call: Callable[[], object], kind: type[Exception], text: str
) -> None:
    refused(call, kind, text)
