"""Written functions of layers: more than the call of one operator, as in `written`.

True only here: words for what layers are given (`padding="same"`, `training`,
`return_indices`), and the order of their arguments.
"""

from collections.abc import Callable
from typing import Any

from runtime.errors.operands import WrongOption
from runtime.operators.agreement import INDICES
from runtime.operators.call import core
from runtime.operators.calling import plain
from runtime.operators.public import public
from runtime.schema.checked import checked
from runtime.tensors.tensor import Tensor

Function = Callable[..., Any]


@checked
def dropout(
    input: Tensor,  # noqa: A002  # the schema's name
    p: float = 0.5,
    train: bool = True,
    inplace: bool = False,
    *,
    training: bool | None = None,
) -> Any:
    """Zeros at random with probability `p`, the rest scaled up.

    `training` is `train`, by the name that layers have for it.
    """
    found = core.dropout(input, p, train if training is None else training)
    return core.copy_(input, found) if inplace else found


def convolution(name: str, ndim: int) -> Function:
    """`conv1d` or `conv2d`, of which the padding may be a word."""
    run = plain(name)

    def convolve(
        input: Tensor,  # noqa: A002  # the schema's name
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        if not isinstance(padding, str):
            return run(input, weight, bias, stride, padding, dilation, groups)
        steps, apart = (
            each if isinstance(each, (list, tuple)) else (each,) * ndim
            for each in (stride, dilation)
        )
        if padding not in ("same", "valid") or (padding == "same" and {*steps} != {1}):
            raise WrongOption(
                operator=name,
                argument="padding",
                found=f"{padding!r} with stride {stride}",
                fits="numbers, 'valid', or 'same' with a stride of 1",
            )
        if padding == "valid":
            return run(input, weight, bias, stride, 0, dilation, groups)
        kernel = weight.shape[-ndim:]
        whole = [step * (size - 1) for step, size in zip(apart, kernel, strict=True)]
        more = [total % 2 for total in whole]
        if any(more):
            ends = [end for each in reversed(more) for end in (0, each)]
            input = core.pad(input, ends)  # noqa: A001  # as above
        sides = [total // 2 for total in whole]
        return run(input, weight, bias, stride, sides, dilation, groups)

    convolve.__name__ = convolve.__qualname__ = name
    convolve.__doc__ = f"""{public()[name].says}

    `padding` may be "valid", none, or "same": as much as keeps the size, of which the
    odd place comes last.  Raises `WrongOption` for another word, and for "same" with a
    stride.
    """
    return checked(convolve)


@checked
def max_pool2d(*args: Any, return_indices: bool = False, **kwargs: Any) -> Any:
    """The greatest element of every window of images, and where each was, if asked."""
    if kwargs.get("stride", 0) is None:
        del kwargs["stride"]
    name = "max_pool2d_with_indices" if return_indices else "max_pool2d"
    return plain(name)(*args, **kwargs)


@checked
def embedding(weight: Tensor, indices: Tensor, padding_idx: int | None = None) -> Any:
    """The rows of a table that integers name, or, as of layers, integers and table.

    In the order of layers a negative `padding_idx` counts from the end; else -1, and
    None, are none.
    """
    place = -1 if padding_idx is None else padding_idx
    if weight.dtype in INDICES and indices.dtype not in INDICES:
        weight, indices = indices, weight
        if padding_idx is not None and padding_idx < 0:
            place += weight.size(0)
    return core.embedding(weight, indices, place)
