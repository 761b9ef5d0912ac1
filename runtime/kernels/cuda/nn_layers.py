"""Layers of networks on CUDA: softmax, the negative log likelihood, normalisation.

Softmax, or its logarithm, reads a row three times: greatest element, sum of
exponentials, result; the exponentials are computed twice rather than stored and read
again.  The dimension is read as (outer, length, inner); if its elements are adjacent
and many, a block processes a row, and threads combine in a tree in shared memory; else
a thread processes a row, so that adjacent threads read adjacent elements.  The greatest
element may miss a NaN, which then appears in the sum; a row of -inf yields NaN, as inf
- inf does.

The loss reads (batch, classes, positions), and has the rules of the CPU's
(`runtime.kernels.cpu.softmax`); losses and weights are summed as trees, like every sum
(`runtime.kernels.cuda.reduce`).

Layer normalisation is over the last elements; a block processes a row and reads it
three times: mean, squared differences from the mean, result; so means far from zero
cost no digits.  `mean` and `rstd` have one element for each row.  The gradients of
weight and bias are sums over rows: a thread adds `TALL` rows of one column, and the
partial sums are added as columns, in an order that does not depend on the device.
"""

from collections.abc import Callable
from typing import Any

from everyorder.runtime.kernels.cpu.axis import around
from everyorder.runtime.kernels.cpu.softmax import layout_of
from everyorder.runtime.kernels.cuda.copy import fill, first_outside, flat
from everyorder.runtime.kernels.cuda.device import BLOCK, running
from everyorder.runtime.kernels.cuda.elementwise import index_of
from everyorder.runtime.kernels.cuda.gather import integers
from everyorder.runtime.kernels.cuda.jit import (
    BlockKernels,
    Elements,
    Maker,
    block_greatest,
    block_sum,
    device,
    reals,
)
from everyorder.runtime.kernels.cuda.pointwise import KERNELS as POINTWISE
from everyorder.runtime.kernels.cuda.reduce import KERNELS as REDUCE
from everyorder.runtime.kernels.cuda.reduce import SHORT, TALL
from everyorder.runtime.kernels.math.complex import Scalar
from everyorder.runtime.kernels.math.scalars import FLOATS
from everyorder.runtime.kernels.shared.operands import out_of_range
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.construction import empty_tensor
from everyorder.runtime.tensors.tensor import Tensor


def _rows(line: Scalar, together: bool) -> Scalar:
    """Process lines one by one, by a block each if `together`, or by a thread.

    `line(shared, out, one, two, base, first, end, by)` processes the elements from
    `first` on, `by` apart, of the line that starts at `base`.
    """
    line = device(line)

    def by_block(task, shared, out, one, two, length, inner):  # type: ignore[no-untyped-def]  # compiled for the device
        base = task * length
        first = base + running.threadIdx.x
        line(shared, out, one, two, base, first, base + length, BLOCK)

    def by_thread(task, out, one, two, length, inner):  # type: ignore[no-untyped-def]  # as above
        outer = task // inner
        base = outer * length * inner + (task - outer * inner)
        line(out, out, one, two, base, base, base + length * inner, inner)

    return by_block if together else by_thread


def _forward(logarithm: bool, together: bool) -> Maker:
    """Return the maker of softmax, or its logarithm; `one` is the only input."""

    def make(kind: Any) -> Scalar:
        zero, one = kind(0), kind(1)
        on = reals(kind)
        exp, log = on.exp, on.log

        def line(shared, out, x, unread, base, first, end, by):  # type: ignore[no-untyped-def]  # as above
            peak = x[base]
            at = first
            while at < end:
                value = x[at]
                peak = value if value > peak else peak
                at += by
            if together:
                peak = block_greatest(shared, peak)
            total = zero
            at = first
            while at < end:
                total += exp(x[at] - peak)
                at += by
            if together:
                total = block_sum(shared, total)
            if logarithm:
                shift = log(total)
                at = first
                while at < end:
                    out[at] = (x[at] - peak) - shift
                    at += by
            else:
                scale = one / total
                at = first
                while at < end:
                    out[at] = exp(x[at] - peak) * scale
                    at += by

        return _rows(line, together)

    return make


def _backward(logarithm: bool, together: bool) -> Maker:
    """Return the maker of the gradient of softmax, or its logarithm."""

    def make(kind: Any) -> Scalar:
        zero, exp = kind(0), reals(kind).exp

        def line(shared, out, grad, result, base, first, end, by):  # type: ignore[no-untyped-def]  # as above
            total = zero
            at = first
            while at < end:
                if logarithm:
                    total += grad[at]
                else:
                    total += grad[at] * result[at]
                at += by
            if together:
                total = block_sum(shared, total)
            at = first
            while at < end:
                if logarithm:
                    out[at] = grad[at] - exp(result[at]) * total
                else:
                    out[at] = (grad[at] - total) * result[at]
                at += by

        return _rows(line, together)

    return make


def _kernel(name: str, maker: Callable[[bool, bool], Maker], logarithm: bool) -> Any:
    """Return a kernel of an output, one input or two of its shape, and a dimension."""
    signature = "T[::1], T[::1], T[::1], int64, int64"
    of_rows = BlockKernels(f"{name}_rows", maker(logarithm, True), signature, FLOATS)
    of_columns = Elements(f"{name}_columns", maker(logarithm, False), signature, FLOATS)

    def kernel(out: Tensor, one: Tensor, *rest: Any) -> None:
        *other, dim = rest
        if not out.numel():
            return
        outer, length, inner = around(out.shape, dim)
        first = flat(one)
        arrays = flat(out), first, flat(other[0]) if other else first
        family = of_rows if inner == 1 and length >= SHORT else of_columns
        kind, where = out.dtype.name, index_of(out)
        family.run(kind, outer * inner, where, *arrays, length, inner)

    return kernel


def _losses(kind: Any) -> Scalar:
    zero, one = kind(0), kind(1)

    def element(  # type: ignore[no-untyped-def]  # compiled for the device
        i, out, weights, logp, target, weight, weighted, classes, positions, ignored
    ):
        name = target[i]
        value, by = zero, zero
        if name != ignored:
            by = one
            if weighted:
                by = weight[name]
            batch = i // positions
            place = i - batch * positions
            value = -by * logp[(batch * classes + name) * positions + place]
        out[i] = value
        weights[i] = by

    return element


def _gradients(kind: Any) -> Scalar:
    one = kind(1)

    def element(  # type: ignore[no-untyped-def]  # compiled for the device
        i,
        out,
        grad,
        grad_by,
        total,
        divides,
        target,
        weight,
        weighted,
        classes,
        positions,
        ignored,
    ):
        name = target[i]
        if name != ignored:
            by, divisor = one, one
            if weighted:
                by = weight[name]
            if divides:
                divisor = total[0]
            batch = i // positions
            at = (batch * classes + name) * positions + (i - batch * positions)
            out[at] = -by * grad[i * grad_by] / divisor

    return element


_LOSSES = Elements(
    "nll_loss",
    _losses,
    "T[::1], T[::1], T[::1], int64[::1], T[::1]" + ", int64" * 4,
    FLOATS,
)
_GRADIENTS = Elements(
    "nll_loss_gradients",
    _gradients,
    "T[::1], T[::1], int64, T[::1], int64, int64[::1], T[::1]" + ", int64" * 4,
    FLOATS,
)


def _checked(target: Tensor, classes: int, ignored: int) -> Tensor:
    """Return the targets as int64.  Raises `IndexOutOfRange` for a wrong class."""
    targets = integers(target)
    bad = first_outside(targets, 0, classes - 1)
    if bad is not None and not 0 <= ignored < classes:
        # The bad value may be the ignored index: check all others again.
        counted = empty_tensor(targets.shape, DType.named("bool"), targets.device)
        POINTWISE["ne"](counted, targets, ignored)
        others = empty_tensor(targets.shape, targets.dtype, targets.device)
        POINTWISE["where"](others, counted, targets, 0)
        bad = first_outside(others, 0, max(classes - 1, 0))
    if bad is not None:
        raise out_of_range("nll_loss", bad[1], classes, 1)
    return targets


def nll_loss(
    out: Tensor,
    total_weight: Tensor,
    logp: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
) -> None:
    """Write the negated log-probabilities of the targets, their mean or their sum.

    Raises:
        IndexOutOfRange: a target is not a class; nothing is written.
    """
    classes, positions = layout_of(logp.shape)
    targets = _checked(target, classes, ignore_index)
    count = target.numel()
    each = empty_tensor((count,), out.dtype, out.device)
    losses = out if reduction == "none" else each
    weights = empty_tensor((count,), out.dtype, out.device)
    if count:
        array = flat(logp)
        _LOSSES.run(
            *(out.dtype.name, count, index_of(out)),
            *(flat(losses), flat(weights), array, flat(targets)),
            array if weight is None else flat(weight),
            *(int(weight is not None), classes, positions, ignore_index),
        )
    if reduction == "none":
        fill(total_weight, 0)
        return
    REDUCE["sum"](total_weight, weights, (0,))
    REDUCE["sum"](out, losses, (0,))
    if reduction == "mean":
        POINTWISE["div"](out, out, total_weight)


def nll_loss_backward(
    dx: Tensor,
    grad: Tensor,
    target: Tensor,
    weight: Tensor | None,
    total_weight: Tensor,
    reduction: str,
    ignore_index: int,
) -> None:
    """Write the gradient of the log-probabilities: zeros except for the targets.

    Raises:
        IndexOutOfRange: a target is not a class; nothing is written.
    """
    classes, positions = layout_of(dx.shape)
    targets = _checked(target, classes, ignore_index)
    fill(dx, 0)
    count = target.numel()
    if not count or not dx.numel():
        return
    array = flat(grad)
    _GRADIENTS.run(
        *(dx.dtype.name, count, index_of(dx)),
        *(flat(dx), array, int(reduction == "none")),
        *(flat(total_weight), int(reduction == "mean"), flat(targets)),
        array if weight is None else flat(weight),
        *(int(weight is not None), classes, positions, ignore_index),
    )


def _normalise(kind: Any) -> Scalar:
    zero, one, sqrt = kind(0), kind(1), reals(kind).sqrt

    def normalise(  # type: ignore[no-untyped-def]  # compiled for the device
        row, shared, out, means, rstds, x, weight, bias, weighted, shifted, inner, eps
    ):
        thread = running.threadIdx.x
        base = row * inner
        total = zero
        i = thread
        while i < inner:
            total += x[base + i]
            i += BLOCK
        mean = kind(block_sum(shared, total) / kind(inner))
        total = zero
        i = thread
        while i < inner:
            apart = x[base + i] - mean
            total += apart * apart
            i += BLOCK
        variance = kind(block_sum(shared, total) / kind(inner))
        rstd = kind(one / sqrt(kind(variance + kind(eps))))
        if thread == 0:
            means[row] = mean
            rstds[row] = rstd
        i = thread
        while i < inner:
            value = (x[base + i] - mean) * rstd
            if weighted:
                value = value * weight[i]
            if shifted:
                value = value + bias[i]
            out[base + i] = value
            i += BLOCK

    return normalise


def _normalise_back(kind: Any) -> Scalar:
    zero = kind(0)

    def slope_of(  # type: ignore[no-untyped-def]  # as above
        row, shared, out, grad, x, means, rstds, weight, weighted, inner
    ):
        thread = running.threadIdx.x
        base = row * inner
        mean, rstd = means[row], rstds[row]
        plain, along = zero, zero
        i = thread
        while i < inner:
            scaled = grad[base + i]
            if weighted:
                scaled = scaled * weight[i]
            plain += scaled
            along += scaled * ((x[base + i] - mean) * rstd)
            i += BLOCK
        shift = kind(block_sum(shared, plain) / kind(inner))
        slope = kind(block_sum(shared, along) / kind(inner))
        i = thread
        while i < inner:
            scaled = grad[base + i]
            if weighted:
                scaled = scaled * weight[i]
            normal = (x[base + i] - mean) * rstd
            out[base + i] = (scaled - shift - normal * slope) * rstd
            i += BLOCK

    return slope_of


def _affine_sums(kind: Any) -> Scalar:
    zero = kind(0)

    def element(  # type: ignore[no-untyped-def]  # as above
        task, by_weight, by_bias, grad, x, means, rstds, count, inner, run
    ):
        block = task // inner
        column = task - block * inner
        row = block * run
        end = min(row + run, count)
        scale, shift = zero, zero
        while row < end:
            g = grad[row * inner + column]
            scale += g * ((x[row * inner + column] - means[row]) * rstds[row])
            shift += g
            row += 1
        by_weight[task] = scale
        by_bias[task] = shift

    return element


_ROWS = "T[::1], " * 6 + "int64, int64, "
_NORMALISE = BlockKernels("layer_norm", _normalise, f"{_ROWS}int64, float64", FLOATS)
_NORMALISE_BACK = BlockKernels(
    "layer_norm_input", _normalise_back, _ROWS.rstrip(", "), FLOATS
)
_AFFINE_SUMS = Elements("layer_norm_affine", _affine_sums, f"{_ROWS}int64", FLOATS)


def layer_norm(
    out: Tensor,
    mean: Tensor,
    rstd: Tensor,
    x: Tensor,
    inner: int,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> None:
    """Normalise the last `inner` elements; scale by `weight`, shift by `bias`."""
    count = mean.numel()
    if not inner:
        fill(mean, float("nan"))
        fill(rstd, float("nan"))
        return
    if not count:
        return
    array = flat(x)
    _NORMALISE.run(
        *(out.dtype.name, count, index_of(out)),
        *(flat(out), flat(mean), flat(rstd), array),
        array if weight is None else flat(weight),
        array if bias is None else flat(bias),
        *(int(weight is not None), int(bias is not None), inner, float(eps)),
    )


def layer_norm_backward(
    dx: Tensor | None,
    dw: Tensor | None,
    db: Tensor | None,
    grad: Tensor,
    x: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    inner: int,
) -> None:
    """Write those gradients of input, weight and bias that are not None."""
    count, name, where = mean.numel(), x.dtype.name, index_of(x)
    if not count or not inner:
        for gradient in (dw, db):
            if gradient is not None:
                fill(gradient, 0)
        return
    read = (flat(grad), flat(x), flat(mean), flat(rstd))
    if dx is not None:
        scale = read[1] if weight is None else flat(weight)
        arguments = flat(dx), *read, scale, int(weight is not None), inner
        _NORMALISE_BACK.run(name, count, where, *arguments)
    if dw is None and db is None:
        return
    blocks = -(-count // TALL)
    # With one block of rows, its partial sum is the result; unused ones are discarded.
    by_weight, by_bias = (
        target
        if blocks == 1 and target is not None
        else empty_tensor((blocks, inner), x.dtype, x.device)
        for target in (dw, db)
    )
    sums = flat(by_weight), flat(by_bias)
    _AFFINE_SUMS.run(name, blocks * inner, where, *sums, *read, count, inner, TALL)
    for target, partial in ((dw, by_weight), (db, by_bias)):
        if target is not None and target is not partial:
            REDUCE["sum"](target, partial, (0,))


KERNELS: dict[str, Callable[..., Any]] = {
    "softmax": _kernel("softmax", _forward, False),
    "log_softmax": _kernel("log_softmax", _forward, True),
    "softmax_backward": _kernel("softmax_backward", _backward, False),
    "log_softmax_backward": _kernel("log_softmax_backward", _backward, True),
    "nll_loss": nll_loss,
    "nll_loss_backward": nll_loss_backward,
    "layer_norm": layer_norm,
    "layer_norm_backward": layer_norm_backward,
}
