"""Expanding: dimensions repeated, and how many elements a view may show."""

from collections.abc import Callable

import pytest

from runtime.errors.operands import ShapesDoNotFit, WrongOption
from runtime.operators.call import core
from runtime.operators.plan import MOST
from runtime.tensors.tensor import Tensor
from tests.operators.grid import cube
from tests.operators.told import refused


def test_dimensions_of_one_are_repeated_without_a_copy() -> None:
    base = cube()
    row = core.slice(base, 1, 0, 1)
    wide = core.expand(row, [5, -1, 3, 4])
    assert (wide.shape, wide.strides) == ((5, 2, 3, 4), (0, 12, 0, 1))
    assert wide.storage() is base.storage()
    assert wide.tolist() == [[[each] * 3 for (each,) in row.tolist()]] * 5


def test_more_elements_than_can_be_counted() -> None:
    one = core.slice(cube(), 0, 0, 1)
    assert core.expand(one, [MOST // 12, 3, 4]).shape == (MOST // 12, 3, 4)
    with pytest.raises(WrongOption) as caught:
        core.expand(one, [MOST // 12 + 1, 3, 4])
    assert caught.value.fields() == {
        "operator": "core::expand",
        "argument": "size",
        "found": str((MOST // 12 + 1, 3, 4)),
        "fits": f"sizes with a product of at most {MOST}",
    }


WRONG: dict[str, tuple[Callable[[Tensor], object], type[Exception], str]] = {
    "expand": (
        lambda x: core.expand(x, [2, 6, 4]),
        ShapesDoNotFit,
        "`core::expand` cannot work on these shapes: only a dimension of size 1 can "
        "be\n"
        "repeated.\n"
        "  given: self (2, 3, 4), wanted (2, 6, 4)\n"
        "  fits:  sizes that end in (2, 3, 4), where each 1 and each new size is free",
    ),
    "expand fewer": (
        lambda x: core.expand(x, [3, 4]),
        ShapesDoNotFit,
        "`core::expand` cannot work on these shapes: only a dimension of size 1 can "
        "be\n"
        "repeated.\n"
        "  given: self (2, 3, 4), wanted (3, 4)\n"
        "  fits:  sizes that end in (2, 3, 4), where each 1 and each new size is free",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused_by_name(case: str) -> None:
    call, kind, text = WRONG[case]
    refused(lambda: call(cube()), kind, text)
