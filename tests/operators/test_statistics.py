"""Functions that describe lines, shifts, and factories by size, as programs call them.

The rows of `tests.opinfo` compare the operators with NumPy; here are the forms that
only functions and methods have.
"""

# What a type checker refuses is called here on purpose.
# mypy: disable-error-code="arg-type, call-arg, call-overload, misc"

import tracemalloc
from typing import Any

import pytest

import everyorder.runtime as m
from everyorder.runtime.errors import EveryorderError

X = [[3.0, 1.0, 2.0, 2.5], [0.5, -1.0, 4.0, 7.0]]
I = [5, 3, 9, 8, 1]  # noqa: E741  # integers, next to X
SMALL = [-128, -3, 5, 127]

# Each is called by both sides: `R` is the module, the others are tensors.
CALLS = {
    "R.zeros(size=(2, 3))": [[0.0] * 3] * 2,
    "R.ones(size=[2], dtype=R.int64)": [1, 1],
    "R.full(size=(2,), fill_value=3)": [3, 3],
    "R.randint(1, size=(2,))": [0, 0],
    "R.randint(high=1, size=(2,))": [0, 0],
    "R.randint(low=3, high=4, size=(2,))": [3, 3],
    "x.new_zeros(size=(2,))": [0.0, 0.0],
    "x.new_tensor([1, 2])": [1.0, 2.0],
    "i.new_tensor([1.5], dtype=R.float64)": [1.5],
    "x.new_tensor(1, requires_grad=True).requires_grad": True,
    "x.is_inference()": False,
    "R.is_inference(x)": False,
    "R.is_nonzero(R.tensor([2.0]))": True,
    "R.tensor(0).is_nonzero()": False,
    "R.get_default_dtype() == R.float32": True,
    "R.diff(x, n=0, prepend=x[:, :1])[0]": [3.0, 1.0, 2.0, 2.5],
    "R.logspace(0, 1.2, 2, dtype=R.int64)": [1, 10],
    "R.cdist(x, x[:1], 1.0, 'use_mm_for_euclid_dist')": [[0.0], [11.0]],
    "x.diff(dim=0)": [[-2.5, -2.0, 2.0, 4.5]],
    "R.diff(i, prepend=i[:1], append=i[:1])": [0, -2, 6, -1, -7, 4],
    "(x > 1).diff()": [[True, True, False], [False, True, False]],
    "x.rot90(1, (0, 1))": [[2.5, 7.0], [2.0, 4.0], [1.0, -1.0], [3.0, 0.5]],
    "R.logspace(0, 3, 4, base=2, dtype=R.int64)": [1, 2, 4, 8],
    "R.logspace(start=0, end=1, steps=2)": [1.0, 10.0],
    "R.isin(i, 9)": [False, False, True, False, False],
    "R.isin(9, i)": True,
    "R.isin(i, R.tensor([9.0, 1.0]), invert=True)": [True, True, False, True, False],
    "R.tensordot(x, x)": 86.5,
    "R.tensordot(x, x[:1], dims=([0], [0]))[0]": [10.5, 3.5, 7.0, 8.75],
    "R.tensordot(x, R.ones(2), dims=0).shape[-1]": 2,
    "[each.item() for each in R.var_mean(x[0])]": [0.7291666865348816, 2.125],
    "R.var_mean(x, dim=1, unbiased=False)[1]": [2.125, 2.625],
    "R.std_mean(x, 1, keepdim=True)[1]": [[2.125], [2.625]],
    "R.median(x)": 2.0,
    "x.median(1).values": [2.0, 0.5],
    "R.median(x, dim=1, keepdim=True).indices": [[2], [0]],
    "R.median(R.tensor([1.0, float('nan'), 3.0]), 0).indices": 1,
    "x.quantile(0.5)": 2.25,
    "R.quantile(x, R.tensor([0.0, 1.0]), dim=1)": [[1.0, -1.0], [3.0, 7.0]],
    "x.quantile(0.6, 1, interpolation='nearest')": [2.5, 4.0],
    "R.quantile(x, 0.25, keepdim=True).shape[1]": 1,
    "i.cummax(0).values": [5, 5, 9, 9, 9],
    "R.cummin(i, dim=0).indices": [0, 1, 1, 1, 4],
    "R.cdist(x, x)[0, 1] > 0": True,
    "R.cdist(x, x, p=1.0)": [[0.0, 11.0], [11.0, 0.0]],
    "R.cdist(x[:, :0], x[:, :0], float('inf'))": [[0.0, 0.0], [0.0, 0.0]],
    "i << 2": [20, 12, 36, 32, 4],
    "1 << i": [32, 8, 512, 256, 2],
    "100 >> i": [3, 12, 0, 0, 50],
    "s << 1": [0, -6, 10, -2],
    "s >> 7": [-1, -1, 0, 0],
    "s >> 100": [-1, -1, 0, 0],
    "s << R.tensor(-1)": [0, 0, 0, 0],
    "i.__irshift__(1)": [2, 1, 4, 4, 0],
    "(i << i).dtype == R.int64": True,
    "R.tensordot(R.ones(2, 1).int(), R.ones(3, 2).int(), ([1], [0]))": [[3, 3], [3, 3]],
    "R.isnan(R.median(R.ones(0)))": True,
}
REFUSED = (
    *("R.diff(R.tensor(1.0))", "x.diff(n=-1)", "x.rot90(1, (0, 0))", "i.rot90()"),
    *("R.logspace(0, 1, -1)", "R.tensordot(x, x, 3)", "R.tensordot(x, x, 1)"),
    *("R.median(x[:0], 0)", "R.median(x > 1)", "x.quantile(1.5)", "i.quantile(0.5)"),
    *("x.quantile(0.5, interpolation='none')", "x.quantile(R.tensor([[0.5]]))"),
    *("x << 1", "i >> 1.5", "R.cdist(x, x[:, :2])", "R.cdist(x, x, -1.0)"),
    *("R.isin(x > 1, x > 1)", "x.is_nonzero()", "R.randint(size=(2,))"),
    *("R.ones((2,), size=(2,))", "x.cummax()"),
)


def called(side: Any, text: str) -> Any:
    """The result of a call as lists and numbers."""
    tensors = {
        "x": side.tensor(X),
        "i": side.tensor(I),
        "s": side.tensor(SMALL, dtype=side.int8),
    }
    result = eval(text, {"R": side, **tensors})  # the calls are those above
    return result.tolist() if isinstance(result, side.Tensor) else result


@pytest.mark.parametrize("text", CALLS)
def test_a_call(text: str) -> None:
    assert called(m, text) == CALLS[text]


@pytest.mark.parametrize("text", REFUSED)
def test_a_refusal(text: str) -> None:
    with pytest.raises(EveryorderError):
        called(m, text)


@pytest.mark.torch
@pytest.mark.parametrize("text", [*CALLS, *REFUSED])
def test_torch_does_the_same(text: str) -> None:
    torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
    if text in CALLS:
        assert called(torch, text) == CALLS[text]
    else:
        with pytest.raises((RuntimeError, TypeError, IndexError)):
            called(torch, text)


def test_tensors_of_inference_mode_say_so() -> None:
    with m.inference_mode():
        inside = m.ones(2)
        assert inside.is_inference()
    assert inside.is_inference()
    assert not m.is_inference(inside.clone())


def test_equal_elements_share_the_gradient_of_a_median() -> None:
    x = m.tensor([2.0, 1.0, 2.0, 9.0], requires_grad=True)
    m.median(x).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.5, 0.0, 0.5, 0.0]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([-m.inf, 1.0, -m.inf, 2.0], [0.5, 0.0, 0.5, 0.0]),
        ([m.inf, 1.0, m.inf], [0.5, 0.0, 0.5]),
        ([m.nan, 1.0, 2.0], [1.0, 0.0, 0.0]),
        ([-m.inf], [1.0]),
    ],
)
def test_infinite_elements_share_the_gradient_of_a_median(
    values: list[float], wanted: list[float]
) -> None:
    x = m.tensor(values, requires_grad=True)
    m.median(x).backward()
    assert x.grad is not None
    assert x.grad.tolist() == wanted


def peak(call: Any) -> int:
    """The most memory that a call takes, in bytes."""
    call()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_pairs_of_elements_are_not_stored() -> None:
    line = m.arange(8000)
    # One byte for each pair would be 64 MB.
    assert peak(lambda: m.isin(line, line + 4000)) < 8_000_000
    rows = m.randn(400, 300)
    # Their differences would be 192 MB.
    assert peak(lambda: m.cdist(rows, rows)) < 100_000_000


def test_distances_are_those_of_all_rows_at_once() -> None:
    x, y = m.randn(2, 900, 6), m.randn(1, 1000, 6)
    found = m.cdist(x, y, 1.0)
    assert found.shape == (2, 900, 1000)
    every = (x.unsqueeze(-2) - y.unsqueeze(-3)).abs().sum(-1)
    assert m.allclose(found, every, 1e-5, 1e-5)
    leaf = x.requires_grad_()
    m.cdist(leaf, y, 1.0).sum().backward()
    assert leaf.grad is not None
    signs = (x.detach().unsqueeze(-2) - y.unsqueeze(-3)).sign().sum(-2)
    assert m.allclose(leaf.grad, signs)
    assert m.cdist(x[:, :0], y).shape == (2, 0, 1000)


def test_what_is_among_the_elements() -> None:
    nan = m.tensor([m.nan, 1.0, -0.0])
    assert m.isin(nan, nan).tolist() == [False, True, True]
    assert m.isin(nan, m.ones(0)).tolist() == [False] * 3
    assert m.isin(m.ones(0), nan).shape == (0,)
    whole = m.tensor([[2**53 + 1, 3]])
    assert m.isin(whole, m.tensor([2**53, 3])).tolist() == [[False, True]]
    assert m.isin(m.tensor([1.5, 2.0]), m.tensor([2, 3])).tolist() == [False, True]


def test_products_are_computed_in_the_dtype_of_out() -> None:
    half = m.full((5,), 1.001, dtype="float16")
    wide = m.empty(5)
    assert m.cumprod(half, 0, out=wide) is wide
    assert wide.tolist() == m.cumprod(half.float(), 0).tolist()
    assert wide.tolist() != m.cumprod(half, 0).tolist()
    large = m.full((2,), 2**40)
    assert m.cumprod(large, 0, out=m.empty(2)).tolist() == [2.0**40, 2.0**80]
    assert m.cumprod(large, 0, out=m.empty(2, dtype="int32")).tolist() == [0, 0]


def test_a_fraction_has_a_gradient() -> None:
    q = m.tensor(0.5, requires_grad=True)
    m.quantile(m.tensor([0.0, 1.0, 4.0, 9.0]), q).backward()
    assert q.grad is not None
    assert q.grad.item() == pytest.approx(9.0)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("R.diff(x, 2)", (2, 2)),
        ("R.rot90(x)", (4, 2)),
        ("R.median(x, 1).values", (2,)),
        ("R.quantile(x, 0.5, 1)", (2,)),
        ("R.cummax(x, 1).indices", (2, 4)),
        ("R.cdist(x, x)", (2, 2)),
        ("R.tensordot(x, x, ([1], [1]))", (2, 2)),
        ("R.var_mean(x, 0)[0]", (4,)),
        ("R.isin(x, x)", (2, 4)),
        ("R.logspace(0, 1, 5, device='meta')", (5,)),
    ],
)
def test_meta_tensors_have_the_shapes(text: str, shape: tuple[int, ...]) -> None:
    x = m.ones(2, 4, device="meta")
    found = eval(text, {"R": m, "x": x})  # the calls are those above
    assert (found.shape, found.device.type) == (shape, "meta")
