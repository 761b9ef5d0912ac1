"""A tensor of eight-bit integers that behaves as the numbers they stand for.

The idea: a `QuantizedTensor` shows float32 and holds `values` of int8, with a `scale`
and a `zero_point`:

    number = (value - zero_point) * scale

What is known to do in integers is done in integers: products, sums, `relu`, and what
only moves elements.  Everything else sees the numbers, as a plain tensor, and gives
plain tensors; so a quantised tensor may stand wherever a tensor does.

    w = quantize(tensor([[0.5, -1.0], [2.0, 0.25]]))
    y = (w @ w).relu()           # quantised
    z = y.exp()                  # not

Rules:
- products are of int32, sums in units of the finer scale; the result is brought back
  to int8 by the least power of two that has room for all of it: a shift, which loses
  nothing of integers up to 127;
- the scale is a tensor, and nobody asks for its value: it may be fake, or log;
- what moves elements shares `values`, so that views stay views; what is written to
  keeps its scale and its zero point, and is cut off where int8 ends;
- `quantize` passes gradients on as if it did nothing ("straight through": Bengio,
  Leonard and Courville, 2013), but where it cuts off; `dequantize` is its inverse.
"""

from collections.abc import Callable
from typing import Any

from everyorder import runtime
from everyorder.runtime import Function, Tensor, ops
from tests.examples.logging_tensor import mapped

# The ends of int8.
LEAST, GREATEST = -128, 127
# The power of two of the finest scale: the least normal number of float32.
FINEST = -126
# What only moves elements.
MOVES = frozenset(
    f"core::{name}"
    for name in (
        *("alias", "detach", "view", "t", "transpose", "permute", "expand"),
        *("select", "slice", "squeeze", "unsqueeze", "diagonal", "split", "flip"),
    )
)


class QuantizedTensor(Tensor):
    """`values` of int8; `scale` and `zero_point` are of float32 and int32, 0-dim."""

    values: Tensor
    scale: Tensor
    zero_point: Tensor

    @staticmethod
    def __new__(
        cls: type["QuantizedTensor"],
        values: Tensor,
        scale: Tensor,
        zero_point: Tensor,
    ) -> "QuantizedTensor":
        made: QuantizedTensor = Tensor._make_wrapper_subclass(
            cls,
            values.shape,
            strides=values.strides,
            storage_offset=values.offset,
            dtype=scale.dtype,
            device=values.device,
        )
        made.values, made.scale, made.zero_point = values, scale, zero_point
        return made

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs, name = kwargs or {}, func.name.name
        if name in MOVES:
            (self, *how) = args
            return mapped(self.like, func(self.values, *how, **kwargs))
        rule = RULES.get(name)
        whole = all(isinstance(each, QuantizedTensor) for each in args)
        if rule is not None and whole and not kwargs:
            return rule(func, *args)
        args, kwargs = func.normalize(args, kwargs)
        given, options = mapped(numbers, args), mapped(numbers, kwargs)
        found = func(*given, **options)
        targets, exacts = (*args, *kwargs.values()), (*given, *options.values())
        written = [argument.is_write for argument in func.schema.arguments]
        for is_write, target, exact in zip(written, targets, exacts, strict=True):
            if is_write and isinstance(target, QuantizedTensor):
                target.values.copy_(encoded(exact, target.scale, target.zero_point))
        return found

    def like(self, values: Tensor) -> "QuantizedTensor":
        """Other integers with the same meaning."""
        return QuantizedTensor(values, self.scale, self.zero_point)

    def centred(self) -> Tensor:
        """The integers as int32, less the zero point."""
        return self.values.to(runtime.int32) - self.zero_point

    def dequantize(self) -> Tensor:
        """The numbers as a plain tensor; gradients pass."""
        return ops.core.clone(self)

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["values", "scale", "zero_point"], None

    @classmethod
    def __tensor_unflatten__(
        cls, inner: dict[str, Tensor], context: None, size: Any, stride: Any
    ) -> "QuantizedTensor":
        return cls(inner["values"], inner["scale"], inner["zero_point"])

    def __repr__(self) -> str:
        return f"QuantizedTensor({self.values!r}, {self.scale!r}, {self.zero_point!r})"


def numbers(value: Any) -> Any:
    """The numbers of a quantised tensor, as a plain one; any other value itself."""
    if not isinstance(value, QuantizedTensor):
        return value
    return value.centred().to(runtime.float32) * value.scale


def encoded(exact: Tensor, scale: Tensor, zero_point: Tensor | int) -> Tensor:
    """Numbers as int8, cut off at the ends."""
    steps = (exact / scale).round() + zero_point
    return ops.core.clamp(steps, LEAST, GREATEST).to(runtime.int8)


def step(exact: Tensor, least: int) -> Tensor:
    """The least power of two, from 2**least on, by which all numbers fit int8."""
    greatest = exact.abs().max().to(runtime.float32) if exact.numel() else exact.sum()
    # Zeros fit anything, and 2 to minus infinity is no scale.
    greatest = greatest + GREATEST * (greatest == 0)
    powers = (greatest / GREATEST).log2().ceil()
    return 2.0 ** ops.core.clamp(powers, least)


def fitted(total: Tensor, unit: Tensor) -> QuantizedTensor:
    """Integers of any size, `unit` each, brought to int8."""
    shift = step(total, 0)
    zero_point = ops.core.zeros_like(shift, dtype=runtime.int32)
    return QuantizedTensor(encoded(total, shift, 0), unit * shift, zero_point)


def add(func: Any, one: QuantizedTensor, other: QuantizedTensor) -> Tensor:
    """In units of the finer one."""
    unit = ops.core.minimum(one.scale, other.scale)
    return fitted(func(numbers(one), numbers(other)) / unit, unit)


def product(func: Any, one: QuantizedTensor, other: QuantizedTensor) -> Tensor:
    """Of integers with zero at zero, by element or by matrix."""
    return fitted(func(one.centred(), other.centred()), one.scale * other.scale)


def relu(func: Any, one: QuantizedTensor) -> Tensor:
    """What is below zero is at the zero point."""
    return one.like(ops.core.maximum(one.values, one.zero_point))


# Operator -> what is done with quantised arguments alone: (operator, *arguments).
RULES: dict[str, Callable[..., Tensor]] = {
    "core::add": add,
    "core::sub": add,
    "core::mul": product,
    "core::mm": product,
    "core::bmm": product,
    "core::dot": product,
    "core::relu": relu,
}


class Quantize(Function):
    """`quantize` with its gradient."""

    @staticmethod
    def forward(ctx: Any, exact: Tensor, scale: Any, zero_point: int) -> Tensor:
        exact = exact.to(runtime.float32)
        unit = step(exact, FINEST) if scale is None else 0 * exact.sum() + scale
        zero = ops.core.full_like(unit, zero_point, dtype=runtime.int32)
        made = QuantizedTensor(encoded(exact, unit, zero), unit, zero)
        ctx.save_for_backward((exact - numbers(made)).abs() <= unit)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (fits,) = ctx.saved_tensors
        return grad * fits, None, None


def quantize(
    exact: Tensor, scale: float | None = None, zero_point: int = 0
) -> QuantizedTensor:
    """The tensor in eight bits; without a scale, the least power of two that fits."""
    return Quantize.apply(exact, scale, zero_point)  # type: ignore[no-any-return]  # what `forward` makes
