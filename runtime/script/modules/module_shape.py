"""Shapes: what a script knows of a module, and which modules have the same type.

Each attribute of a module is one of these in a script:

    attribute     a parameter, a buffer, or a value: part of the module's type, read and
                  written where the program runs
    submodule     a module within, of a module type of its own, or of an interface
    constant      a value that is known when the program is compiled: named in
                  `__constants__`, or annotated as `Final`
    function      what can be called, and is compiled where it is called
    failure       what is none of these; its reason is reported where a program uses it

Rules:
- a type is what the class annotates, what a `jit.Attribute` says, or what the value
  shows, in this order; a value that does not fit what was written is a failure;
- two modules have the same type if their class, the types of their attributes, their
  constants, functions, submodules, hooks and failures are the same;
- names in `__jit_ignored_attributes__` are nothing in a script;
- nothing is compiled here.
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
from everyorder.runtime.schema.values import MISMATCH, converter
from everyorder.runtime.script.frontend import scope_of_class
from everyorder.runtime.script.ir.program import (
    Attribute,
    NotInferred,
    Program,
    inferred_type,
)
from everyorder.runtime.script.modules.script_module import RESERVED, ScriptModule
from everyorder.runtime.script.types.annotations import Classes, TypeScope

# What every module has for itself.
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
    functions: dict[str, Any] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class ModuleShape:
    """The type of modules, and what compiling needs to know of them besides.

    `roles` says which attributes are a "parameter" or a "buffer", `submodules` which
    are modules; `before` and `behind` are the hooks of calls.
    """

    python: type[Module]
    type: ModuleType
    roles: Mapping[str, str]
    submodules: tuple[str, ...]
    constants: Mapping[str, Any]
    functions: Mapping[str, Any]
    failures: Mapping[str, str]
    before: tuple[Callable[..., Any], ...]
    behind: tuple[Callable[..., Any], ...]
    program: Program


# In the memo of a program: class -> key -> shape; modules of one type find it here.
_KNOWN = "shapes"
_Shapes = dict[type, dict[Any, ModuleShape]]
# In the memo of a declaration: its shape.
_SHAPE = "shape"


def shape_of(of: ModuleType) -> ModuleShape | None:
    """The shape of a module type; None if it was made of no Python class."""
    found: ModuleShape | None = of.declaration.memo.get(_SHAPE)
    return found


def discard(python: type, program: Program) -> None:
    """Forget the types of a class of modules, and give their names back."""
    for shape in program.memo.get(_KNOWN, {}).pop(python, {}).values():
        shape.type.declaration.memo.pop(_SHAPE, None)
        program.namespace.discard(shape.type)


class Shaping:
    """The shapes of one module and of those within it, each looked at once.

    `classes` gives the types of Python classes that annotations name.  With `is_own`
    the types are those of this module alone, and no other module shares them.
    `variant` is what else tells the type of the outermost module from others.
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
        """Forget the types that were made here; they have no objects."""
        for key, shape in self._new:
            self._program.memo[_KNOWN][shape.python].pop(key, None)
            shape.type.declaration.memo.pop(_SHAPE, None)
            self._program.namespace.discard(shape.type)

    def shape(self, module: Module) -> tuple[ModuleShape, ModuleMembers]:
        """The shape of a module, and what its attributes are.

        Raises:
            NotScriptable: it holds itself.
        """
        made = self._made.get(id(module))
        if made is not None:
            return made
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
            # In this order: what is written in a class comes before the type found.
            facts.attributes = {**tensors, **typed, **facts.attributes}
            made = self._made[id(module)] = self._shared(module, facts), facts
        finally:
            self._begun.pop()
        return made

    def type_of(self, module: Module) -> ModuleType:
        """The type of a module, compiled or not; raises as `shape`."""
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
            tuple((name, id(each)) for name, each in facts.functions.items()),
            tuple(facts.failures.items()),
            *(tuple(map(id, before)), tuple(map(id, behind))),
            self._variant if len(self._begun) == 1 else None,
        )
        if self._is_own:
            return self._shape(python, facts, before, behind)
        shapes: _Shapes = self._program.memo.setdefault(_KNOWN, {})
        known = shapes.setdefault(python, {})
        if key not in known:
            known[key] = self._shape(python, facts, before, behind)
            self._new.append((key, known[key]))
        return known[key]

    def _shape(
        self, python: type[Module], facts: ModuleMembers, before: Any, behind: Any
    ) -> ModuleShape:
        name = qualified_name(python)
        made = self._program.namespace.declare(ModuleType, name, python)
        for attribute, each in facts.attributes.items():
            made.declaration.add_attribute(attribute, each)
        for constant, value in facts.constants.items():
            made.declaration.add_constant(constant, value)
        shape = ModuleShape(
            python=python,
            type=made,
            roles=facts.roles,
            submodules=tuple(facts.submodules),
            constants=facts.constants,
            functions=facts.functions,
            failures=facts.failures,
            before=before,
            behind=behind,
            program=self._program,
        )
        if not self._is_own:
            made.declaration.memo[_SHAPE] = shape
        return shape


def _frozen(constant: Any) -> Any:
    """A constant as part of a key: 1, 1.0 and True are three; NaN is itself."""
    if isinstance(constant, list | tuple):
        return type(constant), tuple(map(_frozen, constant))
    return type(constant), repr(constant)


class _ModuleReader:
    """One look at one module."""

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
        """The members of the module."""
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
        known = (facts.attributes, facts.submodules, facts.constants, facts.failures)
        return any(name in each for each in known)

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
                    meant = annotated_type(written, scope)
                except AnnotationError as error:
                    self._annotations[name] = f"its annotation: {error.message}"
                    continue
                text = f"its annotation `{written}` means no type"
                self._annotations[name] = text if meant is None else meant

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
            self._facts.failures[name] = f"{describe_value(value)} is no constant"

    def _value(self, name: str, value: Any) -> None:
        facts = self._facts
        if isinstance(value, Attribute):
            try:
                meant = annotated_type(
                    value.type, scope_of_class(type(self._module), self._classes)
                )
            except AnnotationError as error:
                facts.failures[name] = f"its type: {error.message}"
                return
            self._annotations[name] = (
                f"`{value.type}` means no type" if meant is None else meant
            )
            self._attribute(name, value.value, None)
            return
        self._attribute(name, value, None)

    def _attribute(self, name: str, value: Any, plain: Type | None) -> None:
        """An attribute of the type that is written, or of that of the value."""
        facts, found = self._facts, self._annotations.get(name, plain)
        if name in RESERVED:
            found = "compiled modules have something else of this name"
        if found is None:
            shown = inferred_type(value, self._program)
            if isinstance(shown, NotInferred) and callable(value):
                facts.functions[name] = value
                return
            found = shown.reason if isinstance(shown, NotInferred) else shown
        if isinstance(found, str):
            facts.failures[name] = found
            return
        converted = converter(found)(value)
        if converted is MISMATCH or (value is None and found is TensorType):
            facts.failures[name] = (
                f"it is of type {found}, and is {describe_value(value)}"
            )
            return
        facts.attributes[name] = found
        facts.values[name] = converted


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
    """Whether an annotation, perhaps in quotes, is `Final` or `Final[...]`."""
    if isinstance(written, str):
        first, *path = written.partition("[")[0].strip().split(".")
        try:
            meant = scope.find(first)
        except LookupError:
            return False
        for each in path:
            meant = getattr(meant, each, None)
        return meant is Final
    return written is Final or get_origin(written) is Final
