"""Building: from a module of Python to the compiled one.

True only here: what is compiled of a module, and in which order.

Rules:
- all modules within are compiled, those within first; shared ones stay shared;
- of each, `forward` is compiled if its class has one, and what `@export` marks; other
  methods are, where a program calls them;
- parameters and buffers are those of the Python module; of its other attributes the
  compiled module has its own values: lists and dictionaries are copied;
- nothing is left of a module that cannot be compiled.
"""

import ast
import inspect
from collections.abc import Mapping
from typing import Any

from runtime.modules import Module
from runtime.schema.declaration import InterfaceType, ModuleType
from runtime.schema.types import Type
from runtime.schema.written import Scope
from runtime.script.emission import Compiler
from runtime.script.frontend import (
    Annotations,
    Definition,
    check,
    read_signature,
    read_text,
)
from runtime.script.ir import Graph
from runtime.script.modules.methods import (
    BEGUN,
    check_interface,
    hook_methods,
    method_of,
)
from runtime.script.modules.script_module import ScriptModule
from runtime.script.modules.shape import Shape, Shaping, shape_of
from runtime.script.program import SHARED_PROGRAM, Mark, Program, mark_of

Examples = Mapping[str, Mapping[str, Type]]
_NONE: Examples = {}


def compile_module(
    module: Module, program: Program = SHARED_PROGRAM, examples: Examples = _NONE
) -> ScriptModule:
    """The compiled module.

    Raises:
        NotScriptable: it holds itself, or its hooks or overloads are none for programs.
        ProgramError: a method cannot be compiled; says where and why.
    """
    compiler = Compiler(program)
    building = _Building(module, compiler, examples)
    try:
        with BEGUN:
            made: ScriptModule = compiler.run(lambda: building.of(module))
    except BaseException:
        building.shaping.undo()
        raise
    return made


class _Building:
    """One module and those within it."""

    __slots__ = (
        *("_compiler", "_examples", "_is_own", "_made", "_outermost"),
        "shaping",
    )

    def __init__(
        self,
        module: Module,
        compiler: Compiler,
        examples: Examples,
        *,
        is_own: bool = False,
    ) -> None:
        self._outermost = module
        self._compiler = compiler
        self._examples = examples
        self._is_own = is_own
        self.shaping = Shaping(compiler.program, compiler.classes, is_own=is_own)
        self._made: dict[int, tuple[Module, ScriptModule]] = {}

    def of(self, module: Module) -> ScriptModule:
        if isinstance(module, ScriptModule):
            return module
        known = self._made.get(id(module))
        if known is not None:
            return known[1]
        shape, facts = self.shaping.of(module)
        values = dict(facts.values)
        for name, each in facts.submodules.items():
            values[name] = self.of(each)
            wanted = facts.attributes[name]
            own = self.shaping.type_of(each)
            of = shape_of(own)
            if isinstance(wanted, InterfaceType) and of is not None:
                check_interface(of, wanted, name, self._compiler)
        hooks: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        if not self._is_own:
            examples = self._examples if module is self._outermost else _NONE
            _compile(shape, self._compiler, examples)
            hooks = hook_methods(shape, self._compiler)
        made = ScriptModule(shape.type, values, facts.roles, hooks)
        self._made[id(module)] = module, made
        return made


def uncompiled_module(
    module: Module, program: Program = SHARED_PROGRAM
) -> ScriptModule:
    """A module of types of its own, which have no methods so far.

    Raises:
        NotScriptable: it holds itself.
    """
    building = _Building(module, Compiler(program), _NONE, is_own=True)
    return building.of(module)


def _compile(shape: Shape, compiler: Compiler, examples: Examples) -> None:
    """Compile what a type has without being asked."""
    python = shape.python
    for name in dir(python):
        found: Any = inspect.getattr_static(python, name)
        is_forward = name == "forward" and found is not Module.forward
        mark = mark_of(found)
        if inspect.isfunction(found) and (
            (is_forward and mark is None) or mark is Mark.EXPORT
        ):
            method_of(shape, name, compiler, types=examples.get(name, {}))


def define(of: ModuleType, text: str, names: Mapping[str, Any]) -> None:
    """Add the methods of a text, which knows `names`, to a type; all of them or none.

    Raises:
        ProgramError: the text cannot be compiled; says where and why.
        DeclarationConflict: the type has one of the names.
    """
    shape = shape_of(of)
    compiler = Compiler(SHARED_PROGRAM if shape is None else shape.program)
    written = read_text(text)
    check(written.tree, written.source)
    scope = Scope(names, classes=compiler.classes)

    def begin() -> None:
        for node in written.tree.body:
            if isinstance(node, ast.FunctionDef):
                _define(compiler, of, Definition(written.source, node), scope)

    with BEGUN:
        compiler.run(begin)


def _define(
    compiler: Compiler, of: ModuleType, definition: Definition[Any], scope: Scope
) -> None:
    declaration, name = of.declaration, definition.tree.name
    annotations = Annotations(definition, scope)
    signature = read_signature(annotations, None, of)
    qualname = f"{declaration.qualname}.{name}"

    def make() -> Graph:
        return compiler._graph(qualname, definition, annotations, scope, signature, ())

    made = compiler._begun((text_of(definition), of), qualname, signature, make, ())
    made.python = None
    declaration.add_method(name, made.schema)
    declaration.functions[name] = made
    BEGUN.methods.append((declaration, name))


def text_of(definition: Definition[Any]) -> str:
    """The text of a method."""
    return ast.unparse(definition.tree)
