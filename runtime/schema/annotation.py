"""Python annotations as schema types.

True only here: which annotation means which type.  Higher areas add their classes with
`register_annotation` when they are imported.

Rules:
- an annotation that means no schema type gives None; the caller says where it stood;
- a name in quotes is looked up among the registered names, so `"Tensor"` always works.
"""

from __future__ import annotations

from typing import Any

from runtime.errors.schema import AnnotationTaken
from runtime.schema.types import (
    AnyType,
    BoolType,
    ComplexType,
    DictType,
    FloatType,
    IntType,
    ListType,
    NoneType_,
    NumberType,
    StrType,
    TensorType,
    TupleType,
    Type,
)
from runtime.schema.unions import optional, union

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
# Names that mean a type wherever they stand in quotes.
_NAMES: dict[str, Type] = {
    "Tensor": TensorType,
    **{kind.__name__: base for kind, base in _BUILTIN.items()},
    "None": NoneType_,
}
# A union with these two, and no more than these four, is any number.
_LEAST_NUMBER = frozenset({IntType, FloatType})
_MOST_NUMBER = _LEAST_NUMBER | {BoolType, ComplexType}


def register_annotation(python_type: type, schema_type: Type) -> None:
    """Let the class `python_type`, and its subclasses, mean `schema_type`.

    Registering the same again is harmless.

    Raises:
        AnnotationTaken: the class already means another type.
    """
    known = _BUILTIN.get(python_type) or _REGISTERED.get(python_type)
    if known not in (None, schema_type):
        name = python_type.__name__
        raise AnnotationTaken(name=name, known=str(known), wanted=str(schema_type))
    _REGISTERED[python_type] = schema_type


def tensor_stand_in() -> type:
    """A class that means Tensor, for quoted annotations where none is imported."""
    return _StandIn


class _StandIn:
    """Means Tensor as long as the class of tensors may not be loaded."""


_REGISTERED[_StandIn] = TensorType


def annotated_type(annotation: Any) -> Type | None:
    """The schema type that `annotation` means, or None."""
    import typing
    from types import UnionType
    from typing import ForwardRef, get_args, get_origin

    if annotation is None:
        return NoneType_
    if annotation is typing.Any:
        return AnyType
    if isinstance(annotation, str):
        return _NAMES.get(annotation)
    if isinstance(annotation, ForwardRef):
        return _NAMES.get(annotation.__forward_arg__)
    if isinstance(annotation, Type):
        return annotation
    origin, parameters = get_origin(annotation), get_args(annotation)
    if origin is None:
        return _class_type(annotation)
    if origin is typing.Annotated:
        return annotated_type(parameters[0])
    if origin is typing.Union or origin is UnionType:
        return _union_type(parameters)
    return _generic_type(origin, parameters)


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


def _class_type(annotation: Any) -> Type | None:
    if not isinstance(annotation, type):
        return None
    if annotation in _BUILTIN:
        return _BUILTIN[annotation]
    for base in annotation.__mro__:
        if base in _REGISTERED:
            return _REGISTERED[base]
    return None


def _union_type(parameters: tuple[Any, ...]) -> Type | None:
    members = _all_types(parameters)
    if members is None:
        return None
    values = set(members) - {NoneType_}
    if values >= _LEAST_NUMBER and values <= _MOST_NUMBER:
        return optional(NumberType) if NoneType_ in members else NumberType
    return union(members)


def _generic_type(origin: Any, parameters: tuple[Any, ...]) -> Type | None:
    from collections.abc import Sequence

    if origin is tuple and parameters[1:] == (Ellipsis,):
        origin, parameters = list, parameters[:1]
    types = _all_types(parameters)
    if not types:
        return None
    if origin is tuple:
        return TupleType(types)
    if origin in (list, Sequence):
        return ListType(types[0])
    return DictType(*types) if origin is dict and len(types) == 2 else None


def _all_types(parameters: tuple[Any, ...]) -> tuple[Type, ...] | None:
    types = tuple(map(annotated_type, parameters))
    known = tuple(t for t in types if t is not None)
    return known if len(known) == len(types) else None
