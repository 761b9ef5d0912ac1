"""Function: operators with a gradient, written in Python by users.

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

`forward` runs without recording.  Its outputs get a node whose gradients `backward`
computes; `backward` is recorded if the backward pass is.  If a class defines
`setup_context(ctx, inputs, output)`, its `forward` has no parameter `ctx`, and `inputs`
are all of its arguments, defaults included.  Custom operators use the same context and
node.

Rules for the tensors that `forward` returns:
- an input is returned as a new tensor on the same elements, unless `ctx.mark_dirty`
  declared it as written in place: then the same tensor is returned;
- a tensor that is not of floating point, or that `ctx.mark_non_differentiable` lists,
  does not get a history;
- an output that shows a part of another tensor must not be written to afterwards: its
  history could not follow.

Rules for saved tensors and returned gradients:
- `save_for_backward` accepts inputs, outputs, and other tensors; an output is saved as
  by any node (`runtime.autograd.gradient_plan`), others unchanged, with a version;
- other values are set as attributes of `ctx`; an output stored that way is a reference
  cycle, which only the garbage collector can free;
- `backward` returns a gradient for each argument of `forward`, or None where the
  argument does not have one.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from typing import Any

from everyorder.runtime.autograd.grad_edges import (
    BY_FUNCTION,
    detached_alias,
    edges_of,
    follow,
    meta_of,
    metas_of,
    with_history,
)
from everyorder.runtime.autograd.grad_mode import GRAD, followed, no_grad
from everyorder.runtime.autograd.gradient_plan import (
    SavedInput,
    SavedOutput,
    restore,
    restore_output,
    save,
    save_output,
)
from everyorder.runtime.autograd.inplace import (
    base_edge,
    check_write,
    rebase,
    refuse_gradients,
)
from everyorder.runtime.autograd.node import (
    Edge,
    Failing,
    Gradients,
    Node,
    mismatch,
)
from everyorder.runtime.autograd.saved_hooks import (
    PACKING,
    PackedTensor,
    packed_form,
)
from everyorder.runtime.errors.autograd import (
    AutogradMisuse,
    BackwardRefused,
    NotImplementedFormula,
)
from everyorder.runtime.errors.call import NotOffered
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.tensors.keys import trace_observer
from everyorder.runtime.tensors.tensor import Tensor


def function_misuse(function: str, fault: str, remedy: str) -> AutogradMisuse:
    """Return the error for a function that is written, or behaves, incorrectly."""
    return AutogradMisuse(
        code="FunctionMisuse", function=function, fault=fault, remedy=remedy
    )


class FunctionCtx:
    """The `ctx` of one call of a `Function`; attributes may be set on it.

    The generated code of a custom operator creates one without `__init__`.
    """

    dirty: tuple[Tensor, ...] = ()
    constant: tuple[Tensor, ...] = ()
    materializes = True
    to_save: tuple[Tensor | None, ...] = ()
    # Returns the saved tensors while `backward` runs.
    _restore: Callable[[], tuple[Tensor | None, ...]] | None = None

    def __init__(self, function: str, needs_input_grad: tuple[bool, ...]) -> None:
        self.function = function
        # For each argument of `forward`: True if it requires grad.
        self.needs_input_grad = needs_input_grad

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save tensors for `backward`, which reads them from `saved_tensors`.

        Raises:
            AutogradMisuse: an argument is neither a tensor nor None.
        """
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise function_misuse(
                    self.function,
                    f"saves a {type(tensor).__name__} for backward",
                    "set it as an attribute of ctx",
                )
        self.to_save = tensors

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """Return the saved tensors.

        Raises:
            BackwardRefused: the graph was freed, or one was modified in place.
        """
        return self.to_save if self._restore is None else self._restore()

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Declare inputs that `forward` wrote to in place; it must return each of
        them.
        """
        self.dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Declare outputs that do not have a gradient."""
        self.constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Choose the value that `backward` receives for a missing gradient.

        True (the default) means zeros, False means None.
        """
        self.materializes = value


class FunctionNode(Node):
    """The node of one call of a `Function`."""

    __slots__ = ("_arguments", "_places", "_saved", "context", "function")

    def __init__(
        self,
        function: Any,
        context: FunctionCtx,
        edges: list[Edge | None],
        places: tuple[int, ...],
        arguments: int,
    ) -> None:
        super().__init__(edges, ())
        self.function = function
        self.context = context
        # The positions of the tensors among the arguments, and the number of arguments.
        self._places = places
        self._arguments = arguments
        self._saved: list[Any] | None = []

    @property
    def operator(self) -> str:
        """Return the name of the class."""
        return self.context.function

    def keep(self, outputs: Sequence[Any], recorded: bool) -> None:
        """Save the tensors of `forward`, now that its outputs have their history."""
        context, tensors = self.context, self.context.to_save
        context.dirty = context.constant = context.to_save = ()
        if not recorded:
            return
        output_numbers = {
            id(t): n for n, t in enumerate(outputs) if isinstance(t, Tensor)
        }
        self._saved = [
            self._saved_form(place, each, output_numbers.get(id(each)))
            for place, each in enumerate(tensors)
        ]

    def _saved_form(
        self, place: int, tensor: Tensor | None, number: int | None
    ) -> SavedInput | SavedOutput | PackedTensor | None:
        """Return the saved form of a tensor; `number` is that of an output."""
        if tensor is None:
            return None
        saved: SavedInput | SavedOutput
        if number is None:
            saved = save(tensor, self.operator)
        else:
            saved = save_output(tensor, number if tensor._requires_grad else None)
        if not PACKING:
            return saved
        return packed_form(saved, self.operator, _name(place))

    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """Return the saved tensors.

        Raises:
            BackwardRefused: the graph was freed, or a tensor was modified in place.
        """
        if self._saved is None:
            raise BackwardRefused(code="GraphFreed", operator=self.operator)
        tensors: list[Tensor | None] = []
        for place, saved in enumerate(self._saved):
            name = _name(place)
            if saved is None:
                tensors.append(None)
            elif isinstance(saved, PackedTensor):
                tensors.append(saved.unpacked(self))
            elif len(saved) == 2:
                tensors.append(restore(saved, self.operator, name))
            else:
                tensors.append(restore_output(saved, self, name))
        return tuple(tensors)

    def apply(self, gradients: list[Any]) -> Gradients:
        """Call `backward` and return a gradient for each tensor argument.

        Raises:
            AutogradMisuse: `backward` returns another number of gradients than
                `forward` has arguments, or a value that is neither a tensor nor None.
            BackwardRefused: the graph was freed.

        Exceptions of `backward` propagate.
        """
        if self._saved is None:
            raise BackwardRefused(code="GraphFreed", operator=self.operator)
        context = self.context
        if context.materializes:
            gradients = [
                core.zeros([*meta[0]], dtype=meta[1], device=meta[2])
                if gradient is None and meta is not None
                else gradient
                for gradient, meta in zip(gradients, self.metas, strict=True)
            ]
        context._restore = self.saved_tensors
        try:
            returned = followed(self.function.backward, context, *gradients)
        finally:
            context._restore = None
        several = isinstance(returned, (tuple, list))
        results = [*returned] if several else [returned]
        # Surplus results are allowed if they are None: arguments with defaults.
        while len(results) > self._arguments and results[-1] is None:
            results.pop()
        if len(results) != self._arguments:
            raise mismatch(
                f"The backward of `{self.operator}`",
                "number",
                f"{self._arguments}, one for each argument of forward",
                len(results),
            )
        tensor_gradients = [results[place] for place in self._places]
        for place, each in zip(self._places, tensor_gradients, strict=True):
            if each is not None and not isinstance(each, Tensor):
                kind = type(each).__name__
                raise AutogradMisuse(
                    code="NotAGradient", node=self.operator, position=place, type=kind
                )
        return tensor_gradients

    def release(self) -> None:
        """Release the saved tensors."""
        if self._saved:
            self._saved = None


def _name(place: int) -> str:
    """Return the name of a saved tensor in errors."""
    return f"saved_tensors[{place}]"


class Function:
    """The base class of user-defined functions with a gradient; see the module."""

    @classmethod
    def forward(cls, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; the first parameter is `ctx` unless there is
        `setup_context`.
        """
        raise function_misuse(
            cls.__name__,
            "does not define forward",
            "define forward as a static method",
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save the values that `backward` needs, if `forward` has no parameter
        `ctx`.
        """
        raise NotImplementedError("only called where a class defines it")

    @classmethod
    def backward(cls, ctx: Any, *grad_outputs: Any) -> Any:
        """Return the gradients of the arguments of `forward`."""
        raise function_misuse(
            cls.__name__,
            "does not define backward",
            "define backward as a static method",
        )

    # Read by torch's vmap only; programs may set it.
    generate_vmap_rule = False

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Refuse the rule for batched tensors, which a class may define for torch.

        Raises:
            NotOffered: always.
        """
        raise NotOffered(
            asked="Function.vmap",
            reason="the runtime does not create batched tensors",
            remedy="give the inputs a leading dimension, or stack the results of calls",
        )

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Refuse the rule of forward mode, which a class may define for torch.

        Raises:
            NotOffered: always.
        """
        raise NotOffered(
            asked="Function.jvp",
            reason="the runtime does not compute gradients forwards",
            remedy="differentiate the result of autograd.grad(..., create_graph=True)",
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward`, and record the call if an argument requires grad.

        A class with `setup_context` may be called by keyword; it receives every
        argument of `forward`, defaults filled in.

        Raises:
            AutogradMisuse: the class is not written correctly, `forward` does not
                accept the arguments, or declarations about them contradict the outputs.
            WriteRefused: `mark_dirty` of a tensor that must not be written to.
        """
        if cls.setup_context is not Function.setup_context:
            args = _bound(cls, args, kwargs)
        elif kwargs:
            raise function_misuse(
                cls.__name__,
                f"is called with {', '.join(kwargs)} by keyword",
                "pass the arguments by position, or define setup_context",
            )
        observer = trace_observer()
        if observer is None:
            return cls._applied(*args)
        return observer.apply_function(cls, args)

    @classmethod
    def _applied(cls, *args: Any) -> Any:
        tensors = tuple(i for i, arg in enumerate(args) if isinstance(arg, Tensor))
        recorded = GRAD.enabled
        needs = tuple(
            isinstance(arg, Tensor) and arg._requires_grad and recorded for arg in args
        )
        edges = edges_of([args[place] if needs[place] else None for place in tensors])
        context = FunctionCtx(cls.__name__, needs)
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
            wrapped = _Outputs(cls.__name__, node, args, any(needs)).wrapped(outputs)
            node.keep(outputs, any(needs))
        except BaseException:
            if any(needs):
                marked = {id(tensor) for tensor in context.dirty}
                written = [
                    each
                    for each in versions
                    if each[0]._requires_grad or id(each[0]) in marked
                ]
                refuse_gradients(written, node.operator, edges)
            raise
        return wrapped[0] if single else type(output)(wrapped)


def _bound(
    function: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """Return the arguments of `forward` by position, defaults filled in.

    Raises:
        AutogradMisuse: `forward` does not accept the arguments, or only by keyword.
    """
    forward = function.forward
    code = getattr(forward, "__code__", None)
    whole = code is not None and (code.co_argcount, code.co_kwonlyargcount)
    if not kwargs and whole == (len(args), 0):
        # Each parameter has its argument; a signature costs more than the call.
        return args
    try:
        bound = signature(forward).bind(*args, **kwargs)
    except TypeError as error:
        raise function_misuse(
            function.__name__,
            f"is called with other arguments than those of forward: {error}",
            "pass the arguments of forward",
        ) from None
    bound.apply_defaults()
    if bound.kwargs:
        raise function_misuse(
            function.__name__,
            f"accepts {', '.join(bound.kwargs)} by keyword only",
            "make them positional: backward returns a gradient for each position",
        )
    return bound.args


class _Outputs:
    """The step that gives the outputs of one call their history."""

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
        # Storage -> the first input on it.
        self._storages = {
            id(arg._place[0]): arg
            for arg in reversed(self._inputs.values())
            if arg._place is not None
        }

    def wrapped(self, outputs: list[Any]) -> list[Any]:
        """Return the outputs for the caller; also replace them in the list
        `outputs`.
        """
        if self._dirty - {id(output) for output in outputs}:
            raise function_misuse(
                self._name,
                "marked a tensor as dirty that it does not return",
                "return every tensor that is written to in place",
            )
        self._node.metas = metas_of(outputs)
        tensors = [each for each in outputs if isinstance(each, Tensor)]
        owned = {id(each): self._owned(each) for each in tensors}
        for number, output in enumerate(outputs):
            if isinstance(output, Tensor):
                outputs[number] = self._one(number, output, owned)
        return outputs

    def _owned(self, output: Tensor) -> Tensor:
        """Return an output as a tensor that only this call owns, without history."""
        if id(output) in self._dirty:
            return output
        if (
            id(output) in self._inputs
            or output._history is not None
            or output._requires_grad
        ):
            return detached_alias(output)
        return output

    def _one(self, number: int, output: Tensor, owned: dict[int, Tensor]) -> Tensor:
        if id(output) in self._dirty:
            return self._written(number, output)
        fresh = owned[id(output)]
        if id(output) in self._constant:
            return fresh
        if fresh._history is not None:
            # The same tensor was returned before.
            fresh = detached_alias(output)
        base = self._base(output, owned)
        if base is not None:
            follow(base, fresh, BY_FUNCTION, self._name)
        return with_history(fresh, self._node, number) if self._recorded else fresh

    def _base(self, output: Tensor, owned: dict[int, Tensor]) -> Tensor | None:
        """Return the tensor that an output shows a part of, or None.

        It is an input, another output, or a tensor that only `forward` had.
        """
        if id(output) in self._inputs:
            # Without recording, an input is returned as by `detach`.
            return output if self._recorded or not output._requires_grad else None
        history = output._history
        if history is not None and history.view is not None:
            base: Tensor = history.view.base
            return base if id(base) in self._inputs else owned.get(id(base), base)
        # `forward` may have detached an input, whose history cannot follow either.
        place = output._place if self._recorded else None
        return None if place is None else self._storages.get(id(place[0]))

    def _written(self, number: int, output: Tensor) -> Tensor:
        if id(output) not in self._inputs:
            raise function_misuse(
                self._name,
                "marked a tensor as dirty that is not one of its inputs",
                "call mark_dirty with inputs that were written to in place",
            )
        if not self._recorded:
            return output
        check_write(output, self._name)
        before = base_edge(output)
        history = output._history
        is_view = history is not None and history.view is not None
        if is_view and id(output) != self._first:
            raise function_misuse(
                self._name,
                "wrote to a view that is not its first tensor",
                "make it the first argument, or return a new tensor",
            )
        rebase(output, self._node, before, number)
        return output


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `backward` that does not consist of differentiable operators.

    It runs without recording; differentiating its result raises
    `NotImplementedFormula`.
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
        edges = [edge for edge in edges_of(gradients) if edge is not None]
        name = ctx.function
        single = not isinstance(results, (tuple, list))
        outputs = [results] if single else [*results]
        for place, result in enumerate(outputs):
            if isinstance(result, Tensor):
                node = Failing(
                    name,
                    [*edges],
                    (meta_of(result),),
                    lambda: NotImplementedFormula(
                        code="DifferentiatedOnce", function=name
                    ),
                )
                outputs[place] = with_history(detached_alias(result), node)
        return outputs[0] if single else tuple(outputs)

    return wrapped
