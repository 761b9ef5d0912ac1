"""Shapes of modules: the members that scripts see, and the types that modules share.

Each attribute of a module is one of these in a script:

    attribute     a parameter, a buffer, or a value: part of the module's type, read and
                  written where the program runs
    submodule     a nested module, of its module type, or of an interface
    constant      a value that is fixed when the program is compiled: named in
                  `__constants__`, or annotated as `Final`
    method        a bound method of the module itself: `self.forward = self.other`
    function      another callable, compiled where a program calls it
    failure       any other value; the reason is reported where a program uses it

Rules:
- the type is taken from the annotation of the class, from a `jit.Attribute`, or from
  the value, in this order; a value that does not fit the declared type is a failure;
- an attribute of the module has precedence over a member of its class, as in Python;
- two modules have the same type if their class, the types of their attributes, their
  constants, methods, functions, submodules, hooks and failures are the same;
- names in `__jit_ignored_attributes__` do not exist in a script;
- this module does not compile anything.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, get_origin

from everyorder.runtime.errors.schema import AnnotationError
from everyorder.runtime.errors.script import NotScriptable
from everyorder.runtime.nn import Module
from everyorder.runtime.schema.annotation import annotated_type
from everyorder.runtime.schema.call_errors import describe_value
from everyorder.runtime.schema.declared import InterfaceType, ModuleType, qualified_name
from everyorder.runtime.schema.types import NoneType_, TensorType, Type
from everyorder.runtime.schema.values import MISMATCH
from everyorder.runtime.script.frontend import scope_of_class
from everyorder.runtime.script.ir.program import (
    Attribute,
    Mark,
    NotInferred,
    Program,
    inferred_type,
    mark_of,
)
from everyorder.runtime.script.modules.script_module import (
    RESERVED,
    ScriptModule,
    converted,
)
from everyorder.runtime.script.types.annotations import Classes, TypeScope

# The marks of methods that are not compiled.
LEFT_OUT = (Mark.IGNORE, Mark.UNUSED)
# The attributes that every module has.
_OWN = frozenset(vars(Module())) - {"training"}
# Constants, by their classes; tuples and lists of them are constants too.
_CONSTANTS = (bool, int, float, complex, str, type(None), Enum)


@dataclass(slots=True)
class ModuleMembers:
    """The members of a module, by their names."""

    attributes: dict[str, Type] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    submodules: dict[str, Module] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    methods: dict[str, Any] = field(default_factory=dict)
    functions: dict[str, Any] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class ModuleShape:
    """The type of modules, and the other data that compiling needs.

    `roles` marks attributes as "parameter" or "buffer", `submodules` names the modules;
    `methods` are the methods that were assigned to the modules, as functions;
    `before` and `behind` are the hooks before and after calls.
    """

    python: type[Module]
    type: ModuleType
    roles: Mapping[str, str]
    submodules: tuple[str, ...]
    constants: Mapping[str, Any]
    methods: Mapping[str, Any]
    functions: Mapping[str, Any]
    failures: Mapping[str, str]
    before: tuple[Callable[..., Any], ...]
    behind: tuple[Callable[..., Any], ...]
    program: Program

    def member(self, name: str, default: Any = None) -> Any:
        """Return a member of the class, or the method that was assigned instead."""
        if name in self.methods:
            return self.methods[name]
        return inspect.getattr_static(self.python, name, default)

    @property
    def is_called_itself(self) -> bool:
        """Return True if the class replaces the call of modules, `__call__`."""
        member = inspect.getattr_static(self.python, "__call__", None)
        is_plain = member is vars(Module)["__call__"] or mark_of(member) in LEFT_OUT
        return inspect.isfunction(member) and not is_plain


# In the memo of a program: class -> key -> shape; modules of one type share it.
_KNOWN = "shapes"
_Shapes = dict[type, dict[Any, ModuleShape]]
# In the memo of a declaration: its shape.
_SHAPE = "shape"


def shape_of(of: ModuleType) -> ModuleShape | None:
    """Return the shape of a module type; None without a Python class."""
    shape: ModuleShape | None = of.declaration.memo.get(_SHAPE)
    return shape


def discard(python: type, program: Program) -> None:
    """Remove the types of a class of modules, and release their names."""
    for shape in program.memo.get(_KNOWN, {}).pop(python, {}).values():
        shape.type.declaration.memo.pop(_SHAPE, None)
        program.namespace.discard(shape.type)


class Shaping:
    """The shapes of one module and its submodules, each computed once.

    `classes` returns the types of Python classes that annotations name. With `is_own`
    the types are created for this module, and no other module shares them. `variant` is
    an additional part of the key of the outermost module's type.
    """

    __slots__ = (
        *("_begun", "_classes", "_is_own", "_made", "_new", "_program"),
        "_variant",
    )

    def __init__(
        self,
        program: Program,
        classes: Classes | None = None,
        *,
        is_own: bool = False,
        variant: object = None,
    ) -> None:
        self._program = program
        self._variant = variant
        self._is_own = is_own
        self._classes = program.classes if classes is None else classes
        self._made: dict[int, tuple[ModuleShape, ModuleMembers]] = {}
        self._begun: list[Module] = []
        self._new: list[tuple[Any, ModuleShape]] = []

    def undo(self) -> None:
        """Remove the types that were created here; they do not have objects yet."""
        for key, shape in self._new:
            self._program.memo[_KNOWN][shape.python].pop(key, None)
            shape.type.declaration.memo.pop(_SHAPE, None)
            self._program.namespace.discard(shape.type)

    def shape(self, module: Module) -> tuple[ModuleShape, ModuleMembers]:
        """Return the shape of a module, and its members.

        Raises:
            NotScriptable: the module contains itself.
        """
        result = self._made.get(id(module))
        if result is not None:
            return result
        if any(each is module for each in self._begun):
            raise NotScriptable(
                found=f"a `{type(module).__name__}`",
                reason="it is a module within itself",
            )
        self._begun.append(module)
        try:
            facts = _ModuleReader(module, self._program, self._classes).facts()
            typed = {name: self.type_of(one) for name, one in facts.submodules.items()}
            tensors = {name: facts.attributes[name] for name in facts.roles}
            # In this order: the types of a class's annotations take precedence.
            facts.attributes = {**tensors, **typed, **facts.attributes}
            result = self._made[id(module)] = self._shared(module, facts), facts
        finally:
            self._begun.pop()
        return result

    def type_of(self, module: Module) -> ModuleType:
        """Return the type of a module, compiled or not; raises as `shape`."""
        if isinstance(module, ScriptModule):
            return module.__script_type__
        return self.shape(module)[0].type

    def _shared(self, module: Module, facts: ModuleMembers) -> ModuleShape:
        python = type(module)
        before = tuple(module._forward_pre_hooks.values())
        behind = tuple(module._forward_hooks.values())
        key = (
            tuple((n, id(t), facts.roles.get(n)) for n, t in facts.attributes.items()),
            tuple(facts.submodules),
            tuple((name, _frozen(each)) for name, each in facts.constants.items()),
            tuple((name, id(each)) for name, each in facts.methods.items()),
            tuple((name, id(each)) for name, each in facts.functions.items()),
            tuple(facts.failures.items()),
            *(tuple(map(id, before)), tuple(map(id, behind))),
            self._variant if len(self._begun) == 1 else None,
        )
        if self._is_own:
            return self._shape(python, facts, before, behind)
        shapes: _Shapes = self._program.memo.setdefault(_KNOWN, {})
        shapes_of_class = shapes.setdefault(python, {})
        if key not in shapes_of_class:
            shapes_of_class[key] = self._shape(python, facts, before, behind)
            self._new.append((key, shapes_of_class[key]))
        return shapes_of_class[key]

    def _shape(
        self, python: type[Module], facts: ModuleMembers, before: Any, behind: Any
    ) -> ModuleShape:
        name = qualified_name(python)
        type_ = self._program.namespace.declare(ModuleType, name, python)
        for attribute, each in facts.attributes.items():
            type_.declaration.add_attribute(attribute, each)
        for constant, value in facts.constants.items():
            type_.declaration.add_constant(constant, value)
        shape = ModuleShape(
            python=python,
            type=type_,
            roles=facts.roles,
            submodules=tuple(facts.submodules),
            constants=facts.constants,
            methods=facts.methods,
            functions=facts.functions,
            failures=facts.failures,
            before=before,
            behind=behind,
            program=self._program,
        )
        if not self._is_own:
            type_.declaration.memo[_SHAPE] = shape
        return shape


def _frozen(constant: Any) -> Any:
    """Return a constant as part of a key: 1, 1.0 and True differ; NaN equals itself."""
    if isinstance(constant, list | tuple):
        return type(constant), tuple(map(_frozen, constant))
    return type(constant), repr(constant)


class _ModuleReader:
    """One inspection of one module."""

    __slots__ = (
        *("_annotations", "_classes", "_constants", "_facts", "_module"),
        "_program",
    )

    def __init__(self, module: Module, program: Program, classes: Classes) -> None:
        self._module = module
        self._classes = classes
        self._program = program
        self._facts = ModuleMembers()
        self._annotations: dict[str, Type | str] = {}
        self._constants = [*getattr(module, "__constants__", ())]

    def facts(self) -> ModuleMembers:
        """Return the members of the module."""
        module, facts = self._module, self._facts
        ignored = {*getattr(module, "__jit_ignored_attributes__", ())}
        self._read_annotations()
        for role, table in (
            ("parameter", module._parameters),
            ("buffer", module._buffers),
        ):
            for name, value in table.items():
                if name not in ignored:
                    self._tensor(name, value, role)
        for name, each in module._modules.items():
            if name not in ignored:
                self._submodule(name, each)
        for name in self._constants:
            if name not in ignored and not self._is_known(name):
                self._constant(name)
        for name, value in vars(module).items():
            if name in _OWN or name in ignored or self._is_known(name):
                continue
            self._value(name, value)
        return facts

    def _is_known(self, name: str) -> bool:
        facts = self._facts
        tables = (facts.attributes, facts.submodules, facts.constants, facts.failures)
        return any(name in each for each in tables)

    def _read_annotations(self) -> None:
        for python in reversed(type(self._module).__mro__):
            if python is Module or not issubclass(python, Module):
                continue
            scope = scope_of_class(python, self._classes)
            for name, written in inspect.get_annotations(python).items():
                if _is_final(written, scope):
                    self._constants.append(name)
                    continue
                try:
                    type_ = annotated_type(written, scope)
                except AnnotationError as error:
                    self._annotations[name] = f"its annotation: {error.message}"
                    continue
                text = f"its annotation `{written}` means no type"
                self._annotations[name] = text if type_ is None else type_

    def _tensor(self, name: str, value: Any, role: str) -> None:
        plain = NoneType_ if value is None else TensorType
        self._attribute(name, value, plain)
        if name in self._facts.attributes:
            self._facts.roles[name] = role

    def _submodule(self, name: str, module: Module | None) -> None:
        if module is None:
            self._attribute(name, None, NoneType_)
            return
        self._facts.submodules[name] = module
        written = self._annotations.get(name)
        if isinstance(written, InterfaceType):
            self._facts.attributes[name] = written

    def _constant(self, name: str) -> None:
        value = getattr(self._module, name, MISMATCH)
        if value is MISMATCH:
            return
        if _is_constant(value):
            self._facts.constants[name] = value
        else:
            self._facts.failures[name] = f"{describe_value(value)} is not a constant"

    def _value(self, name: str, value: Any) -> None:
        facts = self._facts
        if isinstance(value, Attribute):
            try:
                type_ = annotated_type(
                    value.type, scope_of_class(type(self._module), self._classes)
                )
            except AnnotationError as error:
                facts.failures[name] = f"its type: {error.message}"
                return
            self._annotations[name] = (
                f"`{value.type}` means no type" if type_ is None else type_
            )
            self._attribute(name, value.value, None)
            return
        self._attribute(name, value, None)

    def _attribute(self, name: str, value: Any, plain: Type | None) -> None:
        """Add an attribute with the declared type, or that of the value."""
        facts, type_ = self._facts, self._annotations.get(name, plain)
        if name in RESERVED:
            type_ = "compiled modules have something else of this name"
        if type_ is None:
            inferred = inferred_type(value, self._program)
            if isinstance(inferred, NotInferred) and callable(value):
                if _is_method_of(value, self._module):
                    facts.methods[name] = value.__func__
                else:
                    facts.functions[name] = value
                return
            type_ = inferred.reason if isinstance(inferred, NotInferred) else inferred
        if isinstance(type_, str):
            facts.failures[name] = type_
            return
        result = converted(value, type_)
        if result is MISMATCH or (value is None and type_ is TensorType):
            facts.failures[name] = (
                f"it is of type {type_}, and is {describe_value(value)}"
            )
            return
        facts.attributes[name] = type_
        facts.values[name] = result


def _is_method_of(value: Any, module: Module) -> bool:
    """Return True for a method in Python that is bound to the module."""
    return (
        inspect.ismethod(value)
        and value.__self__ is module
        and inspect.isfunction(value.__func__)
    )


def _is_constant(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_constant, value))
    if isinstance(value, _CONSTANTS):
        return True
    return (
        not callable(value)
        and not isinstance(inferred_type(value), NotInferred | ModuleType)
        and not hasattr(value, "key_bits")
        and not isinstance(value, dict)
    )


def _is_final(written: Any, scope: TypeScope) -> bool:
    """Return True if an annotation, possibly in quotes, is `Final` or `Final[...]`."""
    if isinstance(written, str):
        first, *path = written.partition("[")[0].strip().split(".")
        try:
            target = scope.find(first)
        except LookupError:
            return False
        for each in path:
            target = getattr(target, each, None)
        return target is Final
    return written is Final or get_origin(written) is Final
