"""Named tuples: their classes, and tuples of these that are made.

True only here: how a call of the class becomes a tuple.  Fields, indices and unpacking
are those of every tuple.

Rules:
- fields are given by place, by name, or by the defaults that the class has, if these
  are constants;
- the methods that a class adds are not known: a tuple is its fields.
"""

from typing import Any

from runtime.schema.argument import NO_DEFAULT, Argument
from runtime.schema.names import OperatorName
from runtime.schema.schema import Schema
from runtime.schema.types import TupleType
from runtime.script.emission.calls import bound_values
from runtime.script.emission.emitter import Emitter
from runtime.script.emission.sugar import (
    Arguments,
    Sugared,
    is_constant,
    no_attribute,
    sugar_of_value,
)


class NamedTupleClass(Sugared):
    """The class."""

    __slots__ = ("python", "type")

    def __init__(self, python: Any, type: TupleType) -> None:  # noqa: A002  # the field's own word
        self.python = python
        self.type = type

    def says(self) -> str:
        """The class."""
        return f"the named tuple `{self.python.__name__}`"

    def attribute(self, e: Emitter, name: str) -> Sugared:
        """Nothing of the class itself is known."""
        hint = "Make a tuple by calling the class."
        no_attribute(e, self.says(), name, (), hint)
        raise AssertionError("an attribute that is missing was refused")

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """A tuple of its fields."""
        defaults = self.python._field_defaults
        fields = []
        for field, each in zip(self.type.names, self.type.elements, strict=True):
            default = defaults.get(field, NO_DEFAULT)
            known = default is NO_DEFAULT or is_constant(default)
            stored = default if known else NO_DEFAULT
            fields.append(Argument(field, each, default=stored))
        name = OperatorName(self.python.__name__)
        schema = Schema(name, tuple(fields), (Argument("", self.type),))
        values, _ = bound_values(e, self.says(), schema, arguments)
        node = e.node("prim::TupleConstruct", values, (self.type,))
        return sugar_of_value(node.output)
