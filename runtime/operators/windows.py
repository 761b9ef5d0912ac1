"""Windows: how many places a kernel of a size has on a padded image.

True only here: the arithmetic that convolution and pooling share, after relation 14 of
Dumoulin and Visin, "A guide to convolution arithmetic for deep learning" (2016).
"""

from collections.abc import Sequence

from runtime.errors.operands import WrongOption

Pair = tuple[int, int]

# What 32 bits hold: products of two of these, which the kernels form, fit into int64.
LARGEST = 2**31 - 1


def pair(call: str, argument: str, given: Sequence[int], least: int) -> Pair:
    """Two numbers, for height and width; one number counts for both.

    Raises:
        WrongOption: not one or two numbers, or one is less than `least`, or
            greater than `LARGEST`.
    """
    values = tuple(given) * 2 if len(given) == 1 else tuple(given)
    if len(values) != 2 or min(values) < least or max(values) > LARGEST:
        raise WrongOption(
            operator=call,
            argument=argument,
            found=str(list(given)),
            fits=f"one number, or two for height and width, {least} and more"
            + ("" if max(values, default=0) <= LARGEST else f", at most {LARGEST}"),
        )
    return values


def places(
    size: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool = False
) -> int:
    """How many windows fit; with `ceil` also one that begins inside and ends out."""
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    if not ceil:
        return room // stride + 1
    count = -(-room // stride) + 1
    # The last window has to begin on the image or on the padding before it.
    return count - 1 if (count - 1) * stride >= size + padding else count
