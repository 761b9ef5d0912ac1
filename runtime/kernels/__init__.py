"""Kernels: functions on tensors that write into their outputs."""

# ruff: noqa: E402  # first of all, an error that names the extra
from everyorder.runtime.base.extras import require_packages

require_packages()

from everyorder.runtime.kernels.compile.jit import Family
from everyorder.runtime.kernels.shared.thread_pool import (
    get_num_threads,
    parallel_for,
    set_num_threads,
)

__all__ = ["Family", "get_num_threads", "parallel_for", "set_num_threads"]
