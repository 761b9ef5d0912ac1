"""Random numbers on CUDA: the CPU's, from the same counters, bit by bit.

Threads make blocks of Philox words and the elements of each; the rule from words to
numbers, and its functions, are those of `runtime.kernels.cpu.random`.

Every number of 64 bits is kept unsigned: with a signed one it would become a float.
"""

from typing import Any

import numpy as np

from runtime.kernels.cpu.random import DRAWS, Draw, block, kernels
from runtime.kernels.cuda.copy import flat
from runtime.kernels.cuda.device import cuda, spread
from runtime.kernels.cuda.elementwise import index_of
from runtime.kernels.cuda.jit import Body, Family, Maker, ported
from runtime.random import Generator
from runtime.tensors.tensor import Tensor

_U = np.uint64
_block = ported(block)


def _maker(draw: Draw) -> Maker:
    numbers, of_block = ported(draw.draw), draw.of_block

    def make(kind: Any) -> Body:
        def body(out, count, seed, offset, p, q, r):  # type: ignore[no-untyped-def]  # compiled for the device
            b = cuda.grid(1)
            step = cuda.gridsize(1)
            while b * of_block < count:
                w0, w1, w2, w3 = _block(_U(seed), _U(offset), b)
                found = numbers(w0, w1, w2, w3, p, q, r)
                for i in range(of_block):
                    if b * of_block + i < count:
                        out[b * of_block + i] = found[i]
                b += step

        return body

    return make


_FAMILIES = {
    name: Family(
        name,
        _maker(draw),
        f"T[::1], int64, uint64, uint64{f', {draw.parameters}' * 3}",
        draw.dtypes,
    )
    for name, draw in DRAWS.items()
}


def _fill(name: str, out: Tensor, generator: Generator, *numbers: Any) -> None:
    count = out.numel()
    if not count:
        return
    blocks = -(-count // DRAWS[name].of_block)
    seed, offset = generator.take(blocks)
    shape = spread(blocks, index_of(out))
    _FAMILIES[name][out.dtype.name](shape, flat(out), count, seed, offset, *numbers)


KERNELS = kernels(_fill)
