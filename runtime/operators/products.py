"""Products, powers and blends, made of operators that there are.

True only here: contractions by `bmm`, powers and logarithms of sums.  All of these are
composites: every backend and every gradient has them by what they call.
"""

import string
from collections.abc import Sequence
from math import inf
from typing import Any

from runtime.errors.operands import WrongOption
from runtime.operators.agreement import misfit, one_dtype, require_ndim
from runtime.operators.call import core
from runtime.operators.plan import (
    ALL,
    BOOL,
    COMPLEXES,
    FLOAT32,
    FLOATS,
    HALVES,
    INT64,
    INTEGERS,
    NUMBERS,
    one_dim,
    require_dtype,
)
from runtime.operators.structured import Written, composite
from runtime.schema.codes import DType
from runtime.tensors.tensor import Tensor


@composite("outer(Tensor self, Tensor vec2) -> Tensor", out=True)
def outer(self: Tensor, vec2: Tensor) -> Any:
    """The products of each element of one line with each of another."""
    require_ndim("core::outer", ("self", self), 1)
    require_ndim("core::outer", ("vec2", vec2), 1)
    return core.mul(core.unsqueeze(self, 1), vec2)


@composite("mv(Tensor self, Tensor vec) -> Tensor", autocast="low", out=True)
def mv(self: Tensor, vec: Tensor) -> Any:
    """The product of a matrix and a vector."""
    require_ndim("core::mv", ("self", self), 2)
    require_ndim("core::mv", ("vec", vec), 1)
    return core.squeeze(core.mm(self, core.unsqueeze(vec, 1)), [1])


_ADDED = "*, Scalar beta=1, Scalar alpha=1"


def _added(call: str, self: Tensor, product: Any, beta: Any, alpha: Any) -> Any:
    """`beta * self + alpha * product`; of a beta of 0 nothing is taken.

    Of integers the factors are integers, too.
    """
    one_dtype(call, ALL, "every dtype", ("self", self), ("the product", product))
    if self.dtype in INTEGERS:
        beta, alpha = int(beta), int(alpha)
    if alpha != 1:
        product = core.mul(product, alpha)
    if not beta:
        return product
    own = self if beta == 1 else core.mul(self, beta)
    return core.add(core.expand(own, product.shape), product)


@composite(
    f"addmm(Tensor self, Tensor mat1, Tensor mat2, {_ADDED}) -> Tensor",
    wide=True,
    autocast="low",
    in_place=True,
    out=True,
)
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any) -> Any:
    """A matrix and the product of two matrices, added."""
    return _added("core::addmm", self, core.mm(mat1, mat2), beta, alpha)


@composite(
    f"addmv(Tensor self, Tensor mat, Tensor vec, {_ADDED}) -> Tensor",
    wide=True,
    autocast="low",
    in_place=True,
    out=True,
)
def addmv(self: Tensor, mat: Tensor, vec: Tensor, beta: Any, alpha: Any) -> Any:
    """A vector and the product of a matrix and a vector, added."""
    return _added("core::addmv", self, core.mv(mat, vec), beta, alpha)


@composite(
    f"baddbmm(Tensor self, Tensor batch1, Tensor batch2, {_ADDED}) -> Tensor",
    wide=True,
    autocast="low",
    in_place=True,
    out=True,
)
def baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any) -> Any:
    """Matrices and the products of two batches of matrices, added."""
    return _added("core::baddbmm", self, core.bmm(batch1, batch2), beta, alpha)


_INEXACT = "floating-point and complex dtypes"
_SCALED = "Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1"


@composite(
    f"addcmul({_SCALED}) -> Tensor",
    takes=NUMBERS,
    wide=True,
    autocast="widest",
    in_place=True,
    out=True,
)
def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, value: Any) -> Any:
    """`self + value * tensor1 * tensor2`."""
    return core.add(self, core.mul(tensor1, tensor2), alpha=value)


@composite(
    f"addcdiv({_SCALED}) -> Tensor",
    takes=FLOATS | COMPLEXES,
    wide=True,
    autocast="widest",
    in_place=True,
    out=True,
)
def addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, value: Any) -> Any:
    """`self + value * tensor1 / tensor2`."""
    return core.add(self, core.div(tensor1, tensor2), alpha=value)


@composite(
    "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
    takes=FLOATS | COMPLEXES,
    wide=True,
    in_place=True,
    out=True,
)
def lerp_by_number(self: Tensor, end: Tensor, weight: Any) -> Any:
    """From one tensor to another, by a part of the way."""
    one_dtype("core::lerp", FLOATS | COMPLEXES, _INEXACT, ("self", self), ("end", end))
    apart = core.sub(end, self)
    # From the nearer end, so that at either end it is exactly that one.
    if abs(weight) < 0.5:
        return core.add(self, core.mul(apart, weight))
    return core.sub(end, core.mul(apart, 1 - weight))


@composite(
    "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
    takes=FLOATS | COMPLEXES,
    wide=True,
    in_place=True,
    out=True,
)
def lerp_by_tensor(self: Tensor, end: Tensor, weight: Tensor) -> Any:
    """From one tensor to another, by a part of the way for each element."""
    one_dtype("core::lerp", FLOATS | COMPLEXES, _INEXACT, ("self", self), ("end", end))
    apart = core.sub(end, self)
    rest = core.add(core.neg(weight), 1)
    return core.where(
        core.lt(core.abs(weight), 0.5),
        core.add(self, core.mul(apart, weight)),
        core.sub(end, core.mul(apart, rest)),
    )


@composite(
    "norm(Tensor self, Scalar? p=None, int[1]? dim=None, bool keepdim=False, *,"
    " ScalarType? dtype=None) -> Tensor",
    takes=FLOATS | COMPLEXES,
    autocast="float32",
    out=True,
)
def norm(
    self: Tensor, p: Any, dim: Sequence[int] | None, keepdim: bool, dtype: DType | None
) -> Any:
    """The length of vectors: the p-th root of the sum of the p-th powers."""
    if dtype is not None:
        fits = COMPLEXES if self.dtype.is_complex else FLOATS
        require_dtype("core::norm", "dtype", dtype, fits, ", ".join(map(str, fits)))
        self = core.to(self, dtype=dtype)
    if self.dtype in HALVES:
        wide = core.norm(core.to(self, dtype=FLOAT32), p, dim, keepdim)
        return core.to(wide, dtype=self.dtype)
    dims, order = list(dim or ()), 2.0 if p is None else float(p)
    if order == 2:
        # Without the sizes, whose slopes end at zero.
        parts = core.view_as_real(self) if self.dtype.is_complex else self
        every = list(range(len(self.shape)))
        along = [one_dim("core::norm", each, self.shape) for each in dims] or every
        along = along if self.shape else []
        ends = [len(self.shape)] if self.dtype.is_complex else []
        over = [*along, *ends]
        total = (
            core.sum(core.square(parts), over, keepdim) if over else core.square(parts)
        )
        return _rooted(core.squeeze(total, [-1]) if keepdim and ends else total)
    sizes = core.abs(self)
    if order == inf:
        return core.amax(sizes, dims, keepdim)
    if order == -inf:
        return core.amin(sizes, dims, keepdim)
    if order == 0:
        # A count, of which the gradient is 0.
        return core.sum(core.masked_fill(sizes, core.ne(sizes, 0), 1), dims, keepdim)
    if order == 1:
        return core.sum(sizes, dims, keepdim)
    return _rooted(core.sum(core.pow(sizes, order), dims, keepdim), order)


def _rooted(total: Any, order: float = 2.0) -> Any:
    """The root of sums of powers; at zero a length has no slope, and the gradient 0."""
    none = core.eq(total, 0)
    safe = core.masked_fill(total, none, 1)
    root = core.sqrt(safe) if order == 2 else core.pow(safe, 1 / order)
    return core.masked_fill(root, none, 0 if order > 0 else inf)


@composite(
    "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    wide=True,
    out=True,
)
def logsumexp(self: Tensor, dim: Sequence[int], keepdim: bool) -> Any:
    """The logarithm of the sum of exponentials, without overflow."""
    if self.dtype in INTEGERS | {BOOL}:
        self = core.to(self, dtype=FLOAT32)
    dims = list(dim) or list(range(len(self.shape)))
    if not self.numel():
        return core.log(core.sum(core.exp(self), dims, keepdim))
    real = core.real(self) if self.dtype.is_complex else self
    most = core.detach(core.amax(real, dims, True))
    most = core.masked_fill(most, core.eq(core.abs(most), inf), 0)
    total = core.log(core.sum(core.exp(core.sub(self, most)), dims, keepdim))
    return core.add(total, most if keepdim else core.reshape(most, total.shape))


@composite(
    "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    autocast="float32",
    in_place=True,
    out=True,
)
def cumprod(self: Tensor, dim: int, dtype: DType | None) -> Any:
    """The products up to each place of a dimension."""
    if dtype is None and self.dtype in INTEGERS | {BOOL}:
        dtype = INT64
    found = self if dtype is None else core.to(self, dtype=dtype)
    at = one_dim("core::cumprod", dim, self.shape)
    size, step = (self.shape or (1,))[at], 1
    # Each by the one `step` before it, which doubles: Hillis and Steele, 1986.
    while step < size:
        first = core.slice(found, at, 0, step)
        rest = core.slice(found, at, step, size)
        moved = core.slice(found, at, 0, size - step)
        found = core.cat([first, core.mul(rest, moved)], at)
        step *= 2
    return core.clone(found) if found is self else found


@composite("einsum(str equation, Tensor[] tensors) -> Tensor", only="function")
def einsum(equation: str, tensors: Sequence[Tensor]) -> Any:
    """Sums of products by Einstein's convention: one letter for each dimension."""
    inputs, output = _read(equation, [len(each.shape) for each in tensors])
    sizes: dict[str, int] = {}
    parts: list[tuple[str, Any]] = []
    for letters, tensor in zip(inputs, tensors, strict=True):
        for letter, size in zip(letters, tensor.shape, strict=True):
            known = sizes.setdefault(letter, size)
            if known == 1:
                sizes[letter] = size
            elif size not in (1, known):
                raise misfit(
                    "core::einsum",
                    f"`{letter}` is {known} and {size}",
                    "one size for each letter, or 1",
                    *((f"operand {n}", t) for n, t in enumerate(tensors)),
                )
        parts.append(_one_each(letters, tensor))
    letters, found = parts[0]
    for number, (others, other) in enumerate(parts[1:], 1):
        later = {
            *output,
            *(letter for rest, _ in parts[number + 1 :] for letter in rest),
        }
        letters, found = _pair(letters, found, others, other, later)
    if len(tensors) == 1:
        # A result of its own, not a view of the operand.
        found = core.clone(found)
    dropped = [at for at, letter in enumerate(letters) if letter not in output]
    if dropped:
        found = core.sum(found, dropped)
        letters = "".join(letter for letter in letters if letter in output)
    return core.permute(found, [letters.index(letter) for letter in output])


# Stand for the dimensions of an ellipsis: no letters that an equation may have.
_MORE = [chr(0x3B1 + number) for number in range(24)]


def _read(equation: str, ndims: Sequence[int]) -> tuple[list[str], str]:
    """The letters of every operand and of the result, ellipses spelled out.

    Raises `WrongOption`.
    """

    def refuse(fits: str) -> WrongOption:
        return WrongOption(
            operator="core::einsum",
            argument="equation",
            found=repr(equation),
            fits=fits,
        )

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
    # Ellipses broadcast: their last dimensions belong together.
    shown = _MORE[:most]
    spelled = [
        text.replace("...", "".join(shown[most - more :]), 1) for text, more in read
    ]
    if not arrow:
        every = "".join(inputs).replace(".", "")
        single = sorted(letter for letter in set(every) if every.count(letter) == 1)
        return spelled, "".join([*shown, *single])
    bare = result.replace("...", "", 1)
    known = set("".join(spelled))
    if (
        len(set(bare)) != len(bare)
        or not set(bare) <= known
        or not set(bare) <= set(string.ascii_letters)
    ):
        raise refuse("letters of the operands behind `->`, each at most once")
    # Without an ellipsis in the result its dimensions are summed.
    return spelled, result.replace("...", "".join(shown), 1)


def _one_each(letters: str, tensor: Any) -> tuple[str, Any]:
    """Each letter once: the diagonals of those that stand twice."""
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
    """The products of two operands, summed over what nobody asks for later."""
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
        return core.reshape(turned, [_product(sizes, group) for group in groups])

    product = core.bmm(
        matrices(left, one, (batch, mine, summed)),
        matrices(right, two, (batch, summed, other)),
    )
    letters = "".join([*batch, *mine, *other])
    return letters, core.reshape(product, [sizes[letter] for letter in letters])


def _without(letters: str, tensor: Any, asked: set[str]) -> tuple[Any, str]:
    """The operand summed over what stands nowhere else."""
    alone = [at for at, letter in enumerate(letters) if letter not in asked]
    if not alone:
        return tensor, letters
    kept = "".join(letter for letter in letters if letter in asked)
    return core.sum(tensor, alone), kept


def _product(sizes: dict[str, int], letters: Sequence[str]) -> int:
    found = 1
    for letter in letters:
        found *= sizes[letter]
    return found


OPERATORS: tuple[Written, ...] = (
    *(outer, mv, addmm, addmv, baddbmm, addcmul, addcdiv, lerp_by_number),
    *(lerp_by_tensor, norm, logsumexp, cumprod, einsum),
)
