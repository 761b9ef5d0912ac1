"""Products of matrices and vectors, and sums of products.

`mm`, `bmm`, `dot` and `linear` have kernels: they require equal dtypes, and the first
three exactly their number of dimensions.  All others combine these with views, so that
they need no derivatives of their own: `matmul` accepts every shape that the Array API
defines.
"""

import string
from collections.abc import Sequence
from math import prod
from typing import Any

from everyorder.runtime.errors.tensor import ShapesDoNotFit, WrongOption
from everyorder.runtime.operators.declare.allocate_outputs import as_rows
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.declare.plan import (
    ALL,
    BOOL,
    FLOAT32,
    FLOAT64,
    NUMBERS,
    CallPlan,
    KernelTable,
    NamedTensor,
    bad_option,
    bad_shapes,
    computing,
    distinct_dims,
    one_dtype,
    require_ndim,
    require_shape,
    same_device,
)
from everyorder.runtime.operators.declare.structured import (
    Structured,
    Unstructured,
    composite,
)
from everyorder.runtime.operators.gather_scatter import number_in
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.tensors.shape import broadcast_shapes
from everyorder.runtime.tensors.tensor import Tensor

_FITS = "integers, floating-point and complex numbers"


def _operands(ndim: int, self: NamedTensor, other: NamedTensor) -> tuple[Device, DType]:
    """Return the one device and dtype of two operands of `ndim` dimensions."""
    device = same_device(self[1], other[1])
    dtype = one_dtype(NUMBERS, _FITS, self, other)
    require_ndim(self, ndim)
    require_ndim(other, ndim)
    return device, dtype


def plan_mm(self: Tensor, mat2: Tensor) -> CallPlan:
    """Return the plan of a product (n, k) by (k, m)."""
    named = ("self", self), ("mat2", mat2)
    device, dtype = _operands(2, *named)
    (rows, inner), (depth, columns) = self.shape, mat2.shape
    if inner != depth:
        raise _inner(*named, inner, depth)
    outputs = (((rows, columns), dtype),)
    return CallPlan(outputs, device, (self, mat2), computing(dtype))


def plan_bmm(self: Tensor, mat2: Tensor) -> CallPlan:
    """Return the plan of products (b, n, k) by (b, k, m), matrix by matrix."""
    named = ("self", self), ("mat2", mat2)
    device, dtype = _operands(3, *named)
    (batch, rows, inner), (other, depth, columns) = self.shape, mat2.shape
    if batch != other:
        raise bad_shapes(
            f"they hold {batch} and {other} matrices",
            "equally many matrices; matmul(self, mat2) repeats where one is enough",
            *named,
        )
    if inner != depth:
        raise _inner(*named, inner, depth)
    outputs = (((batch, rows, columns), dtype),)
    return CallPlan(outputs, device, (self, mat2), computing(dtype))


def plan_dot(self: Tensor, other: Tensor) -> CallPlan:
    """Return the plan of the inner product of (k) and (k)."""
    named = ("self", self), ("other", other)
    device, dtype = _operands(1, *named)
    if self.shape != other.shape:
        fits = f"length {self.shape[0]} for both"
        raise bad_shapes("they are not equally long", fits, *named)
    return CallPlan((((), dtype),), device, (self, other), computing(dtype))


def _inner(
    first: tuple[str, Tensor],
    second: tuple[str, Tensor],
    columns: int,
    rows: int,
) -> ShapesDoNotFit:
    return bad_shapes(
        f"{first[0]} has {columns} columns and {second[0]} has {rows} rows",
        f"{second[0]} with {columns} rows, or {first[0]} with {rows} columns",
        first,
        second,
    )


def matmul(self: Tensor, other: Tensor) -> Tensor:
    """Return the product of matrices, vectors, or batches of them.

    It sums over the last dimension of `self` and the last but one of `other`.  A vector
    is a row on the left and a column on the right, and its dimension is removed from
    the result; dimensions before the matrices broadcast.

    Raises:
        ShapesDoNotFit: the sizes do not match or do not broadcast.
    """
    left, right = self.shape, other.shape
    named = (("self", self), ("other", other))
    if not left or not right:
        raise bad_shapes(
            "one of them is 0-dimensional", "at least one dimension", *named
        )
    depth = right[0] if len(right) == 1 else right[-2]
    if left[-1] != depth:
        raise _inner(*named, left[-1], depth)
    result: Tensor
    if len(left) == 1 and len(right) == 1:
        result = core.dot(self, other)
    elif len(left) == 1:
        result = core.squeeze(matmul(core.unsqueeze(self, 0), other), [-2])
    elif len(right) == 1 and len(left) == 2:
        result = core.mv(self, other)
    elif len(right) == 1:
        result = core.squeeze(matmul(self, core.unsqueeze(other, 1)), [-1])
    elif len(left) == 2 and len(right) == 2:
        result = core.mm(self, other)
    elif len(right) == 2:
        # One matrix for all rows: the leading dimensions are rows, too.
        rows = prod(left[:-1])
        flat = core.mm(core.reshape(self, [rows, depth]), other)
        result = core._unsafe_view(flat, [*left[:-1], right[-1]])
    else:
        result = _batches(self, other)
    return result


def _batches(self: Tensor, other: Tensor) -> Tensor:
    left, right = self.shape, other.shape
    try:
        batch = broadcast_shapes(left[:-2], right[:-2])
    except ValueError:
        raise bad_shapes(
            f"the batches {left[:-2]} and {right[:-2]} do not broadcast",
            "equal sizes in front of the matrices, or 1 where they differ",
            ("self", self),
            ("other", other),
        ) from None
    count = prod(batch)
    first = core.reshape(core.expand(self, [*batch, *left[-2:]]), [count, *left[-2:]])
    second = core.reshape(
        core.expand(other, [*batch, *right[-2:]]), [count, *right[-2:]]
    )
    product: Tensor = core.bmm(first, second)
    result: Tensor = core._unsafe_view(product, [*batch, left[-2], right[-1]])
    return result


def plan_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> CallPlan:
    """Return the plan of (..., in) by (out, in), plus (out)."""
    device = same_device(x, weight, bias)
    dtype = one_dtype(
        NUMBERS,
        "integers, floating-point and complex numbers",
        ("input", x),
        ("weight", weight),
        ("bias", bias),
    )
    require_ndim(("weight", weight), 2)
    features, depth = weight.shape
    if not x.shape or x.shape[-1] != depth:
        raise bad_shapes(
            "the last dimension of input is not that of weight",
            f"input of shape (..., {depth})",
            ("input", x),
            ("weight", weight),
        )
    require_shape(("bias", bias), (features,))
    outputs = (((*x.shape[:-1], features), dtype),)
    kernel = None if len(x.shape) == 2 else _linear_rows
    arguments = (x, weight, bias)
    return CallPlan(outputs, device, arguments, computing(dtype), kernel=kernel)


def _linear_rows(
    table: KernelTable,
    out: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Any,
) -> None:
    table["linear"](as_rows(table, out), as_rows(table, x), weight, bias)


@composite("outer(Tensor self, Tensor vec2) -> Tensor", out=True)
def outer(self: Tensor, vec2: Tensor) -> Any:
    """Return the products of each element of one line with each of another."""
    require_ndim(("self", self), 1)
    require_ndim(("vec2", vec2), 1)
    return core.mul(core.reshape(self, [-1, 1]), vec2)


@composite(
    "mv(Tensor self, Tensor vec) -> Tensor", explicit=True, autocast="low", out=True
)
def mv(self: Tensor, vec: Tensor) -> Any:
    """Return the product of a matrix and a vector."""
    require_ndim(("self", self), 2)
    require_ndim(("vec", vec), 1)
    return core._unsafe_view(core.mm(self, core.unsqueeze(vec, 1)), [self.shape[0]])


_ADDED = "*, Scalar beta=1, Scalar alpha=1"


def _added(self: Tensor, product: Any, beta: Any, alpha: Any) -> Any:
    """Return `beta * self + alpha * product`; a beta of 0 ignores `self`.

    The factors are numbers of the elements: truncated for integers, and not complex for
    real ones.
    """
    one_dtype(ALL, "every dtype", ("self", self), ("the product", product))
    if self.dtype is not BOOL:
        beta, alpha = (
            number_in(name, number, product.dtype)
            for name, number in (("beta", beta), ("alpha", alpha))
        )
    if alpha != 1:
        product = core.mul(product, alpha)
    if not beta:
        return product
    own = self if beta == 1 else core.mul(self, beta)
    return core.add(core.expand(own, product.shape), product)


@composite(
    f"addmm(Tensor self, Tensor mat1, Tensor mat2, {_ADDED}) -> Tensor",
    explicit=True,
    wide=True,
    autocast="low",
    in_place=True,
    out=True,
)
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any) -> Any:
    """Return the sum of a matrix and the product of two matrices."""
    return _added(self, core.mm(mat1, mat2), beta, alpha)


@composite(
    f"addmv(Tensor self, Tensor mat, Tensor vec, {_ADDED}) -> Tensor",
    wide=True,
    autocast="low",
    in_place=True,
    out=True,
)
def addmv(self: Tensor, mat: Tensor, vec: Tensor, beta: Any, alpha: Any) -> Any:
    """Return the sum of a vector and the product of a matrix and a vector."""
    return _added(self, core.mv(mat, vec), beta, alpha)


@composite(
    f"baddbmm(Tensor self, Tensor batch1, Tensor batch2, {_ADDED}) -> Tensor",
    wide=True,
    autocast="low",
    in_place=True,
    out=True,
)
def baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any) -> Any:
    """Return the sum of matrices and of products of two batches."""
    return _added(self, core.bmm(batch1, batch2), beta, alpha)


@composite(
    "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
    only="function",
    out=True,
)
def tensordot(
    self: Tensor, other: Tensor, dims_self: Sequence[int], dims_other: Sequence[int]
) -> Any:
    """Return the sums of products over pairs of dimensions of two tensors."""
    ours = distinct_dims(dims_self, self.shape)
    theirs = distinct_dims(dims_other, other.shape)
    pairs = list(zip(ours, theirs, strict=False))
    sizes = [(self.shape[one], other.shape[two]) for one, two in pairs]
    if len(ours) != len(theirs) or any(
        1 not in pair and pair[0] != pair[1] for pair in sizes
    ):
        raise bad_shapes(
            f"dimensions {list(dims_self)} and {list(dims_other)} differ",
            "pairs of dimensions of equal sizes, or of size 1",
            ("self", self),
            ("other", other),
        )
    for (one, two), (mine, its) in zip(pairs, sizes, strict=True):
        # The product with the one place of a dimension is that with its sum.
        if mine != its and mine == 1:
            other = core.sum(other, [two], True, dtype=other.dtype)
        elif mine != its:
            self = core.sum(self, [one], True, dtype=self.dtype)
    free = [dim for dim in range(len(self.shape)) if dim not in ours]
    rest = [dim for dim in range(len(other.shape)) if dim not in theirs]
    count = prod(self.shape[dim] for dim in ours)
    shape = [self.shape[dim] for dim in free], [other.shape[dim] for dim in rest]
    left = core.reshape(core.permute(self, [*free, *ours]), [prod(shape[0]), count])
    right = core.reshape(core.permute(other, [*theirs, *rest]), [count, prod(shape[1])])
    return core.reshape(core.mm(left, right), [*shape[0], *shape[1]])


@composite(
    "cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor",
    only="function",
    takes=frozenset({FLOAT32, FLOAT64}),
)
def cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None) -> Any:
    """Return the distances of each row of a batch from each row of another."""
    if p < 0:
        raise bad_option("p", str(p), "0 and more")
    if compute_mode not in (None, 0, 1, 2):
        raise bad_option("compute_mode", str(compute_mode), "0, 1, 2 or None")
    for name, each in (("x1", x1), ("x2", x2)):
        if len(each.shape) < 2:
            raise bad_shapes(
                f"{name} has no rows", "2 dimensions or more", (name, each)
            )
    if x1.shape[-1] != x2.shape[-1]:
        raise bad_shapes("rows differ in size", "equal sizes", ("x1", x1), ("x2", x2))
    rows, others = x1.shape[-2], x2.shape[-2]
    count = max(x1.numel() * others, x2.numel() * rows, 1)
    # The differences of some rows at once: those of all are many times the result.
    step = rows if x1.is_meta else max(1, _MOST_AT_ONCE * rows // count)
    parts = []
    for first in range(0, max(rows, 1), max(step, 1)):
        some = core.slice(x1, -2, first, first + step) if step < rows else x1
        apart = core.sub(core.unsqueeze(some, -2), core.unsqueeze(x2, -3))
        # Rows without elements have the distance 0, as by any other order.
        order = p if x1.shape[-1] else 2
        parts.append(core.norm(apart, order, [-1]))
    return parts[0] if len(parts) == 1 else core.cat(parts, -2)


# Elements of the differences that are computed together: 32 MiB of float64.
_MOST_AT_ONCE = 1 << 22


@composite("einsum(str equation, Tensor[] tensors) -> Tensor", only="function")
def einsum(equation: str, tensors: Sequence[Tensor]) -> Any:
    """Return sums of products by Einstein's convention: one letter per dimension."""
    inputs, output = _read(equation, [len(each.shape) for each in tensors])
    sizes: dict[str, int] = {}
    parts: list[tuple[str, Any]] = []
    for letters, tensor in zip(inputs, tensors, strict=True):
        for letter, size in zip(letters, tensor.shape, strict=True):
            earlier = sizes.setdefault(letter, size)
            if earlier == 1:
                sizes[letter] = size
            elif size not in (1, earlier):
                raise bad_shapes(
                    f"`{letter}` is {earlier} and {size}",
                    "one size for each letter, or 1",
                    *((f"operand {n}", t) for n, t in enumerate(tensors)),
                )
        parts.append(_one_each(letters, tensor))
    letters, result = parts[0]
    for number, (others, other) in enumerate(parts[1:], 1):
        later = {
            *output,
            *(letter for rest, _ in parts[number + 1 :] for letter in rest),
        }
        letters, result = _pair(letters, result, others, other, later)
    if len(tensors) == 1:
        # A copy, not a view of the operand.
        result = core.clone(result)
    dropped = [at for at, letter in enumerate(letters) if letter not in output]
    if dropped:
        result = core.sum(result, dropped)
        letters = "".join(letter for letter in letters if letter in output)
    return core.permute(result, [letters.index(letter) for letter in output])


# Letters for the dimensions of an ellipsis, which an equation cannot contain.
_MORE = [chr(0x3B1 + number) for number in range(24)]


def _read(equation: str, ndims: Sequence[int]) -> tuple[list[str], str]:
    """Return the letters of every operand and of the result, with ellipses expanded.

    Raises:
        WrongOption: the equation is malformed or does not fit the operands.
    """

    def refuse(fits: str) -> WrongOption:
        return bad_option("equation", repr(equation), fits)

    written, arrow, result = equation.replace(" ", "").partition("->")
    inputs = written.split(",")
    if len(inputs) != len(ndims):
        raise refuse(f"{len(ndims)} operands, with a comma between each two")
    most, read = 0, []
    for text, ndim in zip(inputs, ndims, strict=True):
        bare = text.replace("...", "", 1)
        if not all(letter in string.ascii_letters for letter in bare):
            raise refuse("letters, one `...` in each operand, commas and one `->`")
        more = ndim - len(bare)
        if more < 0 or (more and "..." not in text):
            raise refuse(f"as many letters as dimensions: {text!r} has {ndim} of them")
        most = max(most, more)
        read.append((text, more))
    # Ellipses broadcast: their last dimensions are aligned.
    expanded_letters = _MORE[:most]
    spelled = [
        text.replace("...", "".join(expanded_letters[most - more :]), 1)
        for text, more in read
    ]
    if not arrow:
        every = "".join(inputs).replace(".", "")
        single = sorted(letter for letter in set(every) if every.count(letter) == 1)
        return spelled, "".join([*expanded_letters, *single])
    bare = result.replace("...", "", 1)
    letters = set("".join(spelled))
    if (
        len(set(bare)) != len(bare)
        or not set(bare) <= letters
        or not set(bare) <= set(string.ascii_letters)
    ):
        raise refuse("letters of the operands behind `->`, each at most once")
    # Without an ellipsis in the result, its dimensions are summed.
    return spelled, result.replace("...", "".join(expanded_letters), 1)


def _one_each(letters: str, tensor: Any) -> tuple[str, Any]:
    """Return the operand with each letter once: diagonals for repeated letters."""
    while len(set(letters)) < len(letters):
        letter = next(each for each in letters if letters.count(each) > 1)
        first = letters.index(letter)
        second = letters.index(letter, first + 1)
        tensor = core.diagonal(tensor, 0, first, second)
        rest = letters[:first] + letters[first + 1 : second] + letters[second + 1 :]
        letters = rest + letter
    return letters, tensor


def _pair(
    left: str, one: Any, right: str, two: Any, later: set[str]
) -> tuple[str, Any]:
    """Return the products of two operands, summed over letters not needed later."""
    one, left = _without(left, one, {*right, *later})
    two, right = _without(right, two, {*left, *later})
    both = [letter for letter in left if letter in right]
    batch = [letter for letter in both if letter in later]
    summed = [letter for letter in both if letter not in later]
    mine = [letter for letter in left if letter not in both]
    other = [letter for letter in right if letter not in both]
    sizes = {
        **dict(zip(right, two.shape, strict=True)),
        **{n: s for n, s in zip(left, one.shape, strict=True) if s != 1},
    }
    for letter in mine + both:
        sizes.setdefault(letter, 1)

    def matrices(letters: str, tensor: Any, groups: Sequence[list[str]]) -> Any:
        ordered = [letter for group in groups for letter in group]
        turned = core.permute(tensor, [letters.index(letter) for letter in ordered])
        turned = core.expand(turned, [sizes[letter] for letter in ordered])
        return core.reshape(
            turned, [prod(sizes[letter] for letter in group) for group in groups]
        )

    product = core.bmm(
        matrices(left, one, (batch, mine, summed)),
        matrices(right, two, (batch, summed, other)),
    )
    letters = "".join([*batch, *mine, *other])
    return letters, core.reshape(product, [sizes[letter] for letter in letters])


def _without(letters: str, tensor: Any, needed: set[str]) -> tuple[Any, str]:
    """Return the operand summed over the letters that occur nowhere else."""
    summed = [at for at, letter in enumerate(letters) if letter not in needed]
    if not summed:
        return tensor, letters
    remaining = "".join(letter for letter in letters if letter in needed)
    return core.sum(tensor, summed), remaining


OPERATORS: tuple[Structured | Unstructured, ...] = (
    Structured(
        "mm",
        "Tensor self, Tensor mat2",
        plan_mm,
        saves_plans=True,
        says="Return the product of two matrices.",
        autocast="low",
    ),
    Structured(
        "bmm",
        "Tensor self, Tensor mat2",
        plan_bmm,
        says="Return the products of two batches of matrices.",
        autocast="low",
    ),
    Structured(
        "dot",
        "Tensor self, Tensor other",
        plan_dot,
        says="Return the inner product of two vectors.",
        autocast="widest",
    ),
    Structured(
        "linear",
        "Tensor input, Tensor weight, Tensor? bias=None",
        plan_linear,
        out=False,
        saves_plans=True,
        says="Return `input @ weight.T + bias`.",
        autocast="low",
    ),
    composite("matmul(Tensor self, Tensor other) -> Tensor", autocast="low", out=True)(
        matmul
    ),
    *(outer, mv, addmm, addmv, baddbmm, einsum, tensordot, cdist),
)
