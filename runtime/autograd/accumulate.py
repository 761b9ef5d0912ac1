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

from runtime.autograd.history import CLAIMING, Extra, extra_of
from runtime.autograd.modes import GRAD
from runtime.autograd.node import SEQUENCE, Gradients, Node
from runtime.errors.autograd import GradientMismatch
from runtime.operators.call import core
from runtime.tensors.tensor import Tensor

# Who refers to a gradient that only the engine has: its list, the parameter or variable
# of who asks, the parameter of `alone`, and the argument of `getrefcount`.
_ENGINE_ONLY = 4
# To its elements: the tensor, the variable and the argument; the storage is one more.
_OWN_ELEMENTS = 3
# To their storage: the place, the variable and the argument.
_OWN_STORAGE = 3

# Devices with all operators; a backend that grows may have `add` and no `add_` yet.
_WRITES = ("cpu", "cuda")


class AccumulateGrad(Node):
    """The node of a leaf."""

    __slots__ = ("extra", "variable")

    def __init__(self, variable: Tensor, extra: Extra) -> None:
        # Spelled out: every graph has one for each of its leaves.  Shape and device are
        # what the leaf says, as those of its gradient are.
        self.next_edges = []
        self.metas = ((variable.shape, variable._dtype, variable.device),)
        self.sequence = next(SEQUENCE)
        self.hooks = None
        self.variable = variable
        self.extra = extra

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
        extra = self.extra
        with extra.lock:
            if extra.grad is None:
                taken = not GRAD.enabled and alone(gradient)
                extra.grad = gradient if taken else copied(gradient)
            elif GRAD.enabled:
                extra.grad = added(extra.grad, gradient)
            else:
                core.add_(extra.grad, gradient)
        if extra.after:
            for hook in [*extra.after.values()]:
                hook(self.variable)
        return ()


def alone(gradient: Tensor) -> bool:
    """Whether nobody but the engine has the gradient, its elements, or a view of it.

    To be asked by who got it from who took it out of a buffer, or reads it there.
    """
    flat, place = gradient._flat, gradient._place
    if flat is None or getrefcount(gradient) > _ENGINE_ONLY:
        return False
    # An array of somebody's that a tensor was made of shares its memory.
    if getattr(flat, "base", None) is not None:
        return False
    if place is None:
        return getrefcount(flat) <= _OWN_ELEMENTS
    storage = place[0]
    return (
        storage.array is flat
        and getrefcount(storage) <= _OWN_STORAGE
        and getrefcount(flat) <= _OWN_ELEMENTS + 1
    )


def joined(before: Tensor, gradient: Tensor) -> Tensor:
    """The sum of two gradients that meet; in the first one, if that is the engine's.

    Only where both lie alike: how a sum of its own lies must not depend on who has a
    reference, since later sums round by the order in memory.
    """
    if (
        not GRAD.enabled
        and before.device.type in _WRITES
        and before.shape == gradient.shape
        and (
            before._place is gradient._place is None
            or before.strides == gradient.strides
        )
        and alone(before)
    ):
        core.add_(before, gradient)
        return before
    return added(before, gradient)


def added(before: Tensor, gradient: Tensor) -> Tensor:
    """The sum of two gradients.

    Raises `GradientMismatch` where a handler in Python gives none: without it, the
    gradient would be a part of what it is.
    """
    return _given(core.add(before, gradient), "core::add")


def copied(gradient: Tensor) -> Tensor:
    """A copy of a gradient.  Raises `GradientMismatch`, as `added`."""
    return _given(core.clone(gradient), "core::clone")


def _given(gradient: Tensor | None, operator: str) -> Tensor:
    if gradient is None:
        raise GradientMismatch(
            where=f"The handler of `{operator}`, called to accumulate a gradient,",
            what="type",
            expected="Tensor",
            found="None",
        )
    return gradient


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
                found = AccumulateGrad(leaf, extra)
                extra.accumulator = ref(found)
    return found


def _extra(leaf: Tensor) -> Extra:
    history = leaf._history
    if history is not None and history.extra is not None:
        return history.extra  # type: ignore[no-any-return]  # the slot is untyped
    return extra_of(leaf)
