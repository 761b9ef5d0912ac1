"""What programs for torch rely on at the edges of operators."""

import pytest

import runtime as m
from tests.autograd.made import grad_of


@pytest.mark.parametrize(
    ("padding", "shape"), [("same", (1, 1, 5)), ("valid", (1, 1, 2)), (1, (1, 1, 4))]
)
def test_conv1d_takes_words_for_its_padding(padding: str | int, shape: object) -> None:
    x, kernel = m.arange(5.0).reshape(1, 1, 5), m.ones(1, 1, 4)
    assert m.conv1d(x, kernel, padding=padding).shape == shape


def test_conv1d_puts_the_odd_place_last() -> None:
    x, kernel = m.arange(1.0, 5.0).reshape(1, 1, 4), m.ones(1, 1, 2)
    found = m.conv1d(x, kernel, padding="same")
    assert found.tolist() == [[[3, 5, 7, 4]]]


def test_what_has_a_slope_of_zero_keeps_its_history() -> None:
    chances = m.tensor([0.25, 0.75], requires_grad=True)
    m.bernoulli(chances).sum().backward()
    x = m.tensor([0.0, 2.0, float("nan")], requires_grad=True)
    count = m.norm(x, 0)
    count.backward()
    assert count.item() == 2
    assert [grad_of(t).tolist() for t in (chances, x)] == [[0, 0], [0, 0, 0]]


def test_the_gradient_of_an_empty_part_is_empty() -> None:
    nothing = m.zeros(0, requires_grad=True)
    m.cat([nothing, m.ones(2, 2)], dim=1).sum().backward()
    assert grad_of(nothing).shape == (0,)


def test_conversions_take_a_memory_format() -> None:
    x = m.ones(2, 3, 4, 5)
    assert x.double(memory_format=m.channels_last).stride() == (60, 1, 15, 3)
    assert x.int().stride() == (60, 20, 5, 1)


@pytest.mark.parametrize(
    ("sides", "wanted"),
    [
        ((-4, 5), [4, 4, 4, 4, 4]),
        ((5, -4), [1, 1, 1, 1, 1]),
        ((-2, 3), [3, 4, 4, 4, 4]),
        ((3, -2), [1, 1, 1, 1, 2]),
    ],
)
def test_what_is_cut_off_is_still_the_nearest(
    sides: tuple[int, int], wanted: list[int]
) -> None:
    x = m.arange(1.0, 5.0).reshape(1, 1, 4)
    assert m.pad(x, sides, "replicate").tolist() == [[wanted]]


def test_integers_are_spaced_from_an_integer_to_an_integer() -> None:
    found = m.linspace(4.9, -3.9, 8, dtype=m.int64)
    assert found.tolist() == m.linspace(4, -3, 8, dtype=m.int64).tolist()


@pytest.mark.parametrize("kind", [RuntimeError, IndexError])
def test_parts_that_are_not_there(kind: type[Exception]) -> None:
    with pytest.raises(kind, match="start and length"):
        m.narrow(m.ones(20, 10), 1, 11, 0)
    with pytest.raises(kind, match="no dimension 0"):
        m.narrow(m.tensor(1.0), 0, 0, 1)
    with pytest.raises(kind, match="no elements"):
        m.amax(m.ones(5, 0), dim=1)
