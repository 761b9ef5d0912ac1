"""Fast paths: small CPU calls run the compiled entry without a plan.

Tensors of a dtype that the operator keeps, small enough for one thread, are passed to
the entry of their dtype: contiguous ones of one shape, a tensor with a number, and two
of any layout.  All other calls, and the first call of a dtype, use the general path.

Rules:
- the result equals that of the general path, by construction: an entry is used only if
  the operator's row keeps the dtype (or makes bool) and computes in it;
- operands of a device that keeps its elements in host memory are redispatched to the
  CPU's kernels, but are not on the CPU: they use the general path;
- in place, no element that is read may be written through another operand: the operands
  are one tensor, or disjoint in memory.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import prod
from typing import Any

from numpy import array, empty

from everyorder.runtime.base.locks import load
from everyorder.runtime.errors.tensor import ShapesDoNotFit
from everyorder.runtime.operators.declare.allocate_outputs import overlap
from everyorder.runtime.operators.declare.plan import BOOL, CPU, INT64, Shape
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.construction import host_tensor
from everyorder.runtime.tensors.dtype_info import numpy_dtype
from everyorder.runtime.tensors.shape import (
    broadcast_shapes,
    broadcast_strides,
    contiguous_strides,
    memory_order,
    ordered_strides,
)
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import ensure_place

# Above this size the general path may use several threads; it costs some microseconds
# more.
SERIAL = 8192
# Below the greatest float32: NumPy warns about larger numbers, which become infinite.
LARGE = 3e38
# An upper bound of the number of dtypes.
CODES = 64

Function = Callable[..., Any]
Wrapper = Callable[[Function], Function]
Rows = Mapping[DType, tuple[DType, DType, Any]]
# entry, NumPy's dtype of the result, dtype of the result
Entry = tuple[Function, Any, DType]

# The Python numbers that an entry accepts unchanged: they fit, and change no dtype.
_WITH_FLOATS = frozenset({bool, int, float})
_WITH_INTEGERS = frozenset({bool, int})
_NONE: frozenset[type] = frozenset()


class Entries:
    """The entries of one loop of an operator, by the code of the dtype.

    `find(dtype)` is called once for each dtype; it raises KeyError without an entry.
    """

    __slots__ = ("_attempted", "_find", "_rows", "by_code", "numbers")

    def __init__(self, rows: Rows, find: Callable[[DType], Any]) -> None:
        self.by_code: list[Entry | None] = [None] * CODES
        self.numbers: list[frozenset[type]] = [_NONE] * CODES
        self._rows = rows
        self._find = find
        self._attempted: set[DType] = set()

    def load(self, dtype: DType) -> None:
        """Store the entry of a dtype, if the operator keeps it and has an entry."""
        if dtype in self._attempted:
            return
        self._attempted.add(dtype)
        result, compute, kernel = self._rows.get(dtype, (None, None, None))
        if compute is not dtype or kernel is not None or result not in (dtype, BOOL):
            return
        try:
            entry = self._find(dtype)
        except KeyError:
            return
        self.by_code[dtype.code] = entry, numpy_dtype(result), result
        if dtype.is_floating:
            self.numbers[dtype.code] = _WITH_FLOATS
        elif dtype is INT64:
            self.numbers[dtype.code] = _WITH_INTEGERS


def _unary(name: str, rows: Rows) -> Entries:
    def find(dtype: DType) -> Any:
        module = load("everyorder.runtime.kernels.cpu.pointwise")
        return module.direct_unary(name, dtype.name)

    return Entries(rows, find)


def _loop(name: str, rows: Rows, loop: str) -> Entries:
    def find(dtype: DType) -> Any:
        module = load("everyorder.runtime.kernels.cpu.pointwise")
        return getattr(module.PLAIN[name], loop)[dtype.name]

    same_dtype = {
        d: row for d, row in rows.items() if not loop.endswith("onto") or row[0] is d
    }
    return Entries(same_dtype, find)


def fast_unary(name: str, rows: Rows) -> Wrapper:
    """Return the wrapper that adds the fast path of an operator of one tensor."""

    def wrap(general: Function) -> Function:
        entries = _unary(name, rows)
        by_code = entries.by_code

        def kernel(self: Tensor) -> Any:
            x = self._flat
            if x is not None and len(x) <= SERIAL and self._device is CPU:
                compiled = by_code[self._dtype.code]
                if compiled is not None:
                    entry, form, dtype = compiled
                    result = empty(len(x), form)
                    entry(x, result)
                    return host_tensor(result, self._shape, dtype)
                entries.load(self._dtype)
            return general(self)

        return kernel

    return wrap


def fast_scaled(name: str, rows: Rows) -> Wrapper:
    """Return the wrapper for an operator of two tensors and a factor, which is 1."""

    def wrap(general: Function) -> Function:
        flat, right = _loop(name, rows, "flat"), _loop(name, rows, "right")
        of_pairs, of_numbers = flat.by_code, right.by_code
        fitting = right.numbers
        of_layouts = layouts(name, rows)

        def kernel(self: Tensor, other: Tensor, alpha: Any = 1) -> Any:
            if alpha != 1 or not self._device is other._device is CPU:
                return general(self, other, alpha)
            x, y, dtype = self._flat, other._flat, self._dtype
            if x is not None and len(x) <= SERIAL:
                if y is not None:
                    if dtype is other._dtype and self._shape == other._shape:
                        compiled = of_pairs[dtype.code]
                        if compiled is not None:
                            entry, form, result_dtype = compiled
                            result = empty(len(x), form)
                            entry(x, y, result)
                            return host_tensor(result, self._shape, result_dtype)
                        # The loop for other layouts is compiled when one comes.
                        flat.load(dtype)
                        return general(self, other, alpha)
                elif (number := other.number) is not None and self.number is None:
                    compiled = of_numbers[dtype.code]
                    if compiled is not None:
                        if type(number) in fitting[dtype.code]:
                            entry, form, result_dtype = compiled
                            result = empty(len(x), form)
                            entry(x, number, result)
                            return host_tensor(result, self._shape, result_dtype)
                    else:
                        right.load(dtype)
                    return general(self, other, alpha)
            compiled = of_layouts(self, other)
            return general(self, other, alpha) if compiled is None else compiled

        return kernel

    return wrap


def layouts(name: str, rows: Rows) -> Function:
    """Return the fast path of two tensors of any layout, or of a number and a tensor.

    `run(self, other)` returns None if no fast path applies.
    """
    strided = _loop(name, rows, "strided")
    by_code, fitting = strided.by_code, strided.numbers

    def run(self: Tensor, other: Tensor) -> Tensor | None:
        dtype = other._dtype
        compiled = by_code[dtype.code]
        if compiled is None:
            strided.load(dtype)
            return None
        number = self.number
        if other.number is not None or (number is None and self._dtype is not dtype):
            return None
        entry, form, result_dtype = compiled
        if number is None:
            x, at_x, steps = _elements(self)
        elif type(number) in fitting[dtype.code] and -LARGE < number < LARGE:  # type: ignore[operator]  # a fitting number is real
            x, at_x, steps = array([number], numpy_dtype(dtype)), 0, None
        else:
            return None
        y, at_y, steps_y = _elements(other)
        layout = _layout(self._shape, steps, other._shape, steps_y)
        if layout is None or x is None or y is None:
            return None
        shape, count, lines, table, strides_made = layout
        result = empty(count, form)
        entry(x, at_x, y, at_y, result, table, 0, lines)
        found_tensor = host_tensor(result, shape, result_dtype)
        if strides_made is not None:
            storage = ensure_place(found_tensor)[0]
            found_tensor._flat, found_tensor._place = None, (storage, 0, strides_made)
        return found_tensor

    return run


def _elements(tensor: Tensor) -> tuple[Any, int, Shape | None]:
    """Return the array of the elements, the index of the first one, and their strides.

    The array is None if its dtype is not the tensor's; the strides are None if
    contiguous.
    """
    place = tensor._place
    if place is None:
        return tensor._flat, 0, None
    storage, offset, strides = place
    return (storage.array if storage.dtype is tensor._dtype else None), offset, strides


# Programs use few pairs of layouts; an entry is a small table.
@lru_cache(maxsize=1024)
def _layout(
    left: Shape, left_steps: Shape | None, right: Shape, right_steps: Shape | None
) -> tuple[Shape, int, int, Any, Shape | None] | None:
    """Return shape, count, loop lines, loop table and strides of the result.

    None if the shapes do not broadcast, or the work is empty or too much for one
    thread; the strides are None for row-major order.
    """
    try:
        shape = broadcast_shapes(left, right)
    except ShapesDoNotFit:
        return None
    count = prod(shape)
    if not 0 < count <= SERIAL:
        return None
    module = load("everyorder.runtime.kernels.cpu.elementwise")
    operands = [
        (left, contiguous_strides(left) if left_steps is None else left_steps),
        (right, contiguous_strides(right) if right_steps is None else right_steps),
    ]
    spread = tuple([broadcast_strides(*each, shape) for each in operands])
    order = memory_order(shape, spread)
    if order is None:
        lines, _, table = module.plan(shape, *operands)
        return shape, count, lines, table, None
    turned = tuple(shape[dim] for dim in order)
    rows = [(turned, tuple(each[dim] for dim in order)) for each in spread]
    lines, _, table = module.plan(turned, *rows)
    return shape, count, lines, table, ordered_strides(shape, order)


def fast_binary(name: str, rows: Rows) -> Wrapper:
    """Return the wrapper of `fast_scaled` for an operator without a factor."""
    wrap_scaled = fast_scaled(name, rows)
    return lambda general: wrap_scaled(lambda self, other, alpha: general(self, other))


def fast_out(name: str, rows: Rows) -> Wrapper:
    """Return the wrapper for the out= form, if `out` has the result's dtype and shape.

    For operators of two tensors; of `add` and `sub`, if the factor is 1.
    """

    def wrap(general: Function) -> Function:
        flat = _loop(name, rows, "flat")
        by_code = flat.by_code

        def kernel(self: Tensor, other: Tensor, *rest: Any) -> Any:
            out, dtype = rest[-1], self._dtype
            x, y, z = self._flat, other._flat, out._flat
            if (
                x is not None
                and y is not None
                and z is not None
                and dtype is other._dtype
                and self._shape == other._shape == out._shape
                and (len(rest) == 1 or rest[0] == 1)
                and self._device is other._device is out._device
                and out is not self
                and out is not other
                and len(x) <= SERIAL
                and disjoint(out, self)
                and disjoint(out, other)
            ):
                compiled = by_code[dtype.code]
                if compiled is None:
                    flat.load(dtype)
                elif out._dtype is compiled[2]:
                    compiled[0](x, y, z)
                    return out
            return general(self, other, *rest)

        return kernel

    return wrap


def fast_in_place(name: str, rows: Rows, factor: int = 0) -> Wrapper:
    """Return the wrapper for the in-place form.

    `factor` is 1 or -1 for `add` and `sub`, which have `alpha`, and 0 for the others.
    """

    def wrap(general: Function) -> Function:
        onto, right = _loop(name, rows, "onto"), _loop(name, rows, "right_onto")
        of_pairs, of_numbers = onto.by_code, right.by_code
        fitting = right.numbers

        def kernel(self: Tensor, other: Tensor) -> Any:
            x = self._flat
            if x is not None and len(x) <= SERIAL:
                y, dtype = other._flat, self._dtype
                if y is not None:
                    if (
                        dtype is other._dtype
                        and self._shape == other._shape
                        and self._device is other._device
                        and disjoint(self, other)
                    ):
                        compiled = of_pairs[dtype.code]
                        if compiled is not None:
                            compiled[0](y, x)
                            return self
                        onto.load(dtype)
                elif (number := other.number) is not None and self.number is None:
                    compiled = of_numbers[dtype.code]
                    if compiled is not None:
                        if type(number) in fitting[dtype.code]:
                            compiled[0](number, x)
                            return self
                    else:
                        right.load(dtype)
            return general(self, other)

        return kernel

    return _with_factor(wrap, rows, factor) if factor else wrap


def _with_factor(wrap: Wrapper, rows: Rows, factor: int) -> Wrapper:
    """Return the wrapper of `add_` and `sub_`, also with a factor, as in optimizers."""

    def wrap_scaled(general: Function) -> Function:
        plain = wrap(lambda self, other: general(self, other, 1))

        def find(dtype: DType) -> Any:
            module = load("everyorder.runtime.kernels.cpu.pointwise")
            return module.SCALED_ONTO[dtype.name]

        floating = {d: row for d, row in rows.items() if d.is_floating}
        entries = Entries(floating, find)
        by_code = entries.by_code

        def kernel(self: Tensor, other: Tensor, alpha: Any) -> Any:
            if alpha == 1:
                return plain(self, other)
            x, y, dtype = self._flat, other._flat, self._dtype
            if (
                x is not None
                and y is not None
                and dtype is other._dtype
                and self._shape == other._shape
                and self._device is other._device
                and type(alpha) in _WITH_FLOATS
                and len(x) <= SERIAL
                and disjoint(self, other)
            ):
                compiled = by_code[dtype.code]
                if compiled is not None:
                    compiled[0](y, factor * alpha, x)
                    return self
                entries.load(dtype)
            return general(self, other, alpha)

        return kernel

    return wrap_scaled


def fast_fill(self: Tensor, number: Any) -> bool:
    """Fill a tensor if it is small, contiguous and on the CPU; True if filled."""
    flat = self._flat
    if flat is None or self._device is not CPU or len(flat) > SERIAL:
        return False
    flat.fill(number)
    return True


def disjoint(target: Tensor, read: Tensor) -> bool:
    """Return True if writing `target`, by element, changes nothing of `read`."""
    x, y = target._flat, read._flat
    if x is not y and x.base is None and y.base is None:  # type: ignore[union-attr]  # both have a flat array
        return True
    return target is read or not overlap(target, read)
