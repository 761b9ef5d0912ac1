"""The engine: runs a graph backwards, for `backward` and `grad`.

Nodes that a gradient has reached wait in a heap, the most recent node first. Every edge
leads to an earlier node, so when a node leaves the heap, all of its gradients have
arrived: the engine needs neither dependency counts nor recursion. Gradients that meet
are added, in place where nothing else refers to the first. Between two nodes the engine
fits a gradient to its value: it sums broadcast dimensions, drops the imaginary part of
the gradient of a real number, and converts to the dtype of the value.

Rules:
- an output of one element has the gradient 1 by default; other outputs need a gradient
  of their shape (a gradient that would have to be broadcast is refused);
- `backward` accumulates in `leaf.grad`; `grad` returns gradients and changes no tensor;
- `retain_graph` defaults to `create_graph`;
- the engine has no state between two runs, and holds no lock while a node runs: several
  threads, and runs inside of nodes, do not affect each other;
- a node releases its saved tensors right after it ran, unless the graph is retained;
- with `request`, only nodes on the way to a requested edge run;
- at a node, first the hooks of tensors change the gradients of its outputs, then the
  requested ones are captured, then the node's own hooks and the node run, if it runs.

Source of the accumulation order: reverse mode over a tape; Griewank and Walther,
"Evaluating Derivatives", 2nd edition, chapter 3.
"""

from collections.abc import Collection, Sequence
from heapq import heappop, heappush
from typing import Any

from numpy import ones

from everyorder.runtime.autograd.accumulate import (
    AccumulateGrad,
    accumulate,
    accumulate_buffer,
    add_gradients,
)
from everyorder.runtime.autograd.grad_edges import edge_of
from everyorder.runtime.autograd.grad_mode import GRAD, BackwardRun, followed, no_grad
from everyorder.runtime.autograd.node import (
    Edge,
    Meta,
    Node,
    mismatch,
    run_hooks,
)
from everyorder.runtime.errors.autograd import AutogradMisuse, BackwardRefused
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.tensors.dtype_info import numpy_dtype
from everyorder.runtime.tensors.keys import fresh_key_bits, is_handled
from everyorder.runtime.tensors.tensor import Tensor


class GradientRequest:
    """The gradients requested from a run: some edges, and the nodes that lead to them.

    `captured` maps each edge to its gradient. A node of `nodes` that is not in `needed`
    does not run.
    """

    __slots__ = ("captured", "edges", "needed", "nodes")

    def __init__(
        self, roots: Collection[Node], edges: Collection[Edge], run: Collection[Node]
    ) -> None:
        self.edges = edges
        self.nodes = {node for node, _ in edges}
        self.needed = leading(roots, self.nodes | {*run}) | {*run}
        self.captured: dict[Edge, Any] = {}


def leading(roots: Collection[Node], targets: Collection[Node]) -> set[Node]:
    """Return the nodes reachable from `roots` that have an edge towards some target."""
    before: dict[Node, list[Node]] = {}
    visited = {*roots}
    waiting = [*roots]
    while waiting:
        node = waiting.pop()
        for edge in node.next_edges:
            if edge is not None:
                after = edge[0]
                before.setdefault(after, []).append(node)
                if after not in visited:
                    visited.add(after)
                    waiting.append(after)
    nodes: set[Node] = set()
    waiting = [*targets]
    while waiting:
        for node in before.get(waiting.pop(), ()):
            if node not in nodes:
                nodes.add(node)
                waiting.append(node)
    return nodes


def run(
    roots: list[tuple[Edge, Any]],
    *,
    retain_graph: bool,
    create_graph: bool,
    request: GradientRequest | None = None,
) -> None:
    """Run the graph from `roots`, each with its gradient.

    Exceptions of nodes propagate; gradients accumulated until then stay.
    """
    before = GRAD.enabled, GRAD.follows, GRAD.run
    needed = None if request is None else request.needed | request.nodes
    current = BackwardRun([edge[0] for edge, _ in roots], needed)
    GRAD.enabled = GRAD.follows = create_graph
    GRAD.run = current
    try:
        _run(roots, retain_graph, request, needed)
        for end in current.ends:
            followed(end)
    finally:
        GRAD.enabled, GRAD.follows, GRAD.run = before


def _run(
    roots: list[tuple[Edge, Any]],
    retain_graph: bool,
    request: GradientRequest | None,
    needed: Collection[Node] | None,
) -> None:
    waiting: list[tuple[int, Node]] = []
    buffers: dict[Node, list[Any]] = {}
    for (node, number), gradient in roots:
        if needed is None or node in needed:
            _arrive(waiting, buffers, node, number, gradient)
    gradient = None
    roots.clear()
    while waiting:
        node = heappop(waiting)[1]
        gradients = buffers.pop(node)
        if node.hooks is not None:
            node.hooks.run_outputs(gradients)
        if type(node) is AccumulateGrad and node.extra.hooks:
            gradients[0] = run_hooks(node.extra.hooks, gradients[0])
        if request is not None:
            if node in request.nodes:
                _capture(request, node, gradients)
            if node not in request.needed:
                continue
        if node.hooks is not None and node.hooks.before:
            gradients = node.hooks.run_before(gradients)
            if all(each is None for each in gradients):
                # Hooks removed every gradient: stop at this node.
                continue
        results = node.apply(gradients)
        if node.hooks is not None and node.hooks.after:
            results = node.hooks.run_after(results, gradients)
        if not retain_graph:
            node.release()
        # Drop our references: a leaf steals a gradient that only its buffer refers to.
        gradients = []
        edges = node.next_edges
        if len(results) != len(edges):
            raise _wrong_count(node, len(results))
        place = -1
        for edge in edges:
            place += 1
            if edge is None or (gradient := results[place]) is None:
                continue
            after, number = edge
            if needed is not None and after not in needed:
                continue
            meta = after.metas[number]
            if (
                gradient.shape != meta[0]
                or gradient.dtype is not meta[1]
                or gradient.device is not meta[2]
            ):
                gradient = fit_gradient(gradient, meta, node)
            buffer = buffers.get(after)
            if buffer is None:
                buffer = buffers[after] = [None] * len(after.metas)
                heappush(waiting, (-after.sequence, after))
            if buffer[number] is None:
                buffer[number] = gradient
            else:
                buffer[number] = accumulate_buffer(buffer[number], gradient)
        results, gradient, buffer = (), None, None


def _arrive(
    waiting: list[tuple[int, Node]],
    buffers: dict[Node, list[Any]],
    node: Node,
    number: int,
    gradient: Any,
) -> None:
    buffer = buffers.get(node)
    if buffer is None:
        buffer = buffers[node] = [None] * len(node.metas)
        heappush(waiting, (-node.sequence, node))
    meta = node.metas[number]
    if gradient.dtype is not meta[1] or gradient.device is not meta[2]:
        gradient = fit_gradient(gradient, meta, node)
    before = buffer[number]
    buffer[number] = gradient if before is None else add_gradients(before, gradient)


def _capture(request: GradientRequest, node: Node, gradients: list[Any]) -> None:
    for edge in request.edges:
        if edge[0] is node:
            request.captured[edge] = gradients[edge[1]]


def fit_gradient(gradient: Any, meta: Meta, node: Node) -> Any:
    """Return `gradient` fitted to the shape, dtype and device of its value.

    Raises:
        AutogradMisuse: the shapes or devices do not fit.
    """
    shape, dtype, device = meta
    if gradient.shape != shape:
        if not _sums_to(gradient.shape, shape):
            raise mismatch(f"`{node.operator}`", "shape", shape, gradient.shape)
        gradient = core.sum_to_size(gradient, shape)
    if gradient.dtype is not dtype:
        gradient = core._to_copy(gradient, dtype=dtype)
    if gradient.device != device:
        if gradient.shape:
            raise mismatch(f"`{node.operator}`", "device", device, gradient.device)
        gradient = core._to_copy(gradient, device=device)
    return gradient


def _sums_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    added = len(shape) - len(target)
    return added >= 0 and all(
        size in (1, have) for size, have in zip(target, shape[added:], strict=True)
    )


def _wrong_count(node: Node, count: int) -> AutogradMisuse:
    return mismatch(
        f"`{node.operator}`",
        "number",
        f"{len(node.next_edges)} gradients",
        f"{count} gradients",
    )


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
        retain_graph: keep the saved tensors, so that the graph can run again.
        create_graph: record the gradients, so that they can be differentiated.
        inputs: accumulate in these tensors only; they need not be leaves.

    Raises:
        AutogradMisuse: the gradients do not fit the roots in number, type, shape,
            dtype or device.
        BackwardRefused: a root does not require grad, or needs a gradient argument; one
            of `inputs` does not require grad, or `inputs` is empty; a node of the graph
            cannot run.
        NotImplementedFormula: an operator of the graph has no gradient formula.
    """
    if grad_tensors is None and isinstance(tensors, Tensor):
        # Fast path for one root, nearly every call: the same as `_roots`, without
        # lists.
        edge = _root_edge("backward", 0, tensors)
        roots = [(edge, _root_gradient("backward", 0, tensors, None))]
    else:
        roots = _roots("backward", _several(tensors), grad_tensors)
    retain = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        run(roots, retain_graph=retain, create_graph=create_graph)
        return
    targets, edges = _inputs("backward", inputs)
    leaves = [node for node, _ in edges if isinstance(node, AccumulateGrad)]
    others = [edge for edge in edges if not isinstance(edge[0], AccumulateGrad)]
    request = GradientRequest([edge[0] for edge, _ in roots], others, leaves)
    run(roots, retain_graph=retain, create_graph=create_graph, request=request)
    for tensor, edge in zip(targets, edges, strict=True):
        gradient = request.captured.pop(edge, None)
        if gradient is not None:
            accumulate(tensor, gradient, create_graph)


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of `outputs` by each of `inputs` without accumulating them.

    Args:
        outputs: the roots, as for `backward`.
        inputs: any tensors that require grad.
        grad_outputs: a gradient for each root; None for 1.
        retain_graph, create_graph: as for `backward`.
        allow_unused: return None for an input that the outputs do not depend on.
        materialize_grads: return zeros for such an input, which require grad if
            `create_graph`.

    Raises:
        BackwardRefused: the outputs do not depend on an input, and `allow_unused` is
            false; or an error of `backward`.
        AutogradMisuse, NotImplementedFormula: as for `backward`.
    """
    roots = _roots("grad", _several(outputs), grad_outputs)
    targets, edges = _inputs("grad", inputs)
    request = GradientRequest([edge[0] for edge, _ in roots], edges, ())
    retain = create_graph if retain_graph is None else retain_graph
    run(roots, retain_graph=retain, create_graph=create_graph, request=request)
    gradients: list[Tensor | None] = []
    allowed = materialize_grads if allow_unused is None else allow_unused
    for index, (tensor, edge) in enumerate(zip(targets, edges, strict=True)):
        gradient = request.captured.get(edge)
        if gradient is None and not allowed:
            raise BackwardRefused(code="UnusedInput", index=index, shape=tensor.shape)
        if gradient is None and materialize_grads:
            gradient = core.zeros_like(tensor)
            if create_graph and gradient is not None:
                # It can be differentiated like the others.
                gradient.requires_grad_()
        gradients.append(gradient)
    return tuple(gradients)


def _several(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else [*tensors]


def _inputs(call: str, inputs: Tensors) -> tuple[list[Tensor], list[Edge]]:
    """Return the input tensors, and the edges where their gradients arrive."""
    tensors = _several(inputs)
    if not tensors:
        raise BackwardRefused(code="NoInputs", asked=call)
    return tensors, [_input_edge(index, each) for index, each in enumerate(tensors)]


def _roots(
    call: str,
    outputs: list[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None,
) -> list[tuple[Edge, Any]]:
    if grad_outputs is None:
        gradients: list[Tensor | None] = [None] * len(outputs)
    else:
        listed = isinstance(grad_outputs, Sequence) and not isinstance(
            grad_outputs, str
        )
        gradients = [*grad_outputs] if listed else [grad_outputs]  # type: ignore[list-item]  # `_root_gradient` looks at it
    if len(gradients) != len(outputs):
        raise mismatch(
            f"The call of `{call}`",
            "number",
            f"{len(outputs)} gradients",
            f"{len(gradients)} gradients",
        )
    return [
        (_root_edge(call, index, output), _root_gradient(call, index, output, one))
        for index, (output, one) in enumerate(zip(outputs, gradients, strict=True))
    ]


def _root_edge(call: str, index: int, output: Tensor) -> Edge:
    if not output._requires_grad:
        raise BackwardRefused(
            code="NoGradientToCompute", asked=call, index=index, shape=output.shape
        )
    return edge_of(output)


def _root_gradient(
    call: str, index: int, output: Tensor, gradient: Tensor | None
) -> Tensor:
    if gradient is None:
        if (output.shape and output.numel() != 1) or output.dtype.is_complex:
            raise BackwardRefused(
                code="GradientNeeded", asked=call, index=index, shape=output.shape
            )
        return _one(output)
    if not isinstance(gradient, Tensor):
        raise mismatch(
            f"The call of `{call}`, for output {index},",
            "type",
            "Tensor",
            type(gradient).__name__,
        )
    # The engine converts another width, and a number of another device.
    same_kind = output.dtype.is_complex == gradient.dtype.is_complex
    same_device = output.device == gradient.device or not gradient.shape
    for what, fits, expected, actual in (
        ("shape", output.shape == gradient.shape, output.shape, gradient.shape),
        ("dtype", same_kind, output.dtype, gradient.dtype),
        ("device", same_device, output.device, gradient.device),
    ):
        if not fits:
            raise mismatch(
                f"The call of `{call}`, for output {index},", what, expected, actual
            )
    return gradient


def _one(output: Tensor) -> Tensor:
    """Return the number 1 with the shape, dtype and device of an output of one
    element.
    """
    if output.device.type == "cpu" and not is_handled(output):
        dtype, bits = output.dtype, fresh_key_bits("cpu")
        flat = ones(1, numpy_dtype(dtype))
        return Tensor(flat, output.shape, dtype, output.device, bits)
    with no_grad():
        unit: Tensor = core.ones_like(output)
    return unit


def _input_edge(index: int, tensor: Tensor) -> Edge:
    if not tensor._requires_grad:
        raise BackwardRefused(
            code="InputWithoutGradient", index=index, shape=tensor.shape
        )
    return edge_of(tensor)
