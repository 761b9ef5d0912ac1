"""Losses: what is left where every class is ignored, and what is refused."""

import numpy as np
import pytest

from everyorder.runtime.errors.tensor import (
    IndexOutOfRange,
    ShapesDoNotFit,
    WrongOption,
)
from everyorder.runtime.operators import core
from everyorder.runtime.tensors import tensor
from tests.coded import coded
from tests.operators.refusals import Refusal, assert_refused
from tests.operators.tensors import normal

OptionRefused = coded(WrongOption, "WrongOption")


def test_cross_entropy_by_hand() -> None:
    loss = core.cross_entropy(tensor([[0.0, 0.0], [5.0, 0.0]]), tensor([0, -100]))
    assert loss.item() == pytest.approx(np.log(2))
    all_ignored = core.cross_entropy(tensor([[0.0, 0.0]]), tensor([-100]))
    assert np.isnan(all_ignored.item())
    there = core.cross_entropy(
        tensor([[0.0, 1.0]], device="meta"), tensor([1], device="meta"), None, "none"
    )
    assert there.shape == (1,)


WRONG: dict[str, Refusal] = {
    "nll_loss shape": (
        lambda: core.nll_loss(tensor(normal(2, 3)), tensor([0, 1, 2])),
        ShapesDoNotFit,
        "`core::nll_loss` cannot work on these shapes: target does not have "
        "one class for each line of scores. given: self (2, 3), target (3,) fits: "
        "target of shape (2,)",
    ),
    "nll_loss class": (
        lambda: core.nll_loss(tensor(normal(2, 3)), tensor([0, 3])),
        IndexOutOfRange,
        "`core::nll_loss` was given index 3 for dimension 1, which has size 3. "
        "fits: 0 to 2 state: nothing was written",
    ),
    "nll_loss reduction": (
        lambda: core.nll_loss(tensor(normal(1, 3)), tensor([0]), None, "most"),
        OptionRefused,
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
        "`core::nll_loss` cannot work on these shapes: self does not have "
        "a dimension of classes. given: self () fits: (C) or (N, C, ...)",
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
        OptionRefused,
        "`core::cross_entropy` does not take 1.5 for `label_smoothing`. fits: 0.0 to "
        "1.0",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case: str) -> None:
    assert_refused(*WRONG[case])
