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
- where `unpack` returns the elements of the saved tensor themselves, their version must
  be that of saving; a copy is not compared: the hooks decide what they store;
- nodes pay for one test of a set that is empty in most processes (`PACKING`).
"""

import threading
from collections.abc import Callable, Generator
from typing import Any, ClassVar, Self
from weakref import ref

from everyorder.runtime.autograd.accumulate import AccumulateGrad
from everyorder.runtime.autograd.grad_edges import (
    detached_alias,
    edge_of,
    with_history,
)
from everyorder.runtime.autograd.grad_mode import Mode, followed, no_grad
from everyorder.runtime.autograd.gradient_plan import SavedInput, SavedOutput, restore
from everyorder.runtime.autograd.node import Edge, History, Node, layout_of
from everyorder.runtime.base.exits import Exit
from everyorder.runtime.errors.autograd import AutogradMisuse
from everyorder.runtime.keys.local import guard_error
from everyorder.runtime.tensors.keys import PYTHON, Presence
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import ensure_place

Pack = Callable[[Tensor], Any]
Unpack = Callable[[Any], Tensor]
# The third is True if the version of what they return is compared.
Hooks = tuple[Pack, Unpack, bool]

# A `Presence` for each active block of each thread.
PACKING: set[ref[Any]] = set()

_CALL = "saved_tensors_hooks"


class _Hooks(threading.local):
    """The active hooks of a thread, and the message that refuses new ones."""

    active: Hooks | None = None
    refusal: str | None = None


HOOKS = _Hooks()


def _hook_misuse(fault: str) -> AutogradMisuse:
    return AutogradMisuse(code="HookMisuse", asked=_CALL, fault=fault)


class _HooksMode(Mode):
    """Restores the hooks and the refusal of the thread when its block ends."""

    __slots__ = ()

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
                _, (_, HOOKS.active, HOOKS.refusal), self._entry = entry


class saved_tensors_hooks(_HooksMode):  # noqa: N801  # torch's name
    """Store `pack_hook(tensor)` for each tensor that the block saves for a gradient.

    `unpack_hook(stored)` returns the tensor again, with the same shape, dtype and
    elements. Entering raises `AutogradMisuse` inside of `disable_saved_tensors_hooks`.

    Raises:
        AutogradMisuse: a hook is not callable.
    """

    __slots__ = ("_hooks",)
    # False for hooks that compare versions themselves.
    _compares: ClassVar[bool] = True

    def __init__(self, pack_hook: Pack, unpack_hook: Unpack) -> None:
        super().__init__()
        hooks: dict[str, Any] = {"pack_hook": pack_hook, "unpack_hook": unpack_hook}
        for name, hook in hooks.items():
            if not callable(hook):
                kind = type(hook).__name__
                raise _hook_misuse(f"{name} is a {kind}, not a function of one value")
        self._hooks: Hooks = pack_hook, unpack_hook, self._compares

    def _fresh(self) -> Mode:
        fresh = saved_tensors_hooks(*self._hooks[:2])
        fresh._hooks = self._hooks
        return fresh

    def __enter__(self) -> Self:
        if HOOKS.refusal is not None:
            raise AutogradMisuse(code="HooksDisabled", fault=HOOKS.refusal)
        saved = Presence(PACKING), HOOKS.active, HOOKS.refusal
        entry = HOOKS.__dict__, saved, self._entry
        self._entry, HOOKS.active = entry, self._hooks
        return self


class disable_saved_tensors_hooks(_HooksMode):  # noqa: N801  # torch's name
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
        saved = None, HOOKS.active, HOOKS.refusal
        entry = HOOKS.__dict__, saved, self._entry
        self._entry, HOOKS.refusal = entry, self._message
        return self


class PackedTensor:
    """A saved tensor as a pack hook stored it.

    `edge` is the place in the graph of an input that requires grad; `number` is that of
    an output with a gradient, whose node is known when it is read.
    """

    __slots__ = (
        "_compares",
        "_storage",
        "_stored",
        "_unpack",
        "_version",
        "argument",
        "device",
        "dtype",
        "edge",
        "layout",
        "number",
        "operator",
    )

    def __init__(
        self,
        hooks: Hooks,
        tensor: Tensor,
        operator: str,
        argument: str,
        edge: Edge | None,
        number: int | None,
    ) -> None:
        pack, self._unpack, self._compares = hooks
        self.operator, self.argument = operator, argument
        self.edge, self.number = edge, number
        self.dtype, self.device = tensor.dtype, tensor.device
        # None for a tensor of a handler, which may not have strides.
        self.layout = None if tensor._place is None else layout_of(tensor)
        self._storage, self._version = version_of(tensor)
        with no_grad():
            self._stored = pack(tensor)
        if tensor._version != self._version:
            raise _hook_misuse(
                f"the pack hook wrote to the tensor that `{operator}` saves; return a "
                "changed copy instead"
            )

    def unpacked(self, node: Node) -> Tensor:
        """Return the tensor, at its place in the graph, for `node`, which saved it.

        Raises:
            AutogradMisuse: the unpack hook does not return a tensor.
            BackwardRefused: it returns the saved elements, which were modified.
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
        place = tensor._place
        if self._compares and place is not None and self._storage() is place[0]:
            restore((tensor, self._version), self.operator, self.argument)
        return _placed(tensor, edge)


def version_of(tensor: Tensor) -> tuple[Callable[[], Any], int]:
    """Return a weak reference to the elements of a tensor, and their version.

    The reference returns None for a tensor of a handler, which lacks its own elements.
    """
    if tensor._place is None and tensor.key_bits & PYTHON:
        return _no_storage, tensor._version
    storage = ensure_place(tensor)[0]
    return ref(storage), storage.version


def _no_storage() -> None:
    """Return None, as a reference to a storage that was freed."""


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
    saved: SavedInput | SavedOutput, operator: str, argument: str
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
        return PackedTensor(hooks, tensor, operator, argument, None, saved[2])
    edge = edge_of(tensor) if tensor._requires_grad else None
    return PackedTensor(hooks, tensor, operator, argument, edge, None)
