"""Compilation for the CPU: a family of kernels from one body.

A body is an ordinary Python function over one-dimensional arrays in C order and
numbers; it calls plain functions, which are compiled with it.  `family["float32"]` is
the compiled entry point for that element type, compiled at its first use, or loaded
from disk if it is stored there.

Rules:
- one function object, one signature and one option set for each compiled kernel, under
  a name that contains the digest of its content: Numba's registry and the cache
  (`runtime.kernels.compile.cache`) cannot confuse two of them;
- the entry is the bare entry point: it does not check the types of its arguments, so
  exactly the declared types must be passed (a mask is an array of `np.bool_`);
- kernels release the interpreter lock, and division by zero has NumPy's result;
- bodies slice first and index from zero: `for i in range(lo, hi)` with `a[i]` must
  handle negative indices and is not vectorised;
- under `NUMBA_DISABLE_JIT=1` the entry is the body itself, with NumPy's warnings off;
- a kernel is called from Python only, so it has no wrapper for C, which would take a
  tenth of the time of compiling.

`lowered` maps every plain function that a body names to its counterpart: an LLVM
intrinsic for a primitive, an overload for a choice by width (see
`runtime.kernels.math.primitive`), otherwise the function compiled and inlined.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any
from weakref import WeakValueDictionary

from everyorder.runtime.base.locks import waited_for
from everyorder.runtime.kernels.compile.cache import KernelFile, folder
from everyorder.runtime.kernels.compile.notice import NOTICE
from everyorder.runtime.kernels.math.primitive import CHOICES, PRIMITIVES

Entry = Callable[..., Any]

# The flags that reassociation of sums needs, and no others: infinities and NaN keep
# their meaning.
REASSOCIATE = frozenset(("reassoc", "contract", "nsz"))

# Options of a function that bodies call; without the wrappers for Python it compiles
# faster.
INLINED: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    # Explicit; otherwise the function has the flags of the body that was compiled with
    # it first.
    "fastmath": False,
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}

# dtype name -> Numba's name, if they differ.
NUMBA_NAMES = {"bool": "boolean"}

# The families that exist, by name; the last one of a name.
FAMILIES: "WeakValueDictionary[str, Family]" = WeakValueDictionary()

_LOCK = waited_for()
_LOWERED: dict[Any, Any] = {}


class Family(dict[Any, Entry]):
    """Kernels of one body, by dtype name (or by a pair of them), compiled on demand.

    `signature` is Numba's text with `T` (and `U`) for the dtypes, such as
    `"void(T[::1], T[::1], int64)"`.  `fastmath` permits reassociation of sums; set it
    only for blocks whose error is bounded otherwise.  `generated_by` are functions that
    generate code which the body calls; they count as its content.
    """

    __slots__ = (
        "__weakref__",
        *("body", "fastmath", "generated_by", "name", "signature"),
    )

    def __init__(
        self,
        name: str,
        body: Entry,
        signature: str,
        *,
        fastmath: bool = False,
        generated_by: tuple[Entry, ...] = (),
    ) -> None:
        super().__init__()
        self.name = name
        self.body = body
        self.signature = signature
        self.fastmath = fastmath
        self.generated_by = generated_by
        FAMILIES[name] = self

    def __missing__(self, key: str | tuple[str, str]) -> Entry:
        with _LOCK:
            if key not in self:
                self[key] = self._make((key,) if isinstance(key, str) else key)
            return self[key]

    def __repr__(self) -> str:
        return f"Family({self.name!r}, {self.signature!r})"

    def _make(self, dtypes: tuple[str, ...]) -> Entry:
        import numba

        settings: Any = numba.config
        if settings.DISABLE_JIT:
            return _quiet(self.body)
        named = dict(zip("TU", (NUMBA_NAMES.get(d, d) for d in dtypes), strict=False))
        signature = re.sub(r"\b[TU]\b", lambda m: named[m[0]], self.signature)
        options: dict[str, Any] = {
            "nogil": True,
            "error_model": "numpy",
            "no_cfunc_wrapper": True,
        }
        if self.fastmath:
            options["fastmath"] = set(REASSOCIATE)
        content = digest((self.body, signature, self.fastmath, *self.generated_by))
        name = "_".join((re.sub(r"\W", "_", self.name), *dtypes, content))
        compiled: Any = numba.njit(**options)(_rebuilt(self.body, name))
        title = f"{self.name} of {', '.join(dtypes)}"
        compiled._cache = KernelFile(folder(), name, partial(NOTICE.begin, title))
        try:
            entry: Entry = compiled.compile(signature)
        finally:
            NOTICE.end()
        return entry


def _quiet(body: Entry) -> Entry:
    import numpy as np

    def uncompiled(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return body(*arguments)

    return uncompiled


def digest(content: Any) -> str:
    """Return 80 bits of the SHA-256 of code, its references, and constants."""
    total = hashlib.sha256()
    for part in _parts(content, set()):
        total.update(part.encode() + b"\0")
    return total.hexdigest()[:20]


def _parts(value: Any, visited: set[int]) -> Iterator[str]:
    """Yield the content of a value as texts; each function once."""
    if isinstance(value, FunctionType):
        if id(value) not in visited:
            visited.add(id(value))
            yield from _parts(value.__code__, visited)
            yield from _parts((value.__defaults__, *_named(value).values()), visited)
            yield from _parts(CHOICES.get(value), visited)
    elif isinstance(value, CodeType):
        yield f"{value.co_code!r} {value.co_names} {value.co_varnames}"
        yield from _parts(value.co_consts, visited)
    elif isinstance(value, tuple):
        yield f"({len(value)}"
        for item in value:
            yield from _parts(item, visited)
    elif hasattr(value, "py_func"):
        # A function that Numba compiled by itself.
        yield from _parts(value.py_func, visited)
    else:
        # `repr` abbreviates a long array.
        is_array = hasattr(value, "tobytes") and not isinstance(value, type)
        raw = value.tobytes() if is_array else None
        named = getattr(value, "__name__", None)
        yield f"{type(value).__name__} {named or repr(value)} {raw!r}"


def _names_in(code: CodeType) -> Iterator[str]:
    """Yield the module-level names that code uses, without attributes."""
    from dis import get_instructions

    for step in get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield step.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _named(function: FunctionType) -> dict[str, Any]:
    """Return the values of the globals and outer variables that a function names."""
    scope = function.__globals__
    names = sorted(set(_names_in(function.__code__)))
    values = {name: scope[name] for name in names if name in scope}
    cells: Iterable[CellType] = function.__closure__ or ()
    outer = zip(function.__code__.co_freevars, cells, strict=True)
    return values | {name: cell.cell_contents for name, cell in outer}


def _rebuilt(function: Any, name: str) -> FunctionType:
    """Return the function under another name, over the lowered values of its names."""
    scope = dict(function.__globals__)
    for referenced, value in _named(function).items():
        if referenced not in function.__code__.co_freevars:
            scope[referenced] = lowered(value)
    cells = tuple(
        CellType(lowered(cell.cell_contents)) for cell in function.__closure__ or ()
    )
    rebuilt = FunctionType(function.__code__, scope, name, function.__defaults__, cells)
    rebuilt.__qualname__ = name
    rebuilt.__module__ = __name__  # loading from disk imports it
    return rebuilt


def lowered(value: Any) -> Any:
    """Return the compiler's counterpart of a value that a body names."""
    if isinstance(value, ModuleType) or not isinstance(value, FunctionType):
        return value
    if value not in _LOWERED:
        if value in PRIMITIVES:
            counterpart = _instruction(value.__name__, PRIMITIVES[value])
        elif value in CHOICES:
            counterpart = _overloaded(value.__name__, *CHOICES[value])
        else:
            counterpart = _inlined(value)
        _LOWERED[value] = counterpart
    return _LOWERED[value]


def _inlined(function: FunctionType) -> Any:
    import numba

    name = f"{function.__name__}_{digest(function)}"
    return numba.njit(**INLINED)(_rebuilt(function, name))


def _overloaded(name: str, narrow: Any, wide: Any) -> Any:
    """Return a name that Numba resolves by the type of its one argument."""
    from numba import extending, types

    def stub(x: Any) -> Any:
        raise AssertionError("resolved by the compiler, never called")

    def choose(x: Any) -> Any:
        chosen = narrow if x == types.float32 else wide
        return _rebuilt(chosen, f"{name}_{digest(chosen)}")

    # Numba compares annotations, and a rebuilt function lacks them.
    choose.__annotations__.clear()
    untyped: Any = extending
    untyped.overload(stub, jit_options=INLINED)(choose)
    return stub


def _instruction(name: str, intrinsic: str | None) -> Any:
    """Return a primitive as Numba's intrinsic: one LLVM instruction."""
    from llvmlite import ir  # type: ignore[import-untyped]  # ships no types
    from numba import extending, types

    other: dict[Any, Any] = {
        types.float32: types.int32,
        types.float64: types.int64,
        types.int32: types.float32,
        types.int64: types.float64,
    }

    def typed(kinds: tuple[Any, ...]) -> Any:
        def call(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            kind = args[0].type
            called = ir.FunctionType(kind, [kind] * len(args))
            declared = builder.module.declare_intrinsic(intrinsic, [kind], called)
            return builder.call(declared, args)

        def bits(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return builder.bitcast(args[0], context.get_value_type(sig.return_type))

        def constant(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return context.cast(builder, args[1], sig.args[1], sig.return_type)

        if name == "like":
            return kinds[0](*kinds), constant
        if intrinsic is None:
            return other[kinds[0]](kinds[0]), bits
        return kinds[0](*(kinds[0] for _ in kinds)), call

    def one(typing_context: Any, x: Any) -> Any:
        return typed((x,))

    def two(typing_context: Any, x: Any, y: Any) -> Any:
        return typed((x, y))

    def three(typing_context: Any, x: Any, y: Any, z: Any) -> Any:
        return typed((x, y, z))

    arity: Any = {"fma": three, "copysign": two, "like": two}.get(name, one)
    arity.__name__ = arity.__qualname__ = f"{name}_instruction"
    untyped: Any = extending
    return untyped.intrinsic(arity)
