"""What a type checker knows of a program; checked by `test_stub`, run by nobody.

Lines that a checker must refuse say so, and are errors if it does not.
"""

from typing import Any, assert_type

import runtime
from runtime import DType, Tensor
from runtime.library import custom_op
from runtime.operators.written import Ordered

x = runtime.zeros(2, 3)
y = runtime.tensor([[1.0, 2.0]], dtype=runtime.float64, requires_grad=True)

# Functions, methods and operators of Python.
assert_type(x, Tensor)
assert_type(x @ x, Tensor)
assert_type(2 - x, Tensor)
assert_type(x == y, Tensor)
assert_type(x[0, 1:], Tensor)
assert_type(x.sum(), Tensor)
assert_type(x.sum(dim=0, keepdim=True, dtype="float64"), Tensor)
assert_type(x.view(3, -1).t().contiguous(), Tensor)
assert_type(x.view(runtime.int32), Tensor)
assert_type(x.add_(1).mul_(y), Tensor)
assert_type(x.max(), Tensor)
assert_type(x.max(dim=1), Ordered)
assert_type(x.max(dim=1).values, Tensor)
assert_type(x.split(2), tuple[Tensor, ...])
assert_type(x.nonzero(as_tuple=True), tuple[Tensor, ...])
assert_type(x.double().to("cuda"), Tensor)
assert_type(x.real, Tensor)
assert_type(x.shape, tuple[int, ...])
assert_type(x.dtype, DType)
assert_type(x.grad, Tensor | None)
assert_type(runtime.add(x, 2, alpha=3), Tensor)
assert_type(runtime.where(x > 0, x, y), Tensor)
assert_type(runtime.float32, DType)
assert_type(runtime.inf, float)
x.backward()
x += 1
assert_type(x, Tensor)

# Operators by name.
assert_type(runtime.ops.core.add(x, y), Tensor)
assert_type(runtime.ops.aten.mm(x, y), Tensor)
mine: Any = runtime.ops.mine.anything(x)

# What is not there.
print(x.nonexistent)  # type: ignore[attr-defined]
print(runtime.nonexistent)  # type: ignore[attr-defined]
print(runtime.ops.core.nonexistent)  # type: ignore[attr-defined]
x.sum(axles=1)  # type: ignore[call-arg]


# Decorators keep signatures.
@runtime.no_grad()
def scaled(given: Tensor, by: float = 2.0) -> Tensor:
    return given * by


assert_type(scaled(x, by=3.0), Tensor)
scaled(x, of=3.0)  # type: ignore[call-arg]


@runtime.autocast("cpu")
def halved(given: Tensor) -> Tensor:
    return given / 2


assert_type(halved(x), Tensor)


@custom_op("typed::clip", mutates_args=())
def clip(given: Tensor, most: float) -> Tensor:
    return given.clamp(max=most)


assert_type(clip(x, 1.0), Tensor)
clip(x, "one")  # type: ignore[arg-type]


class Named(Tensor):
    """A class of one's own, with an attribute that is declared."""

    name: str


def named(given: Named) -> str:
    return given.name.upper()
