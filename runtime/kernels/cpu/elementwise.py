"""Elementwise kernels: loops around a function of one or two numbers.

Several loops are compiled from one scalar function, each at its first use:

    flat       every operand is contiguous and of the output's shape
    onto       as flat, and the output is the first operand: a separate loop, because a
               vectorised loop checks if its arrays overlap and would find that they do
    right      the second operand is a number, or one element for all; `right_onto`
    strided    anything else: rows of a table, in which an operand advances, is
               constant, or has another stride

Each loop takes 0.1 to 0.3 s to compile, so that only `SPECIALISED` dtypes have all of
them; the others always use the strided loop, which costs them some microseconds a call.

The table of a strided loop (`plan`) has as few dimensions as the strides allow: those
of size 1 are removed, and two neighbours are merged if every operand has one stride
over both; a broadcast dimension has stride 0.  It is a pure function of shapes and
strides, and cached: a training loop has the same geometries at every step.

Rules: outputs are contiguous and overlap no operand, except one with identical
elements; operands have one dtype, numbers are converted to it; a loop above `grain`
elements per thread is divided among threads, by rows if it is strided.
"""

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from everyorder.runtime.base.codegen import block, template
from everyorder.runtime.kernels.compile.jit import Entry, Family
from everyorder.runtime.kernels.cpu.copy import contiguous, copy
from everyorder.runtime.kernels.math import is_near
from everyorder.runtime.kernels.math.complex import Scalar
from everyorder.runtime.kernels.math.scalars import HEAVY, LIGHT
from everyorder.runtime.kernels.shared.operands import Ints, coalesced, element
from everyorder.runtime.kernels.shared.thread_pool import parallel_for
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.dtype_info import info
from everyorder.runtime.tensors.shape import broadcast_strides
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import flat_of, place_of

# Cached layouts: more than a network has; each is a few hundred bytes.
REMEMBERED = 1024

# The dtypes that networks compute in.
SPECIALISED = frozenset(("float32", "float64"))


# Elements that are checked before a loop is chosen: 4 KiB of double precision, which
# fit in the first-level cache.
BLOCK = 512


@lru_cache(maxsize=REMEMBERED)
def plan(shape: Ints, *operands: tuple[Ints, Ints]) -> tuple[int, int, Any]:
    """Return rows, elements of a row, and the table of a contiguous output of `shape`.

    An operand is (its shape, its strides), broadcast to `shape` here.  The table is
    int64: dimensions, their sizes, then the strides of each operand.
    """
    strides = tuple(broadcast_strides(own, steps, shape) for own, steps in operands)
    # The output need not be checked: it is contiguous, which every merge keeps.
    sizes, steps = coalesced(shape, *strides)
    numbers = (len(sizes), *sizes, *(step for own in steps for step in own))
    table = np.array(numbers, np.int64)
    table.flags.writeable = False
    return prod(sizes[:-1]), sizes[-1], table


@template("elementwise loop", "function")
def loop(operands: str) -> list[str]:
    """Return the loop that writes `function` of the operands' elements into `out`.

    `operands` has a letter for each: "a" is an array, "n" a number, "o" the output.
    """
    parameters = [f"x{at}" for at, each in enumerate(operands) if each != "o"]
    forms = {"a": "x{}[i]", "n": "x{}", "o": "out[i]"}
    read = ", ".join([forms[each].format(at) for at, each in enumerate(operands)])
    lines = block("for i in range(out.size):", [f"out[i] = function({read})"])
    return block(f"def loop({', '.join([*parameters, 'out'])}):", lines)


def family(
    name: str, function: Scalar, operands: str, first: str = "T", result: str = "T"
) -> Family:
    """Return the family of a loop; `first` and `result` are dtypes other than `T`."""
    kinds = [first, *"T" * (len(operands) - 1)]
    forms = {"a": "{}[::1], ", "n": "{}, ", "o": ""}
    types = [forms[at].format(kind) for at, kind in zip(operands, kinds, strict=True)]
    signature = f"void({''.join(types)}{result}[::1])"
    return Family(name, loop(operands)(function), signature)


def run(entry: Entry, grain: int, target: Any, *operands: Any) -> None:
    """Run a loop, on several threads if it is long: arrays are cut, numbers are not."""
    if target.size < 2 * grain:
        entry(*operands, target)
        return

    def part(lo: int, hi: int) -> None:
        cut = [x[lo:hi] if isinstance(x, np.ndarray) else x for x in operands]
        entry(*cut, target[lo:hi])

    parallel_for(target.size, grain, part)


class Unary:
    """One function of one number; the output may have another dtype (`result`)."""

    def __init__(
        self, name: str, scalar: Scalar, *, grain: int = LIGHT, result: str = "T"
    ) -> None:
        self.grain = grain
        self._scalar = scalar
        self.same = result == "T"
        self.flat = family(name, scalar, "a", result=result)
        self.onto = family(f"{name}_onto", scalar, "o")

    def scalar(self, kind: str) -> Scalar:
        """Return the function; it is the same for every kind of dtype."""
        return self._scalar

    def __call__(self, out: Tensor, x: Tensor) -> None:
        """Write the function of every element of `x` into `out`."""
        source, target = x._flat, out._flat
        if source is None or target is None or source is target or x.shape != out.shape:
            source, target = self._prepared(out, x)
        if source is None:
            run(self.onto[x.dtype.name], self.grain, target)
        elif target.size < 2 * self.grain:
            self.flat[x.dtype.name](source, target)
        else:
            run(self.flat[x.dtype.name], self.grain, target, source)

    def _prepared(self, out: Tensor, x: Tensor) -> tuple[Any, Any]:
        """Return the flat arrays; the first is None if it is the output."""
        source, target = flat_of(x), flat_of(out)
        assert target is not None, "outputs are contiguous"
        if source is not None and x.shape == out.shape:
            return (None if source is target else source), target
        if self.same:
            copy(out, x)
            return None, target
        return flat_of(contiguous(x)), target


class Circular(Unary):
    """A function that is vectorised if a whole block of numbers is near zero."""

    def __init__(self, name: str, scalar: Scalar, near: Scalar) -> None:
        super().__init__(name, scalar, grain=HEAVY)
        self.flat.body = _near_loop(False)(scalar, near, is_near)
        self.onto.body = _near_loop(True)(scalar, near, is_near)


@template("elementwise loop", "function, near, is_near", BLOCK=BLOCK)
def _near_loop(onto: bool) -> list[str]:
    """Return the loop from one array to another, or within an array."""
    lines = [
        "target = out[begin : begin + BLOCK]",
        "source = target" if onto else "source = x[begin : begin + BLOCK]",
        "far = 0",
        "for i in range(source.size):",
        "    far += 0 if is_near(source[i]) else 1",
        "if far == 0:",
        "    for i in range(source.size): target[i] = near(source[i])",
        "else:",
        "    for i in range(source.size): target[i] = function(source[i])",
    ]
    head = f"def loop({'out' if onto else 'x, out'}):"
    return block(head, block("for begin in range(0, out.size, BLOCK):", lines))


class _DtypeLoops(dict[str, Entry]):
    """The entries of one loop by dtype name, each of the function of its kind."""

    __slots__ = ("_at", "_kinds")

    def __init__(self, kinds: dict[str, tuple[Family, ...]], at: int) -> None:
        super().__init__()
        self._kinds = kinds
        self._at = at

    def __missing__(self, name: str) -> Entry:
        kind = info(DType.named(name)).kind
        families = self._kinds.get(_KINDS.get(kind, ""), self._kinds[""])
        self[name] = entry = families[self._at][name]
        return entry


# NumPy's letter of a kind of dtype -> the name of the kind here, if it has one.
_KINDS = {"i": "whole", "u": "whole", "c": "complex"}


# Loops around a function of two numbers: the suffix of the name, and the operands.
_FLAT = {"": "aa", "_onto": "oa", "_right": "an", "_right_onto": "on"}


def _pairs(name: str, scalar: Scalar, result: str) -> tuple[Family, ...]:
    """Return these loops, and the strided one."""
    signature = (
        f"void(T[::1], int64, T[::1], int64, {result}[::1], int64[::1], int64, int64)"
    )
    return (
        *[
            family(name + end, scalar, operands, result=result)
            for end, operands in _FLAT.items()
        ],
        Family(f"{name}_strided", _strided(scalar), signature),
    )


class Binary:
    """One function of two numbers; the output may have another dtype (`result`).

    `whole` and `complex_` replace it for integers and complex numbers.
    """

    def __init__(
        self,
        name: str,
        scalar: Scalar,
        *,
        grain: int = LIGHT,
        result: str = "T",
        whole: Scalar | None = None,
        complex_: Scalar | None = None,
    ) -> None:
        self.grain = grain
        self.same = result == "T"
        kinds = {"": _pairs(name, scalar, result)}
        # Kind of dtype -> the function; "" for kinds without a separate one.
        self._scalars = {"": scalar}
        for kind, other in (("whole", whole), ("complex", complex_)):
            if other is not None:
                kinds[kind] = _pairs(f"{name}_{kind}", other, result)
                self._scalars[kind] = other
        self.flat = _DtypeLoops(kinds, 0)
        self.onto = _DtypeLoops(kinds, 1)
        self.right = _DtypeLoops(kinds, 2)
        self.right_onto = _DtypeLoops(kinds, 3)
        self.strided = _DtypeLoops(kinds, 4)

    def scalar(self, kind: str) -> Scalar:
        """Return the function of elements of a kind of dtype, NumPy's letter."""
        return self._scalars.get(_KINDS.get(kind, ""), self._scalars[""])

    def __call__(self, out: Tensor, a: Any, b: Any) -> None:
        """Write the function of each pair of elements into `out`."""
        target = out._flat
        if type(a) is Tensor and type(b) is Tensor and a.shape == b.shape == out.shape:
            x, y = a._flat, b._flat
            if (
                x is not None
                and y is not None
                and target is not None
                and target.size < 2 * self.grain
                and x is not target
            ):
                # The path of small networks: nothing is left to determine.
                self.flat[a.dtype.name](x, y, target)
                return
        self._general(out, a, b)

    def _general(self, out: Tensor, a: Any, b: Any) -> None:
        target = flat_of(out)
        assert target is not None, "outputs are contiguous"
        first = a if isinstance(a, Tensor) else b
        name, shape = first.dtype.name, out.shape
        if name in SPECIALISED:
            x, y = _operand(a, name, shape), _operand(b, name, shape)
            if isinstance(x, np.ndarray):
                onto = x is target and self.same
                if isinstance(y, np.ndarray):
                    entry = (self.onto if onto else self.flat)[name]
                elif y is not None and self.same:
                    entry = (self.right_onto if onto else self.right)[name]
                else:
                    self._run_strided(target, name, shape, a, b)
                    return
                operands = (y,) if onto else (x, y)
                if target.size < 2 * self.grain:
                    entry(*operands, target)
                else:
                    run(entry, self.grain, target, *operands)
                return
        self._run_strided(target, name, shape, a, b)

    def _run_strided(
        self, target: Any, name: str, shape: tuple[int, ...], a: Any, b: Any
    ) -> None:
        if not target.size:
            return
        x, at_x, *steps_x = _place(a, name)
        y, at_y, *steps_y = _place(b, name)
        rows, inner, table = plan(shape, tuple(steps_x), tuple(steps_y))
        entry = self.strided[name]
        if rows > 1 or inner < 2 * self.grain:
            parallel_for(
                rows,
                max(1, self.grain // inner),
                lambda lo, hi: entry(x, at_x, y, at_y, target, table, lo, hi),
            )
            return
        _, _, step_x, step_y = (int(number) for number in table)

        def part(lo: int, hi: int) -> None:
            own = np.array((1, hi - lo, step_x, step_y), np.int64)
            ends = at_x + lo * step_x, at_y + lo * step_y
            entry(x, ends[0], y, ends[1], target[lo:hi], own, 0, 1)

        parallel_for(inner, self.grain, part)


def _operand(operand: Any, name: str, shape: tuple[int, ...]) -> Any:
    """Return a flat array of that shape, one element for all, or None otherwise."""
    if isinstance(operand, Tensor):
        if operand.shape == shape:
            return flat_of(operand)
        if all(size == 1 for size in operand.shape):
            array, offset, _ = place_of(operand)
            assert array is not None, "a tensor in host memory has an array"
            return array[offset]
        return None
    return element(name, operand)


def _place(
    operand: Any, name: str
) -> tuple[Any, int, tuple[int, ...], tuple[int, ...]]:
    """Return array, offset, shape and strides of an operand."""
    if isinstance(operand, Tensor):
        array, offset, strides = place_of(operand)
        return array, offset, operand.shape, strides
    return np.full(1, element(name, operand)), 0, (), ()


def _strided(scalar: Scalar) -> Entry:
    """Return the loop over rows of any layout; see `plan`.

    Unsigned indices: signed ones would be checked for being negative.
    """

    def strided(
        a: Any, at_a: int, b: Any, at_b: int, out: Any, table: Any, lo: int, hi: int
    ) -> None:
        outer = table[0] - 1
        inner, step_a, step_b = table[1 + outer], table[2 + 2 * outer], table[-1]
        for row in range(lo, hi):
            p, q, o, rest = at_a, at_b, row * inner, row
            for d in range(outer, 0, -1):
                index = rest % table[d]
                rest = rest // table[d]
                p += index * table[d + outer + 1]
                q += index * table[d + 2 * outer + 2]
            if step_a == 1 and step_b == 1:
                for i in range(inner):
                    out[np.uintp(o + i)] = scalar(
                        a[np.uintp(p + i)], b[np.uintp(q + i)]
                    )
            elif step_a == 1 and step_b == 0:
                y = b[np.uintp(q)]
                for i in range(inner):
                    out[np.uintp(o + i)] = scalar(a[np.uintp(p + i)], y)
            elif step_a == 0 and step_b == 1:
                x = a[np.uintp(p)]
                for i in range(inner):
                    out[np.uintp(o + i)] = scalar(x, b[np.uintp(q + i)])
            else:
                for i in range(inner):
                    out[np.uintp(o + i)] = scalar(
                        a[np.uintp(p + i * step_a)], b[np.uintp(q + i * step_b)]
                    )

    return strided
