"""The engine: runs a graph backwards.

True only here: the order, and what happens between two nodes.

How it works: nodes that a gradient has reached wait in a heap, the latest made first.
Every edge leads to an earlier node, so when a node is taken, all that it will ever get
has come: no counting of dependencies is needed, and no recursion.  Gradients that meet
are added, in place where nobody else has the first.  Between two nodes a gradient is
made to fit: broadcast dimensions are summed away, the imaginary part of the gradient of
a real number is dropped, the dtype is that of the value.

Rules:
- the engine holds nothing between two runs, and no lock while a node runs: several
  threads, and runs inside of nodes, do not know of each other;
- a node lets go of what it saved right after it ran, unless the graph is retained;
- with `wanted`, only nodes on the way to these are run.

Source of the accumulation order: reverse mode over a tape; Griewank and Walther,
"Evaluating Derivatives", 2nd edition, chapter 3.
"""

from collections.abc import Collection
from heapq import heappop, heappush
from typing import Any

from runtime.autograd.accumulate import AccumulateGrad, added, joined
from runtime.autograd.modes import GRAD
from runtime.autograd.node import Edge, Meta, Node, through
from runtime.errors.autograd import GradientMismatch
from runtime.operators.call import core


class Request:
    """What is wanted of a run: gradients at some edges, and which nodes lead there.

    `captured` maps edges to the gradients found; a node of `stops` is not run.
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
    """The nodes reached from `roots` from which some target is reached by an edge."""
    before: dict[Node, list[Node]] = {}
    seen = {*roots}
    waiting = [*roots]
    while waiting:
        node = waiting.pop()
        for edge in node.next_edges:
            if edge is not None:
                after = edge[0]
                before.setdefault(after, []).append(node)
                if after not in seen:
                    seen.add(after)
                    waiting.append(after)
    found: set[Node] = set()
    waiting = [*targets]
    while waiting:
        for node in before.get(waiting.pop(), ()):
            if node not in found:
                found.add(node)
                waiting.append(node)
    return found


def run(
    roots: list[tuple[Edge, Any]],
    *,
    retain_graph: bool,
    create_graph: bool,
    request: Request | None = None,
) -> None:
    """Run the graph from `roots`, each with its gradient.

    Raises whatever a node raises; what was accumulated until then stays.
    """
    before = GRAD.enabled, GRAD.follows
    GRAD.enabled = GRAD.follows = create_graph
    try:
        _run(roots, retain_graph, request)
    finally:
        GRAD.enabled, GRAD.follows = before


def _run(
    roots: list[tuple[Edge, Any]], retain_graph: bool, request: Request | None
) -> None:
    waiting: list[tuple[int, Node]] = []
    buffers: dict[Node, list[Any]] = {}
    needed = None if request is None else request.needed | request.nodes
    for (node, number), gradient in roots:
        if needed is None or node in needed:
            _arrive(waiting, buffers, node, number, gradient)
    gradient = None
    roots.clear()
    while waiting:
        node = heappop(waiting)[1]
        gradients = buffers.pop(node)
        if node.hooks is not None:
            gradients = node.hooks.come_in(gradients)
            if all(each is None for each in gradients):
                # Hooks took the gradient away: nothing goes on from here.
                continue
        if type(node) is AccumulateGrad and node.extra.hooks:
            gradients[0] = through(node.extra.hooks, gradients[0])
        if request is not None:
            if node in request.nodes:
                _capture(request, node, gradients)
            if node not in request.needed:
                continue
        results = node.apply(gradients)
        if node.hooks is not None and node.hooks.after:
            results = node.hooks.go_out(results, gradients)
        if not retain_graph:
            node.release()
        # Nobody but its buffer may hold a gradient when it reaches a leaf.
        gradients = []
        edges = node.next_edges
        if len(results) != len(edges):
            raise _miscounted(node, len(results))
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
                gradient = fitted(gradient, meta, node)
            buffer = buffers.get(after)
            if buffer is None:
                buffer = buffers[after] = [None] * len(after.metas)
                heappush(waiting, (-after.sequence, after))
            if buffer[number] is None:
                buffer[number] = gradient
            else:
                buffer[number] = joined(buffer[number], gradient)
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
        gradient = fitted(gradient, meta, node)
    before = buffer[number]
    buffer[number] = gradient if before is None else added(before, gradient)


def _capture(request: Request, node: Node, gradients: list[Any]) -> None:
    for edge in request.edges:
        if edge[0] is node:
            request.captured[edge] = gradients[edge[1]]


def fitted(gradient: Any, meta: Meta, node: Node) -> Any:
    """A gradient made to fit what it is the gradient of.

    Raises `GradientMismatch` where that cannot be.
    """
    shape, dtype, device = meta
    if gradient.shape != shape:
        if not _sums_to(gradient.shape, shape):
            raise GradientMismatch(
                where=f"`{node.operator}`",
                what="shape",
                expected=str(shape),
                found=str(gradient.shape),
            )
        gradient = core.sum_to_size(gradient, shape)
    if gradient.dtype is not dtype:
        gradient = core._to_copy(gradient, dtype=dtype)
    if gradient.device != device:
        if gradient.shape:
            raise GradientMismatch(
                where=f"`{node.operator}`",
                what="device",
                expected=str(device),
                found=str(gradient.device),
            )
        gradient = core._to_copy(gradient, device=device)
    return gradient


def _sums_to(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    added = len(shape) - len(wanted)
    return added >= 0 and all(
        size in (1, have) for size, have in zip(wanted, shape[added:], strict=True)
    )


def _miscounted(node: Node, count: int) -> GradientMismatch:
    return GradientMismatch(
        where=f"`{node.operator}`",
        what="number",
        expected=f"{len(node.next_edges)} gradients",
        found=f"{count} gradients",
    )
