"""Declarations: the contents of a class, module, interface or enum of a program.

These are the types that have a name and contents; the module also registers custom
classes, types without contents, that a schema may name.

Rules:
- a type of this kind is identified by its declaration, not by its name, and prints as
  its qualified name, `__torch__.package.Class`;
- a declaration is filled one attribute, method and constant after another, so that a
  class can have attributes of the same type, and methods that call each other; an entry
  stays, except for a method that could not be compiled (`withdraw`), and after `seal`
  nothing is added;
- the first argument of a method's schema is the object itself;
- a `Namespace` owns declarations: their names are unique in it, by the smallest free
  number (`__torch__.package.___torch_mangle_0.Class`), and texts are parsed with it.
  A declaration lives as long as the namespace unless it is discarded;
- the Python class of a declaration is not kept alive;
- names of custom classes are only ever added, so a schema that parsed once parses
  always, and parsed schemas may be cached by their text.
"""

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self, TypeVar
from weakref import ref

from everyorder.runtime.base.registry import Registry, RegistryHandle
from everyorder.runtime.errors.base import nearest
from everyorder.runtime.errors.schema import SchemaError
from everyorder.runtime.schema.signature import Signature
from everyorder.runtime.schema.types import Type

# The prefixes of names of programs, and of names of custom classes.
ROOT, CUSTOM = "__torch__", "__torch__.torch.classes"
_QUALNAME = re.compile(r"__torch__(\.[A-Za-z_][A-Za-z0-9_]*)+")
_MANGLE = re.compile(r"\.___torch_mangle_[0-9]+(?=\.)")
# The custom classes that schemas may name.
_CUSTOM_NAMES: Registry[str, None] = Registry("custom classes", shared=True)


class Declaration:
    """A qualified name, and the members of the objects that it describes.

    `python` is the Python class that it was created from, while that exists;
    `functions` are the implementations of the methods, by name; `memo` is for data of
    compilers that must be released together with the declaration.
    """

    __slots__ = (
        "__weakref__",
        "_attributes",
        "_constants",
        "_methods",
        "_python",
        "functions",
        "is_sealed",
        "memo",
        "namespace",
        "qualname",
    )

    def __init__(
        self, namespace: "Namespace", qualname: str, python: type | None = None
    ) -> None:
        self.namespace = namespace
        self.qualname = qualname
        self.is_sealed = False
        self._python = None if python is None else ref(python)
        self._attributes: dict[str, Type] = {}
        self._methods: dict[str, Signature] = {}
        self._constants: dict[str, Any] = {}
        self.functions: dict[str, Any] = {}
        self.memo: dict[str, Any] = {}

    @property
    def python(self) -> type | None:
        """Return the Python class that was declared, or None."""
        return None if self._python is None else self._python()

    @property
    def attributes(self) -> Mapping[str, Type]:
        """Return the attributes and their types, in the order of their addition."""
        return MappingProxyType(self._attributes)

    @property
    def methods(self) -> Mapping[str, Signature]:
        """Return the methods and their signatures, in the order of their addition."""
        return MappingProxyType(self._methods)

    @property
    def constants(self) -> Mapping[str, Any]:
        """Return the constants and their values; for an enum, its members."""
        return MappingProxyType(self._constants)

    def add_attribute(self, name: str, type: Type) -> None:  # noqa: A002  # the field's own word
        """Add an attribute of the objects.

        Raises:
            SchemaError: the name is taken, or the declaration sealed.
        """
        self._free(name)
        self._attributes[name] = type

    def add_method(self, name: str, schema: Signature) -> None:
        """Add a method of the objects; raises as `add_attribute`."""
        self._free(name)
        self._methods[name] = schema

    def add_constant(self, name: str, value: Any) -> None:
        """Add a constant of the objects; raises as `add_attribute`."""
        self._free(name)
        self._constants[name] = value

    def withdraw(self, name: str) -> None:
        """Remove a method that could not be compiled and was never called."""
        self._methods.pop(name, None)
        self.functions.pop(name, None)

    def seal(self) -> None:
        """Forbid further additions."""
        self.is_sealed = True

    def _free(self, name: str) -> None:
        members: tuple[tuple[str, Container[str]], ...] = (
            ("an attribute", self._attributes),
            ("a method", self._methods),
            ("a constant", self._constants),
        )
        faults = [
            f"there is {noun} of this name" for noun, names in members if name in names
        ]
        if self.is_sealed:
            faults = ["the declaration is sealed"]
        if faults:
            raise SchemaError(
                code="DeclarationConflict",
                qualname=self.qualname,
                name=name,
                fault=faults[0],
            )

    def __repr__(self) -> str:
        return f"Declaration({self.qualname!r})"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _declared, (self.namespace, self.qualname)


@dataclass(frozen=True, slots=True, eq=False)
class DeclaredType(Type):
    """Base of the types that have a declaration; prints its qualified name."""

    declaration: Declaration

    @classmethod
    def _key(cls, declaration: Declaration) -> tuple[object, ...]:
        return cls, id(declaration)

    def __str__(self) -> str:
        return self.declaration.qualname


class ScriptClassType(DeclaredType):
    """The objects of one class of a program."""

    __slots__ = ()


class ModuleType(DeclaredType):
    """The modules that have the same attributes, submodules and methods."""

    __slots__ = ()


class InterfaceType(DeclaredType):
    """The objects and modules that have the declared methods."""

    __slots__ = ()


class EnumType(DeclaredType):
    """The members of an enum; attributes are `name` and `value`."""

    __slots__ = ()


D = TypeVar("D", bound=DeclaredType)


class Namespace:
    """The declared types of a program by their qualified names.

    The programs of an `is_foreign` namespace come from another source, and may claim
    any type for any object: code that reads an object checks the object itself.
    """

    __slots__ = ("_types", "is_foreign")

    def __init__(self, *, is_foreign: bool = False) -> None:
        self._types: dict[str, DeclaredType] = {}
        self.is_foreign = is_foreign

    def declare(
        self,
        kind: type[D],
        qualname: str,
        python: type | None = None,
        *,
        is_numbered: bool = False,
    ) -> D:
        """Return a new type under `qualname`, with a number in it if that is taken.

        If `is_numbered`, a number in `qualname` is kept: it is the recorded name.

        Raises:
            SchemaError: `qualname` is not `__torch__` and identifiers joined by
                dots, or has the prefix of custom classes.
        """
        plain = unmangled(qualname)
        if not _QUALNAME.fullmatch(plain) or plain.startswith(f"{CUSTOM}."):
            raise SchemaError(code="MalformedTypeName", found=qualname)
        path, _, name = plain.rpartition(".")
        free, number = qualname if is_numbered else plain, 0
        while True:
            declared = kind(Declaration(self, free, python))
            # If another thread took the name first, try the next number.
            if self._types.setdefault(free, declared) is declared:
                return declared
            free, number = f"{path}.___torch_mangle_{number}.{name}", number + 1

    def find(self, qualname: str) -> DeclaredType | None:
        """Return the type of this name, or None."""
        return self._types.get(qualname)

    def discard(self, declared: DeclaredType) -> None:
        """Release the name of a type; doing so again does nothing."""
        qualname = declared.declaration.qualname
        if self._types.get(qualname) is declared:
            del self._types[qualname]

    @property
    def qualnames(self) -> tuple[str, ...]:
        """Return the names in the order of their declaration."""
        return tuple(self._types)

    def __reduce__(self) -> str:
        if self is not SHARED:
            raise SchemaError(code="UnsharedNamespace", qualnames=self.qualnames)
        return "SHARED"


# The default namespace; only its types can be pickled.
SHARED = Namespace()


def qualified_name(of: Any) -> str:
    """Return the name under which a Python class or function is declared.

    Enclosing functions and classes are omitted, definitions in a program's main file
    have no module, and a character that is not a letter, digit or underscore becomes
    one.
    """
    module = "" if of.__module__ == "__main__" else f"{of.__module__}."
    parts = f"{module}{of.__name__}".split(".")
    return ".".join(
        (ROOT, *(re.sub(r"\W|^(?=\d)", "_", part, flags=re.A) for part in parts))
    )


def unmangled(qualname: str) -> str:
    """Return the name without the number that made it unique."""
    return _MANGLE.sub("", qualname)


def _declared(namespace: Namespace, qualname: str) -> Declaration:
    declared = namespace.find(qualname)
    if declared is None:
        near = nearest(qualname, namespace.qualnames)
        raise SchemaError(code="UnknownDeclaration", qualname=qualname, near=near)
    return declared.declaration


def register_class(qualname: str) -> RegistryHandle:
    """Let schemas name the class `namespace.Class`; registering it again is harmless.

    The last handle to be closed ends it.

    Raises:
        SchemaError: `qualname` is not two identifiers joined by one dot.
    """
    parts = qualname.split(".")
    if len(parts) != 2 or not all(p.isascii() and p.isidentifier() for p in parts):
        raise SchemaError(code="MalformedClassName", found=qualname)
    return _CUSTOM_NAMES.register(qualname, None, stacklevel=2)


def is_registered_class(qualname: str) -> bool:
    """Return True if schemas may name this class."""
    return qualname in _CUSTOM_NAMES.rows
