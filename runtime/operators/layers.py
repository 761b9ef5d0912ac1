"""Layers, activations and losses, made of operators that there are.

True only here: which mean, variance, window or mask a layer is made of.  All of these
are composites: every backend and every gradient has them by what they call.
"""

from collections.abc import Sequence
from math import inf, prod, sqrt
from typing import Any

from runtime.errors.operands import WrongOption
from runtime.operators.agreement import misfit, require_ndim
from runtime.operators.call import core
from runtime.operators.plan import (
    BOOL,
    COMPLEXES,
    FLOAT32,
    FLOATS,
    HALVES,
    NUMBERS,
    require_dtype,
)
from runtime.operators.structured import Written, composite
from runtime.tensors.elements import info, real_dtype
from runtime.tensors.tensor import Tensor

REDUCTIONS = ("none", "mean", "sum")


def _reduced(call: str, loss: Any, reduction: str) -> Any:
    """All losses, their mean or their sum.  Raises `WrongOption`."""
    if reduction not in REDUCTIONS:
        raise WrongOption(
            operator=call,
            argument="reduction",
            found=repr(reduction),
            fits=", ".join(map(repr, REDUCTIONS)),
        )
    if reduction == "none":
        return loss
    return core.mean(loss) if reduction == "mean" else core.sum(loss)


@composite(
    'mse_loss(Tensor self, Tensor target, str reduction="mean") -> Tensor',
    only="function",
    takes=FLOATS,
    wide=True,
    autocast="float32",
)
def mse_loss(self: Tensor, target: Tensor, reduction: str) -> Any:
    """The squares of the differences, or their mean or sum."""
    return _reduced("core::mse_loss", core.square(core.sub(self, target)), reduction)


@composite(
    'l1_loss(Tensor self, Tensor target, str reduction="mean") -> Tensor',
    only="function",
    takes=NUMBERS,
    wide=True,
    autocast="float32",
)
def l1_loss(self: Tensor, target: Tensor, reduction: str) -> Any:
    """The sizes of the differences, or their mean or sum."""
    return _reduced("core::l1_loss", core.abs(core.sub(self, target)), reduction)


@composite(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target,"
    ' Tensor? weight=None, Tensor? pos_weight=None, str reduction="mean") -> Tensor',
    only="function",
    takes=FLOATS,
    wide=True,
    autocast="float32",
)
def binary_cross_entropy_with_logits(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    pos_weight: Tensor | None,
    reduction: str,
) -> Any:
    """The cross entropy of probabilities and the logistic function of scores."""
    call = "core::binary_cross_entropy_with_logits"
    if self.shape != target.shape:
        raise misfit(
            call,
            "self and target differ",
            "equal shapes",
            ("self", self),
            ("target", target),
        )
    # -log sigmoid(x) = log(1 + exp(-x)); that of 1 - sigmoid(x) is x more.
    certain = core.logaddexp(core.neg(self), core.zeros_like(self))
    rest = core.mul(core.add(core.neg(target), 1), self)
    if pos_weight is not None:
        more = core.add(core.mul(core.sub(pos_weight, 1), target), 1)
        certain = core.mul(certain, more)
    loss = core.add(rest, certain)
    if weight is not None:
        loss = core.mul(loss, weight)
    return _reduced(call, loss, reduction)


@composite(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    only="function",
    takes=FLOATS,
    wide=True,
    autocast="float32",
)
def softplus(self: Tensor, beta: Any, threshold: Any) -> Any:
    """log(1 + exp(beta x)) / beta, a smooth relu; large elements as they are."""
    scaled = core.mul(self, beta)
    large = core.gt(scaled, threshold)
    smooth = core.log1p(core.exp(core.masked_fill(scaled, large, 0)))
    return core.where(large, self, core.div(smooth, beta))


@composite(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    only="function",
    takes=FLOATS,
    wide=True,
)
def leaky_relu(self: Tensor, negative_slope: Any) -> Any:
    """Every element, times a small slope if it is negative."""
    return core.where(core.gt(self, 0), self, core.mul(self, negative_slope))


@composite(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    only="function",
    takes=FLOATS,
    wide=True,
)
def elu(self: Tensor, alpha: Any, scale: Any, input_scale: Any) -> Any:
    """Every element, or alpha (exp(x) - 1) if it is negative."""
    above = core.gt(self, 0)
    below = core.mul(core.masked_fill(self, above, 0), input_scale)
    bent = core.mul(core.expm1(below), alpha)
    found = core.where(above, self, bent)
    return found if scale == 1 else core.mul(found, scale)


def _per_channel(values: Any, ndim: int) -> Any:
    """One number for each channel, the second dimension, as others broadcast with."""
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
    """Each channel brought to mean 0 and variance 1, of the batch or as kept.

    Its arguments are in the order of `torch.nn.functional`.  As it trains it moves the
    running mean and variance, which the schema does not say, as it need not.
    """
    call, ndim = "core::batch_norm", len(input.shape)
    if ndim < 2:
        raise misfit(
            call, "input has no channels", "2 dimensions or more", ("input", input)
        )
    channels = input.shape[1]
    count = input.numel() // channels if channels else 0
    named = ("weight", weight), ("bias", bias)
    kept = ("running_mean", running_mean), ("running_var", running_var)
    _parameters(call, input, *named, *kept)
    for name, each in (*named, *kept):
        if each is not None and each.shape != (channels,):
            raise misfit(
                call,
                f"{name} has not one number for each channel",
                f"shape ({channels},)",
                ("input", input),
                (name, each),
            )
    if training:
        dims = [0, *range(2, ndim)]
        mean = core.mean(input, dims)
        var = core.var(input, dims, correction=0)
        _kept(running_mean, mean, momentum)
        if running_var is not None:
            unbiased = core.mul(core.detach(var), count / max(count - 1, 1))
            _kept(running_var, unbiased, momentum)
    elif running_mean is None or running_var is None:
        raise WrongOption(
            operator=call,
            argument="running_mean and running_var",
            found="None",
            fits="tensors, as it does not train",
        )
    else:
        mean, var = running_mean, running_var
    scale = core.rsqrt(core.add(var, eps))
    if weight is not None:
        scale = core.mul(scale, weight)
    centred = core.sub(input, _per_channel(mean, ndim))
    found = core.mul(centred, _per_channel(scale, ndim))
    if bias is not None:
        found = core.add(found, _per_channel(bias, ndim))
    return core.to(found, dtype=input.dtype)


def _parameters(call: str, like: Tensor, *named: tuple[str, Any]) -> None:
    """Make sure that they have the dtype of the input; beside 16 bits, or 32 bits.

    Raises `DTypeRefused`.
    """
    accepted = {like.dtype, *({FLOAT32} if like.dtype in HALVES else ())}
    for name, each in named:
        if each is not None:
            fits = ", ".join(map(str, accepted))
            require_dtype(call, name, each.dtype, frozenset(accepted), fits)


def _kept(running: Any, new: Any, momentum: float) -> None:
    """A running mean, moved towards what this batch has."""
    if running is not None:
        core.mul_(running, 1 - momentum)
        core.add_(
            running, core.to(core.detach(new), dtype=running.dtype), alpha=momentum
        )


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
    """Groups of channels brought to mean 0 and variance 1."""
    call, ndim = "core::group_norm", len(input.shape)
    if ndim < 2 or num_groups < 1 or input.shape[1] % num_groups:
        raise WrongOption(
            operator=call,
            argument="num_groups",
            found=str(num_groups),
            fits=f"a divisor of the channels, the second dimension of {input.shape}",
        )
    _parameters(call, input, ("weight", weight), ("bias", bias))
    each = prod(input.shape[1:]) // num_groups
    rows = core.reshape(input, [input.shape[0], num_groups, each])
    found = core.layer_norm(rows, [rows.shape[-1]], eps=eps)
    found = core.reshape(found, input.shape)
    if weight is not None:
        found = core.mul(found, _per_channel(weight, ndim))
    if bias is not None:
        found = core.add(found, _per_channel(bias, ndim))
    return core.to(found, dtype=input.dtype)


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
    """The last dimensions divided by the root of the mean of their squares."""
    last = len(normalized_shape)
    if not last or tuple(normalized_shape) != input.shape[-last:]:
        raise misfit(
            "core::rms_norm",
            f"input does not end with {list(normalized_shape)}",
            "the last sizes of the input",
            ("input", input),
        )
    input = core.contiguous(input)  # noqa: A001  # as above
    least = float(info(real_dtype(input.dtype)).eps) if eps is None else eps
    mean = core.mean(core.square(input), list(range(-last, 0)), True)
    found = core.mul(input, core.rsqrt(core.add(mean, least)))
    found = found if weight is None else core.mul(found, weight)
    return core.to(found, dtype=input.dtype)


@composite(
    "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0,"
    " bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None)"
    " -> Tensor",
    only="function",
    takes=FLOATS,
    wide=True,
)
def avg_pool2d(
    self: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    """The mean of every window of images."""
    call = "core::avg_pool2d"
    require_ndim(call, ("self", self), 3, 4)
    kernel, sides = _two(kernel_size), _two(padding)
    steps = _two(stride) or kernel
    if min(kernel) < 1 or min(steps) < 1 or min(sides) < 0 or divisor_override == 0:
        raise WrongOption(
            operator=call,
            argument="kernel_size, stride, padding and divisor_override",
            found=f"{kernel}, {steps}, {sides} and {divisor_override}",
            fits="windows and steps of 1 and more, padding of 0 and more, no divisor 0",
        )
    if any(2 * side > size for side, size in zip(sides, kernel, strict=True)):
        raise WrongOption(
            operator=call,
            argument="padding",
            found=str(sides),
            fits=f"at most half of the window {kernel}",
        )
    sizes = [
        _windows(*each, ceil_mode)
        for each in zip(self.shape[-2:], kernel, steps, sides, strict=True)
    ]
    if min(sizes) < 1:
        raise misfit(
            call, "no window fits", f"images of {kernel} or more", ("self", self)
        )
    total = _summed(
        _padded(self, sides, kernel, steps, sizes, 0.0), kernel, steps, sizes
    )
    if divisor_override is not None:
        return core.div(total, divisor_override)
    ones = core.ones([1, *self.shape[-2:]], dtype=self.dtype, device=self.device)
    inside = 1.0 if count_include_pad else 0.0
    counted = _padded(ones, sides, kernel, steps, sizes, inside)
    counts = _summed(counted, kernel, steps, sizes)
    return core.div(total, core.reshape(counts, sizes))


def _two(numbers: Sequence[int]) -> tuple[int, ...]:
    """One number for both dimensions, or two; or none."""
    return tuple(numbers) * 2 if len(numbers) == 1 else tuple(numbers)


def _windows(size: int, kernel: int, step: int, side: int, up: bool) -> int:
    """How many windows there are; the last begins within the image or before it."""
    room = size + 2 * side - kernel
    count = (-(-room // step) if up else room // step) + 1
    return count - 1 if up and (count - 1) * step >= size + side else count


def _padded(
    images: Any,
    sides: Sequence[int],
    kernel: Sequence[int],
    steps: Sequence[int],
    sizes: Sequence[int],
    value: float,
) -> Any:
    """The images with their sides, and zeros where a last window reaches beyond."""
    height, width = sides
    found = core.pad(images, [width, width, height, height], value=value)
    more = [
        max((count - 1) * step + window - size, 0)
        for count, step, window, size in zip(
            sizes, steps, kernel, found.shape[-2:], strict=True
        )
    ]
    return core.pad(found, [0, more[1], 0, more[0]])


def _summed(
    images: Any, kernel: Sequence[int], steps: Sequence[int], sizes: Sequence[int]
) -> Any:
    """The sums of every window: one addition for each place of the window."""
    total = None
    for row in range(kernel[0]):
        for column in range(kernel[1]):
            part = images
            for dim, first, count, step in (
                (-2, row, sizes[0], steps[0]),
                (-1, column, sizes[1], steps[1]),
            ):
                part = core.slice(
                    part, dim, first, first + (count - 1) * step + 1, step
                )
            total = part if total is None else core.add(total, part)
    return total


@composite(
    "conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1,"
    " int[1] padding=0, int[1] dilation=1, int groups=1) -> Tensor",
    autocast="low",
)
def conv1d(
    input: Tensor,  # noqa: A002  # the schema's name
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Any:
    """The cross-correlation of signals with kernels, over one dimension."""
    require_ndim("core::conv1d", ("input", input), 2, 3)
    require_ndim("core::conv1d", ("weight", weight), 3)
    found = core.conv2d(
        core.unsqueeze(input, -2),
        core.unsqueeze(weight, -2),
        bias,
        [1, *stride],
        [0, *padding],
        [1, *dilation],
        groups,
    )
    return core.squeeze(found, [-2])


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
    """Values weighed by how well queries and keys agree (Vaswani et al., 2017)."""
    call = "core::scaled_dot_product_attention"
    if is_causal and attn_mask is not None:
        raise WrongOption(
            operator=call,
            argument="is_causal",
            found="True",
            fits="False where there is a mask",
        )
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
    if mask is not None and mask.dtype is BOOL:
        scores = core.masked_fill(scores, core.logical_not(mask), -inf)
        # Who may look at nothing sees nothing: 0, and no NaN.
        blind = core.logical_not(core.any(mask, [-1], True))
        weights = core.masked_fill(core.softmax(scores, -1), blind, 0)
    else:
        weights = core.softmax(scores if mask is None else core.add(scores, mask), -1)
    if dropout_p:
        weights = core.dropout(weights, dropout_p, True)
    return core.matmul(weights, values)


OPERATORS: tuple[Written, ...] = (
    *(mse_loss, l1_loss, binary_cross_entropy_with_logits, softplus, leaky_relu, elu),
    *(batch_norm, group_norm, rms_norm, avg_pool2d, conv1d),
    scaled_dot_product_attention,
)
