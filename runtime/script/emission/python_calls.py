"""Calls to Python: functions that are marked `ignore` or `unused`.

True only here: what a script does where it calls a function that is not compiled.

Rules:
- the types of such a function are those of its annotations, and nothing else of it is
  looked at: without any its parameters and its result are tensors;
- an ignored function is called by Python when the script runs, and what it gives is
  looked at by the type that it promises;
- an unused one raises there, whatever it is given.
"""

from collections.abc import Callable
from typing import Any

from runtime.schema.schema import Schema
from runtime.schema.types import NoneType_
from runtime.script.emission.builtins import LEAVES
from runtime.script.emission.calls import bound_values
from runtime.script.emission.emitter import Emitter
from runtime.script.emission.sugar import (
    Arguments,
    SimpleValue,
    Sugared,
    sugar_of_value,
)
from runtime.script.program import Mark

# What an unused function raises where it is called.
RAISED = "builtins.RuntimeError"


class LeftFunction(Sugared):
    """A function that is left to Python; `owner` is the object of a method."""

    __slots__ = ("mark", "owner", "python", "schema")

    def __init__(
        self, python: Any, schema: Schema, mark: Mark, owner: SimpleValue | None = None
    ) -> None:
        self.python = python
        self.schema = schema
        self.mark = mark
        self.owner = owner

    def says(self) -> str:
        """The function."""
        return f"the function `{self.python.__qualname__}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """Call it in Python, or raise."""
        if self.owner is not None:
            arguments = Arguments((self.owner, *arguments.positional), arguments.named)
        values, _ = bound_values(e, self.says(), self.schema, arguments)
        wanted = self.schema.returns[0].type
        if self.mark is Mark.UNUSED:
            name = self.python.__qualname__
            words = f"{name} is marked as unused, and was called by a script"
            attributes = {"class": RAISED}
            e.node("prim::RaiseException", (e.constant(words),), (), attributes)
            return sugar_of_value(e.uninitialized(wanted))
        types = () if wanted is NoneType_ else (wanted,)
        attributes = {"name": self.python.__name__, "object": self.python}
        node = e.node("prim::PythonOp", values, types, attributes)
        if not types:
            return SimpleValue(e.constant(None))
        return sugar_of_value(node.output)


def install_python_calls(
    schema_of: Callable[[Emitter, Any], Schema],
) -> None:
    """Let marked functions be left to Python; `schema_of` reads their annotations."""

    def left(mark: Mark) -> Callable[[Emitter, Any, Arguments], Sugared]:
        def call(e: Emitter, python: Any, arguments: Arguments) -> Sugared:
            made = LeftFunction(python, schema_of(e, python), mark)
            return made.call(e, arguments)

        return call

    for mark in (Mark.IGNORE, Mark.UNUSED):
        LEAVES[mark] = left(mark)
