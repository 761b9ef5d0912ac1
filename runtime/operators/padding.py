"""Padding of tensors: with a constant, or with their own elements.

The composites map each place of the result to a place of the input by existing
operators, and have backends and gradients through these.
"""

from collections.abc import Sequence
from typing import Any

from everyorder.runtime.operators.cat_and_flip import counted
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.declare.plan import BOOL, INTEGERS, bad_option
from everyorder.runtime.operators.declare.structured import Unstructured, composite
from everyorder.runtime.tensors.tensor import Tensor

PADDINGS = ("constant", "reflect", "replicate", "circular")


@composite(
    'pad(Tensor self, int[] pad, str mode="constant", float? value=None) -> Tensor',
    only="function",
)
def pad(self: Tensor, pad: Sequence[int], mode: str, value: float | None) -> Any:
    """Add places before and after, by pairs from the last dimension on."""
    ndim = len(self.shape)
    _require_pairs(pad, ndim)
    if mode not in PADDINGS:
        raise bad_option("mode", repr(mode), ", ".join(map(repr, PADDINGS)))
    if mode == "constant":
        return core.constant_pad_nd(self, pad, value or 0.0)
    result: Any = self
    for number in range(len(pad) // 2):
        at, sides = ndim - 1 - number, (pad[2 * number], pad[2 * number + 1])
        if sides == (0, 0):
            continue
        if mode == "replicate":
            result = core.index_select(result, at, _nearest(result, at, sides))
        else:
            # Negative padding first: the mode applies to the remaining elements.
            size = self.shape[at]
            low, high = max(-sides[0], 0), size - max(-sides[1], 0)
            result = core.slice(result, at, low, max(high, low))
            more = max(sides[0], 0), max(sides[1], 0)
            result = core.index_select(result, at, _places(result, at, more, mode))
    return core.clone(result) if result is self else result


@composite(
    "constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor",
    explicit=True,
    public=False,
)
def constant_pad_nd(self: Tensor, pad: Sequence[int], value: Any) -> Any:
    """Add a constant before and after, by pairs from the last dimension on."""
    ndim = len(self.shape)
    _require_pairs(pad, ndim)
    result: Any = self
    for number in range(len(pad) // 2):
        sides = pad[2 * number], pad[2 * number + 1]
        if sides != (0, 0):
            result = _with_constant(result, ndim - 1 - number, sides, value)
    # A copy also where nothing is added, or only taken away.
    return core.clone(result) if all(each <= 0 for each in pad) else result


def _require_pairs(pad: Sequence[int], ndim: int) -> None:
    """Make sure that there are pairs of numbers.  Raises `WrongOption`."""
    if len(pad) % 2 or len(pad) > 2 * ndim:
        raise bad_option(
            "pad",
            str(list(pad)),
            f"a pair of numbers for each of at most {ndim} dimensions",
        )


def _with_constant(tensor: Any, at: int, sides: tuple[int, int], value: float) -> Any:
    size = tensor.shape[at]
    if size + sum(sides) < 0:
        raise bad_option(
            "pad",
            str(sides),
            f"at most {size} places less of dimension {at}",
        )
    cropped = core.slice(tensor, at, max(-sides[0], 0), size - max(-sides[1], 0))
    parts = [cropped]
    for side, more in enumerate(sides):
        if more > 0:
            shape = [*tensor.shape[:at], more, *tensor.shape[at + 1 :]]
            whole = tensor.dtype in INTEGERS | {BOOL}
            number = int(value) if whole else value
            constant = core.full(
                shape, number, dtype=tensor.dtype, device=tensor.device
            )
            parts.insert(0 if not side else len(parts), constant)
    return core.cat(parts, at) if len(parts) > 1 else cropped


def _nearest(self: Tensor, at: int, sides: tuple[int, int]) -> Any:
    """Return the places of a dimension padded with its first and last place."""
    size, (before, after) = self.shape[at], sides
    if size < 1 or size + before + after < 0:
        raise bad_option(
            "pad",
            str(sides),
            f"at most {size} places less of dimension {at}, which has elements",
        )
    numbers = core.add(counted(size + before + after, self), -before)
    return core.clamp(numbers, 0, size - 1)


def _places(self: Tensor, at: int, sides: tuple[int, int], mode: str) -> Any:
    """Return the source place of each place of the padded dimension."""
    size, (before, after) = self.shape[at], sides
    most = {"reflect": size - 1, "circular": size}[mode]
    if size < 1 or max(sides) > most:
        raise bad_option(
            "pad",
            str(sides),
            f"at most {most} places on each side of {size} in mode {mode!r}",
        )
    numbers = core.add(counted(size + before + after, self), -before)
    if mode == "circular":
        return core.remainder(numbers, size)
    # Reflect at both ends: a place beyond an end maps to the same distance before it.
    beyond = core.abs(core.add(core.neg(core.abs(numbers)), size - 1))
    return core.add(core.neg(beyond), size - 1)


OPERATORS: tuple[Unstructured, ...] = (constant_pad_nd, pad)
