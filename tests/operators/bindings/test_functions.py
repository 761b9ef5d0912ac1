"""Functions: every name is there, and says sizes, dtypes and devices as people do."""

# What a type checker refuses is called here on purpose.
# mypy: disable-error-code="arg-type, call-arg, call-overload, misc"

import inspect
from typing import Any

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime.errors.call import CallError
from everyorder.runtime.errors.tensor import DTypeRefused, ShapesDoNotFit, WrongOption
from everyorder.runtime.operators.bindings import functions
from everyorder.runtime.operators.bindings.functions import FUNCTIONS
from tests.coded import code

INF, NAN = float("inf"), float("nan")


class Kind(runtime.Tensor):
    pass


def test_every_name_is_a_function_of_that_name_and_documented() -> None:
    assert len(FUNCTIONS) == len(set(FUNCTIONS))
    for name in FUNCTIONS:
        made = getattr(functions, name)
        assert made.__name__ == name
        assert inspect.getdoc(made), name
        assert getattr(runtime, name) is made


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


def test_what_is_a_tensor() -> None:
    assert runtime.is_tensor(runtime.ones(1))
    assert runtime.is_tensor(runtime.ones(1).as_subclass(Kind))
    assert not any(map(runtime.is_tensor, (1, [runtime.ones(1)], None, Kind)))


@pytest.mark.parametrize(
    ("left", "right", "options", "close"),
    [
        ([1.0], [1.000001], {}, True),
        ([1.0], [1.1], {}, False),
        # The tolerance is relative to the second one alone.
        ([1.0], [2.0], {"rtol": 0.5}, True),
        ([2.0], [1.0], {"rtol": 0.5}, False),
        ([0.0], [0.5], {"rtol": 0, "atol": 0.5}, True),
        ([0.0], [0.5], {"rtol": 0, "atol": 0.25}, False),
        ([1.0, 1.0], [1.0, 2.0], {}, False),
        ([INF], [INF], {}, True),
        ([-INF], [INF], {}, False),
        ([1.0], [INF], {}, False),
        ([NAN], [NAN], {}, False),
        ([NAN, 1.0], [NAN, 1.0], {"equal_nan": True}, True),
        ([NAN], [1.0], {"equal_nan": True}, False),
        ([1], [2], {}, False),
        ([1], [2], {"atol": 1}, True),
        ([2**53], [2**53 + 1], {}, True),
        ([2**53], [2**53 + 1], {"rtol": 0, "atol": 0}, False),
        ([-(2**63)], [2**63 - 1], {"rtol": 0, "atol": 2}, False),
        ([True], [True], {}, True),
        ([True], [False], {}, False),
        ([1 + 1j], [1 + 1.000001j], {}, True),
        ([1 + 1j], [1 - 1j], {}, False),
        ([], [], {}, True),
        ([1.0, 1.0], 1.0, {}, True),
    ],
)
def test_what_is_close(
    left: Any, right: Any, options: dict[str, Any], close: bool
) -> None:
    a, b = runtime.tensor(left), runtime.tensor(right)
    assert runtime.allclose(a, b, **options) is close
    assert a.allclose(b, **options) is close
    if a.dtype.is_floating:
        a.requires_grad_()
        assert runtime.allclose(a, b, **options) is close


def test_what_cannot_be_compared() -> None:
    x = runtime.ones(2)
    with pytest.raises(DTypeRefused) as refused:
        runtime.allclose(x, runtime.ones(2, dtype="float64"))
    assert (
        str(refused.value)
        == """\
`allclose` does not take `other` of dtype float64.
  fits: float32, as `self` has"""
    )
    for options, name in (({"rtol": -1}, "rtol"), ({"atol": NAN}, "atol")):
        with pytest.raises(WrongOption, check=code("WrongOption")) as option:
            runtime.allclose(x, x, **options)
        assert option.value.argument == name
    with pytest.raises(ShapesDoNotFit, check=code("ShapesRefused")):
        runtime.allclose(x, runtime.ones(3))


SCHEMA = (
    "allclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, "
    "float atol=1e-08, bool equal_nan=False) -> bool"
)


@pytest.mark.parametrize(
    ("options", "head", "last"),
    [
        (
            {"other": np.ones(2, np.float32)},
            "Argument 2 of `allclose`, `other`, takes `Tensor`, but was given a "
            "ndarray.",
            "to do: runtime.from_numpy(x) makes a tensor of an array",
        ),
        (
            {"self": np.ones(2, np.float32)},
            "Argument 1 of `allclose`, `self`, takes `Tensor`, but was given a "
            "ndarray.",
            "to do: runtime.from_numpy(x) makes a tensor of an array",
        ),
        (
            {"other": 1.0},
            "Argument 2 of `allclose`, `other`, takes `Tensor`, but was given a float.",
            "value: 1.0",
        ),
        (
            {"rtol": "x"},
            "Argument 3 of `allclose`, `rtol`, takes `float`, but was given a str.",
            "value: 'x'",
        ),
        (
            {"atol": 1j},
            "Argument 4 of `allclose`, `atol`, takes `float`, but was given a complex.",
            "value: 1j",
        ),
    ],
)
def test_what_is_no_tensor_or_no_tolerance(
    options: dict[str, Any], head: str, last: str
) -> None:
    given = {"self": runtime.ones(2), "other": runtime.ones(2), **options}
    with pytest.raises(CallError, check=code("WrongArgumentType")) as refused:
        runtime.allclose(**given)
    assert refused.value.fields()["schema"] == SCHEMA
    lines = " ".join(str(refused.value).split())
    assert lines.startswith(f"{head} call: allclose(")
    assert lines.endswith(last)


def test_tolerances_may_be_of_numpy() -> None:
    x, y = runtime.tensor([0.0]), runtime.tensor([0.5])
    assert runtime.allclose(x, y, rtol=np.float32(0), atol=np.float64(0.5))
    assert not runtime.allclose(x, y, np.int64(0), runtime.tensor(0.25))


def test_functions_that_were_methods_only() -> None:
    x = runtime.zeros(3, requires_grad=True)
    written = runtime.index_put(x, (runtime.tensor([1]),), runtime.tensor(5.0))
    assert written.tolist() == [0.0, 5.0, 0.0]
    assert written.requires_grad
    fixed = runtime.detach(x)
    assert not fixed.requires_grad
    fixed[0] = 7.0
    assert x.tolist() == [7.0, 0.0, 0.0]


@pytest.mark.torch
def test_methods_are_functions_and_functions_methods_as_in_torch() -> None:
    """But for functions that write, as `torch.relu_`, and complex halves."""
    torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
    methods = {
        name
        for name in dir(runtime.Tensor)
        if not name.startswith("_") and callable(getattr(torch, name, None))
    }
    missing = methods - {*dir(runtime)}
    assert {name for name in missing if not name.endswith("_")} == {"is_signed"}
    shared = {name for name in dir(runtime) if hasattr(torch.Tensor, name)}
    assert shared - {*dir(runtime.Tensor), "__name__"} == {"chalf"}
