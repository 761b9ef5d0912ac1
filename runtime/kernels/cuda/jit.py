"""The one way to compile for CUDA: a family of kernels from one maker of bodies.

What numba-cuda is told, how a kernel is launched, and the list of all kernels there
are, which a test compiles without a device.

Rules:
- `Family(name, make, signature, keys)`: for each key (a tuple of dtype names) the
  function `make(*scalars)` gives a fresh body; `scalars` are NumPy's scalar types of
  the key, to be used as constants: `T(1)`, `cuda.shared.array(BLOCK, T)`;
- the signature is text: `T` and `U` stand for the dtypes of the key, `R` for the real
  type of `T`, `W` and `V` for the widest type of the kind of `T` and `U` (int64,
  float64, complex128: what numbers are passed as), `int64*4` for a tuple, `T[::1]` for
  an array;
- a body writes only through its arguments, walks in strides of the grid, and mixes no
  literals with narrow elements: `1 / x` is float64, `T(1) / x` is not;
- bodies call scalar functions only through `device(function)`, and those of the CPU
  through `ported(function)`; functions that use `cuda` themselves belong into the file
  of their kernel (the simulator demands it);
- 16-bit floats are passed as `uint16`; numbers are brought into range before they are
  passed (`number_of`), since only compiled code wraps them silently.

How it works: `family[key]` compiles on first use, for the capability of the current
device, under a lock.  A launch calls the compiled kernel directly: the types are those
of the signature, nothing is inspected.  The simulator runs one kernel at a time.
"""

import threading
from collections.abc import Callable, Iterator
from functools import cache
from types import CellType, FunctionType
from typing import Any

import numpy as np

from runtime.kernels.cuda.device import (
    SIMULATED,
    Shape,
    cuda,
    current_stream,
    on_device,
)
from runtime.kernels.math.primitive import CHOICES, bits, fma, from_bits, rounded

Key = tuple[str, ...]
Body = Callable[..., None]
Maker = Callable[..., Body]

# dtype name -> the widest type of its kind, and the type of its real part.
WIDE = {
    **dict.fromkeys(
        ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32"),
        "int64",
    ),
    **dict.fromkeys(("float32", "float64"), "float64"),
    **dict.fromkeys(("complex64", "complex128"), "complex128"),
    "uint64": "uint64",
}
REAL = {"complex64": "float32", "complex128": "float64"}

_LOCK = threading.RLock()

# Every family by name: what there is to compile.
DECLARED: dict[str, "Family"] = {}


def scalar_type(name: str) -> Any:
    """NumPy's scalar type of a dtype name; `bool` is `np.bool_`."""
    return np.bool_ if name == "bool" else getattr(np, name)


def device(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that bodies may call; the simulator takes it as it is.

    Those of `math` and of libdevice are known to the compiler, and stay themselves.
    """
    if SIMULATED or not isinstance(function, FunctionType):
        return function
    compiled: Callable[..., Any] = cuda.jit(device=True)(function)
    return compiled


@cache
def ported(function: FunctionType) -> Callable[..., Any]:
    """A function that the CPU's bodies call, with all that it calls, for the device.

    It gives the CPU's bits: what the CPU does in double precision is done in the same
    order, with the fused steps at the same places, and nothing is left to the compiler
    to contract if no product is added to anything but by `fma` or `rounded`.
    """
    if SIMULATED:
        return function
    if function in CHOICES:
        return ported(CHOICES[function][1])
    if function in _instructions():
        return _instructions()[function]
    scope = dict(function.__globals__)
    for name in function.__code__.co_names:
        if name in scope:
            scope[name] = _counterpart(scope[name])
    cells = tuple(
        CellType(_counterpart(cell.cell_contents))
        for cell in function.__closure__ or ()
    )
    return device(
        FunctionType(function.__code__, scope, function.__name__, None, cells)
    )


def _counterpart(value: Any) -> Any:
    return ported(value) if isinstance(value, FunctionType) else value


@cache
def _instructions() -> dict[Callable[..., Any], Callable[..., Any]]:
    """What stands for a primitive of double precision."""
    from numba.cuda import libdevice

    library: Any = libdevice
    return {
        fma: library.fma,
        rounded: device(lambda x, y: library.dmul_rn(x, y)),
        bits: library.double_as_longlong,
        from_bits: library.longlong_as_double,
    }


def number_of(number: complex, name: str) -> Any:
    """A Python number as `W` of a dtype, brought into the range of the dtype."""
    kind = np.dtype(scalar_type(name))
    if kind.kind == "b":
        return int(bool(number))
    if kind.kind in "iu":
        bits = 8 * kind.itemsize
        wrapped = int(number.real) & ((1 << bits) - 1)
        negative = kind.kind == "i" and wrapped >> (bits - 1)
        return wrapped - (1 << bits) if negative else wrapped
    return complex(number) if kind.kind == "c" else float(number.real)


class Kernel:
    """One compiled kernel: called with the shape of the launch and the arguments."""

    __slots__ = ("_compiled", "_dispatcher", "_types")

    def __init__(self, body: Body, types: tuple[Any, ...]) -> None:
        self._dispatcher = cuda.jit(body)
        self._types = types
        self._compiled: Any = None

    def __call__(self, shape: Shape, *arguments: Any) -> None:
        """Launch on the current stream of the shape's device; does not wait."""
        if SIMULATED:
            with _LOCK:
                self._dispatcher[shape.grid, shape.block](*arguments)
            return
        with on_device(shape.device):
            compiled = self._compiled or self._compile()
            compiled.launch(
                arguments,
                (shape.grid, 1, 1),
                (shape.block, 1, 1),
                current_stream(shape.device).core,
                0,
            )

    def _compile(self) -> Any:
        with _LOCK:
            if self._compiled is None:
                self._compiled = self._dispatcher.compile(self._types)
            return self._compiled


class Family:
    """Kernels of one maker, by key; `family["float32"]` compiles at the first launch.

    Raises KeyError for a key that was not declared.
    """

    __slots__ = ("_kernels", "_make", "keys", "name", "signature")

    def __init__(
        self,
        name: str,
        make: Maker,
        signature: str,
        keys: tuple[str | Key, ...],
    ) -> None:
        assert name not in DECLARED, f"two CUDA families are called {name}"
        self.name = name
        self.signature = signature
        self.keys = tuple((key,) if isinstance(key, str) else key for key in keys)
        self._make = make
        self._kernels: dict[Key, Kernel] = {}
        DECLARED[name] = self

    def __getitem__(self, key: str | Key) -> Kernel:
        whole = (key,) if isinstance(key, str) else key
        found = self._kernels.get(whole)
        return self._made(whole) if found is None else found

    def body(self, key: Key) -> Body:
        """A fresh body for a key, under a name that says what it is."""
        made = self._make(*map(scalar_type, key))
        made.__name__ = made.__qualname__ = "_".join((self.name, *key))
        return made

    def types(self, key: Key) -> tuple[Any, ...]:
        """Numba's types of the arguments."""
        names = dict(zip("TU", key, strict=False))
        names["R"] = REAL.get(key[0], key[0])
        names["W"], names["V"] = WIDE[key[0]], WIDE[key[-1]]
        return tuple(_type(word.strip(), names) for word in self.signature.split(","))

    def _made(self, key: Key) -> Kernel:
        if key not in self.keys:
            raise KeyError(f"{self.name} has no kernel for {', '.join(key)}")
        with _LOCK:
            if key not in self._kernels:
                self._kernels[key] = Kernel(self.body(key), self.types(key))
            return self._kernels[key]


def declared() -> Iterator[tuple[Family, Key]]:
    """Every kernel of every family imported so far."""
    for family in DECLARED.values():
        for key in family.keys:
            yield family, key


def _type(word: str, names: dict[str, str]) -> Any:
    types = cuda.types
    base, array, _ = word.partition("[::1]")
    base, tupled, count = base.partition("*")
    name = names.get(base, base)
    element = types.boolean if name == "bool" else getattr(types, name)
    if tupled:
        return types.UniTuple(element, int(count))
    return types.Array(element, 1, "C") if array else element
