"""Plans: a graph laid out to be run, and the executor of registers, which runs it.

    ExecutionPlan  a block of its own frame: parameters, steps, results
    Layout         the steps of a block, and the registers of its parameters and results
    PlanStep       a function of registers, or one of the four forms of control
    run_steps      runs the steps: a plan that was not worth its text
                   (`runtime.script.executor.codegen`), or is nested too deeply for it

Rules:
- a value has one register in the frame of its plan, blocks of branches and loops
  included; a constant lies there from the beginning;
- a value is let go right behind its last use: of a value that a block uses, that is the
  node with the block in the value's own block; of one without use, its own node.
  Numbers and texts stay until the frame ends, as they hold nothing;
- what is carried into a block is moved as if at once: no move sees another's target;
- a closure is a plan of its own; what it captures are further parameters;
- a plan changes nothing of its graph, and holds its nodes for backtraces alone.

For the executor of registers the steps of a block are tuples, specialised by how many
values they read and write, in a list that is run by one loop; a block in a block is run
by a call of the same function.  The step that raised is left in the last register, for
the backtrace.
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

# Values of these types hold no memory worth speaking of.
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
    """A block: its steps, the registers that it is given, and those that it gives.

    `freed_results` are the registers of results that are freed when they have been
    moved, `freed_parameters` those of parameters that are freed after the last run.
    """

    parameters: tuple[int, ...] = ()
    results: tuple[int, ...] = ()
    steps: "list[PlanStep]" = field(default_factory=list)
    freed_results: tuple[int, ...] = ()
    freed_parameters: tuple[int, ...] = ()


@dataclass(slots=True, eq=False)
class PlanStep:
    """A node: what it reads and writes, and what it does.

    A call gives one value for one output, a sequence for several, anything for none.
    `freed` are the registers that are let go behind it; `bound` is of an operator.
    """

    node: Node
    control: Control
    call: Function
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    freed: tuple[int, ...] = ()
    blocks: tuple[BlockPlan, ...] = ()
    bound: BoundCall | None = None


# What gives the function of a node, the values that it takes besides its inputs, and of
# an operator how it is called.
StepMaker = Callable[[Node], tuple[Function, Sequence[Value], BoundCall | None]]


class Planner:
    """Lays out a block, with all that is in it, as one frame."""

    def __init__(
        self, block: Block, captured: Sequence[Value], step: StepMaker
    ) -> None:
        self.step = step
        # What the registers hold at the beginning.
        self.template: list[Any] = []
        self.types: list[Type] = []
        self._places: dict[Value, int] = {}
        # Whether functions or methods are called.
        self.calls = False
        # The registers of constants.
        self.constants: set[int] = set()
        parameters = [*block.parameters, *captured]
        for value in parameters:
            self._new(value)
        self.layout = BlockPlan(tuple(self._places[each] for each in parameters))
        self._block(block, self.layout)

    def _new(self, value: Value, held: Any = None) -> int:
        place = self._places[value] = len(self.template)
        self.template.append(held)
        self.types.append(value.type)
        return place

    def _block(self, block: Block, layout: BlockPlan) -> None:
        """Lay out the nodes of a block, whose parameters have registers."""
        last = _last_uses(block)
        for node in block:
            if node.kind == "prim::Constant":
                attributes = node.attributes
                held = attributes["value" if "value" in attributes else "function"]
                self.constants.add(self._new(node.output, held))
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
    """The values that go behind each node of the block: parameters, and its own."""
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
    """The node of the block that a node is, or is in a block of."""
    while node.block is not block:
        assert node.block is not None, "a use is in a graph"
        assert node.block.owner is not None, "a value is used in blocks around"
        node = node.block.owner
    return node


# Forms of steps: calls of 0, 1, 2, 3, or any number of values, that give one; calls
# that give several; calls that give none; control.
NULLARY, UNARY, BINARY, TERNARY, ANY, SEVERAL, NONE, IF, LOOP, WITH = range(10)
_BY_COUNT = (NULLARY, UNARY, BINARY, TERNARY)

# form, function, inputs, outputs, registers to let go, the step.
Compact = tuple[int, Any, Any, Any, tuple[int, ...], Any]


class Inner:
    """The steps of a block, ready to run; its parameters, results, and those freed."""

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
    """Run the steps of a block; gives how many trips loops made.

    An error leaves its step in the last register, unless a step is there.
    """
    trips = 0
    step: Any = None
    try:
        for form, call, inputs, outputs, freed, step in steps:  # noqa: B007  # read below
            if form == 2:  # BINARY: names of a module cost more
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
                # What was swallowed is over.
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
    """Run a loop; gives how many trips it made, those of loops within added."""
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
    """Move values as if at once."""
    if len(sources) == 1:
        registers[targets[0]] = registers[sources[0]]
        return
    values = [registers[each] for each in sources]
    for place, value in zip(targets, values, strict=True):
        registers[place] = value


def _free(registers: list[Any], places: Sequence[int]) -> None:
    for place in places:
        registers[place] = None
