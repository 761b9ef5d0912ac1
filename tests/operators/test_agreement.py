"""What operands have to agree in, and how it is said where they do not."""

from typing import Any

import pytest

from runtime.errors.operands import DTypeRefused, ShapesDoNotFit
from runtime.operators.plan import (
    FLOAT32,
    FLOATS,
    computing,
    index_dtype,
    one_dtype,
    require_ndim,
    require_shape,
)
from runtime.schema.codes import DType
from tests.operators.made import tensor


def test_one_dtype_of_those_that_are_given() -> None:
    x, y = tensor([1.0]), tensor([2.0])
    assert one_dtype(FLOATS, "floats", ("x", x), ("y", None), ("z", y)) is FLOAT32


@pytest.mark.parametrize(
    ("dtypes", "fields"),
    [
        (("int64", "int64"), {"argument": "x", "dtype": "int64", "fits": "floats"}),
        (
            ("float32", "float64"),
            {"argument": "y", "dtype": "float64", "fits": "float32, the dtype of x"},
        ),
    ],
)
def test_another_dtype_is_refused(dtypes: Any, fields: dict[str, str]) -> None:
    x, y = (tensor([1], dtype) for dtype in dtypes)
    with pytest.raises(DTypeRefused) as caught:
        one_dtype(FLOATS, "floats", ("x", x), ("y", y))
    assert caught.value.fields() == {"operator": "", **fields}


def test_indices_are_int64() -> None:
    index_dtype("index", tensor([0], "int64"))
    with pytest.raises(DTypeRefused) as caught:
        index_dtype("index", tensor([0], "int32"))
    assert caught.value.fits == "int64"


def test_sixteen_bits_are_computed_in_more() -> None:
    assert computing(DType.named("bfloat16")) is FLOAT32
    assert computing(FLOAT32) is None


def test_dimensions_and_shapes() -> None:
    x = tensor([[1.0, 2.0]])
    require_ndim(("x", x), 2, 3)
    require_shape(("x", x), (1, 2))
    require_ndim(("x", None), 7)
    require_shape(("x", None), (7,))
    with pytest.raises(ShapesDoNotFit) as ndim:
        require_ndim(("x", x), 0, 1)
    with pytest.raises(ShapesDoNotFit) as shape:
        require_shape(("x", x), (2, 1))
    given = {"operator": "", "shapes": (("x", (1, 2)),)}
    assert ndim.value.fields() == {
        **given,
        "reason": "x has 2 dimensions",
        "fits": "0 or 1 dimensions",
    }
    assert shape.value.fields() == {
        **given,
        "reason": "x has another shape than asked",
        "fits": "shape (2, 1)",
    }
