"""Modules: what has parameters and buffers, and computes; no library of layers.

The names are those of `torch.nn`.
"""

from runtime.modules.containers import ModuleDict, ModuleList, Sequential
from runtime.modules.module import Module
from runtime.modules.parameter import Parameter
from runtime.modules.state import IncompatibleKeys

__all__ = [
    "IncompatibleKeys",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "Sequential",
]
