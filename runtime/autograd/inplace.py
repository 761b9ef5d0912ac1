"""In place: what writing to a tensor does to its history.

True only here: how the history of a tensor changes.  After `x.mul_(y)` the tensor `x`
is an output of the new node, and the old history of `x` is behind that node's edge.

Writing to a view changes its base: the base becomes an output of `CopySlices`, which
takes the gradient of the part that was written to through the operator's own node, and
lets the rest pass.  The view itself follows when it is asked next
(`runtime.autograd.history`).

An in-place view, such as `t_`, writes no element: the tensor becomes an output of its
node, and that is all.  The base of a view has nothing to learn; whoever saved the
tensor, or has a view of it, hears of it by the version.

Rules:
- refused, before anything is written: a leaf that requires grad and its views, a view
  that cannot follow, and, where elements are written, a tensor of which some share
  memory;
- what a formula saves of the tensor that is written to is a clone of it;
- what was written and not recorded, as an exception came in between, is an output of a
  node that refuses by name to be run.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any
from weakref import ReferenceType, ref

from runtime.autograd.engine import fitted
from runtime.autograd.history import (
    TURNED,
    edge_of,
    meta_of,
    require_grad_of_views,
    with_history,
)
from runtime.autograd.modes import GRAD
from runtime.autograd.node import (
    DIFFERENTIABLE,
    Edge,
    Failing,
    Gradients,
    History,
    Layout,
    Meta,
    Node,
    Replay,
    history_of,
    layout_of,
    replace_node,
)
from runtime.autograd.plan import Recipe, SavedOutput, checked
from runtime.autograd.recording import OperatorNode, run_below, start
from runtime.errors.autograd import BackwardRefused, WriteRefused
from runtime.operators.call import core
from runtime.schema.codes import DType
from runtime.tensors.keys import PYTHON
from runtime.tensors.shape import may_overlap_itself, span
from runtime.tensors.tensor import Tensor


def check_write(tensor: Tensor, operator: str) -> None:
    """Whether a recorded call may write to the tensor.

    Raises `WriteRefused`.
    """
    check_history(tensor, operator)
    if tensor._place is not None and may_overlap_itself(tensor.shape, tensor.strides):
        raise WriteRefused(
            code="OverlappingWrite",
            operator=operator,
            shape=tensor.shape,
            strides=tensor.strides,
        )


def check_history(tensor: Tensor, operator: str) -> None:
    """Whether a recorded call may become the history of the tensor.

    Raises `WriteRefused`.
    """
    history = tensor._history
    view = None if history is None else history.view
    if view is not None and view.made:
        raise WriteRefused(
            code="ViewModified", operator=operator, made=view.made, shape=tensor.shape
        )
    if _shows_leaf(tensor):
        is_view = view is not None
        raise WriteRefused(
            code="LeafModified", operator=operator, shape=tensor.shape, is_view=is_view
        )


def _shows_leaf(tensor: Tensor) -> bool:
    """Whether it is a leaf that requires grad, or a view of one."""
    history = tensor._history
    if history is not None and history.view is not None:
        tensor = history.view.base
        history = tensor._history
    return tensor._requires_grad and (history is None or history.node is None)


def modifying(run: Callable[..., Any], recipe: Recipe) -> Callable[..., Any]:
    """The function of an in-place call of which some argument requires grad."""

    def record(*args: Any) -> Any:
        written = args[0]
        if written.dtype not in DIFFERENTIABLE:
            # What is written is constant from here on, whatever it was made of.
            return run_below(run, *args)
        check_write(written, recipe.operator)
        node = start(recipe, args, core.clone)
        before = edge_before(written)
        version = written._version
        try:
            result = run_below(run, *args)
            node.metas = (meta_of(written),)
            rebase(written, node, before)
            if node.plan.results:
                node.keep_results([written])
        except BaseException:
            unrecorded([(written, version)], recipe.operator, node.next_edges)
            raise
        return result

    return record


def unrecorded(
    versions: Iterable[tuple[Tensor, int]], operator: str, edges: list[Edge | None]
) -> None:
    """Refuse gradients to what a call that raised wrote to: whose versions rose.

    `edges` are those of the node that the call would have had.  A leaf that was written
    to is one still, as in `no_grad`.
    """
    for tensor, version in versions:
        if tensor._version == version or tensor.dtype not in DIFFERENTIABLE:
            continue
        if _shows_leaf(tensor):
            continue
        before = edge_before(tensor)
        error = partial(
            BackwardRefused,
            code="UnrecordedWrite",
            operator=operator,
            shape=tensor.shape,
        )
        node = Failing(operator, [before, *edges], (meta_of(tensor),), error)
        rebase(tensor, node, before)


def showing(run: Callable[..., Any], recipe: Recipe) -> Callable[..., Any]:
    """As `modifying`, of an in-place view."""

    def record(*args: Any) -> Any:
        shown = args[0]
        check_history(shown, recipe.operator)
        node = start(recipe, args, None)
        version = shown._version
        try:
            result = run_below(run, *args)
            node.metas = (meta_of(shown),)
            history = shown._history
            replace_node(history, node, 0)
            if history.view is not None:
                # What it has become, it is without looking at its base again.
                history.view.version = shown._version
                history.view.replay = None
                if shown._dtype is not history.view.base._dtype:
                    history.view.made = history.view.made or TURNED
        except BaseException:
            unrecorded([(shown, version)], recipe.operator, node.next_edges)
            raise
        return result

    return record


def edge_before(written: Tensor) -> Edge | None:
    """The edge of the base of a view that is about to be written to."""
    history = written._history
    if history is None or history.view is None:
        return None
    base = history.view.base
    return edge_of(base) if base._requires_grad else None


def rebase(written: Tensor, node: Node, before: Edge | None, number: int = 0) -> None:
    """Make a tensor that was written to output `number` of `node`.

    `before` is what `edge_before` said before the call.
    """
    history = history_of(written)
    if history.view is None:
        _become(written, history, node, number)
        return
    base = history.view.base
    copying = CopySlices(before, node, number, base, written, history.view.replay)
    if isinstance(node, OperatorNode):
        node.host = copying.shown
    _become(base, history_of(base), copying, 0)
    written._requires_grad = True
    # Whatever version it has now is another one than it looked at last.
    history.view.version = -1


def _become(tensor: Tensor, history: History, node: Node, number: int) -> None:
    replace_node(history, node, number)
    tensor._requires_grad = True
    require_grad_of_views(tensor)


class _Shown:
    """Gives a saved result of a call on a view back, as a view of the new base."""

    __slots__ = ("_dtype", "_layout", "_node", "_replay")

    def __init__(
        self,
        node: "ReferenceType[CopySlices]",
        layout: Layout,
        dtype: DType,
        replay: Replay | None,
    ) -> None:
        self._node = node
        self._layout = layout
        self._dtype = dtype
        self._replay = replay

    def __call__(self, saved: SavedOutput, operator: str, argument: str) -> Tensor:
        alias = checked(saved, operator, argument)
        node = self._node()
        if not GRAD.enabled or node is None:
            return alias
        assert alias._place is not None, "an alias shares a storage"
        shape, strides, offset = self._layout
        base = Tensor(None, shape, self._dtype, alias.device, alias.key_bits)
        base._place = alias._place[0], offset, strides
        base = with_history(base, node)
        if self._replay is not None and alias.dtype is not self._dtype:
            return self._replay(base)
        shown: Tensor = core.as_strided(base, *layout_of(alias))
        return shown


class CopySlices(Node):
    """What writing to a view did to its base."""

    __slots__ = ("_base", "_inner", "_number", "_replay", "_view", "shown")

    def __init__(
        self,
        before: Edge | None,
        inner: Node,
        number: int,
        base: Tensor,
        view: Tensor,
        replay: Replay | None,
    ) -> None:
        metas: tuple[Meta, ...] = (meta_of(base),)
        super().__init__([before, *inner.next_edges], metas)
        self._inner = inner
        self._number = number
        self._base = layout_of(base)
        self._view = layout_of(view)
        self._replay = replay
        self.shown = _Shown(ref(self), self._base, base.dtype, replay)

    @property
    def operator(self) -> str:
        """The operator that wrote to the view."""
        return self._inner.operator

    def name(self) -> str:
        """`CopySlices`."""
        return "CopySlices"

    def apply(self, gradients: list[Any]) -> Gradients:
        """The gradient of the old base, then those of the operator's other inputs."""
        gradient = gradients[0]
        inner = self._inner
        if self._replay is None:
            whole = _laid_out(gradient, self._base)
            shape, strides, offset = self._view
            part = core.as_strided(whole, shape, strides, offset - self._base[2])
        else:
            handled = gradient.key_bits & PYTHON
            whole = core.clone(gradient) if handled else _laid_out(gradient, self._base)
            part = self._replay(whole)
        given: list[Any] = [None] * len(inner.metas)
        given[self._number] = core.clone(part)
        first, *others = inner.apply(given)
        if self.next_edges[0] is None:
            return [None, None, *others]
        if first is None:
            core.zero_(part)
        else:
            core.copy_(part, fitted(first, inner.metas[self._number], inner))
        return [whole, None, *others]

    def release(self) -> None:
        """Let go of what the operator saved."""
        self._inner.release()


def _laid_out(gradient: Tensor, layout: Layout) -> Tensor:
    """A copy of a gradient with the strides of what it is the gradient of."""
    shape, strides, _ = layout
    # A gradient of a class with a handler stays one.
    room = core.new_zeros(gradient, (span(shape, strides),))
    whole: Tensor = core.as_strided(room, shape, strides, 0)
    core.copy_(whole, gradient)
    return whole
