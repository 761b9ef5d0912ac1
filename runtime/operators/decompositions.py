"""What handlers in Python see in place of some operators.

Plain tensors have one kernel for `linear`, where torch has a composition: `t`, then
`addmm`.  Classes and modes that count, log or replace operators expect those of torch.
So a call that Python handles (`runtime.torch_dispatch`) runs the function of
`DECOMPOSITIONS` in place of the operator, and handlers see what that one calls.

The operators declared here have torch's names and arguments, and the functions of the
table call them.  Each is a function of the operators that it stands for, so that both
have the same kernels; the formulas are in `runtime.autograd.network_formulas`.

Rules:
- a function of the table has the arguments of its operator, and the same result;
- an operator with a rule (`Library.rule`), or with a kernel that overrides one of its
  own, is not decomposed: these are for its calls.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf, sqrt
from typing import Any

from everyorder.runtime.keys import DispatchKey, KeySet
from everyorder.runtime.operators.convolution import plan_conv
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.declare.plan import (
    BOOL,
    FLOAT32,
    FLOATS,
    HALVES,
    bad_option,
    require_ndim,
)
from everyorder.runtime.operators.declare.structured import (
    IMPLICIT,
    Unstructured,
    composite,
    naming,
)
from everyorder.runtime.operators.matmul import plan_linear
from everyorder.runtime.operators.nn_layers import scaled_dot_product_attention
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.tensor import Tensor


def decomposing(
    factory: Callable[[Any, Any], Callable[..., Any]], parts: Callable[..., Any]
) -> Callable[[Any, Any], Callable[..., Any]]:
    """Return `factory` of a linked kernel, with `parts` for calls that Python handles.

    An operator with rules, or with a kernel that overrides one, is left whole: these
    are for its calls.
    """

    def choose(below: Any, keyset: KeySet) -> Callable[..., Any]:
        if not keyset.has(DispatchKey.Python) or below.rules or _overridden(below):
            return factory(below, keyset)
        return parts

    return choose


def _overridden(below: Any) -> bool:
    """Return True if a key of the operator has a second kernel."""
    implementations = below.operator().entry.implementations.values()
    return any(len(kernels) > 1 for kernels in implementations)


def _half(self: Tensor, half_to_float: bool) -> DType | None:
    """Return the dtype of the result, if it is not that of the input."""
    if half_to_float and self.dtype is not DType.named("float16"):
        raise bad_option("half_to_float", "True", f"False for {self.dtype}")
    return DType.named("float32") if half_to_float else None


@composite(
    "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    explicit=True,
    public=False,
)
def _softmax(self: Tensor, dim: int, half_to_float: bool) -> Any:
    """Return `softmax`; with `half_to_float`, of float16 in float32."""
    return core.softmax(self, dim, _half(self, half_to_float))


@composite(
    "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    explicit=True,
    public=False,
)
def _log_softmax(self: Tensor, dim: int, half_to_float: bool) -> Any:
    """Return `log_softmax`; with `half_to_float`, of float16 in float32."""
    return core.log_softmax(self, dim, _half(self, half_to_float))


_SOFTMAX_DATA = "Tensor grad_output, Tensor output, int dim, ScalarType input_dtype"


@composite(
    f"_softmax_backward_data({_SOFTMAX_DATA}) -> Tensor", explicit=True, public=False
)
def _softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: DType
) -> Any:
    """Return the gradient of `_softmax`, in the dtype of its input."""
    return core.to(core.softmax_backward(grad_output, output, dim), dtype=input_dtype)


@composite(
    f"_log_softmax_backward_data({_SOFTMAX_DATA}) -> Tensor",
    explicit=True,
    public=False,
)
def _log_softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: DType
) -> Any:
    """Return the gradient of `_log_softmax`, in the dtype of its input."""
    gradient = core.log_softmax_backward(grad_output, output, dim)
    return core.to(gradient, dtype=input_dtype)


_CONVOLUTION = (
    "int[] stride, int[] padding, int[] dilation, bool transposed,"
    " int[] output_padding, int groups"
)


def _require_forward(transposed: bool) -> None:
    """Make sure that a convolution is not transposed.  Raises `WrongOption`."""
    if transposed:
        raise bad_option("transposed", "True", "False: there is no transposed one")


@composite(
    f"convolution(Tensor input, Tensor weight, Tensor? bias, {_CONVOLUTION}) -> Tensor",
    explicit=True,
    public=False,
)
def convolution(
    input: Tensor,  # noqa: A002  # the schema's name
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    """Return `conv1d` or `conv2d`; transposed ones are refused."""
    _require_forward(transposed)
    run = core.conv1d if len(weight.shape) == 3 else core.conv2d
    return run(input, weight, bias, stride, padding, dilation, groups)


@composite(
    "convolution_backward(Tensor grad_output, Tensor input, Tensor weight,"
    f" int[]? bias_sizes, {_CONVOLUTION}, bool[3] output_mask)"
    " -> (Tensor?, Tensor?, Tensor?)",
    explicit=True,
    public=False,
)
def convolution_backward(
    grad_output: Tensor,
    input: Tensor,  # noqa: A002  # the schema's name
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Any:
    """Return the gradients of `convolution`, None where masked."""
    _require_forward(transposed)
    biased = bias_sizes is not None
    tensors: list[Any] = [grad_output, input, weight]
    lines = len(weight.shape) == 3
    if lines:
        tensors = [core.unsqueeze(each, -2) for each in tensors]
        stride, padding, dilation = [1, *stride], [0, *padding], [1, *dilation]
    how = (biased, stride, padding, dilation, groups, output_mask)
    gradients = core.conv2d_backward(*tensors, *how)
    if not lines:
        return gradients
    *flat, by_bias = gradients
    return (
        *(None if each is None else core.squeeze(each, [-2]) for each in flat),
        by_bias,
    )


@composite(
    "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
    takes=FLOATS,
    explicit=True,
    public=False,
)
def threshold_backward(grad_output: Tensor, self: Tensor, threshold: Any) -> Any:
    """Return the gradient where `self` is above the threshold, and zero elsewhere."""
    if not threshold:
        return core.relu_backward(grad_output, self)
    return core.masked_fill(grad_output, core.le(self, threshold), 0)


@composite(
    "embedding_dense_backward(Tensor grad_output, Tensor indices, int num_weights,"
    " int padding_idx, bool scale_grad_by_freq) -> Tensor",
    explicit=True,
    public=False,
)
def embedding_dense_backward(
    grad_output: Tensor,
    indices: Tensor,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> Any:
    """Return the gradient of the rows of `embedding`."""
    if scale_grad_by_freq:
        raise bad_option("scale_grad_by_freq", "True", "False")
    return core.embedding_backward(grad_output, indices, num_weights, padding_idx)


_ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"
_ATTENDED = (
    "float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None,"
    " float? scale=None"
)


def _scores(
    query: Any, key: Any, is_causal: bool, attn_mask: Any, scale: float | None
) -> tuple[Any, Any, float]:
    """Return the scores with the mask, the mask where it hides, and the scale."""
    factor = 1 / sqrt(query.shape[-1]) if scale is None else scale
    scores = core.matmul(query, core.transpose(key, -2, -1))
    scores = core.mul(scores, factor)
    mask = attn_mask
    if is_causal:
        ones = core.ones(scores.shape[-2:], dtype=BOOL, device=scores.device)
        mask = core.tril(ones)
    if mask is None:
        return scores, None, factor
    if mask.dtype is not BOOL:
        return core.add(scores, mask), core.gt(mask, -inf), factor
    return core.masked_fill(scores, core.logical_not(mask), -inf), mask, factor


def _weights(scores: Any, mask: Any) -> tuple[Any, Any]:
    """Return the share of each key, and the logarithm of the sum of exponentials."""
    most = core.amax(scores, [-1], True)
    # A query whose keys are all hidden has the weights 0, not NaN.
    blind = None if mask is None else core.logical_not(core.any(mask, [-1], True))
    if blind is not None:
        most = core.masked_fill(most, blind, 0)
    exponentials = core.exp(core.sub(scores, most))
    total = core.sum(exponentials, [-1], True)
    if blind is not None:
        total = core.masked_fill(total, blind, 1)
    logarithm = core.squeeze(core.add(core.log(total), most), [-1])
    return core.div(exponentials, total), logarithm


@composite(
    f"{_ATTENTION}(Tensor query, Tensor key, Tensor value, {_ATTENDED})"
    " -> (Tensor output, Tensor logsumexp)",
    takes=FLOATS,
    explicit=True,
    public=False,
)
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Tensor | None,
    scale: float | None,
) -> Any:
    """Return attention, and the logarithms of the sums of exponentials (Dao, 2023)."""
    if dropout_p:
        raise bad_option("dropout_p", str(dropout_p), "0.0")
    q, k, v = _wide(query, key, value)
    scores, mask, _ = _scores(q, k, is_causal, attn_mask, scale)
    weights, logarithm = _weights(scores, mask)
    return core.to(core.matmul(weights, v), dtype=query.dtype), logarithm


def _wide(*tensors: Any) -> list[Any]:
    """Return tensors with 16-bit floats as float32."""
    return [
        core.to(each, dtype=FLOAT32) if each.dtype in HALVES else each
        for each in tensors
    ]


@composite(
    f"{_ATTENTION}_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value,"
    " Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *,"
    " Tensor? attn_mask=None, float? scale=None) -> (Tensor, Tensor, Tensor)",
    takes=FLOATS,
    explicit=True,
    public=False,
)
def attention_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Tensor | None,
    scale: float | None,
) -> Any:
    """Return the gradients of query, key and value."""
    masking = (is_causal, attn_mask, scale)
    return attention_gradients(grad_out, query, key, value, *masking)


def attention_gradients(
    grad: Any,
    query: Any,
    key: Any,
    value: Any,
    is_causal: bool,
    attn_mask: Any,
    scale: float | None,
) -> tuple[Any, ...]:
    """Return the gradients of query, key and value."""
    given = (query, key, value)
    grad, query, key, value = _wide(grad, *given)
    scores, mask, factor = _scores(query, key, is_causal, attn_mask, scale)
    weights, _ = _weights(scores, mask)
    by_value = core.matmul(core.transpose(weights, -2, -1), grad)
    by_weights = core.matmul(grad, core.transpose(value, -2, -1))
    along = core.sum(core.mul(by_weights, weights), [-1], True)
    by_scores = core.mul(core.mul(weights, core.sub(by_weights, along)), factor)
    by_query = core.matmul(by_scores, key)
    by_key = core.matmul(core.transpose(by_scores, -2, -1), query)
    found = (by_query, by_key, by_value)
    pairs = zip(found, given, strict=True)
    return tuple(core.to(each, dtype=like.dtype) for each, like in pairs)


_COMPOSED: Any = scaled_dot_product_attention.kernels[IMPLICIT]


def _attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Any:
    """Return attention, by the one operator where torch has one for it."""
    tensors = (query, key, value)
    whole = (
        not dropout_p
        and all(each.dtype is query.dtype for each in (key, value))
        and not enable_gqa
        and all(len(each.shape) == 4 and each.numel() for each in tensors)
        and query.shape[:2] == key.shape[:2]
        and query.shape[-1] == key.shape[-1] == value.shape[-1]
        and (
            attn_mask is None
            or (
                not (is_causal or attn_mask.requires_grad)
                and attn_mask.dtype in (BOOL, query.dtype)
            )
        )
    )
    if not whole:
        how = (attn_mask, dropout_p, is_causal, scale, enable_gqa)
        return _COMPOSED(*tensors, *how)
    run = getattr(core, _ATTENTION)
    return run(*tensors, 0.0, is_causal, attn_mask=attn_mask, scale=scale)[0]


def _linear(input_: Any, weight: Any, bias: Any) -> Any:
    plan_linear(input_, weight, bias)
    shape = input_.shape
    rows = input_
    if bias is not None and len(shape) == 3 and input_.is_contiguous():
        rows = core.view(input_, [shape[0] * shape[1], shape[2]])
    turned = core.t(weight)
    if bias is None or len(rows.shape) != 2:
        product = core.matmul(input_, turned)
        return product if bias is None else core.add(product, bias)
    result = core.addmm(bias, rows, turned)
    if rows is input_:
        return result
    return core.view(result, [*shape[:-1], weight.shape[0]])


def _conv1d(input_: Any, weight: Any, bias: Any, *how: Any) -> Any:
    require_ndim(("input", input_), 2, 3)
    require_ndim(("weight", weight), 3)
    return _convolved(3, input_, weight, bias, *how)


def _conv2d(input_: Any, weight: Any, bias: Any, *how: Any) -> Any:
    plan_conv(input_, weight, bias, *how)
    return _convolved(4, input_, weight, bias, *how)


def _convolved(ndim: int, input_: Any, weight: Any, bias: Any, *how: Any) -> Any:
    *steps, groups = how
    sizes = [[*each] * (ndim - 2) if len(each) == 1 else [*each] for each in steps]
    rest = [*sizes, False, [0] * (ndim - 2), groups]
    if len(input_.shape) == ndim:
        return core.convolution(input_, weight, bias, *rest)
    one = core.convolution(core.unsqueeze(input_, 0), weight, bias, *rest)
    return core.squeeze(one, [0])


def _conv2d_backward(
    grad: Any, input_: Any, weight: Any, has_bias: bool, *how: Any
) -> Any:
    *steps, groups, mask = how
    sizes = [weight.shape[0]] if has_bias else None
    rest = [*steps, False, [0, 0], groups, mask]
    return core.convolution_backward(grad, input_, weight, sizes, *rest)


def _with_dtype(name: str) -> Callable[..., Any]:
    """Return softmax by the operator `name`, which does not convert its input."""

    def run(self: Any, dim: int, dtype: DType | None) -> Any:
        if dtype is not None and dtype is not self.dtype:
            self = core.to(self, dtype=dtype)
        return getattr(core, name)(self, dim, False)

    return run


# An operator -> the function that runs in its place for calls that Python handles.
DECOMPOSITIONS: Mapping[str, Callable[..., Any]] = {
    "linear": naming("core::linear", _linear),
    "scaled_dot_product_attention": _attention,
    "conv1d": naming("core::conv1d", _conv1d),
    "conv2d": naming("core::conv2d", _conv2d),
    "conv2d_backward": _conv2d_backward,
    "softmax": _with_dtype("_softmax"),
    "log_softmax": _with_dtype("_log_softmax"),
    "softmax_backward": lambda grad, result, dim: core._softmax_backward_data(
        grad, result, dim, result.dtype
    ),
    "log_softmax_backward": lambda grad, result, dim: core._log_softmax_backward_data(
        grad, result, dim, result.dtype
    ),
    "relu_backward": lambda grad, result: core.threshold_backward(grad, result, 0),
    "embedding_backward": lambda *arguments: core.embedding_dense_backward(
        *arguments, False
    ),
}

OPERATORS: tuple[Unstructured, ...] = (
    *(_softmax, _log_softmax, _softmax_backward_data, _log_softmax_backward_data),
    *(attention, attention_backward),
    *(convolution, convolution_backward, threshold_backward, embedding_dense_backward),
)
