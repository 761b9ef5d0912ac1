"""Recipes: what autograd knows of one operator.

True only here: how a schema and formulas come together.  A recipe makes one `Plan` for
each set of arguments that require grad, when such a call is recorded first: only what
is used by a gradient that is wanted is ever saved.

Rules: formulas call operators, so that they can be differentiated themselves; they
leave broadcasting and dtypes to the engine.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from runtime.autograd.plan import (
    PLAIN,
    TENSOR,
    TENSORS,
    Call,
    Formulas,
    Plan,
    plan_of,
)
from runtime.errors.base import EveryorderError
from runtime.schema.returns import returner
from runtime.schema.schema import Schema
from runtime.schema.types import ListType, OptionalType, TensorType


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """The formulas of one operator, and what its schema says.

    `call` wants no gradient yet; `results` counts the results, `constant` are those
    that have no gradient whatever their dtype; `returns` checks what a kernel returned.
    """

    call: Call
    formulas: Formulas
    results: int
    returns_list: bool
    constant: frozenset[int]
    returns: Callable[[Any], Any]
    plans: dict[int, Plan] = field(default_factory=dict)

    @property
    def operator(self) -> str:
        """The operator's name."""
        return self.call.operator

    def plan(self, mask: int) -> Plan:
        """The plan where the arguments in `mask` (bits, by place) require grad."""
        found = self.plans.get(mask)
        if found is None:
            made = plan_of(replace(self.call, mask=mask), self.formulas)
            found = self.plans.setdefault(mask, made)
        return found


def wrong_result(
    returns: Callable[[Any], Any], result: Any, error: Exception
) -> Exception:
    """Why no history fits a result: a kernel returned what its schema does not say.

    Kernels are not asked before the outermost call; `error` is what was met instead.
    """
    try:
        returns(result)
    except EveryorderError as wrong:
        return wrong
    return error


def is_tensor(kind: Any) -> bool:
    """Whether an argument's type is `Tensor` or `Tensor?`."""
    return kind == TensorType or (
        isinstance(kind, OptionalType) and kind.element == TensorType
    )


def is_tensor_list(kind: Any) -> bool:
    """Whether an argument's type is a list of tensors, or of optional ones."""
    return isinstance(kind, ListType) and is_tensor(kind.element)


def recipe_of(
    schema: Schema, formulas: Formulas, constant: frozenset[int] = frozenset()
) -> Recipe:
    """The recipe of an operator with formulas for some of its arguments."""
    arguments = schema.arguments
    names = tuple(argument.name for argument in arguments)
    with_gradient = {
        name for key in formulas for name in ((key,) if isinstance(key, str) else key)
    }
    unknown = with_gradient - {*names}
    assert not unknown, f"{schema.name} has no arguments {unknown}"
    places = tuple(i for i, name in enumerate(names) if name in with_gradient)
    lists = any(is_tensor_list(arguments[i].type) for i in places)
    assert not lists or len(places) == 1, "edges of a list are counted by its length"
    kinds = tuple(_kind(argument.type) for argument in arguments)
    first = schema.returns[0].type if schema.returns else None
    return Recipe(
        call=Call(str(schema.name), names, kinds, places, lists, 0),
        formulas=formulas,
        results=len(schema.returns),
        returns_list=len(schema.returns) == 1 and is_tensor_list(first),
        constant=constant,
        returns=returner(schema),
    )


def _kind(kind: Any) -> int:
    return TENSOR if is_tensor(kind) else TENSORS if is_tensor_list(kind) else PLAIN
