"""The short ways of the negative log-likelihood, forward and backward.

True only here: which calls need no plan, because nothing is to be cast and nothing can
be wrong but the numbers of the classes: rows of plain scores in host memory, without
weights.
"""

from collections.abc import Callable
from typing import Any

from runtime.errors.operator import IndexOutOfRange
from runtime.operators.backends import table_of
from runtime.operators.plan import CPU, INT64, PLAIN
from runtime.operators.produce import fresh
from runtime.tensors.tensor import Tensor

REDUCTIONS = ("none", "mean", "sum")


def _fits_shortly(self: Tensor, target: Tensor, reduction: str) -> bool:
    """Whether these are plain scores and their classes, of no more dimensions."""
    shape = self.shape
    return (
        self.dtype in PLAIN
        and target.dtype is INT64
        and len(shape) == 2
        and target.shape == shape[:1]
        and reduction in REDUCTIONS
        and self.device is CPU
        and target.device is CPU
    )


def short_forward(general: Callable[..., Any]) -> Callable[..., Any]:
    """Rows of plain scores need no plan."""

    def kernel(
        self: Tensor,
        target: Tensor,
        weight: Tensor | None,
        reduction: str,
        ignore_index: int,
    ) -> Any:
        if weight is not None or not _fits_shortly(self, target, reduction):
            return general(self, target, weight, reduction, ignore_index)
        kind = self.dtype
        loss = fresh(target.shape if reduction == "none" else (), kind, CPU)
        total = fresh((), kind, CPU)
        try:
            table_of("CPU")["nll_loss"](
                loss, total, self, target, None, reduction, ignore_index
            )
        except IndexOutOfRange as error:
            error.operator = "core::nll_loss_forward"
            raise
        return loss, total

    return kernel


def short_backward(general: Callable[..., Any]) -> Callable[..., Any]:
    """Nor do their gradients."""

    def kernel(
        grad: Tensor,
        self: Tensor,
        target: Tensor,
        weight: Tensor | None,
        reduction: str,
        ignore_index: int,
        total: Tensor,
    ) -> Any:
        kind = self.dtype
        if (
            weight is not None
            or not _fits_shortly(self, target, reduction)
            or grad.dtype is not kind
            or total.dtype is not kind
            or grad.shape != (target.shape if reduction == "none" else ())
            or total.shape
            or grad.device is not CPU
            or total.device is not CPU
        ):
            return general(grad, self, target, weight, reduction, ignore_index, total)
        made = fresh(self.shape, kind, CPU)
        try:
            table_of("CPU")["nll_loss_backward"](
                made, grad, target, None, total, reduction, ignore_index
            )
        except IndexOutOfRange as error:
            error.operator = "core::nll_loss_backward"
            raise
        return made

    return kernel
