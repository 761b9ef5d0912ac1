"""Compilation units: functions compiled of text, by their names.

True only here: what a unit is.

Rules:
- a unit has a program of its own: what is defined in two units may have one name;
- what is defined later may call what is there, and takes its place if it has its name;
- a text means what Python's names mean that stand in it: those of the operators, of
  types, and of the functions of the unit.
"""

import math
import sys
import typing
from typing import Any

from runtime.errors.base import nearest
from runtime.errors.module import NoSuchMember
from runtime.jit.script_function import ScriptFunction
from runtime.script.emission import compile_text
from runtime.script.modules import ScriptModule, define
from runtime.script.program import Program

# The names of the module `typing` that texts may have.
_TYPES = ("Any", "Dict", "Final", "List", "NamedTuple", "Optional", "Tuple", "Union")


class CompilationUnit:
    """The functions of a text: `CompilationUnit("def f(x): return x + 1").f(2)`."""

    def __init__(self, lang: str | None = None, _frames_up: int = 0) -> None:
        self._program = Program()
        self._functions: dict[str, ScriptFunction] = {}
        if lang is not None:
            self.define(lang)

    def define(self, lang: str, rcb: Any = None, _frames_up: int = 0) -> None:
        """Compile the functions of a text; if one fails, none is defined.

        Raises:
            ProgramError: the text cannot be compiled; says where and why.
        """
        own = {name: each.function for name, each in self._functions.items()}
        names = {**text_names(), **own}
        made = compile_text(lang, self._program, names=names)
        for each in made:
            self._functions[each.name] = ScriptFunction(each)

    @property
    def functions(self) -> tuple[ScriptFunction, ...]:
        """The functions, in the order in which they were defined."""
        return tuple(self._functions.values())

    def find_function(self, name: str) -> ScriptFunction | None:
        """The function of a name, or None."""
        return self._functions.get(name)

    def __getattr__(self, name: str) -> ScriptFunction:
        functions = self.__dict__.get("_functions", {})
        if name not in functions:
            raise NoSuchMember(
                module="CompilationUnit",
                wanted="function",
                path=name,
                near=nearest(name, [*functions]),
            )
        found: ScriptFunction = functions[name]
        return found

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._functions})


def text_names() -> dict[str, Any]:
    """What a text may name besides what Python has: the runtime, `math`, types."""
    # It is there, as this is a part of it; nothing here imports what is above.
    runtime: Any = sys.modules["runtime"]
    known = {name: getattr(typing, name) for name in _TYPES}
    return {**known, "runtime": runtime, "torch": runtime, "math": math}


def define_methods(module: ScriptModule, text: str) -> None:
    """Add the methods of a text to the type of a module; raises as `define`."""
    define(module.__script_type__, text, text_names())
