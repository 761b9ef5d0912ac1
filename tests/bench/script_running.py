"""Rows about programs that run: what a step costs, beside eager calls and torch.jit.

True only here: programs that are compiled already, and have run often enough to be
text; torch's have run often enough to be optimized.
"""

import warnings
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from everyorder import runtime
from everyorder.runtime.script.emission import compile_text
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir.program import Function, Program
from tests.bench.calls import TURNS
from tests.bench.compare import torch
from tests.bench.row import NO_TORCH, Row, pairs, ratio, seconds

STEPS = 100
RUNS = 50
WARM = 700
STEP = "a step of a program, `core.add` on one element, less its kernel; over eager"
COLLATZ = "a loop of integers (Collatz), over Python"
COLLATZ_TORCH = "a loop of integers (Collatz), over torch.jit"
FORK = "fork and wait of a function, in a loop, over torch.jit"
BOUNDARY = "a call of a program that returns its argument, over torch.jit"

TEXT = """
def collatz(n: int) -> int:
    count = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        count += 1
    return count


def same(n: int) -> int:
    return n
"""
FORKS = """\
  %yes : bool = prim::Constant[value=True]()
  %r : int = prim::Loop(%n, %yes, %n)
    block0(%i : int, %x : int):
      %fut : Future(int) = prim::fork_0(%x)
      %y : int = prim::wait(%fut)
      -> (%yes, %y)
  return (%r)
with prim::fork_0 = graph(%m : int):
  return (%m)
"""
TORCH_FORKS = """
def same(n: int) -> int:
    return n


def forks(n: int) -> int:
    x = n
    for i in range(n):
        fut = torch.jit.fork(same, x)
        x = torch.jit.wait(fut)
    return x
"""


def added() -> Function:
    """A program of `STEPS` additions."""
    lines = "\n".join(["    y = runtime.add(y, x)"] * STEPS)
    text = f"def added(x: Tensor) -> Tensor:\n    y = x\n{lines}\n    return y\n"
    names = {"runtime": runtime, "Tensor": runtime.Tensor}
    return compile_text(text, Program(), names)[0]


def warm(function: Function, *arguments: Any) -> Callable[[], None]:
    """Some runs of a function that is text."""
    for _ in range(WARM):
        call(function, arguments)

    def run() -> None:
        for _ in range(RUNS):
            call(function, arguments)

    return run


def repeated(function: Callable[..., Any], *arguments: Any) -> Callable[[], None]:
    """Some runs of a function of Python, or of torch."""
    for _ in range(10):
        function(*arguments)

    def run() -> None:
        for _ in range(RUNS):
            function(*arguments)

    return run


def step() -> Iterator[Row]:
    """What a step costs, less the kernel that both run."""
    x = runtime.ones(1)
    add = runtime.ops.core.add.default
    callee = add._callee

    def eager(x: Any) -> Any:
        y = x
        for _ in range(STEPS):
            y = add(y, x)
        return y

    eager(x)
    bound = callee.caller(callee.current_entry()).bound_kernel(callee, x.key_bits)

    def bare(x: Any) -> Any:
        y = x
        for _ in range(STEPS):
            y = bound(y, x, 1)
        return y

    script, calls, kernels = warm(added(), x), repeated(eager, x), repeated(bare, x)
    ratios, costs = [], []
    for _ in range(TURNS):
        kernel = seconds(kernels)
        one, other = seconds(script) - kernel, seconds(calls) - kernel
        ratios.append(one / other)
        costs.append((one, other))
    found = median(ratios)
    mine, theirs = (
        median(side) / RUNS / STEPS * 1e9 for side in zip(*costs, strict=True)
    )
    figure = f"{found:.2f} ({mine:.0f} ns, {theirs:.0f} ns)"
    yield Row(STEP, figure, "≤ 0.5", found <= 0.5)


# Generated text with checks of 64 bits; source: measured before it was written.
PYTHON = 1.5
CHECKED = "odd results are tested for 64 bits, and a run looks up what is registered"


def told(
    what: str,
    measured: list[tuple[float, float]],
    count: int,
    aim: float = 1,
    why: str = "",
) -> Row:
    """The row of a ratio, with the microseconds of both sides, by `count` turns."""
    found = ratio(measured)
    one, two = (
        median(side) / RUNS / count * 1e6 for side in zip(*measured, strict=True)
    )
    figure = f"{found:.2f} ({one:.2f} µs, {two:.2f} µs)"
    return Row(what, figure, f"≤ {aim}", found <= aim, why=why)


def loops() -> Iterator[Row]:
    """Loops of integers, calls, and tasks."""
    from tests.script.executor.written import written

    functions = {each.name: each for each in compile_text(TEXT, Program(), {})}
    python: dict[str, Any] = {}
    exec(TEXT, python)
    ours = warm(functions["collatz"], 27)
    theirs = repeated(python["collatz"], 27)
    yield told(COLLATZ, pairs(ours, theirs, TURNS), 111, PYTHON, CHECKED)
    if torch is None:
        for what in (COLLATZ_TORCH, BOUNDARY, FORK):
            yield Row(what, "-", "≤ 1", None, NO_TORCH)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        unit = torch.jit.CompilationUnit(TEXT)
        forks = torch.jit.CompilationUnit(TORCH_FORKS).forks
        yield told(COLLATZ_TORCH, pairs(ours, repeated(unit.collatz, 27), TURNS), 111)
        same = warm(functions["same"], 1)
        yield told(BOUNDARY, pairs(same, repeated(unit.same, 1), TURNS), 1)
        mine = warm(written("forks(int n) -> int", FORKS), STEPS)
        yield told(FORK, pairs(mine, repeated(forks, STEPS), TURNS), STEPS)


RUNNING_ROWS = (step, loops)
