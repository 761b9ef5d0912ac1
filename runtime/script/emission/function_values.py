"""Functions as values of programs: compiled ones, Python's, and those left to Python.

Rules:
- a Python function is compiled when it is called;
- a function that is marked as ignored, or unused, is left to Python: only its
  annotations are read.
"""

from typing import Any

from everyorder.runtime.schema.types import NoneType_, TensorType
from everyorder.runtime.script.emission.call_matching import (
    bind_arguments,
    call_function,
    compiled,
    function_constant,
    pack_results,
)
from everyorder.runtime.script.emission.emitter import (
    Arguments,
    Emitter,
    PythonObject,
    Sugared,
)
from everyorder.runtime.script.emission.sugar import SimpleValue, sugar_of_value
from everyorder.runtime.script.ir import Value
from everyorder.runtime.script.ir.program import Function, Mark, mark_of


class FunctionOfProgram(Sugared):
    """A compiled function."""

    __slots__ = ("function",)

    def __init__(self, function: Function) -> None:
        self.function = function

    def describe(self) -> str:
        return f"the function `{self.function.name}`"

    def value(self, e: Emitter) -> Value:
        return function_constant(e, self.function)

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        return call_function(e, self.function, arguments)


class PythonFunction(PythonObject):
    """A Python function, compiled when it is called."""

    __slots__ = ()

    def describe(self) -> str:
        return f"the function `{self.python.__qualname__}`"

    def function(self, e: Emitter) -> Function:
        return compiled(e, self.python)

    def value(self, e: Emitter) -> Value:
        return function_constant(e, self.function(e))

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """Call the compiled function, or Python for a function left to it."""
        if mark_of(self.python) in IGNORED:
            return IgnoredFunction(self.python).call(e, arguments)
        return call_function(e, self.function(e), arguments)


# The marks of functions that are left to Python.
IGNORED = (Mark.IGNORE, Mark.UNUSED)


class IgnoredFunction(Sugared):
    """A function that is left to Python; `owner` is the object of a method, or None.

    Only its annotations are read: without annotations its parameters and its result are
    tensors. An ignored function is called in Python when the program runs, and its
    result is checked against the declared type; an unused function raises.
    """

    __slots__ = ("owner", "python")

    def __init__(self, python: Any, owner: SimpleValue | None = None) -> None:
        self.python = python
        self.owner = owner

    def describe(self) -> str:
        return f"the function `{self.python.__qualname__}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        kind = None
        if self.owner is not None:
            kind = self.owner.type
            arguments = arguments.behind(self.owner)
        schema = e.compiler.signature(self.python, kind).schema(TensorType)
        values, _ = bind_arguments(e, self.describe(), schema, arguments)
        returned = schema.returns[0].type
        if mark_of(self.python) is Mark.UNUSED:
            name = self.python.__qualname__
            words = f"{name} is marked as unused, and was called by a script"
            e.raises("builtins.RuntimeError", words)
            return sugar_of_value(e.uninitialized(returned))
        types = () if returned is NoneType_ else (returned,)
        attributes = {"name": self.python.__name__, "object": self.python}
        return pack_results(
            e, e.node("prim::PythonOp", values, types, attributes).outputs
        )
