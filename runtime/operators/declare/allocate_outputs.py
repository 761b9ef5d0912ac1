"""Execution of plans: allocate the outputs, or check the targets, and run the kernel.

    make the outputs -> prepare the arguments -> run the kernel -> convert -> return

Kernels are looked up in the table of the backend for the device's memory.  The table is
imported when the first kernel runs, as that imports the compiler.  All of this is below
the dispatcher: nothing here records history or versions.

Rules:
- a target (`self` in place, `out`) is checked completely before any output is made: its
  device, its dtype, its shape, and that its elements do not share memory;
- the kernel writes to the target itself if it is contiguous, has the dtype that the
  kernel computes, and no argument reads its memory in another way; otherwise the result
  is allocated separately and copied, so that no element is read after it was
  overwritten;
- an output that starts as a copy of another tensor is allocated separately, too: the
  kernel may still reject the values of its arguments, and must not have written then;
- a target `out` without elements is resized after the result is computed;
- a pointwise result is rounded to its own dtype before it is converted to that of
  `out`;
- a pointwise result has the memory order of its arguments: dimensions are permuted to
  that order first, and back after the kernel has run, so that kernels see rows wherever
  there are any;
- the kernel that the dispatcher calls adds the operator's name to an error
  (`runtime.operators.declare.structured`).
"""

from collections.abc import Sequence
from math import prod
from typing import Any

from numpy import empty

from everyorder.runtime.base.locks import load
from everyorder.runtime.errors.tensor import (
    ArithmeticRefused,
    OperandError,
    TargetRefused,
)
from everyorder.runtime.operators.declare.plan import (
    CPU,
    CallPlan,
    KernelTable,
    Shape,
    Work,
    bad_devices,
    number_for,
    number_of,
)
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.tensors.construction import (
    empty_tensor,
    host_tensor,
    no_memory,
    resize_empty,
    view_of,
)
from everyorder.runtime.tensors.dtype_info import (
    compute_dtype,
    itemsize,
    numpy_dtype,
    real_dtype,
)
from everyorder.runtime.tensors.promotion import can_cast
from everyorder.runtime.tensors.shape import (
    broadcast_strides,
    contiguous_strides,
    is_contiguous,
    may_overlap_itself,
    memory_order,
    span,
    view_strides,
)
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import ensure_place, flat_of

# Dispatch key -> the module with the table of kernels; Meta does not compute.
MODULES: dict[str, str | None] = {
    "CPU": "everyorder.runtime.kernels.cpu",
    "CUDA": "everyorder.runtime.kernels.cuda",
    "Meta": None,
}

# Device type -> dispatch key, for the devices with kernels.
KEYS = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}
_TABLES: dict[str, KernelTable] = {}


def table_of(key: str) -> KernelTable:
    """Return the kernels of the backend, which are imported on first use."""
    table = _TABLES.get(key)
    if table is None:
        module = MODULES[key]
        assert module is not None, "Meta runs no kernels"
        table = _TABLES[key] = load(module).KERNELS
    return table


def table_for(device: Device) -> KernelTable:
    """Return the kernels for the memory of a device.

    A device type without kernels keeps its elements in host memory.
    """
    return table_of(KEYS.get(device.type, "CPU"))


# The errors of plans and kernels: the called operator adds its name to them.
REFUSALS = (OperandError, ArithmeticRefused.of_code("DivisionByZero"))


def produce(plan: CallPlan, table: KernelTable, own: str | Work) -> Any:
    """Run the plan into fresh tensors; return the result, or a tuple of several."""
    outputs, device, arguments, compute, cast, start, kernel, pointwise, _ = plan
    # A pointwise result has the memory order of its arguments: the plan is run with the
    # axes in that order, and the result is turned back.
    if pointwise and (order := order_of(plan)) is not None:
        return _placed(produce(_turned(plan, order), table, own), order)
    if compute is not None:
        arguments = prepared(arguments, compute, cast, device, table)
    if len(outputs) == 1 and (only := outputs[0]) is not None:
        shape, dtype = only
        kernel_dtype = made_dtype(dtype, compute)
        result = new_tensor(shape, kernel_dtype, device)
        if plan.strides is not None and not is_contiguous(shape, plan.strides):
            result = view_of(result, shape, plan.strides, 0)
        if start is not None:
            table["copy"](result, start)
        _run(kernel or own, table, (result,), arguments)
        return result if kernel_dtype is dtype else as_dtype(table, result, dtype)
    results = [
        None
        if each is None
        else empty_tensor(each[0], made_dtype(each[1], compute), device)
        for each in outputs
    ]
    if start is not None:
        table["copy"](results[0], start)
    _run(kernel or own, table, results, arguments)
    return tuple(
        [
            result
            if each is None or result is None or result.dtype is each[1]
            else as_dtype(table, result, each[1])
            for result, each in zip(results, outputs, strict=True)
        ]
    )


def order_of(plan: CallPlan) -> Shape | None:
    """Return the memory order of a pointwise result; None if row-major."""
    only = plan.outputs[0]
    assert only is not None, "a pointwise operator has a result"
    shape = only[0]
    if (
        plan.strides is not None
        or len(shape) < 2
        or not any(map(_is_turned, plan.arguments))
    ):
        return None
    strides = [
        broadcast_strides(each.shape, each.strides, shape)
        for each in plan.arguments
        if isinstance(each, Tensor) and each.number is None
    ]
    return memory_order(shape, tuple(strides))


def _is_turned(value: Any) -> bool:
    if not isinstance(value, Tensor):
        return False
    place = value._place
    return place is not None and not is_contiguous(value.shape, place[2])


def _turned(plan: CallPlan, order: Shape) -> CallPlan:
    """Return the plan with its dimensions in the order of memory."""
    only = plan.outputs[0]
    assert only is not None, "see `order_of`"
    shape, dtype = only
    arguments = tuple(
        _permuted(each, order)
        if isinstance(each, Tensor) and each.number is None and each.shape
        else each
        for each in plan.arguments
    )
    turned = tuple(shape[dim] for dim in order)
    # The new plan is not `pointwise`, so that no other order is derived from its
    # arguments.
    return plan._replace(
        outputs=((turned, dtype),), arguments=arguments, pointwise=False
    )


def _permuted(tensor: Tensor, order: Shape) -> Tensor:
    missing = (1,) * (len(order) - len(tensor.shape))
    shape, strides = (*missing, *tensor.shape), (*missing, *tensor.strides)
    storage, offset, _ = tensor._place or ensure_place(tensor)
    assert storage is not None, "every tensor can claim a storage"
    return view_of(
        tensor,
        tuple(shape[dim] for dim in order),
        tuple(strides[dim] for dim in order),
        offset,
    )


def _placed(result: Tensor, order: Shape) -> Tensor:
    """Return the result with its dimensions permuted back."""
    shape = dict(zip(order, result.shape, strict=True))
    strides = dict(zip(order, result.strides, strict=True))
    dims = range(len(order))
    return view_of(
        result,
        tuple(shape[dim] for dim in dims),
        tuple(strides[dim] for dim in dims),
        0,
    )


def new_tensor(shape: tuple[int, ...], dtype: DType, device: Device) -> Tensor:
    """Return an uninitialized tensor of a shape that a plan has checked.

    Raises:
        OutOfMemory: the device cannot hold the elements.
        BadSize: as in `empty_tensor`.
    """
    if device is not CPU:
        return empty_tensor(shape, dtype, device)
    count = prod(shape)
    if not count:
        contiguous_strides(shape)
    try:
        flat = empty(count, numpy_dtype(dtype))
    except (MemoryError, ValueError) as error:
        raise no_memory(shape, dtype, device) from error
    return host_tensor(flat, shape, dtype)


def pretend(plan: CallPlan) -> Any:
    """Return the results of a plan on meta: shapes, strides and dtypes, no elements."""
    if plan.pointwise and (order := order_of(plan)) is not None:
        return _placed(pretend(_turned(plan, order)), order)
    results = [
        None if each is None else empty_tensor(each[0], each[1], plan.device)
        for each in plan.outputs
    ]
    if len(results) > 1:
        return tuple(results)
    only = results[0]
    if plan.strides is None or only is None:
        return only
    return view_of(only, only.shape, plan.strides, 0)


def write_to(
    target: Tensor,
    argument: str,
    plan: CallPlan,
    table: KernelTable | None,
    own: str | Work,
) -> Tensor:
    """Run the plan into `target`, the tensor passed as `argument`; return it.

    `table` is None on meta, where only the checks run.

    Raises:
        DevicesDiffer, TargetRefused: the target does not fit.
        ArithmeticRefused, WrongOption, IndexOutOfRange: the kernel rejects values.
    """
    planned = plan.outputs[0]
    assert planned is not None, "an operator with a target has a result"
    shape, dtype = planned
    check_target(target, argument, shape, dtype, plan.device)
    resizes = target.shape != shape
    if table is None:
        if resizes:
            resize_empty(target, shape)
        return target
    compute, start = plan.compute, plan.start
    kernel_dtype = made_dtype(dtype, compute)
    kernel = plan.kernel or own
    arguments = plan.arguments
    if compute is not None:
        arguments = prepared(arguments, compute, plan.cast, plan.device, table)
    # The kernel may compute a wider dtype than that of the result.
    rounds = plan.pointwise and dtype not in (kernel_dtype, target.dtype)
    if (
        not resizes
        and not rounds
        and target.dtype is kernel_dtype
        and (start is None or start is target)
        and flat_of(target) is not None
        and not any(clashes(target, each, plan.pointwise) for each in plan.arguments)
    ):
        _run(kernel, table, (target,), arguments)
        return target
    result = empty_tensor(shape, kernel_dtype, target.device)
    if start is not None:
        table["copy"](result, start)
    _run(kernel, table, (result,), arguments)
    if rounds:
        result = as_dtype(table, result, dtype)
    if resizes:
        adopt(target, result)
    else:
        table["copy"](target, result)
    return target


def write_to_each(
    targets: tuple[Tensor, ...],
    arguments: tuple[str, ...],
    plan: CallPlan,
    table: KernelTable | None,
    own: str | Work,
) -> tuple[Tensor, ...]:
    """Run the plan, and write each result to its target; return the targets.

    `arguments` are the names of the targets; `table` is None on meta.

    Raises:
        DevicesDiffer, TargetRefused: a target does not fit, or two share memory.
        ArithmeticRefused, WrongOption, IndexOutOfRange: the kernel rejects values.
    """
    planned = [each for each in plan.outputs if each is not None]
    check_targets(targets, arguments, planned, plan.device)
    if table is None:
        for target, (shape, _) in zip(targets, planned, strict=True):
            if target.shape != shape:
                resize_empty(target, shape)
        return targets
    return tuple(map(adopt, targets, produce(plan, table, own)))


def check_targets(
    targets: Sequence[Tensor],
    arguments: Sequence[str],
    planned: Sequence[tuple[Shape, DType]],
    device: Device,
) -> None:
    """Make sure that each result can be written to its target, beside the others.

    Raises:
        DevicesDiffer, TargetRefused: it cannot.
    """
    for target, argument, result in zip(targets, arguments, planned, strict=True):
        check_target(target, argument, *result, device)
    for at, target in enumerate(targets):
        for other, argument in zip(targets[:at], arguments, strict=False):
            if target is other or overlap(target, other):
                raise TargetRefused(
                    code="TargetsOverlap", argument=arguments[at], other=argument
                )


def check_target(
    target: Tensor, argument: str, shape: Shape, dtype: DType, device: Device
) -> None:
    """Make sure that a result of this shape and dtype can be written to `target`.

    Raises:
        DevicesDiffer, TargetRefused: it cannot.
    """
    if target.device is not device:
        raise bad_devices(device, target.device)
    if target.dtype is not dtype and not can_cast(dtype, target.dtype):
        raise TargetRefused(
            code="TargetDType",
            argument=argument,
            dtype=str(target.dtype),
            result=str(dtype),
        )
    if target.shape != shape and (argument == "self" or target.numel()):
        raise TargetRefused(
            code="TargetShape", argument=argument, shape=target.shape, result=shape
        )
    check_no_overlap(target, argument)


def check_no_overlap(target: Tensor, argument: str, call: str = "") -> None:
    """Refuse a target whose elements share memory.  Raises `TargetRefused`."""
    if target._place is not None and may_overlap_itself(target.shape, target.strides):
        raise TargetRefused(
            code="TargetOverlaps",
            operator=call,
            argument=argument,
            shape=target.shape,
            strides=target.strides,
        )


def adopt(target: Tensor, source: Tensor) -> Tensor:
    """Copy `source` to `target`, and resize a target without elements."""
    if target.shape != source.shape:
        resize_empty(target, source.shape)
    if target.device.type != "meta":
        table_for(target.device)["copy"](target, source)
    return target


def prepared(
    arguments: tuple[Any, ...],
    compute: DType,
    cast: tuple[int, ...] | None,
    device: Device,
    table: KernelTable,
) -> tuple[Any, ...]:
    """Return the arguments as kernels take them: tensors cast, numbers converted.

    Wrapped numbers, and 0-dim CPU tensors among tensors of another device, become
    Python numbers, as long as one argument stays a tensor.
    """
    ready: list[Any] = []
    first_number, tensors = -1, 0
    for at, value in enumerate(arguments):
        if isinstance(value, Tensor):
            if cast is not None and at not in cast:
                tensors += 1
            elif (number := number_of(value, device)) is not None:
                value = number_for(number, compute)
                first_number = at if first_number < 0 else first_number
            else:
                tensors += 1
                value = as_dtype(table, value, compute)
        elif isinstance(value, (int, float, complex)) and (cast is None or at in cast):
            value = number_for(value, compute)
        ready.append(value)
    if not tensors and first_number >= 0:
        filled = empty_tensor((), compute, device)
        table["fill"](filled, ready[first_number])
        ready[first_number] = filled
    return tuple(ready)


def made_dtype(dtype: DType, compute: DType | None) -> DType:
    """Return the dtype of the kernel's output if the result has `dtype`."""
    return dtype if compute is None or compute is dtype else compute_dtype(dtype)


def _run(
    kernel: str | Work,
    table: KernelTable,
    outputs: Any,
    arguments: tuple[Any, ...],
) -> None:
    if isinstance(kernel, str):
        table[kernel](*outputs, *arguments)
    else:
        kernel(table, *outputs, *arguments)


def clashes(target: Tensor, value: Any, pointwise: bool) -> bool:
    """Return True if writing `target` may change unread elements of `value`.

    `pointwise`: each element is read before the same one is written, and never again.
    """
    if isinstance(value, (list, tuple)):
        return any(clashes(target, each, pointwise) for each in value)
    if not isinstance(value, Tensor):
        return False
    if value is target:
        return not pointwise
    if not overlap(target, value):
        return False
    return not (
        pointwise
        and value.shape == target.shape
        and value.strides == target.strides
        and value.dtype is target.dtype
        and value.data_ptr() == target.data_ptr()
    )


def overlap(one: Tensor, other: Tensor) -> bool:
    """Return True if the bytes from first to last element of two tensors overlap.

    Two storages may share memory: NumPy's arrays are shared in both directions.
    """
    x, y = _array(one), _array(other)
    # One of them lacks elements, or both own their memory, as most do.
    if x is None or y is None or (x is not y and _owns(x) and _owns(y)):
        return False
    first, last = _reach(one)
    start, end = _reach(other)
    return max(first, start) < min(last, end)


def _array(tensor: Tensor) -> Any:
    place = tensor._place
    return tensor._flat if place is None else place[0].array


def _owns(array: Any) -> bool:
    # A device's array does not have the attribute; its addresses are compared.
    return getattr(array, "base", array) is None


def _reach(tensor: Tensor) -> tuple[int, int]:
    start: int = tensor.data_ptr()
    return start, start + span(tensor.shape, tensor.strides) * itemsize(tensor.dtype)


def shaped(table: KernelTable, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the elements in another shape, as a view if possible, else as a copy."""
    if tensor.shape == shape:
        return tensor
    strides = view_strides(tensor.shape, tensor.strides, shape)
    if strides is None:
        tensor = in_order(table, tensor)
        strides = contiguous_strides(shape)
    return view_of(tensor, shape, strides, tensor.offset)


def as_rows(table: KernelTable, tensor: Tensor) -> Tensor:
    """Return a tensor (..., d) as (rows, d)."""
    *rows, size = tensor.shape
    return shaped(table, tensor, (prod(rows), size))


def with_batch(tensor: Tensor) -> Tensor:
    """Return a view with a first dimension of size 1, for kernels that need a batch."""
    shape, strides = (1, *tensor.shape), (tensor.numel(), *tensor.strides)
    return view_of(tensor, shape, strides, tensor.offset)


def in_order(table: KernelTable, tensor: Tensor) -> Tensor:
    """Return the tensor itself if it is contiguous, else a contiguous copy."""
    if tensor.is_contiguous():
        return tensor
    return copied(table, tensor, tensor.dtype)


def copied(table: KernelTable, tensor: Tensor, dtype: DType) -> Tensor:
    """Return a contiguous copy in `dtype`."""
    result = empty_tensor(tensor.shape, dtype, tensor.device)
    table["copy"](result, tensor)
    return result


def as_dtype(table: KernelTable, tensor: Tensor, dtype: DType) -> Tensor:
    """Return the tensor itself if it has the dtype, else a copy that does."""
    return tensor if tensor.dtype is dtype else copied(table, tensor, dtype)


def parts(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """Return the real and the imaginary parts of complex numbers, as views."""
    strides, half = tuple(2 * step for step in tensor.strides), real_dtype(tensor.dtype)
    real, imaginary = (
        view_of(tensor, tensor.shape, strides, 2 * tensor.offset + part, half)
        for part in (0, 1)
    )
    return real, imaginary


def expanded(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a view that repeats dimensions of size 1 up to `shape`."""
    if tensor.shape == shape:
        return tensor
    strides = broadcast_strides(tensor.shape, tensor.strides, shape)
    return view_of(tensor, shape, strides, tensor.offset)
