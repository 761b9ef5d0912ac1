"""Declarations: what a class, module, interface or enum of a program consists of.

These are the types that have a name and contents; here is also which custom classes,
types without contents, a schema may name.

Rules:
- a type of this kind is what it is by its declaration, not by its name, and prints as
  its qualified name, `__torch__.package.Class`;
- a declaration is filled one attribute, method and constant after another, so that a
  class can have attributes of its own type, and methods that call each other; what has
  been said stays, but for a method that could not be compiled (`withdraw`), and after
  `seal` nothing is added;
- the first argument of a method's schema is the object itself;
- a `Namespace` owns declarations: their names are unique in it, by the smallest free
  number (`__torch__.package.___torch_mangle_0.Class`), and texts are read with it.
  What nobody discards lives as long as the namespace;
- the Python class of a declaration is not kept alive;
- names of custom classes are only ever added, so a schema that parsed once parses
  always, and parsed schemas may be kept by their text.
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

# Where the names of programs begin, and where those of custom classes do.
ROOT, CUSTOM = "__torch__", "__torch__.torch.classes"
_QUALNAME = re.compile(r"__torch__(\.[A-Za-z_][A-Za-z0-9_]*)+")
_MANGLE = re.compile(r"\.___torch_mangle_[0-9]+(?=\.)")
# The custom classes that schemas may name.
_CUSTOM_NAMES: Registry[str, None] = Registry("custom classes", shared=True)


class Declaration:
    """A qualified name, and what is known of the objects that it stands for.

    `python` is the Python class that it was made of, while that exists; `functions` are
    what runs for the methods, by their names; `memo` is where whoever compiles keeps
    what has to go when the declaration goes.
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
        """The Python class that was declared, or None."""
        return None if self._python is None else self._python()

    @property
    def attributes(self) -> Mapping[str, Type]:
        """The attributes and their types, in the order in which they were added."""
        return MappingProxyType(self._attributes)

    @property
    def methods(self) -> Mapping[str, Signature]:
        """The methods and their signatures, in the order in which they were added."""
        return MappingProxyType(self._methods)

    @property
    def constants(self) -> Mapping[str, Any]:
        """The constants and their values; of an enum, its members."""
        return MappingProxyType(self._constants)

    def add_attribute(self, name: str, type: Type) -> None:  # noqa: A002  # the field's own word
        """Say that the objects have an attribute.

        Raises:
            SchemaError: the name is taken, or the declaration sealed.
        """
        self._free(name)
        self._attributes[name] = type

    def add_method(self, name: str, schema: Signature) -> None:
        """Say that the objects have a method; raises as `add_attribute`."""
        self._free(name)
        self._methods[name] = schema

    def add_constant(self, name: str, value: Any) -> None:
        """Say that the objects have a constant; raises as `add_attribute`."""
        self._free(name)
        self._constants[name] = value

    def withdraw(self, name: str) -> None:
        """Take back a method that could not be compiled, which nobody has called."""
        self._methods.pop(name, None)
        self.functions.pop(name, None)

    def seal(self) -> None:
        """Say that this is all."""
        self.is_sealed = True

    def _free(self, name: str) -> None:
        taken: tuple[tuple[str, Container[str]], ...] = (
            ("an attribute", self._attributes),
            ("a method", self._methods),
            ("a constant", self._constants),
        )
        faults = [
            f"there is {noun} of this name" for noun, names in taken if name in names
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
    """The objects and modules that have the methods which are declared."""

    __slots__ = ()


class EnumType(DeclaredType):
    """The members of an enum; attributes are `name` and `value`."""

    __slots__ = ()


D = TypeVar("D", bound=DeclaredType)


class Namespace:
    """The declared types of a program by their qualified names.

    Of one that `is_foreign` the programs come from elsewhere, and may say of any object
    that it is of a type: whoever looks into an object asks the object.
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
        """A new type under `qualname`, with a number in it if that is taken.

        A number that it has counts if it `is_numbered`: one that was written down.

        Raises:
            SchemaError: `qualname` is not `__torch__` and identifiers joined by
                dots, or is where custom classes live.
        """
        plain = unmangled(qualname)
        if not _QUALNAME.fullmatch(plain) or plain.startswith(f"{CUSTOM}."):
            raise SchemaError(code="MalformedTypeName", found=qualname)
        path, _, name = plain.rpartition(".")
        free, number = qualname if is_numbered else plain, 0
        while True:
            made = kind(Declaration(self, free, python))
            # Whoever comes second tries the next number.
            if self._types.setdefault(free, made) is made:
                return made
            free, number = f"{path}.___torch_mangle_{number}.{name}", number + 1

    def find(self, qualname: str) -> DeclaredType | None:
        """The type of this name, or None."""
        return self._types.get(qualname)

    def discard(self, declared: DeclaredType) -> None:
        """Give the name of a type back; doing so again is harmless."""
        qualname = declared.declaration.qualname
        if self._types.get(qualname) is declared:
            del self._types[qualname]

    @property
    def qualnames(self) -> tuple[str, ...]:
        """The names in the order in which they were declared."""
        return tuple(self._types)

    def __reduce__(self) -> str:
        if self is not SHARED:
            raise SchemaError(code="UnsharedNamespace", qualnames=self.qualnames)
        return "SHARED"


# The namespace of whoever names none; only its types can be pickled.
SHARED = Namespace()


def qualified_name(of: Any) -> str:
    """The name under which a Python class or function is declared.

    Enclosing functions and classes do not count, what is defined in a program's main
    file has no module, and what is no letter, digit or underscore becomes one.
    """
    module = "" if of.__module__ == "__main__" else f"{of.__module__}."
    parts = f"{module}{of.__name__}".split(".")
    return ".".join(
        (ROOT, *(re.sub(r"\W|^(?=\d)", "_", part, flags=re.A) for part in parts))
    )


def unmangled(qualname: str) -> str:
    """The name without the number that made it unique."""
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
    """Whether schemas may name this class."""
    return qualname in _CUSTOM_NAMES.rows
