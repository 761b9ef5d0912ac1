"""Compiled groups: the kernel of a group where it fits, its operators elsewhere.

True only here: when the kernel runs.

    inputs ── plain, unwatched, own operators ── dtypes and shapes ──> the fused loop
      └──────────────── anything else ──────────────────────────────> the operators

Rules:
- the kernel gives what the operators give, bit for bit (of NaN, that it is one);
  whatever might differ goes to them: a gradient to record, a mode, a subclass, a
  device, a layout, an operator that somebody has overridden, no memory left;
- so do inputs that an operator refuses: it raises what it always does;
- what was decided for dtypes and shapes is remembered, `MOST` of them for a group.
"""

from collections.abc import Callable, Sequence
from typing import Any

from runtime.autograd.modes import GRAD
from runtime.dispatch.dispatcher import default_dispatcher
from runtime.dispatch.watch import WATCH
from runtime.errors.call import OperatorGone
from runtime.keys import LOCAL
from runtime.operators.plan import CPU
from runtime.schema.numbers import INT_END, INT_FIRST
from runtime.script.fusion.kernel import Fact, Ready, ready_for
from runtime.script.fusion.pointwise import NUMBERS, Later
from runtime.script.ir import Graph, Node, row_of
from runtime.script.passes import Facts
from runtime.script.program.bound import bound_call, is_own, is_plain
from runtime.tensors.tensor import Tensor, flat_of

Function = Callable[..., Any]

# Source: programs see few shapes; a key and what is decided of it take a kilobyte.
MOST = 64
_UNKNOWN = object()


def _fits(number: int) -> bool:
    """Whether an integer is one that operators take."""
    return INT_FIRST <= number < INT_END


class Compiled:
    """What runs a fused group; `kernels` counts runs of fused kernels."""

    __slots__ = ("_graph", "_kinds", "_memo", "_state", "_view", "kernels", "otherwise")

    def __init__(self, graph: Graph, otherwise: Function) -> None:
        self._graph = graph
        self._kinds = tuple(
            {each.kind: None for each in graph.block if each.kind != "prim::Constant"}
        )
        self._memo: dict[Any, Ready | None] = {}
        self._state: Any = None
        # The keys and the view of the thread that were looked at last.
        self._view: Any = None
        self.otherwise = otherwise
        self.kernels = 0

    def __call__(self, *inputs: Any) -> Any:
        """The one result of the group, or a tuple of several."""
        bits = 0
        key: list[Any] = []
        given: list[Any] = []
        for each in inputs:
            if each.__class__ is Tensor:
                flat = each._flat
                if flat is None and each._device is CPU:
                    flat = flat_of(each)
                if flat is None or each._device is not CPU or each.number is not None:
                    return self.otherwise(*inputs)
                bits |= each.key_bits
                key += (each._dtype, each._shape)
                given.append(flat)
            elif each.__class__ in NUMBERS and (
                each.__class__ is not int or _fits(each)
            ):
                key.append(each.__class__)
                given.append(each)
            else:
                return self.otherwise(*inputs)
        if WATCH.active or not self._is_usual(bits) or self._records(inputs):
            return self.otherwise(*inputs)
        asked = tuple(key)
        ready: Any = self._memo.get(asked, _UNKNOWN)
        if ready is _UNKNOWN:
            ready = self._decide(asked, inputs)
        if ready is None:
            return self.otherwise(*inputs)
        try:
            found = ready.run(given)
        except MemoryError:
            return self.otherwise(*inputs)
        self.kernels += 1
        return found

    def _is_usual(self, bits: int) -> bool:
        """Whether the call would reach the runtime's own kernels."""
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
        """Whether a gradient is to be recorded."""
        return GRAD.enabled and any(
            each.__class__ is Tensor and each.requires_grad for each in inputs
        )

    def _decide(self, key: Any, inputs: Sequence[Any]) -> Ready | None:
        facts: list[Fact] = [
            Facts(each.dtype, each.shape)
            if isinstance(each, Tensor)
            else Later(type(each))
            for each in inputs
        ]
        ready = ready_for(self._graph, facts)
        while len(self._memo) >= MOST:
            try:
                del self._memo[next(iter(self._memo))]
            except (KeyError, RuntimeError, StopIteration):
                continue  # another thread was here
        self._memo[key] = ready
        return ready


def compiled(graph: Graph, otherwise: Function | None = None) -> Compiled:
    """What runs the graph of a group: `run(*inputs)`, as a kernel where that fits.

    `otherwise` runs it in all other cases; by itself its operators, one after another.

    Raises:
        OperatorGone: one of the operators is not defined.
    """
    return Compiled(graph, one_by_one(graph) if otherwise is None else otherwise)


def one_by_one(graph: Graph) -> Function:
    """What runs the operators of a graph that has nothing else, one after another.

    Raises:
        OperatorGone: one of them is not defined.
    """
    places: dict[Any, int] = {
        value: at for at, value in enumerate(graph.block.parameters)
    }
    template: list[Any] = [None] * len(places)
    steps: list[tuple[Function, list[int]]] = []
    constants: list[tuple[int, Any]] = []
    for node in graph.block:
        places[node.output] = len(places)
        if node.kind == "prim::Constant":
            constants.append((places[node.output], node.attributes["value"]))
        else:
            steps.append((_call(node), [places[each] for each in node.inputs]))
    order = [places[n.output] for n in graph.block if n.kind != "prim::Constant"]
    template += [None] * (len(places) - len(template))
    for at, value in constants:
        template[at] = value
    results = [places[each] for each in graph.block.results]

    def run(*inputs: Any) -> Any:
        values = template.copy()
        values[: len(inputs)] = inputs
        for (call, taken), at in zip(steps, order, strict=True):
            values[at] = call(*[values[each] for each in taken])
        if len(results) == 1:
            return values[results[0]]
        return tuple([values[each] for each in results])

    return run


def _call(node: Node) -> Function:
    row = row_of(node.kind)
    if row is None or row.schema is None:
        raise OperatorGone(operator=node.kind)
    dispatcher = default_dispatcher()
    name = row.schema.name
    entry = dispatcher.state.entry(name)
    assert entry is not None, "it has a row"
    return bound_call(dispatcher, name, entry.definitions[0].reading).call
