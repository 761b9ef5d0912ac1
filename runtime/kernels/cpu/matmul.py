"""Products of matrices: BLAS for floats, a blocked kernel for integers.

`np.matmul` with an output takes 358 us for 256 by 256 float32 where the best compiled
kernel takes 1,283, and 22 ms against 63 ms for 1,024.  BLAS does not support integers;
NumPy's loop for them strides through memory, the one here does not.  Layouts that BLAS
accepts (one of the two strides is 1, the other no less than the row) are passed as a
view, so a transposed operand needs no copy; other layouts are copied.

Threads: BLAS does not use its own threads for products of this module.  They spin while
they wait for each other, so that a product of 64 by 64 by 128, which one thread
computes in 10 us, took 20 ms on busy cores; and `set_num_threads` would not control
them.  During these products BLAS is set to one thread, and the output is cut here.
- The setting is the process's: the first product that starts saves it, the last that
  ends restores it, in any order of threads (0.5 us a product); a product outside of
  this module uses one thread meanwhile.
- A product too small for BLAS's own threads is not cut, and the setting stays.
- A child that was forked during a product restores the setting.
- Only the OpenBLAS in NumPy's wheels is supported; with another library, NumPy computes
  products, with its number of threads.

Small products call BLAS from compiled code, by its address.  For 32 by 32 float32, 0.6
us of the 1.5 us of `np.matmul` are NumPy's own; a compiled entry passes the flat arrays
on in 0.3 us, adds the bias as well, and NaN and infinities raise no warning.  The entry
receives the address with each call, so that the machine code on disk does not contain
it.  It takes row-major matrices of float32 and float64 without gaps; without such a
library, or without compilation, `entry` is None and NumPy multiplies.
"""

import os
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from everyorder.runtime.kernels.compile.jit import Entry, Family
from everyorder.runtime.kernels.cpu.axis import grain_of, result
from everyorder.runtime.kernels.shared.operands import Geometry, Run, viewer
from everyorder.runtime.kernels.shared.reduction_passes import Array
from everyorder.runtime.kernels.shared.thread_pool import parallel_for
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import array_of, flat_of

# Multiplications up to which OpenBLAS uses one thread for matrices of real numbers:
# SMP_THRESHOLD_MIN times GEMM_MULTITHREAD_THRESHOLD in its interface/gemm.c.
SMALL = 1 << 18

# The same for vectors and complex numbers: less than the smallest product that was seen
# on two threads.
THIN = 1 << 12

# Multiplications per thread: 20 us of float32, ten times a hand-over.
GRAIN = 1 << 20

# Rows or columns per thread: the number that inner loops of BLAS process at once, or
# twice that.
LINES = 16


# dtype name -> the product of matrices in the C interface with 64-bit sizes.
GEMM = {"float32": "scipy_cblas_sgemm64_", "float64": "scipy_cblas_dgemm64_"}


class Setting:
    """The number of threads of BLAS: one during any product of this module."""

    __slots__ = ("addresses", "before", "depth", "lock", "read", "write")

    def __init__(
        self,
        read: Callable[[], int],
        write: Callable[[int], object],
        addresses: dict[str, int] | None = None,
    ) -> None:
        self.read = read
        self.write = write
        # dtype name -> the address of its product of matrices, if it has 64-bit sizes.
        self.addresses = addresses or {}
        self.depth = 0
        self.before = 1
        self.lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forked)

    def enter(self) -> None:
        """Start a product: save the setting if it is the first."""
        with self.lock:
            if not self.depth:
                self.before = self.read()
                self.write(1)
            self.depth += 1

    def leave(self) -> None:
        """End a product: restore the setting if it was the last."""
        with self.lock:
            self.depth -= 1
            if not self.depth:
                self.write(self.before)

    def forked(self) -> None:
        """Restore the setting in a child, which does not run the parent's products."""
        self.lock = threading.Lock()
        if self.depth:
            self.depth = 0
            self.write(self.before)


@cache
def setting() -> Setting | None:
    """Return the setting of the BLAS that NumPy has loaded; None if unsupported."""
    # Wheels for Linux and Windows, and for macOS.
    home = Path(np.__file__).parent
    for folder in (home.parent / "numpy.libs", home / ".dylibs"):
        for file in sorted(folder.glob("*scipy_openblas*")):
            if (blas := setting_of(file)) is not None:
                return blas
    return None


def setting_of(file: Path) -> Setting | None:
    """Return the setting of a loaded library; None if it lacks the functions."""
    import ctypes

    try:
        # `PyDLL` keeps the interpreter lock: a call takes 0.1 us.  A library that is
        # not loaded must not be loaded here, if the system can report that.
        library = ctypes.PyDLL(str(file), mode=getattr(os, "RTLD_NOLOAD", 0))
    except OSError:
        return None
    for suffix in ("64_", ""):
        write = getattr(library, f"scipy_openblas_set_num_threads{suffix}", None)
        read = getattr(library, f"scipy_openblas_get_num_threads{suffix}", None)
        if read is not None and write is not None:
            write.argtypes, write.restype = (ctypes.c_int,), None
            named = GEMM if suffix else {}
            addresses = {
                dtype: ctypes.cast(function, ctypes.c_void_p).value or 0
                for dtype, name in named.items()
                if (function := getattr(library, name, None)) is not None
            }
            return Setting(read, write, addresses)
    return None


def gemm_address(dtype: str) -> int | None:
    """Return the address of the library's row-major product; None if unknown."""
    blas = setting()
    return None if blas is None else blas.addresses.get(dtype)


def multiply(out: Array, a: Array, b: Array) -> None:
    """Multiply matrices, or stacks of equally many, in layouts that BLAS accepts."""
    rows, columns = out.shape[-2:]
    work = rows * columns * a.shape[-1]
    blas = setting()
    # NumPy would warn about results of NaN, infinities and overflow.
    with np.errstate(all="ignore"):
        if blas is None or (out.ndim == 2 and work <= _bound(out, a, b)):
            np.matmul(a, b, out)
            return
        blas.enter()
        try:
            _cut(out, a, b, work)
        finally:
            blas.leave()


def _bound(out: Array, a: Array, b: Array) -> int:
    """Return the multiplications up to which BLAS uses one thread by itself."""
    real = out.dtype.kind == "f" and out.shape[0] > 1 and out.shape[1] > 1
    # A matrix by its own transpose is another routine, with another bound.
    return SMALL if real and not np.may_share_memory(a, b) else THIN


def _cut(out: Array, a: Array, b: Array, work: int) -> None:
    """Cut the output by matrices, or by the larger of rows and columns."""
    rows, columns = out.shape[-2:]
    if out.ndim == 3 and out.shape[0] == 1:
        out, a, b = out[0], a[0], b[0]

    def matrices(lo: int, hi: int) -> None:
        np.matmul(a[lo:hi], b[lo:hi], out[lo:hi])

    def by_rows(lo: int, hi: int) -> None:
        np.matmul(a[lo:hi], b, out[lo:hi])

    def by_columns(lo: int, hi: int) -> None:
        np.matmul(a, b[:, lo:hi], out[:, lo:hi])

    if out.ndim == 3:
        parallel_for(out.shape[0], -(-GRAIN // max(work, 1)), matrices)
    elif rows >= columns:
        parallel_for(rows, max(LINES, GRAIN * rows // work), by_rows)
    else:
        parallel_for(columns, max(LINES, GRAIN * columns // work), by_columns)


# output, matrices, bias or nothing, rows, columns, inner size, True if the second
# matrix is transposed, address
SIGNATURE = "void(T[::1], T[::1], T[::1], T[::1], int64, int64, int64, boolean, int64)"

# Values of the C interface (cblas.h): row-major order, and operations on a matrix.
ROW_MAJOR, AS_IT_IS, TRANSPOSED = 101, 111, 112


@cache
def entry(name: str) -> tuple[Entry, int] | None:
    """Return the compiled call for a dtype, and its last argument, the address."""
    import numba

    address = gemm_address(name)
    settings: Any = numba.config
    if address is None or settings.DISABLE_JIT:
        return None
    return _GEMM[name], address


class _Gemm(Family):
    """The compiled calls of gemm; the body is made when one is compiled first."""

    __slots__ = ()

    def _make(self, dtypes: tuple[str, ...]) -> Entry:
        self.body = _product_by(_by_address())
        return super()._make(dtypes)


def _product_by(call: Any) -> Entry:
    """Return the body: the bias in each row, or nothing, and the product added."""

    def product(
        out: Any,
        a: Any,
        b: Any,
        bias: Any,
        rows: int,
        columns: int,
        inner: int,
        turned: bool,
        address: int,
    ) -> None:
        added = len(bias) > 0
        if added:
            for i in range(rows):
                to = out[i * columns : i * columns + columns]
                for j in range(columns):
                    to[j] = bias[j]
        call(out, a, b, rows, columns, inner, turned, added, address)

    return product


def _by_address() -> Any:
    """Return the call of gemm: `a` by `b`, added to the rows in `out` or not."""
    from llvmlite import ir  # type: ignore[import-untyped]  # ships no types
    from numba import extending, types

    def blas_gemm_call(
        context: Any,
        out: Any,
        a: Any,
        b: Any,
        rows: Any,
        columns: Any,
        inner: Any,
        turned: Any,
        added: Any,
        address: Any,
    ) -> Any:
        def generate(target: Any, builder: Any, sig: Any, args: Any) -> Any:
            enum, size = ir.IntType(32), ir.IntType(64)
            real = target.get_data_type(sig.args[0].dtype)
            to, x, y = (
                target.make_array(kind)(target, builder, value).data
                for kind, value in zip(sig.args[:3], args[:3], strict=True)
            )
            m, n, k, turn, keep, where = args[3:]
            order = [enum(ROW_MAJOR), enum(AS_IT_IS)]
            order.append(builder.select(turn, enum(TRANSPOSED), enum(AS_IT_IS)))
            beta = builder.select(keep, real(1.0), real(0.0))
            pitch = builder.select(turn, k, n)
            operands = [*order, m, n, k, real(1.0), x, k, y, pitch, beta, to, n]
            kinds = [enum] * 3 + [size] * 3 + [each.type for each in operands[6:]]
            function = ir.FunctionType(ir.VoidType(), kinds).as_pointer()
            builder.call(builder.inttoptr(where, function), operands)
            return target.get_dummy_value()

        sizes = (types.int64,) * 3
        flags = (types.boolean,) * 2
        return types.void(out, a, b, *sizes, *flags, types.int64), generate

    blas_gemm_call.__annotations__.clear()
    untyped: Any = extending
    return untyped.intrinsic(blas_gemm_call)


_GEMM = _Gemm("blas_gemm", _by_address, SIGNATURE, generated_by=(_by_address,))


# Rows of the right operand that stay in the cache during a pass over rows of the
# output: 64 rows of 256 int64 are 128 KiB.
DEPTH = 64
WIDTH = 256

# The dtypes that BLAS multiplies on one thread up to `SMALL`.
REAL = frozenset((DType.named("float32"), DType.named("float64")))

# The dtypes of the loop for integers without a view.
WHOLE = frozenset(
    DType.named(name) for name in ("uint8", "int8", "int16", "int32", "int64")
)

# In place of an absent bias.
_NONE = {dtype: np.empty(0, dtype.name) for dtype in REAL}

# output, left operand by rows, right operand by rows, inner size, columns
INTEGERS = "void(T[::1], T[::1], T[::1], int64, int64)"


def integer_rows(out: Any, a: Any, b: Any, depth: int, columns: int) -> None:
    """Compute rows of a product of integer matrices, modulo the type's range."""
    rows = len(out) // columns
    for i in range(len(out)):
        out[i] = 0
    for column in range(0, columns, WIDTH):
        width = min(WIDTH, columns - column)
        for first in range(0, depth, DEPTH):
            last = min(first + DEPTH, depth)
            for i in range(rows):
                to = out[i * columns + column : i * columns + column + width]
                row = a[i * depth : (i + 1) * depth]
                k = first
                while k + 4 <= last:
                    at = k * columns + column
                    p = b[at : at + width]
                    q = b[at + columns : at + columns + width]
                    r = b[at + 2 * columns : at + 2 * columns + width]
                    s = b[at + 3 * columns : at + 3 * columns + width]
                    f, g, h, m = row[k], row[k + 1], row[k + 2], row[k + 3]
                    for j in range(width):
                        to[j] += (f * p[j] + g * q[j]) + (h * r[j] + m * s[j])
                    k += 4
                while k < last:
                    factor = row[k]
                    right = b[k * columns + column : k * columns + column + width]
                    for j in range(width):
                        to[j] += factor * right[j]
                    k += 1


_INTEGERS = Family("integer_matmul", integer_rows, INTEGERS)


def add_rows(out: Any, row: Any) -> None:
    """Add one row to each."""
    width = len(row)
    if width:
        for i in range(len(out) // width):
            to = out[i * width : i * width + width]
            for j in range(width):
                to[j] += row[j]


_ROWS = Family("add_rows", add_rows, "void(T[::1], T[::1])")

# The least number of elements for a thread that adds a row: 10 us.
ADDED = 1 << 16


def _readable(a: Array) -> Array:
    """Return the matrices in a layout that BLAS accepts: a view if possible."""
    rows, columns = a.strides[-2:]
    size = a.itemsize
    height, width = a.shape[-2:]
    by_rows = columns == size and rows >= width * size
    by_columns = rows == size and columns >= height * size
    return a if by_rows or by_columns else np.ascontiguousarray(a)


def _product(out: Array, a: Array, b: Array) -> None:
    """Compute the product of two matrices, or of equally many pairs of them."""
    if out.dtype.kind in "fc":
        if out.size and a.shape[-1]:
            multiply(out, _readable(a), _readable(b))
        else:
            out.fill(0)
        return
    if not out.size:
        return
    if out.ndim == 3:
        for k in range(out.shape[0]):
            _product(out[k], a[k], b[k])
        return
    depth, columns = b.shape
    left = np.ascontiguousarray(a).reshape(-1)
    right = np.ascontiguousarray(b).reshape(-1)
    to = out.reshape(-1)
    if to.dtype == np.bool_:
        left, right, to = (x.view(np.uint8) for x in (left, right, to))
    loop = _INTEGERS[to.dtype.name]

    def run(lo: int, hi: int) -> None:
        part = to[lo * columns : hi * columns]
        loop(part, left[lo * depth : hi * depth], right, depth, columns)

    parallel_for(out.shape[0], grain_of(depth * columns), run)


def _small(out: Tensor, left: Tensor, right: Tensor) -> bool:
    """Return True if one thread computes the product, without copies."""
    if left._flat is None or right._flat is None or out._flat is None:
        return False
    rows, columns = out.shape
    return rows > 1 and columns > 1 and 0 < left.shape[1] * rows * columns <= SMALL


def mm(out: Tensor, a: Tensor, b: Tensor) -> None:
    """Compute the product of two matrices."""
    dtype = out.dtype
    if _small(out, a, b):
        to, x, y = out._flat, a._flat, b._flat
        rows, inner = a.shape
        columns = b.shape[1]
        if dtype in WHOLE:
            _INTEGERS[dtype.name](to, x, y, inner, columns)
            return
        compiled = entry(dtype.name) if dtype in REAL else None
        if compiled is not None:
            gemm, address = compiled
            gemm(to, x, y, _NONE[dtype], rows, columns, inner, False, address)
            return
    _product(array_of(out), array_of(a), array_of(b))


def _ready_mm(out: Geometry, a: Geometry, b: Geometry) -> Run:
    rows, inner = a.shape
    columns, dtype = b.shape[1], out.dtype
    if _is_small(out, a, b):
        if dtype in WHOLE:
            loop = _INTEGERS[dtype.name]
            return lambda x, y, to: loop(to, x, y, inner, columns)
        compiled = entry(dtype.name) if dtype in REAL else None
        if compiled is not None:
            gemm, address = compiled
            none = _NONE[dtype]
            return lambda x, y, to: gemm(
                to, x, y, none, rows, columns, inner, False, address
            )
    return _ready_product(out, a, b)


def _is_small(out: Geometry, *operands: Geometry) -> bool:
    """Return `_small` for geometries: row-major matrices."""
    rows, columns = out.shape
    work = operands[0].shape[1] * rows * columns
    in_order = all(each.strides is None for each in operands)
    return in_order and rows > 1 and columns > 1 and 0 < work <= SMALL


def _ready_product(out: Geometry, a: Geometry, b: Geometry) -> Run:
    shape, left, right = out.shape, viewer(a), viewer(b)
    return lambda x, y, to: _product(to.reshape(shape), left(x), right(y))


def bmm(out: Tensor, a: Tensor, b: Tensor) -> None:
    """Compute the products of equally many pairs of matrices."""
    _product(array_of(out), array_of(a), array_of(b))


def dot(out: Tensor, a: Tensor, b: Tensor) -> None:
    """Compute the sum of products of two vectors."""
    to = result(out)
    _product(to.reshape(1, 1), array_of(a)[None, :], array_of(b)[:, None])


def linear(out: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Compute rows of `x` by the transposed `weight`, plus `bias`."""
    dtype = out.dtype
    if dtype in REAL and _small(out, x, weight):
        compiled = entry(dtype.name)
        added = _NONE[dtype] if bias is None else flat_of(bias)
        if compiled is not None and added is not None:
            gemm, address = compiled
            to, left, right = out._flat, x._flat, weight._flat
            rows, inner = x.shape
            columns = weight.shape[0]
            gemm(to, left, right, added, rows, columns, inner, True, address)
            return
    table = array_of(out)
    _product(table, array_of(x), array_of(weight).T)
    if bias is not None:
        _add_rows(table, array_of(bias))


def _add_rows(table: Array, values: Array) -> None:
    """Add `values` to every row."""
    name = table.dtype.name
    if name in GEMM and table.size < 2 * ADDED and values.flags.c_contiguous:
        _ROWS[name](table.reshape(-1), values)
        return

    def run(lo: int, hi: int) -> None:
        with np.errstate(all="ignore"):
            np.add(table[lo:hi], values, table[lo:hi])

    parallel_for(len(table), max(1, ADDED // max(1, table.shape[1])), run)


def _ready_linear(
    out: Geometry, x: Geometry, weight: Geometry, bias: Geometry | None
) -> Run:
    (rows, inner), columns = x.shape, weight.shape[0]
    compiled = entry(out.dtype.name) if out.dtype in REAL else None
    if compiled and _is_small(out, x, weight) and not (bias and bias.strides):
        gemm, address = compiled
        none = _NONE[out.dtype]
        if bias is None:
            return lambda a, w, to: gemm(
                to, a, w, none, rows, columns, inner, True, address
            )
        return lambda a, w, b, to: gemm(
            to, a, w, b, rows, columns, inner, True, address
        )
    left, right = viewer(x), viewer(weight)
    if bias is None:
        return lambda a, w, to: _product(to.reshape(rows, columns), left(a), right(w).T)
    added = viewer(bias)

    def run(a: Array, w: Array, b: Array, to: Array) -> None:
        table = to.reshape(rows, columns)
        _product(table, left(a), right(w).T)
        _add_rows(table, added(b))

    return run


KERNELS: dict[str, Callable[..., Any]] = {
    "mm": mm,
    "bmm": bmm,
    "dot": dot,
    "linear": linear,
}
READY: dict[str, Callable[..., Any]] = {
    "mm": _ready_mm,
    "bmm": _ready_product,
    "linear": _ready_linear,
}
