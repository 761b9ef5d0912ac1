"""Factories: operators that make a tensor of none.

True only here: how a call without tensors finds its backend.  The kernel at
BackendSelect reads `device` and runs the kernel of that device's key; the kernels of
the backends make the tensor on the device as given.

Rules:
- the options come last in every schema: dtype, device, pin_memory;
- without `dtype` the elements are float32; `full` and `arange` go by their numbers;
- `pin_memory` asks for host memory that a CUDA device reads directly: it needs one.
"""

from collections.abc import Callable
from math import ceil, isfinite, prod
from typing import Any

from numpy import zeros

from runtime.dispatch.kernel import linked
from runtime.errors.operands import WrongOption
from runtime.keys import KeySet, key_of_device
from runtime.locks import load
from runtime.operators.backends import MODULES, table_for
from runtime.operators.expanding import MOST
from runtime.operators.fast import fast_fill
from runtime.operators.number import number_for
from runtime.operators.plan import (
    COMPLEXES,
    CPU,
    FLOAT32,
    FLOAT64,
    INT64,
    INTEGERS,
    NUMBERS,
    REALS,
    Plan,
    Shape,
    require_dtype,
)
from runtime.operators.produce import converted, fresh, produce
from runtime.operators.rows import parts
from runtime.operators.scalar import check_fill, default_dtype
from runtime.operators.structured import Written
from runtime.schema.codes import DType
from runtime.schema.device import Device
from runtime.tensors.arrays import flat_of
from runtime.tensors.elements import compute_dtype, numpy_dtype
from runtime.tensors.making import empty_tensor, host_tensor, no_memory, view_of
from runtime.tensors.storage import memory_of, resolved
from runtime.tensors.tensor import Tensor

OPTIONS = "*, ScalarType? dtype=None, Device? device=None, bool pin_memory=False"
SEEDED = "*, Generator? generator=None, " + OPTIONS.removeprefix("*, ")
COMPLEX64 = DType.named("complex64")
# Where `device` stands among the arguments of every factory.
DEVICE_AT = -2


def _select(below: Any, keyset: KeySet) -> Callable[..., Any]:
    """The kernel at BackendSelect: on to the backend of the device."""
    chosen: dict[str, Callable[..., Any]] = {}

    def select(*arguments: Any) -> Any:
        device = arguments[DEVICE_AT]
        kind = "cpu" if device is None else device.type
        run = chosen.get(kind)
        if run is None:
            run = chosen[kind] = below.at(KeySet([key_of_device(kind)]))
        return run(*arguments)

    return select


# (call, arguments..., dtype, device) -> tensor, whatever the backend
Maker = Callable[..., Tensor]


def factory(schema: str, make: Maker, tags: tuple[str, ...] = ()) -> Written:
    """A factory for every backend, of a function that gets the device as it will be.

    `make(call, *arguments, dtype, device)` gets everything before the options.
    """
    name = schema.partition("(")[0]
    call = f"core::{name}"

    def kernel(*arguments: Any) -> Tensor:
        device = arguments[DEVICE_AT]
        place = CPU if device is None or device is CPU else resolved(device)
        made = make(call, *arguments[:DEVICE_AT], place)
        return pinned(call, made) if arguments[-1] else made

    select = linked(_select, f"{name.replace('.', '_')}_select")
    kernels: dict[str, Any] = dict.fromkeys(MODULES, kernel)
    return Written(schema, {**kernels, "BackendSelect": select}, tags)


def pinned(call: str, made: Tensor) -> Tensor:
    """The tensor in host memory that a CUDA device reads directly.

    Raises:
        WrongOption: it does not lie in host memory.
        DeviceUnavailable: there is no CUDA device.
    """
    if made.device is not CPU:
        raise WrongOption(
            operator=call,
            argument="pin_memory",
            found="True",
            fits=f"False on {made.device}: only host memory is pinned",
        )
    flat = pinned_array(made.numel(), numpy_dtype(made.dtype))
    flat[...] = flat_of(made)
    return Tensor(flat, made.shape, made.dtype, CPU, made.key_bits)


def pinned_array(count: int, form: Any) -> Any:
    """An array in pinned host memory.  Raises `DeviceUnavailable` without CUDA."""
    memory_of("cuda")
    return load("runtime.kernels.cuda.memory").pinned_array(count, form)


def filled(shape: Shape, dtype: DType, device: Device, value: Any) -> Tensor:
    """A new tensor with every element the same number."""
    count = prod(shape)
    if count and device is CPU and type(value) is int and not value:
        try:
            flat = zeros(count, numpy_dtype(dtype))
        except (MemoryError, ValueError, OverflowError) as error:
            raise no_memory(shape, dtype, device) from error
        return host_tensor(flat, shape, dtype)
    made = fresh(shape, dtype, device)
    number = number_for(value, dtype)
    if not fast_fill(made, number) and device.type != "meta":
        table_for(device)["fill"](made, number)
    return made


def check_size(call: str, size: list[int]) -> Shape:
    """The shape of a size.  Raises `WrongOption` for negative numbers."""
    shape = tuple(size)
    if shape and (least := min(shape)) < 0:
        raise WrongOption(
            operator=call,
            argument=f"size[{shape.index(least)}]",
            found=str(least),
            fits=f"sizes of 0 or more; the size is {shape}",
        )
    return shape


def _empty(call: str, size: list[int], dtype: DType | None, device: Device) -> Tensor:
    return empty_tensor(check_size(call, size), dtype or FLOAT32, device)


def _constant(value: int) -> Maker:
    def make(call: str, size: list[int], dtype: DType | None, device: Device) -> Tensor:
        return filled(check_size(call, size), dtype or FLOAT32, device, value)

    return make


def _full(
    call: str, size: list[int], value: Any, dtype: DType | None, device: Device
) -> Tensor:
    kind = default_dtype(value) if dtype is None else dtype
    check_fill(call, value, kind, "fill_value")
    return filled(check_size(call, size), kind, device, value)


def _until(call: str, end: Any, dtype: DType | None, device: Device) -> Tensor:
    return _range(call, 0, end, 1, dtype, device)


def _range(
    call: str, start: Any, end: Any, step: Any, dtype: DType | None, device: Device
) -> Tensor:
    for name, number in (("start", start), ("end", end), ("step", step)):
        if isinstance(number, complex) or not isfinite(number):
            raise WrongOption(
                operator=call,
                argument=name,
                found=repr(number),
                fits="a finite real number",
            )
    if dtype is not None:
        require_dtype(call, "dtype", dtype, REALS, "real dtypes, not bool")
    if dtype is INT64:
        # As upstream: in the integers from the start, as it is in no other dtype.
        start, end, step = int(start), int(end), int(step)
    if not step or (end - start) * step < 0:
        raise WrongOption(
            operator=call,
            argument="step",
            found=repr(step),
            fits=f"a number that leads from {start!r} to {end!r}",
        )
    whole = all(isinstance(number, int) for number in (start, end, step))
    # Exact where it can be: integers may be beyond the fractions of a float.
    steps = -((start - end) // step) if whole else (end - start) / step
    if steps > MOST:
        raise WrongOption(
            operator=call,
            argument="step",
            found=repr(step),
            fits=f"a number that leads there in at most {MOST} steps",
        )
    count = ceil(steps)
    kind = dtype or (INT64 if whole else FLOAT32)
    if device.type == "meta":
        return empty_tensor((count,), kind, device)
    plan = Plan((((count,), kind),), device, (start, step), compute_dtype(kind))
    made: Tensor = produce(plan, table_for(device), "arange")
    return made


def _eye(
    call: str, n: int, m: int | None, dtype: DType | None, device: Device
) -> Tensor:
    shape = check_size(call, [n, n if m is None else m])
    made = filled(shape, dtype or FLOAT32, device, 0)
    ones = min(shape)
    if ones and device.type != "meta":
        diagonal = view_of(made, (ones,), (shape[1] + 1,), 0)
        table_for(device)["fill"](diagonal, number_for(1, made.dtype))
    return made


def _linspace(
    call: str,
    start: Any,
    end: Any,
    steps: int,
    dtype: DType | None,
    device: Device,
) -> Tensor:
    """Computed in float64, the last element exactly `end`."""
    bounds = (("start", start), ("end", end))
    turned = any(isinstance(number, complex) for _, number in bounds)
    kind = dtype or (COMPLEX64 if turned else FLOAT32)
    if steps < 0:
        raise WrongOption(
            operator=call, argument="steps", found=repr(steps), fits="0 or more"
        )
    require_dtype(call, "dtype", kind, NUMBERS, "every dtype but bool")
    for name, number in bounds:
        if isinstance(number, complex) and kind not in COMPLEXES:
            raise WrongOption(
                operator=call, argument=name, found=repr(number), fits="a real number"
            )
    if device.type == "meta":
        return empty_tensor((steps,), kind, device)
    if kind in INTEGERS:
        # From an integer to an integer, whatever lies between.
        start, end = int(start), int(end)
    if kind in COMPLEXES:
        made = empty_tensor((steps,), kind, device)
        for part, target in zip(("real", "imag"), parts(made), strict=True):
            first, last = (getattr(number, part) for number in (start, end))
            line = _linspace(call, first, last, steps, target.dtype, device)
            table_for(device)["copy"](target, line)
        return made
    table = table_for(device)
    points = empty_tensor((steps,), FLOAT64, device)
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    table["arange"](points, float(start), float(step))
    if steps > 1:
        last = view_of(points, (1,), (1,), steps - 1)
        table["fill"](last, float(end))
    return converted(points, kind, table)


OPERATORS = (
    factory(
        f"empty(int[] size, {OPTIONS}) -> Tensor",
        _empty,
        ("nondeterministic_bitwise",),
    ),
    factory(f"zeros(int[] size, {OPTIONS}) -> Tensor", _constant(0)),
    factory(f"ones(int[] size, {OPTIONS}) -> Tensor", _constant(1)),
    factory(f"full(int[] size, Scalar fill_value, {OPTIONS}) -> Tensor", _full),
    factory(f"arange(Scalar end, {OPTIONS}) -> Tensor", _until),
    factory(
        f"arange.start(Scalar start, Scalar end, Scalar step=1, {OPTIONS}) -> Tensor",
        _range,
    ),
    factory(f"eye(int n, int? m=None, {OPTIONS}) -> Tensor", _eye),
    factory(
        f"linspace(Scalar start, Scalar end, int steps, {OPTIONS}) -> Tensor",
        _linspace,
    ),
)
