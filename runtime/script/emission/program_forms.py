"""Forms of calls that operators do not take, and Python functions do, as programs.

    x.var(0, unbiased=False)    conv2d(x, w, padding="same")    unique(x, dim=0)

    FORMS    name of a method or function -> its forms
    FIRST    the names whose forms are tried before the operator

Rules:
- a form behaves as the function of its name in `runtime.operators.bindings`, but
  returns a list instead of a tuple, whose length is not known at compile time;
- it has a schema, whose arguments its function takes by position; some arguments are
  known when the call is compiled, because they decide what it returns;
- errors that differ only in their wording have one sentence here.
"""

# In programs `unbind` returns a list, and operators have types.
# mypy: disable-error-code="return-value, no-any-return, arg-type"

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.tensor import Tensor

boolean = DType.named("bool")
Number = int | float | complex


def var(self: Tensor, dim: list[int] | None, unbiased: bool, keepdim: bool) -> Tensor:
    """Return the variance, with Bessel's correction if `unbiased`."""
    return self.var(dim, correction=int(unbiased), keepdim=keepdim)


def var_of_all(self: Tensor, unbiased: bool) -> Tensor:
    """Return the variance of all elements."""
    return self.var(correction=int(unbiased))


def std(self: Tensor, dim: list[int] | None, unbiased: bool, keepdim: bool) -> Tensor:
    """Return the standard deviation, with Bessel's correction if `unbiased`."""
    return self.std(dim, correction=int(unbiased), keepdim=keepdim)


def std_of_all(self: Tensor, unbiased: bool) -> Tensor:
    """Return the standard deviation of all elements."""
    return self.std(correction=int(unbiased))


def var_mean(
    self: Tensor, dim: list[int] | None, unbiased: bool, keepdim: bool
) -> tuple[Tensor, Tensor]:
    """Return the variance, with Bessel's correction if `unbiased`, and the mean."""
    return core.var_mean(self, dim, correction=int(unbiased), keepdim=keepdim)


def var_mean_of_all(self: Tensor, unbiased: bool) -> tuple[Tensor, Tensor]:
    """Return the variance and the mean of all elements."""
    return core.var_mean(self, correction=int(unbiased))


def std_mean(
    self: Tensor, dim: list[int] | None, unbiased: bool, keepdim: bool
) -> tuple[Tensor, Tensor]:
    """Return the standard deviation as `var_mean` the variance, and the mean."""
    return core.std_mean(self, dim, correction=int(unbiased), keepdim=keepdim)


def std_mean_of_all(self: Tensor, unbiased: bool) -> tuple[Tensor, Tensor]:
    """Return the standard deviation and the mean of all elements."""
    return core.std_mean(self, correction=int(unbiased))


def dropout(
    input: Tensor,  # noqa: A002  # the schema's name
    p: float,
    train: bool,
    inplace: bool,
    training: bool | None,
) -> Tensor:
    """Zero elements at random; `training` is torch's name of `train` in layers."""
    result = core.dropout(input, p, train if training is None else training)
    if inplace:
        return input.copy_(result)
    return result


def _padded(
    input: Tensor,  # noqa: A002  # the schema's name
    sizes: list[int],
    steps: list[int],
    dilation: list[int],
    padding: str,
) -> tuple[Tensor, list[int]]:
    """Return the input of a convolution, and its padding on both sides."""
    sides = [0 for _ in sizes]
    if padding == "valid":
        return input, sides
    for step in steps:
        if padding != "same" or step != 1:
            raise ValueError(
                "`padding` is numbers, 'valid', or 'same' with a stride of 1, not "
                + padding
                + " with stride "
                + str(steps)
            )
    ends = [0 for _ in range(2 * len(sizes))]
    is_odd = False
    for place, size in enumerate(sizes):
        # One number is a list of it.
        total = dilation[place if len(dilation) > 1 else 0] * (size - 1)
        sides[place] = total // 2
        # Ends are listed from the last dimension.
        ends[2 * (len(sizes) - place) - 1] = total % 2
        is_odd = is_odd or total % 2 == 1
    if is_odd:
        return core.pad(input, ends), sides
    return input, sides


def conv1d(
    input: Tensor,  # noqa: A002  # the schema's name
    weight: Tensor,
    bias: Tensor | None,
    stride: list[int],
    padding: str,
    dilation: list[int],
    groups: int,
) -> Tensor:
    """Return the convolution, with padding as a word."""
    padded, sides = _padded(input, weight.shape[-1:], stride, dilation, padding)
    return core.conv1d(padded, weight, bias, stride, sides, dilation, groups)


def conv2d(
    input: Tensor,  # noqa: A002  # the schema's name
    weight: Tensor,
    bias: Tensor | None,
    stride: list[int],
    padding: str,
    dilation: list[int],
    groups: int,
) -> Tensor:
    """Return the convolution, with padding as a word."""
    padded, sides = _padded(input, weight.shape[-2:], stride, dilation, padding)
    return core.conv2d(padded, weight, bias, stride, sides, dilation, groups)


def max_pool2d(
    self: Tensor,
    kernel_size: list[int],
    stride: list[int] | None,
    padding: list[int],
    dilation: list[int],
    ceil_mode: bool,
    return_indices: bool,
) -> Tensor:
    """Return the greatest element of each window."""
    steps = kernel_size if stride is None else stride
    return core.max_pool2d(self, kernel_size, steps, padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    self: Tensor,
    kernel_size: list[int],
    stride: list[int] | None,
    padding: list[int],
    dilation: list[int],
    ceil_mode: bool,
    return_indices: bool,
) -> tuple[Tensor, Tensor]:
    """Return the greatest element of each window, and its index."""
    steps = kernel_size if stride is None else stride
    return core.max_pool2d_with_indices(
        self, kernel_size, steps, padding, dilation, ceil_mode
    )


def true_places(condition: Tensor) -> list[Tensor]:
    """Return the indices of true elements, one tensor for each dimension."""
    if condition.dim() == 0:
        condition = condition.reshape([1])
    return condition.nonzero().unbind(1)


def places(self: Tensor, as_tuple: bool) -> list[Tensor]:
    """Return the indices of nonzero elements, one tensor for each dimension."""
    return true_places(self)


def rows_of_places(self: Tensor, as_tuple: bool) -> Tensor:
    """Return the indices of nonzero elements, one per row."""
    return self.nonzero()


def rounded(self: Tensor, decimals: int) -> Tensor:
    """Round to a number of decimals, and ties to even."""
    if decimals == 0:
        return self.round()
    if not self.is_floating_point():
        raise TypeError("`round` to decimals takes floating-point dtypes")
    scale = 10.0 ** float(abs(decimals))
    if decimals > 0:
        return (self * scale).round() / scale
    return (self / scale).round() * scale


def rounded_in_place(self: Tensor, decimals: int) -> Tensor:
    """Round to a number of decimals, in place."""
    return self.copy_(rounded(self, decimals))


def masked_fill(self: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """Write a 0-dim tensor to the elements where the mask is true."""
    if value.dim() > 0:
        raise ValueError(
            "`masked_fill` takes a number, or a tensor without dimensions, not one of "
            + str(value.dim())
        )
    if value.is_complex() and not self.is_complex():
        raise ValueError("`masked_fill` of real elements takes a real number")
    return core.where(mask, value.to(dtype=self.dtype), self).contiguous()


def masked_fill_in_place(self: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """Write a 0-dim tensor where the mask is true, in place."""
    return self.copy_(masked_fill(self, mask, value))


def clamp_above(self: Tensor, min: Tensor, max: Number) -> Tensor:  # noqa: A002  # the schema's names
    """Limit every element to a range from a tensor to a number."""
    return self.clamp(min=min).clamp(max=max)


def clamp_below(self: Tensor, min: Number, max: Tensor) -> Tensor:  # noqa: A002  # the schema's names
    """Limit every element to a range from a number to a tensor."""
    return self.clamp(min=min).clamp(max=max)


def scatter_joined(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str
) -> Tensor:
    """Return the elements with `src` added, or multiplied, at the index."""
    if reduce == "add":
        return self.scatter_add(dim, index, src)
    if reduce != "multiply":
        raise ValueError("`reduce` is 'add' or 'multiply', not " + reduce)
    if index.dim() == 0:
        return core.scatter(self, dim, index, self.gather(dim, index) * src)
    axis = dim + index.dim() if dim < 0 else dim
    for at in range(index.dim()):
        if at != axis:
            src = src.narrow(at, 0, index.size(at))
    result = self.clone()
    # One place of the index after the other: within one place, targets are distinct.
    for place in range(index.size(axis)):
        targets = index.narrow(axis, place, 1)
        factor = src.narrow(axis, place, 1)
        product = result.gather(axis, targets) * factor
        result = core.scatter(result, axis, targets, product)
    return result


def scatter_joined_number(
    self: Tensor, dim: int, index: Tensor, src: Number, reduce: str
) -> Tensor:
    """Return the elements with a number added, or multiplied, at the index."""
    numbers = core.full(index.shape, src, dtype=self.dtype, device=self.device)
    return scatter_joined(self, dim, index, numbers, reduce)


def scatter_joined_in_place(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str
) -> Tensor:
    """Add to, or multiply, the elements at the index, in place."""
    return self.copy_(scatter_joined(self, dim, index, src, reduce))


def scatter_joined_number_in_place(
    self: Tensor, dim: int, index: Tensor, src: Number, reduce: str
) -> Tensor:
    """Add a number to, or multiply by it, the elements at the index, in place."""
    return self.copy_(scatter_joined_number(self, dim, index, src, reduce))


def bernoulli_in_place(self: Tensor, p: Tensor) -> Tensor:
    """Fill with 1 and 0; `p` has the probabilities of 1."""
    return self.copy_(core.bernoulli(p.expand(self.shape)))


def norm(
    self: Tensor, p: str, dim: list[int] | None, keepdim: bool, dtype: int | None
) -> Tensor:
    """Return the norm of vectors; `p` is "fro", which is 2."""
    if p != "fro":
        raise ValueError("`p` is 'fro', or a number, not " + p)
    return core.norm(self, 2, dim, keepdim, dtype=dtype)


def searchsorted(
    sorted_sequence: Tensor,
    self: Number,
    out_int32: bool,
    right: bool,
    side: str | None,
    sorter: Tensor | None,
) -> Tensor:
    """Return the insertion point of a number in a sorted line."""
    device = sorted_sequence.device
    if sorted_sequence.is_floating_point():
        number = core.full([], self, dtype=sorted_sequence.dtype, device=device)
    else:
        number = core.full([], self, device=device)
    return core.searchsorted(
        sorted_sequence,
        number,
        out_int32=out_int32,
        right=right,
        side=side,
        sorter=sorter,
    )


def _holds_indices(tensor: Tensor) -> bool:
    return not (
        tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == boolean
    )


def embedding(weight: Tensor, indices: Tensor, padding_idx: int | None) -> Tensor:
    """Return the rows of a table by index; the arguments may be in either order."""
    place = -1 if padding_idx is None else padding_idx
    if _holds_indices(weight) and not _holds_indices(indices):
        if padding_idx is not None and padding_idx < 0:
            place += indices.size(0)
        return core.embedding(indices, weight, place)
    return core.embedding(weight, indices, place)


def unique(
    self: Tensor,
    sorted: bool,  # noqa: A002  # the schema's name
    return_inverse: bool,
    return_counts: bool,
    dim: int | None,
) -> Tensor:
    """Return the distinct elements, or slices along `dim`, in ascending order."""
    return core._unique(self, False, False, dim)[0]


def unique_inverse(
    self: Tensor,
    sorted: bool,  # noqa: A002  # the schema's name
    return_inverse: bool,
    return_counts: bool,
    dim: int | None,
) -> tuple[Tensor, Tensor]:
    """Return `unique`, and the index of each element among them."""
    values, inverse, _ = core._unique(self, True, False, dim)
    return values, inverse


def unique_counts(
    self: Tensor,
    sorted: bool,  # noqa: A002  # the schema's name
    return_inverse: bool,
    return_counts: bool,
    dim: int | None,
) -> tuple[Tensor, Tensor]:
    """Return `unique`, and the count of each of them."""
    values, _, counts = core._unique(self, False, True, dim)
    return values, counts


def unique_both(
    self: Tensor,
    sorted: bool,  # noqa: A002  # the schema's name
    return_inverse: bool,
    return_counts: bool,
    dim: int | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `unique`, the index of each element among them, and their counts."""
    return core._unique(self, True, True, dim)


class ProgramForm(NamedTuple):
    """A form of a call: its schema, and the function that is compiled.

    `constants` has the arguments that are known when a call is compiled.
    """

    schema: str
    python: Callable[..., Any]
    constants: Mapping[str, Any] = MappingProxyType({})


_DEVIATION = "(Tensor self, int[1]? dim=None, bool unbiased=True, bool keepdim=False)"


def _deviation(
    name: str, returned: str, of_all: Callable[..., Any], along: Callable[..., Any]
) -> tuple[ProgramForm, ...]:
    """Return the forms of `unbiased`: of all elements, and along dimensions."""
    return (
        ProgramForm(f"{name}(Tensor self, bool unbiased) -> {returned}", of_all),
        ProgramForm(f"{name}{_DEVIATION} -> {returned}", along),
    )


_UNIQUE = (
    "unique(Tensor self, bool sorted=True, bool return_inverse=False, "
    "bool return_counts=False, int? dim=None) -> "
)
_POOL = (
    "max_pool2d(Tensor self, int[2] kernel_size, int[2]? stride=None, "
    "int[2] padding=0, int[2] dilation=1, bool ceil_mode=False, *, "
    "bool return_indices=False) -> "
)
_SCATTER = "(Tensor self, int dim, Tensor index, {} src, *, str reduce) -> Tensor"


def _convolution(name: str, dims: int, function: Callable[..., Any]) -> ProgramForm:
    return ProgramForm(
        f"{name}(Tensor input, Tensor weight, Tensor? bias=None, "
        f"int[{dims}] stride=1, str padding='valid', int[{dims}] dilation=1, "
        "int groups=1) -> Tensor",
        function,
    )


def _unique(inverse: bool, counts: bool, function: Callable[..., Any]) -> ProgramForm:
    results = ", ".join(["Tensor"] * (1 + inverse + counts))
    returned = f"({results})" if inverse or counts else results
    constants = {"return_inverse": inverse, "return_counts": counts}
    return ProgramForm(f"{_UNIQUE}{returned}", function, constants)


def quantile(
    self: Tensor, q: float, dim: int | None, keepdim: bool, interpolation: str
) -> Tensor:
    """Return the elements at a fraction of sorted lines."""
    at = core.full([], q, dtype=self.dtype, device=self.device)
    return core.quantile(self, at, dim, keepdim, interpolation=interpolation)


def tensordot(a: Tensor, b: Tensor, dims: int) -> Tensor:
    """Return the sums of products over the last dims of `a` and the first of `b`."""
    if dims < 0 or dims > a.dim() or dims > b.dim():
        raise ValueError(
            "`tensordot` takes a number of dimensions that both tensors have, not "
            + str(dims)
        )
    first = [each for each in range(dims)]  # noqa: C416  # programs have no `range` here
    return core.tensordot(a, b, [each - dims for each in range(dims)], first)


def tensordot_along(a: Tensor, b: Tensor, dims: list[list[int]]) -> Tensor:
    """Return the sums of products over two lists of dimensions."""
    if len(dims) != 2:
        raise ValueError(
            "`tensordot` takes two lists of dimensions, not " + str(len(dims))
        )
    return core.tensordot(a, b, dims[0], dims[1])


# Name -> the forms of calls that the operator of the name does not take.
FORMS: dict[str, tuple[ProgramForm, ...]] = {
    "var": _deviation("var", "Tensor", var_of_all, var),
    "std": _deviation("std", "Tensor", std_of_all, std),
    "var_mean": _deviation("var_mean", "(Tensor, Tensor)", var_mean_of_all, var_mean),
    "std_mean": _deviation("std_mean", "(Tensor, Tensor)", std_mean_of_all, std_mean),
    "dropout": (
        ProgramForm(
            "dropout(Tensor input, float p=0.5, bool train=True, bool inplace=False, "
            "*, bool? training=None) -> Tensor",
            dropout,
        ),
    ),
    "conv1d": (_convolution("conv1d", 1, conv1d),),
    "conv2d": (_convolution("conv2d", 2, conv2d),),
    "max_pool2d": (
        ProgramForm(f"{_POOL}Tensor", max_pool2d, {"return_indices": False}),
        ProgramForm(
            f"{_POOL}(Tensor, Tensor)",
            max_pool2d_with_indices,
            {"return_indices": True},
        ),
    ),
    "where": (ProgramForm("where(Tensor condition) -> Tensor[]", true_places),),
    "nonzero": (
        ProgramForm(
            "nonzero(Tensor self, *, bool as_tuple) -> Tensor",
            rows_of_places,
            {"as_tuple": False},
        ),
        ProgramForm(
            "nonzero(Tensor self, *, bool as_tuple) -> Tensor[]",
            places,
            {"as_tuple": True},
        ),
    ),
    "round": (ProgramForm("round(Tensor self, *, int decimals) -> Tensor", rounded),),
    "round_": (
        ProgramForm("round_(Tensor self, *, int decimals) -> Tensor", rounded_in_place),
    ),
    "masked_fill": (
        ProgramForm(
            "masked_fill(Tensor self, Tensor mask, Tensor value) -> Tensor",
            masked_fill,
        ),
    ),
    "masked_fill_": (
        ProgramForm(
            "masked_fill_(Tensor self, Tensor mask, Tensor value) -> Tensor",
            masked_fill_in_place,
        ),
    ),
    "clamp": (
        ProgramForm(
            "clamp(Tensor self, Tensor min, Scalar max) -> Tensor", clamp_above
        ),
        ProgramForm(
            "clamp(Tensor self, Scalar min, Tensor max) -> Tensor", clamp_below
        ),
    ),
    "scatter": (
        ProgramForm(f"scatter{_SCATTER.format('Tensor')}", scatter_joined),
        ProgramForm(f"scatter{_SCATTER.format('Scalar')}", scatter_joined_number),
    ),
    "scatter_": (
        ProgramForm(f"scatter_{_SCATTER.format('Tensor')}", scatter_joined_in_place),
        ProgramForm(
            f"scatter_{_SCATTER.format('Scalar')}", scatter_joined_number_in_place
        ),
    ),
    "bernoulli_": (
        ProgramForm("bernoulli_(Tensor self, Tensor p) -> Tensor", bernoulli_in_place),
    ),
    "norm": (
        ProgramForm(
            "norm(Tensor self, str p='fro', int[1]? dim=None, bool keepdim=False, *, "
            "ScalarType? dtype=None) -> Tensor",
            norm,
        ),
    ),
    "quantile": (
        ProgramForm(
            "quantile(Tensor self, float q, int? dim=None, bool keepdim=False, *, "
            "str interpolation='linear') -> Tensor",
            quantile,
        ),
    ),
    "tensordot": (
        ProgramForm("tensordot(Tensor a, Tensor b, int dims=2) -> Tensor", tensordot),
        ProgramForm(
            "tensordot(Tensor a, Tensor b, int[][] dims) -> Tensor", tensordot_along
        ),
    ),
    "searchsorted": (
        ProgramForm(
            "searchsorted(Tensor sorted_sequence, Scalar self, *, "
            "bool out_int32=False, bool right=False, str? side=None, "
            "Tensor? sorter=None) -> Tensor",
            searchsorted,
        ),
    ),
    "embedding": (
        ProgramForm(
            "embedding(Tensor weight, Tensor indices, int? padding_idx=None) -> Tensor",
            embedding,
        ),
    ),
    "unique": (
        _unique(False, False, unique),
        _unique(True, False, unique_inverse),
        _unique(False, True, unique_counts),
        _unique(True, True, unique_both),
    ),
}
# Their forms are tried first: the operator takes its arguments in one order only.
FIRST = frozenset({"embedding"})
