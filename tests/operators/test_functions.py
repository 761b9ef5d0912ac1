"""Functions: every name is there, and says sizes, dtypes and devices as people do."""

import inspect

import pytest

import runtime
from runtime.operators import functions
from runtime.operators.functions import FUNCTIONS


def test_every_name_is_a_function_of_that_name_and_documented() -> None:
    assert len(FUNCTIONS) == len(set(FUNCTIONS))
    for name in FUNCTIONS:
        made = getattr(functions, name)
        assert made.__name__ == name
        assert inspect.getdoc(made), name
        assert getattr(runtime, name) is made
    assert set(functions.__all__) - {"FUNCTIONS"} <= set(FUNCTIONS)


@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "rand", "randn"])
def test_sizes_may_be_separate(name: str) -> None:
    make = getattr(functions, name)
    for found in (make(2, 3), make((2, 3)), make([2, 3])):
        assert (found.shape, found.dtype.name) == ((2, 3), "float32")
    assert make(2, dtype="float64").dtype.name == "float64"
    assert make(2, device="meta").device.type == "meta"
    assert make(2, requires_grad=True).is_leaf
    assert make(2, requires_grad=True).requires_grad


def test_ranges_and_integers_may_leave_the_start_away() -> None:
    assert functions.arange(3).tolist() == [0, 1, 2]
    assert functions.arange(1, 6, 2).tolist() == [1, 3, 5]
    assert functions.arange(6, step=2).tolist() == [0, 2, 4]
    drawn = functions.randint(3, (50,)).tolist()
    assert set(drawn) == {0, 1, 2}
    assert set(functions.randint(5, 7, (50,)).tolist()) == {5, 6}
    assert sorted(functions.randperm(4).tolist()) == [0, 1, 2, 3]
    assert functions.eye(2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert functions.linspace(0, 1, 3).tolist() == [0, 0.5, 1]
