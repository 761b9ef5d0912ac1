"""Options of printing, for the whole process."""

from collections.abc import Iterator
from math import inf
from typing import Any

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime import get_printoptions, set_printoptions, tensor
from everyorder.runtime.errors.tensor import UnfitValue
from everyorder.runtime.tensors.tensor import Tensor

DEFAULTS = {
    "precision": 8,
    "threshold": 1000,
    "edgeitems": 3,
    "linewidth": 75,
    "sci_mode": None,
}


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Returns to the defaults after each test."""
    yield
    set_printoptions(profile="default")


def small() -> Tensor:
    return tensor([1.5, 0.123456, -2.0])


CASES: list[tuple[dict[str, Any], Tensor, str]] = [
    ({"precision": 2}, small(), "tensor([ 1.5 ,  0.12, -2.  ])"),
    ({"precision": 0}, small(), "tensor([ 2.,  0., -2.])"),
    (
        {"precision": 2, "sci_mode": True},
        small(),
        "tensor([ 1.5e+00, 1.23e-01,  -2.e+00])",
    ),
    (
        {"sci_mode": False, "precision": 3},
        tensor([1234567.0, 0.00001, float("nan"), -float("inf")]),
        "tensor([1234567.,       0.,      nan,     -inf])",
    ),
    ({"sci_mode": True, "precision": 1}, tensor([1 - 20j]), "tensor([1.e+00-2.e+01j])"),
    ({"sci_mode": False}, tensor([1.5 + 2j]), "tensor([1.5+2.j])"),
    ({"sci_mode": True}, tensor([1, 2]), "tensor([1, 2])"),
    ({"sci_mode": True}, tensor(2.5), "tensor(2.5e+00)"),
    (
        {"threshold": 4, "edgeitems": 1},
        tensor([1, 2, 3, 4, 5]),
        "tensor([1, ..., 5])",
    ),
    (
        {"threshold": 2, "edgeitems": 1, "sci_mode": False},
        tensor([1.0, 2.0, 30.0]),
        "tensor([1., ..., 30.])",
    ),
    (
        {"linewidth": 20},
        tensor([1, 2, 3, 4, 5, 6]),
        "tensor([1, 2, 3, 4,\n        5, 6])",
    ),
]


@pytest.mark.parametrize(("options", "value", "text"), CASES)
def test_the_text_follows(options: dict[str, Any], value: Tensor, text: str) -> None:
    set_printoptions(**options)
    assert repr(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (tensor([1.5, 2.5, 3.5]), "tensor(..., shape=(3,), dtype=float32)"),
        (tensor([[1, 2], [3, 4]]), "tensor(..., shape=(2, 2), dtype=int64)"),
        (tensor([1, 2]), "tensor([1, 2])"),
        (tensor(2.5), "tensor(2.5)"),
    ],
)
def test_no_element_prints_without_items_at_the_ends(value: Tensor, text: str) -> None:
    set_printoptions(edgeitems=0, threshold=2)
    assert repr(value) == text
    set_printoptions(threshold=0)
    assert repr(tensor(2.5)) == "tensor(2.5)"


def test_integers_of_numpy_are_counts() -> None:
    counts = {"precision": 2, "threshold": 10, "edgeitems": 1, "linewidth": 60}
    set_printoptions(**{name: np.int64(count) for name, count in counts.items()})  # type: ignore[arg-type]  # more than it promises
    assert get_printoptions() == {**DEFAULTS, **counts}
    assert {type(get_printoptions()[name]) for name in counts} == {int}


def test_options_that_are_not_given_stay() -> None:
    assert get_printoptions() == DEFAULTS
    set_printoptions(precision=3, sci_mode=False)
    set_printoptions(edgeitems=2)
    assert get_printoptions() == {
        **DEFAULTS,
        "precision": 3,
        "edgeitems": 2,
        "sci_mode": False,
    }


def test_profiles_are_set_before_other_options() -> None:
    set_printoptions(profile="full", precision=3, sci_mode=True)
    assert get_printoptions() == {
        **DEFAULTS,
        "threshold": inf,
        "precision": 3,
        "sci_mode": True,
    }
    assert "..." not in repr(tensor(range(2000)))
    set_printoptions(profile="short")
    assert get_printoptions() == {**DEFAULTS, "precision": 2, "edgeitems": 2}
    set_printoptions(profile="default")
    assert get_printoptions() == DEFAULTS


def test_options_for_a_block() -> None:
    def fail() -> None:
        with runtime.printoptions(precision=1):
            raise ValueError(repr(tensor([0.25])))

    with pytest.raises(ValueError, match=r"tensor\(\[0.2\]\)"):
        fail()
    assert get_printoptions() == DEFAULTS


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"precision": -1}, "precision=...)` takes an integer of 0 or more"),
        ({"precision": 1.5}, "precision=...)` takes an integer of 0 or more"),
        ({"precision": True}, "precision=...)` takes an integer of 0 or more"),
        ({"precision": np.ones(2)}, "precision=...)` takes an integer of 0 or more"),
        ({"precision": np.True_}, "precision=...)` takes an integer of 0 or more"),
        ({"threshold": "many"}, "threshold=...)` takes an integer of 0 or more"),
        ({"linewidth": 0}, "linewidth=...)` takes an integer of 1 or more"),
        ({"edgeitems": inf}, "edgeitems=...)` takes an integer of 0 or more"),
        ({"sci_mode": 1}, "sci_mode=...)` takes True, False or None"),
        ({"profile": "long"}, "profile=...)` takes one of 'default', 'short', 'full'"),
    ],
)
def test_other_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UnfitValue) as error:
        set_printoptions(**options)
    assert words in " ".join(str(error.value).split())
    assert get_printoptions() == DEFAULTS
