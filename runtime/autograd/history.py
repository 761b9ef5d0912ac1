"""History: what autograd keeps on a tensor, in its slot `_history`.

True only here: the few facts that belong to a tensor and not to the graph.

    node, number   the node that the tensor is an output of; None for a leaf
    view           of a view: its base, and when its history was last looked at
    views          of a base that does not require grad: weak references to its views,
                   each by the `id` of the reference
    extra          gradient, hooks and accumulator, for tensors that have any of them

Rules:
- no history at all is that of a leaf that nothing was asked of;
- a tensor with `node` has `_requires_grad` set: that slot alone is read by every call;
- a base never keeps its views alive, a view keeps its base.
"""

from typing import TYPE_CHECKING, Any
from weakref import ReferenceType

from runtime.autograd.node import Node, Table
from runtime.locks import reentered
from runtime.schema.codes import DType
from runtime.tensors.elements import SUPPORTED
from runtime.tensors.tensor import Tensor

if TYPE_CHECKING:
    from runtime.autograd.views import ViewOf


# The dtypes of tensors that can have gradients.
DIFFERENTIABLE = frozenset(
    dtype
    for dtype in map(DType.named, SUPPORTED)
    if dtype.is_floating or dtype.is_complex
)


class Extra:
    """Gradient, hooks and accumulator of a tensor."""

    __slots__ = ("accumulator", "after", "grad", "hooks", "lock", "retains")

    def __init__(self) -> None:
        self.grad: Tensor | None = None
        self.accumulator: ReferenceType[Any] | None = None
        # Hooks of a leaf's gradient, and those called when it was accumulated.
        self.hooks: Table | None = None
        self.after: Table | None = None
        self.retains = False
        # Held while the gradient is accumulated: threads may share a leaf.
        self.lock = reentered()


class History:
    """See the module."""

    __slots__ = ("extra", "node", "number", "view", "views")

    def __init__(self, node: Node | None = None, number: int = 0) -> None:
        self.node = node
        self.number = number
        self.view: ViewOf | None = None
        self.views: dict[int, ReferenceType[Tensor]] | None = None
        self.extra: Extra | None = None


# Held while a tensor gets its history or its extra, so that it gets one only.
CLAIMING = reentered()


def history_of(tensor: Tensor) -> History:
    """The history of a tensor, made if there is none."""
    found: History | None = tensor._history
    if found is None:
        with CLAIMING:
            made = History()
            if tensor._history is None:
                tensor._history = made
            found = tensor._history
    return found


def extra_of(tensor: Tensor) -> Extra:
    """The extra of a tensor, made if there is none."""
    history = history_of(tensor)
    if history.extra is None:
        with CLAIMING:
            made = Extra()
            if history.extra is None:
                history.extra = made
    return history.extra


def listed_views(history: History) -> dict[int, "ReferenceType[Tensor]"]:
    """The views of a base, an empty dict if there are none so far."""
    if history.views is None:
        with CLAIMING:
            if history.views is None:
                history.views = {}
    return history.views


def replace_node(history: History, node: Node, number: int) -> None:
    """Make the tensor output `number` of `node`; what retains its gradient follows.

    Hooks stay with the node that they were registered at.
    """
    extra, old = history.extra, history.node
    kept = None
    if extra is not None and extra.retains and old is not None and old.hooks:
        kept = old.hooks.retained.pop(history.number, None)
    history.node, history.number = node, number
    if kept is not None:
        node.hooked().retained[number] = kept
