"""Functions and methods that are more than the call of one operator.

They choose one of several operators by the kinds of their arguments, and accept
arguments that no operator has (`unbiased`, `decimals`, `as_tuple`, `reduce`). Operators
do all of the computation.

Rule: an entry of `HANDWRITTEN` replaces the public operator of its name (see
`runtime.operators.bindings.python_bindings`), as a function and as a method.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from numpy import ndarray

from everyorder.runtime.errors.tensor import IndexOutOfRange
from everyorder.runtime.operators.bindings.python_bindings import (
    describe,
    function,
    parse_options,
    plain,
    targets_of,
    with_out,
)
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.declare.plan import (
    FLOATS,
    INTEGERS,
    bad_dtype,
    bad_option,
)
from everyorder.runtime.schema.binding import binder, converters_of
from everyorder.runtime.schema.call_errors import checked, shortened
from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.schema.types import IntType
from everyorder.runtime.schema.values import MISMATCH, converter
from everyorder.runtime.tensors.construction import wrap_number
from everyorder.runtime.tensors.tensor import Tensor

Function = Callable[..., Any]


class Ordered(NamedTuple):
    """The results of `sort`, `topk`, `max` and `min`: the values and their indices."""

    values: Tensor
    indices: Tensor


def ordered(name: str, args: Any, kwargs: dict[str, Any]) -> Ordered:
    """Return the values and indices of an operator; `out=` is a pair of tensors."""
    out = kwargs.pop("out", None)
    if out is None:
        return Ordered(*plain(name)(*args, **kwargs))
    targets = targets_of(name.partition("_")[0], out, Ordered._fields)
    return Ordered(*plain(f"{name}_out")(*args, **kwargs, **targets))


@checked
def clamp(self: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Any:  # noqa: A002  # the schema's names
    """Limit every element to the range from `min` to `max`: numbers, or tensors."""
    by_tensor = isinstance(min, Tensor) or isinstance(max, Tensor)
    low, high = _bounds(self, min, max) if by_tensor else (min, max)
    if out is None:
        return (core.clamp_Tensor if by_tensor else core.clamp)(self, low, high)
    run = core.clamp_Tensor_out if by_tensor else core.clamp_out
    return run(self, low, high, out=out)


@checked
def clamp_(self: Tensor, min: Any = None, max: Any = None) -> Any:  # noqa: A002  # the schema's names
    """Limit every element to a range, in place; see `clamp`."""
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        return core.clamp__Tensor(self, *_bounds(self, min, max))
    return core.clamp_(self, min, max)


def _bounds(self: Tensor, *bounds: Any) -> tuple[Any, ...]:
    """Return the bounds with numbers converted to tensors."""
    return tuple(
        wrap_number(each, self.device) if isinstance(each, (int, float)) else each
        for each in bounds
    )


@checked
def scatter(
    self: Tensor,
    dim: int,
    index: Tensor,
    src: Any,
    *,
    reduce: str | None = None,
    out: Tensor | None = None,
) -> Any:
    """Write `src`, a tensor or a number, to the elements that `index` selects.

    `reduce` is "add" or "multiply", which combines `src` with the existing element.
    """
    if reduce is not None:
        result = _joined_with(self, dim, index, src, reduce)
        return result if out is None else core.copy_(out, result)
    if isinstance(src, Tensor):
        return function("scatter")(self, dim, index, src, out=out)
    if out is None:
        return core.scatter_value(self, dim, index, src)
    return core.scatter_value_out(self, dim, index, src, out=out)


@checked
def scatter_(
    self: Tensor, dim: int, index: Tensor, src: Any, *, reduce: str | None = None
) -> Any:
    """Write `src` to the elements that `index` selects, in place; see `scatter`."""
    if reduce is not None:
        return core.copy_(self, _joined_with(self, dim, index, src, reduce))
    run = core.scatter_ if isinstance(src, Tensor) else core.scatter__value
    return run(self, dim, index, src)


def _joined_with(self: Any, dim: int, index: Any, src: Any, reduce: str) -> Any:
    """Return the elements with `src` added, or multiplied, at the index."""
    if reduce not in ("add", "multiply"):
        raise bad_option("reduce", repr(reduce), "'add' or 'multiply'", call="scatter")
    if not isinstance(src, Tensor):
        src = core.full(index.shape, src, dtype=self.dtype, device=self.device)
    if reduce == "add":
        return core.scatter_add(self, dim, index, src)
    result = self
    # One place of the index after the other: within one place, targets are distinct.
    for place in range(index.size(dim) if index.shape else 1):
        at = _place(index, dim, place)
        there = core.gather(result, dim, at)
        factor = core.mul(there, core.expand(_cut(src, dim, place, at.shape), at.shape))
        result = core.scatter(result, dim, at, factor)
    return core.clone(result) if result is self else result


def _cut(src: Any, dim: int, place: int, shape: Any) -> Any:
    """Return the part of the source that an index of that shape reads."""
    for at, size in enumerate(shape):
        src = core.slice(src, at, 0, size) if at != dim % len(shape) else src
    return _place(src, dim, place)


def _place(tensor: Any, dim: int, place: int) -> Any:
    return core.slice(tensor, dim, place, place + 1) if tensor.shape else tensor


@checked
def split(self: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Split the tensor into pieces of one size, or of the sizes in a list."""
    run = core.split if hasattr(split_size, "__index__") else core.split_sizes
    return tuple(run(self, split_size, dim))


@checked
def chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split the tensor into at most `chunks` pieces of one size; the last may be less.

    A dimension of size 0 is split into exactly `chunks` pieces.
    """
    chunks = _integer("chunk", "chunks", chunks)
    if chunks < 1:
        raise bad_option("chunks", str(chunks), "1 and more", call="chunk")
    size = self.size(dim)
    if not size:
        return tuple(core.split_sizes(self, [0] * chunks, dim))
    return tuple(core.split(self, -(-size // chunks), dim))


@checked
def unbind(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return every place of a dimension as a view."""
    return tuple(core.unbind(self, dim))


@checked
def narrow(self: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """Return `length` places of a dimension from `start`, as a view.

    `start` is an integer, or a tensor of one without dimensions.
    """
    if isinstance(start, Tensor) and (start.shape or start.dtype not in INTEGERS):
        found = f"a tensor of shape {start.shape} and dtype {start.dtype}"
        raise bad_option(
            "start", found, "an integer, or a 0-dim tensor of one", call="narrow"
        )
    start = _integer("narrow", "start", start)
    length = _integer("narrow", "length", length)
    size = self.size(dim)
    first = start + size if start < 0 else start
    if not 0 <= first <= first + length <= size:
        raise IndexOutOfRange(
            code="PartOutOfRange",
            operator="narrow",
            argument="start and length",
            found=f"{start} and {length}",
            fits=f"a part of dimension {dim}, which has size {size}",
        )
    part: Tensor = core.slice(self, dim, first, first + length)
    return part


def _integer(name: str, argument: str, value: Any) -> int:
    """Return an argument of a handwritten function as an integer; a bool is refused.

    Raises:
        WrongOption: the value is not an integer.
    """
    number = _TO_INTEGER(value)
    if not isinstance(number, int):
        raise bad_option(argument, shortened(value), "an integer", call=name)
    return number


_TO_INTEGER = converter(IntType, None, True)


def extreme(name: str, pair: str) -> Function:
    """Return `max` or `min`: of all elements, along a dimension, or of two tensors."""
    whole, both = with_out(name), function(pair)

    def call(self: Any = None, *args: Any, **kwargs: Any) -> Any:
        if self is None:
            self = kwargs.pop("input", None)
        if not args:
            if not kwargs:
                return whole(self)
            # NumPy's call for all elements.
            if kwargs.get("axis", True) is None:
                del kwargs["axis"]
        if "other" in kwargs or (args and isinstance(args[0], (Tensor, ndarray))):
            return both(self, *args, **kwargs)
        if args or "dim" in kwargs or "axis" in kwargs:
            return ordered(f"{name}_dim", (self, *args), kwargs)
        return whole(self, **kwargs)

    describe(name, call)
    call.__doc__ = f"""The {pair} of all elements, or along a dimension, or of two.

    `{name}(x)` is one number; `{name}(x, dim, keepdim=False)` the values and the first
    place of each, as `.values` and `.indices`; `{name}(x, other)` is `{pair}`.
    Along a dimension, `out` is a pair of tensors.
    """
    del call.__signature__  # type: ignore[attr-defined]  # set by `describe`
    return call


def _truth(value: object) -> object:
    """Return a bool unchanged, or MISMATCH."""
    return value if isinstance(value, bool) else MISMATCH


def deviation(name: str) -> Function:
    """Return `var` or `std` with `unbiased` for the schema's `correction`."""
    run = function(name)
    schema = parse_schema(
        f"{name}(Tensor self, int[1]? dim=None, bool unbiased=True, "
        "bool keepdim=False, *, Tensor? out=None) -> Tensor"
    )
    turns = [*converters_of(schema, defined_only=True, integers_only=True)]
    # A number does not convert to these bools: `var(0, 1)` means two dimensions.
    turns[2] = turns[3] = _truth
    bind = binder(schema, tuple(turns))

    def call(self: Any = None, *args: Any, **kwargs: Any) -> Any:
        if self is None:
            self = kwargs.pop("input", None)
        # `var(False)`: a bool is not a dimension.
        if len(args) == 1 and type(args[0]) is bool and "unbiased" not in kwargs:
            return call(self, unbiased=args[0], **kwargs)
        if len(args) < 2 and "unbiased" not in kwargs:
            return run(self, *args, **kwargs)
        if "axis" in kwargs and "dim" not in kwargs:
            kwargs["dim"] = kwargs.pop("axis")
        _, dim, unbiased, keepdim, out = bind((self, *args), kwargs)
        return run(self, dim, correction=int(unbiased), keepdim=keepdim, out=out)

    return describe(name, call)


@checked
def sort(self: Tensor, *args: Any, **kwargs: Any) -> Ordered:
    """Return the values in order along a dimension, and their indices."""
    return ordered("sort", (self, *args), kwargs)


@checked
def topk(self: Tensor, *args: Any, **kwargs: Any) -> Ordered:
    """Return the greatest or least values along a dimension, and their indices."""
    return ordered("topk", (self, *args), kwargs)


@checked
def where(condition: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Choose elements by a condition; with a condition alone, return its true indices.

    A 0-dim condition then counts as one of one element, as in torch.
    """
    if args or kwargs:
        return function("where")(condition, *args, **kwargs)
    if not condition.shape:
        condition = core.reshape(condition, [1])
    return unbind(core.nonzero(condition), 1)


@checked
def nonzero(self: Tensor, *, as_tuple: bool = False, out: Any = None) -> Any:
    """Return the indices of nonzero elements, one per row, or a tensor per dim."""
    if as_tuple:
        return where(self)
    return function("nonzero")(self, out=out) if out is not None else core.nonzero(self)


@checked
def round(self: Tensor, *, decimals: int = 0, out: Any = None) -> Any:  # noqa: A001  # torch's name
    """Round to the nearest number of `decimals` decimals, and ties to even."""
    if not decimals:
        return function("round")(self, out=out)
    if self.dtype not in FLOATS:
        raise bad_dtype("self", self.dtype, "floating-point dtypes", call="round")
    scale = 10.0 ** abs(decimals)
    forth, back = (core.mul, core.div) if decimals > 0 else (core.div, core.mul)
    rounded = back(core.round(forth(self, scale)), scale)
    return rounded if out is None else core.copy_(out, rounded)


@checked
def round_(self: Tensor, *, decimals: int = 0) -> Any:
    """Round to a number of decimals, in place; see `round`."""
    return core.copy_(self, round(self, decimals=decimals))


@checked
def fill_(self: Tensor, value: Any) -> Any:
    """Set every element to a number, or to that of a 0-dim tensor."""
    run = core.fill__Tensor if isinstance(value, Tensor) else core.fill_
    return run(self, value)


@checked
def masked_fill(self: Tensor, mask: Tensor, value: Any) -> Any:
    """Write a number, or a 0-dim tensor, to the elements where the mask is true."""
    by_tensor = isinstance(value, Tensor)
    return (core.masked_fill_Tensor if by_tensor else core.masked_fill)(
        self, mask, value
    )


@checked
def masked_fill_(self: Tensor, mask: Tensor, value: Any) -> Any:
    """Write a number where the mask is true, in place; see `masked_fill`."""
    by_tensor = isinstance(value, Tensor)
    run = core.masked_fill__Tensor if by_tensor else core.masked_fill_
    return run(self, mask, value)


@checked
def clip(self: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Any:  # noqa: A002  # the schema's names
    """Limit every element to a range; NumPy's name of `clamp`."""
    return clamp(self, min, max, out=out)


@checked
def lerp(self: Tensor, end: Tensor, weight: Any, *, out: Tensor | None = None) -> Any:
    """Interpolate linearly between two tensors; the weight is a number or a tensor."""
    by_tensor = isinstance(weight, Tensor)
    if out is not None:
        into = core.lerp_Tensor_out if by_tensor else core.lerp_Scalar_out
        return into(self, end, weight, out=out)
    return (core.lerp_Tensor if by_tensor else core.lerp_Scalar)(self, end, weight)


@checked
def lerp_(self: Tensor, end: Tensor, weight: Any) -> Any:
    """Interpolate linearly, in place; see `lerp`."""
    run = core.lerp__Tensor if isinstance(weight, Tensor) else core.lerp__Scalar
    return run(self, end, weight)


@checked
def bernoulli_(self: Tensor, p: float | Tensor = 0.5, *, generator: Any = None) -> Any:
    """Fill with 1 and 0; `p`, a number or a tensor, is the probability of 1."""
    if not isinstance(p, Tensor):
        return core.bernoulli__float(self, p, generator=generator)
    chances = core.expand(p, self.shape)
    return core.copy_(self, core.bernoulli(chances, generator=generator))


@checked
def random_(self: Tensor, *limits: Any, generator: Any = None, **named: Any) -> Any:
    """Fill with random integers: any, `random_(to)`, or `random_(from, to)`.

    Without limits, they are those from 0 on that the dtype has without a gap.
    """
    forms = core.random_, core.random__to, core.random__from
    count = len(limits) + ("to" in named)
    run = forms[-1 if "from" in named else min(count, len(forms) - 1)]
    return run(self, *limits, generator=generator, **named)


@checked
def index_fill(self: Tensor, dim: int, index: Tensor, value: Any) -> Any:
    """Write a number, or a 0-dim tensor, to slices of a dimension."""
    by_tensor = isinstance(value, Tensor)
    run = core.index_fill_int_Tensor if by_tensor else core.index_fill
    return run(self, dim, index, value)


@checked
def index_fill_(self: Tensor, dim: int, index: Tensor, value: Any) -> Any:
    """Write a number to slices of a dimension, in place; see `index_fill`."""
    by_tensor = isinstance(value, Tensor)
    run = core.index_fill__int_Tensor if by_tensor else core.index_fill_
    return run(self, dim, index, value)


@checked
def repeat_interleave(self: Tensor, repeats: Any, dim: int | None = None) -> Any:
    """Repeat every element, or slice, by one number, or by one number each."""
    if isinstance(repeats, Tensor):
        return core.repeat_interleave_self_Tensor(self, repeats, dim)
    return core.repeat_interleave_self_int(self, repeats, dim)


@checked
def norm(
    self: Tensor,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Tensor | None = None,
) -> Any:
    """Return the norm of vectors: the p-th root of the sum of the p-th powers.

    Raises:
        WrongOption: `p` is a name other than "fro", which is 2.
    """
    if isinstance(p, str):
        if p != "fro":
            raise bad_option("p", repr(p), "'fro', or a number", call="norm")
        p = 2
    dims = [dim] if hasattr(dim, "__index__") else dim
    options = parse_options({"dtype": dtype})
    if out is not None:
        return core.norm_out(self, p, dims, keepdim, **options, out=out)
    return core.norm(self, p, dims, keepdim, **options)


@checked
def unique(
    self: Tensor,
    sorted: bool = True,  # noqa: A002  # upstream's name
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct elements, or slices along `dim`, in ascending order.

    On request, also return the index of each element among them, and the count of each.
    They are sorted even if `sorted` is False.
    """
    values, inverse, counts = core._unique(self, return_inverse, return_counts, dim)
    results = [values]
    if return_inverse:
        results.append(inverse)
    if return_counts:
        results.append(counts)
    return tuple(results) if len(results) > 1 else values


@checked
def median(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Return the lower median of all elements, or of the lines of a dimension.

    `median(x)` is one number; `median(x, dim, keepdim=False)` the values and their
    places, as `.values` and `.indices`.
    """
    if args or kwargs.keys() - {"out"}:
        return ordered("median_dim", (self, *args), kwargs)
    return function("median")(self, **kwargs)


@checked
def cummax(self: Tensor, *args: Any, **kwargs: Any) -> Ordered:
    """Return the greatest element up to each place of a dimension, and its place."""
    return ordered("cummax", (self, *args), kwargs)


@checked
def cummin(self: Tensor, *args: Any, **kwargs: Any) -> Ordered:
    """Return the least element up to each place of a dimension, and its place."""
    return ordered("cummin", (self, *args), kwargs)


@checked
def quantile(
    self: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Any:
    """Return the elements at fractions `q`, a number or a tensor, of sorted lines."""
    if not isinstance(q, Tensor):
        q = core.full([], q, dtype=self.dtype, device=self.device)
    options = {"interpolation": interpolation}
    if out is not None:
        return core.quantile_out(self, q, dim, keepdim, **options, out=out)
    return core.quantile(self, q, dim, keepdim, **options)


# By name; each is a function, and a method of tensors.
HANDWRITTEN: dict[str, Function] = {
    **{name: deviation(name) for name in ("var", "std")},
    "max": extreme("max", "maximum"),
    "min": extreme("min", "minimum"),
    "chunk": chunk,
    "clamp": clamp,
    "clip": clip,
    "cummax": cummax,
    "cummin": cummin,
    "index_fill": index_fill,
    "lerp": lerp,
    "masked_fill": masked_fill,
    "median": median,
    "narrow": narrow,
    "nonzero": nonzero,
    "norm": norm,
    "quantile": quantile,
    "repeat_interleave": repeat_interleave,
    "round": round,
    "scatter": scatter,
    "sort": sort,
    "split": split,
    "topk": topk,
    "unbind": unbind,
    "unique": unique,
}
