"""The one table of CUDA kernels: name to function, merged from the modules.

True only here: which module brings which kernel is found by looking into the folder, as
on the CPU; two modules that bring the same name are a defect of this folder and refused
when it is imported.

Rules: names and meanings are those of `runtime.kernels.cpu.table`, and a test compares
the two tables.  A kernel returns before the device is done, unless it has to look at
elements first.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def _merged() -> dict[str, Callable[..., Any]]:
    table: dict[str, Callable[..., Any]] = {}
    for file in sorted(Path(__file__).parent.glob("*.py")):
        if file.stem in ("__init__", "table"):
            continue
        module = import_module(f"runtime.kernels.cuda.{file.stem}")
        for name, kernel in getattr(module, "KERNELS", {}).items():
            assert name not in table, f"two CUDA kernels are called {name}"
            table[name] = kernel
    return table


KERNELS = _merged()
