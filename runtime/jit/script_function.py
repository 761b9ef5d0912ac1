"""Compiled functions as programs of Python have them.

True only here: what a compiled function is besides what can be called and looked at.

Rules:
- in a program it means the function that it is made of;
- it stands for the Python function: its name, its text for `help`, its module;
- it does not change, so a copy is itself; what is pickled is refused: `save` is for
  that.
"""

from functools import update_wrapper
from typing import Any, NoReturn, Self, SupportsIndex

from runtime.errors.module import NotScriptable
from runtime.locks import load
from runtime.script.emission import FunctionOfProgram, register_sugar
from runtime.script.modules import Compiled
from runtime.script.program import Function
from runtime.script.running import call


class ScriptFunction(Compiled):
    """A compiled function; made by `jit.script`, `jit.trace` and `jit.load`."""

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        if function.python is not None:
            update_wrapper(self, function.python, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function gives.

        Raises:
            CallError: the call does not fit the schema.
            Exception: what the program raises.
        """
        return call(self.function, args, kwargs)

    def save(self, f: Any, **options: Any) -> None:
        """Write an archive, as `jit.save` does."""
        load("runtime.script.archive").save(self.function, f, **options)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be pickled.

        Raises:
            NotScriptable: always.
        """
        raise NotScriptable(
            found=f"the compiled function `{self.name}`",
            reason="a compiled function is not pickled",
            hint="Use `jit.save` and `jit.load`.",
        )


register_sugar(ScriptFunction, lambda each: FunctionOfProgram(each.function))
