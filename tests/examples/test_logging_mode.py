"""What a mode sees: everything that a block calls, with numbers that agree."""

import pytest

from everyorder import runtime
from everyorder.runtime import tensor
from everyorder.runtime.torch_dispatch import current_modes, no_dispatch
from tests.examples.logging_mode import (
    LoggingMode,
    capture_logs_with_logging_tensor_mode,
)
from tests.examples.logging_tensor import LoggingTensor, capture_logs


@pytest.mark.spec("dispatch 8.4", "test_capture_logs_with_torch_dispatch_mode")
def test_factories_plain_tensors_and_the_backward_pass() -> None:
    with capture_logs_with_logging_tensor_mode() as lines:
        x = runtime.ones(2, requires_grad=True)
        (x * 3).sum().backward(tensor(1.0))
    assert lines == [
        "$0: f32[2] = everyorder.runtime.ops.core.ones.default(['2'])",
        "$1: f32[2] = everyorder.runtime.ops.core.mul.default($0, 3)",
        "$2: f32[] = everyorder.runtime.ops.core.sum.default($1)",
        "$4: f32[2] = everyorder.runtime.ops.core.expand.default($3, ['2'])",
        "$5: f32[2] = everyorder.runtime.ops.core.mul.default($4, 3)",
    ]
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.spec("dispatch 8.4", "test_nested_push_logging_tensor_mode")
def test_nested_modes_agree_about_the_numbers() -> None:
    with capture_logs_with_logging_tensor_mode(types=False) as lines:
        x = runtime.zeros(1)
        with LoggingMode():
            y = x + x
        y * x
    assert lines == [
        "$0 = everyorder.runtime.ops.core.zeros.default(['1'])",
        "$1 = everyorder.runtime.ops.core.add.default($0, $0)",
        "$1 = everyorder.runtime.ops.core.add.default($0, $0)",
        "$2 = everyorder.runtime.ops.core.mul.default($1, $0)",
    ]


def test_a_mode_entered_twice_writes_twice() -> None:
    mode = LoggingMode()
    with capture_logs_with_logging_tensor_mode(types=False) as lines, mode, mode:
        runtime.zeros(1)
    assert lines == ["$0 = everyorder.runtime.ops.core.zeros.default(['1'])"] * 3


def test_the_mode_and_the_wrapper_both_write() -> None:
    x = LoggingTensor(tensor([1.0]))
    with capture_logs() as lines, LoggingMode():
        x.exp()
    # The wrapper is asked by what the mode calls, so that it is done first.
    assert lines == ["$1: f32[1] = everyorder.runtime.ops.core.exp.default($0)"] * 2


def test_plain_tensors_print_in_full_where_that_is_asked_for() -> None:
    with capture_logs() as lines, LoggingMode():
        tensor([1.0]).neg()
    assert lines == [
        "tensor([-1.]) = everyorder.runtime.ops.core.neg.default(tensor([1.]))"
    ]


def test_what_is_hidden_from_modes_is_not_written() -> None:
    with capture_logs_with_logging_tensor_mode() as lines:
        with no_dispatch():
            runtime.ones(2)
        LoggingTensor(tensor([1.0]))
    assert lines == []
    assert current_modes() == ()


def test_values_are_those_of_the_program() -> None:
    with LoggingMode():
        x = runtime.arange(4).reshape(2, 2)
        y = x @ x + 1
        assert int(y[1, 1]) == 12
    assert y.tolist() == [[3, 4], [7, 12]]
