"""Kernels for tensors in host memory, compiled by Numba."""

from everyorder.runtime.kernels.cpu.kernel_table import KERNELS, READY
from everyorder.runtime.kernels.shared.operands import Geometry

__all__ = ["KERNELS", "READY", "Geometry"]
