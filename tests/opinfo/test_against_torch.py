"""Every operator against torch: dtype, shape, strides, values, and errors."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from everyorder.runtime import Tensor
from everyorder.runtime.errors import EveryorderError
from tests.opinfo.info import Array, D, OpInfo, assert_same, listed, on_cpu
from tests.opinfo.table import ROWS, VARIANTS

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
pytestmark = pytest.mark.torch

COMPARED = [row for row in (*ROWS, *VARIANTS) if row.torch is not None]
# Results of these lie row by row here, in torch as its kernels leave them; there `conj`
# of what is real is a view of it.
OTHERWISE_LAID = ("angle", "argsort", "conj", "einsum", "nonzero", "sort",
                  "inverse", "linalg_inv", "linalg_solve", "linalg_cholesky",
                  "linalg_matrix_norm", "linalg_matrix_norm.str_ord")  # fmt: skip


def on_torch(value: Any) -> Any:
    """The turn that makes arguments of torch."""
    if isinstance(value, Array):
        buffer, strides, offset = value.place()
        if buffer.dtype.name == "bfloat16":
            whole = torch.from_numpy(buffer.view(np.int16)).view(torch.bfloat16)
        else:
            whole = torch.from_numpy(buffer)
        return whole.as_strided(value.values.shape, strides, offset)
    return getattr(torch, value.name) if isinstance(value, D) else value


def elements(result: Any) -> Any:
    if not isinstance(result, torch.Tensor):
        return result
    result = result.detach().resolve_conj()
    return result.double().numpy() if result.dtype == torch.bfloat16 else result.numpy()


def asked(function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """What torch gives; a number is a tensor where torch takes nothing else."""
    try:
        return function(*args, **kwargs)
    except TypeError as error:
        if "must be Tensor" not in str(error) or len(args) != 2:
            raise
        return function(args[0], torch.tensor(args[1]), **kwargs)


@pytest.mark.parametrize("row", COMPARED, ids=repr)
def test_results_are_those_of_torch(row: OpInfo) -> None:
    assert row.torch is not None
    function = row.torch(torch)
    compared = 0
    for dtype in row.dtypes:
        for sample in row.samples(dtype):
            case = f"{row.name}[{dtype}]({sample})"
            args, kwargs = sample.bound(on_torch)
            try:
                with warnings.catch_warnings():
                    # torch warns of what is asked here on purpose.
                    warnings.simplefilter("ignore", UserWarning)
                    expected = listed(asked(function, args, kwargs))
            except (RuntimeError, NotImplementedError, TypeError) as error:
                if "not implemented for" in str(error) or "not support" in str(error):
                    continue
                raise AssertionError(f"torch refuses {case}: {error}") from error
            args, kwargs = sample.bound(on_cpu)
            found = listed(row.call(*args, **kwargs))
            assert len(found) == len(expected), case
            for one, other in zip(found, expected, strict=True):
                compare(row, one, other, case)
                compared += 1
    assert compared, "torch took none of the samples"


# Vectors have any phase, and those that complete a basis are free: the magnitudes of
# the others, the values and the products are the same everywhere.
UNIQUE: dict[str, Callable[..., tuple[Any, ...]]] = {
    "linalg_eigh": lambda values, v: (
        values,
        abs(v),
        (v * values[..., None, :]) @ v.conj().swapaxes(-1, -2),
    ),
    "linalg_qr": lambda q, r: (
        abs(q[..., : min(r.shape[-2:])]),
        abs(r),
        q @ r,
    ),
    "linalg_svd": lambda u, s, vh: (
        abs(u[..., : s.shape[-1]]),
        s,
        abs(vh[..., : s.shape[-1], :]),
        (u[..., : s.shape[-1]] * s[..., None, :]) @ vh[..., : s.shape[-1], :],
    ),
}


@pytest.mark.parametrize("name", UNIQUE)
def test_what_is_unique_of_factors_is_that_of_torch(name: str) -> None:
    row = next(row for row in ROWS if row.name == name)
    function = getattr(torch.linalg, name.removeprefix("linalg_"))
    for dtype in row.dtypes:
        for sample in row.samples(dtype):
            case = f"{name}[{dtype}]({sample})"
            args, kwargs = sample.bound(on_torch)
            expected = function(*args, **kwargs)
            args, kwargs = sample.bound(on_cpu)
            results = row.call(*args, **kwargs)
            assert [(f"torch.{one.dtype.name}", one.shape) for one in results] == [
                (str(other.dtype), tuple(other.shape)) for other in expected
            ], case
            ours = UNIQUE[name](*(each.numpy() for each in results))
            theirs = UNIQUE[name](*map(elements, expected))
            for one, other in zip(ours, theirs, strict=True):
                assert_same(one, other, 2 * row.loose, case)


def compare(row: OpInfo, one: Any, other: Any, case: str) -> None:
    assert (one is None) == (other is None), case
    if one is None:
        return
    if not isinstance(one, Tensor):
        assert one == other, case
        return
    # Statistics of 16-bit floats are kept in float32 here.
    halves = row.name == "native_layer_norm" and one.dtype.name == "float32"
    if not halves:
        assert f"torch.{one.dtype.name}" == str(other.dtype), f"{case}: {one.dtype}"
    assert one.shape == tuple(other.shape), case
    if one.numel() > 1 and row.name not in OTHERWISE_LAID:
        assert steps(one.shape, one.strides) == steps(one.shape, other.stride()), (
            f"{case}: {one.strides}, torch {other.stride()}"
        )
    if row.view and row.name != "contiguous":
        assert one.offset == other.storage_offset(), case
    if not row.random:
        loose = 2000.0 if halves else 2 * row.loose
        assert_same(one.detach().numpy(), elements(other), loose, case)


def steps(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """The strides that matter: those of more than one element."""
    return [step for size, step in zip(shape, strides, strict=True) if size > 1]


MIXED = (
    "bool",
    "uint8",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "complex64",
)
PROMOTED = ("add", "mul", "div", "eq", "where", "maximum", "pow", "atan2", "cat",
            "logical_and", "remainder")  # fmt: skip
FORMS = ((2,), (), 3, 2.5, True)


@pytest.mark.parametrize("name", PROMOTED)
def test_mixed_dtypes_give_what_torch_gives(name: str) -> None:
    """Tensors of any dtype, with dimensions and without, and Python numbers."""
    row = next(row for row in ROWS if row.name == name)
    for left in MIXED:
        for right in (*MIXED, 3, 2.5, True, 1j):
            for shape in ((2,), ()):
                check_mixed(row, left, right, shape)


def check_mixed(row: OpInfo, left: str, right: Any, shape: tuple[int, ...]) -> None:
    if row.name == "pow" and {left, right} <= {"bool", True}:
        # torch takes the powers of bool that are copies, and no other.
        return
    case = f"{row.name}({left}, {right} {shape})"
    one = Array(np.ones(2).astype(_dtype(left)))
    other: Any = right
    if isinstance(right, str):
        other = Array(np.ones(shape).astype(_dtype(right)))
    elif row.name in ("where", "cat", "maximum", "atan2", "logical_and") or shape == ():
        return
    results = []
    for turn in (on_torch, on_cpu):
        a, b = turn(one), turn(other) if isinstance(other, Array) else other
        if row.name == "where":
            args: list[Any] = [turn(Array(np.array([True, False]))), a, b]
        elif row.name == "cat":
            if shape == ():
                return
            args = [[a, b]]
        else:
            args = [a, b]
        assert row.torch is not None
        call = row.torch(torch) if turn is on_torch else row.call
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                results.append(str(call(*args).dtype).removeprefix("torch."))
        except (RuntimeError, NotImplementedError, EveryorderError) as error:
            results.append(f"raises: {error}")
    expected, found = results
    if "complex32" in expected or "ComplexHalf" in expected:
        # There is no complex number of 16-bit floats here.
        assert found in ("complex64", "bool") or found.startswith("raises"), case
        return
    if expected.startswith("raises") and found.startswith("raises"):
        return
    assert found == expected, f"{case}: {found}, torch {expected}"


def _dtype(name: str) -> Any:
    from everyorder.runtime import DType
    from everyorder.runtime.tensors.dtype_info import numpy_dtype

    return numpy_dtype(DType.named(name))
