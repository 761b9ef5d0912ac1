"""Enums: the class, its members, and what is done with them.

True only here: what an expression means that is of an enum, or is one.

Rules:
- members are constants; the members of the class are known, so that a loop over it is
  unrolled, and its length is a number;
- members are compared by identity, as Python does; those of classes that are numbers or
  texts, too (IntEnum, StrEnum), by their values, and have the operators of these;
- a member is always true, unless its class is a number or a text.
"""

import enum
from collections.abc import Sequence
from typing import Any

from runtime.schema.declaration import EnumType
from runtime.schema.types import StrType
from runtime.script.emission import operators
from runtime.script.emission.emitter import Emitter
from runtime.script.emission.sugar import (
    Arguments,
    SimpleValue,
    Sugared,
    SugaredTuple,
    constant_of,
    no_attribute,
    register_value,
)
from runtime.script.ir import Value


class EnumClass(Sugared):
    """The class."""

    __slots__ = ("python", "type")

    def __init__(self, python: type[enum.Enum], type: EnumType) -> None:  # noqa: A002  # the field's own word
        self.python = python
        self.type = type

    def says(self) -> str:
        """The class."""
        return f"the enum `{self.python.__name__}`"

    def _member(self, e: Emitter, one: enum.Enum) -> Sugared:
        return EnumValue(e.constant(one, self.type))

    def attribute(self, e: Emitter, name: str) -> Sugared:
        """A member."""
        found = self.python.__members__.get(name)
        if found is not None:
            return self._member(e, found)
        no_attribute(e, self.says(), name, [*self.python.__members__])
        raise AssertionError("an attribute that is missing was refused")

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """No value is looked for."""
        hint = "Go through the members, and compare their values."
        e.fail(f"members of {self.says()} are not found by their values", hint)

    def subscript(self, e: Emitter, index: Sugared) -> Sugared:
        """The member of a name that is known."""
        known, name = constant_of(index)
        if not known or not isinstance(name, str):
            hint = "Write the name in quotes, or go through the members."
            e.fail(f"the name of a member of {self.says()} is no constant", hint)
        return self.attribute(e, name)

    def elements(self, e: Emitter) -> Sequence[Sugared] | None:
        """Its members; those that are another one by another name do not count."""
        return [self._member(e, each) for each in self.python]

    def iterate(self, e: Emitter) -> Any:
        """One member after another."""
        return SugaredTuple(self.elements(e) or ()).iterate(e)


class EnumValue(SimpleValue):
    """A member."""

    __slots__ = ()

    @property
    def _is_plain(self) -> bool:
        assert isinstance(self.type, EnumType), "registered for such types"
        python: Any = self.type.declaration.python
        return python is None or not issubclass(python, int | float | str)

    def _value(self, e: Emitter) -> Sugared:
        return self.attribute(e, "value")

    def attribute(self, e: Emitter, name: str) -> Sugared:
        """`name` or `value`."""
        assert isinstance(self.type, EnumType), "registered for such types"
        known, one = constant_of(self)
        if known and name in ("name", "value"):
            wanted = StrType if name == "name" else None
            return e.compiler.sugar(e.constant(getattr(one, name), wanted))
        attributes = self.type.declaration.attributes
        if name not in attributes:
            no_attribute(e, str(self.type), name, [*attributes])
        given = (attributes[name],)
        node = e.node("prim::GetAttr", (self.node_value,), given, {"name": name})
        return e.compiler.sugar(node.output)

    def set_attribute(self, e: Emitter, name: str, value: Sugared) -> None:
        """Members never change."""
        e.fail(f"attributes of {self.type}, an enum, cannot be set")

    def binary(
        self, e: Emitter, symbol: str, other: Sugared, reflected: bool
    ) -> Sugared | None:
        """Equality, and what a number or text has."""
        if not self._is_plain and symbol != "in":
            if symbol.endswith("x"):
                return operators.unary(e, symbol[:-1], self._value(e))
            theirs = other._value(e) if isinstance(other, EnumValue) else other
            sides = (theirs, self._value(e)) if reflected else (self._value(e), theirs)
            return operators.binary(e, symbol, *sides)
        if symbol == "==":
            return operators.compare(e, "is", self, other)
        if symbol == "!=":
            return operators.compare(e, "is not", self, other)
        if symbol == "in" or (symbol[-1] in "=x" and symbol[0] not in "<>"):
            return None
        hint = "Members are equal or not; compare their values."
        return e.fail(f"`{symbol}` of {self.type}, an enum, is nothing", hint)

    def truth(self, e: Emitter) -> Value | bool:
        """True, or what the value says."""
        return True if self._is_plain else self._value(e).truth(e)


def install_enums() -> None:
    """Let members of enums be what they are."""
    register_value(EnumType, EnumValue)
