"""Where results of the runtime and of torch differ.

True only here: the tolerances and what is compared: how many results, then of each its
dtype, shape, strides, values, and whether it requires a gradient.

Rules: strides of empty tensors, and of dimensions of size 1, mean nothing; NaN equals
NaN; integers and bools are equal or not.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from everyorder.runtime import Tensor
from tests.torch.samples.converting import array, listed

# Relative and absolute: the last digits depend on the order of additions, which is
# not the same in both.
TOLERANCES = {
    "bfloat16": (2e-2, 1e-2),
    "float16": (2e-3, 1e-3),
    "complex32": (2e-3, 1e-3),
    "float32": (2e-5, 1e-5),
    "complex64": (2e-5, 1e-5),
    "float64": (1e-9, 1e-10),
    "complex128": (1e-9, 1e-10),
}

# Results that are no tensors.
PLAIN = (bool, int, float, complex)

Found = Iterator[tuple[str, str]]


def differences(ours: Any, theirs: Any, *, values: bool = True) -> Found:
    """(kind, words) for each difference of two results of a call."""
    one, other = listed(ours), listed(theirs)
    if len(one) != len(other):
        yield "number of results", f"{len(one)}, torch {len(other)}"
        return
    for number, (mine, its) in enumerate(zip(one, other, strict=True)):
        for kind, words in of_values(mine, its, values=values):
            yield kind, f"result {number}: {words}" if len(one) > 1 else words


def of_values(mine: Any, its: Any, *, values: bool) -> Found:
    if isinstance(mine, Tensor) != isinstance(its, torch.Tensor):
        yield "type", f"{type(mine).__name__}, torch {type(its).__name__}"
    elif isinstance(mine, Tensor):
        yield from of_tensors(mine, its, values=values)
        if mine.requires_grad != its.requires_grad:
            yield "requires_grad", f"{mine.requires_grad}, torch {its.requires_grad}"
    elif isinstance(mine, PLAIN) and type(mine) is not type(its):
        yield "type", f"{type(mine).__name__}, torch {type(its).__name__}"
    elif values and mine != its and not (mine != mine and its != its):
        yield "values", f"{mine!r}, torch {its!r}"


def of_tensors(mine: Tensor, its: Any, *, values: bool = True) -> Found:
    """(kind, words) for each difference of two tensors."""
    ours, theirs = str(mine.dtype), str(its.dtype).removeprefix("torch.")
    ours = ours.removeprefix("runtime.")
    if tuple(mine.shape) != tuple(its.shape):
        yield "shape", f"{list(mine.shape)}, torch {list(its.shape)}"
        return
    if ours != theirs:
        yield "dtype", f"{ours}, torch {theirs}"
        return
    if meaningful(mine) != meaningful(its):
        yield "strides", f"{list(mine.stride())}, torch {list(its.stride())}"
    if values:
        yield from of_elements(array(mine), array(its), theirs)


def of_elements(mine: Any, its: Any, dtype: str) -> Found:
    relative, absolute = TOLERANCES.get(dtype, (0.0, 0.0))
    with np.errstate(all="ignore"):
        if relative:
            # Where addends cancel, what is left is as inexact as they are.
            absolute *= max([1.0, *np.abs(its)[np.isfinite(its)].ravel()])
            same = np.isclose(mine, its, rtol=relative, atol=absolute, equal_nan=True)
        else:
            same = np.asarray(mine == its)
    if not same.all():
        first = tuple(int(index[0]) for index in np.nonzero(np.atleast_1d(~same)))
        at = first if np.ndim(mine) else ()
        yield (
            "values",
            f"{np.sum(~same)} of {same.size},"
            f" at {list(at)} {mine[at]}, torch {its[at]}",
        )


def meaningful(tensor: Any) -> tuple[int, ...]:
    """The strides by which elements are told apart."""
    if not tensor.numel():
        return ()
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    return tuple(stride for size, stride in sizes if size > 1)
