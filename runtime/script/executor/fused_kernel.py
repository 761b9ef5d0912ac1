"""Fused kernels: one loop around pointwise operators, compiled as eager ones are.

Rules of steps, which say of an operator what it computes of each element:
- operators of the families `unary`, `binary`, `pointwise` that make a new tensor; what
  they compute, in which dtype, and which kernel runs, is decided by their own plans on
  tensors without elements, and never a second time here;
- the functions of elements are those of the eager kernels
  (`runtime.kernels.math.scalars`), so that the bits are the same;
- 16-bit floats are computed in 32 bits and rounded after each operator: not here; nor
  complex numbers, nor what looks at all elements first (integers that divide), nor what
  NumPy computes;
- a number that is known only when the group runs is converted then; it may be an
  operand of arithmetic and comparisons, whose plans ask for its type alone.

The loop is written as text. For `relu(x * y + 1)` of float32 it is

    def fused(a0, a1, s0, o0):
        for i in range(o0.size):
            x0 = a0[i]
            x1 = a1[i]
            v0 = float32(f0(x0, x1))
            v1 = float32(f1(v0, s0))
            v2 = float32(f2(v1))
            o0[i] = v2

Rules of loops:
- what every operator gives is of its dtype before the next one reads it: small integers
  wrap after each step, as they do in memory;
- inputs lie row by row; those of the shape of the results, and single elements, are
  walked over at once; where others are broadcast, the loop goes through rows of at
  least `SHORTEST` elements, as eager kernels do (`elementwise.plan`), and reads such
  an input along the row, or once for it;
- numbers are arguments of the loop: programs that differ in them share the kernel;
- kernels are found by content, as all of the CPU are (`runtime.kernels.compile.jit`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from math import prod
from typing import Any, NamedTuple

from numpy import empty

from everyorder.runtime.base.codegen import block, generated
from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.kernels.compile.jit import NUMBA_NAMES, Entry, Family
from everyorder.runtime.kernels.cpu.elementwise import plan
from everyorder.runtime.kernels.cpu.pointwise import Applied, applied, limit
from everyorder.runtime.kernels.math.scalars import GELU, LIGHT, bounded, scaled, select
from everyorder.runtime.kernels.shared.operands import element
from everyorder.runtime.kernels.shared.thread_pool import parallel_for
from everyorder.runtime.operators import binary, pointwise, unary
from everyorder.runtime.operators.declare.allocate_outputs import made_dtype
from everyorder.runtime.operators.declare.plan import (
    COMPLEXES,
    CallPlan,
    Shape,
    number_for,
)
from everyorder.runtime.operators.declare.structured import Structured
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.schema.types import TensorType
from everyorder.runtime.script.ir import Graph, Node, Value, row_of
from everyorder.runtime.script.passes import TensorMeta
from everyorder.runtime.tensors.construction import host_tensor, wrap_number
from everyorder.runtime.tensors.dtype_info import compute_dtype, numpy_dtype
from everyorder.runtime.tensors.shape import contiguous_strides
from everyorder.runtime.tensors.tensor import Tensor

NUMBERS = (bool, int, float)


class RuntimeNumber(NamedTuple):
    """A number that is known when the group runs; now its type."""

    type: type[bool | int | float]


class Element(NamedTuple):
    """A number as an operand: of what, and in which dtype; `value` may be a `Value`."""

    value: Any
    dtype: str


class FusedStep(NamedTuple):
    """One operator: a function of elements, its operands, and what it gives.

    Operands are values, each cast to `compute`, or numbers.  No function: the operand.
    """

    function: Callable[..., Any] | None
    operands: tuple[Value | Element, ...]
    compute: tuple[str, ...]
    facts: TensorMeta
    grain: int


@cache
def operators() -> Mapping[str, Structured]:
    """The operators that can be fused, by the kind of their nodes."""
    families = (*unary.OPERATORS, *binary.OPERATORS, *pointwise.OPERATORS)
    return {
        f"core::{each.name}": each
        for each in families
        if isinstance(each, Structured) and each.functional
    }


def step_of(node: Node, known: Mapping[Value, Any]) -> FusedStep | None:
    """The step of the operator of a node, or None if it cannot be fused.

    `known` has `TensorMeta` of tensors, `RuntimeNumber` or a constant of anything else.
    """
    operator, row = operators().get(node.kind), row_of(node.kind)
    if operator is None or row is None or row.schema is None:
        return None
    given: list[Any] = []
    source: dict[int, Value] = {}
    for value, argument in zip(node.inputs, row.schema.arguments, strict=True):
        if value not in known:
            return None
        fact = known[value]
        if isinstance(fact, TensorMeta):
            # The loop would read what the compiler has no arithmetic for.
            if fact.dtype in COMPLEXES or compute_dtype(fact.dtype) is not fact.dtype:
                return None
            made: Any = host_tensor(None, fact.shape, fact.dtype)
        elif isinstance(fact, RuntimeNumber):
            if argument.type is not TensorType:
                return None
            made = wrap_number(fact.type(1))
        elif argument.type is TensorType and isinstance(fact, NUMBERS):
            made = wrap_number(fact)
        elif argument.type is TensorType:
            return None
        else:
            made = fact
        source[id(made)] = value
        given.append(made)
    try:
        plan = operator.plan(*given)
    except EveryorderError:
        # It raises the same when it runs.
        return None
    return _of_plan(operator, plan, source, known)


def _of_plan(
    operator: Structured,
    plan: CallPlan,
    source: Mapping[int, Value],
    known: Mapping[Value, Any],
) -> FusedStep | None:
    ((shape, dtype),) = plan.outputs  # type: ignore[misc]  # they have one result
    name = plan.kernel or operator.own
    if not isinstance(name, str) or made_dtype(dtype, plan.compute) is not dtype:
        return None
    compute = plan.compute or next(
        each.dtype for each in plan.arguments if isinstance(each, Tensor)
    )
    # The kernel sees dtypes that it computes in.
    operands: list[Any] = []
    for at, each in enumerate(plan.arguments):
        is_cast = plan.cast is None or at in plan.cast
        if isinstance(each, Tensor) and each.number is None:
            operands.append(source[id(each)])
        elif isinstance(each, Tensor):
            value = source[id(each)]
            fact: Any = known[value]
            number: Any = value
            if isinstance(fact, NUMBERS):
                number = number_for(fact, compute)
            operands.append(Element(number, compute.name))
        elif each.__class__ in NUMBERS and is_cast and plan.compute is not None:
            operands.append(Element(number_for(each, compute), compute.name))
        elif each.__class__ in NUMBERS:
            operands.append(Element(each, compute.name))
        else:
            operands.append(each)
    if not any(isinstance(each, Value) for each in operands):
        return None
    find: Callable[..., _Found] = _SPECIAL.get(name, _plain)
    found = find(name, compute.name, operands)
    if found is None:
        return None
    what, taken, read = found
    if what.result != dtype.name:
        return None
    return FusedStep(what.function, taken, read, TensorMeta(dtype, shape), what.grain)


# What kernels are more than a function of their operands.

_Found = tuple[Applied, tuple[Any, ...], tuple[str, ...]] | None


def _plain(name: str, dtype: str, given: list[Any]) -> _Found:
    if not all(isinstance(each, Value | Element) for each in given):
        return None
    found = applied(name, dtype)
    return None if found is None else (found, tuple(given), (dtype,) * len(given))


def _scaled(name: str, dtype: str, given: list[Any]) -> _Found:
    *pair, factor = given
    alpha = factor.value
    plain = applied(name, dtype)
    if plain is None:
        return None
    if alpha == 1:
        return plain, tuple(pair), (dtype, dtype)
    alpha = -alpha if name == "sub" else alpha
    if isinstance(pair[1], Element):
        if isinstance(pair[1].value, Value):
            return None
        product = Element(pair[1].value * alpha, dtype)
        return _plain("add", dtype, [pair[0], product])
    found = Applied(scaled, dtype, plain.grain)
    return found, (*pair, Element(alpha, dtype)), (dtype,) * 3


# Exponents that are another kernel.
_POWERS = {2: "square", 0.5: "sqrt", 1: "copy", -1: "reciprocal", -0.5: "rsqrt"}


def _power(name: str, dtype: str, given: list[Any]) -> _Found:
    base, exponent = given
    is_float = dtype.startswith("float")
    if not (isinstance(exponent, Element) and isinstance(base, Value) and is_float):
        return None
    number = exponent.value
    if isinstance(number, Value) or number not in _POWERS:
        return None
    return _plain(_POWERS[number], dtype, [base])


def _where(name: str, dtype: str, given: list[Any]) -> _Found:
    fits = all(isinstance(each, Value | Element) for each in given)
    if not fits or applied("copy", dtype) is None:
        return None
    found = Applied(select, dtype, LIGHT)
    return found, tuple(given), ("bool", dtype, dtype)


def _clamp(name: str, dtype: str, given: list[Any]) -> _Found:
    x, *bounds = given
    ends = []
    for side, bound in zip((-1, 1), bounds, strict=True):
        if isinstance(bound, Value):
            return None
        number = None if bound is None else bound.value
        if number != number:
            return None
        # Of another number than it was, once more, it is the same.
        ends.append(Element(limit(dtype, number, side).item(), dtype))
    if applied("copy", dtype) is None:
        return None
    return Applied(bounded, dtype, LIGHT), (x, *ends), (dtype,) * 3


def _gelu(name: str, dtype: str, given: list[Any]) -> _Found:
    x, approximate = given
    return _plain(GELU[approximate], dtype, [x])


_SPECIAL: dict[str, Callable[..., _Found]] = {
    "add": _scaled,
    "sub": _scaled,
    "pow": _power,
    "where": _where,
    "clamp": _clamp,
    "gelu": _gelu,
}


# Kernels kept by their text; more than a program has groups.
REMEMBERED = 1024
# Below, it costs more to find the beginnings of rows than to walk over them.
SHORTEST = 16

Fact = TensorMeta | RuntimeNumber
# Gives an argument of the loop, of the arrays and numbers that the group is given.
_Argument = Callable[[Sequence[Any]], Any]


class LoopText(NamedTuple):
    """A loop as text: what it calls, and the types of its arguments."""

    text: str
    functions: tuple[Callable[..., Any], ...]
    signature: str


class GroupKernel(NamedTuple):
    """The loop of a group for inputs of some dtypes and shapes, and its arguments.

    `flats` and `numbers` are what the loop takes before its outputs; `rows` what it
    takes behind them, if inputs are broadcast: how many there are, and their table.
    """

    loop: LoopText
    flats: tuple[int, ...]
    spread: tuple[int, ...]
    rows: "Rows | None"
    numbers: tuple[_Argument, ...]
    results: tuple[TensorMeta, ...]
    size: int
    grain: int

    def run(self, given: Sequence[Any]) -> Any:
        """The results, of flat arrays and numbers; a tuple if there are several."""
        entry = entry_of(self.loop)
        size = self.size
        made = [empty(size, numpy_dtype(each.dtype)) for each in self.results]
        flats = [given[at] for at in self.flats]
        numbers = [each(given) for each in self.numbers]
        if self.rows is not None:
            arrays = [*flats, *[given[at] for at in self.spread]]
            self._run_rows(entry, arrays, numbers, made)
        elif size < 2 * self.grain:
            entry(*flats, *numbers, *made)
        else:

            def part(lo: int, hi: int) -> None:
                entry(
                    *[each[lo:hi] for each in flats],
                    *numbers,
                    *[each[lo:hi] for each in made],
                )

            parallel_for(size, self.grain, part)
        return self._tensors(made)

    def _run_rows(self, entry: Entry, arrays: Any, numbers: Any, made: Any) -> None:
        """Run the loop through rows."""
        assert self.rows is not None, "inputs are broadcast"
        count, inner, table, _ = self.rows

        def part(lo: int, hi: int) -> None:
            entry(*arrays, *numbers, *made, table, lo, hi)

        if self.size < 2 * self.grain:
            part(0, count)
        else:
            parallel_for(count, max(1, self.grain // inner), part)

    def _tensors(self, made: Sequence[Any]) -> Any:
        tensors = [
            host_tensor(flat, each.shape, each.dtype)
            for flat, each in zip(made, self.results, strict=True)
        ]
        return tensors[0] if len(tensors) == 1 else tuple(tensors)


class Rows(NamedTuple):
    """Rows, elements of a row, the table of them, and the steps of inputs within."""

    lines: int
    inner: int
    table: Any
    steps: tuple[int, ...]


def rows_of(shape: Shape, inputs: Sequence[Shape]) -> Rows | None:
    """The rows of inputs that are broadcast; None if they are too short."""
    given = [(each, contiguous_strides(each)) for each in inputs]
    count, inner, table = plan(shape, *given)
    dims = int(table[0])
    steps = tuple(int(table[dims * (at + 2)]) for at in range(len(inputs)))
    assert set(steps) <= {0, 1}, "they lie row by row"
    return Rows(count, inner, table, steps) if inner >= SHORTEST else None


def kernel_for(graph: Graph, facts: Sequence[Fact]) -> GroupKernel | None:
    """The group as one loop, for inputs of these facts; None if it is none."""
    writer = _LoopWriter(graph, facts)
    return writer.kernel() if writer.steps() and writer.lays_out() else None


class _LoopWriter:
    """Writes the loop of one group."""

    def __init__(self, graph: Graph, facts: Sequence[Fact]) -> None:
        self.graph = graph
        parameters = graph.block.parameters
        self.known: dict[Value, Any] = dict(zip(parameters, facts, strict=True))
        self.inputs = {value: at for at, value in enumerate(parameters)}
        self.grain = 0
        self.functions: list[Callable[..., Any]] = []
        self.flats: list[tuple[int, Value]] = []
        self.singles: list[tuple[int, Value]] = []
        self.spread: list[tuple[int, Value]] = []
        self.rows: Rows | None = None
        self.numbers: list[_Argument] = []
        self.types: list[str] = []
        self.names: dict[Value, str] = {}
        self.lines: list[str] = []

    def steps(self) -> bool:
        """Write all operators; gives whether each can be written."""
        results = self.graph.block.results
        for node in self.graph.block:
            if node.kind == "prim::Constant":
                if "value" not in node.attributes:
                    return False
                self.known[node.output] = node.attributes["value"]
                continue
            step = step_of(node, self.known)
            if step is None:
                return False
            self.known[node.output] = step.facts
            self.grain = min(self.grain or step.grain, step.grain)
            taken = [
                self._number(operand, each)
                if isinstance(operand, Element)
                else self._cast(operand, each)
                for operand, each in zip(step.operands, step.compute, strict=True)
            ]
            if step.function is None:
                (written,) = taken
            else:
                called = f"f{self._function(step.function)}"
                made = step.facts.dtype.name
                written = f"_{made}({called}({', '.join(taken)}))"
            self.names[node.output] = name = f"v{len(self.names)}"
            self.lines.append(f"{name} = {written}")
        facts = [self.known.get(each) for each in results]
        if not facts or not all(isinstance(each, TensorMeta) for each in facts):
            return False
        (shape, *others) = {
            each.shape for each in facts if isinstance(each, TensorMeta)
        }
        self.shape, self.size = shape, prod(shape)
        return not others and self.size > 0

    def lays_out(self) -> bool:
        """Tell how inputs are read; gives whether there is a way for all."""
        for value, at in self.inputs.items():
            fact = self.known[value]
            if not isinstance(fact, TensorMeta) or value not in self.names:
                continue
            if fact.shape == self.shape:
                self.flats.append((at, value))
            elif prod(fact.shape) == 1:
                self.singles.append((at, value))
            else:
                self.spread.append((at, value))
        if self.spread:
            shapes = [self.known[value].shape for _, value in self.spread]
            self.rows = rows_of(self.shape, shapes)
        return not self.spread or self.rows is not None

    def kernel(self) -> GroupKernel:
        """The loop, and what it takes."""
        names, known = self.names, self.known
        results = self.graph.block.results
        outputs = [f"o{at}" for at in range(len(results))]
        self.lines += [
            f"{name}[i] = {self._read(value)}"
            for name, value in zip(outputs, results, strict=True)
        ]
        flats = [f"a{at}" for at in range(len(self.flats))]
        spread = [f"b{at}" for at in range(len(self.spread))]
        heads = [
            f"{names[value]} = {name}[i]"
            for name, (_, value) in zip(flats, self.flats, strict=True)
        ]
        arguments = [*flats, *spread, *[names[value] for _, value in self.singles]]
        arguments += [f"s{at}" for at in range(len(self.numbers))]
        arguments += outputs
        arrays = [known[value] for _, value in (*self.flats, *self.spread)]
        types = [f"{_numba(fact)}[::1]" for fact in arrays]
        types += [_numba(known[value]) for _, value in self.singles]
        types += self.types
        types += [f"{_numba(known[value])}[::1]" for value in results]
        if self.rows is None:
            text = _flat_text(arguments, [*heads, *self.lines])
        else:
            reads = [
                (step, names[value])
                for step, (_, value) in zip(self.rows.steps, self.spread, strict=True)
            ]
            lines = [*heads, *self.lines]
            text = _rows_text(arguments, (*flats, *outputs), reads, lines)
            types += ["int64[::1]", "int64", "int64"]
        loop = LoopText(text, tuple(self.functions), f"void({', '.join(types)})")
        return GroupKernel(
            loop,
            tuple(at for at, _ in self.flats),
            tuple(at for at, _ in self.spread),
            self.rows,
            (*[_single(at) for at, _ in self.singles], *self.numbers),
            tuple(known[value] for value in results),
            self.size,
            self.grain,
        )

    def _function(self, function: Callable[..., Any]) -> int:
        if function not in self.functions:
            self.functions.append(function)
        return self.functions.index(function)

    def _read(self, value: Value) -> str:
        if value not in self.names:
            self.names[value] = f"v{len(self.names)}"
        return self.names[value]

    def _cast(self, value: Value, dtype: str) -> str:
        name = self._read(value)
        return name if self.known[value].dtype.name == dtype else f"_{dtype}({name})"

    def _number(self, number: Element, dtype: str) -> str:
        name = f"s{len(self.numbers)}"
        value = number.value
        if isinstance(value, Value):
            self.numbers.append(_runtime_number(self.inputs[value], DType.named(dtype)))
        else:
            made = element(dtype, value)
            self.numbers.append(lambda _: made)
        self.types.append(NUMBA_NAMES.get(dtype, dtype))
        return name


def _flat_text(arguments: Sequence[str], lines: Sequence[str]) -> str:
    """The loop over all elements."""
    body = block("for i in range(o0.size):", lines)
    return "\n".join(block(f"def fused({', '.join(arguments)}):", body))


def _rows_text(
    arguments: Sequence[str],
    even: Sequence[str],
    reads: Sequence[tuple[int, str]],
    lines: Sequence[str],
) -> str:
    """The loop over rows; `reads` has the step within a row, and the name, of inputs.

    For the table see `runtime.kernels.cpu.elementwise`.
    """
    spread = range(len(reads))
    body = [
        "rest = row",
        *[f"p{at} = 0" for at in spread],
        "for d in range(outer, 0, -1):",
        "    index = rest % table[d]",
        "    rest = rest // table[d]",
        *[f"    p{at} += index * table[d + {at + 1} * (outer + 1)]" for at in spread],
        "begin = row * inner",
        *[f"r{name} = {name}[begin : begin + inner]" for name in even],
    ]
    heads = []
    for at, (step, name) in enumerate(reads):
        if step:
            body.append(f"rb{at} = b{at}[p{at} : p{at} + inner]")
            heads.append(f"{name} = rb{at}[i]")
        else:
            body.append(f"{name} = b{at}[p{at}]")
    body.append("for i in range(inner):")
    names = {f"{name}[i]": f"r{name}[i]" for name in even}
    for line in lines:
        for name, row in names.items():
            line = re.sub(rf"\b{re.escape(name)}", row, line)
        heads.append(line)
    body += [f"    {line}" for line in heads]
    given = ", ".join((*arguments, "table", "lo", "hi"))
    head = ["outer = table[0] - 1", "inner = table[1 + outer]"]
    body = [*head, *block("for row in range(lo, hi):", body)]
    return "\n".join(block(f"def fused({given}):", body))


def _numba(fact: TensorMeta) -> str:
    return NUMBA_NAMES.get(fact.dtype.name, fact.dtype.name)


def _single(at: int) -> _Argument:
    return lambda given: given[at][0]


def _runtime_number(at: int, dtype: DType) -> _Argument:
    return lambda given: element(dtype.name, number_for(given[at], dtype))


@lru_cache(maxsize=REMEMBERED)
def entry_of(loop: LoopText) -> Entry:
    """The compiled loop."""
    return family_of(loop)[()]


def family_of(loop: LoopText) -> Family:
    """The loop as a family of kernels, of one member."""
    return Family("fused", body_of(loop), loop.signature)


# What is computed in.
_CASTS = ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64")


def body_of(loop: LoopText) -> Callable[..., Any]:
    """The loop as a function of Python's."""
    import numpy as np

    scope: dict[str, Any] = {f"f{at}": each for at, each in enumerate(loop.functions)}
    scope |= {f"_{name}": np.dtype(name).type for name in _CASTS}
    made: Callable[..., Any] = generated("fused kernel", (loop.text,), scope)
    return made
