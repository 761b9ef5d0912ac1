"""Windows: two numbers out of one or two, and how many windows fit."""

import pytest

from runtime.errors.operands import WrongOption
from runtime.operators.convolution import LARGEST, pair, places


def test_one_number_counts_for_both() -> None:
    assert pair("stride", [3], 1) == (3, 3)
    assert pair("stride", (3, 4), 1) == (3, 4)


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        ([], ", 1 and more"),
        ([1, 2, 3], ", 1 and more"),
        ([2, 0], ", 1 and more"),
        ([LARGEST + 1], f", 1 and more, at most {LARGEST}"),
    ],
)
def test_what_is_no_pair(given: list[int], fits: str) -> None:
    with pytest.raises(WrongOption) as caught:
        pair("stride", given, 1)
    assert caught.value.fields() == {
        "operator": "",
        "argument": "stride",
        "found": str(given),
        "fits": "one number, or two for height and width" + fits,
    }


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [2, 3])
@pytest.mark.parametrize("size", [5, 6, 7, 8])
def test_places_counted_one_by_one(
    size: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool
) -> None:
    reach = dilation * (kernel - 1)
    count = 0
    while True:
        begin = count * stride - padding
        inside = begin + reach < size + padding
        # With `ceil` one more, if the one before did not end at the border.
        if not inside:
            cut = ceil and begin < size and begin - stride + reach < size + padding - 1
            count += cut
            break
        count += 1
    assert places(size, kernel, stride, padding, dilation, ceil) == count
