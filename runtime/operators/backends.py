"""Backends: which keys have kernels, and where the kernels are.

True only here: the three backends of the built-in operators.  The tables are imported
when the first kernel runs, because that imports the compiler.
"""

from runtime.locks import load
from runtime.operators.plan import KernelTable
from runtime.schema.device import Device

# Dispatch key -> the module with the table of kernels; Meta computes nothing.
MODULES: dict[str, str | None] = {
    "CPU": "runtime.kernels.cpu",
    "CUDA": "runtime.kernels.cuda",
    "Meta": None,
}
# Device type -> dispatch key, for the devices with kernels.
KEYS = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}

_TABLES: dict[str, KernelTable] = {}


def table_of(key: str) -> KernelTable:
    """The kernels of the backend, imported when they are first asked for."""
    found = _TABLES.get(key)
    if found is None:
        module = MODULES[key]
        assert module is not None, "Meta runs no kernels"
        found = _TABLES[key] = load(module).KERNELS
    return found


def table_for(device: Device) -> KernelTable:
    """The kernels that work on the memory of a device.

    A device type without kernels of its own keeps its elements in host memory.
    """
    return table_of(KEYS.get(device.type, "CPU"))
