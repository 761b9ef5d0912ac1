"""Recording: what a call of a custom operator leaves in the graph.

True only here: the path from a call whose arguments require grad to results that have a
history, for any arguments and results.  Operators that make one tensor of tensors have
a shorter one (`runtime.custom.recording_tensors`).

Rules:
- what `setup_context` saves is kept when the results have their history, as it may be
  they that are saved;
- a result that has a history is somebody's: it is shared;
- a formula is for operators that write nothing: what is marked as dirty is refused.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from runtime.autograd.context import Context, FunctionNode
from runtime.autograd.history import DIFFERENTIABLE, History
from runtime.autograd.kernels import any_requires_grad
from runtime.autograd.node import Edge
from runtime.autograd.recording import BELOW_AUTOGRAD, meta_of
from runtime.autograd.saved import sharing
from runtime.autograd.views import edge_of
from runtime.custom.formula import Formula
from runtime.errors.autograd import FunctionMisuse
from runtime.generated import block, template
from runtime.keys import LOCAL
from runtime.schema.returns import returner
from runtime.schema.schema import Schema
from runtime.tensors.tensor import Tensor

Function = Callable[..., Any]

# What stands for one kind of argument: a plain value, a tensor, a list of tensors.
VALUE, TENSOR, TENSORS = range(3)


def setup_call(
    form: str, inputs: str, named: Sequence[str], values: Sequence[str]
) -> str:
    """The text of the call of `setup_context`; see `runtime.custom.gradient`."""
    pairs = zip(named, values, strict=True)
    keywords = ", ".join(f"{name!r}: {value}" for name, value in pairs)
    return f"setup_context({form})".format(inputs=inputs, keywords=f"{{{keywords}}}")


def recorded_lists(
    run: Function,
    schema: Schema,
    backward: Function,
    setup: str,
    setup_context: Function | None,
    kinds: tuple[int, ...],
) -> Function:
    """The recorded call for any arguments and results; as `recorded_tensors`."""
    operator, single = str(schema.name), len(schema.returns) == 1
    start, returns = len(kinds), returner(schema)
    named = tuple(argument.name for argument in schema.arguments[start:])
    set_up = _setting_up(setup, start, named)(setup_context) if setup else None

    def record(*args: Any) -> Any:
        needs, inputs, edges = _inputs(kinds, args)
        if not any(edges):
            return run(*args)
        context = Context(operator, needs)
        formula = Formula(schema, backward, inputs)
        slots = tuple(range(len(edges)))
        node = FunctionNode(formula, context, edges, slots, len(slots))
        view = LOCAL.view
        LOCAL.view = BELOW_AUTOGRAD[view]
        try:
            result = returns(run(*args))
            if set_up is not None:
                set_up(context, args, result)
        finally:
            LOCAL.view = view
        results = [result] if single else [*(result or ())]
        formula.outputs = _outputs(results)
        given = finished(node, results)
        return given[0] if single else tuple(given) or None

    return record


@template("custom recording", "setup_context")
def _setting_up(form: str, start: int, named: tuple[str, ...]) -> list[str]:
    values = [f"args[{start + place}]" for place in range(len(named))]
    call = setup_call(form, f"args[:{start}]", named, values)
    return block("def set_up(context, args, result):", [call])


def _inputs(
    kinds: tuple[int, ...], args: Sequence[Any]
) -> tuple[tuple[Any, ...], list[Any], list[Edge | None]]:
    """Of each positional argument: whether it requires grad, its shape, its edges."""
    needs: list[Any] = []
    shapes: list[Any] = []
    edges: list[Edge | None] = []
    for kind, value in zip(kinds, args, strict=False):
        if kind == VALUE:
            needs.append(False)
            shapes.append(None)
        elif kind == TENSOR:
            wanted = bool(getattr(value, "_requires_grad", False))
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


def finished(node: FunctionNode, results: list[Any]) -> list[Any]:
    """The results with their history, and the node with what it saved."""
    if node.context.dirty:
        raise FunctionMisuse(
            function=node.context.function,
            fault="marked a tensor as dirty, but writes to none by its schema",
            remedy="leave mark_dirty out",
        )
    constant = {id(tensor) for tensor in node.context.constant}
    flat: list[Any] = []
    given: list[Any] = []
    for result in results:
        if isinstance(result, list):
            made = [
                ended(node, len(flat) + place, each, constant)
                for place, each in enumerate(result)
            ]
            flat += made
            given.append(made)
        else:
            flat.append(ended(node, len(flat), result, constant))
            given.append(flat[-1])
    node.metas = tuple([meta_of(t) if isinstance(t, Tensor) else None for t in flat])  # type: ignore[misc]  # no edge leads to what is no tensor
    node.keep(flat, True)
    return given


def ended(
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
