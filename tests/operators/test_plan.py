"""Plans: on which device a call is, which dimension and which dtype it means."""

import pytest

from runtime.errors.operands import DevicesDiffer, DimensionOutOfRange, DTypeRefused
from runtime.operators import core
from runtime.operators.plan import (
    FLOAT32,
    INT64,
    common_device,
    dtypes,
    many_dims,
    one_dim,
    require_dtype,
    same_device,
)
from runtime.schema.codes import Device
from tests.coded import code
from tests.operators.made import META, tensor


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
        "`f` needs its tensors on one device, but they lie on cpu and meta.\n"
        "  fits:  one device for all; a CPU tensor without dimensions goes along\n"
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
    with pytest.raises(DimensionOutOfRange) as caught:
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
