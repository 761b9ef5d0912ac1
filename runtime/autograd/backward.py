"""`backward` and `grad`: asking for gradients.

True only here: what is checked before the engine starts, and what the caller gets.

Rules:
- an output of one element has the gradient 1 if none is given; others must be given
  one of their shape (a broadcast one is summed by nobody: it is refused);
- `backward` accumulates in `leaf.grad`, `grad` returns gradients and touches nothing;
- `retain_graph` is `create_graph` unless it is said.
"""

from collections.abc import Sequence
from typing import Any

from numpy import ones

from runtime.autograd.accumulate import AccumulateGrad, added, copied
from runtime.autograd.engine import Request, run
from runtime.autograd.history import extra_of
from runtime.autograd.modes import no_grad
from runtime.autograd.node import Edge
from runtime.autograd.views import edge_of
from runtime.errors.autograd import (
    GradientMismatch,
    GradientNeeded,
    InputWithoutGradient,
    NoGradientToCompute,
    UnusedInput,
)
from runtime.operators.call import core
from runtime.tensors.elements import numpy_dtype
from runtime.tensors.keys import fresh_key_bits, is_handled
from runtime.tensors.tensor import Tensor

Tensors = Tensor | Sequence[Tensor]


def backward(
    tensors: Tensors,
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Accumulate the gradients of `tensors` in the leaves that they were computed from.

    Args:
        tensors: one tensor or several, the roots.
        grad_tensors: a gradient for each root, converted to its dtype; None for 1.
        retain_graph: keep what was saved, so that the graph can be run again.
        create_graph: record the gradients, so that they can be differentiated.
        inputs: accumulate in these tensors only, which need not be leaves.

    Raises:
        NoGradientToCompute, GradientNeeded, GradientMismatch: a root has no gradient.
        InputWithoutGradient: one of `inputs` requires none.
        GraphFreed, SavedTensorModified, NotImplementedFormula: as the graph says.
    """
    if grad_tensors is None and isinstance(tensors, Tensor):
        # One root, as nearly always: what `_roots` does, without lists.
        edge = _root_edge("backward", 0, tensors)
        roots = [(edge, _root_gradient("backward", 0, tensors, None))]
    else:
        roots = _roots("backward", _several(tensors), grad_tensors)
    retain = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        run(roots, retain_graph=retain, create_graph=create_graph)
        return
    wanted = _several(inputs)
    edges = [_input_edge(index, tensor) for index, tensor in enumerate(wanted)]
    leaves = [node for node, _ in edges if isinstance(node, AccumulateGrad)]
    others = [edge for edge in edges if not isinstance(edge[0], AccumulateGrad)]
    request = Request([edge[0] for edge, _ in roots], others, leaves)
    run(roots, retain_graph=retain, create_graph=create_graph, request=request)
    for tensor, edge in zip(wanted, edges, strict=True):
        gradient = request.captured.pop(edge, None)
        if gradient is not None:
            _add_to(tensor, gradient, create_graph)


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of `outputs` by each of `inputs`; nothing is accumulated.

    Args:
        outputs: the roots, as for `backward`.
        inputs: any tensors that require grad.
        grad_outputs: a gradient for each root; None for 1.
        retain_graph, create_graph: as for `backward`.
        allow_unused: None for an input that the outputs do not depend on.
        materialize_grads: zeros for such an input.

    Raises:
        UnusedInput: the outputs do not depend on an input, and that is not allowed.
        and what `backward` raises.
    """
    wanted = _several(inputs)
    roots = _roots("grad", _several(outputs), grad_outputs)
    edges = [_input_edge(index, tensor) for index, tensor in enumerate(wanted)]
    request = Request([edge[0] for edge, _ in roots], edges, ())
    retain = create_graph if retain_graph is None else retain_graph
    run(roots, retain_graph=retain, create_graph=create_graph, request=request)
    found: list[Tensor | None] = []
    allowed = materialize_grads if allow_unused is None else allow_unused
    for index, (tensor, edge) in enumerate(zip(wanted, edges, strict=True)):
        gradient = request.captured.get(edge)
        if gradient is None and not allowed:
            raise UnusedInput(index=index, shape=tensor.shape)
        if gradient is None and materialize_grads:
            gradient = core.zeros_like(tensor)
        found.append(gradient)
    return tuple(found)


def _several(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else [*tensors]


def _roots(
    asked: str,
    outputs: list[Tensor],
    given: Tensor | Sequence[Tensor | None] | None,
) -> list[tuple[Edge, Any]]:
    if given is None:
        gradients: list[Tensor | None] = [None] * len(outputs)
    else:
        listed = isinstance(given, Sequence) and not isinstance(given, str)
        gradients = [*given] if listed else [given]  # type: ignore[list-item]  # `_root_gradient` looks at it
    if len(gradients) != len(outputs):
        raise GradientMismatch(
            where=f"The call of `{asked}`",
            what="number",
            expected=f"{len(outputs)} gradients",
            found=f"{len(gradients)} gradients",
        )
    return [
        (_root_edge(asked, index, output), _root_gradient(asked, index, output, one))
        for index, (output, one) in enumerate(zip(outputs, gradients, strict=True))
    ]


def _root_edge(asked: str, index: int, output: Tensor) -> Edge:
    if not output._requires_grad:
        raise NoGradientToCompute(asked=asked, index=index, shape=output.shape)
    return edge_of(output)


def _root_gradient(
    asked: str, index: int, output: Tensor, gradient: Tensor | None
) -> Tensor:
    if gradient is None:
        if (output.shape and output.numel() != 1) or output.dtype.is_complex:
            raise GradientNeeded(asked=asked, index=index, shape=output.shape)
        return _one(output)
    if not isinstance(gradient, Tensor):
        raise GradientMismatch(
            where=f"The call of `{asked}`, for output {index},",
            what="type",
            expected="Tensor",
            found=type(gradient).__name__,
        )
    # Of another width, or a number of another device, the engine converts it.
    same_kind = output.dtype.is_complex == gradient.dtype.is_complex
    same_device = output.device == gradient.device or not gradient.shape
    for what, fits, expected, found in (
        ("shape", output.shape == gradient.shape, output.shape, gradient.shape),
        ("dtype", same_kind, output.dtype, gradient.dtype),
        ("device", same_device, output.device, gradient.device),
    ):
        if not fits:
            raise GradientMismatch(
                where=f"The call of `{asked}`, for output {index},",
                what=what,
                expected=str(expected),
                found=str(found),
            )
    return gradient


def _one(output: Tensor) -> Tensor:
    """The number 1 in the form of an output of one element."""
    if output.device.type == "cpu" and not is_handled(output):
        dtype, bits = output.dtype, fresh_key_bits("cpu")
        flat = ones(1, numpy_dtype(dtype))
        return Tensor(flat, output.shape, dtype, output.device, bits)
    with no_grad():
        made: Tensor = core.ones_like(output)
    return made


def _input_edge(index: int, tensor: Tensor) -> Edge:
    if not tensor._requires_grad:
        raise InputWithoutGradient(index=index, shape=tensor.shape)
    return edge_of(tensor)


def _add_to(tensor: Tensor, gradient: Tensor, recorded: bool) -> None:
    extra = extra_of(tensor)
    with extra.lock:
        if extra.grad is None:
            extra.grad = gradient if recorded else copied(gradient)
        else:
            extra.grad = added(extra.grad, gradient)
