"""Factories: operators that create a tensor from scratch, or like another one.

A factory selects its backend without tensors: the kernel at BackendSelect reads
`device` and runs the kernel of that device's key, and the kernels of the backends
create the tensor on the given device.

`zeros_like(x)` has the shape of `x`, `x.new_zeros(size)` another one; both default to
the dtype and device of `x`.  Each calls the factory of its name, and reports errors
under its own name.

Rules:
- the options are last in every schema: dtype, device, pin_memory;
- without `dtype` the elements have the default dtype; `full` and `arange` derive it
  from their numbers;
- `pin_memory` allocates host memory that a CUDA device reads directly: it needs one;
- a tensor like one in host memory, created there, needs no dispatch: constants have
  kernels of the CPU;
- `zeros_like` has the memory order of its tensor, or that of `memory_format=`;
  `new_zeros` is row-major.
"""

from collections.abc import Callable
from math import ceil, isfinite, prod
from typing import Any

from numpy import zeros

from everyorder.runtime.base.locks import load
from everyorder.runtime.dispatch.kernel import linked
from everyorder.runtime.errors.tensor import OperandError
from everyorder.runtime.operators.declare.allocate_outputs import (
    MODULES,
    adopt,
    as_dtype,
    check_target,
    new_tensor,
    parts,
    produce,
    table_for,
)
from everyorder.runtime.operators.declare.fast_paths import fast_fill
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.declare.plan import (
    COMPLEXES,
    CPU,
    FLOAT64,
    INT64,
    INTEGERS,
    MOST,
    NUMBERS,
    REALS,
    CallPlan,
    Shape,
    bad_option,
    check_fill,
    default_dtype,
    number_for,
    require_dtype,
    strides_of,
    with_strides,
)
from everyorder.runtime.operators.declare.structured import (
    EXPLICIT,
    Unstructured,
    naming,
    other_form,
    out_schema,
)
from everyorder.runtime.schema.enums import Device, DType, MemoryFormat
from everyorder.runtime.tensors.construction import (
    empty_tensor,
    host_tensor,
    no_memory,
    view_of,
)
from everyorder.runtime.tensors.dtype_info import DEFAULTS, compute_dtype, numpy_dtype
from everyorder.runtime.tensors.keys import backend_select
from everyorder.runtime.tensors.storage import memory_of, resolve_device
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import flat_of

OPTIONS = "*, ScalarType? dtype=None, Device? device=None, bool pin_memory=False"
SEEDED = "*, Generator? generator=None, " + OPTIONS.removeprefix("*, ")

# The index of `device` among the arguments of every factory.
DEVICE_AT = -2


# (arguments..., dtype, device) -> tensor, for any backend
Maker = Callable[..., Tensor]


def factory(schema: str, make: Maker, tags: tuple[str, ...] = ()) -> Unstructured:
    """Return a factory for every backend, from a function that receives the device.

    `make(*arguments, dtype, device)` receives all arguments before the options.  The
    form that writes to `out` has no options: it has the dtype and the device of `out`.
    """
    name, _, arguments = schema.partition("(")
    call = f"core::{name}"

    def kernel(*arguments: Any) -> Tensor:
        device = arguments[DEVICE_AT]
        place = CPU if device is None or device is CPU else resolve_device(device)
        try:
            result = make(*arguments[:DEVICE_AT], place)
            return pinned(result) if arguments[-1] else result
        except OperandError as error:
            error.operator = call
            raise

    select = linked(backend_select(DEVICE_AT), f"{name.replace('.', '_')}_select")
    kernels: dict[str, Any] = dict.fromkeys(MODULES, kernel)
    plain = arguments.partition(f"{OPTIONS.removeprefix('*, ')}) -> Tensor")[0]
    written, text = out_schema(name, plain.removesuffix(", ").removesuffix(", *"))
    into = other_form(text, EXPLICIT, tags, naming(f"core::{written}", _filling(make)))
    return Unstructured(
        schema, {**kernels, "BackendSelect": select}, tags, forms=(into,)
    )


def _filling(make: Maker) -> Maker:
    """Return the function that writes what a factory makes to its last argument."""

    def fill(*arguments: Any) -> Tensor:
        *values, out = arguments
        result = make(*values, out.dtype, out.device)
        check_target(out, "out", result.shape, result.dtype, result.device)
        return adopt(out, result)

    return fill


def pinned(tensor: Tensor, call: str = "") -> Tensor:
    """Return the tensor in host memory that a CUDA device reads directly.

    Raises:
        WrongOption: the tensor is not in host memory.
        DeviceUnavailable: there is no CUDA device.
    """
    if tensor.device is not CPU:
        raise bad_option(
            "pin_memory",
            "True",
            f"False on {tensor.device}: only host memory is pinned",
            call=call,
        )
    flat = pinned_array(tensor.numel(), numpy_dtype(tensor.dtype))
    flat[...] = flat_of(tensor)
    return Tensor(flat, tensor.shape, tensor.dtype, CPU, tensor.key_bits)


def pinned_array(count: int, form: Any) -> Any:
    """Return an array in pinned host memory.  Raises `DeviceUnavailable`."""
    memory_of("cuda")
    return load("everyorder.runtime.kernels.cuda.memory").pinned_array(count, form)


def filled(shape: Shape, dtype: DType, device: Device, value: Any) -> Tensor:
    """Return a new tensor with every element the same number."""
    count = prod(shape)
    if count and device is CPU and type(value) is int and not value:
        try:
            flat = zeros(count, numpy_dtype(dtype))
        except (MemoryError, ValueError, OverflowError) as error:
            raise no_memory(shape, dtype, device) from error
        return host_tensor(flat, shape, dtype)
    result = new_tensor(shape, dtype, device)
    number = number_for(value, dtype)
    if not fast_fill(result, number) and device.type != "meta":
        table_for(device)["fill"](result, number)
    return result


def check_size(size: list[int], call: str = "") -> Shape:
    """Return the shape of a size.  Raises `WrongOption` for negative numbers."""
    shape = tuple(size)
    if shape and (least := min(shape)) < 0:
        raise bad_option(
            f"size[{shape.index(least)}]",
            str(least),
            f"sizes of 0 or more; the size is {shape}",
            call=call,
        )
    return shape


def _empty(size: list[int], dtype: DType | None, device: Device) -> Tensor:
    return empty_tensor(check_size(size), dtype or DEFAULTS.real, device)


def _constants(value: int) -> Maker:
    def make(size: list[int], dtype: DType | None, device: Device) -> Tensor:
        return filled(check_size(size), dtype or DEFAULTS.real, device, value)

    return make


def _full(size: list[int], value: Any, dtype: DType | None, device: Device) -> Tensor:
    kind = default_dtype(value) if dtype is None else dtype
    check_fill(value, kind, "fill_value")
    return filled(check_size(size), kind, device, value)


def _until(end: Any, dtype: DType | None, device: Device) -> Tensor:
    return _range(0, end, 1, dtype, device)


def _range(
    start: Any, end: Any, step: Any, dtype: DType | None, device: Device
) -> Tensor:
    for name, number in (("start", start), ("end", end), ("step", step)):
        if isinstance(number, complex) or not isfinite(number):
            raise bad_option(name, repr(number), "a finite real number")
    if dtype is not None:
        require_dtype("dtype", dtype, REALS, "real dtypes, not bool")
    if dtype is INT64:
        # As in torch: int64 converts start, end and step to integers; no other dtype
        # does.
        start, end, step = int(start), int(end), int(step)
    if not step or (end - start) * step < 0:
        raise bad_option(
            "step", repr(step), f"a number that leads from {start!r} to {end!r}"
        )
    whole = all(isinstance(number, int) for number in (start, end, step))
    # Exact if possible: integers may exceed the precision of a float.
    steps = -((start - end) // step) if whole else (end - start) / step
    if steps > MOST:
        raise bad_option(
            "step",
            repr(step),
            f"a number that leads there in at most {MOST} steps",
        )
    count = ceil(steps)
    kind = dtype or (INT64 if whole else DEFAULTS.real)
    if device.type == "meta":
        return empty_tensor((count,), kind, device)
    plan = CallPlan((((count,), kind),), device, (start, step), compute_dtype(kind))
    result: Tensor = produce(plan, table_for(device), "arange")
    return result


def _eye(n: int, m: int | None, dtype: DType | None, device: Device) -> Tensor:
    shape = check_size([n, n if m is None else m])
    result = filled(shape, dtype or DEFAULTS.real, device, 0)
    ones = min(shape)
    if ones and device.type != "meta":
        diagonal = view_of(result, (ones,), (shape[1] + 1,), 0)
        table_for(device)["fill"](diagonal, number_for(1, result.dtype))
    return result


def _linspace(
    start: Any,
    end: Any,
    steps: int,
    dtype: DType | None,
    device: Device,
) -> Tensor:
    """Compute a range in float64, with `end` as the exact last element."""
    bounds = (("start", start), ("end", end))
    turned = any(isinstance(number, complex) for _, number in bounds)
    kind = dtype or (DEFAULTS.complex if turned else DEFAULTS.real)
    if steps < 0:
        raise bad_option("steps", repr(steps), "0 or more")
    require_dtype("dtype", kind, NUMBERS, "every dtype but bool")
    for name, number in bounds:
        if isinstance(number, complex) and kind not in COMPLEXES:
            raise bad_option(name, repr(number), "a real number")
    if device.type == "meta":
        return empty_tensor((steps,), kind, device)
    if kind in INTEGERS:
        # Integer dtypes truncate both ends; numbers between may be fractions.
        start, end = int(start), int(end)
    if kind in COMPLEXES:
        result = empty_tensor((steps,), kind, device)
        for part, target in zip(("real", "imag"), parts(result), strict=True):
            first, last = (getattr(number, part) for number in (start, end))
            line = _linspace(first, last, steps, target.dtype, device)
            table_for(device)["copy"](target, line)
        return result
    table = table_for(device)
    points = empty_tensor((steps,), FLOAT64, device)
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    table["arange"](points, float(start), float(step))
    if steps > 1:
        last = view_of(points, (1,), (1,), steps - 1)
        table["fill"](last, float(end))
    return as_dtype(table, points, kind)


def _logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float,
    dtype: DType | None,
    device: Device,
) -> Tensor:
    """Compute the powers of a number in float64, from its exponents."""
    kind = dtype or DEFAULTS.real
    require_dtype("dtype", kind, REALS, "every real dtype but bool")
    whole = kind in INTEGERS and not isinstance(start + end, complex)
    if whole:  # integer dtypes truncate both ends, as in `linspace`
        start, end = int(start), int(end)
    exponents = _linspace(start, end, steps, FLOAT64, device)
    if device.type == "meta":
        return empty_tensor((steps,), kind, device)
    table = table_for(device)
    bases = empty_tensor((steps,), FLOAT64, device)
    table["fill"](bases, base)
    powers = empty_tensor((steps,), FLOAT64, device)
    table["pow"](powers, bases, exponents)
    return as_dtype(table, powers, kind)


NAMES = ("empty", "zeros", "ones", "rand", "randn")
RANDOM = ("rand", "randn")

# The value of the elements; None if uninitialized.
CONSTANTS: dict[str, int | None] = {"empty": None, "zeros": 0, "ones": 1}

# Two calls of these do not return equal elements.
TAGS = {
    "empty": ("nondeterministic_bitwise",),
    **dict.fromkeys(RANDOM, ("nondeterministic_seeded",)),
}

_PLACE = "*, ScalarType? dtype=None, Device? device=None"
LIKE_OPTIONS = _PLACE + ", MemoryFormat? memory_format=None"
NEW_OPTIONS = _PLACE + ", bool pin_memory=False"


def _options_of(
    self: Tensor, dtype: DType | None, device: Device | None
) -> dict[str, Any]:
    """Return the options of a factory; those of `self` are the defaults."""
    return {
        "dtype": self.dtype if dtype is None else dtype,
        "device": self.device if device is None else device,
    }


def _stays(self: Tensor, device: Device | None) -> bool:
    """Return True if a tensor like `self` stays in host memory."""
    return self.device is CPU and (device is None or device is CPU)


def _like(name: str) -> Maker:
    """Return a function that makes a tensor like another, by the factory `name`."""

    def make(self: Tensor, *arguments: Any) -> Tensor:
        *value, dtype, device, memory_format = arguments
        strides = strides_of(self, memory_format)
        own = _options_of(self, dtype, device)
        result: Tensor = getattr(core, name)(self.shape, *value, **own)
        return with_strides(result, strides)

    return naming(f"core::{name}_like", make)


def _like_on_cpu(name: str) -> Maker:
    """Return the kernel of the CPU for a constant like another tensor."""
    general = _like(name)
    value = CONSTANTS[name]

    def make(
        self: Tensor,
        dtype: DType | None,
        device: Device | None,
        memory_format: MemoryFormat | None,
    ) -> Tensor:
        if self._place is not None or memory_format or not _stays(self, device):
            return general(self, dtype, device, memory_format)
        return _constant(self.shape, self.dtype if dtype is None else dtype, value)

    return make


def _constant(shape: Shape, kind: DType, value: int | None) -> Tensor:
    """Return a tensor in host memory; uninitialized without a value."""
    if value is None:
        return new_tensor(shape, kind, CPU)
    return filled(shape, kind, CPU, value)


def _kernels(name: str) -> dict[str, Any]:
    explicit = {EXPLICIT: _like(name)}
    return {**explicit, "CPU": _like_on_cpu(name)} if name in CONSTANTS else explicit


_general_full: Maker = _like("full")


def _full_like_on_cpu(
    self: Tensor,
    value: Any,
    dtype: DType | None,
    device: Device | None,
    memory_format: MemoryFormat | None,
) -> Tensor:
    """Compute `full_like` on the CPU."""
    if self._place is not None or memory_format or not _stays(self, device):
        return _general_full(self, value, dtype, device, memory_format)
    kind = self.dtype if dtype is None else dtype
    check_fill(value, kind, "fill_value", call="core::full_like")
    return filled(self.shape, kind, CPU, value)


def _new(name: str) -> Maker:
    """Return a function that makes a tensor of a new size, by the factory `name`."""

    def make(self: Tensor, size: list[int], *arguments: Any) -> Tensor:
        *value, dtype, device, pin_memory = arguments
        options = _options_of(self, dtype, device)
        result: Tensor = getattr(core, name)(
            size, *value, **options, pin_memory=pin_memory
        )
        return result

    return naming(f"core::new_{name}", make)


def _new_on_cpu(name: str) -> Maker:
    """Return the kernel of the CPU for a constant of any size."""
    general, call = _new(name), f"core::new_{name}"
    value = CONSTANTS[name]

    def make(
        self: Tensor,
        size: list[int],
        dtype: DType | None,
        device: Device | None,
        pin_memory: bool,
    ) -> Tensor:
        if pin_memory or not _stays(self, device):
            return general(self, size, dtype, device, pin_memory)
        kind = self.dtype if dtype is None else dtype
        return _constant(check_size(size, call), kind, value)

    return make


# The descriptions of the `new_` operators.
SAYS = {
    "empty": "Return uninitialized elements in the tensor's dtype and on its device.",
    "zeros": "Return zeros in the dtype and on the device of the tensor.",
    "ones": "Return ones in the dtype and on the device of the tensor.",
}

OPERATORS = (
    factory(
        f"empty(int[] size, {OPTIONS}) -> Tensor",
        _empty,
        ("nondeterministic_bitwise",),
    ),
    factory(f"zeros(int[] size, {OPTIONS}) -> Tensor", _constants(0)),
    factory(f"ones(int[] size, {OPTIONS}) -> Tensor", _constants(1)),
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
    factory(
        "logspace(Scalar start, Scalar end, int steps, float base=10., "
        f"{OPTIONS}) -> Tensor",
        _logspace,
    ),
    *(
        Unstructured(
            f"{name}_like(Tensor self, {LIKE_OPTIONS}) -> Tensor",
            _kernels(name),
            TAGS.get(name, ()),
        )
        for name in NAMES
    ),
    Unstructured(
        f"full_like(Tensor self, Scalar fill_value, {LIKE_OPTIONS}) -> Tensor",
        {EXPLICIT: _general_full, "CPU": _full_like_on_cpu},
    ),
    *(
        Unstructured(
            f"new_{name}(Tensor self, int[] size, {NEW_OPTIONS}) -> Tensor",
            {EXPLICIT: _new(name), "CPU": _new_on_cpu(name)},
            TAGS.get(name, ()),
            says=SAYS[name],
            only="method",
        )
        for name in CONSTANTS
    ),
    Unstructured(
        "new_full(Tensor self, int[] size, Scalar fill_value,"
        f" {NEW_OPTIONS}) -> Tensor",
        {EXPLICIT: _new("full")},
        says="Return a filled tensor in the tensor's dtype and on its device.",
        only="method",
    ),
)
