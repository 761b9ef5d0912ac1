"""Formulas: the `backward` of a custom operator, as a node of the graph calls it.

True only here: how gradients of lists are taken apart and put together.  A node knows
of flat lists only, one gradient for each tensor; `backward` gets a gradient for each
result and returns one for each positional argument, where a list of tensors has a list
of gradients.
"""

from collections.abc import Callable, Sequence
from typing import Any

from runtime.errors.custom_op import GradientStructure
from runtime.schema.schema import Schema

Function = Callable[..., Any]


class Formula:
    """The `backward` of one call, for a node: gradients come and go in flat lists.

    `inputs` are, for each positional argument, None for a plain value, 1 for a tensor,
    a list's length as a tuple; `outputs` likewise for the results.
    """

    __slots__ = ("_backward", "_schema", "inputs", "outputs")

    def __init__(
        self,
        schema: Schema,
        backward: Function,
        inputs: Sequence[Any],
        outputs: Sequence[Any] = (),
    ) -> None:
        self._schema = schema
        self._backward = backward
        self.inputs = inputs
        self.outputs = outputs

    def backward(self, context: Any, *gradients: Any) -> list[Any]:
        """The gradients of all tensors among the arguments, in order.

        Raises `GradientStructure`, and whatever the function raises.
        """
        given, rest = [], list(gradients)
        for output in self.outputs:
            if isinstance(output, tuple):
                (count,) = output
                given.append(rest[:count])
                del rest[:count]
            else:
                given.append(rest.pop(0))
        found = self._backward(context, *given)
        several = isinstance(found, tuple) or (
            isinstance(found, list) and len(self.inputs) != 1
        )
        return self._flat([*found] if several else [found])

    def _flat(self, results: list[Any]) -> list[Any]:
        count = len(self.inputs)
        while len(results) > count and results[-1] is None:
            results.pop()
        if len(results) != count:
            raise self._misfit(f"returned {len(results)} values, not {count}")
        flat: list[Any] = []
        for place, (shape, result) in enumerate(zip(self.inputs, results, strict=True)):
            name = self._schema.arguments[place].name
            if shape is None:
                if result is not None:
                    raise self._misfit(f"returned a gradient for `{name}`, no tensor")
            elif isinstance(shape, tuple):
                flat += self._listed(name, shape[0], result)
            else:
                flat.append(result)
        return flat

    def _listed(self, name: str, count: int, result: Any) -> list[Any]:
        if result is None:
            return [None] * count
        if not isinstance(result, (list, tuple)):
            found = type(result).__name__
            raise self._misfit(f"returned a {found} for the list `{name}`")
        if len(result) != count:
            fault = f"returned {len(result)} gradients for `{name}`, a list of {count}"
            raise self._misfit(fault)
        return [*result]

    def _misfit(self, fault: str) -> GradientStructure:
        positional = self._schema.arguments[: self._schema.kwarg_only_start]
        return GradientStructure(
            operator=str(self._schema.name),
            fault=fault,
            arguments=tuple(argument.name for argument in positional),
        )
