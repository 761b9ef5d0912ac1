"""AccumulateGrad: where the graph ends, at a leaf that requires grad.

True only here: how a gradient comes into `leaf.grad`.

Rules:
- the first gradient is taken as it is if nobody else has it, and copied otherwise; it
  never shares memory with another tensor;
- later ones are added in place, unless the backward pass itself is recorded;
- accumulating takes the leaf's lock: several threads may run graphs that share it;
- an accumulator keeps its leaf, a leaf only a weak reference to its accumulator; so a
  leaf has one accumulator as long as some graph uses it.
"""

from sys import getrefcount
from typing import Any
from weakref import ref

from runtime.autograd.history import CLAIMING, Extra, extra_of, history_of
from runtime.autograd.modes import GRAD
from runtime.autograd.node import Gradients, Node, through
from runtime.operators.call import core
from runtime.tensors.tensor import Tensor

# Who refers to a gradient that only the engine has: its list, the parameters `gradient`
# of `apply` and of `_alone`, and the argument of `getrefcount`.
_ENGINE_ONLY = 4


class AccumulateGrad(Node):
    """The node of a leaf."""

    __slots__ = ("variable",)

    def __init__(self, variable: Tensor) -> None:
        super().__init__([], ((variable.shape, variable.dtype, variable.device),))
        self.variable = variable

    @property
    def operator(self) -> str:
        """The name of the node itself: no operator was called."""
        return "AccumulateGrad"

    def name(self) -> str:
        """`AccumulateGrad`."""
        return self.operator

    def apply(self, gradients: list[Any]) -> Gradients:
        """Accumulate; no gradient goes on."""
        gradient = gradients[0]
        extra = extra_of(self.variable)
        with extra.lock:
            if extra.grad is None:
                alone = not GRAD.enabled and _alone(gradient)
                extra.grad = gradient if alone else core.clone(gradient)
            elif GRAD.enabled:
                extra.grad = core.add(extra.grad, gradient)
            else:
                core.add_(extra.grad, gradient)
        if extra.after:
            for hook in [*extra.after.values()]:
                hook(self.variable)
        return ()


def _alone(gradient: Tensor) -> bool:
    """Whether nobody but the engine has the gradient, nor a view of it."""
    return gradient._place is None and getrefcount(gradient) <= _ENGINE_ONLY


def accumulator_of(leaf: Tensor) -> Node:
    """The accumulator of a leaf, made if no graph has one."""
    extra = _extra(leaf)
    known = extra.accumulator
    found: Node | None = None if known is None else known()
    if found is None:
        with CLAIMING:
            known = extra.accumulator
            found = None if known is None else known()
            if found is None:
                found = AccumulateGrad(leaf)
                extra.accumulator = ref(found)
    return found


def _extra(leaf: Tensor) -> Extra:
    history = leaf._history
    if history is not None and history.extra is not None:
        return history.extra  # type: ignore[no-any-return]  # the slot is untyped
    return extra_of(leaf)


def hooked_leaf(node: AccumulateGrad, gradients: list[Any]) -> list[Any]:
    """The gradient as the hooks of the leaf leave it."""
    extra = history_of(node.variable).extra
    if extra is not None and extra.hooks:
        gradients[0] = through(extra.hooks, gradients[0])
    return gradients
