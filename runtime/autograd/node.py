"""Nodes: the functions of the graph that is run backwards.

True only here: the shape of the graph.  A node stands for one call; its outputs are the
outputs of that call (so that their gradients come in), its edges lead to the nodes that
its inputs came from (so that gradients go out).

Rules:
- an edge is a node and the number of one of its outputs, or None where no gradient is
  wanted;
- nodes are numbered in the order in which they are made, over all threads; an edge
  leads from a node to an earlier one, so descending numbers are a topological order;
- a node never refers to the tensors that it is the history of: tensors keep their
  node, and the graph goes with the last tensor that needs it, by reference counts;
- hooks are few: a node has a `Hooks` only if somebody asked for one.
"""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any
from weakref import ReferenceType, ref

from runtime.errors.autograd import HookMisuse
from runtime.schema.codes import DType
from runtime.schema.device import Device

# Shape, dtype and device of an output: what its gradient must look like.
Meta = tuple[tuple[int, ...], DType, Device]
Edge = tuple["Node", int]
Gradients = Sequence[Any]

# The next number of a node; one step of it is atomic.
SEQUENCE = count(1)
_HOOK_NUMBERS = count(1)


class Table(dict[int, Callable[..., Any]]):
    """Hooks by number, in the order of registration."""

    __slots__ = ("__weakref__",)


class RemovableHandle:
    """What registering a hook returns; `remove` takes the hook off, once."""

    __slots__ = ("_number", "_table")

    def __init__(self, table: Table, hook: Callable[..., Any]) -> None:
        self._number = next(_HOOK_NUMBERS)
        self._table: ReferenceType[Table] = ref(table)
        table[self._number] = hook

    def remove(self) -> None:
        """Take the hook off; the second time nothing happens."""
        table = self._table()
        if table is not None:
            table.pop(self._number, None)

    def __enter__(self) -> "RemovableHandle":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.remove()


class Hooks:
    """The hooks of one node.

    `outputs` are hooks of single gradients that come in, by output number; `retained`
    are those that keep a gradient for its tensor, and run after all others.
    """

    __slots__ = ("after", "before", "outputs", "retained")

    def __init__(self) -> None:
        self.before = Table()
        self.after = Table()
        self.outputs: dict[int, Table] = {}
        self.retained: dict[int, Callable[[Any], None]] = {}

    def come_in(self, gradients: list[Any]) -> list[Any]:
        """The gradients of the outputs as hooks leave them.  Raises `HookMisuse`."""
        for number, table in self.outputs.items():
            gradients[number] = through(table, gradients[number])
        for hook in [*self.before.values()]:
            changed = hook(tuple(gradients))
            if changed is not None:
                given = _several(changed, "register_prehook")
                if len(given) != len(gradients):
                    fault = f"the hook returned {len(given)} gradients, not "
                    fault += str(len(gradients))
                    raise HookMisuse(asked="register_prehook", fault=fault)
                gradients = [*given]
        for number, keep in self.retained.items():
            keep(gradients[number])
        return gradients

    def go_out(self, results: Gradients, gradients: Gradients) -> Gradients:
        """The gradients of the inputs as hooks leave them.  Raises `HookMisuse`."""
        for hook in [*self.after.values()]:
            changed = hook(tuple(results), tuple(gradients))
            if changed is not None:
                results = _several(changed, "register_hook")
        return results


def through(table: Table, gradient: Any) -> Any:
    """A gradient as hooks of one tensor leave it; None never reaches them.

    Raises `HookMisuse`.
    """
    for hook in [*table.values()]:
        if gradient is None:
            break
        changed = hook(gradient)
        if changed is not None:
            given = _returned(changed, "register_hook")
            if tuple(given.shape) != tuple(gradient.shape):
                fault = f"the hook returned a gradient of shape {tuple(given.shape)}, "
                fault += f"not {tuple(gradient.shape)}"
                raise HookMisuse(asked="register_hook", fault=fault)
            gradient = given
    return gradient


def _returned(changed: Any, asked: str) -> Any:
    """A gradient that a hook returned.  Raises `HookMisuse` if it is none."""
    if changed is not None and not hasattr(changed, "key_bits"):
        kind = type(changed).__name__
        fault = f"the hook returned a {kind}, not a tensor or None"
        raise HookMisuse(asked=asked, fault=fault)
    return changed


def _several(changed: Any, asked: str) -> tuple[Any, ...]:
    """The gradients that a hook of a node returned.  Raises `HookMisuse`."""
    given = tuple(changed) if isinstance(changed, (tuple, list)) else (changed,)
    return tuple(_returned(each, asked) for each in given)


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
        """What was called, for errors."""
        raise NotImplementedError("every kind of node says what it stands for")

    def name(self) -> str:
        """The name of the function, such as `MulBackward`."""
        stem = self.operator.partition("::")[2] or self.operator
        words = stem.replace(".", "_").split("_")
        return "".join(word[:1].upper() + word[1:] for word in words) + "Backward"

    def apply(self, gradients: list[Any]) -> Gradients:
        """The gradients of the inputs, one for each edge, None where there is none.

        Of the gradients that come in one at least is not None.
        """
        raise NotImplementedError("every kind of node computes gradients")

    def release(self) -> None:
        """Let go of what was saved; running the node again may be refused then."""

    @property
    def next_functions(self) -> tuple[tuple["Node | None", int], ...]:
        """The edges, with (None, 0) where no gradient is wanted."""
        return tuple([edge or (None, 0) for edge in self.next_edges])

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(gradients of inputs, gradients of outputs)` after the node.

        What it returns, unless None, replaces the gradients of the inputs.
        """
        return RemovableHandle(self.hooked().after, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(gradients of outputs)` before the node; it may replace them."""
        return RemovableHandle(self.hooked().before, hook)

    def hooked(self) -> Hooks:
        """The hooks of the node, made when they are first asked for."""
        if self.hooks is None:
            self.hooks = Hooks()
        return self.hooks

    def __repr__(self) -> str:
        return f"<{self.name()}>"


class Failing(Node):
    """A node that cannot be run backwards: the error is made when somebody tries."""

    __slots__ = ("_called", "_error")

    def __init__(
        self,
        called: str,
        next_edges: list[Edge | None],
        metas: tuple[Meta, ...],
        error: Callable[[], BaseException],
    ) -> None:
        super().__init__(next_edges, metas)
        self._called = called
        self._error = error

    @property
    def operator(self) -> str:
        """What was called."""
        return self._called

    def apply(self, gradients: list[Any]) -> Gradients:
        """Raises the error that the node was made with."""
        raise self._error()
