"""Compilation for CUDA: a family of kernels from one maker of bodies.

This module has the interface to numba-cuda, the launch of kernels, and the list of all
kernels, which a test compiles without a device.

Rules:
- `LaunchFamily(name, make, signature, keys)`: for each key (a tuple of dtype names) the
  function `make(*scalars)` returns a fresh body; `scalars` are NumPy's scalar types of
  the key, for use as constants: `T(1)`, `cuda.shared.array(BLOCK, T)`;
- the signature is text: `T` and `U` are the dtypes of the key, `R` the real type of
  `T`, `W` and `V` the widest type of the kind of `T` and `U` (int64, float64,
  complex128, in which numbers are passed), `int64*4` a tuple, `T[::1]` an array;
- a body writes only through its arguments, walks in strides of the grid, and does not
  mix literals with narrow elements: `1 / x` is float64, `T(1) / x` is not;
- bodies call scalar functions only through `device(function)`, and those of the CPU
  through `ported(function)`; functions that bodies of other files call use `running`
  instead of `cuda`;
- a kernel that computes each number below a count independently is an `Elements`, or,
  with a block for each, `BlockKernels`, of a function of that number, launched by
  `run`;
- 16-bit floats are passed as `uint16`; numbers are converted to the range before they
  are passed (`number_of`), since only compiled code wraps them silently.

`family[key]` compiles on first use, for the capability of the current device, under a
lock.  A launch calls the compiled kernel directly: the types are those of the
signature, nothing is inspected.  The simulator runs one kernel at a time.

Bodies can call functions of numbers, conversions of 16-bit floats, and block trees.

Mathematics: `reals` and `complexes_of` bind the functions that
`runtime.kernels.math.scalars` requires of a device.  Compiled, they are those of `math`
and `cmath`, which numba-cuda lowers to libdevice (errors in ulp: CUDA C++ Programming
Guide, mathematical functions).  Simulated, they are NumPy's, which return infinities
and NaN where Python's would raise.  Arguments and results have the element's own type.

16-bit floats are bits of uint16: float16 is IEEE 754 binary16, bfloat16 the upper half
of a float32.  Numbers are rounded to nearest, ties to even; a number that is too large
becomes infinite; every NaN becomes the quiet one.  The device has instructions for
this, but the same integers run in the simulator and for every capability.  `_U` brings
all sums back to 32 bits, because mixed widths widen.  For the small float16 numbers the
sum `x + 0.5` does the rounding: the last bit of 0.5 is worth 2**-24, as theirs is (F.
Giesen, float->half variants).

Blocks: every thread of a block calls a `block_tree`, each with its value, and all
receive the result; `shared` has `BLOCK` elements and is free again afterwards.  The
tree is the same on every device, and so are the sums.
"""

import cmath
import math
import threading
from collections.abc import Callable, Iterator
from functools import cache
from types import CellType, FunctionType
from typing import Any

import numpy as np

from everyorder.runtime.base.codegen import block, numbered, template
from everyorder.runtime.kernels.cuda.device import (
    BLOCK,
    SIMULATED,
    LaunchShape,
    cuda,
    current_stream,
    on_device,
    rows,
    running,
    spread,
)
from everyorder.runtime.kernels.math.complex import (
    Functions,
    Reals,
    Scalar,
    complexes,
    itself,
)
from everyorder.runtime.kernels.math.primitive import (
    CHOICES,
    bits,
    fma,
    from_bits,
    rounded,
)

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

# Every family by name, for tests that compile all of them.
DECLARED: dict[str, "LaunchFamily"] = {}


def scalar_type(name: str) -> Any:
    """Return NumPy's scalar type of a dtype name; `bool` is `np.bool_`."""
    return np.bool_ if name == "bool" else getattr(np, name)


def device(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that bodies may call; unchanged in the simulator.

    The compiler knows those of `math` and of libdevice, which stay unchanged too.
    """
    if SIMULATED or not isinstance(function, FunctionType):
        return function
    compiled: Callable[..., Any] = cuda.jit(device=True)(function)
    return compiled


@cache
def ported(function: FunctionType) -> Callable[..., Any]:
    """Return a function of the CPU's bodies, with all that it calls, for the device.

    It returns the CPU's bits: double-precision computations of the CPU run in the same
    order, with the fused steps at the same places, and the compiler cannot contract
    anything if products are added only by `fma` or `rounded`.
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
    """Return the device's counterparts of double-precision primitives."""
    from numba.cuda import libdevice

    library: Any = libdevice
    return {
        fma: library.fma,
        rounded: device(lambda x, y: library.dmul_rn(x, y)),
        bits: library.double_as_longlong,
        from_bits: library.longlong_as_double,
    }


def number_of(number: complex, name: str) -> Any:
    """Return a Python number as `W` of a dtype, converted to the range of the dtype."""
    kind = np.dtype(scalar_type(name))
    if kind.kind == "b":
        return int(bool(number))
    if kind.kind in "iu":
        bits = 8 * kind.itemsize
        wrapped = int(number.real) & ((1 << bits) - 1)
        negative = kind.kind == "i" and wrapped >> (bits - 1)
        return wrapped - (1 << bits) if negative else wrapped
    return complex(number) if kind.kind == "c" else float(number.real)


class LaunchedKernel:
    """One compiled kernel, called with the shape of the launch and the arguments."""

    __slots__ = ("_compiled", "_dispatcher", "_types")

    def __init__(self, body: Body, types: tuple[Any, ...]) -> None:
        self._dispatcher = cuda.jit(body)
        self._types = types
        self._compiled: Any = None

    def __call__(self, shape: LaunchShape, *arguments: Any) -> None:
        """Launch on the current stream of the shape's device; do not wait."""
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


class LaunchFamily:
    """Kernels of one maker, by key; `family["float32"]` compiles at the first launch.

    Raises:
        KeyError: the key was not declared.
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
        self._kernels: dict[Key, LaunchedKernel] = {}
        DECLARED[name] = self

    def __getitem__(self, key: str | Key) -> LaunchedKernel:
        whole = (key,) if isinstance(key, str) else key
        kernel = self._kernels.get(whole)
        return self._compile_key(whole) if kernel is None else kernel

    def body(self, key: Key) -> Body:
        """Return a fresh body for a key, named after the family and the key."""
        body = self._make(*map(scalar_type, key))
        body.__name__ = body.__qualname__ = "_".join((self.name, *key))
        return body

    def types(self, key: Key) -> tuple[Any, ...]:
        """Return Numba's types of the arguments."""
        names = dict(zip("TU", key, strict=False))
        names["R"] = REAL.get(key[0], key[0])
        names["W"], names["V"] = WIDE[key[0]], WIDE[key[-1]]
        return tuple(_type(word.strip(), names) for word in self.signature.split(","))

    def _compile_key(self, key: Key) -> LaunchedKernel:
        if key not in self.keys:
            raise KeyError(f"{self.name} has no kernel for {', '.join(key)}")
        with _LOCK:
            if key not in self._kernels:
                self._kernels[key] = LaunchedKernel(self.body(key), self.types(key))
            return self._kernels[key]


class Elements(LaunchFamily):
    """Kernels that call a function with each number below a count, and arguments.

    `make(*scalars)` returns the function; the signature is that of the arguments.
    """

    __slots__ = ()

    def __init__(
        self, name: str, make: Maker, signature: str, keys: tuple[str | Key, ...]
    ) -> None:
        walk = _walk(signature.count(",") + 1)
        super().__init__(
            name, lambda *kinds: walk(device(make(*kinds))), f"{signature}, int64", keys
        )

    def run(self, key: str | Key, count: int, where: int, *arguments: Any) -> None:
        """Launch for `count` numbers on a device."""
        self[key](spread(count, where), *arguments, count)


class BlockKernels(LaunchFamily):
    """Kernels of functions that all threads of a block call with each number.

    The functions receive an array that the threads share: `BLOCK` elements of the last
    dtype of the key, or of `kind`.
    """

    __slots__ = ()

    def __init__(
        self,
        name: str,
        make: Maker,
        signature: str,
        keys: tuple[str | Key, ...],
        kind: Any = None,
    ) -> None:
        walk = _walk_by_blocks(signature.count(",") + 1)

        def body(*kinds: Any) -> Body:
            result: Body = walk(
                device(make(*kinds)), kinds[-1] if kind is None else kind
            )
            return result

        super().__init__(name, body, f"{signature}, int64", keys)

    def run(self, key: str | Key, count: int, where: int, *arguments: Any) -> None:
        """Launch for `count` numbers on a device."""
        self[key](rows(count, where), *arguments, count)


@template("CUDA kernel", "function, kind", cuda=cuda, BLOCK=BLOCK, _int64=np.int64)
def _walk_by_blocks(arguments: int) -> list[str]:
    """Return the body that calls `function` in strides of the grid's blocks."""
    parameters = numbered(arguments)
    lines = [
        "shared = cuda.shared.array(BLOCK, kind)",
        "task = _int64(cuda.blockIdx.x)",
        *block(
            "while task < count:",
            [f"function(task, shared, {parameters})", "task += cuda.gridDim.x"],
        ),
    ]
    return block(f"def body({parameters}, count):", lines)


@template("CUDA kernel", "element", cuda=cuda)
def _walk(arguments: int) -> list[str]:
    """Return the body that calls `element` in strides of the grid."""
    parameters = numbered(arguments)
    lines = [
        "i = cuda.grid(1)",
        "step = cuda.gridsize(1)",
        *block("while i < count:", [f"element(i, {parameters})", "i += step"]),
    ]
    return block(f"def body({parameters}, count):", lines)


def declared() -> Iterator[tuple[LaunchFamily, Key]]:
    """Yield every kernel of every family imported so far."""
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


_U = np.uint32
_F = np.float32
_H = np.uint16

# 2**-24, the value of the last bit of a small float16.
_LAST = _F(2.0**-24)
_HALF = _F(0.5)


def _simulated(function: Callable[[Any], Any]) -> Scalar:
    return lambda x: type(x)(function(x))


def _pick(compiled: Any, simulated: Any) -> Scalar:
    chosen: Scalar = simulated if SIMULATED else compiled
    return chosen


# By name: compiled, and simulated.
_FUNCTIONS: dict[str, Scalar] = {
    **{
        name: _pick(getattr(math, name), getattr(np, name))
        for name in (
            *("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt"),
            *("sin", "cos", "tan", "sinh", "cosh", "tanh"),
            *("fmod", "hypot", "copysign"),
        )
    },
    **{
        f"a{name}": _pick(getattr(math, f"a{name}"), getattr(np, f"arc{name}"))
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")
    },
    **{
        name: _pick(function, _simulated(function))
        for name, function in (("erf", math.erf), ("erfc", math.erfc))
    },
}


def is_complex(kind: Any) -> bool:
    """Return True if a scalar type is complex."""
    return bool(np.issubdtype(kind, np.complexfloating))


def _whole(how: str, kind: Any) -> Scalar:
    """Return `floor`, `ceil`, `trunc` or `rint` (ties to even) of a floating type.

    Those of `math` would return integers, which large numbers do not fit.
    """
    if SIMULATED:
        simulated: Scalar = getattr(np, how)
        return simulated
    from numba.cuda import libdevice

    native = getattr(libdevice, how + ("f" if kind is np.float32 else ""))
    return device(lambda x: native(x))


@device
def _quotient(x, y):  # type: ignore[no-untyped-def]  # compiled for the device
    return x / y


@device
def _complex_power(x, y):  # type: ignore[no-untyped-def]  # as above
    return x**y


@device
def _length(x):  # type: ignore[no-untyped-def]  # as above
    """Return the magnitude of a complex number, in the type of its parts."""
    return _hypot(x.real, x.imag)


_hypot = _FUNCTIONS["hypot"]


@cache
def reals(kind: Any) -> Reals:
    """Return the functions of real numbers of a type."""
    return Reals(
        compiled=device,
        like=device(lambda x, value: kind(value)),
        divide=_quotient,
        power=_pick(math.pow, np.power),
        conj=device(itself),
        absolute=abs,
        **{how: _whole(how, kind) for how in ("floor", "ceil", "rint", "trunc")},
        weight=_FUNCTIONS["erf"],
        **_FUNCTIONS,
    )


@cache
def complexes_of(kind: Any) -> Functions:
    """Return the functions of complex numbers of a type."""
    part: Any = type(kind(0).real)
    return complexes(
        reals(part),
        device(lambda x, value: kind(value)),
        power=_complex_power,
        absolute=_length,
        sqrt=_pick(cmath.sqrt, np.sqrt),
        log=_pick(cmath.log, np.log),
    )


def functions(kind: Any) -> Functions:
    """Return the functions of numbers of a type."""
    return complexes_of(kind) if is_complex(kind) else reals(kind)


@device
def from_bfloat16(bits):  # type: ignore[no-untyped-def]  # compiled for the device
    """Return the float32 of the bits of a bfloat16."""
    return _U(_U(bits) << _U(16)).view(_F)


@device
def to_bfloat16(x):  # type: ignore[no-untyped-def]  # as above
    """Return the bits of the bfloat16 nearest to a float32."""
    bits = _F(x).view(_U)
    if _U(bits & _U(0x7FFFFFFF)) > _U(0x7F800000):
        return _H(0x7FC0)
    odd = _U(_U(bits >> _U(16)) & _U(1))
    return _H(_U(_U(bits + _U(0x7FFF)) + odd) >> _U(16))


@device
def from_float16(bits):  # type: ignore[no-untyped-def]  # as above
    """Return the float32 of the bits of a float16."""
    wide = _U(bits)
    sign = _U(_U(wide & _U(0x8000)) << _U(16))
    power = _U(_U(wide >> _U(10)) & _U(31))
    digits = _U(wide & _U(0x3FF))
    if power == _U(0):
        small = _F(_F(digits) * _LAST).view(_U)
        return _U(small | sign).view(_F)
    # The exponent bias differs by 112; 31 means infinite or NaN, as 255 does.
    power = _U(255) if power == _U(31) else _U(power + _U(112))
    whole = _U(_U(power << _U(23)) | _U(digits << _U(13)))
    return _U(whole | sign).view(_F)


@device
def to_float16(x):  # type: ignore[no-untyped-def]  # as above
    """Return the bits of the float16 nearest to a float32."""
    bits = _F(x).view(_U)
    sign = _U(_U(bits >> _U(16)) & _U(0x8000))
    size = _U(bits & _U(0x7FFFFFFF))
    if size > _U(0x7F800000):
        return _H(0x7E00)
    # 65520, from which on the nearest float16 is infinite.
    if size >= _U(0x477FF000):
        return _H(_U(sign | _U(0x7C00)))
    # 2**-14, below which float16 has a fixed point.
    if size < _U(0x38800000):
        fixed = _F(size.view(_F) + _HALF).view(_U)
        return _H(_U(sign | _U(fixed - _U(0x3F000000))))
    odd = _U(_U(size >> _U(13)) & _U(1))
    # The exponent bias differs by 112.
    rounded = _U(_U(_U(size - _U(0x38000000)) + _U(0xFFF)) + odd)
    return _H(_U(sign | _U(rounded >> _U(13))))


def block_tree(combine: Scalar) -> Scalar:
    """Return a function that combines the values of a block: `tree(shared, value)`."""
    both = device(combine)

    @device
    def tree(shared, value):  # type: ignore[no-untyped-def]  # compiled for the device
        thread = running.threadIdx.x
        shared[thread] = value
        running.syncthreads()
        half = BLOCK // 2
        while half > 0:
            if thread < half:
                shared[thread] = both(shared[thread], shared[thread + half])
            running.syncthreads()
            half = half // 2
        result = shared[0]
        running.syncthreads()
        return result

    return tree


block_sum = block_tree(lambda a, b: a + b)
# It may miss a NaN.
block_greatest = block_tree(lambda a, b: b if b > a else a)
