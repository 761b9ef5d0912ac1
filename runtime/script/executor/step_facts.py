"""What a step of a plan does, as far as generated code depends on it.

is_calm, is_quiet, is_pure   whether it may run user code, or see what others change
is_tensorial                 whether it calls an ordinary operator on tensors
counting                     the steps of a loop that count
producer, overwriting        the call that computes a result of a block
reads, used_once, trusted    registers, and the function of a primitive
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from everyorder.runtime.dispatch.dispatcher import default_dispatcher
from everyorder.runtime.dispatch.state import OperatorMap
from everyorder.runtime.schema.types import (
    DictType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
)
from everyorder.runtime.script.executor.graph_plan import (
    LIGHT,
    BlockPlan,
    Control,
    Planner,
    PlanStep,
)
from everyorder.runtime.script.ir import Node
from everyorder.runtime.script.primitives.operator_calls import is_known
from everyorder.runtime.script.primitives.primitive_table import keeps_near

# A count that changes by at most this in each trip leaves 64 bits after 2 to the 53
# trips, which take more than ten years.
COUNTED = 1024

# Kinds whose steps run no user code.
_QUIET = frozenset(
    {
        *("prim::unchecked_cast", "prim::TupleConstruct", "prim::TupleIndex"),
        *("prim::TupleUnpack", "prim::ListConstruct"),
    }
)


def is_calm(step: PlanStep) -> bool:
    """Return True if a step, loops included, runs no user code."""
    if step.control is Control.CALL:
        return is_quiet(step)
    inner = [each for block in step.blocks for each in block.steps]
    return step.control is not Control.WITH and all(map(is_calm, inner))


def is_quiet(step: PlanStep) -> bool:
    """Return True if a step runs no user code, and contains no loop."""
    if step.control is Control.IF:
        return all(is_quiet(each) for block in step.blocks for each in block.steps)
    if step.control is not Control.CALL:
        return False
    if step.bound is None or step.bound.trusted is None:
        return step.node.kind in _QUIET
    if not all(is_plain(each.type) for each in step.node.inputs):
        return False
    # A step whose kernel is overridden would slow down its group.
    return is_known(default_dispatcher().state, step.bound)


def is_pure(step: PlanStep) -> bool:
    """Return True if a step computes with numbers and texts, and runs no other code."""
    inner = [each for block in step.blocks for each in block.steps]
    values = (*step.node.inputs, *step.node.outputs)
    return (
        is_quiet(step)
        and all(each.type in LIGHT for each in values)
        and all(map(is_pure, inner))
    )


def reads(steps: Sequence[PlanStep], register: int) -> bool:
    """Return True if steps, or those in their blocks, use a register."""
    return any(
        register in step.inputs
        or any(
            register in block.results or reads(block.steps, register)
            for block in step.blocks
        )
        for step in steps
    )


def trusted(step: PlanStep) -> Any:
    """Return the function of a primitive, None for any other step."""
    return None if step.bound is None else step.bound.trusted


def is_plain(type_: Type) -> bool:
    """Return True if operators on values of a type run only Python's code."""
    if isinstance(type_, ListType | OptionalType):
        return is_plain(type_.element)
    if isinstance(type_, DictType):
        return is_plain(type_.key) and is_plain(type_.value)
    if isinstance(type_, TupleType):
        return all(map(is_plain, type_.elements))
    return type_ in LIGHT


def has_primitives(step: PlanStep) -> bool:
    """Return True if a step, or one in its blocks, calls an operator."""
    inner = [each for block in step.blocks for each in block.steps]
    return step.bound is not None or any(map(has_primitives, inner))


def has_name(node: Node) -> bool:
    """Return True if a tuple that a node makes is of a class with a name."""
    return bool(getattr(node.output.type, "qualname", ""))


def is_tensorial(step: PlanStep) -> bool:
    """Return True if an operator takes tensors and returns one, and is ordinary."""
    assert step.bound is not None, "the step of an operator is bound"
    schema, node = step.bound.reading.schema, step.node
    if step.bound.reading.maker is None or schema.is_varret:
        return False
    # Namespaces with few operators do not cache bound kernels.
    state, namespace = default_dispatcher().state, step.bound.reading.namespace
    if not isinstance(state.namespaces.get(namespace), OperatorMap):
        return False
    if [each.type for each in schema.returns] != [TensorType]:
        return False
    tensors = 0
    for value, argument in zip(node.inputs, schema.arguments, strict=True):
        kind = argument.fake_type
        if isinstance(kind, ListType) and kind.element is not TensorType:
            continue
        if value.type is TensorType:
            tensors += 1
        elif "Tensor" in str(kind) and "None" not in str(value.type):
            return False
    return tensors > 0


def fixed(planner: Planner, step: PlanStep) -> list[Any]:
    """Return the inputs of a step that are constants, and None for the others."""
    template, constants = planner.template, planner.constants
    return [template[each] if each in constants else None for each in step.inputs]


def counting(planner: Planner, step: PlanStep) -> Iterator[PlanStep]:
    """Yield the steps of a loop that count: from a small constant on, by small ones."""
    (body,) = step.blocks
    starts = [
        planner.template[each] if each in planner.constants else None
        for each in step.inputs[2:]
    ]
    carried = zip(starts, body.parameters[1:], body.results[1:], strict=True)
    for start, parameter, result in carried:
        for each in body.steps:
            if each.outputs == (result,) and each.inputs[:1] == (parameter,):
                by = fixed(planner, each)[-1]
                if (
                    keeps_near(trusted(each), [start])
                    and by.__class__ is int
                    and -COUNTED <= by <= COUNTED
                ):
                    yield each


def producer(block: BlockPlan, register: int) -> int | None:
    """Return the place of the call whose value is only a result of its block.

    None if there is none, or if the value must be released.
    """
    for place, step in enumerate(block.steps):
        if step.outputs == (register,) and step.control is Control.CALL:
            light = step.node.output.type in LIGHT
            return place if light and used_once(step) else None
    return None


def overwriting(block: BlockPlan, parameter: int, result: int) -> PlanStep | None:
    """Return the call whose value may take the place of a parameter of a loop at once.

    The value is the parameter's in the next trip, and nothing needs the old one after
    it.
    """
    place = producer(block, result)
    if place is None or parameter in block.results:
        return None
    return None if reads(block.steps[place + 1 :], parameter) else block.steps[place]


def used_once(step: PlanStep) -> bool:
    """Return True if the one output of a step is used in one place."""
    return len(step.outputs) == 1 and len(step.node.output.uses) == 1


def with_next(
    steps: Sequence[PlanStep],
) -> Iterator[tuple[PlanStep, PlanStep | None]]:
    """Yield each step with the one after it, None at the end."""
    return zip_longest(steps, steps[1:])
