"""Creation: operators that make a tensor of none, or like another one.

A factory finds its backend without tensors: the kernel at BackendSelect reads `device`
and runs the kernel of that device's key, and the kernels of the backends make the
tensor on the device as given.

`zeros_like(x)` has the shape of `x`, `x.new_zeros(size)` another one; the rest of what
is not given is that of `x`, in both.  Each calls the factory of its name, and is
refused by its own name.

Rules:
- the options come last in every schema: dtype, device, pin_memory;
- without `dtype` the elements are float32; `full` and `arange` go by their numbers;
- `pin_memory` asks for host memory that a CUDA device reads directly: it needs one;
- for tensors like one in host memory, that are to stay there, there is nothing to
  choose: constants have kernels of the CPU;
- `zeros_like` lies in memory as its tensor does, or as `memory_format=` says;
  `new_zeros` row by row.
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
    as_dtype,
    new_tensor,
    parts,
    produce,
    table_for,
)
from everyorder.runtime.operators.declare.fast_paths import fast_fill
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.declare.plan import (
    COMPLEX64,
    COMPLEXES,
    CPU,
    FLOAT32,
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
)
from everyorder.runtime.schema.enums import Device, DType, MemoryFormat
from everyorder.runtime.tensors.construction import (
    empty_tensor,
    host_tensor,
    no_memory,
    view_of,
)
from everyorder.runtime.tensors.dtype_info import compute_dtype, numpy_dtype
from everyorder.runtime.tensors.keys import backend_select
from everyorder.runtime.tensors.storage import memory_of, resolve_device
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import flat_of

OPTIONS = "*, ScalarType? dtype=None, Device? device=None, bool pin_memory=False"
SEEDED = "*, Generator? generator=None, " + OPTIONS.removeprefix("*, ")

# Where `device` stands among the arguments of every factory.
DEVICE_AT = -2


# (arguments..., dtype, device) -> tensor, whatever the backend
Maker = Callable[..., Tensor]


def factory(schema: str, make: Maker, tags: tuple[str, ...] = ()) -> Unstructured:
    """A factory for every backend, of a function that gets the device as it will be.

    `make(*arguments, dtype, device)` gets everything before the options.
    """
    name = schema.partition("(")[0]
    call = f"core::{name}"

    def kernel(*arguments: Any) -> Tensor:
        device = arguments[DEVICE_AT]
        place = CPU if device is None or device is CPU else resolve_device(device)
        try:
            made = make(*arguments[:DEVICE_AT], place)
            return pinned(made) if arguments[-1] else made
        except OperandError as error:
            error.operator = call
            raise

    select = linked(backend_select(DEVICE_AT), f"{name.replace('.', '_')}_select")
    kernels: dict[str, Any] = dict.fromkeys(MODULES, kernel)
    return Unstructured(schema, {**kernels, "BackendSelect": select}, tags)


def pinned(made: Tensor, call: str = "") -> Tensor:
    """The tensor in host memory that a CUDA device reads directly.

    Raises:
        WrongOption: it does not lie in host memory.
        DeviceUnavailable: there is no CUDA device.
    """
    if made.device is not CPU:
        raise bad_option(
            "pin_memory",
            "True",
            f"False on {made.device}: only host memory is pinned",
            call=call,
        )
    flat = pinned_array(made.numel(), numpy_dtype(made.dtype))
    flat[...] = flat_of(made)
    return Tensor(flat, made.shape, made.dtype, CPU, made.key_bits)


def pinned_array(count: int, form: Any) -> Any:
    """An array in pinned host memory.  Raises `DeviceUnavailable` without CUDA."""
    memory_of("cuda")
    return load("everyorder.runtime.kernels.cuda.memory").pinned_array(count, form)


def filled(shape: Shape, dtype: DType, device: Device, value: Any) -> Tensor:
    """A new tensor with every element the same number."""
    count = prod(shape)
    if count and device is CPU and type(value) is int and not value:
        try:
            flat = zeros(count, numpy_dtype(dtype))
        except (MemoryError, ValueError, OverflowError) as error:
            raise no_memory(shape, dtype, device) from error
        return host_tensor(flat, shape, dtype)
    made = new_tensor(shape, dtype, device)
    number = number_for(value, dtype)
    if not fast_fill(made, number) and device.type != "meta":
        table_for(device)["fill"](made, number)
    return made


def check_size(size: list[int], call: str = "") -> Shape:
    """The shape of a size.  Raises `WrongOption` for negative numbers."""
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
    return empty_tensor(check_size(size), dtype or FLOAT32, device)


def _constants(value: int) -> Maker:
    def make(size: list[int], dtype: DType | None, device: Device) -> Tensor:
        return filled(check_size(size), dtype or FLOAT32, device, value)

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
        # As upstream: in the integers from the start, as it is in no other dtype.
        start, end, step = int(start), int(end), int(step)
    if not step or (end - start) * step < 0:
        raise bad_option(
            "step", repr(step), f"a number that leads from {start!r} to {end!r}"
        )
    whole = all(isinstance(number, int) for number in (start, end, step))
    # Exact where it can be: integers may be beyond the fractions of a float.
    steps = -((start - end) // step) if whole else (end - start) / step
    if steps > MOST:
        raise bad_option(
            "step",
            repr(step),
            f"a number that leads there in at most {MOST} steps",
        )
    count = ceil(steps)
    kind = dtype or (INT64 if whole else FLOAT32)
    if device.type == "meta":
        return empty_tensor((count,), kind, device)
    plan = CallPlan((((count,), kind),), device, (start, step), compute_dtype(kind))
    made: Tensor = produce(plan, table_for(device), "arange")
    return made


def _eye(n: int, m: int | None, dtype: DType | None, device: Device) -> Tensor:
    shape = check_size([n, n if m is None else m])
    made = filled(shape, dtype or FLOAT32, device, 0)
    ones = min(shape)
    if ones and device.type != "meta":
        diagonal = view_of(made, (ones,), (shape[1] + 1,), 0)
        table_for(device)["fill"](diagonal, number_for(1, made.dtype))
    return made


def _linspace(
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
        raise bad_option("steps", repr(steps), "0 or more")
    require_dtype("dtype", kind, NUMBERS, "every dtype but bool")
    for name, number in bounds:
        if isinstance(number, complex) and kind not in COMPLEXES:
            raise bad_option(name, repr(number), "a real number")
    if device.type == "meta":
        return empty_tensor((steps,), kind, device)
    if kind in INTEGERS:
        # From an integer to an integer, whatever lies between.
        start, end = int(start), int(end)
    if kind in COMPLEXES:
        made = empty_tensor((steps,), kind, device)
        for part, target in zip(("real", "imag"), parts(made), strict=True):
            first, last = (getattr(number, part) for number in (start, end))
            line = _linspace(first, last, steps, target.dtype, device)
            table_for(device)["copy"](target, line)
        return made
    table = table_for(device)
    points = empty_tensor((steps,), FLOAT64, device)
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    table["arange"](points, float(start), float(step))
    if steps > 1:
        last = view_of(points, (1,), (1,), steps - 1)
        table["fill"](last, float(end))
    return as_dtype(table, points, kind)


NAMES = ("empty", "zeros", "ones", "rand", "randn")
RANDOM = ("rand", "randn")

# What they hold; None: whatever it is.
CONSTANTS: dict[str, int | None] = {"empty": None, "zeros": 0, "ones": 1}

# What two calls in a row give of them is not the same.
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
    """The options of a factory: those of `self` where others are not given."""
    return {
        "dtype": self.dtype if dtype is None else dtype,
        "device": self.device if device is None else device,
    }


def _stays(self: Tensor, device: Device | None) -> bool:
    """Whether what is made like `self` lies in host memory, as `self` does."""
    return self.device is CPU and (device is None or device is CPU)


def _like(name: str) -> Maker:
    """What makes a tensor like another one, by the factory of that name."""

    def make(self: Tensor, *arguments: Any) -> Tensor:
        *value, dtype, device, memory_format = arguments
        strides = strides_of(self, memory_format)
        own = _options_of(self, dtype, device)
        made: Tensor = getattr(core, name)(self.shape, *value, **own)
        return with_strides(made, strides)

    return naming(f"core::{name}_like", make)


def _like_on_cpu(name: str) -> Maker:
    """The kernel of the CPU, of a constant."""
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
    """A tensor in host memory; without a value, its elements are any."""
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
    """`full_like` on the CPU."""
    if self._place is not None or memory_format or not _stays(self, device):
        return _general_full(self, value, dtype, device, memory_format)
    kind = self.dtype if dtype is None else dtype
    check_fill(value, kind, "fill_value", call="core::full_like")
    return filled(self.shape, kind, CPU, value)


def _new(name: str) -> Maker:
    """What makes a tensor of another size, by the factory of that name."""

    def make(self: Tensor, size: list[int], *arguments: Any) -> Tensor:
        *value, dtype, device, pin_memory = arguments
        options = _options_of(self, dtype, device)
        made: Tensor = getattr(core, name)(
            size, *value, **options, pin_memory=pin_memory
        )
        return made

    return naming(f"core::new_{name}", make)


def _new_on_cpu(name: str) -> Maker:
    """The kernel of the CPU, of a constant of any size."""
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


# What each is for, behind `new_`.
SAYS = {
    "empty": "Elements of any value, dtype and device those of the tensor.",
    "zeros": "Zeros, dtype and device those of the tensor.",
    "ones": "Ones, dtype and device those of the tensor.",
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
        says="One number everywhere, dtype and device those of the tensor.",
        only="method",
    ),
)
