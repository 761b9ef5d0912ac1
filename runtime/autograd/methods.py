"""The methods and properties that autograd puts on every tensor.

True only here: their names.  They are installed when this module is imported.

Rules: `grad` of a tensor that is no leaf is None unless `retain_grad` was called; a
gradient that is set by hand must fit the tensor.
"""

from collections.abc import Callable
from typing import Any
from weakref import ref

from runtime.autograd.backward import backward
from runtime.autograd.data import read_data, write_data
from runtime.autograd.history import extra_of
from runtime.autograd.node import Node, RemovableHandle, Table
from runtime.autograd.saved import is_inference
from runtime.autograd.views import renew
from runtime.errors.autograd import (
    GradientMismatch,
    HookMisuse,
    InferenceTensorUsed,
    NotDetachable,
)
from runtime.errors.tensor import NoGradient, NotALeaf
from runtime.operators.call import core
from runtime.schema.checked import checked
from runtime.tensors.keys import inference
from runtime.tensors.tensor import Tensor, install


def grad_fn(tensor: Tensor) -> Node | None:
    """The node that the tensor is an output of; None for a leaf.

    Raises `ViewModified` for a view that cannot follow its base.
    """
    history = tensor._history
    if history is None:
        return None
    if history.view is not None:
        renew(tensor)
    found: Node | None = history.node
    return found


def output_nr(tensor: Tensor) -> int:
    """Which output of its node the tensor is; 0 for a leaf."""
    return 0 if grad_fn(tensor) is None else int(tensor._history.number)


def is_leaf(tensor: Tensor) -> bool:
    """Whether no recorded operator made the tensor."""
    return grad_fn(tensor) is None


def read_grad(tensor: Tensor) -> Tensor | None:
    """The gradient that was accumulated, None before there is one."""
    history = tensor._history
    if history is None or history.extra is None:
        return None
    found: Tensor | None = history.extra.grad
    return found


def write_grad(tensor: Tensor, gradient: Tensor | None) -> None:
    """Set the gradient.  Raises `GradientMismatch`."""
    if gradient is None:
        if tensor._history is not None and tensor._history.extra is not None:
            tensor._history.extra.grad = None
        return
    where = "The assignment to `grad`"
    if not isinstance(gradient, Tensor):
        raise GradientMismatch(
            where=where, what="type", expected="Tensor", found=type(gradient).__name__
        )
    for what in ("shape", "dtype", "device"):
        expected, found = getattr(tensor, what), getattr(gradient, what)
        if expected != found:
            raise GradientMismatch(
                where=where, what=what, expected=str(expected), found=str(found)
            )
    extra_of(tensor).grad = gradient


def requires_grad_(tensor: Tensor, requires_grad: bool = True) -> Tensor:
    """Set `requires_grad` of a leaf.

    Raises `NoGradient` for a dtype without gradients, `NotALeaf` for switching it off
    where it was computed, `InferenceTensorUsed`.
    """
    wanted = bool(requires_grad)
    if wanted and not (tensor.dtype.is_floating or tensor.dtype.is_complex):
        raise NoGradient(dtype=str(tensor.dtype))
    node = grad_fn(tensor)
    if node is not None and not wanted:
        raise NotALeaf(asked="requires_grad_(False)", operator=node.operator)
    if wanted and is_inference(tensor) and not inference.active:
        raise InferenceTensorUsed(
            use="requires_grad", operator="requires_grad_", shape=tensor.shape
        )
    tensor._requires_grad = wanted
    return tensor


def run_backward(
    tensor: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Accumulate gradients in the leaves; see `runtime.autograd.backward`."""
    backward(tensor, gradient, retain_graph, create_graph, inputs)


def register_hook(tensor: Tensor, hook: Callable[[Tensor], Any]) -> RemovableHandle:
    """Call `hook(gradient)` when the gradient of the tensor is computed.

    What it returns, unless None, is the gradient from there on.  Raises `HookMisuse`.
    """
    _check_requires(tensor, "register_hook")
    node = grad_fn(tensor)
    if node is None:
        extra = extra_of(tensor)
        if extra.hooks is None:
            extra.hooks = Table()
        return RemovableHandle(extra.hooks, hook)
    table = node.hooked().outputs.setdefault(tensor._history.number, Table())
    return RemovableHandle(table, hook)


def register_post_accumulate_grad_hook(
    tensor: Tensor, hook: Callable[[Tensor], None]
) -> RemovableHandle:
    """Call `hook(tensor)` when a gradient was accumulated in `grad` of a leaf.

    Raises `HookMisuse`.
    """
    asked = "register_post_accumulate_grad_hook"
    _check_requires(tensor, asked)
    if grad_fn(tensor) is not None:
        raise HookMisuse(asked=asked, fault="gradients are accumulated in leaves only")
    extra = extra_of(tensor)
    if extra.after is None:
        extra.after = Table()
    return RemovableHandle(extra.after, hook)


def retain_grad(tensor: Tensor) -> None:
    """Accumulate the gradient of a tensor that is no leaf in `grad`, as of a leaf.

    Raises `HookMisuse`.
    """
    _check_requires(tensor, "retain_grad")
    node, extra = grad_fn(tensor), extra_of(tensor)
    if node is None or extra.retains:
        return
    extra.retains = True
    kept = ref(tensor)

    def keep(gradient: Any) -> None:
        owner = kept()
        if owner is not None and gradient is not None:
            extra = extra_of(owner)
            with extra.lock:
                before = extra.grad
                extra.grad = (
                    core.clone(gradient)
                    if before is None
                    else core.add(before, gradient)
                )

    node.hooked().retained[tensor._history.number] = keep


def retains_grad(tensor: Tensor) -> bool:
    """Whether `retain_grad` keeps the gradient of a tensor that is no leaf."""
    history = tensor._history
    return bool(history is not None and history.extra and history.extra.retains)


def detach_(tensor: Tensor) -> Tensor:
    """Make the tensor a leaf without grad.  Raises `NotDetachable` for views."""
    history = tensor._history
    if history is not None:
        if history.view is not None:
            raise NotDetachable(shape=tensor.shape)
        history.node, history.number = None, 0
    tensor._requires_grad = False
    return tensor


def base_of(tensor: Tensor) -> Tensor | None:
    """The tensor that this one is a view of, as far as gradients go."""
    history = tensor._history
    view = None if history is None else history.view
    return None if view is None else view.base


def _check_requires(tensor: Tensor, asked: str) -> None:
    if not tensor._requires_grad:
        raise HookMisuse(asked=asked, fault="the tensor does not require grad")


PROPERTIES: dict[str, property] = {
    "data": property(read_data, write_data, doc=read_data.__doc__),
    "grad": property(read_grad, write_grad, doc=read_grad.__doc__),
    "grad_fn": property(grad_fn, doc=grad_fn.__doc__),
    "is_leaf": property(is_leaf, doc=is_leaf.__doc__),
    "output_nr": property(output_nr, doc=output_nr.__doc__),
    "retains_grad": property(retains_grad, doc=retains_grad.__doc__),
    "_base": property(base_of, doc=base_of.__doc__),
}
METHODS: dict[str, Callable[..., Any]] = {
    "backward": run_backward,
    "detach_": detach_,
    "is_inference": is_inference,
    "register_hook": register_hook,
    "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
    "requires_grad_": requires_grad_,
    "retain_grad": retain_grad,
}
for _name, _property in PROPERTIES.items():
    install(_name, _property)
for _name, _method in METHODS.items():
    install(_name, checked(_method))
