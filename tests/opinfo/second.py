"""Second gradients: where they are asked for, of any library of tensors.

True only here: from a sample to the points at which a row is differentiated: as they
are, with zeros, with equal elements, and as views of expanded and of overlapping bases,
so that one element of a leaf is many of an argument.

Rules: the leaves are the floating-point arrays that the row is differentiated in; only
the first of them is a view, and the numbers stay among those of the sample, so that
they stay in the domain of the function.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.opinfo.info import Array, OpInfo, Sample, listed
from tests.opinfo.test_gradients import FIXED, points, usable

View = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Point:
    """A call of a row: the values of its leaves, and the argument that each becomes."""

    row: OpInfo
    sample: Sample
    place: str
    leaves: tuple[Any, ...]
    views: tuple[View, ...]

    def __str__(self) -> str:
        return f"{self.row.name}({self.sample}) {self.place}"


def samples_of(row: OpInfo, dtype: str) -> list[Sample]:
    """What can be differentiated, the plainest first."""
    found = [s for s in usable(row, dtype) if any(True for _ in points(s))]
    several = [s for s in found if all(a.values.size > 1 for a in points(s))]
    return sorted(several or found, key=lambda s: sum(a.values.size for a in points(s)))


def points_of(row: OpInfo, sample: Sample) -> Iterator[Point]:
    """The points of a sample, one for each of `CHANGES` that it has."""
    arrays = enumerate(sample.arrays())
    own = [array.values for at, array in arrays if is_leaf(row, sample, at)]
    for place in PLACES if own else ():
        change = CHANGES[place]
        first = change(own[0])
        if first is None:
            continue
        # A second view would make no other case; other numbers do.
        same = place in ("expanded", "overlapping")
        rest = [None if same else change(each) for each in own[1:]]
        both = [
            first,
            *(new or (old, itself) for new, old in zip(rest, own[1:], strict=True)),
        ]
        leaves, views = zip(*both, strict=True)
        yield Point(row, sample, place, leaves, views)


def is_leaf(row: OpInfo, sample: Sample, at: int) -> bool:
    """Whether an array of a sample takes a gradient."""
    array = [*sample.arrays()][at]
    fixed = FIXED.get(row.name, lambda at: False)
    return array.values.dtype.kind in "fc" and not fixed(at)


# The leaf of a place, and how it becomes the argument; None if there is none.
Change = Callable[[Any], tuple[Any, View] | None]


def itself(leaf: Any) -> Any:
    """The leaf as an argument."""
    return leaf


def with_zeros(values: Any) -> tuple[Any, View] | None:
    """Every third number is 0, the first one not."""
    if values.size < 2:
        return None
    leaf = values.copy()
    leaf.reshape(-1)[1::3] = 0
    return leaf, itself


def with_ties(values: Any) -> tuple[Any, View] | None:
    """Neighbours are equal, by pairs."""
    if values.size < 2:
        return None
    leaf = values.copy()
    flat = leaf.reshape(-1)
    flat[1::2] = flat[: 2 * (flat.size // 2) : 2]
    return leaf, itself


def expanded(values: Any) -> tuple[Any, View] | None:
    """All along the first dimension is one element."""
    if values.size < 2:
        return None
    shape = values.shape
    return values[:1].copy(), lambda leaf: leaf.expand(shape)


def overlapping(values: Any) -> tuple[Any, View] | None:
    """Each row begins an element after the one before; a line has each one twice."""
    if values.size < 2:
        return None
    shape, flat = values.shape, values.reshape(-1)
    if len(shape) == 1:
        return flat[: (shape[0] + 1) // 2].copy(), doubled(shape[0])
    reached = sum(size - 1 for size in shape) + 1
    strides = (1,) * len(shape)
    return flat[:reached].copy(), lambda leaf: leaf.as_strided(shape, strides)


def doubled(size: int) -> View:
    """A line of which each element stands twice."""

    def view(leaf: Any) -> Any:
        pairs = leaf.as_strided(((size + 1) // 2, 2), (1, 0))
        return pairs.reshape(-1)[:size]

    return view


CHANGES: dict[str, Change] = {
    "as it is": lambda values: (values.copy(), itself),
    "zeros": with_zeros,
    "ties": with_ties,
    "expanded": expanded,
    "overlapping": overlapping,
}
PLACES = tuple(CHANGES)


def call_of(point: Point, call: Any, turn: Callable[[Any], Any]) -> Callable[..., Any]:
    """The row as a function of the leaves alone; its floating-point results."""

    def function(*leaves: Any) -> tuple[Any, ...]:
        given = iter(
            [view(leaf) for view, leaf in zip(point.views, leaves, strict=True)]
        )
        at = -1

        def turned(value: Any) -> Any:
            nonlocal at
            if not isinstance(value, Array):
                return turn(value)
            at += 1
            return next(given) if is_leaf(point.row, point.sample, at) else turn(value)

        args, kwargs = point.sample.bound(turned)
        found = [each for each in listed(call(*args, **kwargs)) if each is not None]
        return tuple(each for each in found if each.requires_grad)

    return function


def gradients(
    point: Point, function: Callable[..., Any], library: Any, made: Callable[[Any], Any]
) -> tuple[list[Any], list[Any]]:
    """The gradients by the leaves, and theirs by the leaves and by what came in.

    `library.autograd.grad` computes them; `made` makes a leaf of an array.
    """
    leaves = [made(each) for each in point.leaves]
    results = function(*leaves)
    outer = [made(weights(each.detach().numpy(), 2.5)) for each in results]
    first = gradient(library, results, leaves, outer, create_graph=True)
    kept = [each for each in first if each is not None and each.requires_grad]
    inner = [inner_of(each, made) for each in kept]
    second: Sequence[Any] = [None] * (len(leaves) + len(outer))
    if kept:
        second = gradient(library, kept, [*leaves, *outer], inner)
    shapes = [*leaves, *outer]
    return (
        [array_of(each, like) for each, like in zip(first, leaves, strict=True)],
        [array_of(each, like) for each, like in zip(second, shapes, strict=True)],
    )


def gradient(library: Any, results: Any, inputs: Any, outer: Any, **more: Any) -> Any:
    return library.autograd.grad(
        list(results), inputs, outer, allow_unused=True, **more
    )


def inner_of(result: Any, made: Callable[[Any], Any]) -> Any:
    return made(weights(result.detach().numpy(force=True), 1.7)).detach()


def weights(like: Any, pace: float) -> Any:
    """Numbers of either sign in a shape, the same at every run."""
    steps = np.arange(1, like.size + 1, dtype=np.float64)
    values: Any = np.cos(steps * pace)
    if like.dtype.kind == "c":
        values = values + 1j * np.sin(steps)
    return values.reshape(like.shape)


def array_of(found: Any, like: Any) -> Any:
    """A gradient as an array; of what nothing depends on, zeros."""
    if found is None:
        return np.zeros(tuple(like.shape))
    # What torch has not computed yet it computes when it is forced to.
    return found.detach().numpy(force=True)
