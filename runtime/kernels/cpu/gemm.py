"""Small products: BLAS called from compiled code.

True only here: the call by address.  For 32 by 32 float32, of the 1.5 us that
`np.matmul` takes 0.6 us are NumPy's own; a compiled entry hands the flat arrays over in
0.3 us, adds the bias on the way, and NaN and infinities raise no warning.

How it works: `runtime.kernels.cpu.blas` knows the address of the library's gemm; the
compiled entry is given it with each call, so that the machine code on disk holds none.

Rules: row-major matrices of float32 and float64 without gaps; where there is no such
library, or nothing is compiled, `entry` is None and NumPy multiplies.
"""

from functools import cache
from typing import Any

from runtime.kernels.cpu.blas import gemm_address
from runtime.kernels.jit import Entry, Family, digest

# output, matrices, bias or nothing, rows, columns, inner size, whether the second
# matrix is to be transposed, address
SIGNATURE = "void(T[::1], T[::1], T[::1], T[::1], int64, int64, int64, boolean, int64)"

# Values of the C interface (cblas.h): row-major order, and what is done to a matrix.
ROW_MAJOR, AS_IT_IS, TRANSPOSED = 101, 111, 112


@cache
def entry(name: str) -> tuple[Entry, int] | None:
    """The compiled call for a dtype, and the address it takes last."""
    import numba

    address = gemm_address(name)
    settings: Any = numba.config
    if address is None or settings.DISABLE_JIT:
        return None
    return _family()[name], address


@cache
def _family() -> Family:
    call = _by_address()

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

    # What the compiler is told belongs to what names the code on disk.
    return Family(f"blas_gemm_{digest(_by_address)}", product, SIGNATURE)


def _by_address() -> Any:
    """What calls gemm: `out`, or the rows already in it, plus `a` by `b`."""
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
            given = [*order, m, n, k, real(1.0), x, k, y, pitch, beta, to, n]
            kinds = [enum] * 3 + [size] * 3 + [each.type for each in given[6:]]
            function = ir.FunctionType(ir.VoidType(), kinds).as_pointer()
            builder.call(builder.inttoptr(where, function), given)
            return target.get_dummy_value()

        sizes = (types.int64,) * 3
        flags = (types.boolean,) * 2
        return types.void(out, a, b, *sizes, *flags, types.int64), generate

    blas_gemm_call.__annotations__.clear()
    untyped: Any = extending
    return untyped.intrinsic(blas_gemm_call)
