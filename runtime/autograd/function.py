"""Function: operators with a gradient, written in Python by whoever needs one.

True only here: the context `ctx`, and what becomes of the outputs of `forward`.

    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            result = x.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx, grad):
            (result,) = ctx.saved_tensors
            return grad * result

    y = Exp.apply(x)

How it works: `forward` runs without recording; its outputs get a node whose gradients
`backward` computes, which is recorded itself where the backward pass is.  A class that
defines `setup_context(ctx, inputs, output)` has a `forward` without `ctx`.

Rules, of the tensors that `forward` returns:
- one that is an input is returned as another tensor on the same elements, unless
  `ctx.mark_dirty` said that it was written to in place: then it stays itself;
- one that is not of floating point, or that `ctx.mark_non_differentiable` names, gets
  no history;
- a view of an input must not be written to afterwards: nothing could follow.

`backward` returns a gradient for each argument of `forward`, None where there is none.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from runtime.autograd.context import Context, FunctionNode
from runtime.autograd.history import History
from runtime.autograd.inplace import check_write, edge_before, rebase, unrecorded
from runtime.autograd.modes import GRAD, no_grad
from runtime.autograd.node import Edge, Failing
from runtime.autograd.recording import meta_of
from runtime.autograd.saved import sharing
from runtime.autograd.views import BY_FUNCTION, ViewOf, edge_of
from runtime.errors.autograd import DifferentiatedOnce, FunctionMisuse
from runtime.tensors.keys import watcher
from runtime.tensors.tensor import Tensor


class Function:
    """The base of functions with a gradient of their own; see the module."""

    @classmethod
    def forward(cls, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; `ctx` comes first unless there is `setup_context`."""
        raise FunctionMisuse(
            function=cls.__name__,
            fault="has no forward of its own",
            remedy="define forward as a static method",
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save what `backward` needs, where `forward` takes no `ctx`."""
        raise NotImplementedError("only called where a class defines it")

    @classmethod
    def backward(cls, ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the arguments of `forward`."""
        raise FunctionMisuse(
            function=cls.__name__,
            fault="has no backward of its own",
            remedy="define backward as a static method",
        )

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run `forward`, and record the call where an argument requires grad.

        Raises:
            FunctionMisuse: the class, or what it said of its arguments, makes no sense.
            LeafModified, ViewModified: `mark_dirty` of what must not be written to.
        """
        told = watcher()
        return cls._applied(*args) if told is None else told.applied(cls, args)

    @classmethod
    def _applied(cls, *args: Any) -> Any:
        tensors = tuple(i for i, arg in enumerate(args) if isinstance(arg, Tensor))
        recorded = GRAD.enabled
        needs = tuple(
            isinstance(arg, Tensor) and arg._requires_grad and recorded for arg in args
        )
        edges: list[Edge | None] = [
            edge_of(args[place]) if needs[place] else None for place in tensors
        ]
        context = Context(cls.__name__, needs)
        node = FunctionNode(cls, context, edges, tensors, len(args))
        versions = [(args[place], args[place]._version) for place in tensors]
        try:
            with no_grad():
                if cls.setup_context is not Function.setup_context:
                    output = cls.forward(*args)
                    cls.setup_context(context, args, output)
                else:
                    output = cls.forward(context, *args)
            single = not isinstance(output, (tuple, list))
            outputs = [output] if single else [*output]
            wrapped = _Wrapping(cls.__name__, node, args, any(needs)).all(outputs)
            node.keep(outputs, any(needs))
        except BaseException:
            if any(needs):
                marked = {id(tensor) for tensor in context.dirty}
                written = [
                    each
                    for each in versions
                    if each[0]._requires_grad or id(each[0]) in marked
                ]
                unrecorded(written, node.operator, edges)
            raise
        return wrapped[0] if single else type(output)(wrapped)


class _Wrapping:
    """Gives the outputs of one call their history."""

    def __init__(
        self, name: str, node: FunctionNode, args: Sequence[Any], recorded: bool
    ) -> None:
        self._name = name
        self._node = node
        self._recorded = recorded
        self._inputs = {id(arg): arg for arg in args if isinstance(arg, Tensor)}
        self._first = next(iter(self._inputs), None)
        self._dirty = {id(tensor) for tensor in node.context.dirty}
        self._constant = {id(tensor) for tensor in node.context.constant}
        self._storages = {
            id(arg._place[0]) for arg in self._inputs.values() if arg._place is not None
        }

    def all(self, outputs: list[Any]) -> list[Any]:
        """The outputs as the caller sees them; `outputs` too is changed to them."""
        missing = self._dirty - {id(output) for output in outputs}
        if missing:
            raise FunctionMisuse(
                function=self._name,
                fault="marked a tensor as dirty that it does not return",
                remedy="return every tensor that is written to in place",
            )
        self._node.metas = tuple(
            [meta_of(out) if isinstance(out, Tensor) else None for out in outputs]  # type: ignore[misc]  # no edge leads to what is no tensor
        )
        for number, output in enumerate(outputs):
            if isinstance(output, Tensor):
                outputs[number] = self._one(number, output)
        return outputs

    def _one(self, number: int, output: Tensor) -> Tensor:
        if id(output) in self._dirty:
            return self._written(number, output)
        known = id(output) in self._inputs
        if known or output._history is not None or output._requires_grad:
            # The tensor belongs to somebody; the output is another one on its elements.
            fresh = sharing(output)
        else:
            fresh = output
        real = output.dtype.is_floating or output.dtype.is_complex
        if not self._recorded or not real or id(output) in self._constant:
            return fresh
        history = fresh._history = History(self._node, number)
        fresh._requires_grad = True
        place = fresh._place
        if place is not None and id(place[0]) in self._storages:
            base = next(
                arg
                for arg in self._inputs.values()
                if arg._place is not None and arg._place[0] is place[0]
            )
            history.view = ViewOf(base, BY_FUNCTION, self._name, place[0].version)
        return fresh

    def _written(self, number: int, output: Tensor) -> Tensor:
        if id(output) not in self._inputs:
            raise FunctionMisuse(
                function=self._name,
                fault="marked a tensor as dirty that is none of its inputs",
                remedy="call mark_dirty with inputs that were written to in place",
            )
        if not self._recorded:
            return output
        check_write(output, self._name)
        before = edge_before(output)
        history = output._history
        is_view = history is not None and history.view is not None
        if is_view and id(output) != self._first:
            raise FunctionMisuse(
                function=self._name,
                fault="wrote to a view that is not its first tensor",
                remedy="make it the first argument, or return a new tensor",
            )
        rebase(output, self._node, before, number)
        return output


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `backward` that is not made of differentiable operators.

    It runs without recording; differentiating its result raises `DifferentiatedOnce`.
    """

    @wraps(backward)
    def wrapped(ctx: Any, *gradients: Any) -> Any:
        recorded = GRAD.enabled and any(
            isinstance(gradient, Tensor) and gradient._requires_grad
            for gradient in gradients
        )
        with no_grad():
            results = backward(ctx, *gradients)
        if not recorded:
            return results
        edges: list[Edge | None] = [
            edge_of(gradient)
            for gradient in gradients
            if isinstance(gradient, Tensor) and gradient._requires_grad
        ]
        name = ctx.function
        single = not isinstance(results, (tuple, list))
        given = [results] if single else [*results]
        for place, result in enumerate(given):
            if isinstance(result, Tensor):
                ended = given[place] = sharing(result)
                node = Failing(
                    name,
                    edges,
                    (meta_of(ended),),
                    lambda: DifferentiatedOnce(function=name),
                )
                ended._history = History(node)
                ended._requires_grad = True
        return given[0] if single else tuple(given)

    return wrapped
