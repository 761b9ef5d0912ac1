"""How people call operators: functions and methods over the handles of `core`.

True only here: what a call may say that a schema does not: sizes as separate numbers,
`out=`, dtypes by name, numbers where an overload takes them.

Rule: nothing is computed here; every function ends in a call of an operator, so that
dispatch, autograd and the harness see everything.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from numpy import ndarray

from runtime.errors.call import CallError
from runtime.errors.operands import WrongOption
from runtime.operators.call import core, found
from runtime.operators.signatures import described, signature_of
from runtime.operators.words import again, worded
from runtime.schema.binding import binder, converters_of
from runtime.schema.checked import checked
from runtime.schema.device import Device
from runtime.schema.excerpt import shortened
from runtime.schema.numbers import MISMATCH
from runtime.schema.parser import parse_schema
from runtime.schema.types import IntType
from runtime.schema.values import converter
from runtime.tensors.elements import supported
from runtime.tensors.making import wrap_number
from runtime.tensors.tensor import Tensor

Function = Callable[..., Any]


class Ordered(NamedTuple):
    """What `sort`, `topk`, `max` and `min` find: the values, and where each was."""

    values: Tensor
    indices: Tensor


def sizes(given: tuple[Any, ...]) -> Sequence[int]:
    """`(2, 3)` of either `f(2, 3)` or `f((2, 3))`."""
    if len(given) == 1 and not hasattr(given[0], "__index__"):
        only: Sequence[int] = given[0]
        return only
    return given


@cache
def function(name: str) -> Function:
    """The operator as a function; `out=` chooses the overload that writes there."""
    try:
        found(f"{name}_out")
    except LookupError:
        return named(name, plain(name))
    return named(name, alone(name) if takes_one(name) else writing(name))


def plain(name: str) -> Function:
    """The operator, its arguments in other words if they do not fit."""
    run = found(name)

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return run(*args, **kwargs)
        except CallError as error:
            return again(run, args, kwargs, error)

    return call


def alone(name: str) -> Function:
    """The operator of one tensor, with `out=`."""
    run, into = found(name), found(f"{name}_out")

    def call(self: Any, *, out: Any = None) -> Any:
        try:
            return run(self) if out is None else into(self, out=out)
        except CallError as error:
            if out is None:
                return again(run, (self,), {}, error)
            return again(into, (self,), {"out": out}, error)

    return call


def writing(name: str) -> Function:
    """The operator, with `out=`."""
    run, into = found(name), found(f"{name}_out")

    def call(*args: Any, **kwargs: Any) -> Any:
        ready = run
        if "out" in kwargs:
            if kwargs["out"] is None:
                del kwargs["out"]
            else:
                ready = into
        try:
            return ready(*args, **kwargs)
        except CallError as error:
            return again(ready, args, kwargs, error)

    return call


def takes_one(name: str) -> bool:
    """Whether the operator takes one argument, so that nothing needs to be read."""
    return len(found(name).schema.arguments) == 1


def spelled(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments, a dtype or device found as written."""
    dtype, device = kwargs.get("dtype"), kwargs.get("device")
    if dtype is not None:
        kwargs["dtype"] = supported(dtype)
    if isinstance(device, str):
        kwargs["device"] = Device.parse(device)
    return kwargs


def named(name: str, made: Function) -> Function:
    """The function, called `name` and described by its operator's schema."""
    schema = found(name).schema
    made.__name__ = made.__qualname__ = name
    made.__doc__ = described(name, schema)
    made.__signature__ = signature_of(schema)  # type: ignore[attr-defined]  # for help()
    return made


@checked
def clamp(self: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Any:  # noqa: A002  # the schema's names
    """Every element brought between `min` and `max`: numbers, or tensors."""
    by_tensor = isinstance(min, Tensor) or isinstance(max, Tensor)
    low, high = _bounds(self, min, max) if by_tensor else (min, max)
    if out is None:
        return (core.clamp_Tensor if by_tensor else core.clamp)(self, low, high)
    run = core.clamp_Tensor_out if by_tensor else core.clamp_out
    return run(self, low, high, out=out)


@checked
def clamp_(self: Tensor, min: Any = None, max: Any = None) -> Any:  # noqa: A002  # the schema's names
    """`clamp`, in place."""
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        return core.clamp__Tensor(self, *_bounds(self, min, max))
    return core.clamp_(self, min, max)


def _bounds(self: Tensor, *given: Any) -> tuple[Any, ...]:
    """The bounds, numbers among them as tensors."""
    return tuple(
        wrap_number(each, self.device) if isinstance(each, (int, float)) else each
        for each in given
    )


@worded
@checked
def scatter(
    self: Tensor, dim: int, index: Tensor, src: Any, *, out: Tensor | None = None
) -> Any:
    """`src`, a tensor or a number, put where `index` says."""
    if isinstance(src, Tensor):
        return function("scatter")(self, dim, index, src, out=out)
    if out is None:
        return core.scatter_value(self, dim, index, src)
    return core.scatter_value_out(self, dim, index, src, out=out)


@worded
@checked
def scatter_(self: Tensor, dim: int, index: Tensor, src: Any) -> Any:
    """`scatter`, in place."""
    run = core.scatter_ if isinstance(src, Tensor) else core.scatter__value
    return run(self, dim, index, src)


@worded
@checked
def split(self: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of one size, or of the sizes in a list."""
    run = core.split if hasattr(split_size, "__index__") else core.split_sizes
    return tuple(run(self, split_size, dim))


@worded
@checked
def chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most that many pieces of one size; the last may be smaller.

    Of a dimension of size 0 there are exactly that many.
    """
    chunks = _integer("chunk", "chunks", chunks)
    if chunks < 1:
        raise WrongOption(
            operator="chunk", argument="chunks", found=str(chunks), fits="1 and more"
        )
    size = self.size(dim)
    if not size:
        return tuple(core.split_sizes(self, [0] * chunks, dim))
    return tuple(core.split(self, -(-size // chunks), dim))


@worded
@checked
def unbind(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Every place of a dimension as a view."""
    return tuple(core.select(self, dim, place) for place in range(self.size(dim)))


@worded
@checked
def narrow(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    """`length` places of a dimension from `start`, as a view."""
    start = _integer("narrow", "start", start)
    length = _integer("narrow", "length", length)
    size = self.size(dim)
    first = start + size if start < 0 else start
    if not 0 <= first <= first + length <= size:
        raise WrongOption(
            operator="narrow",
            argument="start and length",
            found=f"{start} and {length}",
            fits=f"a part of dimension {dim}, which has size {size}",
        )
    part: Tensor = core.slice(self, dim, first, first + length)
    return part


def _integer(name: str, argument: str, value: Any) -> int:
    """An argument of a written function as an integer, which no bool is.

    Raises `WrongOption`.
    """
    number = _TO_INTEGER(value)
    if not isinstance(number, int):
        raise WrongOption(
            operator=name, argument=argument, found=shortened(value), fits="an integer"
        )
    return number


_TO_INTEGER = converter(IntType, None, True)


def extreme(name: str, pair: str) -> Function:
    """`max` or `min`: of all elements, along a dimension, or of two tensors."""
    whole, along, both = writing(name), plain(f"{name}_dim"), function(pair)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not args:
            if not kwargs:
                return whole(self)
            # As NumPy calls it, of all elements.
            if kwargs.get("axis", True) is None:
                del kwargs["axis"]
        if "other" in kwargs or (args and isinstance(args[0], (Tensor, ndarray))):
            return both(self, *args, **kwargs)
        if args or "dim" in kwargs or "axis" in kwargs:
            return Ordered(*along(self, *args, **kwargs))
        return whole(self, **kwargs)

    named(name, call)
    call.__doc__ = f"""The {pair} of all elements, or along a dimension, or of two.

    `{name}(x)` is one number; `{name}(x, dim, keepdim=False)` the values and the first
    place of each, as `.values` and `.indices`; `{name}(x, other)` is `{pair}`.
    """
    del call.__signature__  # type: ignore[attr-defined]  # which `named` has set
    return call


def _truth(value: object) -> object:
    """A bool as it is."""
    return value if isinstance(value, bool) else MISMATCH


def spread(name: str) -> Function:
    """`var` or `std`, which take `unbiased` where the schema has `correction`."""
    run = function(name)
    schema = parse_schema(
        f"{name}(Tensor self, int[1]? dim=None, bool unbiased=True, "
        "bool keepdim=False, *, Tensor? out=None) -> Tensor"
    )
    turns = [*converters_of(schema, defined_only=True, integers_only=True)]
    # No number is meant: `var(0, 1)` asks for two dimensions.
    turns[2] = turns[3] = _truth
    bind = binder(schema, tuple(turns))

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        # `var(False)`: a bool is no dimension.
        if len(args) == 1 and type(args[0]) is bool and "unbiased" not in kwargs:
            return call(self, unbiased=args[0], **kwargs)
        if len(args) < 2 and "unbiased" not in kwargs:
            return run(self, *args, **kwargs)
        if "axis" in kwargs and "dim" not in kwargs:
            kwargs["dim"] = kwargs.pop("axis")
        _, dim, unbiased, keepdim, out = bind((self, *args), kwargs)
        return run(self, dim, correction=int(unbiased), keepdim=keepdim, out=out)

    return named(name, call)


@checked
def sort(self: Tensor, *args: Any, **kwargs: Any) -> Ordered:
    """The values in order along a dimension, and where each was."""
    return Ordered(*plain("sort")(self, *args, **kwargs))


@checked
def topk(self: Tensor, *args: Any, **kwargs: Any) -> Ordered:
    """The greatest or least values along a dimension, and where each was."""
    return Ordered(*plain("topk")(self, *args, **kwargs))


@checked
def where(condition: Tensor, *args: Any, **kwargs: Any) -> Any:
    """One of two by a condition; with a condition alone, where it is true.

    A condition without dimensions is one of one element then, as upstream has it.
    """
    if args or kwargs:
        return function("where")(condition, *args, **kwargs)
    if not condition.shape:
        condition = core.reshape(condition, [1])
    return unbind(core.nonzero(condition), 1)


@checked
def clip(self: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Any:  # noqa: A002  # the schema's names
    """`clamp`, by NumPy's name."""
    return clamp(self, min, max, out=out)


@checked
def lerp(self: Tensor, end: Tensor, weight: Any) -> Any:
    """From one tensor to another, by a part of the way: a number, or a tensor."""
    run = core.lerp_Tensor if isinstance(weight, Tensor) else core.lerp_Scalar
    return run(self, end, weight)


@worded
@checked
def repeat_interleave(self: Tensor, repeats: Any, dim: int | None = None) -> Any:
    """Every element, or slice, several times: one number, or one for each."""
    if isinstance(repeats, Tensor):
        return core.repeat_interleave_self_Tensor(self, repeats, dim)
    return core.repeat_interleave_self_int(self, repeats, dim)


@worded
@checked
def norm(
    self: Tensor,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Any:
    """The length of vectors: the p-th root of the sum of the p-th powers.

    `p` may be "fro", which is 2.  Raises `WrongOption` for any other name.
    """
    if isinstance(p, str):
        if p != "fro":
            raise WrongOption(
                operator="norm", argument="p", found=repr(p), fits="'fro', or a number"
            )
        p = 2
    dims = [dim] if hasattr(dim, "__index__") else dim
    return core.norm(self, p, dims, keepdim, **spelled({"dtype": dtype}))


@worded
@checked
def unique(
    self: Tensor,
    sorted: bool = True,  # noqa: A002  # upstream's name
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The different elements, or slices along `dim`, in order.

    With the place of each element among them, and how often each occurs, if that is
    asked for.  They are in order whatever `sorted` says.
    """
    values, inverse, counts = core._unique(self, return_inverse, return_counts, dim)
    found = [values]
    if return_inverse:
        found.append(inverse)
    if return_counts:
        found.append(counts)
    return tuple(found) if len(found) > 1 else values


@checked
def einsum(equation: str, *operands: Any) -> Any:
    """Sums of products by Einstein's convention: one letter for each dimension."""
    if len(operands) == 1 and not isinstance(operands[0], Tensor):
        operands = tuple(operands[0])
    return core.einsum(equation, list(operands))


@checked
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """The coordinates of a grid: each line of them over all others, as views."""
    if len(tensors) == 1 and not isinstance(tensors[0], Tensor):
        tensors = tuple(tensors[0])
    return tuple(core.meshgrid(list(tensors), indexing=indexing))


@checked
def searchsorted(sorted_sequence: Tensor, input: Any, **options: Any) -> Any:  # noqa: A002  # upstream's name
    """Where numbers would stand in lines that are in order.

    Options: out_int32, right, side, sorter.
    """
    if not isinstance(input, Tensor):
        input = wrap_number(input)  # noqa: A001  # as above
    return core.searchsorted(sorted_sequence, input, **options)


# Written functions that are no methods, or are other ones.
NO_METHODS = ("einsum", "meshgrid", "searchsorted", "where")

# What is more than the call of one operator, by name.
WRITTEN: dict[str, Function] = {
    **{name: spread(name) for name in ("var", "std")},
    "max": extreme("max", "maximum"),
    "min": extreme("min", "minimum"),
    "chunk": chunk,
    "clamp": clamp,
    "clip": clip,
    "einsum": einsum,
    "lerp": lerp,
    "meshgrid": meshgrid,
    "narrow": narrow,
    "norm": norm,
    "repeat_interleave": repeat_interleave,
    "searchsorted": searchsorted,
    "scatter": scatter,
    "sort": sort,
    "split": split,
    "topk": topk,
    "unbind": unbind,
    "unique": unique,
    "where": where,
}
