"""Writing to tensors, and views: their effects on versions and history.

Below autograd, at ADInplaceOrView, a tensor that an operator writes to gets a higher
version after the call, so that a gradient which needs the old values is refused instead
of wrong. A view is registered as a view of its argument. An operator of `core` has a
separate kernel here; other operators use the fallback, which reads the schema.

At Autograd, history changes. After `x.mul_(y)` the tensor `x` is an output of the new
node, and the old history of `x` is behind that node's edge. Writing to a view changes
its base: the base becomes an output of `CopySlices`, which sends the gradient of the
written part through the operator's node, and passes the rest on. The view itself
follows when its history is read next (`runtime.autograd.grad_edges`).

An in-place view, such as `t_`, does not write elements: the tensor becomes an output of
its node, and nothing else changes. The base of a view needs no update; saved tensors
and other views notice by the version.

Rules of versions:
- a call that raises leaves versions unchanged; a call that is interrupted, or runs out
  of stack or memory, raises them, as the written elements are unknown;
- an inference tensor is written to in inference mode only;
- an operator that does not write has no overhead: its bound kernel is the one below.

Rules of history:
- refused before any write: a leaf that requires grad and its views, a view that cannot
  follow, and, where elements are written, a tensor whose elements share memory;
- if a formula saves the tensor that is written to, it saves a clone;
- a tensor that was written but not recorded, because of an exception in between, is an
  output of a node that raises an error with the operator's name when it runs.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any
from weakref import ReferenceType, ref

from everyorder.runtime.autograd.engine import fit_gradient
from everyorder.runtime.autograd.grad_edges import (
    TRACKED,
    TURNED,
    TURNING,
    edge_of,
    follow,
    is_inference,
    is_replayed,
    meta_of,
    require_grad_of_views,
    tensors_in,
    with_history,
)
from everyorder.runtime.autograd.grad_mode import GRAD
from everyorder.runtime.autograd.gradient_plan import (
    TENSORS,
    Derivatives,
    SavedOutput,
    kind_of,
    restore,
    wrong_result,
)
from everyorder.runtime.autograd.node import (
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
from everyorder.runtime.autograd.recording import (
    Factory,
    Function,
    OperatorNode,
    run_below,
    start,
)
from everyorder.runtime.autograd.saved_hooks import PackedTensor
from everyorder.runtime.base.codegen import block, numbered, template
from everyorder.runtime.dispatch.kernel import linked
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.dispatch.registration import Registration
from everyorder.runtime.errors.autograd import BackwardRefused, WriteRefused
from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.keys import KeySet
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.schema.binding import returner
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.types import TensorType
from everyorder.runtime.tensors.dtype_info import DIFFERENTIABLE
from everyorder.runtime.tensors.keys import MODED, PYTHON, inference
from everyorder.runtime.tensors.shape import may_overlap_itself, span
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import ensure_place

# Errors that may occur anywhere, and leave no stack frame for their handler.
EXHAUSTED = (RecursionError, MemoryError)


def check_inference_write(tensor: Tensor, operator: str) -> None:
    """Check that a tensor without tracking may be written to.

    Raises:
        WriteRefused: outside of inference mode.
    """
    if not inference.active:
        raise WriteRefused(
            code="InferenceTensorUsed",
            use="modified",
            operator=operator,
            shape=tensor.shape,
        )


def bumping(schema: Schema) -> Factory:
    """Return the ADInplaceOrView kernel that raises the versions of written arguments.

    A refused call leaves the versions; an interrupted call raises them, as it may have
    written.
    """
    written = tuple(i for i, a in enumerate(schema.arguments) if a.is_write)
    operator = str(schema.name)

    def factory(below: Any, keyset: Any) -> Function:
        return _bumping(len(schema.arguments), written, False)(below.run, operator)

    return factory


def bumping_once(below: Any, keyset: Any) -> Function:
    """Return the ADInplaceOrView kernel of a function that writes by several operators.

    It counts as one write: every version is exactly one higher after the call. A call
    that raises leaves the versions as the function left them.
    """
    schema: Schema = below.schema
    operator = str(schema.name)
    written = tuple(i for i, a in enumerate(schema.arguments) if a.is_write)
    if all(schema.arguments[place].type == TensorType for place in written):
        return _bumping(len(schema.arguments), written, True)(below.run, operator)
    return _bumping_lists(below.run, operator, written, True)


@template(
    "autograd kernel",
    "run, operator",
    EXHAUSTED=EXHAUSTED,
    EveryorderError=EveryorderError,
    MODED=MODED,
    PYTHON=PYTHON,
    TRACKED=TRACKED,
    ensure_place=ensure_place,
    check_inference_write=check_inference_write,
)
def _bumping(count: int, written: tuple[int, ...], once: bool) -> list[str]:
    parameters = numbered(count)
    # Without a call: there may be no stack frame left.
    if once:
        raised = "; ".join([f"s{i}.version = v{i}" for i in written])
        refused, after = ["except Exception: raise"], [raised]
    else:
        raised = "; ".join([f"s{i}.version += 1" for i in written])
        handled = " or ".join([f"a{i}.key_bits & PYTHON" for i in written])
        refused = [
            "except EveryorderError: raise",
            "except Exception:",
            # A handled call has raised the versions of its writes itself.
            f"    if not (MODED or {handled}): {raised}",
            "    raise",
        ]
        # The call may have replaced the storage.
        after = [f"(a{i}._place or (s{i},))[0].version += 1" for i in written]
    lines = []
    for i in written:
        lines += [
            f"if a{i}.key_bits & TRACKED != TRACKED:",
            f"    check_inference_write(a{i}, operator)",
            f"s{i} = (a{i}._place or ensure_place(a{i}))[0]",
            *([f"v{i} = s{i}.version + 1"] if once else []),
        ]
    lines += [
        *block("try:", [f"result = run({parameters})"]),
        *block("except EXHAUSTED:", [raised, "raise"]),
        *refused,
        *block("except BaseException:", [raised, "raise"]),
        *after,
        "return result",
    ]
    return block(f"def kernel({parameters}):", lines)


def install_version_fallback(library: Library) -> Registration:
    """Register the fallback, in a library of the namespace `_`.

    A dispatcher that starts with the built-in fallback must release it first
    (`runtime.dispatch.dispatcher.release`).

    Raises:
        Conflict: a fallback is registered already.
    """
    return library.fallback(linked(_bumping_any, "versions"), "ADInplaceOrView")


def _bumping_any(below: Any, keyset: KeySet) -> Callable[..., Any]:
    run, schema = below.run, below.schema
    places = [i for i, argument in enumerate(schema.arguments) if argument.is_write]
    if not places:
        return run  # type: ignore[no-any-return]  # the bare function below
    return _bumping_lists(run, str(schema.name), places, False)


def _bumping_lists(
    run: Function, operator: str, places: Sequence[int], once: bool
) -> Function:
    """Return the kernel for lists of tensors, and for optional tensors."""

    def kernel(*arguments: Any) -> Any:
        written = [*tensors_in([arguments[place] for place in places])]
        for tensor in written:
            if is_inference(tensor):
                check_inference_write(tensor, operator)
        storages = [(tensor._place or ensure_place(tensor))[0] for tensor in written]
        versions = [storage.version + 1 for storage in storages]
        over = True
        try:
            return run(*arguments)
        except EXHAUSTED:
            raise
        except Exception:
            over = False
            raise
        finally:
            if over:
                for storage, version in zip(storages, versions, strict=True):
                    storage.version = version if once else storage.version + 1

    return kernel


def following(schema: Schema, made: str) -> Factory:
    """Return the ADInplaceOrView kernel that registers the result as a view of `a0`."""
    several = kind_of(schema.returns[0].type) == TENSORS
    operator, returns = str(schema.name), returner(schema)

    def factory(below: Any, keyset: Any) -> Function:
        make = _following(len(schema.arguments), several, operator in TURNING)
        replay = partial(replay_of, below.operator, schema, 0)
        return make(below.run, made, operator, returns, replay)

    return factory


@template(
    "autograd kernel",
    "run, made, operator, returns, replay_of",
    GRAD=GRAD,
    PYTHON=PYTHON,
    follow=follow,
    is_replayed=is_replayed,
    wrong_result=wrong_result,
)
def _following(count: int, several: bool, turns: bool) -> list[str]:
    parameters = numbered(count)
    # Strides do not describe a view in another dtype, nor the views of such a view.
    condition = "" if turns else " if a0.key_bits & PYTHON or is_replayed(a0) else None"
    each = "for view in result: " if several else "view = result; "
    return [
        f"def kernel({parameters}):",
        f"    result = run({parameters})",
        "    if GRAD.enabled or GRAD.follows:",
        f"        replay = replay_of({parameters}){condition}",
        "        try:",
        f"            {each}follow(a0, view, made, operator, replay)",
        "        except (AttributeError, TypeError) as error:",
        "            raise wrong_result(returns, result, error) from None",
        "    return result",
    ]


def replay_of(
    operator: Callable[[], Any], schema: Schema, place: int, *values: Any
) -> Replay:
    """Return a function that creates the same view, from these values, of another
    origin.

    `place` is the position of the origin.
    """
    # Copy the lists: the kernel owns them and may change them.
    copies = [[*each] if isinstance(each, list) else each for each in values]
    start = schema.kwarg_only_start
    names = [argument.name for argument in schema.arguments[start:]]

    def replay(origin: Tensor) -> Tensor:
        replayed = [*copies[:place], origin, *copies[place + 1 :]]
        named = dict(zip(names, replayed[start:], strict=True))
        view: Tensor = operator().call(*replayed[:start], **named)
        return view

    return replay


def check_write(tensor: Tensor, operator: str) -> None:
    """Check that a recorded call may write to the tensor.

    Raises:
        WriteRefused: the history does not allow it, or elements share memory.
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
    """Check that a recorded call may become the history of the tensor.

    Raises:
        WriteRefused: a view that cannot follow; a leaf that requires grad, or its view.
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
    """Return True if the tensor is a leaf that requires grad, or a view of one."""
    history = tensor._history
    if history is not None and history.view is not None:
        tensor = history.view.base
        history = tensor._history
    return tensor._requires_grad and (history is None or history.node is None)


def modifying(run: Callable[..., Any], derivatives: Derivatives) -> Callable[..., Any]:
    """Return the kernel of an in-place call of which some argument requires grad."""

    def record(*args: Any) -> Any:
        written = args[0]
        if written.dtype not in DIFFERENTIABLE:
            # The written tensor is constant from here on, whatever its inputs were.
            return run_below(run, *args)
        check_write(written, derivatives.operator)
        node = start(derivatives, args, core.clone)
        before = base_edge(written)
        version = written._version
        try:
            result = run_below(run, *args)
            node.metas = (meta_of(written),)
            rebase(written, node, before)
            if node.plan.results:
                node.keep_results([written])
        except BaseException:
            refuse_gradients(
                [(written, version)], derivatives.operator, node.next_edges
            )
            raise
        return result

    return record


def refuse_gradients(
    versions: Iterable[tuple[Tensor, int]], operator: str, edges: list[Edge | None]
) -> None:
    """Mark the tensors that a raising call wrote to (their versions rose) as failing.

    Their gradients are refused. `edges` are the edges that the node of the call would
    have had. A written leaf stays a leaf, as in `no_grad`.
    """
    for tensor, version in versions:
        if tensor._version == version or tensor.dtype not in DIFFERENTIABLE:
            continue
        if _shows_leaf(tensor):
            continue
        before = base_edge(tensor)
        error = partial(
            BackwardRefused,
            code="UnrecordedWrite",
            operator=operator,
            shape=tensor.shape,
        )
        node = Failing(operator, [before, *edges], (meta_of(tensor),), error)
        rebase(tensor, node, before)


def modifying_view(
    run: Callable[..., Any], derivatives: Derivatives
) -> Callable[..., Any]:
    """Return the kernel of an in-place view of which some argument requires grad."""

    def record(*args: Any) -> Any:
        tensor = args[0]
        check_history(tensor, derivatives.operator)
        node = start(derivatives, args, None)
        version = tensor._version
        try:
            result = run_below(run, *args)
            node.metas = (meta_of(tensor),)
            history = tensor._history
            replace_node(history, node, 0)
            if history.view is not None:
                # Its history is current; it need not be refreshed from the base.
                history.view.version = tensor._version
                history.view.replay = None
                if tensor._dtype is not history.view.base._dtype:
                    history.view.made = history.view.made or TURNED
        except BaseException:
            refuse_gradients([(tensor, version)], derivatives.operator, node.next_edges)
            raise
        return result

    return record


def base_edge(written: Tensor) -> Edge | None:
    """Return the edge of the base of a view before a write; None if it has none."""
    history = written._history
    if history is None or history.view is None:
        return None
    base = history.view.base
    return edge_of(base) if base._requires_grad else None


def rebase(written: Tensor, node: Node, before: Edge | None, number: int = 0) -> None:
    """Make a tensor that was written to output `number` of `node`.

    `before` is the result of `base_edge` before the call.
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
    # -1 differs from every version, so that the next read refreshes the view.
    history.view.version = -1


def _become(tensor: Tensor, history: History, node: Node, number: int) -> None:
    replace_node(history, node, number)
    tensor._requires_grad = True
    require_grad_of_views(tensor)


class _Shown:
    """A restorer of a saved result of a call on a view, as a view of the new base."""

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
        alias = restore(saved, operator, argument)
        node = self._node()
        if not GRAD.enabled or node is None:
            return alias
        return self._at(alias, node)

    def edge_of_packed(self, packed: PackedTensor) -> Edge | None:
        """Return the edge of a result that a hook stored, as a view of the new base."""
        node = self._node()
        if node is None:
            return None
        assert packed.layout is not None, "an alias shares a storage"
        shape, strides, offset = self._layout
        # The history of a view needs a base of its size, whatever its elements are.
        size = [offset + span(shape, strides)]
        room = core.zeros(size, dtype=self._dtype, device=packed.device)
        shape, strides, offset = packed.layout
        view = Tensor(None, shape, packed.dtype, room.device, room.key_bits)
        view._place = ensure_place(room)[0], offset, strides
        return edge_of(self._at(view, node))

    def _at(self, alias: Tensor, node: Node) -> Tensor:
        """Return a tensor on the elements of a result, as a view of the new base."""
        assert alias._place is not None, "an alias shares a storage"
        shape, strides, offset = self._layout
        base = Tensor(None, shape, self._dtype, alias.device, alias.key_bits)
        base._place = alias._place[0], offset, strides
        base = with_history(base, node)
        if self._replay is not None and alias.dtype is not self._dtype:
            return self._replay(base)
        restored: Tensor = core.as_strided(base, *layout_of(alias))
        return restored


class CopySlices(Node):
    """The node of the base of a view that was written to."""

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
        """Return the operator that wrote to the view."""
        return self._inner.operator

    def name(self) -> str:
        """Return `CopySlices`."""
        return "CopySlices"

    def apply(self, gradients: list[Any]) -> Gradients:
        """Return the gradient of the old base, then those of the operator's other
        inputs.
        """
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
        inner_gradients: list[Any] = [None] * len(inner.metas)
        inner_gradients[self._number] = core.clone(part)
        first, *others = inner.apply(inner_gradients)
        if self.next_edges[0] is None:
            return [None, None, *others]
        if first is None:
            core.zero_(part)
        else:
            core.copy_(part, fit_gradient(first, inner.metas[self._number], inner))
        return [whole, None, *others]

    def release(self) -> None:
        """Release the values that the operator saved."""
        self._inner.release()


def _laid_out(gradient: Tensor, layout: Layout) -> Tensor:
    """Return a copy of a gradient with the strides of its tensor."""
    shape, strides, _ = layout
    # `new_zeros` keeps the class of a gradient that has a handler.
    room = core.new_zeros(gradient, (span(shape, strides),))
    whole: Tensor = core.as_strided(room, shape, strides, 0)
    core.copy_(whole, gradient)
    return whole
