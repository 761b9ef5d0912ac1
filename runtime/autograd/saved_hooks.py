"""Hooks of saved tensors: functions that replace the tensors which nodes save.

    with saved_tensors_hooks(pack, unpack):
        y = x * x.exp()             # the nodes store pack(x), pack(x.exp())
    y.sum().backward()              # the formulas read unpack(...) of these

A node that is recorded inside the block stores the result of `pack` for each tensor
that it saves. When the node runs backwards, `unpack` returns the tensor again, and the
tensor gets the place in the graph of the one that was saved.

Rules:
- of nested blocks, the innermost one counts; a tensor is unpacked by the hook of the
  block in which it was packed, wherever the backward pass runs;
- blocks belong to threads;
- `pack` runs in `no_grad`, once for each saved tensor, and must not write to it;
- `unpack` runs in the mode of the backward pass, each time that the tensor is read;
- `pack` receives an input itself, and of an output a tensor on the same elements
  without history: a stored output would keep its own node alive;
- the version of a packed tensor is not compared: the hooks decide what they store;
- nodes pay for one test of a set that is empty in most processes (`PACKING`).
"""

import threading
from collections.abc import Callable, Generator
from typing import Any, Self
from weakref import ref

from everyorder.runtime.autograd.accumulate import AccumulateGrad
from everyorder.runtime.autograd.grad_edges import (
    detached_alias,
    edge_of,
    with_history,
)
from everyorder.runtime.autograd.grad_mode import Mode, followed, no_grad
from everyorder.runtime.autograd.gradient_plan import SavedInput, SavedOutput
from everyorder.runtime.autograd.node import Edge, History, Node, layout_of
from everyorder.runtime.base.exits import Exit
from everyorder.runtime.errors.autograd import AutogradMisuse
from everyorder.runtime.keys.local import guard_error
from everyorder.runtime.tensors.keys import Presence
from everyorder.runtime.tensors.tensor import Tensor

Pack = Callable[[Tensor], Any]
Unpack = Callable[[Any], Tensor]

# A `Presence` for each active block of each thread.
PACKING: set[ref[Any]] = set()

_CALL = "saved_tensors_hooks"


class _Hooks(threading.local):
    """The active hooks of a thread, and the message that refuses new ones."""

    active: tuple[Pack, Unpack] | None = None
    refusal: str | None = None


HOOKS = _Hooks()


def _hook_misuse(fault: str) -> AutogradMisuse:
    return AutogradMisuse(code="HookMisuse", asked=_CALL, fault=fault)


class saved_tensors_hooks(Mode):  # noqa: N801  # torch's name
    """Store `pack_hook(tensor)` for each tensor that the block saves for a gradient.

    `unpack_hook(stored)` returns the tensor again, with the same shape, dtype and
    elements. Entering raises `AutogradMisuse` inside of `disable_saved_tensors_hooks`.

    Raises:
        AutogradMisuse: a hook is not callable.
    """

    __slots__ = ("_hooks",)

    def __init__(self, pack_hook: Pack, unpack_hook: Unpack) -> None:
        super().__init__()
        hooks: dict[str, Any] = {"pack_hook": pack_hook, "unpack_hook": unpack_hook}
        for name, hook in hooks.items():
            if not callable(hook):
                kind = type(hook).__name__
                raise _hook_misuse(f"{name} is a {kind}, not a function of one value")
        self._hooks = pack_hook, unpack_hook

    def _fresh(self) -> Mode:
        return saved_tensors_hooks(*self._hooks)

    def __enter__(self) -> Self:
        if HOOKS.refusal is not None:
            raise AutogradMisuse(code="HooksDisabled", fault=HOOKS.refusal)
        saved = Presence(PACKING), HOOKS.active
        entry = HOOKS.__dict__, saved, self._entry
        self._entry, HOOKS.active = entry, self._hooks
        return self

    @Exit
    def __exit__(self) -> Generator[None, None, None]:
        freed = False
        try:
            yield
        except GeneratorExit:
            freed = True
        finally:
            if not freed:
                entry = self._entry
                if entry is None or entry[0] is not HOOKS.__dict__:
                    raise guard_error(self, entry)
                _, (_, HOOKS.active), self._entry = entry


class disable_saved_tensors_hooks(Mode):  # noqa: N801  # torch's name
    """Refuse `saved_tensors_hooks` inside the block, with this message.

    Entering raises `AutogradMisuse` with the message if hooks are active already.
    """

    __slots__ = ("_message",)

    def __init__(self, error_message: str) -> None:
        super().__init__()
        self._message = str(error_message)

    def _fresh(self) -> Mode:
        return disable_saved_tensors_hooks(self._message)

    def __enter__(self) -> Self:
        if HOOKS.active is not None:
            raise AutogradMisuse(code="HooksDisabled", fault=self._message)
        entry = HOOKS.__dict__, HOOKS.refusal, self._entry
        self._entry, HOOKS.refusal = entry, self._message
        return self

    @Exit
    def __exit__(self) -> Generator[None, None, None]:
        freed = False
        try:
            yield
        except GeneratorExit:
            freed = True
        finally:
            if not freed:
                entry = self._entry
                if entry is None or entry[0] is not HOOKS.__dict__:
                    raise guard_error(self, entry)
                _, HOOKS.refusal, self._entry = entry


class PackedTensor:
    """A saved tensor as a pack hook stored it.

    `edge` is the place in the graph of an input that requires grad; `number` is that of
    an output with a gradient, whose node is known when it is read.
    """

    __slots__ = (
        "_stored",
        "_unpack",
        "device",
        "dtype",
        "edge",
        "layout",
        "number",
        "operator",
    )

    def __init__(
        self,
        hooks: tuple[Pack, Unpack],
        tensor: Tensor,
        operator: str,
        edge: Edge | None,
        number: int | None,
    ) -> None:
        pack, self._unpack = hooks
        self.operator, self.edge, self.number = operator, edge, number
        self.dtype, self.device = tensor.dtype, tensor.device
        # None for a tensor of a handler, which may not have strides.
        self.layout = None if tensor._place is None else layout_of(tensor)
        version = tensor._version
        with no_grad():
            self._stored = pack(tensor)
        if tensor._version != version:
            raise _hook_misuse(
                f"the pack hook wrote to the tensor that `{operator}` saves; return a "
                "changed copy instead"
            )

    def unpacked(self, node: Node) -> Tensor:
        """Return the tensor, at its place in the graph, for `node`, which saved it.

        Raises:
            AutogradMisuse: the unpack hook does not return a tensor.
        """
        edge = self.edge if self.number is None else (node, self.number)
        return self.placed_at(edge)

    def placed_at(self, edge: Edge | None) -> Tensor:
        """Return the tensor at another place in the graph.  Raises as `unpacked`."""
        tensor = followed(self._unpack, self._stored)
        if not isinstance(tensor, Tensor):
            raise _hook_misuse(
                "the unpack hook returned "
                f"a {type(tensor).__name__} for a tensor that `{self.operator}` saved, "
                "not a tensor"
            )
        return _placed(tensor, edge)


def _placed(tensor: Tensor, edge: Edge | None) -> Tensor:
    """Return an unpacked tensor with its place in the graph."""
    if edge is None:
        return detached_alias(tensor) if tensor._requires_grad else tensor
    node, number = edge
    alias = detached_alias(tensor)
    if isinstance(node, AccumulateGrad):
        # A leaf, as the saved tensor: both have one gradient and one accumulator.
        alias._history = History()
        alias._history.extra = node.extra
        alias._requires_grad = True
        return alias
    return with_history(alias, node, number)


def packed_form(
    saved: SavedInput | SavedOutput, operator: str
) -> PackedTensor | SavedInput | SavedOutput:
    """Return a saved tensor as the thread's hooks store it; itself without hooks.

    Raises:
        AutogradMisuse: the pack hook wrote to the tensor.
        WriteRefused: the tensor is a view that cannot follow its base.

    Exceptions of the pack hook propagate.
    """
    hooks, tensor = HOOKS.active, saved[0]
    if hooks is None:
        return saved
    if len(saved) == 3:
        return PackedTensor(hooks, tensor, operator, None, saved[2])
    edge = edge_of(tensor) if tensor._requires_grad else None
    return PackedTensor(hooks, tensor, operator, edge, None)
