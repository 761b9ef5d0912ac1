"""Two-dimensional convolution, and the gradients of input, weight and bias.

True only here: shapes, groups and options.  Images are (N, C, H, W), or (C, H, W) for
one; weights (out, C / groups, height, width).  The kernels know batches only.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from runtime.errors.operands import WrongOption
from runtime.errors.operator import ShapesDoNotFit
from runtime.operators.agreement import (
    computing,
    one_dtype,
    require_ndim,
    require_shape,
)
from runtime.operators.plan import COMPLEXES, FLOATS, KernelTable, Plan, same_device
from runtime.operators.rows import in_order, parts
from runtime.operators.structured import Structured
from runtime.operators.windows import Pair, pair, places
from runtime.tensors.elements import real_dtype
from runtime.tensors.making import empty_tensor, view_of
from runtime.tensors.tensor import Tensor

Ints = tuple[int, ...]
# What is convolved, and how a refusal says it.
TAKEN = FLOATS | COMPLEXES
FITS = "floating-point and complex numbers"
Options = tuple[Pair, Pair, Pair, int]

# Programs have few layers; each answer is a handful of numbers.
REMEMBERED = 1024


@lru_cache(maxsize=REMEMBERED)
def geometry(
    call: str,
    image: Ints,
    weight: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> tuple[Ints, Options]:
    """The shape of the convolved images, and the options as the kernels take them.

    Raises `WrongOption`, `ShapesDoNotFit`.
    """
    if groups < 1:
        raise WrongOption(
            operator=call, argument="groups", found=str(groups), fits="1 and more"
        )
    steps = pair(call, "stride", stride, 1)
    border = pair(call, "padding", padding, 0)
    spread = pair(call, "dilation", dilation, 1)
    channels, (made, share, *kernel) = image[-3], weight

    def wrong(reason: str, fits: str) -> ShapesDoNotFit:
        shapes = (("input", image), ("weight", weight))
        return ShapesDoNotFit(operator=call, shapes=shapes, reason=reason, fits=fits)

    if share * groups != channels:
        raise wrong(
            f"input has {channels} channels, and weight takes {share} for each of "
            f"{groups} group(s)",
            f"input of {share * groups} channels",
        )
    if made % groups:
        raise wrong(
            f"{made} channels cannot be made by {groups} groups alike",
            f"a weight whose first size is a multiple of {groups}",
        )
    sizes = [
        places(image[axis - 2], kernel[axis], *each)
        for axis, each in enumerate(zip(steps, border, spread, strict=True))
    ]
    if min(sizes) < 1 or min(kernel) < 1:
        raise wrong(
            "the weight is larger than the padded input",
            f"a kernel of at least 1 by 1, and at most the input plus twice {border}",
        )
    return (*image[:-3], made, *sizes), (steps, border, spread, groups)


def _geometry(
    call: str, x: Tensor, weight: Tensor, *options: Any
) -> tuple[Ints, Options]:
    require_ndim(call, ("input", x), 3, 4)
    require_ndim(call, ("weight", weight), 4)
    stride, padding, dilation, groups = options
    return geometry(
        call,
        x.shape,
        weight.shape,
        tuple(stride),
        tuple(padding),
        tuple(dilation),
        groups,
    )


def plan_conv(
    call: str,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Plan:
    """The convolved images."""
    device = same_device(call, x, weight, bias)
    dtype = one_dtype(
        call, TAKEN, FITS, ("input", x), ("weight", weight), ("bias", bias)
    )
    shape, options = _geometry(call, x, weight, stride, padding, dilation, groups)
    require_shape(call, ("bias", bias), (weight.shape[0],))
    arguments = (x, weight, bias, *options)
    computed = computing(dtype)
    kernel = _run_complex if dtype in COMPLEXES else _run
    return Plan(((shape, dtype),), device, arguments, computed, (0, 1, 2), None, kernel)


def _run(table: KernelTable, out: Tensor, x: Tensor, *rest: Any) -> None:
    table["conv2d"](batch(out), batch(x), *rest)


def _run_complex(
    table: KernelTable,
    out: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *options: Any,
) -> None:
    """By the parts: real by real less imaginary by imaginary, and the mixed ones."""
    (xr, xi), (wr, wi) = _copied_parts(table, x), _copied_parts(table, weight)
    br, bi = (None, None) if bias is None else _copied_parts(table, bias)
    one, other = (empty_tensor(out.shape, wr.dtype, out.device) for _ in range(2))
    real, imaginary = parts(out)
    _run(table, one, xr, wr, br, *options)
    _run(table, other, xi, wi, None, *options)
    table["sub"](one, one, other, 1)
    table["copy"](real, one)
    _run(table, one, xr, wi, bi, *options)
    _run(table, other, xi, wr, None, *options)
    table["add"](one, one, other, 1)
    table["copy"](imaginary, one)


def _copied_parts(table: KernelTable, tensor: Tensor) -> tuple[Tensor, Tensor]:
    real, imaginary = parts(tensor)
    return in_order(table, real), in_order(table, imaginary)


def batch(image: Tensor) -> Tensor:
    """(C, H, W) as a batch of one; a batch as it is."""
    if len(image.shape) == 4:
        return image
    strides = (image.numel(), *image.strides)
    return view_of(image, (1, *image.shape), strides, image.offset)


def plan_backward(
    call: str,
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    has_bias: bool,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Plan:
    """The gradients of input, weight and bias; None where the mask is false."""
    device = same_device(call, grad, x, weight)
    dtype = one_dtype(
        call, TAKEN, FITS, ("input", x), ("weight", weight), ("grad", grad)
    )
    shape, options = _geometry(call, x, weight, stride, padding, dilation, groups)
    require_shape(call, ("grad", grad), shape)
    to_input, to_weight, to_bias = output_mask
    outputs = (
        (x.shape, dtype) if to_input else None,
        (weight.shape, dtype) if to_weight else None,
        ((weight.shape[0],), dtype) if to_bias and has_bias else None,
    )
    arguments = (grad, x, weight, *options)
    computed = computing(dtype)
    kernel = _backward_complex if dtype in COMPLEXES else _backward
    return Plan(outputs, device, arguments, computed, (0, 1, 2), None, kernel)


def _backward(
    table: KernelTable,
    to_input: Tensor | None,
    to_weight: Tensor | None,
    to_bias: Tensor | None,
    grad: Tensor,
    x: Tensor,
    *rest: Any,
) -> None:
    made = None if to_input is None else batch(to_input)
    table["conv2d_backward"](made, to_weight, to_bias, batch(grad), batch(x), *rest)


def _backward_complex(
    table: KernelTable,
    to_input: Tensor | None,
    to_weight: Tensor | None,
    to_bias: Tensor | None,
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    *options: Any,
) -> None:
    """By the parts of the gradient, times the conjugates of input and weight."""
    targets = to_input, to_weight, to_bias
    split = [_copied_parts(table, each) for each in (grad, x, weight)]

    def run(by: int, of: int) -> list[Tensor | None]:
        made = [
            None
            if each is None
            else empty_tensor(each.shape, real_dtype(each.dtype), each.device)
            for each in targets
        ]
        operands = split[0][by], split[1][of], split[2][of]
        _backward(table, made[0], made[1], made[2], *operands, *options)
        return made

    both, crossed = (run(0, 0), run(1, 1)), (run(1, 0), run(0, 1))
    for at, target in enumerate(targets):
        for part, pair_of, how in ((0, both, "add"), (1, crossed, "sub")):
            if target is None:
                continue
            one, other = (made[at] for made in pair_of)
            # The bias is multiplied by nothing: its gradient is that of its own part.
            if target is not to_bias:
                table[how](one, one, other, 1)
            table["copy"](parts(target)[part], one)


_OPTIONS = "int[2] stride{}, int[2] padding{}, int[2] dilation{}, int groups{}"

OPERATORS = (
    Structured(
        "conv2d",
        "Tensor input, Tensor weight, Tensor? bias=None, "
        + _OPTIONS.format("=1", "=0", "=1", "=1"),
        plan_conv,
        out=False,
        says="The cross-correlation of images with kernels, over two dimensions.",
        autocast="low",
    ),
    Structured(
        "conv2d_backward",
        "Tensor grad, Tensor input, Tensor weight, bool has_bias, "
        + _OPTIONS.format("", "", "", "")
        + ", bool[3] output_mask",
        plan_backward,
        returns="(Tensor?, Tensor?, Tensor?)",
    ),
)
