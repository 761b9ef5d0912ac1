"""What operators cost, checked against counts by hand."""

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, library, ops
from tests.examples.fake_tensor import FakeTensorMode
from tests.examples.flop_counter import FlopCounterMode
from tests.examples.logging_tensor import LoggingTensor


def ones(*shape: int) -> Tensor:
    made: Tensor = runtime.ones(*shape, requires_grad=True)
    return made


def test_a_product_and_its_gradients() -> None:
    with FlopCounterMode() as counter:
        y = ones(2, 3) @ ones(3, 5)
    assert counter.get_flop_counts() == {"core::mm": 2 * 2 * 3 * 5}
    with counter:
        y.sum().backward()
    # Two products of the same size: by each factor one.
    assert counter.get_flop_counts() == {"core::mm": 3 * 2 * 2 * 3 * 5}
    assert counter.calls == {"core::mm": 3}


def test_products_of_other_shapes() -> None:
    with FlopCounterMode() as counter, runtime.no_grad():
        ops.core.matmul(ones(7), ones(7))
        ops.core.matmul(ones(4, 2, 3), ones(4, 3, 5))
        ops.core.matmul(ones(2, 3), ones(3))
        ops.core.mm.out(ones(2, 3), ones(3, 5), out=runtime.empty(0))
    assert counter.get_flop_counts() == {
        "core::bmm": 4 * 2 * 2 * 3 * 5,
        "core::mm": 2 * 2 * 3 * 5,
        "core::mv": 2 * 2 * 3,
        "core::dot": 2 * 7,
    }


def test_what_nothing_took_apart_counts_whole() -> None:
    with FlopCounterMode() as counter, runtime.inference_mode():
        x = runtime.ones(4, 2, 3)
        ops.core.matmul(x, runtime.ones(3, 5))
    assert counter.get_flop_counts() == {"core::matmul": 2 * 4 * 2 * 3 * 5}


def test_a_linear_layer() -> None:
    with FlopCounterMode() as counter:
        y = ops.core.linear(ones(6, 4, 8), ones(16, 8), ones(16))
        y.sum().backward()
    forward = 2 * 6 * 4 * 8 * 16
    assert counter.get_flop_counts() == {
        "core::mm": 2 * forward,
        "core::addmm": forward,
    }


@pytest.mark.parametrize("groups", [1, 2])
def test_a_convolution(groups: int) -> None:
    # 8 by 8 pixels, stride 2, padding 1, a kernel of 3 by 3: 4 by 4 are left.
    forward = 2 * (3 * 6 * 4 * 4) * (4 // groups * 3 * 3)
    images, weight = ones(3, 4, 8, 8), ones(6, 4 // groups, 3, 3)
    with FlopCounterMode() as counter:
        y = ops.core.conv2d(images, weight, None, 2, 1, 1, groups)
        y.sum().backward()
    assert counter.get_flop_counts() == {
        "core::convolution_backward": 2 * forward,
        "core::convolution": forward,
    }


def test_a_gradient_that_nobody_wants_is_not_counted() -> None:
    images = runtime.ones(1, 1, 4, 4)
    with FlopCounterMode() as counter:
        ops.core.conv2d(images, ones(1, 1, 3, 3)).sum().backward()
    forward = 2 * (2 * 2) * (3 * 3)
    assert counter.get_total_flops() == 2 * forward


def test_elements_count_nothing() -> None:
    with FlopCounterMode() as counter:
        (ones(100).exp() + 1).sum().backward()
    assert counter.get_total_flops() == 0


def test_it_adds_up_until_it_is_reset() -> None:
    counter = FlopCounterMode()
    for _ in range(3):
        with counter:
            ones(1, 1) @ ones(1, 1)
    ones(9, 9) @ ones(9, 9)
    assert counter.get_total_flops() == 6
    counter.reset()
    assert (counter.get_total_flops(), counter.calls.total()) == (0, 0)


def test_entered_twice_it_counts_once_and_two_counters_count_both() -> None:
    counter, other = FlopCounterMode(), FlopCounterMode()
    with counter, other, counter:
        ones(1, 1) @ ones(1, 1)
    assert counter.get_total_flops() == 2
    assert other.get_total_flops() == 2


def test_a_wrapper_is_counted_once() -> None:
    x = LoggingTensor(runtime.ones(2, 2))
    with FlopCounterMode() as counter:
        x @ x
    assert counter.get_total_flops() == 16


def test_an_operator_of_ones_own() -> None:
    @library.custom_op("flops_example::cube", mutates_args=())
    def cube(x: Tensor) -> Tensor:
        made: Tensor = x * x * x
        return made

    try:
        formulas = {"flops_example::cube": lambda x, *, out: 2 * out.numel()}
        with FlopCounterMode(formulas) as counter:
            ops.flops_example.cube(runtime.ones(5))
        assert counter.get_flop_counts() == {"flops_example::cube": 10}
    finally:
        cube.close()


def test_a_layer_that_no_machine_holds() -> None:
    with FakeTensorMode(), FlopCounterMode() as counter:
        tokens = runtime.rand(4096, 16_384, device="cuda", requires_grad=True)
        weight = runtime.rand(53_248, 16_384, device="cuda", requires_grad=True)
        ops.core.linear(tokens, weight).sum().backward()
    assert counter.get_total_flops() == 3 * 2 * 4096 * 16_384 * 53_248


def test_the_table() -> None:
    with FlopCounterMode() as counter:
        y = ops.core.linear(ones(64, 256), ones(128, 256), ones(128))
        (y @ ones(128, 10)).sum().backward()
    table = counter.table()
    assert table == TABLE
    assert max(map(len, table.splitlines())) < 80
    assert FlopCounterMode().table().splitlines()[-1].split() == ["total", "0", "0"]


TABLE = """\
operator                                  calls                   FLOPs   share
core::mm                                      5               8,880,128   67.9%
core::addmm                                   1               4,194,304   32.1%
total                                         6              13,074,432"""
