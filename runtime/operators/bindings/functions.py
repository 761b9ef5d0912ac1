"""Functions of `runtime` that create tensors and compute with them.

Most of them are the public operators (`runtime.operators.bindings.python_bindings`).
Functions that are more than the call of one operator replace these: those that are
methods as well (`runtime.operators.bindings.python_api`), and those of this module.
`FUNCTIONS` lists all names, for modules that re-export them.

Rules: `zeros(2, 3)` and `zeros((2, 3))` are the same; a dtype may be a name;
`requires_grad=True` makes a leaf that accumulates gradients; every function ends in the
call of an operator of namespace `core`, except those that only read metadata.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from everyorder.runtime.dispatch.handle import OperatorHandle
from everyorder.runtime.operators.bindings import methods as _methods  # noqa: F401  # installs the methods
from everyorder.runtime.operators.bindings import python_api
from everyorder.runtime.operators.bindings.python_bindings import (
    function,
    parse_options,
    plain,
    public,
    sizes,
)
from everyorder.runtime.operators.declare.handles import core, handle_of
from everyorder.runtime.operators.declare.plan import INDICES, bad_dtype, bad_option
from everyorder.runtime.schema.binding import Binder, binder, converters_of
from everyorder.runtime.schema.call_errors import checked
from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.tensors.construction import wrap_number
from everyorder.runtime.tensors.tensor import Tensor, install

Function = Callable[..., Any]


def _create(
    run: Any, *args: Any, requires_grad: bool = False, **options: Any
) -> Tensor:
    """Return a new tensor from an operator, a leaf with gradient if `requires_grad`.

    Options that are None are left to the operator; with `out`, it writes to that.

    Raises:
        WrongOption: an option differs from what `out` has.
    """
    out = options.pop("out", None)
    if out is not None:
        run, options = _writing(run, out, **options)
    arguments = {
        name: value
        for name, value in options.items()
        if value is not None or not _has(run, name)
    }
    tensor: Tensor = run(*args, **parse_options(arguments))
    return tensor.requires_grad_() if requires_grad else tensor


def _writing(
    run: OperatorHandle, out: Tensor, **options: Any
) -> tuple[Any, dict[str, Any]]:
    """Return the form of a factory that writes to `out`, and its options."""
    name = run.schema.name
    into = handle_of("_".join(filter(None, (name.base, name.overload, "out"))))
    asked = parse_options({key: options.pop(key, None) for key in ("dtype", "device")})
    for key, value in asked.items() if isinstance(out, Tensor) else ():
        own = getattr(out, key)
        if value is not None and value != own:
            fits = f"{own}, as `out` has, or nothing"
            raise bad_option(key, str(value), fits, call=name.base)
    options.pop("pin_memory", None)
    return into, {**options, "out": out}


def _has(run: Any, name: str) -> bool:
    """Return True if the operator has an argument of that name."""
    return name in [argument.name for argument in run.schema.arguments]


def _sized(name: str, says: str) -> Function:
    """Return a factory that takes sizes as separate arguments, as one, or by name."""
    run = handle_of(name)

    def make(*size: Any, **options: Any) -> Tensor:
        if size:
            return _create(run, sizes(size), **options)
        if "size" in options:
            options["size"] = sizes((options["size"],))
            return _create(run, **options)
        return _create(run, (), **options)

    return _described(make, name, says)


def _like(name: str, says: str) -> Function:
    """Return a factory that takes the shape, dtype and device of a tensor."""
    run = handle_of(name)

    def make(self: Tensor, **options: Any) -> Tensor:
        return _create(run, self, **options)

    return checked(_described(make, name, says))


def _described(make: Function, name: str, says: str) -> Function:
    make.__name__ = make.__qualname__ = name
    make.__doc__ = says
    return make


@checked
def full(size: Any, fill_value: Any, **options: Any) -> Tensor:
    """Return a tensor filled with one number, whose kind is the default dtype."""
    return _create(core.full, sizes((size,)), fill_value, **options)


@checked
def arange(start: Any, end: Any = None, step: Any = 1, **options: Any) -> Tensor:
    """Return `arange(end)`, or the numbers from `start` to before `end` by `step`."""
    if end is None:
        if step == 1:
            return _create(core.arange, start, **options)
        start, end = 0, start
    return _create(core.arange_start, start, end, step, **options)


@checked
def randint(
    low: int | None = None, high: Any = None, size: Any = None, **options: Any
) -> Tensor:
    """Return integers from `low` to before `high`; `randint(high, size)`: from 0."""
    if size is None and high is not None:
        low, high, size = None, low, high
    if low is None or high is None:
        low, high = 0, high if low is None else low
    return _create(core.randint, low, high, sizes((size,)), **options)


@checked
def randperm(n: int, **options: Any) -> Tensor:
    """Return the numbers below `n` in random order; options as for `rand`."""
    return _create(core.randperm, n, **options)


@checked
def eye(n: int, m: int | None = None, **options: Any) -> Tensor:
    """Return a matrix with ones on its diagonal; options as for `zeros`."""
    return _create(core.eye, n, m, **options)


@checked
def linspace(start: Any, end: Any, steps: int, **options: Any) -> Tensor:
    """Return `steps` equally spaced numbers from `start` to `end`, both included."""
    return _create(core.linspace, start, end, steps, **options)


@checked
def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, **options: Any
) -> Tensor:
    """Return `steps` powers of `base`, whose exponents are those of `linspace`."""
    return _create(core.logspace, start, end, steps, base, **options)


@checked
def full_like(self: Tensor, fill_value: Any, **options: Any) -> Tensor:
    """Return a tensor filled with one number in the shape of `self`."""
    return _create(core.full_like, self, fill_value, **options)


# Factories of tensors: by sizes, and like others.
CREATING: dict[str, Function] = {
    each.__name__: each
    for each in (
        _sized(
            "zeros", "Return zeros; options: dtype, device, pin_memory, requires_grad."
        ),
        _sized("ones", "Return ones; options as for `zeros`."),
        _sized("empty", "Return uninitialized elements; options as for `zeros`."),
        _sized(
            "rand",
            "Return uniform numbers in [0, 1); options as of `zeros`, generator.",
        ),
        _sized(
            "randn",
            "Return normal numbers, mean 0, deviation 1; options as for `rand`.",
        ),
        _like("zeros_like", "Return zeros like `self`; options as for `zeros`."),
        _like("ones_like", "Return ones in the shape of `self`."),
        _like("empty_like", "Return uninitialized elements in the shape of `self`."),
        _like("rand_like", "Return uniform numbers in the shape of `self`."),
        _like("randn_like", "Return normal numbers in the shape of `self`."),
        *(full, arange, randint, randperm, eye, linspace, logspace, full_like),
    )
}


@checked
def is_tensor(obj: object) -> bool:
    """Return True if `obj` is a tensor of any class."""
    return isinstance(obj, Tensor)


@cache
def _allclose_binder() -> Binder:
    """Return the binder that checks a call of `allclose` like that of an operator."""
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
    """Return True if |self - other| <= atol + rtol * |other| everywhere, as in torch.

    Equal infinities are close, and NaNs if `equal_nan` is true.

    Raises:
        CallError: an argument is not a tensor, or a tolerance not a real number.
        DTypeRefused: the two have different dtypes.
        WrongOption: a tolerance is below 0, or NaN.
        ShapesDoNotFit, DevicesDiffer, NoData: as the operators of a comparison.
    """
    arguments = self, other, rtol, atol, equal_nan
    self, other, rtol, atol, equal_nan = _allclose_binder()(arguments, {})
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise bad_option(name, str(value), "0 and more", call="allclose")
    if self.dtype != other.dtype:
        raise bad_dtype(
            "other", other.dtype, f"{self.dtype}, as `self` has", call="allclose"
        )
    near = core.isclose(core.detach(self), core.detach(other), rtol, atol, equal_nan)
    return bool(core.all(near))


@checked
def einsum(equation: str, *operands: Any) -> Any:
    """Return sums of products by Einstein's convention: one letter per dimension."""
    if len(operands) == 1 and not isinstance(operands[0], Tensor):
        operands = tuple(operands[0])
    return core.einsum(equation, list(operands))


# Torch's words for how distances are computed -> their numbers.
_COMPUTE_MODES = {
    "use_mm_for_euclid_dist_if_necessary": 0,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}


@checked
def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str | int | None = "use_mm_for_euclid_dist_if_necessary",
) -> Any:
    """Return the distances of each row of a batch from each row of another.

    They are always computed from differences: `compute_mode` has no effect.
    """
    if isinstance(compute_mode, str):
        if compute_mode not in _COMPUTE_MODES:
            fits = ", ".join(_COMPUTE_MODES)
            raise bad_option("compute_mode", repr(compute_mode), fits, call="cdist")
        compute_mode = _COMPUTE_MODES[compute_mode]
    return core.cdist(x1, x2, p, compute_mode)


@checked
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, *, out: Any = None) -> Any:
    """Return the sums of products over the last dims of `a` and the first of `b`.

    `dims` is their number, or a pair of lists of dimensions.
    """
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0 or dims > a.dim() or dims > b.dim():
            fits = "a number of dimensions that both have, or two lists of them"
            raise bad_option("dims", str(dims), fits, call="tensordot")
        dims = [each - dims for each in range(dims)], [*range(dims)]
    ours, theirs = dims
    if out is not None:
        return core.tensordot_out(a, b, ours, theirs, out=out)
    return core.tensordot(a, b, ours, theirs)


@checked
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Return the coordinates of a grid: each line expanded over the others."""
    if len(tensors) == 1 and not isinstance(tensors[0], Tensor):
        tensors = tuple(tensors[0])
    return tuple(core.meshgrid(list(tensors), indexing=indexing))


@checked
def searchsorted(sorted_sequence: Tensor, input: Any, **options: Any) -> Any:  # noqa: A002  # upstream's name
    """Return the insertion points of numbers in sorted lines.

    Options: out_int32, right, side, sorter, out.
    """
    if not isinstance(input, Tensor):
        input = wrap_number(input, sorted_sequence.device)  # noqa: A001  # as above
    return function("searchsorted")(sorted_sequence, input, **options)


@checked
def numel(self: Tensor) -> int:
    """Return the number of elements."""
    return self.numel()


@checked
def is_inference(self: Tensor) -> bool:
    """Return True if the tensor was made in inference mode."""
    return self.is_inference()


@checked
def is_nonzero(self: Tensor) -> bool:
    """Return True if the one element is not zero."""
    return self.is_nonzero()


@checked
def is_floating_point(self: Tensor) -> bool:
    """Return True if the elements are real floating-point numbers."""
    return self.dtype.is_floating


@checked
def is_complex(self: Tensor) -> bool:
    """Return True if the elements are complex numbers."""
    return self.dtype.is_complex


@checked
def dropout(
    input: Tensor,  # noqa: A002  # the schema's name
    p: float = 0.5,
    train: bool = True,
    inplace: bool = False,
    *,
    training: bool | None = None,
) -> Any:
    """Zero elements at random with probability `p`, and scale the rest up.

    `training` is torch's name of `train` in layers.
    """
    result = core.dropout(input, p, train if training is None else training)
    return core.copy_(input, result) if inplace else result


def convolution(name: str, ndim: int) -> Function:
    """Return `conv1d` or `conv2d` with support for padding as a word."""
    run = plain(name)

    def convolve(
        input: Tensor,  # noqa: A002  # the schema's name
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        if not isinstance(padding, str):
            return run(input, weight, bias, stride, padding, dilation, groups)
        steps, apart = (
            each if isinstance(each, (list, tuple)) else (each,) * ndim
            for each in (stride, dilation)
        )
        if padding not in ("same", "valid") or (padding == "same" and {*steps} != {1}):
            raise bad_option(
                "padding",
                f"{padding!r} with stride {stride}",
                "numbers, 'valid', or 'same' with a stride of 1",
                call=name,
            )
        if padding == "valid":
            return run(input, weight, bias, stride, 0, dilation, groups)
        kernel = weight.shape[-ndim:]
        whole = [step * (size - 1) for step, size in zip(apart, kernel, strict=True)]
        more = [total % 2 for total in whole]
        if 1 in more:
            ends = [end for each in reversed(more) for end in (0, each)]
            input = core.pad(input, ends)  # noqa: A001  # as above
        sides = [total // 2 for total in whole]
        return run(input, weight, bias, stride, sides, dilation, groups)

    convolve.__name__ = convolve.__qualname__ = name
    convolve.__doc__ = f"""{public()[name].says}

    `padding` may be "valid" (no padding) or "same", which preserves the size; an odd
    place is added at the end.  Raises `WrongOption` for another word, and for "same"
    with a stride.
    """
    return checked(convolve)


@checked
def max_pool2d(*args: Any, return_indices: bool = False, **kwargs: Any) -> Any:
    """Return the greatest element of each window, and its index if requested."""
    if kwargs.get("stride", 0) is None:
        del kwargs["stride"]
    name = "max_pool2d_with_indices" if return_indices else "max_pool2d"
    return plain(name)(*args, **kwargs)


@checked
def embedding(weight: Tensor, indices: Tensor, padding_idx: int | None = None) -> Any:
    """Return the rows of a table by index; the arguments may be in either order.

    With the indices first, as in layers, a negative `padding_idx` counts from the end;
    with the table first, -1 and None mean no padding.
    """
    place = -1 if padding_idx is None else padding_idx
    if weight.dtype in INDICES and indices.dtype not in INDICES:
        weight, indices = indices, weight
        if padding_idx is not None and padding_idx < 0:
            place += weight.size(0)
    return core.embedding(weight, indices, place)


# Functions, not methods, that are more than the call of one operator.
HANDWRITTEN: dict[str, Function] = {
    "conv1d": convolution("conv1d", 1),
    "conv2d": convolution("conv2d", 2),
    **{name: python_api.deviation(name) for name in ("std_mean", "var_mean")},
    **{
        each.__name__: each
        for each in (
            *(
                allclose,
                cdist,
                dropout,
                einsum,
                embedding,
                is_complex,
            ),
            *(is_floating_point, is_inference, is_nonzero, is_tensor, max_pool2d),
            *(meshgrid, numel, searchsorted, tensordot),
            python_api.where,
        )
    },
}
_BY_NAME = {**CREATING, **HANDWRITTEN, **python_api.HANDWRITTEN}
# The functions that are an operator, with `out=` if it has that form.
OPERATORS = tuple(
    name for name, each in public().items() if each.function and name not in _BY_NAME
)
FUNCTIONS = (*OPERATORS, *_BY_NAME)
globals().update({**_BY_NAME, **{name: function(name) for name in OPERATORS}})
# Pickles name a function by its module, wherever a factory made it.
for _name in FUNCTIONS:
    globals()[_name].__module__ = __name__
# A method, too.
install("allclose", allclose)


def __getattr__(name: str) -> Any:
    """Raise AttributeError; type checkers do not see the table above."""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
