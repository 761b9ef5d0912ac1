"""A mode that counts what matrix products and convolutions cost.

The idea: a mode sees every operator with its arguments, below autograd and in the
backward pass too; what a product costs follows from the shapes alone.  So counting is a
table from operator to formula, and twenty lines around it.

    with FlopCounterMode() as counter:
        loss = model(x).sum()
        loss.backward()
    counter.get_total_flops()    # an int
    print(counter.table())

Rules:
- a multiplication and its addition count as two operations; a bias, and operators that
  go element by element, count nothing, as next to products they cost next to nothing;
- counts add up over all `with` blocks of a counter; `reset` starts anew;
- what `matmul`, `linear` or a layer of one's own is made of is counted, not what it is
  called, unless nothing above took it apart;
- an operator of one's own is counted by `formulas={"mine::layer": formula}`;
- shapes are all that is needed: under a mode for fake tensors a model is counted that
  no machine at hand could hold.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from everyorder.runtime import Tensor
from everyorder.runtime.torch_dispatch import TorchDispatchMode, current_modes

# Called with every argument of the operator, and `out`, its result.
Formula = Callable[..., int]


def product(self: Tensor, other: Tensor, *, out: Tensor) -> int:
    """Vectors, matrices, batches of them: a sum over the last dimension of `self`."""
    return 2 * out.numel() * self.shape[-1]


def addmm(
    self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any, alpha: Any, out: Tensor
) -> int:
    """A product that is added to a matrix."""
    return product(mat1, mat2, out=out)


def convolution(images: Tensor, weight: Tensor, *how: Any, out: Tensor) -> int:
    """(n, in, h, w) by (out, in / groups, kh, kw): a sum for each element of `out`."""
    return 2 * out.numel() * prod(weight.shape[1:])


def convolution_backward(
    grad: Tensor, images: Tensor, weight: Tensor, *how: Any, out: Any
) -> int:
    """By the input and by the weight: the forward pass with its parts exchanged."""
    by_input, by_weight, _ = how[-1]
    return int(by_input + by_weight) * convolution(images, weight, out=grad)


# Operator -> what it costs, for all its overloads.
FORMULAS: dict[str, Formula] = {
    "core::mm": product,
    "core::bmm": product,
    "core::dot": product,
    "core::matmul": product,
    "core::mv": product,
    "core::addmm": addmm,
    "core::convolution": convolution,
    "core::convolution_backward": convolution_backward,
}


class FlopCounterMode(TorchDispatchMode):
    """Counts the operators that there is a formula for; see the module."""

    def __init__(self, formulas: Mapping[str, Formula] | None = None) -> None:
        self.formulas = {**FORMULAS, **(formulas or {})}
        # By operator: what the calls cost together, and how many they were.
        self.flops: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def reset(self) -> None:
        """Forget what was counted."""
        self.flops.clear()
        self.calls.clear()

    def get_total_flops(self) -> int:
        """The operations of everything so far."""
        return self.flops.total()

    def get_flop_counts(self) -> dict[str, int]:
        """The operations of each operator, the dearest first."""
        return dict(self.flops.most_common())

    def table(self) -> str:
        """What was counted, in lines of less than 80 columns."""
        total = self.get_total_flops()
        rows = [
            ("operator", "calls", "FLOPs", "share"),
            *(
                (name, f"{self.calls[name]:,}", f"{count:,}", f"{count / total:.1%}")
                for name, count in self.flops.most_common()
            ),
            ("total", f"{self.calls.total():,}", f"{total:,}", ""),
        ]
        return "\n".join(
            f"{name:36.36}{calls:>11}{flops:>24}{share:>8}".rstrip()
            for name, calls, flops, share in rows
        )

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        name = func.name.name
        formula = self.formulas.get(name)
        # Entered twice, it is asked twice, and counts in the outer place only.
        if formula is not None and self not in current_modes():
            given, options = func.normalize(args, kwargs)
            options.pop("out", None)
            self.flops[name] += formula(*given, **options, out=out)
            self.calls[name] += 1
        return out
