"""Plans: what an operator is about to do, decided before anything is computed.

True only here: what a plan says.  A planning function gets the operator as called and
every argument in schema order, makes *all* checks (dtypes, shapes, devices, options)
and returns a `Plan`; it computes nothing, so that the same function serves CPU, CUDA
and Meta, and the functional, in-place and out= forms.

How it works: `runtime.operators.produce` makes the outputs that the plan lists, turns
the arguments into what kernels take, and runs the kernel.  Sixteen-bit floats compute
in float32: an output whose dtype is not the one computed in is made in
`compute_dtype(dtype)` first and converted when the kernel has run.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from runtime.errors.operands import DevicesDiffer, DimensionOutOfRange, DTypeRefused
from runtime.schema.codes import DType
from runtime.schema.device import Device
from runtime.tensors.tensor import Tensor

Shape = tuple[int, ...]
# name -> kernel, of one backend.
KernelTable = Mapping[str, Callable[..., Any]]
# Runs in place of a kernel: (table, *outputs, *arguments).
Work = Callable[..., Any]


class Plan(NamedTuple):
    """What a call will make and run (a tuple: made on every call).

    Attributes:
        outputs: shape and dtype of each result; None for a result that is None.
        device: of the outputs.
        arguments: what the kernel gets behind its outputs.
        compute: the dtype that the arguments are converted to: tensors are cast, and
            numbers become its kind of Python number.  None: they go as they are.
        cast: which positions of `arguments` that concerns; None means every tensor
            and number among them.
        start: the (first) output begins as a copy of this tensor, as in `scatter`.
        kernel: the kernel's name, or a function `(table, *outputs, *arguments)` that
            runs several; None for the kernel of the operator's own name.
        pointwise: each element of the output depends on the same element of the
            inputs only, so that output and input may be the same memory, and the
            output lies as the inputs do.
        strides: of a fresh output, where its elements do not lie row by row.
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


def common_device(call: str, *tensors: Tensor | None) -> Device:
    """The one device of the tensors; CPU tensors without dimensions go along.

    Raises:
        DevicesDiffer: they lie on several.
    """
    found: Device | None = None
    for tensor in tensors:
        if tensor is None:
            continue
        device = tensor.device
        if device is found or not (tensor.shape or device.type != "cpu"):
            continue
        if found is not None:
            raise DevicesDiffer(operator=call, devices=(str(found), str(device)))
        found = device
    return CPU if found is None else found


def same_device(call: str, *tensors: Tensor | None) -> Device:
    """The one device of all the tensors, those without dimensions included.

    Raises:
        DevicesDiffer: they lie on several.
    """
    found: Device | None = None
    for tensor in tensors:
        if tensor is None or tensor.device is found:
            continue
        if found is not None:
            devices = (str(found), str(tensor.device))
            raise DevicesDiffer(operator=call, devices=devices)
        found = tensor.device
    return CPU if found is None else found


def require_dtype(
    call: str, argument: str, dtype: DType, accepted: frozenset[DType], fits: str
) -> None:
    """Make sure that an operator is defined for the dtype.  Raises `DTypeRefused`."""
    if dtype not in accepted:
        raise DTypeRefused(
            operator=call, argument=argument, dtype=str(dtype), fits=fits
        )


def one_dim(call: str, dim: int, shape: Shape) -> int:
    """`dim` counted from the front; 0 and -1 name the whole of a 0-dim tensor.

    Raises:
        DimensionOutOfRange: the shape has no such dimension.
    """
    count = len(shape) or 1
    if not -count <= dim < count:
        raise DimensionOutOfRange(operator=call, dim=dim, shape=shape)
    return dim % count


def many_dims(call: str, dims: Sequence[int] | None, shape: Shape) -> tuple[int, ...]:
    """The dimensions, sorted and counted from the front; none given means all.

    Raises:
        DimensionOutOfRange: the shape lacks one, or one is named twice.
    """
    if not dims:
        return tuple(range(len(shape)))
    found: list[int] = []
    for dim in dims:
        wrapped = one_dim(call, dim, shape)
        if wrapped in found:
            raise DimensionOutOfRange(
                operator=call, dim=dim, shape=shape, repeated=True
            )
        found.append(wrapped)
    return tuple(sorted(found)) if shape else ()


def dtypes(*names: str) -> frozenset[DType]:
    """The dtypes of these names."""
    return frozenset(DType.named(name) for name in names)


CPU = Device("cpu")
BOOL = DType.named("bool")
INT64 = DType.named("int64")
FLOAT32 = DType.named("float32")
FLOAT64 = DType.named("float64")

# Dtypes that are computed in as they are, by far the most frequent ones.
PLAIN = dtypes("float32", "float64")
INTEGERS = dtypes("uint8", "int8", "int16", "int32", "int64")
FLOATS = dtypes("float16", "bfloat16", "float32", "float64")
HALVES = dtypes("float16", "bfloat16")
COMPLEXES = dtypes("complex64", "complex128")
# What an operator with real numbers takes.
REALS = INTEGERS | FLOATS
NUMBERS = REALS | COMPLEXES
ALL = NUMBERS | {BOOL}
