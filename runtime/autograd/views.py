"""Views: tensors that show a part of another one, and follow when that is modified.

True only here: what a view knows of its base, and how its history is made anew.

How it works: every view keeps the tensor that it is a view of in the end (a view of a
view has the same base).  Modified in place, a view changes the history of its base (see
`runtime.autograd.inplace`), and with it that of all other views.  A view looks at the
version of its elements whenever its history is asked for: if it is another one than
when it looked last, the view becomes `as_strided` of its base, recorded now.  A tensor
that Python handles may know nothing of strides: its views are made again by the
operators that made them (`Replay`).

Rules:
- only views of tensors that can have gradients are followed;
- a view can be followed if it was made where its base was recorded, alone, by an
  operator: `made` says otherwise, and modifying such a view is refused;
- a base that is written to and requires grad since tells its views so at once
  (`requires_grad` is read by every call, and never computed); one that a user asks to
  require grad is another leaf than its views, which stay as they are.
"""

from collections.abc import Callable
from functools import partial
from weakref import ref

from runtime.autograd.accumulate import accumulator_of
from runtime.autograd.history import (
    DIFFERENTIABLE,
    History,
    history_of,
    listed_views,
    replace_node,
)
from runtime.autograd.modes import GRAD, enable_grad
from runtime.autograd.node import Edge
from runtime.errors.autograd import ViewModified
from runtime.operators.call import core
from runtime.tensors.keys import INFERRING, inference
from runtime.tensors.tensor import Tensor

# How views are made that cannot follow; "" is made as any.
SEVERAL = "it was made together with others by one call"
NO_GRAD = "it was made in no_grad()"
BY_FUNCTION = "it was made by a Function"
TURNED = "it shows another dtype, and was turned in place"

# Views of one base are counted only when there are this many: most have few.
_PRUNED_AT = 16


# Makes the view of another base, which stands for the one that it was made of.
Replay = Callable[[Tensor], Tensor]


# Shape, strides, offset.
Layout = tuple[tuple[int, ...], tuple[int, ...], int]


def layout_of(tensor: Tensor) -> Layout:
    """Where the elements of a tensor lie in its storage."""
    return tensor.shape, tensor.strides, tensor.offset


# Operators whose views have another dtype.
TURNING = frozenset({"core::view_as_real", "core::view_as_complex", "core::view.dtype"})


def is_replayed(tensor: Tensor) -> bool:
    """Whether a tensor is a view that is made again by operators."""
    history = tensor._history
    return history is not None and (
        history.view is not None and history.view.replay is not None
    )


class ViewOf:
    """What a view knows: its base, how it was made, and which version it knows of.

    `replay` makes it again, in another dtype or of what Python handles; None is
    `as_strided`.
    """

    __slots__ = ("base", "made", "operator", "replay", "version")

    def __init__(
        self,
        base: Tensor,
        made: str,
        operator: str,
        version: int,
        replay: Replay | None = None,
    ) -> None:
        self.base = base
        self.made = made
        self.operator = operator
        self.version = version
        self.replay = replay


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
        # Since it was asked: whoever told its views may have missed this one.
        view._requires_grad = True


def require_grad_of_views(base: Tensor) -> None:
    """Tell the views of a base that it requires grad now."""
    views = base._history.views
    if views:
        for each in views.copy().values():
            view = each()
            if view is not None:
                view._requires_grad = True


def edge_of(tensor: Tensor) -> Edge:
    """Where the gradient of a tensor that requires grad goes.

    Raises `ViewModified` for a view that cannot follow its base.
    """
    history = tensor._history
    if history is not None:
        view = history.view
        if view is not None and view.version != tensor._version:
            _renew(tensor, history, view)
        if history.node is not None:
            return history.node, history.number
    return accumulator_of(tensor), 0


def edge_text(place: int, bit: int, asked: str) -> list[str]:
    """The lines that take the edge of argument `a0`, ... as `e0`, where `asked` is so.

    They add the bit to `mask`, and are for kernels that are generated: what `edge_of`
    does, with a call less.
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


# What these lines name.
EDGE_NAMES = {"accumulator_of": accumulator_of, "edge_of": edge_of}


def renew(tensor: Tensor) -> None:
    """Make sure that the history of a view is that of its base as it is now."""
    history = tensor._history
    if history is not None:
        view = history.view
        if view is not None and view.version != tensor._version:
            _renew(tensor, history, view)


def _renew(tensor: Tensor, history: History, view: ViewOf) -> None:
    base, version = view.base, tensor._version
    if base._requires_grad:
        if view.made:
            raise ViewModified(
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
