"""Products of matrices: mm, bmm, dot, and matmul, which is made of them.

True only here: which shapes go together.  The three that compute take equal dtypes and
exactly their number of dimensions; `matmul` takes every shape that the Array API names,
and brings it to one of the three by views, so that it needs no derivative of its own.
"""

from runtime.errors.operator import ShapesDoNotFit
from runtime.operators.agreement import computing, misfit, one_dtype, require_ndim
from runtime.operators.call import core
from runtime.operators.plan import NUMBERS, Plan, same_device
from runtime.operators.structured import Structured, Written, composed
from runtime.operators.targets import hand_over
from runtime.tensors.shape import broadcast_shapes
from runtime.tensors.tensor import Tensor

_FITS = "integers, floating-point and complex numbers"


def plan_mm(call: str, self: Tensor, mat2: Tensor) -> Plan:
    """(n, k) by (k, m)."""
    device = same_device(call, self, mat2)
    dtype = one_dtype(call, NUMBERS, _FITS, ("self", self), ("mat2", mat2))
    require_ndim(call, ("self", self), 2)
    require_ndim(call, ("mat2", mat2), 2)
    (rows, inner), (depth, columns) = self.shape, mat2.shape
    if inner != depth:
        raise _inner(call, ("self", self), ("mat2", mat2), inner, depth)
    outputs = (((rows, columns), dtype),)
    return Plan(outputs, device, (self, mat2), computing(dtype))


def plan_bmm(call: str, self: Tensor, mat2: Tensor) -> Plan:
    """(b, n, k) by (b, k, m), matrix by matrix."""
    device = same_device(call, self, mat2)
    dtype = one_dtype(call, NUMBERS, _FITS, ("self", self), ("mat2", mat2))
    require_ndim(call, ("self", self), 3)
    require_ndim(call, ("mat2", mat2), 3)
    (batch, rows, inner), (other, depth, columns) = self.shape, mat2.shape
    if batch != other:
        raise misfit(
            call,
            f"they hold {batch} and {other} matrices",
            "equally many matrices; matmul(self, mat2) repeats where one is enough",
            ("self", self),
            ("mat2", mat2),
        )
    if inner != depth:
        raise _inner(call, ("self", self), ("mat2", mat2), inner, depth)
    outputs = (((batch, rows, columns), dtype),)
    return Plan(outputs, device, (self, mat2), computing(dtype))


def plan_dot(call: str, self: Tensor, other: Tensor) -> Plan:
    """(k) by (k)."""
    device = same_device(call, self, other)
    dtype = one_dtype(call, NUMBERS, _FITS, ("self", self), ("other", other))
    require_ndim(call, ("self", self), 1)
    require_ndim(call, ("other", other), 1)
    if self.shape != other.shape:
        raise misfit(
            call,
            "they are not equally long",
            f"length {self.shape[0]} for both",
            ("self", self),
            ("other", other),
        )
    return Plan((((), dtype),), device, (self, other), computing(dtype))


def _inner(
    call: str,
    first: tuple[str, Tensor],
    second: tuple[str, Tensor],
    columns: int,
    rows: int,
) -> ShapesDoNotFit:
    return misfit(
        call,
        f"{first[0]} has {columns} columns and {second[0]} has {rows} rows",
        f"{second[0]} with {columns} rows, or {first[0]} with {rows} columns",
        first,
        second,
    )


def matmul(self: Tensor, other: Tensor) -> Tensor:
    """The product over the last dimension of `self` and the last but one of `other`.

    A vector is a row on the left and a column on the right, and leaves no dimension;
    dimensions in front of matrices broadcast.  Raises `ShapesDoNotFit`.
    """
    call = "core::matmul"
    left, right = self.shape, other.shape
    named = (("self", self), ("other", other))
    if not left or not right:
        raise misfit(call, "one has no dimensions", "at least one dimension", *named)
    depth = right[0] if len(right) == 1 else right[-2]
    if left[-1] != depth:
        raise _inner(call, *named, left[-1], depth)
    result: Tensor
    if len(left) == 1 and len(right) == 1:
        result = core.dot(self, other)
    elif len(left) == 1:
        result = core.squeeze(matmul(core.unsqueeze(self, 0), other), [-2])
    elif len(right) == 1:
        result = core.squeeze(matmul(self, core.unsqueeze(other, 1)), [-1])
    elif len(left) == 2 and len(right) == 2:
        result = core.mm(self, other)
    elif len(right) == 2:
        # One matrix for all rows: the dimensions in front are rows, too.
        rows = _count(left[:-1])
        flat = core.mm(core.reshape(self, [rows, depth]), other)
        result = core.view(flat, [*left[:-1], right[-1]])
    else:
        result = _batches(self, other)
    return result


def _batches(self: Tensor, other: Tensor) -> Tensor:
    left, right = self.shape, other.shape
    try:
        batch = broadcast_shapes(left[:-2], right[:-2])
    except ValueError:
        raise misfit(
            "core::matmul",
            f"the batches {left[:-2]} and {right[:-2]} do not broadcast",
            "equal sizes in front of the matrices, or 1 where they differ",
            ("self", self),
            ("other", other),
        ) from None
    count = _count(batch)
    first = core.reshape(core.expand(self, [*batch, *left[-2:]]), [count, *left[-2:]])
    second = core.reshape(
        core.expand(other, [*batch, *right[-2:]]), [count, *right[-2:]]
    )
    result: Tensor = core.view(core.bmm(first, second), [*batch, left[-2], right[-1]])
    return result


def _count(sizes: tuple[int, ...]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count


def matmul_out(self: Tensor, other: Tensor, out: Tensor) -> Tensor:
    """`matmul`, written to `out`."""
    return hand_over(matmul(self, other), out, "core::matmul.out")


OPERATORS = (
    Structured(
        "mm",
        "Tensor self, Tensor mat2",
        plan_mm,
        remembers=True,
        says="The product of two matrices.",
        autocast="low",
    ),
    Structured(
        "bmm",
        "Tensor self, Tensor mat2",
        plan_bmm,
        says="The products of two batches of matrices.",
        autocast="low",
    ),
    Structured(
        "dot",
        "Tensor self, Tensor other",
        plan_dot,
        says="The inner product of two vectors.",
        autocast="widest",
    ),
    Written(
        "matmul(Tensor self, Tensor other) -> Tensor",
        {"CompositeImplicitAutograd": composed("core::matmul", matmul)},
        says="The product of matrices, vectors, or batches of them.",
        autocast="low",
    ),
    Written(
        "matmul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        {"CompositeExplicitAutograd": composed("core::matmul.out", matmul_out)},
    ),
)
