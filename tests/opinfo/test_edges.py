"""Where operators and their gradients are easily wrong: zeros, NaN, overlaps, length.

Expected values are those of torch 2.13 and of NumPy, written out.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from everyorder.runtime import Tensor, tensor
from everyorder.runtime.tensors.construction import from_numpy
from tests.opinfo.info import handle

INF, NAN = float("inf"), float("nan")


def leaf(values: Any) -> Tensor:
    return tensor(values, dtype="float64", requires_grad=True)


def gradient(function: Callable[[Tensor], Tensor], values: Any) -> Any:
    x = leaf(values)
    handle("sum")(function(x)).backward()
    assert x.grad is not None
    return x.grad.numpy()


GRADIENTS: dict[str, tuple[Callable[[Tensor], Tensor], Any, Any]] = {
    "relu lets NaN through": (handle("relu"), [NAN, 1.0, -1.0, 0.0], [1, 1, 0, 0]),
    "clamp": (lambda x: handle("clamp")(x, 0, 1), [0.0, 1.0, 2.0, NAN], [1, 1, 0, 0]),
    "clamp from below": (lambda x: handle("clamp")(x, 0), [NAN, -1.0, 0.0], [0, 0, 1]),
    "clamp by NaN": (
        lambda x: handle("clamp.Tensor")(x, None, tensor([NAN, 1.0], dtype="float64")),
        [0.0, 0.0],
        [0, 1],
    ),
    "std of equals": (handle("std"), [1.0, 1.0, 1.0], [0, 0, 0]),
    "std of one": (handle("std"), [1.0], [NAN]),
    "max of NaN": (handle("max"), [1.0, NAN], [0, 1]),
    "atan2 at the origin": (
        lambda x: handle("atan2")(x, tensor([0.0, 1.0], dtype="float64")),
        [0.0, 0.0],
        [0, 1],
    ),
    "min of two NaN": (handle("min"), [1.0, NAN, NAN], [0, 0.5, 0.5]),
    "root of minus zero": (lambda x: handle("pow")(x, 0.5), [-0.0, 0.0], [-INF, INF]),
    "sqrt of zero": (handle("sqrt"), [0.0, 4.0], [INF, 0.25]),
    "powers of zero": (lambda x: handle("pow")(x, 0), [0.0, NAN], [0, 0]),
    "product with a zero": (handle("prod"), [0.0, 2.0, 3.0], [6, 0, 0]),
    "equal maxima": (handle("max"), [2.0, 2.0, 1.0], [0.5, 0.5, 0]),
    "softmax of -inf": (lambda x: handle("softmax")(x, 0), [-INF, 0.0], [0, 0]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_at_edges(name: str) -> None:
    function, values, expected = GRADIENTS[name]
    np.testing.assert_array_equal(gradient(function, values), expected)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("zero", [0, 0.0, 0j, "tensor", "strided"])
def test_complex_numbers_divided_by_zero(dtype: str, zero: Any) -> None:
    """Infinities and NaN, as with real numbers; never an exception."""
    x = tensor([1 + 2j, 0j, -1 + 0j], dtype=dtype)
    if zero == "tensor":
        zero = tensor([0j] * 3, dtype=dtype)
    elif zero == "strided":
        zero = from_numpy(np.zeros(6, dtype)[::2])
    found = handle("div")(x, zero).numpy()
    assert not np.isfinite(found).any()
    assert np.isnan(found[1])


@pytest.mark.parametrize("name", ["reciprocal", "rsqrt"])
def test_complex_zero_has_no_reciprocal(name: str) -> None:
    found = handle(name)(tensor([0j, 1 + 0j], dtype="complex64")).numpy()
    assert not np.isfinite(found[0])
    assert found[1] == 1


def test_complex_zero_to_a_negative_power() -> None:
    found = handle("pow")(tensor([0j, 1 + 0j], dtype="complex64"), -1).numpy()
    assert not np.isfinite(found[0])
    assert found[1] == 1


def test_targets_that_overlap_their_sources() -> None:
    """As if the source had been copied first."""
    x = np.arange(9.0)
    for name, expected in (("copy_", x[:-1]), ("add_", x[1:] + x[:-1])):
        whole = from_numpy(x.copy())
        handle(name)(whole[1:], whole[:-1])
        np.testing.assert_array_equal(whole.numpy()[1:], expected, name)
    square = from_numpy(x.reshape(3, 3).copy())
    handle("copy_")(square, square.T)
    np.testing.assert_array_equal(square.numpy(), x.reshape(3, 3).T)
    put = from_numpy(x.copy())
    handle("index_put_")(put, [tensor([0, 1, 2])], put[1:4])
    np.testing.assert_array_equal(put.numpy()[:4], [1, 2, 3, 3])
    turned = from_numpy(x[:4].copy())
    handle("scatter_")(turned, 0, tensor([1, 2, 3, 0]), turned)
    np.testing.assert_array_equal(turned.numpy(), [3, 0, 1, 2])


# Above the size from which kernels work on several threads.
LARGE = np.random.default_rng(5).standard_normal((301, 701))


@pytest.mark.parametrize("turned", [False, True])
def test_large_tensors(turned: bool) -> None:
    """Parts of one tensor computed by several threads fit together."""
    values = LARGE.T if turned else LARGE
    x = from_numpy(LARGE.copy())
    x = x.T if turned else x
    references: dict[str, tuple[tuple[Any, ...], Any]] = {
        "exp": ((), np.exp(values)),
        "tanh": ((), np.tanh(values)),
        "square": ((), values**2),
        "add": ((x,), values * 2),
        "sum": (([0],), values.sum(0)),
        "mean": (([1],), values.mean(1)),
        "amax": (([1],), values.max(1)),
        "var": (([0],), values.var(0, ddof=1)),
        "argmin": ((0,), values.argmin(0)),
        "cumsum": ((1,), values.cumsum(1)),
        "flip": (([0],), values[::-1]),
        "index_select": ((0, tensor([300, 5])), values[[300, 5]]),
        "transpose": ((0, 1), values.T),
    }
    for name, (more, expected) in references.items():
        found = handle(name)(x, *more).numpy()
        np.testing.assert_allclose(found, expected, 1e-9, 1e-9, err_msg=name)
    for dim in (0, 1):
        rows = np.exp(values - values.max(dim, keepdims=True))
        expected = rows / rows.sum(dim, keepdims=True)
        found = handle("softmax")(x, dim).numpy()
        np.testing.assert_allclose(found, expected, 1e-9, err_msg=f"softmax {dim}")
        ordered = handle("sort")(x, dim)[0].numpy()
        np.testing.assert_array_equal(ordered, np.sort(values, dim))
