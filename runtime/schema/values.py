"""Values by schema type: conversion, equality, and presentation to kernels.

A value has three forms: the caller's, the one on the boxed stack (`converter`), and the
one that a Python kernel sees (`presenter`); the last two differ only in enum constants,
which are ints on the stack, and in lists, which a kernel always gets fresh, unless its
schema says that it writes to the list itself.

Rules of numbers (upstream's, measured with torch 2.13):
- they widen (bool, int, float, complex) and never narrow, except that any number is a
  `bool` by its truth;
- a tensor of one element counts as its number; as an `int` it loses a fraction
  *silently*; a `Scalar` accepts no tensor;
- an `int` fits 64 bits with a sign, a `Scalar` also 64 bits without;
- an enum constant (`DType`, ...) is its number for `int` and `Scalar`, not for
  `SymInt`;
- ours: NumPy's scalars count as the Python number that they hold, everywhere; None is
  not a `bool`.

Rules of other types:
- None is a `Tensor` (the undefined one), but no other plain value;
- a `ScalarType`, `Layout` or `MemoryFormat` is a constant of its enum or an int that
  the table has;
- a sized list accepts one number and repeats it; lists may have any length;
- a list or dictionary that is written to (`t[](a!)`, `t[](a!)?`) is the caller's
  object, with all in it, so nothing in it may need a conversion (`in_place`);
- a member of a union must fit without conversion;
- a value is a tensor exactly if it has the attribute `key_bits`;
- a tuple with names accepts a tuple that has these `_fields`, and keeps its class;
- a class, module, interface or enum accepts an object of the declared Python class, or
  with a `schema_type` (an attribute that its own class defines) that is a subtype;
- a `Function` is any callable, a `PyObject` any object; types that only name an object
  (`Generator`, custom classes, ...) accept any object that is not a plain value.

Rules of tags of definitions: `numbers_as_tensors`, a number is a tensor without
dimensions (`tensor_or_number`), if the tensor area is loaded to create it;
`defined_tensors`, None is not a tensor (`defined`); `integers_only`, a bool or a
tensor of fractions is not an `int` (`whole`), as for upstream's functions.

How it works: `converter` builds one closure per (type, size), and caches it; a closure
returns `MISMATCH` instead of raising, so that the caller decides about unions and
errors.  For a new type, add a row to `_BASES` or a case to `converter`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import index
from typing import Any, Final

from everyorder.runtime.base.hooks import TENSOR_OF_NUMBER
from everyorder.runtime.errors.registration import UnknownDevice
from everyorder.runtime.schema.declared import DeclaredType
from everyorder.runtime.schema.enums import (
    Device,
    DType,
    EnumConstant,
    Layout,
    MemoryFormat,
)
from everyorder.runtime.schema.subtyping import is_subtype
from everyorder.runtime.schema.types import (
    AnyType,
    BoolType,
    ComplexType,
    DeviceType,
    DictType,
    FloatType,
    FunctionType,
    GeneratorType,
    IntType,
    LayoutType,
    ListType,
    MemoryFormatType,
    NoneType_,
    NumberType,
    OptionalType,
    PyObjectType,
    QSchemeType,
    QuantizerType,
    ScalarTypeType,
    StrType,
    SymBoolType,
    SymIntType,
    TensorType,
    TupleType,
    Type,
    TypeVariable,
    UnionType,
)

Converter = Callable[[object], object]

# Cached closures: a library needs some hundred, and the limit keeps programs that
# create types without end from filling the memory.
REMEMBERED = 1024


class MismatchType:
    """The type of `MISMATCH`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISMATCH"


# The result of a conversion for a value that its type does not accept.
MISMATCH: Final = MismatchType()

# An `int` is a signed 64-bit number; a `Scalar` may also be an unsigned one.
INT_FIRST, INT_END, SCALAR_END = -(2**63), 2**63, 2**64

_REAL = (int, float)
_NUMBER = (int, float, complex)
# Values of exactly these types need no `item()`; NumPy's scalars derive from two.
_PYTHON = frozenset({bool, *_NUMBER})


def to_int(value: object) -> object:
    """Convert to `int`: a bool, int, enum constant, or one real tensor element."""
    if type(value) is int and INT_FIRST <= value < INT_END:
        return value
    return value.code if isinstance(value, EnumConstant) else to_symint(value)


def to_symint(value: object) -> object:
    """Convert to `SymInt`: as `int`, without enum constants."""
    if isinstance(value, int):
        number = int(value)
    elif hasattr(value, "key_bits"):
        element = _element(value)
        if not isinstance(element, _REAL):
            return MISMATCH
        try:
            number = int(element)
        except (ValueError, OverflowError):  # not a number, or infinite
            return MISMATCH
    else:
        try:
            number = index(_element(value))  # type: ignore[arg-type]  # raises if not
        except TypeError:
            return MISMATCH
    return number if INT_FIRST <= number < INT_END else MISMATCH


def whole(turn: Converter) -> Converter:
    """Return the conversion `turn` to an integer, but reject bools and fractions."""

    def convert(value: object) -> object:
        if type(value) is int:
            return turn(value)
        dtype = getattr(value, "dtype", type(value))
        if dtype is bool or str(dtype) == "bool":  # of NumPy's too
            return MISMATCH
        # A tensor would lose its fraction; NumPy's numbers are refused by `turn`.
        lossy = isinstance(dtype, DType) and (dtype.is_floating or dtype.is_complex)
        return MISMATCH if lossy else turn(value)

    return convert


def _widened(kind: Callable[[Any], object], *narrower: type) -> Converter:
    """Return the conversion of narrower numbers, or one element, to a number kind."""

    def convert(value: object) -> object:
        element = _element(value)
        if not isinstance(element, narrower):
            return MISMATCH
        try:
            return kind(element)
        except OverflowError:
            return MISMATCH

    return convert


def to_scalar(value: object) -> object:
    """Convert to `Scalar`: a number, its kind unchanged."""
    if isinstance(value, EnumConstant):
        return value.code
    element = MISMATCH if hasattr(value, "key_bits") else _element(value)
    if isinstance(element, bool):
        return element
    if isinstance(element, int):
        return int(element) if INT_FIRST <= element < SCALAR_END else MISMATCH
    if isinstance(element, float):
        return float(element)
    return complex(element) if isinstance(element, complex) else MISMATCH


def _element(value: object) -> object:
    """Return the number in a tensor or array of one element; other values unchanged."""
    if type(value) in _PYTHON:
        return value
    item = getattr(value, "item", None)
    if item is None:
        return value
    try:
        number: object = item()
    except (TypeError, ValueError, RuntimeError):
        return MISMATCH
    return number


# `float`: any real number; `complex`: any number; `bool`: the truth of any number.
to_float = _widened(float, *_REAL)
to_complex = _widened(complex, *_NUMBER)
to_bool = _widened(bool, *_NUMBER)


def is_tensor(value: object) -> bool:
    """Return True if the dispatcher treats `value` as a tensor: it has `key_bits`."""
    return hasattr(value, "key_bits")


@lru_cache(maxsize=REMEMBERED)
def converter(
    type: Type,  # noqa: A002  # the field's own word
    size: int | None = None,
    integers_only: bool = False,
) -> Converter:
    """Return the conversion to `type`, a function that returns `MISMATCH` on failure.

    If `integers_only`, `int` and `SymInt`, also in a list, are `whole`.
    """
    if isinstance(type, OptionalType):
        return _optional(converter(type.element, size, integers_only))
    if isinstance(type, ListType):
        return _list(type.element, size, integers_only)
    if isinstance(type, TupleType):
        to_tuple = _tuple(tuple(map(converter, type.elements)))
        return _named_tuple(type.names, to_tuple) if type.qualname else to_tuple
    if isinstance(type, DeclaredType):
        return _declared(type)
    if isinstance(type, DictType):
        return _dict(converter(type.key), converter(type.value))
    if isinstance(type, UnionType):
        return _union(tuple(map(converter, type.members)))
    if isinstance(type, TypeVariable):
        return _anything
    if integers_only and type in _INTEGERS:
        return _INTEGERS[type]
    return _BASES.get(type, _object)


def same(left: object, right: object) -> bool:
    """Return True if two values of the boxed stack are equal, including their types.

    None, bool, int, float, complex and str never equal one another; floats compare as
    numbers (-0.0 is 0.0, NaN equals nothing); lists, tuples and dicts by element;
    devices and enum constants by value; everything else, tensors too, by identity.
    """
    kind = type(left)
    if kind is not type(right):
        return False
    if kind in BY_VALUE:
        return left == right
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            same(left[key], right[key]) for key in left
        )
    return left is right


@lru_cache(maxsize=REMEMBERED)
def presenter(type: Type) -> Converter | None:  # noqa: A002  # the field's own word
    """Return the conversion of a stack value of `type` for kernels; None: unchanged."""
    if isinstance(type, OptionalType):
        return presenter(type.element)
    if isinstance(type, ListType):
        return _present_list(presenter(type.element))
    kind = _CODES.get(type)
    return None if kind is None else _present_code(kind)


def present(type: Type, value: object) -> object:  # noqa: A002  # the field's own word
    """Return a stack value as a Python kernel sees it: enum objects, fresh lists."""
    present_as = presenter(type)
    return value if present_as is None else present_as(value)


def _tensor(value: object) -> object:
    return value if value is None or hasattr(value, "key_bits") else MISMATCH


def tensor_or_number(value: object) -> object:
    """Return a tensor unchanged, and a number as a tensor, if there are tensors.

    The tensor area registers the conversion when it is loaded.
    """
    if value is None or hasattr(value, "key_bits"):
        return value
    wrap = TENSOR_OF_NUMBER.answer
    if wrap is None or not isinstance(value, bool | int | float | complex):
        return MISMATCH
    return wrap(value)


def defined(turn: Converter) -> Converter:
    """Return the conversion `turn` of tensors, or a list of them, but reject None."""

    def convert(value: object) -> object:
        converted = turn(value)
        if converted is None:
            return MISMATCH
        if isinstance(converted, list) and any(each is None for each in converted):
            return MISMATCH
        return converted

    return convert


def in_place(turn: Converter) -> Converter:
    """Return the conversion `turn` of a value that a call writes to.

    It returns the very object, or `MISMATCH` where `turn` would have to change an
    element: a write to a copy would be lost.  A value that is not a list or dictionary,
    such as None for an optional one, is converted as usual.
    """

    def convert(value: object) -> object:
        converted = turn(value)
        if not isinstance(converted, list | dict):
            return converted
        return value if _is_kept(value, converted) else MISMATCH

    return convert


def _is_kept(value: object, converted: object) -> bool:
    """Return True if a conversion only copied lists, dictionaries and tuples.

    It recurses as deep as the type of the value is nested.
    """
    if value is converted:
        return True
    if type(value) is dict and isinstance(converted, dict):
        # The conversion may have merged two keys.
        return len(value) == len(converted) and all(
            key is other and _is_kept(part, converted[other])
            for (key, part), other in zip(value.items(), converted, strict=True)
        )
    if type(value) is list or type(value) is tuple:
        return isinstance(converted, type(value)) and all(
            map(_is_kept, value, converted)
        )
    return False


def _strict_tensor(value: object) -> object:
    return value if hasattr(value, "key_bits") else MISMATCH


def _str(value: object) -> object:
    return str(value) if isinstance(value, str) else MISMATCH


def _none(value: object) -> object:
    return None if value is None else MISMATCH


def _anything(value: object) -> object:
    return value


def _object(value: object) -> object:
    plain = value is None or is_tensor(value) or isinstance(value, _PLAIN)
    return MISMATCH if plain else value


def _device(value: object) -> object:
    if isinstance(value, str):
        try:
            return Device.parse(value)
        except UnknownDevice:
            return MISMATCH
    return value if isinstance(value, Device) else MISMATCH


def _code(kind: type[EnumConstant]) -> Converter:
    def to_code(value: object) -> object:
        if isinstance(value, kind):
            return value.code
        if isinstance(value, int) and kind.is_code(value):
            return int(value)
        return MISMATCH

    return to_code


def _optional(inner: Converter) -> Converter:
    def to_optional(value: object) -> object:
        return None if value is None else inner(value)

    return to_optional


def _list(element: Type, size: int | None, integers_only: bool) -> Converter:
    # None is an undefined tensor as an argument, but not inside a list of tensors.
    tensors = element == TensorType
    inner = _strict_tensor if tensors else converter(element, None, integers_only)
    repeats = () if size is None else _REPEATS.get(element, ())
    plain = _PLAIN_LISTS.get(element, lambda value: False)

    def to_list(value: object) -> object:
        kind = type(value)
        if (kind is list or kind is tuple) and plain(value):
            return [*value]  # type: ignore[misc]  # a list or a tuple
        if repeats and isinstance(value, repeats):
            one = inner(value)
            return MISMATCH if one is MISMATCH else [one] * (size or 0)
        if not isinstance(value, list | tuple):
            elements = _elements(value)
            if elements is None:
                return MISMATCH
            value = elements
        converted = [inner(each) for each in value]
        return MISMATCH if _lost(converted) else converted

    return to_list


def _all_ints(value: Iterable[object]) -> bool:
    for each in value:
        if type(each) is not int or not INT_FIRST <= each < INT_END:
            return False
    return True


def _all_tensors(value: Iterable[Any]) -> bool:
    try:
        for each in value:
            each.key_bits  # noqa: B018  # only tensors have it
    except AttributeError:
        return False
    return True


def _lost(converted: Iterable[object]) -> bool:
    """Return True if an element did not convert; by identity, as `==` may be a call."""
    return any(each is MISMATCH for each in converted)


def _elements(value: object) -> list[object] | None:
    """Return the elements of a sequence or one-dimensional array that is not a list."""
    if isinstance(value, str | bytes) or is_tensor(value):
        return None
    if isinstance(value, Sequence):
        return list(value)
    rows = getattr(value, "tolist", None)
    elements = rows() if rows is not None else None
    return elements if isinstance(elements, list) else None


def _tuple(inner: tuple[Converter, ...]) -> Converter:
    def to_tuple(value: object) -> object:
        if not isinstance(value, list | tuple) or len(value) != len(inner):
            return MISMATCH
        converted = tuple(turn(each) for turn, each in zip(inner, value, strict=True))
        return MISMATCH if _lost(converted) else converted

    return to_tuple


def _named_tuple(names: tuple[str, ...], to_tuple: Converter) -> Converter:
    def to_named(value: object) -> object:
        if not isinstance(value, tuple) or getattr(value, "_fields", None) != names:
            return MISMATCH
        converted = to_tuple(value)
        return MISMATCH if converted is MISMATCH else value.__class__._make(converted)  # type: ignore[attr-defined]  # it has `_fields`

    return to_named


def _declared(declared: DeclaredType) -> Converter:
    def to_object(value: object) -> object:
        if hasattr(type(value), "schema_type"):
            own = value.schema_type  # type: ignore[attr-defined]  # checked above
            return value if is_subtype(own, declared) else MISMATCH
        python = declared.declaration.python
        return value if python and isinstance(value, python) else MISMATCH

    return to_object


def _function(value: object) -> object:
    return value if callable(value) and not is_tensor(value) else MISMATCH


def _dict(to_key: Converter, to_value: Converter) -> Converter:
    def to_dict(value: object) -> object:
        if not isinstance(value, Mapping):
            return MISMATCH
        converted = {to_key(key): to_value(each) for key, each in value.items()}
        lost = _lost(converted) or _lost(converted.values())
        return MISMATCH if lost else converted

    return to_dict


def _union(inner: tuple[Converter, ...]) -> Converter:
    def to_member(value: object) -> object:
        for turn in inner:
            converted = turn(value)
            if converted is value or same(converted, value):
                return converted
            if isinstance(value, tuple) and isinstance(converted, list):
                if same(converted, list(value)):
                    return converted
            elif isinstance(converted, int) and isinstance(value, EnumConstant):
                return converted
        return MISMATCH

    return to_member


def _present_list(inner: Converter | None) -> Converter:
    def fresh(value: object) -> object:
        if not isinstance(value, list):
            return value
        return list(value) if inner is None else [inner(each) for each in value]

    return fresh


def _present_code(kind: type[EnumConstant]) -> Converter:
    def shown(value: object) -> object:
        if isinstance(value, int) and kind.is_code(value):
            return kind(value)
        return value

    return shown


# Plain values, which types that only name an object do not accept.
_PLAIN = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    list,
    tuple,
    dict,
    EnumConstant,
    Device,
)

# Values equal by `==` once their types are the same.
BY_VALUE = frozenset(
    {bool, int, float, complex, str, Device, DType, Layout, MemoryFormat}
)

_CODES: dict[Type, type[EnumConstant]] = {
    ScalarTypeType: DType,
    LayoutType: Layout,
    MemoryFormatType: MemoryFormat,
}

# Element type -> the numbers that a sized list repeats (upstream; an int is not
# repeated in a list of floats, nor a bool in a list of bools).
_REPEATS: dict[Type, tuple[type, ...]] = {
    IntType: (int,),
    SymIntType: (int,),
    FloatType: (float,),
}

_BASES: dict[Type, Converter] = {
    TensorType: _tensor,
    IntType: to_int,
    SymIntType: to_symint,
    FloatType: to_float,
    ComplexType: to_complex,
    BoolType: to_bool,
    SymBoolType: to_bool,
    NumberType: to_scalar,
    StrType: _str,
    DeviceType: _device,
    QSchemeType: to_symint,
    NoneType_: _none,
    AnyType: _anything,
    GeneratorType: _optional(_object),
    QuantizerType: _optional(_object),
    FunctionType: _function,
    PyObjectType: _anything,
} | {code: _code(kind) for code, kind in _CODES.items()}

# Element type -> a check that a list can be used unconverted, as most do.
_PLAIN_LISTS: dict[Type, Callable[[Any], bool]] = {
    TensorType: _all_tensors,
    IntType: _all_ints,
}

# The conversions of integers that reject bools.
_INTEGERS: dict[Type, Converter] = {
    IntType: whole(to_int),
    SymIntType: whole(to_symint),
}
