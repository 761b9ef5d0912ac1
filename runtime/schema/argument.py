"""One argument, or one result, of a schema.

True only here: what an argument is made of, how it prints, and when two are equal.

Rules:
- `type` is the type as written; `fake_type` is what the boxed stack carries.  Printing
  uses the first, equality the second: `SymInt x` equals `int x`;
- a default is stored in its boxed form: None, bool, int, float, complex, str, a device,
  or a *tuple* of such for a list.  Equality tells 1, 1.0 and True apart;
- `size` is the 2 of `int[2]`.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Final

from runtime.schema.alias import AliasInfo
from runtime.schema.default import default_identity, default_text
from runtime.schema.types import (
    DictType,
    IntType,
    ListType,
    OptionalType,
    Type,
    UnionType,
    fake,
    unwrap_optional,
)


class NoDefault:
    """The type of `NO_DEFAULT`; pickling gives the one value back."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NO_DEFAULT"

    def __reduce__(self) -> str:
        return "NO_DEFAULT"


_INTEGERS = ListType(IntType)


def _writes_to_container(type_: Type, alias: AliasInfo | None) -> bool:
    """Whether what is annotated and written to is, or may be, a list or dictionary."""
    if alias is None:
        return False
    if isinstance(type_, OptionalType):
        return _writes_to_container(type_.element, alias)
    if isinstance(type_, UnionType):
        return any(_writes_to_container(each, alias) for each in type_.members)
    if not isinstance(type_, ListType | DictType):
        return False
    inner = type_.element if isinstance(type_, ListType) else type_.value
    return (alias.is_write and bool(alias.before)) or any(
        _writes_to_container(inner, each) for each in alias.contained
    )


# Marks an argument that must be given; None is a default like any other.
NO_DEFAULT: Final = NoDefault()


@dataclass(frozen=True, slots=True, eq=False)
class Argument:
    """An argument or a result; a result has neither default nor `kwarg_only`."""

    name: str
    type: Type
    size: int | None = None
    default: Any = NO_DEFAULT
    kwarg_only: bool = False
    alias: AliasInfo | None = None
    fake_type: Type = field(init=False, repr=False)
    _key: tuple[Hashable, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        boxed = fake(self.type)
        object.__setattr__(self, "fake_type", boxed)
        default = default_identity(self.default)
        key = (self.name, boxed, self.size, default, self.kwarg_only, self.alias)
        object.__setattr__(self, "_key", key)

    @property
    def has_default(self) -> bool:
        """Whether a call may leave the argument out."""
        return self.default is not NO_DEFAULT

    @property
    def alias_info(self) -> AliasInfo | None:
        """`alias`, by the name that torch has for it."""
        return self.alias

    @property
    def is_write(self) -> bool:
        """Whether a call writes to the value."""
        return self.alias is not None and self.alias.is_write

    @property
    def is_written_container(self) -> bool:
        """Whether a call writes to a list or dictionary: the value, or one in it.

        So of `t[](a!)`, `t[](a!)?` and `t[](a!)[]`, and not of `Tensor(a!)[]`.
        """
        return _writes_to_container(self.type, self.alias)

    @property
    def sets_before(self) -> frozenset[str]:
        """The alias sets that the value, or an element of it, is in before a call."""
        return frozenset() if self.alias is None else self.alias.sets_before

    @property
    def sets_after(self) -> frozenset[str]:
        """The alias sets that the value, or an element of it, is in after a call."""
        return frozenset() if self.alias is None else self.alias.sets_after

    @property
    def is_out(self) -> bool:
        """Whether the caller passes it only to receive a result in it."""
        return self.kwarg_only and self.is_write

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Argument):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        """The argument as a schema writes it: type, name and default."""
        text = type_text(self.type, self.alias, self.size)
        if self.name:
            text = f"{text} {self.name}"
        return f"{text}={self._default_text()}" if self.has_default else text

    def _default_text(self) -> str:
        value = self.default
        if (
            self.type is _INTEGERS
            and isinstance(value, tuple)
            and len(value) == self.size
            and len(value) > 1
            and len(set(value)) == 1
        ):
            return default_text(value[0])
        return default_text(value)


def placed_alias(type: Type, alias: AliasInfo) -> AliasInfo:  # noqa: A002  # the field's own word
    """The annotation of a type as its values carry it: of a list, its elements do."""
    inner = unwrap_optional(type)
    if not isinstance(inner, ListType):
        return alias
    element = placed_alias(inner.element, alias)
    return AliasInfo(is_write=alias.is_write, contained=(element,))


def type_text(type: Type, alias: AliasInfo | None, size: int | None = None) -> str:  # noqa: A002  # the field's own word
    """A type with its annotations where the parser expects them.

    An optional carries the annotation of its element before the `?`; a list carries
    its element's annotation before the brackets and its own after them.
    """
    if alias is None and size is None:
        return str(type)
    if isinstance(type, OptionalType):
        return f"{type_text(type.element, alias, size)}?"
    own = "" if alias is None else str(alias)
    if isinstance(type, ListType):
        inner = alias.contained[0] if alias and alias.contained else None
        number = "" if size is None else str(size)
        return f"{type_text(type.element, inner)}[{number}]{own}"
    return f"{type}{own}"
