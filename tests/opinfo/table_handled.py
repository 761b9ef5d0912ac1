"""Rows of the operators that handlers see in place of others, under torch's names.

Their references are those of the operators that they stand for; the arguments that only
torch's schema has are added to the samples.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.opinfo.info import D, OpInfo, Sample
from tests.opinfo.samples import ALL, COMPLEXES, REALS, array, given
from tests.opinfo.table_composed import batch_norm
from tests.opinfo.table_images import (
    conv2d,
    conv_backward,
    conv_backward_points,
    conv_backward_samples,
    conv_points,
    conv_samples,
)
from tests.opinfo.table_networks import embedding_backward, embedding_backward_samples
from tests.opinfo.table_reductions import (
    log_softmax,
    log_softmax_backward,
    soft_backward_samples,
    soft_samples,
    softmax,
    softmax_backward,
)

Samples = Callable[[str], list[Sample]]
CODES = {"none": 0, "mean": 1, "sum": 2}
ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"
FLOATING = (*REALS, *COMPLEXES)


def more(samples: Samples, *last: Any) -> Samples:
    """Return the samples with further arguments at the end."""

    def extended(dtype: str) -> list[Sample]:
        return [Sample(*each.args, *last) for each in samples(dtype)]

    return extended


def typed(samples: Samples) -> Samples:
    """Return the samples with the dtype of the input at the end."""
    return lambda dtype: more(samples, D(dtype))(dtype)


def first(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Return the function of the first arguments only."""
    return lambda *args: function(*args[:count])


def _of_torch(name: str) -> Callable[[Any], Callable[..., Any]]:
    return lambda torch: getattr(torch.ops.aten, name)


def pairs(value: Any) -> list[int]:
    """Return a number twice, or two numbers."""
    return [value] * 2 if isinstance(value, int) else list(value)


def convolved(samples: Any) -> Samples:
    """Return samples of `conv2d` of batches as those of `convolution`."""

    def found(dtype: str) -> list[Sample]:
        turned = []
        for each in samples(dtype):
            x, w, bias, *how = [*each.args, None][: max(len(each.args), 3)]
            steps = [*how, 1, 0, 1, 1][: len(how)] + [1, 0, 1, 1][len(how) :]
            if x.values.ndim == 4 and not each.kwargs:
                *sizes, groups = steps
                options = [pairs(size) for size in sizes]
                turned.append(Sample(x, w, bias, *options, False, [0, 0], groups))
        return turned

    return found


def by_conv2d(x: Any, w: Any, bias: Any, *how: Any) -> Any:
    """Compute as `conv2d` does."""
    stride, padding, dilation, _, _, groups = how
    return conv2d(x, w, bias, stride, padding, dilation, groups)


def back(samples: Any) -> Samples:
    """Return samples of `conv2d_backward` as those of `convolution_backward`."""

    def found(dtype: str) -> list[Sample]:
        turned = []
        for each in samples(dtype):
            grad, x, w, biased, s, p, d, groups, mask = each.args
            sizes = [w.values.shape[0]] if biased else None
            steps = [pairs(size) for size in (s, p, d)]
            if x.values.ndim == 4:
                rest = (*steps, False, [0, 0], groups, mask)
                turned.append(Sample(grad, x, w, sizes, *rest))
        return turned

    return found


def by_conv_backward(grad: Any, x: Any, w: Any, sizes: Any, *how: Any) -> Any:
    """Compute as `conv2d_backward` does."""
    s, p, d, _, _, groups, mask = how
    return conv_backward(grad, x, w, sizes is not None, s, p, d, groups, mask)


def thresholds(dtype: str) -> list[Sample]:
    """Return samples of gradients at elements apart from the threshold."""
    x = array(dtype, (3, 4), 2, "nonzero")
    return [
        Sample(array(dtype, (3, 4), 1), x, 0),
        Sample(array(dtype, (3, 4), 1, layout="sliced"), x, 0.25),
    ]


def leaks(dtype: str) -> list[Sample]:
    """Return samples of slopes below zero."""
    return [Sample(*each.args[:2], 0.25, False) for each in thresholds(dtype)]


def differences(dtype: str) -> list[Sample]:
    """Return samples of the gradients of squared differences."""
    x, y = array(dtype, (3, 4), 1), array(dtype, (3, 4), 2, layout="sliced")
    return [
        Sample(array(dtype, (), 3), x, y, "mean"),
        Sample(array(dtype, (3, 4), 3), x, y, "none"),
        Sample(array(dtype, (), 3), x, array(dtype, (4,), 2), "sum"),
    ]


def by_difference(grad: Any, x: Any, y: Any, reduction: str) -> Any:
    """Compute the slope of the square, shared by the mean."""
    apart = x - y
    return 2 * apart * grad / (apart.size if reduction == "mean" else 1)


def _coded(name: str) -> Callable[[Any], Callable[..., Any]]:
    def find(torch: Any) -> Callable[..., Any]:
        function = getattr(torch.ops.aten, name)
        return lambda *args: function(*args[:-1], CODES[args[-1]])

    return find


def normed(dtype: str) -> list[Sample]:
    """Return samples by batches, and by what ran."""
    x, many = array(dtype, (4, 3, 2), 1), array(dtype, (3,), 2, "positive")
    return [
        Sample(x, many, many, None, None, True, 0.1, 1e-5),
        Sample(x, None, None, None, None, True, 0.1, 0.5),
    ]


def by_statistics(
    x: Any, w: Any, b: Any, m: Any, v: Any, training: bool, momentum: float, eps: float
) -> list[Any]:
    """Compute the result, the means and the reciprocal deviations."""
    axes = (0, *range(2, x.ndim))
    result = batch_norm(x, m, v, w, b, training, momentum, eps)
    return [result, x.mean(axes), 1 / np.sqrt(x.var(axes) + eps)]


def norm_gradients(dtype: str) -> list[Sample]:
    """Return samples of the three gradients."""
    x, grad = array(dtype, (4, 3, 2), 1), array(dtype, (4, 3, 2), 2)
    many, mean = array(dtype, (3,), 3, "positive"), array(dtype, (3,), 4)
    saved = (None, None, mean, many, True, 1e-5)
    return [
        Sample(grad, x, many, *saved, [True, True, True]),
        Sample(grad, x, None, *saved, [True, False, True]),
    ]


def asked(dtype: str) -> list[Sample]:
    """Return samples of queries, keys and values."""

    def heads(seed: int) -> Any:
        return array(dtype, (2, 1, 3, 4), seed)

    some = (heads(1), heads(2), heads(3))
    return [
        Sample(*some),
        Sample(*some, 0.0, True),
        Sample(*some, attn_mask=array(dtype, (3, 3), 4), scale=0.5),
    ]


def attended(
    q: Any, k: Any, v: Any, p: float = 0.0, causal: bool = False, **how: Any
) -> list[Any]:
    """Compute attention by its definition, and the logarithms."""
    scale, mask = how.get("scale"), how.get("attn_mask")
    factor = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    scores = q @ np.swapaxes(k, -1, -2) * factor
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:]), scores, -np.inf)
    if mask is not None:
        scores = scores + mask
    shares = np.exp(scores)
    total = shares.sum(-1, keepdims=True)
    return [shares / total @ v, np.log(total[..., 0])]


def attended_gradients(dtype: str) -> list[Sample]:
    """Return samples whose saved results are those of the attention."""
    q, k, v, grad = (array(dtype, (2, 1, 3, 4), seed) for seed in (1, 2, 3, 4))
    wide = [each.values.astype("float64") for each in (q, k, v)]
    out, logarithm = attended(*wide)
    # The logarithms of 16-bit floats are kept in float32.
    kept = dtype if dtype in ("float32", "float64") else "float32"
    return [
        Sample(grad, q, k, v, given(out, dtype), given(logarithm, kept), 0.0, False)
    ]


def by_shares(grad: Any, q: Any, k: Any, v: Any, *rest: Any) -> list[Any]:
    """Compute the gradients of query, key and value by the shares."""
    factor = 1 / np.sqrt(q.shape[-1])
    shares = np.exp(q @ np.swapaxes(k, -1, -2) * factor)
    shares = shares / shares.sum(-1, keepdims=True)
    by_shares_ = grad @ np.swapaxes(v, -1, -2)
    along = (by_shares_ * shares).sum(-1, keepdims=True)
    scores = shares * (by_shares_ - along) * factor
    turned = np.swapaxes(scores, -1, -2)
    return [scores @ k, turned @ q, np.swapaxes(shares, -1, -2) @ grad]


def padded(dtype: str) -> list[Sample]:
    """Return samples that add and take away."""
    return [
        Sample(array(dtype, (3, 4), 1), [1, 2], 1),
        Sample(array(dtype, (3, 4), 1, layout="transposed"), [0, 1, 2, 0]),
        Sample(array(dtype, (3, 4), 1), [-1, 1], 0),
    ]


def by_pad(x: Any, pad: Any, value: Any = 0) -> Any:
    """Compute by NumPy, after what is taken away."""
    sides = [(0, 0)] * (x.ndim - len(pad) // 2)
    sides += [(pad[at], pad[at + 1]) for at in range(len(pad) - 2, -1, -2)]
    for at, (low, high) in enumerate(sides):
        rows = range(max(-low, 0), x.shape[at] - max(-high, 0))
        x = np.take(x, rows, axis=at)
    more_ = [(max(low, 0), max(high, 0)) for low, high in sides]
    return np.pad(x, more_, constant_values=value)


def viewed(dtype: str) -> list[Sample]:
    """Return samples of contiguous tensors."""
    return [
        Sample(array(dtype, (3, 4), 1), [2, 6]),
        Sample(array(dtype, (4,), 1), [4, 1]),
    ]


def apart(dtype: str) -> list[Sample]:
    """Return samples for each place of a dimension."""
    return [
        Sample(array(dtype, (3, 4), 1)),
        Sample(array(dtype, (3, 4), 1, layout="transposed"), 1),
        Sample(array(dtype, (2, 0), 1), 0),
    ]


SOFT = more(soft_samples, False)
ROWS = (
    OpInfo(name="_softmax", samples=SOFT, reference=first(softmax, 2), dtypes=REALS,
           torch=_of_torch("_softmax"), loose=3.0),
    OpInfo(name="_log_softmax", samples=SOFT, reference=first(log_softmax, 2),
           dtypes=REALS, torch=_of_torch("_log_softmax"), loose=3.0),
    OpInfo(name="_softmax_backward_data", samples=typed(soft_backward_samples),
           reference=first(softmax_backward, 3), dtypes=REALS, loose=4.0),
    OpInfo(name="_log_softmax_backward_data", samples=typed(soft_backward_samples),
           reference=first(log_softmax_backward, 3), dtypes=REALS, loose=4.0),
    OpInfo(name="convolution", samples=convolved(conv_samples), dtypes=FLOATING,
           reference=by_conv2d, torch=_of_torch("convolution"), loose=30.0,
           torch_lacks=("complex128",),
           smooth=lambda: convolved(lambda _: conv_points())("float64")),
    OpInfo(name="convolution_backward", samples=back(conv_backward_samples),
           reference=by_conv_backward, dtypes=FLOATING, loose=50.0,
           torch=_of_torch("convolution_backward"), torch_lacks=("complex128",),
           smooth=lambda: back(lambda _: conv_backward_points())("float64")),
    OpInfo(name="threshold_backward", samples=thresholds, dtypes=REALS,
           reference=lambda grad, x, least: np.where(x > least, grad, 0),
           torch=_of_torch("threshold_backward")),
    OpInfo(name="leaky_relu_backward", samples=leaks, dtypes=REALS,
           reference=lambda grad, x, slope, _: np.where(x > 0, grad, grad * slope),
           torch=_of_torch("leaky_relu_backward")),
    OpInfo(name="mse_loss_backward", samples=differences, dtypes=REALS,
           reference=by_difference, torch=_coded("mse_loss_backward"), loose=4.0),
    OpInfo(name="embedding_dense_backward", dtypes=REALS,
           samples=more(embedding_backward_samples, False),
           reference=first(embedding_backward, 4),
           torch=_of_torch("embedding_dense_backward")),
    OpInfo(name="native_batch_norm", samples=normed, reference=by_statistics,
           dtypes=REALS, kind="free", loose=10.0,
           torch=_of_torch("native_batch_norm")),
    OpInfo(name="native_batch_norm_backward", samples=norm_gradients, reference=None,
           dtypes=REALS, gradient=False, loose=30.0,
           torch=_of_torch("native_batch_norm_backward")),
    OpInfo(name=ATTENTION, samples=asked, reference=attended,
           smooth=lambda: asked("float64")[:2],
           dtypes=REALS, kind="free", loose=10.0, torch_lacks=("float64",),
           torch=_of_torch(ATTENTION)),
    OpInfo(name=f"{ATTENTION}_backward", samples=attended_gradients,
           reference=by_shares, dtypes=REALS, gradient=False,
           loose=30.0, torch=_of_torch(f"{ATTENTION}_backward")),
    OpInfo(name="constant_pad_nd", samples=padded, reference=by_pad, dtypes=ALL,
           torch=_of_torch("constant_pad_nd")),
    OpInfo(name="_unsafe_view", samples=viewed, dtypes=ALL,
           reference=lambda x, shape: x.reshape(shape),
           torch=_of_torch("_unsafe_view")),
    OpInfo(name="unbind", samples=apart, dtypes=ALL, view=True,
           reference=lambda x, dim=0: [*np.moveaxis(x, dim, 0)],
           torch=_of_torch("unbind")),
)  # fmt: skip
