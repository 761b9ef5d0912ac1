"""Flattening: examples and results as types, and as the tensors that they hold.

True only here: what a trace is given and gives: tensors, and tuples, lists and
dictionaries of them.

Rules:
- the elements of a list, and the values of a dictionary, are of one type, as graphs
  have it; those of a tuple need not be; neither list nor dictionary is empty;
- keys are texts or integers; an ordered dictionary is a dictionary, a named tuple one
  of its class;
- a copy of an example holds tensors of its own, one for each place: what a traced
  function writes to them, the example is spared, and two places are two tensors.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from runtime.schema.excerpt import described
from runtime.schema.python_classes import PythonClasses
from runtime.schema.types import (
    DictType,
    IntType,
    ListType,
    StrType,
    TensorType,
    TupleType,
    Type,
)
from runtime.schema.values import is_tensor
from runtime.schema.written import Scope
from runtime.tensors import Tensor

_KEYS = {str: StrType, int: IntType}
_DICTS = (dict, OrderedDict)
# Containers within containers; source: what the checker allows of types.
_DEEPEST = 60


class Unfit(Exception):  # it is caught by who knows what was traced
    """A value of which no type follows: where, and why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason


def type_of(value: Any, path: str, classes: PythonClasses, depth: int = 0) -> Type:
    """The type of an example or of a result; `path` is what errors call it.

    Raises:
        Unfit: it is, or holds, something else.
    """
    if is_tensor(value):
        return TensorType
    if depth > _DEEPEST:
        raise Unfit(path, "it is nested too deeply")
    if isinstance(value, tuple):
        return _tuple(value, path, classes, depth)
    if isinstance(value, list):
        if not value:
            raise Unfit(path, "an empty list does not say of what")
        types = [
            type_of(each, f"{path}[{place}]", classes, depth + 1)
            for place, each in enumerate(value)
        ]
        return ListType(_one(types, path, "elements of a list"))
    if type(value) in _DICTS:
        return _dict(value, path, classes, depth)
    raise Unfit(path, f"{described(value)} is no tensor")


def _tuple(
    value: tuple[Any, ...], path: str, classes: PythonClasses, depth: int
) -> Type:
    names = getattr(value, "_fields", ())
    inner = tuple(
        [
            type_of(
                each,
                f"{path}.{names[place]}" if names else f"{path}[{place}]",
                classes,
                depth + 1,
            )
            for place, each in enumerate(value)
        ]
    )
    if not names:
        return TupleType(inner)
    known = classes(type(value), Scope({}, classes=classes))
    if not isinstance(known, TupleType):
        raise Unfit(path, f"the named tuple `{type(value).__name__}` has no types")
    if known.elements != inner:
        reason = (
            f"`{type(value).__name__}` is declared with {TupleType(known.elements)}, "
            f"and has {TupleType(inner)}"
        )
        raise Unfit(path, reason)
    return known


def _dict(value: dict[Any, Any], path: str, classes: PythonClasses, depth: int) -> Type:
    if not value:
        raise Unfit(path, "an empty dictionary does not say of what")
    kinds = {type(key) for key in value}
    kind = kinds.pop()
    if kinds or kind not in _KEYS:
        raise Unfit(path, "the keys of a dictionary are texts or integers")
    types = [
        type_of(each, f"{path}[{key!r}]", classes, depth + 1)
        for key, each in value.items()
    ]
    return DictType(_KEYS[kind], _one(types, path, "values of a dictionary"))


def _one(types: list[Type], path: str, what: str) -> Type:
    several = list(dict.fromkeys(types))
    if len(several) > 1:
        reason = f"the {what} are of the types {several[0]} and {several[1]}"
        raise Unfit(path, reason)
    return several[0]


def leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The tensors of a value that has a type, each with where it is."""
    if isinstance(value, list | tuple):
        names = getattr(value, "_fields", None)
        for place, each in enumerate(value):
            inner = f"[{place}]" if names is None else f".{names[place]}"
            yield from leaves(each, f"{path}{inner}")
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, f"{path}[{key!r}]")
    else:
        yield path, value


def mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """The value with other tensors in it."""
    if isinstance(value, tuple):
        inner = [mapped(change, each) for each in value]
        make: Any = type(value)
        return make(*inner) if hasattr(value, "_fields") else tuple(inner)
    if isinstance(value, list):
        return [mapped(change, each) for each in value]
    if type(value) in _DICTS:
        return type(value)((key, mapped(change, each)) for key, each in value.items())
    return change(value) if is_tensor(value) else value


def own_copy(tensor: Tensor) -> Tensor:
    """A tensor of the same elements; a leaf if it was one, else with its history."""
    if tensor.requires_grad and not tensor.is_leaf:
        made: Tensor = tensor.clone()
        return made
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)
