"""Fused kernels: one loop around the operators of a group, compiled as eager ones are.

True only here: the text of the loop.  For `relu(x * y + 1)` of float32 it is

    def fused(a0, a1, s0, o0):
        for i in range(o0.size):
            x0 = a0[i]
            x1 = a1[i]
            v0 = float32(f0(x0, x1))
            v1 = float32(f1(v0, s0))
            v2 = float32(f2(v1))
            o0[i] = v2

Rules:
- what every operator gives is of its dtype before the next one reads it: small integers
  wrap after each step, as they do in memory;
- inputs have the shape of the results, lie row by row, or are one element for all;
  anything else is not fused;
- numbers are arguments of the loop: programs that differ in them share the kernel;
- kernels are found by content, in memory and on disk, as all of the CPU are
  (`runtime.kernels.jit`).
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from numpy import empty

from runtime.kernels.cpu.elementwise_element import element
from runtime.kernels.jit import NUMBA_NAMES, Entry, Family
from runtime.kernels.threads import parallel_for
from runtime.operators.number import number_for
from runtime.schema.codes import DType
from runtime.script.fusion.pointwise import Element, Later, step_of
from runtime.script.ir import Graph, Value
from runtime.script.passes import Facts
from runtime.tensors.elements import numpy_dtype
from runtime.tensors.making import host_tensor

# Kernels kept by their text; more than a program has groups.
REMEMBERED = 1024

Fact = Facts | Later
# Gives an argument of the loop, of the arrays and numbers that the group is given.
_Argument = Callable[[Sequence[Any]], Any]


class Loop(NamedTuple):
    """A loop as text: what it calls, and the types of its arguments."""

    text: str
    functions: tuple[Callable[..., Any], ...]
    signature: str


class Ready(NamedTuple):
    """A group made ready for inputs of some dtypes and shapes.

    `flats` and `numbers` are what the loop takes before its outputs.
    """

    loop: Loop
    flats: tuple[int, ...]
    numbers: tuple[_Argument, ...]
    results: tuple[Facts, ...]
    size: int
    grain: int

    def run(self, given: Sequence[Any]) -> Any:
        """The results, of flat arrays and numbers; a tuple if there are several."""
        entry = entry_of(self.loop)
        size = self.size
        made = [empty(size, numpy_dtype(each.dtype)) for each in self.results]
        flats = [given[at] for at in self.flats]
        numbers = [each(given) for each in self.numbers]
        if size < 2 * self.grain:
            entry(*flats, *numbers, *made)
        else:

            def part(lo: int, hi: int) -> None:
                entry(
                    *[each[lo:hi] for each in flats],
                    *numbers,
                    *[each[lo:hi] for each in made],
                )

            parallel_for(size, self.grain, part)
        tensors = [
            host_tensor(flat, each.shape, each.dtype)
            for flat, each in zip(made, self.results, strict=True)
        ]
        return tensors[0] if len(tensors) == 1 else tuple(tensors)


def ready_for(graph: Graph, facts: Sequence[Fact]) -> Ready | None:
    """The group as one loop, for inputs of these facts; None if it is none."""
    writer = _Writer(graph, facts)
    return writer.ready() if writer.steps() else None


class _Writer:
    """Writes the loop of one group."""

    def __init__(self, graph: Graph, facts: Sequence[Fact]) -> None:
        self.graph = graph
        parameters = graph.block.parameters
        self.known: dict[Value, Any] = dict(zip(parameters, facts, strict=True))
        self.inputs = {value: at for at, value in enumerate(parameters)}
        self.grain = 0
        self.functions: list[Callable[..., Any]] = []
        self.flats: list[int] = []
        self.numbers: list[_Argument] = []
        self.types: list[str] = []
        self.names: dict[Value, str] = {}
        self.heads: list[str] = []
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
        if not facts or not all(isinstance(each, Facts) for each in facts):
            return False
        (shape, *others) = {each.shape for each in facts if isinstance(each, Facts)}
        self.shape, self.size = shape, prod(shape)
        return not others and self.size > 0 and self._fits()

    def _fits(self) -> bool:
        """Whether all tensors have the shape of the results, or one element."""
        return all(
            fact.shape == self.shape or prod(fact.shape) == 1
            for fact in self.known.values()
            if isinstance(fact, Facts)
        )

    def ready(self) -> Ready:
        """The loop, and what it takes."""
        outputs = []
        for at, value in enumerate(self.graph.block.results):
            outputs.append(f"o{at}")
            self.lines.append(f"o{at}[i] = {self._read(value)}")
        flats: list[tuple[int, Facts]] = []
        singles: list[tuple[int, Facts, str]] = []
        for value, name in self.names.items():
            if value not in self.inputs:
                continue
            at, fact = self.inputs[value], self.known[value]
            if fact.shape == self.shape:
                self.heads.append(f"{name} = a{len(flats)}[i]")
                flats.append((at, fact))
            else:
                singles.append((at, fact, name))
        arguments = [f"a{at}" for at in range(len(flats))]
        types = [f"{_numba(fact)}[::1]" for _, fact in flats]
        arguments += [name for _, _, name in singles]
        types += [_numba(fact) for _, fact, _ in singles]
        arguments += [f"s{at}" for at in range(len(self.numbers))]
        types += self.types
        results = tuple(self.known[each] for each in self.graph.block.results)
        arguments += outputs
        types += [f"{_numba(fact)}[::1]" for fact in results]
        body = "\n".join(f"        {line}" for line in (*self.heads, *self.lines))
        text = (
            f"def fused({', '.join(arguments)}):\n"
            f"    for i in range(o0.size):\n{body}\n"
        )
        loop = Loop(text, tuple(self.functions), f"void({', '.join(types)})")
        numbers = (*[_single(at) for at, _, _ in singles], *self.numbers)
        return Ready(
            loop,
            tuple(at for at, _ in flats),
            numbers,
            results,
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
            self.numbers.append(_later(self.inputs[value], DType.named(dtype)))
        else:
            made = element(dtype, value)
            self.numbers.append(lambda _: made)
        self.types.append(NUMBA_NAMES.get(dtype, dtype))
        return name


def _numba(fact: Facts) -> str:
    return NUMBA_NAMES.get(fact.dtype.name, fact.dtype.name)


def _single(at: int) -> _Argument:
    return lambda given: given[at][0]


def _later(at: int, dtype: DType) -> _Argument:
    return lambda given: element(dtype.name, number_for(given[at], dtype))


@lru_cache(maxsize=REMEMBERED)
def entry_of(loop: Loop) -> Entry:
    """The compiled loop."""
    return family_of(loop)[()]


def family_of(loop: Loop) -> Family:
    """The loop as a family of kernels, of one member."""
    body = body_of(loop)
    return Family("fused", body, loop.signature)


def body_of(loop: Loop) -> Callable[..., Any]:
    """The loop as a function of Python's."""
    import numpy as np

    scope: dict[str, Any] = {
        f"f{at}": function for at, function in enumerate(loop.functions)
    }
    for name in _CASTS:
        scope[f"_{name}"] = np.dtype(name).type
    exec(compile(loop.text, "<fused kernel>", "exec"), scope)  # noqa: S102  # written above, of names of our own
    made: Callable[..., Any] = scope["fused"]
    return made


# What is computed in.
_CASTS = ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64")
