"""What the threads of a block find out together, in a tree in shared memory.

True only here: every thread of the block calls, each with its value, and all get the
result; `shared` has `BLOCK` elements and is free again afterwards.  The tree is the
same on every device, and so are the sums.
"""

from runtime.kernels.cuda.jit import device
from runtime.kernels.cuda.toolkit import BLOCK
from runtime.kernels.cuda.toolkit import running as cuda


@device
def block_sum(shared, value):  # type: ignore[no-untyped-def]  # compiled for the device
    """The sum of the values of all threads."""
    thread = cuda.threadIdx.x
    shared[thread] = value
    cuda.syncthreads()
    half = BLOCK // 2
    while half > 0:
        if thread < half:
            shared[thread] += shared[thread + half]
        cuda.syncthreads()
        half = half // 2
    result = shared[0]
    cuda.syncthreads()
    return result


@device
def block_greatest(shared, value):  # type: ignore[no-untyped-def]  # as above
    """The greatest of the values of all threads; it may miss a NaN."""
    thread = cuda.threadIdx.x
    shared[thread] = value
    cuda.syncthreads()
    half = BLOCK // 2
    while half > 0:
        if thread < half and shared[thread + half] > shared[thread]:
            shared[thread] = shared[thread + half]
        cuda.syncthreads()
        half = half // 2
    result = shared[0]
    cuda.syncthreads()
    return result
