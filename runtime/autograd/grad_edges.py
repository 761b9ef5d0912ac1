"""History: how a call that is recorded is bound to the tensors that it takes and gives.

Two rules, each one function, are used by all that records:

| rule                                      | function       | its plain case as text |
|-------------------------------------------|----------------|------------------------|
| where the gradient of an argument goes    | `edge_of`      | `edge_text`            |
| a result becomes an output of a node      | `with_history` | `result_text`          |

The kernels in the path of every call have the plain cases in their own text, which
calls the function in every other case.  What a call wrote to is an output of its node
too, and its views follow: `runtime.autograd.inplace`.

Views show a part of another tensor, and follow when that is modified.  Every view keeps
the tensor that it is a view of in the end (a view of a view has the same base).
Modified in place, a view changes the history of its base, and with it that of all other
views.  A view looks at the version of its elements whenever its history is asked for:
if it is another one than when it looked last, the view becomes `as_strided` of its
base, recorded now.  A tensor that Python handles may know nothing of strides: its views
are made again by the operators that made them (`Replay`).

Rules:
- a result that cannot have a gradient gets no history; one that has a history, or
  requires grad, is an argument or belongs to somebody: the output is another tensor on
  its elements;
- only views of tensors that can have gradients are followed;
- a view can be followed if it was made where its base was recorded, alone, by an
  operator: `made` says otherwise, and modifying such a view is refused;
- a base that is written to and requires grad since tells its views so at once
  (`requires_grad` is read by every call, and never computed); one that a user asks to
  require grad is another leaf than its views, which stay as they are.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any
from weakref import ref

from everyorder.runtime.autograd.grad_mode import GRAD, Excluding, enable_grad
from everyorder.runtime.autograd.node import (
    Edge,
    History,
    Layout,
    Meta,
    Node,
    Replay,
    ViewOf,
    accumulator_of,
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

# How views are made that cannot follow; "" is made as any.
SEVERAL = "it was made together with others by one call"
NO_GRAD = "it was made in no_grad()"
BY_FUNCTION = "it was made by a Function"
TURNED = "it shows another dtype, and was turned in place"

# Operators whose views have another dtype.
TURNING = frozenset({"core::view_as_real", "core::view_as_complex", "core::view.dtype"})

# Views of one base are counted only when there are this many: most have few.
_PRUNED_AT = 16


def edge_of(tensor: Tensor) -> Edge:
    """Where the gradient of a tensor that requires grad goes.

    Raises `WriteRefused` for a view that cannot follow its base.
    """
    history = tensor._history
    if history is not None:
        if history.view is not None:
            refresh(tensor)
        if history.node is not None:
            return history.node, history.number
    return accumulator_of(tensor), 0


def edges_of(values: Iterable[Any]) -> list[Edge | None]:
    """An edge for each value that requires grad, None for any other.

    Raises as `edge_of`.
    """
    return [
        edge_of(value) if getattr(value, "_requires_grad", False) else None
        for value in values
    ]


def edge_text(place: int, bit: int, asked: str) -> list[str]:
    """The lines that take the edge of argument `a0`, ... as `e0`, where `asked` is so.

    They add the bit to `mask`, and call `edge_of` for a view only.
    """
    a, e = f"a{place}", f"e{place}"
    return [
        f"{e} = None",
        f"if {asked}:",
        f"    mask += {1 << bit}; history = {a}._history",
        f"    if history is None: {e} = accumulator_of({a}), 0",
        f"    elif history.view is not None: {e} = edge_of({a})",
        f"    elif history.node is None: {e} = accumulator_of({a}), 0",
        f"    else: {e} = history.node, history.number",
    ]


def with_history(result: Tensor, node: Node, number: int = 0) -> Tensor:
    """The result of a call as output `number` of `node`.

    As it is if it cannot have a gradient.  Raises `HandlerError` for one that belongs
    to somebody, and that Python handles.
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
    """The lines that make `result`, of some `dtype`, the one output of `node`.

    They call `with_history` only for one that is not new, and say what the gradient of
    the output must look like.
    """
    return [
        "if dtype in DIFFERENTIABLE:",
        "    if result._history is None and not result._requires_grad:",
        "        result._history = History(node)",
        "        result._requires_grad = True",
        "    else: result = with_history(result, node)",
        "    node.metas = ((result.shape, dtype, result.device),)",
    ]


# What these lines name.
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
    """The results of a call as the outputs of `node`, which is told how they look.

    What is no tensor, and what is in `constant` by its number, stays as it is.
    """
    outputs: list[Any] = []
    metas: list[Any] = []
    for number, result in enumerate(results):
        if isinstance(result, Tensor):
            if number not in constant:
                result = with_history(result, node, number)
            metas.append((result.shape, result.dtype, result.device))
        else:
            # No edge leads to what is no tensor.
            metas.append(None)
        outputs.append(result)
    node.metas = tuple(metas)
    return outputs


def tensors_in(values: Iterable[Any]) -> Iterator[Tensor]:
    """The tensors among values, and inside of lists of them."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)


def meta_of(tensor: Tensor) -> Meta:
    """Shape, dtype and device."""
    return tensor.shape, tensor.dtype, tensor.device


def metas_of(outputs: Sequence[Any]) -> tuple[Meta, ...]:
    """Shape, dtype and device of the gradients of outputs.

    None for what is no tensor: no edge leads to it.
    """
    return tuple([meta_of(t) if isinstance(t, Tensor) else None for t in outputs])  # type: ignore[misc]  # as said above


def detached_alias(tensor: Tensor) -> Tensor:
    """Another tensor on the same elements, without history.

    One that is handled is detached by that.  Raises `HandlerError`.
    """
    if tensor.key_bits & PYTHON or (MODED and is_handled(tensor)):
        return _detached(tensor)
    return alias_of(tensor, tensor.key_bits)


def _detached(tensor: Tensor) -> Tensor:
    """The result of `detach` by the handler, or of a plain tensor if it is off."""
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
    """Whether the tensor was made in inference mode, so that it is not tracked."""
    return tensor.key_bits & TRACKED != TRACKED


def follow(
    origin: Tensor,
    view: Tensor | None,
    made: str,
    operator: str,
    replay: Replay | None = None,
) -> None:
    """Note that `view`, which is new, shows a part of `origin`.

    A handler in Python may give None for it.  `replay` makes the view of what stands
    for `origin`, where Python handles it.
    """
    if view is None or view._dtype not in DIFFERENTIABLE:
        return
    if INFERRING and inference.active:
        return
    known = origin._history
    base = origin
    if known is not None and known.view is not None:
        base = known.view.base
        made = made or known.view.made
        if replay is not None:
            replay = partial(_replayed, known.view.replay, layout_of(origin), replay)
    if not GRAD.enabled:
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
    """The view of a view of a base."""
    origin = core.as_strided(base, *layout) if first is None else first(base)
    return second(origin)


def _list(base: Tensor, view: Tensor) -> None:
    """Note a view of a base; without a lock, as each change of the dict is one step."""
    history = base._history or history_of(base)
    views = history.views
    if views is None:
        views = listed_views(history)
    listed = ref(view)
    # No other reference has this number as long as this one is kept.
    views[id(listed)] = listed
    count = len(views)
    if count >= _PRUNED_AT and not count & (count - 1):
        for number, each in views.copy().items():
            if each() is None:
                views.pop(number, None)
    if base._requires_grad:
        # It requires grad since it was asked above, and this view may have been missed.
        view._requires_grad = True


def is_replayed(tensor: Tensor) -> bool:
    """Whether a tensor is a view that is made again by operators."""
    history = tensor._history
    return history is not None and (
        history.view is not None and history.view.replay is not None
    )


def require_grad_of_views(base: Tensor) -> None:
    """Tell the views of a base that it requires grad now."""
    views = base._history.views
    if views:
        for each in views.copy().values():
            view = each()
            if view is not None:
                view._requires_grad = True


def refresh(tensor: Tensor) -> None:
    """Make sure that the history of a view is that of its base as it is now.

    Raises `WriteRefused` for a view that cannot follow.
    """
    history = tensor._history
    view = None if history is None else history.view
    if view is None or view.version == tensor._version:
        return
    base, version = view.base, tensor._version
    if base._requires_grad:
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
                shown = core.as_strided(base, *layout_of(tensor))
            else:
                shown = view.replay(base)
        replace_node(history, shown._history.node, shown._history.number)
        tensor._requires_grad = True
    view.version = version
