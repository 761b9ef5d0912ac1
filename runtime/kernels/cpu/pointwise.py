"""Kernels of one, two and three operands: the table of functions in loops of the CPU.

`runtime.kernels.math.scalars` maps a name and the kind of its dtype to a function.
This module has the CPU's functions (polynomials of `runtime.kernels.math.elementary`,
or NumPy's, which Numba compiles, for the parts of complex numbers and others), and
factors, powers, and operations that integers refuse before anything is written.

`where` moves elements and never reads their values, so one loop for each item size
serves every dtype; `clamp` with numbers is one loop, with tensors two passes; bounds
outside of an integer dtype become its limits; NaN in elements or bounds propagates.

NumPy computes `pow` of inexact numbers and `atan2`, where it is vectorised (an element
of float32 in 0.4 and 1.4 ns; `e^(y log x)` in double precision took 2.2).
"""

import math as libm
import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np

from everyorder.runtime.errors.tensor import ArithmeticRefused, WrongOption
from everyorder.runtime.kernels import math
from everyorder.runtime.kernels.compile.jit import Entry
from everyorder.runtime.kernels.cpu.copy import contiguous, copy, fill
from everyorder.runtime.kernels.cpu.elementwise import (
    SPECIALISED,
    Binary,
    Circular,
    Unary,
    family,
    run,
)
from everyorder.runtime.kernels.math.complex import (
    Reals,
    Scalar,
    bound,
    complexes,
    itself,
)
from everyorder.runtime.kernels.math.scalars import (
    BINARY,
    CERTAIN,
    DIVIDING,
    GELU,
    HEAVY,
    LIGHT,
    ROUNDED,
    SLOW,
    UNARY,
    ScalarFunction,
    bounded,
    scaled,
    select,
)
from everyorder.runtime.kernels.shared.operands import BY_SIZE, Geometry, Run, element
from everyorder.runtime.kernels.shared.thread_pool import parallel_for
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.construction import empty_tensor, view_of
from everyorder.runtime.tensors.dtype_info import (
    SUPPORTED,
    compute_dtype,
    info,
    itemsize,
    numpy_dtype,
)
from everyorder.runtime.tensors.shape import broadcast_strides
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import array_of, flat_of

Kernel = Callable[..., None]


def _compiled(function: Scalar) -> Scalar:
    # `runtime.kernels.compile.jit` compiles every function that a body calls.
    return function


ON = Reals(
    compiled=_compiled,
    like=math.like,
    divide=operator.truediv,
    power=np.power,
    conj=itself,
    absolute=abs,
    fmod=np.fmod,
    hypot=np.hypot,
    atan2=np.arctan2,
    copysign=math.copysign,
    floor=math.floor,
    ceil=math.ceil,
    rint=math.rint,
    trunc=math.trunc,
    sqrt=math.sqrt,
    exp=math.exp,
    expm1=math.expm1,
    log=math.log,
    log1p=math.log1p,
    log2=math.log2,
    log10=math.log10,
    sin=math.sin,
    cos=math.cos,
    tan=math.tan,
    sinh=np.sinh,
    cosh=np.cosh,
    tanh=math.tanh,
    asin=np.arcsin,
    acos=np.arccos,
    atan=np.arctan,
    asinh=np.arcsinh,
    acosh=np.arccosh,
    atanh=np.arctanh,
    erf=math.erf,
    erfc=libm.erfc,
    weight=math.weight,
)

ON_COMPLEX = complexes(
    replace(
        ON,
        exp=np.exp,
        expm1=np.expm1,
        log=np.log,
        log1p=np.log1p,
        sin=np.sin,
        cos=np.cos,
        tanh=np.tanh,
    ),
    math.like,
    power=np.power,
    absolute=abs,
    sqrt=np.sqrt,
    log=np.log,
    log1p=np.log1p,
    log10=np.log10,
)

# Functions that are vectorised if a whole block of numbers is near zero.
_NEAR = {"sin": math.sin_near, "cos": math.cos_near, "tan": math.tan_near}

# Functions that are vectorised in NumPy.
_DELEGATED = ("pow", "atan2")


def _unary(name: str, function: ScalarFunction) -> Unary:
    scalar = bound(function.real, ON)
    if name in _NEAR:
        return Circular(name, scalar, _NEAR[name])
    result = "boolean" if function.result == "bool" else "T"
    return Unary(name, scalar, grain=function.grain, result=result)


def _unary_complex(name: str, function: ScalarFunction) -> Unary:
    """Return the kernel for complex numbers, whose functions are slow."""
    truth = function.result == "bool"
    return Unary(
        f"{name}_complex",
        bound(function.complex or function.real, ON_COMPLEX),
        grain=LIGHT if truth else SLOW,
        result="boolean" if truth else "T",
    )


def _binary(name: str, function: ScalarFunction) -> Binary:
    whole, of_complex = function.whole, function.complex
    return Binary(
        name,
        bound(function.real, ON),
        grain=function.grain,
        result="boolean" if function.result == "bool" else "T",
        whole=None if whole is None else bound(whole, ON),
        complex_=None if of_complex is None else bound(of_complex, ON_COMPLEX),
    )


REAL = {name: _unary(name, each) for name, each in UNARY.items() if name != "conj"}
COMPLEX = {
    name: _unary_complex(name, each)
    for name, each in UNARY.items()
    if each.complex is not None or each.result == "bool"
    if each.result != "R"
}
PLAIN = {
    name: _binary(name, each) for name, each in BINARY.items() if name not in _DELEGATED
}
assert BINARY["pow"].whole is not None, "integers have a separate power"
WHOLE_POWER = Binary(
    "pow_whole", bound(BINARY["pow"].whole, ON), grain=BINARY["pow"].grain
)


# Kernels of one operand.


COMPLEX_ABS = family("abs_complex", abs, "a", result="U")


def complex_abs(out: Tensor, x: Tensor) -> None:
    """Write the magnitudes of complex numbers, which are real."""
    COMPLEX_ABS[x.dtype.name, out.dtype.name](flat_of(contiguous(x)), flat_of(out))


def _kernel(name: str) -> Callable[[Tensor, Tensor], None]:
    """Return the kernel that selects by dtype first."""
    by_dtype: dict[str, Callable[[Tensor, Tensor], None]] = {}
    for dtype in SUPPORTED:
        kind = info(DType.named(dtype)).kind
        if kind == "c":
            by_dtype[dtype] = COMPLEX.get(name, complex_abs)
        elif kind != "f" and name in CERTAIN:
            by_dtype[dtype] = _certain(CERTAIN[name])
        elif name == "conj" or (kind != "f" and name in ROUNDED):
            by_dtype[dtype] = copy
        else:
            by_dtype[dtype] = REAL[_named(name, dtype)]

    def kernel(out: Tensor, x: Tensor) -> None:
        by_dtype[x.dtype.name](out, x)

    kernel.__name__ = kernel.__qualname__ = name
    return kernel


def _certain(answer: bool) -> Callable[[Tensor, Tensor], None]:
    return lambda out, x: fill(out, answer)


def _named(name: str, dtype: str) -> str:
    """Return the function's name for a dtype; inverting a bool is logical."""
    is_opposite = name == "bitwise_not" and dtype == "bool"
    return "logical_not" if is_opposite else name


# Kernels of two operands.


SCALED = family("add_scaled", scaled, "aan")
SCALED_ONTO = family("add_scaled_onto", scaled, "oan")


def _add_scaled(out: Tensor, a: Any, b: Any, alpha: Any) -> None:
    """Compute `a + alpha b` in one pass if both are flat, else in two."""
    name, target = out.dtype.name, flat_of(out)
    assert target is not None, "outputs are contiguous"
    if not isinstance(b, Tensor):
        PLAIN["add"](out, a, b * alpha)
        return
    x = flat_of(a) if isinstance(a, Tensor) and a.shape == out.shape else None
    y = flat_of(b) if b.shape == out.shape else None
    if x is None or y is None:
        product = empty_tensor(b.shape, b.dtype, b.device)
        PLAIN["mul"](product, b, alpha)
        PLAIN["add"](out, a, product)
        return
    factor = element(name, alpha)
    if x is target:
        run(SCALED_ONTO[name], LIGHT, target, y, factor)
    else:
        run(SCALED[name], LIGHT, target, x, y, factor)


def _is_whole(tensor: Tensor) -> bool:
    return not (tensor.dtype.is_floating or tensor.dtype.is_complex)


def _has_zero(operand: Any, name: str) -> bool:
    if isinstance(operand, Tensor):
        elements = array_of(operand)
        return bool(np.count_nonzero(elements) != elements.size)
    return bool(element(name, operand) == 0)


def _delegate(function: Any, out: Tensor, *operands: Any) -> None:
    """Run NumPy's function, in parallel if the operands are flat."""
    name, target = out.dtype.name, array_of(out)
    arrays = [
        array_of(operand) if isinstance(operand, Tensor) else element(name, operand)
        for operand in operands
    ]
    even = all(a.shape == out.shape and a.flags.c_contiguous for a in arrays if a.ndim)
    if not even or target.size < 2 * HEAVY:
        with np.errstate(all="ignore"):
            function(*arrays, out=target)
        return
    flat = target.reshape(-1)
    flats = [array.reshape(-1) if array.ndim else array for array in arrays]

    def part(lo: int, hi: int) -> None:
        parts = (array[lo:hi] if array.ndim else array for array in flats)
        with np.errstate(all="ignore"):
            function(*parts, out=flat[lo:hi])

    parallel_for(flat.size, HEAVY, part)


# Exponents with another kernel.
_SPECIAL = {2: "square", 0.5: "sqrt", -1: "reciprocal", -0.5: "rsqrt"}


def _power(out: Tensor, a: Any, b: Any) -> None:
    if _is_whole(out):
        WHOLE_POWER(out, a, b)
        return
    if isinstance(a, Tensor) and not isinstance(b, Tensor) and a.shape == out.shape:
        special = "copy" if b == 1 else _SPECIAL.get(b)
        if special is not None:
            (copy if special == "copy" else KERNELS[special])(out, a)
            return
    _delegate(np.power, out, a, b)


def atan2(out: Tensor, a: Any, b: Any) -> None:
    """Write the angle of the point (b, a)."""
    _delegate(np.arctan2, out, a, b)


# Kernels of three operands.

# Selection moves elements as words.  Both values are read before one is chosen: a read
# that depends on the mask would prevent the vectorisation of the loop.
_WHERE = {
    operands: family(f"where_{operands}", select, f"a{operands}", first="boolean")
    for operands in ("aa", "an", "na", "nn", "no")
}


def where(out: Tensor, cond: Tensor, a: Any, b: Any) -> None:
    """Write elements of `a` where `cond` is true, of `b` elsewhere."""
    target = flat_of(out)
    assert target is not None, "outputs are contiguous"
    name, words = out.dtype.name, _words(out.dtype)
    if type(a) is Tensor and type(b) is Tensor and name == words:
        x, y, mask = a._flat, b._flat, cond._flat
        flat = x is not None and y is not None and mask is not None
        alike = out.shape == a.shape == b.shape == cond.shape
        if flat and alike and target.size < 2 * LIGHT:
            _WHERE["aa"][name](mask, x, y, target)
            return
    target = target.view(words)
    mask = _elements(cond, out.shape)
    x, y = (_moved(operand, out, words) for operand in (a, b))
    form = "".join(["a" if isinstance(each, np.ndarray) else "n" for each in (x, y)])
    if form == "na" and b is out:
        run(_WHERE["no"][words], LIGHT, target, mask, x)
    else:
        run(_WHERE[form][words], LIGHT, target, mask, x, y)


def _ready_where(out: Geometry, cond: Geometry, a: Any, b: Any) -> Run | None:
    """Prepare `where` for small rows of one shape, and numbers."""
    tensors = [each for each in (cond, a, b) if isinstance(each, Geometry)]
    alike = all(each.shape == out.shape and each.strides is None for each in tensors)
    if not alike or prod(out.shape) >= 2 * LIGHT:
        return None
    words = _words(out.dtype)
    if isinstance(a, Geometry) and isinstance(b, Geometry):
        entry = _WHERE["aa"][words]
        if words == out.dtype.name:
            return entry
        return lambda mask, x, y, to: entry(
            mask, x.view(words), y.view(words), to.view(words)
        )
    if isinstance(b, Geometry):
        word, entry = _word(a, out.dtype), _WHERE["na"][words]
        return lambda mask, y, to: entry(mask, word, y.view(words), to.view(words))
    return None


def _words(dtype: DType) -> str:
    """Return the dtype that elements are moved as."""
    return dtype.name if dtype.name in SPECIALISED else BY_SIZE[itemsize(dtype)]


def _word(number: Any, dtype: DType) -> Any:
    """Return a number as a word."""
    one = np.empty(1, numpy_dtype(dtype))
    name = dtype.name
    one[0] = element("float32" if name in ("float16", "bfloat16") else name, number)
    return one.view(_words(dtype))[0]


def _moved(operand: Any, out: Tensor, words: str) -> Any:
    """Return a flat array of words, or one word for all."""
    if not isinstance(operand, Tensor):
        return _word(operand, out.dtype)
    if operand.shape != out.shape and all(size == 1 for size in operand.shape):
        return _elements(operand, operand.shape).view(words)[0]
    return _elements(operand, out.shape).view(words)


def _elements(operand: Tensor, shape: tuple[int, ...]) -> Any:
    """Return the elements, broadcast to the shape, contiguous; copied if needed."""
    if operand.shape == shape:
        flat = flat_of(operand)
        if flat is not None:
            return flat
    else:
        strides = broadcast_strides(operand.shape, operand.strides, shape)
        operand = view_of(operand, shape, strides, operand.offset)
    return flat_of(contiguous(operand))


_CLAMP = family("clamp", bounded, "ann")
_CLAMP_ONTO = family("clamp_onto", bounded, "onn")


def clamp(out: Tensor, x: Tensor, lo: Any, hi: Any) -> None:
    """Limit elements of `x` to at least `lo`, then at most `hi`; None: no limit."""
    if isinstance(lo, Tensor) or isinstance(hi, Tensor):
        source: Any = x
        for name, bound in (("maximum", lo), ("minimum", hi)):
            if bound is not None:
                PLAIN[name](out, source, _bound(bound, out))
                source = out
        return
    if lo != lo or hi != hi:
        fill(out, float("nan"))
        return
    name, target = out.dtype.name, flat_of(out)
    assert target is not None, "outputs are contiguous"
    ends = limit(name, lo, -1), limit(name, hi, 1)
    source = flat_of(x) if x.shape == out.shape else None
    if source is None:
        copy(out, x)
        source = target
    if source is target:
        run(_CLAMP_ONTO[name], LIGHT, target, *ends)
    else:
        run(_CLAMP[name], LIGHT, target, source, *ends)


def _ready_clamp(out: Geometry, x: Geometry, lo: Any, hi: Any) -> Run | None:
    """Prepare `clamp` for small rows, between numbers."""
    if x != out or prod(out.shape) >= 2 * LIGHT or lo != lo or hi != hi:
        return None
    if isinstance(lo, Geometry) or isinstance(hi, Geometry):
        return None
    name = out.dtype.name
    low, high, entry = limit(name, lo, -1), limit(name, hi, 1), _CLAMP[name]
    return lambda a, to: entry(a, low, high, to)


def _bound(bound: Any, out: Tensor) -> Any:
    """Return a bound as an operand, copied if it may share the output's memory."""
    if isinstance(bound, Tensor) and bound is out:
        copied = empty_tensor(out.shape, out.dtype, out.device)
        copy(copied, bound)
        return copied
    return bound


def limit(name: str, bound: Any, side: int) -> Any:
    """Return the bound in that dtype, or the nearest value; the dtype's limit for None.

    Not cached by its value: -0.0 equals 0.0.
    """
    facts = info(DType.named(name))
    if facts.kind == "f":
        return element(name, side * float("inf") if bound is None else bound)
    end = facts.largest if side > 0 else facts.smallest
    target = end if bound is None else bound
    return element(name, min(max(target, facts.smallest), facts.largest))


# One kernel for both forms.
_FORMS = {f"{each}{of}" for each in GELU.values() for of in ("", "_backward")}


def kernels(
    loops: Mapping[str, Kernel],
    scaled: Kernel,
    has_zero: Callable[[Any, str], bool],
) -> dict[str, Kernel]:
    """Return the kernels of one and two operands of a device.

    `loops` are those of its rows, `scaled` is `add` with a factor, `has_zero(b, dtype)`
    is True if a divisor has a 0.
    """
    plus, minus, power = loops["add"], loops["sub"], loops["pow"]
    forward = {form: loops[name] for form, name in GELU.items()}
    backward = {form: loops[f"{name}_backward"] for form, name in GELU.items()}

    def add(out: Tensor, a: Any, b: Any, alpha: Any = 1) -> None:
        """Compute `a + alpha b`."""
        if alpha == 1:
            plus(out, a, b)
        else:
            scaled(out, a, b, alpha)

    def sub(out: Tensor, a: Any, b: Any, alpha: Any = 1) -> None:
        """Compute `a - alpha b`."""
        if alpha == 1:
            minus(out, a, b)
        else:
            scaled(out, a, b, -alpha)

    def gelu(out: Tensor, x: Tensor, approximate: str) -> None:
        """Compute x weighted by the normal distribution, or approximate it by tanh."""
        forward[approximate](out, x)

    def gelu_backward(out: Tensor, grad: Tensor, x: Tensor, approximate: str) -> None:
        """Compute the gradient of the input of `gelu`."""
        backward[approximate](out, grad, x)

    def pow(out: Tensor, a: Any, b: Any) -> None:  # noqa: A001  # the operator's name
        """Compute `a` to the power `b`.  Raises `WrongOption` for integers to b < 0."""
        if _is_whole(out) and not isinstance(b, Tensor) and b < 0:
            raise WrongOption(
                code="NegativeExponent", operator="core::pow", dtype=out.dtype.name
            )
        power(out, a, b)

    def dividing(name: str) -> Kernel:
        plain = loops[name]

        def kernel(out: Tensor, a: Any, b: Any) -> None:
            if _is_whole(out) and out.numel() and has_zero(b, out.dtype.name):
                raise ArithmeticRefused(
                    code="DivisionByZero",
                    operator=f"core::{name}",
                    dtype=out.dtype.name,
                )
            plain(out, a, b)

        kernel.__name__ = kernel.__qualname__ = name
        return kernel

    return {
        **{name: each for name, each in loops.items() if name not in _FORMS},
        **{name: dividing(name) for name in DIVIDING},
        **{each.__name__: each for each in (add, sub, gelu, gelu_backward, pow)},
    }


_LOOPS: dict[str, Kernel] = {
    **{name: _kernel(name) for name in UNARY},
    **PLAIN,
    **{name: REAL[name] for name in GELU.values()},
    "pow": _power,
    "atan2": atan2,
}
KERNELS: dict[str, Kernel] = {
    **kernels(_LOOPS, _add_scaled, _has_zero),
    "where": where,
    "clamp": clamp,
}
READY = {"where": _ready_where, "clamp": _ready_clamp}


# For loops of other modules.


def direct_unary(name: str, dtype_name: str) -> Entry:
    """Return the compiled loop `entry(x, out)` over flat arrays of that dtype.

    It checks nothing.  For dtypes of computation; `gelu` is the exact one.  Raises
    KeyError for a name without such a loop.
    """
    kind = info(DType.named(dtype_name)).kind
    return (COMPLEX if kind == "c" else REAL)[name].flat[dtype_name]


def direct_binary(name: str, dtype_name: str) -> Entry:
    """Return the compiled loop `entry(a, b, out)` over flat arrays of that dtype.

    For dtypes of computation.  It checks nothing; raises KeyError as `direct_unary`.
    """
    return PLAIN[name].flat[dtype_name]


class Applied(NamedTuple):
    """A function of elements, the dtype of its result, and the grain of its loops.

    The function None returns the elements themselves.
    """

    function: Scalar | None
    result: str
    grain: int


def applied(name: str, dtype: str) -> Applied | None:
    """Return the function that a kernel applies to each element, or pair, of a dtype.

    None if the kernel does more (integer divisions check for 0 first), if NumPy
    computes it, and for complex numbers and dtypes that are not computed in.
    """
    of = DType.named(dtype)
    kind = info(of).kind
    if kind == "c" or compute_dtype(of) is not of:
        return None
    if name in ("copy", "conj") or (kind != "f" and name in ROUNDED):
        return Applied(None, dtype, LIGHT)
    loops = REAL.get(_named(name, dtype)) or PLAIN.get(name)
    if loops is None or (kind != "f" and name in DIVIDING):
        return None
    return Applied(loops.scalar(kind), dtype if loops.same else "bool", loops.grain)
