"""Expanding: dimensions of size 1 repeated, and how many elements a view may show.

True only here: views that show more elements than memory holds.  How many they show is
bounded all the same, for whoever counts them.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from runtime.errors.operands import WrongOption
from runtime.errors.operator import ShapesDoNotFit
from runtime.tensors.arrays import claimed
from runtime.tensors.making import view_of
from runtime.tensors.tensor import Tensor

Ints = tuple[int, ...]

# More elements cannot be counted: NumPy, like any C code, does so in 64 bits.
MOST = 2**63 - 1


def check_count(call: str, shape: Ints) -> None:
    """Refuse a shape of more elements than can be counted.  Raises `WrongOption`."""
    if prod(shape) > MOST:
        raise WrongOption(
            operator=call,
            argument="size",
            found=str(shape),
            fits=f"sizes with a product of at most {MOST}",
        )


def expand(self: Tensor, size: Sequence[int]) -> Tensor:
    """Dimensions of size 1 repeated, and new ones in front, without a copy."""
    _, offset, strides = self._place or claimed(self)
    return view_of(self, *_expanded(self.shape, strides, tuple(size)), offset)


@lru_cache(maxsize=1024)
def _expanded(given: Ints, steps: Ints, size: Ints) -> tuple[Ints, Ints]:
    """Shape and strides with dimensions repeated.  Raises as `expand`."""
    added = len(size) - len(given)
    shape: list[int] = []
    strides: list[int] = []
    for place, wanted in enumerate(size):
        have = given[place - added] if place >= added else 1
        step = steps[place - added] if place >= added else 0
        kept = have if wanted == -1 and place >= added else wanted
        if kept < 0 or (kept != have and have != 1):
            raise _not_expandable(given, size)
        shape.append(kept)
        strides.append(step if kept == have else 0)
    if added < 0:
        raise _not_expandable(given, size)
    check_count("core::expand", tuple(shape))
    return tuple(shape), tuple(strides)


def _not_expandable(shape: tuple[int, ...], size: Sequence[int]) -> ShapesDoNotFit:
    return ShapesDoNotFit(
        operator="core::expand",
        shapes=(("self", shape), ("wanted", tuple(size))),
        reason="only a dimension of size 1 can be repeated",
        fits=f"sizes that end in {shape}, where each 1 and each new size is free",
    )
