"""Building: from a module of Python to the compiled one.

True only here: what is compiled of a module, and in which order.

Rules:
- all modules within are compiled, those within first; shared ones stay shared;
- of each, `forward` is compiled if its class has one, and what `@export` marks; other
  methods are, where a program calls them;
- parameters and buffers are those of the Python module; of its other attributes the
  compiled module has its own values: lists and dictionaries are copied;
- nothing is left of a module that cannot be compiled but the names of its types.
"""

import inspect
from collections.abc import Mapping
from typing import Any

from runtime.errors.module import NotScriptable
from runtime.modules import Module, Sequential
from runtime.schema.declaration import InterfaceType, ModuleType
from runtime.schema.types import Type
from runtime.script.emission import compile_method, compile_text
from runtime.script.modules.methods import check_interface, hook_methods, method_of
from runtime.script.modules.script_module import ScriptModule
from runtime.script.modules.shape import Shape, Shaping, shape_of
from runtime.script.program import SHARED_PROGRAM, Mark, Program, mark_of

Examples = Mapping[str, Mapping[str, Type]]


def compile_module(
    module: Module, program: Program = SHARED_PROGRAM, examples: Examples = {}
) -> ScriptModule:
    """The compiled module.

    Raises:
        NotScriptable: it holds itself, or its hooks or overloads are none for programs.
        ProgramError: a method cannot be compiled; says where and why.
    """
    return _Building(program, examples).of(module)


class _Building:
    """One module and those within it."""

    __slots__ = ("_examples", "_made", "_program", "_shaping")

    def __init__(self, program: Program, examples: Examples) -> None:
        self._program = program
        self._examples = examples
        self._shaping = Shaping(program)
        self._made: dict[int, tuple[Module, ScriptModule]] = {}

    def of(self, module: Module) -> ScriptModule:
        if isinstance(module, ScriptModule):
            return module
        known = self._made.get(id(module))
        if known is not None:
            return known[1]
        shape, facts = self._shaping.of(module)
        values = dict(facts.values)
        for name, each in facts.submodules.items():
            values[name] = self.of(each)
            wanted = facts.attributes[name]
            own = self._shaping.type_of(each)
            of = shape_of(own)
            if isinstance(wanted, InterfaceType) and of is not None:
                check_interface(of, wanted, name)
        _compile(shape)
        made = ScriptModule(shape.type, values, facts.roles, hook_methods(shape))
        self._made[id(module)] = module, made
        return made


def _compile(shape: Shape) -> None:
    """Compile what a type has without being asked."""
    python = shape.python
    overloads = getattr(python, "__script_overloads__", ())
    if overloads:
        raise NotScriptable(
            found=f"`{python.__name__}`",
            reason=f"its method `{overloads[0]}` has overloads",
            hint="Write one method, with a union or `Any` as type.",
        )
    for name in dir(python):
        found: Any = inspect.getattr_static(python, name)
        is_forward = name == "forward" and found is not Module.forward
        is_forward = is_forward and found is not Sequential.forward
        mark = mark_of(found)
        if inspect.isfunction(found) and (
            (is_forward and mark is None) or mark is Mark.EXPORT
        ):
            method_of(shape, name)


def define(of: ModuleType, text: str) -> None:
    """Add the methods of a text to a type.

    Raises:
        ProgramError: the text cannot be compiled.
    """
    _ = compile_text, compile_method
    raise NotImplementedError(of, text)
