"""How tensors print, and the options of that.

Elements print as in NumPy, with the middle left out above a number of elements.  The
text names the dtype unless the elements show it, and the device unless it is the CPU.

| option    | meaning                                                   | default   |
|-----------|-----------------------------------------------------------|-----------|
| precision | the most digits behind the point                          | 8         |
| threshold | more elements than this are summarized                    | 1000      |
| edgeitems | the elements at each end of a summarized dimension        | 3         |
| linewidth | the characters of a line                                  | 75        |
| sci_mode  | True: always an exponent, False: never, None: as it suits | None      |

Rules:
- the options are one value for the whole process, replaced at once;
- a number prints with as many digits as it needs, up to `precision`;
- without items at its ends (`edgeitems` is 0), a summarized tensor prints as `...` and
  its shape;
- neither the text nor its options change an element.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from math import inf, isinf, isnan
from operator import index
from sys import maxsize
from typing import TYPE_CHECKING, Any

from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.errors.tensor import UnfitValue
from everyorder.runtime.tensors.dtype_info import DEFAULTS
from everyorder.runtime.tensors.keys import PYTHON
from everyorder.runtime.tensors.storage import WrapperStorage
from everyorder.runtime.tensors.tensor_impl import (
    MOST_DIMENSIONS,
    TensorBase,
    standard_copy,
)

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class PrintOptions:
    """The options of printing; the module describes them.  The defaults are NumPy's."""

    precision: int = 8
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 75
    sci_mode: bool | None = None


# Name of a profile -> its options, but for `sci_mode`, which it keeps.
PROFILES: dict[str, PrintOptions] = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=inf),
}
# The options that are counts, with the least value of each.
_COUNTS = {"precision": 0, "threshold": 0, "edgeitems": 0, "linewidth": 1}


class _Current:
    """The options of the process."""

    __slots__ = ("options",)

    def __init__(self) -> None:
        self.options = PrintOptions()


_CURRENT = _Current()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print, for the whole process; None leaves an option as it is.

    Args:
        precision, threshold, edgeitems, linewidth: as the module describes; the
            threshold may be infinite.
        profile: "default", "short" or "full", set before the other options.
        sci_mode: True or False; a profile sets it to None.

    Raises:
        UnfitValue: an option is not such a number, or there is no such profile.
    """
    options = _CURRENT.options
    if profile is not None:
        if profile not in PROFILES:
            names = ", ".join(map(repr, PROFILES))
            raise _unfit("profile", profile, f"one of {names}")
        options = PROFILES[profile]
    counts = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    changed: dict[str, Any] = {k: v for k, v in counts.items() if v is not None}
    for name, value in changed.items():
        changed[name] = _count(name, value)
    if sci_mode is not None:
        if not isinstance(sci_mode, bool):
            raise _unfit("sci_mode", sci_mode, "True, False or None")
        changed["sci_mode"] = sci_mode
    _CURRENT.options = replace(options, **changed)


def get_printoptions() -> dict[str, Any]:
    """Return the options by name, as `set_printoptions` takes them."""
    return asdict(_CURRENT.options)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Set options of `set_printoptions` for the block."""
    before = _CURRENT.options
    set_printoptions(**options)
    try:
        yield
    finally:
        _CURRENT.options = before


def _count(name: str, value: Any) -> float:
    """Return the value of an option that counts.  Raises `UnfitValue`."""
    least = _COUNTS[name]
    if name == "threshold" and isinstance(value, float) and value == inf:
        return value
    try:
        number = -1 if isinstance(value, bool) else index(value)
    except TypeError:
        number = -1
    if number < least:
        raise _unfit(name, value, f"an integer of {least} or more")
    return number


def _unfit(name: str, value: object, fits: str) -> UnfitValue:
    return UnfitValue(
        asked=f"set_printoptions({name}=...)", found=repr(value)[:60], fits=fits
    )


# The dtypes of bools and integers, which the text does not name; it does not name the
# default dtypes either.
_PLAIN = frozenset({"int64", "bool"})


def text_of(tensor: Any, plain: Callable[[Any], TensorBase]) -> str:
    """Return the text of the tensor; `...` replaces elements that cannot be shown.

    Tensors on `meta` and wrappers lack elements (the class of a wrapper may define a
    `__repr__` that shows more), and NumPy prints at most `MOST_DIMENSIONS`.  The
    elements are read from `plain(tensor)`, without a handler, so that the text does not
    call one.
    """
    shape, dtype, device = tensor._shape, tensor._dtype, tensor._device
    kind = type(tensor).__name__
    prefix = "tensor(" if kind == "Tensor" else f"{kind}("
    hidden = _hidden(tensor)
    unhandled = plain(tensor) if tensor.key_bits & PYTHON and not hidden else tensor
    parts = ["..." if hidden else _elements(unhandled, prefix)]
    has_elements = 0 not in shape and not hidden
    if hidden or not (has_elements or shape == (0,)):
        parts.append(f"shape={shape}")
    usual = dtype in (DEFAULTS.real, DEFAULTS.complex) or dtype.name in _PLAIN
    if not usual or not has_elements:
        parts.append(f"dtype={dtype}")
    if device.type != "cpu":
        parts.append(f"device='{device}'")
    parts += _gradient(tensor)
    return f"{prefix}{', '.join(parts)})"


def formatted(tensor: Any, spec: str) -> str:
    """Format the number of a one-element tensor, or else the text of the tensor.

    Raises:
        UnfitValue: `spec` formats numbers, and the tensor does not have exactly one.
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


def _hidden(tensor: TensorBase) -> bool:
    if tensor._device.type == "meta":
        return True
    place = tensor._place
    bare = place is not None and isinstance(place[0], WrapperStorage)
    if bare or len(tensor._shape) > MOST_DIMENSIONS:
        return True
    options = _CURRENT.options
    # NumPy would print the last element.
    without_ends = not options.edgeitems and bool(tensor._shape)
    return without_ends and tensor.numel() > options.threshold


def _elements(tensor: TensorBase, prefix: str) -> str:
    if tensor.number is not None:
        return repr(tensor.number)
    if not tensor.numel():
        return "[]"
    import numpy as np

    options = _CURRENT.options
    elements = standard_copy(tensor, "repr()")
    return np.array2string(
        elements,
        separator=", ",
        prefix=prefix,
        precision=options.precision,
        threshold=maxsize if options.threshold == inf else int(options.threshold),
        edgeitems=options.edgeitems,
        max_line_width=options.linewidth,
        formatter=None if options.sci_mode is None else _numbers(elements, options),
    )


def _numbers(elements: "np.ndarray[Any, Any]", options: PrintOptions) -> Any:
    """Return NumPy's formatters of numbers with an exponent, or without one.

    NumPy itself gives large numbers an exponent. Numbers have one width, unless the
    text leaves some out.
    """
    import numpy as np

    precision = options.precision

    def real(number: Any) -> str:
        if isnan(number) or isinf(number):
            return str(float(number))
        if options.sci_mode:
            return np.format_float_scientific(number, precision=precision, exp_digits=2)
        return np.format_float_positional(number, precision=precision, trim=".")

    def complex_(number: Any) -> str:
        imaginary = real(number.imag)
        sign = "" if imaginary.startswith("-") else "+"
        return f"{real(number.real)}{sign}{imaginary}j"

    width = 0
    if elements.dtype.kind in "fc" and elements.size <= options.threshold:
        text = complex_ if elements.dtype.kind == "c" else real
        width = max(len(text(each)) for each in elements.flat)
    kinds = {"float_kind": real, "complex_kind": complex_}
    return {kind: _right(function, width) for kind, function in kinds.items()}


def _right(function: Callable[[Any], str], width: int) -> Callable[[Any], str]:
    return lambda number: function(number).rjust(width)


def _gradient(tensor: Any) -> list[str]:
    """Return the text of the tensor's graph node or of `requires_grad`, if any."""
    try:
        node = tensor.grad_fn
    except EveryorderError:
        # The view is invalid since its base changed.  Using it raises the reason;
        # printing it must not raise.
        return ["grad_fn=<invalid>"]
    if node is not None:
        return [f"grad_fn=<{node.name()}>"]
    return ["requires_grad=True"] if tensor.requires_grad else []
