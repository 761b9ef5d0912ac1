"""One call of a kernel on both backends, and what they wrote compared."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from everyorder.runtime.kernels.cpu.kernel_table import KERNELS as CPU
from everyorder.runtime.kernels.cuda import KERNELS as CUDA
from everyorder.runtime.tensors.tensor import Tensor
from tests.cuda.simulated.arrays import Array, close, get, on_host, put, spaced

Maker = Callable[[Any], Tensor]


def tensors(given: Any, make: Maker) -> Any:
    """The same with a tensor for every array, also inside of lists."""
    if isinstance(given, np.ndarray | np.generic):
        return make(given)
    if isinstance(given, list):
        return [tensors(item, make) for item in given]
    return given


def run(
    table: Any, name: str, outs: Sequence[Any], args: Sequence[Any], make: Maker
) -> list[Array]:
    """What a kernel wrote; the outputs begin with the elements of `outs`."""
    fresh: Maker = on_host if make is on_host else put
    written = [item if item is None else fresh(item) for item in outs]
    table[name](*written, *(tensors(item, make) for item in args))
    return [get(item) for item in written if item is not None]


def agree(
    name: str,
    outs: Sequence[Any],
    *args: Any,
    compare: Callable[[Array, Array], None] = close,
    layouts: Sequence[Maker] = (put, spaced),
) -> list[Array]:
    """Both backends write the same, from operands in order and spaced apart."""
    expected = run(CPU, name, outs, args, on_host)
    for layout in layouts:
        found = run(CUDA, name, outs, args, layout)
        for one, other in zip(found, expected, strict=True):
            compare(one, other)
    return expected


def same(found: Array, expected: Array) -> None:
    """Equal bit by bit."""
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


def empty(shape: Sequence[int], form: Any) -> Array:
    """What an output holds before: nothing of use."""
    return np.full(tuple(shape), 7, form)


def numbers(shape: Sequence[int], form: Any, seed: int = 1) -> Array:
    """Numbers of a dtype, small ones for integers."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(form)
    if kind.kind == "b":
        return rng.integers(0, 2, tuple(shape)).astype(kind)
    if kind.kind in "iu":
        low = 0 if kind.kind == "u" else -9
        return rng.integers(low, 10, tuple(shape)).astype(kind)
    real = rng.standard_normal(tuple(shape))
    if kind.kind == "c":
        return (real + 1j * rng.standard_normal(tuple(shape))).astype(kind)
    return real.astype(kind)
