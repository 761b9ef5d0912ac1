"""The table of CUDA kernels: name to function, merged from the modules.

Names and meanings are those of `runtime.kernels.cpu.table`, and a test compares the two
tables.  A kernel returns before the device is done, unless it has to look at elements
first.
"""

from runtime.kernels.cpu.table import merged

KERNELS = merged("runtime.kernels.cuda", "KERNELS")
