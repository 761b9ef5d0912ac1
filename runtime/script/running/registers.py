"""The executor of registers: steps, one after another, on a list of registers.

True only here: how a plan runs that was not worth its text, or is nested too deeply.

How it works: the steps of a block are tuples, specialised by how many values they read
and write, in a list that is run by one loop; a block in a block is run by a call of the
same function.  The step that raised is left in the last register, for the backtrace.
"""

from collections.abc import Sequence
from typing import Any

from runtime.script.running.plan import Control, Layout, Step

# Forms of steps: calls of 0, 1, 2, 3, or any number of values, that give one; calls
# that give several; calls that give none; control.
NULLARY, UNARY, BINARY, TERNARY, ANY, SEVERAL, NONE, IF, LOOP, WITH = range(10)
_BY_COUNT = (NULLARY, UNARY, BINARY, TERNARY)

# form, function, inputs, outputs, registers to let go, the step.
Compact = tuple[int, Any, Any, Any, tuple[int, ...], Any]


class Inner:
    """The steps of a block, ready to run; what it is given, gives, and lets go."""

    __slots__ = ("ends", "leaves", "parameters", "results", "steps")

    def __init__(self, layout: Layout) -> None:
        self.steps = [_compact(each) for each in layout.steps]
        self.parameters = layout.parameters
        self.results = layout.results
        self.leaves = layout.leaves
        self.ends = layout.ends


def _compact(step: Step) -> Compact:
    inputs: Any = step.inputs
    outputs: Any = step.outputs
    if step.control is not Control.CALL:
        form = {Control.IF: IF, Control.LOOP: LOOP, Control.WITH: WITH}[step.control]
        bodies = tuple(map(Inner, step.blocks))
        call = (step.call, bodies) if form == WITH else bodies
        return form, call, inputs, outputs, step.lets, step
    if not outputs:
        return NONE, step.call, inputs, None, step.lets, step
    if len(outputs) > 1:
        return SEVERAL, step.call, inputs, outputs, step.lets, step
    form = _BY_COUNT[len(inputs)] if len(inputs) < len(_BY_COUNT) else ANY
    if form == UNARY:
        (inputs,) = inputs
    return form, step.call, inputs, outputs[0], step.lets, step


def run_steps(steps: Sequence[Compact], registers: list[Any]) -> int:
    """Run the steps of a block; gives how many trips loops made.

    What is raised leaves its step in the last register, if no step is there.
    """
    trips = 0
    step: Any = None
    try:
        for form, call, inputs, outputs, lets, step in steps:  # noqa: B007  # read below
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
                _let(registers, body.leaves)
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
                _let(registers, body.leaves)
                _let(registers, body.ends)
            if lets:
                for place in lets:
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
            _let(registers, body.leaves)
            if not going:
                break
    _move(registers, carried, outputs)
    _let(registers, body.ends)
    return trips


def _move(registers: list[Any], sources: Sequence[int], targets: Sequence[int]) -> None:
    """Move values as if at once."""
    if len(sources) == 1:
        registers[targets[0]] = registers[sources[0]]
        return
    values = [registers[each] for each in sources]
    for place, value in zip(targets, values, strict=True):
        registers[place] = value


def _let(registers: list[Any], places: Sequence[int]) -> None:
    for place in places:
        registers[place] = None
