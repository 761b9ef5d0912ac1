"""Modules: objects that hold parameters and buffers and compute; there are no layers.

The names are those of `torch.nn`.
"""

from everyorder.runtime.nn.containers import ModuleDict, ModuleList, Sequential
from everyorder.runtime.nn.members import IncompatibleKeys, Parameter
from everyorder.runtime.nn.module import Module

__all__ = [
    "IncompatibleKeys",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "Sequential",
]
