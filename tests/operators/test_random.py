"""Random operators: ranges, moments, generators, dropout, and what is refused."""

from typing import Any

import numpy as np
import pytest

from everyorder.runtime.errors.tensor import DTypeRefused, WrongOption
from everyorder.runtime.operators import core
from everyorder.runtime.tensors.generator import (
    Generator,
    default_generator,
    manual_seed,
)
from tests.coded import code, coded
from tests.operators.refusals import Refusal, assert_refused
from tests.operators.tensors import LETTERS, META, tensor

COUNT = 40_000


@pytest.mark.parametrize("letter", "hgfd")
def test_uniform_numbers(letter: str) -> None:
    made = core.rand([COUNT], dtype=LETTERS[letter], generator=Generator(seed=1))
    values = made.numpy().astype("float64")
    assert made.dtype is LETTERS[letter]
    assert values.min() >= 0
    assert values.max() <= 1
    # Five standard errors of the mean.
    assert abs(values.mean() - 0.5) < 5 / np.sqrt(12 * COUNT)
    scaled = core.uniform_(made, -3.0, 1.0, generator=Generator(seed=1))
    assert scaled is made
    assert abs(scaled.numpy().astype("float64").mean() + 1) < 20 / np.sqrt(12 * COUNT)


@pytest.mark.parametrize("letter", "hgfd")
def test_normal_numbers(letter: str) -> None:
    made = core.randn([COUNT], dtype=LETTERS[letter], generator=Generator(seed=2))
    values = made.numpy().astype("float64")
    assert abs(values.mean()) < 5 / np.sqrt(COUNT)
    assert abs(values.std() - 1) < 5 / np.sqrt(2 * COUNT)
    core.normal_(made, 10.0, 0.5, generator=Generator(seed=2))
    moved = made.numpy().astype("float64")
    assert abs(moved.mean() - 10) < 0.02


@pytest.mark.parametrize("letter", "uilfd")
def test_random_integers(letter: str) -> None:
    made = core.randint(2, 7, [COUNT], dtype=LETTERS[letter], generator=Generator())
    assert made.dtype is LETTERS[letter]
    found, counts = np.unique(made.numpy(), return_counts=True)
    assert found.tolist() == [2, 3, 4, 5, 6]
    assert np.all(abs(counts - COUNT / 5) < 5 * np.sqrt(COUNT * 0.16))
    assert core.randint(0, 3, [2, 2]).dtype is LETTERS["l"]


def test_permutations() -> None:
    made = core.randperm(1000, generator=Generator(seed=3)).numpy()
    assert sorted(made.tolist()) == list(range(1000))
    assert made.tolist() != sorted(made.tolist())
    assert core.randperm(0).shape == (0,)
    assert core.randperm(5, dtype=LETTERS["f"]).dtype is LETTERS["f"]


DRAWS: list[tuple[str, tuple[Any, ...]]] = [
    ("rand", ([7],)),
    ("randn", ([7],)),
    ("randint", (0, 100, [7])),
    ("randperm", (7,)),
]


@pytest.mark.parametrize(("name", "arguments"), DRAWS)
def test_one_state_draws_one_thing(name: str, arguments: tuple[Any, ...]) -> None:
    make = getattr(core, name)
    generator = Generator(seed=5)
    state = generator.get_state()
    first = make(*arguments, generator=generator).numpy().tolist()
    second = make(*arguments, generator=generator).numpy().tolist()
    assert first != second
    generator.set_state(state)
    assert make(*arguments, generator=generator).numpy().tolist() == first
    kept = default_generator.get_state()
    manual_seed(5)
    assert make(*arguments).numpy().tolist() == first
    default_generator.set_state(kept)
    meta = make(*arguments, device="meta", generator=generator)
    assert (meta.shape, meta.device) == ((7,), META)


def test_drawing_into_a_view_writes_only_the_view() -> None:
    base = tensor(np.full((3, 2), 9.0))
    core.uniform_(core.select(base, 1, 0))
    assert base.numpy()[:, 1].tolist() == [9.0] * 3
    assert (base.numpy()[:, 0] < 1).all()
    meta = core.empty([2], device="meta")
    assert core.normal_(meta) is meta


@pytest.mark.parametrize(
    ("name", "arguments", "argument", "fits"),
    [
        ("uniform_", (tensor([1.0]), 2.0, 1.0), "low", "at most 1.0"),
        ("normal_", (tensor([1.0]), 0.0, -1.0), "std", "0 or more"),
        ("randint", (3, 3, [2]), "low", "less than 3"),
    ],
)
def test_parameters_that_no_distribution_has(
    name: str, arguments: tuple[Any, ...], argument: str, fits: str
) -> None:
    with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
        getattr(core, name)(*arguments)
    assert caught.value.operator == f"core::{name}"
    assert (caught.value.argument, caught.value.fits) == (argument, fits)


def test_elements_that_cannot_hold_the_numbers() -> None:
    with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
        core.randint(0, 300, [2], dtype=LETTERS["u"])
    assert caught.value.fits == "0 to 255, as the elements are uint8"
    with pytest.raises(DTypeRefused):
        core.uniform_(tensor([1], "int64"))
    with pytest.raises(DTypeRefused):
        core.randn([2], dtype=LETTERS["l"])


def test_a_generator_is_a_generator() -> None:
    with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
        core.rand([2], generator=object())
    assert str(caught.value) == (
        "`core::rand` does not take an object of type object for `generator`.\n"
        "  fits: a Generator, or None for the default one"
    )


def test_dropout_of_all_of_nothing_and_in_sixteen_bits() -> None:
    line = tensor([1.0, 2.0])
    out, mask = core.native_dropout(line, 1.0, True)
    assert (out.tolist(), mask.tolist()) == ([0, 0], [False, False])
    out, mask = core.native_dropout(line, 0.5, False)
    assert (out.tolist(), mask.tolist()) == ([1, 2], [True, True])
    for same in (core.dropout(line, 0.5, False), core.dropout(line, 0.0)):
        assert same.tolist() == [1, 2]
        assert same.storage() is not line.storage()
    half, _ = core.native_dropout(tensor([1.0] * 8, dtype="bfloat16"), 0.5)
    assert half.dtype.name == "bfloat16"
    assert set(half.tolist()) <= {0.0, 2.0}
    shapes = [
        each.shape for each in core.native_dropout(core.empty([1], device="meta"), 0.5)
    ]
    assert shapes == [(1,), (1,)]


WRONG: dict[str, Refusal] = {
    "dropout": (
        lambda: core.dropout(tensor([1.0]), 1.5),
        coded(WrongOption, "WrongOption"),
        "`core::dropout` does not take 1.5 for `p`. fits: 0.0 to 1.0",
    ),
    "dropout dtype": (
        lambda: core.native_dropout(tensor([1], "int64"), 0.5),
        DTypeRefused,
        "`core::native_dropout` does not take `input` of dtype int64. fits: "
        "floating-point and complex numbers",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case: str) -> None:
    assert_refused(*WRONG[case])
