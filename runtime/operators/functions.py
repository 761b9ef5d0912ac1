"""Functions: what `runtime` offers to make tensors and to compute with them.

True only here: the names, and how sizes, dtypes and devices may be written.  Every
function ends in the call of an operator of namespace `core`, but for `is_tensor`.

Rules: `zeros(2, 3)` and `zeros((2, 3))` are the same; a dtype may be given by name;
`requires_grad=True` makes a leaf that gradients are collected in; `FUNCTIONS` lists all
names, for whoever offers them elsewhere.
"""

from functools import cache
from typing import Any

from runtime.errors.operands import DTypeRefused, WrongOption
from runtime.operators import calling, written
from runtime.operators import methods as _methods  # noqa: F401  # installs itself
from runtime.operators.call import core
from runtime.operators.calling import function, public
from runtime.operators.written import (
    chunk,
    clamp,
    narrow,
    scatter,
    sort,
    split,
    topk,
    unbind,
    where,
)
from runtime.schema.binding import Binder, binder, converters_of
from runtime.schema.checked import checked
from runtime.schema.parser import parse_schema
from runtime.tensors.tensor import Tensor

# The functions that are an operator, with `out=` where it has that form.
OPERATORS = tuple(
    name
    for name, each in public().items()
    if each.function and name not in written.WRITTEN
)
_WRITTEN = (
    *("zeros", "ones", "full", "empty", "arange", "rand", "randn", "randint"),
    *("randperm", "eye", "linspace", "zeros_like", "ones_like", "empty_like"),
    *("full_like", "rand_like", "randn_like"),
)
_TESTS = ("allclose", "is_tensor")
FUNCTIONS = (*OPERATORS, *_WRITTEN, *_TESTS, *written.WRITTEN)

__all__ = [
    "FUNCTIONS",
    "allclose",
    "arange",
    "chunk",
    "clamp",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "is_tensor",
    "linspace",
    "narrow",
    "ones",
    "ones_like",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "randperm",
    "scatter",
    "sort",
    "split",
    "topk",
    "unbind",
    "where",
    "zeros",
    "zeros_like",
]

globals().update({**written.WRITTEN, **{name: function(name) for name in OPERATORS}})


def __getattr__(name: str) -> Any:
    """No name is made up; for type checkers, which do not see the table above."""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def _made(run: Any, *args: Any, requires_grad: bool = False, **options: Any) -> Tensor:
    """A new tensor by an operator, a leaf with gradient if that is wanted.

    Options that are None are left to the operator.
    """
    given = {
        name: value
        for name, value in options.items()
        if value is not None or not _has(run, name)
    }
    tensor: Tensor = run(*args, **calling.spelled(given))
    return tensor.requires_grad_() if requires_grad else tensor


def _has(run: Any, name: str) -> bool:
    """Whether the operator has an argument of that name."""
    return name in [argument.name for argument in run.schema.arguments]


def zeros(*size: Any, **options: Any) -> Tensor:
    """Zeros; options: dtype, device, pin_memory, requires_grad."""
    return _made(core.zeros, calling.sizes(size), **options)


def ones(*size: Any, **options: Any) -> Tensor:
    """Ones; options as for `zeros`."""
    return _made(core.ones, calling.sizes(size), **options)


def empty(*size: Any, **options: Any) -> Tensor:
    """Elements of any value; options as for `zeros`."""
    return _made(core.empty, calling.sizes(size), **options)


@checked
def full(size: Any, fill_value: Any, **options: Any) -> Tensor:
    """One number everywhere, whose kind gives the dtype if none is asked for."""
    return _made(core.full, calling.sizes((size,)), fill_value, **options)


@checked
def arange(start: Any, end: Any = None, step: Any = 1, **options: Any) -> Tensor:
    """`arange(end)`, or the numbers from `start` to before `end` by `step`."""
    if end is None:
        if step == 1:
            return _made(core.arange, start, **options)
        start, end = 0, start
    return _made(core.arange_start, start, end, step, **options)


def rand(*size: Any, **options: Any) -> Tensor:
    """Uniform numbers from 0 to before 1; options as for `zeros`, and generator."""
    return _made(core.rand, calling.sizes(size), **options)


def randn(*size: Any, **options: Any) -> Tensor:
    """Normal numbers, mean 0 and deviation 1; options as for `rand`."""
    return _made(core.randn, calling.sizes(size), **options)


@checked
def randint(low: int, high: Any, size: Any = None, **options: Any) -> Tensor:
    """Integers from `low` to before `high`; `randint(high, size)` begins at 0."""
    if size is None:
        low, high, size = 0, low, high
    return _made(core.randint, low, high, calling.sizes((size,)), **options)


@checked
def randperm(n: int, **options: Any) -> Tensor:
    """The numbers below `n` in random order; options as for `rand`."""
    return _made(core.randperm, n, **options)


@checked
def eye(n: int, m: int | None = None, **options: Any) -> Tensor:
    """A matrix with ones on its diagonal; options as for `zeros`."""
    return _made(core.eye, n, m, **options)


@checked
def linspace(start: Any, end: Any, steps: int, **options: Any) -> Tensor:
    """`steps` numbers at equal distances from `start` to `end`, both included."""
    return _made(core.linspace, start, end, steps, **options)


@checked
def zeros_like(self: Tensor, **options: Any) -> Tensor:
    """Zeros in the shape of `self`; options: dtype, device, requires_grad."""
    return _made(core.zeros_like, self, **options)


@checked
def ones_like(self: Tensor, **options: Any) -> Tensor:
    """Ones in the shape of `self`."""
    return _made(core.ones_like, self, **options)


@checked
def empty_like(self: Tensor, **options: Any) -> Tensor:
    """Elements of any value in the shape of `self`."""
    return _made(core.empty_like, self, **options)


@checked
def full_like(self: Tensor, fill_value: Any, **options: Any) -> Tensor:
    """One number everywhere in the shape of `self`."""
    return _made(core.full_like, self, fill_value, **options)


@checked
def rand_like(self: Tensor, **options: Any) -> Tensor:
    """Uniform numbers in the shape of `self`."""
    return _made(core.rand_like, self, **options)


@checked
def randn_like(self: Tensor, **options: Any) -> Tensor:
    """Normal numbers in the shape of `self`."""
    return _made(core.randn_like, self, **options)


@checked
def is_tensor(obj: object) -> bool:
    """Whether something is a tensor, of whichever class."""
    return isinstance(obj, Tensor)


@cache
def _allclose_binder() -> Binder:
    """What checks a call of `allclose` as that of an operator is checked."""
    tolerances = "float rtol=1e-05, float atol=1e-08, bool equal_nan=False"
    schema = parse_schema(f"allclose(Tensor self, Tensor other, {tolerances}) -> bool")
    return binder(schema, converters_of(schema, defined_only=True))


@checked
def allclose(
    self: Tensor,
    other: Tensor,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> bool:
    """Whether |self - other| <= atol + rtol * |other| everywhere, as torch compares.

    Equal infinities are close, and NaNs if `equal_nan` is true.

    Raises:
        WrongArgumentType: no tensor, or a tolerance that is no real number.
        DTypeRefused: the two have different dtypes.
        WrongOption: a tolerance below 0, or NaN.
        ShapesRefused, DevicesDiffer, NoData: as the operators of a comparison.
    """
    given = self, other, rtol, atol, equal_nan
    self, other, rtol, atol, equal_nan = _allclose_binder()(given, {})
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise WrongOption(
                operator="allclose", argument=name, found=str(value), fits="0 and more"
            )
    if self.dtype != other.dtype:
        raise DTypeRefused(
            operator="allclose",
            argument="other",
            dtype=str(other.dtype),
            fits=f"{self.dtype}, as `self` has",
        )
    left, right = core.detach(self), core.detach(other)
    close = core.eq(left, right)
    if equal_nan:
        both = core.logical_and(core.isnan(left), core.isnan(right))
        close = core.logical_or(close, both)
    if rtol == 0 and atol == 0:
        return bool(core.all(close))
    if not (left.is_floating_point() or left.is_complex()):
        # Differences of integers would wrap around, and booleans have none.
        left, right = left.to("float64"), right.to("float64")
    error = core.abs(core.sub(left, right))
    allowed = core.add(core.mul(core.abs(right), rtol), atol)
    within = core.logical_and(core.le(error, allowed), core.isfinite(error))
    return bool(core.all(core.logical_or(close, within)))
