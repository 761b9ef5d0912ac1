"""The tables of CPU kernels: name to function, merged from the modules.

Which module brings which kernel is found by looking into the folder, so
that a new module needs no entry; two modules that bring the same name are a defect of
this folder and refused when it is imported.

Rules: a kernel is called `kernel(*outputs, *arguments)`, writes into its outputs and
returns nothing; what it may take for granted is said by `runtime.operators`, which
prepares the arguments.  One that is in `READY`, too, can be made ready before there are
elements: `ready(*outputs, *arguments)` gets a `Geometry` for each tensor, and gives
`run(*arrays)`, which is called with the flat array of each tensor among the arguments,
from its first element on, and then of each output; or None, where only the kernel knows
how.  Importing the table imports NumPy; Numba follows at the first compilation.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def tables_of(package: str, what: str) -> dict[str, Callable[..., Any]]:
    """The tables of that name of all modules of a package, as one."""
    table: dict[str, Callable[..., Any]] = {}
    (folder,) = import_module(package).__path__
    for file in sorted(Path(folder).glob("*.py")):
        if file.stem in ("__init__", "kernel_table"):
            continue
        module = import_module(f"{package}.{file.stem}")
        for name, kernel in getattr(module, what, {}).items():
            assert name not in table, f"two of {what} are called {name}"
            table[name] = kernel
    return table


KERNELS = tables_of(__package__, "KERNELS")
READY = tables_of(__package__, "READY")
