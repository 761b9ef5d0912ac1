"""Fused kernels: one compiled loop around several pointwise operators.

Rules of steps, which describe the computation of an operator for each element:
- operators of the families `unary`, `binary`, `pointwise` that return a new tensor can
  be fused; their own plans, run on tensors without elements, decide the computation,
  the dtype and the kernel, and this module does not repeat these decisions;
- the element functions are those of the eager kernels (`runtime.kernels.math.scalars`),
  so that the bits are the same;
- not supported are 16-bit floats (computed in 32 bits and rounded after each operator),
  complex numbers, operators that check all elements first (integer division), and
  operators that NumPy computes;
- a number that is known only when the group runs is converted then; it may be an
  operand of arithmetic and comparisons, whose plans depend only on its type.

The loop is generated as text. For `relu(x * y + 1)` of float32 it is

    def fused(a0, a1, s0, o0):
        for i in range(o0.size):
            x0 = a0[i]
            x1 = a1[i]
            v0 = float32(f0(x0, x1))
            v1 = float32(f1(v0, s0))
            v2 = float32(f2(v1))
            o0[i] = v2

Rules of loops:
- each result is converted to its dtype before the next operator reads it: small
  integers wrap after each step, as in memory;
- inputs are contiguous; inputs of the shape of the results, and single elements, are
  read by one flat loop; if others are broadcast, the loop runs over rows of at least
  `SHORTEST` elements, as eager kernels do (`elementwise.plan`), and reads such an input
  along the row, or once per row;
- numbers are arguments of the loop: programs that differ only in numbers share the
  kernel;
- kernels are cached by content, as all kernels of the CPU
  (`runtime.kernels.compile.jit`).
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from numpy import empty

from everyorder.runtime.base.codegen import block, generated
from everyorder.runtime.kernels.compile.jit import NUMBA_NAMES, Entry, Family
from everyorder.runtime.kernels.cpu.elementwise import plan
from everyorder.runtime.kernels.shared.operands import element
from everyorder.runtime.kernels.shared.thread_pool import parallel_for
from everyorder.runtime.operators.declare.plan import (
    Shape,
    number_for,
)
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.script.executor.fused_steps import (
    Element,
    RuntimeNumber,
    step_of,
)
from everyorder.runtime.script.ir import Graph, Value
from everyorder.runtime.script.passes import TensorMeta
from everyorder.runtime.tensors.construction import host_tensor
from everyorder.runtime.tensors.dtype_info import numpy_dtype
from everyorder.runtime.tensors.shape import contiguous_strides

# Kernels with special operands.


# The number of cached kernels; more than a program has groups.
REMEMBERED = 1024
# For shorter rows, computing the beginnings costs more than the loop.
SHORTEST = 16

Fact = TensorMeta | RuntimeNumber
# Computes an argument of the loop from the arrays and numbers of the group.
_Argument = Callable[[Sequence[Any]], Any]


class LoopText(NamedTuple):
    """A loop as text, the functions that it calls, and the types of its arguments."""

    text: str
    functions: tuple[Callable[..., Any], ...]
    signature: str


class GroupKernel(NamedTuple):
    """The loop of a group for some dtypes and shapes of inputs, and its arguments.

    `flats` and `numbers` are the arguments before the outputs; `rows` are those after
    them, if inputs are broadcast: the number of rows, and their table.
    """

    loop: LoopText
    flats: tuple[int, ...]
    spread: tuple[int, ...]
    rows: "Rows | None"
    numbers: tuple[_Argument, ...]
    results: tuple[TensorMeta, ...]
    size: int
    grain: int

    def run(self, inputs: Sequence[Any]) -> Any:
        """Run the loop on flat arrays and numbers; several results are a tuple."""
        entry = entry_of(self.loop)
        size = self.size
        outputs = [empty(size, numpy_dtype(each.dtype)) for each in self.results]
        flats = [inputs[at] for at in self.flats]
        numbers = [each(inputs) for each in self.numbers]
        if self.rows is not None:
            arrays = [*flats, *[inputs[at] for at in self.spread]]
            self._run_rows(entry, arrays, numbers, outputs)
        elif size < 2 * self.grain:
            entry(*flats, *numbers, *outputs)
        else:

            def part(lo: int, hi: int) -> None:
                entry(
                    *[each[lo:hi] for each in flats],
                    *numbers,
                    *[each[lo:hi] for each in outputs],
                )

            parallel_for(size, self.grain, part)
        return self._tensors(outputs)

    def _run_rows(self, entry: Entry, arrays: Any, numbers: Any, outputs: Any) -> None:
        """Run the loop over rows."""
        assert self.rows is not None, "inputs are broadcast"
        count, inner, table, _ = self.rows

        def part(lo: int, hi: int) -> None:
            entry(*arrays, *numbers, *outputs, table, lo, hi)

        if self.size < 2 * self.grain:
            part(0, count)
        else:
            parallel_for(count, max(1, self.grain // inner), part)

    def _tensors(self, outputs: Sequence[Any]) -> Any:
        tensors = [
            host_tensor(flat, each.shape, each.dtype)
            for flat, each in zip(outputs, self.results, strict=True)
        ]
        return tensors[0] if len(tensors) == 1 else tuple(tensors)


class Rows(NamedTuple):
    """The number of rows, their length, their table, and the inputs' inner steps."""

    lines: int
    inner: int
    table: Any
    steps: tuple[int, ...]


def rows_of(shape: Shape, inputs: Sequence[Shape]) -> Rows | None:
    """Return the rows of broadcast inputs; None if the rows are too short."""
    operands = [(each, contiguous_strides(each)) for each in inputs]
    count, inner, table = plan(shape, *operands)
    dims = int(table[0])
    steps = tuple(int(table[dims * (at + 2)]) for at in range(len(inputs)))
    assert set(steps) <= {0, 1}, "inputs are contiguous"
    return Rows(count, inner, table, steps) if inner >= SHORTEST else None


def kernel_for(graph: Graph, facts: Sequence[Fact]) -> GroupKernel | None:
    """Return a group as one loop, for inputs of these facts; None if impossible."""
    writer = _LoopWriter(graph, facts)
    return writer.kernel() if writer.steps() and writer.lays_out() else None


class _LoopWriter:
    """The writer of the loop of one group."""

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
        """Write all operators; return True if each can be written."""
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
            operands = [
                self._number(operand, each)
                if isinstance(operand, Element)
                else self._cast(operand, each)
                for operand, each in zip(step.operands, step.compute, strict=True)
            ]
            if step.function is None:
                (written,) = operands
            else:
                called = f"f{self._function(step.function)}"
                dtype = step.facts.dtype.name
                written = f"_{dtype}({called}({', '.join(operands)}))"
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
        """Choose how inputs are read; return True if all can be."""
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
        """Return the loop and its arguments."""
        names, facts = self.names, self.known
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
        arrays = [facts[value] for _, value in (*self.flats, *self.spread)]
        types = [f"{_numba(fact)}[::1]" for fact in arrays]
        types += [_numba(facts[value]) for _, value in self.singles]
        types += self.types
        types += [f"{_numba(facts[value])}[::1]" for value in results]
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
            tuple(facts[value] for value in results),
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
            constant = element(dtype, value)
            self.numbers.append(lambda _: constant)
        self.types.append(NUMBA_NAMES.get(dtype, dtype))
        return name


def _flat_text(arguments: Sequence[str], lines: Sequence[str]) -> str:
    """Return the loop over all elements."""
    body = block("for i in range(o0.size):", lines)
    return "\n".join(block(f"def fused({', '.join(arguments)}):", body))


def _rows_text(
    arguments: Sequence[str],
    even: Sequence[str],
    reads: Sequence[tuple[int, str]],
    lines: Sequence[str],
) -> str:
    """Return the loop over rows; `reads` has the inner step and the name of inputs.

    `runtime.kernels.cpu.elementwise` describes the table.
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
    parameters = ", ".join((*arguments, "table", "lo", "hi"))
    head = ["outer = table[0] - 1", "inner = table[1 + outer]"]
    body = [*head, *block("for row in range(lo, hi):", body)]
    return "\n".join(block(f"def fused({parameters}):", body))


def _numba(fact: TensorMeta) -> str:
    return NUMBA_NAMES.get(fact.dtype.name, fact.dtype.name)


def _single(at: int) -> _Argument:
    return lambda inputs: inputs[at][0]


def _runtime_number(at: int, dtype: DType) -> _Argument:
    return lambda inputs: element(dtype.name, number_for(inputs[at], dtype))


@lru_cache(maxsize=REMEMBERED)
def entry_of(loop: LoopText) -> Entry:
    """Return the compiled loop."""
    return family_of(loop)[()]


def family_of(loop: LoopText) -> Family:
    """Return the loop as a family of kernels with one member."""
    return Family("fused", body_of(loop), loop.signature)


# The dtypes of computations.
_CASTS = ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64")


def body_of(loop: LoopText) -> Callable[..., Any]:
    """Return the loop as a Python function."""
    import numpy as np

    scope: dict[str, Any] = {f"f{at}": each for at, each in enumerate(loop.functions)}
    scope |= {f"_{name}": np.dtype(name).type for name in _CASTS}
    function: Callable[..., Any] = generated("fused kernel", (loop.text,), scope)
    return function
