"""torch's names of overloads, of operators that both have: found, or listed here."""

from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import int64, tensor

# Overloads that are not found -> the operators.
# What is computed without a formula or by parts has no form that writes to `out`.
WITHOUT_OUT = {
    "out": "_log_softmax _log_softmax_backward_data _softmax _softmax_backward_data"
    " _to_copy _unique _unsafe_view avg_pool2d binary_cross_entropy_with_logits"
    " constant_pad_nd convolution convolution_backward diagonal_backward"
    " embedding_dense_backward empty_like full_like linear max_pool2d_with_indices"
    " native_batch_norm native_batch_norm_backward native_dropout native_layer_norm"
    " native_layer_norm_backward new_empty new_full new_ones new_zeros nll_loss"
    " ones_like rand_like randn_like repeat rot90 select_backward slice_backward"
    " zeros_like",
    "grad_input": "gelu_backward leaky_relu_backward max_pool2d_with_indices_backward"
    " mse_loss_backward nll_loss_backward sigmoid_backward silu_backward tanh_backward"
    " threshold_backward",
    "Scalar_out": "masked_fill",
    "correction_out": "std_mean var_mean",
}
# A function, method or argument of the runtime does the same, by other operators.
IN_FUNCTIONS = {
    "Tensor": "bernoulli bernoulli_",
    "Tensor_out": "bernoulli masked_fill",
    "decimals": "round round_",
    "decimals_out": "round",
    "device": "to",
    "dtype": "to",
    "other": "to",
    "int": "sym_size sym_stride",
    "padding": "conv1d conv2d",
    "reduce": "scatter scatter_",
    "reduce_out": "scatter",
    "value_reduce": "scatter scatter_",
    "value_reduce_out": "scatter",
    "scalar": "quantile",
    "scalar_out": "quantile",
}
# Nothing here takes these arguments.
NOT_OFFERED = {
    "Tensor": "repeat_interleave",
    "Tensor_out": "repeat_interleave",
    **dict.fromkeys(
        (
            f"{one}{out}"
            for one in ("Scalar_Tensor", "Tensor_Scalar", "Tensor_Tensor")
            for out in ("", "_out")
        ),
        "linspace logspace",
    ),
    "dtype": "addmm baddbmm bmm mm",
    "dtype_out": "addmm baddbmm bmm mm",
    "generator": "rand_like randint randn_like",
    "generator_out": "rand_like randint randn_like",
    "memory_format": "is_contiguous",
    "default": "set_",
    "source_Storage": "set_",
    "source_Storage_storage_offset": "set_",
    "source_Tensor_storage_offset": "set_",
}
MISSING = sorted(
    f"{operator}.{overload}"
    for table in (WITHOUT_OUT, IN_FUNCTIONS, NOT_OFFERED)
    for overload, operators in table.items()
    for operator in operators.split()
)


@pytest.mark.torch
def test_every_name_of_torch_is_found_or_listed() -> None:
    torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
    names = [name.partition("::") for name in torch._C._dispatch_get_all_op_names()]
    found, missing = 0, []
    for namespace, _, full in names:
        base, _, overload = full.partition(".")
        if namespace != "aten" or not hasattr(runtime.ops.aten, base):
            continue
        if hasattr(getattr(runtime.ops.aten, base), overload or "default"):
            found += 1
        else:
            missing.append(f"{base}.{overload or 'default'}")
    assert sorted(missing) == MISSING
    assert found > 700


X = tensor([[3.0, 1.0, 2.0]])


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda aten: aten.squeeze.dims(X, [0, 1]), [3.0, 1.0, 2.0]),
        (lambda aten: aten.count_nonzero.dim_IntList(X, [0, 1]), 3),
        (lambda aten: aten.movedim.intlist(X, [0], [1]), [[3.0], [1.0], [2.0]]),
        (lambda aten: aten.unflatten.int(X, 0, [1, 1]), [[[3.0, 1.0, 2.0]]]),
        (lambda aten: aten.to.dtype_layout(X, dtype=int64), [[3, 1, 2]]),
        (lambda aten: aten.var.dim(X, [1]), [1.0]),
        (lambda aten: aten.isin.Scalar_Tensor(2.0, X), True),
        (lambda aten: aten.randint.low(7, 8, [2]), [7, 7]),
        (lambda aten: aten.searchsorted.Scalar(X[0].sort().values, 2.0), 1),
        (
            lambda aten: aten.masked_fill.Tensor(X, X > 1, tensor(9)),
            [[9.0, 1.0, 9.0]],
        ),
        (lambda aten: aten.fill_.Tensor(X.clone(), tensor(9)), [[9.0, 9.0, 9.0]]),
    ],
)
def test_an_overload_is_called_by_the_name_of_torch(call: Any, expected: Any) -> None:
    assert call(runtime.ops.aten).tolist() == expected


def test_targets_of_several_results_are_found_by_the_names_of_torch() -> None:
    aten = runtime.ops.aten
    assert aten.sort.values_stable == aten.sort.values == aten.sort.out
    assert aten.max.dim_max == aten.max.dim_out
    assert aten.median.dim_values == aten.median.dim_out
    assert aten.linalg_eigh.eigvals == aten.linalg_eigh.out
    values, places = X.new_empty(0), X.new_empty(0, dtype=int64)
    aten.topk.values(X, 2, values=values, indices=places)
    assert (values.tolist(), places.tolist()) == ([[3.0, 2.0]], [[0, 2]])
