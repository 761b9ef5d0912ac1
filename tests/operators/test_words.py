"""Words: arrays, dtypes and NumPy's names where a schema asks for something else."""

# What a type checker refuses is called here on purpose.
# mypy: disable-error-code="arg-type, call-arg, call-overload, misc"

from typing import Any

import numpy as np
import pytest

import runtime
from runtime.errors.call import CallError
from runtime.errors.registration import UnknownDevice
from runtime.errors.tensor import NotShareable, UnfitValue
from runtime.schema.codes import DType
from runtime.tensors import tensor
from runtime.tensors.tensor import Tensor
from tests.coded import code
from tests.operators.told import told

ARRAY = np.array([3.0, 2.0, 1.0], np.float32)


def base() -> Tensor:
    return tensor([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x + n", [4.0, 4.0, 4.0]),
        ("n + x", [4.0, 4.0, 4.0]),
        ("n - x", [2.0, 0.0, -2.0]),
        ("x - n", [-2.0, 0.0, 2.0]),
        ("n ** x", [3.0, 4.0, 1.0]),
        ("x == n", [False, True, False]),
        ("n == x", [False, True, False]),
        ("n < x", [False, False, True]),
        ("x @ n", 10.0),
        ("n @ x", 10.0),
        ("x.add(n)", [4.0, 4.0, 4.0]),
        ("x.add(n, alpha=2)", [7.0, 6.0, 5.0]),
        ("x.add_(n)", [4.0, 4.0, 4.0]),
        ("x.copy_(n)", [3.0, 2.0, 1.0]),
        ("R.maximum(x, n)", [3.0, 2.0, 3.0]),
        ("R.exp(n * 0)", [1.0, 1.0, 1.0]),
        ("R.cat([x, n])", [1.0, 2.0, 3.0, 3.0, 2.0, 1.0]),
        ("x + n[::-1]", [2.0, 4.0, 6.0]),
        ("x.add(np.float32(2))", [3.0, 4.0, 5.0]),
        ("np.float64(2) * x", [2.0, 4.0, 6.0]),
        ("x * np.array(2.0)", [2.0, 4.0, 6.0]),
        ("np.sum(x)", 6.0),
        ("np.mean(x)", 2.0),
        ("np.max(x)", 3.0),
        ("np.argmax(x)", 2),
        ("np.std(x, ddof=1)", 1.0),
        ("np.cumsum(x, axis=0)", [1.0, 3.0, 6.0]),
        ("x.sum(axis=0, keepdims=True)", [6.0]),
        ("R.sum(x, axis=-1)", 6.0),
        ("R.cat([x, x], axis=0).sum()", 12.0),
        ("x.softmax(axis=0).argmax(axis=0)", 2),
        ("R.sort(x, axis=0, descending=True).values", [3.0, 2.0, 1.0]),
        ("x.topk(1, axis=0).indices", [2]),
        ("x.unsqueeze(axis=0).squeeze(axis=0)", [1.0, 2.0, 3.0]),
        ("x.flip(axis=0)", [3.0, 2.0, 1.0]),
        ("R.split(x, 2, axis=0)[1]", [3.0]),
        ("x.chunk(3, axis=0)[0]", [1.0]),
    ],
)
def test_what_becomes_of_numpys_words(text: str, expected: Any) -> None:
    found = eval(text, {"R": runtime, "np": np, "x": base(), "n": ARRAY})
    assert isinstance(found, Tensor)
    assert found.dtype in (DType.named(n) for n in ("float32", "bool", "int64"))
    assert found.tolist() == expected


def test_an_operand_shares_nothing_that_is_written_to() -> None:
    array = ARRAY.copy()
    out = base()
    out += array
    array[:] = 0
    assert out.tolist() == [4.0, 4.0, 4.0]


def test_an_array_as_out_is_written_to() -> None:
    array = np.zeros(3, np.float32)
    runtime.add(base(), 1, out=array)
    assert array.tolist() == [2.0, 3.0, 4.0]
    array.flags.writeable = False
    with pytest.raises(NotShareable, check=code("NotShareable")):
        runtime.add(base(), 1, out=array)


def test_arrays_of_tensors_remain_arrays() -> None:
    assert type(np.asarray(base())) is np.ndarray
    assert np.add(base().numpy(), 1).tolist() == [2.0, 3.0, 4.0]
    with pytest.raises(TypeError):
        np.add(base(), 1)


@pytest.mark.parametrize("other", [[1, 1, 1], (1, 1, 1)])
def test_comparing_with_a_list_is_refused(other: Any) -> None:
    with pytest.raises(UnfitValue) as caught:
        base() == other  # noqa: B015  # raises
    kind = type(other).__name__
    assert told(caught.value) == (
        f"`Tensor.__eq__` takes a tensor, a number or an array, but was given a {kind}."
        " to do: runtime.tensor(...) of it, or `.tolist()` of the tensor"
    )
    with pytest.raises(TypeError):
        base() + other


@pytest.mark.parametrize(
    ("written", "name"),
    [
        (DType.named("float16"), "float16"),
        ("double", "float64"),
        (np.dtype("int8"), "int8"),
        (np.dtype(">i4"), "int32"),
        (np.float32, "float32"),
        (np.bool_, "bool"),
        (float, "float64"),
        (int, "int64"),
        (bool, "bool"),
        (complex, "complex128"),
    ],
)
def test_a_dtype_in_every_way_to_write_it(written: Any, name: str) -> None:
    wanted = DType.named(name)
    assert tensor([1], dtype=written).dtype is wanted
    assert runtime.as_tensor([1], dtype=written).dtype is wanted
    assert runtime.zeros(2, dtype=written).dtype is wanted
    assert base().to(written).dtype is wanted
    assert base().to(dtype=written).dtype is wanted
    assert runtime.zeros_like(base(), dtype=written).dtype is wanted
    assert base().sum(0, dtype=written).dtype is wanted


@pytest.mark.parametrize(
    ("written", "shown"), [(str, "str"), (3.5, "3.5"), (np.uint16, "uint16")]
)
def test_what_is_no_dtype(written: Any, shown: str) -> None:
    for run in (
        lambda: tensor([1], dtype=written),
        lambda: runtime.zeros(1, dtype=written),
        lambda: base().sum(dtype=written),
    ):
        with pytest.raises(UnfitValue, check=code("UnsupportedData")) as caught:
            run()  # type: ignore[no-untyped-call]  # lambdas of several kinds
        assert caught.value.dtype == shown


def test_to_names_what_is_near() -> None:
    with pytest.raises(UnfitValue) as caught:
        base().to("flaot32")
    assert caught.value.near == ("float32", "float", "cfloat")
    with pytest.raises(UnfitValue) as gpu:
        base().to("gpu")
    assert told(gpu.value) == (
        "`Tensor.to` takes a device, a dtype or a tensor, but was given 'gpu', which is"
        " neither. near: cuda"
    )
    assert base().to("meta").is_meta


def test_an_unknown_device_lists_the_known_ones() -> None:
    for run in (runtime.zeros, runtime.rand):
        with pytest.raises(UnknownDevice) as caught:
            run(3, device="gpu")
        assert {"cpu", "cuda", "meta"} <= {*caught.value.known}


def test_what_no_other_word_fits_is_refused_as_it_was() -> None:
    with pytest.raises(CallError, check=code("UnknownArgument")) as unknown:
        base().sum(axes=0)
    assert unknown.value.argument == "axes"
    with pytest.raises(CallError, check=code("WrongArgumentType")):
        base().add("a")
    with pytest.raises(CallError, check=code("UnknownArgument")):
        base().sum(dim=0, axis=0)


def test_views_are_not_larger_than_can_be_counted() -> None:
    with pytest.raises(ValueError, match="at most 9223372036854775807"):
        base().as_strided((2**40, 2**40), (0, 0))
