"""Kernels for tensors in host memory, compiled by Numba."""

from everyorder.runtime.kernels.cpu.operand import Geometry
from everyorder.runtime.kernels.cpu.table import KERNELS, READY

__all__ = ["KERNELS", "READY", "Geometry"]
