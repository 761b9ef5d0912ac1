"""The types of the schema language.

Which types exist, how they print, their components (`parts`), the type of their values
on the boxed stack (`fake`), and which types an operator dispatches on.

Rules:
- every type is a frozen value, and there is one object for each: two types are the
  same type exactly if `is` holds, in every thread, and for a copy or a pickle too;
- a type without parameters is an instance of `BaseType` (`TensorType`, `IntType`, ...),
  so compare it with the constant, not by `isinstance`;
- a type prints as text that parses back to it.

How it works: the call of a class looks its parameters up in a table of weak references,
so that unused types are released.  A key holds the `id` of a parameter that is a type:
a living type under the key keeps its parameters alive, so the `id` is valid; a
reference instead would keep a class for ever that has a list of its own kind as
attribute. No lock is acquired, because finalizers release and create types: one step of
the dictionary decides which of two equal types is used.

For a new base, add its value conversion to `runtime.schema.values`.
"""

# `weakref` itself removes dead references with it: check and removal are one step.
from _weakref import _remove_dead_weakref  # type: ignore[attr-defined]  # not in stubs
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self
from weakref import ref


class _InternedReference(ref["Type"]):
    """A weak reference that stores its key in the table."""

    __slots__ = ("key",)

    key: Hashable


_TYPES: dict[Hashable, _InternedReference] = {}


def _forget(reference: ref["Type"]) -> None:
    assert isinstance(reference, _InternedReference)  # it is the callback of no other
    _remove_dead_weakref(_TYPES, reference.key)


def _one(key: Hashable, candidate: "Type") -> "Type":
    """Return the type of `key`: the candidate, unless another was there first."""
    reference = _InternedReference(candidate, _forget)
    reference.key = key
    while True:
        current = _TYPES.setdefault(key, reference)
        living = current()
        if living is not None:
            return living
        # It died just now, and its callback has not run yet.
        _remove_dead_weakref(_TYPES, key)


class _Interned(type):
    """The metaclass of types: a call returns the one object."""

    def __call__(cls, *parameters: Any, **named: Any) -> Any:
        key = cls._key(*parameters, **named)  # type: ignore[attr-defined]  # of `Type`
        reference = _TYPES.get(key)
        if reference is not None:
            living = reference()
            if living is not None:
                return living
        return _one(key, super().__call__(*parameters, **named))


class Type(metaclass=_Interned):
    """Base of all schema types; values, hashable, `str` returns the schema text."""

    __slots__ = ("__weakref__",)

    @classmethod
    def _key(cls, *parameters: Any, **named: Any) -> Hashable:
        """Return a key that is equal exactly for parameters of the same type."""
        return cls, *parameters, *named.values()

    @property
    def parts(self) -> tuple["Type", ...]:
        """Return the component types, in the order in which the type prints them."""
        return ()

    def with_parts(self, parts: tuple["Type", ...]) -> "Type":
        """Return the type of the same form with other components of the same number."""
        return type(self)(*parts)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        names: tuple[str, ...] = self.__match_args__  # type: ignore[attr-defined]  # of the dataclass
        return type(self), tuple(getattr(self, name) for name in names)


@dataclass(frozen=True, slots=True, eq=False)
class _Word(Type):
    """A type that prints as its name."""

    name: str

    def __str__(self) -> str:
        return self.name


class BaseType(_Word):
    """A type that is only a word."""

    __slots__ = ()


class TypeVariable(_Word):
    """A lower-case word for any one type throughout a schema."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Wrapper(Type):
    """A type with one component; `FORM` is its printed form."""

    FORM: ClassVar[str]

    element: Type

    @classmethod
    def _key(cls, element: Type) -> Hashable:
        return cls, id(element)

    @property
    def parts(self) -> tuple[Type, ...]:
        """Return the element."""
        return (self.element,)

    def __str__(self) -> str:
        return self.FORM.format(self.element)


class ListType(_Wrapper):
    """`element[]`; a size such as the 2 of `int[2]` belongs to the argument."""

    __slots__ = ()
    FORM = "{}[]"


class OptionalType(_Wrapper):
    """`element?`; build it with `optional`, which collapses `int??`."""

    __slots__ = ()
    FORM = "{}?"


class FutureType(_Wrapper):
    """The result of a task that runs concurrently with a program."""

    __slots__ = ()
    FORM = "Future({})"


class AwaitType(_Wrapper):
    """A value that is computed when it is awaited."""

    __slots__ = ()
    FORM = "Await({})"


class RRefType(_Wrapper):
    """A reference to a value of another worker."""

    __slots__ = ()
    FORM = "RRef({})"


@dataclass(frozen=True, slots=True, eq=False)
class TupleType(Type):
    """`(a, b)`, or with names `NamedTuple(__torch__.Point, x: int, y: int)`.

    A tuple with names has a `qualname` and a name for each element; these define its
    identity, wherever its class was defined.
    """

    elements: tuple[Type, ...]
    names: tuple[str, ...] = ()
    qualname: str = ""

    @classmethod
    def _key(
        cls,
        elements: tuple[Type, ...],
        names: tuple[str, ...] = (),
        qualname: str = "",
    ) -> Hashable:
        return cls, tuple(map(id, elements)), names, qualname

    @property
    def parts(self) -> tuple[Type, ...]:
        """Return the elements."""
        return self.elements

    def with_parts(self, parts: tuple[Type, ...]) -> Type:
        """Return a tuple of the same names."""
        return TupleType(parts, self.names, self.qualname)

    def __str__(self) -> str:
        if not self.qualname:
            return f"({', '.join(map(str, self.elements))})"
        pairs = zip(self.names, self.elements, strict=True)
        fields = "".join(f", {name}: {element}" for name, element in pairs)
        return f"NamedTuple({self.qualname}{fields})"


@dataclass(frozen=True, slots=True, eq=False)
class DictType(Type):
    """`Dict(key, value)`."""

    key: Type
    value: Type

    @classmethod
    def _key(cls, key: Type, value: Type) -> Hashable:
        return cls, id(key), id(value)

    @property
    def parts(self) -> tuple[Type, ...]:
        """Return the key and the value."""
        return self.key, self.value

    def __str__(self) -> str:
        return f"Dict({self.key}, {self.value})"


@dataclass(frozen=True, slots=True, eq=False)
class UnionType(Type):
    """`Union(a, b)`; build it with `union`, which returns the one normal form."""

    members: tuple[Type, ...]

    @classmethod
    def _key(cls, members: tuple[Type, ...]) -> Hashable:
        return cls, tuple(map(id, members))

    @property
    def parts(self) -> tuple[Type, ...]:
        """Return the members."""
        return self.members

    def with_parts(self, parts: tuple[Type, ...]) -> Type:
        """Return the union of these, which must be in its normal form."""
        return UnionType(parts)

    def __str__(self) -> str:
        return f"Union({', '.join(map(str, self.members))})"


@dataclass(frozen=True, slots=True, eq=False)
class ClassType(Type):
    """A custom class, `qualname` is `namespace.Class`."""

    qualname: str

    def __str__(self) -> str:
        return f"__torch__.torch.classes.{self.qualname}"


TensorType = BaseType("Tensor")
IntType = BaseType("int")
SymIntType = BaseType("SymInt")
FloatType = BaseType("float")
BoolType = BaseType("bool")
SymBoolType = BaseType("SymBool")
ComplexType = BaseType("complex")
StrType = BaseType("str")
NumberType = BaseType("Scalar")
DeviceType = BaseType("Device")
ScalarTypeType = BaseType("ScalarType")
LayoutType = BaseType("Layout")
MemoryFormatType = BaseType("MemoryFormat")
GeneratorType = BaseType("Generator")
StorageType = BaseType("Storage")
StreamType = BaseType("Stream")
QSchemeType = BaseType("QScheme")
QuantizerType = BaseType("Quantizer")
NoneType_ = BaseType("NoneType")
CapsuleType = BaseType("Capsule")
AnyType = BaseType("Any")
AnyClassType = BaseType("AnyClassType")
AnyEnumType = BaseType("AnyEnumType")

# Word in schemas -> type; the three aliases print as the type that they denote.
NAMED_BASES: dict[str, BaseType] = {
    base.name: base for base in (*globals().values(),) if isinstance(base, BaseType)
} | {"ConstQuantizerPtr": IntType, "DeviceIndex": IntType, "None": NoneType_}

# Types of programs, not of the schema language, and their words.
FunctionType = BaseType("Function")
PyObjectType = BaseType("PyObject")
PROGRAM_BASES: dict[str, BaseType] = {
    base.name: base for base in (FunctionType, PyObjectType)
}

# Types of dictionary keys; source: upstream, whose list is the same.
DICT_KEYS = frozenset(
    {
        *(AnyType, BoolType, ComplexType, DeviceType),
        *(FloatType, IntType, StrType, TensorType),
    }
)

# Types whose values are integers on the boxed stack.
CODED = frozenset({ScalarTypeType, LayoutType, MemoryFormatType, SymIntType})

# Types of arguments that take part in dispatch: a tensor, or a list of tensors.
_DISPATCH: dict[Type, Literal["tensor", "list"]] = {
    TensorType: "tensor",
    OptionalType(TensorType): "tensor",
    ListType(TensorType): "list",
    ListType(OptionalType(TensorType)): "list",
}


def fake(type: Type) -> Type:  # noqa: A002  # the field's own word
    """Return the type of values of `type` on the boxed stack.

    Enum constants and symbolic integers are plain integers there, also inside other
    types; a union must distinguish its members, and stays.
    """
    if isinstance(type, BaseType):
        return IntType if type in CODED else type
    if isinstance(type, UnionType):
        return type
    parts = type.parts
    fakes = tuple(map(fake, parts))
    return type if fakes == parts else type.with_parts(fakes)


def replace_type(type: Type, old: Type, new: Type) -> Type:  # noqa: A002  # the field's own word
    """Return `type` with `old` replaced by `new`, also in lists and optionals."""
    if type is old:
        return new
    if isinstance(type, ListType | OptionalType):
        return type.with_parts((replace_type(type.element, old, new),))
    return type


def holds_tensors(kind: Type) -> bool:
    """Return True for the type of a tensor, or of optional or several ones."""
    while isinstance(kind, ListType | OptionalType):
        kind = kind.element
    return kind == TensorType


def unwrap_optional(type: Type) -> Type:  # noqa: A002  # the field's own word
    """Return the element of an optional type; any other type itself."""
    return type.element if isinstance(type, OptionalType) else type


def is_dispatch_type(type: Type) -> Literal["tensor", "list"] | None:  # noqa: A002  # the field's own word
    """Return how an argument of `type` contributes tensors to the choice of a kernel.

    Only `Tensor`, `Tensor?`, `Tensor[]` and `Tensor?[]` do; `Tensor[]?`, tuples,
    dictionaries, `Any` and generators do not.
    """
    return _DISPATCH.get(type)
