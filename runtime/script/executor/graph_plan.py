"""Plans: the layout of a graph for execution, and the register executor.

    Planner        lays out a graph as one frame of registers
    BlockPlan      the steps of a block, and the registers of parameters and results
    PlanStep       a function of registers, or a form of control
    run_steps      runs the steps of a plan that has not run often enough for generated
                   code (`runtime.script.executor.codegen`), or is nested too deeply

Rules:
- a value has one register in the frame of its plan, blocks of branches and loops
  included; the register of a constant holds it from the beginning;
- a value is released right after its last use: for a value that a nested block uses,
  this is the node with that block in the value's own block; for an unused value, its
  own node. Numbers and texts stay until the frame ends, as they hold no memory;
- values carried into a block are moved in parallel: no move reads another's target;
- a closure has a separate plan; its captured values are further parameters;
- a plan does not change its graph, and holds the nodes only for backtraces.

For the register executor the steps of a block are tuples, specialised by the number of
values that they read and write, in a list that one loop runs; a nested block is run by
a recursive call. The step that raised is stored in the last register, for the
backtrace.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from everyorder.runtime.schema.types import (
    BoolType,
    ComplexType,
    DeviceType,
    FloatType,
    IntType,
    NoneType_,
    NumberType,
    StrType,
    Type,
)
from everyorder.runtime.script.executor.node_kernels import With
from everyorder.runtime.script.ir import Block, Node, Value
from everyorder.runtime.script.primitives.operator_calls import BoundCall

# Values of these types hold no significant memory.
LIGHT = frozenset(
    {
        *(NoneType_, BoolType, IntType, FloatType, ComplexType, NumberType),
        *(StrType, DeviceType),
    }
)

_CALLS = frozenset({"prim::CallFunction", "prim::CallMethod", "prim::CallInterface"})

Function = Callable[..., Any]


class Control(Enum):
    """The form of a step."""

    CALL = auto()
    IF = auto()
    LOOP = auto()
    WITH = auto()


@dataclass(slots=True, eq=False)
class BlockPlan:
    """A block: its steps, and the registers of its parameters and results.

    `freed_results` are the registers of results that are released after the results
    are moved, `freed_parameters` those of parameters that are released after the last
    run.
    """

    parameters: tuple[int, ...] = ()
    results: tuple[int, ...] = ()
    steps: "list[PlanStep]" = field(default_factory=list)
    freed_results: tuple[int, ...] = ()
    freed_parameters: tuple[int, ...] = ()


@dataclass(slots=True, eq=False)
class PlanStep:
    """A node: its function, and the registers that it reads and writes.

    A call returns one value for one output, a sequence for several, anything for none.
    `freed` are the registers that are released after it; `bound` is the bound call of
    an operator.
    """

    node: Node
    control: Control
    call: Function
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    freed: tuple[int, ...] = ()
    blocks: tuple[BlockPlan, ...] = ()
    bound: BoundCall | None = None


# Returns the function of a node, its captured values, and the bound call of an
# operator.
StepMaker = Callable[[Node], tuple[Function, Sequence[Value], BoundCall | None]]


class Planner:
    """The layout of a block, with all nested blocks, as one frame."""

    def __init__(
        self, block: Block, captured: Sequence[Value], step: StepMaker
    ) -> None:
        self.step = step
        # The initial content of the registers.
        self.template: list[Any] = []
        self.types: list[Type] = []
        self._places: dict[Value, int] = {}
        # True if functions or methods are called.
        self.calls = False
        # The registers of constants.
        self.constants: set[int] = set()
        parameters = [*block.parameters, *captured]
        for value in parameters:
            self._new(value)
        self.layout = BlockPlan(tuple(self._places[each] for each in parameters))
        self._block(block, self.layout)

    def _new(self, value: Value, content: Any = None) -> int:
        place = self._places[value] = len(self.template)
        self.template.append(content)
        self.types.append(value.type)
        return place

    def _block(self, block: Block, layout: BlockPlan) -> None:
        """Lay out the nodes of a block whose parameters have registers."""
        last = _last_uses(block)
        for node in block:
            if node.kind == "prim::Constant":
                attributes = node.attributes
                content = attributes["value" if "value" in attributes else "function"]
                self.constants.add(self._new(node.output, content))
            elif node.kind == "prim::Uninitialized":
                self.constants.add(self._new(node.output))
            else:
                step = self._step(node)
                layout.steps.append(step)
                unused = [*last.get(node, ()), *(v for v in node.outputs if not v.uses)]
                step.freed = self._freed(unused)
        layout.results = tuple(self._places[each] for each in block.results)
        own = [
            each for each in dict.fromkeys(block.results) if each.node.block is block
        ]
        layout.freed_results = self._freed(
            [each for each in own if not each.is_parameter]
        )
        layout.freed_parameters = self._freed(block.parameters)

    def _freed(self, values: Sequence[Value]) -> tuple[int, ...]:
        return tuple(
            self._places[each]
            for each in values
            if each.type not in LIGHT
            and each.node.kind not in ("prim::Constant", "prim::Uninitialized")
        )

    def _step(self, node: Node) -> PlanStep:
        places = self._places
        inputs = tuple(places[each] for each in node.inputs)
        if node.kind == "prim::If":
            blocks = tuple(self._inner(each) for each in node.blocks)
            outputs = tuple(self._new(each) for each in node.outputs)
            return PlanStep(node, Control.IF, _none, inputs, outputs, (), blocks)
        if node.kind == "prim::Loop":
            (body,) = node.blocks
            block = self._inner(body)
            outputs = tuple(self._new(each) for each in node.outputs)
            return PlanStep(node, Control.LOOP, _none, inputs, outputs, (), (block,))
        if node.kind == "prim::With":
            (body,) = node.blocks
            block = self._inner(body)
            outputs = tuple(self._new(each) for each in node.outputs)
            call = With.maker(node)
            return PlanStep(node, Control.WITH, call, inputs, outputs, (), (block,))
        self.calls = self.calls or node.kind in _CALLS
        call, captured, bound = self.step(node)
        inputs += tuple(places[each] for each in captured)
        outputs = tuple(self._new(each) for each in node.outputs)
        return PlanStep(node, Control.CALL, call, inputs, outputs, bound=bound)

    def _inner(self, block: Block) -> BlockPlan:
        layout = BlockPlan(tuple(self._new(each) for each in block.parameters))
        self._block(block, layout)
        return layout


def _none() -> None:
    return None


def _last_uses(block: Block) -> dict[Node, list[Value]]:
    """Return the values to release after each node of the block."""
    last: dict[Node, list[Value]] = {}
    own = [*block.parameters]
    for node in block:
        own += node.outputs
    order = {node: at for at, node in enumerate(block)}
    order[block.exit] = len(order)
    for value in own:
        nodes = {_within(use[0], block) for use in value.uses}
        if nodes:
            final = max(nodes, key=order.__getitem__)
            if final is not block.exit:
                last.setdefault(final, []).append(value)
    return last


def _within(node: Node, block: Block) -> Node:
    """Return the node of the block that a node is, or is nested in."""
    while node.block is not block:
        assert node.block is not None, "a user is in a block"
        assert node.block.owner is not None, "a user is in the block or nested in it"
        node = node.block.owner
    return node


# Forms of steps: calls of 0, 1, 2, 3, or any number of values with one result; calls
# with several results; calls without result; control.
NULLARY, UNARY, BINARY, TERNARY, ANY, SEVERAL, NONE, IF, LOOP, WITH = range(10)
_BY_COUNT = (NULLARY, UNARY, BINARY, TERNARY)

# Form, function, inputs, outputs, registers to release, the step.
Compact = tuple[int, Any, Any, Any, tuple[int, ...], Any]


class Inner:
    """A block ready to run: steps, parameters, results, and registers to release."""

    __slots__ = ("freed_parameters", "freed_results", "parameters", "results", "steps")

    def __init__(self, layout: BlockPlan) -> None:
        self.steps = [_compact(each) for each in layout.steps]
        self.parameters = layout.parameters
        self.results = layout.results
        self.freed_results = layout.freed_results
        self.freed_parameters = layout.freed_parameters


def _compact(step: PlanStep) -> Compact:
    inputs: Any = step.inputs
    outputs: Any = step.outputs
    if step.control is not Control.CALL:
        form = {Control.IF: IF, Control.LOOP: LOOP, Control.WITH: WITH}[step.control]
        bodies = tuple(map(Inner, step.blocks))
        call = (step.call, bodies) if form == WITH else bodies
        return form, call, inputs, outputs, step.freed, step
    if not outputs:
        return NONE, step.call, inputs, None, step.freed, step
    if len(outputs) > 1:
        return SEVERAL, step.call, inputs, outputs, step.freed, step
    form = _BY_COUNT[len(inputs)] if len(inputs) < len(_BY_COUNT) else ANY
    if form == UNARY:
        (inputs,) = inputs
    return form, step.call, inputs, outputs[0], step.freed, step


def run_steps(steps: Sequence[Compact], registers: list[Any]) -> int:
    """Run the steps of a block; return the number of trips of its loops.

    An error stores its step in the last register, unless a nested block has done so.
    """
    trips = 0
    step: Any = None
    try:
        for form, call, inputs, outputs, freed, step in steps:  # noqa: B007  # read below
            if form == 2:  # BINARY: globals are slower
                one, other = inputs
                registers[outputs] = call(registers[one], registers[other])
            elif form == 3:  # TERNARY
                one, other, third = inputs
                registers[outputs] = call(
                    registers[one], registers[other], registers[third]
                )
            elif form == 1:  # UNARY
                registers[outputs] = call(registers[inputs])
            elif form == NULLARY:
                registers[outputs] = call()
            elif form == ANY:
                registers[outputs] = call(*[registers[each] for each in inputs])
            elif form == IF:
                body = call[0] if registers[inputs[0]] else call[1]
                trips += run_steps(body.steps, registers)
                _move(registers, body.results, outputs)
                _free(registers, body.freed_results)
            elif form == LOOP:
                trips += _loop(call[0], inputs, outputs, registers)
            elif form == SEVERAL:
                values = call(*[registers[each] for each in inputs])
                for place, value in zip(outputs, values, strict=True):
                    registers[place] = value
                del values
            elif form == NONE:
                call(*[registers[each] for each in inputs])
            else:
                make, (body,) = call
                with make(registers[inputs[0]]) as registers[body.parameters[0]]:
                    trips += run_steps(body.steps, registers)
                    _move(registers, body.results, outputs)
                # The swallowed error is handled.
                registers[-1] = None
                _free(registers, body.freed_results)
                _free(registers, body.freed_parameters)
            if freed:
                for place in freed:
                    registers[place] = None
    except BaseException:
        if registers[-1] is None:
            registers[-1] = step
        raise
    return trips


def _loop(
    body: Inner, inputs: Sequence[int], outputs: Sequence[int], registers: list[Any]
) -> int:
    """Run a loop; return the number of trips, including those of nested loops."""
    trips = 0
    index, *carried = body.parameters
    condition, *results = body.results
    _move(registers, inputs[2:], carried)
    if registers[inputs[1]]:
        for number in range(registers[inputs[0]]):
            registers[index] = number
            trips += 1 + run_steps(body.steps, registers)
            going = registers[condition]
            _move(registers, results, carried)
            _free(registers, body.freed_results)
            if not going:
                break
    _move(registers, carried, outputs)
    _free(registers, body.freed_parameters)
    return trips


def _move(registers: list[Any], sources: Sequence[int], targets: Sequence[int]) -> None:
    """Move values in parallel."""
    if len(sources) == 1:
        registers[targets[0]] = registers[sources[0]]
        return
    values = [registers[each] for each in sources]
    for place, value in zip(targets, values, strict=True):
        registers[place] = value


def _free(registers: list[Any], places: Sequence[int]) -> None:
    for place in places:
        registers[place] = None
