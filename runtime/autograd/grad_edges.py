"""Graph edges: how a recorded call connects to the tensors that it reads and returns.

Two rules, each one function, serve every recording kernel:

| rule                                      | function       | its plain case as text |
|-------------------------------------------|----------------|------------------------|
| find the edge for an argument's gradient  | `edge_of`      | `edge_text`            |
| a result becomes an output of a node      | `with_history` | `result_text`          |

Kernels on the path of every call contain the plain cases in their generated text, which
calls the function in every other case. A tensor that a call wrote to is an output of
its node too, and its views follow: `runtime.autograd.inplace`.

A view shows a part of another tensor, and follows when that tensor is modified. Every
view refers to its final base (a view of a view has the same base). Modifying a view in
place changes the history of its base, and with it the history of all other views. A
view compares the version of its elements whenever its history is read: if the version
changed since the last comparison, the view becomes `as_strided` of its base, recorded
now. A tensor that Python handles may not have strides: its views are created again by
the operators that created them (`Replay`).

Rules:
- a result that cannot have a gradient does not get a history; a result that has a
  history, or requires grad, is an argument or has another owner: the output is then a
  new tensor on its elements;
- only views of tensors that can have gradients are followed;
- a view can be followed if one operator created it, as its only result, while its base
  was recorded: otherwise `made` holds the reason, and modifying the view is refused;
- when a write makes a base require grad, its views are marked at once (every call
  reads `requires_grad`, which is never computed); when a user sets `requires_grad` on a
  base, the base becomes a separate leaf and its views do not change.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any
from weakref import ref

from everyorder.runtime.autograd.accumulate import accumulator_of
from everyorder.runtime.autograd.grad_mode import GRAD, Excluding, enable_grad
from everyorder.runtime.autograd.node import (
    Edge,
    History,
    Layout,
    Meta,
    Node,
    Replay,
    ViewOf,
    history_of,
    layout_of,
    listed_views,
    replace_node,
)
from everyorder.runtime.errors.autograd import WriteRefused
from everyorder.runtime.errors.torch_dispatch import HandlerError
from everyorder.runtime.keys import AUTOGRAD_KEYS, LOCAL, DispatchKey
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.tensors.dtype_info import DIFFERENTIABLE
from everyorder.runtime.tensors.keys import (
    INFERRING,
    MODED,
    PYTHON,
    UNHANDLED,
    inference,
    is_handled,
)
from everyorder.runtime.tensors.tensor import Tensor, alias_of

TRACKED = DispatchKey.ADInplaceOrView.bits
# Without the keys that would note a detached tensor as a view.
_BELOW_RECORDING = Excluding(AUTOGRAD_KEYS.bits | TRACKED)

# Reasons why a view cannot follow its base; "" if it can.
SEVERAL = "it was made together with others by one call"
NO_GRAD = "it was made in no_grad()"
INFERENCE = "it was made in inference_mode()"
BY_FUNCTION = "it was made by a Function"
TURNED = "it shows another dtype, and was turned in place"

# Operators whose views have another dtype.
TURNING = frozenset({"core::view_as_real", "core::view_as_complex", "core::view.dtype"})

# Dead views of a base are removed only from this number on: most bases have few.
_PRUNED_AT = 16


def edge_of(tensor: Tensor) -> Edge:
    """Return the edge that receives the gradient of a tensor that requires grad.

    Raises:
        WriteRefused: the tensor is a view that cannot follow its base.
    """
    history = tensor._history
    if history is not None:
        if history.view is not None:
            refresh(tensor)
        if history.node is not None:
            return history.node, history.number
    return accumulator_of(tensor), 0


def edges_of(values: Iterable[Any]) -> list[Edge | None]:
    """Return an edge for each value that requires grad, None for any other.

    Raises:
        WriteRefused: as for `edge_of`.
    """
    return [
        edge_of(value) if getattr(value, "_requires_grad", False) else None
        for value in values
    ]


def edge_text(place: int, bit: int, condition: str) -> list[str]:
    """Return the lines that compute the edge of argument `a{place}` if `condition`.

    They add the bit to `mask`, and call `edge_of` for a view only.
    """
    a, e = f"a{place}", f"e{place}"
    return [
        f"{e} = None",
        f"if {condition}:",
        f"    mask += {1 << bit}; history = {a}._history",
        f"    if history is None: {e} = accumulator_of({a}), 0",
        f"    elif history.view is not None: {e} = edge_of({a})",
        f"    elif history.node is None: {e} = accumulator_of({a}), 0",
        f"    else: {e} = history.node, history.number",
    ]


def with_history(result: Tensor, node: Node, number: int = 0) -> Tensor:
    """Return the result of a call as output `number` of `node`.

    A result that cannot have a gradient is returned unchanged.

    Raises:
        HandlerError: the result has another owner, and its handler cannot detach it.
    """
    if result._dtype not in DIFFERENTIABLE:
        return result
    history = result._history
    if history is not None and history.view is not None and history.node is None:
        history.node, history.number = node, number
    else:
        if history is not None or result._requires_grad:
            result = detached_alias(result)
        result._history = History(node, number)
    result._requires_grad = True
    return result


def result_text() -> list[str]:
    """Return the lines that make `result`, of type `dtype`, the one output of `node`.

    They call `with_history` only for a result that is not new, and store the shape,
    dtype and device that the gradient of the output must have.
    """
    return [
        "if dtype in DIFFERENTIABLE:",
        "    if result._history is None and not result._requires_grad:",
        "        result._history = History(node)",
        "        result._requires_grad = True",
        "    else: result = with_history(result, node)",
        "    node.metas = ((result.shape, dtype, result.device),)",
    ]


# The names that these lines refer to.
HISTORY_NAMES: dict[str, Any] = {
    "DIFFERENTIABLE": DIFFERENTIABLE,
    "History": History,
    "accumulator_of": accumulator_of,
    "edge_of": edge_of,
    "edges_of": edges_of,
    "with_history": with_history,
}


def with_histories(
    results: Iterable[Any], node: Node, constant: Collection[int] = ()
) -> list[Any]:
    """Return the results of a call as the outputs of `node`, and set its `metas`.

    Results that are not tensors, and those whose number is in `constant`, stay
    unchanged.
    """
    outputs: list[Any] = []
    metas: list[Any] = []
    for number, result in enumerate(results):
        if isinstance(result, Tensor):
            if number not in constant:
                result = with_history(result, node, number)
            metas.append((result.shape, result.dtype, result.device))
        else:
            # Only tensors have edges.
            metas.append(None)
        outputs.append(result)
    node.metas = tuple(metas)
    return outputs


def tensors_in(values: Iterable[Any]) -> Iterator[Tensor]:
    """Yield the tensors among values, also inside lists."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)


def meta_of(tensor: Tensor) -> Meta:
    """Return shape, dtype and device of a tensor."""
    return tensor.shape, tensor.dtype, tensor.device


def metas_of(outputs: Sequence[Any]) -> tuple[Meta, ...]:
    """Return shape, dtype and device of the gradient of each output.

    The entry is None for an output that is not a tensor: it has no edge.
    """
    return tuple([meta_of(t) if isinstance(t, Tensor) else None for t in outputs])  # type: ignore[misc]  # as said above


def detached_alias(tensor: Tensor) -> Tensor:
    """Return a new tensor on the same elements, without history.

    A handled tensor is detached by its handler.

    Raises:
        HandlerError: the handler does not return a valid result.
    """
    if tensor.key_bits & PYTHON or (MODED and is_handled(tensor)):
        return _detached(tensor)
    return alias_of(tensor, tensor.key_bits)


def _detached(tensor: Tensor) -> Tensor:
    """Return `detach` by the handler, or an alias of a plain tensor if it is off."""
    view = LOCAL.view
    if not is_handled(tensor):
        return alias_of(tensor, tensor.key_bits & UNHANDLED)
    LOCAL.view = _BELOW_RECORDING[view]
    try:
        detached: Tensor = core.detach(tensor)
    except HandlerError as error:
        if error.code != "WrongHandlerResult":
            raise
        raise HandlerError(
            code="WrongDetach",
            handler=error.handler,
            operator="autograd",
            found=error.problem,
        ) from None
    finally:
        LOCAL.view = view
    return detached


def is_inference(tensor: Tensor) -> bool:
    """Return True if the tensor was created in inference mode and is not tracked."""
    return tensor.key_bits & TRACKED != TRACKED


def follow(
    origin: Tensor,
    view: Tensor | None,
    made: str,
    operator: str,
    replay: Replay | None = None,
) -> None:
    """Register `view`, a new tensor, as a view of `origin`.

    A Python handler may return None for the view. `replay` creates the view again from
    the replacement of `origin`, where Python handles it.
    """
    if view is None or view._dtype not in DIFFERENTIABLE or is_inference(view):
        return
    origin_history = origin._history
    base = origin
    if origin_history is not None and origin_history.view is not None:
        base = origin_history.view.base
        made = made or origin_history.view.made
        if replay is not None:
            replay = partial(
                _replayed, origin_history.view.replay, layout_of(origin), replay
            )
    if INFERRING and inference.active:
        made = made or INFERENCE
    elif not GRAD.enabled:
        made = made or NO_GRAD
    history = view._history = History()
    place = view._place
    version = 0 if place is None else place[0].version
    history.view = ViewOf(base, made, operator, version, replay)
    if base._requires_grad:
        view._requires_grad = True
    else:
        _list(base, view)


def _replayed(
    first: Replay | None, layout: Layout, second: Replay, base: Tensor
) -> Tensor:
    """Return the view of a view of a base."""
    origin = core.as_strided(base, *layout) if first is None else first(base)
    return second(origin)


class AliasNode(Node):
    """The node of a tensor on all elements of another one, made without an operator."""

    __slots__ = ()

    @property
    def operator(self) -> str:
        """Return the operator that makes such a tensor."""
        return "core::alias"

    def apply(self, gradients: list[Any]) -> Sequence[Any]:
        """Return the gradient itself."""
        return gradients


def record_alias(origin: Tensor, alias: Tensor) -> None:
    """Record that `alias`, a new tensor on the elements of `origin`, is its view.

    Raises:
        WriteRefused: `origin` is a view that cannot follow its base.
    """
    excluded = LOCAL.view.excluded
    if not excluded & TRACKED and (GRAD.enabled or GRAD.follows):
        handled = origin.key_bits & PYTHON or is_replayed(origin)
        follow(origin, alias, "", "core::alias", core.alias if handled else None)
    if origin._requires_grad and GRAD.enabled and not excluded & AUTOGRAD_KEYS.bits:
        with_history(alias, AliasNode([edge_of(origin)], (meta_of(origin),)))


def _list(base: Tensor, view: Tensor) -> None:
    """Add a view to its base; without a lock, as each change of the dict is atomic."""
    history = base._history or history_of(base)
    views = history.views
    if views is None:
        views = listed_views(history)
    listed = ref(view)
    # The id is unique as long as the dict holds this reference.
    views[id(listed)] = listed
    count = len(views)
    if count >= _PRUNED_AT and not count & (count - 1):
        for number, each in views.copy().items():
            if each() is None:
                views.pop(number, None)
    if base._requires_grad:
        # A concurrent write may have set the flag after the test above and missed this
        # view.
        view._requires_grad = True


def is_replayed(tensor: Tensor) -> bool:
    """Return True if a tensor is a view that operators create again (`Replay`)."""
    history = tensor._history
    return history is not None and (
        history.view is not None and history.view.replay is not None
    )


def require_grad_of_views(base: Tensor) -> None:
    """Mark the views of a base, which now requires grad, as requiring grad."""
    views = base._history.views
    if views:
        for each in views.copy().values():
            view = each()
            if view is not None:
                view._requires_grad = True


def refresh(tensor: Tensor) -> None:
    """Update the history of a view to the current history of its base.

    Raises:
        WriteRefused: the view cannot follow.
    """
    history = tensor._history
    view = None if history is None else history.view
    if view is None or view.version == tensor._version:
        return
    base, version = view.base, tensor._version
    # A node that is not of a view describes the elements before the write.
    if base._requires_grad or (view.made and history.node is not None):
        if view.made:
            raise WriteRefused(
                code="ViewModified",
                operator=view.operator,
                made=view.made,
                shape=tensor.shape,
                indirect=True,
            )
        with enable_grad():
            if view.replay is None:
                current = core.as_strided(base, *layout_of(tensor))
            else:
                current = view.replay(base)
        replace_node(history, current._history.node, current._history.number)
        tensor._requires_grad = True
    view.version = version
