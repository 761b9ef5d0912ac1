"""Fast paths: small calls on the CPU go straight to the compiled entry.

These calls need no plan: tensors of the dtype that the operator keeps, small enough for
one thread, are handed to the entry of their dtype: contiguous ones of one shape, a
tensor with a number, and two of any layout.  Everything else, and the first call of a
dtype, goes the general way.

Rules:
- the result is that of the general way, by construction: an entry is used only where
  the operator's row keeps the dtype (or makes bool) and computes in it;
- operands of a device that keeps its elements in host memory, redispatched to the
  CPU's kernels, are those of that device: they go the general way;
- in place nothing that is read may be written by another name: the operands are one
  tensor, or they lie apart in memory.
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

# Above this the general way may use several threads; it costs some microseconds more.
SERIAL = 8192
# Below the greatest float32: numbers beyond become infinite, which NumPy warns of.
LARGE = 3e38
# More codes than there are dtypes.
CODES = 64

Function = Callable[..., Any]
Wrapper = Callable[[Function], Function]
Rows = Mapping[DType, tuple[DType, DType, Any]]
# entry, NumPy's dtype of the result, dtype of the result
Entry = tuple[Function, Any, DType]

# The Python numbers that an entry takes as they are: they fit, and change no dtype.
_WITH_FLOATS = frozenset({bool, int, float})
_WITH_INTEGERS = frozenset({bool, int})
_NONE: frozenset[type] = frozenset()


class Entries:
    """The entries of one loop of an operator, by the code of the dtype.

    `find(family)` is asked once for each dtype, for the family of the loop.
    """

    __slots__ = ("_asked", "_find", "_rows", "by_code", "numbers")

    def __init__(self, rows: Rows, find: Callable[[DType], Any]) -> None:
        self.by_code: list[Entry | None] = [None] * CODES
        self.numbers: list[frozenset[type]] = [_NONE] * CODES
        self._rows = rows
        self._find = find
        self._asked: set[DType] = set()

    def load(self, dtype: DType) -> None:
        """Remember the entry of a dtype, if the operator keeps it and there is one."""
        if dtype in self._asked:
            return
        self._asked.add(dtype)
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

    kept = {
        d: row for d, row in rows.items() if not loop.endswith("onto") or row[0] is d
    }
    return Entries(kept, find)


def fast_unary(name: str, rows: Rows) -> Wrapper:
    """The fast path of an operator of one tensor."""

    def wrap(general: Function) -> Function:
        entries = _unary(name, rows)
        by_code = entries.by_code

        def kernel(self: Tensor) -> Any:
            x = self._flat
            if x is not None and len(x) <= SERIAL and self._device is CPU:
                found = by_code[self._dtype.code]
                if found is not None:
                    entry, form, dtype = found
                    result = empty(len(x), form)
                    entry(x, result)
                    return host_tensor(result, self._shape, dtype)
                entries.load(self._dtype)
            return general(self)

        return kernel

    return wrap


def fast_scaled(name: str, rows: Rows) -> Wrapper:
    """The fast path of an operator of two tensors and a factor, when that is 1."""

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
                        found = of_pairs[dtype.code]
                        if found is not None:
                            entry, form, made = found
                            result = empty(len(x), form)
                            entry(x, y, result)
                            return host_tensor(result, self._shape, made)
                        flat.load(dtype)
                elif (number := other.number) is not None and self.number is None:
                    found = of_numbers[dtype.code]
                    if found is not None:
                        if type(number) in fitting[dtype.code]:
                            entry, form, made = found
                            result = empty(len(x), form)
                            entry(x, number, result)
                            return host_tensor(result, self._shape, made)
                    else:
                        right.load(dtype)
                    return general(self, other, alpha)
            found = of_layouts(self, other)
            return general(self, other, alpha) if found is None else found

        return kernel

    return wrap


def layouts(name: str, rows: Rows) -> Function:
    """The fast path of two tensors of any layout, or of a number and a tensor.

    `run(self, other)` gives None where there is no such way.
    """
    strided = _loop(name, rows, "strided")
    by_code, fitting = strided.by_code, strided.numbers

    def run(self: Tensor, other: Tensor) -> Tensor | None:
        dtype = other._dtype
        found = by_code[dtype.code]
        if found is None:
            strided.load(dtype)
            return None
        number = self.number
        if other.number is not None or (number is None and self._dtype is not dtype):
            return None
        entry, form, made = found
        if number is None:
            x, at_x, steps = _elements(self)
        elif type(number) in fitting[dtype.code] and -LARGE < number < LARGE:  # type: ignore[operator]  # what fits is real
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
        found_tensor = host_tensor(result, shape, made)
        if strides_made is not None:
            storage = ensure_place(found_tensor)[0]
            found_tensor._flat, found_tensor._place = None, (storage, 0, strides_made)
        return found_tensor

    return run


def _elements(tensor: Tensor) -> tuple[Any, int, Shape | None]:
    """The array that the elements lie in, where they begin, and their strides.

    None for the array: not without a look at another dtype; for the strides: in order.
    """
    place = tensor._place
    if place is None:
        return tensor._flat, 0, None
    storage, offset, strides = place
    return (storage.array if storage.dtype is tensor._dtype else None), offset, strides


# Programs see few pairs of layouts; each answer is a small table.
@lru_cache(maxsize=1024)
def _layout(
    left: Shape, left_steps: Shape | None, right: Shape, right_steps: Shape | None
) -> tuple[Shape, int, int, Any, Shape | None] | None:
    """Shape and elements of the result, how a strided loop goes over them, its strides.

    None where the shapes do not go together, or there is not one small thread's work;
    no strides are those of row-major order.
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
    """As `fast_scaled`, of an operator without a factor."""
    wrap_scaled = fast_scaled(name, rows)
    return lambda general: wrap_scaled(lambda self, other, alpha: general(self, other))


def fast_out(name: str, rows: Rows) -> Wrapper:
    """The fast path to a target of the result's shape and dtype.

    For operators of two tensors; of `add` and `sub`, when the factor is 1.
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
                found = by_code[dtype.code]
                if found is None:
                    flat.load(dtype)
                elif out._dtype is found[2]:
                    found[0](x, y, z)
                    return out
            return general(self, other, *rest)

        return kernel

    return wrap


def fast_in_place(name: str, rows: Rows, factor: int = 0) -> Wrapper:
    """The fast path in place.

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
                        found = of_pairs[dtype.code]
                        if found is not None:
                            found[0](y, x)
                            return self
                        onto.load(dtype)
                elif (number := other.number) is not None and self.number is None:
                    found = of_numbers[dtype.code]
                    if found is not None:
                        if type(number) in fitting[dtype.code]:
                            found[0](number, x)
                            return self
                    else:
                        right.load(dtype)
            return general(self, other)

        return kernel

    return _with_factor(wrap, rows, factor) if factor else wrap


def _with_factor(wrap: Wrapper, rows: Rows, factor: int) -> Wrapper:
    """The fast path of `add_` and `sub_`: also with a factor, as optimizers call it."""

    def wrap_scaled(general: Function) -> Function:
        plain = wrap(lambda self, other: general(self, other, 1))

        def find(dtype: DType) -> Any:
            module = load("everyorder.runtime.kernels.cpu.pointwise")
            return module.SCALED_ONTO[dtype.name]

        kept = {d: row for d, row in rows.items() if d.is_floating}
        entries = Entries(kept, find)
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
                found = by_code[dtype.code]
                if found is not None:
                    found[0](y, factor * alpha, x)
                    return self
                entries.load(dtype)
            return general(self, other, alpha)

        return kernel

    return wrap_scaled


def fast_fill(self: Tensor, number: Any) -> bool:
    """Fill a small contiguous CPU tensor, if it is one; whether it was."""
    flat = self._flat
    if flat is None or self._device is not CPU or len(flat) > SERIAL:
        return False
    flat.fill(number)
    return True


def disjoint(target: Tensor, read: Tensor) -> bool:
    """Whether writing to `target`, element by element, changes nothing of `read`."""
    x, y = target._flat, read._flat
    if x is not y and x.base is None and y.base is None:  # type: ignore[union-attr]  # who asks has looked
        return True
    return target is read or not overlap(target, read)
