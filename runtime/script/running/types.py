"""Types of values: whether a value that runs is of a type, and what arguments become.

Rules:
- `isinstance` agrees with Python where Python can tell: True is an int; a list is of
  type `List[int]` if all of its elements are, so an empty one is of every type of list;
- at the boundary numbers widen as everywhere (`runtime.schema.values`); lists and
  dictionaries are the caller's own, so that what a program writes to them is seen:
  where an element would have to be converted, they are refused; what is no list, but a
  sequence, becomes one;
- an object of a program is of the type that `declared_type` says;
- what a future or an await of Python's gives is looked at by whoever waits for it.
"""

from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from typing import Any

from runtime.errors.script import RunningError
from runtime.futures import Await, Future
from runtime.schema.binding import Binder, binder
from runtime.schema.calls import described, shortened
from runtime.schema.codes import Code, Device
from runtime.schema.declaration import DeclaredType, EnumType, ScriptClassType
from runtime.schema.schema import Schema
from runtime.schema.subtyping import is_subtype
from runtime.schema.types import (
    CODED,
    AnyType,
    AwaitType,
    BoolType,
    ComplexType,
    DeviceType,
    DictType,
    FloatType,
    FunctionType,
    FutureType,
    IntType,
    ListType,
    NoneType_,
    NumberType,
    OptionalType,
    StrType,
    TensorType,
    TupleType,
    Type,
    UnionType,
)
from runtime.schema.values import MISMATCH, Converter, converter, in_place, is_tensor
from runtime.script.plug_ins import added
from runtime.script.program import Function, declared_type

Test = Callable[[Any], bool]

_PLAIN: dict[Type, Test] = {each: lambda v: isinstance(v, int | Code) for each in CODED}
_PLAIN |= {
    NoneType_: lambda value: value is None,
    BoolType: lambda value: isinstance(value, bool),
    IntType: lambda value: isinstance(value, int),
    FloatType: lambda value: isinstance(value, float),
    ComplexType: lambda value: isinstance(value, complex),
    NumberType: lambda value: isinstance(value, int | float | complex),
    StrType: lambda value: isinstance(value, str),
    DeviceType: lambda value: isinstance(value, Device),
    TensorType: is_tensor,
    FunctionType: lambda value: isinstance(value, Function) or callable(value),
}
# A type, or a class of types, of plug-ins -> what makes the test of one.
_ADDED: dict[Any, Callable[[Any], Test]] = {}
# Enough for all programs of a process; what is forgotten is made again.
_KEPT = 1024


@lru_cache(maxsize=_KEPT)
def test_of(type: Type) -> Test:  # noqa: A002  # the field's own word
    """The function that says whether a value is of a type."""
    plain = _PLAIN.get(type)
    if plain is not None:
        return plain
    if isinstance(type, OptionalType):
        inner = test_of(type.element)
        return lambda value: value is None or inner(value)
    if isinstance(type, UnionType):
        members = tuple(map(test_of, type.members))
        return lambda value: any(each(value) for each in members)
    if isinstance(type, ListType):
        inner = test_of(type.element)
        return lambda value: isinstance(value, list) and all(map(inner, value))
    if isinstance(type, DictType):
        key, inner = test_of(type.key), test_of(type.value)
        return lambda value: (
            isinstance(value, dict)
            and all(map(key, value))
            and all(map(inner, value.values()))
        )
    if isinstance(type, TupleType):
        return _tuple_test(type)
    if isinstance(type, FutureType):
        return lambda value: isinstance(value, Future)
    if isinstance(type, AwaitType):
        return lambda value: value.__class__ is Await
    if isinstance(type, DeclaredType):
        return lambda value: _is_declared(value, type)
    make = _added(type)
    return make(type) if make is not None else lambda value: True


def _added(type_: Type) -> Callable[[Any], Test] | None:
    return _ADDED.get(type_) or _ADDED.get(type_.__class__)


def register_test(of: Any, make: Callable[[Any], Test]) -> Callable[[], None]:
    """Let `make` give the test of a type, or of each type of a class, of a plug-in.

    What comes back takes it out again.
    """
    take_out = added(_ADDED, of, make, "has a test")

    def forget() -> None:
        test_of.cache_clear()
        taker.cache_clear()

    def remove() -> None:
        take_out()
        forget()

    forget()
    return remove


def _tuple_test(type_: TupleType) -> Test:
    elements, names = tuple(map(test_of, type_.elements)), type_.names

    def is_tuple(value: Any) -> bool:
        return (
            isinstance(value, tuple)
            and len(value) == len(elements)
            and (not names or getattr(value, "_fields", ()) == names)
            and all(test(each) for test, each in zip(elements, value, strict=True))
        )

    return is_tuple


def _is_declared(value: Any, wanted: DeclaredType) -> bool:
    if isinstance(wanted, EnumType):
        return isinstance(value, Enum) and wanted.declaration.python is value.__class__
    # Another program may have declared the class, too.
    is_class = isinstance(wanted, ScriptClassType)
    if is_class and wanted.declaration.python is value.__class__:
        return True
    own = declared_type(value)
    return own is not None and is_subtype(own, wanted)


def checked(value: Any, wanted: Type, what: str) -> Any:
    """The value, if it is of the type.

    Raises:
        RunningError: it is not; `what` gave it.
    """
    if test_of(wanted)(value):
        return value
    raise RunningError(
        code="NotOfType",
        what=what,
        expected=str(wanted),
        found=described(value),
        value=shortened(value),
    )


@lru_cache(maxsize=_KEPT)
def taker(type: Type) -> Converter:  # noqa: A002  # the field's own word
    """What an argument of a type becomes; `MISMATCH` if it is none."""
    if isinstance(type, OptionalType):
        inner = taker(type.element)
        return lambda value: None if value is None else inner(value)
    if isinstance(type, UnionType):
        members = tuple(map(test_of, type.members))
        return lambda value: value if any(each(value) for each in members) else MISMATCH
    if isinstance(type, TupleType):
        return _tuple_taker(type)
    if isinstance(type, ListType):
        return _list_taker(type)
    if isinstance(type, DictType):
        return _dict_taker(type)
    if type is AnyType:
        return lambda value: value
    named = isinstance(type, DeclaredType | FutureType | AwaitType)
    if named or type in (TensorType, FunctionType) or _added(type) is not None:
        is_one = test_of(type)
        return lambda value: value if is_one(value) else MISMATCH
    return converter(type)


def _tuple_taker(type_: TupleType) -> Converter:
    inner, names = tuple(map(taker, type_.elements)), type_.names

    def take(value: Any) -> Any:
        if not isinstance(value, tuple | list) or len(value) != len(inner):
            return MISMATCH
        if names and getattr(value, "_fields", None) != names:
            return MISMATCH
        taken = [turn(each) for turn, each in zip(inner, value, strict=True)]
        if any(each is MISMATCH for each in taken):
            return MISMATCH
        if all(one is other for one, other in zip(taken, value, strict=True)):
            return value if isinstance(value, tuple) else tuple(value)
        return value.__class__._make(taken) if names else tuple(taken)  # type: ignore[union-attr]  # it has the fields

    return take


def _list_taker(type_: ListType) -> Converter:
    inner, plain = taker(type_.element), converter(type_)

    def take(value: Any) -> Any:
        if not isinstance(value, list):
            return plain(value)
        for each in value:
            if inner(each) is not each:
                return MISMATCH
        return value

    return take


def _dict_taker(type_: DictType) -> Converter:
    key, inner, plain = taker(type_.key), taker(type_.value), converter(type_)

    def take(value: Any) -> Any:
        if not isinstance(value, dict):
            return plain(value)
        for name, each in value.items():
            if key(name) is not name or inner(each) is not each:
                return MISMATCH
        return value

    return take


def binder_of(schema: Schema) -> Binder:
    """The function that binds a call from Python to a function of a program."""
    takers = []
    for each in schema.arguments:
        turn = taker(each.type)
        takers.append(in_place(turn) if each.is_written_container else turn)
    return binder(schema, tuple(takers))
