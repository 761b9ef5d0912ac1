"""Products of matrices, convolution and pooling; images have the sizes given here."""

from typing import Any

import numpy as np

from everyorder.runtime.kernels.cpu.kernel_table import KERNELS
from tests.bench.case import Case, blank, values, with_torch
from tests.bench.compare import Trial

# (pictures, channels in, channels out, height and width), by elements of the input
IMAGES = {
    1_000: (1, 4, 8, 16),
    100_000: (8, 16, 32, 28),
    10_000_000: (64, 32, 32, 70),
}
SIDES = (("32", 32), ("256", 256), ("1024", 1024))


def matmul(side: int, dtype: str) -> Trial:
    a, b = values(side, side, dtype=dtype), values(side, side, dtype=dtype)
    to, kernel = blank(side, side, dtype=dtype), KERNELS["mm"]
    return Trial(
        lambda: kernel(to.o, a.o, b.o),
        lambda: np.matmul(a.n, b.n, to.n),
        with_torch(lambda torch: lambda: torch.mm(a.t, b.t, out=to.t)),
        (to,),
    )


def conv2d(count: int, dtype: str) -> Trial:
    """Windows of 3 by 3, padded; torch's has no `out=`."""
    pictures, channels, seen, side = IMAGES[count]
    x = values(pictures, channels, side, side, dtype=dtype)
    weight, bias = values(seen, channels, 3, 3, dtype=dtype), values(seen, dtype=dtype)
    to, kernel = blank(pictures, seen, side, side, dtype=dtype), KERNELS["conv2d"]
    one = (1, 1)

    def of_torch(torch: Any) -> Any:
        return lambda: torch.conv2d(x.t, weight.t, bias.t, one, one, one, 1)

    return Trial(
        lambda: kernel(to.o, x.o, weight.o, bias.o, one, one, one, 1),
        None,
        with_torch(of_torch),
    )


def max_pool2d(count: int, dtype: str) -> Trial:
    """Windows of 2 by 2, with the places of the greatest."""
    pictures, channels, _, side = IMAGES[count]
    x = values(pictures, channels, side, side, dtype=dtype)
    half = (pictures, channels, side // 2, side // 2)
    to, at = blank(*half, dtype=dtype), blank(*half, dtype="int64")
    kernel, two, one, none = KERNELS["max_pool2d"], (2, 2), (1, 1), (0, 0)

    def of_torch(torch: Any) -> Any:
        function, out = torch._C._nn.max_pool2d_with_indices, (to.t, at.t)
        return lambda: function(x.t, two, two, none, one, False, out=out)

    return Trial(
        lambda: kernel(to.o, at.o, x.o, two, two, none, one),
        None,
        with_torch(of_torch),
        (to, at),
    )


CASES = (
    Case("matmul", matmul, sizes=SIDES, relative=1e-2),
    Case("conv2d", conv2d),
    Case("max_pool2d", max_pool2d),
)
