"""The graph: nodes, and the history of a tensor.

A node represents one call; its outputs are the outputs of that call (their gradients
are its arguments), its edges lead to the nodes of its inputs (which receive the
computed gradients). At a leaf that requires grad the graph ends in an `AccumulateGrad`
(`runtime.autograd.accumulate`).

A tensor has a `History` in its slot `_history`, None if it was never needed:

    node, number   the node that the tensor is an output of; None for a leaf
    view           of a view: its base, and the version at the last refresh
    views          of a base that does not require grad: weak references to its views,
                   each by the `id` of the reference
    extra          gradient, hooks and accumulator, for tensors that have any of them

Rules:
- an edge is a node and the number of one of its outputs, or None if the gradient is not
  needed;
- nodes are numbered in the order of creation, over all threads; an edge leads from a
  node to an earlier one, so descending numbers are a topological order;
- a node never refers to the tensors whose history it is: tensors own their node, and
  reference counts free the graph with the last tensor that needs it;
- a tensor with `node` has `_requires_grad` set: every call reads only that slot;
- a base never keeps its views alive; a view keeps its base alive.
"""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any
from weakref import ReferenceType, ref

from everyorder.runtime.autograd.grad_mode import followed
from everyorder.runtime.base.locks import reentered
from everyorder.runtime.errors.autograd import AutogradMisuse
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.tensors.tensor import Tensor

# Shape, dtype and device of an output, which its gradient must match.
Meta = tuple[tuple[int, ...], DType, Device]
Edge = tuple["Node", int]
Gradients = Sequence[Any]

# The next number of a node; `next` on it is atomic.
SEQUENCE = count(1)
_HOOK_NUMBERS = count(1)


def mismatch(where: str, what: str, expected: object, actual: object) -> AutogradMisuse:
    """Return the error for a gradient that does not fit."""
    return AutogradMisuse(
        code="GradientMismatch",
        where=where,
        what=what,
        expected=str(expected),
        found=str(actual),
    )


class HookTable(dict[int, Callable[..., Any]]):
    """Hooks by number, in the order of registration."""

    __slots__ = ("__weakref__",)


# The former name of the class, for modules that were pickled under it.
Table = HookTable


class RemovableHandle:
    """A registered hook; `remove` removes it."""

    __slots__ = ("_number", "_table")

    def __init__(self, table: HookTable, hook: Callable[..., Any]) -> None:
        self._number = next(_HOOK_NUMBERS)
        self._table: ReferenceType[HookTable] = ref(table)
        table[self._number] = hook

    def remove(self) -> None:
        """Remove the hook; a second call has no effect."""
        table = self._table()
        if table is not None:
            table.pop(self._number, None)

    def __enter__(self) -> "RemovableHandle":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.remove()


class Hooks:
    """The hooks of one node.

    `outputs` are hooks of single output gradients, by output number; `retained` are the
    hooks that store such a gradient for its tensor, and run after them; `before` and
    `after` are the hooks of the node itself.
    """

    __slots__ = ("after", "before", "outputs", "retained")

    def __init__(self) -> None:
        self.before = HookTable()
        self.after = HookTable()
        self.outputs: dict[int, HookTable] = {}
        self.retained: dict[int, Callable[[Any], None]] = {}

    def run_outputs(self, gradients: list[Any]) -> None:
        """Replace the gradients of the outputs by those after the hooks of tensors.

        Raises:
            AutogradMisuse: a hook returns a value that is not a gradient of this shape.
        """
        for number, table in self.outputs.items():
            gradients[number] = run_hooks(table, gradients[number])
        for number, keep in self.retained.items():
            keep(gradients[number])

    def run_before(self, gradients: list[Any]) -> list[Any]:
        """Return the gradients of the outputs after the hooks of the node.

        Raises:
            AutogradMisuse: a hook returns gradients that do not fit.
        """
        for hook in [*self.before.values()]:
            changed = followed(hook, tuple(gradients))
            if changed is not None:
                replaced = _several(changed, "register_prehook")
                if len(replaced) != len(gradients):
                    fault = f"the hook returned {len(replaced)} gradients, not "
                    fault += str(len(gradients))
                    raise AutogradMisuse(
                        code="HookMisuse", asked="register_prehook", fault=fault
                    )
                gradients = [*replaced]
        return gradients

    def run_after(self, results: Gradients, gradients: Gradients) -> Gradients:
        """Return the gradients of the inputs after the hooks.

        Raises:
            AutogradMisuse: a hook returns values that are not gradients.
        """
        for hook in [*self.after.values()]:
            changed = followed(hook, tuple(results), tuple(gradients))
            if changed is not None:
                results = _several(changed, "register_hook")
        return results


def run_hooks(table: HookTable, gradient: Any) -> Any:
    """Return a gradient after the hooks of one tensor; hooks are not called with None.

    Raises:
        AutogradMisuse: a hook returns a value that is not a gradient of this shape.
    """
    for hook in [*table.values()]:
        if gradient is None:
            break
        changed = followed(hook, gradient)
        if changed is not None:
            replaced = _returned(changed, "register_hook")
            if tuple(replaced.shape) != tuple(gradient.shape):
                fault = (
                    f"the hook returned a gradient of shape {tuple(replaced.shape)}, "
                )
                fault += f"not {tuple(gradient.shape)}"
                raise AutogradMisuse(
                    code="HookMisuse", asked="register_hook", fault=fault
                )
            gradient = replaced
    return gradient


def _returned(changed: Any, call: str) -> Any:
    """Return a gradient that a hook returned.

    Raises:
        AutogradMisuse: it is neither a tensor nor None.
    """
    if changed is not None and not hasattr(changed, "key_bits"):
        kind = type(changed).__name__
        fault = f"the hook returned a {kind}, not a tensor or None"
        raise AutogradMisuse(code="HookMisuse", asked=call, fault=fault)
    return changed


def _several(changed: Any, call: str) -> tuple[Any, ...]:
    """Return the gradients that a hook of a node returned.

    Raises:
        AutogradMisuse: one of them is neither a tensor nor None.
    """
    gradients = tuple(changed) if isinstance(changed, (tuple, list)) else (changed,)
    return tuple(_returned(each, call) for each in gradients)


class Node:
    """One function of the graph; `grad_fn` of the outputs of one call."""

    __slots__ = ("__weakref__", "hooks", "metas", "next_edges", "sequence")

    def __init__(self, next_edges: list[Edge | None], metas: tuple[Meta, ...]) -> None:
        self.next_edges = next_edges
        self.metas = metas
        self.sequence = next(SEQUENCE)
        self.hooks: Hooks | None = None

    @property
    def operator(self) -> str:
        """Return the called operator, for errors."""
        raise NotImplementedError("every class of nodes defines `operator`")

    def name(self) -> str:
        """Return the name of the function, such as `MulBackward`."""
        stem = self.operator.partition("::")[2] or self.operator
        words = stem.replace(".", "_").split("_")
        return "".join(word[:1].upper() + word[1:] for word in words) + "Backward"

    def apply(self, gradients: list[Any]) -> Gradients:
        """Return the gradients of the inputs, one for each edge, or None.

        At least one of the output gradients `gradients` is not None.
        """
        raise NotImplementedError("every class of nodes defines `apply`")

    def release(self) -> None:
        """Release the saved values; the node may refuse to run again after that."""

    @property
    def next_functions(self) -> tuple[tuple["Node | None", int], ...]:
        """Return the edges, with (None, 0) where the gradient is not needed."""
        return tuple([edge or (None, 0) for edge in self.next_edges])

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(gradients of inputs, gradients of outputs)` after the node.

        Its result, unless None, replaces the gradients of the inputs.
        """
        return RemovableHandle(self.hooked().after, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(gradients of outputs)` before the node; it may replace them."""
        return RemovableHandle(self.hooked().before, hook)

    def hooked(self) -> Hooks:
        """Return the hooks of the node, created on first use."""
        if self.hooks is None:
            self.hooks = Hooks()
        return self.hooks

    def __repr__(self) -> str:
        return f"<{self.name()}>"


class Failing(Node):
    """A node that cannot run backwards.

    When the node runs, it calls `error()` and raises the result; if that is None,
    gradients end there.
    """

    __slots__ = ("_called", "_error")

    def __init__(
        self,
        called: str,
        next_edges: list[Edge | None],
        metas: tuple[Meta, ...],
        error: Callable[[], BaseException | None],
    ) -> None:
        super().__init__(next_edges, metas)
        self._called = called
        self._error = error

    @property
    def operator(self) -> str:
        """Return the name of the call."""
        return self._called

    def apply(self, gradients: list[Any]) -> Gradients:
        """Raise the error of the node, or return no gradients."""
        error = self._error()
        if error is not None:
            raise error
        return [None] * len(self.next_edges)


class Extra:
    """Gradient, hooks and accumulator of a tensor."""

    __slots__ = ("accumulator", "after", "grad", "hooks", "lock", "retains")

    def __init__(self) -> None:
        self.grad: Tensor | None = None
        self.accumulator: ReferenceType[Any] | None = None
        # Hooks of a leaf's gradient, and hooks called after accumulation.
        self.hooks: HookTable | None = None
        self.after: HookTable | None = None
        self.retains = False
        # Acquired while the gradient is accumulated: threads may share a leaf.
        self.lock = reentered()


# Creates a view again, of another base that replaces the original one.
Replay = Callable[[Tensor], Tensor]

# Shape, strides, offset.
Layout = tuple[tuple[int, ...], tuple[int, ...], int]


def layout_of(tensor: Tensor) -> Layout:
    """Return shape, strides and offset of a tensor in its storage."""
    return tensor.shape, tensor.strides, tensor.offset


class ViewOf:
    """The view data of a tensor: base, reason not to follow, version at the last
    refresh.

    `replay` creates the view again, in another dtype or where Python handles the base;
    None means `as_strided`.
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


class History:
    """The graph data of a tensor; the module describes each attribute."""

    __slots__ = ("extra", "node", "number", "view", "views")

    def __init__(self, node: Node | None = None, number: int = 0) -> None:
        self.node = node
        self.number = number
        self.view: ViewOf | None = None
        self.views: dict[int, ReferenceType[Tensor]] | None = None
        self.extra: Extra | None = None


# Acquired while a tensor gets its history or its extra, so that it gets only one.
HISTORY_LOCK = reentered()


def history_of(tensor: Tensor) -> History:
    """Return the history of a tensor; create it if there is none."""
    history: History | None = tensor._history
    if history is None:
        with HISTORY_LOCK:
            created = History()
            if tensor._history is None:
                tensor._history = created
            history = tensor._history
    return history


def extra_of(tensor: Tensor) -> Extra:
    """Return the extra of a tensor; create it if there is none."""
    history: History = tensor._history or history_of(tensor)
    if history.extra is None:
        with HISTORY_LOCK:
            extra = Extra()
            if history.extra is None:
                history.extra = extra
    return history.extra


def listed_views(history: History) -> dict[int, "ReferenceType[Tensor]"]:
    """Return the views of a base, an empty dict if there are none so far."""
    if history.views is None:
        with HISTORY_LOCK:
            if history.views is None:
                history.views = {}
    return history.views


def replace_node(history: History, node: Node, number: int) -> None:
    """Make the tensor output `number` of `node`, and move its `retain_grad` hook.

    Other hooks stay with the node that they were registered at.
    """
    extra, old = history.extra, history.node
    retained = None
    if extra is not None and extra.retains and old is not None and old.hooks:
        retained = old.hooks.retained.pop(history.number, None)
    history.node, history.number = node, number
    if retained is not None:
        node.hooked().retained[number] = retained
