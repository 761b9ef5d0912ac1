"""Eight bits: what is exact, how far off the rest is, and that views stay views."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everyorder import runtime
from everyorder.runtime import Tensor, ops, tensor
from everyorder.runtime.torch_dispatch.wrappers import flatten, unflatten
from tests.examples.fake_tensor import FakeTensor, FakeTensorMode
from tests.examples.logging_tensor import LoggingTensor, capture_logs
from tests.examples.quantized_tensor import QuantizedTensor, quantize

MATRIX = [[0.5, -1.0], [2.0, 0.25]]


def parts(x: Any) -> tuple[Any, ...]:
    assert isinstance(x, QuantizedTensor)
    return x.values.tolist(), x.scale.item(), int(x.zero_point)


def test_the_scale_is_the_least_power_of_two_that_fits() -> None:
    assert parts(quantize(tensor([1.0, -2.0]))) == ([32, -64], 2.0**-5, 0)
    assert parts(quantize(tensor([127.0]))) == ([127], 1.0, 0)
    assert parts(quantize(tensor([128.0]))) == ([64], 2.0, 0)
    assert parts(quantize(tensor([0.0]))) == ([0], 1.0, 0)
    assert parts(quantize(runtime.zeros(0))) == ([], 1.0, 0)
    assert quantize(tensor([1e-38])).scale.item() == 2.0**-126


def test_a_scale_and_a_zero_point_of_ones_own() -> None:
    x = quantize(tensor([0.0, 1.0, 2.55]), scale=0.01, zero_point=-128)
    assert parts(x) == ([-128, -28, 127], pytest.approx(0.01), -128)
    assert x.dequantize().tolist() == pytest.approx([0.0, 1.0, 2.55])


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=20))
def test_it_is_off_by_half_a_step_at_most(data: list[float]) -> None:
    x = quantize(tensor(data))
    off = (x.dequantize() - tensor(data)).abs().max().item()
    assert off <= x.scale.item() / 2


def test_what_is_done_in_integers() -> None:
    w = quantize(tensor(MATRIX))
    assert parts(w) == ([[16, -32], [64, 8]], 2.0**-5, 0)
    # 16 * 16 - 32 * 64 = -1792 in units of 2**-10 is -112 in units of 2**-6.
    assert parts(w @ w) == ([[-112, -48], [96, -124]], 2.0**-6, 0)
    assert parts((w @ w).relu()) == ([[0, 0], [96, 0]], 2.0**-6, 0)
    assert parts(w * w) == ([[4, 16], [64, 1]], 2.0**-4, 0)
    assert parts(w + w) == ([[16, -32], [64, 8]], 2.0**-4, 0)
    assert parts(w - w) == ([[0, 0], [0, 0]], 2.0**-5, 0)


def test_zero_points_are_taken_off() -> None:
    x = quantize(tensor([-1.0, 2.0, 3.0]), 0.5, 10)
    assert parts(x) == ([8, 14, 16], 0.5, 10)
    assert parts(x.relu()) == ([10, 14, 16], 0.5, 10)
    assert parts(x * x) == ([4, 16, 36], 0.25, 0)
    assert parts(x + quantize(tensor([4.0, 0.0, 0.0]))) == ([48, 32, 48], 2.0**-4, 0)


def test_everything_else_sees_the_numbers() -> None:
    w = quantize(tensor(MATRIX))
    for found, expected in (
        (w.exp(), tensor(MATRIX).exp()),
        (w + 1, tensor(MATRIX) + 1),
        (w @ tensor(MATRIX), tensor(MATRIX) @ tensor(MATRIX)),
        (ops.core.add(w, w, alpha=2), tensor(MATRIX) * 3),
        (w.sum(0), tensor(MATRIX).sum(0)),
        (ops.core.cat([w, tensor(MATRIX)]), tensor([*MATRIX, *MATRIX])),
    ):
        assert type(found) is Tensor
        assert found.tolist() == expected.tolist()


def test_views_share_the_integers() -> None:
    w = quantize(tensor(MATRIX))
    row = w.t()[0]
    assert parts(row) == ([16, 64], 2.0**-5, 0)
    assert [parts(each)[0] for each in w.split(1)] == [[[16, -32]], [[64, 8]]]
    assert row.fill_(1.0) is row
    assert w.values.tolist() == [[32, -32], [32, 8]]


def test_what_is_written_to_keeps_its_scale() -> None:
    x = quantize(tensor([1.0, -2.0]), 0.5)
    x.mul_(100)
    assert parts(x) == ([127, -128], 0.5, 0)
    assert ops.core.add.out(x, x, out=x) is x
    out = quantize(runtime.zeros(2), 1.0, 5)
    ops.core.neg.out(tensor([3.0, 4.4]), out=out)
    assert parts(out) == ([2, 1], 1.0, 5)
    plain = tensor([1.0, 1.0])
    plain.add_(out)
    assert plain.tolist() == [-2.0, -3.0]


def test_gradients_pass_but_where_it_cuts_off() -> None:
    x = tensor([1.0, 2.0, 500.0], requires_grad=True)
    y = quantize(x, 0.5)
    (y * y).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 4.0, 0.0]


def test_a_leaf_gets_plain_gradients() -> None:
    w: Any = quantize(tensor(MATRIX)).detach().requires_grad_()
    (w @ w).relu().dequantize().sum().backward()
    exact = tensor(MATRIX, requires_grad=True)
    (exact @ exact).relu().sum().backward()
    assert w.grad is not None
    assert exact.grad is not None
    assert (type(w.grad), w.grad.tolist()) == (Tensor, exact.grad.tolist())


def test_nobody_asks_for_the_scale() -> None:
    with FakeTensorMode() as mode:
        w = quantize(runtime.rand(1000, 1000, device="cuda"))
        y = (w @ w).relu()
    assert isinstance(y, QuantizedTensor)
    assert (type(y.values), y.values.dtype) == (FakeTensor, runtime.int8)
    assert (y.shape, str(y.device)) == ((1000, 1000), "cuda:0")
    scale: Any = y.scale
    assert scale.mode is mode


def test_what_it_computes_can_be_read() -> None:
    x = quantize(LoggingTensor(tensor([2.0])), 1.0)
    with capture_logs(types=False) as lines:
        x.relu()
    assert [line.partition(" = ")[2] for line in lines] == [
        "everyorder.runtime.ops.core.maximum.default($0, $1)"
    ]


def test_it_is_taken_apart_and_put_together() -> None:
    x = quantize(tensor([0.5]), 0.5, 1)
    tensors, plan = flatten(x)
    assert tensors == (x.values, x.scale, x.zero_point)
    assert parts(unflatten(tensors, plan)) == ([2], 0.5, 1)
    assert repr(x) == (
        "QuantizedTensor(tensor([2], dtype=int8), tensor(0.5), tensor(1, dtype=int32))"
    )
