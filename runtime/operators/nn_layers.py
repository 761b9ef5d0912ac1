"""Layers of networks: softmax, normalisation, attention.

`softmax`, its logarithm and layer normalisation have kernels in both directions; the
others are composites, and have backends and gradients through the operators that they
call.

Rules:
- `softmax` converts its input to `dtype` before it computes; without `dtype`, the input
  must hold floating-point numbers;
- the means and reciprocal deviations of layer normalisation keep the computed dtype, so
  that no precision is lost between the two directions; weight and bias have the dtype
  of the input, or float32 with an input of sixteen bits.
"""

from collections.abc import Sequence
from math import inf, prod, sqrt
from typing import Any

from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.declare.plan import (
    ALL,
    BOOL,
    COMPLEXES,
    FLOAT32,
    FLOATS,
    HALVES,
    CallPlan,
    bad_dtype,
    bad_option,
    bad_shapes,
    computing,
    one_dim,
    one_dtype,
    require_dtype,
    require_shape,
    same_device,
)
from everyorder.runtime.operators.declare.structured import (
    Structured,
    Unstructured,
    composite,
)
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.dtype_info import compute_dtype, info, real_dtype
from everyorder.runtime.tensors.tensor import Tensor

_FITS = "floating-point numbers; ask for one by dtype="


def plan_softmax(self: Tensor, dim: int, dtype: DType | None) -> CallPlan:
    """Return the plan of softmax for every line along `dim`."""
    target = self.dtype if dtype is None else dtype
    require_dtype("self", self.dtype, ALL if dtype else FLOATS, _FITS)
    require_dtype("dtype", target, FLOATS, "floating-point numbers")
    place = one_dim(dim, self.shape)
    outputs = ((self.shape, target),)
    computed = compute_dtype(target)
    if self.dtype is computed is target:
        return CallPlan(outputs, self.device, (self, place))
    return CallPlan(outputs, self.device, (self, place), computed, (0,))


def plan_softmax_backward(grad: Tensor, result: Tensor, dim: int) -> CallPlan:
    """Return the plan from the gradient and the result of the same shape."""
    device = same_device(grad, result)
    dtype = one_dtype(FLOATS, _FITS, ("result", result), ("grad", grad))
    require_shape(("grad", grad), result.shape)
    place = one_dim(dim, result.shape)
    arguments = (grad, result, place)
    outputs = ((result.shape, dtype),)
    return CallPlan(outputs, device, arguments, computing(dtype), (0, 1))


def _with_gradient(name: str, says: str) -> tuple[Any, ...]:
    return (
        Structured(
            name,
            "Tensor self, int dim, ScalarType? dtype=None",
            plan_softmax,
            saves_plans=True,
            says=says,
            autocast="float32",
        ),
        Structured(
            f"{name}_backward",
            "Tensor grad, Tensor result, int dim",
            plan_softmax_backward,
            out=False,
            saves_plans=True,
        ),
    )


def _inner(x: Tensor, normalized: tuple[int, ...]) -> int:
    """Return the number of elements of one group.  Raises `ShapesDoNotFit`."""
    count = len(normalized)
    if not count or x.shape[-count:] != normalized:
        raise bad_shapes(
            f"input does not end in the normalised shape {normalized}",
            f"input of shape (..., {', '.join(map(str, normalized))})"
            if count
            else "a normalised shape of at least one dimension",
            ("input", x),
        )
    return prod(normalized)


def _check_dtype(name: str, tensor: Tensor | None, x: Tensor) -> None:
    """Make sure of the dtype of the input, or of the one it is computed in."""
    if tensor is not None and tensor.dtype not in (
        x.dtype,
        compute_dtype(x.dtype),
    ):
        raise bad_dtype(name, tensor.dtype, f"{x.dtype}, the dtype of input")


def plan_layer_norm(
    x: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> CallPlan:
    """Return the plan of the normalised input, means and reciprocal deviations."""
    device = same_device(x, weight, bias)
    require_dtype("input", x.dtype, FLOATS, "floating-point numbers")
    normalized = tuple(normalized_shape)
    inner = _inner(x, normalized)
    for name, parameter in (("weight", weight), ("bias", bias)):
        require_shape((name, parameter), normalized)
        _check_dtype(name, parameter, x)
    computed = compute_dtype(x.dtype)
    groups = x.shape[: -len(normalized)] + (1,) * len(normalized)
    return CallPlan(
        ((x.shape, x.dtype), (groups, computed), (groups, computed)),
        device,
        (x, inner, weight, bias, eps),
        computing(x.dtype),
        (0, 2, 3),
        kernel="layer_norm",
    )


def plan_layer_norm_backward(
    grad: Tensor,
    x: Tensor,
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Sequence[bool],
) -> CallPlan:
    """Return the plan of the gradients of input, weight and bias, None where masked."""
    device = same_device(grad, x, mean, rstd, weight, bias)
    require_dtype("input", x.dtype, FLOATS, "floating-point numbers")
    normalized = tuple(normalized_shape)
    inner = _inner(x, normalized)
    groups = x.shape[: -len(normalized)] + (1,) * len(normalized)
    require_shape(("grad", grad), x.shape)
    require_shape(("mean", mean), groups)
    require_shape(("rstd", rstd), groups)
    require_shape(("weight", weight), normalized)
    for name, tensor in (
        *(("grad", grad), ("mean", mean), ("rstd", rstd)),
        *(("weight", weight), ("bias", bias)),
    ):
        _check_dtype(name, tensor, x)
    to_input, to_weight, to_bias = output_mask
    outputs = (
        (x.shape, x.dtype) if to_input else None,
        (normalized, weight.dtype) if to_weight and weight is not None else None,
        (normalized, bias.dtype) if to_bias and bias is not None else None,
    )
    return CallPlan(
        outputs,
        device,
        (grad, x, mean, rstd, weight, inner),
        computing(x.dtype),
        (0, 1, 2, 3, 4),
        kernel="layer_norm_backward",
    )


@composite(
    "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None,"
    " Tensor? bias=None, float eps=1e-05) -> Tensor",
    autocast="float32",
)
def layer_norm(
    x: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Any:
    """Normalise the last dimensions to mean 0 and variance 1."""
    return core.native_layer_norm(x, normalized_shape, weight, bias, eps)[0]


def per_channel(values: Any, ndim: int) -> Any:
    """Return one number per channel, the second dimension, shaped to broadcast."""
    return core.reshape(values, [1, -1, *(1,) * (ndim - 2)])


@composite(
    "batch_norm(Tensor input, Tensor? running_mean=None, Tensor? running_var=None,"
    " Tensor? weight=None, Tensor? bias=None,"
    " bool training=False, float momentum=0.1, float eps=1e-05) -> Tensor",
    takes=FLOATS,
)
def batch_norm(
    input: Tensor,  # noqa: A002  # the schema's name
    running_mean: Any,
    running_var: Any,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """Normalise each channel to mean 0 and variance 1, of the batch or running.

    The arguments are in the order of `torch.nn.functional`.  In training it updates the
    running mean and variance in place, which the schema need not declare.
    """
    ndim = len(input.shape)
    if ndim < 2:
        raise bad_shapes(
            "input has no channels", "2 dimensions or more", ("input", input)
        )
    channels = input.shape[1]
    named = ("weight", weight), ("bias", bias)
    statistics = ("running_mean", running_mean), ("running_var", running_var)
    _parameters(input, *named, *statistics)
    for name, each in (*named, *statistics):
        if each is not None and each.shape != (channels,):
            raise bad_shapes(
                f"{name} does not have one number for each channel",
                f"shape ({channels},)",
                ("input", input),
                (name, each),
            )
    if training and not input.numel():
        # Nothing has a mean: the running ones stay, and parameters get gradients of 0.
        return _scaled(input, weight, bias, input)
    if not training and (running_mean is None or running_var is None):
        raise bad_option(
            "running_mean and running_var",
            "None",
            "tensors, as it does not train",
        )
    how = (weight, bias, running_mean, running_var, training, momentum, eps)
    return core.native_batch_norm(input, *how)[0]


@composite(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias,"
    " Tensor? running_mean, Tensor? running_var, bool training, float momentum,"
    " float eps) -> (Tensor, Tensor, Tensor)",
    takes=FLOATS,
    explicit=True,
    public=False,
)
def native_batch_norm(
    input: Tensor,  # noqa: A002  # the schema's name
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """Return the normalised input, and the means and reciprocal deviations used."""
    ndim = len(input.shape)
    if training:
        channels = input.shape[1]
        count = input.numel() // channels if channels else 0
        mean, var = batch_statistics(input)
        _update_running(running_mean, mean, momentum)
        if running_var is not None:
            unbiased = core.mul(var, count / max(count - 1, 1))
            _update_running(running_var, unbiased, momentum)
    else:
        mean, var = core.clone(running_mean), running_var
    rstd = core.rsqrt(core.add(var, eps))
    scale = rstd if weight is None else core.mul(rstd, weight)
    centred = core.sub(input, per_channel(mean, ndim))
    return _scaled(centred, scale, bias, input), mean, rstd


def batch_statistics(input_: Any) -> tuple[Any, Any]:
    """Return mean and variance of each channel."""
    dims = [0, *range(2, len(input_.shape))]
    return core.mean(input_, dims), core.var(input_, dims, correction=0)


@composite(
    "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight,"
    " Tensor? running_mean, Tensor? running_var, Tensor? save_mean,"
    " Tensor? save_invstd, bool train, float eps, bool[3] output_mask)"
    " -> (Tensor?, Tensor?, Tensor?)",
    takes=FLOATS,
    explicit=True,
    public=False,
)
def native_batch_norm_backward(
    grad_out: Tensor,
    input: Tensor,  # noqa: A002  # the schema's name
    weight: Tensor | None,
    running_mean: Any,
    running_var: Any,
    save_mean: Any,
    save_invstd: Any,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> Any:
    """Return the gradients of input, weight and bias, None where masked."""
    mean, rstd = save_mean, save_invstd
    if not train and running_mean is not None and running_var is not None:
        mean, rstd = running_mean, core.rsqrt(core.add(running_var, eps))
    return batch_norm_gradients(grad_out, input, weight, mean, rstd, train, output_mask)


def batch_norm_gradients(
    grad: Any,
    input_: Any,
    weight: Any,
    mean: Any,
    rstd: Any,
    train: bool,
    needs: Sequence[bool],
) -> tuple[Any, Any, Any]:
    """Return the gradients of input, weight and bias, of those that are needed."""
    ndim = len(input_.shape)
    dims = [0, *range(2, ndim)]
    rstd = per_channel(rstd, ndim)
    normal = core.mul(core.sub(input_, per_channel(mean, ndim)), rstd)
    by_input = by_weight = by_bias = None
    if needs[0]:
        scaled = grad if weight is None else core.mul(grad, per_channel(weight, ndim))
        if train:
            along = core.mul(normal, core.mean(core.mul(scaled, normal), dims, True))
            scaled = core.sub(core.sub(scaled, core.mean(scaled, dims, True)), along)
        by_input = core.to(core.mul(rstd, scaled), dtype=input_.dtype)
    if needs[1] and weight is not None:
        by_weight = core.to(core.sum(core.mul(grad, normal), dims), dtype=weight.dtype)
    if needs[2]:
        by_bias = core.sum(grad, dims)
    return by_input, by_weight, by_bias


def _scaled(values: Any, scale: Any, bias: Any, like: Tensor) -> Any:
    """Scale and shift each channel, and convert to the dtype of the input."""
    ndim = len(like.shape)
    if scale is not None:
        values = core.mul(values, per_channel(scale, ndim))
    if bias is not None:
        values = core.add(values, per_channel(bias, ndim))
    return core.to(values, dtype=like.dtype)


def _parameters(like: Tensor, *named: tuple[str, Any]) -> None:
    """Make sure of the input's dtype; with 16 bits, float32 is accepted as well.

    Raises:
        DTypeRefused: a tensor has another dtype.
    """
    accepted = {like.dtype, *({FLOAT32} if like.dtype in HALVES else ())}
    for name, each in named:
        if each is not None:
            fits = ", ".join(map(str, accepted))
            require_dtype(name, each.dtype, frozenset(accepted), fits)


def _update_running(running: Any, new: Any, momentum: float) -> None:
    """Move a running mean towards that of this batch."""
    if running is not None:
        core.mul_(running, 1 - momentum)
        core.add_(running, core.to(new, dtype=running.dtype), alpha=momentum)


@composite(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None,"
    " float eps=1e-05) -> Tensor",
    takes=FLOATS,
    wide=True,
    autocast="float32",
)
def group_norm(
    input: Tensor,  # noqa: A002  # the schema's name
    num_groups: int,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Any:
    """Normalise groups of channels to mean 0 and variance 1."""
    ndim = len(input.shape)
    if ndim < 2 or num_groups < 1 or input.shape[1] % num_groups:
        raise bad_option(
            "num_groups",
            str(num_groups),
            f"a divisor of the channels, the second dimension of {input.shape}",
        )
    _parameters(input, ("weight", weight), ("bias", bias))
    each = prod(input.shape[1:]) // num_groups
    rows = core.reshape(input, [input.shape[0], num_groups, each])
    normalized = core.layer_norm(rows, [rows.shape[-1]], eps=eps)
    return _scaled(core.reshape(normalized, input.shape), weight, bias, input)


@composite(
    "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None,"
    " float? eps=None) -> Tensor",
    takes=FLOATS | COMPLEXES,
    wide=True,
)
def rms_norm(
    input: Tensor,  # noqa: A002  # the schema's name
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    eps: float | None,
) -> Any:
    """Divide the last dimensions by the root of the mean of their squares."""
    last = len(normalized_shape)
    if not last or tuple(normalized_shape) != input.shape[-last:]:
        raise bad_shapes(
            f"input does not end with {list(normalized_shape)}",
            "the last sizes of the input",
            ("input", input),
        )
    input = core.contiguous(input)  # noqa: A001  # as above
    least = float(info(real_dtype(input.dtype)).eps) if eps is None else eps
    mean = core.mean(core.square(input), list(range(-last, 0)), True)
    scaled = core.mul(input, core.rsqrt(core.add(mean, least)))
    scaled = scaled if weight is None else core.mul(scaled, weight)
    return core.to(scaled, dtype=input.dtype)


@composite(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value,"
    " Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *,"
    " float? scale=None, bool enable_gqa=False) -> Tensor",
    only="function",
    takes=FLOATS,
    wide=True,
    autocast="low",
)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Any:
    """Return values weighed by the match of queries and keys (Vaswani et al., 2017)."""
    if is_causal and attn_mask is not None:
        raise bad_option("is_causal", "True", "False where there is a mask")
    keys: Any = key
    values: Any = value
    if enable_gqa and len(query.shape) > 2 and key.shape[-3] != query.shape[-3]:
        times = query.shape[-3] // key.shape[-3]
        keys = core.repeat_interleave_self_int(keys, times, -3)
        values = core.repeat_interleave_self_int(values, times, -3)
    factor = 1 / sqrt(query.shape[-1]) if scale is None else scale
    scores = core.matmul(query, core.transpose(keys, -2, -1))
    scores = core.mul(scores, factor)
    mask: Any = attn_mask
    if is_causal:
        shape = scores.shape[-2:]
        ones = core.ones(shape, dtype=BOOL, device=scores.device)
        mask = core.tril(ones)
    shown = mask
    if mask is not None and mask.dtype is not BOOL:
        scores, shown = core.add(scores, mask), core.gt(mask, -inf)
    if mask is not None:
        # A query with all keys masked has the result 0, not NaN.
        blind = core.logical_not(core.any(shown, [-1], True))
        scores = core.masked_fill(scores, core.logical_not(shown), -inf)
        weights = core.masked_fill(core.softmax(scores, -1), blind, 0)
    else:
        weights = core.softmax(scores, -1)
    if dropout_p:
        weights = core.dropout(weights, dropout_p, True)
    return core.matmul(weights, values)


OPERATORS: tuple[Structured | Unstructured, ...] = (
    *_with_gradient(
        "softmax", "Return exponentials along a dimension, scaled to sum up to 1."
    ),
    *_with_gradient("log_softmax", "Return the logarithm of `softmax`."),
    Structured(
        "native_layer_norm",
        "Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps",
        plan_layer_norm,
        returns="(Tensor, Tensor, Tensor)",
        saves_plans=True,
        autocast="float32",
    ),
    Structured(
        "native_layer_norm_backward",
        "Tensor grad, Tensor input, int[] normalized_shape, Tensor mean, Tensor rstd,"
        " Tensor? weight, Tensor? bias, bool[3] output_mask",
        plan_layer_norm_backward,
        returns="(Tensor?, Tensor?, Tensor?)",
    ),
    *(layer_norm, batch_norm, native_batch_norm, native_batch_norm_backward),
    *(group_norm, rms_norm, scaled_dot_product_attention),
)
