"""Two-dimensional maximum pooling, with the places of the maxima, and its gradient.

True only here: shapes and options, as torch has them: without a stride the windows lie
side by side, and padding is at most half of a window.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from runtime.errors.operands import WrongOption
from runtime.errors.operator import ShapesDoNotFit
from runtime.operators.agreement import (
    computing,
    index_dtype,
    misfit,
    require_ndim,
    require_shape,
)
from runtime.operators.call import core
from runtime.operators.conv import REMEMBERED, Ints, batch
from runtime.operators.plan import (
    FLOATS,
    INT64,
    REALS,
    KernelTable,
    Plan,
    require_dtype,
    same_device,
)
from runtime.operators.structured import Structured, Written, composed
from runtime.operators.windows import Pair, pair, places
from runtime.tensors.tensor import Tensor


@lru_cache(maxsize=REMEMBERED)
def geometry(
    call: str,
    image: Ints,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
) -> tuple[Ints, tuple[Pair, Pair, Pair, Pair]]:
    """The shape of the maxima, and the options as the kernels take them.

    Raises `WrongOption`, `ShapesDoNotFit`.
    """
    kernel = pair(call, "kernel_size", kernel_size, 1)
    steps = pair(call, "stride", stride, 1) if stride else kernel
    border = pair(call, "padding", padding, 0)
    spread = pair(call, "dilation", dilation, 1)
    if any(2 * each > size for each, size in zip(border, kernel, strict=True)):
        raise WrongOption(
            operator=call,
            argument="padding",
            found=str(list(padding)),
            fits=f"at most half of kernel_size {kernel}",
        )
    sizes = [
        places(image[axis - 2], *each, ceil_mode)
        for axis, each in enumerate(zip(kernel, steps, border, spread, strict=True))
    ]
    if min(sizes) < 1:
        raise ShapesDoNotFit(
            operator=call,
            shapes=(("self", image),),
            reason=f"a window of {kernel} is larger than the padded image",
            fits="a kernel_size of at most the image plus twice the padding",
        )
    return (*image[:-2], *sizes), (kernel, steps, border, spread)


def plan_pool(
    call: str,
    self: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> Plan:
    """The maxima, and where each lies in its image."""
    require_dtype(call, "self", self.dtype, REALS, "real numbers")
    require_ndim(call, ("self", self), 3, 4)
    shape, options = geometry(
        call,
        self.shape,
        tuple(kernel_size),
        tuple(stride),
        tuple(padding),
        tuple(dilation),
        ceil_mode,
    )
    return Plan(
        ((shape, self.dtype), (shape, INT64)),
        self.device,
        (self, *options),
        computing(self.dtype),
        (0,),
        kernel=_run,
    )


def _run(
    table: KernelTable, out: Tensor, indices: Tensor, self: Tensor, *options: Any
) -> None:
    table["max_pool2d"](batch(out), batch(indices), batch(self), *options)


def plan_backward(call: str, grad: Tensor, self: Tensor, indices: Tensor) -> Plan:
    """The gradient of the images: that of each maximum goes to its place."""
    device = same_device(call, grad, self, indices)
    require_dtype(call, "grad", grad.dtype, FLOATS, "floating-point numbers")
    require_dtype(call, "self", self.dtype, frozenset({grad.dtype}), str(grad.dtype))
    index_dtype(call, "indices", indices)
    require_ndim(call, ("self", self), 3, 4)
    require_shape(call, ("indices", indices), grad.shape)
    if grad.shape[:-2] != self.shape[:-2]:
        raise misfit(
            call,
            "they are not the same images",
            f"grad of shape {self.shape[:-2]} and the size of the maxima",
            ("grad", grad),
            ("self", self),
        )
    outputs = ((self.shape, self.dtype),)
    arguments = (grad, indices)
    computed = computing(self.dtype)
    return Plan(outputs, device, arguments, computed, (0,), kernel=_backward)


def _backward(table: KernelTable, made: Tensor, grad: Tensor, indices: Tensor) -> None:
    table["max_pool2d_backward"](batch(made), batch(grad), batch(indices))


def max_pool2d(self: Tensor, *options: Any) -> Tensor:
    """The maxima alone."""
    maxima: Tensor = core.max_pool2d_with_indices(self, *options)[0]
    return maxima


_ARGUMENTS = (
    "Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0,"
    " int[2] dilation=1, bool ceil_mode=False"
)

OPERATORS = (
    Structured(
        "max_pool2d_with_indices",
        _ARGUMENTS,
        plan_pool,
        returns="(Tensor, Tensor)",
        says="`max_pool2d`, and where each element was.",
        only="function",
    ),
    Structured(
        "max_pool2d_backward",
        "Tensor grad, Tensor self, Tensor indices",
        plan_backward,
        out=False,
    ),
    Written(
        f"max_pool2d({_ARGUMENTS}) -> Tensor",
        {"CompositeImplicitAutograd": composed("core::max_pool2d", max_pool2d)},
        says="The greatest element of every window of images.",
        only="function",
    ),
)
