"""Python classes in programs: supported classes, and the roles of their members.

    class_members        a class: its source, declared attributes, constants, functions
    Role                 the role of a function: method, getter, setter, static
    dataclass_methods    the methods generated for a dataclass, as compiled texts

Rules:
- a class derives only from object; a dataclass is a class with generated functions;
- a name that is annotated in the body without a value is an attribute; a name with a
  value that `__init__` does not assign is a constant; other names are attributes of
  objects;
- getters and setters are methods named `x__get` and `x__set`;
- members that Python adds, such as docstrings, are ignored;
- a method that the dataclass defines itself is not generated; defaults and factories
  are filled in where the class is called: `__init__` takes every field; objects are
  compared by the first field that takes part in comparisons and differs.
"""

import ast
import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from types import FunctionType, MemberDescriptorType
from typing import Any, ClassVar, get_origin

from everyorder.runtime.base.codegen import generated
from everyorder.runtime.errors.script import MalformedProgram
from everyorder.runtime.schema.declared import ScriptClassType
from everyorder.runtime.schema.enums import Device, EnumConstant
from everyorder.runtime.script.emission.emitter import Arguments, Emitter
from everyorder.runtime.script.emission.sugar import sugar_of
from everyorder.runtime.script.frontend import (
    SourceDefinition,
    mangled,
    place_of,
    read_class,
)

# Attributes that every class of Python has, and those of dataclasses.
_OF_PYTHON = frozenset(
    {
        *("__module__", "__qualname__", "__doc__", "__dict__", "__weakref__"),
        *("__annotations__", "__slots__", "__match_args__", "__static_attributes__"),
        *("__firstlineno__", "__dataclass_fields__", "__dataclass_params__"),
        *("__annotate__", "__annotate_func__", "__annotations_cache__"),
        *("__type_params__", "__orig_bases__", "__parameters__"),
    }
)
# Functions that Python generates for dataclasses; the compiler generates its own.
OF_DATACLASSES = frozenset(
    {
        *("__init__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__"),
        *("__repr__", "__hash__", "__replace__", "__setattr__", "__delattr__"),
        *("__getstate__", "__setstate__"),
    }
)
_FUNCTIONS = (FunctionType, property, staticmethod, classmethod)
_CONSTANTS = (bool, int, float, complex, str, Device, EnumConstant, Enum)
_ONE_CLASS = "Write it out: give the class all attributes and methods itself."


class Role(Enum):
    """The role of a function of a class."""

    METHOD = auto()
    GETTER = auto()
    SETTER = auto()
    STATIC = auto()


@dataclass(slots=True)
class ClassMembers:
    """The members of a Python class, for the compiler.

    `attributes` are annotations by name, `functions` have their role, `fields` are
    those of a dataclass.
    """

    python: type
    definition: SourceDefinition[ast.ClassDef]
    attributes: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    functions: dict[str, tuple[Role, FunctionType]] = field(default_factory=dict)
    fields: tuple[dataclasses.Field[Any], ...] = ()

    def fault(
        self, message: str, hint: str = "", node: ast.AST | None = None
    ) -> MalformedProgram:
        """Return the error about the class, at a node of it."""
        source = self.definition.source
        span = place_of(node or self.definition.tree, source)
        return MalformedProgram(
            code="UnfitClass",
            source=source,
            span=span,
            name=self.python.__name__,
            message=message,
            hint=hint,
        )

    def place(self, name: str) -> ast.AST:
        """Return the statement of the body that binds a name, or the class."""
        for each in self.definition.tree.body:
            if name in _names(each, self.definition.tree.name):
                return each
        return self.definition.tree


def getter(name: str) -> str:
    """Return the name of the method that gets a property."""
    return f"{name}__get"


def setter(name: str) -> str:
    """Return the name of the method that sets a property."""
    return f"{name}__set"


def class_members(python: type) -> ClassMembers:
    """Return the members of a class.

    Raises:
        NotScriptable: the source is not available. MalformedProgram: the class is not
        supported; the error has the place.
    """
    members = ClassMembers(python, read_class(python))
    _check_bases(members)
    assigned = {*_assigned(members.definition.tree)}
    if dataclasses.is_dataclass(python):
        members.fields = dataclasses.fields(python)
        _check_fields(members)
    field_names = {each.name for each in members.fields}
    annotations = vars(python).get("__annotations__", {})
    for name, annotation in annotations.items():
        if _is_for_init(annotation):
            message = f"has the field `{name}` for `__init__` only"
            raise members.fault(
                message, "Make it a field that stays.", members.place(name)
            )
        has_value = name in vars(python) and not _is_slot(python, name)
        if name in field_names or _is_class_variable(annotation):
            continue
        if not has_value or name in assigned:
            members.attributes[name] = annotation
    for name, member in vars(python).items():
        if name in _OF_PYTHON or name in field_names or name in members.attributes:
            continue
        if members.fields and name in OF_DATACLASSES and not _is_written(members, name):
            continue
        is_value = not isinstance(member, _FUNCTIONS)
        if not _is_slot(python, name) and not (is_value and name in assigned):
            _take(members, name, member)
    return members


def _check_bases(members: ClassMembers) -> None:
    bases = members.python.__bases__
    tree = members.definition.tree
    if bases != (object,):
        names = " and ".join(each.__name__ for each in bases)
        place = tree.bases[0] if tree.bases else tree
        raise members.fault(f"derives from {names}", _ONE_CLASS, place)
    if type(members.python) is not type:
        meta = type(members.python).__name__
        message = f"is of the metaclass {meta}, which scripts do not run"
        keyword = next((each.value for each in tree.keywords), tree)
        raise members.fault(message, "Leave the metaclass out.", keyword)


def _check_fields(members: ClassMembers) -> None:
    parameters = vars(members.python)["__dataclass_params__"]
    if parameters.frozen:
        message = "is frozen, and scripts make objects by setting their attributes"
        raise members.fault(message, "Leave `frozen=True` out, or use a NamedTuple.")


def _take(members: ClassMembers, name: str, member: Any) -> None:
    """Add a member of the class to the table of its role."""
    if isinstance(member, FunctionType):
        members.functions[name] = Role.METHOD, member
    elif isinstance(member, property):
        if isinstance(member.fget, FunctionType):
            members.functions[getter(name)] = Role.GETTER, member.fget
        if isinstance(member.fset, FunctionType):
            members.functions[setter(name)] = Role.SETTER, member.fset
    elif isinstance(member, staticmethod):
        inner = member.__func__
        if isinstance(inner, FunctionType):
            members.functions[name] = Role.STATIC, inner
    elif isinstance(member, classmethod):
        message = f"has the class method `{name}`, and classes are no values in scripts"
        hint = "Make it a static method, or a function."
        raise members.fault(message, hint, members.place(name))
    elif is_constant(member):
        members.constants[name] = member
    elif not (name.startswith("__") and name.endswith("__")):
        kind = type(member).__name__
        message = f"has `{name}`, a {kind}, which is not a constant of scripts"
        hint = "Constants are numbers, texts, enum members, None, and tuples of these."
        raise members.fault(message, hint, members.place(name))


def is_constant(value: Any) -> bool:
    """Return True if a value can be a constant of a script."""
    if isinstance(value, tuple):
        return all(map(is_constant, value))
    return value is None or isinstance(value, _CONSTANTS)


def _is_class_variable(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return annotation.replace("typing.", "").startswith("ClassVar")
    return annotation is ClassVar or get_origin(annotation) is ClassVar


def _is_for_init(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return annotation.replace("dataclasses.", "").startswith("InitVar")
    return isinstance(annotation, dataclasses.InitVar)


def _is_slot(python: type, name: str) -> bool:
    return isinstance(vars(python).get(name), MemberDescriptorType)


def _is_written(members: ClassMembers, name: str) -> bool:
    """Return True if the body defines a method: it is not generated then."""
    return members.place(name) is not members.definition.tree


def _names(node: ast.stmt, owner: str) -> Iterator[str]:
    """Yield the names that a statement of a class binds."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield mangled(node.name, owner)
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    for each in targets:
        if isinstance(each, ast.Name):
            yield mangled(each.id, owner)


def _assigned(tree: ast.ClassDef) -> Iterator[str]:
    """Yield the attributes that `__init__` assigns to its object."""
    for method in tree.body:
        if not isinstance(method, ast.FunctionDef) or method.name != "__init__":
            continue
        first = next((each.arg for each in method.args.args), "")
        for node in ast.walk(method):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Store)
                and isinstance(node.value, ast.Name)
                and node.value.id == first
            ):
                yield mangled(node.attr, tree.name)


_MISSING = dataclasses.MISSING
# The file name in the code of generated functions.
_MADE = "<string>"
_ORDER = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def dataclass_methods(
    members: ClassMembers, declared: ScriptClassType, existing: Any
) -> dict[str, tuple[Role, FunctionType]]:
    """Return the generated methods of a dataclass, by name; none for another class."""
    python: Any = members.python
    if not dataclasses.is_dataclass(python):
        return {}
    parameters = vars(python)["__dataclass_params__"]
    apart = _apart(each.name for each in members.fields)
    texts = {}
    if parameters.init:
        texts["__init__"] = "\n".join(_init(python, members, apart))
    fields = [each.name for each in members.fields if each.compare]
    if parameters.eq:
        texts["__eq__"] = "\n".join(_eq(fields, apart))
    if parameters.order:
        for name, symbol in _ORDER.items():
            texts[f"__{name}__"] = "\n".join(_compared(name, symbol, fields, apart))
    names: dict[str, Any] = {"__name__": python.__module__, f"{apart}owner": declared}
    for each in members.fields:
        names[f"{apart}type_{each.name}"] = declared.declaration.attributes[each.name]
        if each.default_factory is not _MISSING:
            names[f"{apart}new_{each.name}"] = each.default_factory
    return {
        name: (Role.METHOD, _function(members.python, name, text, names))
        for name, text in texts.items()
        if name not in existing
    }


def _function(python: type, name: str, text: str, names: dict[str, Any]) -> Any:
    """Return the function that a text defines, with source lines for errors."""
    kind = f"{name} of {python.__module__}.{python.__qualname__}"
    function = generated(kind, (text,), names)
    function.__qualname__ = f"{python.__qualname__}.{name}"
    return function


def _apart(fields: Iterable[str]) -> str:
    """Return a prefix that no field has, for generated names."""
    return "_" * (
        1 + max((len(name) - len(name.lstrip("_")) for name in fields), default=0)
    )


def _init(python: Any, members: ClassMembers, apart: str) -> Iterator[str]:
    plain = [each for each in members.fields if each.init and not each.kw_only]
    by_name = [each for each in members.fields if each.init and each.kw_only]
    parameters = ["self", *(f"{each.name}: {apart}type_{each.name}" for each in plain)]
    if by_name:
        parameters += [
            "*",
            *(f"{each.name}: {apart}type_{each.name}" for each in by_name),
        ]
    yield f"def __init__({', '.join(parameters)}) -> None:"
    yield '    """Set every field."""'
    for each in members.fields:
        if each.init:
            yield f"    self.{each.name} = {each.name}"
        elif each.default_factory is not _MISSING:
            yield f"    self.{each.name} = {apart}new_{each.name}()"
    if hasattr(python, "__post_init__"):
        yield "    self.__post_init__()"


def _eq(fields: list[str], apart: str) -> Iterator[str]:
    yield f"def __eq__(self, other: {apart}owner) -> bool:"
    mine = "".join(f"self.{each}, " for each in fields)
    theirs = "".join(f"other.{each}, " for each in fields)
    yield f"    return ({mine}) == ({theirs})" if fields else "    return True"


def _compared(name: str, symbol: str, fields: list[str], apart: str) -> Iterator[str]:
    yield f"def __{name}__(self, other: {apart}owner) -> bool:"
    for each in fields:
        yield f"    if self.{each} != other.{each}:"
        yield f"        return self.{each} {symbol} other.{each}"
    yield f"    return {'=' in symbol}"


def with_defaults(e: Emitter, python: Any, arguments: Arguments) -> Arguments:
    """Return the arguments of `__init__`, with the defaults of a dataclass."""
    init = vars(python).get("__init__")
    code = getattr(init, "__code__", None)
    if not dataclasses.is_dataclass(python) or code is None:
        return arguments
    if code.co_filename != _MADE:
        return arguments
    fields = [each for each in dataclasses.fields(python) if each.init]
    places = [each.name for each in fields if not each.kw_only]
    passed = {*places[: len(arguments.positional)], *arguments.named}
    named = dict(arguments.named)
    for each in fields:
        if each.name in passed:
            continue
        if each.default is not _MISSING:
            named[each.name] = sugar_of(each.default, e)
        elif each.default_factory is not _MISSING:
            named[each.name] = sugar_of(each.default_factory, e).call(e, Arguments())
    return Arguments(arguments.positional, named)
