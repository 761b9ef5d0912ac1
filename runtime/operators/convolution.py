"""Convolution and pooling of images, and their gradients.

Images are (N, C, H, W), or (C, H, W) for one; weights (out, C / groups, height, width);
kernels take batches only.  Complex numbers are convolved by their parts.

Rules:
- without a stride, the windows of pooling are adjacent; padding is at most half of a
  window, as in torch;
- the number of windows on a padded image is relation 14 of Dumoulin and Visin, "A guide
  to convolution arithmetic for deep learning" (2016).
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from everyorder.runtime.errors.tensor import ShapesDoNotFit
from everyorder.runtime.operators.declare.allocate_outputs import (
    in_order,
    parts,
    with_batch,
)
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.declare.plan import (
    COMPLEXES,
    FLOATS,
    INT64,
    REALS,
    CallPlan,
    KernelTable,
    bad_option,
    bad_shapes,
    computing,
    index_dtype,
    one_dtype,
    require_dtype,
    require_ndim,
    require_shape,
    same_device,
)
from everyorder.runtime.operators.declare.structured import (
    Structured,
    Unstructured,
    composite,
)
from everyorder.runtime.tensors.construction import empty_tensor
from everyorder.runtime.tensors.dtype_info import real_dtype
from everyorder.runtime.tensors.tensor import Tensor

Pair = tuple[int, int]

# Limited to 32 bits: products of two of these, which the kernels form, fit into int64.
LARGEST = 2**31 - 1


def pair(argument: str, numbers: Sequence[int], least: int) -> Pair:
    """Return two numbers, for height and width; one number counts for both.

    Raises:
        WrongOption: there are not one or two numbers, or one is less than `least`, or
            greater than `LARGEST`.
    """
    values = tuple(numbers) * 2 if len(numbers) == 1 else tuple(numbers)
    if len(values) != 2 or min(values) < least or max(values) > LARGEST:
        raise bad_option(
            argument,
            str(list(numbers)),
            f"one number, or two for height and width, {least} and more"
            + ("" if max(values, default=0) <= LARGEST else f", at most {LARGEST}"),
        )
    return values


def places(
    size: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool = False
) -> int:
    """Return the number of windows that fit.

    With `ceil`, a window that starts inside and ends outside of the image counts, too.
    """
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    if not ceil:
        return room // stride + 1
    count = -(-room // stride) + 1
    # The last window must start on the image or on the padding before it.
    return count - 1 if (count - 1) * stride >= size + padding else count


Ints = tuple[int, ...]

# The dtypes of convolutions, and their description in errors.
TAKEN = FLOATS | COMPLEXES
FITS = "floating-point and complex numbers"
Options = tuple[Pair, Pair, Pair, int]

# Programs have few layers; an entry is a handful of numbers.
REMEMBERED = 1024


@lru_cache(maxsize=REMEMBERED)
def conv_geometry(
    image: Ints,
    weight: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> tuple[Ints, Options]:
    """Return the shape of the convolved images, and the options in the kernels' form.

    Raises:
        WrongOption: an option is out of range.
        ShapesDoNotFit: image and weight do not fit together.
    """
    if groups < 1:
        raise bad_option("groups", str(groups), "1 and more")
    steps = pair("stride", stride, 1)
    border = pair("padding", padding, 0)
    spread = pair("dilation", dilation, 1)
    channels, (outputs, share, *kernel) = image[-3], weight

    def wrong(reason: str, fits: str) -> ShapesDoNotFit:
        shapes = (("input", image), ("weight", weight))
        return bad_shapes(reason, fits, *shapes)

    if share * groups != channels:
        raise wrong(
            f"input has {channels} channels, and weight takes {share} for each of "
            f"{groups} group(s)",
            f"input of {share * groups} channels",
        )
    if outputs % groups:
        raise wrong(
            f"{outputs} output channels do not divide into {groups} equal groups",
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
    return (*image[:-3], outputs, *sizes), (steps, border, spread, groups)


def _geometry(x: Tensor, weight: Tensor, *options: Any) -> tuple[Ints, Options]:
    require_ndim(("input", x), 3, 4)
    require_ndim(("weight", weight), 4)
    stride, padding, dilation, groups = options
    return conv_geometry(
        x.shape,
        weight.shape,
        tuple(stride),
        tuple(padding),
        tuple(dilation),
        groups,
    )


def plan_conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> CallPlan:
    """Return the plan of the convolved images."""
    device = same_device(x, weight, bias)
    dtype = one_dtype(TAKEN, FITS, ("input", x), ("weight", weight), ("bias", bias))
    shape, options = _geometry(x, weight, stride, padding, dilation, groups)
    require_shape(("bias", bias), (weight.shape[0],))
    arguments = (x, weight, bias, *options)
    computed = computing(dtype)
    kernel = _convolve_complex if dtype in COMPLEXES else _convolve
    return CallPlan(
        ((shape, dtype),), device, arguments, computed, (0, 1, 2), None, kernel
    )


def _convolve(table: KernelTable, out: Tensor, x: Tensor, *rest: Any) -> None:
    table["conv2d"](batch(out), batch(x), *rest)


def _convolve_complex(
    table: KernelTable,
    out: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *options: Any,
) -> None:
    """Convolve by parts: real and imaginary products subtracted, mixed ones added."""
    (xr, xi), (wr, wi) = _copied_parts(table, x), _copied_parts(table, weight)
    br, bi = (None, None) if bias is None else _copied_parts(table, bias)
    one, other = (empty_tensor(out.shape, wr.dtype, out.device) for _ in range(2))
    real, imaginary = parts(out)
    _convolve(table, one, xr, wr, br, *options)
    _convolve(table, other, xi, wi, None, *options)
    table["sub"](one, one, other, 1)
    table["copy"](real, one)
    _convolve(table, one, xr, wi, bi, *options)
    _convolve(table, other, xi, wr, None, *options)
    table["add"](one, one, other, 1)
    table["copy"](imaginary, one)


def _copied_parts(table: KernelTable, tensor: Tensor) -> tuple[Tensor, Tensor]:
    real, imaginary = parts(tensor)
    return in_order(table, real), in_order(table, imaginary)


def batch(image: Tensor) -> Tensor:
    """Return (C, H, W) as a batch of one; a batch unchanged."""
    return image if len(image.shape) == 4 else with_batch(image)


def plan_conv_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    has_bias: bool,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> CallPlan:
    """Return the plan of the gradients of input, weight and bias, None where masked."""
    device = same_device(grad, x, weight)
    dtype = one_dtype(TAKEN, FITS, ("input", x), ("weight", weight), ("grad", grad))
    shape, options = _geometry(x, weight, stride, padding, dilation, groups)
    require_shape(("grad", grad), shape)
    to_input, to_weight, to_bias = output_mask
    outputs = (
        (x.shape, dtype) if to_input else None,
        (weight.shape, dtype) if to_weight else None,
        ((weight.shape[0],), dtype) if to_bias and has_bias else None,
    )
    arguments = (grad, x, weight, *options)
    computed = computing(dtype)
    kernel = _convolve_backward_complex if dtype in COMPLEXES else _convolve_backward
    return CallPlan(outputs, device, arguments, computed, (0, 1, 2), None, kernel)


def _convolve_backward(
    table: KernelTable,
    to_input: Tensor | None,
    to_weight: Tensor | None,
    to_bias: Tensor | None,
    grad: Tensor,
    x: Tensor,
    *rest: Any,
) -> None:
    batched = None if to_input is None else batch(to_input)
    table["conv2d_backward"](batched, to_weight, to_bias, batch(grad), batch(x), *rest)


def _convolve_backward_complex(
    table: KernelTable,
    to_input: Tensor | None,
    to_weight: Tensor | None,
    to_bias: Tensor | None,
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    *options: Any,
) -> None:
    """Convolve the parts of the gradient with the conjugates of input and weight."""
    targets = to_input, to_weight, to_bias
    split = [_copied_parts(table, each) for each in (grad, x, weight)]

    def run(by: int, of: int) -> list[Tensor | None]:
        results = [
            None
            if each is None
            else empty_tensor(each.shape, real_dtype(each.dtype), each.device)
            for each in targets
        ]
        operands = split[0][by], split[1][of], split[2][of]
        _convolve_backward(
            table, results[0], results[1], results[2], *operands, *options
        )
        return results

    both, crossed = (run(0, 0), run(1, 1)), (run(1, 0), run(0, 1))
    for at, target in enumerate(targets):
        for part, pair_of, how in ((0, both, "add"), (1, crossed, "sub")):
            if target is None:
                continue
            one, other = (made[at] for made in pair_of)
            # The bias is not multiplied: each part of its gradient is that of the same
            # part.
            if target is not to_bias:
                table[how](one, one, other, 1)
            table["copy"](parts(target)[part], one)


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
    """Return the cross-correlation of signals with kernels, over one dimension."""
    require_ndim(("input", input), 2, 3)
    require_ndim(("weight", weight), 3)
    images = core.conv2d(
        core.unsqueeze(input, -2),
        core.unsqueeze(weight, -2),
        bias,
        [1, *stride],
        [0, *padding],
        [1, *dilation],
        groups,
    )
    return core.squeeze(images, [-2])


@lru_cache(maxsize=REMEMBERED)
def pool_geometry(
    image: Ints,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
) -> tuple[Ints, tuple[Pair, Pair, Pair, Pair]]:
    """Return the shape of the maxima, and the options in the kernels' form.

    Raises:
        WrongOption: an option is out of range.
        ShapesDoNotFit: a window exceeds the padded image.
    """
    kernel = pair("kernel_size", kernel_size, 1)
    steps = pair("stride", stride, 1) if stride else kernel
    border = pair("padding", padding, 0)
    spread = pair("dilation", dilation, 1)
    if any(2 * each > size for each, size in zip(border, kernel, strict=True)):
        raise bad_option(
            "padding", str(list(padding)), f"at most half of kernel_size {kernel}"
        )
    sizes = [
        places(image[axis - 2], *each, ceil_mode)
        for axis, each in enumerate(zip(kernel, steps, border, spread, strict=True))
    ]
    if min(sizes) < 1:
        raise bad_shapes(
            f"a window of {kernel} is larger than the padded image",
            "a kernel_size of at most the image plus twice the padding",
            ("self", image),
        )
    return (*image[:-2], *sizes), (kernel, steps, border, spread)


def plan_pool(
    self: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> CallPlan:
    """Return the plan of the maxima and their indices in the image."""
    require_dtype("self", self.dtype, REALS, "real numbers")
    require_ndim(("self", self), 3, 4)
    shape, options = pool_geometry(
        self.shape,
        tuple(kernel_size),
        tuple(stride),
        tuple(padding),
        tuple(dilation),
        ceil_mode,
    )
    return CallPlan(
        ((shape, self.dtype), (shape, INT64)),
        self.device,
        (self, *options),
        computing(self.dtype),
        (0,),
        kernel=_pool,
    )


def _pool(
    table: KernelTable, out: Tensor, indices: Tensor, self: Tensor, *options: Any
) -> None:
    table["max_pool2d"](batch(out), batch(indices), batch(self), *options)


def plan_pool_backward(
    grad: Tensor,
    self: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    indices: Tensor,
) -> CallPlan:
    """Return the plan of the images' gradient: that of a maximum, at its index."""
    device = same_device(grad, self, indices)
    require_dtype("grad_output", grad.dtype, FLOATS, "floating-point numbers")
    require_dtype("self", self.dtype, frozenset({grad.dtype}), str(grad.dtype))
    index_dtype("indices", indices)
    require_ndim(("self", self), 3, 4)
    how = (tuple(kernel_size), tuple(stride), tuple(padding), tuple(dilation))
    shape, _ = pool_geometry(self.shape, *how, ceil_mode)
    require_shape(("grad_output", grad), shape)
    require_shape(("indices", indices), grad.shape)
    outputs = ((self.shape, self.dtype),)
    arguments = (grad, indices)
    computed = computing(self.dtype)
    return CallPlan(outputs, device, arguments, computed, (0,), kernel=_pool_backward)


def _pool_backward(
    table: KernelTable, out: Tensor, grad: Tensor, indices: Tensor
) -> None:
    table["max_pool2d_backward"](batch(out), batch(grad), batch(indices))


def max_pool2d(self: Tensor, *options: Any) -> Any:
    """Return the greatest element of every window of images."""
    return core.max_pool2d_with_indices(self, *options)[0]


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
    """Return the mean of every window of images."""
    require_ndim(("self", self), 3, 4)
    if divisor_override == 0:
        raise bad_option("divisor_override", "0", "an integer other than 0, or None")
    windows = tuple(kernel_size), tuple(stride), tuple(padding), (1,)
    shape, options = pool_geometry(self.shape, *windows, ceil_mode)
    sizes, (kernel, steps, sides, _) = shape[-2:], options
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


def _padded(
    images: Any,
    sides: Sequence[int],
    kernel: Sequence[int],
    steps: Sequence[int],
    sizes: Sequence[int],
    value: float,
) -> Any:
    """Return the padded images, with zeros where a last window exceeds them."""
    height, width = sides
    padded = core.pad(images, [width, width, height, height], value=value)
    more = [
        max((count - 1) * step + window - size, 0)
        for count, step, window, size in zip(
            sizes, steps, kernel, padded.shape[-2:], strict=True
        )
    ]
    return core.pad(padded, [0, more[1], 0, more[0]])


def _summed(
    images: Any, kernel: Sequence[int], steps: Sequence[int], sizes: Sequence[int]
) -> Any:
    """Return the sums of every window: one addition for each place of the window."""
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


_OPTIONS = "int[2] stride{}, int[2] padding{}, int[2] dilation{}, int groups{}"

_POOLED = (
    "Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0,"
    " int[2] dilation=1, bool ceil_mode=False"
)

OPERATORS: tuple[Structured | Unstructured, ...] = (
    Structured(
        "conv2d",
        "Tensor input, Tensor weight, Tensor? bias=None, "
        + _OPTIONS.format("=1", "=0", "=1", "=1"),
        plan_conv,
        out=False,
        says="Return the cross-correlation of images with kernels.",
        autocast="low",
    ),
    Structured(
        "conv2d_backward",
        "Tensor grad, Tensor input, Tensor weight, bool has_bias, "
        + _OPTIONS.format("", "", "", "")
        + ", bool[3] output_mask",
        plan_conv_backward,
        returns="(Tensor?, Tensor?, Tensor?)",
    ),
    Structured(
        "max_pool2d_with_indices",
        _POOLED,
        plan_pool,
        returns="(Tensor, Tensor)",
        says="Return the result of `max_pool2d` and the index of each element.",
        only="function",
    ),
    Structured(
        "max_pool2d_with_indices_backward",
        "Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride,"
        " int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices",
        plan_pool_backward,
        out=False,
    ),
    composite(f"max_pool2d({_POOLED}) -> Tensor", only="function")(max_pool2d),
    *(avg_pool2d, conv1d),
)
