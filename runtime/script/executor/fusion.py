"""Fusion: replace neighbouring pointwise operators by one node, which runs one kernel.

    fuse          moves neighbouring nodes into a `prim::FusionGroup`
    FusedGroup    the function of such a node:

    inputs ── plain, unwatched, built-in ops ── dtypes and shapes ──> the fused loop
      └──────────────── anything else ──────────────────────────────> the operators

Rules of groups:
- the nodes of a group follow one another in a block; nodes between them have no effects
  (constants, and nodes that only compute a value), and are moved before the group;
- each has a step (`runtime.script.executor.fused_kernel`) for the dtypes and shapes
  known in advance; all results have one shape, of at least `LEAST` elements;
- no member writes, and no node moves across an effect: a group computes and raises the
  same as its nodes, in their order;
- dtypes and shapes are hints: the actual inputs decide, when the group runs.

Rules of running:
- the kernel's results equal those of the operators, bit for bit (except the payload of
  NaN); in all cases that might differ the operators run: a gradient to record, a mode,
  a subclass, a device, a layout, an operator that is overridden, no memory left;
- the operators also run for inputs that one of them refuses, so that it raises its own
  error;
- the decision for dtypes and shapes is cached, up to `MOST` entries per group.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from everyorder.runtime.autograd.grad_mode import GRAD
from everyorder.runtime.dispatch.dispatcher import default_dispatcher
from everyorder.runtime.dispatch.watch import WATCH
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.operators.declare.plan import CPU
from everyorder.runtime.schema.types import BoolType, FloatType, IntType, TensorType
from everyorder.runtime.schema.values import INT_END, INT_FIRST
from everyorder.runtime.script.executor.fused_kernel import (
    Fact,
    GroupKernel,
    kernel_for,
    rows_of,
)
from everyorder.runtime.script.executor.fused_steps import (
    NUMBERS,
    RuntimeNumber,
    operators,
    step_of,
)
from everyorder.runtime.script.ir import (
    Block,
    Graph,
    Node,
    NodeEffect,
    Value,
    effects_of,
)
from everyorder.runtime.script.ir.graph import copy_node
from everyorder.runtime.script.passes import TensorMeta
from everyorder.runtime.script.primitives.operator_calls import is_own, is_plain
from everyorder.runtime.tensors.dtype_info import DEFAULTS
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import flat_of

GROUP, CONSTANT = "prim::FusionGroup", "prim::Constant"
# For fewer elements the call of an operator costs as much as its loop, and a kernel
# takes a fifth of a second to compile.
LEAST = 1_000
# Limits within which the compiler emits one vectorised loop: for more than eight pairs
# of a written array and another, it does not test whether they overlap, and a long body
# has too many values for the registers.
MOST_NODES, MOST_PAIRS = 24, 8

_NUMBER_TYPES: Mapping[Any, type] = {IntType: int, FloatType: float, BoolType: bool}


def fuse(
    graph: Graph, shapes: Mapping[Value, TensorMeta], *, least: int = LEAST
) -> int:
    """Form groups of nodes whose tensors are in `shapes`; return the number of groups.

    A value that is not in `shapes` is not part of a group.  `least` is the number of
    elements from which fusion is worthwhile.
    """
    count = 0
    todo = [graph.block]
    while todo:
        block = todo.pop()
        for members in _groups(block, shapes, least):
            _form(members)
            count += 1
        todo += [inner for node in block for inner in node.blocks]
    return count


def _groups(
    block: Block, shapes: Mapping[Value, TensorMeta], least: int
) -> list[list[Node]]:
    """Return the nodes of each group of the block."""
    groups: list[list[Node]] = []
    members: list[Node] = []
    facts: dict[Value, Any] = {}
    produced: set[Value] = set()

    def close() -> None:
        if len(members) > 1:
            groups.append(members.copy())
        members.clear()
        produced.clear()

    for node in block:
        shape = _shape(node, shapes, facts, least)
        if shape is not None:
            first = members[0].output if members else node.output
            if shapes[first].shape != shape or not _has_room([*members, node]):
                close()
            members.append(node)
            produced.add(node.output)
        elif not _passes(node, produced):
            close()
    close()
    return groups


def _shape(
    node: Node, shapes: Mapping[Value, TensorMeta], facts: dict[Value, Any], least: int
) -> tuple[int, ...] | None:
    """Return the shape of the node's result if it can be in a group, else None."""
    if node.kind not in operators():
        return None
    for value in node.inputs:
        if value.node.kind == CONSTANT:
            if "value" not in value.node.attributes:
                return None
            facts[value] = value.node.attributes["value"]
        elif value in shapes:
            facts[value] = shapes[value]
        elif value.type in _NUMBER_TYPES:
            facts[value] = RuntimeNumber(_NUMBER_TYPES[value.type])
        else:
            return None
    step = step_of(node, facts)
    if step is None or shapes.get(node.output) != step.facts:
        return None
    shape = step.facts.shape
    if prod(shape) < least:
        return None
    spread = [
        fact.shape
        for fact in map(shapes.get, node.inputs)
        if fact is not None and fact.shape != shape and prod(fact.shape) != 1
    ]
    return shape if not spread or rows_of(shape, spread) is not None else None


def _has_room(members: Sequence[Node]) -> bool:
    if len(members) > MOST_NODES:
        return False
    inputs = [each for each in inputs_of(members) if each.type is TensorType]
    outputs = outputs_of(members)
    pairs = len(outputs) * len(inputs) + len(outputs) * (len(outputs) - 1) // 2
    return pairs <= MOST_PAIRS


def _passes(node: Node, produced: set[Value]) -> bool:
    """Return True if the node can move before a group that began before it."""
    if node.kind == CONSTANT:
        return True
    if node.kind.startswith("core::") or effects_of(node) is not NodeEffect.NONE:
        return False
    return not node.blocks and not any(each in produced for each in node.inputs)


def inputs_of(members: Sequence[Node]) -> list[Value]:
    """Return the inputs of the nodes except constants, in order of first use."""
    own = {each.output for each in members}
    read = [value for node in members for value in node.inputs]
    return [
        each
        for each in dict.fromkeys(read)
        if each not in own and each.node.kind != CONSTANT
    ]


def outputs_of(members: Sequence[Node]) -> list[Value]:
    """Return the outputs of the nodes that others read, in the order of the nodes."""
    own = {*members}
    return [
        each.output
        for each in members
        if any(user not in own for user, _ in each.output.uses)
    ]


def _form(members: Sequence[Node]) -> None:
    """Replace the members by one node at the place of the last."""
    inputs, outputs = inputs_of(members), outputs_of(members)
    body = Graph()
    values = {each: body.block.add_parameter(each.type, each.hint) for each in inputs}
    for node in members:
        for value in node.inputs:
            if value.node.kind == CONSTANT and value not in values:
                body.block.append(copy_node(value.node, values))
        body.block.append(copy_node(node, values))
    for value in outputs:
        body.block.add_result(values[value])
    types = [each.type for each in outputs]
    group = Node(GROUP, inputs, types, {"graph": body}, members[0].place)
    group.insert_before(members[-1])
    for value, output in zip(outputs, group.outputs, strict=True):
        output.hint = value.hint
        value.replace_by(output)
    for node in reversed(members):
        node.destroy()


Function = Callable[..., Any]

# Programs see few shapes; a key with its decision takes a kilobyte.
MOST = 64
_UNKNOWN = object()


def _fits(number: int) -> bool:
    """Return True if operators accept the integer."""
    return INT_FIRST <= number < INT_END


class FusedGroup:
    """The function of a group: runs a fused kernel if possible, else `otherwise`.

    `kernels` counts runs of fused kernels.
    """

    __slots__ = ("_graph", "_kinds", "_memo", "_state", "_view", "kernels", "otherwise")

    def __init__(self, graph: Graph, otherwise: Function) -> None:
        self._graph = graph
        self._kinds = tuple(
            {each.kind: None for each in graph.block if each.kind != "prim::Constant"}
        )
        self._memo: dict[Any, GroupKernel | None] = {}
        self._state: Any = None
        # The keys and the view of the thread that were checked last.
        self._view: Any = None
        self.otherwise = otherwise
        self.kernels = 0

    def __call__(self, *inputs: Any) -> Any:
        """Return the one result of the group, or a tuple of several."""
        bits = 0
        key: list[Any] = [DEFAULTS.real]
        arguments: list[Any] = []
        for each in inputs:
            if each.__class__ is Tensor:
                flat = each._flat
                if flat is None and each._device is CPU:
                    flat = flat_of(each)
                if flat is None or each._device is not CPU or each.number is not None:
                    return self.otherwise(*inputs)
                bits |= each.key_bits
                key += (each._dtype, each._shape)
                arguments.append(flat)
            elif each.__class__ in NUMBERS and (
                each.__class__ is not int or _fits(each)
            ):
                key.append(each.__class__)
                arguments.append(each)
            else:
                return self.otherwise(*inputs)
        if WATCH.active or not self._is_usual(bits) or self._records(inputs):
            return self.otherwise(*inputs)
        memo_key = tuple(key)
        kernel: Any = self._memo.get(memo_key, _UNKNOWN)
        if kernel is _UNKNOWN:
            kernel = self._decide(memo_key, inputs)
        if kernel is None:
            return self.otherwise(*inputs)
        try:
            result = kernel.run(arguments)
        except MemoryError:
            return self.otherwise(*inputs)
        self.kernels += 1
        return result

    def _is_usual(self, bits: int) -> bool:
        """Return True if the call would reach the runtime's own kernels."""
        state, view = default_dispatcher().state, LOCAL.view
        if state is not self._state:
            if not all(is_own(kind, state) for kind in self._kinds):
                return False
            self._state = state
        if self._view != (bits, view):
            if not is_plain(bits, view):
                return False
            self._view = bits, view
        return True

    def _records(self, inputs: Sequence[Any]) -> bool:
        """Return True if a gradient must be recorded."""
        return GRAD.enabled and any(
            each.__class__ is Tensor and each.requires_grad for each in inputs
        )

    def _decide(self, key: Any, inputs: Sequence[Any]) -> GroupKernel | None:
        facts: list[Fact] = [
            TensorMeta(each.dtype, each.shape)
            if isinstance(each, Tensor)
            else RuntimeNumber(type(each))
            for each in inputs
        ]
        kernel = kernel_for(self._graph, facts)
        while len(self._memo) >= MOST:
            try:
                del self._memo[next(iter(self._memo))]
            except (KeyError, RuntimeError, StopIteration):
                continue  # another thread was here
        self._memo[key] = kernel
        return kernel
