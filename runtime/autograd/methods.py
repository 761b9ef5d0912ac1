"""The methods and properties that autograd puts on every tensor.

They are installed when this module is imported.  `grad` of a tensor that is no leaf is
None unless `retain_grad` was called; a gradient that is set by hand must fit the
tensor.

`data` is the elements past autograd.  What has the elements of a tensor, and its
version:

| tensor           | same elements as the tensor | same version | handler is asked    |
|------------------|-----------------------------|--------------|---------------------|
| `x.detach()`     | yes                         | yes          | once                |
| `x.data`         | yes                         | no           | once, by `detach`   |
| `x.data = other` | those of `other`            | no           | never               |
| `x.set_(other)`  | those of `other`            | its version  | as by any operator  |

Rules:
- a write through `data` is not noticed where the tensor was saved for a gradient;
- replacing the elements counts as writing to them, and is noticed there;
- elements are replaced by some of the same dtype on the same device; the shape may
  become another one only while the tensor has no gradient and came from no operator;
- a wrapper has no elements, neither to give nor to replace; `set_`, which its handler
  did to what it wraps, makes its shape that of another wrapper.
"""

from collections.abc import Callable
from typing import Any
from weakref import ref

from everyorder.runtime.autograd.engine import backward
from everyorder.runtime.autograd.grad_edges import detached_alias, is_inference, refresh
from everyorder.runtime.autograd.node import (
    HookTable,
    Node,
    RemovableHandle,
    accumulate,
    extra_of,
    mismatch,
)
from everyorder.runtime.errors.autograd import AutogradMisuse, WriteRefused
from everyorder.runtime.errors.tensor import NotReplaceable, NotShareable
from everyorder.runtime.keys import KeySet
from everyorder.runtime.schema.call_errors import checked
from everyorder.runtime.tensors.dtype_info import check_differentiable
from everyorder.runtime.tensors.keys import HANDLED, inference
from everyorder.runtime.tensors.storage import Storage, WrapperStorage
from everyorder.runtime.tensors.tensor import Tensor, install
from everyorder.runtime.tensors.tensor_impl import ensure_place

_HANDLED = KeySet.from_bits(HANDLED)


def read_data(tensor: Tensor) -> Tensor:
    """The elements as a leaf without grad, with a version of its own.

    A handler, or a mode, is asked to `detach`, once.  Raises `HandlerError`.
    """
    detached = detached_alias(tensor)
    if detached is not tensor:
        storage, offset, strides = ensure_place(detached)
        detached._place = _with_own_version(storage), offset, strides
    return detached


def write_data(tensor: Tensor, source: Tensor) -> None:
    """Put the elements of another tensor in place of the tensor's, sharing memory.

    No handler is asked.  Raises `NotReplaceable`.
    """
    asked = "tensor.data = ..."
    check_fit(tensor, source, asked)
    _check_elements(tensor, source, asked)
    version = tensor._version + 1
    storage, offset, strides = ensure_place(source)
    apart = _with_own_version(storage)
    apart.version = version
    _replace(tensor, source, (apart, offset, strides))


def set_source(self: Tensor, source: Tensor) -> Tensor:
    """The kernel of `set_`: the tensor has the storage of `source` from now on.

    Raises `NotReplaceable`.
    """
    asked = "core::set_.source_Tensor"
    check_fit(self, source, asked)
    if not (_is_bare(self) and _is_bare(source)):
        _check_elements(self, source, asked)
    _replace(self, source, ensure_place(source))
    return self


def check_fit(tensor: Tensor, source: object, asked: str) -> None:
    """Whether a tensor can have the elements of another one in place of its own.

    Raises `NotReplaceable`.
    """
    if not isinstance(source, Tensor):
        raise _unfit(asked, "type", "Tensor", type(source).__name__)
    for what in ("dtype", "device", "keys"):
        expected, found = _read(tensor, what), _read(source, what)
        if expected != found:
            raise _unfit(asked, what, expected, found)
    history = tensor._history
    if history is None:
        return
    if history.view is not None:
        raise NotReplaceable(
            asked=asked,
            reason="the tensor is a view, and would be one no more",
            remedy="ask its base, or call `.detach()` on it first",
        )
    kept = history.node is not None or (
        history.extra is not None and history.extra.grad is not None
    )
    if kept and tensor._shape != source._shape:
        raise _unfit(
            asked, "shape", f"{tensor._shape}, as its gradient,", f"{source._shape}"
        )


def _unfit(asked: str, what: str, expected: str, found: str) -> NotReplaceable:
    return NotReplaceable(
        code="DoesNotFit", asked=asked, what=what, expected=expected, found=found
    )


def _is_bare(tensor: Tensor) -> bool:
    return isinstance(ensure_place(tensor)[0], WrapperStorage)


def _check_elements(tensor: Tensor, source: Tensor, asked: str) -> None:
    for each in (tensor, source):
        if _is_bare(each):
            raise NotReplaceable(
                asked=asked,
                reason=f"a `{type(each).__name__}` is a wrapper, without elements",
                remedy="replace what it wraps",
            )


def _read(tensor: Tensor, what: str) -> str:
    if what == "keys":
        # Which of them has a handler does not matter: none is asked.
        return str(tensor.keyset - _HANDLED)
    return str(getattr(tensor, f"_{what}"))


def _replace(tensor: Tensor, source: Tensor, place: Any) -> None:
    shape = source._shape
    # Together: nothing is called in between.
    tensor._flat, tensor._shape, tensor._place, tensor.number = None, shape, place, None


def _with_own_version(storage: Storage) -> Storage:
    """A storage on the same memory, its version 0 and its own."""
    if isinstance(storage, WrapperStorage):
        return storage.copy()
    return Storage(storage.array, storage.device, storage.dtype, storage.count)


def grad_fn(tensor: Tensor) -> Node | None:
    """The node that the tensor is an output of; None for a leaf.

    Raises `WriteRefused` for a view that cannot follow its base.
    """
    history = tensor._history
    if history is None:
        return None
    if history.view is not None:
        refresh(tensor)
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
    """Set the gradient.  Raises `AutogradMisuse`."""
    if gradient is None:
        if tensor._history is not None and tensor._history.extra is not None:
            tensor._history.extra.grad = None
        return
    where = "The assignment to `grad`"
    if not isinstance(gradient, Tensor):
        raise mismatch(where, "type", "Tensor", type(gradient).__name__)
    for what in ("shape", "dtype", "device"):
        expected, found = getattr(tensor, what), getattr(gradient, what)
        if expected != found:
            raise mismatch(where, what, expected, found)
    extra_of(tensor).grad = gradient


def requires_grad_(tensor: Tensor, requires_grad: bool = True) -> Tensor:
    """Set `requires_grad` of a leaf.

    Raises `UnfitValue` for a dtype without gradients, `NotShareable` for switching it
    off where it was computed, `WriteRefused`.
    """
    wanted = bool(requires_grad)
    if wanted:
        check_differentiable(tensor.dtype)
    node = grad_fn(tensor)
    if node is not None and not wanted:
        raise NotShareable(
            code="NotALeaf", asked="requires_grad_(False)", operator=node.operator
        )
    if wanted and is_inference(tensor) and not inference.active:
        raise WriteRefused(
            code="InferenceTensorUsed",
            use="requires_grad",
            operator="requires_grad_",
            shape=tensor.shape,
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
    """Accumulate gradients in the leaves; see `runtime.autograd.engine`."""
    backward(tensor, gradient, retain_graph, create_graph, inputs)


def register_hook(tensor: Tensor, hook: Callable[[Tensor], Any]) -> RemovableHandle:
    """Call `hook(gradient)` when the gradient of the tensor is computed.

    What it returns, unless None, is the gradient from there on.  Raises
    `AutogradMisuse`.
    """
    _check_requires(tensor, "register_hook")
    node = grad_fn(tensor)
    if node is None:
        extra = extra_of(tensor)
        if extra.hooks is None:
            extra.hooks = HookTable()
        return RemovableHandle(extra.hooks, hook)
    table = node.hooked().outputs.setdefault(tensor._history.number, HookTable())
    return RemovableHandle(table, hook)


def register_post_accumulate_grad_hook(
    tensor: Tensor, hook: Callable[[Tensor], None]
) -> RemovableHandle:
    """Call `hook(tensor)` when a gradient was accumulated in `grad` of a leaf.

    Raises `AutogradMisuse`.
    """
    asked = "register_post_accumulate_grad_hook"
    _check_requires(tensor, asked)
    if grad_fn(tensor) is not None:
        raise AutogradMisuse(
            code="HookMisuse",
            asked=asked,
            fault="gradients are accumulated in leaves only",
        )
    extra = extra_of(tensor)
    if extra.after is None:
        extra.after = HookTable()
    return RemovableHandle(extra.after, hook)


def retain_grad(tensor: Tensor) -> None:
    """Accumulate the gradient of a tensor that is no leaf in `grad`, as of a leaf.

    Raises `AutogradMisuse`.
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
            accumulate(owner, gradient)

    node.hooked().retained[tensor._history.number] = keep


def retains_grad(tensor: Tensor) -> bool:
    """Whether `retain_grad` keeps the gradient of a tensor that is no leaf."""
    history = tensor._history
    return bool(history is not None and history.extra and history.extra.retains)


def detach_(tensor: Tensor) -> Tensor:
    """Make the tensor a leaf without grad.  Raises `WriteRefused` for views."""
    history = tensor._history
    if history is not None:
        if history.view is not None:
            raise WriteRefused(code="NotDetachable", shape=tensor.shape)
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
        raise AutogradMisuse(
            code="HookMisuse", asked=asked, fault="the tensor does not require grad"
        )


PROPERTIES: dict[str, property] = {
    "data": property(read_data, write_data),
    "grad": property(read_grad, write_grad),
    "grad_fn": property(grad_fn),
    "is_leaf": property(is_leaf),
    "output_nr": property(output_nr),
    "retains_grad": property(retains_grad),
    "_base": property(base_of),
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
