"""When a value of one type may stand where another type is asked for.

True only here: the order between types.  Both sides are compared as they look on the
boxed stack, so `SymInt` and `int` are one.

Rules:
- lists and dictionaries can be written to, so they are equal or unrelated; tuples,
  futures, awaits and references follow their elements;
- a tuple with names is a tuple, and one of another name is unrelated;
- classes, modules and enums are what they are declared to be; an interface is whatever
  has its methods.

It is a partial order, but for pairs that say the same in two ways and are each other's
subtypes: codes and `int`, `Any?` and `Any`, and interfaces of the same methods.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.schema.declaration import (
    Declaration,
    EnumType,
    InterfaceType,
    ModuleType,
    ScriptClassType,
)
from runtime.schema.types import (
    AnyClassType,
    AnyEnumType,
    AnyType,
    AwaitType,
    ClassType,
    ComplexType,
    FloatType,
    FutureType,
    IntType,
    NoneType_,
    NumberType,
    OptionalType,
    RRefType,
    TupleType,
    Type,
    UnionType,
    fake,
)

if TYPE_CHECKING:
    from runtime.schema.argument import Argument
    from runtime.schema.schema import Schema

_NUMBERS = frozenset({IntType, FloatType, ComplexType})
_OBJECTS = (ClassType, ScriptClassType, ModuleType, InterfaceType)


class _Assumed:
    """What one question has come to: which types fit which interfaces.

    A pair is taken for granted while it is looked at, since an interface may speak of
    itself.  If it does not fit, neither may what relied on it; that is looked at again,
    but a pair that does not fit never will: it did not even with more taken for
    granted.
    """

    __slots__ = ("fits", "misfits")

    def __init__(self) -> None:
        self.fits: dict[tuple[Type, Type], None] = {}
        self.misfits: set[tuple[Type, Type]] = set()


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why something does not have a method of an interface."""

    method: str
    fault: str

    def __str__(self) -> str:
        return f"its method `{self.method}` {self.fault}"


def is_subtype(left: Type, right: Type) -> bool:
    """Whether every value of `left` is a value of `right`."""
    return _is_subtype(fake(left), fake(right), _Assumed())


def misfit(declared: Declaration, interface: Declaration) -> Misfit | None:
    """Why objects of the one declaration do not fit the other, or None if they do."""
    return _misfit(declared, interface, _Assumed())


def _is_subtype(left: Type, right: Type, assumed: _Assumed) -> bool:
    if left is right or right is AnyType:
        return True
    if isinstance(left, UnionType):
        return all(_is_subtype(fake(each), right, assumed) for each in left.members)
    if isinstance(left, OptionalType):
        return _is_subtype(NoneType_, right, assumed) and _is_subtype(
            left.element, right, assumed
        )
    if isinstance(right, UnionType):
        return any(_is_subtype(left, fake(each), assumed) for each in right.members)
    if isinstance(right, OptionalType):
        return left is NoneType_ or _is_subtype(left, right.element, assumed)
    if right is NumberType:
        return left in _NUMBERS
    if right is AnyClassType:
        return isinstance(left, _OBJECTS)
    if right is AnyEnumType:
        return isinstance(left, EnumType)
    if isinstance(left, TupleType) and isinstance(right, TupleType):
        return (
            len(left.elements) == len(right.elements)
            and (not right.qualname or _name(left) == _name(right))
            and all(
                _is_subtype(one, other, assumed)
                for one, other in zip(left.elements, right.elements, strict=True)
            )
        )
    if isinstance(right, InterfaceType):
        return _fits(left, right, assumed)
    for wrapper in (FutureType, AwaitType, RRefType):
        if isinstance(left, wrapper) and isinstance(right, wrapper):
            return _is_subtype(left.element, right.element, assumed)
    return False


def _fits(left: Type, right: InterfaceType, assumed: _Assumed) -> bool:
    pair = left, right
    if not isinstance(left, ScriptClassType | ModuleType | InterfaceType):
        return False
    if pair in assumed.fits or pair in assumed.misfits:
        return pair in assumed.fits
    before = len(assumed.fits)
    assumed.fits[pair] = None
    if _misfit(left.declaration, right.declaration, assumed) is None:
        return True
    while len(assumed.fits) > before:
        assumed.fits.popitem()
    assumed.misfits.add(pair)
    return False


def _name(named: TupleType) -> tuple[object, ...]:
    return named.qualname, named.names


def _misfit(
    declared: Declaration, interface: Declaration, assumed: _Assumed
) -> Misfit | None:
    for name, wanted in interface.methods.items():
        method = declared.methods.get(name)
        if method is None:
            return Misfit(name, "is missing")
        fault = _fault(method, wanted, assumed)
        if fault is not None:
            return Misfit(name, fault)
    return None


def _fault(method: "Schema", wanted: "Schema", assumed: _Assumed) -> str | None:
    """Why a call that fits `wanted` may not fit `method`; the objects do not count."""
    given, asked = method.arguments[1:], wanted.arguments[1:]
    for one, other in zip(given, asked, strict=False):
        fault = _argument_fault(one, other, assumed)
        if fault is not None:
            return fault
    if len(given) < len(asked):
        return f"has no argument `{asked[len(given)].name}`"
    for more in given[len(asked) :]:
        if not more.has_default:
            return f"also needs the argument `{more.name}`"
    if len(method.returns) != len(wanted.returns):
        return f"returns {len(method.returns)} values, not {len(wanted.returns)}"
    for one, other in zip(method.returns, wanted.returns, strict=True):
        if not _is_subtype(one.fake_type, other.fake_type, assumed):
            return f"returns {one.type}, not {other.type}"
    return None


def _argument_fault(
    given: "Argument", asked: "Argument", assumed: _Assumed
) -> str | None:
    if given.name != asked.name:
        return f"has the argument `{given.name}` in place of `{asked.name}`"
    if given.kwarg_only and not asked.kwarg_only:
        return f"takes `{given.name}` by keyword only"
    if asked.has_default and not given.has_default:
        return f"has no default for `{given.name}`"
    if not _is_subtype(asked.fake_type, given.fake_type, assumed):
        return f"takes {given.type} for `{given.name}`, not {asked.type}"
    return None
