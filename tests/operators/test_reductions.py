"""Reductions: dtypes as torch 2.13 gives them, values as NumPy's, and refusals."""

from typing import Any

import numpy as np
import pytest

from runtime.errors.operands import DimensionOutOfRange, DTypeRefused, TargetRefused
from runtime.keys import DispatchKey, KeySet
from runtime.operators import core
from tests.coded import code
from tests.operators.made import LETTERS, META, letter_of, made, shown, tensor

# Letter of the result for each of LETTERS.  Source: torch 2.13.
RESULTS = {
    "sum": "llllhgfdc",
    "prod": "llllhgfdc",
    "mean": "----hgfdc",
    "var": "----hgfdf",
    "std": "----hgfdf",
    "amax": "builhgfd-",
    "amin": "builhgfd-",
    "any": "bubbbbbbb",
    "all": "bubbbbbbb",
    "argmax": "-lllllll-",
    "argmin": "-lllllll-",
    "cumsum": "llllhgfdc",
}
REFERENCE: dict[str, Any] = {
    "sum": np.sum,
    "prod": np.prod,
    "mean": np.mean,
    "var": lambda x, axis: np.var(x, axis, ddof=1),
    "std": lambda x, axis: np.std(x, axis, ddof=1),
    "amax": np.max,
    "amin": np.min,
    "any": np.any,
    "all": np.all,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "cumsum": np.cumsum,
}
TOLERANCE = {"g": 1e-2, "f": 1e-6}
DIMS = ["sum", "prod", "mean", "var", "std", "amax", "amin", "any", "all"]
VALUES = np.array([[[3, 1, 2, 5], [0, 7, 1, 2], [4, 4, 1, 1]], [[1, 2, 3, 4]] * 3])


@pytest.mark.parametrize("name", RESULTS)
def test_dtypes(name: str) -> None:
    found, refused = "", set()
    for dtype in LETTERS.values():
        x = core.empty([2, 3], dtype=dtype, device=META)
        try:
            y = getattr(core, name)(x, 1)
        except DTypeRefused as error:
            refused.add((error.operator, error.dtype == dtype.name))
            found += "-"
        else:
            assert y.shape == ((2, 3) if name == "cumsum" else (2,))
            found += letter_of(y)
    assert found == RESULTS[name]
    # The deviation is made of the variance, which refuses.
    assert refused <= {(f"core::{name}", True)}


# One kind each: every kernel is compiled, every way is taken, few are compiled twice.
@pytest.mark.parametrize("letter", "lgf")
@pytest.mark.parametrize("name", RESULTS)
def test_values(name: str, letter: str) -> None:
    x = made(letter, VALUES)
    if RESULTS[name][list(LETTERS).index(letter)] == "-":
        with pytest.raises(DTypeRefused):
            getattr(core, name)(x, 1)
        return
    y = getattr(core, name)(x, 1)
    assert letter_of(y) == RESULTS[name][list(LETTERS).index(letter)]
    given = x.numpy()
    given = given.astype("float64") if y.dtype.is_floating else given
    expected = REFERENCE[name](given, 1)
    rtol = TOLERANCE.get(letter_of(y), 0)
    np.testing.assert_allclose(y.numpy().astype(expected.dtype), expected, rtol=rtol)


@pytest.mark.parametrize("name", DIMS)
@pytest.mark.parametrize("dims", [None, [], [0], [-1], [2, 0], [0, 1, 2]])
@pytest.mark.parametrize("keepdim", [False, True])
def test_dims_and_keepdim(name: str, dims: list[int] | None, keepdim: bool) -> None:
    x = tensor(VALUES, "float64")
    options = {"correction": 1} if name in ("var", "std") else {}
    if dims is None and name in ("amax", "amin"):
        dims = []
    found = getattr(core, name)(x, dims, keepdim=keepdim, **options)
    axis = tuple(dims) if dims else None
    expected = REFERENCE[name](VALUES.astype("float64"), axis)
    np.testing.assert_allclose(found.numpy().reshape(np.shape(expected)), expected)
    kept = [
        1 if axis is None or at in {a % 3 for a in axis} else size
        for at, size in enumerate(VALUES.shape)
    ]
    if keepdim:
        assert found.shape == tuple(kept)
    out = core.empty([0], dtype=found.dtype)
    getattr(core, f"{name}_out")(x, dims, keepdim=keepdim, **options, out=out)
    assert shown(out) == shown(found)


@pytest.mark.parametrize("name", RESULTS)
def test_a_number_reduces_to_itself(name: str) -> None:
    x = tensor(3.0)
    dims: tuple[int, ...] = (0,) if name == "cumsum" else ()
    expected = {"argmax": 0, "argmin": 0, "any": True, "all": True}.get(name, 3.0)
    found = getattr(core, name)(x, *dims)
    assert found.shape == ()
    if name in ("var", "std"):
        assert np.isnan(found.item())
    else:
        assert found.item() == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [("sum", 0.0), ("prod", 1.0), ("any", False), ("all", True)],
)
def test_nothing_reduces_to_the_identity(name: str, value: Any) -> None:
    x = tensor(np.ones((2, 0)))
    assert getattr(core, name)(x).item() == value
    assert getattr(core, name)(x, 1).numpy().tolist() == [value] * 2
    assert getattr(core, name)(x, 0).shape == (0,)


@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_a_mean_of_nothing_is_not_a_number(name: str) -> None:
    found = getattr(core, name)(tensor(np.ones((2, 0))), 1)
    assert np.isnan(found.numpy()).tolist() == [True, True]


@pytest.mark.parametrize("name", ["amax", "amin", "argmax", "argmin"])
def test_nothing_has_no_extreme(name: str) -> None:
    x = tensor(np.ones((2, 0)))
    with pytest.raises(DimensionOutOfRange, check=code("NothingToReduce")) as caught:
        getattr(core, name)(x, 1)
    assert caught.value.fields() == {
        "operator": f"core::{name}",
        "shape": (2, 0),
        "dims": (1,),
    }
    assert str(caught.value).endswith("\n  fits: dimensions whose sizes are not 0")
    with pytest.raises(DimensionOutOfRange, check=code("NothingToReduce")):
        getattr(core, name)(x)
    assert getattr(core, name)(x, 0).shape == (0,)


@pytest.mark.parametrize(("dim", "repeated"), [([3], False), ([0, -3], True)])
def test_dimensions_that_are_not_there(dim: list[int], repeated: bool) -> None:
    with pytest.raises(DimensionOutOfRange) as caught:
        core.sum(tensor(VALUES), dim)
    assert caught.value.fields() == {
        "operator": "core::sum",
        "dim": dim[-1],
        "shape": (2, 3, 4),
        "repeated": repeated,
    }
    assert str(caught.value).endswith("fits: -3 to 2, each once")


def test_dtype_converts_first() -> None:
    whole = LETTERS["l"]
    assert shown(core.sum(tensor([1.7, 2.6]), dtype=whole)) == ("int64", 3)
    double = LETTERS["d"]
    assert shown(core.mean(tensor([1, 2], "int64"), dtype=double)) == ("float64", 1.5)
    assert shown(core.cumsum(tensor([1, 2]), 0, dtype=whole)) == ("int64", [1, 3])
    half = core.sum(tensor([1.0] * 5000, "float16"))
    assert shown(half) == ("float16", 5000.0)
    with pytest.raises(DTypeRefused) as caught:
        core.mean(tensor([1, 2], "int64"))
    assert caught.value.fits == "floating-point and complex dtypes; `dtype=` converts"


def test_correction_of_the_variance() -> None:
    x = tensor([1.0, 2.0, 4.0], "float64")
    values = x.numpy()
    for correction in (0, 1, 2, 0.5):
        found = core.var(x, correction=correction).item()
        assert found == pytest.approx(np.var(values, ddof=correction))
        root = core.std(x, correction=correction).item()
        assert root == pytest.approx(np.std(values, ddof=correction))


def test_the_deviation_where_the_backend_has_none() -> None:
    """The composite: the root of the variance, refused by its own name."""
    x = tensor([[1.0, 2.0, 4.0], [0.0, 0.0, 3.0]], "float64")
    other = KeySet([DispatchKey.PrivateUse1])
    found = core.std.redispatch(other, x, [1], correction=0, keepdim=True)
    assert found.tolist() == core.std(x, [1], correction=0, keepdim=True).tolist()
    with pytest.raises(DTypeRefused) as caught:
        core.std.redispatch(other, tensor([1, 2], "int64"))
    assert caught.value.operator == "core::std"


def test_variance_of_complex_numbers_is_real() -> None:
    values = np.array([[1 + 2j, 3 - 1j, 0], [2, 2j, 1 + 1j]], "complex64")
    for dims, x, given in (
        ([1], tensor(values, "complex64"), values),
        ([0], core.transpose(tensor(values, "complex64"), 0, 1), values.T),
    ):
        found = core.var(x, dims)
        assert found.dtype.name == "float32"
        expected = np.var(given, axis=dims[0], ddof=1)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
        root = core.std_out(x, dims, out=core.empty([0]))
        np.testing.assert_allclose(root.numpy(), np.sqrt(expected), rtol=1e-6)


def test_extremes_and_their_places() -> None:
    x = tensor([[1.0, np.nan, 3.0], [5.0, 2.0, 5.0]])
    assert np.isnan(core.max(x).item())
    assert core.amax(x, 1).numpy()[1] == 5.0
    values, indices = core.max_dim(x, 1)
    np.testing.assert_equal(values.numpy(), [np.nan, 5.0])
    assert shown(indices) == ("int64", [1, 0])
    values, indices = core.min_dim(x, 0, True)
    np.testing.assert_equal(values.numpy(), [[1.0, np.nan, 3.0]])
    assert shown(indices) == ("int64", [[0, 0, 0]])
    truths = tensor([[False, True, True]], "bool")
    assert [shown(each) for each in core.max_dim(truths, 1)] == [
        ("bool", [True]),
        ("int64", [1]),
    ]
    assert [each.item() for each in core.max_dim(tensor(3.0), -1)] == [3.0, 0]
    assert core.argmax(x, 1).numpy().tolist() == [1, 0]
    assert core.argmin(x, 1, True).numpy().tolist() == [[1], [1]]
    assert core.argmax(x).item() == 1
    assert core.argmax(x, keepdim=True).shape == (1, 1)
    assert core.argmin(tensor([3, 1, 1], "int64")).item() == 1


def test_any_and_all() -> None:
    x = tensor([[0, 1], [0, 0]], "uint8")
    assert shown(core.any(x, 1)) == ("uint8", [1, 0])
    assert shown(core.all(x)) == ("uint8", 0)
    assert shown(core.any(tensor([0.0, np.nan]))) == ("bool", True)
    assert shown(core.all(tensor([2, 3], "uint8"), 0)) == ("uint8", 1)


def test_out_of_another_shape_is_refused() -> None:
    out = core.empty([3])
    with pytest.raises(TargetRefused, check=code("TargetShape")) as caught:
        core.sum_out(tensor(VALUES), [0, 1], out=out)
    assert str(caught.value) == (
        "`core::sum.out` computes shape (4,), which cannot be written to `out` of "
        "shape\n(3,).\n"
        "  fits: shape (4,), or a tensor without elements, which is resized"
    )


def test_strided_inputs() -> None:
    x = core.transpose(tensor(VALUES, "float64"), 0, 2)
    turned = VALUES.transpose(2, 1, 0).astype("float64")
    np.testing.assert_allclose(core.sum(x, [1]).numpy(), turned.sum(1))
    np.testing.assert_allclose(core.cumsum(x, 0).numpy(), turned.cumsum(0))
