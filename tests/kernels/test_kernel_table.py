"""The table of kernels: every name is there, and once."""

import pytest

from everyorder.runtime.kernels.cpu import KERNELS, READY
from tests.kernels.numpy_oracle import BINARY, TESTS, UNARY

# What the other files of the folder bring.
ELSEWHERE = """
    uniform normal randint bernoulli sum prod mean max min any all var argmax argmin
    cumsum softmax log_softmax softmax_backward log_softmax_backward layer_norm
    layer_norm_backward nll_loss nll_loss_backward mm bmm dot linear cat gather scatter
    scatter_add index_select index_add index index_put nonzero_count nonzero sort topk
    embedding_backward conv2d conv2d_backward max_pool2d max_pool2d_backward
"""


HERE = """
    erf gelu where clamp relu_backward sigmoid_backward tanh_backward gelu_backward
    silu_backward fill copy arange
"""


def test_the_table_has_every_kernel() -> None:
    expected = {*UNARY, *TESTS, *BINARY, *HERE.split(), *ELSEWHERE.split()}
    assert expected <= set(KERNELS)
    assert all(callable(kernel) for kernel in KERNELS.values())


def test_two_kernels_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from everyorder.runtime.kernels.cpu import copy, kernel_table

    monkeypatch.setitem(copy.KERNELS, "add", copy.fill)
    with pytest.raises(AssertionError, match="two of KERNELS are called add"):
        kernel_table.tables_of("everyorder.runtime.kernels.cpu", "KERNELS")


def test_what_is_made_ready_has_a_kernel() -> None:
    assert set(READY) <= set(KERNELS)
