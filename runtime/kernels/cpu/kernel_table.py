"""The tables of CPU kernels: name to function, merged from the modules.

The modules of the folder are listed, so that a new module needs no entry; if two
modules define the same name, the import of this package fails.

Rules: a kernel is called `kernel(*outputs, *arguments)`, writes into its outputs and
returns nothing; `runtime.operators` prepares the arguments and guarantees their
properties.  A kernel in `READY` can also be prepared before there are elements:
`ready(*outputs, *arguments)` receives a `Geometry` for each tensor, and returns
`run(*arrays)`, which is called with the flat array of each tensor among the arguments,
from its first element on, and then of each output; or None, if only the kernel supports
the case.  Importing the table imports NumPy; Numba follows at the first compilation.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def tables_of(package: str, what: str) -> dict[str, Callable[..., Any]]:
    """Return the tables of that name of all modules of a package, as one."""
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
