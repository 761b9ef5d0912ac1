"""The boundary: which reference of Python's is one of `RRef[T]`, and which worker one.

True only here: what is known of the type of the value behind a reference.

Rules:
- a reference whose type is known is one of that type, and of those that it fits into;
- of one whose type nobody has told, or only knows where the value lies, the value is
  looked at when it comes;
- a module is of the interface that its reference was given.
"""

from collections.abc import Callable, Mapping
from typing import Any

from runtime.errors.schema import SchemaError
from runtime.rpc.identities import OBJECT, WorkerInfo
from runtime.rpc.program.kinds import WORKER
from runtime.rpc.program.surface import Surface
from runtime.schema.parser import parse_type
from runtime.schema.subtype import is_subtype
from runtime.schema.types import RRefType, Type


def type_of(surface: Surface, rref: Any) -> Type | None:
    """The type of the value of a reference, None if it is not known here."""
    text = surface.type_of(rref)
    try:
        found = parse_type(text, type_variables=False) if text else None
    except SchemaError:
        # Of a class that only its owner has.
        return None
    return None if str(found) == OBJECT else found


def tests(surface: Surface) -> Mapping[Any, Callable[[Any], Callable[[Any], bool]]]:
    """A type, or a class of types -> what makes the test of a value."""

    def of_reference(wanted: RRefType) -> Callable[[Any], bool]:
        def is_one(value: Any) -> bool:
            if not isinstance(value, surface.rref):
                return False
            known = type_of(surface, value)
            return known is None or is_subtype(known, wanted.element)

        return is_one

    return {
        RRefType: of_reference,
        WORKER: lambda _: lambda value: isinstance(value, WorkerInfo),
    }
