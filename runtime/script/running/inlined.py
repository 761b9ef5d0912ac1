"""Primitives in Python's own words, and the kernels that have to be there for that.

Some functions of primitives are an expression of Python's, and of some the result has
to be looked at.

Rules:
- a function stands here under its identity: what is registered under the name of a
  primitive is another matter, and is asked for (`Known`);
- a result beyond 64 bits is left to the primitive, which raises;
- what is looked up is remembered with the operators of its namespace, and goes with
  them: nothing here keeps a kernel alive.
"""

import operator
from collections.abc import Iterator, Sequence
from typing import Any

from runtime.dispatch.state import DispatcherState, OperatorMap
from runtime.keys import LOCAL
from runtime.schema.values import INT_END, INT_FIRST
from runtime.script.bound import Bound
from runtime.script.primitives import NAMESPACE, numbers

# Functions of primitives -> what they are in Python's words.
INLINE: dict[Any, str] = {
    operator.add: "{0} + {1}",
    operator.sub: "{0} - {1}",
    operator.mul: "{0} * {1}",
    operator.truediv: "{0} / {1}",
    operator.floordiv: "{0} // {1}",
    operator.mod: "{0} % {1}",
    operator.and_: "{0} & {1}",
    operator.or_: "{0} | {1}",
    operator.xor: "{0} ^ {1}",
    operator.rshift: "{0} >> {1}",
    operator.eq: "{0} == {1}",
    operator.ne: "{0} != {1}",
    operator.lt: "{0} < {1}",
    operator.le: "{0} <= {1}",
    operator.gt: "{0} > {1}",
    operator.ge: "{0} >= {1}",
    operator.is_: "{0} is {1}",
    operator.is_not: "{0} is not {1}",
    operator.not_: "not {0}",
    operator.neg: "-{0}",
    operator.pos: "+{0}",
    operator.invert: "~{0}",
    operator.getitem: "{0}[{1}]",
    operator.contains: "{1} in {0}",
    list.append: "{0}.append({1})",
    # Those that refuse what is beyond 64 bits.
    numbers.add: "{0} + {1}",
    numbers.sub: "{0} - {1}",
    numbers.mul: "{0} * {1}",
    numbers.floordiv: "{0} // {1}",
}
# Numbers whose comparison costs CPython next to nothing: those of one digit.
SMALL = 2**30 - 1
_NOT_SMALL = f"{{0}} > {SMALL} or {{0}} < {-SMALL}"
_BEYOND = f"not {INT_FIRST} <= {{0}} < {INT_END}"


def tests_of(function: Any, constants: Sequence[Any]) -> tuple[str, ...]:
    """The tests, one within the other, that a result is beyond 64 bits.

    `constants` are those among the operands; None stands for others.
    """
    if function is numbers.floordiv:
        divisor = constants[1]
        # The least number by -1 is the only one.
        return () if divisor not in (None, -1) else (_NOT_SMALL, _BEYOND)
    if function in (numbers.add, numbers.sub, numbers.mul):
        return (_NOT_SMALL, _BEYOND)
    return ()


class Finder:
    """Finds the bound kernels of a namespace's operators, once for each state of it."""

    def __init__(self, namespace: str, operators: Sequence[Bound]) -> None:
        self.namespace = namespace
        self.operators = operators

    def __call__(self, state: DispatcherState) -> tuple[Any, ...]:
        """The bound kernels by views and keysets, of each operator."""
        found = tuple(self._views(state))
        operators = state.namespaces.get(self.namespace)
        if isinstance(operators, OperatorMap):
            _bound_kernels_of(operators)[self] = found
        return found

    def _views(self, state: DispatcherState) -> Iterator[dict[Any, Any]]:
        for bound in self.operators:
            entry = state.entry(bound.name)
            if entry is None or not bound.is_current(entry):
                # Its bound call says what is the matter.
                yield {}
            else:
                yield entry.memo.setdefault(bound.key, {})


class Known:
    """Says whether the kernels of primitives are their functions, in this thread."""

    def __init__(self, primitives: Sequence[Bound]) -> None:
        self.primitives = primitives

    def __call__(self, state: DispatcherState) -> bool:
        """Whether they are; remembered with the state."""
        view = LOCAL.view
        operators = state.namespaces.get(NAMESPACE)
        if not isinstance(operators, OperatorMap):
            return False
        known: dict[Any, bool] = _bound_kernels_of(operators).setdefault(self, {})
        if view not in known:
            known[view] = all(is_known(state, each) for each in self.primitives)
        return known[view]


def is_known(state: DispatcherState, bound: Bound) -> bool:
    """Whether the kernel of a primitive is its function, in this thread."""
    entry = state.entry(bound.name)
    if entry is None or not bound.is_current(entry):
        return False
    return bound.kernel(entry, 0) is bound.trusted


def _bound_kernels_of(operators: OperatorMap) -> dict[object, Any]:
    """What is remembered with the operators of a namespace."""
    try:
        return operators.bound_kernels
    except AttributeError:
        operators.bound_kernels = {}
        return operators.bound_kernels
