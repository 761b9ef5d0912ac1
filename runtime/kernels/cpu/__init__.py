"""Kernels for tensors in host memory, compiled by Numba."""

from runtime.kernels.cpu.table import KERNELS

__all__ = ["KERNELS"]
