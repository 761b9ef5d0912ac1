"""The graph under torch's name `autograd.graph`: hooks of saved tensors, and nodes.

`register_multi_grad_hook` is built from hooks of tensors: the hooks of one backward
pass share a list of gradients, which is dropped together with the pass.

Rules:
- a multi-gradient hook does not keep its tensors or their nodes alive;
- with "all", the hook is called when the gradient of the last of those tensors that
  the pass reaches is known, or at the end of the pass if one gets no gradient.
"""

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, ref

from everyorder.runtime.autograd.accumulate import AccumulateGrad, accumulator_of
from everyorder.runtime.autograd.grad_edges import edge_of
from everyorder.runtime.autograd.grad_mode import GRAD, BackwardRun
from everyorder.runtime.autograd.methods import register_hook
from everyorder.runtime.autograd.node import Node, RemovableHandle
from everyorder.runtime.autograd.saved_hooks import (
    disable_saved_tensors_hooks,
    saved_tensors_hooks,
)
from everyorder.runtime.base.locks import reentered
from everyorder.runtime.errors.autograd import AutogradMisuse
from everyorder.runtime.errors.call import NotOffered
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.tensors.tensor import Tensor

__all__ = [
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class save_on_cpu(saved_tensors_hooks):  # noqa: N801  # torch's name
    """Keep the tensors that the block saves in memory of the host.

    They are copied there when they are saved, and back to their device when they are
    read. Tensors on the CPU are kept as they are, unless `pin_memory` copies all to
    memory that a CUDA device reads directly: then saving a tensor raises `WrongOption`
    without such a device.
    """

    __slots__ = ()

    def __init__(self, pin_memory: bool = False) -> None:
        super().__init__(_to_pinned if pin_memory else _to_host, _to_device)


def _to_host(tensor: Tensor) -> Any:
    return tensor.device, tensor.to("cpu")


def _to_pinned(tensor: Tensor) -> Any:
    return tensor.device, core._to_copy(tensor, device="cpu", pin_memory=True)


def _to_device(stored: Any) -> Tensor:
    device, tensor = stored
    back: Tensor = tensor.to(device)
    return back


def allow_mutation_on_saved_tensors() -> Any:
    """Refuse torch's mode that copies saved tensors when they are modified.

    Raises:
        NotOffered: always.
    """
    raise NotOffered(
        asked="allow_mutation_on_saved_tensors",
        reason="saved tensors are not copied when they are modified",
        remedy="modify a clone(), or save copies: saved_tensors_hooks(lambda t: "
        "t.clone(), lambda t: t)",
    )


def get_gradient_edge(tensor: Tensor) -> Any:
    """Refuse torch's pair of a node and a number, which stands for a tensor.

    Raises:
        NotOffered: always.
    """
    raise NotOffered(
        asked="get_gradient_edge",
        reason="grad and backward start and end at tensors only",
        remedy="pass the tensor itself; its node is tensor.grad_fn, and the next nodes "
        "are in next_functions",
    )


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Count a write to tensors that no operator made, as by NumPy or a CUDA kernel.

    A gradient that needs the former elements is then refused, as after `add_(1)`.
    Tensors of inference mode have no gradients, and are left as they are.

    Raises:
        AutogradMisuse: a value is not a tensor.
    """
    for each in [tensor] if isinstance(tensor, Tensor) else tensor:
        if not isinstance(each, Tensor):
            raise AutogradMisuse(
                code="HookMisuse",
                asked="increment_version",
                fault=f"a value is of {type(each).__name__}; expected tensors",
            )
        if not each.is_inference():
            each.storage().version += 1


class _Handles(RemovableHandle):
    """The hooks of several tensors; `remove` removes all of them."""

    __slots__ = ("_handles",)

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Remove the hooks; a second call has no effect."""
        for handle in self._handles:
            handle.remove()


class _Gradients:
    """The gradients that one backward pass has computed, for one hook."""

    __slots__ = ("done", "missing", "values")

    def __init__(self, count: int, missing: int) -> None:
        self.values: list[Tensor | None] = [None] * count
        self.missing = missing
        self.done = False


class _MultiHook:
    """The shared part of the hooks of several tensors."""

    def __init__(
        self, tensors: Sequence[Tensor], function: Callable[[Any], object], mode: str
    ) -> None:
        self._function = function
        self._all = mode == "all"
        self._lock = reentered()
        self._passes: WeakKeyDictionary[BackwardRun, _Gradients] = WeakKeyDictionary()
        self._nodes = [_node_reader(tensor) for tensor in tensors]

    def hook_of(self, place: int) -> Callable[[Any], None]:
        """Return the hook of the tensor at `place`."""

        def hook(gradient: Any) -> None:
            current = GRAD.run
            assert current is not None, "hooks run in a backward pass"
            with self._lock:
                state = self._passes.get(current)
                if state is None:
                    state = self._passes[current] = self._started(current)
            state.values[place] = gradient
            state.missing -= 1
            if not self._all:
                self._call(state, gradient)
            elif not state.missing:
                self._call(state, state.values)

        return hook

    def _call(self, state: _Gradients, value: Any) -> None:
        if not state.done:
            state.done = True
            self._function(value)

    def _started(self, current: BackwardRun) -> _Gradients:
        """Return the state of the first gradient of a pass."""
        reached = _reached(current)
        nodes = [read() for read in self._nodes]
        state = _Gradients(len(nodes), sum(node in reached for node in nodes))
        if self._all:
            current.ends.append(lambda: self._call(state, state.values))
        return state


def _node_reader(tensor: Tensor) -> Callable[[], Node | None]:
    """Return a function that returns the node where the gradient arrives, if alive."""
    node = edge_of(tensor)[0]
    if not isinstance(node, AccumulateGrad):
        return ref(node)
    leaf = ref(tensor)

    def read() -> Node | None:
        alive = leaf()
        return None if alive is None else accumulator_of(alive)

    return read


def _reached(current: BackwardRun) -> set[Node]:
    """Return the nodes that a backward pass runs, or passes a gradient to."""
    needed = current.needed
    waiting = [*current.nodes]
    nodes = {*waiting}
    while waiting:
        for edge in waiting.pop().next_edges:
            if edge is not None and edge[0] not in nodes:
                if needed is not None and edge[0] not in needed:
                    continue
                nodes.add(edge[0])
                waiting.append(edge[0])
    return nodes


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Any], object], *, mode: str = "all"
) -> RemovableHandle:
    """Call `fn` once in each backward pass that computes gradients of the tensors.

    With the mode "all", its argument is the list of their gradients, None for a tensor
    that the pass does not reach; with "any", the first gradient that is computed.

    Raises:
        AutogradMisuse: the mode is another one, or a tensor does not require grad.
    """
    if mode not in ("all", "any"):
        raise AutogradMisuse(
            code="HookMisuse",
            asked="register_multi_grad_hook",
            fault=f"the mode is {mode!r}; expected 'all' or 'any'",
        )
    for place, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor) or not tensor._requires_grad:
            raise AutogradMisuse(
                code="HookMisuse",
                asked="register_multi_grad_hook",
                fault=f"value {place} is not a tensor that requires grad",
            )
    shared = _MultiHook(tensors, fn, mode)
    return _Handles(
        [register_hook(each, shared.hook_of(at)) for at, each in enumerate(tensors)]
    )
