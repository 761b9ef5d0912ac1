"""What a row of the table of operators says, and how its samples become tensors.

True only here: one sample is written once, as arrays with a layout, and becomes NumPy
arrays for the reference, tensors of the runtime on any device, and tensors of torch:
the same numbers at the same places of a storage.

Rules:
- a row has the name of the functional operator; its in-place and out= forms are found
  by that name (`forms`), so that no form can be forgotten;
- between the elements of an array lies JUNK, which no result may contain;
- `Kind` says what dtype comes out of one dtype going in; mixed dtypes are compared with
  torch only.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from everyorder.runtime import DType, Generator, Tensor, default_dispatcher
from everyorder.runtime.schema.enums import Device
from everyorder.runtime.tensors.construction import from_numpy, view_of
from everyorder.runtime.tensors.dtype_info import numpy_dtype
from everyorder.runtime.tensors.shape import contiguous_strides, span

# What lies between the elements of an array that is not contiguous.
JUNK = 77


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """Values, and how they lie: plain, offset, transposed, sliced or expanded."""

    values: Any
    layout: str = "plain"

    def place(self) -> tuple[Any, tuple[int, ...], int]:
        """A new buffer with the values in it, the strides and the offset."""
        values, shape = self.values, self.values.shape
        plain = contiguous_strides(shape)
        if self.layout == "offset":
            return np.concatenate([junk(values, 3), values.ravel()]), plain, 3
        if self.layout == "transposed":
            return values.T.flatten(), contiguous_strides(shape[::-1])[::-1], 0
        if self.layout == "expanded":
            return values[0].flatten(), (0, *contiguous_strides(shape[1:])), 0
        if self.layout == "sliced":
            buffer = junk(values, 2 * values.size)
            buffer[::2] = values.ravel()
            return buffer, tuple(2 * stride for stride in plain), 0
        return values.flatten(), plain, 0

    def numpy(self) -> Any:
        """The values, contiguous."""
        return self.values.copy()

    def tensor(self) -> Tensor:
        """A tensor on a storage of its own."""
        buffer, strides, offset = self.place()
        return view_of(from_numpy(buffer), self.values.shape, strides, offset)

    def meta(self) -> Tensor:
        """The tensor without its elements."""
        buffer, strides, offset = self.place()
        whole = handle("empty")([buffer.size], dtype=self.dtype, device=Device("meta"))
        return view_of(whole, self.values.shape, strides, offset)

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return DType.named(self.values.dtype.name)


def handle(name: str) -> Any:
    """The handle of an operator of namespace `core`."""
    return default_dispatcher().find_op(f"core::{name}")


def junk(values: Any, count: int) -> Any:
    """An array of the same dtype that is full of JUNK."""
    return np.full(count, True if values.dtype == np.bool_ else JUNK, values.dtype)


@dataclass(frozen=True, slots=True)
class D:
    """A dtype among the arguments, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Seed:
    """A generator among the arguments, by its seed."""

    number: int


class Sample:
    """The arguments of one call."""

    __slots__ = ("args", "kwargs")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs

    def bound(self, turn: Callable[[Any], Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments with every array, dtype and generator turned."""
        args = [_turned(each, turn) for each in self.args]
        return args, {name: _turned(v, turn) for name, v in self.kwargs.items()}

    def arrays(self) -> Iterator[Array]:
        """The arrays among the arguments, in order."""
        found: list[Array] = []

        def collect(each: Any) -> Any:
            if isinstance(each, Array):
                found.append(each)
            return each

        self.bound(collect)
        return iter(found)

    def __repr__(self) -> str:
        args, kwargs = self.bound(_shown)
        shown = [str(each) for each in args]
        return ", ".join([*shown, *(f"{name}={v}" for name, v in kwargs.items())])


def _turned(value: Any, turn: Callable[[Any], Any]) -> Any:
    if isinstance(value, (Array, D, Seed)):
        return turn(value)
    if isinstance(value, (list, tuple)) and any(isinstance(v, Array) for v in value):
        return [_turned(each, turn) for each in value]
    return value


def _shown(value: Any) -> Any:
    if isinstance(value, Array):
        return f"<{value.values.dtype} {value.values.shape} {value.layout}>"
    return value


def on_cpu(value: Any) -> Any:
    """The turn that makes arguments of the runtime."""
    if isinstance(value, Array):
        return value.tensor()
    return _code(value)


def on_meta(value: Any) -> Any:
    """The turn that makes arguments of the runtime, without elements."""
    return value.meta() if isinstance(value, Array) else _code(value)


def _code(value: Any) -> Any:
    if isinstance(value, D):
        return DType.named(value.name)
    return Generator().manual_seed(value.number) if isinstance(value, Seed) else value


# What comes out of one dtype: the same; floating (integers become float32); bool;
# int64; wide (integers become int64, as sums do); real (of complex); free (see `rule`).
Kind = str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpInfo:
    """One operator: its samples, its reference, and what holds for it.

    Args:
        name: of the functional form, with overload if it has one.
        samples: dtype name -> sample calls; the first one is the plainest.
        reference: on NumPy arrays, floats wide; returns an array or several; None
            where `torch` is the only reference, or the values are random.
        dtypes: names that the operator takes.
        kind: the dtype of the result.
        torch: what torch calls it; None where it has no such operator.
        gradient: whether it is differentiable in its floating-point arguments.
        smooth: samples for finite differences, float64; None: the first of `samples`.
        view: whether results share the storage of the first argument.
        meta: False where the result depends on the elements.
        loose: how much further than rounding results may be apart.
        kinks: places (of `tests.opinfo.second`) where the slope jumps, or it ends.
        torch_lacks: dtypes of which torch has no gradient.
    """

    name: str
    samples: Callable[[str], list[Sample]]
    reference: Callable[..., Any] | None
    dtypes: tuple[str, ...]
    kind: Kind = "same"
    torch: Callable[[Any], Callable[..., Any]] | None = None
    gradient: bool = True
    twice: bool = True
    smooth: Callable[[], list[Sample]] | None = None
    view: bool = False
    meta: bool = True
    random: bool = False
    loose: float = 1.0
    kinks: tuple[str, ...] = ()
    torch_lacks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return self.name

    @property
    def call(self) -> Any:
        """The handle of the functional form."""
        return handle(self.name)

    def form(self, which: str) -> Any:
        """The handle of the form `in-place` or `out`; None if there is none.

        Nor of a factory: its out= form has no options, and its dtype is that of `out`
        (`tests/operators/test_creation.py`).
        """
        name = forms(self.name)[which]
        if not any(True for _ in self.samples(self.dtypes[0])[0].arrays()):
            return None
        known = default_dispatcher().op_names()
        full = f"core::{name}"
        return handle(name) if full in known else None

    def result(self, dtype: str) -> str | None:
        """The name of the result's dtype where all arguments have one dtype."""
        found = DType.named(dtype)
        whole = not (found.is_floating or found.is_complex)
        if self.kind == "floating":
            return "float32" if whole else dtype
        if self.kind == "wide":
            return "int64" if whole else dtype
        if self.kind == "real":
            return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
        return {"same": dtype, "free": None}.get(self.kind, self.kind)

    def run_reference(self, sample: Sample, dtype: str) -> list[Any]:
        """The results of the reference, in the precision that it computed in."""
        assert self.reference is not None, "asked only of rows that have one"

        def turn(value: Any) -> Any:
            if isinstance(value, Array):
                return widened(value.numpy(), self.kind)
            return getattr(value, "name", value)

        args, kwargs = sample.bound(turn)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            # Of no elements at all, NumPy says more than it needs to.
            warnings.simplefilter("ignore", RuntimeWarning)
            found = self.reference(*args, **kwargs)
        return list(found) if isinstance(found, (list, tuple)) else [found]


def forms(name: str) -> dict[str, str]:
    """The names of the in-place and the out= form of an operator."""
    base, _, overload = name.partition(".")
    if overload:
        return {"in-place": f"{base}_.{overload}", "out": f"{base}.{overload}_out"}
    return {"in-place": f"{base}_", "out": f"{base}.out"}


def widened(values: Any, kind: Kind) -> Any:
    """The values in the precision that references compute in."""
    dtype = DType.named(values.dtype.name)
    if dtype.is_floating:
        return values.astype(np.float64)
    if dtype.is_complex:
        return values.astype(np.complex128)
    if kind == "floating":
        return values.astype(np.float64)
    return values


def listed(result: Any) -> list[Any]:
    """The results of a call as a list, whether there are one or several."""
    return list(result) if isinstance(result, (list, tuple)) else [result]


# Relative and absolute differences that rounding explains, a few operations long.
TOLERANCES = {
    "float16": (2e-3, 1e-4),
    "bfloat16": (1.6e-2, 1e-4),
    "float32": (3e-6, 1e-6),
    "float64": (1e-11, 1e-12),
    "complex64": (5e-6, 2e-6),
    "complex128": (1e-11, 1e-12),
}


def assert_same(found: Any, expected: Any, loose: float, case: str) -> None:
    """Compare arrays: the same shape, and values as near as the dtype of `found`."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, f"{case}: {found.shape} {expected.shape}"
    name = found.dtype.name
    rtol, atol = TOLERANCES.get(name, (0.0, 0.0))
    if name in ("float16", "bfloat16"):
        found = found.astype(np.float64)
        with np.errstate(all="ignore"):
            # What the dtype cannot hold is infinite in it.
            expected = expected.astype(numpy_dtype(DType.named(name)))
        expected = expected.astype(np.float64)
    np.testing.assert_allclose(
        found,
        expected,
        rtol=rtol * loose,
        atol=atol * loose,
        equal_nan=True,
        err_msg=case,
    )


def storage_of(tensor: Tensor) -> Any:
    """A copy of everything in the storage of a tensor, junk included."""
    return np.array(tensor.storage().array, copy=True)


def fits_in_storage(tensor: Tensor) -> bool:
    """Whether a tensor reaches no further than its storage."""
    reached = tensor.offset + span(tensor.shape, tensor.strides)
    return prod(tensor.shape) == 0 or reached <= tensor.storage().count


def targets_of(handle: Any) -> list[str]:
    """The arguments of an out= form that results are written to, in their order."""
    return [each.name for each in handle.schema.arguments if each.is_write]
