"""Kernels: functions on tensors that write into given outputs."""

from runtime.kernels.jit import Family
from runtime.kernels.threads import get_num_threads, parallel_for, set_num_threads

__all__ = ["Family", "get_num_threads", "parallel_for", "set_num_threads"]
