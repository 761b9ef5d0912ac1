"""Plans: the decisions of an operator call, made before anything is computed.

A planning function receives every argument in schema order, makes *all* checks (dtypes,
shapes, devices, options) and returns a `CallPlan`.  It computes nothing, so that one
function serves CPU, CUDA and Meta, and the functional, in-place and out= forms.
`runtime.operators.declare.allocate_outputs` makes the outputs of the plan, converts the
arguments for the kernel, and runs it.

This module has the plan, the sets of dtypes, the checks that planning functions share,
and their errors.

Rules:
- errors are raised without the operator's name: the kernel that the dispatcher has
  called adds it (`runtime.operators.declare.structured`); kernels that are called
  directly, such as those of views, pass it as `call`;
- sixteen-bit floats compute in float32: an output whose dtype is not the computed one
  is first made in `compute_dtype(dtype)`, and converted after the kernel has run;
- a number among tensors is converted to the Python type of elements of the computed
  dtype; integers wrap around as elements of that width do;
- a number that is written to elements unchanged (`fill_` and its like) takes no part in
  promotion: a fraction is truncated for integers, and a number that cannot be converted
  is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite, prod
from typing import Any, NamedTuple

from everyorder.runtime.errors.tensor import (
    DevicesDiffer,
    DTypeRefused,
    IndexOutOfRange,
    ShapesDoNotFit,
    WrongOption,
)
from everyorder.runtime.schema.enums import Device, DType, MemoryFormat
from everyorder.runtime.tensors.construction import view_of
from everyorder.runtime.tensors.dtype_info import (
    DEFAULTS,
    SUPPORTED,
    compute_dtype,
    info,
)
from everyorder.runtime.tensors.shape import (
    CONTIGUOUS,
    LAST,
    PRESERVE,
    is_contiguous,
    ordered_strides,
    preserved_strides,
)
from everyorder.runtime.tensors.tensor import Tensor

Shape = tuple[int, ...]

# name -> kernel, of one backend.
KernelTable = Mapping[str, Callable[..., Any]]

# Runs instead of a kernel: (table, *outputs, *arguments).
Work = Callable[..., Any]


class CallPlan(NamedTuple):
    """The outputs, arguments and kernel of a call (a tuple, as every call makes one).

    Attributes:
        outputs: shape and dtype of each result; None for a result that is None.
        device: of the outputs.
        arguments: the kernel's arguments after its outputs.
        compute: the dtype that the arguments are converted to: tensors are cast, and
            numbers become its kind of Python number.  None: they stay unchanged.
        cast: the positions of `arguments` to convert; None means every tensor and
            number among them.
        start: the (first) output starts as a copy of this tensor, as in `scatter`.
        kernel: the kernel's name, or a function `(table, *outputs, *arguments)` that
            runs several; None for the kernel of the operator's own name.
        pointwise: each element of the output depends on the same element of the inputs
            only, so that output and input may share memory, and the output has the
            memory order of the inputs.
        strides: of a fresh output that is not row-major.
    """

    outputs: tuple[tuple[Shape, DType] | None, ...]
    device: Device
    arguments: tuple[Any, ...]
    compute: DType | None = None
    cast: tuple[int, ...] | None = None
    start: Tensor | None = None
    kernel: str | Work | None = None
    pointwise: bool = False
    strides: Shape | None = None


# The errors of a call's arguments, without the operator's name.
NamedShape = tuple[str, Tensor | Shape | None]


def bad_option(argument: str, value: str, fits: str, call: str = "") -> WrongOption:
    """Return the error for a value that the operator does not accept."""
    return WrongOption(operator=call, argument=argument, found=value, fits=fits)


def bad_dtype(
    argument: str, dtype: DType | str, fits: str, call: str = ""
) -> DTypeRefused:
    """Return the error for a dtype that the operator does not support."""
    return DTypeRefused(operator=call, argument=argument, dtype=str(dtype), fits=fits)


def bad_dim(
    dim: int, shape: Shape, repeated: bool = False, call: str = ""
) -> IndexOutOfRange:
    """Return the error for a dimension that a shape lacks, or that is repeated."""
    return IndexOutOfRange(
        code="DimensionOutOfRange",
        operator=call,
        dim=dim,
        shape=shape,
        repeated=repeated,
    )


def bad_shapes(
    reason: str, fits: str, *named: NamedShape, call: str = ""
) -> ShapesDoNotFit:
    """Return the error for shapes, or tensors of shapes, that do not fit together."""
    shapes = tuple(
        (name, each.shape if isinstance(each, Tensor) else each)
        for name, each in named
        if each is not None
    )
    return ShapesDoNotFit(operator=call, shapes=shapes, reason=reason, fits=fits)


def bad_devices(one: Device, other: Device, call: str = "") -> DevicesDiffer:
    """Return the error for tensors on two devices."""
    return DevicesDiffer(operator=call, devices=(str(one), str(other)))


def common_device(*tensors: Tensor | None, call: str = "") -> Device:
    """Return `same_device`, disregarding 0-dim CPU tensors, which fit any device."""
    deciding = [
        each
        for each in tensors
        if each is not None and (each.shape or each.device.type != "cpu")
    ]
    return same_device(*deciding, call=call)


def same_device(*tensors: Tensor | None, call: str = "") -> Device:
    """Return the one device of all the tensors, 0-dim ones included.

    Raises:
        DevicesDiffer: they are on several.
    """
    device: Device | None = None
    for tensor in tensors:
        if tensor is None or tensor.device is device:
            continue
        if device is not None:
            raise bad_devices(device, tensor.device, call=call)
        device = tensor.device
    return CPU if device is None else device


def require_dtype(
    argument: str, dtype: DType, accepted: frozenset[DType], fits: str
) -> None:
    """Make sure that an operator supports the dtype.  Raises `DTypeRefused`."""
    if dtype not in accepted:
        raise bad_dtype(argument, dtype, fits)


# The most elements that 64 bits can count, in NumPy as in C code.
MOST = 2**63 - 1


def check_count(shape: Shape, call: str = "") -> None:
    """Refuse a shape of more elements than can be counted.  Raises `WrongOption`."""
    if prod(shape) > MOST:
        raise bad_option(
            "size", str(shape), f"sizes with a product of at most {MOST}", call=call
        )


def one_dim(dim: int, shape: Shape, call: str = "") -> int:
    """Return `dim` counted from the front; 0 and -1 are valid for a 0-dim tensor.

    Raises:
        IndexOutOfRange: the shape does not have the dimension.
    """
    count = len(shape) or 1
    if not -count <= dim < count:
        raise bad_dim(dim, shape, call=call)
    return dim % count


def distinct_dims(dims: Sequence[int], shape: Shape, call: str = "") -> list[int]:
    """Return dimensions counted from the front, in their order.

    Raises:
        IndexOutOfRange: the shape lacks one, or one is repeated.
    """
    wrapped_dims: list[int] = []
    for dim in dims:
        wrapped = one_dim(dim, shape, call=call)
        if wrapped in wrapped_dims:
            raise bad_dim(dim, shape, repeated=True, call=call)
        wrapped_dims.append(wrapped)
    return wrapped_dims


def many_dims(dims: Sequence[int] | None, shape: Shape) -> tuple[int, ...]:
    """Return `distinct_dims`, sorted; no dimensions mean all."""
    if not dims:
        return tuple(range(len(shape)))
    distinct = distinct_dims(dims, shape)
    return tuple(sorted(distinct)) if shape else ()


def dtypes(*names: str) -> frozenset[DType]:
    """Return the dtypes of these names."""
    return frozenset(DType.named(name) for name in names)


CPU = Device("cpu")
BOOL = DType.named("bool")
INT64 = DType.named("int64")
FLOAT32 = DType.named("float32")
FLOAT64 = DType.named("float64")

# Dtypes that are computed in without conversion, the most frequent ones.
PLAIN = dtypes("float32", "float64")
INTEGERS = dtypes("uint8", "int8", "int16", "int32", "int64")
FLOATS = dtypes("float16", "bfloat16", "float32", "float64")
HALVES = dtypes("float16", "bfloat16")
COMPLEXES = dtypes("complex64", "complex128")

# The dtypes of operators on real numbers.
REALS = INTEGERS | FLOATS
NUMBERS = REALS | COMPLEXES
ALL = NUMBERS | {BOOL}
NamedTensor = tuple[str, Tensor | None]

# The dtypes of index tensors; kernels receive int64.
INDICES = dtypes("int64", "int32", "int16", "int8", "uint8")


def one_dtype(accepted: frozenset[DType], fits: str, *named: NamedTensor) -> DType:
    """Return the one dtype of all the tensors.

    Raises:
        DTypeRefused: the first has a dtype that is not accepted, or another differs.
    """
    (name, first), *others = named
    assert first is not None, "only later tensors may be None"
    require_dtype(name, first.dtype, accepted, fits)
    for argument, tensor in others:
        if tensor is not None and tensor.dtype is not first.dtype:
            fits = f"{first.dtype}, the dtype of {name}"
            raise bad_dtype(argument, tensor.dtype, fits)
    return first.dtype


_PLACES = frozenset({INT64, DType.named("int32")})


def index_dtype(argument: str, index: Tensor) -> None:
    """Make sure that a tensor holds int64, as indices do.  Raises `DTypeRefused`."""
    require_dtype(argument, index.dtype, frozenset({INT64}), "int64")


def place_dtype(argument: str, index: Tensor) -> None:
    """Make sure that a tensor holds int64 or int32, as indices along a dimension do.

    Raises:
        DTypeRefused: it does not.
    """
    require_dtype(argument, index.dtype, _PLACES, "int32, int64")


def computing(dtype: DType) -> DType | None:
    """Return the dtype to convert to before computing; None if it is `dtype` itself."""
    wider = compute_dtype(dtype)
    return None if wider is dtype else wider


def require_ndim(named: NamedTensor, *counts: int) -> None:
    """Make sure of the number of dimensions.  Raises `ShapesDoNotFit`."""
    tensor = named[1]
    if tensor is not None and len(tensor.shape) not in counts:
        expected = " or ".join(map(str, counts))
        raise bad_shapes(
            f"{named[0]} has {len(tensor.shape)} dimensions",
            f"{expected} dimensions",
            named,
        )


def require_shape(named: NamedTensor, shape: Shape) -> None:
    """Make sure that a tensor is None or has a shape.  Raises `ShapesDoNotFit`."""
    tensor = named[1]
    if tensor is not None and tensor.shape != shape:
        raise bad_shapes(
            f"{named[0]} has another shape than asked",
            f"shape {shape}",
            named,
        )


Number = bool | int | float | complex


def number_of(tensor: Tensor, device: Device) -> Number | None:
    """Return the number that a tensor represents among tensors on `device`, or None.

    Wrapped numbers represent one, and so do 0-dim CPU tensors on another device.
    """
    number: Number | None = tensor.number
    if number is not None:
        return number
    if tensor.device is not device and not tensor.shape and device.type != "meta":
        number = tensor.item()
    return number


def number_for(number: Number, dtype: DType) -> Number:
    """Return `number` as the Python type of elements of `dtype`."""
    kind, low, count = _KINDS[dtype]
    assert kind is complex or not isinstance(number, complex), (
        "promotion makes the dtype complex"
    )
    converted: Number = kind(number)  # type: ignore[arg-type]  # asserted above
    if count and not low <= converted < low + count:  # type: ignore[operator]  # an int
        return (converted - low) % count + low  # type: ignore[operator]  # an int
    return converted


_PYTHON = {"b": bool, "u": int, "i": int, "f": float, "c": complex}


def _kind_of(name: str) -> tuple[type[bool | int | float | complex], int, int]:
    facts = info(DType.named(name))
    kind = _PYTHON[facts.kind]
    low = int(facts.smallest) if kind is int else 0
    return kind, low, 2 ** (8 * facts.itemsize) if kind is int else 0


# dtype -> its Python type, the least integer, and the count of its integers.
_KINDS = {DType.named(name): _kind_of(name) for name in SUPPORTED}


def check_fill(
    value: bool | int | float | complex,
    dtype: DType,
    name: str = "value",
    call: str = "",
) -> None:
    """Make sure that elements of `dtype` can hold `value`.

    Raises:
        WrongOption: complex for reals, infinite or out of range for integers.
    """
    if dtype is BOOL and not isinstance(value, complex):
        return
    if isinstance(value, complex) and not dtype.is_complex:
        fits = f"a real number, as the elements are {dtype}"
    elif dtype in INTEGERS and not isinstance(value, complex):
        facts = info(dtype)
        if isfinite(value) and facts.smallest <= int(value) <= facts.largest:
            return
        fits = f"{facts.smallest} to {facts.largest}, as the elements are {dtype}"
    else:
        return
    raise bad_option(name, repr(value), fits, call=call)


def default_dtype(value: bool | int | float | complex) -> DType:
    """Return the dtype of a tensor made from a Python number."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INT64
    return DEFAULTS.complex if isinstance(value, complex) else DEFAULTS.real


def strides_of(
    like: Tensor, memory_format: MemoryFormat | None, call: str = ""
) -> Shape | None:
    """Return the strides of a new tensor like another one; None for row-major order.

    Raises:
        WrongOption: the format is for another number of dimensions.
    """
    shape = like.shape
    if memory_format is None or memory_format is PRESERVE:
        if like._place is None or is_contiguous(shape, like._place[2]):
            return None
        strides = preserved_strides(shape, like.strides)
    elif memory_format is CONTIGUOUS:
        return None
    else:
        order = LAST[memory_format]
        if len(shape) != len(order):
            raise bad_option(
                "memory_format",
                f"{memory_format} of a tensor of {len(shape)} dimensions",
                f"a tensor of {len(order)} dimensions, or another format",
                call=call,
            )
        strides = ordered_strides(shape, order)
    return None if is_contiguous(shape, strides) else strides


def with_strides(tensor: Tensor, strides: Shape | None) -> Tensor:
    """Return a new tensor with its elements in the order of `strides`."""
    return tensor if strides is None else view_of(tensor, tensor.shape, strides, 0)
