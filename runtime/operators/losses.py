"""Losses: of classification by scores and targets, and of differences.

The negative log likelihood has kernels in both directions; the others are composites.
Scores have shape (C), (N, C) or (N, C, d1, ...), targets the same without C;
`cross_entropy` also accepts probabilities in the shape of the scores.

Rules: `ignore_index` may be any integer, a class or not; targets with it count neither
for the loss nor for the mean.  Label smoothing distributes its share over all classes,
after Szegedy et al., "Rethinking the Inception Architecture" (2016), section 7.
"""

from typing import Any

from everyorder.runtime.operators.declare.allocate_outputs import with_batch
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.declare.plan import (
    FLOATS,
    NUMBERS,
    CallPlan,
    KernelTable,
    bad_option,
    bad_shapes,
    computing,
    index_dtype,
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
from everyorder.runtime.tensors.tensor import Tensor

REDUCTIONS = ("none", "mean", "sum")


def check_reduction(reduction: str) -> None:
    """Refuse a reduction that does not exist.  Raises `WrongOption`."""
    if reduction not in REDUCTIONS:
        raise bad_option("reduction", repr(reduction), ", ".join(map(repr, REDUCTIONS)))


def _reduced(loss: Any, reduction: str) -> Any:
    """Return all losses, their mean or their sum.  Raises `WrongOption`."""
    check_reduction(reduction)
    if reduction == "none":
        return loss
    return core.mean(loss) if reduction == "mean" else core.sum(loss)


def _classes(shape: tuple[int, ...]) -> int:
    return shape[0] if len(shape) == 1 else shape[1]


def _targets(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the targets for scores of `shape`."""
    return () if len(shape) == 1 else (shape[0], *shape[2:])


def _check(self: Tensor, target: Tensor, weight: Tensor | None, reduction: str) -> None:
    check_reduction(reduction)
    index_dtype("target", target)
    one_dtype(FLOATS, "floating-point numbers", ("self", self), ("weight", weight))
    if not self.shape:
        raise bad_shapes(
            "self does not have a dimension of classes",
            "(C) or (N, C, ...)",
            ("self", self),
        )
    if target.shape != _targets(self.shape):
        raise bad_shapes(
            "target does not have one class for each line of scores",
            f"target of shape {_targets(self.shape)}",
            ("self", self),
            ("target", target),
        )
    require_shape(("weight", weight), (_classes(self.shape),))


def plan_forward(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
) -> CallPlan:
    """Return the plan of the loss, and of the sum of the counted weights."""
    device = same_device(self, target, weight)
    _check(self, target, weight, reduction)
    shape = _targets(self.shape) if reduction == "none" else ()
    return CallPlan(
        ((shape, self.dtype), ((), self.dtype)),
        device,
        (self, target, weight, reduction, ignore_index),
        computing(self.dtype),
        (0, 2),
        kernel=_forward if len(self.shape) == 1 else "nll_loss",
    )


def _forward(
    table: KernelTable,
    out: Tensor,
    total: Tensor,
    self: Tensor,
    target: Tensor,
    *options: Any,
) -> None:
    out = with_batch(out) if options[1] == "none" else out
    table["nll_loss"](out, total, with_batch(self), with_batch(target), *options)


def plan_backward(
    grad: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    total_weight: Tensor,
) -> CallPlan:
    """Return the plan of the scores' gradient."""
    device = same_device(grad, self, target, weight, total_weight)
    _check(self, target, weight, reduction)
    one_dtype(
        FLOATS,
        "floating-point numbers",
        ("self", self),
        ("grad", grad),
        ("total_weight", total_weight),
    )
    shape = _targets(self.shape) if reduction == "none" else ()
    require_shape(("grad", grad), shape)
    require_shape(("total_weight", total_weight), ())
    return CallPlan(
        ((self.shape, self.dtype),),
        device,
        (grad, target, weight, total_weight, reduction, ignore_index),
        computing(self.dtype),
        (0, 2, 3),
        kernel=_backward if len(self.shape) == 1 else None,
    )


def _backward(
    table: KernelTable,
    out: Tensor,
    grad: Tensor,
    target: Tensor,
    weight: Tensor | None,
    total: Tensor,
    reduction: str,
    ignore_index: int,
) -> None:
    grad = with_batch(grad) if reduction == "none" else grad
    table["nll_loss_backward"](
        with_batch(out),
        grad,
        with_batch(target),
        weight,
        total,
        reduction,
        ignore_index,
    )


def nll_loss(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
) -> Any:
    """Return the negative log likelihood of the classes."""
    return core.nll_loss_forward(self, target, weight, reduction, ignore_index)[0]


def cross_entropy(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
) -> Any:
    """Return the cross entropy of logits and classes or probabilities."""
    check_reduction(reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise bad_option("label_smoothing", str(label_smoothing), "0.0 to 1.0")
    require_ndim(("self", self), *range(1, max(len(self.shape), 1) + 1))
    by_probability = target.dtype in FLOATS
    if by_probability:
        require_shape(("target", target), self.shape)
    elif target.shape != _targets(self.shape):
        raise bad_shapes(
            "target holds neither one class for each line of scores, nor one "
            "probability for each score",
            f"classes of shape {_targets(self.shape)} and dtype int64, or "
            f"probabilities of shape {self.shape}",
            ("self", self),
            ("target", target),
        )
    logs = core.log_softmax(self, 0 if len(self.shape) == 1 else 1)
    if by_probability:
        return _soft(logs, target, weight, reduction, label_smoothing)
    loss = nll_loss(logs, target, weight, reduction, ignore_index)
    if label_smoothing == 0.0:
        return loss
    return _smoothed(
        loss, logs, target, weight, reduction, ignore_index, label_smoothing
    )


def _soft(
    logs: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    label_smoothing: float,
) -> Tensor:
    """Return the loss against probabilities."""
    dim, classes = (0 if len(logs.shape) == 1 else 1), _classes(logs.shape)
    if label_smoothing > 0.0:
        share = label_smoothing / classes
        target = core.add(core.mul(target, 1.0 - label_smoothing), share)
    if weight is not None:
        target = core.mul(target, _along(weight, logs))
    each = core.neg(core.sum(core.mul(logs, target), [dim]))
    if reduction == "none":
        return each  # type: ignore[no-any-return]  # an operator returns a tensor
    total: Tensor = core.sum(each)
    lines = max(each.numel(), 1)
    return core.div(total, lines) if reduction == "mean" else total


def _along(weight: Tensor, logs: Tensor) -> Tensor:
    """Return the weights of the classes in a shape that broadcasts with the scores."""
    view: Tensor = core.view(weight, [-1, *[1] * max(len(logs.shape) - 2, 0)])
    return view


def _smoothed(
    loss: Tensor,
    logs: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
) -> Tensor:
    """Return the loss against classes, mixed with that against all classes equally."""
    dim, classes = (0 if len(logs.shape) == 1 else 1), _classes(logs.shape)
    weighted = logs if weight is None else core.mul(logs, _along(weight, logs))
    ignored = core.eq(target, ignore_index)
    each = core.masked_fill(core.neg(core.sum(weighted, [dim])), ignored, 0.0)
    if reduction != "none":
        counted = core.logical_not(ignored)
        total = core.sum(each)
        if reduction == "mean" and weight is None:
            total = core.div(total, core.sum(counted))
        elif reduction == "mean":
            valid = core.masked_fill(target, ignored, 0)
            weights = core.reshape(
                core.index_select(weight, 0, core.reshape(valid, [-1])), target.shape
            )
            total = core.div(total, core.sum(core.masked_fill(weights, ignored, 0.0)))
        each = total
    share = label_smoothing / classes
    smooth: Tensor = core.add(
        core.mul(loss, 1.0 - label_smoothing), core.mul(each, share)
    )
    return smooth


@composite(
    'mse_loss(Tensor self, Tensor target, str reduction="mean") -> Tensor',
    only="function",
    takes=FLOATS,
    wide=True,
    explicit=True,
    autocast="float32",
    out=True,
)
def mse_loss(self: Tensor, target: Tensor, reduction: str) -> Any:
    """Return the squares of the differences, or their mean or sum."""
    return _reduced(core.square(core.sub(self, target)), reduction)


@composite(
    "mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, str reduction)"
    " -> Tensor",
    takes=FLOATS,
    wide=True,
    explicit=True,
    public=False,
)
def mse_loss_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, reduction: str
) -> Any:
    """Return the gradient of `mse_loss` by `self`, in the shape of the difference."""
    apart = core.sub(self, target)
    share = 2 / max(apart.numel(), 1) if reduction == "mean" else 2
    return core.mul(core.mul(apart, share), grad_output)


@composite(
    'l1_loss(Tensor self, Tensor target, str reduction="mean") -> Tensor',
    only="function",
    takes=NUMBERS,
    wide=True,
    autocast="float32",
)
def l1_loss(self: Tensor, target: Tensor, reduction: str) -> Any:
    """Return the magnitudes of the differences, or their mean or sum."""
    return _reduced(core.abs(core.sub(self, target)), reduction)


@composite(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target,"
    ' Tensor? weight=None, Tensor? pos_weight=None, str reduction="mean") -> Tensor',
    only="function",
    takes=FLOATS,
    wide=True,
    explicit=True,
    autocast="float32",
)
def binary_cross_entropy_with_logits(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    pos_weight: Tensor | None,
    reduction: str,
) -> Any:
    """Return the cross entropy of probabilities and the sigmoid of scores."""
    if self.shape != target.shape:
        raise bad_shapes(
            "self and target differ",
            "equal shapes",
            ("self", self),
            ("target", target),
        )
    # -log sigmoid(x) = log(1 + exp(-x)), and -log(1 - sigmoid(x)) is that plus x.
    certain = core.logaddexp(core.neg(self), core.zeros_like(self))
    rest = core.mul(core.add(core.neg(target), 1), self)
    if pos_weight is not None:
        more = core.add(core.mul(core.sub(pos_weight, 1), target), 1)
        certain = core.mul(certain, more)
    loss = core.add(rest, certain)
    if weight is not None:
        loss = core.mul(loss, weight)
    return _reduced(loss, reduction)


_ARGUMENTS = (
    "Tensor self, Tensor target, Tensor? weight=None, str reduction='mean',"
    " int ignore_index=-100"
)

OPERATORS: tuple[Structured | Unstructured, ...] = (
    Structured(
        "nll_loss_forward",
        _ARGUMENTS,
        plan_forward,
        returns="(Tensor output, Tensor total_weight)",
        saves_plans=True,
        autocast="float32",
    ),
    Structured(
        "nll_loss_backward",
        "Tensor grad, Tensor self, Tensor target, Tensor? weight, str reduction,"
        " int ignore_index, Tensor total_weight",
        plan_backward,
        out=False,
        saves_plans=True,
    ),
    composite(f"nll_loss({_ARGUMENTS}) -> Tensor", only="function", autocast="float32")(
        nll_loss
    ),
    composite(
        f"cross_entropy({_ARGUMENTS}, float label_smoothing=0.0) -> Tensor",
        only="function",
        autocast="float32",
    )(cross_entropy),
    *(mse_loss, mse_loss_backward, l1_loss, binary_cross_entropy_with_logits),
)
