"""What planning functions share: devices, dimensions, dtypes, shapes, numbers."""

from typing import Any

import pytest

from everyorder.runtime.errors.tensor import (
    DevicesDiffer,
    DTypeRefused,
    IndexOutOfRange,
    ShapesDoNotFit,
    WrongOption,
)
from everyorder.runtime.operators import core
from everyorder.runtime.operators.declare.plan import (
    FLOAT32,
    FLOATS,
    INT64,
    check_fill,
    common_device,
    computing,
    default_dtype,
    dtypes,
    index_dtype,
    many_dims,
    number_for,
    number_of,
    one_dim,
    one_dtype,
    require_dtype,
    require_ndim,
    require_shape,
    same_device,
)
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.tensors.construction import wrap_number
from tests.coded import code
from tests.operators.tensors import META, tensor


def test_devices_go_together_or_not() -> None:
    point, line = tensor(1.0), tensor([1.0])
    meta_point = core.empty([], device=META)
    assert common_device(None, point) is Device("cpu")
    assert common_device(point, meta_point) is META
    assert common_device() is Device("cpu")
    assert same_device(None, line, point, call="f") is Device("cpu")
    assert same_device() is Device("cpu")
    with pytest.raises(DevicesDiffer, check=code("DevicesDiffer")):
        common_device(meta_point, line)
    with pytest.raises(DevicesDiffer) as caught:
        same_device(point, meta_point, call="f")
    assert str(caught.value) == (
        "`f` needs its tensors on one device, but they are on cpu and meta.\n"
        "  fits:  one device for all; a CPU tensor without dimensions fits any\n"
        "  to do: move them with `.to(device)`"
    )


def test_dimensions_are_counted_from_the_front() -> None:
    assert [one_dim(dim, (2, 3)) for dim in (0, 1, -1, -2)] == [0, 1, 1, 0]
    assert one_dim(-1, ()) == one_dim(0, ()) == 0
    assert many_dims([-1, 0], (2, 3, 4)) == (0, 2)
    assert many_dims(None, (2, 3)) == many_dims([], (2, 3)) == (0, 1)
    assert many_dims([0], ()) == ()


@pytest.mark.parametrize(
    ("dims", "dim", "repeated"), [([2], 2, False), ([0, -2], -2, True)]
)
def test_a_dimension_that_is_not_there_or_named_twice(
    dims: list[int], dim: int, repeated: bool
) -> None:
    with pytest.raises(IndexOutOfRange) as caught:
        many_dims(dims, (2, 3))
    assert caught.value.fields() == {
        "operator": "",
        "dim": dim,
        "shape": (2, 3),
        "repeated": repeated,
    }


def test_dtypes_by_name() -> None:
    floats = dtypes("float32", "float64")
    require_dtype("x", FLOAT32, floats, "floats")
    with pytest.raises(DTypeRefused) as caught:
        require_dtype("x", INT64, floats, "floats")
    assert caught.value.fields() == {
        "operator": "",
        "argument": "x",
        "dtype": "int64",
        "fits": "floats",
    }


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


@pytest.mark.parametrize(
    ("number", "dtype", "expected"),
    [
        (300, "uint8", 44),
        (-1, "uint8", 255),
        (128, "int8", -128),
        (2.9, "int64", 2),
        (2, "bool", True),
        (2, "bfloat16", 2.0),
        (True, "complex64", 1 + 0j),
    ],
)
def test_numbers_of_a_dtype(number: Any, dtype: str, expected: Any) -> None:
    found = number_for(number, DType.named(dtype))
    assert (found, type(found)) == (expected, type(expected))


def test_which_tensors_stand_for_a_number() -> None:
    cpu, meta, other = Device("cpu"), Device("meta"), Device("privateuseone")
    assert number_of(wrap_number(2), cpu) == 2
    assert number_of(tensor(3.0), other) == 3.0
    assert number_of(tensor(3.0), cpu) is None
    assert number_of(tensor(3.0), meta) is None
    assert number_of(tensor([3.0]), other) is None


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (2.9, "int8"),
        (-128, "int8"),
        (255, "uint8"),
        (float("nan"), "float32"),
        (1e300, "float32"),
        (7, "bool"),
        (1j, "complex64"),
    ],
)
def test_numbers_that_fit(value: Any, dtype: str) -> None:
    check_fill(value, DType.named(dtype))


@pytest.mark.parametrize(
    ("value", "dtype", "fits"),
    [
        (1j, "float32", "a real number, as the elements are float32"),
        (1j, "bool", "a real number, as the elements are bool"),
        (1j, "int8", "a real number, as the elements are int8"),
        (128, "int8", "-128 to 127, as the elements are int8"),
        (-1, "uint8", "0 to 255, as the elements are uint8"),
        (float("inf"), "int8", "-128 to 127, as the elements are int8"),
    ],
)
def test_numbers_that_do_not(value: Any, dtype: str, fits: str) -> None:
    with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
        check_fill(value, DType.named(dtype), "fill_value")
    assert caught.value.fields() == {
        "operator": "",
        "argument": "fill_value",
        "found": repr(value),
        "fits": fits,
    }


def test_the_dtype_of_a_number() -> None:
    found = [default_dtype(value).name for value in (True, 1, 1.0, 1j)]
    assert found == ["bool", "int64", "float32", "complex64"]
