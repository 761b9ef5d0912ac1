"""Building: from a module of Python to the compiled one, method by method.

Rules of modules:
- all modules within are compiled, those within first; shared ones stay shared;
- of each, `forward` is compiled if its class has one, and what `@export` marks; other
  methods are, where a program first calls them, once for each type;
- parameters and buffers are those of the Python module; of its other attributes the
  compiled module has its own values: lists and dictionaries are copied;
- nothing is left of a module that cannot be compiled.

Rules of methods:
- a method is known to the type from when its schema is, so that methods can call each
  other; if anything that is compiled together fails, all of it is taken back;
- the getter and the setter of a property are methods; hooks are methods by the names of
  their functions;
- a chain takes what its first module does, and gives what its last one does.
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

# The names of the module `typing` that texts may have.
_TYPES = ("Any", "Dict", "Final", "List", "NamedTuple", "Optional", "Tuple", "Union")


class PendingMethods:
    """Methods that are compiled now, to be taken back if anything fails."""

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
    """The method of a name, begun now if it was not.

    Raises:
        ProgramError: it cannot be compiled.
    """
    found: Any = inspect.getattr_static(shape.python, name)
    if found is vars(Sequential)["forward"]:
        found, types = _through, {"input": _taken(shape), **types}
    return begin_method(shape, name, found, compiler, since, types)


def _through(self, input):  # type: ignore[no-untyped-def]  # noqa: A002  # compiled
    value = input
    for module in self:
        value = module(value)
    return value


def _taken(shape: ModuleShape) -> Type:
    """The type of the argument of a chain: that of its first module."""
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
    """A Python function as the method of a name."""
    declaration = shape.type.declaration
    known: Function | None = declaration.functions.get(name)
    if known is None:
        # They are found by name alone; those of another module are others.
        overloads: list[Any] = [*get_overloads(python)]
        if any(each.__globals__ is python.__globals__ for each in overloads):
            raise NotScriptable(
                found=f"the method `{name}` of `{shape.python.__name__}`",
                reason="it has overloads",
                hint="Write one method, with a union or `Any` as type.",
            )
        known = compiler.method(python, shape.type, name, since, types)
        declaration.add_method(name, known.schema)
        declaration.functions[name] = known
        PENDING.methods.append((declaration, name))
    return known


def property_method(shape: ModuleShape, name: str, accessor: str, e: Emitter) -> str:
    """The name of the method that gets, or sets, a property; begun now."""
    found = inspect.getattr_static(shape.python, name)
    python = found.fget if accessor == "get" else found.fset
    if python is None:
        e.fail(f"the property `{name}` of {shape.python.__name__} has no {accessor}ter")
    method = (getter if accessor == "get" else setter)(name)
    begin_method(shape, method, python, e.compiler, e.since(name))
    return method


def hook_methods(
    shape: ModuleShape, compiler: Compiler
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the methods before and behind a call; begun now.

    Raises:
        NotScriptable: two of them, or a method, have one name.
    """
    taken: dict[str, Any] = {}
    for hook in (*shape.before, *shape.behind):
        name = getattr(hook, "__name__", "")
        other = taken.setdefault(name, hook)
        own = inspect.getattr_static(shape.python, name, hook)
        if not inspect.isfunction(hook) or other is not hook or own is not hook:
            raise NotScriptable(
                found=f"the hook `{name}` of `{shape.python.__name__}`",
                reason="a hook is a function of a name of its own",
            )
        begin_method(shape, name, hook, compiler)
    before = tuple(each.__name__ for each in shape.before)
    return before, tuple(each.__name__ for each in shape.behind)


def check_interface(
    shape: ModuleShape, wanted: InterfaceType, name: str, compiler: Compiler
) -> None:
    """Compile the methods that an interface has; `name` is the attribute's.

    Raises:
        NotScriptable: the module does not have them, or has others of their names.
    """
    for method in wanted.declaration.methods:
        if inspect.isfunction(inspect.getattr_static(shape.python, method, None)):
            method_of(shape, method, compiler)
    fault = misfit(shape.type.declaration, wanted.declaration)
    if fault is not None:
        raise NotScriptable(
            found=f"the module `{name}` of class `{shape.python.__name__}`",
            reason=f"it is no {wanted}: {fault}",
        )


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
    modules = _ModuleCompiler(module, compiler, examples)
    try:
        with PENDING:
            made: ScriptModule = compiler.run(lambda: modules.compile(module))
    except BaseException:
        modules.shaping.undo()
        raise
    return made


class _ModuleCompiler:
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
        known = self._made.get(id(module))
        if known is not None:
            return known[1]
        shape, facts = self.shaping.shape(module)
        values = dict(facts.values)
        for name, each in facts.submodules.items():
            values[name] = self.compile(each)
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
    modules = _ModuleCompiler(module, Compiler(program), _NONE, is_own=True)
    return modules.compile(module)


def _compile(shape: ModuleShape, compiler: Compiler, examples: Examples) -> None:
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
        SchemaError: the type has one of the names.
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
    made = compiler.begin((ast.unparse(definition.tree), of), qualname, body)
    declaration.add_method(name, made.schema)
    declaration.functions[name] = made
    PENDING.methods.append((declaration, name))


def text_names() -> dict[str, Any]:
    """What a text may name besides what Python has: the runtime, `math`, types."""
    # It is there, as this is a part of it; nothing here imports what is above.
    runtime: Any = sys.modules["everyorder.runtime"]
    known = {name: getattr(typing, name) for name in _TYPES}
    return {**known, "runtime": runtime, "torch": runtime, "math": math}


def define_methods(module: ScriptModule, text: str) -> None:
    """Add the methods of a text to the type of a module; raises as `define`."""
    define(module.__script_type__, text, text_names())


DEFINE_METHODS.set(define_methods)
