"""The gradient of a custom operator: a kernel at Autograd, made of two functions.

True only here: how a `backward` and a `setup_context` become a node of the graph.

    def setup_context(ctx, inputs, output): ...
    def backward(ctx, *gradients): ...

How it works: where no argument requires grad, the call goes on below and nothing else
happens.  Otherwise it runs below Autograd; then `setup_context` may save what it needs
of the positional arguments (all of them, defaults filled in) and of the output, and the
results get a `FunctionNode`.  If there are keyword-only arguments, it is called
`setup_context(ctx, inputs, keyword_only_inputs, output)`, with a dictionary.

Rules:
- `backward` gets a gradient for each result, and returns one, or None, for each
  positional argument; for a list of tensors both are lists of its length;
- the node knows of flat lists only: `Formula` takes lists apart and puts them together;
- a formula is for operators that return new tensors or views and write nothing.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from runtime.autograd.context import Context, FunctionNode
from runtime.autograd.history import History
from runtime.autograd.kernels import any_requires_grad, careful
from runtime.autograd.node import Edge
from runtime.autograd.recipe import is_tensor, is_tensor_list
from runtime.autograd.recording import DIFFERENTIABLE, meta_of, without_autograd
from runtime.autograd.saved import sharing
from runtime.autograd.views import edge_of
from runtime.dispatch.kernel import Kernel, linked
from runtime.errors.autograd import FunctionMisuse
from runtime.errors.custom_op import GradientStructure, NotFunctional
from runtime.errors.registration import WrongArgument
from runtime.keys import LOCAL
from runtime.schema.returns import returner
from runtime.schema.schema import Schema
from runtime.schema.types import TensorType
from runtime.tensors.tensor import Tensor

Function = Callable[..., Any]


def gradient_kernel(
    schema: Schema, backward: Function, setup_context: Function | None
) -> Kernel:
    """The kernel at Autograd.

    Raises:
        NotFunctional: the operator writes to an argument.
        WrongArgument: one of the two functions cannot be called.
    """
    given: dict[str, Any] = {"backward": backward, "setup_context": setup_context}
    for name, function in given.items():
        if not callable(function) and (function is not None or name == "backward"):
            found = type(function).__name__
            raise WrongArgument(argument=name, expected="a function", found=found)
    for argument in schema.arguments:
        if argument.is_write:
            raise NotFunctional(
                operator=str(schema.name), argument=argument.name, schema=str(schema)
            )

    def factory(below: Any, keyset: Any) -> Function:
        found: Schema = below.schema
        return careful(
            found, below.run, _recorded(below.run, found, backward, setup_context)
        )

    return linked(factory, "autograd")


class Formula:
    """The `backward` of one call, for a node: gradients come and go in flat lists.

    `inputs` are, for each positional argument, None for a plain value, 1 for a tensor,
    a list's length as a tuple; `outputs` likewise for the results.
    """

    __slots__ = ("_backward", "_schema", "inputs", "outputs")

    def __init__(
        self,
        schema: Schema,
        backward: Function,
        inputs: Sequence[Any],
        outputs: Sequence[Any] = (),
    ) -> None:
        self._schema = schema
        self._backward = backward
        self.inputs = inputs
        self.outputs = outputs

    def backward(self, context: Any, *gradients: Any) -> list[Any]:
        """The gradients of all tensors among the arguments, in order.

        Raises `GradientStructure`, and whatever the function raises.
        """
        given, rest = [], list(gradients)
        for output in self.outputs:
            if isinstance(output, tuple):
                (count,) = output
                given.append(rest[:count])
                del rest[:count]
            else:
                given.append(rest.pop(0))
        found = self._backward(context, *given)
        several = isinstance(found, tuple) or (
            isinstance(found, list) and len(self.inputs) != 1
        )
        return self._flat([*found] if several else [found])

    def _flat(self, results: list[Any]) -> list[Any]:
        count = len(self.inputs)
        while len(results) > count and results[-1] is None:
            results.pop()
        if len(results) != count:
            raise self._misfit(f"returned {len(results)} values, not {count}")
        flat: list[Any] = []
        for place, (shape, result) in enumerate(zip(self.inputs, results, strict=True)):
            name = self._schema.arguments[place].name
            if shape is None:
                if result is not None:
                    raise self._misfit(f"returned a gradient for `{name}`, no tensor")
            elif isinstance(shape, tuple):
                flat += self._listed(name, shape[0], result)
            else:
                flat.append(result)
        return flat

    def _listed(self, name: str, count: int, result: Any) -> list[Any]:
        if result is None:
            return [None] * count
        if not isinstance(result, (list, tuple)):
            found = type(result).__name__
            raise self._misfit(f"returned a {found} for the list `{name}`")
        if len(result) != count:
            fault = f"returned {len(result)} gradients for `{name}`, a list of {count}"
            raise self._misfit(fault)
        return [*result]

    def _misfit(self, fault: str) -> GradientStructure:
        positional = self._schema.arguments[: self._schema.kwarg_only_start]
        return GradientStructure(
            operator=str(self._schema.name),
            fault=fault,
            arguments=tuple(argument.name for argument in positional),
        )


def _recorded(
    run: Function, schema: Schema, backward: Function, setup_context: Function | None
) -> Function:
    """The function of a call of which some argument requires grad."""
    start = schema.kwarg_only_start
    kinds = tuple(
        2 if is_tensor_list(argument.type) else int(is_tensor(argument.type))
        for argument in schema.arguments[:start]
    )
    call = _forward(run, schema, setup_context)
    if 2 in kinds or [each.type for each in schema.returns] != [TensorType]:
        return _recorded_lists(run, call, schema, backward, kinds)
    return _recorded_tensors(run, call, schema, backward, kinds)


def _forward(
    run: Function, schema: Schema, setup_context: Function | None
) -> Callable[[Context, tuple[Any, ...]], Any]:
    """Runs the call below Autograd, and what saves for the gradient after it."""
    start, returns = schema.kwarg_only_start, returner(schema)
    named = [argument.name for argument in schema.arguments[start:]]

    def forward(context: Context, args: tuple[Any, ...]) -> Any:
        view = LOCAL.view
        LOCAL.view = without_autograd(view)
        try:
            result = returns(run(*args))
            if setup_context is None:
                return result
            if named:
                keywords = dict(zip(named, args[start:], strict=True))
                setup_context(context, args[:start], keywords, result)
            else:
                setup_context(context, args, result)
        finally:
            LOCAL.view = view
        if context.dirty:
            raise FunctionMisuse(
                function=context.function,
                fault="marked a tensor as dirty, but writes to none by its schema",
                remedy="leave mark_dirty out",
            )
        return result

    return forward


def _recorded_tensors(
    run: Function,
    forward: Function,
    schema: Schema,
    backward: Function,
    kinds: tuple[int, ...],
) -> Function:
    """For tensors to one tensor, which most operators are: no lists to take apart."""
    operator, count = str(schema.name), len(kinds)
    places = tuple(place for place, kind in enumerate(kinds) if kind)
    slots = tuple(range(len(places)))
    formula = Formula(schema, backward, [kind or None for kind in kinds], (1,))

    def record(*args: Any) -> Any:
        needs = [False] * count
        edges: list[Edge | None] = []
        for place in places:
            tensor = args[place]
            if tensor is not None and tensor._requires_grad:
                needs[place] = True
                edges.append(edge_of(tensor))
            else:
                edges.append(None)
        if True not in needs:
            return run(*args)
        context = Context(operator, tuple(needs))
        node = FunctionNode(formula, context, edges, slots, len(slots))
        result = forward(context, args)
        if context.constant:
            return _finished(node, [result])[0]
        result = _ended(node, 0, result)
        if result is not None:
            node.metas = (meta_of(result),)
        if context.to_save:
            node.keep([result], True)
        return result

    return record


def _recorded_lists(
    run: Function,
    forward: Function,
    schema: Schema,
    backward: Function,
    kinds: tuple[int, ...],
) -> Function:
    """For any arguments and results."""
    operator, single = str(schema.name), len(schema.returns) == 1

    def record(*args: Any) -> Any:
        needs, inputs, edges = _inputs(kinds, args)
        if not any(edges):
            return run(*args)
        context = Context(operator, needs)
        formula = Formula(schema, backward, inputs)
        slots = tuple(range(len(edges)))
        node = FunctionNode(formula, context, edges, slots, len(slots))
        result = forward(context, args)
        results = [result] if single else [*(result or ())]
        formula.outputs = _outputs(results)
        given = _finished(node, results)
        return given[0] if single else tuple(given) or None

    return record


def _inputs(
    kinds: tuple[int, ...], args: Sequence[Any]
) -> tuple[tuple[Any, ...], list[Any], list[Edge | None]]:
    """Of each positional argument: whether it requires grad, its shape, its edges."""
    needs: list[Any] = []
    shapes: list[Any] = []
    edges: list[Edge | None] = []
    for kind, value in zip(kinds, args, strict=False):
        if kind == 0:
            needs.append(False)
            shapes.append(None)
        elif kind == 1:
            wanted = value is not None and value._requires_grad
            needs.append(wanted)
            shapes.append(1)
            edges.append(edge_of(value) if wanted else None)
        else:
            each = tuple([any_requires_grad([tensor]) for tensor in value])
            needs.append(each)
            shapes.append((len(value),))
            edges += [
                edge_of(tensor) if wanted else None
                for tensor, wanted in zip(value, each, strict=True)
            ]
    return tuple(needs), shapes, edges


def _outputs(results: Sequence[Any]) -> list[Any]:
    return [(len(each),) if isinstance(each, list) else 1 for each in results]


def _finished(node: FunctionNode, results: list[Any]) -> list[Any]:
    """The results with their history, and the node with what it saved."""
    constant = {id(tensor) for tensor in node.context.constant}
    flat: list[Any] = []
    given: list[Any] = []
    for result in results:
        if isinstance(result, list):
            made = [
                _ended(node, len(flat) + place, each, constant)
                for place, each in enumerate(result)
            ]
            flat += made
            given.append(made)
        else:
            flat.append(_ended(node, len(flat), result, constant))
            given.append(flat[-1])
    node.metas = tuple([meta_of(t) if isinstance(t, Tensor) else None for t in flat])  # type: ignore[misc]  # no edge leads to what is no tensor
    node.keep(flat, True)
    return given


def _ended(
    node: FunctionNode, number: int, result: Any, constant: Collection[int] = ()
) -> Any:
    """One result, with its history where it can have a gradient."""
    if not isinstance(result, Tensor) or result.dtype not in DIFFERENTIABLE:
        return result
    if constant and id(result) in constant:
        return result
    history = result._history
    if history is not None and history.view is not None and history.node is None:
        history.node, history.number = node, number
    else:
        if history is not None or result._requires_grad:
            # It belongs to somebody: another tensor on the same elements.
            result = sharing(result)
        result._history = History(node, number)
    result._requires_grad = True
    return result
