"""Rows about compiling: a function of many lines, and whether its length counts once.

True only here: the same source for both, imported anew for each time that it is
compiled, so that neither has seen it; a statement of each common kind in turn.
"""

import importlib.util
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import process_time
from types import ModuleType
from typing import Any

from everyorder.runtime import jit
from tests.bench.compare import torch
from tests.bench.row import NO_TORCH, Row

LINES, LONGER, TIMES = 200, 800, 5
COMPILED = f"compiling a function of {LINES} lines, over torch.jit.script"
LENGTH = f"compiling {LONGER} lines over compiling {LINES}"

HEAD = """\
import {library} as library
from {library} import Tensor


def program(x: Tensor, n: int) -> Tensor:
    y = x
    total = 0
    sizes = [1, 2, 3]
"""
STATEMENTS = """\
    y = y + x * {number}
    total = total + n * {number}
    if total > {number}:
        y = library.relu(y)
    else:
        y = y - x
    for i in range(n):
        total += i * sizes[0]
    y = (y * 2.0).sum(0, True) + y
    sizes.append(total)
"""


def source(library: str, lines: int) -> str:
    """A module with a function of so many lines."""
    each = STATEMENTS.count("\n")
    parts = [STATEMENTS.format(number=number) for number in range(lines // each)]
    return HEAD.format(library=library) + "".join(parts) + "    return y\n"


def seconds_of(
    folder: Path, library: str, lines: int, script: Callable[[Any], Any]
) -> float:
    """The median of the seconds of the processor, after a first time."""
    path = folder / f"{library}_{lines}.py"
    path.write_text(source(library, lines), encoding="utf-8")
    took = []
    for number in range(TIMES + 1):
        function = imported(path, f"{path.stem}_{number}").program
        begun = process_time()
        script(function)
        took.append(process_time() - begun)
    return median(took[1:])


def imported(path: Path, name: str) -> ModuleType:
    """A module that nobody has seen before."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, "the file is there"
    assert spec.loader is not None, "it is Python"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiling() -> Iterator[Row]:
    """What compiling costs, and how that grows."""

    def ours(function: Any) -> None:
        jit.script(function).graph  # noqa: B018  # it is compiled when asked for

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        short = seconds_of(folder, "everyorder.runtime", LINES, ours)
        long = seconds_of(folder, "everyorder.runtime", LONGER, ours)
        if torch is None:
            yield Row(COMPILED, f"{short * 1e3:.0f} ms", "≤ 5", None, NO_TORCH)
        else:
            theirs = seconds_of(folder, "torch", LINES, torch.jit.script)
            yield Row(
                COMPILED,
                f"{short / theirs:.2f} ({short * 1e3:.0f} ms)",
                "≤ 5",
                short <= 5 * theirs,
            )
        linear = LONGER / LINES
        yield Row(
            LENGTH,
            f"{long / short:.2f}",
            f"≤ {linear + 1:g}",
            long <= (linear + 1) * short,
            why="alias analysis asks of each write who may see it",
        )


COMPILING_ROWS = (compiling,)
