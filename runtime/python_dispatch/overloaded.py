"""Overloaded arguments: the tensors of a call that have handlers, in order.

True only here: whose handler is asked, and in which order, after the rule that NumPy
wrote down for `__array_function__` (NEP 18) and that torch shares.

Rules:
- tensors are looked for where the schema has a tensor or any list; what stands in
  tuples and dicts is not found;
- one tensor of each class; a class stands before the first one that it derives from,
  else in the order of the arguments.
"""

from collections.abc import Callable, Sequence
from typing import Any

from runtime.schema.schema import Schema
from runtime.schema.types import ListType, Type, is_dispatch_type, unwrap_optional
from runtime.tensors.keys import PYTHON

Overloaded = list[Any]


def collector(schema: Schema) -> Callable[[Sequence[Any]], Overloaded]:
    """The function from all arguments to those with handlers, in order of asking."""
    places = tuple(
        (place, is_list(argument.type))
        for place, argument in enumerate(schema.arguments)
        if is_dispatch_type(argument.type) == "tensor" or is_list(argument.type)
    )
    if not any(several for _, several in places) and not schema.is_vararg:
        return _of_tensors(tuple(place for place, _ in places))

    def collect(arguments: Sequence[Any]) -> Overloaded:
        found: Overloaded = []
        for place, several in places:
            value = arguments[place]
            if several:
                for each in value or ():
                    if getattr(each, "key_bits", 0) & PYTHON:
                        insert(found, each)
            elif value is not None and value.key_bits & PYTHON:
                insert(found, value)
        return found

    return collect


def _of_tensors(places: tuple[int, ...]) -> Callable[[Sequence[Any]], Overloaded]:
    def collect(arguments: Sequence[Any]) -> Overloaded:
        found: Overloaded = []
        for place in places:
            value = arguments[place]
            if value is not None and value.key_bits & PYTHON:
                if found:
                    insert(found, value)
                else:
                    found.append(value)
        return found

    return collect


def insert(found: Overloaded, tensor: Any) -> None:
    """Put a tensor where it belongs, if none of its class is there."""
    kind = type(tensor)
    for each in found:
        if type(each) is kind:
            return
    for place, each in enumerate(found):
        if issubclass(kind, type(each)):
            found.insert(place, tensor)
            return
    found.append(tensor)


def is_list(kind: Type) -> bool:
    """Whether a type is that of a list, or of an optional one."""
    return isinstance(unwrap_optional(kind), ListType)
