"""Encode constants, types and declarations of a program as data of an archive."""

import math
from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import Any

from everyorder.runtime.errors.script import ArchiveError
from everyorder.runtime.futures import Await, Future
from everyorder.runtime.nn import Parameter
from everyorder.runtime.schema.declared import (
    DeclaredType,
    EnumType,
    ScriptClassType,
    qualified_name,
)
from everyorder.runtime.schema.enums import (
    Device,
    DType,
    EnumConstant,
    Layout,
    MemoryFormat,
)
from everyorder.runtime.schema.types import Type
from everyorder.runtime.schema.values import INT_END, INT_FIRST
from everyorder.runtime.script.archive import container
from everyorder.runtime.script.archive.spelling import manager
from everyorder.runtime.script.ir.program import (
    SHARED_PROGRAM,
    Function,
    declared_type,
)
from everyorder.runtime.script.ir.type_rules import parts_of
from everyorder.runtime.script.modules import ScriptModule
from everyorder.runtime.tensors import Tensor
from everyorder.runtime.tensors.storage import Storage

CODES: Mapping[str, type[EnumConstant]] = {
    "dtype": DType,
    "layout": Layout,
    "memory_format": MemoryFormat,
}


_not_saveable = partial(ArchiveError, code="NotSaveable")


_PLAIN = (type(None), bool, str)


class Encoder:
    """The encoder of values to JSON; it fills `shared` and `storages`.

    `add_type` and `add_function` are called for the types and functions that values
    refer to.
    """

    def __init__(
        self,
        add_type: Callable[[DeclaredType], str],
        add_function: Callable[[Function], str],
    ) -> None:
        self.add_type = add_type
        self.add_function = add_function
        self.shared: list[Any] = []
        self.storages: list[Storage] = []
        self._numbers: dict[int, int] = {}
        self._storage_numbers: dict[int, int] = {}
        # Keeps shared values alive, so that their identities stay unique.
        self._kept: list[Any] = []
        self._enums: dict[type, EnumType] = {}
        self._waiting: list[tuple[int, Any, str]] = []

    def learn_enum(self, type_: Type) -> None:
        """Encode members of an enum as those of this type: programs share enums."""
        if isinstance(type_, EnumType) and type_.declaration.python is not None:
            self._enums[type_.declaration.python] = type_

    def _enum_type(self, value: Enum) -> DeclaredType | None:
        kind = type(value)
        shared = SHARED_PROGRAM.classes.known(kind)
        known = self._enums.get(kind) or declared_type(value)
        if known is None and isinstance(shared, EnumType):
            return shared
        return known

    def encode(self, value: Any, place: str) -> Any:
        """Return a value as JSON; add all values that it refers to to the table."""
        text = self._one(value, place, 0)
        while self._waiting:
            number, each, at = self._waiting.pop()
            self.shared[number] = self._whole(each, at)
        return text

    def _one(self, value: Any, place: str, depth: int) -> Any:
        kind = value.__class__
        if depth > container.MOST_DEPTH:
            reason = f"tuples are nested more than {container.MOST_DEPTH} deep"
            raise _not_saveable(place=place, found="A tuple", reason=reason)
        if kind in _PLAIN:
            return value
        if kind is int and INT_FIRST <= value < INT_END:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is complex:
            parts = [value.real, value.imag]
            return {"complex": [self._one(each, place, depth + 1) for each in parts]}
        if isinstance(value, tuple):
            return self._tuple(value, place, depth)
        if kind is Device:
            return {"device": str(value)}
        for word, codes in CODES.items():
            if kind is codes:
                return {word: value.name}
        if isinstance(value, Function):
            return {"function": self.add_function(value)}
        if isinstance(value, Enum):
            declared = self._enum_type(value)
            if declared is not None:
                return {"enum": self.add_type(declared), "member": value.name}
        if kind is type and (name := manager(value)) is not None:
            return {"manager": name}
        return {"ref": self._number(value, place)}

    def _tuple(self, value: tuple[Any, ...], place: str, depth: int) -> Any:
        names = getattr(value, "_fields", ())
        parts = [
            self._one(each, f"{place}[{at}]", depth + 1)
            for at, each in enumerate(value)
        ]
        if not names:
            if value.__class__ is not tuple:
                raise _refused(value, place)
            return {"tuple": parts}
        return {
            "tuple": parts,
            "named": qualified_name(value.__class__),
            "fields": [*names],
        }

    def _number(self, value: Any, place: str) -> int:
        number = self._numbers.setdefault(id(value), len(self.shared))
        if number == len(self.shared):
            self.shared.append(None)
            self._kept.append(value)
            self._waiting.append((number, value, place))
        return number

    def _whole(self, value: Any, place: str) -> Any:
        kind = value.__class__
        if kind is list:
            return {
                "list": [
                    self._one(each, f"{place}[{at}]", 0)
                    for at, each in enumerate(value)
                ]
            }
        if kind is dict:
            return {
                "dict": [
                    [
                        self._one(key, f"a key of {place}", 0),
                        self._one(each, f"{place}[{key!r:.40}]", 0),
                    ]
                    for key, each in value.items()
                ]
            }
        if isinstance(value, Tensor):
            return self._tensor(value, place)
        declared = declared_type(value)
        if isinstance(value, ScriptModule):
            return self._module(value, place)
        if isinstance(declared, ScriptClassType):
            attributes = self._attributes(value, declared, place)
            return {"object": self.add_type(declared), "attributes": attributes}
        raise _refused(value, place)

    def _attributes(self, value: Any, of: DeclaredType, place: str) -> dict[str, Any]:
        missing = object()
        attributes: dict[str, Any] = {}
        for name, type_ in of.declaration.attributes.items():
            todo = [type_]
            while todo:
                self.learn_enum(todo[-1])
                todo += parts_of(todo.pop())
            each = getattr(value, name, missing)
            if each is not missing:
                attributes[name] = self._one(each, f"{place}.{name}", 0)
        return attributes

    def _module(self, value: ScriptModule, place: str) -> Any:
        of = value.__script_type__
        names = of.declaration.attributes
        before, behind = value._script_hooks
        return {
            "module": self.add_type(of),
            "attributes": self._attributes(value, of, place),
            "parameters": [each for each in names if each in value._parameters],
            "buffers": [each for each in names if each in value._buffers],
            "passing": sorted(value._non_persistent_buffers_set),
            "before": [*before],
            "behind": [*behind],
        }

    def _tensor(self, value: Tensor, place: str) -> Any:
        if value.__class__ not in (Tensor, Parameter):
            reason = "only plain tensors have a form in an archive"
            description = f"A tensor of the class `{type(value).__name__}`"
            raise _not_saveable(place=place, found=description, reason=reason)
        if not value.is_leaf:
            reason = "it was computed under autograd, and its history is not kept"
            what, hint = "A tensor", "Detach it."
            raise _not_saveable(place=place, found=what, reason=reason, hint=hint)
        storage = value.storage()
        number = self._storage_numbers.setdefault(id(storage), len(self.storages))
        if number == len(self.storages):
            self.storages.append(storage)
        return {
            "tensor": number,
            "dtype": value.dtype.name,
            "shape": [*value.shape],
            "strides": [*value.strides],
            "offset": value.offset,
            "requires_grad": bool(value.requires_grad),
            "parameter": value.__class__ is Parameter,
        }


def _refused(value: Any, place: str) -> ArchiveError:
    kind = type(value).__name__
    description, hint = f"An object of type {kind}", ""
    reason = "it is of no type that programs have"
    if isinstance(value, Await):
        description = "An await"
        reason = "what it will do exists in this process alone"
        hint = "Wait for it, and save what it gives."
    elif isinstance(value, Future):
        description = "A future"
        reason = "what settles it is in this process alone"
        hint = "Wait for it, and save what it gives."
    elif kind == "RRef":
        description = "An RRef"
        reason = "what it refers to lives as long as its owner's process"
    elif isinstance(value, Enum):
        reason = "its enum is declared in no program"
    return _not_saveable(place=place, found=description, reason=reason, hint=hint)
