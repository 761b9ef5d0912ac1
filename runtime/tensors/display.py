"""How a tensor prints, and what a format makes of it.

True only here: the text of a tensor.  Elements print as NumPy prints them, with the
middle left out above `SUMMARIZED` elements; the dtype is named unless the text shows it
(int64, bool, and the default float32 and complex64), the device unless it is the CPU.

Rule: showing a tensor asks no handler, so that a handler may print what it is given;
the elements that lie below a handler are read as they are.
"""

from typing import TYPE_CHECKING, Any

from runtime.errors.base import EveryorderError
from runtime.errors.tensor import UnfitValue
from runtime.tensors.arrays import MOST_DIMENSIONS, host_copy
from runtime.tensors.handled import PYTHON, UNHANDLED
from runtime.tensors.wrapper import WrapperStorage

if TYPE_CHECKING:
    import numpy as np

    from runtime.tensors.tensor import Tensor

# NumPy's and torch's threshold.
SUMMARIZED = 1000

# What `tensor` makes of Python numbers needs no name.
_PLAIN = frozenset({"int64", "bool", "float32", "complex64"})


def text_of(tensor: "Tensor", plain: "type[Tensor]") -> str:
    """The whole text; `...` stands for elements that are not to be had.

    Those are none on `meta` or of a wrapper, whose class may have a `__repr__` that
    shows more, and none that NumPy has too few dimensions for.  `plain` is the class
    without a handler, which elements below one are read by.
    """
    shape, dtype, device = tensor._shape, tensor._dtype, tensor._device
    hidden = _hidden(tensor)
    parts = ["..." if hidden else _elements(_below(tensor, plain), _prefix(tensor))]
    shown = 0 not in shape and not hidden
    if hidden or not (shown or shape == (0,)):
        parts.append(f"shape={shape}")
    if dtype.name not in _PLAIN or not shown:
        parts.append(f"dtype={dtype}")
    if device.type != "cpu":
        parts.append(f"device='{device}'")
    parts += _gradient(tensor)
    return f"{_prefix(tensor)}{', '.join(parts)})"


def formatted(tensor: "Tensor", spec: str) -> str:
    """The text by a format: of one element the number's, else one for texts.

    Raises `UnfitValue` for a format of numbers where there are several.
    """
    if not spec:
        return str(tensor)
    if tensor.numel() == 1 and not tensor.is_meta:
        return format(tensor.item(), spec)
    try:
        return format(str(tensor), spec)
    except ValueError:
        raise UnfitValue(
            asked=f"format(tensor, {spec!r})",
            found=f"one of shape {tensor.shape}",
            fits="a tensor of one element",
            remedy="format its elements, from `.tolist()`",
        ) from None


def _hidden(tensor: "Tensor") -> bool:
    if tensor._device.type == "meta":
        return True
    place = tensor._place
    bare = place is not None and isinstance(place[0], WrapperStorage)
    return bare or len(tensor._shape) > MOST_DIMENSIONS


def _below(tensor: "Tensor", plain: "type[Tensor]") -> "Tensor":
    """The tensor, or one without a handler on its elements, so that nobody is asked."""
    if not tensor.key_bits & PYTHON:
        return tensor
    bits = tensor.key_bits & UNHANDLED
    made = plain(tensor._flat, tensor._shape, tensor._dtype, tensor._device, bits)
    made._place = tensor._place
    return made


def _elements(tensor: "Tensor", prefix: str) -> str:
    if tensor.number is not None:
        return repr(tensor.number)
    if not tensor.numel():
        return "[]"
    import numpy as np

    elements = host_copy(tensor, "repr()")
    if tensor.dtype.name == "bfloat16":
        elements = elements.astype(np.float32)
    return _printed(elements, prefix)


def _prefix(tensor: "Tensor") -> str:
    """`tensor(`, or the name of a subclass."""
    kind = type(tensor).__name__
    return "tensor(" if kind == "Tensor" else f"{kind}("


def _printed(elements: "np.ndarray[Any, Any]", prefix: str) -> str:
    import numpy as np

    return np.array2string(
        elements, separator=", ", prefix=prefix, threshold=SUMMARIZED
    )


def _gradient(tensor: "Tensor") -> list[str]:
    """The node that a tensor came from, or that it requires grad, or nothing."""
    try:
        node = tensor.grad_fn
    except EveryorderError:
        # The view cannot follow its base any more; using it says why, showing it not.
        return ["grad_fn=<invalid>"]
    if node is not None:
        return [f"grad_fn=<{node.name()}>"]
    return ["requires_grad=True"] if tensor.requires_grad else []
