"""Losses against torch, and by hand."""

import numpy as np
import pytest

from runtime.errors.operands import IndexOutOfRange, ShapesDoNotFit, WrongOption
from runtime.operators.call import core
from runtime.tensors import tensor
from tests.operators.arrays import REASON, Array, agree, normal, softmax
from tests.operators.told import Refused, refused

LOSSES = ("none", "mean", "sum")
SHAPES = ((5,), (4, 5), (4, 5, 3), (2, 5, 3, 2))


def scores(shape: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Scores, classes of which some are to be ignored, and weights of the classes."""
    places = () if len(shape) == 1 else (shape[0], *shape[2:])
    classes = np.random.default_rng(5).integers(0, 5, places)
    return normal(*shape), classes, np.abs(normal(5, seed=7)) + 0.1


@pytest.mark.torch
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("reduction", LOSSES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_nll_loss_and_its_gradient(
    shape: tuple[int, ...], reduction: str, weighted: bool
) -> None:
    torch = pytest.importorskip("torch", reason=REASON)
    array, classes, weights = scores(shape)
    logs = torch.tensor(array, requires_grad=True)
    weight = torch.tensor(weights) if weighted else None
    theirs = torch.nn.functional.nll_loss(
        logs, torch.tensor(classes), weight, ignore_index=2, reduction=reduction
    )
    grad = torch.ones_like(theirs) * 3
    theirs.backward(grad)
    ours = tensor(array), tensor(classes), tensor(weights) if weighted else None
    loss, total = core.nll_loss_forward(*ours, reduction, 2)
    agree(loss, theirs.detach().numpy())
    agree(core.nll_loss(*ours, reduction, 2), theirs.detach().numpy())
    agree(
        core.nll_loss_backward(tensor(grad.numpy()), *ours, reduction, 2, total),
        logs.grad.numpy(),
    )


@pytest.mark.torch
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("reduction", LOSSES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cross_entropy_against_classes(
    shape: tuple[int, ...], reduction: str, weighted: bool, smoothing: float
) -> None:
    torch = pytest.importorskip("torch", reason=REASON)
    array, classes, weights = scores(shape)
    for ignored in (2, -100):
        theirs = torch.nn.functional.cross_entropy(
            torch.tensor(array),
            torch.tensor(classes),
            torch.tensor(weights) if weighted else None,
            ignore_index=ignored,
            reduction=reduction,
            label_smoothing=smoothing,
        )
        ours = core.cross_entropy(
            tensor(array),
            tensor(classes),
            tensor(weights) if weighted else None,
            reduction,
            ignored,
            smoothing,
        )
        agree(ours, theirs.numpy())


@pytest.mark.torch
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("reduction", LOSSES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cross_entropy_against_probabilities(
    shape: tuple[int, ...], reduction: str, weighted: bool, smoothing: float
) -> None:
    torch = pytest.importorskip("torch", reason=REASON)
    array, _, weights = scores(shape)
    wanted = softmax(normal(*shape, seed=9), 0 if len(shape) == 1 else 1)
    theirs = torch.nn.functional.cross_entropy(
        torch.tensor(array),
        torch.tensor(wanted),
        torch.tensor(weights) if weighted else None,
        reduction=reduction,
        label_smoothing=smoothing,
    )
    ours = core.cross_entropy(
        tensor(array),
        tensor(wanted),
        tensor(weights) if weighted else None,
        reduction,
        label_smoothing=smoothing,
    )
    agree(ours, theirs.numpy())


def test_cross_entropy_by_hand() -> None:
    loss = core.cross_entropy(tensor([[0.0, 0.0], [5.0, 0.0]]), tensor([0, -100]))
    assert loss.item() == pytest.approx(np.log(2))
    all_ignored = core.cross_entropy(tensor([[0.0, 0.0]]), tensor([-100]))
    assert np.isnan(all_ignored.item())
    there = core.cross_entropy(
        tensor([[0.0, 1.0]], device="meta"), tensor([1], device="meta"), None, "none"
    )
    assert there.shape == (1,)


WRONG: dict[str, Refused] = {
    "nll_loss shape": (
        lambda: core.nll_loss(tensor(normal(2, 3)), tensor([0, 1, 2])),
        ShapesDoNotFit,
        "`core::nll_loss` cannot work on these shapes: there is not one target "
        "for each line of scores. given: self (2, 3), target (3,) fits: target of "
        "shape (2,)",
    ),
    "nll_loss class": (
        lambda: core.nll_loss(tensor(normal(2, 3)), tensor([0, 3])),
        IndexOutOfRange,
        "`core::nll_loss` was given index 3 for dimension 1, which has size 3. "
        "fits: 0 to 2 state: nothing was written",
    ),
    "nll_loss reduction": (
        lambda: core.nll_loss(tensor(normal(1, 3)), tensor([0]), None, "most"),
        WrongOption,
        "`core::nll_loss` does not take 'most' for `reduction`. fits: 'none', "
        "'mean', 'sum'",
    ),
    "nll_loss weight": (
        lambda: core.nll_loss(tensor(normal(1, 3)), tensor([0]), tensor(normal(2))),
        ShapesDoNotFit,
        "`core::nll_loss` cannot work on these shapes: weight has another "
        "shape "
        "than asked. given: weight (2,) fits: shape (3,)",
    ),
    "nll_loss number": (
        lambda: core.nll_loss(tensor(1.0), tensor(0)),
        ShapesDoNotFit,
        "`core::nll_loss` cannot work on these shapes: self has no dimension "
        "of "
        "classes. given: self () fits: (C) or (N, C, ...)",
    ),
    "cross_entropy shape": (
        lambda: core.cross_entropy(tensor(normal(2, 3)), tensor([0, 1, 2])),
        ShapesDoNotFit,
        "`core::cross_entropy` cannot work on these shapes: target holds neither one "
        "class for each line of scores, nor one probability for each score. given: "
        "self (2, 3), target (3,) fits: classes of shape (2,) and dtype int64, or "
        "probabilities of shape (2, 3)",
    ),
    "cross_entropy smoothing": (
        lambda: core.cross_entropy(
            tensor(normal(1, 3)), tensor([0]), label_smoothing=1.5
        ),
        WrongOption,
        "`core::cross_entropy` does not take 1.5 for `label_smoothing`. fits: 0.0 to "
        "1.0",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case: str) -> None:
    refused(*WRONG[case])
