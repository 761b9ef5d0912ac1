"""Kernels for tensors in host memory, compiled by Numba."""

from runtime.kernels.cpu.operand import Geometry
from runtime.kernels.cpu.table import KERNELS, READY

__all__ = ["KERNELS", "READY", "Geometry"]
