"""The methods and properties that autograd adds to every tensor.

They are installed when this module is imported. `grad` of a tensor that is not a leaf
is None unless `retain_grad` was called; an assigned gradient must fit the tensor.

`data` exposes the elements without autograd. Tensors that share elements and version:

| tensor           | same elements as the tensor | same version | handler is called   |
|------------------|-----------------------------|--------------|---------------------|
| `x.detach()`     | yes                         | yes          | once                |
| `x.data`         | yes                         | no           | once, by `detach`   |
| `x.data = other` | those of `other`            | no           | never               |
| `x.set_(other)`  | those of `other`            | its version  | as by any operator  |

Rules:
- a write through `data` is not detected where the tensor was saved for a gradient;
- replacing the elements counts as a write, and is detected there;
- new elements must have the same dtype and device; the shape may change only while the
  tensor has no gradient and is not the output of an operator;
- a wrapper does not have elements to share or to replace; `set_`, which its handler
  applied to the wrapped tensor, changes its shape to that of another wrapper.
"""

from collections.abc import Callable
from typing import Any
from weakref import ref

from everyorder.runtime.autograd.accumulate import accumulate
from everyorder.runtime.autograd.engine import backward
from everyorder.runtime.autograd.grad_edges import detached_alias, is_inference, refresh
from everyorder.runtime.autograd.node import (
    HookTable,
    Node,
    RemovableHandle,
    extra_of,
    mismatch,
)
from everyorder.runtime.errors.autograd import AutogradMisuse, WriteRefused
from everyorder.runtime.errors.tensor import NotReplaceable, NotShareable
from everyorder.runtime.keys import KeySet
from everyorder.runtime.schema.call_errors import checked
from everyorder.runtime.tensors.dtype_info import check_differentiable
from everyorder.runtime.tensors.keys import HANDLED, inference, trace_observer
from everyorder.runtime.tensors.storage import Storage, WrapperStorage
from everyorder.runtime.tensors.tensor import Tensor, install
from everyorder.runtime.tensors.tensor_impl import ensure_place

_HANDLED = KeySet.from_bits(HANDLED)


def read_data(tensor: Tensor) -> Tensor:
    """Return a leaf without grad on the same elements, with a separate version.

    A handler, or a mode, is called once, with `detach`.

    Raises:
        HandlerError: the handler does not return a valid result.
    """
    detached = detached_alias(tensor)
    if detached is not tensor:
        storage, offset, strides = ensure_place(detached)
        detached._place = _with_own_version(storage), offset, strides
    return detached


def write_data(tensor: Tensor, source: Tensor) -> None:
    """Replace the tensor's elements by those of another tensor, sharing memory.

    No handler is called.

    Raises:
        NotReplaceable: the tensors do not fit.
    """
    call = "tensor.data = ..."
    check_fit(tensor, source, call)
    _check_elements(tensor, source, call)
    version = tensor._version + 1
    storage, offset, strides = ensure_place(source)
    apart = _with_own_version(storage)
    apart.version = version
    _replace(tensor, source, (apart, offset, strides))


def set_source(self: Tensor, source: Tensor) -> Tensor:
    """Make the tensor use the storage of `source` from now on; the kernel of `set_`.

    Raises:
        NotReplaceable: the tensors do not fit.
    """
    call = "core::set_.source_Tensor"
    check_fit(self, source, call)
    if not (_is_bare(self) and _is_bare(source)):
        _check_elements(self, source, call)
    _replace(self, source, ensure_place(source))
    return self


def check_fit(tensor: Tensor, source: object, call: str) -> None:
    """Check that the elements of `source` can replace those of a tensor.

    Raises:
        NotReplaceable: they cannot, for the reason in the error.
    """
    if not isinstance(source, Tensor):
        raise _unfit(call, "type", "Tensor", type(source).__name__)
    for what in ("dtype", "device", "keys"):
        expected, actual = _read(tensor, what), _read(source, what)
        if expected != actual:
            raise _unfit(call, what, expected, actual)
    history = tensor._history
    if history is None:
        return
    if history.view is not None:
        raise NotReplaceable(
            asked=call,
            reason="the tensor is a view, and would stop being one",
            remedy="use its base, or call `.detach()` on it first",
        )
    fixed_shape = history.node is not None or (
        history.extra is not None and history.extra.grad is not None
    )
    if fixed_shape and tensor._shape != source._shape:
        raise _unfit(
            call, "shape", f"{tensor._shape}, as its gradient,", f"{source._shape}"
        )


def _unfit(call: str, what: str, expected: str, actual: str) -> NotReplaceable:
    return NotReplaceable(
        code="DoesNotFit", asked=call, what=what, expected=expected, found=actual
    )


def _is_bare(tensor: Tensor) -> bool:
    return isinstance(ensure_place(tensor)[0], WrapperStorage)


def _check_elements(tensor: Tensor, source: Tensor, call: str) -> None:
    for each in (tensor, source):
        if _is_bare(each):
            raise NotReplaceable(
                asked=call,
                reason=f"a `{type(each).__name__}` is a wrapper, without elements",
                remedy="replace what it wraps",
            )


def _read(tensor: Tensor, what: str) -> str:
    if what == "keys":
        # Handler keys may differ: no handler is called.
        return str(tensor.keyset - _HANDLED)
    return str(getattr(tensor, f"_{what}"))


def _replace(tensor: Tensor, source: Tensor, place: Any) -> None:
    shape = source._shape
    # In one statement, so that no call can come between the changes.
    tensor._flat, tensor._shape, tensor._place, tensor.number = None, shape, place, None


def _with_own_version(storage: Storage) -> Storage:
    """Return a storage on the same memory, with a separate version that starts at 0."""
    if isinstance(storage, WrapperStorage):
        return storage.copy()
    return Storage(storage.array, storage.device, storage.dtype, storage.count)


def grad_fn(tensor: Tensor) -> Node | None:
    """Return the node that the tensor is an output of; None for a leaf.

    Raises:
        WriteRefused: the tensor is a view that cannot follow its base.
    """
    history = tensor._history
    if history is None:
        return None
    if history.view is not None:
        refresh(tensor)
    node: Node | None = history.node
    return node


def output_nr(tensor: Tensor) -> int:
    """Return the number of the tensor among its node's outputs; 0 for a leaf."""
    return 0 if grad_fn(tensor) is None else int(tensor._history.number)


def is_leaf(tensor: Tensor) -> bool:
    """Return True if no recorded operator computed the tensor."""
    return grad_fn(tensor) is None


def read_grad(tensor: Tensor) -> Tensor | None:
    """Return the accumulated gradient, None if there is none yet."""
    history = tensor._history
    if history is None or history.extra is None:
        return None
    gradient: Tensor | None = history.extra.grad
    return gradient


def write_grad(tensor: Tensor, gradient: Tensor | None) -> None:
    """Set the gradient.

    Raises:
        AutogradMisuse: the gradient is not a tensor, or does not fit.
    """
    if gradient is None:
        if tensor._history is not None and tensor._history.extra is not None:
            tensor._history.extra.grad = None
        return
    where = "The assignment to `grad`"
    if not isinstance(gradient, Tensor):
        raise mismatch(where, "type", "Tensor", type(gradient).__name__)
    for what in ("shape", "dtype", "device"):
        expected, actual = getattr(tensor, what), getattr(gradient, what)
        if expected != actual:
            raise mismatch(where, what, expected, actual)
    extra_of(tensor).grad = gradient


def delete_grad(tensor: Tensor) -> None:
    """Remove the gradient, as by setting None; it may be missing already."""
    write_grad(tensor, None)


def requires_grad_(tensor: Tensor, requires_grad: bool = True) -> Tensor:
    """Set `requires_grad` of a leaf.

    Raises:
        UnfitValue: the dtype cannot have gradients.
        NotShareable: switching it off for a tensor that is not a leaf.
        WriteRefused: the tensor does not allow it.
    """
    return _changed("requires_grad_", _set_requires_grad, tensor, bool(requires_grad))


def _changed(name: str, run: Callable[..., Tensor], *args: Any) -> Tensor:
    """Return `run(*args)`; a tracer records it."""
    observer = trace_observer()
    if observer is None:
        return run(*args)
    changed: Tensor = observer.change(name, run, args)
    return changed


def _set_requires_grad(tensor: Tensor, enabled: bool) -> Tensor:
    if enabled:
        check_differentiable(tensor.dtype)
    node = grad_fn(tensor)
    if node is not None and not enabled:
        raise NotShareable(
            code="NotALeaf", asked="requires_grad_(False)", operator=node.operator
        )
    if enabled and is_inference(tensor) and not inference.active:
        raise WriteRefused(
            code="InferenceTensorUsed",
            use="requires_grad",
            operator="requires_grad_",
            shape=tensor.shape,
        )
    tensor._requires_grad = enabled
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

    If the hook returns a tensor, it replaces the gradient.

    Raises:
        AutogradMisuse: the tensor does not require grad.
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
    """Call `hook(tensor)` after a gradient was accumulated in `grad` of a leaf.

    Raises:
        AutogradMisuse: the tensor is not a leaf, or does not require grad.
    """
    call = "register_post_accumulate_grad_hook"
    _check_requires(tensor, call)
    if grad_fn(tensor) is not None:
        raise AutogradMisuse(
            code="HookMisuse",
            asked=call,
            fault="gradients are accumulated in leaves only",
        )
    extra = extra_of(tensor)
    if extra.after is None:
        extra.after = HookTable()
    return RemovableHandle(extra.after, hook)


def retain_grad(tensor: Tensor) -> None:
    """Accumulate the gradient of a tensor that is not a leaf in `grad`, as for a leaf.

    Raises:
        AutogradMisuse: the tensor does not require grad.
    """
    _check_requires(tensor, "retain_grad")
    node, extra = grad_fn(tensor), extra_of(tensor)
    if node is None or extra.retains:
        return
    extra.retains = True
    reference = ref(tensor)

    def keep(gradient: Any) -> None:
        owner = reference()
        if owner is not None and gradient is not None:
            accumulate(owner, gradient)

    node.hooked().retained[tensor._history.number] = keep


def retains_grad(tensor: Tensor) -> bool:
    """Return True if `retain_grad` was called for a tensor that is not a leaf."""
    history = tensor._history
    return bool(history is not None and history.extra and history.extra.retains)


def detach_(tensor: Tensor) -> Tensor:
    """Make the tensor a leaf without grad.

    Raises:
        WriteRefused: the tensor is a view.
    """
    return _changed("detach_", _detach, tensor)


def _detach(tensor: Tensor) -> Tensor:
    history = tensor._history
    if history is not None:
        if history.view is not None:
            raise WriteRefused(code="NotDetachable", shape=tensor.shape)
        history.node, history.number = None, 0
    tensor._requires_grad = False
    return tensor


def base_of(tensor: Tensor) -> Tensor | None:
    """Return the base of a view for autograd; None for other tensors."""
    history = tensor._history
    view = None if history is None else history.view
    return None if view is None else view.base


def _check_requires(tensor: Tensor, call: str) -> None:
    if not tensor._requires_grad:
        raise AutogradMisuse(
            code="HookMisuse", asked=call, fault="the tensor does not require grad"
        )


PROPERTIES: dict[str, property] = {
    "data": property(read_data, write_data),
    "grad": property(read_grad, write_grad, delete_grad),
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
