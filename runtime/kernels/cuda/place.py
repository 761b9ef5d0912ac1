"""Where the greatest and the least element are: argmax and argmin on CUDA.

True only here: trees of places instead of elements.

Rules: of equal elements the first wins, and NaN wins over all, the first of them.  A
block takes a run of `RUN` elements of one row and keeps the place of the best; where a
row has several runs, their places are the candidates of a second launch, and so on.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from runtime.kernels.cuda.jit import Body, Family, Maker, device
from runtime.kernels.cuda.launch import rows
from runtime.kernels.cuda.memory import device_array
from runtime.kernels.cuda.operand import flat, index_of
from runtime.kernels.cuda.reduce import RUN
from runtime.kernels.cuda.scalars import Scalar
from runtime.kernels.cuda.toolkit import BLOCK, cuda
from runtime.kernels.cuda.unary import FLOATS, INTEGERS
from runtime.tensors.arrays import flat_of
from runtime.tensors.tensor import Tensor


def _maker(beats: Scalar) -> Maker:
    def make(kind: Any) -> Body:
        before = device(beats)

        @device
        def better(x, base, by, a, b):  # type: ignore[no-untyped-def]  # compiled for the device
            """Which of two places in a row holds the winner; -1 is no place."""
            if a < 0:
                return b
            if b < 0:
                return a
            one, two = x[base + a * by], x[base + b * by]
            # Only NaN differs from itself.
            if one != one or two != two:
                if two == two:
                    return a
                if one == one:
                    return b
                return min(a, b)
            if before(one, two):
                return a
            if before(two, one):
                return b
            return min(a, b)

        def body(  # type: ignore[no-untyped-def]  # as above
            out, x, candidates, again, tasks, runs, length, run, reduced, inner
        ):
            shared = cuda.shared.array(BLOCK, np.int64)
            thread = cuda.threadIdx.x
            task = cuda.blockIdx.x
            while task < tasks:
                row = task // runs
                low = (task - row * runs) * run
                high = min(low + run, length)
                outer = row // inner
                base = outer * reduced * inner + (row - outer * inner)
                best = np.int64(-1)
                i = low + thread
                while i < high:
                    found = np.int64(i)
                    if again:
                        found = candidates[row * length + i]
                    best = better(x, base, inner, best, found)
                    i += BLOCK
                shared[thread] = best
                cuda.syncthreads()
                half = BLOCK // 2
                while half > 0:
                    if thread < half:
                        shared[thread] = better(
                            x, base, inner, shared[thread], shared[thread + half]
                        )
                    cuda.syncthreads()
                    half = half // 2
                if thread == 0:
                    out[task] = shared[0]
                cuda.syncthreads()
                task += cuda.gridDim.x

        return body

    return make


_SIGNATURE = "int64[::1], T[::1], int64[::1]" + ", int64" * 7
_KEYS = ("bool", *INTEGERS, *FLOATS)
_GREATEST = Family("argmax", _maker(lambda a, b: a > b), _SIGNATURE, _KEYS)
_LEAST = Family("argmin", _maker(lambda a, b: a < b), _SIGNATURE, _KEYS)


def _kernel(kernels: Family) -> Callable[[Tensor, Tensor, int | None], None]:
    def kernel(out: Tensor, x: Tensor, dim: int | None) -> None:
        if not out.numel():
            return
        where, array = index_of(x), flat(x)
        shape = x.shape if dim is not None and x.shape else (x.numel(),)
        at = dim if dim is not None and x.shape else 0
        reduced, inner = shape[at], prod(shape[at + 1 :])
        count = prod(shape[:at]) * inner
        target = flat_of(out)
        length, candidates, again = reduced, target, 0
        while True:
            runs = -(-length // RUN)
            tasks = count * runs
            found = target
            if runs > 1:
                found = device_array(tasks, np.dtype(np.int64), where)
            kernels[x.dtype.name](
                rows(tasks, where),
                *(found, array, candidates, again, tasks, runs, length, RUN),
                *(reduced, inner),
            )
            if runs == 1:
                return
            length, candidates, again = runs, found, 1

    return kernel


KERNELS: dict[str, Callable[..., None]] = {
    "argmax": _kernel(_GREATEST),
    "argmin": _kernel(_LEAST),
}
