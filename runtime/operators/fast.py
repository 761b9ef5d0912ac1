"""Short ways: small calls on the CPU go straight to the compiled entry.

True only here: the calls that need no plan.  Tensors that are contiguous, have one
shape and the dtype that the operator keeps, and are small enough for one thread are
handed to the entry of their dtype; so is a tensor with a number.  Everything else, and
the first call of a dtype, goes the general way.

Rules:
- the result is that of the general way, by construction: an entry is used only where
  the operator's row keeps the dtype (or makes bool) and computes in it;
- in place nothing that is read may be written by another name: the operands are one
  tensor, or one of them never had a view.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from numpy import empty

from runtime.operators.plan import BOOL, CPU, INT64
from runtime.schema.codes import DType
from runtime.tensors.elements import numpy_dtype
from runtime.tensors.keys_of import inference, inference_keys_of, keys_of
from runtime.tensors.tensor import Tensor

# Above this the general way may use several threads; it costs some microseconds more.
SERIAL = 8192
# More codes than there are dtypes.
CODES = 64

_PLAIN = keys_of("cpu").bits
_INFERENCE = inference_keys_of("cpu").bits

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
        module = import_module("runtime.kernels.cpu.unary")
        return module.direct_unary(name, dtype.name)

    return Entries(rows, find)


def _loop(name: str, rows: Rows, loop: str) -> Entries:
    def find(dtype: DType) -> Any:
        module = import_module("runtime.kernels.cpu.binary")
        return getattr(module.PLAIN[name], loop)[dtype.name]

    kept = {
        d: row for d, row in rows.items() if not loop.endswith("onto") or row[0] is d
    }
    return Entries(kept, find)


def fast_unary(name: str, rows: Rows) -> Wrapper:
    """The short way of an operator of one tensor."""

    def wrap(general: Function) -> Function:
        entries = _unary(name, rows)
        by_code = entries.by_code

        def kernel(self: Tensor) -> Any:
            x = self._flat
            if x is not None and len(x) <= SERIAL:
                found = by_code[self.dtype.code]
                if found is not None:
                    entry, form, dtype = found
                    result = empty(len(x), form)
                    entry(x, result)
                    bits = _INFERENCE if inference.active else _PLAIN
                    return Tensor(result, self.shape, dtype, CPU, bits)
                entries.load(self.dtype)
            return general(self)

        return kernel

    return wrap


def fast_scaled(name: str, rows: Rows) -> Wrapper:
    """The short way of an operator of two tensors and a factor, when that is 1."""

    def wrap(general: Function) -> Function:
        flat, right = _loop(name, rows, "flat"), _loop(name, rows, "right")
        of_pairs, of_numbers = flat.by_code, right.by_code
        fitting = right.numbers

        def kernel(self: Tensor, other: Tensor, alpha: Any = 1) -> Any:
            x = self._flat
            if x is not None and alpha == 1 and len(x) <= SERIAL:
                y, dtype = other._flat, self.dtype
                if y is not None:
                    if dtype is other.dtype and self.shape == other.shape:
                        found = of_pairs[dtype.code]
                        if found is not None:
                            entry, form, made = found
                            result = empty(len(x), form)
                            entry(x, y, result)
                            bits = _INFERENCE if inference.active else _PLAIN
                            return Tensor(result, self.shape, made, CPU, bits)
                        flat.load(dtype)
                elif (number := other.number) is not None and self.number is None:
                    found = of_numbers[dtype.code]
                    if found is not None:
                        if type(number) in fitting[dtype.code]:
                            entry, form, made = found
                            result = empty(len(x), form)
                            entry(x, number, result)
                            bits = _INFERENCE if inference.active else _PLAIN
                            return Tensor(result, self.shape, made, CPU, bits)
                    else:
                        right.load(dtype)
            return general(self, other, alpha)

        return kernel

    return wrap


def fast_binary(name: str, rows: Rows) -> Wrapper:
    """As `fast_scaled`, of an operator without a factor."""
    wrap_scaled = fast_scaled(name, rows)
    return lambda general: wrap_scaled(lambda self, other, alpha: general(self, other))


def fast_in_place(name: str, rows: Rows, factor: int = 0) -> Wrapper:
    """The short way in place.

    `factor` is 1 or -1 for `add` and `sub`, which have `alpha`, and 0 for the others.
    """

    def wrap(general: Function) -> Function:
        onto, right = _loop(name, rows, "onto"), _loop(name, rows, "right_onto")
        of_pairs, of_numbers = onto.by_code, right.by_code
        fitting = right.numbers

        def kernel(self: Tensor, other: Tensor) -> Any:
            x = self._flat
            if x is not None and len(x) <= SERIAL:
                y, dtype = other._flat, self.dtype
                if y is not None:
                    if (
                        dtype is other.dtype
                        and self.shape == other.shape
                        and apart(self, other)
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
    """The short way of `add_` and `sub_`: also with a factor, as optimizers call it."""

    def wrap_scaled(general: Function) -> Function:
        plain = wrap(lambda self, other: general(self, other, 1))

        def find(dtype: DType) -> Any:
            module = import_module("runtime.kernels.cpu.binary")
            return module.SCALED_ONTO[dtype.name]

        kept = {d: row for d, row in rows.items() if d.is_floating}
        entries = Entries(kept, find)
        by_code = entries.by_code

        def kernel(self: Tensor, other: Tensor, alpha: Any) -> Any:
            if alpha == 1:
                return plain(self, other)
            x, y, dtype = self._flat, other._flat, self.dtype
            if (
                x is not None
                and y is not None
                and dtype is other.dtype
                and self.shape == other.shape
                and type(alpha) in _WITH_FLOATS
                and len(x) <= SERIAL
                and apart(self, other)
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
    if flat is None or self.device is not CPU or len(flat) > SERIAL:
        return False
    flat.fill(number)
    return True


def apart(target: Tensor, read: Tensor) -> bool:
    """Whether writing to `target`, element by element, changes nothing of `read`."""
    return target._place is None or read._place is None or target is read
