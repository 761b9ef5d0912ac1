"""Accumulation: the end of the graph at leaves, and sums of gradients that meet.

Rules:
- the first gradient of a leaf is stored itself if there is no other reference to it
  and it has the leaf's strides, and copied otherwise; it never shares memory with
  another tensor; later gradients are added in place, unless the backward pass itself is
  recorded; threads may share a leaf, so accumulating acquires its lock;
- an accumulator owns its leaf, a leaf has only a weak reference to its accumulator; so
  a leaf has one accumulator as long as some graph uses it;
- strides of the stored gradient are those of the leaf, or contiguous ones if its
  elements have gaps or overlap, whatever the strides of the computed gradient are.
"""

from sys import getrefcount
from typing import Any
from weakref import ref

from everyorder.runtime.autograd.grad_mode import GRAD, followed
from everyorder.runtime.autograd.node import (
    HISTORY_LOCK,
    SEQUENCE,
    Extra,
    Gradients,
    Node,
    extra_of,
    mismatch,
)
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.tensors.keys import is_handled
from everyorder.runtime.tensors.shape import (
    CONTIGUOUS,
    PRESERVE,
    contiguous_strides,
    is_dense,
)
from everyorder.runtime.tensors.tensor import Tensor

# The references to a gradient that only the engine has: its list, the parameter or
# variable of the calling function, the parameter of `unshared`, and the argument of
# `getrefcount`.
_ENGINE_ONLY = 4
# To its elements: the tensor, the variable and the argument; the storage is one more.
_OWN_ELEMENTS = 3
# To their storage: the place, the variable and the argument.
_OWN_STORAGE = 3

# Devices with all operators; a backend may still have `add` without `add_`.
_WRITES = ("cpu", "cuda")


class AccumulateGrad(Node):
    """The node of a leaf."""

    __slots__ = ("extra", "variable")

    def __init__(self, variable: Tensor, extra: Extra) -> None:
        # Written without `super().__init__`: every graph has one for each of its
        # leaves. Shape and device are read from the leaf, as its gradient must match
        # them.
        self.next_edges = []
        self.metas = ((variable.shape, variable._dtype, variable.device),)
        self.sequence = next(SEQUENCE)
        self.hooks = None
        self.variable = variable
        self.extra = extra

    @property
    def operator(self) -> str:
        """Return the name of the node itself: no operator was called."""
        return "AccumulateGrad"

    def name(self) -> str:
        """Return `AccumulateGrad`."""
        return self.operator

    def apply(self, gradients: list[Any]) -> Gradients:
        """Accumulate the gradient, unless the leaf was frozen in the meantime."""
        gradient = gradients[0]
        extra = self.extra
        with extra.lock:
            if not self.variable.requires_grad:
                pass
            elif extra.grad is None:
                steal = not GRAD.enabled and unshared(gradient)
                if not _in_layout(gradient, self.variable):
                    extra.grad = _laid_out(gradient, self.variable)
                else:
                    extra.grad = gradient if steal else copy_gradient(gradient)
            elif GRAD.enabled:
                extra.grad = add_gradients(extra.grad, gradient)
            else:
                core.add_(extra.grad, gradient)
        if extra.after:
            for hook in [*extra.after.values()]:
                followed(hook, self.variable)
        return ()


def _in_layout(gradient: Tensor, leaf: Tensor) -> bool:
    """Return True if a gradient has the strides that the leaf's gradient must have.

    These are the strides of the leaf, or contiguous ones if its elements have gaps or
    overlap. A handler, or another backend, determines the strides of its tensors.
    """
    if gradient._place is leaf._place is None or leaf.device.type not in _WRITES:
        return True
    shape, strides = leaf.shape, leaf.strides
    if not is_dense(shape, strides):
        strides = contiguous_strides(shape)
    sizes = zip(shape, strides, gradient.strides, strict=True)
    return (
        all(wanted == actual for size, wanted, actual in sizes if size != 1)
        or not gradient.numel()
        or is_handled(gradient)
        or is_handled(leaf)
    )


def _laid_out(gradient: Tensor, leaf: Tensor) -> Tensor:
    """Return a copy of a gradient with the strides that `_in_layout` requires."""
    dense = is_dense(leaf.shape, leaf.strides)
    order = PRESERVE if dense else CONTIGUOUS
    room = core.empty_like(leaf, memory_format=order)
    return _tensor(core.copy_(room, gradient), "core::copy_")


def unshared(gradient: Tensor) -> bool:
    """Return True if only the engine refers to the gradient and its elements.

    It counts references: the calling function has the gradient as a parameter or
    variable, and one list of the engine contains it.
    """
    flat, place = gradient._flat, gradient._place
    if flat is None or getrefcount(gradient) > _ENGINE_ONLY:
        return False
    # The array that the tensor was created from may be in use elsewhere.
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


def accumulate_buffer(before: Tensor, gradient: Tensor) -> Tensor:
    """Return the sum of two gradients; add in place if only the engine owns `before`.

    In place only where both have the same strides: the strides of a new sum must not
    depend on the references to a gradient, since later sums round by the order in
    memory.
    """
    if (
        not GRAD.enabled
        and before.device.type in _WRITES
        and before.shape == gradient.shape
        and (
            before._place is gradient._place is None
            or before.strides == gradient.strides
        )
        and unshared(before)
    ):
        core.add_(before, gradient)
        return before
    return add_gradients(before, gradient)


def add_gradients(before: Tensor, gradient: Tensor) -> Tensor:
    """Return the sum of two gradients.

    Raises:
        AutogradMisuse: a handler in Python returns no tensor; without the error, the
            gradient would miss a part.
    """
    return _tensor(core.add(before, gradient), "core::add")


def copy_gradient(gradient: Tensor) -> Tensor:
    """Return a copy of a gradient.

    Raises:
        AutogradMisuse: as for `add_gradients`.
    """
    return _tensor(core.clone(gradient), "core::clone")


def accumulate(tensor: Tensor, gradient: Tensor, recorded: bool = False) -> None:
    """Add a gradient to that of a tensor; the first is copied, unless `recorded`.

    Raises:
        AutogradMisuse: as for `add_gradients`.
    """
    extra = extra_of(tensor)
    with extra.lock:
        if extra.grad is not None:
            extra.grad = add_gradients(extra.grad, gradient)
        else:
            extra.grad = gradient if recorded else copy_gradient(gradient)


def _tensor(gradient: Tensor | None, operator: str) -> Tensor:
    if gradient is None:
        raise mismatch(
            f"The handler of `{operator}`, called to accumulate a gradient,",
            "type",
            "Tensor",
            "None",
        )
    return gradient


def accumulator_of(leaf: Tensor) -> Node:
    """Return the accumulator of a leaf; create it if no graph has one."""
    extra = extra_of(leaf)
    reference = extra.accumulator
    accumulator: Node | None = None if reference is None else reference()
    if accumulator is None:
        with HISTORY_LOCK:
            reference = extra.accumulator
            accumulator = None if reference is None else reference()
            if accumulator is None:
                accumulator = AccumulateGrad(leaf, extra)
                extra.accumulator = ref(accumulator)
    return accumulator
