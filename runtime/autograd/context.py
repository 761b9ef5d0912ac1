"""The context of a `Function`, and the node of one call of it.

True only here: what `ctx` can be told, and how tensors saved by hand are kept.

Rules:
- `save_for_backward` takes inputs, outputs, and other tensors; an output is kept as
  by any node (see `runtime.autograd.saved`), others as they are, with a version;
- anything else is set as an attribute of `ctx`, at the writer's own risk: an output
  kept that way is a circle, which the garbage collector has to end.
"""

from collections.abc import Sequence
from typing import Any

from runtime.autograd.node import Edge, Gradients, Node
from runtime.autograd.saved import (
    SavedInput,
    SavedOutput,
    restore,
    restore_output,
    save,
    save_output,
)
from runtime.errors.autograd import (
    FunctionMisuse,
    GradientMismatch,
    GraphFreed,
    NotAGradient,
)
from runtime.operators.call import core
from runtime.tensors.tensor import Tensor


class Context:
    """What a `Function` is told of a call, and tells; attributes are free to use."""

    def __init__(self, function: str, needs_input_grad: tuple[bool, ...]) -> None:
        self.function = function
        # Which arguments of `forward` require grad.
        self.needs_input_grad = needs_input_grad
        self.dirty: tuple[Tensor, ...] = ()
        self.constant: tuple[Tensor, ...] = ()
        self.materializes = True
        self.to_save: tuple[Tensor | None, ...] = ()
        self._given_back: Any = None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `backward`, which finds them in `saved_tensors`.

        Raises `FunctionMisuse` for what is no tensor.
        """
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise FunctionMisuse(
                    function=self.function,
                    fault=f"saves a {type(tensor).__name__} for backward",
                    remedy="set it as an attribute of ctx",
                )
        self.to_save = tensors

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What was saved.  Raises `GraphFreed`, `SavedTensorModified`."""
        if self._given_back is None:
            return self.to_save
        saved: tuple[Tensor | None, ...] = self._given_back()
        return saved

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say that these inputs were written to; each must be returned."""
        self.dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say that these outputs have no gradient."""
        self.constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (the default) or None where no gradient is."""
        self.materializes = value


class FunctionNode(Node):
    """The node of one call of a `Function`."""

    __slots__ = ("_arguments", "_places", "_saved", "context", "function")

    def __init__(
        self,
        function: Any,
        context: Context,
        edges: list[Edge | None],
        places: tuple[int, ...],
        arguments: int,
    ) -> None:
        super().__init__(edges, ())
        self.function = function
        self.context = context
        # Which arguments are tensors, and how many there are.
        self._places = places
        self._arguments = arguments
        self._saved: list[Any] | None = []

    @property
    def operator(self) -> str:
        """The name of the class."""
        return self.context.function

    def keep(self, outputs: Sequence[Any], recorded: bool) -> None:
        """Take over what `forward` saved, now that its outputs have their history."""
        tensors, context = self.context.to_save, self.context
        context.dirty = context.constant = context.to_save = ()
        if not recorded:
            return
        known = {id(t): n for n, t in enumerate(outputs) if isinstance(t, Tensor)}
        self._saved = [
            None if tensor is None else self._kept(tensor, known.get(id(tensor)))
            for tensor in tensors
        ]

    def _kept(self, tensor: Tensor, number: int | None) -> SavedInput | SavedOutput:
        if number is None:
            return save(tensor, self.operator)
        return save_output(tensor, number if tensor._requires_grad else None)

    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What was saved.  Raises `GraphFreed`, `SavedTensorModified`."""
        if self._saved is None:
            raise GraphFreed(operator=self.operator)
        found: list[Tensor | None] = []
        for place, saved in enumerate(self._saved):
            name = f"saved_tensors[{place}]"
            if saved is None:
                found.append(None)
            elif len(saved) == 2:
                found.append(restore(saved, self.operator, name))
            else:
                found.append(restore_output(saved, self, name))
        return tuple(found)

    def apply(self, gradients: list[Any]) -> Gradients:
        """Call `backward`.

        Raises:
            GradientMismatch: another number of gradients than arguments.
            NotAGradient: what it returned for a tensor is neither a tensor nor None.
            Exception: whatever `backward` raises.
        """
        if self._saved is None:
            raise GraphFreed(operator=self.operator)
        context = self.context
        if context.materializes:
            gradients = [
                core.zeros([*meta[0]], dtype=meta[1], device=meta[2])
                if gradient is None and meta is not None
                else gradient
                for gradient, meta in zip(gradients, self.metas, strict=True)
            ]
        context._given_back = self.saved_tensors
        try:
            found = self.function.backward(context, *gradients)
        finally:
            context._given_back = None
        results = [*found] if isinstance(found, (tuple, list)) else [found]
        # More are allowed where they are None: arguments with defaults.
        while len(results) > self._arguments and results[-1] is None:
            results.pop()
        if len(results) != self._arguments:
            raise GradientMismatch(
                where=f"The backward of `{self.operator}`",
                what="number",
                expected=f"{self._arguments}, one for each argument of forward",
                found=str(len(results)),
            )
        wanted = [results[place] for place in self._places]
        for place, each in zip(self._places, wanted, strict=True):
            if each is not None and not isinstance(each, Tensor):
                kind = type(each).__name__
                raise NotAGradient(node=self.operator, position=place, type=kind)
        return wanted

    def release(self) -> None:
        """Let go of what was saved, if anything was."""
        if self._saved:
            self._saved = None
