"""Compile a Python module, method by method.

Rules of modules:
- all submodules are compiled, the innermost first; shared ones stay shared;
- `forward` and `__call__` are compiled if the class defines them, and so are methods
  marked by `@export`;
  other methods are compiled when a program first calls them, once for each type;
- a method that was assigned to the module replaces that of its class;
- parameters and buffers are those of the Python module; other attributes are
  independent: lists and dictionaries are copied;
- if a module cannot be compiled, all its registrations are removed.

Rules of methods:
- a method is added to the type as soon as its schema is known, so that methods can call
  each other; if one of the methods compiled together fails, all of them are removed;
- the getter and the setter of a property are methods; hooks are methods named after
  their functions;
- a `Sequential` takes the arguments of its first module, and returns the result of its
  last one.
"""

import ast
import inspect
import math
import sys
import typing
from collections.abc import Mapping
from typing import Any, get_overloads

from everyorder.runtime.base.hooks import DEFINE_METHODS
from everyorder.runtime.errors.script import NotScriptable
from everyorder.runtime.nn import Module, Sequential
from everyorder.runtime.schema.declared import Declaration, InterfaceType, ModuleType
from everyorder.runtime.schema.subtyping import misfit
from everyorder.runtime.schema.types import TensorType, Type
from everyorder.runtime.script.emission import Compiler, Emitter
from everyorder.runtime.script.emission.compiler import (
    NO_TYPES,
    CallChain,
    FunctionBody,
)
from everyorder.runtime.script.emission.python_class import getter, setter
from everyorder.runtime.script.frontend import (
    Annotations,
    SourceDefinition,
    check,
    read_signature,
    read_text,
)
from everyorder.runtime.script.ir.program import (
    SHARED_PROGRAM,
    Function,
    Mark,
    Program,
    mark_of,
)
from everyorder.runtime.script.modules.module_shape import (
    ModuleShape,
    Shaping,
    shape_of,
)
from everyorder.runtime.script.modules.script_module import ScriptModule
from everyorder.runtime.script.types.annotations import TypeScope

# The names of the module `typing` that texts may use.
_TYPES = ("Any", "Dict", "Final", "List", "NamedTuple", "Optional", "Tuple", "Union")


class PendingMethods:
    """The methods that are being compiled, removed if one of them fails."""

    __slots__ = ("methods",)

    def __init__(self) -> None:
        self.methods: list[tuple[Declaration, str]] = []

    def __enter__(self) -> None:
        self.methods = []

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is not None:
            for declaration, name in self.methods:
                declaration.withdraw(name)
        self.methods = []


# One thread compiles at a time.
PENDING = PendingMethods()


def method_of(
    shape: ModuleShape,
    name: str,
    compiler: Compiler,
    since: CallChain = (),
    types: Mapping[str, Type] = NO_TYPES,
) -> Function:
    """Return the method of a name; begin to compile it if it is new.

    Raises:
        ProgramError: the method cannot be compiled.
    """
    member: Any = shape.member(name)
    if member is vars(Sequential)["forward"]:
        member, types = _through, {"input": _chain_argument_type(shape), **types}
    return begin_method(shape, name, member, compiler, since, types)


def _through(self, input):  # type: ignore[no-untyped-def]  # noqa: A002  # compiled
    value = input
    for module in self:
        value = module(value)
    return value


def _chain_argument_type(shape: ModuleShape) -> Type:
    """Return the type of the argument of a chain: that of its first module."""
    first = next(iter(shape.type.declaration.attributes.values()))
    forward = None
    if isinstance(first, ModuleType | InterfaceType):
        forward = first.declaration.methods.get("forward")
    if forward is None or len(forward.arguments) < 2:
        return TensorType
    return forward.arguments[1].type


def begin_method(
    shape: ModuleShape,
    name: str,
    python: Any,
    compiler: Compiler,
    since: CallChain = (),
    types: Mapping[str, Type] = NO_TYPES,
) -> Function:
    """Return the method of a name that is compiled from a Python function."""
    declaration = shape.type.declaration
    method: Function | None = declaration.functions.get(name)
    if method is None:
        # Overloads are found by name only; functions of another module are unrelated.
        overloads: list[Any] = [*get_overloads(python)]
        if any(each.__globals__ is python.__globals__ for each in overloads):
            raise NotScriptable(
                found=f"the method `{name}` of `{shape.python.__name__}`",
                reason="it has overloads",
                hint="Write one method, with a union or `Any` as type.",
            )
        method = compiler.method(python, shape.type, name, since, types)
        declaration.add_method(name, method.schema)
        declaration.functions[name] = method
        PENDING.methods.append((declaration, name))
    return method


def property_method(shape: ModuleShape, name: str, accessor: str, e: Emitter) -> str:
    """Return the name of the getter or setter of a property; begin to compile it."""
    prop = inspect.getattr_static(shape.python, name)
    python = prop.fget if accessor == "get" else prop.fset
    if python is None:
        e.fail(f"the property `{name}` of {shape.python.__name__} has no {accessor}ter")
    method = (getter if accessor == "get" else setter)(name)
    begin_method(shape, method, python, e.compiler, e.since(name))
    return method


def hook_methods(
    shape: ModuleShape, compiler: Compiler
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the methods before and after a call; begin to compile them.

    Raises:
        NotScriptable: two hooks, or a hook and a method, have the same name.
    """
    by_name: dict[str, Any] = {}
    for hook in (*shape.before, *shape.behind):
        name = getattr(hook, "__name__", "")
        other = by_name.setdefault(name, hook)
        own = shape.member(name, hook)
        if not inspect.isfunction(hook) or other is not hook or own is not hook:
            raise NotScriptable(
                found=f"the hook `{name}` of `{shape.python.__name__}`",
                reason="a hook is a function with a unique name",
            )
        begin_method(shape, name, hook, compiler)
    before = tuple(each.__name__ for each in shape.before)
    return before, tuple(each.__name__ for each in shape.behind)


def check_interface(
    shape: ModuleShape, interface: InterfaceType, name: str, compiler: Compiler
) -> None:
    """Compile the methods of an interface that the attribute `name` requires.

    Raises:
        NotScriptable: the module does not have them, or has methods of the same names
        with other schemas.
    """
    for method in interface.declaration.methods:
        if inspect.isfunction(shape.member(method)):
            method_of(shape, method, compiler)
    fault = misfit(shape.type.declaration, interface.declaration)
    if fault is not None:
        raise NotScriptable(
            found=f"the module `{name}` of class `{shape.python.__name__}`",
            reason=f"it is no {interface}: {fault}",
        )


Examples = Mapping[str, Mapping[str, Type]]
_NONE: Examples = {}


def compile_module(
    module: Module, program: Program = SHARED_PROGRAM, examples: Examples = _NONE
) -> ScriptModule:
    """Return the compiled module.

    Raises:
        NotScriptable: the module contains itself, or its hooks or overloads are not
        supported. ProgramError: a method cannot be compiled; the error shows the place
        and the reason.
    """
    compiler = Compiler(program)
    modules = _ModuleCompiler(module, compiler, examples)
    try:
        with PENDING:
            compiled: ScriptModule = compiler.run(lambda: modules.compile(module))
    except BaseException:
        modules.shaping.undo()
        raise
    return compiled


class _ModuleCompiler:
    """The compilation of one module and its submodules."""

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
        variant = {name: tuple(types.items()) for name, types in examples.items()}
        self.shaping = Shaping(
            compiler.program,
            compiler.classes,
            is_own=is_own,
            variant=tuple(variant.items()) or None,
        )
        self._made: dict[int, tuple[Module, ScriptModule]] = {}

    def compile(self, module: Module) -> ScriptModule:
        if isinstance(module, ScriptModule):
            return module
        compiled = self._made.get(id(module))
        if compiled is not None:
            return compiled[1]
        shape, facts = self.shaping.shape(module)
        values = dict(facts.values)
        for name, each in facts.submodules.items():
            values[name] = self.compile(each)
            declared = facts.attributes[name]
            own = self.shaping.type_of(each)
            of = shape_of(own)
            if isinstance(declared, InterfaceType) and of is not None:
                check_interface(of, declared, name, self._compiler)
        hooks: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        if not self._is_own:
            if module is self._outermost and "forward" in shape.functions:
                raise _no_forward(module, shape.functions["forward"])
            examples = self._examples if module is self._outermost else _NONE
            _compile(shape, self._compiler, examples)
            hooks = hook_methods(shape, self._compiler)
        result = ScriptModule(shape.type, values, facts.roles, hooks)
        self._made[id(module)] = module, result
        return result


def _no_forward(module: Module, function: Any) -> NotScriptable:
    """Return the error for a module whose `forward` is not a method of it."""
    return NotScriptable(
        found=f"the module of class `{type(module).__name__}`",
        reason=f"its `forward` is {_called(function)}, not a method of the module",
        hint="Assign `types.MethodType(function, self)`, or define `forward`.",
    )


def _called(function: Any) -> str:
    owner = getattr(function, "__self__", None)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    if isinstance(owner, Module):
        return f"`{name}` of another module"
    return f"`{name}`"


def uncompiled_module(
    module: Module, program: Program = SHARED_PROGRAM
) -> ScriptModule:
    """Return a module with new types, still without methods.

    Raises:
        NotScriptable: the module contains itself.
    """
    modules = _ModuleCompiler(module, Compiler(program), _NONE, is_own=True)
    return modules.compile(module)


def _compile(shape: ModuleShape, compiler: Compiler, examples: Examples) -> None:
    """Compile the methods that are compiled without being called."""
    for name in dict.fromkeys((*dir(shape.python), *shape.methods)):
        # An attribute of the module hides the method of its class.
        if name in shape.type.declaration.attributes or name in shape.functions:
            continue
        member: Any = shape.member(name)
        is_forward = name == "forward" and member is not Module.forward
        is_own = is_forward or (name == "__call__" and shape.is_called_itself)
        mark = mark_of(member)
        if inspect.isfunction(member) and (
            (is_own and mark is None) or mark is Mark.EXPORT
        ):
            method_of(shape, name, compiler, types=examples.get(name, {}))


def define(of: ModuleType, text: str, names: Mapping[str, Any]) -> None:
    """Add all methods of a text to a type, or none; `names` is their scope.

    Raises:
        ProgramError: the text cannot be compiled; the error shows the place and the
        reason. SchemaError: the type already has one of the names.
    """
    shape = shape_of(of)
    compiler = Compiler(SHARED_PROGRAM if shape is None else shape.program)
    written = read_text(text)
    check(written.tree, written.source)
    scope = TypeScope(names, classes=compiler.classes)

    def begin() -> None:
        for node in written.tree.body:
            if isinstance(node, ast.FunctionDef):
                _define(compiler, of, SourceDefinition(written.source, node), scope)

    with PENDING:
        compiler.run(begin)


def _define(
    compiler: Compiler,
    of: ModuleType,
    definition: SourceDefinition[Any],
    scope: TypeScope,
) -> None:
    declaration, name = of.declaration, definition.tree.name
    annotations = Annotations(definition, scope)
    body = FunctionBody(
        definition, annotations, scope, read_signature(annotations, None, of)
    )
    qualname = f"{declaration.qualname}.{name}"
    method = compiler.begin((ast.unparse(definition.tree), of), qualname, body)
    declaration.add_method(name, method.schema)
    declaration.functions[name] = method
    PENDING.methods.append((declaration, name))


def text_names() -> dict[str, Any]:
    """Return the names for texts: the runtime, `math`, and types."""
    # The package is loaded already; importing it by name would be an upward import.
    runtime: Any = sys.modules["everyorder.runtime"]
    types = {name: getattr(typing, name) for name in _TYPES}
    return {**types, "runtime": runtime, "torch": runtime, "math": math}


def define_methods(module: ScriptModule, text: str) -> None:
    """Add the methods of a text to the type of a module; raises as `define`."""
    define(module.__script_type__, text, text_names())


DEFINE_METHODS.set(define_methods)
