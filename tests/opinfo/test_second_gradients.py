"""Second gradients of every formula: finite differences, and torch.

True only here: where both cannot be asked.  The points are those of
`tests.opinfo.second`: zeros, equal elements, expanded and overlapping bases.  Without
torch, the plainest sample of each row is in the short leg, all of them in the long one.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime.autograd import gradgradcheck
from everyorder.runtime.errors import EveryorderError
from everyorder.runtime.errors.autograd import GradcheckFailed
from everyorder.runtime.tensors.construction import from_numpy
from tests.opinfo.info import OpInfo, on_cpu
from tests.opinfo.second import PLACES, Point, call_of, gradients, points_of, samples_of
from tests.opinfo.table import ROWS

LAID = ("view", "as_strided", "view_as_complex")
DIFFERENTIABLE = [row for row in ROWS if row.gradient and not row.random]
REAL = [row for row in DIFFERENTIABLE if "float64" in row.dtypes]

# Where the slope of a function jumps, or it ends, and its row does not say so.
KINKS: dict[str, tuple[str, ...]] = {
    "abs": ("as it is", "zeros", "expanded", "overlapping"),
    **dict.fromkeys(("log", "log2", "log10", "sqrt", "rsqrt", "relu"), ("zeros",)),
    **dict.fromkeys(("reciprocal", "div", "remainder", "pow"), ("zeros",)),
    **dict.fromkeys(("maximum", "minimum"), PLACES),
    **dict.fromkeys(("atan2", "clamp", "clamp.Tensor"), ("zeros",)),
    "std": ("expanded",),
    **dict.fromkeys(("amax", "max", "min"), ("ties",)),
    **dict.fromkeys(("amin", "max.dim", "min.dim"), ("zeros", "ties")),
    **dict.fromkeys(("max.other", "min.other"), ("zeros",)),
    **dict.fromkeys(("max_pool2d", "max_pool2d_with_indices"), ("zeros", "ties")),
    **dict.fromkeys(("sort", "topk"), ("zeros", "ties")),
    "norm": ("zeros", "ties"),
    "l1_loss": ("zeros", "overlapping"),
    # A variance of 0 is near the end of its root.
    "batch_norm": ("zeros",),
    **dict.fromkeys(
        ("leaky_relu", "leaky_relu_backward", "threshold_backward"),
        ("zeros",),
    ),
    **dict.fromkeys(
        ("elu", "addcdiv", "acosh"),
        ("zeros",),
    ),
}


def kinks_of(row: OpInfo) -> set[str]:
    """The places where the slope of a function jumps, or it ends."""
    return {*row.kinks, *KINKS.get(row.name, ())}


# Not what torch gives, and why.
OTHERWISE = {
    ("pow", "zeros"): "0 to a power stays 0 where torch has NaN",
    ("atan2", "zeros"): "at the origin the gradients are 0, there NaN to second order",
    ("angle", "zeros"): "zero has no angle: gradients 0 where torch has NaN",
    ("addcdiv", "zeros"): "by complex zeros there are infinities where torch has NaN",
    ("elu", "zeros"): "at the kink torch takes the other side for second gradients",
    ("topk", "zeros"): "of equal elements torch takes any",
    ("topk", "ties"): "of equal elements torch takes any",
    ("median.dim", "ties"): "of equal elements torch takes any",
    ("quantile", "ties"): "of equal elements torch takes any",
    **{
        ("scatter_reduce", place): "torch shares with elements that were left out"
        for place in ("as it is", "zeros", "ties")
    },
}


def leaf(values: Any) -> Any:
    """A leaf of the runtime."""
    return from_numpy(np.array(values)).requires_grad_()


def all_points(row: OpInfo, dtype: str, samples: int | None) -> Iterator[Point]:
    """The points of as many samples, the plainest first; None for all."""
    for sample in samples_of(row, dtype)[:samples]:
        yield from points_of(row, sample)


def failing(row: OpInfo, samples: int | None, kinks: bool = False) -> set[str]:
    """The places at which gradients of gradients are not those of differences.

    Those where they need not be are looked at if asked, of all samples; the others of
    so many, all for None, and there they must be.
    """
    wrong = set()
    for number, sample in enumerate(samples_of(row, "float64")):
        for point in points_of(row, sample):
            kink = point.place in kinks_of(row)
            if kinks if kink else samples is None or number < samples:
                error = second_fault(row, point, kinks)
                assert kink or error is None, f"{point}: {error}"
                wrong |= {point.place} if error else set()
    return wrong


def second_fault(row: OpInfo, point: Point, kinks: bool) -> GradcheckFailed | None:
    """What is wrong with gradients of gradients at a point; None for nothing."""
    function = call_of(point, row.call, on_cpu)
    leaves = [leaf(values) for values in point.leaves]
    try:
        if not function(*leaves):
            return None
    except EveryorderError:
        assert row.name in LAID, "only these look at strides"
        return None
    try:
        # Differences of infinities are none.
        with np.errstate(invalid="ignore" if kinks else "warn"):
            gradgradcheck(function, leaves)
    except GradcheckFailed as error:
        return error
    return None


@pytest.mark.parametrize("row", REAL, ids=repr)
def test_gradients_of_gradients_at_every_place(row: OpInfo) -> None:
    failing(row, 1)


@pytest.mark.slow
@pytest.mark.parametrize("row", REAL, ids=repr)
def test_gradients_of_gradients_of_some_samples(row: OpInfo) -> None:
    """And what is left out has a reason to be."""
    assert failing(row, 3, kinks=True) == kinks_of(row)


@pytest.mark.nightly
@pytest.mark.parametrize("row", REAL, ids=repr)
def test_gradients_of_gradients_of_every_sample(row: OpInfo) -> None:
    failing(row, None)


def compared(row: OpInfo, dtype: str) -> int:
    """At how many points of all samples torch has the same gradients."""
    torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
    from tests.opinfo.test_against_torch import on_torch

    def torch_leaf(values: Any) -> Any:
        return torch.from_numpy(np.array(values)).requires_grad_()

    assert row.torch is not None
    known, count = row.torch(torch), 0
    for point in all_points(row, dtype, None):
        if (row.name, point.place) in OTHERWISE:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                function = call_of(point, known, on_torch)
                expected = gradients(point, function, torch, torch_leaf)
        except (IndexError, RuntimeError, TypeError):
            # It has no such view, no gradient, or a fault.
            continue
        found = gradients(point, call_of(point, row.call, on_cpu), runtime, leaf)
        for order, (ours, theirs) in enumerate(zip(found, expected, strict=True), 1):
            for one, other in zip(ours, theirs, strict=True):
                case = f"{point}, order {order}"
                np.testing.assert_allclose(one, other, 1e-8, 1e-9, err_msg=case)
        count += 1
    return count


BESIDE = [
    (row, dtype)
    for row in DIFFERENTIABLE
    for dtype in ("float64", "complex128")
    if dtype in row.dtypes and row.torch is not None
]


@pytest.mark.torch
@pytest.mark.parametrize(("row", "dtype"), BESIDE, ids=repr)
def test_first_and_second_gradients_are_those_of_torch(row: OpInfo, dtype: str) -> None:
    assert bool(compared(row, dtype)) is (dtype not in row.torch_lacks)
