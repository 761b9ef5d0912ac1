"""Numba-CUDA, and whether it simulates: the only place where it is imported.

True only here: `numba.cuda` is taken from the package numba-cuda, never from numba's
own deprecated copy.  Without numba-cuda the import of this module raises
`DeviceUnavailable`; a missing driver is noticed by `device`, not here, because kernels
compile without one.

Rules: a module with kernel bodies takes `cuda` from here under this very name: the
simulator finds it by identity among the globals of the body; a function that kernels of
other files call takes `running` instead.  Numba stays out of every
module outside of this folder.
"""

from importlib.util import find_spec
from typing import Any

from runtime.errors.storage import DeviceUnavailable
from runtime.kernels.cuda.simulator import Running, mend

if find_spec("numba_cuda") is None:
    raise DeviceUnavailable(
        device="cuda",
        reason="the package numba-cuda is not installed",
        remedy="install everyorder with the extra `cuda`",
    )

import numba
from numba import cuda as _cuda

# Untyped, and taken for what it is at run time: the device's or the simulator's.
cuda: Any = _cuda

_config: Any = numba.config

# Under NUMBA_ENABLE_CUDASIM=1 kernels run as Python, one thread each.
SIMULATED = bool(_config.ENABLE_CUDASIM)

if SIMULATED:
    mend()

# The same for functions of other files than the kernel's.
running: Any = Running() if SIMULATED else _cuda

# Threads of a block.  256 gives every multiprocessor since Kepler its full number of
# threads; a simulated thread costs 80 µs, and 4 make a tree of two levels.
BLOCK = 4 if SIMULATED else 256

__all__ = ["BLOCK", "SIMULATED", "cuda", "running"]
