"""Python annotations as schema types.

True only here: which annotation means which type.  Higher areas add their classes with
`register_annotation`, and their generic classes with `register_wrapper`, when they are
imported.

Rules:
- an annotation that means no schema type gives None; the caller says where it stood;
- a name in quotes is looked up among the registered names, so `"Tensor"` always works;
- with a resolver the annotation is of a program: it says what names in quotes and
  classes mean, a union is what it says (without, `int | float` is any number), a tuple
  of any length is no type (without, a list), and keys of dictionaries are those that
  the schema language has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from runtime.errors.schema import SchemaError
from runtime.schema.types import (
    DICT_KEYS,
    AnyType,
    AwaitType,
    BoolType,
    ComplexType,
    DictType,
    FloatType,
    FutureType,
    IntType,
    ListType,
    NoneType_,
    NumberType,
    RRefType,
    StrType,
    TensorType,
    TupleType,
    Type,
)
from runtime.schema.unions import optional, union

Wrapper = type[FutureType] | type[AwaitType] | type[RRefType]


class Resolver(Protocol):
    """What annotations of one program mean."""

    def written(self, text: str) -> Type | None:
        """The type of an annotation in quotes."""

    def declared(self, python: type) -> Type | None:
        """The type of a class that nobody has registered."""


# Class -> type; the exact class counts for these, because bool is a subclass of int.
_BUILTIN: dict[type, Type] = {
    int: IntType,
    float: FloatType,
    bool: BoolType,
    complex: ComplexType,
    str: StrType,
    type(None): NoneType_,
}
# Classes of higher areas; a subclass means what its base means.
_REGISTERED: dict[type, Type] = {}
# Generic class -> what its subscript means, and what the bare class does.
_WRAPPERS: dict[Any, tuple[Wrapper, Type | None]] = {}
# Names that mean a type wherever they stand in quotes.
_NAMES: dict[str, Type] = {
    "Tensor": TensorType,
    **{kind.__name__: base for kind, base in _BUILTIN.items()},
    "None": NoneType_,
}
# A union with these two, and no more than these four, is any number.
_LEAST_NUMBER = frozenset({IntType, FloatType})
_MOST_NUMBER = _LEAST_NUMBER | {BoolType, ComplexType}


def register_annotation(python_type: type, schema_type: Type) -> Callable[[], None]:
    """Let the class `python_type`, and its subclasses, mean `schema_type`.

    Registering the same again is harmless.  What comes back takes it out again.

    Raises:
        SchemaError: the class already means another type.
    """
    known = _BUILTIN.get(python_type) or _REGISTERED.get(python_type)
    if known not in (None, schema_type):
        name = python_type.__name__
        raise SchemaError(
            code="AnnotationTaken", name=name, known=str(known), wanted=str(schema_type)
        )
    _REGISTERED[python_type] = schema_type

    def remove() -> None:
        _REGISTERED.pop(python_type, None)

    return remove


def register_wrapper(
    python: type, kind: Wrapper, bare: Type | None = None
) -> Callable[[], None]:
    """Let `python[T]` mean the kind of `T`; without a subscript, that of `bare`.

    Registering the same again is harmless.  What comes back takes it out again.

    Raises:
        SchemaError: the class already means another type.
    """
    known = _WRAPPERS.setdefault(python, (kind, bare))
    if known != (kind, bare):
        texts = (str(each[0](each[1] or AnyType)) for each in (known, (kind, bare)))
        name = python.__name__
        raise SchemaError(
            code="AnnotationTaken", name=name, known=next(texts), wanted=next(texts)
        )

    def remove() -> None:
        _WRAPPERS.pop(python, None)

    return remove


def tensor_stand_in() -> type:
    """A class that means Tensor, for quoted annotations where none is imported."""
    return _StandIn


class _StandIn:
    """Means Tensor as long as the class of tensors may not be loaded."""


_REGISTERED[_StandIn] = TensorType


def annotated_type(annotation: Any, resolver: Resolver | None = None) -> Type | None:
    """The schema type that `annotation` means, or None."""
    import typing
    from typing import ForwardRef, get_args, get_origin

    if annotation is None:
        return NoneType_
    if annotation is typing.Any:
        return AnyType
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        return (
            _NAMES.get(annotation) if resolver is None else resolver.written(annotation)
        )
    if isinstance(annotation, Type):
        return annotation
    origin, parameters = get_origin(annotation), get_args(annotation)
    if origin is None:
        return _class_type(annotation, resolver)
    if origin is typing.Annotated:
        parameters = parameters[:1]
    types = []
    for each in parameters:
        found = each if each is Ellipsis else annotated_type(each, resolver)
        if found is None:
            return None
        types.append(found)
    return generic_type(origin, tuple(types), resolver)


def result_types(annotation: Any) -> tuple[Type, ...] | None:
    """The types of the results that a return annotation means, or None.

    None is no result, a tuple of known length is several, all else is one.
    """
    from typing import get_origin

    found = annotated_type(annotation)
    if found is None:
        return None
    if get_origin(annotation) is tuple and isinstance(found, TupleType):
        return found.elements
    return () if found == NoneType_ else (found,)


def named_type(name: str) -> Type | None:
    """The type that a name means which is defined nowhere."""
    return _NAMES.get(name)


def generic_type(
    origin: Any, parameters: tuple[Any, ...], resolver: Resolver | None = None
) -> Type | None:
    """The type of `origin[parameters]`, types and perhaps an ellipsis, or None."""
    import types
    import typing
    from collections.abc import Sequence

    if origin is tuple and parameters[1:] == (Ellipsis,) and resolver is None:
        origin, parameters = list, parameters[:1]
    if Ellipsis in parameters:
        return None
    if origin is tuple:
        return TupleType(parameters) if parameters or resolver is not None else None
    if origin is typing.Union or origin is types.UnionType:
        return _union_type(parameters, resolver) if parameters else None
    if origin is dict:
        fits = len(parameters) == 2
        fits = fits and (resolver is None or parameters[0] in DICT_KEYS)
        return DictType(*parameters) if fits else None
    if len(parameters) != 1:
        return None
    element: Type = parameters[0]
    if origin is typing.Annotated or origin is typing.Final:
        return element
    if origin is typing.Optional:
        return optional(element)
    if origin in _WRAPPERS:
        return _WRAPPERS[origin][0](element)
    return ListType(element) if origin in (list, Sequence) else None


def wanted_parameters(origin: Any) -> int | None:
    """How many types belong to a subscript of `origin`, None for any number.

    Raises:
        LookupError: it is nothing that makes types of types.
    """
    import typing
    from collections.abc import Sequence

    # By identity: objects of programs are asked here, whose `==` may do anything.
    if any(origin is each for each in (tuple, typing.Union, typing.Annotated)):
        return None
    if origin is dict:
        return 2
    ones = (list, Sequence, typing.Optional, typing.Final, *_WRAPPERS)
    if any(origin is each for each in ones):
        return 1
    raise LookupError


def _class_type(annotation: Any, resolver: Resolver | None) -> Type | None:
    if not isinstance(annotation, type):
        return None
    if annotation in _BUILTIN:
        return _BUILTIN[annotation]
    if annotation in _WRAPPERS:
        kind, bare = _WRAPPERS[annotation]
        return None if bare is None else kind(bare)
    for base in annotation.__mro__:
        if base in _REGISTERED:
            return _REGISTERED[base]
    return None if resolver is None else resolver.declared(annotation)


def _union_type(members: tuple[Type, ...], resolver: Resolver | None) -> Type:
    values = set(members) - {NoneType_}
    number = values >= _LEAST_NUMBER and values <= _MOST_NUMBER
    if number and resolver is None:
        return optional(NumberType) if NoneType_ in members else NumberType
    return union(members)
