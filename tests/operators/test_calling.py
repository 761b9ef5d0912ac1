"""How people call operators: `out=`, sizes, and numbers where overloads take them."""

import subprocess
import sys

import pytest

from runtime.errors.call import CallError
from runtime.operators.calling import (
    alone,
    function,
    plain,
    sizes,
    takes_one,
    writing,
)
from runtime.operators.written import Ordered, clamp, scatter, sort, split
from tests.operators.made import shown, tensor


def test_sizes_are_one_sequence_or_separate() -> None:
    assert sizes((2, 3)) == (2, 3)
    assert sizes(((2, 3),)) == (2, 3)
    assert sizes(([2, 3],)) == [2, 3]
    assert sizes((2,)) == (2,)
    assert sizes(()) == ()


@pytest.mark.parametrize("make", [alone, writing, function])
def test_out_chooses_the_overload(make: object) -> None:
    assert callable(make)
    run, x, out = make("neg"), tensor([1.0, -2.0]), tensor([0.0, 0.0])
    assert shown(run(x)) == ("float32", [-1.0, 2.0])
    assert run(x, out=out) is out
    assert shown(out) == ("float32", [-1.0, 2.0])
    assert shown(run(x, out=None)) == ("float32", [-1.0, 2.0])
    with pytest.raises(CallError):
        run(object())


def test_making_functions_looks_for_no_names_like_theirs() -> None:
    """Half a second, when what has no `out=` was asked for as an operator."""
    program = "import sys, runtime.whole; print('difflib' in sys.modules)"
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"


def test_functions_are_made_once_and_named() -> None:
    assert function("add") is function("add")
    assert (function("add").__name__, takes_one("neg")) == ("add", True)
    assert not takes_one("add")
    assert shown(plain("add")(tensor([1.0]), 2)) == ("float32", [3.0])


def test_numbers_and_tensors_where_overloads_take_them() -> None:
    x = tensor([1.0, 5.0, 9.0])
    assert shown(clamp(x, 2, 6)) == ("float32", [2.0, 5.0, 6.0])
    assert shown(clamp(x, tensor([3.0] * 3), 6)) == ("float32", [3.0, 5.0, 6.0])
    out = tensor([0.0] * 3)
    assert clamp(x, max=tensor(6.0), out=out) is out
    assert out.tolist() == [1.0, 5.0, 6.0]
    index = tensor([2], "int64")
    assert scatter(x, 0, index, 7).tolist() == [1.0, 5.0, 7.0]
    assert scatter(x, 0, index, tensor([8.0])).tolist() == [1.0, 5.0, 8.0]
    assert scatter(x, 0, index, 7, out=out).tolist() == [1.0, 5.0, 7.0]


def test_several_results_have_names() -> None:
    found = sort(tensor([3.0, 1.0]))
    assert type(found) is Ordered
    assert (found.values.tolist(), found.indices.tolist()) == ([1.0, 3.0], [1, 0])
    line = tensor([1.0, 2.0, 3.0])
    assert [part.tolist() for part in split(line, 2)] == [[1.0, 2.0], [3.0]]
    assert [part.tolist() for part in split(line, [1, 2])] == [[1.0], [2.0, 3.0]]
