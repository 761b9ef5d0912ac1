"""Modules: objects that hold parameters and buffers and compute; there are no layers.

The names are those of `torch.nn`.
"""

from typing import TYPE_CHECKING

from everyorder.runtime.nn.containers import ModuleDict, ModuleList, Sequential
from everyorder.runtime.nn.members import IncompatibleKeys, Parameter
from everyorder.runtime.nn.module import Module

if not TYPE_CHECKING:
    # A type checker reports unknown names.
    from everyorder.runtime.nn.outside import __getattr__  # noqa: F401  # called by Python

__all__ = [
    "IncompatibleKeys",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "Sequential",
]
